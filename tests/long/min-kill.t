#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# min killed with kill -9 at ten random moments, and started again each time:
# red when an accepted step is lost, or the core is not what it ends with.

. "$(dirname "$0")/../lib.sh"
t_need_tool
. tests/min/race.sh
race_case 5 >"$WORK/race.case"
race_kill 10 "$WORK/kill" "$WORK/race.case"
t_result $? 'ten kills: no accepted step is lost'
kills=$(grep -c 'goes on from' "$WORK/kill.min.case.log")
t_note "it went on from its state $kills times"
race_core "$WORK/kill.min.case"
t_result $? 'the core, in the right order'
t_note 'the result:' "$WORK/kill.min.case"
t_done
