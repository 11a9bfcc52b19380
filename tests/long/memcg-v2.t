#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Memory cgroups under v2, in a guest: this machine may have v1.
#
# Red when: an operation on a group fails there, or a charge stays.

. "$(dirname "$0")/../lib.sh"
t_need_tool
find_guest
if [ -n "$why" ]; then
	t_skip 'memory cgroups under v2' "$why"
	t_done
fi
t_run "$MMRACE" replay --json --runs 1 --guest "$kernel" tests/cli/memcg.case
t_rc 'groups are made, limited, frozen, moved and removed under v2' 0
grep -q '"op": *"cgroup_create"' "$OUT"
t_result $? '... and the guest had them'
grep -Eq '"unexpected": *[1-9]' "$OUT"
[ $? = 1 ]
t_result $? '... and every call does so'
t_done
