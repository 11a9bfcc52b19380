#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What only tells: ops, doctor, show, status; in text and in JSON.

. "$(dirname "$0")/../lib.sh"
t_need_tool

t_run "$MMRACE" ops
t_rc 'ops' 0
cp "$OUT" "$WORK/ops"
sed -n 's/^MMR_OP([0-9]*, \([a-z_]*\),.*/\1/p' ops/ops.def >"$WORK/defined"
while read -r op; do
	grep -Eq "^ *$op( |\$)" "$WORK/ops" || echo "$op"
	"$MMRACE" ops "$op" >"$WORK/one" 2>&1 && grep -q "$op" "$WORK/one" ||
		echo "ops $op"
done <"$WORK/defined" >"$WORK/missing"
[ ! -s "$WORK/missing" ] && [ -s "$WORK/defined" ]
t_result $? 'ops lists and describes all of ops.def'
t_note 'missing:' "$WORK/missing"
t_run "$MMRACE" ops --json
t_rc 'ops --json' 0
t_json 'ops --json: JSON' "$OUT"
# What public reports of stalls and races needed: each is there, with its
# arguments, what it needs, and the calls that it makes.
reports='write read exit_group kill process_reap thread_spawn thread_join mmap
munmap process_spawn cgroup_create cgroup_limit cgroup_freeze cgroup_remove
madvise ftruncate fallocate memfd_create swapon swapoff mremap set_number
set_mode migrate_pages userfaultfd uffd_register uffd_copy uffd_zeropage
uffd_continue uffd_move uffd_wake uffd_read close proc_open proc_read
clear_refs mprotect mbind set_mempolicy move_pages mem_write compact_memory
mlock munlock mlockall robust_own robust_await pidfd_open process_mrelease
process_madvise membarrier'
sed 's/{"id":/\n&/g' "$OUT" >"$WORK/each"
for op in $reports; do
	grep -E "\"name\":\"$op\",\"help\":" "$WORK/each" |
		grep -E '"race":"' | grep -E '"calls":"' | grep -E '"needs":' |
		grep -Eq '"args":\[' || echo "$op"
done >"$WORK/missing"
[ ! -s "$WORK/missing" ]
t_result $? 'what reports needed is there'
t_note 'missing:' "$WORK/missing"
t_run "$MMRACE" ops mmap --json
t_rc 'ops mmap --json' 0
t_json 'ops mmap --json: JSON' "$OUT"
t_run "$MMRACE" ops frobnicate
t_rc 'ops of an unknown one: exit 2' 2

t_run "$MMRACE" doctor
t_rc 'doctor' 0
t_match 'doctor tells the kernel' "$OUT" "$(uname -r | sed 's/[.+]/./g')"
t_match 'doctor tells the CPUs' "$OUT" 'CPU'
t_run "$MMRACE" doctor --json
t_rc 'doctor --json' 0
t_json 'doctor --json: JSON' "$OUT"

for f in tests/canary/*.case; do
	t_run "$MMRACE" show "$f"
	t_rc "show $(basename "$f")" 0
done
t_run "$MMRACE" show --json "$f"
t_rc 'show --json' 0
t_json 'show --json: JSON' "$OUT"
t_run "$MMRACE" status "$WORK/nowhere"
t_rc 'status of no folder: exit 2' 2

# Generated pages and the ones by hand.
if command -v man >/dev/null; then
	docs/ops-page.sh "$MMRACE" >"$WORK/ops.7"
	for page in docs/mmrace.1 docs/mmrace-case.5 "$WORK/ops.7"; do
		LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" \
			>"$WORK/page" 2>"$WORK/page.err" </dev/null
		[ -s "$WORK/page" ] && [ ! -s "$WORK/page.err" ]
		rc=$?
		t_result $rc "$(basename "$page") formats without a warning"
		[ $rc = 0 ] || t_note 'warnings:' "$WORK/page.err"
	done
else
	t_skip 'manual pages' 'no man here'
fi
for command in soak gen replay min export show ops status doctor; do
	t_match "mmrace.1 tells $command" docs/mmrace.1 "$command"
done
t_done
