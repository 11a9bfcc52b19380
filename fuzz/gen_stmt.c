// SPDX-License-Identifier: GPL-2.0-or-later
/* How the generator draws, and puts a statement together. */
#include "gen_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t mmr_gen_below(struct mmr_rng *r, uint64_t n)
{
	return mmr_rng_below(mmr_rng_next(r), n);
}

int mmr_gen_in(struct mmr_rng *r, struct mmr_range range)
{
	return (int)mmr_rng_range(mmr_rng_next(r), range.lo, range.hi);
}

bool mmr_gen_chance(struct mmr_rng *r, int percent)
{
	return mmr_gen_below(r, 100) < (uint64_t)percent;
}

struct mmr_rng mmr_gen_stream(const struct mmr_gen *g, const char *purpose)
{
	return (struct mmr_rng){mmr_rng_key_str(g->key, purpose), 0};
}

int64_t mmr_gen_span(struct mmr_rng *r)
{
	static const int64_t us[] = {1, 2, 5, 10, 20, 50, 100, 200};

	return us[mmr_gen_below(r, sizeof(us) / sizeof(us[0]))] * 1000;
}

static struct mmr_stmt *append(struct mmr_gen_actor *a, int id, const char *ref)
{
	struct mmr_gen *g = a->g;
	const struct mmr_op *op = mmr_op_by_id((unsigned int)id);
	struct mmr_stmt *s = mmr_case_add_op(g->c, a->block, op, ref);

	if (s)
		return s;
	g->failed = true;
	memset(&g->scratch, 0, sizeof(g->scratch));
	g->scratch.op = op;
	return &g->scratch;
}

/* Few statements are delayed, or the delays hide each other's effect. */
static void maybe_delay(struct mmr_gen_actor *a, const struct mmr_op *op)
{
	int percent = a->g->p->delay;
	struct mmr_stmt *s;

	if (!op || op->class == MMR_CLASS_WAIT || op->class == MMR_CLASS_PURE)
		return;
	/* A rendezvous has its own timing, its skew. */
	if (a->g->epochs && !a->free)
		percent /= 3;
	if (!mmr_gen_chance(&a->time, percent))
		return;
	s = append(a, MMR_OP_delay, NULL);
	mmr_gen_time(a->g, s, "time", 0, mmr_gen_span(&a->time));
	mmr_gen_arg(a->g, s, "time")->is_log = mmr_gen_chance(&a->time, 40);
}

struct mmr_stmt *mmr_gen_op(struct mmr_gen_actor *a, int id, const char *ref)
{
	maybe_delay(a, mmr_op_by_id((unsigned int)id));
	return append(a, id, ref);
}

void mmr_gen_done(struct mmr_gen_actor *a, struct mmr_stmt *s)
{
	if (!a->g->failed && !a->g->hidden)
		mmr_shadow_step(&a->g->shadow, s);
}

struct mmr_value *mmr_gen_arg(struct mmr_gen *g, struct mmr_stmt *s,
			      const char *name)
{
	int i = mmr_op_arg(s->op, name);

	if (i < 0) {
		fprintf(stderr, "mmrace: generator: %s has no argument %s\n",
			s->op->name, name);
		abort();
	}
	return s == &g->scratch ? &g->scratch_value : &s->args[i];
}

void mmr_gen_name(struct mmr_gen *g, struct mmr_stmt *s, const char *arg,
		  const char *name)
{
	struct mmr_value *v = mmr_gen_arg(g, s, arg);

	v->set = true;
	v->name = mmr_case_str(g->c, name);
	if (!v->name)
		g->failed = true;
}

void mmr_gen_size(struct mmr_gen *g, struct mmr_stmt *s, const char *arg,
		  int64_t n, enum mmr_unit unit)
{
	struct mmr_value *v = mmr_gen_arg(g, s, arg);

	v->set = true;
	v->lo = v->hi = n;
	v->unit = unit;
}

static int64_t word_value(const struct mmr_op *op, const struct mmr_name *names,
			  const char *word, size_t n)
{
	for (; names && names->name; names++)
		if (strlen(names->name) == n && !strncmp(names->name, word, n))
			return names->value;
	fprintf(stderr, "mmrace: generator: %s does not know %.*s\n", op->name,
		(int)n, word);
	abort();
}

void mmr_gen_words(struct mmr_gen *g, struct mmr_stmt *s, const char *arg,
		   const char *words)
{
	struct mmr_value *v = mmr_gen_arg(g, s, arg);
	int i = mmr_op_arg(s->op, arg);

	v->set = true;
	v->lo = 0;
	while (*words) {
		size_t n = strcspn(words, "|");

		v->lo |= word_value(s->op, s->op->args[i].names, words, n);
		words += n + (words[n] == '|');
	}
	v->hi = v->lo;
}

void mmr_gen_time(struct mmr_gen *g, struct mmr_stmt *s, const char *arg,
		  int64_t lo, int64_t hi)
{
	struct mmr_value *v = mmr_gen_arg(g, s, arg);

	v->set = true;
	v->lo = lo;
	v->hi = hi;
}

void mmr_gen_accept(struct mmr_stmt *s, const int *errs, int n)
{
	s->naccept = n < MMR_CASE_MAX_ACCEPT ? n : MMR_CASE_MAX_ACCEPT;
	memcpy(s->accept, errs, (size_t)s->naccept * sizeof(*errs));
}

const char *mmr_gen_fresh(struct mmr_gen *g, const char *prefix)
{
	char buf[MMR_CASE_NAME_LEN];
	const char *s;

	snprintf(buf, sizeof(buf), "%s%d", prefix, g->names++);
	s = mmr_case_str(g->c, buf);
	if (!s)
		g->failed = true;
	return s ? s : "x";
}
