// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Comparing runs.  For each kind of call a run is one number, the logarithm
 * of its median and of its p99: durations are compared as ratios.  (The mean
 * is shown and not tested: a burst in one run of forty calls moves it by more
 * than the changes that are looked for.)
 *
 *   permutation   the runs of both sides are dealt out anew; how often is the
 *                 largest difference of averages, of all kinds, as large?
 *   bootstrap     the runs of each side are drawn with replacement 2,000
 *                 times; where do 95 % of the ratios lie?
 */
#include "compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/rng.h"
#include "compare_deal.h"
#include "stat.h"

#define DRAWS 2000
#define CLIPPED 10 /* a tenth at either end */
#define MANY 200   /* runs a side: the normal distribution does */
#define MARGIN 1.1 /* within it, either way, is the same */

/* The numbers of one kind: those of side a first. */
struct sample {
	double *x;
	int *run;
	int na, nb;
};

const char *mmr_compare_name(enum mmr_compare_word w)
{
	static const char *const names[] = {"cannot tell", "same", "faster",
					    "slower"};

	return (unsigned int)w < 4 ? names[w] : "?";
}

/* Adds this side's runs; before: those of the other side. */
static void gather(const struct mmr_record_side *side, int kind,
		   enum mmr_figure f, int before, struct sample *s)
{
	for (int i = 0; i < side->nruns; i++) {
		const struct mmr_record_run *run = &side->runs[i];

		for (int k = 0; k < run->nparts; k++) {
			if (run->parts[k].kind != kind)
				continue;
			/* No duration is 0; the clock may say so. */
			s->x[s->na + s->nb] =
				log(fmax(run->parts[k].figure[f], 1));
			s->run[s->na + s->nb] = before + i;
			*(before ? &s->nb : &s->na) += 1;
		}
	}
}

static double mean_of(const double *x, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += x[i];
	return n ? sum / n : 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double drawn_mean(const double *x, int n, struct mmr_rng *rng)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += x[mmr_rng_below(mmr_rng_next(rng), (uint64_t)n)];
	return sum / n;
}

/* Squared error of the mean. */
static double error_of(const double *x, int n)
{
	double mean = mean_of(x, n), sum = 0;

	for (int i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sum / (n - 1) / n;
}

static void bootstrap(const struct sample *s, uint64_t key,
		      struct mmr_compare_figure *f)
{
	double d[DRAWS], half;
	struct mmr_rng rng = {.key = key};

	if (s->na >= MANY && s->nb >= MANY) {
		f->ratio = exp(mean_of(s->x + s->na, s->nb) -
			       mean_of(s->x, s->na));
		half = 1.96 * sqrt(error_of(s->x, s->na) +
				   error_of(s->x + s->na, s->nb));
		f->lo = f->ratio * exp(-half);
		f->hi = f->ratio * exp(half);
		return;
	}
	f->ratio = exp(mean_of(s->x + s->na, s->nb) - mean_of(s->x, s->na));
	for (int i = 0; i < DRAWS; i++)
		d[i] = drawn_mean(s->x + s->na, s->nb, &rng) -
		       drawn_mean(s->x, s->na, &rng);
	qsort(d, DRAWS, sizeof(d[0]), by_value);
	f->lo = exp(d[DRAWS / 40]);
	f->hi = exp(d[DRAWS - 1 - DRAWS / 40]);
}

/*
 * Runs among the outer tenths of both sides together count as what is just
 * within them: one that met a burst must not hide what all the others say.
 * Which they are does not depend on the sides, so that the permutation test
 * stays exact.
 */
static void clip(const struct sample *s, double *sorted)
{
	int n = s->na + s->nb, cut = n / CLIPPED;

	memcpy(sorted, s->x, (size_t)n * sizeof(*sorted));
	qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
	for (int i = 0; i < n; i++)
		s->x[i] = fmin(fmax(s->x[i], sorted[cut]), sorted[n - 1 - cut]);
}

/* What the tests are of; the numbers stay until they are done. */
struct pool {
	double *x, *sorted;
	int *run, n;
	struct mmr_deal_test *tests; /* two a kind: median, p99 */
	int ntests;
};

static void compare_kind(const struct mmr_record_side *a, int ka,
			 const struct mmr_record_side *b, int kb,
			 struct pool *pool, struct mmr_compare_kind *out)
{
	uint64_t key = mmr_rng_key_str(0, a->kinds[ka].name);

	memset(out, 0, sizeof(*out));
	out->name = a->kinds[ka].name;
	out->runs_a = a->kinds[ka].runs;
	out->runs_b = b->kinds[kb].runs;
	out->calls_a = a->kinds[ka].hist.n;
	out->calls_b = b->kinds[kb].hist.n;
	for (int f = 0; f < MMR_FIGURES; f++) {
		struct mmr_compare_figure *fig = &out->figure[f];
		struct sample s = {
			.x = pool->x + pool->n,
			.run = pool->run + pool->n,
		};

		fig->a = mmr_figure_of(&a->kinds[ka].hist, f);
		fig->b = mmr_figure_of(&b->kinds[kb].hist, f);
		gather(a, ka, f, 0, &s);
		gather(b, kb, f, a->nruns, &s);
		if (f == MMR_FIGURE_P50)
			clip(&s, pool->sorted);
		bootstrap(&s, mmr_rng_key(key, (uint64_t)f), fig);
		if (f != MMR_FIGURE_P50 && f != MMR_FIGURE_P99)
			continue;
		pool->tests[pool->ntests++] = (struct mmr_deal_test){
			.x = s.x, .run = s.run, .n = s.na + s.nb};
		pool->n += s.na + s.nb;
	}
}

static void decide(struct mmr_compare_kind *k,
		   const struct mmr_deal_test *typical,
		   const struct mmr_deal_test *tail)
{
	/* Of equal ones the median: it says more than a few calls of the
	 * tail. */
	bool in_tail = tail->p_all < typical->p_all;
	const struct mmr_compare_figure *f =
		&k->figure[in_tail ? MMR_FIGURE_P99 : MMR_FIGURE_P50];

	k->p_typical = typical->p;
	k->p_tail = tail->p;
	k->p_all = fmin(typical->p_all, tail->p_all);
	if (k->p_all <= MMR_COMPARE_LEVEL) {
		k->word =
			f->ratio > 1 ? MMR_COMPARE_SLOWER : MMR_COMPARE_FASTER;
		k->in_tail = in_tail;
		return;
	}
	f = &k->figure[MMR_FIGURE_P50];
	if (k->runs_a >= MMR_COMPARE_RUNS && k->runs_b >= MMR_COMPARE_RUNS &&
	    f->lo > 1 / MARGIN && f->hi < MARGIN)
		k->word = MMR_COMPARE_SAME;
}

static void pool_free(struct pool *p)
{
	free(p->x);
	free(p->sorted);
	free(p->run);
	free(p->tests);
}

static int pool_new(struct pool *p, const struct mmr_record_side *a,
		    const struct mmr_record_side *b)
{
	/* A figure more than the two that are tested. */
	size_t runs = (size_t)(a->nruns + b->nruns) + 1, n = runs;

	for (int i = 0; i < a->nkinds; i++)
		n += 2 * (size_t)a->kinds[i].runs;
	for (int i = 0; i < b->nkinds; i++)
		n += 2 * (size_t)b->kinds[i].runs;
	memset(p, 0, sizeof(*p));
	p->x = malloc(n * sizeof(*p->x));
	p->run = malloc(n * sizeof(*p->run));
	p->sorted = malloc(runs * sizeof(*p->sorted));
	p->tests = calloc(2 * (size_t)a->nkinds + 1, sizeof(*p->tests));
	if (p->x && p->run && p->sorted && p->tests)
		return 0;
	pool_free(p);
	return -ENOMEM;
}

static int compare_times(const struct mmr_record_side *a,
			 const struct mmr_record_side *b,
			 struct mmr_compare *out)
{
	struct pool pool;
	int rc = pool_new(&pool, a, b);

	if (rc)
		return rc;
	for (int i = 0; i < a->nkinds; i++)
		for (int j = 0; j < b->nkinds; j++)
			if (!strcmp(a->kinds[i].name, b->kinds[j].name))
				compare_kind(a, i, b, j, &pool,
					     &out->kinds[out->nkinds++]);
	rc = mmr_deal(pool.tests, pool.ntests, a->nruns, b->nruns,
		      MMR_COMPARE_RUNS, mmr_rng_key_str(0, "deals"));
	for (int i = 0; !rc && i < out->nkinds; i++) {
		struct mmr_compare_kind *k = &out->kinds[i];

		decide(k, &pool.tests[2 * i], &pool.tests[2 * i + 1]);
		out->differs |= k->word == MMR_COMPARE_SLOWER ||
				k->word == MMR_COMPARE_FASTER;
	}
	pool_free(&pool);
	return rc;
}

/* log of n choose k. */
static double choose(uint64_t n, uint64_t k)
{
	return lgamma((double)n + 1) - lgamma((double)k + 1) -
	       lgamma((double)(n - k) + 1);
}

double mmr_compare_fisher(uint64_t ka, uint64_t na, uint64_t kb, uint64_t nb)
{
	uint64_t k = ka + kb, lo = k > nb ? k - nb : 0, hi = k < na ? k : na;
	double all = choose(na + nb, k), p = 0;
	double seen = choose(na, ka) + choose(nb, kb) - all;

	for (uint64_t i = lo; i <= hi; i++) {
		double l = choose(na, i) + choose(nb, k - i) - all;

		if (l <= seen + 1e-7)
			p += exp(l);
	}
	return p < 1 ? p : 1;
}

static uint64_t with_verdict(const struct mmr_record_side *s, const char *name)
{
	uint64_t n = 0;

	for (int i = 0; i < s->nruns; i++)
		n += !strcmp(s->runs[i].verdict, name);
	return n;
}

static void compare_rates(const struct mmr_record_side *a,
			  const struct mmr_record_side *b,
			  struct mmr_compare *out)
{
	uint64_t na = (uint64_t)a->nruns, nb = (uint64_t)b->nruns;

	for (int v = 0; v < MMR_VERDICTS; v++) {
		struct mmr_compare_rate *r = &out->rates[out->nrates];

		if (!mmr_verdict_is_hit(v))
			continue;
		r->verdict = mmr_verdict_name(v);
		r->a = with_verdict(a, r->verdict);
		r->b = with_verdict(b, r->verdict);
		if (!r->a && !r->b)
			continue;
		mmr_stat_interval(r->a, na, 0.95, &r->lo_a, &r->hi_a);
		mmr_stat_interval(r->b, nb, 0.95, &r->lo_b, &r->hi_b);
		r->p = mmr_compare_fisher(r->a, na, r->b, nb);
		out->nrates++;
	}
	for (int i = 0; i < out->nrates; i++) {
		/* Bonferroni does for a handful. */
		out->rates[i].differs =
			out->rates[i].p * out->nrates <= MMR_COMPARE_LEVEL;
		out->differs |= out->rates[i].differs;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct mmr_compare_kind *)a)->name,
		      ((const struct mmr_compare_kind *)b)->name);
}

int mmr_compare(const struct mmr_record_side *a,
		const struct mmr_record_side *b, struct mmr_compare *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	out->kinds = calloc((size_t)a->nkinds + 1, sizeof(*out->kinds));
	rc = out->kinds ? compare_times(a, b, out) : -ENOMEM;
	if (rc) {
		mmr_compare_free(out);
		return rc;
	}
	qsort(out->kinds, (size_t)out->nkinds, sizeof(*out->kinds), by_name);
	compare_rates(a, b, out);
	return 0;
}

void mmr_compare_free(struct mmr_compare *c)
{
	free(c->kinds);
	memset(c, 0, sizeof(*c));
}
