#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# fuzz.sh text|import|klog|race SECONDS [RUNS]: runs a fuzz target; its corpus
# and what it finds stay in BUILD/fuzz.  It ends by -max_total_time, or before
# that after so many inputs.

set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${MMR_BUILD:-build/release}
target=${1:?text, import, klog or race}
seconds=${2:?seconds}
dir=$BUILD/fuzz/$target
mkdir -p "$dir/corpus" "$dir/crashes" "$dir/seeds"
cp corpus/seeds/*.case tests/canary/*.case "$dir/seeds/" 2>/dev/null
common=(-max_total_time="$seconds" -artifact_prefix="$dir/crashes/"
	-print_final_stats=1 -timeout=60 -runs="${3:--1}")
case $target in
text)
	exec "$BUILD/text_fuzzer" "${common[@]}" -max_len=65536 \
		"$dir/corpus" "$dir/seeds"
	;;
import)
	cp tests/import/*/*.{syz,log} "$dir/seeds/"
	rm -f "$dir/seeds/"*.case
	exec "$BUILD/import_fuzzer" "${common[@]}" -max_len=16384 \
		"$dir/corpus" "$dir/seeds"
	;;
klog)
	cp tests/klog/*.log "$dir/seeds/"
	rm -f "$dir/seeds/"*.case
	exec "$BUILD/klog_fuzzer" "${common[@]}" -max_len=65536 \
		"$dir/corpus" "$dir/seeds"
	;;
race)
	# It runs on the kernel: its own memory, alarms and signals are not
	# libFuzzer's business, and canaries would be findings.
	exec "$BUILD/race_fuzzer" "${common[@]}" -timeout=0 -rss_limit_mb=0 \
		-handle_segv=0 -handle_bus=0 -max_len=16384 "$dir/corpus"
	;;
*)
	echo 'usage: fuzz.sh text|import|klog|race SECONDS' >&2
	exit 2
	;;
esac
