#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check-lab.sh [FAULT...]: does the chain from a seed to a reproducer work?
# For each planted fault (a b c d; off: none of them) and each of the two
# profiles, TRIES times: a blind soak until found or LIMIT, then from the
# finding alone replay (a rate), min, export, and the exported program in a
# fresh guest with the fault and without.  TAP on standard output; the table
# goes to build/lab/lab.md, all logs below build/lab/check.
#
# Environment: TRIES (1), LIMIT (20m), OFF_LIMIT (LIMIT), RUNS of replay (20),
# MIN_BUDGET (10m), EXPORT_SECONDS (60) of the exported program, CPUS of the
# guest (4), PROFILES (what to use in place of the fault's own and mixed),
# KERNEL (build/lab/bzImage-6.1).
. "$(dirname "$0")/../lib.sh"

TRIES=${TRIES:-1} LIMIT=${LIMIT:-20m} OFF_LIMIT=${OFF_LIMIT:-${LIMIT:-20m}}
RUNS=${RUNS:-20} MIN_BUDGET=${MIN_BUDGET:-10m} CPUS=${CPUS:-4}
PROFILES=${PROFILES:-}
KERNEL=${KERNEL:-$TOP/build/lab/bzImage-6.1}
LAB=$TOP/build/lab
TABLE=$LAB/lab.md
EXPORT_ROUNDS=20000 EXPORT_SECONDS=${EXPORT_SECONDS:-60}
OFF=mmrace_bug=0

# What is planted, what profile is about it, what has to be found.  b_ms and
# d_ms are at least 5 times the limit that they have to pass: 1 s without a
# page, 2 s and a bit for an exit.
fault() {
	case $1 in
	a) args="mmrace_bug=0x01" profile=hugetlb verdict=long-exit
		stack='synchronize_rcu|hugetlb_vmemmap_restore|wait_rcu_gp' ;;
	b) args="mmrace_bug=0x02 mmrace.b_ms=6000" profile=storm
		verdict=fault-storm
		stack='mmr_touch_write|handle_mm_fault|exc_page_fault' ;;
	c) args="mmrace_bug=0x04 mmrace.c_us=50000" profile=migrate
		verdict=long-syscall
		stack='migrate_pages|remove_migration_pte' ;;
	d) args="mmrace_bug=0x08 mmrace.d_ms=12000" profile=mrelease
		verdict=long-exit stack='exit_mmap' ;;
	off) args=$OFF profile=storm verdict=none stack=none ;;
	*) return 1 ;;
	esac
}

guest() {
	nice -n 5 "$MMRACE" "$@" --guest "$KERNEL" --guest-cpus "$CPUS"
}

json() {
	t_json_get "$1" "$2" || echo '?'
}

# A number with at most two digits behind the point.
round() {
	awk -v n="$1" 'BEGIN { printf(n == "?" ? "?" : "%.3g", n) }'
}

row() {
	echo "$*" >>"$TABLE"
	echo "# $*"
}

# The stack of the culprit: asleep it is in stacks.txt (kernel, user), on a
# CPU it is what perf sampled.  Prints yes, no, or that it is there, but as
# that of another thread.
right_stack() {
	if {
		awk 'BEGIN { RS = ""; FS = "\n" } $1 ~ /culprit/ || $2 ~ /culprit/' \
			"$1/stacks.txt"
		json "$1/evidence.json" perf.cpu_profile
		json "$1/evidence.json" perf.chains
	} 2>/dev/null | grep -Eq "$stack"; then
		echo yes
	elif grep -Eq "$stack" "$1/stacks.txt"; then
		echo 'another thread'
	else
		echo no
	fi
}

# The settings and pools that an exported program wants of its machine, as
# words of the kernel command line.
wants() {
	sed -n 's/^set  *//p' "$1" | tr ' ' '\n' | sed 's/^/sysctl.vm./'
	sed -n 's/^needs .*hugepages>=\([0-9]*\).*/hugepages=\1/p' "$1"
}

# with_rounds CASE ROUNDS BUDGET: the same with other rounds.  What fails
# rarely wants more of them than the few that a soak gives a case.
with_rounds() {
	sed -n '/^process/q;/^rounds/!p' "$1"
	echo "rounds $2 budget=$3"
	sed -n '/^process/,$p' "$1"
}

# exported DIR CASE: "ON / OFF", exit codes in a fresh guest each.
exported() {
	local words on off
	with_rounds "$2" $EXPORT_ROUNDS "${EXPORT_SECONDS}s" >"$1/export.case"
	if ! "$MMRACE" export "$1/export.case" --to c -o "$1/repro.c" \
		>"$1/export.log" 2>&1 ||
		! $CC -O2 -s -static -pthread -o "$1/repro" "$1/repro.c" \
			>>"$1/export.log" 2>&1; then
		echo 'no program'
		return
	fi
	words=$(wants "$2" | tr '\n' ' ')
	MMR_GUEST_CPUS=$CPUS nice -n 5 "$BUILD/tools/guest_exec" "$KERNEL" \
		"$args $words" "$1/repro" $((EXPORT_SECONDS + 30)) >"$1/on.log" 2>&1
	on=$?
	MMR_GUEST_CPUS=$CPUS nice -n 5 "$BUILD/tools/guest_exec" "$KERNEL" \
		"$OFF $words" "$1/repro" $((EXPORT_SECONDS + 30)) >"$1/off.log" 2>&1
	off=$?
	echo "$on / $off"
}

# A finding by its folder: all that can be made of it, as a row of the table.
follow_up() {
	local dir=$1 found=$2 head=$3 got rate lo hi runs hits before after \
		small=$1/min.case good_verdict=no good_stack codes \
		other
	got=$(json "$found/verdict.json" verdict)
	[ "$got" = "$verdict" ] && good_verdict=yes
	good_stack=$(right_stack "$found")
	guest replay "$found/case.case" --guest-args "$args" --runs "$RUNS" \
		--out "$dir/replay" --quiet --json \
		>"$dir/replay.json" 2>"$dir/replay.log"
	hits=$(json "$dir/replay.json" hits)
	runs=$(json "$dir/replay.json" runs)
	lo=$(round "$(json "$dir/replay.json" rate.lo95)")
	hi=$(round "$(json "$dir/replay.json" rate.hi95)")
	rate="$hits/$runs ($lo..$hi)"
	other=$(json "$dir/replay.json" other_hits)
	[ "$other" = 0 ] || rate="$rate, and $other with another signature"
	cp "$found/case.case" "$dir/min.in"
	if [ "$hits" != '?' ] && [ $((hits * 2)) -lt "$runs" ]; then
		with_rounds "$found/case.case" 100 10s >"$dir/min.in"
	fi
	guest min "$dir/min.in" --guest-args "$args" \
		--budget "$MIN_BUDGET" -o "$small" --json \
		>"$dir/min.json" 2>"$dir/min.log"
	before=$(json "$dir/min.json" statements_before)
	after=$(json "$dir/min.json" statements_after)
	[ "$(json "$dir/min.json" reproduced)" = true ] || after='min: no hit'
	[ -s "$small" ] || cp "$found/case.case" "$small"
	codes=$(exported "$dir" "$small")
	row "$head | $rate | $before | $after | $good_verdict ($got) |" \
		"$good_stack | $codes |"
	[ "$good_verdict" = yes ]
	t_result $? "$name: the verdict is $verdict"
	[ "$good_stack" = yes ]
	t_result $? "$name: the stack names the place"
	[ "$hits" != '?' ] && [ "$hits" -gt 0 ]
	t_result $? "$name: replay reproduces it"
	[ "$after" -le 8 ] 2>/dev/null
	t_result $? "$name: minimised to at most 8 statements ($after)"
	case $codes in
	'1 / 0') t_result 0 "$name: the exported program shows it, and only with the fault" ;;
	*) t_result 1 "$name: the exported program shows it, and only with the fault ($codes)" ;;
	esac
}

# One soak: try FAULT PROFILE NUMBER.
try() {
	local dir=$LAB/check/$1-$2-$3 limit=$LIMIT seconds cases found at \
		start
	name="fault $1, profile $2, try $3"
	[ "$1" = off ] && limit=$OFF_LIMIT
	rm -rf "$dir"
	mkdir -p "$dir"
	start=$(date +%s)
	guest soak --guest-args "$args" --profile "$2" --until-found \
		--time "$limit" --out "$dir/out" --json \
		>"$dir/soak.json" 2>"$dir/soak.log"
	seconds=$(round "$(json "$dir/soak.json" seconds)")
	cases=$(json "$dir/soak.json" cases)
	found=$(json "$dir/soak.json" findings.0.folder)
	if [ "$1" = off ]; then
		[ "$found" = '?' ] && [ "$cases" != '?' ]
		t_result $? "$name: nothing found in $seconds s, $cases cases"
		[ "$found" = '?' ] && found=nothing ||
			found=$(json "$found/verdict.json" verdict)
		row "| off | $2 | - | $cases in $seconds s | - | - | - |" \
			"$found | - | - |"
		return
	fi
	[ "$found" != '?' ]
	t_result $? "$name: found blind ($seconds s, $cases cases)"
	if [ "$found" = '?' ]; then
		row "| $1 | $2 | not in $limit | $cases | - | - | - | - | - |" \
			"- |"
		return
	fi
	# From the start of the command, its boot included, without the runs
	# that follow for the rate.
	at=$(date -d "$(json "$found/verdict.json" first_seen)" +%s)
	follow_up "$dir" "$found" "| $1 | $2 | $((at - start)) | $cases"
}

[ -e "$KERNEL" ] || {
	echo "1..0 # SKIP no ${KERNEL#"$TOP"/}: tests/lab/build-kernel.sh makes it"
	exit 0
}
mkdir -p "$LAB/check"
{
	echo "Date $(date -u +%Y-%m-%d), mmrace $("$MMRACE" --version | sed 's/^mmrace //'),"
	echo "$(qemu-system-x86_64 --version | head -1), kernel $(basename "$KERNEL"), guest of $CPUS CPUs,"
	echo "2 GiB, 2 nodes; limit $LIMIT; replay of $RUNS runs, min of $MIN_BUDGET."
	echo
	echo '| fault | profile | found after (s) | cases | rate (95 %) | statements before | after | right verdict | right stack | exported C, exit with fault / without |'
	echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
} >"$TABLE"
[ $# -gt 0 ] || set -- a b c d off
for f; do
	fault "$f" || {
		echo "Bail out! no fault $f"
		exit 2
	}
	for p in ${PROFILES:-$profile mixed}; do
		for ((n = 1; n <= TRIES; n++)); do
			try "$f" "$p" "$n"
		done
	done
done
t_done
