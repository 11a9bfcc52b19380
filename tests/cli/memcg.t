#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Memory cgroups of a case: made, limited, frozen, moved, removed; and nothing
# of them is left, not after a kill -9 either.
#
# Red when: an operation on a group fails, a frozen process or an OOM kill by
# the case's own limit is taken for a finding, a group stays behind, a charge
# that does not come back is not seen.

. "$(dirname "$0")/../lib.sh"
t_need_tool

# Groups of that engine, in whatever hierarchy.
groups_of() { find /sys/fs/cgroup -type d -path "*/mmrace-$1*" 2>/dev/null; }
none_of() { [ -z "$(groups_of "$1")" ]; }

all=tests/cli/memcg.case
t_run "$MMRACE" replay --json --runs 1 "$all"
if [ $RC = 4 ]; then
	t_skip 'memory cgroups' "$(cat "$OUT" "$ERR" | tail -n 1)"
	t_done
fi
t_rc 'groups are made, limited, frozen, moved and removed' 0
grep -Eq '"unexpected": *[1-9]' "$OUT"
[ $? = 1 ]
t_result $? '... and every call does so'

# Over its limit: the OOM killer ends it, and that is no finding.
cat >"$WORK/oom.case" <<'CASE'
mmrace-case 1
needs   memcg
rounds  3 budget=20s
expect  quiet

process kid template
  thread K
    cgroup_move to=a -> 0
    m1 = mmap len=64M prot=rw flags=private|anon
    write m1 step=1p
    signal alive

process main
  thread A
    cgroup_create a -> 0
    cgroup_limit a 8M -> 0
    cgroup_limit a 8M of=swap -> 0|ENOENT|EACCES
    p0 = process_spawn kid
    process_reap p0
CASE
t_run "$MMRACE" replay --json --runs 1 "$WORK/oom.case"
t_rc 'an OOM kill by the own limit is no finding' 0
[ "$(grep -c '"op": *"write"' "$OUT")" = 0 ]
t_result $? '... and the limit holds: the write never ends'

# Frozen for good: calm thaws it.
cat >"$WORK/frozen.case" <<'CASE'
mmrace-case 1
needs   memcg
rounds  2 budget=10s

process kid template
  thread K
    m1 = mmap len=16M prot=rw flags=private|anon
    signal up
    loop
      write m1 step=1p
      madvise m1 dontneed
    end

process main
  thread A
    cgroup_create a -> 0
    p0 = process_spawn kid
    cgroup_move p0 to=a -> 0
    wait up
    cgroup_freeze a -> 0
    kill p0 KILL
    process_reap p0
CASE
start=$SECONDS
t_run "$MMRACE" replay --runs 1 "$WORK/frozen.case"
t_rc 'a process that nobody thaws is no finding' 0
[ $((SECONDS - start)) -lt 8 ]
t_result $? '... and calm thaws it'

# A charge that stays: an endless round is cut off while a group holds memory.
sed -e 's/^rounds.*/rounds  1 budget=20s/' -e '/process_reap/d' \
	-e 's/cgroup_remove a.*/delay 20s/' "$all" >"$WORK/slow.case"
"$MMRACE" replay --quiet --runs 1 "$WORK/slow.case" >/dev/null 2>&1 &
pid=$!
there() { groups_of "$pid" | grep -q '/case-[0-9]*/a$'; }
eventually 5 there
t_result $? 'the groups of a running case are below that of its engine'
kill -9 $pid
wait $pid 2>/dev/null
printf 'mmrace-case 1\n\nprocess main\n  thread A\n    delay 1us\n' \
	>"$WORK/nothing.case"
t_run "$MMRACE" replay --quiet --runs 1 "$WORK/nothing.case"
t_rc 'kill -9: the next start runs' 0
none_of "$pid"
t_result $? 'kill -9: the next start removes the groups'
none_of "$pid" || t_note "left: $(groups_of "$pid" | head -n 3)"

sed -e '/^needs/d' "$all" >"$WORK/unasked.case"
t_run "$MMRACE" replay --runs 1 "$WORK/unasked.case"
t_rc 'without its needs line such a case is skipped' 4
cat "$OUT" "$ERR" >"$WORK/said"
t_match '... with a sentence that says what to add' "$WORK/said" \
	'add .needs memcg'
t_done
