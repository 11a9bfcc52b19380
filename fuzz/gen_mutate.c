// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One random edit of a case, for the custom mutators.  An edit that breaks
 * the case (a name gone, a limit passed) is not made: it is tried on a copy
 * first, and as it is a pure function of case and seed it does the same again
 * on the case itself.
 */
#include "gen_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_STMTS 200 /* an edit adds nothing beyond */
#define MAX_BLOCKS 64

static struct mmr_stmt *any_stmt(struct mmr_case *c, struct mmr_rng *r)
{
	int n = mmr_case_count(c);

	return n ? mmr_case_stmt(c, (int)mmr_gen_below(r, (uint64_t)n)) : NULL;
}

static int edit_remove(struct mmr_case *c, struct mmr_rng *r)
{
	int n = mmr_case_count(c);

	if (n < 2)
		return -EINVAL;
	return mmr_case_remove(c, (int)mmr_gen_below(r, (uint64_t)n));
}

static void collect(struct mmr_block *b, struct mmr_block **out, int *n)
{
	if (*n < MAX_BLOCKS)
		out[(*n)++] = b;
	for (int i = 0; i < b->n; i++)
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			collect(&b->stmts[i]->body, out, n);
}

/* A thread's body or a loop's. */
static struct mmr_block *any_block(struct mmr_case *c, struct mmr_rng *r)
{
	struct mmr_block *blocks[MAX_BLOCKS];
	int n = 0;

	for (int p = 0; p < c->nprocs; p++)
		for (int t = 0; t < c->procs[p]->nthreads; t++)
			collect(&c->procs[p]->threads[t]->body, blocks, &n);
	return n ? blocks[mmr_gen_below(r, (uint64_t)n)] : NULL;
}

/* A ref that some statement makes, of one of these kinds; NULL: none. */
static const char *any_ref(struct mmr_case *c, struct mmr_rng *r,
			   uint32_t kinds)
{
	const char *found = NULL;
	uint64_t seen = 0;

	for (int i = mmr_case_count(c) - 1; i >= 0; i--) {
		struct mmr_stmt *s = mmr_case_stmt(c, i);

		if (!s || s->kind != MMR_STMT_OP || !s->ref ||
		    !(s->op->makes & kinds))
			continue;
		if (!mmr_gen_below(r, ++seen))
			found = s->ref;
	}
	return found;
}

static const char *name_of_type(struct mmr_case *c, struct mmr_rng *r,
				enum mmr_arg_type type)
{
	static const char *const few[] = {"x", "y"};

	if (type == MMR_ARG_PROCESS)
		for (int i = 0; i < c->nprocs; i++)
			if (c->procs[i]->is_template)
				return c->procs[i]->name;
	if (type == MMR_ARG_PROCESS || type == MMR_ARG_THREAD)
		return "idle";
	return few[mmr_gen_below(r, 2)];
}

static int set_value(struct mmr_case *c, struct mmr_rng *r,
		     const struct mmr_argspec *spec, struct mmr_value *v)
{
	static const int64_t sizes[] = {1, 1, 2, 3, 4, 8};
	int n = 0, flags;

	v->set = true;
	v->is_auto = v->is_log = false;
	switch (spec->type) {
	case MMR_ARG_REF:
		v->name = any_ref(c, r, spec->kinds);
		return v->name ? 0 : -EINVAL;
	case MMR_ARG_SIZE:
		v->lo = v->hi = sizes[mmr_gen_below(r, 6)];
		v->unit = MMR_UNIT_PAGE;
		return 0;
	case MMR_ARG_INT:
		v->lo = v->hi = mmr_rng_range(
			mmr_rng_next(r), spec->min,
			spec->max > spec->min + 8 ? spec->min + 8 : spec->max);
		return 0;
	case MMR_ARG_TIME:
		v->lo = 0;
		v->hi = mmr_gen_span(r);
		if (spec->flags & MMR_ARG_SIGNED && mmr_gen_chance(r, 50))
			v->lo = -mmr_gen_span(r);
		v->is_auto =
			spec->flags & MMR_ARG_AUTO && mmr_gen_chance(r, 40);
		v->is_log = !v->is_auto && spec->flags & MMR_ARG_LOG &&
			    mmr_gen_chance(r, 20);
		return 0;
	case MMR_ARG_ENUM:
	case MMR_ARG_FLAGS:
		while (spec->names[n].name)
			n++;
		flags = spec->type == MMR_ARG_FLAGS && mmr_gen_chance(r, 70);
		/* One bit more or less, or just this one. */
		v->lo = spec->names[mmr_gen_below(r, (uint64_t)n)].value ^
			(flags ? v->lo : 0);
		v->hi = v->lo;
		return 0;
	case MMR_ARG_WORD:
		v->set = !v->lo;
		v->lo = v->hi = v->set;
		return 0;
	default:
		v->name = mmr_case_str(c, name_of_type(c, r, spec->type));
		return v->name ? 0 : -ENOMEM;
	}
}

static int edit_arg(struct mmr_case *c, struct mmr_rng *r)
{
	struct mmr_stmt *s = any_stmt(c, r);
	int i;

	if (!s)
		return -EINVAL;
	if (s->kind == MMR_STMT_LOOP) {
		if (s->until != MMR_UNTIL_COUNT)
			return -EINVAL;
		s->count = mmr_rng_range(mmr_rng_next(r), 1, 32);
		return 0;
	}
	if (!s->op->nargs)
		return -EINVAL;
	i = (int)mmr_gen_below(r, s->op->nargs);
	return set_value(c, r, &s->op->args[i], &s->args[i]);
}

/* A new statement never sleeps for something that may not come. */
static bool may_insert(const struct mmr_op *op)
{
	return op && op->class != MMR_CLASS_WAIT &&
	       op->class != MMR_CLASS_BLOCK && op->id != MMR_OP_ptrace_seize &&
	       op->id != MMR_OP_userfaultfd && op->id != MMR_OP_uffd_register;
}

static void move_into(struct mmr_block *b, struct mmr_rng *r)
{
	int at = (int)mmr_gen_below(r, (uint64_t)b->n);
	struct mmr_stmt *s = b->stmts[b->n - 1];

	memmove(&b->stmts[at + 1], &b->stmts[at],
		(size_t)(b->n - 1 - at) * sizeof(b->stmts[0]));
	b->stmts[at] = s;
}

static int edit_insert(struct mmr_case *c, struct mmr_rng *r)
{
	struct mmr_block *b = any_block(c, r);
	const struct mmr_op *op =
		mmr_op_by_id((unsigned int)mmr_gen_below(r, MMR_OP_close + 1));
	struct mmr_stmt *s;
	char ref[MMR_CASE_NAME_LEN];
	int rc;

	if (!b || !may_insert(op) || mmr_case_count(c) >= MAX_STMTS)
		return -EINVAL;
	snprintf(ref, sizeof(ref), "r%d", (int)mmr_gen_below(r, 8));
	s = mmr_case_add_op(c, b, op, op->makes ? ref : NULL);
	if (!s)
		return -ENOMEM;
	for (int i = 0; i < op->nargs; i++) {
		if (op->args[i].flags & MMR_ARG_OPT && mmr_gen_chance(r, 75))
			continue;
		rc = set_value(c, r, &op->args[i], &s->args[i]);
		if (rc)
			return rc;
	}
	move_into(b, r);
	return 0;
}

static int edit_repeat(struct mmr_case *c, struct mmr_rng *r)
{
	struct mmr_stmt *from = any_stmt(c, r), *s;
	struct mmr_block *b = any_block(c, r);

	if (!b || !from || from->kind != MMR_STMT_OP ||
	    mmr_case_count(c) >= MAX_STMTS)
		return -EINVAL;
	s = mmr_case_add_op(c, b, from->op, from->ref);
	if (!s)
		return -ENOMEM;
	memcpy(s->args, from->args, sizeof(s->args));
	memcpy(s->accept, from->accept, sizeof(s->accept));
	s->naccept = from->naccept;
	move_into(b, r);
	return 0;
}

static int edit_swap(struct mmr_case *c, struct mmr_rng *r)
{
	struct mmr_block *b = any_block(c, r);
	struct mmr_stmt *s;
	int i;

	if (!b || b->n < 2)
		return -EINVAL;
	i = (int)mmr_gen_below(r, (uint64_t)(b->n - 1));
	s = b->stmts[i];
	b->stmts[i] = b->stmts[i + 1];
	b->stmts[i + 1] = s;
	return 0;
}

static int edit_loop(struct mmr_case *c, struct mmr_rng *r)
{
	int n = mmr_case_count(c);

	if (!n)
		return -EINVAL;
	return mmr_case_unwrap(c, (int)mmr_gen_below(r, (uint64_t)n));
}

static int edit_place(struct mmr_case *c, struct mmr_rng *r)
{
	struct mmr_proc *p;
	struct mmr_thread *t;

	if (!c->nprocs)
		return -EINVAL;
	if (mmr_gen_chance(r, 30)) {
		c->rounds = mmr_rng_range(mmr_rng_next(r), 1, 16);
		return 0;
	}
	p = c->procs[mmr_gen_below(r, (uint64_t)c->nprocs)];
	if (!p->nthreads)
		return -EINVAL;
	t = p->threads[mmr_gen_below(r, (uint64_t)p->nthreads)];
	t->cpu = mmr_gen_chance(r, 50) ? MMR_CPU_ANY : MMR_CPU_NUMBER;
	t->cpu_number = (int)mmr_gen_below(r, 4);
	t->cpu_thread = NULL;
	return 0;
}

static int (*const edits[])(struct mmr_case *, struct mmr_rng *) = {
	edit_arg,    edit_arg,	edit_arg,  edit_insert, edit_insert,
	edit_remove, edit_swap, edit_loop, edit_place,	edit_repeat,
};

static int apply(struct mmr_case *c, uint64_t key)
{
	struct mmr_rng r = {key, 0};

	return edits[mmr_gen_below(&r, sizeof(edits) / sizeof(edits[0]))](c,
									  &r);
}

int mmr_mutate(struct mmr_case *c, uint64_t seed)
{
	struct mmr_diag diag;

	for (uint64_t i = 0; i < 16; i++) {
		uint64_t key = mmr_rng_key_str(mmr_rng_key(seed, i), "mutate");
		struct mmr_case *trial = mmr_case_clone(c);
		int rc;

		if (!trial)
			return -ENOMEM;
		rc = apply(trial, key);
		if (!rc)
			rc = mmr_case_check(trial, &diag);
		mmr_case_free(trial);
		if (!rc)
			return apply(c, key);
	}
	return -EINVAL;
}
