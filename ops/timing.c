// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bounds of skew=auto.
 *
 * Thread X starts at the common instant plus s and is busy for D(X); another
 * one, Y, for D(Y) from the instant on.  They overlap for s in -D(X)..D(Y).
 * D is the sum of the 90th percentiles of what comes between this rendezvous
 * and the thread's next wait: in a loop that may be at its head.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "sweep.h"
#include "timing.h"

#define FLOOR_NS 200	    /* shorter than that is the start itself */
#define CEILING_NS 50000000 /* half of what skew= takes */
#define TURNS_MAX 1000	    /* of a loop within a segment */

/* A thread's statements in a row: an end is a loop's end, and says where the
 * loop began. */
struct item {
	const struct mmr_stmt *s;
	int loop; /* END: index of the loop; else -1 */
};

struct row {
	struct item *items;
	int n;
};

static void flatten(struct row *r, const struct mmr_block *b)
{
	int i, loop;

	for (i = 0; i < b->n; i++) {
		loop = r->n;
		r->items[r->n++] = (struct item){b->stmts[i], -1};
		if (b->stmts[i]->kind != MMR_STMT_LOOP)
			continue;
		flatten(r, &b->stmts[i]->body);
		r->items[r->n++] = (struct item){b->stmts[i], loop};
	}
}

static bool flat(struct row *r, const struct mmr_thread *t)
{
	r->n = 0;
	flatten(r, &t->body);
	return r->n > 0;
}

static const struct mmr_stmt *find_made(const struct mmr_block *b,
					const char *ref)
{
	const struct mmr_stmt *s, *in;
	int i;

	for (i = 0; i < b->n; i++) {
		s = b->stmts[i];
		if (s->kind == MMR_STMT_LOOP) {
			in = find_made(&s->body, ref);
			if (in)
				return in;
		} else if (s->ref && s->op->id == MMR_OP_mmap &&
			   strcmp(s->ref, ref) == 0) {
			return s;
		}
	}
	return NULL;
}

static const struct mmr_value *arg_of(const struct mmr_stmt *s,
				      const char *name)
{
	int i = mmr_op_arg(s->op, name);

	return i >= 0 && s->args[i].set ? &s->args[i] : NULL;
}

static uint64_t bytes_of(const struct mmr_value *v)
{
	if (!v || v->lo <= 0)
		return 0;
	if (v->unit == MMR_UNIT_PAGE)
		return (uint64_t)v->lo << 12;
	if (v->unit == MMR_UNIT_HUGE)
		return (uint64_t)v->lo * mmr_huge_page_size();
	return (uint64_t)v->lo;
}

static bool has_flag(const struct mmr_stmt *map, const char *name)
{
	const struct mmr_value *v = arg_of(map, "flags");
	int i = mmr_op_arg(map->op, "flags");
	const struct mmr_name *n;

	for (n = i >= 0 ? map->op->args[i].names : NULL; n && n->name; n++)
		if (strcmp(n->name, name) == 0)
			return v && (v->lo & n->value) == n->value;
	return false;
}

static enum mmr_backing backing_of(const struct mmr_stmt *map)
{
	bool shared = has_flag(map, "shared");

	if (has_flag(map, "hugetlb"))
		return MMR_BACK_HUGE;
	if (arg_of(map, "fd"))
		return shared ? MMR_BACK_FILE : MMR_BACK_COPY;
	return shared ? MMR_BACK_SHARED : MMR_BACK_PRIVATE;
}

/* The mapping that s is about: its own, or where its first ref came from in
 * this process (a fork passes mappings on: then nothing is known). */
static const struct mmr_stmt *map_of(const struct mmr_proc *p,
				     const struct mmr_stmt *s)
{
	const struct mmr_stmt *map;
	int i, j;

	if (s->op->id == MMR_OP_mmap)
		return s;
	for (i = 0; i < s->op->nargs; i++) {
		if (s->op->args[i].type != MMR_ARG_REF || !s->args[i].name ||
		    !(s->op->args[i].kinds & MMR_REF_MAPPING))
			continue;
		for (j = 0; j < p->nthreads; j++) {
			map = find_made(&p->threads[j]->body, s->args[i].name);
			if (map)
				return map;
		}
	}
	return NULL;
}

/* A wait that lasts as long as what the thread began: the exit of a process
 * that it killed, the life of a thread.  Others race with that, too. */
static bool is_end(const struct mmr_stmt *s)
{
	return s->op->id == MMR_OP_process_reap ||
	       s->op->id == MMR_OP_thread_join;
}

bool mmr_timing_key(const struct mmr_proc *p, const struct mmr_stmt *s,
		    struct mmr_calib_key *key)
{
	const struct mmr_stmt *map;
	uint64_t n, step;

	if (s->kind != MMR_STMT_OP || s->op->class == MMR_CLASS_PURE ||
	    s->op->class == MMR_CLASS_BLOCK ||
	    (s->op->class == MMR_CLASS_WAIT && !is_end(s)))
		return false;
	*key = (struct mmr_calib_key){.op = s->op->id};
	map = map_of(p, s);
	if (!map)
		return true;
	key->backing = (uint8_t)backing_of(map);
	/* An mmap that does not populate costs the same at any length. */
	if (s == map && !has_flag(map, "populate"))
		return true;
	n = bytes_of(arg_of(s, "len"));
	if (!n || n > bytes_of(arg_of(map, "len")))
		n = bytes_of(arg_of(map, "len"));
	step = s->op->class == MMR_CLASS_TOUCH ? bytes_of(arg_of(s, "step"))
					       : 4096;
	key->size = mmr_calib_size(n / (step ? step : 1));
	return true;
}

/* How to look things up in the table, and whether all was there. */
struct look {
	bool assume; /* take what is not there for known, with the prior */
	bool unknown;
};

/* What s takes, ns. */
static int64_t time_of(const struct mmr_proc *p, const struct mmr_stmt *s,
		       struct look *look)
{
	struct mmr_calib_time t;
	struct mmr_calib_key key;

	if (s->op->id == MMR_OP_delay)
		return s->args[0].is_log ? MMR_SWEEP_LOG_HI : s->args[0].hi;
	if (!mmr_timing_key(p, s, &key))
		return 0;
	if (!mmr_calib_get(key, &t)) {
		look->unknown = true;
		if (look->assume)
			mmr_calib_assume(key);
	}
	return (int64_t)t.p90_ns;
}

static int64_t clamp(int64_t ns)
{
	if (ns < FLOOR_NS)
		return FLOOR_NS;
	return ns < CEILING_NS ? ns : CEILING_NS;
}

/* From the sync at index `at` to the next wait. */
static int64_t segment(const struct mmr_proc *p, const struct row *r, int at,
		       struct look *look)
{
	int64_t ns = 0, turns[MMR_CASE_MAX_DEPTH + 1] = {1}, n;
	const struct item *it;
	int i, steps, depth = 0;

	for (i = at + 1, steps = 0; i != at && steps < 2 * r->n; i++, steps++) {
		if (i == r->n)
			break;
		it = &r->items[i];
		if (it->loop >= 0) {
			if (it->loop < at) {
				/* Ours: what comes before the rendezvous is
				 * set-up, unless nothing comes after it. */
				if (ns)
					break;
				i = it->loop;
				depth = 0;
			} else if (depth) {
				depth--;
			}
			continue;
		}
		if (it->s->kind == MMR_STMT_LOOP) {
			n = it->s->until == MMR_UNTIL_COUNT ? it->s->count : 1;
			n = turns[depth] * (n < TURNS_MAX ? n : TURNS_MAX);
			if (depth < MMR_CASE_MAX_DEPTH)
				depth++;
			turns[depth] = n < TURNS_MAX ? n : TURNS_MAX;
			continue;
		}
		if ((it->s->op->class == MMR_CLASS_WAIT && !is_end(it->s)) ||
		    it->s->op->class == MMR_CLASS_BLOCK)
			break;
		ns += turns[depth] * time_of(p, it->s, look);
		if (ns >= CEILING_NS)
			break;
	}
	return clamp(ns);
}

/* Room for the longest thread's row. */
static bool make_row(const struct mmr_case *c, struct row *r)
{
	r->items = calloc(2 * (size_t)mmr_case_count(c) + 1, sizeof(*r->items));
	return r->items != NULL;
}

static bool is_sync(const struct mmr_stmt *s, const char *name)
{
	return s->kind == MMR_STMT_OP && s->op->id == MMR_OP_sync &&
	       s->args[0].name && strcmp(s->args[0].name, name) == 0;
}

/* The longest segment of one thread after a sync of that name; own: only
 * after this one.  0: it has none. */
static int64_t longest(const struct mmr_proc *p, const struct row *r,
		       const struct mmr_stmt *sync, bool own, struct look *look)
{
	int64_t ns = 0, n;
	int i;

	for (i = 0; i < r->n; i++) {
		if (r->items[i].loop >= 0 ||
		    (own ? r->items[i].s != sync
			 : !is_sync(r->items[i].s, sync->args[0].name)))
			continue;
		n = segment(p, r, i, look);
		ns = n > ns ? n : ns;
	}
	return ns;
}

static void bounds(const struct mmr_case *c, const struct mmr_stmt *sync,
		   int64_t *lo, int64_t *hi, struct look *look)
{
	int64_t own = FLOOR_NS, others = FLOOR_NS, ns;
	struct row r;
	int i, j;

	if (make_row(c, &r)) {
		for (i = 0; i < c->nprocs; i++) {
			const struct mmr_proc *p = c->procs[i];

			for (j = 0; j < p->nthreads; j++) {
				if (!flat(&r, p->threads[j]))
					continue;
				ns = longest(p, &r, sync, true, look);
				if (ns) {
					own = ns;
					if (p->copies < 2)
						continue;
				}
				ns = longest(p, &r, sync, false, look);
				others = ns > others ? ns : others;
			}
		}
		free(r.items);
	}
	*lo = -(own + own / 10);
	*hi = others + others / 10;
}

void mmr_timing_bounds(const struct mmr_case *c, const struct mmr_stmt *sync,
		       int64_t *lo, int64_t *hi)
{
	struct look look = {0};

	bounds(c, sync, lo, hi, &look);
}

typedef bool (*drawn_fn)(const struct mmr_case *c, struct mmr_stmt *s,
			 struct mmr_value *v);

static bool drawn_in(const struct mmr_case *c, struct mmr_stmt *s, drawn_fn fn)
{
	int k;

	for (k = 0; k < s->op->nargs; k++)
		if (s->op->args[k].type == MMR_ARG_TIME && s->args[k].set &&
		    (s->args[k].is_auto || s->args[k].is_log ||
		     s->args[k].lo != s->args[k].hi) &&
		    fn(c, s, &s->args[k]))
			return true;
	return false;
}

static bool drawn_block(const struct mmr_case *c, const struct mmr_block *b,
			drawn_fn fn)
{
	int i;

	for (i = 0; i < b->n; i++)
		if (b->stmts[i]->kind == MMR_STMT_LOOP
			    ? drawn_block(c, &b->stmts[i]->body, fn)
			    : drawn_in(c, b->stmts[i], fn))
			return true;
	return false;
}

/* Calls fn for every time that is drawn, until it returns true. */
static bool each_drawn(const struct mmr_case *c, drawn_fn fn)
{
	int i, j;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			if (drawn_block(c, &c->procs[i]->threads[j]->body, fn))
				return true;
	return false;
}

static bool any(const struct mmr_case *c, struct mmr_stmt *s,
		struct mmr_value *v)
{
	(void)c;
	(void)s;
	(void)v;
	return true;
}

bool mmr_timing_draws(const struct mmr_case *c)
{
	return each_drawn(c, any);
}

static bool unknown_here(const struct mmr_case *c, struct mmr_stmt *s,
			 struct mmr_value *v)
{
	struct look look = {0};
	int64_t lo, hi;

	if (v->is_auto)
		bounds(c, s, &lo, &hi, &look);
	return look.unknown;
}

bool mmr_timing_unknown(const struct mmr_case *c)
{
	return each_drawn(c, unknown_here);
}

static bool assume_here(const struct mmr_case *c, struct mmr_stmt *s,
			struct mmr_value *v)
{
	struct look look = {.assume = true};
	int64_t lo, hi;

	if (v->is_auto)
		bounds(c, s, &lo, &hi, &look);
	return false;
}

void mmr_timing_assume(const struct mmr_case *c)
{
	each_drawn(c, assume_here);
}

static bool bind(const struct mmr_case *c, struct mmr_stmt *s,
		 struct mmr_value *v)
{
	if (v->is_auto) {
		mmr_timing_bounds(c, s, &v->lo, &v->hi);
		v->is_auto = false;
	}
	return false;
}

struct mmr_case *mmr_timing_bound(const struct mmr_case *c)
{
	struct mmr_case *copy = mmr_case_clone(c);

	if (copy)
		each_drawn(copy, bind);
	return copy;
}
