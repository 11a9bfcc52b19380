#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Operations on processes and their rights do their work, and do not merely
# return; core dumps go where they belong, and with the case.
#
# Red when: a process that shares memory has a copy, a limit or capability that
# was given up still holds, a dump is not written, or stays.

. "$(dirname "$0")/../lib.sh"
t_need_tool
expected() { # NAME: all results of the case in $WORK/x.case are as listed
	t_run "$MMRACE" replay --json --runs 1 "$WORK/x.case"
	if [ "$RC" = 4 ]; then
		t_skip "$1" "$(cat "$OUT" "$ERR" | tail -n 1)"
		return
	fi
	grep -Eq '"unexpected": *[1-9]' "$OUT"
	[ $? = 1 ] && [ "$RC" = 0 ]
	t_result $? "$1"
	[ "$RC" = 0 ] || t_note 'output:' "$ERR"
}
cat >"$WORK/x.case" <<'CASE'
mmrace-case 1
rounds  5 budget=10s

process kid template
  thread K
    munmap m0 -> 0
    signal gone
    m1 = mmap len=1p prot=rw flags=private|anon
    write m1 -> 0
    t0 = thread_spawn body=idle
    thread_join t0

process main
  thread A
    m0 = mmap len=2p prot=rw flags=private|anon
    write m0 -> 0
    p0 = process_spawn kid vm
    wait gone
    read m0 -> EFAULT
    process_reap p0
    p1 = process_spawn idle vm
    kill p1 KILL -> 0
    process_reap p1
CASE
expected 'process_spawn vm: what one unmaps is gone for the other'
sed 's/ vm$//; s/-> EFAULT/-> 0/' "$WORK/x.case" >"$WORK/y.case"
mv "$WORK/y.case" "$WORK/x.case"
expected 'process_spawn: of a fork it is not'

cat >"$WORK/x.case" <<'CASE'
mmrace-case 1
needs   cap=CAP_IPC_LOCK

process main
  thread A
    m0 = mmap len=4p prot=rw flags=private|anon
    mlock m0 -> 0
    munlock m0 -> 0
    setrlimit memlock 0 -> 0
    mlock m0 -> 0
    munlock m0 -> 0
    drop_cap ipc_lock -> 0
    mlock m0 -> EPERM|ENOMEM
CASE
expected 'drop_cap and setrlimit: what was given up is refused'

cat >"$WORK/x.case" <<'CASE'
mmrace-case 1
needs   core
rounds  1 budget=20s

process kid template
  thread K
    loop 100
      m0 = mmap len=2p prot=rw flags=private|anon
      mprotect m0 prot=r len=1p
      write m0 off=1p
    end
    signal up
    pause

process main
  thread A
    p0 = process_spawn kid
    wait up
    kill p0 ABRT -> 0
    process_reap p0
    delay 2s
CASE
mkdir "$WORK/tmp"
TMPDIR=$WORK/tmp "$MMRACE" replay --runs 1 "$WORK/x.case" >"$WORK/log" 2>&1 &
pid=$!
dumped() { find "$WORK/tmp" -path '*mmrace-core*' -type f -size +0 | grep -q .; }
if eventually 10 dumped; then
	t_result 0 'needs core: a dump is written into a folder of its own'
	wait $pid
	[ $? = 0 ]
	t_result $? '... by a case that finds nothing'
	[ -z "$(find "$WORK/tmp" -name 'mmrace-core*')" ]
	t_result $? '... and goes with it'
else
	wait $pid
	if [ $? = 4 ]; then
		t_skip 'needs core' "$(tail -n 1 "$WORK/log")"
	else
		t_result 1 'needs core: a dump is written'
	fi
fi
t_done
