#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who runs from the file: the processes of a case, and not the holder and the
# supervisor, which migrate_pages of a case must not reach.  Red when the copy
# is not made, or when the processes of the case do not leave it.

. "$(dirname "$0")/../lib.sh"
t_need_tool

printf '%s\n' 'mmrace-case 1' '' 'process main' '  thread A' '    delay 2s' \
	>"$WORK/still.case"
"$MMRACE" replay --quiet "$WORK/still.case" >/dev/null 2>&1 &
runner=$!

# code PID: mappings that can run, of the file and of nothing.
code() {
	awk '$2 ~ /x/ && $6 ~ /mmrace-child$/ { f++ }
		$2 ~ /x/ && $6 == "" { a++ }
		END { print f + 0 "/" a + 0 }' "/proc/$1/maps" 2>/dev/null
}
child() { pgrep -P "$1" | head -1; }

for _ in $(seq 100); do
	holder=$(pgrep -P $runner -f mmrace-child | head -1)
	super=${holder:+$(child "$holder")}
	main=${super:+$(child "$super")}
	[ -n "$main" ] && [ "$(code "$main")" != 0/1 ] && break
	sleep 0.02
done
[ "$(code "$holder")" = 0/1 ]
t_result $? "the holder runs from a copy ($(code "$holder"))"
[ "$(code "$super")" = 0/1 ]
t_result $? "so does the supervisor ($(code "$super"))"
[ "$(code "$main")" = 1/0 ]
t_result $? "a process of the case runs from the file ($(code "$main"))"
wait $runner
t_result $? 'and the case runs to its end'
t_done
