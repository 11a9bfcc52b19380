#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An hour of soak with two jobs (MMR_SOAK_TIME: other seconds) while the load of
# the machine changes: nothing, compilers, another program that takes and gives
# back memory in a group that is always full, both, and nothing again.
#
# Red when: something is found on a healthy kernel, the engine grows by more
# than 2 MiB after the first sixth or beyond 64 MiB, a case costs 10 % more or
# less CPU time in the last idle phase than in the first, the end is late by
# more than a second, or a child, group, segment, mount or huge page is left
# (the last but where the kernel loses its count of them: corpus/open).
# The samples stay in the file MMR_SOAK_LOG, when that is set.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../state.sh"
t_need_tool
T=${MMR_SOAK_TIME:-3600}
SAMPLES=${MMR_SOAK_LOG:-$WORK/samples}
EVERY=$((T / 360 > 0 ? T / 360 : 1))
# Phases: what goes on besides, from which 24th of the time on.
PHASES='idle:0 compile:4 memory:9 both:14 compile:17 idle:20'

compile() {
	while :; do
		for f in ops/*.c triage/*.c fuzz/*.c; do
			$CC -std=gnu17 -D_GNU_SOURCE -O2 -I"$BUILD" -c -o /dev/null \
				"$f" 2>/dev/null
		done
	done
}

# A group of the first version that is ours alone, or nothing.
group() {
	local own
	own=$(sed -n "s/^[0-9]*:\([a-z_,]*,\)\?$1\(,[a-z_,]*\)\?://p" \
		/proc/self/cgroup)
	own=/sys/fs/cgroup/$1${own%/}/mmr-test-$$
	mkdir "$own" 2>/dev/null && echo "$own"
}

# Takes 2 GiB, touches it, gives it back, and writes files besides: in its group
# that makes the kernel reclaim all the time.  When memory is short for all, it
# is the first to go.
hog() {
	[ -n "$memory" ] && echo $BASHPID >"$memory/cgroup.procs"
	echo 1000 >/proc/self/oom_score_adj
	while :; do
		perl -e 'push @a, "x" x (16 << 20) for 1 .. 64; sleep 2'
		dd if=/dev/zero of="$WORK/cache" bs=1M count=1024 2>/dev/null
	done
}

# tree PID: it and all that it started.
tree() {
	local p
	echo "$1"
	for p in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
		tree "$p"
	done
}

loads=
stop_loads() {
	local pid
	for pid in $loads; do
		# shellcheck disable=SC2046 # one word each
		kill -9 $(tree "$pid") 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	loads=
}

phase() {
	stop_loads
	case $1 in
	compile | both)
		compile &
		loads="$loads $!"
		compile &
		loads="$loads $!"
		;;
	esac
	case $1 in
	memory | both)
		hog &
		loads="$loads $!"
		;;
	esac
}

# CPU time of the engine and all that it started, in ms.
cpu_ms() {
	if [ -n "$cpu" ]; then
		awk '{ print int($1 / 1e6) }' "$cpu/cpuacct.usage"
	else
		sed 's/.*) //' "/proc/$pid/stat" |
			awk -v hz="$(getconf CLK_TCK)" \
				'{ print int(($12 + $13 + $14 + $15) * 1000 / hz) }'
	fi
}
cases() {
	awk '/^mmrace_cases_total/ && !/skipped/ { n += $2 }
		END { print n + 0 }' "$WORK/metrics"
}
sample() {
	echo "$1 $2 $(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status") \
$(cases) $(cpu_ms) $(cut -d ' ' -f 1 /proc/loadavg)"
}

memory=$(group memory) cpu=$(group cpuacct)
[ -n "$memory" ] && echo 1200M >"$memory/memory.limit_in_bytes"
[ -n "$cpu" ] || t_note 'no group for CPU time: of the engine and its children'
pid=
finish() {
	stop_loads
	[ -n "$pid" ] && kill -9 "$pid" 2>/dev/null
	# What was killed takes a moment to go.
	[ -n "$memory" ] && eventually 10 rmdir "$memory" 2>/dev/null
	[ -n "$cpu" ] && eventually 10 rmdir "$cpu" 2>/dev/null
	rm -rf "$WORK"
}
trap finish EXIT
machine_state >"$WORK/before"
dead_groups >"$WORK/before.dead"
: >"$WORK/metrics"
start=$(date +%s%N)
(
	[ -n "$cpu" ] && echo $BASHPID >"$cpu/cgroup.procs"
	exec "$MMRACE" soak --time "$T" --jobs 2 --seed "${MMR_SEED:-1}" \
		--known corpus/open/known --quiet --json \
		--metrics "$WORK/metrics" --out "$WORK/out"
) >"$OUT" 2>"$ERR" &
pid=$!
echo '# s phase VmRSS_kB cases cpu_ms load' >"$SAMPLES"
now=none
while kill -0 $pid 2>/dev/null; do
	s=$((($(date +%s%N) - start) / 1000000000))
	for p in $PHASES; do
		[ $s -ge $((T * ${p#*:} / 24)) ] && want=${p#*:}
	done
	if [ "$want" != "$now" ]; then
		now=$want
		for p in $PHASES; do
			[ "${p#*:}" = "$now" ] && name=${p%:*} && phase "$name"
		done
	fi
	sample $s "$name" >>"$SAMPLES" 2>/dev/null
	for _ in $(seq $((EVERY * 10))); do
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
done
took=$((($(date +%s%N) - start) / 1000000))
wait $pid
RC=$?
RAN="$MMRACE soak"
child=$BUILD/mmrace-child
stop_loads
t_rc 'no finding' 0
# The loop above looks ten times a second.
[ $took -ge $((T * 1000)) ] && [ $took -le $((T * 1000 + 1100)) ]
t_result $? "over within a second of its time ($took ms)"
at() { awk -v t="$1" 'NF == 6 && $1 <= t { v = $3 } END { print v + 0 }' \
	"$SAMPLES"; }
early=$(at $((T / 6))) late=$(at "$T")
[ "$early" -gt 0 ] && [ "$late" -le $((64 * 1024)) ]
t_result $? "the engine holds at most 64 MiB ($late kB)"
[ $((late - early)) -le 2048 ] && [ $((early - late)) -le 2048 ]
t_result $? "and within 2 MiB of a sixth of the time ($early kB)"
# rate FROM TO: cases for each second of CPU, between two times.
rate() {
	awk -v from="$1" -v to="$2" 'NF == 6 && $1 >= from && $1 <= to {
		if (!n++) { c = $4; u = $5 }
		dc = $4 - c; du = $5 - u
	} END { printf "%.3f\n", du ? dc * 1000 / du : 0 }' "$SAMPLES"
}
for p in $PHASES; do
	set -- ${PHASES#*"$p"} end:24
	t_note "${p%:*}: $(rate $((T * ${p#*:} / 24)) \
		$((T * ${1#*:} / 24))) cases for each second of CPU"
done
first=$(rate 0 $((T * 4 / 24))) last=$(rate $((T * 20 / 24)) "$T")
awk -v a="$first" -v b="$last" \
	'BEGIN { exit !(a > 0 && b >= 0.9 * a && b <= 1.1 * a) }'
t_result $? "cases for each second of CPU: $first idle at first, $last at last"
eventually 10 none_running "$child"
t_result $? 'no child is left'
[ -z "$(new_dead "$WORK/before.dead")" ] &&
	[ -z "$(find /sys/fs/cgroup -type d -name "mmrace-$pid" 2>/dev/null)" ]
t_result $? 'no group is left'
new_dead "$WORK/before.dead" >"$WORK/left"
t_note 'left:' "$WORK/left"
# Others may use huge pages and the like for a while.
eventually 60 as_before "$WORK/before"
t_result $? 'settings, pools, mounts and segments are as before'
counts_lost "$WORK/before" &&
	t_note "the counts of huge pages were left out: $POOL_BROKEN"
machine_state | counted "$WORK/before" |
	diff <(counted "$WORK/before" <"$WORK/before") - >"$WORK/diff"
t_note 'differs:' "$WORK/diff"
cut -c 1-1500 "$OUT" >"$WORK/report"
t_note 'report:' "$WORK/report"
t_note 'said:' "$ERR"
find "$WORK/out/findings" -name report.md -exec cat {} + >"$WORK/reports" \
	2>/dev/null
[ -s "$WORK/reports" ] && t_note 'findings:' "$WORK/reports"
if [ -n "${MMR_SOAK_KEEP:-}" ]; then
	cp -r "$WORK/out" "$OUT" "$MMR_SOAK_KEEP/"
fi
t_done
