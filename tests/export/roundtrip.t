#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A case and its exports hit as often (Fisher's exact test, p > 0.01): the
# canaries always, among them a fault storm, and a fault storm of chance as
# often as replay says.  Healthy runs pass.
# MMR_LONG=1: 100 runs of the one of chance, 10 of each canary and 3 of each
# healthy case, else 5, 1 and 1.  The long form takes some 12 minutes; nothing
# in it makes runs for more than a minute, so that it is over after half an
# hour however slow the machine is.
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

# executes PROGRAM FORM N: how many say 1, how many 0, and how many there were,
# N or what a minute is enough for.
executes() {
	local n=0 hits=0 passes=0 end=$((SECONDS + 60))
	while [ $n -lt "$3" ] && [ $SECONDS -lt $end ]; do
		timeout 60 "$1" >"$OUT" 2>&1 </dev/null
		case $(suites_exit "$2" $?) in
		0) passes=$((passes + 1)) ;;
		1) hits=$((hits + 1)) ;;
		esac
		n=$((n + 1))
	done
	echo $hits $passes $n
}

# program CASE FORM: the exported program, $WORK/x.
program() {
	"$MMRACE" export --to "$2" -o "$WORK/x.c" "$1" &&
		suites_compile "$CC" "$2" "$WORK/x" "$WORK/x.c" \
			>"$WORK/log" 2>&1
	t_result $? "$(basename "$1" .case): $2"
}

# trip CASE N: replays and executes it in all forms.
trip() {
	local name a an b bn p form
	name=$(basename "$1" .case)
	t_run "$MMRACE" replay --json --runs "$2" --time 60s "$1"
	a=$(t_json_get "$OUT" hits) an=$(t_json_get "$OUT" runs)
	# It may stop before, when its time is over.
	[ "${an:-0}" -ge 1 ]
	t_result $? "$name: replay makes runs ($an of $2)"
	for form in c ltp kselftest; do
		program "$1" $form
		read -r b _ bn < <(executes "$WORK/x" $form "$2")
		p=$(fisher "$a" "$an" "$b" "$bn")
		awk -v p="$p" 'BEGIN { exit !(p > 0.01) }'
		t_result $? "$name: $form hits $b of $bn, replay $a of $an (p $p)"
	done
}

# healthy CASE N: all runs of all forms say 0, as replay does.
healthy() {
	local name form passes n
	name=$(basename "$1" .case)
	t_run "$MMRACE" replay --runs "$2" --time 60s --quiet "$1"
	if [ "$RC" = 4 ]; then
		t_skip "$name: a healthy run passes" "$(tail -n 1 "$ERR")"
		return
	fi
	t_rc "$name: replay finds nothing" 0
	for form in c ltp kselftest; do
		program "$1" $form
		read -r _ passes n < <(executes "$WORK/x" $form "$2")
		[ "$passes" = "$n" ]
		t_result $? "$name: $form passes $passes of $n"
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
for case in tests/canary/healthy-1g.case corpus/seeds/s{1-nohint,2-1m}.case; do
	healthy "$case" $((n > 10 ? 3 : 1))
done
t_done
