#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A soak that makes its findings smaller in a guest (--shrink-guest) while it
# goes on on the host.  QEMU, `make guest`, and a kernel (MMR_GUEST_KERNEL, else
# that of the lab, else an installed one).
#
# Red when no finding gets smaller, when Ctrl-C in the midst of it is not obeyed
# within 15 s, or when a guest or child is left.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../shrink.sh"
t_need_tool
find_guest
if [ -n "$why" ]; then
	t_skip 'findings made smaller in a guest' "$why"
	t_done
fi
shrinking_soak --time 900 --out "$WORK/out" --shrink-guest "$kernel"
trap 'kill -9 $pid 2>/dev/null; rm -rf "$WORK"' EXIT
# One QEMU after the other: those that were seen.
guests=
look() {
	guests="$guests $(pgrep -P $pid -f qemu-system)"
	smaller "$WORK/out"
}
eventually 600 look
t_result $? 'a finding is made smaller in a guest while the soak goes on'
# shellcheck disable=SC2086 # one word each
n=$(printf '%s\n' $guests | sort -u | grep -c .)
[ "$n" -gt 0 ]
t_result $? "guests were there ($n)"
before=$(date +%s%N)
kill -INT $pid
gone() { ! kill -0 $pid 2>/dev/null; }
eventually 15 gone
t_result $? "Ctrl-C ends it ($((($(date +%s%N) - before) / 1000000)) ms)"
wait $pid
rc=$?
[ $rc = 1 ]
t_result $? "with its findings (exit $rc)"
t_min_cases "$WORK/out"
no_guest() {
	local p
	for p in $guests; do
		[ "$(ps -o comm= -p "$p")" != qemu-system-x86 ] || return 1
	done
}
eventually 10 no_guest
t_result $? 'no guest is left'
eventually 10 none_running "$BUILD/mmrace-child"
t_result $? 'no child is left'
grep -q -- '--shrink-guest' "$ERR"
[ $? = 1 ]
t_result $? 'nothing to complain of'
t_note 'it said:' "$ERR"
t_done
