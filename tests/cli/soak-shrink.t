#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a soak comes back to.
#
# Red when a finding that shows itself again is not made smaller while the soak
# goes on, when that takes the soak's time, or when a guest in which it should
# be done does not come up and that ends the soak or is not said.

. "$(dirname "$0")/../lib.sh"
t_need_tool

# Calls that may take no time: findings, many of which show again at once.
soak() {
	"$MMRACE" soak --profile storm --seed 5 --limit syscall=100us --quiet \
		"$@" >"$OUT" 2>"$ERR" &
	pid=$!
}
lines() { grep -c '^ *[a-z]' "$1"; }
smaller() {
	local f
	for f in "$WORK/out"/findings/*/min.case; do
		[ -s "$f" ] || continue
		[ "$(lines "$f")" -lt "$(lines "${f%min.case}case.case")" ] &&
			return 0
	done
	return 1
}
soak --revisit 90 --time 120 --out "$WORK/out"
eventually 110 smaller
t_result $? 'a finding is made smaller while the soak goes on'
kill -INT $pid
wait $pid
rc=$?
[ $rc = 1 ]
t_result $? "which ends with its findings (exit $rc)"
s=$(t_json_get "$WORK/out/soak.json" seconds)
r=$(t_json_get "$WORK/out/soak.json" revisit_seconds)
awk -v s="$s" -v r="$r" 'BEGIN { exit !(r > 0 && r < 0.95 * s) }'
t_result $? "within a share of its time ($r of $s s)"
for f in "$WORK/out"/findings/*/min.case; do
	"$BUILD/tools/cases" print "$f" >/dev/null 2>&1 || echo "$f"
done >"$WORK/bad"
[ ! -s "$WORK/bad" ]
t_result $? 'what it left are cases'

said() { grep -q -- '--shrink-guest: .*/nowhere/bzImage' "$ERR"; }
soak --revisit 90 --out "$WORK/guest" --shrink-guest /nowhere/bzImage
eventually 60 said
t_result $? 'a guest that is not there: a sentence'
kill -0 $pid
t_result $? 'and the soak goes on'
kill -INT $pid
wait $pid
t_note 'it said:' "$ERR"
t_done
