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
# interval of its rate has the true one.  That is measured with five times the
# runs, half of them at once and half after the next repetition, so that both
# numbers stand for the same stretch of time.
#
# MIN_RESULTS=DIR keeps each repetition, and later calls go on from there;
# MIN_SECS: no new repetition after so many seconds.
race_repeat() {
	local percent=$1 times=$2 i dir=${MIN_RESULTS:-$WORK} start=$SECONDS
	local made=0
	race_case "$percent" >"$WORK/race.case"
	for ((i = 1; i <= times; i++)); do
		[ $((SECONDS - start)) -gt "${MIN_SECS:-999999}" ] && break
		race_min "$dir/$percent-$i" "$i"
		race_truth "$dir/$percent-$i" 1
		[ $i = 1 ] || race_truth "$dir/$percent-$((i - 1))" 2
		made=$i
	done
	[ "$made" = 0 ] || race_truth "$dir/$percent-$made" 2
	for ((i = 1; i <= made; i++)); do
		race_line "$dir/$percent-$i" "$i"
	done >"$WORK/lines"
	race_judge "$percent" "$times" "$made"
}

# race_min NAME SEED: NAME.case and NAME.json, unless they are there.
race_min() {
	local start=$SECONDS
	[ -s "$1.secs" ] && return
	rm -f "$1".*
	"$MMRACE" min --quiet --json --jobs 2 --budget 10m --seed "$2" \
		--limit storm=100ms -o "$1.case" "$WORK/race.case" \
		>"$1.json" 2>"$ERR"
	echo $((SECONDS - start)) >"$1.secs"
}

# race_truth NAME N: the N-th half of the runs that NAME.case is held against,
# as "hits runs" to NAME.truth.
race_truth() {
	local json=$WORK/truth.json
	[ -e "$1.truth" ] && [ "$(wc -l <"$1.truth")" -ge "$2" ] && return
	"$MMRACE" replay --quiet --json --jobs 2 --runs 200 \
		--seed $((RANDOM * 32768 + RANDOM)) --limit storm=100ms \
		--out "$WORK/out" "$1.case" >"$json" 2>>"$ERR"
	echo "$(t_json_get "$json" hits) $(t_json_get "$json" runs)" \
		>>"$1.truth"
}

# race_line NAME I: "core held runs secs statements words...", 1 for yes.
race_line() {
	local core=0
	race_core "$1.case" && core=1
	awk -v i="$2" -v core=$core -v secs="$(cat "$1.secs")" \
		-v lo="$(t_json_get "$1.json" final_lo95)" \
		-v hi="$(t_json_get "$1.json" final_hi95)" \
		-v hits="$(t_json_get "$1.json" final_hits)" \
		-v runs="$(t_json_get "$1.json" final_runs)" \
		-v all="$(t_json_get "$1.json" runs)" \
		-v left="$(race_statements "$1.case")" '
	{ h += $1; n += $2; part = part sprintf(" %.3f", $1 / $2) }
	END {
		held = n && lo <= h / n && h / n <= hi
		printf "%d %d %d %d %d # %d: %d s, core %s, %d of %d fresh" \
			" runs (%.3f to %.3f), truth%s: %s\n", core, held,
			all, secs, left, i, secs, core ? "right" : "WRONG",
			hits, runs, lo, hi, part, held ? "in" : "OUT"
	}' "$1.truth"
}

# race_judge PERCENT TIMES MADE
race_judge() {
	local core held
	cut -d' ' -f6- "$WORK/lines"
	core=$(awk '{ n += $1 } END { print n + 0 }' "$WORK/lines")
	held=$(awk '{ n += $2 } END { print n + 0 }' "$WORK/lines")
	awk -v p="$1" '{ r += $3; s += $4; n += $5 } END { if (NR)
		printf "# %s %% of rounds: mean of %.0f runs, %.0f s, %.1f" \
			" statements\n", p, r / NR, s / NR, n / NR }' \
		"$WORK/lines"
	if [ "$3" -lt "$2" ]; then
		t_skip "$1 %: $2 repetitions" \
			"$3 so far, core right in $core, interval in $held"
		return
	fi
	[ $((core * 20)) -ge $(($2 * 17)) ]
	t_result $? "$1 %: the core in $core of $2"
	[ $((held * 20)) -ge $(($2 * 17)) ]
	t_result $? "$1 %: the interval has the true rate in $held of $2"
}
