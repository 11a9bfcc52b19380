#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What keeps cases from running.  Red when a soak does not outlive what passes,
# does not say it, or goes on for ever when it does not pass.

. "$(dirname "$0")/../lib.sh"
t_need_tool
mkdir "$WORK/bin"
cp "$BUILD/mmrace" "$BUILD/mmrace-child" "$WORK/bin/"

"$WORK/bin/mmrace" soak --profile storm --seed 3 --jobs 2 --time 14 --quiet \
	--json --out "$WORK/out" >"$OUT" 2>"$ERR" &
pid=$!
sleep 2
mv "$WORK/bin/mmrace-child" "$WORK/bin/away"
sleep 3
mv "$WORK/bin/away" "$WORK/bin/mmrace-child"
wait $pid
RC=$?
RAN='mmrace soak'
t_rc 'a soak outlives cases that cannot be run for a while' 0
t_match 'and says so once' "$ERR" '^mmrace soak: a case could not be run: .'
missed=$(t_json_get "$OUT" failed) cases=$(t_json_get "$OUT" cases)
seconds=$(t_json_get "$OUT" seconds)
[ "${missed:-0}" -gt 0 ] && [ "$missed" -lt 20 ]
t_result $? "those are counted ($missed)"
t_match 'with the reason' "$OUT" '"failure": ?"[^"]'
awk -v c="$cases" -v s="$seconds" 'BEGIN { exit !(c > 0 && s >= 14) }'
t_result $? "and the others run to the end ($cases cases in $seconds s)"

# The cases in flight at the end are not done either.
t_run "$WORK/bin/mmrace" soak --resume --profile storm --seed 3 --jobs 2 \
	--time 1 --quiet --json --out "$WORK/out"
before=$(t_json_get "$OUT" cases_before)
[ "${before:-0}" -le "$cases" ] && [ "${before:-0}" -ge $((cases - 2)) ]
t_result $? "what could not be run is not done: --resume has it to do ($before)"

echo nonsense >"$WORK/bin/mmrace-child"
before=$(date +%s)
t_run timeout 100 "$WORK/bin/mmrace" soak --profile storm --seed 3 --quiet \
	--time 90 --out "$WORK/none"
t_rc 'where none can be run, that is the end' 3
[ $(($(date +%s) - before)) -lt 60 ]
t_result $? 'at once'
t_match 'with a sentence' "$ERR" '20 cases in a row could not be run'
t_done
