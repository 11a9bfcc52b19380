#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Settings: changed only when allowed, restored after a run, and by the next
# start after kill -9.

. "$(dirname "$0")/../lib.sh"
t_need_tool
if ! is_root || [ ! -w /proc/sys/vm/nr_hugepages ]; then
	t_skip 'settings' 'needs root and a pool of huge pages'
	t_done
fi
now() { cat /proc/sys/vm/nr_hugepages; }
before=$(now)
want=$((before + 3))
changed() { [ "$(now)" = "$want" ]; }
restored() { [ "$(now)" = "$before" ]; }

cat >"$WORK/set.case" <<CASE
mmrace-case 1
set     nr_hugepages=$want
rounds  1 budget=20s

process main
  thread A
    delay 3s
CASE

"$MMRACE" replay --quiet --runs 1 --allow-settings "$WORK/set.case" \
	>"$WORK/log" 2>&1 &
pid=$!
eventually 5 changed
t_result $? 'the setting is changed while the case runs'
wait $pid
rc=$?
[ $rc = 0 ]
t_result $? "the case ran (exit $rc)"
[ $rc = 0 ] || t_note 'log:' "$WORK/log"
restored
t_result $? 'restored after the run'

"$MMRACE" replay --quiet --runs 1 --allow-settings "$WORK/set.case" \
	>/dev/null 2>&1 &
pid=$!
eventually 5 changed
kill -9 $pid
wait $pid 2>/dev/null
printf 'mmrace-case 1\n\nprocess main\n  thread A\n    delay 1us\n' \
	>"$WORK/nothing.case"
t_run "$MMRACE" replay --quiet --runs 1 "$WORK/nothing.case"
t_rc 'the next start runs' 0
restored
t_result $? 'kill -9: the next start has restored it'
restored || echo "$before" >/proc/sys/vm/nr_hugepages

# A run with huge pages leaves the pool as it was.
cat >"$WORK/huge.case" <<'CASE'
mmrace-case 1
needs   hugepages>=2
rounds  5 budget=10s

process main
  thread A
    m0 = mmap len=2h prot=rw flags=private|anon|hugetlb
    write m0 step=1h
    munmap m0
CASE
t_run "$MMRACE" replay --quiet --runs 1 --allow-settings "$WORK/huge.case"
t_rc 'huge pages with leave to raise the pool' 0
restored
t_result $? 'the pool is as before'
t_done
