// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Statements that are wrong on purpose: the error paths of the kernel race as
 * well.  They come in addition to the valid ones, so that nothing else of the
 * case depends on them, and they never sleep.
 */
#include "gen_impl.h"

#include <errno.h>

/* Whatever comes of it is right: it was meant to be wrong. */
static void wrong(struct mmr_gen_actor *a, struct mmr_stmt *s)
{
	static const int any[] = {0,   EINVAL, ENOMEM, EFAULT,
				  EIO, EACCES, EPERM,  EBUSY};
	static const int gone[] = {0, EINVAL, EAGAIN, ESRCH};

	if (s->op->id == MMR_OP_process_mrelease)
		mmr_gen_accept(s, gone, 4);
	else
		mmr_gen_accept(s, any, 8);
	mmr_gen_done(a, s);
}

static const char *any_map(struct mmr_gen_actor *a)
{
	struct mmr_shadow *sh = &a->g->shadow;

	if (!sh->nmaps)
		return NULL;
	return sh->maps[mmr_gen_below(&a->rng, (uint64_t)sh->nmaps)].name;
}

/* A start that is not at a page's. */
static void wrong_place(struct mmr_gen_actor *a, const char *map)
{
	static const int ids[] = {MMR_OP_munmap, MMR_OP_mprotect,
				  MMR_OP_madvise};
	static const int64_t offs[] = {1, 100, 4095};
	struct mmr_gen *g = a->g;
	int id = ids[mmr_gen_below(&a->rng, 3)];
	struct mmr_stmt *s = mmr_gen_op(a, id, NULL);

	mmr_gen_name(g, s, "m", map);
	if (id == MMR_OP_mprotect)
		mmr_gen_words(g, s, "prot", "r");
	if (id == MMR_OP_madvise)
		mmr_gen_words(g, s, "advice", "dontneed");
	mmr_gen_size(g, s, "off", offs[mmr_gen_below(&a->rng, 3)],
		     MMR_UNIT_BYTE);
	wrong(a, s);
}

/* An address that was unmapped: by now it may be another thread's. */
static bool stale(struct mmr_gen_actor *a)
{
	static const int ids[] = {MMR_OP_munmap, MMR_OP_write, MMR_OP_read};
	struct mmr_shadow *sh = &a->g->shadow;

	for (int i = 0; i < sh->nmaps; i++) {
		struct mmr_stmt *s;

		if (sh->maps[i].state != MMR_SHADOW_GONE)
			continue;
		s = mmr_gen_op(a, ids[mmr_gen_below(&a->rng, 3)], NULL);
		mmr_gen_name(a->g, s, "m", sh->maps[i].name);
		wrong(a, s);
		return true;
	}
	return false;
}

static void wrong_mmap(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_mmap, NULL);

	/* No file and not anonymous, or both kinds at once. */
	mmr_gen_size(g, s, "len", 1, MMR_UNIT_PAGE);
	mmr_gen_words(g, s, "prot", "rw");
	mmr_gen_words(g, s, "flags",
		      mmr_gen_chance(&a->rng, 50) ? "shared"
						  : "shared|private|anon");
	wrong(a, s);
}

static void wrong_nodes(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_migrate_pages, NULL);

	mmr_gen_words(g, s, "from", "n0");
	mmr_gen_words(g, s, "to", "n7");
	wrong(a, s);
}

static bool wrong_process(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;

	if (!g->kid_ref || a->in_kid)
		return false;
	s = mmr_gen_op(a, MMR_OP_process_mrelease, NULL);
	mmr_gen_name(g, s, "p", g->kid_ref);
	wrong(a, s);
	return true;
}

static void wrong_advice(struct mmr_gen_actor *a, const char *map)
{
	static const char *const advice[] = {"remove", "free", "collapse",
					     "populate_write"};
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_madvise, NULL);

	mmr_gen_name(g, s, "m", map);
	mmr_gen_words(g, s, "advice", advice[mmr_gen_below(&a->rng, 4)]);
	wrong(a, s);
}

void mmr_gen_wrong(struct mmr_gen_actor *a)
{
	const char *map = any_map(a);
	bool numa = mmr_weights_find(&a->g->p->ops, "migrate_pages") >= 0;

	switch (mmr_gen_below(&a->rng, 8)) {
	case 0:
		wrong_mmap(a);
		return;
	case 1:
		if (numa && !a->in_kid) {
			wrong_nodes(a);
			return;
		}
		break;
	case 2:
		if (wrong_process(a))
			return;
		break;
	case 3:
	case 4:
		if (stale(a))
			return;
		break;
	case 5:
		if (map) {
			wrong_advice(a, map);
			return;
		}
		break;
	default:
		break;
	}
	if (map)
		wrong_place(a, map);
}
