#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An ordinary user on a busy machine: ten spinning programs a CPU, and a stall
# is still flagged within 250 ms of its rule.  Red when a beat that waits for
# its CPU is taken for a pause of the machine.

. "$(dirname "$0")/../lib.sh"
t_need_tool
if is_root; then
	command -v setpriv >/dev/null || { t_skip 'all' 'no setpriv'; t_done; }
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all
		--bounding-set=-all env HOME=/nonexistent)
else
	as=()
fi
chmod 755 "$WORK"
mkdir -m 1777 "$WORK/tmp"
cp "$BUILD/mmrace" "$BUILD/mmrace-child" tests/canary/{futex,uffd}.case "$WORK/"
chmod 644 "$WORK"/*.case
cd "$WORK/tmp" || exit 99
BUILD=$TOP/${MMR_BUILD:-build/release}

read -r load _ </proc/loadavg
if [ "${load%.*}" -ge "$(nproc)" ]; then
	t_skip 'flagged in time on a busy machine' \
		"the load is $load already: it would measure that of others"
	t_done
fi
spinners=()
for ((i = 0; i < 10 * $(nproc); i++)); do
	"${as[@]}" sh -c 'while :; do :; done' &
	spinners+=($!)
done
trap 'kill "${spinners[@]}" 2>/dev/null; rm -rf "$WORK"' EXIT
for canary in futex uffd futex uffd futex uffd; do
	rm -rf out
	t_run "${as[@]}" "$WORK/mmrace" replay --quiet --runs 1 --out out \
		"$WORK/$canary.case"
	if [ "$RC" = 4 ]; then
		t_skip "$canary" "$(head -n 1 "$ERR")"
		continue
	fi
	set -- out/findings/*/
	ms=$(t_json_get "$PWD/${1}verdict.json" detect_ms)
	awk -v ms="${ms:-9999}" 'BEGIN { exit !(ms >= 2000 && ms <= 2250) }'
	t_result $? "$canary: flagged after ${ms:-?} ms, its rule is 2000"
done
kill "${spinners[@]}"
wait "${spinners[@]}" 2>/dev/null
t_done
