#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Processes that cannot be killed: from outside they are put into a frozen group
# (of the freezer of cgroup v1, which holds also what was killed).
#
# Red when a soak waits for them without end, does not count them, does not stop
# at its limit with what it has, or leaves something when they can die at last.

. "$(dirname "$0")/../lib.sh"
t_need_tool
cold=/sys/fs/cgroup/freezer/mmr-test-$$
if ! is_root || ! mkdir "$cold" 2>/dev/null; then
	t_skip 'processes that cannot be killed' 'wants root and the v1 freezer'
	t_done
fi
warm() {
	echo THAWED >"$cold/freezer.state" 2>/dev/null
}
trap 'warm; eventually 10 rmdir "$cold" 2>/dev/null; rm -rf "$WORK"' EXIT
tree() {
	local p
	for p in $(cat "/proc/$1/task"/*/children 2>/dev/null); do
		tree "$p"
		echo "$p"
	done
}
"$MMRACE" soak --profile storm --seed 5 --quarantine 2 --time 90 --quiet \
	--json --metrics "$WORK/metrics" --out "$WORK/out" >"$OUT" 2>"$ERR" &
pid=$!
number() { sed -n 's/^mmrace_quarantined //p' "$WORK/metrics" 2>/dev/null; }
frozen=0
over() { ! kill -0 $pid 2>/dev/null; }
start=$SECONDS
# One case after the other: none that is there can be killed any more.
until over || [ $((SECONDS - start)) -gt 85 ]; do
	echo FROZEN >"$cold/freezer.state"
	for p in $(tree $pid); do
		[ "$(readlink "/proc/$p/exe")" = "$BUILD/mmrace-child" ] &&
			echo "$p" >"$cold/cgroup.procs" 2>/dev/null &&
			frozen=$((frozen + 1))
	done
	sleep 0.2
done
took=$((SECONDS - start))
wait $pid
rc=$?
[ $rc = 0 ] || [ $rc = 1 ]
t_result $? "it ends with results (exit $rc, $frozen put in, after $took s)"
[ $took -lt 85 ]
t_result $? 'and does so by itself'
t_json 'its report is JSON' "$OUT"
[ "$(t_json_get "$OUT" state)" = stopped ]
t_result $? "it stopped (state $(t_json_get "$OUT" state))"
n=$(t_json_get "$OUT" quarantined)
[ "${n:-0}" -ge 2 ] && [ "$n" -le 4 ]
t_result $? "those that could not be killed are counted ($n)"
[ "$(number)" = "$n" ]
t_result $? 'also in the metrics'
warm
eventually 10 none_running "$BUILD/mmrace-child"
t_result $? 'when they can die, they do'
t_run "$MMRACE" status "$WORK/out"
t_rc 'its ledger is read' 0
t_note 'it said:' "$ERR"
t_done
