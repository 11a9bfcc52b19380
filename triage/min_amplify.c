// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reference, and making a rare failure frequent before it is reduced: the
 * runs that a reduction needs go with 1/p, so a small gain pays for a lot.
 *
 * First by repetition: as many rounds a run as make a hit likely.  Then, while
 * p < 0.2, by hill climbing: variants in timing, placement and repetition run
 * in turn until one has failed twice, and the winner is measured anew.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "../ops/rng.h"
#include "min.h"

#define SECOND 1000000000LL
#define RUN_MIN_NS (3 * SECOND)
#define BOUND_FACTOR 3 /* of the slowest hit */
#define PROBE_HITS 3
#define PROBE_RUNS 8
/* Of runs, that the rounds aim at.  What a miss tells of a candidate goes with
 * -ln(1 - p), as the rounds do: more of them only add to what starting a run
 * costs, until the trust in p ends it. */
#define MISS_SHARE 0.12
#define ROUNDS_MAX_NS (10 * SECOND) /* of a run that hits nothing */
#define NEVER_NS (45 * SECOND)	    /* "never fails" within a minute */
#define SAID_NS (56 * SECOND)
#define NEVER_RUNS 60 /* shows 5 % and more with 95 % */
#define RARE 0.2
#define GAIN 1.3
#define GENERATIONS 4
#define ARMS 8

static uint64_t own_rounds(const struct mmr_min *m)
{
	return m->opts->run.rounds ? m->opts->run.rounds
				   : (uint64_t)m->first->rounds;
}

static double budget_s(const struct mmr_min *m)
{
	return (double)m->opts->budget_ns / 1e9;
}

/* Mean times of the reference's runs. */
static void take_times(struct mmr_min *m)
{
	const struct mmr_search *s = &m->search;
	uint64_t fails = s->ref.hits + s->ref.others;
	double rest = s->ref.cost - s->ref.miss_cost;

	m->miss_ns = (int64_t)(s->miss_cost * 1e9);
	if (fails + s->ref.voids)
		m->hit_ns =
			(int64_t)(rest * 1e9 / (double)(fails + s->ref.voids));
}

void mmr_min_bounds(struct mmr_min *m)
{
	take_times(m);
	m->run_ns = BOUND_FACTOR * m->slowest_ns;
	if (m->run_ns < BOUND_FACTOR * m->miss_ns)
		m->run_ns = BOUND_FACTOR * m->miss_ns;
	if (m->run_ns < RUN_MIN_NS)
		m->run_ns = RUN_MIN_NS;
}

/* Rounds that make a run likely to hit and do not take too long. */
static uint64_t good_rounds(const struct mmr_min *m)
{
	uint64_t now = m->rounds ? m->rounds : own_rounds(m);
	double hits = (double)m->search.ref.hits, want, most, round_ns;
	double q = hits / ((double)m->all_rounds + 1);
	double limit = budget_s(m) * 1e9 / 60;

	/* Every time at once: one round shows best when that is lost. */
	if (hits > 0 && m->all_rounds == m->search.ref.hits)
		return 1;
	want = q > 0 ? ceil(log(MISS_SHARE) / log1p(-q)) : 8 * (double)now;
	round_ns = m->miss_ns > 0 ? (double)m->miss_ns / (double)now
				  : (double)m->hit_ns * hits /
					    (double)(m->hit_rounds + 1);
	if (limit > ROUNDS_MAX_NS)
		limit = ROUNDS_MAX_NS;
	most = round_ns > 0 ? limit / round_ns : want;
	/* What it had is never too much, as long as nothing is known. */
	if (most < (double)now && !(hits > 0))
		most = (double)now;
	want = want < most ? want : most;
	want = want < MMR_CASE_MAX_ROUNDS ? want : MMR_CASE_MAX_ROUNDS;
	return want < 1 ? 1 : (uint64_t)want;
}

static void fresh_reference(struct mmr_min *m)
{
	m->hit_rounds = m->all_rounds = m->last_round = 0;
	m->slowest_ns = 0;
}

/* A few runs, to see what a run needs; again with more rounds while nothing
 * hits. */
static int probe(struct mmr_min *m, double until, bool *kept)
{
	struct mmr_search_ref o = {.hits = PROBE_HITS, .runs = PROBE_RUNS};
	struct mmr_search *s = &m->search;
	bool patient = m->given->seen_hits > 0;
	uint64_t rounds, now, seen = 0;
	int rc;

	for (;;) {
		now = m->rounds ? m->rounds : own_rounds(m);
		fresh_reference(m);
		o.max_runs = NEVER_RUNS;
		o.wait = until - s->ops->now(s->arg);
		o.limit = o.wait;
		rc = mmr_search_reference(s, &o);
		seen += s->ref.runs + s->ref.voids;
		if (rc)
			return rc;
		take_times(m);
		rounds = good_rounds(m);
		/* Fewer rounds, but those of every hit: then the same runs
		 * would have hit and missed with them, and count. */
		if (s->ref.hits && rounds < m->last_round)
			rounds = m->last_round;
		*kept = rounds == now || (s->ref.hits && rounds < now);
		if (s->ref.hits || s->ops->now(s->arg) > until ||
		    (!patient && seen >= NEVER_RUNS && *kept))
			break;
		/* Void every time: more of it will not help. */
		if (!s->ref.runs && seen >= 2 * PROBE_RUNS)
			break;
		if (!*kept)
			mmr_min_say(m, "no hit in %llu runs: %llu rounds a run",
				    (unsigned long long)seen,
				    (unsigned long long)rounds);
		m->rounds = rounds;
	}
	if (*kept) /* their misses would have been shorter */
		s->ref.miss_cost *= (double)rounds / (double)now;
	m->rounds = rounds;
	return 0;
}

int mmr_min_reference(struct mmr_min *m)
{
	struct mmr_search_ref o = {.max_runs = NEVER_RUNS};
	struct mmr_search *s = &m->search;
	double wait = (double)NEVER_NS / 1e9, budget = budget_s(m);
	bool kept = false;
	int64_t deadline;
	int rc;

	/* It is known to fail now and then: wait for it. */
	if (m->given->seen_hits > 0 || wait > budget / 2)
		wait = budget / 2;
	/* "Never fails" is said in a minute, also when a run takes long. */
	deadline = m->deadline_ns;
	if (m->deadline_ns > m->start_ns + SAID_NS && !m->given->seen_hits)
		m->deadline_ns = m->start_ns + SAID_NS;
	rc = probe(m, s->ops->now(s->arg) + wait, &kept);
	m->deadline_ns = deadline;
	if (rc || !s->ref.hits)
		return rc == -ETIME ? 0 : rc;
	if (!kept)
		fresh_reference(m);
	o.go_on = kept;
	o.wait = wait;
	o.limit = budget / 15;
	rc = mmr_search_reference(s, &o);
	mmr_min_bounds(m);
	return rc == -ETIME ? 0 : rc;
}

/* ---- hill climbing ---- */

static int64_t scaled(int64_t v, int64_t by, int64_t of)
{
	return v / of * by + v % of * by / of;
}

/* Times of delays and skews, by/of of what they are. */
static void scale_times(struct mmr_case *c, int64_t by, int64_t of)
{
	int i, k, n = mmr_case_count(c);

	for (i = 0; i < n; i++) {
		struct mmr_stmt *s = mmr_case_stmt(c, i);

		for (k = 0; s->kind == MMR_STMT_OP && k < s->op->nargs; k++) {
			if (s->op->args[k].type != MMR_ARG_TIME ||
			    !s->args[k].set || s->args[k].is_auto)
				continue;
			s->args[k].lo = scaled(s->args[k].lo, by, of);
			s->args[k].hi = scaled(s->args[k].hi, by, of);
		}
	}
}

/* Fixed times drawn from 0 to twice as much instead. */
static void spread_times(struct mmr_case *c)
{
	int i, n = mmr_case_count(c);

	for (i = 0; i < n; i++) {
		struct mmr_stmt *s = mmr_case_stmt(c, i);

		if (s->kind != MMR_STMT_OP || s->op->id != MMR_OP_delay ||
		    s->args[0].lo != s->args[0].hi)
			continue;
		s->args[0].hi = 2 * s->args[0].lo;
		s->args[0].lo = 0;
	}
}

static void scale_loops(struct mmr_case *c, int64_t by)
{
	int i, n = mmr_case_count(c);

	for (i = 0; i < n; i++) {
		struct mmr_stmt *s = mmr_case_stmt(c, i);

		if (s->kind == MMR_STMT_LOOP && s->until == MMR_UNTIL_COUNT &&
		    s->count * by <= MMR_CASE_MAX_LOOP)
			s->count *= by;
	}
}

/* Threads on CPUs of their own, all on one, or anywhere. */
static void place(struct mmr_case *c, int apart)
{
	int i, j, n = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++) {
			struct mmr_thread *t = c->procs[i]->threads[j];

			t->cpu_thread = NULL;
			t->cpu = apart < 0 ? MMR_CPU_ANY : MMR_CPU_NUMBER;
			t->cpu_number = apart > 0 ? n++ : 0;
		}
}

static const char *const arm_names[ARMS] = {
	"as it is",	    "times halved",
	"times doubled",    "times drawn",
	"threads apart",    "threads on one CPU",
	"threads unpinned", "loops four times as long",
};

static void vary(struct mmr_case *c, int arm)
{
	switch (arm) {
	case 1:
		scale_times(c, 1, 2);
		break;
	case 2:
		scale_times(c, 2, 1);
		break;
	case 3:
		spread_times(c);
		break;
	case 4:
		place(c, 1);
		break;
	case 5:
		place(c, 0);
		break;
	case 6:
		place(c, -1);
		break;
	case 7:
		scale_loops(c, 4);
		break;
	default:
		break;
	}
}

/* The variants of now, those that are a case and differ.  which: their
 * numbers. */
static int make_arms(struct mmr_min *m, struct mmr_case **arms, int *which)
{
	char *own = mmr_case_print(m->first);
	struct mmr_diag diag = {0};
	int i, n = 0;

	for (i = 0; i < ARMS && own; i++) {
		struct mmr_case *c = mmr_case_clone(m->first);
		char *text;

		if (!c)
			break;
		vary(c, i);
		text = mmr_case_check(c, &diag) ? NULL : mmr_case_print(c);
		if (!text || (i && !strcmp(text, own))) {
			mmr_case_free(c);
		} else {
			which[n] = i;
			arms[n++] = c;
		}
		free(text);
	}
	free(own);
	return n;
}

/* Failures a second: what counts for whoever waits for one. */
static double rate_of(const struct mmr_search *s)
{
	return s->ref.cost > 0 ? s->p * (double)s->ref.runs / s->ref.cost : 0;
}

/* Measures arm: 1 it fails more often by far and is the reference now, 0 it
 * does not, -errno.  Takes over arm. */
static int measure_arm(struct mmr_min *m, struct mmr_case *arm,
		       const char *name)
{
	struct mmr_search_ref o = {.max_runs = NEVER_RUNS,
				   .wait = budget_s(m) / 20,
				   .limit = budget_s(m) / 20};
	struct mmr_search *s = &m->search, keep = *s;
	struct mmr_case *before = m->first;
	double was = rate_of(s), now;
	int rc, better;

	m->first = arm;
	fresh_reference(m);
	rc = mmr_search_reference(s, &o);
	now = rate_of(s);
	better = !rc && now > GAIN * was;
	mmr_min_say(m, "%s: %.3g failures a second, before %.3g: %s", name, now,
		    was, better ? "taken" : "left");
	if (better) {
		mmr_case_free(before);
		return 1;
	}
	m->first = before;
	mmr_case_free(arm);
	keep.all = s->all;
	*s = keep;
	return rc;
}

/* One generation: 1 there is a better reference now, 0 none, -errno. */
static int climb(struct mmr_min *m, double until)
{
	struct mmr_case *arms[ARMS] = {NULL};
	struct mmr_search *s = &m->search;
	int which[ARMS] = {0}, i, n, win = 0;

	n = make_arms(m, arms, which);
	m->arms = arms;
	if (n > 1)
		win = mmr_search_race(s, n, (uint64_t)(12 / s->p) + 16, until);
	m->arms = NULL;
	for (i = 0; i < n; i++)
		if (i != win || win == 0)
			mmr_case_free(arms[i]);
	if (win <= 0)
		return win < -1 ? win : 0;
	return measure_arm(m, arms[win], arm_names[which[win]]);
}

int mmr_min_amplify(struct mmr_min *m)
{
	double until = m->search.ops->now(m) + budget_s(m) / 8;
	int i, rc = 1, taken = 0;

	for (i = 0; i < GENERATIONS && rc == 1 && m->search.p < RARE; i++) {
		if (m->search.ops->now(m) > until)
			break;
		rc = climb(m, until);
		taken += rc == 1;
	}
	if (taken) {
		mmr_case_free(m->best);
		m->best = mmr_case_clone(m->first);
		if (!m->best)
			return -ENOMEM;
	}
	mmr_min_bounds(m);
	return rc < 0 && rc != -ETIME ? rc : 0;
}
