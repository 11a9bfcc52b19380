#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Red when an exit that has four times as much to do is not called slower, by
# the clock and by its time on a CPU, when of two records that differ in their
# exits alone another kind of call is, when JSON and text say different things,
# or when what cannot be compared is compared.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../exit-case.sh"

exit_case 8M 3 >"$WORK/small.case"
exit_case 32M 3 >"$WORK/large.case"

t_run "$MMRACE" compare "$WORK/small.case" "$WORK/large.case" --runs 12 --quiet
t_rc 'two cases: a difference is exit code 1' 1
t_match 'the exit is slower' "$OUT" \
	'^exit kid +slower +p[0-9.]+ +\+[0-9.]+ % \(\+'
t_match 'also in what of it was on a CPU' "$OUT" \
	'^exit kid on CPU +slower +p[0-9.]+ +\+[0-9.]+ % \(\+'
t_match 'the table has its percentiles' "$OUT" '^  p99\.9 .*%.*\(.* to .*\)$'

for c in small large; do
	"$MMRACE" replay "$WORK/$c.case" --runs 12 --record "$WORK/$c.jsonl" \
		--quiet >/dev/null 2>&1
done
t_run "$MMRACE" compare "$WORK/small.jsonl" "$WORK/large.jsonl" --json
t_rc 'two records: likewise' 1
t_json 'compare --json' "$OUT"
word=$(t_json_get "$OUT" kinds.0.kind)
[ -n "$word" ]
t_result $? "its kinds have names ($word)"
# Two runs of a case are never quite alike, and what comes after a larger exit
# has colder caches: so the exits of one record, sixteen times as long, are the
# other.  Sixteen bins are an octave.
perl -pe 'my ($head, $exit, $rest) = /^(.*"exit kid":)(\{.*?\})(.*)$/s or next;
	$exit =~ s/\[(\d+),/"[" . ($1 + 64) . ","/ge;
	$exit =~ s/("sum"|"max"):(\d+)/"$1:" . $2 * 16/ge;
	$_ = "$head$exit$rest"' "$WORK/small.jsonl" >"$WORK/longer.jsonl"
t_run "$MMRACE" compare "$WORK/small.jsonl" "$WORK/longer.jsonl"
t_rc 'the same record with longer exits' 1
t_match 'at each percentile, so the median is named' "$OUT" \
	'^exit kid +slower +p50 '
grep -E ' +(slower|faster) ' "$OUT" | awk '{ print $1, $2, $3 }' >"$WORK/told"
echo 'exit kid slower' >"$WORK/wanted"
t_same 'the exits and nothing else' "$WORK/wanted" "$WORK/told"
t_match 'by what they are longer' "$OUT" '^  mean .* \+1500\.0 % \('

t_run "$MMRACE" compare "$WORK/small.jsonl" "$WORK/small.jsonl"
t_rc 'a record with itself: nothing' 0
! grep -Eq ' (slower|faster) ' "$OUT"
t_result $? 'and nothing is slower or faster'

"$MMRACE" soak --profile storm --cases 8 --quiet --out "$WORK/soak" \
	>/dev/null 2>&1
t_run "$MMRACE" compare "$WORK/soak" "$WORK/soak"
t_rc 'a soak with itself' 0

t_run "$MMRACE" compare "$WORK/small.case" "$WORK/large.jsonl"
t_rc 'a case and a record' 2
t_run "$MMRACE" compare "$WORK/small.case"
t_rc 'one case alone' 2
t_run "$MMRACE" compare "$WORK/none" "$WORK/soak"
t_rc 'what is not there' 2
head -c 300 "$WORK/small.jsonl" >"$WORK/cut.jsonl"
t_run "$MMRACE" compare "$WORK/cut.jsonl" "$WORK/small.jsonl"
t_rc 'half a record' 2
t_match 'is named with its line' "$ERR" 'cut\.jsonl:2: '
t_done
