/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory cgroups of a case (needs memcg): a folder below the group with the
 * caps, where its statements make and remove groups.  It goes with the run; if
 * mmrace is killed, with the groups of the dead engine at the next start.
 */
#ifndef MMR_TRIAGE_MEMCG_H
#define MMR_TRIAGE_MEMCG_H

#include "../ops/program.h"

/* Makes the folder of a run, and tells the program.  0, or -errno with a
 * sentence.  Any thread. */
int mmr_memcg_make(struct mmr_outside *o, char *text, size_t n)
	__attribute__((warn_unused_result));
/* Nobody frozen in it stays so: a frozen task of v1 cannot be killed. */
void mmr_memcg_thaw(const struct mmr_outside *o);
/* Bytes charged to it and all below, -1 unknown. */
int64_t mmr_memcg_charge(const struct mmr_outside *o);
/* Removes it with all groups below; waits a moment for the last tasks. */
void mmr_memcg_remove(struct mmr_outside *o);

#endif
