/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of the generator: gen.c decides the shape of a case, gen_setup.c
 * how its objects come to be, gen_verb.c what a thread does with them,
 * gen_stmt.c puts statements together.
 *
 * Every draw comes from a stream keyed by (seed, version, profile, purpose),
 * so that timing is drawn apart from structure: a change of one does not
 * redraw the other.  When memory is out, statements go to a scratch one and
 * `failed` says so at the end.
 */
#ifndef MMR_FUZZ_GEN_IMPL_H
#define MMR_FUZZ_GEN_IMPL_H

#include "profile.h"
#include "shadow.h"

#define MMR_GEN_OBJECTS 6
#define MMR_GEN_SAID 16

/* A mapping that all actors of the case fight for. */
struct mmr_gen_object {
	const char *map, *file; /* refs; file NULL when anonymous */
	bool shared, hugetlb, thp, exec, noreserve, populate;
	enum mmr_unit unit;
	int64_t len;	  /* units */
	int64_t at_bytes; /* place in the arena, -1: the kernel's choice */
};

struct mmr_gen {
	uint64_t key;
	const struct mmr_profile *p;
	struct mmr_case *c;
	struct mmr_rng shape;
	bool failed;
	bool large;    /* without the limits of a small world */
	bool epochs;   /* threads meet before each step */
	bool ordered;  /* others wait for the first thread's set-up */
	bool nodes;    /* migrates between two NUMA nodes */
	bool migrates; /* ... and does so somewhere */
	bool surplus;  /* the pool is made of surplus pages */
	int pool;      /* huge pages there are, 0: no object needs one */
	int reserve;   /* of them reserved by a mapping that stays, 0: none */
	bool kid_reserves;		/* ... of the child process */
	uint8_t use[MMR_PROFILE_WORDS]; /* ops that this case keeps */
	bool outside; /* it may change the state of the machine */
	/* By the place of a recipe in the profile's ops: was it used, is its
	 * set-up done, and with which mapping. */
	uint8_t used[MMR_PROFILE_WORDS], ready[MMR_PROFILE_WORDS];
	const char *bound[MMR_PROFILE_WORDS];
	const char *said[MMR_GEN_SAID]; /* lines of set-ups */
	int nsaid;
	bool in_setup;
	bool hidden; /* statements that the shadow does not get to see */
	struct mmr_gen_object objects[MMR_GEN_OBJECTS];
	int nobjects;
	int nthreads; /* plain ones */
	int turns, nepochs;
	struct mmr_proc *main, *kid;
	const char *kid_ref;	  /* p0, NULL: no child process */
	bool kid_killed;	  /* else it ends by itself */
	bool kid_signals;	  /* it says when it is up, the spawner waits */
	const char *body;	  /* thread template, "idle" */
	struct mmr_shadow shadow; /* of main; of kid while it is made */
	int names;		  /* numbers fresh refs */
	struct mmr_stmt scratch;
	struct mmr_value scratch_value;
};

/* A thread while it is made. */
struct mmr_gen_actor {
	struct mmr_gen *g;
	struct mmr_thread *thread;
	struct mmr_block *block;  /* where it appends now */
	struct mmr_rng rng, time; /* what, when */
	bool spawner;		  /* owns the child process */
	bool free;		  /* meets nobody */
	bool in_kid;		  /* in the child process, or a thread body: */
	bool is_body;		  /* fewer verbs */
	int depth;		  /* of verbs within verbs */
};

/* gen_stmt.c: draws */
uint64_t mmr_gen_below(struct mmr_rng *r, uint64_t n);
int mmr_gen_in(struct mmr_rng *r, struct mmr_range range);
bool mmr_gen_chance(struct mmr_rng *r, int percent);
struct mmr_rng mmr_gen_stream(const struct mmr_gen *g, const char *purpose);

/* gen_stmt.c: statements.  mmr_gen_op() appends (a delay may come first);
 * mmr_gen_done() lets the shadow follow when all arguments are set. */
struct mmr_stmt *mmr_gen_op(struct mmr_gen_actor *a, int id, const char *ref);
void mmr_gen_done(struct mmr_gen_actor *a, struct mmr_stmt *s);
struct mmr_value *mmr_gen_arg(struct mmr_gen *g, struct mmr_stmt *s,
			      const char *name);
void mmr_gen_name(struct mmr_gen *g, struct mmr_stmt *s, const char *arg,
		  const char *name);
void mmr_gen_size(struct mmr_gen *g, struct mmr_stmt *s, const char *arg,
		  int64_t n, enum mmr_unit unit);
/* ENUM or FLAGS by words joined by '|'; a word that the descriptor does not
 * know is a bug of ours. */
void mmr_gen_words(struct mmr_gen *g, struct mmr_stmt *s, const char *arg,
		   const char *words);
void mmr_gen_time(struct mmr_gen *g, struct mmr_stmt *s, const char *arg,
		  int64_t lo, int64_t hi);
void mmr_gen_accept(struct mmr_stmt *s, const int *errs, int n);
/* A fresh name: prefix and number; owned by the case. */
const char *mmr_gen_fresh(struct mmr_gen *g, const char *prefix);
/* A log-like draw of a time up to 200 us: 1us 2us 5us 10us ... */
int64_t mmr_gen_span(struct mmr_rng *r);

/* gen_setup.c: what the case needs, and how its objects come to be. */
void mmr_gen_draw_pool(struct mmr_gen *g);
void mmr_gen_title(struct mmr_gen *g);
/* When all statements are there. */
void mmr_gen_needs(struct mmr_gen *g);
/* The first thread's part, and that of a thread of the child process. */
void mmr_gen_set_up(struct mmr_gen_actor *a);
void mmr_gen_set_up_kid(struct mmr_gen_actor *a, bool first);

/* gen_verb.c */
void mmr_gen_map_object(struct mmr_gen_actor *a,
			const struct mmr_gen_object *o);
/* One step of what a thread does: one to a few statements. */
void mmr_gen_verb(struct mmr_gen_actor *a);
/* Puts back what the thread changed: maps, protection, file lengths. */
void mmr_gen_restore(struct mmr_gen_actor *a);

/* gen_recipe.c: false when it cannot be used here. */
bool mmr_gen_recipe(struct mmr_gen_actor *a, const char *name);
/* The part of the first thread (early: ahead of the objects), of a server's
 * thread, of the header. */
void mmr_gen_recipe_set_up(struct mmr_gen_actor *a, bool early);
bool mmr_gen_recipe_serves(const struct mmr_gen *g);
void mmr_gen_recipe_server(struct mmr_gen_actor *a, bool at_end);
void mmr_gen_recipe_heads(struct mmr_gen *g);

/* gen_timing.c */
/* The rendezvous before a step, with its offset. */
void mmr_gen_meet(struct mmr_gen_actor *a, int epoch);
/* Puts a thread on a CPU relative to that of the first one. */
void mmr_gen_pin(struct mmr_gen *g, struct mmr_thread *t, const char *first);
/* A thread that disturbs the others, so that what is short gets long. */
bool mmr_gen_wants_widener(struct mmr_gen *g);
void mmr_gen_widener(struct mmr_gen_actor *a, const char *first);

/* gen_wrong.c: a statement that is wrong on purpose. */
void mmr_gen_wrong(struct mmr_gen_actor *a);

#endif
