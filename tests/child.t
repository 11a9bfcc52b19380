#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# mmrace-child is freestanding: over the objects (not the executable, where nm
# -u prints nothing) only names that another of its objects defines, the four
# that a compiler may call by itself, and two that the linker defines.  Red
# when an op calls libc.

. "$(dirname "$0")/lib.sh"

ALLOW='^(memcpy|memset|memmove|memcmp)$'
LINKER='^(__executable_start|_end)$'

# foreign OBJECT...: undefined names that none of the objects defines.
foreign() {
	nm -u "$@" | awk 'NF == 2 { print $2 }' | sort -u >"$WORK/undefined"
	nm --defined-only -g "$@" | awk 'NF == 3 { print $3 }' |
		sort -u >"$WORK/defined"
	comm -23 "$WORK/undefined" "$WORK/defined"
}

# writable OBJECT...: variables at file scope that can change.
writable() {
	nm "$@" | awk 'NF == 3 && $2 ~ /^[bBdDCgGsS]$/ { print $3 }'
}

printf 'void *malloc(unsigned long);\nint n;\nvoid *f(void) { n++; return malloc(1); }\n' \
	>"$WORK/bad.c"
$CC -O1 -c -o "$WORK/bad.o" "$WORK/bad.c"
[ "$(foreign "$WORK/bad.o")" = malloc ]
t_result $? 'sample is caught: malloc'
[ "$(writable "$WORK/bad.o")" = n ]
t_result $? 'sample is caught: a variable at file scope'

objects=$(find "$BUILD/child" -name '*.o' 2>/dev/null)
if [ -z "$objects" ]; then
	t_result 1 "objects of mmrace-child in $BUILD/child"
	t_done
fi
# shellcheck disable=SC2086 # a list of files
foreign $objects | grep -Ev "$ALLOW|$LINKER" >"$WORK/foreign"
[ ! -s "$WORK/foreign" ]
t_result $? 'mmrace-child calls nothing but itself'
t_note 'foreign names:' "$WORK/foreign"
# shellcheck disable=SC2086
writable $objects >"$WORK/writable"
[ ! -s "$WORK/writable" ]
t_result $? 'mmrace-child has no variable at file scope'
t_note 'variables:' "$WORK/writable"
# The compiler's four are there too when it uses them.
grep -E "$ALLOW" "$WORK/undefined" | sort >"$WORK/used"
[ -z "$(comm -23 "$WORK/used" "$WORK/defined")" ]
t_result $? 'memcpy and the like are its own'
! readelf -lW "$BUILD/mmrace-child" | grep -Eq 'INTERP|TLS'
t_result $? 'mmrace-child is static and has no thread-local storage'
t_done
