#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# kill -9 of the engine at MMR_KILLS=20 random moments of a soak with profiles
# that change the machine: the next start brings everything back.
#
# Red when: a setting, a group, a swap area, shared memory or a process is left; or
# no kill leaves any of them to the next start, so that nothing is shown.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../state.sh"
t_need_tool
if ! is_root; then
	t_skip 'kill -9 of the engine' 'needs root: others change nothing'
	t_done
fi
KILLS=${MMR_KILLS:-20}
printf 'mmrace-case 1\n\nprocess main\n  thread A\n    delay 1us\n' \
	>"$WORK/nothing.case"
"$MMRACE" replay --quiet --runs 1 "$WORK/nothing.case" >/dev/null 2>&1
machine_state >"$WORK/before"
dead_groups >"$WORK/before.dead"

# ended PID: nothing that it started lives.  Its children are called after the
# file that they run from; those of others on this machine are not ours.
ended() {
	! grep -lsx "PPid:	$1" /proc/[0-9]*/status >/dev/null
}
for p in ${MMR_PROFILES:-hugetlb memcg swap}; do
	ok=0 found=0
	for i in $(seq "$KILLS"); do
		"$MMRACE" soak --time 60 --profile "$p" --allow-settings \
			--out "$WORK/soak-$p" --seed "$RANDOM" \
			>/dev/null 2>&1 &
		pid=$!
		sleep "$((RANDOM % 3)).$((RANDOM % 900 + 100))"
		kill -9 $pid
		wait $pid 2>/dev/null
		[ -n "$(new_dead "$WORK/before.dead")" ] && found=$((found + 1))
		t_run "$MMRACE" replay --quiet --runs 1 "$WORK/nothing.case"
		if [ "$RC" = 0 ] && eventually 15 as_before "$WORK/before" &&
			eventually 5 ended $pid; then
			ok=$((ok + 1))
		else
			t_note "$p, kill $i: not as before"
			note_difference "$WORK/before"
		fi
	done
	[ "$ok" = "$KILLS" ]
	t_result $? "$p: restored after $ok of $KILLS kills"
	[ "$found" -gt 0 ]
	t_result $? "... of which $found left something to restore"
done
note_pool "$WORK/before"
t_done
