#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every profile on the running kernel, MMR_TIME=60 seconds each: what generated
# cases ask for is mostly done, nothing is found, the machine is as before.
#
# Red when: less than nine of ten operations that were not meant to fail do what
# they should, a healthy kernel gets a finding, a setting or huge page stays.
#
# A kernel that loses count of its huge pages (corpus/open) keeps some; from
# there on "as before" is about all but their counts, as only a boot mends them.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../state.sh"
t_need_tool
TIME=${MMR_TIME:-60}
allow=
is_root && allow=--allow-settings

machine_state >"$WORK/before"
dead_groups >"$WORK/before.dead"
profiles=${MMR_PROFILES:-$("$MMRACE" gen --profile '?' 2>&1 |
	sed -n 's/^  *\([a-z][a-z]*\).*/\1/p')}
for p in $profiles; do
	# shellcheck disable=SC2086 # nothing, or an option
	t_run "$MMRACE" soak --time "$TIME" --profile "$p" $allow \
		--known corpus/open/known --out "$WORK/$p"
	ledger=$WORK/$p/soak.json
	cases=$(t_json_get "$ledger" cases)
	if [ "$RC" = 4 ] || [ "${cases:-0}" = 0 ]; then
		t_skip "$p" "$(grep -A 2 '^skipped' "$OUT" | tail -n 1)"
		continue
	fi
	t_rc "$p: nothing found" 0
	valid=$(t_json_get "$ledger" valid_share)
	awk -v v="$valid" 'BEGIN { exit !(v >= 0.9) }'
	t_result $? "$p: operations do what they mean to ($valid)"
	eventually 20 as_before "$WORK/before"
	rc=$?
	t_result $rc "$p: the machine is as before"
	[ $rc = 0 ] || note_difference "$WORK/before"
	calls=$(($(t_json_get "$ledger" calls) / TIME))
	echo "# $p: $cases cases, $(t_json_get "$ledger" operations_per_second)" \
		"operations and $calls calls a second," \
		"$(t_json_get "$ledger" op_pairs) pairs"
done
note_pool "$WORK/before"
t_done
