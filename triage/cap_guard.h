/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory cap where no cgroup can be made: a thread looks twenty times a
 * second, and when what cases hold together is more than the cap, or the
 * machine has nearly none left, the largest process of a case is killed, as
 * the OOM killer would.  Between two looks they may take some more.
 */
#ifndef MMR_TRIAGE_CAP_GUARD_H
#define MMR_TRIAGE_CAP_GUARD_H

#include <stdint.h>

/* Starts the thread.  bytes: what all processes that descend from this one may
 * hold of memory of their own (shared pages are not counted).  0 or -errno. */
int mmr_cap_guard_start(uint64_t bytes) __attribute__((warn_unused_result));
/* Ends it, when it runs. */
void mmr_cap_guard_stop(void);
/* Processes that it killed so far.  Any thread. */
uint64_t mmr_cap_guard_kills(void);

#endif
