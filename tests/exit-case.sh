# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For tests that compare exits: source it after tests/lib.sh.

# exit_case SIZE ROUNDS [STATEMENT [TOUCH]]: a process that dies with SIZE
# touched, by writes or by the statement TOUCH, and STATEMENT after its mapping.
exit_case() {
	cat <<CASE
mmrace-case 1
title   exit of $1
rounds  $2

process kid template
  thread K
    m0 = mmap len=$1 prot=rw flags=private|anon
CASE
	[ -z "${3:-}" ] || echo "    $3"
	cat <<CASE
    ${4:-write m0 step=1p}
    signal up
    pause

process main
  thread A
    p0 = process_spawn kid
    wait up
    kill p0 KILL
    process_reap p0
CASE
}
