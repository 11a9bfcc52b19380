#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# min and replay on failures of chance: a race of two user threads (tests/min)
# padded with 40 statements comes back to its core; a kill -9 loses no step;
# what cannot be minimised is said to.
#
# Red when a statement of the core is lost or padding stays, when the result
# has no rate, when what was accepted before a kill is not in FILE after it or
# a later run does not go on from there, when a refusal has another sentence or
# exit code or takes longer than a minute, and when a replay's answer, counts
# or exit codes for git bisect are wrong.

. "$(dirname "$0")/../lib.sh"
t_need_tool
. tests/min/race.sh

# --- from a padded race to its core ---
race_case 30 >"$WORK/race.case"
[ "$(race_statements "$WORK/race.case")" = 47 ]
t_result $? 'the padded race has 40 statements more than its 7'
t_run "$MMRACE" min --quiet --json --jobs 2 --budget 100s \
	--limit storm=100ms -o "$WORK/min.case" "$WORK/race.case"
t_rc 'min of a race: exit 1' 1
cp "$OUT" "$WORK/min.json"
t_json 'min of a race: JSON' "$WORK/min.json"
race_core "$WORK/min.case"
t_result $? 'its core, in the right order, and no padding'
t_note 'the result:' "$WORK/min.case"
runs=$(t_json_get "$WORK/min.json" final_runs)
[ "${runs:-0}" -ge 20 ] && grep -Eq "^seen +[0-9]+/$runs$" "$WORK/min.case"
t_result $? "seen says what the $runs fresh runs gave"
n=$(t_json_get "$WORK/min.json" statements_after)
# A line for each statement that stayed: "statement" in `without`.
[ "$(grep -o '"statement":' "$WORK/min.json" | wc -l)" = "$n" ]
t_result $? "a count without each of the $n statements"
t_match 'the log has the reference' "$WORK/min.case.log" \
	'the case as given: [0-9]+/[0-9]+ hits, reproduced'
t_match 'the log has the null rate' "$WORK/min.case.log" \
	'the empty case: [0-9]+/[0-9]+ hits'
t_match 'the log has decisions and their errors' "$WORK/min.case.log" \
	'hits, accepted \(rate >= .*wrong with at most'
t_match 'the log has what the statements are worth' "$WORK/min.case.log" \
	'without `munmap m0.*hits, needed'

# --- a kill -9 on the way ---
race_kill 1 "$WORK/kill" "$WORK/race.case" && lost=0 || lost=$?
[ "$lost" = 0 ]
t_result $? 'kill -9 after an accepted step: nothing of it is lost'
t_match 'the next run goes on from there' "$WORK/kill.min.case.log" \
	'goes on from .*state: [0-9]+ statements'
race_core "$WORK/kill.min.case"
t_result $? 'and ends with the core'
t_note 'the result:' "$WORK/kill.min.case"

# --- what cannot be minimised ---
# refused NAME CODE WORDS [BUDGET]: NAME.case is the case; within a minute.
refused() {
	local start=$SECONDS
	t_run "$MMRACE" min --quiet --budget "${4:-10m}" -o "$WORK/no.case" \
		"$WORK/$1.case"
	t_rc "min of $1: exit $2" "$2"
	cat "$OUT" "$ERR" >"$WORK/both"
	t_match "min of $1: says why" "$WORK/both" "$3"
	[ $((SECONDS - start)) -le 60 ] && [ ! -e "$WORK/no.case" ]
	t_result $? "min of $1: within a minute, and no result"
}
cat >"$WORK/always.case" <<'END'
mmrace-case 1
expect  exit within=1us

process main
  thread A
    m0 = mmap len=4p prot=rw flags=private|anon
    write m0
END
refused always 0 'nothing in it fails likewise: .* p < 5 f'
printf 'mmrace-case 1\nneeds   cpus>=9999\n\nprocess main\n  thread A\n    pause\n' \
	>"$WORK/needs.case"
refused needs 4 'needs 9999 CPUs'
# With a budget of 10 minutes it looks for 45 s, with 16 s for 8.
printf 'mmrace-case 1\n\nprocess main\n  thread A\n    delay 1us\n' \
	>"$WORK/never.case"
refused never 0 'did not reproduce in [0-9]+ runs' \
	"$([ -n "$LONG" ] && echo 10m || echo 16s)"

# --- replay ---
bash tests/min/pad.sh tests/min/race-30.case | grep -v '^seen' \
	>"$WORK/r.case"
t_run "$MMRACE" replay --quiet --json --jobs 2 --precision 0.5 \
	--limit storm=100ms --out "$WORK/out" "$WORK/r.case"
t_rc 'replay --precision: exit 1' 1
cp "$OUT" "$WORK/r.json"
[ "$(t_json_get "$WORK/r.json" answer)" = reproduced ]
t_result $? 'replay --precision: reproduced'
awk -v lo="$(t_json_get "$WORK/r.json" rate.lo95)" \
	-v hi="$(t_json_get "$WORK/r.json" rate.hi95)" \
	'BEGIN { exit !(hi - lo <= 0.5 && hi - lo > 0.3) }'
t_result $? 'it ends when the interval is narrow enough, not later'

healthy() { # SEEN
	printf 'mmrace-case 1\nseen    %s\n\nprocess main\n  thread A\n' "$1"
	printf '    delay 1us\n'
}
healthy 10/20 >"$WORK/h.case"
t_run "$MMRACE" replay --quiet --json --runs 3 "$WORK/h.case"
[ "$RC" = 0 ] && [ "$(t_json_get "$OUT" answer)" = inconclusive ]
t_result $? 'no hit in 3 runs of what was seen 10/20: inconclusive'
t_run "$MMRACE" replay --quiet --json --runs 12 --jobs 2 "$WORK/h.case"
[ "$RC" = 0 ] && [ "$(t_json_get "$OUT" answer)" = not-reproduced ] &&
	[ "$(t_json_get "$OUT" runs)" = 12 ]
t_result $? 'no hit in 12: not reproduced'
t_run "$MMRACE" replay --quiet --bisect --runs 3 "$WORK/h.case"
t_rc 'bisect: too few runs to tell: 125' 125
t_run "$MMRACE" replay --quiet --json --bisect "$WORK/h.case"
t_rc 'bisect: good after as many runs as the rate demands' 0
[ "$(t_json_get "$OUT" runs)" -ge 10 ]
t_result $? "bisect: they were $(t_json_get "$OUT" runs)"
t_run "$MMRACE" replay --quiet --json --bisect --limit storm=100ms \
	--runs 200 --out "$WORK/out" tests/min/race-30.case
t_rc 'bisect: bad at the first hit' 1
[ "$(t_json_get "$OUT" hits)" = 1 ]
t_result $? 'bisect: and no run after it'
t_run "$MMRACE" replay --quiet --bisect "$WORK/needs.case"
t_rc 'bisect: needs not met: 125' 125
t_run "$MMRACE" replay --bisect --precision 2 "$WORK/h.case"
t_rc 'bisect: bad usage ends the bisection' 130
t_done
