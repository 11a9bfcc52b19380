/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One permutation test of many figures of the same runs.
 *
 * Whole runs are dealt out to the two sides anew, with all that they measured,
 * so what the figures of a run share (a slow phase of the machine shows in all
 * of them) is the same in each deal.  The largest difference of a deal, in
 * units of its own error, is what chance does over all figures together; the
 * figures that stand out beyond it go, and the rest is judged by what the rest
 * does (Westfall and Young, Resampling-Based Multiple Testing, 1993, algorithm
 * 2.8 with the largest statistic).  The chance of any false alarm keeps to the
 * level as with Holm's correction, which knows nothing of what figures share
 * and so asks for more than is needed.
 */
#ifndef MMR_TRIAGE_COMPARE_DEAL_H
#define MMR_TRIAGE_COMPARE_DEAL_H

#include <stdint.h>

/* A figure that was measured in n runs. */
struct mmr_deal_test {
	const double *x;
	const int *run; /* of each x; those of side a are below na */
	int n;
	double stand;	 /* out: |difference of means| over its error */
	double p, p_all; /* out: by itself; corrected over all tests */
};

/*
 * Tests, two-sided, whether the sides differ: na runs against nb.  A side with
 * fewer than least values of a figure cannot differ in it, in any deal.  The
 * same key gives the same result.  p is 1 / (deals + 1) at least; deals: up to
 * 10,000, and not fewer than 2,000 when there is much to add up.  0 or
 * -ENOMEM.
 */
int mmr_deal(struct mmr_deal_test *tests, int ntests, int na, int nb, int least,
	     uint64_t key) __attribute__((warn_unused_result));

#endif
