#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make bench: what the tool itself costs, on this machine, now.  Each line
# names its target; a machine with other load gives other numbers, so every
# comparison is of runs in turn.  BENCH_PAIRS sets how many.  Timing, by far
# the longest part, has a script and variables of its own: timing.sh.
# BENCH_SIM sets how often the simulated minimisation is repeated (100).
# PART="s1 monitor" makes these parts alone: s1, monitor, cases, min, and those
# of timing.sh.

set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${MMR_BUILD:-build/release}
PAIRS=${BENCH_PAIRS:-30}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
rc=0

seed=corpus/seeds/s1-base.case

# True when part $1 is to be made.
part() {
	case " ${PART:-$1} " in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

echo "kernel $(uname -r), $(nproc) CPUs, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
if part s1 && [ -x "$BUILD/bench/s1" ]; then
	"$BUILD/bench/s1" "$BUILD/mmrace-child" "$BUILD/bench/s1_hand" || rc=1
fi
if part monitor; then
	"$BUILD/bench/monitor" "$seed" tests/bench/meet.case \
		"$BUILD/mmrace-child" "$PAIRS" || rc=1
fi

if part cases; then
	"$BUILD/mmrace" soak --time 10 --jobs 1 --seed 1 --quiet --json \
		--out "$work/out" >"$work/soak.json" || rc=1
	if [ -x "$BUILD/tools/json" ]; then
		cases=$("$BUILD/tools/json" "$work/soak.json" cases)
		echo "cases: $((cases / 10)) a second, one job (target >=" \
			"200 short ones a core)"
	fi
fi
# The rest of the parts are its own.
if [ -z "${PART:-}" ]; then
	tests/bench/timing.sh || rc=1
else
	for p in $PART; do
		case $p in
		s1 | monitor | cases | min) ;;
		*) tests/bench/timing.sh "$p" || rc=1 ;;
		esac
	done
fi

# The minimiser against a simulated failure (docs/minimise.md).
if part min; then
	echo
	"$BUILD/bench/min_sim" "${BENCH_SIM:-100}" "${BENCH_SIM_SEED:-1}" || rc=1
fi
exit $rc
