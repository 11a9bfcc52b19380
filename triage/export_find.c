/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a case has: its processes, threads and names, who waits for whom, and
 * what is reached. */
#include <string.h>

#include "export_c.h"

int mmr_export_proc(const struct mmr_case *c, const char *name)
{
	int i;

	for (i = 0; i < c->nprocs; i++)
		if (!strcmp(c->procs[i]->name, name))
			return i;
	return -1;
}

int mmr_export_thread(const struct mmr_case *c, const char *name,
		      struct mmr_proc **proc)
{
	int i, j, n = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++, n++) {
			if (strcmp(c->procs[i]->threads[j]->name, name) != 0)
				continue;
			if (proc)
				*proc = c->procs[i];
			return n;
		}
	return -1;
}

const struct mmr_proc *mmr_export_first_plain(const struct mmr_case *c)
{
	int i;

	for (i = 0; i < c->nprocs; i++)
		if (!c->procs[i]->is_template)
			break;
	return c->procs[i];
}

bool mmr_export_is_plain(const struct mmr_proc *p, const struct mmr_thread *t)
{
	return !p->is_template && !t->is_template;
}

static int find_names(const struct mmr_block *b, enum mmr_arg_type type,
		      const char **names, int n, int max)
{
	int i, j, k;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			n = find_names(&s->body, type, names, n, max);
			continue;
		}
		for (j = 0; j < s->op->nargs; j++) {
			if (s->op->args[j].type != type || !s->args[j].name)
				continue;
			for (k = 0; k < n; k++)
				if (!strcmp(names[k], s->args[j].name))
					break;
			if (k == n && n < max)
				names[n++] = s->args[j].name;
		}
	}
	return n;
}

void mmr_export_names(struct mmr_export *x, enum mmr_arg_type type,
		      void (*fn)(struct mmr_export *x, const char *name))
{
	const char *names[MMR_CASE_MAX_NAMES];
	int i, j, n = 0;

	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++)
			n = find_names(&x->c->procs[i]->threads[j]->body, type,
				       names, n, MMR_CASE_MAX_NAMES);
	for (i = 0; i < n; i++)
		fn(x, names[i]);
}

static bool block_awaits(const struct mmr_block *b, enum mmr_until until,
			 const char *name)
{
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind != MMR_STMT_LOOP)
			continue;
		if ((s->until == until && !strcmp(s->until_name, name)) ||
		    block_awaits(&s->body, until, name))
			return true;
	}
	return false;
}

bool mmr_export_is_awaited(const struct mmr_case *c, enum mmr_until until,
			   const char *name)
{
	int i, j;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			if (block_awaits(&c->procs[i]->threads[j]->body, until,
					 name))
				return true;
	return false;
}

bool mmr_export_awaits_exit(const struct mmr_case *c)
{
	int i;

	if (mmr_export_is_awaited(c, MMR_UNTIL_EXITED, "idle"))
		return true;
	for (i = 0; i < c->nprocs; i++)
		if (mmr_export_is_awaited(c, MMR_UNTIL_EXITED,
					  c->procs[i]->name))
			return true;
	return false;
}

int mmr_export_plain_threads(const struct mmr_proc *p)
{
	int j, n = 0;

	for (j = 0; j < p->nthreads; j++)
		n += !p->threads[j]->is_template;
	return n;
}

const char *mmr_export_where(const struct mmr_export *x)
{
	return x->whole && x->nplain == 1 && !x->spawns ? "" : "shared->";
}

bool mmr_export_may_rest(const struct mmr_export *x)
{
	return x->waits || mmr_export_uses(x, MMR_USED_PAUSE);
}

bool mmr_export_may_leave(const struct mmr_export *x)
{
	return mmr_export_may_rest(x) || !x->simple;
}

bool mmr_export_meets(const struct mmr_block *b, const char *sync)
{
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP
			    ? mmr_export_meets(&s->body, sync)
			    : s->op->id == MMR_OP_sync &&
				      !strcmp(s->args[0].name, sync))
			return true;
	}
	return false;
}

int mmr_export_parties(const struct mmr_case *c, const char *sync)
{
	int i, j, n = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			if (mmr_export_is_plain(c->procs[i],
						c->procs[i]->threads[j]) &&
			    mmr_export_meets(&c->procs[i]->threads[j]->body,
					     sync))
				n += c->procs[i]->copies;
	return n;
}

/*
 * What the machine would skip, as nothing makes a ref that it needs, is left
 * out.  A reference to a process is skipped by its helper at run time.
 */
bool mmr_export_is_skipped(struct mmr_export *x, const struct mmr_stmt *s)
{
	int i;

	for (i = 0; i < s->op->nargs; i++) {
		const struct mmr_argspec *a = &s->op->args[i];

		if (a->type == MMR_ARG_REF && s->args[i].name &&
		    !mmr_emit_ref_kind(&x->e, s, i))
			return true;
	}
	return false;
}

/* Marks what a block starts, and what that starts. */
static void mark_block(struct mmr_export *x, const struct mmr_block *b);

static void mark_proc(struct mmr_export *x, int index)
{
	const struct mmr_proc *p = x->c->procs[index];
	int j;

	x->proc_used[index] = true;
	for (j = 0; j < p->nthreads; j++) {
		int n = mmr_export_thread(x->c, p->threads[j]->name, NULL);

		if (p->threads[j]->is_template || x->thread_used[n])
			continue;
		x->thread_used[n] = true;
		mark_block(x, &p->threads[j]->body);
	}
}

static void mark_block(struct mmr_export *x, const struct mmr_block *b)
{
	struct mmr_proc *p;
	int i, n;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			mark_block(x, &s->body);
		} else if (s->op->id == MMR_OP_process_spawn) {
			x->simple = false;
			x->spawns = true;
			n = mmr_export_proc(x->c, s->args[0].name);
			if (n >= 0 && !x->proc_used[n])
				mark_proc(x, n);
		} else if (s->op->id == MMR_OP_thread_spawn) {
			n = mmr_export_thread(x->c, s->args[0].name, &p);
			if (n < 0)
				continue;
			x->simple = false;
			if (x->thread_used[n])
				continue;
			x->thread_used[n] = true;
			mark_block(x,
				   &p->threads[n - mmr_export_thread(
							   x->c,
							   p->threads[0]->name,
							   NULL)]
					    ->body);
		}
	}
}

void mmr_export_mark(struct mmr_export *x)
{
	int i;

	for (i = 0; i < x->c->nprocs; i++)
		if (!x->c->procs[i]->is_template)
			mark_proc(x, i);
}

bool mmr_export_draws(const struct mmr_block *b)
{
	int i, j;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			if (mmr_export_draws(&s->body))
				return true;
			continue;
		}
		for (j = 0; j < s->op->nargs; j++)
			if (s->op->args[j].type == MMR_ARG_TIME &&
			    mmr_value_is_drawn(&s->args[j]))
				return true;
	}
	return false;
}
