#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a case expects: each expectation speaks where it must, and is silent
# about what the case permits.
#
# Red when: a limit below what the monitor sees is not held, waits for a CPU are
# held against a call, what was written is not what is read and nobody says so,
# or a race that the case permits is blamed.

. "$(dirname "$0")/../lib.sh"
t_need_tool

# speaks NAME CASE VERDICT, silent NAME CASE
run_case() {
	t_run "$MMRACE" replay --json --quiet --runs "${3:-1}" \
		--out "$WORK/out" "$2"
	if [ $RC = 4 ]; then
		t_skip "$1" "$(cat "$OUT" "$ERR" | tail -n 1)"
		return 1
	fi
}
speaks() {
	run_case "$1" "$2" || return
	t_rc "$1" 1
	t_match "... as $3" "$OUT" "\"verdict\": *\"$3\""
}
silent() {
	run_case "$1" "$2" "${3:-1}" || return
	t_rc "$1" 0
}

cat >"$WORK/late.case" <<'CASE'
mmrace-case 1
needs   memory>=1G
rounds  3 budget=20s
expect  call madvise within=5ms

process main
  thread A
    m0 = mmap len=128M prot=rw flags=private|anon
    madvise m0 nohugepage
    madvise m0 populate_write
CASE
speaks 'a call over a limit of 5 ms' "$WORK/late.case" long-syscall
sed 's/within=5ms/within=5s/' "$WORK/late.case" >"$WORK/intime.case"
silent 'the same call with time enough' "$WORK/intime.case"

cat >"$WORK/delay.case" <<'CASE'
mmrace-case 1
rounds  1 budget=5s
expect  call mprotect within=3ms

process main
  thread A cpu=0
    m0 = mmap len=4p prot=rw flags=private|anon
    write m0
    loop for=1s
      mprotect m0 prot=r
      mprotect m0 prot=rw
    end

process hog copies=6
  thread H cpu=0
    h0 = mmap len=4p prot=rw flags=private|anon
    loop for=1s
      write h0
    end
CASE
silent 'calls that only wait for a CPU' "$WORK/delay.case"

cat >"$WORK/exit.case" <<'CASE'
mmrace-case 1
needs   memory>=1G
rounds  3 budget=20s
expect  exit within=3ms

process main
  thread A
    m0 = mmap len=256M prot=rw flags=private|anon
    madvise m0 nohugepage
    write m0 step=1p
    exit_group
CASE
speaks 'an exit over a limit of 3 ms' "$WORK/exit.case" long-exit
sed 's/within=3ms/within=5s/' "$WORK/exit.case" >"$WORK/exit2.case"
silent 'the same exit with time enough' "$WORK/exit2.case"
t_done
