// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Comparing runs.  For each kind of call a run is one number, the logarithm
 * of its median and of its p99: durations are compared as ratios.  (The mean
 * is shown and not tested: a burst in one run of forty calls moves it by more
 * than the changes that are looked for.)
 *
 *   permutation   the runs of both sides are dealt out anew, up to 10,000
 *                 times; how often is the difference of averages as large?
 *   bootstrap     the runs of each side are drawn with replacement 2,000
 *                 times; where do 95 % of the ratios lie?
 *   Holm          both tests of all kinds are one family
 */
#include "compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/rng.h"
#include "stat.h"

#define DEALS 10000
#define DRAWS 2000
/* A permutation test ends when it has seen that many as large by chance: it
 * will not be significant any more (Besag and Clifford, Biometrika 1991). */
#define ENOUGH 60
#define MANY 200   /* runs a side: the normal distribution does */
#define MARGIN 1.1 /* within it, either way, is the same */

/* The numbers of one kind: those of side a first. */
struct sample {
	double *x;
	int na, nb;
};

const char *mmr_compare_name(enum mmr_compare_word w)
{
	static const char *const names[] = {"cannot tell", "same", "faster",
					    "slower"};

	return (unsigned int)w < 4 ? names[w] : "?";
}

static int gather(const struct mmr_record_side *side, int kind,
		  enum mmr_figure f, double *x)
{
	int n = 0;

	for (int i = 0; i < side->nruns; i++) {
		const struct mmr_record_run *run = &side->runs[i];

		for (int k = 0; k < run->nparts; k++)
			if (run->parts[k].kind == kind)
				/* No duration is 0; the clock may say so. */
				x[n++] = log(fmax(run->parts[k].figure[f], 1));
	}
	return n;
}

static double mean_of(const double *x, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += x[i];
	return n ? sum / n : 0;
}

/* Two-sided p; the deal as it was counts as one of them. */
static double permute(const struct sample *s, uint64_t key)
{
	double seen = fabs(mean_of(s->x + s->na, s->nb) - mean_of(s->x, s->na));
	double total = mean_of(s->x, s->na + s->nb) * (s->na + s->nb);
	struct mmr_rng rng = {.key = key};
	int n = s->na + s->nb, as_large = 1, deals = 0;
	double *x = malloc((size_t)n * sizeof(*x));

	if (!x)
		return 1;
	memcpy(x, s->x, (size_t)n * sizeof(*x));
	while (deals < DEALS && as_large <= ENOUGH) {
		double sum = 0;

		deals++;

		for (int i = 0; i < s->na; i++) {
			int j = i + (int)mmr_rng_below(mmr_rng_next(&rng),
						       (uint64_t)(n - i));
			double t = x[i];

			x[i] = x[j];
			x[j] = t;
			sum += x[i];
		}
		/* Rounding must not tell equal differences apart. */
		if (fabs((total - sum) / s->nb - sum / s->na) >=
		    seen * (1 - 1e-9))
			as_large++;
	}
	free(x);
	return (double)as_large / (deals + 1);
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

static void compare_kind(const struct mmr_record_side *a, int ka,
			 const struct mmr_record_side *b, int kb, double *x,
			 struct mmr_compare_kind *out)
{
	uint64_t key = mmr_rng_key_str(0, a->kinds[ka].name);
	struct sample s = {.x = x};

	memset(out, 0, sizeof(*out));
	out->name = a->kinds[ka].name;
	out->runs_a = a->kinds[ka].runs;
	out->runs_b = b->kinds[kb].runs;
	out->calls_a = a->kinds[ka].hist.n;
	out->calls_b = b->kinds[kb].hist.n;
	out->p_typical = out->p_tail = 1;
	for (int f = 0; f < MMR_FIGURES; f++) {
		struct mmr_compare_figure *fig = &out->figure[f];

		fig->a = mmr_figure_of(&a->kinds[ka].hist, f);
		fig->b = mmr_figure_of(&b->kinds[kb].hist, f);
		s.na = gather(a, ka, f, x);
		s.nb = gather(b, kb, f, x + s.na);
		bootstrap(&s, mmr_rng_key(key, (uint64_t)f), fig);
		if (s.na < MMR_COMPARE_RUNS || s.nb < MMR_COMPARE_RUNS)
			continue;
		if (f == MMR_FIGURE_P50)
			out->p_typical = permute(&s, mmr_rng_key(key, 100));
		else if (f == MMR_FIGURE_P99)
			out->p_tail = permute(&s, mmr_rng_key(key, 101));
	}
}

/* One test of the family. */
struct test {
	double p;
	struct mmr_compare_kind *kind;
	bool tail;
};

/* Of equal ones the median first: it says more than a few calls of the tail. */
static int by_p(const void *a, const void *b)
{
	const struct test *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	return (int)x->tail - (int)y->tail;
}

static void say(struct mmr_compare_kind *k, bool tail)
{
	const struct mmr_compare_figure *f =
		&k->figure[tail ? MMR_FIGURE_P99 : MMR_FIGURE_P50];

	if (k->word != MMR_COMPARE_CANNOT_TELL || f->ratio == 1)
		return; /* the smaller p has spoken */
	k->word = f->ratio > 1 ? MMR_COMPARE_SLOWER : MMR_COMPARE_FASTER;
	k->in_tail = tail;
}

/* Holm: the smallest p against level / m, the next against level / (m - 1),
 * until one fails. */
static int decide(struct mmr_compare *c)
{
	struct test *t = calloc((size_t)c->nkinds * 2 + 1, sizeof(*t));
	int m = 0;

	if (!t)
		return -ENOMEM;
	for (int i = 0; i < c->nkinds; i++) {
		struct mmr_compare_kind *k = &c->kinds[i];

		if (k->runs_a < MMR_COMPARE_RUNS ||
		    k->runs_b < MMR_COMPARE_RUNS)
			continue;
		t[m++] = (struct test){k->p_typical, k, false};
		t[m++] = (struct test){k->p_tail, k, true};
	}
	qsort(t, (size_t)m, sizeof(*t), by_p);
	for (int i = 0; i < m && t[i].p <= MMR_COMPARE_LEVEL / (m - i); i++) {
		say(t[i].kind, t[i].tail);
		c->differs = true;
	}
	free(t);
	for (int i = 0; i < c->nkinds; i++) {
		struct mmr_compare_kind *k = &c->kinds[i];
		const struct mmr_compare_figure *f = &k->figure[MMR_FIGURE_P50];

		if (k->word == MMR_COMPARE_CANNOT_TELL &&
		    k->runs_a >= MMR_COMPARE_RUNS &&
		    k->runs_b >= MMR_COMPARE_RUNS && f->lo > 1 / MARGIN &&
		    f->hi < MARGIN)
			k->word = MMR_COMPARE_SAME;
	}
	return 0;
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
	double *x = malloc((size_t)(a->nruns + b->nruns + 1) * sizeof(*x));
	int rc;

	memset(out, 0, sizeof(*out));
	out->kinds = calloc((size_t)a->nkinds + 1, sizeof(*out->kinds));
	if (!x || !out->kinds) {
		free(x);
		mmr_compare_free(out);
		return -ENOMEM;
	}
	for (int i = 0; i < a->nkinds; i++)
		for (int j = 0; j < b->nkinds; j++)
			if (!strcmp(a->kinds[i].name, b->kinds[j].name))
				compare_kind(a, i, b, j, x,
					     &out->kinds[out->nkinds++]);
	free(x);
	qsort(out->kinds, (size_t)out->nkinds, sizeof(*out->kinds), by_name);
	rc = decide(out);
	if (rc) {
		mmr_compare_free(out);
		return rc;
	}
	compare_rates(a, b, out);
	return 0;
}

void mmr_compare_free(struct mmr_compare *c)
{
	free(c->kinds);
	memset(c, 0, sizeof(*c));
}
