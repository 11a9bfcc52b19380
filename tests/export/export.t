#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every seed and canary as a C file: it compiles without a warning, needs
# nothing but libc, and says of the running kernel what the case says.
#
# Red when: an op prints C that does not compile or calls what is not in the
# file; the watchdog misses a stall (a canary exits 0), takes long work for one
# (slow, healthy-1g), or waits for what cannot be killed (a time-out); threads
# lie where a stale munmap hits them (stale); the S1 file grows past a page
# that a person reads.

. "$(dirname "$0")/../lib.sh"
t_need_tool
WARN='-Wall -Wextra -Werror -O2 -pthread'

# export_c CASE: $WORK/NAME.c and the program $WORK/NAME.
export_c() {
	local name
	name=$(basename "$1" .case)
	t_run "$MMRACE" export --to c -o "$WORK/$name.c" "$1"
	if [ "$RC" != 0 ]; then
		t_rc "$name: export" 0
		return
	fi
	# shellcheck disable=SC2086 # a list of words
	t_ok "$name: compiles" gcc $WARN -o "$WORK/$name" "$WORK/$name.c"
}

# runs NAME EXIT WHAT: the program ends by itself with this code.
runs() {
	t_run timeout 60 "$WORK/$1"
	if [ "$RC" = 4 ] && [ "$2" != 4 ]; then
		t_skip "$1: $3" "$(tail -n 1 "$OUT")"
		return
	fi
	t_rc "$1: $3" "$2"
}

for case in corpus/seeds/*.case tests/canary/*.case tests/export/*.case; do
	export_c "$case"
done

# clang warns of other things.
if command -v "$CLANG" >/dev/null; then
	for name in s1-base s2-1m s3-10-cap s4-pool forms keep stale storm; do
		# shellcheck disable=SC2086
		t_ok "$name: compiles with clang" "$CLANG" $WARN \
			-o "$WORK/clang" "$WORK/$name.c"
	done
else
	t_skip 'compiles with clang' 'no clang'
fi

lines=$(wc -l <"$WORK/s1-base.c")
[ "$lines" -le 120 ]
t_result $? "s1-base: at most 120 lines ($lines)"
ldd "$WORK/exit" | grep -Ev 'libc[.]so|linux-vdso|ld-linux' >"$WORK/libs"
! [ -s "$WORK/libs" ]
t_result $? 'needs nothing but libc'
t_note 'it also needs:' "$WORK/libs"

runs futex 1 'a lost wake is seen'
t_match 'futex: says what' "$OUT" '^round 0 does not end'
runs uffd 1 'an unserved fault is seen'
runs storm 1 'a fault storm is seen'
t_match 'storm: says how many faults' "$OUT" '^round 0 [0-9]{4,} faults'
runs exit 1 'a held exit is seen'
t_match 'exit: says what' "$OUT" '_exit'
eventually 5 none_running "$WORK/exit"
t_result $? 'exit: nothing is left behind'
runs slow 0 'long work is no stall'
runs healthy-1g 0 'many faults are no storm'
runs unsignalled 0 'a wait for nobody is no stall'
runs forms 0 'every form runs'
runs keep 0 'rounds in one process'
runs stale 0 'a stale address hits no stack'
runs s1-nohint 0 'healthy'
runs s2-1m 0 'healthy'
for name in forms s2-1m unsignalled; do
	none_running "$WORK/$name"
	t_result $? "$name: nothing is left behind"
done

# Needs that no machine meets: exit 4 with the sentence.
sed 's/^needs .*/needs   cpus>=4096/' corpus/seeds/s1-base.case \
	>"$WORK/cpus.case"
export_c "$WORK/cpus.case"
runs cpus 4 'needs not met: exit 4'
t_match 'cpus: says what is missing' "$OUT" '4096 CPUs'

t_done
