// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does a rate stand still while it is measured?  Failures of chance depend on
 * what else a machine does: which thread starts first, and how late.  An
 * interval that takes all runs for draws from one urn is too narrow then; this
 * finds that out from the runs themselves.
 */
#include <string.h>

#include "stat.h"

#define LEAST_SIZE 4 /* runs a part, below it a part says nothing */
#define LEAST_PARTS 8
#define NORMAL_975 1.959964

/* Neighbours become one part of twice the length. */
static void merge(struct mmr_stat_spread *s)
{
	int i;

	for (i = 0; i < MMR_STAT_PARTS / 2; i++) {
		s->runs[i] = s->runs[2 * i] + s->runs[2 * i + 1];
		s->hits[i] = s->hits[2 * i] + s->hits[2 * i + 1];
	}
	memset(s->runs + i, 0, (size_t)i * sizeof(*s->runs));
	memset(s->hits + i, 0, (size_t)i * sizeof(*s->hits));
	s->n = i;
	s->size *= 2;
}

void mmr_stat_spread_add(struct mmr_stat_spread *s, bool hit)
{
	if (!s->n) {
		s->size = 1;
		s->n = 1;
	} else if (s->runs[s->n - 1] == s->size) {
		if (s->n == MMR_STAT_PARTS)
			merge(s);
		s->n++;
	}
	s->runs[s->n - 1]++;
	s->hits[s->n - 1] += hit;
}

/* Pearson's chi square of the full parts over its degrees of freedom. */
double mmr_stat_spread_factor(const struct mmr_stat_spread *s)
{
	int i, n = s->n && s->runs[s->n - 1] < s->size ? s->n - 1 : s->n;
	double runs = (double)n * (double)s->size, hits = 0, sum = 0, p;

	if (s->size < LEAST_SIZE || n < LEAST_PARTS)
		return 0;
	for (i = 0; i < n; i++)
		hits += (double)s->hits[i];
	p = hits / runs;
	if (!(p > 0 && p < 1))
		return 0;
	for (i = 0; i < n; i++) {
		double off = (double)s->hits[i] - p * (double)s->size;

		sum += off * off;
	}
	return sum / ((double)s->size * p * (1 - p)) / (n - 1);
}

/* Student's t at 97.5 % (Cornish and Fisher's series): within 0.4 % from 7
 * degrees of freedom on. */
static double student(double df)
{
	double z = NORMAL_975, z3 = z * z * z, z5 = z3 * z * z;

	return z + (z3 + z) / (4 * df) +
	       (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df);
}

double mmr_stat_weight(const struct mmr_stat_spread *s)
{
	double f = mmr_stat_spread_factor(s), t;

	if (f <= 1)
		return 1;
	t = student(s->n > 1 ? s->n - 1 : 1);
	return NORMAL_975 * NORMAL_975 / (t * t) / f;
}
