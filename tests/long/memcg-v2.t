#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Memory cgroups under v2, in a guest: this machine may have v1.
#
# Red when: an operation on a group fails there, or a charge stays.

. "$(dirname "$0")/../lib.sh"
t_need_tool
KERNEL=${MMR_GUEST_KERNEL:-build/lab/bzImage-6.1}
if [ ! -e "$KERNEL" ] || [ ! -x "$BUILD/guest-x86_64/mmrace" ]; then
	t_skip 'memory cgroups under v2' 'needs make lab and make guest'
	t_done
fi
cat >"$WORK/v2.case" <<'CASE'
mmrace-case 1
needs   memcg
rounds  3 budget=20s
expect  restored memcg_charge

process kid template copies=2
  thread K
    m1 = mmap len=1M prot=rw flags=private|anon
    loop 3
      write m1 step=1p
    end

process main
  thread A
    cgroup_create a -> 0
    cgroup_create b -> 0
    cgroup_limit a 64M -> 0
    p0 = process_spawn kid
    cgroup_move p0 to=a -> 0|ESRCH
    cgroup_freeze a -> 0
    delay 2ms
    cgroup_thaw a -> 0
    cgroup_move p0 to=b -> 0|ESRCH
    cgroup_move to=b -> 0
    cgroup_reclaim b 64K -> 0|EAGAIN
    cgroup_move p0 to=home -> 0|ESRCH
    cgroup_move to=home -> 0
    process_reap p0
    cgroup_remove a -> 0|EBUSY
CASE
t_run "$MMRACE" replay --json --runs 1 --guest "$KERNEL" "$WORK/v2.case"
t_rc 'groups are made, limited, frozen, moved and removed under v2' 0
grep -q '"op": *"cgroup_create"' "$OUT"
t_result $? '... and the guest had them'
grep -Eq '"unexpected": *[1-9]' "$OUT"
[ $? = 1 ]
t_result $? '... and every call does so'
t_done
