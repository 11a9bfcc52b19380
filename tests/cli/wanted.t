#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What public reports of stalls and races in memory management needed (counted
# over 76 of them), row by row: each can be said in a case, and each operation of
# the row has arguments, calls and, where it needs something, needs.
#
# Red when: an operation or one of its names goes, or is not described.

. "$(dirname "$0")/../lib.sh"
t_need_tool

"$MMRACE" ops --json >"$WORK/ops.json"
t_json 'mmrace ops --json' "$WORK/ops.json"
t_run "$MMRACE" ops
cut -d ' ' -f 1 "$OUT" >"$WORK/names"

# Of the parts of an operation's own text: its line of calls, or that it makes
# none because it only touches memory.
described() {
	"$MMRACE" ops "$1" >"$WORK/op"
	grep -q '^    calls  *[a-z-]' "$WORK/op" &&
		grep -q '^    race  *[A-Za-z]' "$WORK/op"
}

# row NAME, statements on standard input.  Refs that nothing makes are warned
# of: that is all right here.
row() {
	local op
	{
		printf 'mmrace-case 1\n\nprocess main\n  thread A\n'
		sed 's/^/    /'
		printf '\nprocess kid template copies=1000\n  thread K\n'
		printf '    pause\n  thread T template\n    write m0\n'
	} >"$WORK/row.case"
	t_ok "$1" "$MMRACE" show "$WORK/row.case"
	sed -n '5,/^$/p' "$WORK/row.case" | sed 's/^ *\([a-z]*[0-9] = \)*//' |
		cut -d ' ' -f 1 | sort -u >"$WORK/used"
	for op in $(grep -vx 'loop\|end' "$WORK/used"); do
		grep -qx "$op" "$WORK/names" && described "$op" && continue
		t_result 1 "$1: $op is described"
	done
}

row 'write: per byte, per page, stride, random, across a page border' <<'E'
write m0
write m0 step=1p
write m0 step=3000
write m0 step=1p order=rand
write m0 off=4093 width=8 len=8
E
row 'exit, exit_group, kill and timed reap' <<'E'
p0 = process_spawn kid
kill p0 KILL
kill p0 ABRT
process_reap p0
exit_group
exit_group status=3
E
row 'threads that come and go' <<'E'
t0 = thread_spawn body=idle
thread_join t0
move_threads
E
row 'munmap: whole, part, neighbour' <<'E'
munmap m0
munmap m0 off=1p len=1p
munmap m0 off=3p
E
row 'mmap anonymous: kinds, sizes, addresses' <<'E'
m0 = mmap len=1p prot=rw flags=private|anon
m1 = mmap len=1p prot=none flags=shared|anon
m2 = mmap len=16384G prot=rw flags=private|anon|noreserve
m3 = mmap len=4p prot=rw flags=private|anon at=1G
m3 = mmap len=4p prot=rw flags=private|anon|fixed at=1G
m3 = mmap len=4p prot=rw flags=private|anon|fixed_noreplace at=1G
E
row 'huge pages of a pool: kinds, files, alignment' <<'E'
set_number nr_hugepages 4
set_number nr_overcommit_hugepages 3
m0 = mmap len=4h prot=rw flags=private|anon|hugetlb
f0 = memfd_create flags=hugetlb
ftruncate f0 len=1G
m1 = mmap len=1G prot=rw flags=shared fd=f0 at=1G
m2 = mmap len=1G prot=rw flags=private fd=f0 at=2050M
m3 = mmap len=513p prot=rw flags=private|anon|hugetlb huge=2m
E
row 'read' <<'E'
read m0
read m0 step=1p order=rand
E
row 'fork: many children that sleep, touch, exit; two processes, one memory' <<'E'
p0 = process_spawn idle
p1 = process_spawn kid
p2 = process_spawn kid fresh
p3 = process_spawn kid vm
E
row 'memory cgroup: limit, freeze, OOM kill, removal' <<'E'
cgroup_create a
cgroup_limit a 8M
cgroup_limit a 8M of=swap
cgroup_freeze a
cgroup_thaw a
cgroup_move p0 to=a
cgroup_move to=home
cgroup_reclaim a 1M
cgroup_remove a
E
for advice in dontneed free remove cold pageout willneed collapse \
	populate_read populate_write hugepage nohugepage mergeable \
	soft_offline dontfork guard_install guard_remove; do
	echo "madvise m0 $advice"
	echo "madvise m0 $advice off=1p len=2p"
done >"$WORK/advice"
row 'madvise, all advice, whole and part' <"$WORK/advice"
row 'files and memfds: private, shared, executable, cut, holes' <<'E'
f0 = memfd_create
ftruncate f0 len=16p
m0 = mmap len=16p prot=rw flags=shared fd=f0
m1 = mmap len=16p prot=rx flags=private fd=f0
m2 = mmap len=4p prot=r flags=shared fd=f0 foff=2p
ftruncate f0 len=0
fallocate f0 mode=keep_size|punch_hole off=2p len=1p
remap_file_pages m0 pgoff=1
msync m0 flags=sync
mincore m0
close f0
E
row 'swap and zswap' <<'E'
madvise m0 pageout
swapoff
swapon
set_number zswap_enabled 1
E
row 'mremap: may move, fixed, dontunmap, aligned and not, over borders' <<'E'
m0 = mremap m0 flags=maymove
m0 = mremap m0 new=8p flags=maymove|fixed at=1G
m1 = mremap m0 flags=maymove|dontunmap
m0 = mremap m0 off=1p len=2p flags=maymove|fixed at=2050M
E
row 'pools and huge page settings' <<'E'
set_number nr_hugepages 0
set_number nr_overcommit_hugepages 8
set_number hugetlb_optimize_vmemmap 1
set_mode thp_enabled always
set_mode thp_defrag defer
E
row 'migrate_pages: self or child, both ways, without CAP_SYS_NICE' <<'E'
migrate_pages from=n0 to=n1
migrate_pages p0 from=n1 to=n0
drop_cap sys_nice
E
row 'userfaultfd: all modes and answers, or none' <<'E'
u0 = userfaultfd flags=user_mode_only
u1 = userfaultfd features=move|event_fork
uffd_register u0 m0 mode=missing
uffd_register u0 m0 mode=wp
uffd_register u0 m0 mode=minor
e0 = uffd_read u0 within=20ms
uffd_copy u0 m0 from=m1
uffd_zeropage u0 m0
uffd_continue u0 m0
uffd_move u0 m0 from=m1
uffd_poison u0 m0
uffd_writeprotect u0 m0 mode=wp
uffd_wake u0 m0
uffd_unregister u0 m0
close u0
E
row 'core dump with many mappings' <<'E'
setrlimit core 64M
kill p0 ABRT
E
row '/proc: read, clear_refs written' <<'E'
c0 = proc_open maps
c1 = proc_open smaps p=p0
c2 = proc_open smaps_rollup
c3 = proc_open numa_maps
c4 = proc_open clear_refs
c5 = proc_open pagemap
proc_read c0
clear_refs c4 soft_dirty
pagemap_read c5 m0
E
row 'mprotect: whole, part' <<'E'
mprotect m0 prot=r
mprotect m0 prot=rw off=1p len=1p
E
row 'growsdown, and a touch below' <<'E'
g0 = mmap len=1p prot=rw flags=private|anon|growsdown
write g0 below=512K
E
row 'mbind, set_mempolicy, move_pages' <<'E'
mbind m0 mode=bind nodes=n0|n1 flags=strict|move
mbind m0 mode=interleave nodes=n0 flags=move_all
set_mempolicy mode=preferred nodes=n1
move_pages m0 to=1
move_pages p=p0 m0 to=0 flags=move_all
E
row '/proc/self/mem, onto a read-only mapping' <<'E'
c0 = proc_open mem
mem_write c0 m0
mem_read c0 m0
E
row 'compaction, NUMA balancing, KSM' <<'E'
compact_memory
set_number numa_balancing 1
set_number ksm_run 1
madvise m0 unmergeable
E
row 'populate, locks, robust futexes, reaping, remote advice, barriers' <<'E'
m0 = mmap len=8p prot=rw flags=private|anon|populate
mlock m0
mlock2 m0 flags=onfault
munlock m0
mlockall flags=current|future
munlockall
robust_own m0 lock
robust_await lock
d0 = pidfd_open p0
process_mrelease d0
process_madvise p0 m0 cold
membarrier private_expedited
E
row 'futex: wait, wake, requeue, priority inheritance' <<'E'
futex_wait w
futex_wake w count=2
futex_requeue w v
futex_lock_pi l
futex_unlock_pi l
E
row 'io_uring: registered buffers at exit' <<'E'
r0 = io_uring_setup
io_uring_register r0 m0
io_uring_unregister r0
E
row 'delays of 0 to 300 us, of a grace period, and none' <<'E'
delay 0..300us
nanosleep 10ms..200ms
sync s skew=-20us..200us
E
t_done
