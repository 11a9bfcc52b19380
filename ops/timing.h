/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a rendezvous starts, how long that takes on this host, and the offsets
 * that follow from it.  Engine side; any thread.
 */
#ifndef MMR_OPS_TIMING_H
#define MMR_OPS_TIMING_H

#include "calib.h"
#include "case.h"

/* The range that skew=auto of this sync statement of c means here: from its
 * own side's end just before the others begin to its start just after the
 * longest of them ended, a tenth more on both sides.  ns. */
void mmr_timing_bounds(const struct mmr_case *c, const struct mmr_stmt *sync,
		       int64_t *lo, int64_t *hi);
/* A copy of c with these ranges for each auto; NULL: no memory. */
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
