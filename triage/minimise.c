// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Minimising: in which order, until when, and what is left in the end.
 *
 * The reference and its null rate first; a rare failure is made frequent;
 * then processes, threads, epochs; statements and loops; what can be plain
 * (placement, flags, arguments, sizes); the rest of the numbers by halves;
 * times rounded; threads joined; rounds last.  Fresh runs of the result, and
 * of the result without each of its statements, are what it is worth.
 *
 * The budget is one of wall time and always honoured; a part of it is kept
 * back for the fresh runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "min.h"

#define FRESH_SHARE 8 /* an eighth of the budget is for the result */
#define FRESH_RUNS 20
#define FRESH_HITS 20
#define FRESH_MOST 200
#define FRESH_MORE 60 /* and as many again at the end, in that time */
#define FRESH_MORE_S 10.0
/* Of processes, threads and epochs a failure needs two or three; to try again
 * and again whether a race of two threads needs both is a waste. */
#define NEEDED_PARTS 3.0
#define PARTS_LEAST 0.3
#define PARTS_MOST 0.6
/* Of the statements that are left about that many are needed, whatever their
 * number. */
#define NEEDED 5.0
#define PRIOR_LEAST 0.05
#define PRIOR_MOST 0.35
#define PRIOR_PLAIN 0.1
#define PRIOR_TRY 0.5
#define HALVINGS 40
#define MISSED 0.05 /* chance that "0 of n" is wrong */

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* That one of n is needed, if about `needed` of them are. */
static double prior(double needed, int n, double least, double most)
{
	double p = needed / (n + 1);

	return p < least ? least : p > most ? most : p;
}

/* The next pass is over m->best.  fill: its elements. */
static int new_set(struct mmr_min *m, int (*fill)(struct mmr_min_set *))
{
	struct mmr_case *base =
		m->resume_base ? m->resume_base : mmr_case_clone(m->best);
	int rc;

	m->resume_base = NULL;
	mmr_min_set_free(&m->set);
	rc = base ? mmr_min_set_init(&m->set, base) : -ENOMEM;
	return rc ? rc : fill(&m->set);
}

static int reduce(struct mmr_min *m, int (*fill)(struct mmr_min_set *),
		  struct mmr_search_reduce *o)
{
	uint8_t *out;
	int rc = new_set(m, fill);

	if (rc)
		return rc;
	o->n = m->set.n;
	if (m->phase == MMR_MIN_PARTS)
		o->prior = prior(NEEDED_PARTS, o->n, PARTS_LEAST, PARTS_MOST);
	if (m->resume_n == o->n) {
		o->out = m->resume_out;
		o->pi = m->resume_pi;
	}
	out = malloc((size_t)o->n + 1);
	rc = out ? mmr_search_reduce(&m->search, o, out) : -ENOMEM;
	free(out);
	free(m->resume_out);
	free(m->resume_pi);
	m->resume_out = NULL;
	m->resume_pi = NULL;
	m->resume_n = 0;
	return rc;
}

/* Halves what is above its least until nothing is taken any more. */
static int halve(struct mmr_min *m)
{
	struct mmr_search_reduce o = {.care = MMR_SEARCH_CAREFUL,
				      .prior = PRIOR_TRY};
	int i, before, rc = 0;

	for (i = 0; i < HALVINGS && !rc; i++) {
		before = m->accepted;
		rc = reduce(m, mmr_min_list_halves, &o);
		if (m->accepted == before)
			break;
	}
	return rc;
}

static int list_one_round(struct mmr_min_set *set)
{
	struct mmr_min_edit e = {
		.kind = MMR_MIN_ROUNDS, .stmt = -1, .value = 1};

	return set->base->rounds > 1 ? mmr_min_set_add(set, &e) : 0;
}

/*
 * Rounds do not change how often a round fails, only how long one waits.  As
 * many as the candidates ran with are enough; one, when it fails at once.
 */
static int reduce_rounds(struct mmr_min *m)
{
	struct mmr_search_reduce o = {.care = MMR_SEARCH_CAREFUL,
				      .prior = PRIOR_TRY};

	if (m->rounds) {
		m->best->rounds = (int64_t)m->rounds;
		m->first->rounds = (int64_t)m->rounds;
		m->rounds = 0;
	}
	return reduce(m, list_one_round, &o);
}

static int run_phase(struct mmr_min *m)
{
	struct mmr_search_reduce parts = {.rough = true};
	struct mmr_search_reduce stmts = {.twice = true};
	struct mmr_search_reduce plain = {.care = MMR_SEARCH_CAREFUL,
					  .prior = PRIOR_PLAIN};
	int before = m->accepted, rc = 0;

	switch (m->phase) {
	case MMR_MIN_PARTS:
		return reduce(m, mmr_min_list_parts, &parts);
	case MMR_MIN_STMTS:
		stmts.prior = prior(NEEDED, mmr_case_count(m->best),
				    PRIOR_LEAST, PRIOR_MOST);
		return reduce(m, mmr_min_list_stmts, &stmts);
	case MMR_MIN_PLAIN:
		rc = reduce(m, mmr_min_list_plain, &plain);
		break;
	case MMR_MIN_HALVES:
		rc = halve(m);
		break;
	case MMR_MIN_ROUNDING:
		rc = reduce(m, mmr_min_list_rounding, &plain);
		break;
	case MMR_MIN_MERGES:
		plain.prior = PRIOR_TRY;
		rc = reduce(m, mmr_min_list_merges, &plain);
		break;
	case MMR_MIN_AGAIN:
		stmts.prior = PRIOR_TRY;
		stmts.twice = false;
		return m->changed ? reduce(m, mmr_min_list_stmts, &stmts) : 0;
	case MMR_MIN_LAST:
		return reduce_rounds(m);
	case MMR_MIN_DONE:
		break;
	}
	m->changed += m->accepted - before;
	return rc;
}

/* A need that only an op had which is gone now. */
static void drop_needs(struct mmr_case *c)
{
	int i, j, n = mmr_case_count(c), kept = 0;

	for (i = 0; i < c->nneeds; i++) {
		bool used = c->needs[i].kind != MMR_NEED_SYSCALL;

		for (j = 0; j < n && !used; j++) {
			const struct mmr_stmt *s = mmr_case_stmt(c, j);

			used = s->kind == MMR_STMT_OP &&
			       !strcmp(s->op->name, c->needs[i].name);
		}
		if (used)
			c->needs[kept++] = c->needs[i];
	}
	c->nneeds = kept;
}

/* Fresh runs of the result, as its own text says. */
static int verify(struct mmr_min *m, uint64_t runs, double until)
{
	struct mmr_min_result *res = m->res;
	struct mmr_search_tally t;
	int rc;

	m->own_rounds = true;
	rc = mmr_search_fresh(&m->search, runs, until, &t, &res->final_spread);
	res->final_runs += t.runs;
	res->final_hits += t.hits;
	res->final_voids += t.voids;
	res->final_s += t.cost;
	return rc == -ETIME ? 0 : rc;
}

static uint64_t fresh_wanted(const struct mmr_min *m)
{
	double p = m->search.p;
	uint64_t runs = p > 0 && p < 0.8 ? (uint64_t)(FRESH_HITS / p) : 0;

	return runs < FRESH_RUNS   ? FRESH_RUNS
	       : runs > FRESH_MOST ? FRESH_MOST
				   : runs;
}

/* Without each of its statements: it should not fail any more. */
static int prove(struct mmr_min *m, double until)
{
	struct mmr_min_result *res = m->res;
	double p = res->final_runs
			   ? (double)res->final_hits / (double)res->final_runs
			   : m->search.p;
	struct mmr_search_tally *t;
	uint64_t runs;
	uint8_t *gone;
	int i, rc;

	rc = new_set(m, mmr_min_list_stmts);
	if (rc || !res->final_hits)
		return rc;
	runs = mmr_stat_runs(p, MISSED);
	t = calloc((size_t)m->set.n + 1, sizeof(*t));
	gone = calloc((size_t)m->set.n + 1, 1);
	res->without = calloc((size_t)m->set.n + 1, sizeof(*res->without));
	if (t && gone && res->without)
		rc = mmr_search_without(&m->search, m->set.n, runs, until, t);
	else
		rc = -ENOMEM;
	for (i = 0; rc != -ENOMEM && i < m->set.n; i++) {
		struct mmr_min_without *w = &res->without[res->nwithout];

		gone[i] = 1;
		mmr_min_set_describe(&m->set, gone, w->stmt, sizeof(w->stmt));
		gone[i] = 0;
		w->runs = t[i].runs;
		w->hits = t[i].hits;
		/* Without the only one it is the empty case. */
		if (m->set.n == 1) {
			w->runs = m->search.null.runs;
			w->hits = m->search.null.hits;
		}
		res->nwithout++;
	}
	free(t);
	free(gone);
	return rc == -ETIME ? 0 : rc;
}

static void say_moved(struct mmr_min *m)
{
	const struct mmr_min_result *res = m->res;
	double f = mmr_stat_spread_factor(&res->final_spread), lo, hi;

	mmr_min_interval(res, &lo, &hi);
	mmr_min_say(m,
		    "fails in %llu of %llu fresh runs (95 %%: %.3g to %.3g)%s",
		    (unsigned long long)res->final_hits,
		    (unsigned long long)res->final_runs, lo, hi,
		    f > MMR_STAT_MOVED ? "; the rate moves by more than chance"
				       : "");
}

/* The last part of the budget: what is the result worth? */
static int finish(struct mmr_min *m)
{
	double now = m->search.ops->now(m), end = seconds(m->end_ns);
	double slow = seconds(m->slowest_ns);
	uint64_t runs = fresh_wanted(m);
	int rc;

	m->deadline_ns = m->end_ns;
	drop_needs(m->best);
	/* The last ones must be able to end: a hit takes that long. */
	rc = verify(m, runs, now + (end - now) * 0.6 - slow);
	if (!rc)
		rc = prove(m, end - slow);
	/* Where runs are quick, some more after the proof: enough to see
	 * whether the rate moves. */
	end = m->search.ops->now(m) + FRESH_MORE_S < end - slow
		      ? m->search.ops->now(m) + FRESH_MORE_S
		      : end - slow;
	if (!rc && m->res->final_hits && m->res->final_runs == runs &&
	    m->search.ops->now(m) < end)
		rc = verify(m, runs < FRESH_MORE ? FRESH_MORE : runs, end);
	say_moved(m);
	m->best->seen_hits = (int64_t)m->res->final_hits;
	m->best->seen_runs = (int64_t)m->res->final_runs;
	return rc;
}

static void refuse(struct mmr_min *m)
{
	const struct mmr_search_tally *ref = &m->search.ref;
	struct mmr_min_result *res = m->res;

	res->verdict = m->last;
	if (m->last == MMR_SKIPPED || m->last == MMR_TOOL_FAILED)
		snprintf(res->text, sizeof(res->text), "%s", m->last_text);
	else if (ref->voids && !ref->runs)
		snprintf(res->text, sizeof(res->text),
			 "every one of %llu runs was void, so there is nothing "
			 "to go by: %.200s",
			 (unsigned long long)ref->voids, m->last_text);
	else
		snprintf(res->text, sizeof(res->text),
			 "it did not reproduce in %llu runs (%.1f s): there is "
			 "nothing to minimise; if it fails rarely, give more "
			 "time with --budget, or a seen line",
			 (unsigned long long)res->runs,
			 seconds(mmr_clock_monotonic() - m->start_ns));
}

static void refuse_null(struct mmr_min *m)
{
	const struct mmr_search_tally *n = &m->search.null;

	m->res->reproduced = 0;
	snprintf(m->res->text, sizeof(m->res->text),
		 "a case with nothing in it fails likewise: %llu of %llu runs "
		 "of programs that should not fail did (null rate f), and the "
		 "case itself fails with p = %.2g; with p < 5 f what is left "
		 "would be chance, so nothing is minimised (%.150s)",
		 (unsigned long long)n->hits, (unsigned long long)n->runs,
		 m->search.p, m->res->signature);
}

/* From the reference to what the search needs.  1: go on, 0: refused. */
static int begin(struct mmr_min *m)
{
	struct mmr_min_result *res = m->res;
	struct mmr_search *s = &m->search;
	int rc;

	if (m->opts->want_signature) {
		snprintf(m->sigs[0], sizeof(m->sigs[0]), "%s",
			 m->opts->want_signature);
		m->nsigs = 1;
		s->want = 0;
	}
	rc = mmr_min_reference(m);
	if (rc)
		return rc;
	if (!s->ref.hits) {
		refuse(m);
		return 0;
	}
	res->reproduced = 1;
	s->want = s->wanted;
	snprintf(res->signature, sizeof(res->signature), "%s",
		 m->sigs[s->wanted]);
	snprintf(res->text, sizeof(res->text), "%s", m->texts[s->wanted]);
	res->verdict = m->verdicts[s->wanted];
	mmr_min_say(m,
		    "%s: p = %.3g a run of %llu rounds, %.2g s a hit, "
		    "%.2g s a miss",
		    res->signature, s->p,
		    (unsigned long long)(m->rounds
						 ? m->rounds
						 : (uint64_t)m->first->rounds),
		    seconds(m->hit_ns), seconds(m->miss_ns));
	rc = mmr_search_null(s, seconds(m->opts->budget_ns) / 25);
	if (rc)
		return rc;
	if (s->refused) {
		refuse_null(m);
		return 0;
	}
	rc = mmr_min_save(m);
	if (!rc)
		rc = mmr_min_amplify(m);
	return rc ? rc : 1;
}

static int go_on(struct mmr_min *m)
{
	struct mmr_min_result *res = m->res;
	int w = m->search.wanted;

	if (w < 0 || w >= m->nsigs || !(m->search.p > 0))
		return -EINVAL;
	res->reproduced = 1;
	res->continued = true;
	m->search.want = w;
	snprintf(res->signature, sizeof(res->signature), "%s", m->sigs[w]);
	snprintf(res->text, sizeof(res->text), "%s", m->texts[w]);
	res->verdict = m->verdicts[w];
	mmr_min_say(m, "goes on from %s.state: %d statements, p = %.3g",
		    m->opts->best_path, mmr_case_count(m->best), m->search.p);
	return 1;
}

/* No time any more, or nothing more to be learnt: what there is, is it. */
static bool over(const struct mmr_min *m, int rc)
{
	return rc == -ETIME || rc == -EINTR ||
	       (rc == -ECANCELED && m->search.faded);
}

static int minimise(struct mmr_min *m)
{
	int rc = mmr_min_load(m), err;

	if (!rc)
		rc = begin(m);
	else if (rc > 0)
		rc = go_on(m);
	if (!rc || (rc < 0 && (!over(m, rc) || !m->res->reproduced)))
		return rc;
	rc = rc < 0 ? rc : 0;
	while (!rc && m->phase < MMR_MIN_DONE) {
		rc = run_phase(m);
		if (!rc)
			m->phase++;
		if (!rc)
			rc = mmr_min_save(m);
	}
	if (rc && !over(m, rc))
		return rc;
	m->res->complete = !rc;
	m->res->faded = m->search.faded;
	if (rc && m->rounds) /* what it was reduced with */
		m->best->rounds = (int64_t)m->rounds;
	if (rc != -EINTR)
		rc = finish(m);
	if (rc && !over(m, rc))
		return rc;
	err = mmr_min_save_result(m);
	return err;
}

/* Why a search that met an error ends. */
static int explain(struct mmr_min *m, int rc)
{
	struct mmr_min_result *res = m->res;

	switch (rc) {
	case -EBUSY:
		res->verdict = m->last;
		snprintf(res->text, sizeof(res->text),
			 "a run leaves %d tasks behind that cannot be killed: "
			 "such a case is not run again and again on this "
			 "machine; give --guest KERNEL",
			 m->quarantined);
		return 0;
	case -ENOTSUP:
		refuse(m);
		return 0;
	case -ECANCELED:
		refuse_null(m);
		return 0;
	case -EIO:
		snprintf(res->text, sizeof(res->text), "%s", m->last_text);
		return rc;
	case -ETIME:
	case -EINTR:
		snprintf(res->text, sizeof(res->text),
			 rc == -EINTR ? "interrupted" : "the budget is over");
		return 0;
	default:
		return rc;
	}
}

static void fill_result(struct mmr_min *m)
{
	const struct mmr_search *s = &m->search;
	struct mmr_min_result *res = m->res;

	res->hits = s->all.hits;
	res->ref_runs = s->ref.runs;
	res->ref_hits = s->ref.hits;
	res->ref_others = s->ref.others;
	res->voids = s->all.voids;
	res->null_runs = s->null.runs;
	res->null_hits = s->null.hits;
}

static void close_all(struct mmr_min *m)
{
	mmr_min_set_free(&m->set);
	mmr_search_free(&m->search);
	mmr_case_free(m->given);
	mmr_case_free(m->first);
	mmr_case_free(m->resume_base);
	free(m->resume_out);
	free(m->resume_pi);
	if (m->log_file)
		fclose(m->log_file);
	free(m);
}

static FILE *open_log(const char *best_path)
{
	char *path = NULL;
	FILE *f;

	if (!best_path || asprintf(&path, "%s.log", best_path) < 0)
		return NULL;
	f = fopen(path, "ae");
	free(path);
	return f;
}

int mmr_minimise(const struct mmr_case *c, const struct mmr_min_opts *opts,
		 struct mmr_min_result *res)
{
	struct mmr_min *m = calloc(1, sizeof(*m));
	int rc = -ENOMEM, workers = -1;

	memset(res, 0, sizeof(*res));
	res->stmts_before = res->stmts_after = mmr_case_count(c);
	if (!m)
		return rc;
	m->opts = opts;
	m->res = res;
	res->steps = json_array();
	m->start_ns = mmr_clock_monotonic();
	m->end_ns = m->start_ns + opts->budget_ns;
	m->deadline_ns = m->end_ns - opts->budget_ns / FRESH_SHARE;
	m->next_round = opts->run.first_round;
	m->guilty = -1;
	m->log_file = open_log(opts->best_path);
	m->given = mmr_case_clone(c);
	m->first = mmr_case_clone(c);
	m->best = mmr_case_clone(c);
	if (m->given && m->first && m->best && res->steps)
		rc = mmr_search_init(&m->search, &mmr_min_ops, m,
				     opts->jobs > 1 ? opts->jobs : 1);
	if (!rc)
		rc = workers = mmr_min_workers_start(m);
	if (!rc)
		rc = minimise(m);
	mmr_flight_drop(&m->search);
	if (!workers)
		mmr_min_workers_stop(m);
	if (rc)
		rc = explain(m, rc);
	fill_result(m);
	if (!rc && res->reproduced && m->best) {
		res->stmts_after = mmr_case_count(m->best);
		res->best = m->best;
	} else {
		mmr_case_free(m->best);
	}
	close_all(m);
	return rc;
}

void mmr_min_interval(const struct mmr_min_result *res, double *lo, double *hi)
{
	double w = mmr_stat_weight(&res->final_spread);

	mmr_stat_interval((double)res->final_hits * w,
			  (double)res->final_runs * w, 0.95, lo, hi);
}

void mmr_min_result_free(struct mmr_min_result *res)
{
	mmr_case_free(res->best);
	free(res->without);
	json_decref(res->steps);
	memset(res, 0, sizeof(*res));
}
