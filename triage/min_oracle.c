// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does a candidate still fail?  A failure of chance needs repeated runs: the
 * reference (the case as it was given) says how often it fails and how long
 * that takes.  A candidate's runs are bounded to a small multiple of that, and
 * a sequential test says when there were enough of them.
 *
 * The rate stays anchored at the reference.  Measured against the last
 * accepted candidate instead, five halvings would go through one by one.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "min.h"

#define MISS 0.03      /* chance of calling something needed that is not */
#define SLIDE 0.05     /* of taking away what most of the rate hangs on */
#define BOUND_FACTOR 3 /* of the reference's rounds and time to a hit */
#define BOUND_MIN_NS 3000000000LL
/* A rate of 1 is never known from a few runs. */
#define RATE_MAX 0.9
/* Share of geometric waits that are below 3 means: 1 - exp(-3). */
#define BOUND_SHARE 0.95
#define REF_RUNS 60 /* without any hit: shows 5 % and more with 95 % */
#define REF_RUNS_MAX 1000
#define REF_HITS 8 /* of one signature are enough */
#define CONTROL_RUNS 10
#define CONTROL_MISSES 3	  /* a rate of 0.9 has fewer with 93 % */
#define REF_WAIT_NS 50000000000LL /* likewise: "never fails" in a minute */

/*
 * One run.  rounds and run_ns: bounds, 0 none.  cut: the deadline made it
 * shorter than that.  The caller frees r when 0 is returned.
 */
static int run_once(struct mmr_min *m, const struct mmr_case *c,
		    uint64_t rounds, int64_t run_ns, int64_t deadline_ns,
		    struct mmr_run_result *r, bool *cut)
{
	struct mmr_run_opts o = m->opts->run;
	uint64_t own = o.rounds ? o.rounds : (uint64_t)c->rounds;
	int64_t left = deadline_ns - mmr_clock_monotonic();
	int64_t budget = o.budget_ns ? o.budget_ns : c->budget_ns;
	int rc;

	*cut = false;
	if (left <= 0)
		return -ETIME;
	if (!m->opts->run_fn && mmr_engine_interrupted())
		return -EINTR;
	o.rounds = rounds && rounds < own ? rounds : own;
	if (run_ns && (!budget || run_ns < budget))
		budget = run_ns;
	if (!budget || left < budget) {
		budget = left;
		*cut = true;
	}
	o.budget_ns = budget;
	o.first_round = m->next_round;
	m->next_round += o.rounds;
	o.no_evidence = true;
	o.hold = false;
	o.on_finding = NULL;
	memset(r, 0, sizeof(*r));
	if (m->opts->run_fn)
		rc = m->opts->run_fn(m->opts->run_arg, c, &o, r);
	else
		rc = mmr_run(c, &o, r);
	if (rc)
		return rc;
	m->res->runs++;
	m->tool_failures =
		r->verdict == MMR_TOOL_FAILED ? m->tool_failures + 1 : 0;
	if (m->tool_failures >= 5) {
		snprintf(m->res->text, sizeof(m->res->text), "%s", r->text);
		mmr_run_result_free(r);
		return -EIO;
	}
	/* Rounds that went through before the deadline are a whole run. */
	*cut = *cut && r->rounds < o.rounds;
	if (!m->opts->run_fn && !mmr_verdict_is_hit(r->verdict) &&
	    mmr_engine_interrupted()) {
		mmr_run_result_free(r);
		return -EINTR;
	}
	return 0;
}

static bool is_the_failure(const struct mmr_min *m,
			   const struct mmr_run_result *r)
{
	return mmr_verdict_is_hit(r->verdict) &&
	       !strcmp(r->signature, m->signature);
}

/* What the reference's hits mean for the runs of candidates. */
static void set_bounds(struct mmr_min *m, const struct mmr_case *c)
{
	uint64_t sum = 0, own = (uint64_t)c->rounds;
	int i;
	double p = 1;

	/* The last run was a hit, as that ended the count: without it the
	 * rate is not biased upwards. */
	if (m->res->ref_hits < m->res->ref_runs)
		p = (double)(m->res->ref_hits > 1 ? m->res->ref_hits - 1 : 1) /
		    (double)(m->res->ref_runs - 1);

	for (i = 0; i < m->nrefs; i++)
		sum += m->ref_rounds[i];
	m->always = m->res->ref_hits == m->res->ref_runs &&
		    sum == (uint64_t)m->nrefs;
	m->rounds = (BOUND_FACTOR * sum + (uint64_t)m->nrefs - 1) /
		    (uint64_t)m->nrefs;
	if (m->opts->run.rounds)
		own = m->opts->run.rounds;
	if (m->rounds >= own)
		m->rounds = own;
	else if (sum > (uint64_t)m->nrefs)
		p *= BOUND_SHARE;
	m->run_ns = BOUND_FACTOR * m->ref_wall_ns;
	if (m->run_ns < BOUND_MIN_NS)
		m->run_ns = BOUND_MIN_NS;
	m->p = p < RATE_MAX ? p : RATE_MAX;
}

/* The signature that most reference hits have, and only those count. */
struct tally {
	char signature[200];
	uint64_t hits;
	enum mmr_verdict verdict;
	char text[400];
};

struct reference {
	struct tally tallies[MMR_MIN_REFS];
	int n;
	struct {
		int tally;
		uint64_t rounds;
		int64_t wall_ns;
	} hits[REF_HITS * MMR_MIN_REFS]; /* the last signature's too */
	int nhits;
};

static void add_hit(struct reference *ref, const struct mmr_run_result *r,
		    uint64_t first_round)
{
	uint64_t rounds = mmr_replay_rounds(r, first_round);
	int i;

	for (i = 0; i < ref->n; i++)
		if (!strcmp(ref->tallies[i].signature, r->signature))
			break;
	if (i == MMR_MIN_REFS)
		return;
	if (i == ref->n) {
		struct tally *t = &ref->tallies[ref->n++];

		snprintf(t->signature, sizeof(t->signature), "%s",
			 r->signature);
		snprintf(t->text, sizeof(t->text), "%s", r->text);
		t->verdict = r->verdict;
		t->hits = 0;
	}
	ref->tallies[i].hits++;
	if (ref->nhits == REF_HITS * MMR_MIN_REFS)
		return;
	ref->hits[ref->nhits].tally = i;
	ref->hits[ref->nhits].rounds = rounds ? rounds : 1;
	ref->hits[ref->nhits++].wall_ns = r->wall_ns;
}

static int most_frequent(const struct reference *ref)
{
	int i, best = 0;

	for (i = 1; i < ref->n; i++)
		if (ref->tallies[i].hits > ref->tallies[best].hits)
			best = i;
	return best;
}

static void take_reference(struct mmr_min *m, const struct reference *ref)
{
	int i, best = most_frequent(ref);
	const struct tally *t = &ref->tallies[best];

	snprintf(m->signature, sizeof(m->signature), "%s", t->signature);
	snprintf(m->res->signature, sizeof(m->res->signature), "%s",
		 t->signature);
	m->res->verdict = t->verdict;
	m->res->ref_hits = t->hits;
	snprintf(m->res->text, sizeof(m->res->text), "%s", t->text);
	for (i = 0; i < ref->nhits && m->nrefs < MMR_MIN_REFS; i++) {
		if (ref->hits[i].tally != best)
			continue;
		m->ref_rounds[m->nrefs++] = ref->hits[i].rounds;
		if (ref->hits[i].wall_ns > m->ref_wall_ns)
			m->ref_wall_ns = ref->hits[i].wall_ns;
	}
}

/* Enough to know the rate, or no hope of a hit? */
static bool reference_done(const struct mmr_min *m, const struct mmr_case *c,
			   const struct reference *ref)
{
	int64_t spent = mmr_clock_monotonic() - m->start_ns;
	uint64_t runs = m->res->ref_runs, want = REF_RUNS;
	uint64_t hits = ref->n ? ref->tallies[most_frequent(ref)].hits : 0;
	int64_t wait = REF_WAIT_NS;
	bool at_once = true;
	int i;

	if (c->seen_hits > 0) {
		/* It is known to fail now and then: wait for it. */
		want = mmr_stat_runs(
			(double)c->seen_hits / (double)c->seen_runs, MISS);
		if (want < REF_RUNS)
			want = REF_RUNS;
		wait = m->opts->budget_ns;
	}
	if (wait > m->opts->budget_ns / 2)
		wait = m->opts->budget_ns / 2;
	if (!hits)
		return runs + m->res->voids >= want || spent > wait;
	/* Always and at once is known soon; else the mean of the rounds that
	 * it took has to be right, and the rate. */
	for (i = 0; i < ref->nhits; i++)
		at_once &= ref->hits[i].rounds == 1;
	return (hits >= 3 && hits == runs && at_once) || hits >= REF_HITS ||
	       runs >= REF_RUNS_MAX || spent > m->opts->budget_ns / 4;
}

static void refuse(struct mmr_min *m, const struct mmr_run_result *last)
{
	struct mmr_min_result *res = m->res;

	res->verdict = last->verdict;
	if (last->verdict == MMR_SKIPPED || last->verdict == MMR_TOOL_FAILED)
		snprintf(res->text, sizeof(res->text), "%s", last->text);
	else if (res->voids && !res->ref_runs)
		snprintf(res->text, sizeof(res->text),
			 "every one of %llu runs was void, so there is nothing "
			 "to go by",
			 (unsigned long long)res->voids);
	else
		snprintf(res->text, sizeof(res->text),
			 "it did not reproduce in %llu runs (%.1f s): there is "
			 "nothing to minimise; if it fails rarely, give more "
			 "time with --budget, or a seen line",
			 (unsigned long long)res->ref_runs,
			 (double)(mmr_clock_monotonic() - m->start_ns) / 1e9);
}

/* A guest is thrown away with what cannot be killed in it; this machine is
 * not. */
static bool wedges(const struct mmr_min *m, const struct mmr_run_result *r)
{
	return r->quarantined > 0 && !m->opts->run.guest;
}

int mmr_min_reference(struct mmr_min *m, const struct mmr_case *c)
{
	struct reference *ref = calloc(1, sizeof(*ref));
	struct mmr_run_result r = {0};
	int rc = 0;

	if (!ref)
		return -ENOMEM;
	do {
		uint64_t first = m->next_round;
		bool cut;

		mmr_run_result_free(&r);
		memset(&r, 0, sizeof(r));
		rc = run_once(m, c, 0, 0, m->deadline_ns, &r, &cut);
		if (rc)
			break;
		if (r.verdict == MMR_SKIPPED || r.verdict == MMR_TOOL_FAILED)
			break;
		if (r.verdict == MMR_VOID)
			m->res->voids++;
		else if (!cut || mmr_verdict_is_hit(r.verdict))
			m->res->ref_runs++;
		if (mmr_verdict_is_hit(r.verdict))
			add_hit(ref, &r, first);
		if (wedges(m, &r))
			break;
		if (m->opts->progress)
			m->opts->progress(m->opts->arg, m->res->stmts_before,
					  m->res->runs, "reference");
	} while (!reference_done(m, c, ref));
	if (rc == -ETIME)
		rc = 0; /* what there is has to do */
	if (rc)
		goto out;
	if (wedges(m, &r)) {
		m->res->verdict = r.verdict;
		snprintf(m->res->text, sizeof(m->res->text),
			 "a run leaves %d tasks behind that cannot be killed: "
			 "such a case is not run again and again on this "
			 "machine; give --guest KERNEL",
			 r.quarantined);
	} else if (!ref->n) {
		refuse(m, &r);
	} else {
		m->res->reproduced = 1;
		take_reference(m, ref);
		m->res->hits += m->res->ref_hits;
		set_bounds(m, c);
	}
out:
	mmr_run_result_free(&r);
	free(ref);
	return rc;
}

/*
 * Wald's sequential test of two rates, both parts of the reference's: good
 * enough to go on with, and all but lost.  It ends after the fewest runs that
 * its two errors allow, and asks for more than one hit, so that step by step
 * a case does not slide into one that hardly ever fails.
 */
struct sprt {
	double hit, miss;      /* what a run adds */
	double accept, reject; /* where it ends */
	uint64_t most;	       /* runs, then the sign decides */
};

static void sprt_init(struct sprt *t, double p, enum mmr_min_care care)
{
	double good = p * (care == MMR_MIN_CAREFUL ? 0.8 : 0.7);
	double lost = p * (care == MMR_MIN_CAREFUL ? 0.4 : 0.2);

	t->hit = log(good / lost);
	t->miss = log((1 - good) / (1 - lost));
	t->accept = log((1 - MISS) / SLIDE);
	t->reject = log(MISS / (1 - SLIDE));
	t->most = (uint64_t)(12 / (good - lost)) + 1;
}

/*
 * A case that failed every time at once has to go on doing so.  Hits in a row
 * show it, a miss at the start ends it, and one miss later on is made up for
 * by more hits: a rate of 0.9 may have passed for 1.
 */
static int judge_always(uint64_t runs, uint64_t hits, uint64_t need)
{
	uint64_t misses = runs - hits;

	if (misses > 1 || (misses == 1 && !hits))
		return 0;
	return hits >= (misses ? need + 4 : need) ? 1 : -1;
}

/* Runs cand once, counts it.  0 or -errno. */
static int test_run(struct mmr_min *m, const struct mmr_case *cand,
		    uint64_t *runs, uint64_t *hits)
{
	struct mmr_run_result r;
	bool cut;
	int rc = run_once(m, cand, m->rounds, m->run_ns, m->deadline_ns, &r,
			  &cut);

	if (rc)
		return rc;
	(*runs)++;
	if (is_the_failure(m, &r)) {
		(*hits)++;
		m->res->hits++;
	}
	mmr_run_result_free(&r);
	return 0;
}

int mmr_min_test(struct mmr_min *m, const struct mmr_case *cand,
		 enum mmr_min_care care, uint64_t *runs, uint64_t *hits)
{
	struct sprt t;
	double sum = 0;
	int rc, done;

	sprt_init(&t, m->p, care);
	*runs = *hits = 0;
	do {
		rc = test_run(m, cand, runs, hits);
		if (rc)
			return rc;
		if (m->always) {
			done = judge_always(*runs, *hits,
					    care == MMR_MIN_PLAIN ? 2 : 3);
			if (done >= 0)
				return done;
			continue;
		}
		sum = (double)*hits * t.hit + (double)(*runs - *hits) * t.miss;
		if (sum >= t.accept)
			return 1;
		if (sum <= t.reject)
			return 0;
	} while (*runs < t.most);
	return sum > 0;
}

int mmr_min_control(struct mmr_min *m, const struct mmr_case *c, uint64_t *runs,
		    uint64_t *hits)
{
	int rc;

	if (!m->always)
		return mmr_min_test(m, c, MMR_MIN_CAREFUL, runs, hits);
	*runs = *hits = 0;
	while (*runs < CONTROL_RUNS && *runs - *hits < CONTROL_MISSES) {
		rc = test_run(m, c, runs, hits);
		if (rc)
			return rc;
	}
	return *runs - *hits < CONTROL_MISSES;
}

int mmr_min_full_run(struct mmr_min *m, const struct mmr_case *c,
		     int64_t limit_ns)
{
	struct mmr_run_result r;
	bool cut;
	int rc = run_once(m, c, 0, 0, limit_ns, &r, &cut);

	if (rc)
		return rc;
	if (is_the_failure(m, &r)) {
		rc = 1;
		m->res->hits++;
	} else if (r.verdict == MMR_VOID || cut) {
		rc = -EAGAIN;
	}
	mmr_run_result_free(&r);
	return rc;
}
