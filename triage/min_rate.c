// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rates: of the reference, which everything is held against; of programs that
 * should not fail; of the best, now and then; and of fresh runs at the end.
 *
 * The anchor stays at the reference's rate.  Measured against the last
 * accepted candidate instead, five halvings would go through one by one.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "min_search.h"
#include "stat.h"

#define REF_HITS 20
#define NULL_RUNS 12 /* times 1/p: shows f >= p/3 with 98 % */
/* Parts of p: too many false alarms, by a quick look and by a thorough one; and
 * few enough. */
#define RULE 0.2
#define NULL_WRONG 0.35
#define NULL_WRONG_AGAIN 0.25
#define NULL_FINE 0.12
#define NULL_ALPHA 0.005

#define CONTROL_GOOD 0.8
#define CONTROL_LOST 0.25
/* What fails nearly always is to go on doing so; and is soon seen not to. */
#define CONTROL_GOOD_HIGH 0.9
#define CONTROL_LOST_HIGH 0.55
#define CONTROL_ERROR 0.05
#define RARER 0.5
#define LENGTHEN 0.6
#define RECALIBRATIONS 6
#define CHANGE 3 /* standard errors */
#define RECALIBRATE_HITS 6

static int most_frequent(const struct mmr_search *s)
{
	int i, best = 0;

	if (s->want >= 0)
		return s->want;
	for (i = 1; i < MMR_SEARCH_IDS; i++)
		if (s->ids[i] > s->ids[best])
			best = i;
	return best;
}

/* Hits that make the rate known well enough: a high one needs fewer. */
static uint64_t hits_wanted(uint64_t hits, uint64_t runs)
{
	return hits * 10 >= runs * 7 ? 6 : hits * 2 >= runs ? 8 : REF_HITS;
}

/* The last run was a hit, as that ended the count: without it the rate is
 * not biased upwards. */
static double estimate(uint64_t hits, uint64_t runs)
{
	if (hits == runs)
		return ((double)hits + 0.5) / ((double)runs + 1);
	if (hits < 2)
		return (double)hits / ((double)runs + 1);
	return (double)(hits - 1) / (double)(runs - 1);
}

static bool reference_done(const struct mmr_search *s,
			   const struct mmr_search_ref *o, double began)
{
	uint64_t hits = s->ids[most_frequent(s)], runs = s->ref.runs;
	double spent = s->ops->now(s->arg) - began;

	if ((o->runs && runs + s->ref.voids >= o->runs) ||
	    (o->hits && hits >= o->hits))
		return true;
	if (!hits)
		return runs + s->ref.voids >= o->max_runs || spent >= o->wait;
	return hits >= hits_wanted(hits, runs) || spent >= o->limit;
}

static double mean_miss(const struct mmr_search_tally *t)
{
	uint64_t misses = t->runs - t->hits - t->others;

	return misses ? t->miss_cost / (double)misses : 0;
}

static void take_reference(struct mmr_search *s)
{
	uint64_t fails = 0;
	int i;

	s->wanted = most_frequent(s);
	for (i = 0; i < MMR_SEARCH_IDS; i++)
		fails += s->ids[i];
	s->ref.hits = s->ids[s->wanted];
	s->ref.others = fails - s->ref.hits;
	s->miss_cost = mean_miss(&s->ref);
	s->p = s->ref.runs ? estimate(s->ref.hits, s->ref.runs) : 0;
	s->now = s->p;
}

int mmr_search_reference(struct mmr_search *s, const struct mmr_search_ref *o)
{
	struct mmr_search_query q = {MMR_SEARCH_ORIGINAL, NULL, 0};
	struct mmr_search_step st = {.why = MMR_SEARCH_REFERENCE,
				     .what = MMR_SEARCH_ORIGINAL};
	double began = s->ops->now(s->arg);
	struct mmr_search_run r;
	int rc = 0;

	if (!o->go_on) {
		memset(&s->ref, 0, sizeof(s->ref));
		memset(s->ids, 0, sizeof(s->ids));
	}
	s->wanted = -1; /* no hit counts in s->all before it is known */
	s->miss_cost = 0;
	while (!reference_done(s, o, began)) {
		while (s->nfly < s->jobs && !rc)
			rc = mmr_flight_start(s, &q, NULL);
		if (rc && !s->nfly)
			break;
		rc = mmr_flight_take(s, &r, NULL);
		if (rc)
			break;
		mmr_search_count(s, &s->ref, &r);
		if (r.kind == MMR_SEARCH_FAIL)
			s->ids[r.id]++;
	}
	mmr_flight_drop(s);
	take_reference(s);
	if (!o->hits) {
		s->all.hits += s->ref.hits;
		st.decision = s->ref.hits ? "reproduced" : "no hit";
		mmr_search_note(s, &st, &s->ref);
	}
	return rc == -ETIME && s->ref.hits ? 0 : rc;
}

struct neutral {
	struct mmr_search_tally t;
	enum mmr_search_what what;
	bool can;
	uint64_t begun;
};

static void note_null(struct mmr_search *s, const struct neutral *e,
		      const char *decision)
{
	struct mmr_search_step st = {
		.why = MMR_SEARCH_NULL, .what = e->what, .decision = decision};

	if (e->t.runs + e->t.voids)
		mmr_search_note(s, &st, &e->t);
}

/* Fills up the workers with runs of both in turn, the empty one first.  0 or
 * -errno. */
static int start_neutrals(struct mmr_search *s, struct neutral *e)
{
	int rc = 0;

	while (s->nfly < s->jobs && !rc && (e[0].can || e[1].can)) {
		int next = e[1].can && (!e[0].can || e[1].begun < e[0].begun);
		struct mmr_search_query q = {e[next].what, NULL, 0};

		rc = mmr_flight_start(s, &q, NULL);
		if (rc == -ENOENT) {
			e[next].can = false;
			rc = 0;
			continue;
		}
		e[next].begun++;
	}
	return rc;
}

/* Counts a run.  When only the second one fails, the guess was wrong and it is
 * no neutral program at all. */
static void count_neutral(struct mmr_search *s, struct neutral *e,
			  const struct mmr_search_run *r, struct mmr_sprt *t)
{
	struct neutral *now = &e[r->what == e[1].what];

	if (!now->can) {
		mmr_search_count(s, NULL, r);
		return;
	}
	mmr_search_count(s, &now->t, r);
	if (r->kind != MMR_SEARCH_VOID)
		mmr_sprt_add(t, mmr_search_hit(s, r), 1);
	if (now == e || now->t.hits < 2 || e[0].t.hits || !e[0].t.runs)
		return;
	note_null(s, now, "it fails too: not neutral");
	now->can = false;
	memset(&now->t, 0, sizeof(now->t));
	t->l = (double)e[0].t.runs * t->miss;
}

/* The empty one, and the original without what seems guilty. */
int mmr_search_null(struct mmr_search *s, double limit)
{
	struct neutral e[2] = {{.what = MMR_SEARCH_EMPTY, .can = true},
			       {.what = MMR_SEARCH_NEUTRAL, .can = true}};
	uint64_t want = (uint64_t)ceil(NULL_RUNS / s->p), i;
	double end = s->ops->now(s->arg) + limit;
	bool again = s->null.runs > 0;
	struct mmr_search_run r;
	struct mmr_sprt t;
	int rc = 0, done = -1;

	s->null_thorough = again;
	memset(&s->null, 0, sizeof(s->null));
	mmr_sprt_init(&t, (again ? NULL_WRONG_AGAIN : NULL_WRONG) * s->p,
		      NULL_FINE * s->p, NULL_ALPHA, 0.05);
	t.most = UINT64_MAX; /* the time is bounded */
	for (i = 0; s->ops->now(s->arg) <= end; i++) {
		uint64_t hits = e[0].t.hits + e[1].t.hits;

		done = mmr_sprt_state(&t);
		if (((hits || again) && done >= 0) ||
		    (!hits && !again && i >= want))
			break;
		rc = start_neutrals(s, e);
		if (rc || !s->nfly)
			break;
		rc = mmr_flight_take(s, &r, NULL);
		if (rc)
			break;
		count_neutral(s, e, &r, &t);
	}
	mmr_flight_drop(s);
	s->refused = !rc && done == 1;
	for (i = 0; i < 2; i++) {
		note_null(s, &e[i],
			  s->refused && e[i].t.hits ? "fails too often"
						    : "fine");
		s->null.runs += e[i].t.runs;
		s->null.hits += e[i].t.hits;
		s->null.voids += e[i].t.voids;
		s->null.others += e[i].t.others;
	}
	return rc;
}

/* Whether q has kept the anchor's rate: 1, 0, -errno. */
static int has_rate(struct mmr_search *s, const struct mmr_search_query *q,
		    struct mmr_search_tally *c)
{
	bool high = s->p >= MMR_SEARCH_HIGH && !s->pass->rough;
	struct mmr_search_step st = {
		.why = MMR_SEARCH_CONTROL,
		.what = q->what,
		.p0 = (high ? CONTROL_LOST_HIGH : CONTROL_LOST) * s->p,
		.p1 = (high ? CONTROL_GOOD_HIGH : CONTROL_GOOD) * s->p,
		.alpha = CONTROL_ERROR,
		.beta = CONTROL_ERROR,
	};
	struct mmr_sprt t;
	int rc;

	memset(c, 0, sizeof(*c));
	mmr_sprt_init(&t, st.p1, st.p0, CONTROL_ERROR, CONTROL_ERROR);
	rc = mmr_search_test(s, q, &t, c);
	if (rc >= 0) {
		st.decision = rc ? "good" : "its rate is gone";
		mmr_search_note(s, &st, c);
	}
	return rc;
}

/* Is b another rate than a, beyond chance?  Difference of two proportions
 * against its standard error. */
static bool differs(const struct mmr_search_tally *a,
		    const struct mmr_search_tally *b)
{
	double na = (double)a->runs, nb = (double)b->runs;
	double pa = (double)a->hits / na, pb = (double)b->hits / nb;
	double all = (double)(a->hits + b->hits) / (na + nb);

	return fabs(pa - pb) >
	       CHANGE * sqrt(all * (1 - all) * (1 / na + 1 / nb) + 1e-12);
}

/* There is a new anchor.  Is it still five times the rate of false alarms, and
 * have there been enough runs to tell?  1, -ECANCELED, or another -errno. */
static int above_false(struct mmr_search *s)
{
	double known = (double)s->null.runs + s->pool_runs;
	int rc;

	if (known >= NULL_RUNS / s->p && s->p >= mmr_search_false(s) / RULE)
		return 1;
	rc = mmr_search_null(s, 1e9);
	if (rc || !s->refused)
		return rc ? rc : 1;
	s->refused = false;
	s->faded = true;
	return -ECANCELED;
}

/*
 * Original and best both fail less often than the anchor says.  Either that
 * was too high by chance, then more runs make it better; or the rate itself
 * has changed, and there is a new anchor.  1: the best is as good as any.
 */
static int recalibrate(struct mmr_search *s, struct mmr_search_tally *c)
{
	struct mmr_search_query q = {MMR_SEARCH_ORIGINAL, NULL, 0};
	struct mmr_search_step st = {.why = MMR_SEARCH_REFERENCE,
				     .what = MMR_SEARCH_ORIGINAL,
				     .decision = "the rate has changed"};
	uint64_t most = (uint64_t)(20 * RECALIBRATE_HITS / s->p);
	struct mmr_search_pass *p = s->pass;
	struct mmr_search_run r;
	int i, rc;

	while (c->hits < RECALIBRATE_HITS && c->runs < most) {
		rc = mmr_flight_start(s, &q, NULL);
		if (!rc)
			rc = mmr_flight_take(s, &r, NULL);
		if (rc)
			return rc;
		mmr_search_count(s, c, &r);
	}
	p->nhistory = 0;
	s->recalibrated++;
	if (!differs(&s->ref, c)) {
		s->ref.hits += c->hits;
		s->ref.runs += c->runs;
		s->p = (double)s->ref.hits / (double)s->ref.runs;
		s->now = s->p;
		st.decision = "the rate is known better";
		mmr_search_note(s, &st, &s->ref);
		return 1;
	}
	s->ref = *c;
	s->p = c->hits ? estimate(c->hits, c->runs) : s->p / 10;
	s->now = s->p;
	s->changes++;
	for (i = 0; i < p->n; i++)
		if (p->pi[i] > 0.5)
			p->pi[i] = 0.5;
	mmr_search_note(s, &st, c);
	rc = above_false(s);
	return rc < 0 ? rc : 0;
}

/*
 * A step passed its short test and yet took the rate away: a wait that orders
 * two threads is typical, without it the race is still there, only rarer.
 * The step is found by halving; what it took stays from here on.
 */
static int go_back(struct mmr_search *s)
{
	struct mmr_search_step st = {.why = MMR_SEARCH_BACK,
				     .decision = "back to before it"};
	struct mmr_search_pass *p = s->pass;
	size_t n = (size_t)p->n;
	struct mmr_search_tally c;
	int lo = 0, hi = p->nhistory, rc = 0, i, took = 0;
	const uint8_t *good, *bad;

	for (;;) {
		int mid = hi - lo > 1 ? lo + (hi - lo) / 2 : hi;
		struct mmr_search_query q = {MMR_SEARCH_BEST,
					     p->history + (size_t)mid * n, 0};

		/* The one that is found is asked twice: each answer is wrong
		 * with CONTROL_ERROR.  The best has been. */
		if (mid == p->nhistory)
			break;
		rc = has_rate(s, &q, &c);
		if (rc < 0)
			break;
		if (rc) {
			lo = mid;
			hi = mid == hi ? p->nhistory : hi;
		} else if (mid == hi) {
			break;
		} else {
			hi = mid;
		}
	}
	/* Also when time is over: what is known to be good is the result. */
	if (rc < 0 && rc != -ETIME && rc != -EINTR)
		return rc;
	good = p->history + (size_t)lo * n;
	bad = lo + 1 < p->nhistory ? good + n : p->out;
	memset(p->tmp, 0, n);
	for (i = 0; i < p->n; i++) {
		p->tmp[i] = bad[i] && !good[i];
		took += p->tmp[i];
	}
	for (i = 0; i < p->n; i++) {
		if (p->tmp[i])
			p->pi[i] = took == 1 ? 1 : 0.5;
		else if (p->out[i] && !good[i])
			p->pi[i] = 0.05;
	}
	st.add = p->tmp;
	mmr_search_note(s, &st, NULL);
	memcpy(p->out, good, n);
	p->nhistory = 0;
	i = s->ops->back(s->arg, p->out);
	if (!i)
		i = mmr_belief_close(s);
	return i ? i : rc < 0 ? rc : 0;
}

/* What is over sooner can be run longer in the same time, and hits again as
 * often a run as the reference. */
static void lengthen(struct mmr_search *s, const struct mmr_search_tally *c)
{
	double cost = mean_miss(c);

	if (s->ops->lengthen && s->miss_cost >= MMR_SEARCH_MIN_COST &&
	    cost > 0 && cost < LENGTHEN * s->miss_cost)
		s->ops->lengthen(s->arg, s->miss_cost / cost);
}

int mmr_search_control(struct mmr_search *s)
{
	struct mmr_search_pass *p = s->pass;
	struct mmr_search_query best = {MMR_SEARCH_BEST, p->out, 0};
	struct mmr_search_query first = {MMR_SEARCH_ORIGINAL, NULL, 0};
	struct mmr_search_tally c;
	double lo, hi;
	int rc;

	/* Candidates that hit and were refuted may be due to a wrong anchor. */
	if (!p->nhistory && p->refuted < 2)
		return 1;
	p->refuted = 0;
	rc = has_rate(s, &best, &c);
	if (!rc && s->p < MMR_SEARCH_HIGH) /* it may be chance */
		rc = has_rate(s, &best, &c);
	if (rc < 0)
		return rc;
	if (rc) {
		/* Clearly better than at first: the anchor goes up. */
		mmr_stat_interval(c.hits, c.runs, 0.95, &lo, &hi);
		if (lo > 1.5 * s->p)
			s->p = estimate(c.hits, c.runs);
		s->now = (double)(s->ref.hits + c.hits) /
			 (double)(s->ref.runs + c.runs);
		p->nhistory = 0;
		lengthen(s, &c);
		return 1;
	}
	rc = has_rate(s, &first, &c);
	if (rc < 0)
		return rc;
	if (rc)
		return p->nhistory ? go_back(s) : 1;
	if (s->recalibrated >= RECALIBRATIONS)
		return 1;
	return recalibrate(s, &c);
}

int mmr_search_race(struct mmr_search *s, int n, uint64_t most, double until)
{
	struct mmr_search_query q = {MMR_SEARCH_ARM, NULL, 0};
	struct mmr_search_tally c[MMR_SEARCH_IDS] = {{0}};
	struct mmr_search_run r;
	uint64_t begun = 0, done = 0;
	int rc = 0, win = -1;

	if (n > MMR_SEARCH_IDS)
		n = MMR_SEARCH_IDS;
	while (win < 0 && done < most && s->ops->now(s->arg) < until) {
		while (s->nfly < s->jobs && begun < most && !rc) {
			q.arm = (int)(begun % (uint64_t)n);
			rc = mmr_flight_start(s, &q, NULL);
			begun += !rc;
		}
		if (rc)
			break;
		rc = mmr_flight_take(s, &r, NULL);
		if (rc)
			break;
		done++;
		mmr_search_count(s, &c[r.arm], &r);
		if (c[r.arm].hits == 2)
			win = r.arm;
	}
	mmr_flight_drop(s);
	return rc ? rc : win;
}

int mmr_search_fresh(struct mmr_search *s, uint64_t runs, double until,
		     struct mmr_search_tally *t, struct mmr_stat_spread *spread)
{
	struct mmr_search_query q = {MMR_SEARCH_BEST, NULL, 0};
	struct mmr_search_step st = {.why = MMR_SEARCH_FRESH,
				     .decision = "its rate"};
	/* No worker waits for another one's run to end: two that begin at the
	 * same moment meet another load than those of a replay, and a race of
	 * starting threads has another rate. */
	int ahead = s->jobs > 1 ? 2 * s->jobs : 1;
	struct mmr_search_run r;
	int rc = 0;

	if (ahead > MMR_SEARCH_JOBS)
		ahead = MMR_SEARCH_JOBS;
	memset(t, 0, sizeof(*t));
	while (t->runs < runs && t->voids <= 4 * (t->runs + 5)) {
		/* One at least, and then as many as there is time for; none
		 * more than are taken, or the quick ones would be. */
		while (s->nfly < ahead && !rc &&
		       t->runs + (uint64_t)s->nfly < runs &&
		       (s->ops->now(s->arg) < until ||
			t->runs + t->voids + (uint64_t)s->nfly == 0))
			rc = mmr_flight_start(s, &q, NULL);
		if (!s->nfly)
			break;
		rc = mmr_flight_take(s, &r, NULL);
		if (rc)
			break;
		mmr_search_count(s, t, &r);
		if (r.kind != MMR_SEARCH_VOID)
			mmr_stat_spread_add(spread, mmr_search_hit(s, &r));
	}
	mmr_flight_drop(s);
	mmr_search_note(s, &st, t);
	return rc;
}

int mmr_search_without(struct mmr_search *s, int n, uint64_t runs, double until,
		       struct mmr_search_tally *t)
{
	struct mmr_search_step st = {.why = MMR_SEARCH_WITHOUT};
	struct mmr_search_run r;
	uint8_t *gone = calloc((size_t)n + 1, 2);
	struct mmr_search_query q = {MMR_SEARCH_BEST, gone, 0};
	int i, rc = 0;

	if (!gone)
		return -ENOMEM;
	memset(t, 0, (size_t)n * sizeof(*t));
	for (i = 0; i < n && !rc; i++) {
		memset(gone, 0, (size_t)n);
		gone[i] = 1;
		if (s->ops->close)
			s->ops->close(s->arg, gone);
		while (t[i].runs + t[i].voids < runs && !rc) {
			while (s->nfly < s->jobs && !rc &&
			       t[i].runs + t[i].voids + (uint64_t)s->nfly <
				       runs &&
			       s->ops->now(s->arg) < until)
				rc = mmr_flight_start(s, &q, NULL);
			if (rc == -ENOENT) {
				rc = 0;
				break;
			}
			if (rc || !s->nfly) {
				rc = rc ? rc : -ETIME;
				break;
			}
			rc = mmr_flight_take(s, &r, NULL);
			if (!rc)
				mmr_search_count(s, &t[i], &r);
		}
		memset(gone + n, 0, (size_t)n);
		gone[n + i] = 1;
		st.add = gone + n;
		st.decision =
			!t[i].hits ? "needed"
			: (double)t[i].hits < RARER * s->now * (double)t[i].runs
				? "it only fails more rarely without"
				: "it fails without";
		if (t[i].runs + t[i].voids)
			mmr_search_note(s, &st, &t[i]);
	}
	mmr_flight_drop(s);
	free(gone);
	return rc;
}
