# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For tests of min on tests/min/race-*.case: a write of thread A races with an
# munmap of thread B; in so many per cent of rounds the munmap wins, and the
# write faults for ever.  Source it after tests/lib.sh.

# race_case PERCENT: the case with 40 statements in 4 threads more.
race_case() {
	bash tests/min/pad.sh "tests/min/race-$1.case"
}

race_statements() { # FILE
	grep -E '^ {4,}' "$1" | grep -Evc '^ +end$'
}

# race_core FILE: mapping and write in one thread, in this order, the munmap in
# another; nothing of the padding, and no more than the 7 that it began with.
race_core() {
	awk '
	/^  thread / { t = $2 }
	/m0 = mmap/ { map = NR; owner = t }
	/ write m0/ { touch = NR; if (t != owner) bad = 1 }
	/ munmap m0/ { drop = NR; other = t }
	/pad|x[0-9]/ { bad = 1 }
	/^    / { n++ }
	END {
		exit !(map && touch > map && drop && other != owner &&
			!bad && n <= 7)
	}' "$1"
}

# race_kill TIMES NAME CASE: min of the case to NAME.min.case, killed TIMES
# times, each after a random number of steps more, and started again; then to
# its end.  Fails when what was accepted is not in the file after a kill.
race_kill() {
	local times=$1 out=$2.min.case input=$3 i pid want left steps
	rm -f "$out" "$out.state" "$out.log"
	for ((i = 0; i <= times; i++)); do
		"$MMRACE" min --quiet --jobs 2 --budget 200s \
			--limit storm=100ms -o "$out" "$input" \
			>/dev/null 2>"$2.err" &
		pid=$!
		[ "$i" = "$times" ] && break
		# A number of lines more, and at the first kill an accept.
		steps=$((RANDOM % 25 + 1 + $(race_lines "$out.log")))
		while kill -0 $pid 2>/dev/null &&
			{ [ "$(race_lines "$out.log")" -lt $steps ] ||
			  ! grep -q ', accepted' "$out.log"; }; do
			sleep 0.05
		done
		kill -9 $pid 2>/dev/null
		wait $pid 2>/dev/null
		# What the log says was left after the last accept.
		want=$(grep -E ', accepted|back to before it' "$out.log" |
			tail -n 1 | sed 's/.*; \([0-9]*\) left$/\1/')
		left=$(race_statements "$out")
		if [ "$left" -gt "$want" ]; then
			echo "# kill $i: $left in the file, $want accepted"
			kill -9 $pid 2>/dev/null
			return 1
		fi
		[ -e "$out.state" ] || break # it was through before
	done
	wait $pid 2>/dev/null
	return 0
}

race_lines() { # FILE
	[ -e "$1" ] && wc -l <"$1" || echo 0
}

# race_repeat PERCENT TIMES: min of the race, again and again, and whether the
# interval of its rate has the true one: that of many more runs, made at once.
race_repeat() {
	local percent=$1 times=$2 i core=0 held=0 secs=0 start n=0 left=0
	local out=$WORK/repeat json=$WORK/repeat.json ref
	race_case "$percent" >"$WORK/race.case"
	for ((i = 1; i <= times; i++)); do
		rm -f "$out".*
		start=$SECONDS
		"$MMRACE" min --quiet --json --jobs 2 --budget 10m --seed "$i" \
			--limit storm=100ms -o "$out.case" "$WORK/race.case" \
			>"$json" 2>"$ERR"
		secs=$((secs + SECONDS - start))
		race_core "$out.case"
		ref=$?
		[ $ref = 0 ] && core=$((core + 1))
		n=$((n + $(t_json_get "$json" runs)))
		left=$((left + $(race_statements "$out.case")))
		"$MMRACE" replay --quiet --json --jobs 2 --runs 150 \
			--limit storm=100ms --out "$WORK/out" "$out.case" \
			>"$WORK/truth.json" 2>>"$ERR"
		awk -v lo="$(t_json_get "$json" final_lo95)" \
			-v hi="$(t_json_get "$json" final_hi95)" \
			-v p="$(t_json_get "$WORK/truth.json" rate.per_run)" \
			'BEGIN { exit !(lo <= p && p <= hi) }' &&
			held=$((held + 1))
		echo "# $i: $((SECONDS - start)) s, core $ref," \
			"$(t_json_get "$json" final_hits) of" \
			"$(t_json_get "$json" final_runs) fresh runs, truth" \
			"$(t_json_get "$WORK/truth.json" rate.per_run)"
	done
	echo "# $percent % of rounds: core $core of $times, interval right" \
		"$held of $times, mean of $((n / times)) runs," \
		"$((secs / times)) s, $((left / times)) statements"
	[ $((core * 20)) -ge $((times * 17)) ]
	t_result $? "$percent %: the core in $core of $times"
	[ $((held * 20)) -ge $((times * 17)) ]
	t_result $? "$percent %: the interval has the true rate in $held of $times"
}
