// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbering, copying and cutting of cases: what minimiser, mutator and
 * reports do with one.
 */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "pool.h"

static int count_block(const struct mmr_block *b)
{
	int i, n = b->n;

	for (i = 0; i < b->n; i++)
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			n += count_block(&b->stmts[i]->body);
	return n;
}

int mmr_case_count(const struct mmr_case *c)
{
	int i, j, n = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			n += count_block(&c->procs[i]->threads[j]->body);
	return n;
}

/* A statement's place: block and position in it. */
struct place {
	struct mmr_proc *proc;
	struct mmr_thread *thread;
	struct mmr_block *block;
	int at;
};

/* Counts *left down to the statement that is looked for. */
static bool find_in(struct mmr_block *b, int *left, struct place *p)
{
	int i;

	for (i = 0; i < b->n; i++) {
		if ((*left)-- == 0) {
			p->block = b;
			p->at = i;
			return true;
		}
		if (b->stmts[i]->kind == MMR_STMT_LOOP &&
		    find_in(&b->stmts[i]->body, left, p))
			return true;
	}
	return false;
}

static bool find(const struct mmr_case *c, int index, struct place *p)
{
	int i, j;

	if (index < 0)
		return false;
	for (i = 0; i < c->nprocs; i++) {
		p->proc = c->procs[i];
		for (j = 0; j < p->proc->nthreads; j++) {
			p->thread = p->proc->threads[j];
			if (find_in(&p->thread->body, &index, p))
				return true;
		}
	}
	return false;
}

struct mmr_stmt *mmr_case_stmt(const struct mmr_case *c, int index)
{
	struct place p;

	return find(c, index, &p) ? p.block->stmts[p.at] : NULL;
}

struct mmr_thread *mmr_case_stmt_thread(const struct mmr_case *c, int index,
					struct mmr_proc **proc)
{
	struct place p;

	if (!find(c, index, &p))
		return NULL;
	if (proc)
		*proc = p.proc;
	return p.thread;
}

static void cut(struct mmr_block *b, int at)
{
	b->n--;
	memmove(b->stmts + at, b->stmts + at + 1,
		(size_t)(b->n - at) * sizeof(*b->stmts));
}

int mmr_case_remove(struct mmr_case *c, int index)
{
	struct place p;

	if (!find(c, index, &p))
		return -ENOENT;
	cut(p.block, p.at);
	return 0;
}

int mmr_case_unwrap(struct mmr_case *c, int index)
{
	struct mmr_block *body, joined = {0};
	struct mmr_stmt **stmts;
	struct place p;
	int i;

	if (!find(c, index, &p))
		return -ENOENT;
	if (p.block->stmts[p.at]->kind != MMR_STMT_LOOP)
		return -EINVAL;
	body = &p.block->stmts[p.at]->body;
	for (i = 0; i < p.block->n + body->n - 1; i++) {
		stmts = mmr_pool_grow(c, joined.stmts, joined.n,
				      sizeof(*stmts));
		if (!stmts)
			return -ENOMEM;
		joined.stmts = stmts;
		if (i < p.at)
			stmts[i] = p.block->stmts[i];
		else if (i < p.at + body->n)
			stmts[i] = body->stmts[i - p.at];
		else
			stmts[i] = p.block->stmts[i - body->n + 1];
		joined.n++;
	}
	*p.block = joined;
	return 0;
}

/* Removes from b the statements that name a thread or process. */
static void cut_users(struct mmr_block *b, enum mmr_arg_type type,
		      const char *name)
{
	enum mmr_until until =
		type == MMR_ARG_THREAD ? MMR_UNTIL_DONE : MMR_UNTIL_EXITED;
	const struct mmr_stmt *s;
	bool uses;
	int i = 0, k;

	while (i < b->n) {
		s = b->stmts[i];
		uses = false;
		if (s->kind == MMR_STMT_LOOP)
			uses = s->until == until &&
			       strcmp(s->until_name, name) == 0;
		else
			for (k = 0; k < s->op->nargs; k++)
				uses |= s->op->args[k].type == type &&
					s->args[k].name &&
					strcmp(s->args[k].name, name) == 0;
		if (uses) {
			cut(b, i);
			continue;
		}
		if (s->kind == MMR_STMT_LOOP)
			cut_users(&b->stmts[i]->body, type, name);
		i++;
	}
}

static void forget(struct mmr_case *c, enum mmr_arg_type type, const char *name)
{
	struct mmr_thread *t;
	int i, j;

	for (i = 0; i < c->nprocs; i++) {
		for (j = 0; j < c->procs[i]->nthreads; j++) {
			t = c->procs[i]->threads[j];
			cut_users(&t->body, type, name);
			if (type != MMR_ARG_THREAD || !t->cpu_thread ||
			    strcmp(t->cpu_thread, name) != 0)
				continue;
			t->cpu = MMR_CPU_ANY;
			t->cpu_thread = NULL;
		}
	}
}

int mmr_case_remove_thread(struct mmr_case *c, struct mmr_proc *p, int i)
{
	const char *name;

	if (i < 0 || i >= p->nthreads)
		return -ENOENT;
	name = p->threads[i]->name;
	p->nthreads--;
	memmove(p->threads + i, p->threads + i + 1,
		(size_t)(p->nthreads - i) * sizeof(*p->threads));
	forget(c, MMR_ARG_THREAD, name);
	return 0;
}

int mmr_case_remove_proc(struct mmr_case *c, int i)
{
	struct mmr_proc *p;
	int j;

	if (i < 0 || i >= c->nprocs)
		return -ENOENT;
	p = c->procs[i];
	c->nprocs--;
	memmove(c->procs + i, c->procs + i + 1,
		(size_t)(c->nprocs - i) * sizeof(*c->procs));
	for (j = 0; j < p->nthreads; j++)
		forget(c, MMR_ARG_THREAD, p->threads[j]->name);
	forget(c, MMR_ARG_PROCESS, p->name);
	return 0;
}

/* Copying: `ok` goes false when memory is out, and stays so. */
static const char *copy_str(struct mmr_case *c, const char *s, bool *ok)
{
	const char *copy;

	if (!s)
		return NULL;
	copy = mmr_case_str(c, s);
	*ok &= copy != NULL;
	return copy;
}

static void copy_stmt(struct mmr_case *c, struct mmr_stmt *to,
		      const struct mmr_stmt *from, bool *ok)
{
	int i;

	*to = *from;
	to->body = (struct mmr_block){0};
	to->ref = copy_str(c, from->ref, ok);
	to->until_name = copy_str(c, from->until_name, ok);
	for (i = 0; i < MMR_MAX_ARGS; i++)
		to->args[i].name = copy_str(c, from->args[i].name, ok);
}

static void copy_block(struct mmr_case *c, struct mmr_block *to,
		       const struct mmr_block *from, bool *ok)
{
	struct mmr_stmt *s;
	int i;

	for (i = 0; i < from->n && *ok; i++) {
		s = mmr_case_add_loop(c, to, MMR_UNTIL_STOP, 0, NULL);
		if (!s) {
			*ok = false;
			return;
		}
		copy_stmt(c, s, from->stmts[i], ok);
		copy_block(c, &s->body, &from->stmts[i]->body, ok);
	}
}

static void copy_proc(struct mmr_case *c, const struct mmr_proc *from, bool *ok)
{
	struct mmr_proc *to = mmr_case_add_proc(c, from->name);
	const struct mmr_thread *t;
	struct mmr_thread *copy;
	int i;

	if (!to) {
		*ok = false;
		return;
	}
	to->is_template = from->is_template;
	to->copies = from->copies;
	to->line = from->line;
	for (i = 0; i < from->nthreads && *ok; i++) {
		t = from->threads[i];
		copy = mmr_case_add_thread(c, to, t->name);
		if (!copy) {
			*ok = false;
			return;
		}
		copy->is_template = t->is_template;
		copy->cpu = t->cpu;
		copy->cpu_number = t->cpu_number;
		copy->cpu_thread = copy_str(c, t->cpu_thread, ok);
		copy->segv = t->segv;
		copy->line = t->line;
		copy_block(c, &copy->body, &t->body, ok);
	}
}

static void copy_head(struct mmr_case *c, const struct mmr_case *from, bool *ok)
{
	struct mmr_expect *expects;
	int i;

	c->title = copy_str(c, from->title, ok);
	c->origin = from->origin;
	c->origin.tool = copy_str(c, from->origin.tool, ok);
	c->origin.kernel = copy_str(c, from->origin.kernel, ok);
	c->origin.arch = copy_str(c, from->origin.arch, ok);
	c->origin.profile = copy_str(c, from->origin.profile, ok);
	c->rounds = from->rounds;
	c->keep = from->keep;
	c->order = from->order;
	c->budget_ns = from->budget_ns;
	c->seen_hits = from->seen_hits;
	c->seen_runs = from->seen_runs;
	c->fixed_commit = copy_str(c, from->fixed_commit, ok);
	c->fixed_subject = copy_str(c, from->fixed_subject, ok);
	for (i = 0; i < from->nneeds; i++)
		*ok &= !mmr_case_add_need(c, from->needs[i].kind,
					  from->needs[i].n,
					  from->needs[i].name);
	for (i = 0; i < from->nsettings; i++)
		*ok &= !mmr_case_add_setting(c, from->settings[i].name,
					     from->settings[i].value);
	for (i = 0; i < from->nexpects && *ok; i++) {
		expects = mmr_pool_grow(c, c->expects, i, sizeof(*expects));
		*ok &= expects != NULL;
		if (!expects)
			return;
		c->expects = expects;
		expects[i] = from->expects[i];
		expects[i].name = copy_str(c, from->expects[i].name, ok);
		c->nexpects++;
	}
}

struct mmr_case *mmr_case_clone(const struct mmr_case *c)
{
	struct mmr_case *copy = mmr_case_new();
	bool ok = true;
	int i;

	if (!copy)
		return NULL;
	copy_head(copy, c, &ok);
	for (i = 0; i < c->nprocs && ok; i++)
		copy_proc(copy, c->procs[i], &ok);
	if (!ok) {
		mmr_case_free(copy);
		return NULL;
	}
	return copy;
}
