/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a rendezvous starts, how long that takes on this host, and the offsets
 * that follow from it.  Engine side; any thread.
 */
#ifndef MMR_OPS_TIMING_H
#define MMR_OPS_TIMING_H

#include "calib.h"
#include "case.h"

/* What skew=auto stands for, ns. */
struct mmr_timing_range {
	int64_t lo, hi;
	int64_t aim_lo, aim_hi; /* where three of four rounds go */
};

/*
 * The range that skew=auto of this sync statement of c means here: from its own
 * side's end just before the others begin to its start just after the longest
 * of them ended, a tenth more on both sides.
 *
 * Its aim is narrower: there the first call of the own side and the first one
 * of the other overlap between the first eighth and the middle of each, by the
 * medians (a loop counts from its begin to its last eighth).  The other side
 * is the longest thread that has no offset at this rendezvous, else the
 * longest.  Where a thread waits for the end of a process, what counts is that
 * end and not the call that brings it about.
 */
void mmr_timing_bounds(const struct mmr_case *c, const struct mmr_stmt *sync,
		       struct mmr_timing_range *r);
/* Writes r in place of the auto v of sync statement s. */
void mmr_timing_put(struct mmr_stmt *s, struct mmr_value *v,
		    const struct mmr_timing_range *r);
/* A copy of c with these for each auto; NULL: no memory. */
struct mmr_case *mmr_timing_bound(const struct mmr_case *c);
/* c has a time that is drawn: a range, auto or log. */
bool mmr_timing_draws(const struct mmr_case *c);
/* c has a skew=auto, and the host never saw one of the operations that its
 * bounds follow from. */
bool mmr_timing_unknown(const struct mmr_case *c);
/* Takes what is unknown for known, with the prior, until it is measured: an
 * operation that does not come to be run is not looked for again and again. */
void mmr_timing_assume(const struct mmr_case *c);
/* The entry of the table that statement s of p belongs to; false: none. */
bool mmr_timing_key(const struct mmr_proc *p, const struct mmr_stmt *s,
		    struct mmr_calib_key *key);

#endif
