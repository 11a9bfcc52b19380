#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The same draws from gcc, clang and, where its compiler and emulator are, for
# arm64.  Red when one of them prints another table than the golden.
. "$(dirname "$0")/../lib.sh"

GOLDEN=$TOP/tests/golden/draws.txt

# NAME RUNNER COMPILER [FLAGS...]
same() {
	local name=$1 runner=$2
	shift 2
	"$@" -std=gnu17 -o "$WORK/draws" "$TOP/tests/tools/draws.c" &&
		$runner "$WORK/draws" >"$WORK/out"
	t_same "$name" "$GOLDEN" "$WORK/out"
}

have() {
	command -v "$1" >/dev/null 2>&1
}

arm=aarch64-linux-gnu-gcc
[ "$(uname -m)" = aarch64 ] && arm=none

same "$CC, -O2" "" $CC -O2
same "$CC, -O0" "" $CC -O0
if have "$CLANG"; then
	same "clang, -O3" "" "$CLANG" -O3
else
	t_skip "clang" "there is none"
fi
if have "$arm" && have qemu-aarch64; then
	same "arm64" qemu-aarch64 "$arm" -O2 -static
else
	t_skip "arm64" "needs gcc-aarch64-linux-gnu and qemu-user"
fi
t_done
