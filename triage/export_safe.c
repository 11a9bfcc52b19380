/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether an access in an exported file may meet memory that is not there,
 * and whether a call or an access may hit what came after: an address that
 * was unmapped can be a thread's stack by now.  Without the first the file
 * needs no signal handler, without the second no stacks of its own, and it
 * reads the simpler for it.  In doubt both may be.
 */
#include <linux/mman.h>
#include <string.h>

#include "../ops/kernel.h"
#include "export_c.h"

#define REFS 32

/* MAYBE: writable, or MAP_FAILED, which each access asks for. */
enum state { GONE, MAPPED, MAYBE, WRITABLE };

struct safe {
	struct mmr_export *x;
	const char *ref[REFS];
	enum state state[REFS];
	int n;
	bool may_miss, may_be_stale, may_fail;
};

/* The state of a ref, NULL: too many, or not its thread's alone. */
static enum state *find(struct safe *k, const char *ref)
{
	int i;

	for (i = 0; i < k->n; i++)
		if (!strcmp(k->ref[i], ref))
			return &k->state[i];
	if (k->n == REFS || !mmr_emit_is_private(&k->x->e, ref))
		return NULL;
	k->ref[k->n] = ref;
	k->state[k->n] = GONE;
	return &k->state[k->n++];
}

static void look_at_mmap(struct safe *k, const struct mmr_stmt *s)
{
	int64_t flags = s->args[mmr_op_arg(s->op, "flags")].lo;
	int64_t prot = s->args[mmr_op_arg(s->op, "prot")].lo;
	enum state *state;

	/* Fixed ones replace each other, but only inside the arena. */
	if (flags & (MAP_FIXED | MMR_K_MAP_FIXED_NOREPLACE | MAP_GROWSDOWN))
		k->may_miss = true;
	state = s->ref ? find(k, s->ref) : NULL;
	if (!state)
		return;
	*state = MAPPED;
	/* Huge pages are there for sure where mmap reserved them. */
	if (flags & MAP_ANONYMOUS &&
	    (flags & (MAP_HUGETLB | MAP_NORESERVE)) !=
		    (MAP_HUGETLB | MAP_NORESERVE) &&
	    (prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE))
		*state = mmr_emit_may_fail(&k->x->e, s->ref) ? MAYBE : WRITABLE;
}

/* The old place may be gone, the new one is readable at best. */
static void look_at_mremap(struct safe *k, const struct mmr_stmt *s)
{
	enum state *state = find(k, s->args[0].name);

	if (!state || *state == GONE)
		k->may_miss = k->may_be_stale = true;
	if (state)
		*state = GONE;
	state = s->ref ? find(k, s->ref) : NULL;
	if (state)
		*state = MAPPED;
}

static void look_at(struct safe *k, const struct mmr_stmt *s)
{
	int64_t advice;
	enum state *state;
	int m = -1, i;

	if (s->op->id == MMR_OP_mmap) {
		look_at_mmap(k, s);
		return;
	}
	if (s->op->id == MMR_OP_mremap && s->args[0].name) {
		look_at_mremap(k, s);
		return;
	}
	for (i = 0; i < s->op->nargs; i++)
		if (mmr_emit_ref_kind(&k->x->e, s, i) == MMR_REF_MAPPING)
			m = i;
	if (m < 0) {
		/* Truncated files and answered faults take pages away. */
		if (s->op->id == MMR_OP_ftruncate ||
		    s->op->id == MMR_OP_fallocate)
			k->may_miss = true;
		return;
	}
	state = find(k, s->args[m].name);
	if (!state || *state == GONE) {
		k->may_miss = true;
		k->may_be_stale = true;
		return;
	}
	if (s->op->class == MMR_CLASS_TOUCH) {
		k->may_miss |= *state < MAYBE;
		k->may_fail |= *state == MAYBE;
	} else if (s->op->id == MMR_OP_munmap) {
		*state = GONE;
	} else if (s->op->id == MMR_OP_madvise) {
		advice = s->args[mmr_op_arg(s->op, "advice")].lo;
		if (advice == MMR_K_MADV_GUARD_INSTALL || advice == MADV_REMOVE)
			*state = MAPPED;
	} else if (s->op->id != MMR_OP_uffd_register) {
		*state = MAPPED;
	}
}

static void walk(struct safe *k, const struct mmr_block *b)
{
	struct safe before;
	int i, j;

	for (i = 0; i < b->n; i++) {
		if (b->stmts[i]->kind == MMR_STMT_OP) {
			look_at(k, b->stmts[i]);
			continue;
		}
		/* The second turn must find what the first one found; after
		 * no turn at all nothing more is there than before. */
		before = *k;
		walk(k, &b->stmts[i]->body);
		for (j = 0; j < before.n; j++)
			if (k->state[j] < before.state[j])
				k->may_miss = k->may_be_stale = true;
		before.may_miss = k->may_miss;
		before.may_be_stale = k->may_be_stale;
		before.may_fail = k->may_fail;
		*k = before;
	}
}

void mmr_export_find_misses(struct mmr_export *x)
{
	int i, j;

	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++) {
			struct safe k = {.x = x};

			walk(&k, &x->c->procs[i]->threads[j]->body);
			x->may_miss |= k.may_miss;
			x->may_fail |= k.may_fail;
			x->e.own_stacks |= k.may_be_stale;
		}
}

static int64_t block_mapped(const struct mmr_block *b)
{
	int64_t sum = 0, n;
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			n = block_mapped(&s->body);
		} else if (s->op->id == MMR_OP_mmap) {
			n = mmr_export_bytes(
				&s->args[mmr_op_arg(s->op, "len")]);
			if (n > 1LL << 40) /* nobody fills that */
				n = 1LL << 40;
		} else {
			n = 0;
		}
		sum += n;
	}
	return sum;
}

int64_t mmr_export_mapped(const struct mmr_case *c)
{
	int64_t sum = 0;
	int i, j;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			sum += block_mapped(&c->procs[i]->threads[j]->body);
	return sum < 1LL << 30 ? 0 : sum;
}
