// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The search's questions as cases, and their runs.  With one job a run is
 * made when its answer is asked for; with more, workers make them.
 *
 * A run of a candidate is bounded to a small multiple of what the reference
 * needed to fail.  Void runs say so; those in which mmrace itself failed say
 * nothing and are made again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "min.h"

#define TOOL_TRIES 5
#define EMPTY_NS 300000000LL
#define SECOND 1000000000LL

/* Nothing of the case, but about as long as one of its runs: what fails here is
 * the machine, or mmrace. */
static struct mmr_case *empty_case(const struct mmr_min *m)
{
	const struct mmr_op *op = mmr_op_by_name("delay");
	struct mmr_case *c = mmr_case_clone(m->first);
	struct mmr_diag diag = {0};
	struct mmr_thread *t;
	struct mmr_stmt *s;
	int64_t ns = m->miss_ns ? m->miss_ns : m->hit_ns;

	if (!c)
		return NULL;
	/* The pool gives no memory back: only what is printed counts. */
	c->nprocs = 0;
	c->rounds = 1;
	c->keep = false;
	t = mmr_case_add_thread(c, mmr_case_add_proc(c, "main"), "A");
	s = t && op ? mmr_case_add_op(c, &t->body, op, NULL) : NULL;
	if (s) {
		s->args[0].set = true;
		s->args[0].lo = ns < 1000	? 1000
				: ns > EMPTY_NS ? EMPTY_NS
						: ns;
		s->args[0].hi = s->args[0].lo;
		if (!mmr_case_check(c, &diag))
			return c;
	}
	mmr_case_free(c);
	return NULL;
}

/* Without the statement that was caught in the act, and what needs it. */
static struct mmr_case *neutral_case(const struct mmr_min *m)
{
	struct mmr_min_edit e = {.kind = MMR_MIN_STMT, .stmt = m->guilty};
	struct mmr_case *base = mmr_case_clone(m->first), *c = NULL;
	struct mmr_min_set set;
	uint8_t gone = 1;

	if (!base)
		return NULL;
	if (!mmr_min_set_init(&set, base) && m->guilty >= 0 &&
	    m->guilty < set.nstmts && !mmr_min_set_add(&set, &e))
		c = mmr_min_set_apply(&set, &gone);
	mmr_min_set_free(&set);
	return c;
}

static struct mmr_case *make_case(struct mmr_min *m,
				  const struct mmr_search_query *q)
{
	switch (q->what) {
	case MMR_SEARCH_BEST:
		if (!q->gone)
			return mmr_case_clone(m->best);
		return mmr_min_set_apply(&m->set, q->gone);
	case MMR_SEARCH_ORIGINAL:
		return mmr_case_clone(m->first);
	case MMR_SEARCH_EMPTY:
		return empty_case(m);
	case MMR_SEARCH_NEUTRAL:
		return neutral_case(m);
	case MMR_SEARCH_ARM:
		return mmr_case_clone(m->arms[q->arm]);
	}
	return NULL;
}

/* What a run may take; false: there is no time for it. */
static bool bound(struct mmr_min *m, struct mmr_min_job *j, bool own_rounds)
{
	struct mmr_run_opts *o = &j->o;
	uint64_t own = o->rounds ? o->rounds : (uint64_t)j->c->rounds;
	int64_t left = m->deadline_ns - mmr_clock_monotonic();
	int64_t budget = o->budget_ns ? o->budget_ns : j->c->budget_ns;

	if (left <= 0)
		return false;
	j->cut = false;
	o->rounds = m->rounds && !own_rounds ? m->rounds : own;
	if (m->run_ns && !m->own_rounds && (!budget || m->run_ns < budget))
		budget = m->run_ns;
	if (!budget || left < budget) {
		budget = left;
		j->cut = true;
	}
	o->budget_ns = budget;
	o->no_evidence = true;
	o->hold = false;
	o->on_finding = NULL;
	return true;
}

/* Is it failure i?  Keeps the signature that says more. */
static bool is_failure(struct mmr_min *m, int i, const struct mmr_run_result *r)
{
	if (!mmr_replay_same(m->sigs[i], r->signature))
		return false;
	if (strlen(r->signature) > strlen(m->sigs[i]))
		snprintf(m->sigs[i], sizeof(m->sigs[i]), "%s", r->signature);
	return true;
}

/* The number of a failure, the wanted one first; the last one is for all that
 * do not fit. */
static int failure_id(struct mmr_min *m, const struct mmr_run_result *r)
{
	int i = m->search.wanted;

	if (i >= 0 && i < m->nsigs && is_failure(m, i, r))
		return i;
	for (i = 0; i < m->nsigs; i++)
		if (is_failure(m, i, r))
			return i;
	if (m->nsigs == MMR_SEARCH_IDS)
		return MMR_SEARCH_IDS - 1;
	snprintf(m->sigs[i], sizeof(m->sigs[i]), "%s", r->signature);
	snprintf(m->texts[i], sizeof(m->texts[i]), "%s", r->text);
	m->verdicts[i] = r->verdict;
	m->nsigs++;
	return i;
}

/* What the reference's runs tell besides hit and miss. */
static void learn_reference(struct mmr_min *m, const struct mmr_min_job *j,
			    const struct mmr_run_result *r)
{
	uint64_t rounds = mmr_replay_rounds(r, j->o.first_round);
	bool hit = mmr_verdict_is_hit(r->verdict);

	m->all_rounds += rounds;
	if (!hit)
		return;
	m->hit_rounds += rounds ? rounds : 1;
	if (rounds > m->last_round)
		m->last_round = rounds;
	if (r->wall_ns > m->slowest_ns)
		m->slowest_ns = r->wall_ns;
	if (m->guilty < 0)
		m->guilty = r->stmt;
}

/* One run's result for the search.  0 or what ends it.  Locked. */
static int judge(struct mmr_min *m, struct mmr_min_job *j,
		 const struct mmr_run_result *r, int64_t took_ns)
{
	bool hit = mmr_verdict_is_hit(r->verdict);

	m->tool_failures = 0;
	m->res->runs++;
	j->run.cost = (double)took_ns / 1e9;
	/* A guest is thrown away with what cannot be killed in it. */
	if (r->quarantined > 0 && !m->opts->run.guest) {
		m->quarantined = r->quarantined;
		m->last = r->verdict;
		return -EBUSY;
	}
	if (hit) {
		j->run.kind = MMR_SEARCH_FAIL;
		j->run.id = failure_id(m, r);
		if (j->original)
			learn_reference(m, j, r);
		return 0;
	}
	m->last = r->verdict;
	snprintf(m->last_text, sizeof(m->last_text), "%s", r->text);
	if (!m->opts->run_fn && mmr_engine_interrupted())
		return -EINTR;
	if (r->verdict == MMR_SKIPPED && j->original)
		return -ENOTSUP;
	if (r->verdict == MMR_VOID || r->verdict == MMR_SKIPPED) {
		j->run.kind = MMR_SEARCH_VOID;
		/* The deadline left it no time. */
		return j->cut ? -ETIME : 0;
	}
	j->run.kind = MMR_SEARCH_MISS;
	if (j->original)
		learn_reference(m, j, r);
	/* Rounds that went through before the deadline are a whole run. */
	return j->cut && r->rounds < j->o.rounds ? -ETIME : 0;
}

static int run_case(struct mmr_min *m, struct mmr_min_job *j)
{
	struct mmr_run_result r;
	int64_t began;
	int rc, tries;

	for (tries = 0; tries < TOOL_TRIES; tries++) {
		if (!m->opts->run_fn && mmr_engine_interrupted())
			return -EINTR;
		if (mmr_clock_monotonic() > m->deadline_ns)
			return -ETIME;
		began = mmr_clock_monotonic();
		memset(&r, 0, sizeof(r));
		if (m->opts->run_fn)
			rc = m->opts->run_fn(m->opts->run_arg, j->c, &j->o, &r);
		else
			rc = mmr_run(j->c, &j->o, &r);
		if (rc)
			return rc;
		pthread_mutex_lock(&m->lock);
		if (r.verdict != MMR_TOOL_FAILED) {
			rc = judge(m, j, &r, mmr_clock_monotonic() - began);
			tries = TOOL_TRIES + 1;
		} else {
			m->last = r.verdict;
			snprintf(m->last_text, sizeof(m->last_text), "%s",
				 r.text);
			rc = ++m->tool_failures < TOOL_TRIES ? 0 : -EIO;
		}
		pthread_mutex_unlock(&m->lock);
		mmr_run_result_free(&r);
		if (rc)
			return rc;
	}
	return tries == TOOL_TRIES ? -EIO : 0; /* else judged */
}

static void *worker(void *arg)
{
	struct mmr_min *m = arg;
	struct mmr_min_job *j;
	int i, rc;

	pthread_mutex_lock(&m->lock);
	for (;;) {
		struct mmr_min_job *next = NULL;

		for (i = 0; i < 2 * MMR_SEARCH_JOBS; i++) {
			j = &m->jobs[i];
			if (j->busy && !j->running && !j->done && !j->dropped &&
			    (!next || j->turn < next->turn))
				next = j;
		}
		if (!next && m->stop)
			break;
		if (!next) {
			pthread_cond_wait(&m->cond, &m->lock);
			continue;
		}
		next->running = true;
		pthread_mutex_unlock(&m->lock);
		rc = run_case(m, next);
		pthread_mutex_lock(&m->lock);
		next->rc = rc;
		next->running = false;
		next->done = true;
		if (next->dropped) {
			mmr_case_free(next->c);
			next->busy = false;
		}
		pthread_cond_broadcast(&m->cond);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

int mmr_min_workers_start(struct mmr_min *m)
{
	int i, rc, n = m->opts->jobs > 1 ? m->opts->jobs : 0;

	rc = pthread_mutex_init(&m->lock, NULL);
	if (!rc)
		rc = pthread_cond_init(&m->cond, NULL);
	for (i = 0; i < n && i < MMR_SEARCH_JOBS && !rc; i++) {
		rc = pthread_create(&m->threads[i], NULL, worker, m);
		if (!rc)
			m->nthreads++;
	}
	return -rc;
}

void mmr_min_workers_stop(struct mmr_min *m)
{
	int i;

	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_broadcast(&m->cond);
	pthread_mutex_unlock(&m->lock);
	for (i = 0; i < m->nthreads; i++)
		pthread_join(m->threads[i], NULL);
	for (i = 0; i < 2 * MMR_SEARCH_JOBS; i++)
		if (m->jobs[i].busy)
			mmr_case_free(m->jobs[i].c);
	pthread_cond_destroy(&m->cond);
	pthread_mutex_destroy(&m->lock);
}

/* A job of its own, once there is one (dropped runs still hold theirs). */
static struct mmr_min_job *free_job(struct mmr_min *m, int *index)
{
	int i;

	for (;;) {
		for (i = 0; i < 2 * MMR_SEARCH_JOBS; i++)
			if (!m->jobs[i].busy) {
				*index = i;
				return &m->jobs[i];
			}
		pthread_cond_wait(&m->cond, &m->lock);
	}
}

static int min_start(void *arg, const struct mmr_search_query *q, int slot)
{
	struct mmr_min *m = arg;
	struct mmr_case *c = make_case(m, q);
	bool own = m->own_rounds || q->what == MMR_SEARCH_EMPTY;
	struct mmr_min_job *j;
	int index, rc = 0;

	if (!c)
		return -ENOENT;
	pthread_mutex_lock(&m->lock);
	j = free_job(m, &index);
	memset(j, 0, sizeof(*j));
	j->c = c;
	j->o = m->opts->run;
	j->original = q->what == MMR_SEARCH_ORIGINAL;
	j->o.first_round = m->next_round;
	if (!bound(m, j, own)) {
		rc = -ETIME;
	} else {
		m->next_round += j->o.rounds;
		j->busy = true;
		j->turn = m->turn++;
		m->slot[slot] = index;
		pthread_cond_broadcast(&m->cond);
	}
	pthread_mutex_unlock(&m->lock);
	if (rc)
		mmr_case_free(c);
	return rc;
}

static int min_wait(void *arg, int slot, struct mmr_search_run *r)
{
	struct mmr_min *m = arg;
	struct mmr_min_job *j = &m->jobs[m->slot[slot]];
	int rc;

	if (!m->nthreads) {
		rc = run_case(m, j);
	} else {
		pthread_mutex_lock(&m->lock);
		while (!j->done)
			pthread_cond_wait(&m->cond, &m->lock);
		rc = j->rc;
		pthread_mutex_unlock(&m->lock);
	}
	pthread_mutex_lock(&m->lock);
	*r = j->run;
	mmr_case_free(j->c);
	j->busy = false;
	pthread_cond_broadcast(&m->cond);
	pthread_mutex_unlock(&m->lock);
	if (m->opts->progress)
		m->opts->progress(m->opts->arg, mmr_case_count(m->best),
				  m->res->runs, NULL);
	return rc;
}

static void min_drop(void *arg, int slot)
{
	struct mmr_min *m = arg;
	struct mmr_min_job *j = &m->jobs[m->slot[slot]];

	pthread_mutex_lock(&m->lock);
	if (j->running) {
		j->dropped = true; /* its worker tidies up */
	} else {
		mmr_case_free(j->c);
		j->busy = false;
	}
	pthread_mutex_unlock(&m->lock);
}

static void min_close(void *arg, uint8_t *gone)
{
	struct mmr_min *m = arg;

	if (m->set.n && m->set.e[0].kind < MMR_MIN_UNWRAP)
		mmr_min_set_close(&m->set, gone);
}

static int min_take(void *arg, const uint8_t *gone)
{
	struct mmr_min *m = arg;
	struct mmr_case *c = mmr_min_set_apply(&m->set, gone);

	if (!c)
		return -ENOMEM;
	mmr_case_free(m->best);
	m->best = c;
	m->accepted++;
	return mmr_min_save(m);
}

/* More rounds; but not where the case's own are asked for. */
static void min_lengthen(void *arg, double factor)
{
	struct mmr_min *m = arg;
	double rounds = (double)m->rounds * factor;

	if (!m->rounds || rounds > MMR_CASE_MAX_ROUNDS)
		return;
	m->rounds = (uint64_t)rounds;
	mmr_min_say(m, "its runs are shorter now: %llu rounds a run",
		    (unsigned long long)m->rounds);
}

static void min_note(void *arg, const struct mmr_search_step *step)
{
	mmr_min_note(arg, step);
}

static double min_now(void *arg)
{
	(void)arg;
	return (double)mmr_clock_monotonic() / 1e9;
}

const struct mmr_search_ops mmr_min_ops = {
	.start = min_start,
	.wait = min_wait,
	.drop = min_drop,
	.close = min_close,
	.accept = min_take,
	.back = min_take,
	.lengthen = min_lengthen,
	.note = min_note,
	.now = min_now,
};
