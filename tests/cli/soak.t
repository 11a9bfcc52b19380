#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The soak: ends in time with a report, leaves nothing behind, also when it
# is interrupted or killed.

. "$(dirname "$0")/../lib.sh"
t_need_tool

# A sanitizer build is slow to start and to end.
SLACK_MS=${MMR_SLACK_MS:-1000}
children() { running "$BUILD/mmrace-child"; }
no_children() { none_running "$BUILD/mmrace-child"; }
some_children() { [ "$(children)" != 0 ]; }
pool() { cat /proc/sys/vm/nr_hugepages /proc/sys/vm/nr_overcommit_hugepages \
	2>/dev/null; }

pool_before=$(pool)
start=$(date +%s%N)
t_run "$MMRACE" soak --time 10 --seed 1 --quiet --out "$WORK/out"
took=$((($(date +%s%N) - start) / 1000000))
t_rc 'soak of 10 s: nothing found' 0
[ $took -lt $((10000 + SLACK_MS)) ] && [ $took -ge 9000 ]
t_result $? "10 s: over in time ($took ms)"
cat "$OUT" >"$WORK/report"
for word in cases rounds 'a second|/s' findings; do
	t_match "the report tells $word" "$WORK/report" "$word"
done
t_match 'findings 0' "$WORK/report" 'findings[^0-9]*0'
t_note 'report:' "$WORK/report"
no_children
t_result $? 'no child is left'
! is_root || [ "$pool_before" = "$(pool)" ]
t_result $? 'huge page settings are as before'

start=$(date +%s%N)
t_run "$MMRACE" soak --time 5 --seed 9 --quiet --json --jobs 2 \
	--out "$WORK/out2"
took=$((($(date +%s%N) - start) / 1000000))
t_rc 'soak --json of 5 s, two jobs' 0
[ $took -lt $((5000 + SLACK_MS)) ]
t_result $? "5 s: over in time ($took ms)"
t_json 'its report is JSON' "$OUT"
cases=$(t_json_get "$OUT" cases)
[ "${cases:-0}" -gt 20 ]
t_result $? "many cases ran (${cases:-none})"

t_run "$MMRACE" status "$WORK/out2"
t_rc 'status of a finished soak' 0
t_run "$MMRACE" soak --cases 5 --seed 3 --quiet --json --out "$WORK/out3"
t_rc 'soak --cases 5' 0
ran=$(t_json_get "$OUT" cases) skipped=$(t_json_get "$OUT" skipped)
[ $((ran + skipped)) = 5 ]
t_result $? "5 cases: $ran ran, $skipped skipped"

# Ctrl-C: stops cleanly, with results.
"$MMRACE" soak --time 60 --seed 5 --quiet --json --out "$WORK/out4" \
	>"$WORK/int" 2>"$WORK/int.err" &
pid=$!
eventually 10 some_children
kill -INT $pid
start=$(date +%s)
wait $pid
rc=$?
[ $rc = 0 ] && [ $(($(date +%s) - start)) -le 3 ]
t_result $? "interrupted: ends with results (exit $rc)"
t_json 'interrupted: JSON' "$WORK/int"

# kill -9: all that it spawned goes, the seed that ran is on disk.
"$MMRACE" soak --time 60 --seed 100 --jobs 2 --quiet --out "$WORK/out5" \
	>/dev/null 2>&1 &
pid=$!
both_jobs() { [ -s "$WORK/out5/running-0.case" ] &&
	[ -s "$WORK/out5/running-1.case" ] && some_children; }
eventually 10 both_jobs
t_result $? 'a soak runs'
kill -9 $pid
wait $pid 2>/dev/null
eventually 5 no_children
t_result $? 'kill -9: all of it is gone within 5 s'
for f in "$WORK"/out5/running-[01].case; do
	grep -Eq '^origin .*seed=0x' "$f" && "$BUILD/tools/cases" print "$f"
done >"$WORK/ran" 2>&1
[ "$(grep -c '^origin' "$WORK/ran")" = 2 ]
t_result $? 'kill -9: the cases that ran are on disk, with their seeds'
t_run "$MMRACE" status "$WORK/out5"
t_rc 'kill -9: status reads it' 0
t_note 'status:' "$OUT"

# The same with a hundred children that have memory.
cat >"$WORK/many.case" <<'CASE'
mmrace-case 1
rounds  1000 budget=60s

process kid template copies=100
  thread K
    m0 = mmap len=1M prot=rw flags=private|anon
    write m0 step=1p
    signal up
    pause

process main
  thread A
    p0 = process_spawn kid
    wait up
    delay 10s
CASE
"$MMRACE" replay --quiet --runs 1 --out "$WORK/out6" "$WORK/many.case" \
	>/dev/null 2>&1 &
pid=$!
many() { [ "$(children)" -gt 100 ]; }
eventually 10 many
t_result $? 'a hundred children run'
kill -9 $pid
wait $pid 2>/dev/null
eventually 5 no_children
t_result $? 'kill -9: a hundred children are gone within 5 s'
t_done
