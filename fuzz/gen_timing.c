// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When, where and under what disturbance the threads of a case act: offsets of
 * rendezvous, CPUs, and a thread that widens windows.  All of it from streams
 * of its own: what the threads do is drawn apart.
 */
#include "gen_impl.h"

#include <stdio.h>
#include <string.h>

/* Offsets of a rendezvous, percent; the rest is log-uniform. */
#define ZERO 30
#define PHASE 50

void mmr_gen_meet(struct mmr_gen_actor *a, int epoch)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s = mmr_gen_op(a, MMR_OP_sync, NULL);
	struct mmr_value *v = mmr_gen_arg(g, s, "skew");
	uint64_t kind = mmr_gen_below(&a->time, 100);
	char name[16];

	snprintf(name, sizeof(name), "s%d", epoch);
	mmr_gen_name(g, s, "sync", name);
	/* The first thread is what the others are moved against. */
	if (a->spawner || kind < ZERO)
		return;
	v->set = true;
	v->is_auto = kind < ZERO + PHASE;
	v->is_log = !v->is_auto;
}

static void place(struct mmr_gen *g, struct mmr_thread *t,
		  enum mmr_cpu_kind kind, const char *name)
{
	t->cpu = kind;
	if (kind == MMR_CPU_ANY)
		return;
	t->cpu_thread = mmr_case_str(g->c, name);
	if (!t->cpu_thread)
		g->failed = true;
}

void mmr_gen_pin(struct mmr_gen *g, struct mmr_thread *t, const char *first)
{
	static const struct {
		const char *word;
		enum mmr_cpu_kind kind;
	} kinds[] = {
		{"other", MMR_CPU_OTHER},
		{"same", MMR_CPU_SAME},
		{"sibling", MMR_CPU_SIBLING},
		{"far", MMR_CPU_FAR},
	};
	struct mmr_rng r = mmr_gen_stream(g, "cpu");
	const char *word = mmr_weights_draw(&g->p->cpu, NULL, mmr_rng_next(&r));

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(word, kinds[i].word))
			place(g, t, kinds[i].kind, first);
}

/* What the widening thread does. */
enum widen { BARRIER, PROTECT, MOVE, STORM };

/* Once, before its loop. */
static void widen_setup(struct mmr_gen_actor *a, enum widen what)
{
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;

	if (what == BARRIER) {
		s = mmr_gen_op(a, MMR_OP_membarrier, NULL);
		mmr_gen_words(g, s, "cmd", "register_private_expedited");
	} else if (what == PROTECT) {
		s = mmr_gen_op(a, MMR_OP_mmap, "x0");
		mmr_gen_size(g, s, "len", 1, MMR_UNIT_PAGE);
		mmr_gen_words(g, s, "prot", "rw");
		mmr_gen_words(g, s, "flags", "private|anon|populate");
	}
}

/* An interrupt to each CPU of the address space, a move of its threads, or a
 * timer interrupt and the preemption that comes with it. */
static void widen(struct mmr_gen_actor *a, enum widen what)
{
	static const char *const prots[] = {"r", "rw"};
	struct mmr_gen *g = a->g;
	struct mmr_stmt *s;

	switch (what) {
	case BARRIER:
		s = mmr_gen_op(a, MMR_OP_membarrier, NULL);
		mmr_gen_words(g, s, "cmd", "private_expedited");
		break;
	case PROTECT:
		for (int i = 0; i < 2; i++) {
			s = mmr_gen_op(a, MMR_OP_mprotect, NULL);
			mmr_gen_name(g, s, "m", "x0");
			mmr_gen_words(g, s, "prot", prots[i]);
		}
		break;
	case MOVE:
		mmr_gen_op(a, MMR_OP_move_threads, NULL);
		break;
	case STORM:
		s = mmr_gen_op(a, MMR_OP_nanosleep, NULL);
		mmr_gen_time(g, s, "time", 20000, 100000);
		break;
	}
}

bool mmr_gen_wants_widener(struct mmr_gen *g)
{
	struct mmr_rng r = mmr_gen_stream(g, "widen");

	return mmr_gen_chance(&r, g->p->widen);
}

void mmr_gen_widener(struct mmr_gen_actor *a, const char *first)
{
	struct mmr_gen *g = a->g;
	enum widen what = (enum widen)mmr_gen_below(&a->rng, 4);
	bool timed = g->epochs && what != STORM && mmr_gen_chance(&a->rng, 60);
	struct mmr_stmt *loop;

	/* A storm comes down on the CPU where its thread runs. */
	if (what == STORM)
		place(g, a->thread, MMR_CPU_SAME, first);
	widen_setup(a, what);
	loop = mmr_case_add_loop(g->c, a->block,
				 timed ? MMR_UNTIL_COUNT : MMR_UNTIL_DONE,
				 timed ? g->turns : 0, timed ? NULL : first);
	if (!loop) {
		g->failed = true;
		return;
	}
	a->block = &loop->body;
	for (int e = 0; timed && e < g->nepochs; e++) {
		mmr_gen_meet(a, e);
		widen(a, what);
	}
	if (!timed)
		widen(a, what);
}
