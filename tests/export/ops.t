#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The table of all operations.  For each one tests/golden/ops/NAME.case has
# its every argument, NAME.txt the C of its statements; the case prints as
# itself, its C compiles without a warning, and both make the same calls with
# the same arguments under strace, between two marks (a mapping that comes and
# goes).  MMR_UPDATE_GOLDEN=1 writes the C anew; MMR_OPS='NAME...' looks at
# these only.
#
# Red when: an operation comes without its case; a descriptor's `call` and the
# exported C take a kernel argument from elsewhere; a flag's name and value do
# not belong together; the C of an operation changes.

. "$(dirname "$0")/../lib.sh"
t_need_tool
GOLD=$TOP/tests/golden/ops

# Ways to start, to order and to wait, which a C file does by libc; memory
# that is touched without a call; files of the machine, that nobody wants
# written while other tests run.
leaves_out() {
	case $1 in
	thread_spawn | thread_join | process_spawn | process_reap) ;;
	signal | wait | pause | delay | sync | write | read) ;;
	rt_sigtimedwait | nanosleep | move_threads | poke) ;;
	drop_cap | setrlimit) ;;
	set_* | compact_memory | drop_caches | swapo* | cgroup_*)
		[ "$1" != set_mempolicy ] &&
			[ "$1" != set_mempolicy_home_node ]
		;;
	*) return 1 ;;
	esac
}

# The statements' C: the functions of the case's threads.
bodies() {
	awk '/^static void \*thread_[A-Za-z0-9_]*\(void \*arg\)$/ { on = 1 }
		/^static void proc_[A-Za-z0-9_]*\(void\)$/ { on = 1 }
		on { print } /^}/ { on = 0 }' "$1"
}

# between_marks FOLDER: of the thread that made them.
between_marks() {
	local f
	f=$(grep -l 'mmap(0x4fc0000000, ' "$1"/* | head -n 1)
	[ -n "$f" ] && awk '/^mmap\(0x4fc0000000, / { on = 1; next }
		/^munmap\(0x4fc0000000, / { on = 0 } on { print }' "$f"
}

# The calls of an operation without what differs from run to run: results,
# numbers of descriptors and processes, addresses outside the arena, what was
# read.  A signal may go by pid or by pidfd.
plain_calls() {
	grep -E "^(${1// /|}|syscall_0x[0-9a-f]+)\(" | sed -E \
		-e 's/\) += (-?[0-9]|0x|\?).*/)/' -e 's/ => .*/)/' \
		-e 's/AT_FDCWD<[^>]*>/AT_FDCWD/' \
		-e 's/\b[0-9]+<([^>]*)>/FD<\1>/g' \
		-e 's/^(p?read[0-9]*\([^"]*)"([^"\\]|\\.)*"(\.\.\.)?/\1DATA/' \
		-e 's,/proc/[0-9]+/,/proc/PID/,' \
		-e 's/^pidfd_send_signal\(FD<[^>]*>, (SIG[A-Z0-9]*).*/kill(PID, \1)/' \
		-e 's/^(kill|migrate_pages|move_pages|pidfd_open)\([1-9][0-9]*/\1(PID/' \
		-e 's/^(process_vm_[a-z]*)\([1-9][0-9]*/\1(PID/' \
		-e 's/^ptrace\((PTRACE_[A-Z]*), [0-9]+/ptrace(\1, PID/' \
		-e 's/^(syscall_0x1ce\([^,]*,[^,]*, 0).*/\1)/' \
		-e 's/iov_base="([^"\\]|\\.)*"/iov_base=DATA/; s/, NULL, 8\)$/, NULL, 0)/' \
		-e 's/FUTEX_WAIT, [0-9]{3,}/FUTEX_WAIT, VALUE/' \
		-e 's/0x7[0-9a-f]{11}|0x[56][0-9a-f]{8}\b|0x55[0-9a-f]{10}/PTR/g' |
		if [ "$2" = proc_read ]; then
			sed -E 's/, [0-9]+\)$/, N)/' | uniq
		elif [ "$2" = robust_await ] || [ "$2" = uffd_read ]; then
			sed -E 's/fd=[0-9]+/fd=N/' | uniq
		else
			cat
		fi
}

# strace_of FOLDER CALLS COMMAND...
strace_of() {
	local dir=$1 calls=$2
	shift 2
	mkdir -p "$dir"
	calls=mmap,munmap,${calls// /,}
	# Newer than Debian 12's strace.
	[ "${calls/mseal/}" != "$calls" ] && calls=all
	timeout 60 strace --seccomp-bpf -ff -y -qq -o "$dir/t" \
		-e "trace=$calls" "$@" >"$dir.out" 2>&1
}

# All about one operation, into $WORK/NAME.*: TAP follows later.
work_on() {
	local op=$1 calls=$2 case=$GOLD/$1.case at=$WORK/$1
	"$BUILD/tools/cases" print "$case" >"$at.printed" 2>&1
	"$MMRACE" export --to c -o "$at.c" "$case" >"$at.log" 2>&1 || return
	bodies "$at.c" >"$at.txt"
	if [ -n "${MMR_UPDATE_GOLDEN:-}" ]; then
		cp "$at.txt" "$GOLD/$op.txt"
	fi
	# shellcheck disable=SC2086 # a list of words
	gcc -Wall -Wextra -Werror -O2 -pthread -o "$at.bin" "$at.c" \
		>>"$at.log" 2>&1 || return
	leaves_out "$op" && return
	strace_of "$at.run" "$calls" "$MMRACE" replay --quiet --runs 1 \
		--out "$at.o" "$case"
	echo $? >"$at.rc"
	strace_of "$at.ran" "$calls" "$at.bin"
	between_marks "$at.run" | plain_calls "$calls" "$op" >"$at.want"
	between_marks "$at.ran" | plain_calls "$calls" "$op" >"$at.got"
}

tell() {
	local op=$1 at=$WORK/$1
	if [ ! -e "$GOLD/$op.case" ]; then
		t_result 1 "$op: tests/golden/ops/$op.case is there"
		return
	fi
	grep -Eq "^ +([A-Za-z0-9_]+ = )?$op( |\$)" "$GOLD/$op.case"
	t_result $? "$op: the case has it"
	t_same "$op: prints as itself" "$GOLD/$op.case" "$at.printed"
	t_same "$op: the C of its statements" "$GOLD/$op.txt" "$at.txt"
	t_ok "$op: its C compiles without a warning" test -x "$at.bin"
	[ -x "$at.bin" ] || t_note 'log:' "$at.log"
	leaves_out "$op" && return
	if [ "$(cat "$at.rc")" = 4 ]; then
		t_skip "$op: the same calls" \
			"$(grep -h 'skipped' "$at.run.out" | head -n 1)"
		return
	fi
	if ! [ -s "$at.want" ]; then
		t_result 1 "$op: strace saw its calls"
		t_note 'it said:' "$at.run.out"
		return
	fi
	t_same "$op: case and C make the same calls" "$at.want" "$at.got"
}

if ! command -v strace >/dev/null; then
	t_skip 'calls compared' 'no strace'
	t_done
fi
"$MMRACE" ops | awk '{ print $1 }' >"$WORK/names"
[ "$(wc -l <"$WORK/names")" -ge 60 ]
t_result $? "there are operations ($(wc -l <"$WORK/names"))"
[ -n "${MMR_OPS:-}" ] && printf '%s\n' $MMR_OPS >"$WORK/names"
while read -r op; do
	"$MMRACE" ops "$op" | sed -n 's/^    calls  *//p'
done <"$WORK/names" >"$WORK/calls"
paste "$WORK/names" "$WORK/calls" >"$WORK/table"
n=0
while IFS=$'\t' read -r op calls; do
	[ -e "$GOLD/$op.case" ] || continue
	work_on "$op" "$calls" </dev/null &
	n=$((n + 1))
	[ $((n % 4)) = 0 ] && wait
done <"$WORK/table"
wait
while read -r op; do
	tell "$op"
done <"$WORK/names"
t_done
