#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Ten minutes of soak with two jobs while the machine compiles: no false
# finding, over in time, nothing left behind.  MMR_SOAK_TIME shortens it.

. "$(dirname "$0")/../lib.sh"
t_need_tool
T=${MMR_SOAK_TIME:-600}

load() {
	while :; do
		for f in ops/*.c triage/*.c fuzz/*.c; do
			$CC -std=gnu17 -D_GNU_SOURCE -O2 -I"$BUILD" -c -o /dev/null \
				"$f" 2>/dev/null
		done
	done
}

load & one=$!
load & two=$!
trap 'kill $one $two 2>/dev/null; rm -rf "$WORK"' EXIT
pool=$(cat /proc/sys/vm/nr_hugepages)
maps=$(awk '/^HugePages_Total|^HugePages_Surp/' /proc/meminfo)
start=$(date +%s%N)
t_run "$MMRACE" soak --time "$T" --jobs 2 --seed 1 --quiet --json \
	--out "$WORK/out"
took=$((($(date +%s%N) - start) / 1000000))
t_rc 'no finding' 0
[ $took -le $(((T + 1) * 1000)) ]
t_result $? "over by $((T + 1)) s ($took ms)"
none_running "$BUILD/mmrace-child"
t_result $? 'no child is left'
[ "$pool" = "$(cat /proc/sys/vm/nr_hugepages)" ] &&
	[ "$maps" = "$(awk '/^HugePages_Total|^HugePages_Surp/' /proc/meminfo)" ]
t_result $? 'huge pages are as before'
t_note 'report:' "$OUT"
find "$WORK/out/findings" -name report.md -exec cat {} + >"$WORK/reports" \
	2>/dev/null
[ -s "$WORK/reports" ] && t_note 'findings:' "$WORK/reports"
t_done
