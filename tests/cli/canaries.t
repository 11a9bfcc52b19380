#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The canaries: what must be found on any kernel, what must not be flagged.
# A healthy kernel shows nothing else, so they prove the chain: run, watch,
# verdict, evidence, finding on disk.

. "$(dirname "$0")/../lib.sh"
t_need_tool
CANARIES=$TOP/tests/canary

# found CANARY VERDICT: replay finds it, and its finding is complete.
found() {
	local name=$1 verdict=$2 out=$WORK/$1 start took f dir
	start=$(date +%s%N)
	t_run "$MMRACE" replay --quiet --json --runs 1 --out "$out" \
		"$CANARIES/$name.case"
	took=$((($(date +%s%N) - start) / 1000000))
	if [ "$RC" = 4 ]; then
		t_skip "$name" "$(head -n 1 "$ERR" | cut -c 1-120)"
		return 1
	fi
	t_rc "$name: exit 1" 1
	t_note "$name took $took ms"
	t_json "$name: --json is JSON" "$OUT"
	set -- "$out"/findings/*/
	dir=$1
	[ $# = 1 ] && [ -d "$dir" ]
	t_result $? "$name: one finding"
	[ "$(t_json_get "$dir/verdict.json" verdict)" = "$verdict" ]
	t_result $? "$name: verdict $verdict"
	t_note "$(t_json_get "$dir/verdict.json" text)"
	case $(basename "$dir") in
	"$verdict"-*) t_result 0 "$name: the folder is named by its verdict" ;;
	*) t_result 1 "$name: the folder is named by its verdict" ;;
	esac
	for f in case.case first.case verdict.json evidence.json stacks.txt \
		timeline.json report.md repro.c; do
		[ -s "$dir/$f" ] || echo "$f"
	done >"$WORK/missing"
	[ ! -s "$WORK/missing" ]
	t_result $? "$name: evidence complete"
	t_note 'missing or empty:' "$WORK/missing"
	for f in verdict evidence timeline; do
		t_json "$name: $f.json is JSON" "$dir/$f.json"
	done
	t_ok "$name: case.case is canonical" cmp "$dir/case.case" \
		<("$BUILD/tools/cases" print "$dir/case.case")
	t_match "$name: its origin names kernel and machine" "$dir/case.case" \
		'^origin .*kernel=.* arch=.* cpus='
	t_ok "$name: show reads the finding" "$MMRACE" show "$dir"
	# Within 3 s of going wrong.
	local detect
	detect=$(t_json_get "$dir/verdict.json" detect_ms)
	[ -n "$detect" ] && awk -v d="$detect" 'BEGIN { exit !(d < 3000) }'
	t_result $? "$name: flagged within 3 s (${detect:-?} ms)"
	FOUND=$dir
}

# healthy CANARY: exit 0, nothing on disk.
healthy() {
	t_run "$MMRACE" replay --quiet --json --runs 1 --out "$WORK/$1" \
		"$CANARIES/$1.case"
	if [ "$RC" = 4 ]; then
		t_skip "$1" "$(head -n 1 "$ERR" | cut -c 1-120)"
		return 1
	fi
	t_rc "$1: exit 0" 0
	[ -z "$(ls "$WORK/$1/findings" 2>/dev/null)" ]
	t_result $? "$1: no finding"
}

found futex hang
found uffd hang
if found exit long-exit; then
	t_match 'exit: on CPU or asleep is told' "$FOUND/report.md" \
		'asleep|on.CPU'
fi
if found storm fault-storm; then
	t_match 'storm: faults per second' "$FOUND/report.md" \
		'[0-9][0-9,]* +(page )?faults (a|per) second|faults/s'
	t_match 'storm: its one address' "$FOUND/report.md" '0x[0-9a-f]+'
	t_match 'storm: no context switches' "$FOUND/report.md" \
		'(^|[^0-9])(0|no) (voluntary|context)'
fi
# The same stall twice is one finding with a count.  The command gets the whole
# environment, however large.
# shellcheck disable=SC2016,SC2046 # for the inner shell; a list of words
t_run env $(seq -f 'V%g=x' 100) HOOK="$WORK/hook" \
	"$MMRACE" replay --quiet --runs 1 --out "$WORK/futex" \
	--on-finding 'echo "$V100 $MMRACE_VERDICT" >"$HOOK"' \
	"$CANARIES/futex.case"
t_rc 'futex again: exit 1' 1
set -- "$WORK"/futex/findings/*/
[ $# = 1 ] && [ "$(t_json_get "$1/verdict.json" count)" = 2 ]
t_result $? 'futex again: one finding, count 2'
[ "$(cat "$WORK/hook")" = 'x hang' ]
t_result $? 'futex again: --on-finding has verdict and environment'

healthy slow
healthy healthy-1g
if healthy unsignalled; then
	t_match 'unsignalled: a void round, no hang' "$OUT" '"?void'
fi

# Nothing that a canary started is left.
none_running "$BUILD/mmrace-child"
t_result $? 'no mmrace-child is left'
t_done
