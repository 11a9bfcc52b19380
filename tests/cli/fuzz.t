#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The fuzz targets, briefly: clean, they end by themselves, and what can
# be seen from outside makes race_fuzzer's corpus grow.

. "$(dirname "$0")/../lib.sh"
if [ ! -x "$BUILD/text_fuzzer" ] || [ ! -x "$BUILD/race_fuzzer" ]; then
	t_skip 'fuzz targets' 'no clang with libFuzzer here'
	t_done
fi
# 1,000 mutated programs and logs take some seconds; on a machine that is busy
# otherwise, a minute.
T_TEXT=20 T_IMPORT=60 T_KLOG=10 T_RACE=10 RUNS=1500
[ -n "$LONG" ] && RUNS=-1 && T_TEXT=300 T_IMPORT=300 T_KLOG=300 T_RACE=300
export MMR_BUILD=${MMR_BUILD:-build/release}
rm -rf "$BUILD/fuzz/race/corpus"

ends() { # NAME SECONDS LEAST [RUNS]: fuzz.sh ends clean, in time
	local start=$SECONDS
	t_run tests/fuzz.sh "$1" "$2" "${4:--1}"
	t_rc "$1_fuzzer: clean" 0
	[ $((SECONDS - start)) -le $(($2 + 10)) ]
	t_result $? "$1_fuzzer: stops on -max_total_time"
	grep -E 'stat::number_of_executed_units' "$ERR" >"$WORK/stat"
	t_note "$(cat "$WORK/stat")"
	[ "$(awk '{ print $2 }' "$WORK/stat")" -gt "$3" ] 2>/dev/null
	t_result $? "$1_fuzzer: ran more than $3 inputs"
}

ends text $T_TEXT 1000
ends import $T_IMPORT 1000 $RUNS
ends klog $T_KLOG 1000
ends race $T_RACE 50
n=$(find "$BUILD/fuzz/race/corpus" -type f | wc -l)
[ "$n" -gt 3 ]
t_result $? "race_fuzzer: its corpus grows ($n files)"
none_running "$BUILD/mmrace-child"
t_result $? 'no child is left'
t_done
