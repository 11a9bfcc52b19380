#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A soak that makes its findings smaller in a guest (--shrink-guest) while it
# goes on on the host.  QEMU, `make guest`, and a kernel (MMR_GUEST_KERNEL,
# debian:6.1).
#
# Red when no finding gets smaller, when Ctrl-C in the midst of it is not obeyed
# within 15 s, or when a guest or child is left.

. "$(dirname "$0")/../lib.sh"
t_need_tool
kernel=${MMR_GUEST_KERNEL:-debian:6.1}
if ! command -v qemu-system-x86_64 >/dev/null ||
	[ ! -x build/guest/mmrace-child ]; then
	t_skip 'findings made smaller in a guest' 'no QEMU, or no make guest'
	t_done
fi
# Calls that may take no time: findings, which an emulated kernel has as well.
"$MMRACE" soak --profile storm --seed 5 --limit syscall=100us --quiet \
	--revisit 90 --time 900 --out "$WORK/out" --shrink-guest "$kernel" \
	>"$OUT" 2>"$ERR" &
pid=$!
trap 'kill -9 $pid 2>/dev/null; rm -rf "$WORK"' EXIT
lines() { grep -c '^ *[a-z]' "$1"; }
# One QEMU after the other: those that were seen.
guests=
smaller() {
	local f
	guests="$guests $(pgrep -P $pid -f qemu-system)"
	for f in "$WORK/out"/findings/*/min.case; do
		[ -s "$f" ] || continue
		[ "$(lines "$f")" -lt "$(lines "${f%min.case}case.case")" ] &&
			return 0
	done
	return 1
}
eventually 600 smaller
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
for f in "$WORK/out"/findings/*/min.case; do
	"$BUILD/tools/cases" print "$f" >/dev/null 2>&1 || echo "$f"
done >"$WORK/bad"
[ ! -s "$WORK/bad" ]
t_result $? 'what it left are cases'
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
