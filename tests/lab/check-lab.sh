#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check-lab.sh [NAME...]: does the chain from a seed to a reproducer work?
#   a b c d       a planted fault: TRIES times, for each of its profiles, a
#                 blind soak until found or LIMIT, then from the finding alone
#                 replay (a rate), min, export, and the exported program in a
#                 fresh guest with the fault and without
#   off           none of them: OFF_LIMIT of guest time over all profiles,
#                 where nothing may be found
#   debian:6.1 .. Debian's kernel of that series, STOCK_LIMIT of guest time,
#                 what is found is recorded
#   table         the table of what is there by now, and no run
# Default: a b c d off.  TAP on standard output; the tables go to
# build/lab/lab.md, all logs below build/lab/check/NAME-PROFILE-TRY.
#
# Each step (soak, replay, min, export) of a try that is done leaves a file and is not done again; remove
# the folder of a try to have it anew.  Several of these scripts may run at
# once: a try that another one is at is left to it.
#
# Environment: TRIES (3), LIMIT (20m), OFF_LIMIT and STOCK_LIMIT (minutes of
# guest time: 60, 30), JOBS (2) guests side by side, RUNS of replay (10),
# MIN_BUDGET (10m), EXPORT_SECONDS (60) of the exported program, CPUS of a
# guest (4), PROFILES ("own mixed": the fault's own, and mixed), STEPS (all),
# KERNEL (build/lab/bzImage-6.1).
. "$(dirname "$0")/../lib.sh"

TRIES=${TRIES:-3} LIMIT=${LIMIT:-20m} OFF_LIMIT=${OFF_LIMIT:-60}
STOCK_LIMIT=${STOCK_LIMIT:-30} JOBS=${JOBS:-2} RUNS=${RUNS:-10}
MIN_BUDGET=${MIN_BUDGET:-10m} CPUS=${CPUS:-4} PROFILES=${PROFILES:-own mixed}
STEPS=${STEPS:-soak replay min export}
LAB=$TOP/build/lab
PLANTED=${KERNEL:-$LAB/bzImage-6.1}
TABLE=$LAB/lab.md
EXPORT_ROUNDS=20000 EXPORT_SECONDS=${EXPORT_SECONDS:-60}
OFF=mmrace_bug=0
HEAD='| fault | profile | try | found after (s) | cases | rate (95 %) | statements before | after | runs of min | right verdict | right stack | exported C, exit with fault / without |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'

# What is planted, what profile is about it, what has to be found.  Limits: b
# 1 s without a page; d 2 s asleep in an exit and 1 s for each GiB mapped; b_ms
# and d_ms are far more than 5 times that: a loaded machine stands still for
# seconds, which count for no limit, and the stall has to be there still when it
# is looked at.  c: 1 s on a CPU times the scale factor of an emulated guest,
# 10; with the delay each process that shares the code of mmrace-child (17
# pages) adds 17 s.
#
# An exported program knows nothing of emulation and allows a round 2 s; here it
# gets the 8 s of `within`, where the stall lasts that long.  Its watchdog shares
# some hundred pages of code with what it watches, so that a shorter delay does
# for c.
fault() {
	kernel=$PLANTED on='' within=''
	case $1 in
	a) args="mmrace_bug=0x01" profile=hugetlb verdict=long-exit
		stack='synchronize_rcu|hugetlb_vmemmap_restore|wait_rcu_gp' ;;
	b) args="mmrace_bug=0x02 mmrace.b_ms=20000" profile=storm
		verdict=fault-storm within=8s
		stack='mmr_touch_write|handle_mm_fault|exc_page_fault' ;;
	c) args="mmrace_bug=0x04 mmrace.c_us=1000000" profile=migrate
		on="mmrace_bug=0x04 mmrace.c_us=200000" verdict=long-syscall within=8s
		stack='migrate_pages|remove_migration_pte' ;;
	d) args="mmrace_bug=0x08 mmrace.d_ms=15000" profile=mrelease
		verdict=long-exit stack='exit_mmap' within=8s ;;
	off) args=$OFF profile=mixed ;;
	debian:*) kernel=$1 args='' profile=mixed ;;
	*) return 1 ;;
	esac
	on=${on:-$args}
}

guest() {
	nice -n 5 "$MMRACE" "$@" --guest "$kernel" --guest-cpus "$CPUS" \
		--guest-args "$args"
}

json() {
	t_json_get "$1" "$2" || echo '?'
}

# A number with at most three digits that say something.
round() {
	awk -v n="$1" 'BEGIN { printf(n == "?" ? "?" : "%.3g", n) }'
}

# side_by_side COMMAND: what makes it use JOBS guests, where it can.
side_by_side() {
	"$MMRACE" "$1" --help | grep -q -- ' --jobs N' && echo "--jobs $JOBS"
}

# step NAME COMMAND...: runs it once; its files are there for good.
step() {
	local name=$1
	shift
	[[ " $STEPS " = *" $name "* && ! -e $dir/$name.done ]] || return 0
	"$@"
	echo "exit $?" >"$dir/$name.new"
	mv "$dir/$name.new" "$dir/$name.done"
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

# with_rounds CASE ROUNDS BUDGET [LINE]: the same with other rounds, and one
# more line of the head.  What fails rarely wants more of them than the few that
# a soak gives a case.
with_rounds() {
	sed -n '/^process/q;/^rounds/!p' "$1"
	echo "rounds  $2 budget=$3"
	[ -z "${4:-}" ] || echo "$4"
	sed -n '/^process/,$p' "$1"
}

soak() {
	date +%s >"$dir/began"
	guest soak --profile "$1" --until-found --time "$LIMIT" \
		--out "$dir/out" --json >"$dir/soak.json" 2>"$dir/soak.log"
}

replay() {
	# shellcheck disable=SC2046 # words
	guest replay "$found/case.case" --runs "$RUNS" --out "$dir/replay" \
		--quiet --json $(side_by_side replay) \
		>"$dir/replay.json" 2>"$dir/replay.log"
}

minimise() {
	local hits runs
	hits=$(json "$dir/replay.json" hits) runs=$(json "$dir/replay.json" runs)
	cp "$found/case.case" "$dir/min.in"
	if [ "$hits" != '?' ] && [ $((hits * 2)) -lt "$runs" ]; then
		with_rounds "$found/case.case" 100 10s >"$dir/min.in"
	fi
	# shellcheck disable=SC2046
	guest min "$dir/min.in" --budget "$MIN_BUDGET" -o "$dir/min.case" \
		--json $(side_by_side min) >"$dir/min.json" 2>"$dir/min.log"
}

# exported CASE: the exit codes of the program in a fresh guest each.
exported() {
	local words
	with_rounds "$1" $EXPORT_ROUNDS "${EXPORT_SECONDS}s" \
		"${within:+expect  progress within=$within}" >"$dir/export.case"
	"$MMRACE" export "$dir/export.case" --to c -o "$dir/repro.c" \
		>"$dir/export.log" 2>&1 &&
		$CC -O2 -s -static -pthread -o "$dir/repro" "$dir/repro.c" \
			>>"$dir/export.log" 2>&1 || return
	words=$(wants "$1" | tr '\n' ' ')
	MMR_GUEST_CPUS=$CPUS nice -n 5 "$BUILD/tools/guest_exec" "$kernel" \
		"$on $words" "$dir/repro" $((EXPORT_SECONDS + 30)) \
		>"$dir/on.log" 2>&1
	echo $? >"$dir/on.code"
	MMR_GUEST_CPUS=$CPUS nice -n 5 "$BUILD/tools/guest_exec" "$kernel" \
		"$OFF $words" "$dir/repro" $((EXPORT_SECONDS + 30)) \
		>"$dir/off.log" 2>&1
	echo $? >"$dir/off.code"
}

# Sets found to the folder of the try's finding, or to nothing.
find_found() {
	found=$(json "$dir/soak.json" findings.0.folder)
	[ "$found" = '?' ] && found=
	# The folder of the try may have moved since.
	[ -z "$found" ] || found=$dir/out/findings/${found##*/}
}

# All of a try of a fault, one step after the other.
follow() {
	step soak soak "$1"
	find_found
	[ -n "$found" ] || return 0
	step replay replay
	step min minimise
	[ -e "$dir/min.done" ] || return 0
	[ -s "$dir/min.case" ] && small=$dir/min.case || small=$found/case.case
	step export exported "$small"
}

# What came out of a try of a fault: a row of the table; sets ok_*.
row() {
	local name=$1 p=$2 n=$3 got good=no place lo hi hits runs rate other \
		at before after codes min_runs
	ok_found=0 ok_verdict=0 ok_stack=0 ok_small=0 ok_code=0
	find_found
	if [ -z "$found" ]; then
		echo "| $name | $p | $n | not in $(round "$(json "$dir/soak.json" seconds)") | $(json "$dir/soak.json" cases) | - | - | - | - | - | - | - |"
		return
	fi
	got=$(json "$found/verdict.json" verdict)
	[ "$got" = "$verdict" ] && good=yes
	place=$(right_stack "$found")
	at=$(date -d "$(json "$found/verdict.json" first_seen)" +%s)
	hits=$(json "$dir/replay.json" hits) runs=$(json "$dir/replay.json" runs)
	lo=$(round "$(json "$dir/replay.json" rate.lo95)")
	hi=$(round "$(json "$dir/replay.json" rate.hi95)")
	rate="$hits/$runs ($lo..$hi)"
	other=$(json "$dir/replay.json" other_hits)
	[ "$other" = 0 ] || rate="$rate, and $other with another signature"
	other=$(json "$dir/replay.json" void_runs)
	[ "$other" = 0 ] || rate="$rate, $other void"
	before=$(json "$dir/min.json" statements_before)
	after=$(json "$dir/min.json" statements_after)
	min_runs=$(json "$dir/min.json" runs)
	[ "$(json "$dir/min.json" reproduced)" = true ] || after='no hit'
	codes="$(cat "$dir/on.code" 2>/dev/null || echo '?') / $(cat "$dir/off.code" 2>/dev/null || echo '?')"
	echo "| $name | $p | $n | $((at - $(cat "$dir/began"))) | $(json "$dir/soak.json" cases) | $rate | $before | $after | $min_runs | $good ($got) | $place | $codes |"
	ok_found=1
	[ $good = yes ] && ok_verdict=1
	[ "$place" = yes ] && ok_stack=1
	[ "$after" -le 8 ] 2>/dev/null && ok_small=1
	[ "$codes" = '1 / 0' ] && ok_code=1
	return 0
}

# sum NAME PROFILE: how many of the tries came out right, as TAP too: two of
# three with the right stack, small, and exported, and no wrong verdict.
sum() {
	local name=$1 p=$2 n tried=0 f=0 v=0 s=0 m=0 c=0
	fault "$name"
	for dir in "$LAB/check/$name-$p-"*/; do
		dir=${dir%/}
		n=${dir##*-}
		[ -e "$dir/soak.done" ] || continue
		row "$name" "$p" "$n" >>"$TABLE.rows"
		tried=$((tried + 1)) f=$((f + ok_found)) v=$((v + ok_verdict))
		s=$((s + ok_stack)) m=$((m + ok_small)) c=$((c + ok_code))
	done
	[ $tried -gt 0 ] || return
	echo "| $name | $p | $tried | $f | $v | $s | $m | $c |" >>"$TABLE.sums"
	[ $((s * 3)) -ge $((tried * 2)) ] && [ $v = $f ] &&
		[ $((m * 3)) -ge $((tried * 2)) ] &&
		[ $((c * 3)) -ge $((tried * 2)) ]
	t_result $? "fault $name, profile $p: found in $f of $tried tries, right verdict $v, right stack $s, at most 8 statements $m, exported 1 / 0 $c"
}

# What should find nothing: guest time and findings, over all profiles.
quiet_sum() {
	local name=$1 s j cases findings=0 total=0 all=0 file
	for dir in "$LAB/check/$name-"*/; do
		dir=${dir%/}
		file=$dir/soak.json
		[ -e "$dir/soak.done" ] || continue
		s=$(json "$file" seconds) cases=$(json "$file" cases)
		j=$(json "$file" jobs)
		[ "$s" != '?' ] || continue
		total=$(awk -v t="$total" -v s="$s" -v j="$j" \
			'BEGIN { printf("%.0f", t + s * j) }')
		all=$((all + cases))
		findings=$((findings + $(find "$dir/out/findings" -name \
			verdict.json 2>/dev/null | wc -l)))
		echo "| $name | $(json "$file" profile) | $(round "$s") s of $j guests | $cases | $(json "$file" rounds) | $(find "$dir/out/findings" -mindepth 1 -maxdepth 1 -printf '%f ' 2>/dev/null) |" \
			>>"$TABLE.quiet"
	done
	[ $all -gt 0 ] || return
	[ $findings = 0 ]
	t_result $? "$name: $findings findings in $total s of guest time, $all cases"
}

table() {
	local name p
	rm -f "$TABLE".*
	for name in a b c d; do
		for p in $(tried "$name"); do sum "$name" "$p"; done
	done
	quiet_sum off
	find "$LAB/check" -mindepth 1 -maxdepth 1 -name 'debian:*' \
		-printf '%f\n' | sed 's/-.*//' | sort -u >"$TABLE.stock"
	while read -r name; do quiet_sum "$name"; done <"$TABLE.stock"
	{
		echo "Date $(date -u +%Y-%m-%d), mmrace $("$MMRACE" --version | sed 's/^mmrace //'),"
		echo "$(qemu-system-x86_64 --version | head -1), kernel $(basename "$PLANTED"), guest of $CPUS CPUs,"
		echo "2 GiB, 2 nodes; limit $LIMIT; replay of $RUNS runs, min of $MIN_BUDGET."
		echo
		if [ -e "$TABLE.rows" ]; then
			echo "$HEAD"
			cat "$TABLE.rows"
			printf '\n%s\n%s\n' \
				'| fault | profile | tries | found | right verdict | right stack | at most 8 statements | exported 1 / 0 |' \
				'| --- | --- | --- | --- | --- | --- | --- | --- |'
			cat "$TABLE.sums"
		fi
		if [ -e "$TABLE.quiet" ]; then
			printf '\n%s\n%s\n' \
				'| kernel | profile | time | cases | rounds | findings |' \
				'| --- | --- | --- | --- | --- | --- |'
			cat "$TABLE.quiet"
		fi
	} >"$TABLE"
	rm -f "$TABLE".*
}

# The profiles that a fault has tries with.
tried() {
	find "$LAB/check" -mindepth 1 -maxdepth 1 -name "$1-*" -printf '%f\n' |
		sed "s/^$1-//; s/-[0-9]*\$//" | sort -u
}

# hold COMMAND...: the try in $dir is ours while it runs; not when another
# script is at it.
hold() {
	mkdir -p "$dir"
	(
		flock -n 9 || exit
		"$@"
	) 9>"$dir/lock"
}

# quiet PROFILE SECONDS: a soak that should find nothing but what kernels are
# known to do wrong.
quiet() {
	guest soak --profile "$1" --time "$2" --jobs "$JOBS" --out "$dir/out" \
		--known corpus/open/known --json >"$dir/soak.json" 2>"$dir/soak.log"
}

one() {
	local p n all
	case $1 in
	off)
		all=$("$MMRACE" gen --help | sed -n '/^profiles:/,/^$/s/^  \([a-z]*\) .*/\1/p')
		# shellcheck disable=SC2086
		n=$((OFF_LIMIT * 60 / JOBS / $(echo $all | wc -w)))
		for p in $all; do
			dir=$LAB/check/off-$p-1
			hold step soak quiet "$p" $n
		done
		;;
	debian:*)
		dir=$LAB/check/$1-mixed-1
		hold step soak quiet mixed $((STOCK_LIMIT * 60 / JOBS))
		;;
	*)
		for p in $PROFILES; do
			[ "$p" = own ] && p=$profile
			for ((n = 1; n <= TRIES; n++)); do
				dir=$LAB/check/$1-$p-$n
				hold follow "$p"
			done
		done
		;;
	esac
}

[ -e "$PLANTED" ] || {
	echo "1..0 # SKIP no ${PLANTED#"$TOP"/}: tests/lab/build-kernel.sh makes it"
	exit 0
}
mkdir -p "$LAB/check"
[ $# -gt 0 ] || set -- a b c d off
for f; do
	[ "$f" = table ] && continue
	fault "$f" || {
		echo "Bail out! no fault $f"
		exit 2
	}
	one "$f"
done
table
sed 's/^/# /' "$TABLE"
t_done
