/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does what a case took come back?  The fields that the case names ("expect
 * restored FIELD"), and, for each case that uses the pool of huge pages, that
 * the kernel's counts of it do not fall below zero: no case may do that.
 */
#ifndef MMR_TRIAGE_RESTORED_H
#define MMR_TRIAGE_RESTORED_H

#include <stdbool.h>

#include "../ops/case.h"
#include "../ops/program.h"

#define MMR_RESTORED_MAX 16

struct mmr_restored {
	struct mmr_restored_field {
		const char *name; /* the case's */
		int64_t before;
	} fields[MMR_RESTORED_MAX];
	int nfields;
	bool watched;	  /* it uses the pool */
	int64_t reserved; /* HugePages_Rsvd before */
};

/* How much more than before a field of /proc/meminfo may be, in kB, as all
 * programs count in it; *less: how much less, as it counts what is free.  0: it
 * has to be what it was.  Any thread. */
int64_t mmr_restored_slack(const char *name, bool *less);

/* Notes what is there, before the case starts. */
void mmr_restored_note(struct mmr_restored *f, const struct mmr_case *c,
		       const struct mmr_outside *outside);

/* The name of what did not come back within 2 seconds, and a sentence in text;
 * NULL: all did, or nobody can say, as more than `targets` cases run.  A
 * count below zero is told apart from that: whoever else runs, it is a fault
 * of the kernel's. */
const char *mmr_restored_check(const struct mmr_restored *f,
			       const struct mmr_case *c,
			       const struct mmr_outside *outside, int targets,
			       char *text, size_t n);

#endif
