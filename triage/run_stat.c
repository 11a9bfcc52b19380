// SPDX-License-Identifier: GPL-2.0-or-later
/* Counters and histograms of a run, as numbers in ns. */
#include "run_stat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/compile.h"
#include "../ops/content.h"
#include "histogram.h"

static uint64_t middle(int i, unsigned int shift)
{
	return (mmr_hist_value((unsigned int)i) << shift) +
	       (shift ? 1ULL << (shift - 1) : 0);
}

/*
 * The p-th of n values (0 < p < 1) in a histogram: the middle of the step
 * that it is in, at most 1/16 off.  shift: of the values that were put in.
 */
static uint64_t quantile(const uint32_t *hist, uint64_t n, double p, int shift)
{
	uint64_t want = (uint64_t)ceil(p * (double)n), sum = 0;
	unsigned int i;

	for (i = 0; i < MMR_HIST; i++) {
		sum += hist[i];
		if (hist[i] && sum >= want)
			break;
	}
	if (i == MMR_HIST)
		return 0;
	return middle((int)i, (unsigned int)shift);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t ns_at(const struct mmr_area *area, const uint32_t *hist,
		      uint64_t n, double p)
{
	return mmr_clock_to_ns(&area->clock,
			       quantile(hist, n, p, (int)area->hist_shift));
}

static uint64_t copy_hist(struct mmr_stat *st, uint32_t *hist)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < MMR_HIST; i++) {
		hist[i] = atomic_load_explicit(&st->hist[i],
					       memory_order_relaxed);
		n += hist[i];
	}
	return n;
}

uint64_t mmr_run_quantiles(const struct mmr_area *area, struct mmr_stat *st,
			   uint64_t *median_ns, uint64_t *p90_ns)
{
	uint32_t hist[MMR_HIST];
	uint64_t n = copy_hist(st, hist);

	*median_ns = n ? ns_at(area, hist, n, 0.50) : 0;
	*p90_ns = n ? ns_at(area, hist, n, 0.90) : 0;
	return n;
}

static void measure_stmt(const struct mmr_area *area, struct mmr_stat *st,
			 struct mmr_measure *m)
{
	uint32_t hist[MMR_HIST];
	uint64_t n;
	int i, k = 0;

	m->count = atomic_load(&st->count);
	if (!m->count)
		return;
	m->errors = atomic_load(&st->errors);
	m->unexpected = atomic_load(&st->unexpected);
	m->pages = atomic_load(&st->pages);
	m->late = atomic_load(&st->late);
	m->sum_ns = mmr_clock_to_ns(&area->clock, atomic_load(&st->sum));
	m->max_ns = mmr_clock_to_ns(&area->clock, atomic_load(&st->max));
	for (i = 0; i < MMR_ERRS; i++) {
		int err = atomic_load(&st->errs[i].err);

		if (!err)
			continue;
		m->errs[k].err = err;
		m->errs[k++].n = atomic_load(&st->errs[i].n);
	}
	n = copy_hist(st, hist);
	if (!n)
		return;
	m->hist = calloc(1, sizeof(*m->hist));
	for (i = 0; m->hist && i < MMR_HIST; i++)
		if (hist[i])
			mmr_histogram_add(
				m->hist,
				mmr_clock_to_ns(&area->clock,
						middle(i, area->hist_shift)),
				hist[i]);
	if (m->hist) {
		m->hist->sum_ns = m->sum_ns;
		m->hist->max_ns = m->max_ns;
	}
	/* Histograms hold ticks; the middle of the last step can be above
	 * the largest value. */
	m->p50_ns = min_u64(ns_at(area, hist, n, 0.50), m->max_ns);
	m->p95_ns = min_u64(ns_at(area, hist, n, 0.95), m->max_ns);
	m->p99_ns = min_u64(ns_at(area, hist, n, 0.99), m->max_ns);
}

#define EXIT_SHIFT 10 /* of exit histograms: 1.024 us */

static double deviation(const struct mmr_exit_stat *e, double mean)
{
	double sum = 0, x;
	unsigned int i;

	for (i = 0; i < MMR_HIST; i++) {
		if (!e->hist[i])
			continue;
		x = (double)(mmr_hist_value(i) << EXIT_SHIFT) - mean;
		sum += x * x * e->hist[i];
	}
	return e->count > 1 ? sqrt(sum / (double)(e->count - 1)) : 0;
}

/* NULL: no memory. */
static struct mmr_histogram *exit_hist(const uint32_t hist[MMR_HIST],
				       uint64_t sum_ns, uint64_t max_ns)
{
	struct mmr_histogram *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	for (unsigned int i = 0; i < MMR_HIST; i++)
		if (hist[i])
			mmr_histogram_add(h, middle((int)i, EXIT_SHIFT),
					  hist[i]);
	h->sum_ns = sum_ns;
	h->max_ns = max_ns;
	return h;
}

static void measure_exit(const struct mmr_exit_stat *e,
			 struct mmr_exit_measure *m)
{
	m->count = e->count;
	if (!m->count)
		return;
	m->hist = exit_hist(e->hist, e->wall_ns, e->max_ns);
	m->cpu_hist = exit_hist(e->cpu_hist, e->cpu_ns, e->cpu_max_ns);
	m->wall_ns = e->wall_ns;
	m->cpu_ns = e->cpu_ns;
	m->delay_ns = e->delay_ns;
	if (e->wall_ns > e->cpu_ns + e->delay_ns)
		m->asleep_ns = e->wall_ns - e->cpu_ns - e->delay_ns;
	m->max_ns = e->max_ns;
	m->mean_ns = e->wall_ns / e->count;
	m->stdev_ns = (uint64_t)deviation(e, (double)m->mean_ns);
	m->p50_ns = min_u64(quantile(e->hist, e->count, 0.50, EXIT_SHIFT),
			    m->max_ns);
	m->p95_ns = min_u64(quantile(e->hist, e->count, 0.95, EXIT_SHIFT),
			    m->max_ns);
	m->p99_ns = min_u64(quantile(e->hist, e->count, 0.99, EXIT_SHIFT),
			    m->max_ns);
}

int mmr_run_collect(const struct mmr_case *c, struct mmr_area *area,
		    struct mmr_run_result *res)
{
	struct mmr_stat *st =
		MMR_AREA_AT(area, area->stats_off, struct mmr_stat);
	struct mmr_exit_stat *ex =
		MMR_AREA_AT(area, area->exits_off, struct mmr_exit_stat);
	int i;

	res->rounds = atomic_load(&area->rounds_done);
	res->rounds_void = atomic_load(&area->rounds_void);
	res->rounds_late = atomic_load(&area->rounds_late);
	if (area->content_off)
		res->compared = atomic_load(
			&MMR_AREA_AT(area, area->content_off,
				     struct mmr_content)->compared);
	res->nstmts = (int)area->program.nstats;
	res->nexits = (int)area->program.nprocs + 1;
	res->stmts = calloc((size_t)res->nstmts + 1, sizeof(*res->stmts));
	res->exits = calloc((size_t)res->nexits, sizeof(*res->exits));
	if (!res->stmts || !res->exits) {
		res->nstmts = res->nexits = 0;
		return -ENOMEM;
	}
	for (i = 0; i < res->nstmts; i++) {
		const struct mmr_stmt *s = mmr_case_stmt(c, i);

		measure_stmt(area, &st[i], &res->stmts[i]);
		if (!s || s->kind != MMR_STMT_OP)
			continue;
		res->ops += res->stmts[i].count;
		if (s->op->class == MMR_CLASS_CALL ||
		    s->op->class == MMR_CLASS_BLOCK)
			res->calls += res->stmts[i].count;
	}
	for (i = 0; i < res->nexits; i++) {
		res->exits[i].proc = i < c->nprocs ? c->procs[i]->name : "idle";
		measure_exit(&ex[i], &res->exits[i]);
	}
	return 0;
}

void mmr_run_result_free(struct mmr_run_result *res)
{
	for (int i = 0; i < res->nstmts; i++)
		free(res->stmts[i].hist);
	for (int i = 0; i < res->nexits; i++) {
		free(res->exits[i].hist);
		free(res->exits[i].cpu_hist);
	}
	free(res->stmts);
	free(res->exits);
	json_decref(res->evidence);
	json_decref(res->timeline);
	free(res->stacks);
	free(res->log);
	free(res->exact);
	free(res->bound);
	memset(res, 0, sizeof(*res));
}
