/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks the running kernel whether it can run a case.
 */
#ifndef MMR_OPS_NEEDS_H
#define MMR_OPS_NEEDS_H

#include "case.h"

/*
 * Checks the case's needs lines and what its ops need.  0: all met;
 * -ENOTSUP: text holds one sentence that says what is missing and, where
 * something can be done, what ("needs 2 NUMA nodes with memory, this machine
 * has 1").  With may_set, hugepages>=N counts as met when the pool could be
 * raised to it (the caller raises it).  Any thread.
 */
int mmr_needs_check(const struct mmr_case *c, bool may_set, char *text,
		    size_t n);
/* The same for one need; for doctor. */
int mmr_need_probe(const struct mmr_need *need, char *text, size_t n);
/* Probes one system call by name as `needs` and descriptors write it
 * ("process_mrelease").  0, -ENOSYS, -EPERM (seccomp), -EINVAL unknown. */
int mmr_syscall_probe(const char *name);
/* True when the name of a cap, nocap, syscall or arch need is one that
 * mmrace knows; the parser rejects others.  Asks nothing of the kernel. */
bool mmr_need_known(const struct mmr_need *need);
/* "CAP_SYS_NICE" -> its number, -1 unknown. */
int mmr_cap_number(const char *name);

#endif
