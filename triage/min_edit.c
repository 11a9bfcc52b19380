// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What can be taken away from a case.  Every pass goes from the end of the
 * text to its beginning, as what uses a thing stands behind what makes it, and
 * works on clones: a candidate that does not fail leaves no trace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "min.h"

/* A clone of the best to edit; NULL: no memory. */
static struct mmr_case *fork_best(const struct mmr_min *m)
{
	return mmr_case_clone(m->best);
}

/* Offers it; 0 also for a candidate that was not taken. */
static int offer(struct mmr_min *m, struct mmr_case *cand,
		 enum mmr_min_care care, const char *what)
{
	int rc = mmr_min_try(m, cand, care, what);

	return rc < 0 ? rc : 0;
}

/* "`write m0` of main/A", for the log; buf gets it. */
static const char *describe(const struct mmr_case *c, int index, char *buf,
			    size_t n)
{
	struct mmr_proc *p = NULL;
	struct mmr_thread *t = mmr_case_stmt_thread(c, index, &p);
	char *text = mmr_case_print_stmt(mmr_case_stmt(c, index));

	snprintf(buf, n, "`%s` of %s/%s", text ? text : "?", p ? p->name : "?",
		 t ? t->name : "?");
	free(text);
	return buf;
}

int mmr_min_pass_procs(struct mmr_min *m)
{
	int i, rc = 0;

	for (i = m->best->nprocs - 1; i >= 0 && !rc; i--) {
		struct mmr_case *cand;
		char what[200];

		if (i >= m->best->nprocs || m->best->nprocs == 1)
			continue;
		cand = fork_best(m);
		if (!cand)
			return -ENOMEM;
		snprintf(what, sizeof(what), "remove process %s",
			 cand->procs[i]->name);
		if (mmr_case_remove_proc(cand, i)) {
			mmr_case_free(cand);
			continue;
		}
		rc = offer(m, cand, MMR_MIN_PLAIN, what);
	}
	return rc;
}

static int try_thread(struct mmr_min *m, int proc, int thread)
{
	struct mmr_case *cand = fork_best(m);
	struct mmr_proc *p;
	char what[200];

	if (!cand)
		return -ENOMEM;
	p = cand->procs[proc];
	snprintf(what, sizeof(what), "remove thread %s/%s", p->name,
		 p->threads[thread]->name);
	if (mmr_case_remove_thread(cand, p, thread)) {
		mmr_case_free(cand);
		return 0;
	}
	return offer(m, cand, MMR_MIN_PLAIN, what);
}

int mmr_min_pass_threads(struct mmr_min *m)
{
	int i, j, rc = 0;

	for (i = m->best->nprocs - 1; i >= 0; i--) {
		if (i >= m->best->nprocs)
			continue;
		for (j = m->best->procs[i]->nthreads - 1; j >= 0 && !rc; j--) {
			/* Removing one may have taken others with it. */
			if (i >= m->best->nprocs)
				break;
			if (j < m->best->procs[i]->nthreads)
				rc = try_thread(m, i, j);
		}
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * For every statement in text order: how many siblings stand from it to the
 * end of its block.  Returns how many statements there are.
 */
static int siblings(const struct mmr_block *b, int *left, int n)
{
	int i;

	for (i = 0; i < b->n; i++) {
		left[n++] = b->n - i;
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			n = siblings(&b->stmts[i]->body, left, n);
	}
	return n;
}

static int map_siblings(const struct mmr_case *c, int *left)
{
	int i, j, n = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			n = siblings(&c->procs[i]->threads[j]->body, left, n);
	return n;
}

/* Removes n siblings from index on; they have the same number one by one. */
static int try_range(struct mmr_min *m, int index, int n)
{
	struct mmr_case *cand = fork_best(m);
	char what[300], place[240];
	int i;

	if (!cand)
		return -ENOMEM;
	describe(cand, index, place, sizeof(place));
	if (n > 1)
		snprintf(what, sizeof(what), "remove %d from %s", n, place);
	else
		snprintf(what, sizeof(what), "remove %s", place);
	for (i = 0; i < n; i++)
		if (mmr_case_remove(cand, index)) {
			mmr_case_free(cand);
			return 0;
		}
	return offer(m, cand, MMR_MIN_PLAIN, what);
}

int mmr_min_pass_stmts(struct mmr_min *m, int chunk)
{
	int count = mmr_case_count(m->best), i, n, rc = 0;
	int *left = malloc(((size_t)count + 1) * sizeof(*left));

	if (!left)
		return -ENOMEM;
	n = map_siblings(m->best, left);
	for (i = n - 1; i >= 0 && !rc; i--) {
		int before = m->accepted, now;

		if (left[i] < chunk)
			continue;
		/* Whole chunks of the block, not every overlap of them. */
		if (chunk > 1 && left[i] % chunk)
			continue;
		rc = try_range(m, i, chunk);
		if (rc || m->accepted == before)
			continue;
		/* What stood behind i has moved; what is before it has not,
		 * but blocks have become shorter. */
		now = map_siblings(m->best, left);
		if (i > now)
			i = now;
	}
	free(left);
	return rc;
}

int mmr_min_pass_unwrap(struct mmr_min *m)
{
	int i, rc = 0;

	for (i = mmr_case_count(m->best) - 1; i >= 0 && !rc; i--) {
		const struct mmr_stmt *s = mmr_case_stmt(m->best, i);
		struct mmr_case *cand;
		char what[300], place[240];

		if (!s || s->kind != MMR_STMT_LOOP)
			continue;
		cand = fork_best(m);
		if (!cand)
			return -ENOMEM;
		describe(cand, i, place, sizeof(place));
		snprintf(what, sizeof(what), "unwrap %s", place);
		if (mmr_case_unwrap(cand, i)) {
			mmr_case_free(cand);
			continue;
		}
		rc = offer(m, cand, MMR_MIN_PLAIN, what);
	}
	return rc;
}

/* A number in a clone, found again by a path that every clone shares. */
struct number {
	enum { LOOP_COUNT, COPIES, SIZE_ARG } kind;
	int index; /* statement, or process */
	int arg;
};

static int64_t number_get(const struct mmr_case *c, const struct number *x)
{
	if (x->kind == COPIES)
		return c->procs[x->index]->copies;
	if (x->kind == LOOP_COUNT)
		return mmr_case_stmt(c, x->index)->count;
	return mmr_case_stmt(c, x->index)->args[x->arg].lo;
}

static void number_set(struct mmr_case *c, const struct number *x, int64_t v)
{
	struct mmr_value *a;

	if (x->kind == COPIES) {
		c->procs[x->index]->copies = (int)v;
	} else if (x->kind == LOOP_COUNT) {
		mmr_case_stmt(c, x->index)->count = v;
	} else {
		a = &mmr_case_stmt(c, x->index)->args[x->arg];
		a->lo = a->hi = v;
	}
}

static int try_number(struct mmr_min *m, const struct number *x, int64_t v)
{
	struct mmr_case *cand = fork_best(m);
	char what[300], place[240];

	if (!cand)
		return -ENOMEM;
	if (x->kind == COPIES)
		snprintf(place, sizeof(place), "copies of %s",
			 cand->procs[x->index]->name);
	else
		describe(cand, x->index, place, sizeof(place));
	snprintf(what, sizeof(what), "%lld -> %lld in %s",
		 (long long)number_get(cand, x), (long long)v, place);
	number_set(cand, x, v);
	return mmr_min_try(m, cand, MMR_MIN_CAREFUL, what);
}

/* The smallest at once, else halves as long as it fails on. */
static int shrink(struct mmr_min *m, const struct number *x, int64_t least)
{
	int64_t v = number_get(m->best, x);
	int rc;

	if (v <= least)
		return 0;
	rc = try_number(m, x, least);
	if (rc)
		return rc < 0 ? rc : 0;
	for (v /= 2; v > least; v /= 2) {
		rc = try_number(m, x, v);
		if (rc <= 0)
			return rc;
	}
	return 0;
}

/* Pinning and the like: what differs from the default and need not. */
static int try_plain_thread(struct mmr_min *m, int i, int j)
{
	const struct mmr_thread *t = m->best->procs[i]->threads[j];
	struct mmr_case *cand;
	char what[200];
	int rc;

	if (t->cpu != MMR_CPU_ANY) {
		cand = fork_best(m);
		if (!cand)
			return -ENOMEM;
		cand->procs[i]->threads[j]->cpu = MMR_CPU_ANY;
		cand->procs[i]->threads[j]->cpu_thread = NULL;
		snprintf(what, sizeof(what), "unpin thread %s", t->name);
		rc = offer(m, cand, MMR_MIN_CAREFUL, what);
		if (rc)
			return rc;
		t = m->best->procs[i]->threads[j];
	}
	if (t->segv != MMR_SEGV_SKIP) {
		cand = fork_best(m);
		if (!cand)
			return -ENOMEM;
		cand->procs[i]->threads[j]->segv = MMR_SEGV_SKIP;
		snprintf(what, sizeof(what), "no segv=return in %s", t->name);
		return offer(m, cand, MMR_MIN_PLAIN, what);
	}
	return 0;
}

int mmr_min_pass_numbers(struct mmr_min *m)
{
	struct number x = {0};
	int i, j, rc = 0;

	for (i = 0; i < m->best->nprocs && !rc; i++) {
		x.kind = COPIES;
		x.index = i;
		rc = shrink(m, &x, 1);
		for (j = 0; j < m->best->procs[i]->nthreads && !rc; j++)
			rc = try_plain_thread(m, i, j);
	}
	for (i = mmr_case_count(m->best) - 1; i >= 0 && !rc; i--) {
		const struct mmr_stmt *s = mmr_case_stmt(m->best, i);

		if (s->kind != MMR_STMT_LOOP ||
		    (s->until != MMR_UNTIL_COUNT && s->until != MMR_UNTIL_TIME))
			continue;
		x.kind = LOOP_COUNT;
		x.index = i;
		/* One turn is what unwrapping has tried already. */
		rc = shrink(m, &x, s->until == MMR_UNTIL_COUNT ? 2 : 1000000);
	}
	return rc;
}

static int try_default(struct mmr_min *m, int index, int arg)
{
	struct mmr_case *cand = fork_best(m);
	const struct mmr_op *op;
	struct mmr_value *v;
	char what[300], place[240];

	if (!cand)
		return -ENOMEM;
	describe(cand, index, place, sizeof(place));
	op = mmr_case_stmt(cand, index)->op;
	v = &mmr_case_stmt(cand, index)->args[arg];
	memset(v, 0, sizeof(*v));
	v->lo = v->hi = op->args[arg].def;
	snprintf(what, sizeof(what), "no %s= in %s", op->args[arg].name, place);
	return mmr_min_try(m, cand, MMR_MIN_CAREFUL, what);
}

static int try_flags(struct mmr_min *m, int index, int arg)
{
	const struct mmr_argspec *spec =
		&mmr_case_stmt(m->best, index)->op->args[arg];
	const struct mmr_name *f;
	int rc = 0;

	for (f = spec->names; f && f->name && !rc; f++) {
		int64_t now = mmr_case_stmt(m->best, index)->args[arg].lo;
		struct mmr_case *cand;
		struct mmr_value *v;
		char what[300], place[240];

		if (!f->value || (now & f->value) != f->value)
			continue;
		cand = fork_best(m);
		if (!cand)
			return -ENOMEM;
		describe(cand, index, place, sizeof(place));
		v = &mmr_case_stmt(cand, index)->args[arg];
		v->lo = v->hi = now & ~f->value;
		snprintf(what, sizeof(what), "no %s in %s", f->name, place);
		rc = offer(m, cand, MMR_MIN_CAREFUL, what);
	}
	return rc;
}

/* One page or huge page; a count of bytes goes down to one base page. */
static int try_size(struct mmr_min *m, int index, int arg)
{
	const struct mmr_value *v = &mmr_case_stmt(m->best, index)->args[arg];
	struct number x = {SIZE_ARG, index, arg};

	return shrink(m, &x, v->unit == MMR_UNIT_BYTE ? 4096 : 1);
}

static int try_arg(struct mmr_min *m, int index, int arg)
{
	const struct mmr_stmt *s = mmr_case_stmt(m->best, index);
	const struct mmr_argspec *spec = &s->op->args[arg];
	int rc;

	if (!s->args[arg].set)
		return 0;
	if (spec->flags & MMR_ARG_OPT) {
		rc = try_default(m, index, arg);
		if (rc)
			return rc < 0 ? rc : 0;
	}
	if (spec->type == MMR_ARG_FLAGS)
		return try_flags(m, index, arg);
	if (spec->type == MMR_ARG_SIZE)
		return try_size(m, index, arg);
	return 0;
}

int mmr_min_pass_args(struct mmr_min *m)
{
	int i, arg, rc = 0;

	for (i = mmr_case_count(m->best) - 1; i >= 0 && !rc; i--) {
		const struct mmr_stmt *s = mmr_case_stmt(m->best, i);

		if (s->kind != MMR_STMT_OP)
			continue;
		for (arg = s->op->nargs - 1; arg >= 0 && !rc; arg--)
			rc = try_arg(m, i, arg);
	}
	return rc;
}

/*
 * Rounds do not change how often a round fails, only how long one waits: as
 * many as a failure needed are enough, and one when it fails at once.
 */
int mmr_min_pass_rounds(struct mmr_min *m)
{
	int64_t bound = (int64_t)m->rounds;
	int i, rc;

	if (m->best->keep) {
		struct mmr_case *cand = fork_best(m);

		if (!cand)
			return -ENOMEM;
		cand->keep = false;
		rc = offer(m, cand, MMR_MIN_CAREFUL, "no keep");
		if (rc)
			return rc;
	}
	for (i = 0; i < 2; i++) {
		int64_t want = i ? bound : 1;
		struct mmr_case *cand;
		char what[80];

		if (want < 1 || want >= m->best->rounds ||
		    (want == 1 && m->p < 0.5))
			continue;
		cand = fork_best(m);
		if (!cand)
			return -ENOMEM;
		cand->rounds = want;
		snprintf(what, sizeof(what), "rounds %lld -> %lld",
			 (long long)m->best->rounds, (long long)want);
		rc = mmr_min_try(m, cand, MMR_MIN_CAREFUL, what);
		if (rc)
			return rc < 0 ? rc : 0;
	}
	return 0;
}
