#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A case and its exports hit as often (Fisher's exact test, p > 0.01): the
# canaries always, among them a fault storm, and a fault storm of chance as
# often as replay says.  A healthy run passes.  MMR_LONG=1: 100 runs of the one
# of chance and 10 of each canary, else 5 and 1.
#
# Red when: an exported file loses the timing that a hit needs, gains another,
# or its watchdog sees something else than the monitor.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/suites.sh"
t_need_tool
suites_prepare "$WORK"
n=${LONG:+100}
n=${n:-5}

# fisher A AN B BN: the two-sided p of A of AN against B of BN.
fisher() {
	awk -v a="$1" -v an="$2" -v b="$3" -v bn="$4" '
	function lf(n, i, s) { for (i = 2; i <= n; i++) s += log(i); return s }
	function lc(n, k) { return lf(n) - lf(k) - lf(n - k) }
	BEGIN {
		k = a + b
		for (i = 0; i <= an && i <= k; i++)
			if (k - i <= bn)
				p[i] = exp(lc(an, i) + lc(bn, k - i) - lc(an + bn, k))
		for (i in p)
			if (p[i] <= p[a] * 1.0000001)
				sum += p[i]
		printf "%.4f\n", sum
	}'
}

# hits PROGRAM FORM N: executions that say 1.
hits() {
	local i h=0
	for i in $(seq "$3"); do
		timeout 60 "$1" >"$OUT" 2>&1 </dev/null
		[ "$(suites_exit "$2" $?)" = 1 ] && h=$((h + 1))
	done
	echo $h
}

# trip CASE N: replays and executes it in all forms.
trip() {
	local name a an b p form
	name=$(basename "$1" .case)
	t_run "$MMRACE" replay --json --runs "$2" --time 120s "$1"
	a=$(t_json_get "$OUT" hits) an=$(t_json_get "$OUT" runs)
	# It may stop before, when its time is over.
	[ "${an:-0}" -ge 1 ]
	t_result $? "$name: replay makes runs ($an of $2)"
	for form in c ltp kselftest; do
		"$MMRACE" export --to $form -o "$WORK/x.c" "$1" &&
			suites_compile "$CC" $form "$WORK/x" "$WORK/x.c" \
				>"$WORK/log" 2>&1
		t_result $? "$name: $form"
		b=$(hits "$WORK/x" $form "$2")
		p=$(fisher "$a" "$an" "$b" "$2")
		awk -v p="$p" 'BEGIN { exit !(p > 0.01) }'
		t_result $? "$name: $form hits $b of $2, replay $a of $an (p $p)"
	done
}

[ "$(fisher 1 10 9 10)" = 0.0011 ] && [ "$(fisher 5 10 6 10)" = 1.0000 ]
t_result $? "Fisher's test knows its tables"
canaries='storm futex'
[ -n "$LONG" ] && canaries='storm futex uffd exit'
for canary in $canaries; do
	trip tests/canary/$canary.case $((n > 10 ? 10 : 1))
done
trip tests/export/chance.case "$n"
trip tests/canary/healthy-1g.case 1
trip corpus/seeds/s1-nohint.case 1
t_done
