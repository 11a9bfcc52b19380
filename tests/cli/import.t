#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# mmrace import: from the command line to a case that runs.  Red when a sample
# does not import, what is written does not run, or a loss is not said.

. "$(dirname "$0")/../lib.sh"
t_need_tool
SYZ=tests/import/syz STRACE=tests/import/strace

import() { t_run "$MMRACE" import "$@"; }
is() { # NAME WANT GOT
	[ "$2" = "$3" ]
	t_result $? "$1"
	[ "$2" = "$3" ] || t_note "it is $3, not $2"
}

for f in "$SYZ"/*.syz "$STRACE"/*.log; do
	case $f in
	*.syz) from=syz ;;
	*) from=strace ;;
	esac
	name=$(basename "$f")
	import "$f" --from $from -o "$WORK/$name.case"
	[ "$RC" = 0 ] && "$BUILD/tools/cases" print "$WORK/$name.case" \
		>"$WORK/printed" 2>"$WORK/.log"
	t_result $? "$name: imports, and parses"
done

# A few of them run: the shape is what a kernel takes.
for name in 03-async.syz 09-userfaultfd.syz 11-clone-kill-mrelease.syz \
	16-options.syz sh-tty.log jvm.log; do
	t_run "$MMRACE" replay --quiet --json --time 1 --out "$WORK/out" \
		"$WORK/$name.case"
	[ "$RC" = 0 ] || [ "$RC" = 4 ]
	t_result $? "$name: runs, finds nothing"
	[ "$RC" = 0 ] || t_note "exit $RC" "$OUT"
done

import "$SYZ/14-unknown-calls.syz" --from syz --json
t_rc 'with losses: exit 0' 0
cp "$OUT" "$WORK/json"
t_json 'JSON' "$WORK/json"
get() { t_json_get "$WORK/json" "$1"; }
is 'what is in it' 2 "$(get mapped)"
is 'what is not' 3 "$(get unmapped)"
is 'by line' 5 "$(get not_mapped.2.line)"
is 'and why' 'no operation is this call' "$(get not_mapped.2.reason)"
get case >"$WORK/case"
t_match 'kept as a comment' "$WORK/case" '^ +# line 5: bpf[$]PROG_LOAD'
import "$SYZ/14-unknown-calls.syz" --from syz
t_match 'said on standard error' "$ERR" '^3 could not be mapped'

import "$STRACE/jvm.log" --from strace --json
cp "$OUT" "$WORK/json"
[ "$(get threads)" -ge 5 ] && [ "$(get ignored)" -gt 10 ]
t_result $? 'a JVM has threads, and does more than memory'

RAN='import - <sh-tty.log'
"$MMRACE" import - --from strace <"$STRACE/sh-tty.log" >"$OUT" 2>"$ERR"
RC=$?
t_rc 'standard input: exit 0' 0
t_match 'a loop of forks' "$OUT" '^ +loop 6'
import "$STRACE/redis.log" --from strace --max-delay 1ms
sed -n 's/^ *delay \([0-9]*\)\(us\|ms\|s\).*/\1 \2/p' "$OUT" >"$WORK/delays"
awk '$2 == "s" || ($2 == "ms" && $1 > 1) { bad = 1 } END { exit bad }' \
	"$WORK/delays"
t_result $? '--max-delay holds'

import "$STRACE/redis.log" --from strace --touch -o "$WORK/touch.case"
t_rc '--touch: exit 0' 0
t_match 'what is writable is written' "$WORK/touch.case" \
	'^ +write m[0-9]+ len=1M step=1p$'
t_run "$MMRACE" replay --quiet --json --time 1 --out "$WORK/out" \
	"$WORK/touch.case"
t_rc 'and it runs, and finds nothing' 0

import "$SYZ/01-mmap-munmap.syz"
t_rc 'no --from: exit 2' 2
import "$SYZ/01-mmap-munmap.syz" --from ltrace
t_rc 'an unknown format: exit 2' 2
import /nowhere --from syz
t_rc 'no such file: exit 2' 2
import tests --from syz
t_rc 'a folder: exit 2' 2
import README.md --from strace
t_rc 'no log: exit 2' 2
t_match 'with its place' "$ERR" '^README.md:[0-9]+:[0-9]+: '
import "$SYZ/01-mmap-munmap.syz" --from syz -o "$WORK/no/such/x.case"
t_rc 'no place for it: exit 2' 2
printf 'mmap(0x0\n' >"$WORK/bad.syz"
import "$WORK/bad.syz" --from syz
t_rc 'nothing of it is a call: exit 2' 2

# What strace writes here and now.
if command -v strace >/dev/null 2>&1 &&
	strace -f -ttt -T -o "$WORK/live.log" sh -c 'true & wait' 2>/dev/null
then
	import "$WORK/live.log" --from strace -o "$WORK/live.case"
	t_rc 'a log of this moment' 0
	t_match 'its child is a process' "$WORK/live.case" 'process_spawn'
else
	t_skip 'a log of this moment' 'no strace, or it may not trace'
fi
t_done
