/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Per-mm state of the planted liveness bugs (see mm/mmrace.c). */
#ifndef _LINUX_MMRACE_TYPES_H
#define _LINUX_MMRACE_TYPES_H
#include <linux/types.h>

struct mmrace_mm {
	/* b: munmap()s now running under the downgraded (read) lock */
	atomic_t	unmapping;
	unsigned long	un_start, un_end;	/* range of the newest one */
	unsigned long	stuck_addr;		/* page whose faults go nowhere */
	unsigned long	stuck_until;		/* jiffies */
	/* d: process_mrelease() reaping while exit_mmap() unmaps */
	atomic_t	reaping, exiting;
	int		raced;
};
#endif
