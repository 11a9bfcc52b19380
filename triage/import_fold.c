// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What repeats becomes a loop, as it arrives: after each statement, the last
 * p statements are compared with the p before them, or with the body of the
 * loop before them.  A loop in a loop follows from that, as a loop is a
 * statement too.
 */
#include "import_impl.h"

#include <string.h>

#include "../ops/rng.h"

#define LONGEST 24 /* statements of a body */
#define DEEPEST 3  /* loops in loops, of 4 that a case allows */

static uint64_t hash_str(uint64_t h, const char *s)
{
	for (; s && *s; s++)
		h = mmr_rng_mix(h ^ (unsigned char)*s);
	return mmr_rng_mix(h + 1);
}

static uint64_t hash_node(const struct mmr_imp_node *n)
{
	uint64_t h = n->op ? n->op->id : 1000 + (uint64_t)n->count;
	int i;

	h = hash_str(mmr_rng_mix(h), n->ref);
	for (i = 0; n->op && i < n->op->nargs; i++) {
		h = mmr_rng_mix(h ^ (uint64_t)n->arg[i].lo);
		h = hash_str(h, n->arg[i].name);
	}
	for (i = 0; i < n->body.n; i++)
		h = mmr_rng_mix(h ^ n->body.v[i]->hash);
	return h;
}

static bool same_str(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_node(const struct mmr_imp_node *a,
		      const struct mmr_imp_node *b);

static bool same_run(struct mmr_imp_node *const *a,
		     struct mmr_imp_node *const *b, int n)
{
	int i;

	for (i = n - 1; i >= 0; i--)
		if (!same_node(a[i], b[i]))
			return false;
	return true;
}

static bool same_node(const struct mmr_imp_node *a,
		      const struct mmr_imp_node *b)
{
	int i;

	if (a->hash != b->hash || a->op != b->op || a->count != b->count ||
	    a->body.n != b->body.n || !same_str(a->ref, b->ref))
		return false;
	for (i = 0; a->op && i < a->op->nargs; i++)
		if (a->arg[i].set != b->arg[i].set ||
		    a->arg[i].lo != b->arg[i].lo ||
		    !same_str(a->arg[i].name, b->arg[i].name))
			return false;
	return same_run(a->body.v, b->body.v, a->body.n);
}

static int statements(const struct mmr_imp_node *n)
{
	int sum = 1 + (n->delay_hi > 0), i;

	for (i = 0; i < n->body.n; i++)
		sum += statements(n->body.v[i]);
	return sum;
}

/* The b of the next turn is a, with whatever was different. */
static void merge(struct mmr_imp *im, struct mmr_imp_node *a,
		  struct mmr_imp_node *b)
{
	int before = statements(a), i, j;

	if (b->delay_lo < a->delay_lo)
		a->delay_lo = b->delay_lo;
	if (b->delay_hi > a->delay_hi)
		a->delay_hi = b->delay_hi;
	for (i = 0; i < b->naccept; i++) {
		for (j = 0; j < a->naccept; j++)
			if (a->accept[j] == b->accept[i])
				break;
		if (j == a->naccept && j < MMR_CASE_MAX_ACCEPT)
			a->accept[a->naccept++] = b->accept[i];
	}
	if (b->comments) {
		struct mmr_imp_comment **at = &a->comments;

		while (*at)
			at = &(*at)->next;
		*at = b->comments;
	}
	im->nstmts += statements(a) - before;
	for (i = 0; i < a->body.n; i++)
		merge(im, a->body.v[i], b->body.v[i]);
}

static bool push(struct mmr_imp *im, struct mmr_imp_nodes *v,
		 struct mmr_imp_node *n)
{
	struct mmr_imp_node **more;
	int cap;

	if (v->n == v->cap) {
		cap = v->cap ? v->cap * 2 : 8;
		more = mmr_imp_alloc(im, (size_t)cap * sizeof(*more));
		if (!more)
			return false;
		if (v->n)
			memcpy(more, v->v, (size_t)v->n * sizeof(*more));
		v->v = more;
		v->cap = cap;
	}
	v->v[v->n++] = n;
	return true;
}

/* For the next ones: a log of a million turns is one turn in the end. */
static void spare(struct mmr_imp *im, struct mmr_imp_node *n)
{
	int i;

	for (i = 0; i < n->body.n; i++)
		spare(im, n->body.v[i]);
	n->next_spare = im->spare;
	im->spare = n;
}

/* The last p statements into those at `into`. */
static void drop_run(struct mmr_imp *im, struct mmr_imp_nodes *v,
		     struct mmr_imp_node *const *into, int p)
{
	int i;

	for (i = 0; i < p; i++) {
		im->nstmts -= statements(v->v[v->n - p + i]);
		merge(im, into[i], v->v[v->n - p + i]);
		spare(im, v->v[v->n - p + i]);
	}
	v->n -= p;
}

/* One more turn of the loop before the last p. */
static bool join_loop(struct mmr_imp *im, struct mmr_imp_nodes *v, int p)
{
	struct mmr_imp_node *loop;

	if (v->n <= p)
		return false;
	loop = v->v[v->n - p - 1];
	if (loop->op || loop->body.n != p ||
	    !same_run(loop->body.v, v->v + v->n - p, p))
		return false;
	drop_run(im, v, loop->body.v, p);
	loop->count++;
	loop->hash = hash_node(loop);
	return true;
}

/* turns times the same p statements: a loop. */
static bool make_loop(struct mmr_imp *im, struct mmr_imp_nodes *v, int p,
		      int turns)
{
	struct mmr_imp_node *loop, **first = v->v + v->n - p * turns;
	int i, t;

	if (v->n < p * turns)
		return false;
	for (t = 1; t < turns; t++)
		if (!same_run(first, first + t * p, p))
			return false;
	loop = mmr_imp_node(im, NULL);
	if (!loop)
		return false;
	for (i = 0; i < p; i++) {
		if (first[i]->depth >= DEEPEST ||
		    !push(im, &loop->body, first[i]))
			return false;
		if (loop->depth < first[i]->depth)
			loop->depth = first[i]->depth;
	}
	loop->depth++;
	loop->count = turns;
	for (t = 1; t < turns; t++)
		drop_run(im, v, loop->body.v, p);
	v->n -= p;
	loop->hash = hash_node(loop);
	im->nstmts++; /* its own line */
	return push(im, v, loop);
}

static bool fold(struct mmr_imp *im, struct mmr_imp_nodes *v)
{
	int p;

	for (p = 1; p <= LONGEST; p++)
		/* Twice one statement is as long as a loop of it. */
		if (join_loop(im, v, p) || make_loop(im, v, p, p == 1 ? 3 : 2))
			return true;
	return false;
}

void mmr_imp_append(struct mmr_imp *im, struct mmr_imp_nodes *v,
		    struct mmr_imp_node *n)
{
	n->hash = hash_node(n);
	if (!push(im, v, n))
		return;
	im->nstmts += statements(n);
	while (fold(im, v))
		;
}

void mmr_imp_insert(struct mmr_imp *im, struct mmr_imp_nodes *v,
		    struct mmr_imp_node *n)
{
	int i;

	n->hash = hash_node(n);
	if (!push(im, v, n))
		return;
	im->nstmts += statements(n);
	for (i = v->n - 1; i > 0; i--) {
		const struct mmr_imp_node *before = v->v[i - 1];

		if (!before->op || before->op->class != MMR_CLASS_WAIT)
			break;
		v->v[i] = v->v[i - 1];
	}
	v->v[i] = n;
}

/* -- templates that do the same ----------------------------------------- */

static bool same_threads(const struct mmr_imp_thread *a,
			 const struct mmr_imp_thread *b)
{
	return a->nodes.n == b->nodes.n && !a->comments && !b->comments &&
	       same_run(a->nodes.v, b->nodes.v, a->nodes.n);
}

/* What starts it may now be the same as what was started before. */
static void spawn_changed(struct mmr_imp *im, struct mmr_imp_node *spawn,
			  struct mmr_imp_nodes *spawner)
{
	spawn->hash = hash_node(spawn);
	while (fold(im, spawner))
		;
}

static void forget(struct mmr_imp *im, struct mmr_imp_thread *t)
{
	int i;

	for (i = 0; i < t->nodes.n; i++)
		im->nstmts -= statements(t->nodes.v[i]);
	im->nthreads--;
}

void mmr_imp_merge_thread(struct mmr_imp *im, struct mmr_imp_thread *t)
{
	struct mmr_imp_thread *i, *before;

	t->ended = true;
	if (!t->is_template || !t->spawn)
		return;
	for (i = t->proc->threads; i != t; i = i->next)
		if (i->is_template && i->ended && same_threads(i, t))
			break;
	if (i == t || !mmr_imp_set_name(t->spawn, "body", i->name))
		return;
	spawn_changed(im, t->spawn, t->spawner);
	t->spawn = NULL;
	for (before = i; before->next != t; before = before->next)
		;
	before->next = t->next;
	if (t->proc->last == t)
		t->proc->last = before;
	t->proc->nthreads--;
	forget(im, t);
}

static bool same_procs(const struct mmr_imp_proc *a,
		       const struct mmr_imp_proc *b)
{
	const struct mmr_imp_thread *s = a->threads, *t = b->threads;

	for (; s && t; s = s->next, t = t->next)
		if (!s->ended || s->is_template || t->is_template ||
		    !same_threads(s, t))
			return false;
	return !s && !t;
}

void mmr_imp_merge_proc(struct mmr_imp *im, struct mmr_imp_proc *p)
{
	struct mmr_imp_proc *i, *before;
	struct mmr_imp_thread *t;

	if (!p->is_template || !p->spawn)
		return;
	for (i = im->procs; i != p; i = i->next)
		if (i->is_template && same_procs(i, p))
			break;
	if (i == p || !mmr_imp_set_name(p->spawn, "process", i->name))
		return;
	spawn_changed(im, p->spawn, p->spawner);
	p->spawn = NULL;
	for (before = i; before->next != p; before = before->next)
		;
	before->next = p->next;
	if (im->last_proc == p)
		im->last_proc = before;
	im->nprocs--;
	for (t = p->threads; t; t = t->next)
		forget(im, t);
}
