/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks the running kernel whether it has what one need names.  Any thread.
 */
#ifndef MMR_OPS_NEED_PROBE_H
#define MMR_OPS_NEED_PROBE_H

#include "case.h"

/*
 * 0: the machine has it; -ENOTSUP: text holds one sentence that says what is
 * missing and, where something can be done, what ("needs 2 NUMA nodes with
 * memory, this machine has 1").  With may_set, what can be made by changing a
 * setting counts as there (the caller changes it).
 */
int mmr_need_ask(const struct mmr_need *need, bool may_set, char *text,
		 size_t n);
/* The same where no setting may be changed. */
int mmr_need_probe(const struct mmr_need *need, char *text, size_t n);

/* Writes such a sentence to text and returns -ENOTSUP. */
int mmr_need_missing(char *text, size_t n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A number of /proc/meminfo, in its unit there; INT64_MIN when it has no such
 * field.  A count that fell below 0 (a kernel's fault; it was seen of
 * HugePages_Rsvd) is below 0 here. */
int64_t mmr_need_meminfo(const char *field);

/* Probes one system call by name as `needs` and descriptors write it
 * ("process_mrelease").  0, -ENOSYS, -EPERM (seccomp), -EINVAL unknown. */
int mmr_syscall_probe(const char *name);
/* True when the name of a cap, nocap, syscall or arch need is one that
 * mmrace knows; the parser rejects others.  Asks nothing of the kernel. */
bool mmr_need_known(const struct mmr_need *need);
/* "CAP_SYS_NICE" -> its number, -1 unknown. */
int mmr_cap_number(const char *name);

#endif
