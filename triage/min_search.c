// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The search itself: what is tried in which order, when a candidate is taken,
 * and the runs in flight.  See min_search.h.
 */
#include "min_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TABLE 8192 /* programs whose runs are remembered, a power of 2 */

/* A candidate has to keep this part of the rate, and must not have lost all
 * but that part; what is given up for good wrongly, and what is kept. */
#define GOOD 0.6
#define LOST 0.1
#define GOOD_CAREFUL 0.8
#define LOST_CAREFUL 0.4
#define ALPHA 0.005
#define BETA 0.01
/* Two hits in a row are enough where each costs few runs: the control follows,
 * and what is saved is a third of the runs of an accepted step. */
#define ALPHA_OFTEN 0.028
#define OFTEN 0.2
#define ALPHA_CAREFUL 0.02
/* A lost one may still fail by mistake, and then some. */
#define FALSE_FACTOR 1.5

#define FIRST_LOOK 0.93 /* needed, for the time being */
#define ROUGH_LOOK 0.8	/* where another pass looks closer */
#define LAST_LOOK 0.99	/* needed */
#define AGAIN 0.5	/* belief in what stayed, at the second look */
#define TRUST 0.9	/* in the reference's rate */
#define REFUTED 0.95	/* a test that failed is worth this much of a miss */
#define BREAKS 0.25	/* share of needed ones whose loss makes runs void */
#define BROKEN 0.9	/* void, if something needed is gone */
#define SUSPECT_HITS 5
#define DRIFTS 2 /* changes of the rate, then it is held against pairs */

int mmr_search_init(struct mmr_search *s, const struct mmr_search_ops *ops,
		    void *arg, int jobs)
{
	memset(s, 0, sizeof(*s));
	s->ops = ops;
	s->arg = arg;
	s->want = -1;
	s->jobs = jobs < 1		   ? 1
		  : jobs > MMR_SEARCH_JOBS ? MMR_SEARCH_JOBS
					   : jobs;
	s->table = calloc(TABLE, sizeof(*s->table));
	return s->table ? 0 : -ENOMEM;
}

void mmr_search_free(struct mmr_search *s)
{
	mmr_flight_drop(s);
	free(s->table);
}

/* Of good programs; of a few runs little is known. */
static double void_share(const struct mmr_search *s)
{
	double v = ((double)s->ref.voids + 1) /
		   ((double)(s->ref.runs + s->ref.voids) + 4);

	return v < BROKEN ? v : BROKEN;
}

double mmr_search_false(const struct mmr_search *s)
{
	double hits = (double)s->null.hits + s->pool_hits;
	double runs = (double)s->null.runs + s->pool_runs;

	return hits > 0 ? hits / runs : 0;
}

/* A void run says something against a program that has never failed: that
 * much less than a miss as good ones are void too. */
static void add_void(const struct mmr_search *s, struct mmr_sprt *t,
		     bool failed)
{
	t->runs++;
	if (!failed)
		t->l += t->reject * (BROKEN - void_share(s)) / 2;
}

int mmr_search_test(struct mmr_search *s, const struct mmr_search_query *q,
		    struct mmr_sprt *t, struct mmr_search_tally *c)
{
	struct mmr_search_run r;
	int rc = 0, done;

	while ((done = mmr_sprt_state(t)) < 0) {
		int most = mmr_sprt_least(t);

		while (s->nfly < s->jobs && s->nfly < most) {
			rc = mmr_flight_start(s, q, NULL);
			if (rc)
				goto out;
		}
		rc = mmr_flight_take(s, &r, NULL);
		if (rc)
			goto out;
		mmr_search_count(s, c, &r);
		if (r.kind == MMR_SEARCH_VOID)
			add_void(s, t, c->hits || t->l > 0);
		else
			mmr_sprt_add(t, mmr_search_hit(s, &r),
				     mmr_search_weight(s, r.cost));
	}
out:
	mmr_flight_drop(s);
	return rc ? rc : done;
}

/*
 * Candidate and best in turn, and only pairs count of which one failed: what
 * changes the rate of both changes nothing (Wald's double dichotomy).  The
 * parts are those of the plain test, as odds.
 */
static int test_pairs(struct mmr_search *s, const struct mmr_search_query *cand,
		      const struct mmr_search_query *best, double good,
		      double lost, struct mmr_sprt *t,
		      struct mmr_search_tally *c)
{
	uint64_t most = (uint64_t)(200 / s->p) + 200;
	struct mmr_search_run a, b;
	int rc, done;

	/* The hit that led here has no partner: half of what it is worth. */
	mmr_sprt_init(t, good / (1 + good), lost / (1 + lost), ALPHA, BETA);
	t->most = most;
	t->l = t->hit / 2;
	while ((done = mmr_sprt_state(t)) < 0 && c->runs < most) {
		rc = mmr_flight_start(s, cand, NULL);
		if (!rc && s->jobs > 1)
			rc = mmr_flight_start(s, best, NULL);
		if (!rc)
			rc = mmr_flight_take(s, &a, NULL);
		if (!rc && s->jobs == 1)
			rc = mmr_flight_start(s, best, NULL);
		if (!rc)
			rc = mmr_flight_take(s, &b, NULL);
		if (rc) {
			mmr_flight_drop(s);
			return rc;
		}
		mmr_search_count(s, c, &a);
		mmr_search_count(s, NULL, &b);
		if (a.kind == MMR_SEARCH_VOID) {
			t->runs++;
			continue;
		}
		if (b.kind == MMR_SEARCH_VOID ||
		    mmr_search_hit(s, &a) == mmr_search_hit(s, &b))
			continue;
		mmr_sprt_add(t, mmr_search_hit(s, &a), 1);
	}
	return done < 0 ? 0 : done;
}

/* The runs of a program, by its elements; NULL never. */
static struct mmr_search_tally *counts_of(struct mmr_search *s,
					  const uint8_t *gone)
{
	const struct mmr_search_pass *p = s->pass;
	uint64_t h = 0xcbf29ce484222325ULL ^ p->salt;
	struct mmr_search_count *c;
	int i, tries;

	for (i = 0; i < p->n; i++)
		h = (h ^ (uint64_t)(gone[i] + 1)) * 0x100000001b3ULL;
	h = h ? h : 1;
	for (tries = 0; tries < 32; tries++) {
		c = &s->table[(h + (uint64_t)tries) & (TABLE - 1)];
		if (c->key == h)
			return &c->t;
		if (!c->key)
			break;
	}
	/* Full around here: the last one is forgotten. */
	memset(c, 0, sizeof(*c));
	c->key = h;
	return &c->t;
}

static void merge(uint8_t *to, const uint8_t *set, int n)
{
	int i;

	for (i = 0; i < n; i++)
		to[i] |= set[i];
}

/* Takes set away for good.  0 or -errno. */
static int accept(struct mmr_search *s, const uint8_t *set)
{
	struct mmr_search_pass *p = s->pass;
	uint8_t *more;
	int rc;

	if (p->nhistory == p->max_history) {
		more = realloc(p->history,
			       (size_t)(p->max_history + 32) * (size_t)p->n);
		if (!more)
			return -ENOMEM;
		p->history = more;
		p->max_history += 32;
	}
	memcpy(p->history + (size_t)p->nhistory++ * (size_t)p->n, p->out,
	       (size_t)p->n);
	merge(p->out, set, p->n);
	rc = s->ops->accept(s->arg, p->out);
	return rc ? rc : mmr_belief_close(s);
}

/* The hit of a candidate was no accident: 1, it was: 0, -errno. */
static int confirm(struct mmr_search *s, const uint8_t *set, double belief)
{
	struct mmr_search_pass *p = s->pass;
	bool careful = p->care == MMR_SEARCH_CAREFUL;
	double good = careful ? GOOD_CAREFUL : GOOD;
	double lost = careful ? LOST_CAREFUL : LOST;
	double p0 = lost * s->p, f = FALSE_FACTOR * mmr_search_false(s);
	uint8_t *gone = p->tmp + 2 * p->n;
	struct mmr_search_query q = {MMR_SEARCH_BEST, gone, 0};
	struct mmr_search_query best = {MMR_SEARCH_BEST, p->out, 0};
	struct mmr_search_tally c = {0}, *known;
	struct mmr_search_step st = {.why = MMR_SEARCH_CONFIRM, .add = set};
	struct mmr_sprt t;
	int rc;

	memcpy(gone, p->out, (size_t)p->n);
	merge(gone, set, p->n);
	mmr_sprt_init(&t, good * s->p, p0 > f ? p0 : f,
		      careful	     ? ALPHA_CAREFUL
		      : s->p < OFTEN ? ALPHA
				     : ALPHA_OFTEN,
		      BETA);
	known = counts_of(s, gone);
	t.l = (double)known->hits * t.hit + known->misses * t.miss;
	if (s->changes >= DRIFTS && s->p < 0.5)
		rc = test_pairs(s, &q, &best, good, lost, &t, &c);
	else
		rc = mmr_search_test(s, &q, &t, &c);
	known = counts_of(s, gone);
	known->runs += c.runs;
	known->hits += c.hits;
	known->misses += c.misses;
	known->others += c.others;
	known->voids += c.voids;
	st.decision = rc == 1 ? "accepted" : rc ? "cut short" : "refuted";
	st.p0 = t.p0;
	st.p1 = t.p1;
	st.alpha = t.alpha;
	st.beta = t.beta;
	st.belief = belief;
	if (rc == 1) {
		rc = accept(s, set);
		mmr_search_note(s, &st, known);
		return rc ? rc : 1;
	}
	mmr_search_note(s, &st, known);
	if (rc)
		return rc;
	p->refuted++;
	/* The run that led here is one of them. */
	s->pool_hits += (double)c.hits + 1;
	s->pool_runs += (double)c.runs + 1;
	if (s->pool_hits < SUSPECT_HITS || s->null_thorough ||
	    s->pool_hits < s->pool_runs * s->p / 5)
		return 0;
	/* So many accidents: is the failure one at all? */
	rc = mmr_search_null(s, 1e9);
	return rc ? rc : s->refused ? -ECANCELED : 0;
}

/* Learns from one explored run that did not hit. */
static void learn_miss(struct mmr_search *s, const uint8_t *set,
		       const struct mmr_search_run *r)
{
	struct mmr_search_pass *p = s->pass;
	double like = TRUST * s->now * mmr_search_weight(s, r->cost);
	uint8_t *gone = p->tmp + 2 * p->n;
	struct mmr_search_tally *known;
	double none = 1, v = void_share(s);
	int i;

	if (r->kind == MMR_SEARCH_VOID) {
		/* Of a good program void is rare: much like a miss. */
		like = 1 - v / (BREAKS * BROKEN + (1 - BREAKS) * v);
		mmr_belief_miss(p->pi, set, p->n, like < 0 ? 0 : like);
		return;
	}
	mmr_belief_miss(p->pi, set, p->n, like);
	memcpy(gone, p->out, (size_t)p->n);
	merge(gone, set, p->n);
	known = counts_of(s, gone);
	known->runs++;
	known->misses += mmr_search_weight(s, r->cost);
	known->others += r->kind == MMR_SEARCH_FAIL;
	for (i = 0; i < p->n; i++)
		none *= set[i] ? 1 - p->pi[i] : 1;
	s->pool_runs += 1 - none;
}

static void note_try(struct mmr_search *s, const uint8_t *set, double belief,
		     const struct mmr_search_run *r)
{
	struct mmr_search_step st = {
		.why = MMR_SEARCH_TRY, .add = set, .belief = belief};

	st.runs = r->kind != MMR_SEARCH_VOID;
	st.voids = r->kind == MMR_SEARCH_VOID;
	st.others = r->kind == MMR_SEARCH_FAIL;
	st.decision = st.voids	  ? "void"
		      : st.others ? "another failure"
				  : "kept";
	mmr_search_note(s, &st, NULL);
}

static double chance_free(const struct mmr_search_pass *p, const uint8_t *set)
{
	double q = 1;
	int i;

	for (i = 0; i < p->n; i++)
		q *= set[i] ? 1 - p->pi[i] : 1;
	return q;
}

/* One explored run came back.  hit: it has to be confirmed. */
static void learn(struct mmr_search *s, const uint8_t *set,
		  const struct mmr_search_run *r, bool *hit)
{
	struct mmr_search_pass *p = s->pass;
	double belief = chance_free(p, set);
	uint8_t *gone = p->tmp + 2 * p->n;
	struct mmr_search_tally *known;

	mmr_search_count(s, NULL, r);
	*hit = mmr_search_hit(s, r);
	if (!*hit) {
		learn_miss(s, set, r);
		note_try(s, set, belief, r);
		return;
	}
	memcpy(gone, p->out, (size_t)p->n);
	merge(gone, set, p->n);
	known = counts_of(s, gone);
	known->runs++;
	known->hits++;
}

/* No such program: at least one of them has to stay. */
static void impossible(struct mmr_search *s, const uint8_t *set)
{
	struct mmr_search_pass *p = s->pass;
	int i, n = 0, last = 0;

	for (i = 0; i < p->n; i++)
		if (set[i]) {
			n++;
			last = i;
		}
	if (n == 1)
		p->pi[last] = 1;
	else
		mmr_belief_miss(p->pi, set, p->n, 1);
}

/* Starts explorations until all workers have one, as if those in flight
 * missed.  0 or -errno. */
static int explore_more(struct mmr_search *s, double most)
{
	struct mmr_search_pass *p = s->pass;
	uint8_t *gone = p->tmp + 2 * p->n, *set = p->tmp + 3 * p->n;
	struct mmr_search_query q = {MMR_SEARCH_BEST, gone, 0};
	double belief;
	int i, rc;

	while (s->nfly < s->jobs) {
		memcpy(p->spec, p->pi, (size_t)p->n * sizeof(*p->spec));
		for (i = 0; i < s->nfly; i++)
			mmr_belief_miss(p->spec, s->fly[i].set, p->n,
					TRUST * s->now);
		rc = mmr_belief_pick(s, p->spec, most, set, &belief);
		if (rc <= 0)
			return rc;
		memcpy(gone, p->out, (size_t)p->n);
		merge(gone, set, p->n);
		rc = mmr_flight_start(s, &q, set);
		if (rc == -ENOENT) {
			impossible(s, set);
			continue;
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* Explored runs that hit, to be confirmed; and what is still in flight. */
static int confirm_hits(struct mmr_search *s, uint8_t *first)
{
	struct mmr_search_pass *p = s->pass;
	struct mmr_search_run r;
	double f = mmr_search_false(s), belief;
	uint8_t *set = NULL;
	bool hit;
	int rc = 0;

	/* Those that were started before this was known. */
	while (s->nfly && !rc) {
		rc = mmr_flight_take(s, &r, &set);
		if (rc)
			break;
		learn(s, set, &r, &hit);
		if (hit)
			mmr_belief_hit(p->pi, set, p->n, TRUST * s->p,
				       f > s->p / 50 ? f : s->p / 50);
		free(set);
	}
	belief = chance_free(p, first);
	if (!rc)
		rc = confirm(s, first, belief);
	if (!rc)
		mmr_belief_miss(p->pi, first, p->n, REFUTED);
	return rc < 0 ? rc : 0;
}

/* Until every element that is left is believed to be needed. */
static int explore(struct mmr_search *s, double most)
{
	struct mmr_search_run r;
	uint8_t *set;
	bool hit;
	int rc = 0;

	for (;;) {
		rc = explore_more(s, most);
		if (rc || !s->nfly)
			break;
		rc = mmr_flight_take(s, &r, &set);
		if (rc)
			break;
		learn(s, set, &r, &hit);
		if (hit)
			rc = confirm_hits(s, set);
		free(set);
		if (rc)
			break;
	}
	mmr_flight_drop(s);
	return rc;
}

/* The belief at the second look: even, and what runs of just that program have
 * said. */
static double look_again(struct mmr_search *s, int i)
{
	struct mmr_search_pass *p = s->pass;
	uint8_t *gone = p->tmp + 2 * p->n;
	const struct mmr_search_tally *known;
	double missed;
	int k;

	memcpy(gone, p->out, (size_t)p->n);
	for (k = p->at[i]; k < p->at[i + 1]; k++)
		gone[p->list[k]] = 1;
	known = counts_of(s, gone);
	if (known->hits)
		return AGAIN;
	missed = pow(1 - TRUST * s->now, known->misses);
	return AGAIN / (AGAIN + (1 - AGAIN) * missed);
}

/* A first look, and a second one at what stayed; the rate of what came out is
 * checked after each. */
static int run_pass(struct mmr_search *s, bool twice)
{
	struct mmr_search_pass *p = s->pass;
	double look = p->rough ? ROUGH_LOOK : FIRST_LOOK;
	int i, rc;

	for (;;) {
		rc = explore(s, look);
		if (!rc)
			rc = mmr_search_control(s);
		if (rc < 0)
			return rc;
		if (!rc)
			continue; /* it set the beliefs anew */
		if (!twice || look == LAST_LOOK)
			return 0;
		look = LAST_LOOK;
		for (i = 0; i < p->n; i++)
			if (p->pi[i] < 1) /* 1 is proven */
				p->pi[i] = look_again(s, i);
	}
}

static int make_pass(struct mmr_search_pass *p,
		     const struct mmr_search_reduce *o)
{
	size_t n = (size_t)o->n;
	int i;

	p->n = o->n;
	p->care = o->care;
	p->rough = o->rough;
	p->out = calloc(n + 1, 1);
	p->tmp = malloc(4 * n + 1);
	p->pi = malloc((n + 1) * sizeof(*p->pi));
	p->spec = malloc((n + 1) * sizeof(*p->spec));
	p->at = malloc((n + 1) * sizeof(*p->at));
	if (!p->out || !p->tmp || !p->pi || !p->spec || !p->at)
		return -ENOMEM;
	for (i = 0; i < o->n; i++)
		p->pi[i] = o->pi ? o->pi[i] : o->prior;
	if (o->out)
		memcpy(p->out, o->out, n);
	return 0;
}

int mmr_search_reduce(struct mmr_search *s, const struct mmr_search_reduce *o,
		      uint8_t *out)
{
	struct mmr_search_pass pass = {.salt = ++s->salt *
					       0x9e3779b97f4a7c15ULL};
	int rc;

	memset(out, 0, (size_t)o->n);
	if (!o->n)
		return 0;
	s->pass = &pass;
	rc = make_pass(&pass, o);
	if (!rc)
		rc = mmr_belief_close(s);
	if (!rc)
		rc = run_pass(s, o->twice);
	mmr_flight_drop(s);
	if (pass.out)
		memcpy(out, pass.out, (size_t)o->n);
	free(pass.out);
	free(pass.tmp);
	free(pass.pi);
	free(pass.spec);
	free(pass.at);
	free(pass.list);
	free(pass.history);
	s->pass = NULL;
	return rc;
}
