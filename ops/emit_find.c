/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the exported C of a statement depends on elsewhere in its case: who
 * makes a ref, who else uses it, what stands before. */
#include <linux/mman.h>
#include <string.h>

#include "emit.h"

static int each_in_block(const struct mmr_block *b, const struct mmr_thread *t,
			 mmr_emit_stmt_fn *fn, void *arg)
{
	int i, ret = 0;

	for (i = 0; i < b->n && !ret; i++) {
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			ret = each_in_block(&b->stmts[i]->body, t, fn, arg);
		else
			ret = fn(arg, b->stmts[i], t);
	}
	return ret;
}

int mmr_emit_each_stmt(const struct mmr_case *c, mmr_emit_stmt_fn *fn,
		       void *arg)
{
	const struct mmr_thread *t;
	int i, j, ret = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads && !ret; j++) {
			t = c->procs[i]->threads[j];
			ret = each_in_block(&t->body, t, fn, arg);
		}
	return ret;
}

struct ref_search {
	const char *name;
	uint32_t kinds;
	const struct mmr_thread *user;
	const struct mmr_stmt *made; /* the first that makes it */
	int times;
};

static int add_kind(void *arg, const struct mmr_stmt *s,
		    const struct mmr_thread *t)
{
	struct ref_search *r = arg;

	(void)t;
	if (s->ref && !strcmp(s->ref, r->name))
		r->kinds |= s->op->makes;
	return 0;
}

uint32_t mmr_emit_kinds_made(const struct mmr_emit *e, const char *name)
{
	struct ref_search r = {.name = name};

	mmr_emit_each_stmt(e->c, add_kind, &r);
	return r.kinds;
}

static int count_made(void *arg, const struct mmr_stmt *s,
		      const struct mmr_thread *t)
{
	struct ref_search *r = arg;

	(void)t;
	r->times += s->ref && !strcmp(s->ref, r->name);
	return 0;
}

int mmr_emit_count_made(const struct mmr_emit *e, const char *ref)
{
	struct ref_search r = {.name = ref};

	mmr_emit_each_stmt(e->c, count_made, &r);
	return r.times;
}

static int other_user(void *arg, const struct mmr_stmt *s,
		      const struct mmr_thread *t)
{
	struct ref_search *r = arg;
	bool names_it = s->ref && !strcmp(s->ref, r->name);
	int i;

	for (i = 0; i < s->op->nargs && !names_it; i++)
		names_it = s->op->args[i].type == MMR_ARG_REF &&
			   s->args[i].name && !strcmp(s->args[i].name, r->name);
	if (!names_it)
		return 0;
	if (r->user && r->user != t)
		return 1;
	r->user = t;
	return 0;
}

bool mmr_emit_is_private(const struct mmr_emit *e, const char *ref)
{
	struct ref_search r = {.name = ref};

	/* A template may run several times at once. */
	return !mmr_emit_each_stmt(e->c, other_user, &r) && r.user &&
	       !r.user->is_template;
}

/* 1: ref is made in b before s for sure, 0: s is in b and it is not, -1: s is
 * not in b. */
static int made_before(const struct mmr_block *b, const struct mmr_stmt *s,
		       const char *ref)
{
	int i, made = 0, in;

	for (i = 0; i < b->n; i++) {
		if (b->stmts[i] == s)
			return made;
		if (b->stmts[i]->kind == MMR_STMT_LOOP) {
			in = made_before(&b->stmts[i]->body, s, ref);
			if (in >= 0)
				return made || in;
		} else if (b->stmts[i]->ref && !strcmp(b->stmts[i]->ref, ref)) {
			made = 1;
		}
	}
	return -1;
}

bool mmr_emit_follows(const struct mmr_emit *e, const struct mmr_stmt *s,
		      const char *ref)
{
	return ref && made_before(&e->thread->body, s, ref) == 1;
}

static bool is_op(const struct mmr_block *b, int i, enum mmr_op_id id)
{
	return i >= 0 && i < b->n && b->stmts[i]->kind == MMR_STMT_OP &&
	       b->stmts[i]->op->id == id;
}

/* Counts spawns and joins of ref that do not stand as a pair. */
static int lone_halves(const struct mmr_block *b, const char *ref)
{
	const struct mmr_stmt *s;
	int i, lone = 0;

	for (i = 0; i < b->n; i++) {
		s = b->stmts[i];
		if (s->kind == MMR_STMT_LOOP)
			lone += lone_halves(&s->body, ref);
		else if (is_op(b, i, MMR_OP_thread_spawn) && s->ref &&
			 !strcmp(s->ref, ref))
			lone += strcmp(s->args[0].name, "idle") ||
				!is_op(b, i + 1, MMR_OP_thread_join) ||
				strcmp(b->stmts[i + 1]->args[0].name, ref);
		else if (is_op(b, i, MMR_OP_thread_join) &&
			 !strcmp(s->args[0].name, ref))
			lone += !is_op(b, i - 1, MMR_OP_thread_spawn) ||
				!b->stmts[i - 1]->ref ||
				strcmp(b->stmts[i - 1]->ref, ref);
	}
	return lone;
}

bool mmr_emit_is_joined(const struct mmr_emit *e, const char *ref)
{
	const struct mmr_proc *p;
	int i, j;

	if (!ref || !mmr_emit_is_private(e, ref))
		return false;
	for (i = 0; i < e->c->nprocs; i++) {
		p = e->c->procs[i];
		for (j = 0; j < p->nthreads; j++)
			if (lone_halves(&p->threads[j]->body, ref))
				return false;
	}
	return true;
}

uint32_t mmr_emit_ref_kind(const struct mmr_emit *e, const struct mmr_stmt *s,
			   int i)
{
	const struct mmr_argspec *spec = &s->op->args[i];
	uint32_t kinds;

	if (spec->type != MMR_ARG_REF || !s->args[i].name)
		return MMR_REF_NONE;
	kinds = mmr_emit_kinds_made(e, s->args[i].name) & spec->kinds;
	return kinds & -kinds; /* the lowest, should there be several */
}

static int is_maker(void *arg, const struct mmr_stmt *s,
		    const struct mmr_thread *t)
{
	struct ref_search *r = arg;

	(void)t;
	if (!s->ref || strcmp(s->ref, r->name) != 0)
		return 0;
	r->made = s;
	return 1;
}

const struct mmr_stmt *mmr_emit_maker(const struct mmr_emit *e, const char *ref)
{
	struct ref_search r = {.name = ref};

	mmr_emit_each_stmt(e->c, is_maker, &r);
	return r.made;
}

#define SURE_TO_MAP (1LL << 30) /* bytes */

static int may_fail(void *arg, const struct mmr_stmt *s,
		    const struct mmr_thread *t)
{
	const struct ref_search *r = arg;
	const struct mmr_value *len;
	int shift = 0;

	(void)t;
	if (s->op->id != MMR_OP_mmap || !s->ref || strcmp(s->ref, r->name) != 0)
		return 0;
	len = &s->args[mmr_op_arg(s->op, "len")];
	if (len->unit == MMR_UNIT_PAGE)
		shift = 16; /* at most */
	else if (len->unit == MMR_UNIT_HUGE)
		shift = 21;
	return s->args[mmr_op_arg(s->op, "flags")].lo & MAP_HUGETLB ||
	       len->lo > SURE_TO_MAP >> shift;
}

bool mmr_emit_may_fail(const struct mmr_emit *e, const char *ref)
{
	struct ref_search r = {.name = ref};

	return mmr_emit_each_stmt(e->c, may_fail, &r);
}
