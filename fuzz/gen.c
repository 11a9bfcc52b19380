// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Seeds to cases: the shape.
 *
 * Races live in small worlds (DESIGN section 8): one or two objects of one to
 * four pages, two to four actors that all touch the same pages, a pool at its
 * edge, and a random half of the profile's operations; then timing.  A few
 * cases go without these limits.  A case ends by construction: loops are
 * counted, a wait has its signal, whoever is waited for ends by itself or is
 * killed first.
 */
#include "gen_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BACKGROUND 30 /* percent of third and further threads */
#define ORDERED 40    /* percent of cases without rendezvous */

static const char *const thread_names[] = {"A", "B", "C", "D"};

/* Which of the profile's operations this case uses. */
static void draw_swarm(struct mmr_gen *g)
{
	struct mmr_rng r = mmr_gen_stream(g, "swarm");
	const struct mmr_weights *ops = &g->p->ops;
	bool touch = false, change = false;

	for (int i = 0; i < ops->n; i++) {
		bool must = mmr_weights_find(&g->p->must, ops->w[i].word) >= 0;
		bool keep = mmr_gen_chance(&r, g->p->swarm);
		bool touches = !strcmp(ops->w[i].word, "write") ||
			       !strcmp(ops->w[i].word, "read");

		g->use[i] = must || keep || g->large;
		touch |= g->use[i] && touches;
		change |= g->use[i] && !touches;
	}
	/* Somebody who touches, and something to race with. */
	for (int i = 0; i < ops->n; i++)
		if (!touch && !strcmp(ops->w[i].word, "write"))
			g->use[i] = 1;
	while (!change) {
		int i = (int)mmr_gen_below(&r, (uint64_t)ops->n);

		g->use[i] = 1;
		change = strcmp(ops->w[i].word, "write") &&
			 strcmp(ops->w[i].word, "read");
	}
}

static bool uses(const struct mmr_gen *g, const char *op)
{
	int i = mmr_weights_find(&g->p->ops, op);

	return i >= 0 && g->use[i];
}

static void draw_object(struct mmr_gen *g, struct mmr_gen_object *o, int index,
			int64_t *place)
{
	const char *word =
		mmr_weights_draw(&g->p->backing, NULL, mmr_rng_next(&g->shape));
	char name[16];

	memset(o, 0, sizeof(*o));
	snprintf(name, sizeof(name), "m%d", index);
	o->map = mmr_case_str(g->c, name);
	o->hugetlb = !strncmp(word, "hugetlb", 7);
	o->exec = !strcmp(word, "memfd_exec");
	o->thp = !strcmp(word, "thp");
	o->shared = strstr(word, "shared") || !strcmp(word, "memfd") ||
		    !strcmp(word, "hugetlb_memfd");
	if (strstr(word, "memfd")) {
		snprintf(name, sizeof(name), "f%d", index);
		o->file = mmr_case_str(g->c, name);
	}
	o->unit = o->hugetlb ? MMR_UNIT_HUGE : MMR_UNIT_PAGE;
	o->len = mmr_gen_in(&g->shape,
			    g->large ? g->p->large_pages : g->p->pages);
	/* What stands in a mixed profile for another kind of page. */
	if (o->hugetlb && o->len > 4)
		o->len = 4;
	if (o->thp) {
		o->unit = MMR_UNIT_BYTE;
		o->len = 4 << 20;
	}
	o->noreserve = mmr_gen_chance(&g->shape, o->hugetlb ? 30 : 6);
	o->populate = mmr_gen_chance(&g->shape, 10);
	/* In the arena, one beside the other: neighbours merge and split. */
	o->at_bytes = -1;
	if (mmr_gen_chance(&g->shape, 40) && !o->thp) {
		int64_t bytes = mmr_shadow_bytes(o->len, o->unit);

		if (o->hugetlb)
			*place = (*place + (2 << 20) - 1) &
				 ~(int64_t)((2 << 20) - 1);
		o->at_bytes = *place;
		*place += bytes;
	}
	if (!o->map || (strstr(word, "memfd") && !o->file))
		g->failed = true;
}

static void draw_shape(struct mmr_gen *g)
{
	struct mmr_rng *r = &g->shape;
	int64_t place = 0;

	g->large = mmr_gen_chance(r, g->p->large);
	g->outside = mmr_gen_chance(r, g->p->outside);
	draw_swarm(g);
	g->nobjects =
		mmr_gen_in(r, g->large ? g->p->large_objects : g->p->objects);
	for (int i = 0; i < g->nobjects; i++)
		draw_object(g, &g->objects[i], i, &place);
	g->nthreads = mmr_gen_in(r, g->p->threads);
	if (mmr_gen_chance(r, g->p->children) &&
	    (uses(g, "process_spawn") || g->p->children == 100))
		g->kid_ref = mmr_case_str(g->c, "p0");
	if (g->nthreads < 2 && !g->kid_ref)
		g->nthreads = 2;
	g->kid_killed =
		mmr_gen_chance(r, uses(g, "process_mrelease") ? 85 : 50);
	g->kid_signals = mmr_gen_chance(r, 35);
	g->epochs = g->nthreads > 1 && mmr_gen_chance(r, g->p->sync);
	g->nepochs = mmr_gen_in(r, g->p->epochs);
	/* Who meets nobody may still be put in order. */
	if (g->nthreads > 1 && !g->epochs && mmr_gen_chance(r, ORDERED))
		g->c->order = mmr_gen_chance(r, 70) ? 2 : 3;
	g->ordered = g->nthreads > 1 && mmr_gen_chance(r, g->p->ordered);
	g->nodes = uses(g, "migrate_pages") && mmr_gen_chance(r, g->p->nodes);
	mmr_gen_draw_pool(g);
	g->turns = mmr_gen_in(r, g->p->turns);
	g->c->rounds = mmr_gen_in(r, g->p->rounds);
	/* Big ones take their time in each turn. */
	if (g->large || g->objects[0].thp) {
		g->turns = 1 + g->turns / 4;
		g->c->rounds = 1 + g->c->rounds / 2;
	}
	if (g->kid_ref) {
		g->turns = 1 + g->turns / 6;
		g->c->rounds = 1 + g->c->rounds / 2;
	}
	g->c->budget_ns = 1000000000;
}

static void latch(struct mmr_gen_actor *a, int id, const char *name)
{
	struct mmr_stmt *s = mmr_gen_op(a, id, NULL);

	mmr_gen_name(a->g, s, "latch", name);
	mmr_gen_done(a, s);
}

static void spawn_kid(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_process_spawn, g->kid_ref);

	mmr_gen_name(g, s, "process", "kid");
	mmr_gen_done(a, s);
	if (g->kid_signals)
		latch(a, MMR_OP_wait, "up");
}

static void end_kid(struct mmr_gen_actor *a)
{
	static const int errs[] = {0, EINVAL, EAGAIN, ESRCH};
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;

	if (g->kid_killed) {
		s = mmr_gen_op(a, MMR_OP_kill, NULL);
		mmr_gen_name(g, s, "p", g->kid_ref);
		mmr_gen_words(g, s, "signal", "KILL");
		mmr_gen_done(a, s);
		if (uses(g, "process_mrelease") &&
		    mmr_gen_chance(&a->rng, g->nthreads > 1 ? 25 : 80)) {
			s = mmr_gen_op(a, MMR_OP_process_mrelease, NULL);
			mmr_gen_name(g, s, "p", g->kid_ref);
			mmr_gen_accept(s, errs, 4);
			mmr_gen_done(a, s);
		}
	}
	s = mmr_gen_op(a, MMR_OP_process_reap, NULL);
	mmr_gen_name(g, s, "p", g->kid_ref);
	mmr_gen_done(a, s);
}

/* One turn of a plain thread: what its loop holds. */
static void turn(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;
	bool kid = a->spawner && g->kid_ref;
	int n;

	if (kid)
		spawn_kid(a);
	if (g->epochs && !a->free) {
		for (int e = 0; e < g->nepochs; e++) {
			mmr_gen_meet(a, e);
			/* The child dies right after the last rendezvous,
			 * which is where the others look at it. */
			if (kid && e == g->nepochs - 1 &&
			    mmr_gen_chance(&a->rng, 70))
				break;
			mmr_gen_verb(a);
		}
	} else {
		n = mmr_gen_in(&a->rng, g->p->body);
		while (n--)
			mmr_gen_verb(a);
	}
	if (kid)
		end_kid(a);
	mmr_gen_restore(a);
}

static struct mmr_gen_actor actor(struct mmr_gen *g, struct mmr_proc *p,
				  const char *name)
{
	struct mmr_gen_actor a = {.g = g};
	char purpose[32];

	a.thread = p ? mmr_case_add_thread(g->c, p, name) : NULL;
	if (!a.thread) {
		/* Statements find no block then; the case is given up. */
		g->failed = true;
		return a;
	}
	a.block = &a.thread->body;
	snprintf(purpose, sizeof(purpose), "thread %s", name);
	a.rng = mmr_gen_stream(g, purpose);
	snprintf(purpose, sizeof(purpose), "timing %s", name);
	a.time = mmr_gen_stream(g, purpose);
	g->shadow.thread++;
	return a;
}

/* From here on statements go into a loop. */
static void loop_in(struct mmr_gen_actor *a, enum mmr_until until,
		    int64_t count, const char *name)
{
	struct mmr_stmt *loop =
		mmr_case_add_loop(a->g->c, a->block, until, count, name);

	if (loop)
		a->block = &loop->body;
	else
		a->g->failed = true;
}

static void plain_thread(struct mmr_gen *g, int index)
{
	struct mmr_gen_actor a = actor(g, g->main, thread_names[index]);

	if (g->failed)
		return;
	a.spawner = index == 0;
	if (index)
		mmr_gen_pin(g, a.thread, thread_names[0]);
	/* Two meet; of more, some act in the background. */
	a.free = !g->epochs ||
		 (index > 1 && mmr_gen_chance(&a.time, BACKGROUND));
	if (index == 0) {
		mmr_gen_set_up(&a);
		if (g->ordered)
			latch(&a, MMR_OP_signal, "go");
	} else if (g->ordered) {
		latch(&a, MMR_OP_wait, "go");
	}
	/* Loops that meet have the same number of turns, or those who are
	 * done first would leave the others alone; free ones may also go on
	 * as long as the first thread does. */
	if (index && a.free && (g->epochs || mmr_gen_chance(&a.rng, 25)))
		loop_in(&a, MMR_UNTIL_DONE, 0, thread_names[0]);
	else if (g->turns > 1)
		loop_in(&a, MMR_UNTIL_COUNT, g->turns, NULL);
	turn(&a);
	a.block = &a.thread->body;
	if (index == g->nthreads - 1 && index && mmr_gen_chance(&a.rng, 4)) {
		struct mmr_stmt *s = mmr_gen_op(&a, MMR_OP_exit_group, NULL);

		mmr_gen_done(&a, s);
	}
}

/* Widens windows of the others: an attribute of the case that stands in it as
 * a thread, so that it is seen, exported, and taken out when it does nothing.
 */
static void widener(struct mmr_gen *g)
{
	struct mmr_gen_actor a = actor(g, g->main, "X");

	if (!g->failed)
		mmr_gen_widener(&a, thread_names[0]);
}

/* What thread_spawn runs beside `idle`: a few touches and gone. */
static void thread_body(struct mmr_gen *g)
{
	struct mmr_gen_actor a = actor(g, g->main, "W");

	if (g->failed)
		return;
	a.thread->is_template = true;
	a.is_body = true;
	for (int n = 1 + (int)mmr_gen_below(&a.rng, 2); n; n--)
		mmr_gen_verb(&a);
	mmr_gen_restore(&a);
}

/* Answers what the others ask for, as long as any of them runs, and takes
 * itself away at the end, or they would wait for ever. */
static void server(struct mmr_gen *g)
{
	struct mmr_gen_actor a = actor(g, g->main, "U");

	for (int i = 0; i < g->nthreads && !g->failed; i++) {
		loop_in(&a, MMR_UNTIL_DONE, 0, thread_names[i]);
		mmr_gen_recipe_server(&a, false);
		a.block = &a.thread->body;
	}
	if (!g->failed)
		mmr_gen_recipe_server(&a, true);
}

static void kid_thread(struct mmr_gen *g, const char *name, bool first)
{
	struct mmr_gen_actor a = actor(g, g->kid, name);

	if (g->failed)
		return;
	a.in_kid = true;
	mmr_gen_set_up_kid(&a, first);
	if (first && g->kid_signals && mmr_gen_chance(&a.rng, 50)) {
		latch(&a, MMR_OP_signal, "up");
		first = false;
	}
	if (mmr_gen_chance(&a.rng, 60))
		loop_in(&a, MMR_UNTIL_COUNT,
			1 + mmr_gen_in(&a.rng, g->p->turns), NULL);
	for (int n = 1 + (int)mmr_gen_below(&a.rng, 2); n; n--)
		mmr_gen_verb(&a);
	mmr_gen_restore(&a);
	a.block = &a.thread->body;
	if (first && g->kid_signals)
		latch(&a, MMR_OP_signal, "up");
	if (g->kid_killed && mmr_gen_chance(&a.rng, 75))
		mmr_gen_done(&a, mmr_gen_op(&a, MMR_OP_pause, NULL));
	/* Only the sole thread: another one may not have signalled yet. */
	else if (g->kid->nthreads == 1 && mmr_gen_chance(&a.rng, 40))
		mmr_gen_done(&a, mmr_gen_op(&a, MMR_OP_exit_group, NULL));
}

static void child_process(struct mmr_gen *g)
{
	struct mmr_rng r = mmr_gen_stream(g, "kid");
	bool second = mmr_gen_chance(&r, 20);

	g->kid = mmr_case_add_proc(g->c, "kid");
	if (!g->kid) {
		g->failed = true;
		return;
	}
	g->kid->is_template = true;
	g->kid->copies = mmr_gen_in(&r, g->p->copies);
	kid_thread(g, "K", true);
	if (second)
		kid_thread(g, "L", false);
}

static void build(struct mmr_gen *g)
{
	draw_shape(g);
	mmr_gen_title(g);
	g->main = mmr_case_add_proc(g->c, "main");
	if (!g->main || g->failed) {
		g->failed = true;
		return;
	}
	if (uses(g, "thread_spawn") && mmr_gen_chance(&g->shape, 50))
		g->body = "W";
	for (int i = 0; i < g->nthreads && !g->failed; i++)
		plain_thread(g, i);
	if (!g->failed && g->nthreads > 1 && mmr_gen_wants_widener(g))
		widener(g);
	if (!g->failed && mmr_gen_recipe_serves(g))
		server(g);
	if (g->body && !g->failed)
		thread_body(g);
	if (g->kid_ref && !g->failed)
		child_process(g);
	if (!g->failed)
		mmr_gen_needs(g);
}

/* A profile with a mix hands a seed to one of the profiles in it. */
static const struct mmr_profile *choose(const struct mmr_profile *p,
					uint64_t key)
{
	const struct mmr_profile *other;

	if (!p->mix.n)
		return p;
	other = mmr_profile_find(
		mmr_weights_draw(&p->mix, NULL, mmr_rng_key_str(key, "mix")));
	return other ? other : p;
}

struct mmr_case *mmr_gen(uint64_t seed, const struct mmr_profile *profile)
{
	struct mmr_gen g = {0};
	struct mmr_case *c;

	g.c = mmr_case_new();
	if (!g.c)
		return NULL;
	g.key = mmr_rng_key_str(mmr_rng_key(seed, MMR_GEN_VERSION),
				profile->name);
	g.p = choose(profile, g.key);
	g.shape = mmr_gen_stream(&g, "shape");
	g.c->origin.has_seed = true;
	g.c->origin.seed = seed;
	g.c->origin.gen = MMR_GEN_VERSION;
	build(&g);
	c = g.c;
	if (g.failed) {
		mmr_case_free(c);
		return NULL;
	}
	return c;
}
