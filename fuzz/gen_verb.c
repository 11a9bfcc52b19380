// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a thread does: each verb is one to a few statements about the objects
 * that all threads of the case share.  A thread puts back what it changed at
 * the end of its turn (mmr_gen_restore), so its next turn and the other
 * threads find it as they expect, if they are lucky.
 */
#include "gen_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct mmr_gen_object *object_of(const struct mmr_gen *g,
					      const char *map)
{
	for (int i = 0; i < g->nobjects; i++)
		if (!strcmp(g->objects[i].map, map))
			return &g->objects[i];
	return NULL;
}

static void join(char *buf, size_t n, const char *word)
{
	size_t at = strlen(buf);

	snprintf(buf + at, n - at, "%s%s", at ? "|" : "", word);
}

static const char *whole_prot(const struct mmr_gen_object *o)
{
	return o && o->exec ? "rx" : "rw";
}

void mmr_gen_map_object(struct mmr_gen_actor *a, const struct mmr_gen_object *o)
{
	static const int enomem[] = {0, ENOMEM};
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_mmap, o->map);
	char flags[80] = "";

	join(flags, sizeof(flags), o->shared ? "shared" : "private");
	if (!o->file)
		join(flags, sizeof(flags), "anon");
	if (o->hugetlb && !o->file)
		join(flags, sizeof(flags), "hugetlb");
	if (o->noreserve)
		join(flags, sizeof(flags), "noreserve");
	if (o->populate)
		join(flags, sizeof(flags), "populate");
	if (o->at_bytes >= 0)
		join(flags, sizeof(flags), "fixed");
	mmr_gen_size(g, s, "len", o->len, o->unit);
	mmr_gen_words(g, s, "prot", whole_prot(o));
	mmr_gen_words(g, s, "flags", flags);
	if (o->at_bytes >= 0)
		mmr_gen_size(g, s, "at", o->at_bytes, MMR_UNIT_BYTE);
	if (o->file)
		mmr_gen_name(g, s, "fd", o->file);
	if (o->hugetlb)
		mmr_gen_accept(s, enomem, 2);
	mmr_gen_done(a, s);
}

enum want { WANT_MAPPED, WANT_READ, WANT_WRITE, WANT_BROKEN };

static bool wanted(const struct mmr_shadow_map *m, enum want want)
{
	switch (want) {
	case WANT_READ:
		return m->state == MMR_SHADOW_WHOLE && m->readable;
	case WANT_WRITE:
		return m->state == MMR_SHADOW_WHOLE && m->writable;
	case WANT_MAPPED:
		return m->state == MMR_SHADOW_WHOLE;
	case WANT_BROKEN:
		return m->state != MMR_SHADOW_WHOLE;
	}
	return false;
}

/* A mapping that the verb can be about, NULL when there is none. */
static struct mmr_shadow_map *pick(struct mmr_gen_actor *a, enum want want)
{
	struct mmr_shadow *sh = &a->g->shadow;
	uint64_t n = 0, at;

	for (int i = 0; i < sh->nmaps; i++)
		n += wanted(&sh->maps[i], want);
	if (!n)
		return NULL;
	at = mmr_gen_below(&a->rng, n);
	for (int i = 0; i < sh->nmaps; i++)
		if (wanted(&sh->maps[i], want) && !at--)
			return &sh->maps[i];
	return NULL;
}

/* off= and len= of a part, in the mapping's own unit. */
static void part(struct mmr_gen_actor *a, struct mmr_stmt *s,
		 const struct mmr_shadow_map *m, int percent)
{
	int64_t len = m->len, off, n;
	enum mmr_unit unit = m->unit;

	if (unit == MMR_UNIT_BYTE) { /* of some MiB: in pages */
		len = mmr_shadow_bytes(len, unit) / 4096;
		unit = MMR_UNIT_PAGE;
	}
	if (len < 2 || !mmr_gen_chance(&a->rng, percent))
		return;
	off = (int64_t)mmr_gen_below(&a->rng, (uint64_t)len);
	n = 1 + (int64_t)mmr_gen_below(&a->rng, (uint64_t)(len - off));
	if (off)
		mmr_gen_size(a->g, s, "off", off, unit);
	if (off + n < len)
		mmr_gen_size(a->g, s, "len", n, unit);
}

static bool verb_touch(struct mmr_gen_actor *a, int id)
{
	struct mmr_shadow_map *m =
		pick(a, id == MMR_OP_write ? WANT_WRITE : WANT_READ);
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;
	bool much;

	if (!m)
		return false;
	s = mmr_gen_op(a, id, NULL);
	mmr_gen_name(g, s, "m", m->name);
	/* A byte a step over much memory would be all that the case does. */
	much = mmr_shadow_bytes(m->len, m->unit) > 4 * 4096;
	if (m->unit == MMR_UNIT_BYTE && mmr_gen_chance(&a->rng, 80)) {
		/* A few pages of some MiB, each in another huge page. */
		mmr_gen_size(g, s, "step", 2 << 20, MMR_UNIT_BYTE);
		mmr_gen_done(a, s);
		return true;
	}
	part(a, s, m, 25);
	if (m->hugetlb)
		mmr_gen_size(g, s, "step", 1,
			     mmr_gen_chance(&a->rng, 80) ? MMR_UNIT_HUGE
							 : MMR_UNIT_PAGE);
	else if (much || mmr_gen_chance(&a->rng, 60))
		mmr_gen_size(g, s, "step", 1, MMR_UNIT_PAGE);
	if (mmr_gen_chance(&a->rng, 8))
		mmr_gen_words(g, s, "order", "rand");
	mmr_gen_done(a, s);
	return true;
}

static void unmap(struct mmr_gen_actor *a, const char *name)
{
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_munmap, NULL);

	mmr_gen_name(a->g, s, "m", name);
	mmr_gen_done(a, s);
}

static bool verb_munmap(struct mmr_gen_actor *a, int id)
{
	struct mmr_shadow_map *m = pick(a, WANT_MAPPED);
	const struct mmr_gen_object *o;
	struct mmr_stmt *s;

	if (!m)
		return false;
	o = object_of(a->g, m->name);
	s = mmr_gen_op(a, id, NULL);
	mmr_gen_name(a->g, s, "m", m->name);
	part(a, s, m, 40);
	mmr_gen_done(a, s);
	/* Back at once, or left open for the rest of the turn. */
	if (o && mmr_gen_chance(&a->rng, 60)) {
		if (m->state == MMR_SHADOW_HOLED && o->at_bytes < 0)
			unmap(a, o->map);
		mmr_gen_map_object(a, o);
	}
	return true;
}

/* A mapping of the thread's own, which goes again: the loop of many a
 * report.  The kernel likes to put it where another one just went. */
static bool own_mapping(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;
	struct mmr_gen_object o = g->objects[0];
	struct mmr_stmt *s;

	if (g->shadow.nmaps >= MMR_SHADOW_MAPS)
		return false;
	o.map = mmr_gen_fresh(g, "own");
	o.at_bytes = -1;
	if (o.thp || o.len > 16) { /* it comes and goes in each turn */
		o.thp = false;
		o.len = 2;
		o.unit = o.hugetlb ? MMR_UNIT_HUGE : MMR_UNIT_PAGE;
	}
	/* Without a file of its own a private copy is another kind. */
	if (!o.hugetlb && mmr_gen_chance(&a->rng, 30))
		o.shared = !o.shared;
	mmr_gen_map_object(a, &o);
	s = mmr_gen_op(a, o.exec ? MMR_OP_read : MMR_OP_write, NULL);
	mmr_gen_name(g, s, "m", o.map);
	if (o.hugetlb)
		mmr_gen_size(g, s, "step", 1, MMR_UNIT_HUGE);
	else if (o.len > 4 || mmr_gen_chance(&a->rng, 50))
		mmr_gen_size(g, s, "step", 1, MMR_UNIT_PAGE);
	mmr_gen_done(a, s);
	if (a->depth < 2 && mmr_gen_chance(&a->rng, 40))
		mmr_gen_verb(a);
	unmap(a, o.map);
	return true;
}

static bool verb_mmap(struct mmr_gen_actor *a, int id)
{
	struct mmr_shadow_map *m = pick(a, WANT_BROKEN);
	const struct mmr_gen_object *o = m ? object_of(a->g, m->name) : NULL;

	(void)id;
	if (o) {
		if (m->state == MMR_SHADOW_HOLED && o->at_bytes < 0)
			unmap(a, o->map);
		mmr_gen_map_object(a, o);
		return true;
	}
	/* Over a mapping that is there, in one step. */
	m = pick(a, WANT_MAPPED);
	o = m ? object_of(a->g, m->name) : NULL;
	if (o && o->at_bytes >= 0 && mmr_gen_chance(&a->rng, 60)) {
		mmr_gen_map_object(a, o);
		return true;
	}
	return own_mapping(a);
}

static bool verb_mprotect(struct mmr_gen_actor *a, int id)
{
	struct mmr_shadow_map *m = pick(a, WANT_MAPPED);
	static const char *const prots[] = {"r", "r", "r", "none", "none"};
	struct mmr_stmt *s;
	const char *prot;
	uint64_t which;

	if (!m)
		return false;
	prot = whole_prot(object_of(a->g, m->name));
	if (m->untouched) {
		which = mmr_gen_below(&a->rng, 6);
		prot = which < 5 ? prots[which] : prot;
	}
	s = mmr_gen_op(a, id, NULL);
	mmr_gen_name(a->g, s, "m", m->name);
	mmr_gen_words(a->g, s, "prot", prot);
	if (m->untouched)
		part(a, s, m, 40);
	mmr_gen_done(a, s);
	return true;
}

static bool verb_madvise(struct mmr_gen_actor *a, int id)
{
	struct mmr_shadow_map *m = pick(a, WANT_MAPPED);
	struct mmr_shadow_map copy;
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s, trial = {.kind = MMR_STMT_OP};
	const char *advice = "";

	if (!m)
		return false;
	trial.op = mmr_op_by_id((unsigned int)id);
	trial.args[0].name = m->name;
	for (int i = 0; i < 8; i++) {
		advice = mmr_weights_draw(&g->p->advice, NULL,
					  mmr_rng_next(&a->rng));
		if (!*advice)
			return false;
		copy = *m;
		mmr_gen_words(g, &trial, "advice", advice);
		if (mmr_shadow_step(&g->shadow, &trial))
			break;
		*m = copy;
		advice = "";
	}
	if (!*advice)
		return false;
	s = mmr_gen_op(a, id, NULL);
	mmr_gen_name(g, s, "m", m->name);
	mmr_gen_words(g, s, "advice", advice);
	part(a, s, m, 30);
	mmr_gen_done(a, s);
	return true;
}

static bool verb_ftruncate(struct mmr_gen_actor *a, int id)
{
	struct mmr_gen *g = a->g;
	const struct mmr_gen_object *o = NULL;
	struct mmr_stmt *s;

	for (int i = 0; i < g->nobjects; i++)
		if (g->objects[i].file)
			o = &g->objects[i];
	if (!o)
		return false;
	s = mmr_gen_op(a, id, NULL);
	mmr_gen_name(g, s, "f", o->file);
	mmr_gen_size(g, s, "len",
		     (int64_t)mmr_gen_below(&a->rng, (uint64_t)o->len),
		     o->unit);
	mmr_gen_done(a, s);
	if (mmr_gen_chance(&a->rng, 50)) {
		s = mmr_gen_op(a, id, NULL);
		mmr_gen_name(g, s, "f", o->file);
		mmr_gen_size(g, s, "len", o->len, o->unit);
		mmr_gen_done(a, s);
	}
	return true;
}

static bool verb_thread_spawn(struct mmr_gen_actor *a, int id)
{
	struct mmr_gen *g = a->g;
	const char *ref = mmr_gen_fresh(g, "t");
	struct mmr_stmt *s;

	s = mmr_gen_op(a, id, ref);
	mmr_gen_name(g, s, "body",
		     g->body && mmr_gen_chance(&a->rng, 60) ? g->body : "idle");
	mmr_gen_done(a, s);
	if (a->depth < 2 && mmr_gen_chance(&a->rng, 50))
		mmr_gen_verb(a);
	s = mmr_gen_op(a, MMR_OP_thread_join, NULL);
	mmr_gen_name(g, s, "t", ref);
	mmr_gen_done(a, s);
	return true;
}

static bool verb_kill(struct mmr_gen_actor *a, int id)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;
	const char *sig;

	/* Whoever waits for the child to come up, or for its own end, must
	 * not wait for one that was killed or stopped by somebody else. */
	if (!g->kid_ref || (g->kid_signals && !a->spawner))
		return false;
	sig = mmr_weights_draw(&g->p->signal, NULL, mmr_rng_next(&a->rng));
	if (!g->kid_killed && strcmp(sig, "CONT"))
		sig = "KILL";
	s = mmr_gen_op(a, id, NULL);
	mmr_gen_name(g, s, "p", g->kid_ref);
	mmr_gen_words(g, s, "signal", sig);
	mmr_gen_done(a, s);
	return true;
}

static bool verb_process_mrelease(struct mmr_gen_actor *a, int id)
{
	static const int errs[] = {0, EINVAL, EAGAIN, ESRCH};
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;

	if (!g->kid_ref)
		return false;
	s = mmr_gen_op(a, id, NULL);
	mmr_gen_name(g, s, "p", g->kid_ref);
	mmr_gen_accept(s, errs, 4);
	mmr_gen_done(a, s);
	return true;
}

static bool verb_pidfd_open(struct mmr_gen_actor *a, int id)
{
	struct mmr_gen *g = a->g;
	const char *ref;
	struct mmr_stmt *s;

	if (!g->kid_ref)
		return false;
	ref = mmr_gen_fresh(g, "pf");
	s = mmr_gen_op(a, id, ref);
	mmr_gen_name(g, s, "p", g->kid_ref);
	mmr_gen_done(a, s);
	s = mmr_gen_op(a, MMR_OP_close, NULL);
	mmr_gen_name(g, s, "fd", ref);
	mmr_gen_done(a, s);
	return true;
}

static void migrate(struct mmr_gen_actor *a, const char *process,
		    const char *from, const char *to)
{
	static const int errs[] = {0, ESRCH};
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_migrate_pages, NULL);

	if (process) {
		mmr_gen_name(g, s, "p", process);
		mmr_gen_accept(s, errs, 2);
	}
	mmr_gen_words(g, s, "from", from);
	mmr_gen_words(g, s, "to", to);
	mmr_gen_done(a, s);
}

static bool verb_migrate_pages(struct mmr_gen_actor *a, int id)
{
	struct mmr_gen *g = a->g;
	bool back = mmr_gen_chance(&a->rng, 50);
	const char *p = mmr_gen_chance(&a->rng, 50) ? g->kid_ref : NULL;

	(void)id;
	if (!g->nodes) {
		migrate(a, p, "n0", "n0");
		return true;
	}
	g->migrates = true;
	migrate(a, p, back ? "n1" : "n0", back ? "n0" : "n1");
	/* There and back, or in the next turn nothing is left to move. */
	if (mmr_gen_chance(&a->rng, 85))
		migrate(a, p, back ? "n0" : "n1", back ? "n1" : "n0");
	return true;
}

static bool verb_futex_wake(struct mmr_gen_actor *a, int id)
{
	struct mmr_stmt *s = mmr_gen_op(a, id, NULL);

	mmr_gen_name(a->g, s, "futex", "word");
	mmr_gen_done(a, s);
	return true;
}

/* process_spawn is not here: the shape of the case has its place. */
static const struct verb {
	int id;
	bool (*make)(struct mmr_gen_actor *a, int id);
	bool in_kid, in_body; /* also there */
} verbs[] = {
	{MMR_OP_write, verb_touch, true, true},
	{MMR_OP_read, verb_touch, true, true},
	{MMR_OP_mmap, verb_mmap, true, false},
	{MMR_OP_munmap, verb_munmap, true, true},
	{MMR_OP_mprotect, verb_mprotect, true, true},
	{MMR_OP_madvise, verb_madvise, true, true},
	{MMR_OP_ftruncate, verb_ftruncate, true, false},
	{MMR_OP_thread_spawn, verb_thread_spawn, false, false},
	{MMR_OP_kill, verb_kill, false, false},
	{MMR_OP_process_mrelease, verb_process_mrelease, false, false},
	{MMR_OP_pidfd_open, verb_pidfd_open, false, false},
	{MMR_OP_migrate_pages, verb_migrate_pages, false, false},
	{MMR_OP_futex_wake, verb_futex_wake, false, false},
};

static const struct verb *find_verb(const struct mmr_gen_actor *a,
				    const char *name)
{
	const struct mmr_op *op = mmr_op_by_name(name);

	for (size_t i = 0; op && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (verbs[i].id == op->id && (!a->in_kid || verbs[i].in_kid) &&
		    (!a->is_body || verbs[i].in_body))
			return &verbs[i];
	return NULL;
}

void mmr_gen_verb(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;

	a->depth++;
	if (mmr_gen_chance(&a->rng, g->p->invalid))
		mmr_gen_wrong(a);
	/* Some draws do not fit here; a few tries, then a plain touch. */
	for (int i = 0; i < 12; i++) {
		const char *word = mmr_weights_draw(&g->p->ops, g->use,
						    mmr_rng_next(&a->rng));
		const struct verb *v = find_verb(a, word);

		if (v ? v->make(a, v->id) : mmr_gen_recipe(a, word))
			goto out;
	}
	if (!verb_touch(a, MMR_OP_write) && !verb_touch(a, MMR_OP_read))
		mmr_gen_restore(a);
out:
	a->depth--;
}

void mmr_gen_restore(struct mmr_gen_actor *a)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;

	for (int i = 0; i < g->nobjects; i++) {
		const struct mmr_gen_object *o = &g->objects[i];
		struct mmr_shadow_map *m = mmr_shadow_map(&g->shadow, o->map);
		struct mmr_shadow_ref *f = mmr_shadow_ref(&g->shadow, o->file);

		if (f && f->len != mmr_shadow_bytes(o->len, o->unit)) {
			s = mmr_gen_op(a, MMR_OP_ftruncate, NULL);
			mmr_gen_name(g, s, "f", o->file);
			mmr_gen_size(g, s, "len", o->len, o->unit);
			mmr_gen_done(a, s);
		}
		if (m && m->state != MMR_SHADOW_WHOLE) {
			if (m->state == MMR_SHADOW_HOLED && o->at_bytes < 0)
				unmap(a, o->map);
			mmr_gen_map_object(a, o);
		} else if (m && !m->untouched) {
			s = mmr_gen_op(a, MMR_OP_mprotect, NULL);
			mmr_gen_name(g, s, "m", o->map);
			mmr_gen_words(g, s, "prot", whole_prot(o));
			mmr_gen_done(a, s);
		}
	}
}
