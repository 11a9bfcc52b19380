#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Bad input: exit 2, one line "file:line:col: message", nothing run.  Red when
# a parser check goes, or when a command starts before it has parsed.

. "$(dirname "$0")/../lib.sh"
t_need_tool

C=$WORK/bad.case

# bad NAME LINE:COL TEXT: the case must be refused at that place.
bad() {
	local name=$1 place=$2
	printf '%b' "$3" >"$C"
	t_run "$MMRACE" replay --runs 1 "$C"
	t_rc "$name: exit 2" 2
	[ "$(wc -l <"$ERR")" = 1 ] && [ ! -s "$OUT" ] &&
		grep -Eq "^$C:$place: .*[a-z]" "$ERR"
	local rc=$?
	t_result $rc "$name: one line with its place"
	[ $rc = 0 ] || t_note "wanted $C:$place: MESSAGE" "$ERR"
}

head='mmrace-case 1\n'
main='mmrace-case 1\n\nprocess main\n  thread A\n'
N='[0-9]+'

bad 'empty file' "1:1" ''
bad 'no magic line' "1:1" 'hello\n'
bad 'another version' "1:$N" 'mmrace-case 99\n'
bad 'unknown header word' "2:1" "${head}frobnicate yes\n"
bad 'unknown op' "5:5" "${main}    frobnicate m0\n"
bad 'unknown argument' "5:$N" "${main}    m0 = mmap len=1p prot=rw flags=private|anon colour=red\n"
bad 'argument twice' "5:$N" "${main}    m0 = mmap len=1p len=2p prot=rw flags=private|anon\n"
bad 'argument missing' "5:$N" "${main}    m0 = mmap prot=rw flags=private|anon\n"
bad 'unknown enum value' "5:$N" "${main}    m0 = mmap len=1p prot=rwq flags=private|anon\n"
bad 'unknown flag' "5:$N" "${main}    m0 = mmap len=1p prot=rw flags=private|bogus\n"
bad 'unknown thread in a spawn' "5:$N" "${main}    t0 = thread_spawn body=nobody\n"
bad 'unknown process in a spawn' "5:$N" "${main}    p0 = process_spawn nobody\n"
bad 'unknown thread in until=' "5:$N" "${main}    loop until=done(Z)\n      pause\n    end\n"
bad 'unknown process in until=' "5:$N" "${main}    loop until=exited(Z)\n      pause\n    end\n"
bad 'unknown thread in cpu=' "4:$N" "${head}\nprocess main\n  thread A cpu=same(Z)\n    pause\n"
bad 'two threads of one name' "6:$N" "${main}    pause\n  thread A\n    pause\n"
bad 'two processes of one name' "6:$N" "${main}    pause\nprocess main\n  thread B\n    pause\n"
bad 'size beyond its limit' "5:$N" "${main}    m0 = mmap len=999999999G prot=rw flags=private|anon\n"
bad 'size that overflows' "5:$N" "${main}    m0 = mmap len=99999999999999999999 prot=rw flags=private|anon\n"
bad 'size that is none' "5:$N" "${main}    m0 = mmap len=1x prot=rw flags=private|anon\n"
bad 'loop beyond its limit' "5:$N" "${main}    loop 99999999999\n      pause\n    end\n"
bad 'loops too deep' "9:$N" "${main}    loop 2\n    loop 2\n    loop 2\n    loop 2\n    loop 2\n    pause\n    end\n    end\n    end\n    end\n    end\n"
bad 'copies beyond their limit' "3:$N" "${head}\nprocess main copies=1001\n  thread A\n    pause\n"
bad 'rounds beyond their limit' "2:$N" "${head}rounds 99999999999\nprocess main\n  thread A\n    pause\n"
bad 'loop without end' "$N:$N" "${main}    loop 5\n      pause\n"
bad 'end without loop' "5:$N" "${main}    end\n"
bad 'no statement at all' "$N:$N" "${main}"
bad 'no process at all' "$N:$N" "${head}title nothing\n"
bad 'statement outside of a thread' "3:$N" "${head}\n    pause\n"
bad 'unknown result name' "5:$N" "${main}    pause -> EWHATEVER\n"
bad 'time without its unit' "5:$N" "${main}    delay 20\n"
bad 'range upside down' "5:$N" "${main}    delay 20us..10us\n"
bad 'binary: a NUL byte' "5:$N" "${main}    pause\0\n"
bad 'binary: an ELF header' "1:1" '\177ELF\002\001\001\0\0\0'
bad 'name that is too long' "4:$N" "${head}\nprocess main\n  thread $(printf 'a%.0s' {1..40})\n    pause\n"
bad 'unknown need' "2:$N" "${head}needs moon=full\nprocess main\n  thread A\n    pause\n"
bad 'unknown expectation' "2:$N" "${head}expect miracles\nprocess main\n  thread A\n    pause\n"
bad 'unknown setting' "2:$N" "${head}set panic_on_oops=1\nprocess main\n  thread A\n    pause\n"

# A megabyte of text and more, and too many statements.
{ printf '%b' "$main"; yes '    pause' | head -n 5000; } >"$C"
t_run "$MMRACE" replay --runs 1 "$C"
t_rc '5000 statements: exit 2' 2
t_match '5000 statements: place' "$ERR" "^$C:$N:$N: "
{ printf '%b' "$main"; yes '    # a comment of no use' | head -n 60000
	echo '    pause'; } >"$C"
t_run "$MMRACE" replay --runs 1 "$C"
t_rc 'more than a megabyte: exit 2' 2
t_match 'more than a megabyte: place' "$ERR" "^$C:$N:$N: "

# A ref that nothing assigns is a warning: its users are skipped.
printf '%b' "${main}    write m0\n    delay 1us\n" >"$C"
t_run "$MMRACE" replay --runs 1 --quiet "$C"
t_rc 'ref that nothing assigns: runs' 0
t_match 'ref that nothing assigns: warning' "$ERR" "^$C:5:$N: warning: .*m0"

# Usage.
t_run "$MMRACE" replay "$WORK/not-there.case"
t_rc 'no such file: exit 2' 2
t_match 'no such file: named' "$ERR" 'not-there\.case'
t_run "$MMRACE" replay
t_rc 'replay of nothing: exit 2' 2
t_run "$MMRACE" frobnicate
t_rc 'unknown command: exit 2' 2
t_match 'unknown command: named' "$ERR" 'frobnicate'
t_run "$MMRACE" soak --frobnicate
t_rc 'unknown option: exit 2' 2
t_match 'unknown option: named' "$ERR" 'frobnicate'
t_run "$MMRACE" gen --seed 7x
t_rc 'seed that is no number: exit 2' 2
t_run "$MMRACE" gen --seed 18446744073709551616
t_rc 'seed of 65 bits: exit 2' 2
t_run "$MMRACE" gen --seed 7 --profile nosuch
t_rc 'unknown profile: exit 2' 2
t_run "$MMRACE"
t_rc 'no command: exit 2' 2
t_run "$MMRACE" --help
t_rc '--help: exit 0' 0
for command in soak gen replay min export show ops status doctor; do
	t_match "--help names $command" "$WORK/.out" "(^| )$command "
done
for command in soak gen replay min export show ops status doctor; do
	t_run "$MMRACE" $command --help
	t_rc "$command --help: exit 0" 0
	t_match "$command --help: usage" "$OUT" "^usage: mmrace $command"
done
t_run "$MMRACE" --version
t_rc '--version: exit 0' 0
t_done
