#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# timing.sh [PART...]: the part of make bench that is about timing; the method
# and the tables are in docs/timing.md.  All contestants of a part take turns.
#   skew     start times of a rendezvous, and how many a second
#   window   rounds and CPU time to the first hit of a window; window-one and
#            window-prot are its halves
#   offset   replaying the offset of a hit
#   overlap  calls that really overlap in the kernel (root)
#   migrate  the same for migrate_pages, in a guest with two nodes (QEMU, and
#            make guest-bench); BENCH_KERNEL is its kernel (debian:6.1)
#   draws    the same draws from other compilers, and for arm64
# All of it takes a quarter of an hour.  PART="skew window" is the same as the
# arguments, for make bench.
# BENCH_REPS is how many repetitions (20); BENCH_LIMIT_S how long one may look
# for its window (0.5).  BENCH_RT=1 runs it all with real-time priority: on
# a machine with other load that takes the CPUs from everybody else.

set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${MMR_BUILD:-build/release}
REPS=${BENCH_REPS:-20}
LIMIT=${BENCH_LIMIT_S:-0.5}
child=$BUILD/mmrace-child
# Calibration of its own: no history decides.
XDG_CACHE_HOME=$(mktemp -d) || exit 1
export XDG_CACHE_HOME
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
rc=0
# Words, on purpose.
[ $# -gt 0 ] || set -- ${PART:-skew window offset overlap migrate draws}

run() {
	if [ "${BENCH_RT:-0}" = 1 ]; then
		chrt -r 1 "$@" || rc=1
	else
		"$@" || rc=1
	fi
}

# window KIND
windows() {
	local actors

	for actors in 2 3 4; do
		run "$BUILD/bench/window" "$1" $actors 2 "$REPS" "$LIMIT"
	done
	run "$BUILD/bench/window" "$1" 2 1 "$REPS" 0.1
}

# In a guest; 125 is a guest that did not come up.
migrate() {
	if ! command -v qemu-system-x86_64 >/dev/null 2>&1; then
		echo 'overlap of migrate_pages: skipped, no qemu-system-x86_64'
		return
	fi
	if [ ! -x build/guest/bench/overlap ] ||
		[ ! -x "$BUILD/tools/guest_exec" ]; then
		echo 'overlap of migrate_pages: skipped, make guest-bench first'
		return
	fi
	echo "in a guest, ${BENCH_KERNEL:-debian:6.1}, host load" \
		"$(cut -d ' ' -f 1-3 /proc/loadavg)"
	MMR_GUEST_CPUS=${MMR_GUEST_CPUS:-2} run "$BUILD/tools/guest_exec" \
		"${BENCH_KERNEL:-debian:6.1}" '' build/guest/bench/overlap 500
}

for part; do
	case $part in
	skew) run "$BUILD/bench/skew" "$child" $((2 * REPS)) ;;
	window)
		windows one
		windows prot
		;;
	window-one) windows one ;;
	window-prot) windows prot ;;
	offset) run "$BUILD/bench/offset" "$child" "$REPS" ;;
	overlap) run "$BUILD/bench/overlap" "$child" "$REPS" 200 ;;
	migrate) migrate ;;
	draws) tests/cli/draws.t || rc=1 ;;
	*)
		echo "timing.sh: no part '$part'" >&2
		exit 2
		;;
	esac
done
exit $rc
