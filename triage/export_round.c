/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a round ends by itself, and soon, as long as the kernel does its
 * part: every wait in it is served, every loop has an end.  Then the exported
 * file needs no more of a watchdog than a person would write: it waits for
 * the round's process.  In doubt the answer is no, and each thread is watched.
 *
 * A wait is served when what it waits for stands in a thread that is started
 * for sure, behind nothing but waits that are served themselves.
 */
#include <string.h>

#include "export_c.h"

/* Looks in one another's threads go this deep, and take so many steps. */
#define DEPTH 12
#define STEPS 200000

/* What a search is for. */
struct wanted {
	const char *name;
};

struct look {
	struct mmr_export *x;
	int steps;
};

/* Where a search stands. */
struct place {
	const struct mmr_proc *p;
	const struct mmr_thread *t;
	const struct mmr_stmt *s;
};

static bool is_served(struct look *k, const struct place *at, int depth);
static bool ends(struct look *k, const struct mmr_proc *p,
		 const struct mmr_thread *t, int depth);

/*
 * 1: all statements of b before `until` (NULL: all of it) come to an end, and
 * `until` is reached; 0: one may not; -1: until is not in b, and all come to
 * an end.
 */
static int passes(struct look *k, const struct mmr_block *b, struct place *at,
		  const struct mmr_stmt *until, int depth)
{
	int i, in;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s == until)
			return 1;
		if (++k->steps > STEPS)
			return 0;
		if (s->kind == MMR_STMT_LOOP) {
			in = passes(k, &s->body, at, until, depth);
			/* A loop that may turn no time reaches nothing. */
			if (in == 1)
				return s->until == MMR_UNTIL_COUNT &&
				       s->count > 0;
			if (!in)
				return 0;
		}
		at->s = s;
		if (!is_served(k, at, depth))
			return 0;
	}
	return -1;
}

/* The place where a name is made use of by this op; calls fn for each until
 * it says true. */
static bool find(struct look *k, enum mmr_op_id op, int depth, struct wanted *w,
		 bool (*fn)(struct look *k, const struct place *at, int depth,
			    struct wanted *w));

struct finder {
	enum mmr_op_id op;
	int depth;
	struct wanted *w;
	bool (*fn)(struct look *k, const struct place *at, int depth,
		   struct wanted *w);
};

static bool find_in(struct look *k, const struct mmr_block *b, struct place *at,
		    const struct finder *f)
{
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			if (find_in(k, &s->body, at, f))
				return true;
			continue;
		}
		if (s->op->id != f->op || mmr_export_is_skipped(k->x, s))
			continue;
		at->s = s;
		if (f->fn(k, at, f->depth, f->w))
			return true;
	}
	return false;
}

static bool find(struct look *k, enum mmr_op_id op, int depth, struct wanted *w,
		 bool (*fn)(struct look *k, const struct place *at, int depth,
			    struct wanted *w))
{
	const struct finder f = {.op = op, .depth = depth, .w = w, .fn = fn};
	const struct mmr_case *c = k->x->c;
	struct place at;
	int i, j;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++) {
			at.p = c->procs[i];
			at.t = at.p->threads[j];
			if (find_in(k, &at.t->body, &at, &f))
				return true;
		}
	return false;
}

static bool is_reached(struct look *k, const struct place *at, int depth);

static bool spawns(struct look *k, const struct place *at, int depth,
		   struct wanted *w)
{
	return !strcmp(at->s->args[0].name, w->name) &&
	       is_reached(k, at, depth);
}

/* True when the statement is executed for sure. */
static bool is_reached(struct look *k, const struct place *at, int depth)
{
	struct place from = *at;

	if (depth <= 0)
		return false;
	if (at->t->is_template &&
	    !find(k, MMR_OP_thread_spawn, depth - 1,
		  &(struct wanted){.name = at->t->name}, spawns))
		return false;
	if (at->p->is_template && !at->t->is_template &&
	    !find(k, MMR_OP_process_spawn, depth - 1,
		  &(struct wanted){.name = at->p->name}, spawns))
		return false;
	return passes(k, &at->t->body, &from, at->s, depth - 1) == 1;
}

/* --- what each wait needs --- */

/* Two statements of one thread: does a stand in front of s? */
static int is_before(const struct mmr_block *b, const struct mmr_stmt *s,
		     enum mmr_op_id op, const char *name)
{
	int i, in, seen = 0;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *a = b->stmts[i];

		if (a == s)
			return seen;
		if (a->kind == MMR_STMT_LOOP) {
			in = is_before(&a->body, s, op, name);
			if (in >= 0)
				return seen || in;
		} else if (a->op->id == op && a->args[0].name &&
			   !strcmp(a->args[0].name, name)) {
			seen = 1;
		}
	}
	return -1;
}

/* A kill that may come before the latch is open. */
static bool kills_early(struct look *k, const struct place *at, int depth,
			struct wanted *w)
{
	(void)k;
	(void)depth;
	return is_before(&at->t->body, at->s, MMR_OP_wait, w->name) != 1;
}

static bool opens(struct look *k, const struct place *at, int depth,
		  struct wanted *w)
{
	if (strcmp(at->s->args[0].name, w->name) != 0 ||
	    !is_reached(k, at, depth))
		return false;
	return !at->p->is_template ||
	       !find(k, MMR_OP_kill, depth, w, kills_early);
}

/* How often a round comes by the rendezvous: -1, that depends. */
int64_t mmr_export_times(const struct mmr_block *b, const char *sync)
{
	int64_t sum = 0, in;
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind != MMR_STMT_LOOP) {
			sum += s->op->id == MMR_OP_sync &&
			       !strcmp(s->args[0].name, sync);
			continue;
		}
		in = mmr_export_times(&s->body, sync);
		if (in && (s->until != MMR_UNTIL_COUNT || in < 0))
			return -1;
		sum += in * s->count;
	}
	return sum;
}

static bool is_met(struct look *k, const char *sync)
{
	const struct mmr_case *c = k->x->c;
	int64_t all = 0, n;
	int i, j;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++) {
			const struct mmr_thread *t = c->procs[i]->threads[j];

			if (!mmr_export_meets(&t->body, sync))
				continue;
			n = mmr_export_times(&t->body, sync);
			if (!mmr_export_is_plain(c->procs[i], t) || n < 0 ||
			    (all && n != all))
				return false;
			all = n;
		}
	return all > 0;
}

static bool kills(struct look *k, const struct place *at, int depth,
		  struct wanted *w)
{
	return at->s->args[0].name && !strcmp(at->s->args[0].name, w->name) &&
	       at->s->args[1].lo == 9 /* SIGKILL */ && is_reached(k, at, depth);
}

static bool runs_on(struct look *k, const struct place *at, int depth,
		    struct wanted *w)
{
	const struct mmr_case *c = k->x->c;
	const struct mmr_proc *p;
	int i, j;

	if (!at->s->ref || strcmp(at->s->ref, w->name) != 0)
		return false;
	i = mmr_export_proc(c, at->s->args[0].name);
	if (i < 0)
		return true; /* idle */
	p = c->procs[i];
	for (j = 0; j < p->nthreads; j++)
		if (!p->threads[j]->is_template &&
		    !ends(k, p, p->threads[j], depth))
			return true;
	return false;
}

static bool joins_late(struct look *k, const struct place *at, int depth,
		       struct wanted *w)
{
	struct mmr_proc *p;
	int i;

	if (!at->s->ref || strcmp(at->s->ref, w->name) != 0)
		return false;
	i = mmr_export_thread(k->x->c, at->s->args[0].name, &p);
	if (i < 0)
		return false; /* idle */
	i -= mmr_export_thread(k->x->c, p->threads[0]->name, NULL);
	return !ends(k, p, p->threads[i], depth);
}

/* True when a loop that waits for it comes to its end. */
static bool loop_ends(struct look *k, const struct mmr_stmt *s, int depth)
{
	struct mmr_proc *p;
	int i, j;

	switch (s->until) {
	case MMR_UNTIL_COUNT:
	case MMR_UNTIL_TIME:
		return true;
	case MMR_UNTIL_DONE:
		i = mmr_export_thread(k->x->c, s->until_name, &p);
		if (i < 0)
			return true;
		i -= mmr_export_thread(k->x->c, p->threads[0]->name, NULL);
		return ends(k, p, p->threads[i], depth);
	case MMR_UNTIL_EXITED:
		i = mmr_export_proc(k->x->c, s->until_name);
		if (i < 0)
			return false;
		p = k->x->c->procs[i];
		for (j = 0; j < p->nthreads; j++)
			if (!p->threads[j]->is_template &&
			    !ends(k, p, p->threads[j], depth))
				return false;
		return true;
	default:
		return false;
	}
}

static bool is_served(struct look *k, const struct place *at, int depth)
{
	const struct mmr_stmt *s = at->s;
	struct wanted w = {0};

	if (depth <= 0 || ++k->steps > STEPS)
		return false;
	if (s->kind == MMR_STMT_LOOP)
		return loop_ends(k, s, depth - 1);
	if (mmr_export_is_skipped(k->x, s))
		return true;
	if (s->op->class != MMR_CLASS_WAIT)
		return s->op->id != MMR_OP_ptrace_seize;
	w.name = s->op->nargs ? s->args[0].name : NULL;
	if (!w.name)
		return false;
	switch (s->op->id) {
	case MMR_OP_wait:
		return find(k, MMR_OP_signal, depth - 1, &w, opens);
	case MMR_OP_sync:
		return is_met(k, w.name);
	case MMR_OP_thread_join:
		return !find(k, MMR_OP_thread_spawn, depth - 1, &w, joins_late);
	case MMR_OP_process_reap:
		return find(k, MMR_OP_kill, depth - 1, &w, kills) ||
		       !find(k, MMR_OP_process_spawn, depth - 1, &w, runs_on);
	default:
		return false; /* pause, exit_group, what is new */
	}
}

static bool ends(struct look *k, const struct mmr_proc *p,
		 const struct mmr_thread *t, int depth)
{
	struct place at = {.p = p, .t = t};

	return depth > 0 && passes(k, &t->body, &at, NULL, depth - 1) == -1;
}

bool mmr_export_ends(struct mmr_export *x, const struct mmr_proc *p,
		     const struct mmr_thread *t)
{
	struct look k = {.x = x};

	return ends(&k, p, t, DEPTH);
}
