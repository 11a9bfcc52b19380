#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# timing.sh [PART...]: the part of make bench that is about timing; the method
# and the tables are in docs/timing.md.  All contestants of a part take turns.
#   skew     start times of a rendezvous, and how many a second
#   window   rounds and CPU time to the first hit of a window
#   offset   replaying the offset of a hit
#   overlap  calls that really overlap in the kernel (root)
#   draws    the same draws from other compilers, and for arm64
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
[ $# -gt 0 ] || set -- skew window offset overlap draws

run() {
	if [ "${BENCH_RT:-0}" = 1 ]; then
		chrt -r 1 "$@" || rc=1
	else
		"$@" || rc=1
	fi
}

for part; do
	case $part in
	skew) run "$BUILD/bench/skew" "$child" $((2 * REPS)) ;;
	window)
		for kind in one prot; do
			for actors in 2 3 4; do
				run "$BUILD/bench/window" $kind $actors 2 \
					"$REPS" "$LIMIT"
			done
		done
		run "$BUILD/bench/window" one 2 1 "$REPS" 0.1
		run "$BUILD/bench/window" prot 2 1 "$REPS" 0.1
		;;
	offset) run "$BUILD/bench/offset" "$child" "$REPS" ;;
	overlap) run "$BUILD/bench/overlap" "$child" "$REPS" 200 ;;
	draws) tests/cli/draws.t || rc=1 ;;
	*)
		echo "timing.sh: no part '$part'" >&2
		exit 2
		;;
	esac
done
exit $rc
