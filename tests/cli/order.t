#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# rounds ... order=D: same seed, same order; depth 2 reaches what needs one
# change, depth 1 does not.  Red when the order depends
# on anything but the draws, or a thread that sleeps holds the others up.
. "$(dirname "$0")/../lib.sh"

# errors DEPTH [ARGS...]: how often B came after the close, and ran at all.
errors() {
	local depth=$1
	shift
	cat >"$WORK/order.case" <<-C
		mmrace-case 1
		rounds  200 order=$depth

		process main
		  thread A
		    f0 = memfd_create
		    ftruncate f0 len=1p
		    close f0
		  thread B
		    ftruncate f0 len=2p
	C
	"$MMRACE" replay "$WORK/order.case" --json --out "$WORK/out" "$@" |
		tr -d ' \n' |
		grep -o '"ftruncatef0len=2p","op".*' |
		grep -o '"count":[0-9]*\|"errors":{[^}]*}' | head -n 2 |
		tr '\n' ' '
}

one=$(errors 2)
[ -n "$one" ]
t_result $? 'B is counted'
# Who has no CPU for 200 ms loses its turn: on a machine with much other load
# that may happen to a few.
again=$(errors 2)
a=$(grep -o 'EBADF":[0-9]*' <<<"$one" | grep -o '[0-9]*$')
b=$(grep -o 'EBADF":[0-9]*' <<<"$again" | grep -o '[0-9]*$')
[ $((a - b)) -ge -4 ] && [ $((a - b)) -le 4 ]
t_result $? "the same order twice ($a and $b late ones)"
case $one in
*EBADF*) t_result 0 'B after the close is reached' ;;
*) t_result 1 "B after the close is reached ($one)" ;;
esac
flat=$(errors 1)
[ "$one" != "$flat" ]
t_result $? 'a change of priority makes a difference'

cat >"$WORK/wait.case" <<'C'
mmrace-case 1
rounds  20 order=3 budget=20s

process main
  thread A
    wait go
    m0 = mmap len=1p prot=rw flags=private|anon
    sync s
    write m0
  thread B
    sync s
    t0 = thread_spawn body=idle
    thread_join t0
  thread C
    signal go
    futex_wake f
C
t_run timeout 20 "$MMRACE" replay "$WORK/wait.case" --json --out "$WORK/out"
t_rc 'threads that sleep let the others on' 0
[ "$(t_json_get "$OUT" rounds)" = 20 ] && [ "$(t_json_get "$OUT" void_rounds)" = 0 ]
t_result $? 'all rounds come to their end'
t_done
