// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Replay: the same case run after run, and what that says of its rate.
 *
 * With several jobs runs overlap, and their results count in the order in
 * which they began: whoever stops on what came first would count the quick
 * ones.  A result waits in its slot until those before it are there.
 */
#include "replay.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"

#define MAX_JOBS 32
#define SLOTS (4 * MAX_JOBS)
#define TOOL_TRIES 5 /* failures of mmrace in a row end it */
#define WRONG 0.05

struct slot {
	bool ready, shortened;
	uint64_t first_round;
	struct mmr_run_result r;
};

struct replay {
	const struct mmr_case *c;
	const struct mmr_replay_opts *opts;
	struct mmr_replay_result *res;
	int64_t deadline, budget;
	uint64_t rounds, max;
	char want[200];

	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint64_t next, turn; /* to begin, to count */
	int failures;	     /* in a row */
	bool stop;
	int rc;
	struct slot slots[SLOTS];
};

uint64_t mmr_replay_rounds(const struct mmr_run_result *r, uint64_t first)
{
	if (mmr_verdict_is_hit(r->verdict) && r->hit_round >= first &&
	    r->hit_round - first >= r->rounds)
		return r->hit_round - first + 1;
	return r->rounds;
}

/* Where the frames begin: after verdict and operation. */
static const char *frames_of(const char *sig)
{
	const char *s = strchr(sig, ' ');

	s = s ? strchr(s + 1, ' ') : NULL;
	return s ? s : sig + strlen(sig);
}

/* At least two frames of a, and half of them, are in b as well. */
static bool share_frames(const char *a, const char *b)
{
	int n = 0, all = 0;
	size_t la, lb;

	for (; *a; a += la + (a[la] == '<')) {
		const char *o;

		la = strcspn(a, "<");
		all++;
		for (o = b; *o; o += lb + (o[lb] == '<')) {
			lb = strcspn(o, "<");
			if (la != lb || memcmp(a, o, la))
				continue;
			n++;
			break;
		}
	}
	return n >= 2 && 2 * n >= all;
}

bool mmr_replay_same(const char *a, const char *b)
{
	const char *fa = frames_of(a), *fb = frames_of(b);

	if (!strcmp(a, b))
		return true;
	if (fa - a != fb - b || memcmp(a, b, (size_t)(fa - a)))
		return false;
	return !*fa || !*fb || share_frames(fa + 1, fb + 1) ||
	       share_frames(fb + 1, fa + 1);
}

const char *mmr_answer_name(enum mmr_answer a)
{
	static const char *const names[] = {
		[MMR_REPRODUCED] = "reproduced",
		[MMR_NOT_REPRODUCED] = "not-reproduced",
		[MMR_INCONCLUSIVE] = "inconclusive",
	};

	return names[a];
}

uint64_t mmr_replay_demand(int64_t hits, int64_t runs, double wrong)
{
	double lo, hi;

	if (hits <= 0 || runs <= 0)
		return 0;
	mmr_stat_interval((uint64_t)hits, (uint64_t)runs, 0.8, &lo, &hi);
	return mmr_stat_runs(lo, wrong);
}

/* Counts one run; true when it goes into res->last. */
static bool count(struct replay *p, const struct slot *s)
{
	struct mmr_replay_result *res = p->res;
	bool first = !res->hits && !res->other_hits, hit;

	res->rounds += mmr_replay_rounds(&s->r, s->first_round);
	res->rounds_void += s->r.rounds_void;
	res->rounds_late += s->r.rounds_late;
	res->compared += s->r.compared;
	res->wall_ns += s->r.wall_ns;
	if (s->r.verdict == MMR_VOID) {
		res->voids++;
		return first;
	}
	res->runs++;
	if (mmr_verdict_is_hit(s->r.verdict) && !p->want[0])
		snprintf(p->want, sizeof(p->want), "%s", s->r.signature);
	hit = mmr_verdict_is_hit(s->r.verdict) &&
	      mmr_replay_same(p->want, s->r.signature);
	mmr_stat_spread_add(&res->spread, hit);
	if (!mmr_verdict_is_hit(s->r.verdict))
		return first;
	if (hit) {
		/* The one that says more. */
		if (strlen(s->r.signature) > strlen(p->want))
			snprintf(p->want, sizeof(p->want), "%s",
				 s->r.signature);
		res->hits++;
		return res->hits == 1;
	}
	res->other_hits++;
	return first;
}

/* A run that the deadline cut short and that hit nothing is no sample: it
 * would make the rate look smaller than it is. */
static bool cut_short(const struct slot *s)
{
	return !mmr_verdict_is_hit(s->r.verdict) &&
	       (s->shortened || mmr_engine_interrupted());
}

static void interval(const struct mmr_replay_result *res, double *lo,
		     double *hi)
{
	double w = mmr_stat_weight(&res->spread);

	mmr_stat_interval((double)res->hits * w, (double)res->runs * w, 0.95,
			  lo, hi);
}

/* Is the interval narrow enough, or one hit all that was asked? */
static bool enough(struct replay *p)
{
	struct mmr_replay_result *res = p->res;
	double lo, hi;

	if (p->opts->first_hit && res->hits)
		return true;
	if (!(p->opts->precision > 0) || !res->runs)
		return false;
	interval(res, &lo, &hi);
	res->precise = hi - lo <= p->opts->precision;
	return res->precise;
}

/* The result whose turn it is.  Locked. */
static void take(struct replay *p, struct slot *s)
{
	struct mmr_replay_result *res = p->res;
	enum mmr_verdict v = s->r.verdict;
	bool keep = false;

	if (p->stop) {
		mmr_run_result_free(&s->r);
		return;
	}
	if (v == MMR_TOOL_FAILED) {
		res->tool_failures++;
		p->stop = ++p->failures == TOOL_TRIES;
		keep = !res->runs && !res->voids;
	} else if (v == MMR_SKIPPED) {
		p->stop = keep = true;
	} else if (p->turn > 1 && cut_short(s)) {
		p->stop = true;
	} else {
		p->failures = 0;
		if (p->opts->ran)
			p->opts->ran(p->opts->ran_arg, &s->r);
		keep = count(p, s);
		p->stop = enough(p);
		/* What it leaves behind cannot be killed: not again on this
		 * machine.  A guest is thrown away with it. */
		if (s->r.quarantined > 0 && !p->opts->run.guest)
			p->stop = true;
	}
	if (keep) {
		mmr_run_result_free(&res->last);
		res->last = s->r;
	} else {
		mmr_run_result_free(&s->r);
	}
	if (p->opts->progress)
		p->opts->progress(p->opts->arg, res->runs + res->voids,
				  res->hits);
}

/* Options of run i; false: there is no time left for it. */
static bool prepare(const struct replay *p, uint64_t i, struct slot *s,
		    struct mmr_run_opts *o)
{
	int64_t left;

	*o = p->opts->run;
	/* Evidence is kept of the first hit.  To gather more of it would take
	 * time, and load the machine that the others run on. */
	if (p->res->hits)
		o->no_evidence = true;
	o->first_round += i * p->rounds;
	memset(s, 0, sizeof(*s));
	s->first_round = o->first_round;
	if (!p->deadline)
		return true;
	left = p->deadline - mmr_clock_monotonic();
	if (left <= 0)
		return false;
	if (!p->budget || left < p->budget) {
		o->budget_ns = left;
		s->shortened = true;
	}
	return true;
}

/* Runs until there is nothing more to do.  Any number of threads. */
static void *work(void *arg)
{
	struct replay *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct mmr_run_opts o;
		struct slot *s = &p->slots[p->next % SLOTS];
		int rc;

		if (p->stop || p->next >= p->max || mmr_engine_interrupted())
			break;
		if (p->next - p->turn == SLOTS) {
			pthread_cond_wait(&p->cond, &p->lock);
			continue;
		}
		if (!prepare(p, p->next, s, &o))
			break;
		p->next++;
		pthread_mutex_unlock(&p->lock);
		rc = mmr_run(p->c, &o, &s->r);
		pthread_mutex_lock(&p->lock);
		if (rc) {
			p->rc = rc;
			p->stop = true;
			break;
		}
		/* Cut by the deadline only if it used all that was left. */
		s->shortened = s->shortened && s->r.rounds < p->rounds;
		s->ready = true;
		while (p->turn < p->next && p->slots[p->turn % SLOTS].ready) {
			s = &p->slots[p->turn++ % SLOTS];
			s->ready = false;
			take(p, s);
		}
		pthread_cond_broadcast(&p->cond);
	}
	pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int run_all(struct replay *p)
{
	pthread_t threads[MAX_JOBS];
	int i, n = 0, want = p->opts->jobs;

	if (want > MAX_JOBS)
		want = MAX_JOBS;
	for (i = 1; i < want; i++)
		if (!pthread_create(&threads[n], NULL, work, p))
			n++;
	work(p);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	/* Those that came after one that never came. */
	for (; p->turn < p->next; p->turn++)
		if (p->slots[p->turn % SLOTS].ready)
			mmr_run_result_free(&p->slots[p->turn % SLOTS].r);
	return p->rc;
}

/* Yes, no, or too few runs for a no. */
static void answer(struct replay *p)
{
	struct mmr_replay_result *res = p->res;

	interval(res, &res->lo, &res->hi);
	snprintf(res->signature, sizeof(res->signature), "%s", p->want);
	res->demanded =
		mmr_replay_demand(p->c->seen_hits, p->c->seen_runs, WRONG);
	if (res->hits)
		res->answer = MMR_REPRODUCED;
	else if (!res->runs || res->runs < res->demanded ||
		 (p->opts->precision > 0 && !res->precise))
		res->answer = MMR_INCONCLUSIVE;
	else
		res->answer = MMR_NOT_REPRODUCED;
}

int mmr_replay(const struct mmr_case *c, const struct mmr_replay_opts *opts,
	       struct mmr_replay_result *res)
{
	struct replay *p = calloc(1, sizeof(*p));
	int64_t began = mmr_clock_monotonic();
	int rc;

	memset(res, 0, sizeof(*res));
	if (!p)
		return -ENOMEM;
	p->c = c;
	p->opts = opts;
	p->res = res;
	p->deadline = opts->time_ns ? began + opts->time_ns : 0;
	p->budget = opts->run.budget_ns ? opts->run.budget_ns : c->budget_ns;
	p->rounds = opts->run.rounds ? opts->run.rounds : (uint64_t)c->rounds;
	p->max = opts->max_runs;
	if (!p->max)
		p->max = p->deadline || opts->precision > 0 ? UINT64_MAX : 1;
	if (opts->want_signature)
		snprintf(p->want, sizeof(p->want), "%s", opts->want_signature);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->cond, NULL);
	if (opts->progress)
		opts->progress(opts->arg, 0, 0);
	rc = run_all(p);
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->lock);
	res->elapsed_ns = mmr_clock_monotonic() - began;
	answer(p);
	free(p);
	return rc;
}

static void binomial(uint64_t k, uint64_t n, double weight,
		     struct mmr_rate_ci *ci)
{
	ci->rate = n ? (double)k / (double)n : -1;
	mmr_stat_interval((double)k * weight, (double)n * weight, 0.95, &ci->lo,
			  &ci->hi);
}

void mmr_replay_get_rates(const struct mmr_replay_result *res,
			  struct mmr_replay_rates *x)
{
	double wall = (double)res->wall_ns / 1e9;
	double w = mmr_stat_weight(&res->spread);

	memset(x, 0, sizeof(*x));
	binomial(res->hits, res->runs, w, &x->run);
	binomial(res->hits, res->rounds - res->rounds_void, w, &x->round);
	x->second.rate = x->expected_s.rate = -1;
	x->expected_s.hi = INFINITY;
	if (wall > 0) {
		x->second.rate = (double)res->hits / wall;
		mmr_stat_poisson((double)res->hits * w, wall * w, 0.95,
				 &x->second.lo, &x->second.hi);
		x->expected_s.lo = 1 / x->second.hi;
		if (res->hits) {
			x->expected_s.rate = 1 / x->second.rate;
			x->expected_s.hi = 1 / x->second.lo;
		}
	}
	if (res->hits)
		x->runs95 = mmr_stat_runs(x->run.rate, 0.05);
}
