// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The memory of a case, and building one statement by statement.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "pool.h"

/*
 * Under AddressSanitizer each allocation gets a chunk of its own, so that an
 * overrun is seen.
 */
#if defined(__SANITIZE_ADDRESS__)
#define POOL_CHUNK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_CHUNK 1
#endif
#endif
#ifndef POOL_CHUNK
#define POOL_CHUNK 16384
#endif

#define DEFAULT_BUDGET_NS 30000000000LL

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(16) char data[];
};

struct mmr_pool {
	struct chunk *chunks;
};

void *mmr_pool_alloc(struct mmr_case *c, size_t n)
{
	struct mmr_pool *pool = c->pool;
	struct chunk *k = pool->chunks;
	size_t size;
	void *p;

	n = (n + 15) & ~(size_t)15;
	if (!k || k->size - k->used < n) {
		size = n > POOL_CHUNK ? n : POOL_CHUNK;
		k = malloc(sizeof(*k) + size);
		if (!k)
			return NULL;
		k->used = 0;
		k->size = size;
		k->next = pool->chunks;
		pool->chunks = k;
	}
	p = k->data + k->used;
	k->used += n;
	memset(p, 0, n);
	return p;
}

const char *mmr_pool_str(struct mmr_case *c, const char *s, size_t n)
{
	char *p = mmr_pool_alloc(c, n + 1);

	if (p)
		memcpy(p, s, n);
	return p;
}

void *mmr_pool_grow(struct mmr_case *c, void *arr, int n, size_t size)
{
	void *bigger;

	/* A full array is one whose length is a power of two from 4 on. */
	if (n > 0 && (n < 4 || (n & (n - 1)) != 0))
		return arr;
	bigger = mmr_pool_alloc(c, (n ? (size_t)n * 2 : 4) * size);
	if (bigger && n)
		memcpy(bigger, arr, (size_t)n * size);
	return bigger;
}

struct mmr_case *mmr_case_new(void)
{
	struct mmr_case *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->pool = calloc(1, sizeof(*c->pool));
	if (!c->pool) {
		free(c);
		return NULL;
	}
	c->rounds = 1;
	c->budget_ns = DEFAULT_BUDGET_NS;
	return c;
}

void mmr_case_free(struct mmr_case *c)
{
	struct chunk *k, *next;

	if (!c)
		return;
	for (k = c->pool->chunks; k; k = next) {
		next = k->next;
		free(k);
	}
	free(c->pool);
	free(c);
}

const char *mmr_case_str(struct mmr_case *c, const char *s)
{
	return mmr_pool_str(c, s, strlen(s));
}

struct mmr_proc *mmr_case_add_proc(struct mmr_case *c, const char *name)
{
	struct mmr_proc **procs, *p;

	procs = mmr_pool_grow(c, c->procs, c->nprocs, sizeof(*procs));
	if (!procs)
		return NULL;
	c->procs = procs;
	p = mmr_pool_alloc(c, sizeof(*p));
	if (!p)
		return NULL;
	p->name = mmr_case_str(c, name);
	if (!p->name)
		return NULL;
	p->copies = 1;
	procs[c->nprocs++] = p;
	return p;
}

struct mmr_thread *mmr_case_add_thread(struct mmr_case *c, struct mmr_proc *p,
				       const char *name)
{
	struct mmr_thread **threads, *t;

	threads = mmr_pool_grow(c, p->threads, p->nthreads, sizeof(*threads));
	if (!threads)
		return NULL;
	p->threads = threads;
	t = mmr_pool_alloc(c, sizeof(*t));
	if (!t)
		return NULL;
	t->name = mmr_case_str(c, name);
	if (!t->name)
		return NULL;
	threads[p->nthreads++] = t;
	return t;
}

static struct mmr_stmt *add_stmt(struct mmr_case *c, struct mmr_block *b)
{
	struct mmr_stmt **stmts, *s;

	stmts = mmr_pool_grow(c, b->stmts, b->n, sizeof(*stmts));
	if (!stmts)
		return NULL;
	b->stmts = stmts;
	s = mmr_pool_alloc(c, sizeof(*s));
	if (s)
		stmts[b->n++] = s;
	return s;
}

struct mmr_stmt *mmr_case_add_op(struct mmr_case *c, struct mmr_block *b,
				 const struct mmr_op *op, const char *ref)
{
	const char *copy = NULL;
	struct mmr_stmt *s;
	int i;

	if (ref) {
		copy = mmr_case_str(c, ref);
		if (!copy)
			return NULL;
	}
	s = add_stmt(c, b);
	if (!s)
		return NULL;
	s->kind = MMR_STMT_OP;
	s->op = op;
	s->ref = copy;
	for (i = 0; i < op->nargs; i++)
		s->args[i].lo = s->args[i].hi = op->args[i].def;
	return s;
}

struct mmr_stmt *mmr_case_add_loop(struct mmr_case *c, struct mmr_block *b,
				   enum mmr_until until, int64_t count,
				   const char *name)
{
	const char *copy = NULL;
	struct mmr_stmt *s;

	if (name) {
		copy = mmr_case_str(c, name);
		if (!copy)
			return NULL;
	}
	s = add_stmt(c, b);
	if (!s)
		return NULL;
	s->kind = MMR_STMT_LOOP;
	s->until = until;
	s->count = count;
	s->until_name = copy;
	return s;
}

int mmr_case_add_need(struct mmr_case *c, enum mmr_need_kind kind, int64_t n,
		      const char *name)
{
	const char *copy = NULL;
	struct mmr_need *needs;

	if (name) {
		copy = mmr_case_str(c, name);
		if (!copy)
			return -ENOMEM;
	}
	needs = mmr_pool_grow(c, c->needs, c->nneeds, sizeof(*needs));
	if (!needs)
		return -ENOMEM;
	c->needs = needs;
	needs[c->nneeds++] =
		(struct mmr_need){.kind = kind, .n = n, .name = copy};
	return 0;
}

int mmr_case_add_setting(struct mmr_case *c, const char *name, int64_t value)
{
	struct mmr_setting *settings;
	const char *copy = mmr_case_str(c, name);

	if (!copy)
		return -ENOMEM;
	settings =
		mmr_pool_grow(c, c->settings, c->nsettings, sizeof(*settings));
	if (!settings)
		return -ENOMEM;
	c->settings = settings;
	settings[c->nsettings++] =
		(struct mmr_setting){.name = copy, .value = value};
	return 0;
}

int mmr_case_add_expect(struct mmr_case *c, const struct mmr_expect *e)
{
	const char *name = e->name ? mmr_case_str(c, e->name) : NULL;
	struct mmr_expect *expects = mmr_pool_grow(c, c->expects, c->nexpects,
						   sizeof(*expects));

	if (!expects || (e->name && !name))
		return -ENOMEM;
	c->expects = expects;
	expects[c->nexpects] = *e;
	expects[c->nexpects++].name = name;
	return 0;
}
