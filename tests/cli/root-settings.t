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
if pool_is_broken; then
	t_skip 'settings' "$POOL_BROKEN"
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

# All kinds at once: numbers, words, a swap area, written by statements in the
# middle of what uses them.  The state before is the state after, also after
# kill -9 in the middle.
thp=/sys/kernel/mm/transparent_hugepage/enabled
ksm=/sys/kernel/mm/ksm/run
state() {
	cat /proc/sys/vm/nr_hugepages $thp $ksm /proc/swaps
	ls -d /sys/block/zram* /dev/*zram* /var/tmp/mmrace-swap
} 2>/dev/null
if [ ! -w $thp ] || [ ! -w $ksm ] || [ ! -e /proc/swaps ]; then
	t_skip 'settings written in a case' 'no THP, KSM or swap here'
	t_done
fi
cat >"$WORK/all.case" <<'CASE'
mmrace-case 1
needs   writes=ksm_run writes=compact_memory swap>=32M
set     nr_hugepages=2 thp_enabled=always
rounds  1000 budget=3s

process main
  thread A
    set_number nr_hugepages 1 -> 0
    set_number nr_hugepages 3 -> 0
    set_mode thp_enabled never -> 0
    set_number ksm_run 1 -> 0
    compact_memory -> 0
    swapoff -> 0
    swapon -> 0
  thread B
    m = mmap len=64p prot=rw flags=private|anon
    write m step=1p
    madvise m mergeable
    madvise m pageout
    read m step=1p
CASE
state >"$WORK/before"
t_run "$MMRACE" replay --json --runs 1 --allow-settings "$WORK/all.case"
if [ $RC = 4 ]; then
	t_skip 'settings written in a case' "$(tail -n 1 "$OUT")"
	t_done
fi
t_rc 'settings written in a case' 0
grep -Eq '"unexpected": *[1-9]' "$OUT"
[ $? = 1 ]
t_result $? 'every write of a setting succeeds'
state >"$WORK/after"
t_same 'the state of the machine is as before' "$WORK/before" "$WORK/after"

differs() { ! state | cmp -s - "$WORK/before"; }
for part in 1 2 3; do
	"$MMRACE" replay --quiet --runs 1 --allow-settings "$WORK/all.case" \
		>/dev/null 2>&1 &
	pid=$!
	eventually 5 differs
	sleep 0.$((part * 37))
	kill -9 $pid
	wait $pid 2>/dev/null
	t_run "$MMRACE" replay --quiet --runs 1 "$WORK/nothing.case"
	state >"$WORK/after"
	t_same "kill -9, $part: the next start restores all of it" \
		"$WORK/before" "$WORK/after"
done

# Two at once: one waits or says so, and both leave the state as it was.
"$MMRACE" replay --quiet --runs 1 --allow-settings "$WORK/all.case" \
	>/dev/null 2>&1 &
pid=$!
eventually 5 differs
t_run "$MMRACE" replay --runs 1 --allow-settings "$WORK/all.case"
wait $pid
first=$?
case $RC in
0) t_result 0 'a second mmrace waits' ;;
*)
	t_rc 'a second mmrace is skipped' 4
	cat "$OUT" "$ERR" >"$WORK/said"
	t_match '... and says who holds the settings' "$WORK/said" \
		'another mmrace'
	;;
esac
[ $first = 0 ]
t_result $? 'the first one is not disturbed'
state >"$WORK/after"
t_same 'after both the state is as before' "$WORK/before" "$WORK/after"
t_done
