# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What mmrace may change on a machine, as text: for tests that compare it before
# and after.  Source it after lib.sh.

# machine_state: settings, pools, areas, mounts, shared memory.
machine_state() {
	local f
	for f in /proc/sys/vm/nr_hugepages /proc/sys/vm/nr_overcommit_hugepages \
		/proc/sys/vm/hugetlb_optimize_vmemmap \
		/proc/sys/kernel/numa_balancing \
		/sys/kernel/mm/transparent_hugepage/{enabled,defrag,shmem_enabled} \
		/sys/kernel/mm/transparent_hugepage/khugepaged/{scan_sleep_millisecs,pages_to_scan} \
		/sys/kernel/mm/ksm/{run,sleep_millisecs,pages_to_scan} \
		/sys/module/zswap/parameters/enabled; do
		[ -r "$f" ] && echo "$f $(cat "$f")"
	done
	grep -E '^(HugePages_|SwapTotal)' /proc/meminfo
	cat /proc/swaps 2>/dev/null
	ls -d /sys/block/zram* /dev/*zram* /var/tmp/mmrace-swap 2>/dev/null
	cut -d ' ' -f 2 /proc/self/mounts | sort
	find /dev/shm -name '*mmrace*' 2>/dev/null
	tail -n +2 /proc/sysvipc/shm 2>/dev/null | awk '{ print $1, $2, $4 }'
}

# dead_groups: groups of engines that are no more, in any hierarchy; and what is
# still switched on for them.
dead_groups() {
	local d pid
	find /sys/fs/cgroup -type d -name 'mmrace-[0-9]*' 2>/dev/null |
		while read -r d; do
			pid=${d##*/mmrace-}
			kill -0 "$pid" 2>/dev/null || echo "$d"
		done
	cat /run/mmrace/settings 2>/dev/null
}

# new_dead BASE: of them those that were not there at the start.
new_dead() { dead_groups | grep -vxFf "$1"; }

# Where the kernel has lost its counts of huge pages it keeps pages that nobody
# has: the counts say nothing then.  The settings are compared all the same.
counts_lost() { # FILE: then, or now
	pool_is_broken || grep -q '^HugePages_Rsvd: *[0-9]\{19\}' "$1"
}
counted() { # FILE: the lines of standard input that say something
	if counts_lost "$1"; then
		grep -v '^HugePages_'
	else
		cat
	fi
}

# as_before FILE: the state is what FILE says and nothing is left.  Others may
# use mmrace on this machine at the same time; then it takes a moment.
as_before() {
	machine_state | counted "$1" | cmp -s - <(counted "$1" <"$1") &&
		[ -z "$(new_dead "$1.dead")" ]
}

# note_difference FILE: what differs from it, and what is left.
note_difference() {
	machine_state | counted "$1" |
		diff <(counted "$1" <"$1") - >"$WORK/diff"
	t_note 'differs:' "$WORK/diff"
	new_dead "$1.dead" >"$WORK/dead"
	t_note 'left:' "$WORK/dead"
}

# note_pool FILE: says so when that is the case.
note_pool() {
	counts_lost "$1" && t_note "counts of huge pages set aside: $POOL_BROKEN"
}
