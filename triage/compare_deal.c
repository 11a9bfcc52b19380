// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs dealt out to two sides, again and again: see compare_deal.h. */
#include "compare_deal.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/rng.h"

#define MOST_DEALS 10000
#define LEAST_DEALS 2000
#define WORK 2e8 /* values added up in all deals, about */

struct deal {
	struct mmr_deal_test *tests;
	int ntests, na, nruns, least;
	struct mmr_rng rng;
	bool *in_b;    /* by run */
	int *runs;     /* in the order they are dealt out */
	int *order;    /* tests, the one that stands out most first */
	double *sum;   /* of all x of a test */
	double *error; /* of an x */
	double *stand; /* of a test, in this deal */
	int *alone;    /* deals where the test stood out as much */
	int *all;      /* where any of it and of those behind it did */
};

static void add_up(struct deal *d)
{
	for (int t = 0; t < d->ntests; t++) {
		const struct mmr_deal_test *test = &d->tests[t];
		double mean, square = 0;

		for (int i = 0; i < test->n; i++)
			d->sum[t] += test->x[i];
		mean = d->sum[t] / test->n;
		for (int i = 0; i < test->n; i++)
			square += (test->x[i] - mean) * (test->x[i] - mean);
		d->error[t] = test->n > 1 ? sqrt(square / (test->n - 1)) : 0;
	}
}

/* The error is the one that all values together have: it is the same in each
 * deal, and a deal cannot get a large result from a small error. */
static double stand_out(const struct deal *d, int t)
{
	const struct mmr_deal_test *test = &d->tests[t];
	double sum = 0, diff;
	int na, nb = 0;

	for (int i = 0; i < test->n; i++)
		if (d->in_b[test->run[i]]) {
			sum += test->x[i];
			nb++;
		}
	na = test->n - nb;
	/* All equal: what is left of the error is rounding. */
	if (na < d->least || nb < d->least ||
	    d->error[t] <= 1e-12 * fabs(d->sum[t]))
		return 0;
	diff = fabs(sum / nb - (d->sum[t] - sum) / na);
	return diff / d->error[t] / sqrt(1.0 / na + 1.0 / nb);
}

static void shuffle(struct deal *d)
{
	for (int i = 0; i < d->na; i++) {
		int j = i + (int)mmr_rng_below(mmr_rng_next(&d->rng),
					       (uint64_t)(d->nruns - i));
		int run = d->runs[j];

		d->runs[j] = d->runs[i];
		d->runs[i] = run;
	}
	for (int i = 0; i < d->nruns; i++)
		d->in_b[d->runs[i]] = i >= d->na;
}

static int by_stand(const void *a, const void *b, void *arg)
{
	const struct deal *d = arg;
	double x = d->tests[*(const int *)a].stand;
	double y = d->tests[*(const int *)b].stand;

	return x == y ? 0 : x > y ? -1 : 1;
}

static void count(struct deal *d)
{
	double most = 0;

	for (int t = 0; t < d->ntests; t++)
		d->stand[t] = stand_out(d, t);
	for (int i = d->ntests; i-- > 0;) {
		int t = d->order[i];
		/* Rounding must not tell equal differences apart. */
		double seen = d->tests[t].stand * (1 - 1e-9);

		most = fmax(most, d->stand[t]);
		d->alone[t] += d->stand[t] >= seen;
		d->all[t] += most >= seen;
	}
}

static int deals_for(const struct deal *d)
{
	double values = d->nruns;

	for (int t = 0; t < d->ntests; t++)
		values += d->tests[t].n;
	return (int)fmin(fmax(WORK / values, LEAST_DEALS), MOST_DEALS);
}

static void run_deals(struct deal *d)
{
	int deals = deals_for(d);
	double p = 0;

	add_up(d);
	for (int i = 0; i < d->nruns; i++) {
		d->runs[i] = i;
		d->in_b[i] = i >= d->na;
	}
	for (int t = 0; t < d->ntests; t++) {
		d->order[t] = t;
		d->tests[t].stand = stand_out(d, t);
	}
	qsort_r(d->order, (size_t)d->ntests, sizeof(*d->order), by_stand, d);
	for (int i = 0; i < deals; i++) {
		shuffle(d);
		count(d);
	}
	/* The deal as it was counts as one of them; who stands out less is not
	 * surer than who stands out more. */
	for (int i = 0; i < d->ntests; i++) {
		struct mmr_deal_test *t = &d->tests[d->order[i]];

		t->p = (d->alone[d->order[i]] + 1.0) / (deals + 1);
		p = fmax(p, (d->all[d->order[i]] + 1.0) / (deals + 1));
		t->p_all = p;
	}
}

int mmr_deal(struct mmr_deal_test *tests, int ntests, int na, int nb, int least,
	     uint64_t key)
{
	size_t n = (size_t)ntests + 1, runs = (size_t)(na + nb) + 1;
	struct deal d = {
		.tests = tests,
		.ntests = ntests,
		.na = na,
		.nruns = na + nb,
		.least = least,
		.rng = {.key = key},
		.in_b = calloc(runs, sizeof(*d.in_b)),
		.runs = calloc(runs, sizeof(*d.runs)),
		.order = calloc(n, sizeof(*d.order)),
		.sum = calloc(n, sizeof(*d.sum)),
		.error = calloc(n, sizeof(*d.error)),
		.stand = calloc(n, sizeof(*d.stand)),
		.alone = calloc(n, sizeof(*d.alone)),
		.all = calloc(n, sizeof(*d.all)),
	};
	int rc = -ENOMEM;

	if (d.in_b && d.runs && d.order && d.sum && d.error && d.stand &&
	    d.alone && d.all) {
		run_deals(&d);
		rc = 0;
	}
	free(d.in_b);
	free(d.runs);
	free(d.order);
	free(d.sum);
	free(d.error);
	free(d.stand);
	free(d.alone);
	free(d.all);
	return rc;
}
