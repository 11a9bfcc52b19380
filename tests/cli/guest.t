#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Throw-away guests, in about a minute: a canary is found in one, a kernel
# that does not exist is a sentence, and no QEMU outlives its runner.  Needs
# QEMU, `make guest`, and a kernel: that of the lab, or an installed one.

. "$(dirname "$0")/../lib.sh"
t_need_tool
# A killed runner leaves its folder; here it goes with ours.
export TMPDIR=$WORK

kernel=
for k in build/lab/bzImage-* /boot/vmlinuz-* \
	"${XDG_CACHE_HOME:-/var/cache}"/mmrace/vmlinuz-*amd64; do
	[ -r "$k" ] && kernel=$k && break
done
why=
command -v qemu-system-x86_64 >/dev/null 2>&1 ||
	why='no qemu-system-x86_64 (apt-get install qemu-system-x86)'
[ -n "$kernel" ] || why='no kernel: make lab, or install linux-image-amd64'
[ -x "$(dirname "$MMRACE")/guest-x86_64/mmrace" ] ||
	why='no static programs for guests: make guest'

t_run "$MMRACE" replay --guest /nowhere/bzImage tests/canary/futex.case
t_rc 'a kernel that is not there: exit 2' 2
t_match 'and a sentence' "$ERR" 'cannot read the kernel'
t_run "$MMRACE" replay --guest x --guest-mem 7 tests/canary/futex.case
t_rc '--guest-mem 7: exit 2' 2

if [ -n "$why" ]; then
	t_skip 'a canary in a guest' "$why"
	t_done
	exit
fi

qemus() { pgrep -P "$1" -f qemu-system; }

t_run "$MMRACE" replay --quiet --json --guest "$kernel" --out "$WORK/out" \
	tests/canary/futex.case
t_rc 'the futex canary in a guest: exit 1' 1
[ "$(t_json_get "$OUT" verdict)" = hang ]
t_result $? 'its verdict is hang'
set -- "$WORK"/out/findings/hang-*/
t_result $([ -s "$1/evidence.json" ] && echo 0 || echo 1) 'its evidence came out'

"$MMRACE" replay --quiet --guest "$kernel" --out "$WORK/out" --time 60s \
	--runs 1000 tests/canary/slow.case >/dev/null 2>&1 &
runner=$!
for _ in $(seq 600); do
	qemu=$(qemus $runner) && [ -n "$qemu" ] && break
	sleep 0.1
done
[ -n "$qemu" ]
t_result $? 'a runner has its QEMU'
kill -9 $runner
wait $runner 2>/dev/null
for _ in $(seq 50); do
	kill -0 "${qemu%%[!0-9]*}" 2>/dev/null || break
	sleep 0.1
done
! kill -0 "${qemu%%[!0-9]*}" 2>/dev/null
t_result $? 'kill -9 of the runner: no QEMU is left'
t_done
