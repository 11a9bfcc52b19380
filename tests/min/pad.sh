#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# pad.sh [-i] CASE: the case with 40 statements in 4 threads more that have
# nothing to do with it, on standard output; for trials of `mmrace min`.  With
# -i also one unrelated statement before each of its own.

set -eu
between=0
if [ "${1:-}" = -i ]; then
	between=1
	shift
fi
awk -v between=$between '
/^ *(#|$)/ { next }
/^(title|origin|seen) / { next }
# A statement: deeper than a thread line, and not the end of a loop.
between && /^    / && !/^ *end$/ {
	indent = $0
	sub(/[^ ].*/, "", indent)
	printf "%sdelay %dns\n", indent, 100 + ++n
}
{ print }
END {
	for (t = 1; t <= 4; t++) {
		printf "  thread pad%d\n", t
		printf "    x%d = mmap len=4p prot=rw flags=private|anon\n", t
		for (i = 1; i <= 4; i++) {
			printf "    write x%d step=1p\n", t
			printf "    madvise x%d dontneed\n", t
		}
		printf "    munmap x%d\n", t
	}
}' "$1"
