// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The minimiser's search (triage/min_search.h) against a simulated failure:
 * n elements, of which some are needed; when all of those are there, a run
 * fails with chance p, else (a false alarm) with chance f.  Beside it ddmin
 * with a fixed number of repeats, and ddmin with a sequential test.
 *
 *	min_sim [REPETITIONS [SEED]]
 *
 * Exit 1 when a target is missed.  The seed is printed, so that any table can
 * be made again.  MIN_SIM_ONLY=TEXT: worlds with that in their name;
 * MIN_SIM_OURS=1: nothing beside it; MIN_SIM_JOBS=N: runs that overlap.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ops/rng.h"
#include "../../triage/min_search.h"

#define MAX 128
#define CAP 3000000u /* runs after which an algorithm is stopped */

struct world {
	const char *name;
	int n, needed;
	double p, f, other, factor;
	bool dependent;
	/* Targets; 0 none. */
	double most_runs, exact, over;
	unsigned int cap; /* runs that there is time for, 0 any number */
};

struct sim {
	const struct world *w;
	int n;
	uint8_t core[MAX];
	int parent[MAX]; /* what it depends on, -1 nothing */
	struct mmr_rng rng;
	uint64_t runs, changes_at;
	double factor;
	struct mmr_search_run slot[MMR_SEARCH_JOBS];
};

static double draw(struct sim *s)
{
	return (double)(mmr_rng_next(&s->rng) >> 11) / 9007199254740992.0;
}

/* What stays of the elements, what depends on a gone one being gone too. */
static void close_gone(void *arg, uint8_t *gone)
{
	const struct sim *s = arg;
	int i;

	for (i = 0; i < s->n; i++)
		if (s->parent[i] >= 0 && gone[s->parent[i]])
			gone[i] = 1;
}

static bool holds(const struct sim *s, const uint8_t *gone)
{
	uint8_t all[MAX];
	int i;

	memcpy(all, gone, (size_t)s->n);
	close_gone((void *)(uintptr_t)s, all);
	for (i = 0; i < s->n; i++)
		if (s->core[i] && all[i])
			return false;
	return true;
}

static struct mmr_search_run run_once(struct sim *s, bool whole)
{
	struct mmr_search_run r = {.kind = MMR_SEARCH_MISS, .cost = 1};
	double p = s->w->p;

	s->runs++;
	if (s->changes_at && s->runs > s->changes_at)
		p = p * s->factor < 1 ? p * s->factor : 1;
	if (draw(s) < s->w->other) {
		r.kind = MMR_SEARCH_FAIL;
		r.id = 1;
	} else if ((whole && draw(s) < p) || draw(s) < s->w->f) {
		r.kind = MMR_SEARCH_FAIL;
	}
	return r;
}

static int sim_start(void *arg, const struct mmr_search_query *q, int slot)
{
	struct sim *s = arg;
	bool whole = q->what == MMR_SEARCH_ORIGINAL;
	int i;

	if (s->runs >= (s->w->cap ? s->w->cap * 7 / 8 : CAP))
		return -ETIME;
	if (q->what == MMR_SEARCH_BEST && !q->gone) {
		whole = true;
	} else if (q->what == MMR_SEARCH_BEST) {
		for (i = 0; i < s->n && q->gone[i]; i++)
			;
		if (i == s->n)
			return -ENOENT;
		whole = holds(s, q->gone);
	}
	s->slot[slot] = run_once(s, whole);
	return 0;
}

static int sim_wait(void *arg, int slot, struct mmr_search_run *r)
{
	*r = ((struct sim *)arg)->slot[slot];
	return 0;
}

static void sim_drop(void *arg, int slot)
{
	(void)arg;
	(void)slot;
}

static int sim_accept(void *arg, const uint8_t *gone)
{
	(void)arg;
	(void)gone;
	return 0;
}

static double sim_now(void *arg)
{
	return (double)((struct sim *)arg)->runs;
}

static const struct mmr_search_ops sim_ops = {
	.start = sim_start,
	.wait = sim_wait,
	.drop = sim_drop,
	.close = close_gone,
	.accept = sim_accept,
	.back = sim_accept,
	.now = sim_now,
};

static int jobs = 1;

/* Refused is none of exact and over-reduced. */
static bool ours(struct sim *s, uint8_t *gone)
{
	struct mmr_search_reduce o = {.n = s->n, .prior = 0.1, .twice = true};
	struct mmr_search_ref ref = {
		.max_runs = 100000, .wait = 1e9, .limit = 1e9};
	double share = s->w->cap ? s->w->cap : 1e9; /* as in minimise.c */
	struct mmr_search m;
	int rc = mmr_search_init(&m, &sim_ops, s, jobs);
	bool refused;

	m.want = 0;
	if (s->w->cap) {
		o.prior = 5.0 / (s->n + 1);
		ref.limit = share / 15;
	}
	if (!rc)
		rc = mmr_search_reference(&m, &ref);
	if (!rc)
		rc = mmr_search_null(&m, s->w->cap ? share / 25 : 1e9);
	if (!rc && !m.refused)
		rc = mmr_search_reduce(&m, &o, gone);
	refused = m.refused;
	if (rc && rc != -ETIME && rc != -ECANCELED)
		fprintf(stderr, "min_sim: %s\n", strerror(-rc));
	mmr_search_free(&m);
	return !refused;
}

/* ---- ddmin (Zeller, Hildebrandt 2002) with a decision of its own ---- */

struct judge {
	int repeats;   /* fixed: any hit accepts */
	double p1, p0; /* else a sequential test */
};

static bool decide(struct sim *s, const struct judge *j, const uint8_t *gone)
{
	struct mmr_sprt t;
	int i;

	for (i = 0; i < s->n && gone[i]; i++)
		;
	if (i == s->n || s->runs > CAP)
		return false;
	if (j->repeats) {
		for (i = 0; i < j->repeats; i++) {
			struct mmr_search_run r = run_once(s, holds(s, gone));

			if (r.kind == MMR_SEARCH_FAIL && !r.id)
				return true;
		}
		return false;
	}
	mmr_sprt_init(&t, j->p1, j->p0, 0.005, 0.05);
	while (mmr_sprt_state(&t) < 0) {
		struct mmr_search_run r = run_once(s, holds(s, gone));

		mmr_sprt_add(&t, r.kind == MMR_SEARCH_FAIL && !r.id, 1);
	}
	return mmr_sprt_state(&t) == 1;
}

static int left_of(const struct sim *s, const uint8_t *gone, int *idx)
{
	int i, k = 0;

	for (i = 0; i < s->n; i++)
		if (!gone[i])
			idx[k++] = i;
	return k;
}

/* Tries the c-th of n chunks, alone or without it.  Takes it when it fails. */
static bool try_chunk(struct sim *s, const struct judge *j, uint8_t *gone,
		      int c, int n, bool alone)
{
	int idx[MAX], k = left_of(s, gone, idx), i;
	uint8_t next[MAX] = {0};

	memcpy(next, gone, (size_t)s->n);
	for (i = 0; i < k; i++) {
		bool in = i >= c * k / n && i < (c + 1) * k / n;

		if (in != alone)
			next[idx[i]] = 1;
	}
	close_gone(s, next);
	if (!memcmp(next, gone, (size_t)s->n) || !decide(s, j, next))
		return false;
	memcpy(gone, next, (size_t)s->n);
	return true;
}

static void ddmin(struct sim *s, const struct judge *j, uint8_t *gone)
{
	int n = 2, c, k, idx[MAX];

	for (;;) {
		bool cut = false;

		k = left_of(s, gone, idx);
		if (k < 2 || s->runs > CAP)
			return;
		n = n > k ? k : n;
		for (c = 0; c < n && !cut; c++)
			cut = try_chunk(s, j, gone, c, n, true);
		if (cut) {
			n = 2;
			continue;
		}
		for (c = 0; c < n && !cut && n > 2; c++)
			cut = try_chunk(s, j, gone, c, n, false);
		if (cut) {
			n = n - 1 < 2 ? 2 : n - 1;
			continue;
		}
		if (n >= k)
			return;
		n = 2 * n < k ? 2 * n : k;
	}
}

/* ddmin is told the rate to within what ten hits tell, like ours. */
static double calibrate(struct sim *s)
{
	uint64_t hits = 0, runs = 0;

	while (hits < 10 && runs < 400000) {
		struct mmr_search_run r = run_once(s, true);

		hits += r.kind == MMR_SEARCH_FAIL && !r.id;
		runs++;
	}
	return hits == runs ? 0.999
			    : ((double)hits - 0.5) / ((double)runs - 0.5);
}

static bool ddmin_fixed(struct sim *s, uint8_t *gone)
{
	double p = calibrate(s);
	struct judge j = {.repeats = (int)ceil(log(0.05) / log(1 - p))};

	ddmin(s, &j, gone);
	return true;
}

static bool ddmin_sprt(struct sim *s, uint8_t *gone)
{
	double p = calibrate(s);
	struct judge j = {.p1 = 0.7 * p, .p0 = 0.2 * p};

	/* It is told the rate of false alarms. */
	if (j.p0 < 3 * s->w->f)
		j.p0 = 3 * s->w->f;
	ddmin(s, &j, gone);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct sim *, uint8_t *);
} contestants[] = {
	{"ours", ours},
	{"ddmin, fixed repeats", ddmin_fixed},
	{"ddmin, sequential test", ddmin_sprt},
};
#define CONTESTANTS (int)(sizeof(contestants) / sizeof(contestants[0]))

/* ---- worlds ---- */

static void make(struct sim *s, const struct world *w, uint64_t seed)
{
	int i, left = w->needed;

	memset(s, 0, sizeof(*s));
	s->w = w;
	s->n = w->n;
	s->rng.key = seed;
	/* A third makes things, two thirds use one of those before. */
	for (i = 0; i < s->n; i++) {
		s->parent[i] = -1;
		if (w->dependent && i >= 3 && draw(s) < 0.66)
			s->parent[i] = (int)(draw(s) * (i < 12 ? i : 12)) +
				       (i < 12 ? 0 : i - 12);
		if (s->parent[i] >= 0 && s->parent[s->parent[i]] >= 0)
			s->parent[i] = s->parent[s->parent[i]];
	}
	while (left) {
		int at = (int)(draw(s) * s->n);

		if (s->core[at])
			continue;
		s->core[at] = 1;
		left--;
		if (s->parent[at] >= 0 && !s->core[s->parent[at]]) {
			s->core[s->parent[at]] = 1;
			left -= left > 0;
		}
	}
}

struct row {
	double runs, p90, exact, over, refused, size;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const struct world *w, int which, int reps, uint64_t seed,
		    double changes_at, struct row *row)
{
	double *v = calloc((size_t)reps + 1, sizeof(*v));
	int i, k;

	memset(row, 0, sizeof(*row));
	if (!v)
		return;
	for (k = 0; k < reps; k++) {
		uint8_t gone[MAX] = {0};
		struct sim s;
		bool exact = true;

		make(&s, w, mmr_rng_key(seed, (uint64_t)k));
		s.changes_at = (uint64_t)changes_at;
		/* Up and down in turn, as far as there is an up. */
		s.factor = k & 1 && w->p < 0.5 ? w->factor : 1 / w->factor;
		if (!contestants[which].run(&s, gone)) {
			row->refused += 100.0 / reps;
		} else {
			for (i = 0; i < s.n; i++) {
				exact &= gone[i] == !s.core[i];
				row->size += (double)!gone[i] / reps;
			}
			row->exact += 100.0 * exact / reps;
			row->over += 100.0 * !holds(&s, gone) / reps;
		}
		v[k] = (double)s.runs;
		row->runs += (double)s.runs / reps;
	}
	qsort(v, (size_t)reps, sizeof(*v), by_value);
	row->p90 = v[reps * 9 / 10];
	free(v);
}

static int report(const struct world *w, int reps, uint64_t seed)
{
	int i, bad = 0;

	for (i = 0; i < (getenv("MIN_SIM_OURS") ? 1 : CONTESTANTS); i++) {
		struct row r;
		double at = 0;
		/* The others need ten times the runs and show the same. */
		int n = i ? (reps + 9) / 10 : reps;

		if (w->factor > 0) {
			measure(w, i, (n + 9) / 10, seed, 0, &r);
			at = r.runs / 2;
		}
		measure(w, i, n, seed, at, &r);
		printf("| %s | %g | %s | %d | %.0f | %.0f | %.1f | %.1f | "
		       "%.1f | %.2f |",
		       w->name, w->p, contestants[i].name, n, r.runs, r.p90,
		       r.exact, r.over, r.refused, r.size);
		if (!i && w->most_runs > 0 && r.runs > w->most_runs) {
			printf(" more than %.0f runs", w->most_runs);
			bad = 1;
		}
		if (!i && w->exact > 0 && r.exact < w->exact) {
			printf(" exact below %.0f", w->exact);
			bad = 1;
		}
		if (!i && w->over > 0 && r.over > w->over) {
			printf(" over-reduced above %.0f", w->over);
			bad = 1;
		}
		putchar('\n');
		fflush(stdout);
	}
	return bad;
}

#define PLAIN(p, f, runs)                                                      \
	{                                                                      \
		f > 0 ? "0.5 % false alarms" : "no false alarms", 40, 4, p, f, \
			0, 0, false, runs, runs > 0 ? 95 : 0,                  \
			runs > 0 || f <= 0 ? 1 : 0, 0                          \
	}
#define HARD(name, n, k, p, f, other, factor, dep)                             \
	{                                                                      \
		name, n, k, p, f, other, factor, dep, 0, 0, 2, 0               \
	}
#define RATES(name, n, k, f, other, factor, dep)                               \
	HARD(name, n, k, 1, f, other, factor, dep),                            \
		HARD(name, n, k, 0.3, f, other, factor, dep),                  \
		HARD(name, n, k, 0.05, f, other, factor, dep)

#define ALL "all of it, 120, 0.5 %"
#define SHORT(p, dep)                                                          \
	{                                                                      \
		"20, 6 needed, time for 100 runs", 20, 6, p, 0, 0, 0, dep, 0,  \
			0, 2, 100                                              \
	}

static const struct world worlds[] = {
	PLAIN(1, 0.0, 100),
	PLAIN(0.3, 0.0, 500),
	PLAIN(0.05, 0.0, 4500),
	PLAIN(0.01, 0.0, 0),
	PLAIN(1, 0.005, 100),
	PLAIN(0.3, 0.005, 500),
	PLAIN(0.05, 0.005, 4500),
	PLAIN(0.01, 0.005, 0),
	RATES("another failure, 5 %", 40, 4, 0, 0.05, 0, false),
	RATES("2 needed", 40, 2, 0, 0, 0, false),
	RATES("10 needed", 40, 10, 0, 0, 0, false),
	RATES("120 elements", 120, 4, 0, 0, 0, false),
	RATES("dependent ones", 40, 4, 0, 0, 0, true),
	RATES("p changes by 3", 40, 4, 0, 0, 3, false),
	HARD(ALL, 120, 6, 1, 0.005, 0.05, 3, true),
	HARD(ALL, 120, 6, 0.3, 0.005, 0.05, 3, true),
	/* In every other repetition p falls to 3.3 f on the way, which would
	 * have been refused: measured, but there is no target for it. */
	{ALL, 120, 6, 0.05, 0.005, 0.05, 3, true, 0, 0, 0, 0},
	SHORT(0.9, false),
	SHORT(0.5, false),
	SHORT(0.3, false),
	SHORT(0.9, true),
	SHORT(0.5, true),
	SHORT(0.3, true),
};
#define WORLDS (int)(sizeof(worlds) / sizeof(worlds[0]))

int main(int argc, char **argv)
{
	int reps = argc > 1 ? atoi(argv[1]) : 1000, i, bad = 0;
	uint64_t seed =
		argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	const char *only = getenv("MIN_SIM_ONLY");

	if (getenv("MIN_SIM_JOBS"))
		jobs = atoi(getenv("MIN_SIM_JOBS"));
	if (reps < 1) {
		fprintf(stderr, "usage: min_sim [REPETITIONS [SEED]]\n");
		return 2;
	}
	printf("seed %llu\n\n| simulated | p | search | repetitions | mean "
	       "runs "
	       "| 90 %% of them below | exact %% | over-reduced %% | refused "
	       "%% | "
	       "left |\n"
	       "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- "
	       "|\n",
	       (unsigned long long)seed);
	for (i = 0; i < WORLDS; i++)
		if (!only || strstr(worlds[i].name, only))
			bad |= report(&worlds[i], reps, seed);
	return bad;
}
