#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The founding reports S1 to S4 as cases: each parses as itself and runs, or
# says which need of it is not met; none finds anything on a healthy kernel.

. "$(dirname "$0")/../lib.sh"
t_need_tool
T=2
[ -n "$LONG" ] && T=30
is_root && settings=--allow-settings || settings=

for f in corpus/seeds/*.case; do
	name=$(basename "$f" .case)
	"$BUILD/tools/cases" print "$f" >"$WORK/printed" 2>&1
	t_same "$name: canonical" "$f" "$WORK/printed"
	if grep -Eq '^needs .*hugepages|^set .*hugepages' "$f" &&
		pool_is_broken; then
		t_skip "$name: runs" "$POOL_BROKEN"
		continue
	fi
	# shellcheck disable=SC2086 # an option or none
	t_run "$MMRACE" replay --quiet --json --time $T $settings \
		--out "$WORK/out" "$f"
	if [ "$RC" = 4 ]; then
		cat "$OUT" "$ERR" >"$WORK/both"
		t_match "$name: not run, and why" "$WORK/both" \
			'[Nn]eeds|allow-settings'
		t_note "$(head -n 1 "$WORK/both" | cut -c 1-150)"
		continue
	fi
	t_rc "$name: runs, finds nothing" 0
	cp "$OUT" "$WORK/$name.json"
	t_json "$name: JSON" "$WORK/$name.json"
	rounds=$(t_json_get "$WORK/$name.json" rounds)
	[ "${rounds:-0}" -gt 0 ]
	t_result $? "$name: rounds (${rounds:-none})"
done
[ $tests -ge 8 ]
t_result $? 'there are seeds'
if [ -s "$WORK/s2-64m.json" ]; then
	t_match 's2: results of process_mrelease by errno' "$WORK/s2-64m.json" \
		'process_mrelease'
	t_match 's2: exit time percentiles' "$WORK/s2-64m.json" 'p99'
fi
if [ -s "$WORK/s4-pool.json" ]; then
	t_match 's4: exit time on CPU' "$WORK/s4-pool.json" 'cpu'
	t_match 's4: exit time asleep' "$WORK/s4-pool.json" 'asleep'
fi
t_done
