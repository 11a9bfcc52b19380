#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run.sh SET...: runs tests, keeps their output in BUILD/logs, and ends with
# one line "N passed, N failed, N skipped".  Exit 1 when anything failed.
#   all    unit, style and cli (what needs root skips itself without)
#   unit   cmocka programs    style  rules on the sources
#   cli    command line       root   what needs root
#   report the HTML page
#   san    what a sanitizer build runs       long   what takes minutes
#
# A test speaks TAP.  One that ends without its plan, with fewer results than
# its plan says, or with an exit code that its results do not explain, counts
# as one failure more: a test that died half way has not passed.

set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${MMR_BUILD:-build/release}
LOGS=$BUILD/logs
mkdir -p "$LOGS"
# What tests learn of this machine stays out of the user's calibration.
XDG_CACHE_HOME=$PWD/$BUILD/cache
export XDG_CACHE_HOME
passed=0 failed=0 skipped=0

# Results of one log: "passed failed skipped planned".
count_tap() {
	awk '
	/^1\.\.[0-9]+/ { split($1, p, "[.][.]"); planned += p[2]; seen = 1 }
	/^(not )?ok / {
		if ($0 ~ /# [Ss][Kk][Ii][Pp]/) skip++
		else if (/^ok /) ok++
		else bad++
	}
	END { print ok + 0, bad + 0, skip + 0, seen ? planned : -1 }
	' "$1"
}

# run_one NAME LIMIT_S COMMAND...
run_one() {
	local name=$1 limit=$2 log rc start ok bad skip planned
	shift 2
	log=$LOGS/${name//\//-}.log
	start=$(date +%s%N)
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	read -r ok bad skip planned < <(count_tap "$log")
	if [ $rc = 124 ] || [ $rc = 137 ]; then
		echo "not ok - $name: not over after $limit s" >>"$log"
		bad=$((bad + 1))
	elif [ "$planned" != $((ok + bad + skip)) ]; then
		echo "not ok - $name: plan $planned, exit $rc" >>"$log"
		bad=$((bad + 1))
	elif [ $rc != 0 ] && [ "$bad" = 0 ]; then
		echo "not ok - $name: exit $rc" >>"$log"
		bad=$((bad + 1))
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
	skipped=$((skipped + skip))
	printf '%-4s %-28s %3d passed %2d failed %2d skipped %6d ms\n' \
		"$([ "$bad" = 0 ] && echo ok || echo FAIL)" "$name" "$ok" \
		"$bad" "$skip" $((($(date +%s%N) - start) / 1000000))
	if [ "$bad" != 0 ]; then
		grep -E -A 12 '^not ok' "$log" | grep -v '^ok' |
			grep -v '# SKIP' | head -n 60 | sed 's/^/     /'
		echo "     all of it: $log"
	fi
	grep -E '^(not )?ok .*# SKIP' "$log" |
		sed -E -e 's/^(not )?ok [0-9]+ (- )?/     skip: /'
}

run_units() {
	local bin
	for bin in tests/unit/*.c; do
		[ -e "$bin" ] || continue
		bin=$(basename "$bin" .c)
		CMOCKA_MESSAGE_OUTPUT=TAP run_one "unit/$bin" 300 \
			"$BUILD/unit/$bin"
	done
}

run_scripts() {
	local limit=$1 t
	shift
	for t in "$@"; do
		[ -e "$t" ] && run_one "$(echo "$t" |
			sed 's,^tests/,,; s,[.]t$,,')" "$limit" bash "$t"
	done
}

# The profile hugetlb can make some kernels lose count of reserved huge pages
# (corpus/open/known): what compares that count comes before it.
last=tests/cli/profiles.t
before_last() { printf '%s\n' "$@" | grep -vxF $last; }

for set in "${@:-all}"; do
	case $set in
	all)
		run_units
		# shellcheck disable=SC2046 # one word each
		run_scripts 300 tests/*.t $(before_last tests/cli/*.t)
		run_scripts 900 tests/export/*.t
		run_scripts 300 $last
		;;
	unit) run_units ;;
	style) run_scripts 300 tests/*.t ;;
	cli)
		# shellcheck disable=SC2046 # one word each
		run_scripts 1200 $(before_last tests/cli/*.t) \
			tests/export/*.t $last
		;;
	root) run_scripts 300 tests/cli/root-*.t ;;
	report) run_scripts 300 tests/cli/report.t ;;
	san)
		run_units
		run_scripts 600 tests/cli/{bad-input,gen,canaries,soak}.t
		;;
	long) run_scripts 6000 tests/long/*.t ;;
	*)
		echo "run.sh: unknown set '$set'" >&2
		exit 2
		;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ $((passed + skipped)) != 0 ]
