#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a soak comes back to.
#
# Red when a finding that shows itself again is not made smaller while the soak
# goes on, when that takes the soak's time, or when a guest in which it should
# be done does not come up and that ends the soak or is not said.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../shrink.sh"
t_need_tool

shrinking_soak --time 120 --out "$WORK/out"
eventually 110 smaller "$WORK/out"
t_result $? 'a finding is made smaller while the soak goes on'
kill -INT $pid
wait $pid
rc=$?
[ $rc = 1 ]
t_result $? "which ends with its findings (exit $rc)"
s=$(t_json_get "$WORK/out/soak.json" seconds)
r=$(t_json_get "$WORK/out/soak.json" revisit_seconds)
awk -v s="$s" -v r="$r" 'BEGIN { exit !(r > 0 && r < 0.95 * s) }'
t_result $? "within a share of its time ($r of $s s)"
t_min_cases "$WORK/out"

said() { grep -q -- '--shrink-guest: .*/nowhere/bzImage' "$ERR"; }
shrinking_soak --out "$WORK/guest" --shrink-guest /nowhere/bzImage
eventually 60 said
t_result $? 'a guest that is not there: a sentence'
kill -0 $pid
t_result $? 'and the soak goes on'
kill -INT $pid
wait $pid
t_note 'it said:' "$ERR"
t_done
