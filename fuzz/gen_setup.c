// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How the objects of a case come to be, and what it needs of the machine for
 * them: pools of huge pages at their edge, files whose pages are there before
 * somebody shares them, and the mapping that only reserves.
 */
#include "gen_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HUGE_BYTES ((int64_t)2 << 20)

/* Exactly what the objects need, one less, or plenty. */
void mmr_gen_draw_pool(struct mmr_gen *g)
{
	const char *edge;
	int64_t pool = 0;

	for (int i = 0; i < g->nobjects; i++)
		if (g->objects[i].hugetlb)
			pool += g->objects[i].len;
	if (!pool)
		return;
	edge = mmr_weights_draw(&g->p->edge, NULL, mmr_rng_next(&g->shape));
	if (!strcmp(edge, "plenty"))
		pool = pool * 2 + 2;
	else if (!strcmp(edge, "less") && pool > 1)
		pool--;
	g->surplus = mmr_gen_chance(&g->shape, g->p->surplus);
	if (g->surplus && mmr_gen_chance(&g->shape, g->p->reserve)) {
		g->reserve = mmr_gen_in(&g->shape, g->p->reserve_pages);
		g->kid_reserves = g->kid_ref && mmr_gen_chance(&g->shape, 40);
	}
	g->pool = (int)pool + g->reserve;
}

/* Surplus pages come with the mapping that wants them and go with it; those
 * of a ready pool stay. */
static void need_pool(struct mmr_gen *g)
{
	struct mmr_case *c = g->c;
	int64_t mib = 2 * g->pool * HUGE_BYTES >> 20;

	if (!g->surplus) {
		if (mmr_case_add_need(c, MMR_NEED_HUGEPAGES, g->pool, NULL))
			g->failed = true;
		return;
	}
	/* Not on a machine of which it would be half. */
	if (g->reserve && mmr_case_add_need(c, MMR_NEED_MEMORY,
					    ((mib | 255) + 1) << 20, NULL))
		g->failed = true;
	if (mmr_case_add_setting(c, "nr_hugepages", 0) ||
	    mmr_case_add_setting(c, "nr_overcommit_hugepages", g->pool))
		g->failed = true;
}

void mmr_gen_needs(struct mmr_gen *g)
{
	static const struct mmr_expect content = {.kind = MMR_EXPECT_CONTENT};
	struct mmr_rng r = mmr_gen_stream(g, "content");

	if (g->migrates && mmr_case_add_need(g->c, MMR_NEED_NODES, 2, NULL))
		g->failed = true;
	if (g->pool)
		need_pool(g);
	mmr_gen_recipe_heads(g);
	if (mmr_gen_chance(&r, g->p->content) &&
	    mmr_case_add_expect(g->c, &content))
		g->failed = true;
}

void mmr_gen_title(struct mmr_gen *g)
{
	const struct mmr_gen_object *o = &g->objects[0];
	char size[32], buf[160];

	mmr_case_print_size(size, sizeof(size), o->len, o->unit);
	snprintf(buf, sizeof(buf),
		 "%s: %d object%s, the first %s %s %s; %d thread%s%s",
		 g->p->name, g->nobjects, g->nobjects > 1 ? "s" : "", size,
		 o->shared ? "shared" : "private",
		 o->hugetlb ? "hugetlb"
		 : o->exec  ? "executable memfd"
		 : o->file  ? "memfd"
			    : "anonymous",
		 g->nthreads, g->nthreads > 1 ? "s" : "",
		 g->kid_ref ? ", children" : "");
	g->c->title = mmr_case_str(g->c, buf);
	if (!g->c->title)
		g->failed = true;
}

static void touch(struct mmr_gen_actor *a, int id, const char *map,
		  enum mmr_unit step)
{
	struct mmr_stmt *s = mmr_gen_op(a, id, NULL);

	mmr_gen_name(a->g, s, "m", map);
	mmr_gen_size(a->g, s, "step", 1, step);
	mmr_gen_done(a, s);
}

/*
 * The shadow does not learn of it, so that nobody else touches it: all of it
 * is left for the end of the process.
 */
static void reserve(struct mmr_gen_actor *a)
{
	static const int enomem[] = {0, ENOMEM};
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_mmap, "big");
	bool shared = mmr_gen_chance(&a->rng, 30);

	mmr_gen_size(g, s, "len", g->reserve, MMR_UNIT_HUGE);
	mmr_gen_words(g, s, "prot", "rw");
	mmr_gen_words(g, s, "flags",
		      shared ? "shared|anon|hugetlb" : "private|anon|hugetlb");
	mmr_gen_accept(s, enomem, 2);
	if (!mmr_gen_chance(&a->rng, 40))
		return;
	s = mmr_gen_op(a, MMR_OP_write, NULL);
	mmr_gen_name(g, s, "m", "big");
	mmr_gen_size(g, s, "len", 1 + (int64_t)mmr_gen_below(&a->rng, 4),
		     MMR_UNIT_HUGE);
	mmr_gen_size(g, s, "step", 1, MMR_UNIT_HUGE);
}

static void make_file(struct mmr_gen_actor *a, const struct mmr_gen_object *o)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_memfd_create, o->file);

	if (o->hugetlb)
		mmr_gen_words(g, s, "flags", "hugetlb");
	mmr_gen_done(a, s);
	s = mmr_gen_op(a, MMR_OP_ftruncate, NULL);
	mmr_gen_name(g, s, "f", o->file);
	mmr_gen_size(g, s, "len", o->len, o->unit);
	mmr_gen_done(a, s);
}

/* Writes the file's pages through a mapping that goes again. */
static void fill_file(struct mmr_gen_actor *a, const struct mmr_gen_object *o)
{
	const char *map = mmr_gen_fresh(a->g, "fill");
	struct mmr_gen_object shared = {
		.map = map,
		.file = o->file,
		.shared = true,
		.unit = o->unit,
		.len = o->len,
		.at_bytes = -1,
	};
	struct mmr_stmt *s;

	mmr_gen_map_object(a, &shared);
	touch(a, MMR_OP_write, map, MMR_UNIT_PAGE);
	s = mmr_gen_op(a, MMR_OP_munmap, NULL);
	mmr_gen_name(a->g, s, "m", map);
	mmr_gen_done(a, s);
}

static void set_up_object(struct mmr_gen_actor *a,
			  const struct mmr_gen_object *o)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;

	if (o->file)
		make_file(a, o);
	/* Else the first reads make the pages. */
	if (o->exec && mmr_gen_chance(&a->rng, 40))
		fill_file(a, o);
	mmr_gen_map_object(a, o);
	if (o->exec) {
		if (mmr_gen_chance(&a->rng, 70))
			touch(a, MMR_OP_read, o->map, MMR_UNIT_PAGE);
		return;
	}
	if (o->thp && mmr_gen_chance(&a->rng, 80)) {
		s = mmr_gen_op(a, MMR_OP_madvise, NULL);
		mmr_gen_name(g, s, "m", o->map);
		mmr_gen_words(g, s, "advice", "hugepage");
		mmr_gen_done(a, s);
	}
	if (mmr_gen_chance(&a->rng, 40))
		touch(a, MMR_OP_write, o->map,
		      o->hugetlb ? MMR_UNIT_HUGE : MMR_UNIT_PAGE);
}

void mmr_gen_set_up(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;

	mmr_gen_recipe_set_up(a, true);
	/* First, so that it is the objects that find the pool at its edge. */
	if (g->reserve && !g->kid_reserves)
		reserve(a);
	for (int i = 0; i < g->nobjects; i++)
		set_up_object(a, &g->objects[i]);
	mmr_gen_recipe_set_up(a, false);
}

void mmr_gen_set_up_kid(struct mmr_gen_actor *a, bool first)
{
	struct mmr_gen *g = a->g;

	if (!first)
		return;
	if (g->kid_reserves)
		reserve(a);
	/* A fork does not take page tables of files along: to share a page a
	 * child has to touch it. */
	for (int i = 0; i < g->nobjects; i++)
		if (g->objects[i].exec && mmr_gen_chance(&a->rng, 75))
			touch(a, MMR_OP_read, g->objects[i].map, MMR_UNIT_PAGE);
}
