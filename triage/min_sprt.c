// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Wald's sequential probability ratio test: among all tests with the same
 * two errors it needs the fewest runs in the mean.
 *
 * A miss counts by the length of its run: for a run of the reference's length
 * it is the Bernoulli test, for short ones the Poisson one of two rates a
 * second, so that a candidate which fails less often a run, but whose runs
 * are over sooner, is judged by its failures a second.
 */
#include <math.h>

#include "min_search.h"

#define P_MAX 0.97 /* a rate of 1 is never known from a few runs */

void mmr_sprt_init(struct mmr_sprt *t, double p1, double p0, double alpha,
		   double beta)
{
	if (p1 > P_MAX)
		p1 = P_MAX;
	if (p0 > p1 / 1.6)
		p0 = p1 / 1.6;
	t->p0 = p0;
	t->p1 = p1;
	t->alpha = alpha;
	t->beta = beta;
	t->hit = log(p1 / p0);
	t->miss = log((1 - p1) / (1 - p0));
	t->accept = log((1 - beta) / alpha);
	t->reject = log(beta / (1 - alpha));
	t->l = 0;
	t->runs = 0;
	t->most = (uint64_t)(12 / (p1 - p0)) + 50;
}

void mmr_sprt_add(struct mmr_sprt *t, bool hit, double weight)
{
	t->runs++;
	t->l += hit ? t->hit : t->miss * weight;
}

int mmr_sprt_state(const struct mmr_sprt *t)
{
	if (t->l >= t->accept)
		return 1;
	if (t->l <= t->reject)
		return 0;
	return t->runs < t->most ? -1 : t->l > 0;
}

int mmr_sprt_least(const struct mmr_sprt *t)
{
	double up = ceil((t->accept - t->l) / t->hit);
	double down = ceil((t->reject - t->l) / t->miss);
	double n = up < down ? up : down;

	return n < 1 ? 1 : n < 1000 ? (int)n : 1000;
}
