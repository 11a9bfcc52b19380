// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What goes with what is taken away: a loop's body with the loop, the users
 * of a mapping with what makes it, a spawn with its template, a wait with its
 * last signal.  Left in place they would be skipped at run time or make each
 * round void, and each would have to be tried on its own.
 */
#include <string.h>

#include "min.h"

static uint8_t *thread_mark(const struct mmr_min_set *set, int t)
{
	return &set->marks[set->nstmts + t];
}

static uint8_t *proc_mark(const struct mmr_min_set *set, int p)
{
	return &set->marks[set->nstmts + set->nthreads + p];
}

/* Marks m, true when it was not. */
static bool mark(uint8_t *m)
{
	bool news = !*m;

	*m = 1;
	return news;
}

/* A loop over `sync NAME` marks begins and ends an epoch of a thread. */
static void mark_epoch(struct mmr_min_set *set, const char *name)
{
	int i, thread = -1;
	bool in = false;

	for (i = 0; i < set->nstmts; i++) {
		const struct mmr_stmt *s = set->stmts[i];

		if (set->thread_of[i] != thread) {
			thread = set->thread_of[i];
			in = false;
		}
		if (s->kind == MMR_STMT_OP && s->op->id == MMR_OP_sync)
			in = !strcmp(s->args[0].name, name);
		/* What is nested goes with its loop, or stays with it. */
		if (in && (set->parent[i] < 0 || (s->kind == MMR_STMT_OP &&
						  s->op->id == MMR_OP_sync)))
			set->marks[i] = 1;
	}
}

/* Are there statements of that kind, and is none left?  What was never there
 * is not gone: the case was given so. */
static bool all_gone(const struct mmr_min_set *set,
		     bool (*is)(const struct mmr_stmt *s, const char *name),
		     const char *name)
{
	int i, had = 0;

	for (i = 0; i < set->nstmts; i++) {
		const struct mmr_stmt *s = set->stmts[i];

		if (s->kind != MMR_STMT_OP || !is(s, name))
			continue;
		if (!set->marks[i])
			return false;
		had++;
	}
	return had > 0;
}

static bool has_arg(const struct mmr_stmt *s, enum mmr_arg_type type,
		    const char *name)
{
	int k;

	for (k = 0; k < s->op->nargs; k++)
		if (s->op->args[k].type == type && s->args[k].name &&
		    !strcmp(s->args[k].name, name))
			return true;
	return false;
}

static bool names_thread(const struct mmr_stmt *s, const char *name)
{
	return has_arg(s, MMR_ARG_THREAD, name);
}

static bool names_process(const struct mmr_stmt *s, const char *name)
{
	return has_arg(s, MMR_ARG_PROCESS, name);
}

static bool assigns(const struct mmr_stmt *s, const char *ref)
{
	return s->ref && !strcmp(s->ref, ref);
}

static bool signals(const struct mmr_stmt *s, const char *latch)
{
	return s->op->id == MMR_OP_signal && !strcmp(s->args[0].name, latch);
}

static bool thread_gone(const struct mmr_min_set *set, const char *name)
{
	int i;

	for (i = 0; i < set->nthreads; i++)
		if (!strcmp(set->threads[i]->name, name))
			return *thread_mark(set, i);
	return false;
}

static bool proc_gone(const struct mmr_min_set *set, const char *name)
{
	int i;

	for (i = 0; i < set->base->nprocs; i++)
		if (!strcmp(set->base->procs[i]->name, name))
			return *proc_mark(set, i);
	return false;
}

static bool op_goes(const struct mmr_min_set *set, const struct mmr_stmt *s)
{
	int k;

	for (k = 0; k < s->op->nargs; k++) {
		const char *name = s->args[k].name;

		if (!name)
			continue;
		switch (s->op->args[k].type) {
		case MMR_ARG_REF:
			if (all_gone(set, assigns, name))
				return true;
			break;
		case MMR_ARG_THREAD:
			if (thread_gone(set, name))
				return true;
			break;
		case MMR_ARG_PROCESS:
			if (proc_gone(set, name))
				return true;
			break;
		case MMR_ARG_LATCH:
			if (s->op->id == MMR_OP_wait &&
			    all_gone(set, signals, name))
				return true;
			break;
		default:
			break;
		}
	}
	return false;
}

static bool stmt_goes(const struct mmr_min_set *set, int i)
{
	const struct mmr_stmt *s = set->stmts[i];
	int j;

	if (*thread_mark(set, set->thread_of[i]) ||
	    (set->parent[i] >= 0 && set->marks[set->parent[i]]))
		return true;
	if (s->kind == MMR_STMT_OP)
		return op_goes(set, s);
	if ((s->until == MMR_UNTIL_DONE && thread_gone(set, s->until_name)) ||
	    (s->until == MMR_UNTIL_EXITED && proc_gone(set, s->until_name)))
		return true;
	/* A loop around nothing. */
	for (j = i + 1; j < set->nstmts; j++)
		if (set->parent[j] == i && !set->marks[j])
			return false;
	return s->body.n > 0;
}

static bool thread_goes(const struct mmr_min_set *set, int t)
{
	const struct mmr_thread *th = set->threads[t];
	int i;

	if (*proc_mark(set, set->proc_of[t]))
		return true;
	if (th->is_template && all_gone(set, names_thread, th->name))
		return true;
	for (i = 0; i < set->nstmts; i++)
		if (set->thread_of[i] == t && !set->marks[i])
			return false;
	return th->body.n > 0;
}

static bool proc_goes(const struct mmr_min_set *set, int p)
{
	const struct mmr_proc *proc = set->base->procs[p];
	int t;

	if (proc->is_template && all_gone(set, names_process, proc->name))
		return true;
	for (t = 0; t < set->nthreads; t++)
		if (set->proc_of[t] == p && !*thread_mark(set, t))
			return false;
	return proc->nthreads > 0;
}

void mmr_min_mark(struct mmr_min_set *set, const uint8_t *gone)
{
	bool more = true;
	int i;

	memset(set->marks, 0,
	       (size_t)(set->nstmts + set->nthreads + set->base->nprocs));
	for (i = 0; i < set->n; i++) {
		const struct mmr_min_edit *e = &set->e[i];

		if (!gone[i])
			continue;
		if (e->kind == MMR_MIN_PROC)
			*proc_mark(set, e->proc) = 1;
		else if (e->kind == MMR_MIN_THREAD)
			*thread_mark(set, e->thread) = 1;
		else if (e->kind == MMR_MIN_STMT)
			set->marks[e->stmt] = 1;
		else if (e->kind == MMR_MIN_EPOCH)
			mark_epoch(set, e->name);
	}
	while (more) {
		more = false;
		for (i = 0; i < set->base->nprocs; i++)
			if (!*proc_mark(set, i) && proc_goes(set, i))
				more |= mark(proc_mark(set, i));
		for (i = 0; i < set->nthreads; i++)
			if (!*thread_mark(set, i) && thread_goes(set, i))
				more |= mark(thread_mark(set, i));
		for (i = 0; i < set->nstmts; i++)
			if (!set->marks[i] && stmt_goes(set, i))
				more |= mark(&set->marks[i]);
	}
}

/* Nothing of the epoch is left. */
static bool epoch_gone(const struct mmr_min_set *set, const char *name)
{
	int i, thread = -1;
	bool in = false;

	for (i = 0; i < set->nstmts; i++) {
		const struct mmr_stmt *s = set->stmts[i];

		if (set->thread_of[i] != thread) {
			thread = set->thread_of[i];
			in = false;
		}
		if (s->kind == MMR_STMT_OP && s->op->id == MMR_OP_sync)
			in = !strcmp(s->args[0].name, name);
		if (in && !set->marks[i])
			return false;
	}
	return true;
}

bool mmr_min_mark_has(const struct mmr_min_set *set,
		      const struct mmr_min_edit *e)
{
	switch (e->kind) {
	case MMR_MIN_PROC:
		return *proc_mark(set, e->proc);
	case MMR_MIN_THREAD:
		return *thread_mark(set, e->thread);
	case MMR_MIN_STMT:
		return set->marks[e->stmt];
	case MMR_MIN_EPOCH:
		return epoch_gone(set, e->name);
	default:
		return false;
	}
}
