# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034 # variables are for the tests
#
# What the .t files share: TAP on standard output, a folder of their own that
# goes when they end, and the program under test.  Source it first:
#	. "$(dirname "$0")/../lib.sh"
# and end with t_done.

set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$TOP" || exit 99
BUILD=$TOP/${MMR_BUILD:-build/release}
MMRACE=${MMRACE:-$BUILD/mmrace}
CC=${MMR_CC:-gcc}
CLANG=${MMR_CLANG:-clang}
FLAGS=${MMR_FLAGS:--std=gnu17 -D_GNU_SOURCE -Wall}
LONG=${MMR_LONG:-}
WORK=$(mktemp -d "${TMPDIR:-/tmp}/mmrace-test.XXXXXX") || exit 99
trap 'rm -rf "$WORK"' EXIT
trap 'exit 99' INT TERM
export LC_ALL=C
OUT=$WORK/.out ERR=$WORK/.err RC=0
tests=0 failed=0

# t_result STATUS NAME: one TAP line; STATUS 0 is ok.
t_result() {
	tests=$((tests + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tests - $2"
	else
		failed=$((failed + 1))
		echo "not ok $tests - $2"
	fi
}

# t_ok NAME COMMAND...: the command succeeds.
t_ok() {
	local name=$1 rc
	shift
	"$@" >"$WORK/.log" 2>&1
	rc=$?
	t_result $rc "$name"
	[ $rc = 0 ] || t_note "exit $rc: $*" "$WORK/.log"
}

# t_not NAME COMMAND...: it fails, with an exit code and not by a signal.
t_not() {
	local name=$1 rc
	shift
	"$@" >"$WORK/.log" 2>&1
	rc=$?
	[ $rc -gt 0 ] && [ $rc -lt 126 ]
	t_result $? "$name"
}

t_skip() {
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

# t_note TEXT [FILE]: a comment, with the first lines of a file; nothing when
# the file is empty.
t_note() {
	[ $# -gt 1 ] && [ ! -s "$2" ] && return
	echo "# $1"
	[ $# -gt 1 ] && head -n 20 "$2" | sed 's/^/#   /'
}

# t_run COMMAND...: runs it with standard input closed off; RC, $OUT, $ERR.
t_run() {
	RAN="$*"
	"$@" >"$OUT" 2>"$ERR" </dev/null
	RC=$?
}

# t_rc NAME CODE: what t_run ran ended with this exit code.
t_rc() {
	[ "$RC" = "$2" ]
	t_result $? "$1"
	if [ "$RC" != "$2" ]; then
		t_note "exit $RC, not $2: $RAN"
		t_note 'standard output:' "$OUT"
		t_note 'standard error:' "$ERR"
	fi
}

# t_match NAME FILE REGEX: a line of the file matches (extended).
t_match() {
	grep -Eq -e "$3" "$2"
	local rc=$?
	t_result $rc "$1"
	[ $rc = 0 ] || t_note "no line matches /$3/ in:" "$2"
}

# t_same NAME FILE FILE: the same bytes.
t_same() {
	cmp -s "$2" "$3"
	local rc=$?
	t_result $rc "$1"
	if [ $rc != 0 ]; then
		diff -u "$2" "$3" >"$WORK/.diff" 2>&1
		t_note "$2 and $3 differ:" "$WORK/.diff"
	fi
}

# t_json NAME FILE: it is JSON; t_json_get FILE KEY[.KEY...] prints a value.
t_json() {
	t_ok "$1" "$BUILD/tools/json" "$2"
}

t_json_get() {
	"$BUILD/tools/json" "$1" "$2" 2>/dev/null
}

# eventually SECONDS COMMAND...: tries until it succeeds or the time is over.
# For what another process does in its own time; not a pause of fixed length.
eventually() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -ge $end ] && return 1
		sleep 0.1
	done
}

# running PROGRAM: how many processes run this file.
running() {
	find /proc -maxdepth 2 -path '/proc/[0-9]*/exe' -lname "$1" \
		2>/dev/null | wc -l
}
none_running() { [ "$(running "$1")" = 0 ]; }

is_root() { [ "$(id -u)" = 0 ]; }

# The kernel's count of reserved huge pages can fall below zero
# (corpus/open/hugetlb-truncate-noreserve.case).  From then on it frees no page of
# a pool that is made smaller, until a reboot: nothing can be said of pools that
# come back.
pool_is_broken() {
	awk '$1 == "HugePages_Rsvd:" && $2 > 2 ^ 62 { bad = 1 }
		END { exit !bad }' /proc/meminfo
}
POOL_BROKEN='this kernel lost count of its reserved huge pages: reboot it'

# find_guest: what --guest needs.  `kernel` is MMR_GUEST_KERNEL, else that of
# the lab, else an installed or downloaded one; `why`, when not empty, says what
# there is not.
find_guest() {
	local k
	kernel=${MMR_GUEST_KERNEL:-} why=
	for k in build/lab/bzImage-* /boot/vmlinuz-* \
		"${XDG_CACHE_HOME:-/var/cache}"/mmrace/vmlinuz-*amd64; do
		[ -z "$kernel" ] && [ -r "$k" ] && kernel=$k
	done
	command -v qemu-system-x86_64 >/dev/null 2>&1 ||
		why='no qemu-system-x86_64 (apt-get install qemu-system-x86)'
	[ -n "$kernel" ] || why='no kernel: make lab, or install linux-image-amd64'
	[ -x "$(dirname "$MMRACE")/guest-x86_64/mmrace" ] ||
		why='no static programs for guests: make guest'
}

# t_need_tool: without a built mmrace nothing here means anything.
t_need_tool() {
	if [ ! -x "$MMRACE" ]; then
		echo "Bail out! $MMRACE is not built"
		exit 99
	fi
	if [ ! -x "$BUILD/tools/json" ]; then
		echo "Bail out! tests want their tools: make check-build"
		exit 99
	fi
}

t_done() {
	echo "1..$tests"
	[ $failed = 0 ]
	exit
}
