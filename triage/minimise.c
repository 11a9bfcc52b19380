// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Minimising: what is taken away in which order, until when, and what is left
 * in the end.  Big things first (processes, threads, chunks of statements),
 * then statement by statement until nothing more goes, then numbers.
 *
 * The budget is one of wall time and always honoured: a tenth of it is kept
 * back for fresh runs of the result.  The best so far is on disk after every
 * accepted step, so a kill at any time loses at most the step in flight.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "finding.h"
#include "min.h"

#define MAX_CHUNK 16
#define FINAL_RUNS 10

void mmr_min_log(struct mmr_min *m, const char *what, uint64_t runs,
		 uint64_t hits, const char *decision)
{
	int stmts = mmr_case_count(m->best);

	if (m->opts->progress)
		m->opts->progress(m->opts->arg, stmts, m->res->runs, what);
	if (!m->opts->log)
		return;
	fprintf(m->opts->log, "%4d %6.1fs  %s: %llu/%llu hits, %s (%d left)\n",
		m->step, (double)(mmr_clock_monotonic() - m->start_ns) / 1e9,
		what, (unsigned long long)hits, (unsigned long long)runs,
		decision, stmts);
	fflush(m->opts->log);
}

int mmr_min_save(const struct mmr_min *m)
{
	char *text;
	int rc;

	if (!m->opts->best_path)
		return 0;
	text = mmr_case_print(m->best);
	if (!text)
		return -ENOMEM;
	rc = mmr_write_file(m->opts->best_path, text, strlen(text));
	free(text);
	return rc;
}

/* Hash of a candidate's text, never 0 (FNV-1a). */
static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
	return h ? h : 1;
}

/*
 * Candidates that were run to the end and did not fail are not run again: a
 * pass repeats only for what was tried on a bigger best.  Open addressing; a
 * full table forgets.
 */
static uint64_t *seen_slot(struct mmr_min *m, uint64_t h)
{
	unsigned int i, at = (unsigned int)(h % MMR_MIN_SEEN);

	for (i = 0; i < 64; i++, at = (at + 1) % MMR_MIN_SEEN)
		if (!m->seen[at] || m->seen[at] == h)
			return &m->seen[at];
	return &m->seen[h % MMR_MIN_SEEN];
}

int mmr_min_reject(struct mmr_min *m, const struct mmr_case *c)
{
	char *text = mmr_case_print(c);
	uint64_t h;

	if (!text)
		return -ENOMEM;
	h = hash_text(text);
	*seen_slot(m, h) = h;
	free(text);
	return 0;
}

int mmr_min_try(struct mmr_min *m, struct mmr_case *cand,
		enum mmr_min_care care, const char *what)
{
	struct mmr_diag diag = {0};
	uint64_t runs = 0, hits = 0, h, *slot;
	char *text;
	int rc;

	cand->seen_hits = cand->seen_runs = 0;
	text = mmr_case_check(cand, &diag) ? NULL : mmr_case_print(cand);
	if (!text) {
		mmr_case_free(cand);
		return 0; /* no longer a case */
	}
	h = hash_text(text);
	free(text);
	slot = seen_slot(m, h);
	if (*slot == h) {
		mmr_case_free(cand);
		return 0;
	}
	m->step++;
	rc = mmr_min_test(m, cand, care, &runs, &hits);
	if (rc < 0) {
		mmr_min_log(m, what, runs, hits,
			    rc == -ETIME ? "budget over" : "stopped");
		mmr_case_free(cand);
		return rc;
	}
	if (!rc) {
		*slot = h;
		mmr_case_free(cand);
		mmr_min_log(m, what, runs, hits, "needed");
		return 0;
	}
	rc = mmr_min_advance(m, cand);
	if (rc)
		return rc;
	m->accepted++;
	mmr_min_log(m, what, runs, hits, "accepted");
	rc = mmr_min_save(m);
	return rc ? rc : 1;
}

/* Threads and processes once, statements until nothing more goes. */
static int reduce_structure(struct mmr_min *m)
{
	int chunk, rc;

	do {
		m->accepted = 0;
		rc = mmr_min_pass_procs(m);
		if (!rc)
			rc = mmr_min_pass_threads(m);
		for (chunk = MAX_CHUNK; chunk >= 1 && !rc; chunk /= 2)
			rc = mmr_min_pass_stmts(m, chunk);
		if (!rc)
			rc = mmr_min_pass_unwrap(m);
	} while (!rc && m->accepted);
	return rc;
}

static int reduce_numbers(struct mmr_min *m)
{
	int rc;

	m->accepted = 0;
	rc = mmr_min_pass_numbers(m);
	if (!rc)
		rc = mmr_min_pass_args(m);
	if (!rc)
		rc = mmr_min_pass_rounds(m);
	return rc;
}

/* Everything, until nothing more goes and the rate has stayed. */
static int reduce(struct mmr_min *m)
{
	int rc;

	do {
		rc = reduce_structure(m);
		if (!rc)
			rc = mmr_min_check_rate(m);
	} while (!rc);
	if (rc < 0)
		return rc;
	do {
		rc = reduce_numbers(m);
		if (!rc)
			rc = mmr_min_check_rate(m);
	} while (!rc);
	return rc < 0 ? rc : 0;
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

/*
 * The null question: does it fail with nothing in it?  Then what fails is
 * the machine or mmrace, and removing statements would show just that.
 */
static int fails_empty(struct mmr_min *m, const struct mmr_case *c)
{
	struct mmr_case *empty = mmr_case_clone(c);
	const struct mmr_op *op = mmr_op_by_name("delay");
	struct mmr_diag diag = {0};
	uint64_t runs, hits;
	struct mmr_thread *t;
	int i, rc = 0;

	if (!empty)
		return -ENOMEM;
	for (i = empty->nprocs - 1; i >= 0 && empty->nprocs > 1; i--)
		if (empty->procs[i]->is_template ||
		    !empty->procs[i]->nthreads || i > 0)
			(void)!mmr_case_remove_proc(empty, i);
	while (empty->procs[0]->nthreads > 1)
		if (mmr_case_remove_thread(empty, empty->procs[0], 1))
			break;
	empty->procs[0]->is_template = false;
	empty->procs[0]->copies = 1;
	t = empty->procs[0]->nthreads ? empty->procs[0]->threads[0] : NULL;
	if (!t || !op)
		goto out;
	t->is_template = false;
	t->body.n = 0;
	t->body.stmts = NULL;
	if (!mmr_case_add_op(empty, &t->body, op, NULL)) {
		rc = -ENOMEM;
		goto out;
	}
	t->body.stmts[0]->args[0].set = true;
	t->body.stmts[0]->args[0].lo = t->body.stmts[0]->args[0].hi = 1000;
	if (!mmr_case_check(empty, &diag)) {
		rc = mmr_min_test(m, empty, MMR_MIN_PLAIN, &runs, &hits);
		if (rc >= 0)
			mmr_min_log(m, "the empty case", runs, hits,
				    rc ? "fails too" : "does not fail");
	}
out:
	mmr_case_free(empty);
	return rc;
}

/* Fresh runs of the result, with its own rounds: what `seen` will say. */
static int verify(struct mmr_min *m)
{
	int64_t end = m->start_ns + m->opts->budget_ns;
	struct mmr_min_result *res = m->res;
	int i, rc;

	for (i = 0; i < FINAL_RUNS; i++) {
		/* The last one must be able to end: a hit takes that long. */
		if (i > 0 && end - mmr_clock_monotonic() < m->ref_wall_ns)
			break;
		rc = mmr_min_full_run(m, m->best, end);
		if (rc == -EAGAIN)
			continue;
		if (rc < 0)
			return rc == -ETIME ? 0 : rc;
		res->final_runs++;
		res->final_hits += (uint64_t)rc;
	}
	m->step++;
	mmr_min_log(m, "fresh runs of the result", res->final_runs,
		    res->final_hits, "done");
	return 0;
}

static int minimise(struct mmr_min *m, const struct mmr_case *c)
{
	struct mmr_min_result *res = m->res;
	int rc;

	rc = mmr_min_reference(m, c);
	if (rc || !res->reproduced)
		return rc;
	mmr_min_log(m, "the case as given", res->ref_runs, res->ref_hits,
		    m->signature);
	rc = fails_empty(m, c);
	if (rc > 0) {
		res->reproduced = 0;
		snprintf(res->text, sizeof(res->text),
			 "a case with nothing in it fails likewise (%.150s): "
			 "the fault is not in this case, so there is nothing "
			 "to minimise",
			 m->signature);
		return 0;
	}
	if (!rc)
		rc = mmr_min_save(m);
	if (!rc)
		rc = reduce(m);
	/* Out of time, or interrupted: what there is, is the result. */
	if (rc && rc != -ETIME && rc != -EINTR)
		return rc;
	drop_needs(m->best);
	m->best->seen_hits = m->best->seen_runs = 0;
	if (rc != -EINTR)
		rc = verify(m);
	if (rc && rc != -EINTR)
		return rc;
	m->best->seen_hits = (int64_t)res->final_hits;
	m->best->seen_runs = (int64_t)res->final_runs;
	return mmr_min_save(m);
}

int mmr_minimise(const struct mmr_case *c, const struct mmr_min_opts *opts,
		 struct mmr_min_result *res)
{
	struct mmr_min *m = calloc(1, sizeof(*m));
	int rc = -ENOMEM;

	memset(res, 0, sizeof(*res));
	res->stmts_before = res->stmts_after = mmr_case_count(c);
	if (!m)
		return rc;
	m->opts = opts;
	m->res = res;
	m->start_ns = mmr_clock_monotonic();
	m->deadline_ns = m->start_ns + opts->budget_ns / 10 * 9;
	m->next_round = opts->run.first_round;
	m->best = mmr_case_clone(c);
	if (m->best)
		rc = minimise(m, c);
	if (rc == -EINTR || rc == -ETIME) {
		snprintf(res->text, sizeof(res->text),
			 rc == -EINTR ? "interrupted" : "the budget is over");
		rc = 0;
	}
	mmr_min_forget(m);
	free(m->past);
	if (!rc && res->reproduced && m->best) {
		res->stmts_after = mmr_case_count(m->best);
		res->best = m->best;
	} else {
		mmr_case_free(m->best);
	}
	free(m);
	return rc;
}
