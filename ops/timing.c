// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bounds of skew=auto.
 *
 * Thread X starts at the common instant plus s and is busy for D(X); another
 * one, Y, for D(Y) from the instant on.  They overlap for s in -D(X)..D(Y).
 * D is the sum of the 90th percentiles of what comes between this rendezvous
 * and the thread's next wait: in a loop that may be at its head.
 *
 * That range holds all ways in which the two sides can meet, and in the larger
 * part of it their first calls do not.  These are what most rendezvous are
 * made for, so the aim is where they overlap: where each begins before the
 * other one is half over.  What a call does to an address space it mostly does
 * at first.  Then comes what others hardly meet, like the last put of a file on
 * the way back to user space: of 7.3 us for the munmap of a shared page 4.5 are
 * the call as its tracepoints have it.  A loop goes on to its end.
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
#define LOG_MEDIAN 4472	    /* of 20 ns to 1 ms */
#define CALL_ENTRY 8	    /* of a call, one part in: its way in */
#define CALL_REST 2	    /* of a call that is to overlap, one part in */
#define LOOP_REST 8	    /* of a loop */

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

/* What s takes, ns, and its median. */
static int64_t time_of(const struct mmr_proc *p, const struct mmr_stmt *s,
		       struct look *look, int64_t *median)
{
	struct mmr_calib_time t;
	struct mmr_calib_key key;

	*median = 0;
	if (s->op->id == MMR_OP_delay) {
		if (s->args[0].is_log) {
			*median = LOG_MEDIAN;
			return MMR_SWEEP_LOG_HI;
		}
		*median = s->args[0].lo + (s->args[0].hi - s->args[0].lo) / 2;
		return s->args[0].hi;
	}
	if (!mmr_timing_key(p, s, &key))
		return 0;
	if (!mmr_calib_get(key, &t)) {
		look->unknown = true;
		if (look->assume)
			mmr_calib_assume(key);
	}
	*median = (int64_t)t.median_ns;
	return (int64_t)t.p90_ns;
}

/* What a rendezvous starts in a thread. */
struct segment {
	int64_t ns;	    /* of all, 90th percentiles */
	int64_t begin, end; /* of the call that is aimed with, medians */
	int64_t rest;	    /* one part in rest is not aimed at, its last one */
	bool is_end;	    /* it is the end of a process */
	bool still;	    /* the thread has no offset there */
};

/* Where the walk is with respect to the call that is aimed with. */
enum aim { BEFORE, WITHIN, AFTER };

struct walk {
	struct segment *seg;
	enum aim aim;
	int64_t median; /* until here */
	int64_t turns[MMR_CASE_MAX_DEPTH + 1];
	int depth;
};

static void walk_into(struct walk *w, const struct mmr_stmt *loop)
{
	int64_t n = loop->until == MMR_UNTIL_COUNT ? loop->count : 1;

	/* A loop is one call: who is in it makes the same ones all along. */
	if (w->aim == BEFORE && !w->depth) {
		w->aim = WITHIN;
		w->seg->begin = w->median;
		w->seg->rest = LOOP_REST;
	}
	n = w->turns[w->depth] * (n < TURNS_MAX ? n : TURNS_MAX);
	if (w->depth < MMR_CASE_MAX_DEPTH)
		w->depth++;
	w->turns[w->depth] = n < TURNS_MAX ? n : TURNS_MAX;
}

static void walk_out(struct walk *w)
{
	if (!w->depth)
		return;
	w->depth--;
	if (w->depth || w->aim != WITHIN)
		return;
	w->seg->end = w->median;
	w->aim = w->median > w->seg->begin ? AFTER : BEFORE;
}

static void walk_op(struct walk *w, const struct mmr_proc *p,
		    const struct mmr_stmt *s, struct look *look)
{
	int64_t median, before = w->median;

	w->seg->ns += w->turns[w->depth] * time_of(p, s, look, &median);
	w->median += w->turns[w->depth] * median;
	if (w->aim == BEFORE && s->op->id != MMR_OP_delay && median) {
		w->seg->begin = before;
		w->seg->end = w->median;
		w->seg->rest = CALL_REST;
		w->aim = AFTER;
	} else if (s->op->id == MMR_OP_process_reap && w->aim == AFTER &&
		   !w->depth && !w->seg->is_end) {
		w->seg->begin = w->seg->end;
		w->seg->end = w->median;
		w->seg->is_end = true;
	}
}

static int64_t clamp(int64_t ns, int64_t least)
{
	if (ns < least)
		return least;
	return ns < CEILING_NS ? ns : CEILING_NS;
}

/* From the sync at index `at` to the next wait. */
static void segment(const struct mmr_proc *p, const struct row *r, int at,
		    struct look *look, struct segment *seg)
{
	struct walk w = {.seg = seg, .turns = {1}};
	const struct item *it;
	int i, steps;

	*seg = (struct segment){.rest = CALL_REST};
	for (i = at + 1, steps = 0; i != at && steps < 2 * r->n; i++, steps++) {
		if (i == r->n)
			break;
		it = &r->items[i];
		if (it->loop >= 0) {
			if (it->loop >= at) {
				walk_out(&w);
				continue;
			}
			/* Ours: what comes before the rendezvous is set-up,
			 * unless nothing comes after it. */
			if (seg->ns)
				break;
			i = it->loop;
			w.depth = 0;
			continue;
		}
		if (it->s->kind == MMR_STMT_LOOP) {
			walk_into(&w, it->s);
			continue;
		}
		if ((it->s->op->class == MMR_CLASS_WAIT && !is_end(it->s)) ||
		    it->s->op->class == MMR_CLASS_BLOCK)
			break;
		walk_op(&w, p, it->s, look);
		if (seg->ns >= CEILING_NS)
			break;
	}
	if (w.aim == WITHIN)
		seg->end = w.median;
	seg->ns = clamp(seg->ns, FLOOR_NS);
	seg->begin = clamp(seg->begin, 0);
	seg->end = clamp(seg->end, seg->begin + FLOOR_NS);
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
 * after this one.  False: it has none. */
static bool longest(const struct mmr_proc *p, const struct row *r,
		    const struct mmr_stmt *sync, bool own, struct look *look,
		    struct segment *seg)
{
	struct segment one;
	bool any = false;
	int i;

	for (i = 0; i < r->n; i++) {
		if (r->items[i].loop >= 0 ||
		    (own ? r->items[i].s != sync
			 : !is_sync(r->items[i].s, sync->args[0].name)))
			continue;
		segment(p, r, i, look, &one);
		one.still = !arg_of(r->items[i].s, "skew");
		if (!any || one.ns > seg->ns)
			*seg = one;
		any = true;
	}
	return any;
}

/* x is rather what the own side is aimed at than y. */
static bool is_better(const struct segment *x, const struct segment *y)
{
	if (!y->ns || x->still != y->still)
		return !y->ns || x->still;
	return x->ns > y->ns;
}

/* The part of the call that is aimed at: without its way in and out. */
static int64_t core_begin(const struct segment *s)
{
	return s->begin +
	       (s->rest == CALL_REST ? (s->end - s->begin) / CALL_ENTRY : 0);
}

static int64_t core_end(const struct segment *s)
{
	return s->end - (s->end - s->begin) / s->rest;
}

/* Own starts at the common instant plus what of r is drawn, other at it. */
static void aim(const struct segment *own, const struct segment *other,
		struct mmr_timing_range *r)
{
	/* What comes before the end of a process does not wait for it. */
	if (own->is_end || other->is_end) {
		int64_t at = other->begin - own->begin;

		r->aim_lo = own->is_end ? other->begin - core_end(own) : at;
		r->aim_hi = other->is_end ? core_end(other) - own->begin : at;
		return;
	}
	r->aim_lo = core_begin(other) - core_end(own);
	r->aim_hi = core_end(other) - core_begin(own);
}

static void bounds(const struct mmr_case *c, const struct mmr_stmt *sync,
		   struct mmr_timing_range *range, struct look *look)
{
	struct segment own = {
		.ns = FLOOR_NS, .end = FLOOR_NS, .rest = CALL_REST};
	struct segment at = {.rest = CALL_REST}, seg;
	int64_t others = FLOOR_NS;
	struct row r;
	int i, j;

	if (make_row(c, &r)) {
		for (i = 0; i < c->nprocs; i++) {
			const struct mmr_proc *p = c->procs[i];

			for (j = 0; j < p->nthreads; j++) {
				if (!flat(&r, p->threads[j]))
					continue;
				if (longest(p, &r, sync, true, look, &own) &&
				    p->copies < 2)
					continue;
				if (!longest(p, &r, sync, false, look, &seg))
					continue;
				others = seg.ns > others ? seg.ns : others;
				if (is_better(&seg, &at))
					at = seg;
			}
		}
		free(r.items);
	}
	range->lo = -(own.ns + own.ns / 10);
	range->hi = others + others / 10;
	if (!at.ns)
		at.end = FLOOR_NS;
	aim(&own, &at, range);
}

void mmr_timing_bounds(const struct mmr_case *c, const struct mmr_stmt *sync,
		       struct mmr_timing_range *r)
{
	struct look look = {0};

	bounds(c, sync, r, &look);
}

typedef bool (*drawn_fn)(const struct mmr_case *c, struct mmr_stmt *s,
			 struct mmr_value *v);

static bool drawn_in(const struct mmr_case *c, struct mmr_stmt *s, drawn_fn fn)
{
	int k;

	for (k = 0; k < s->op->nargs; k++)
		if (s->op->args[k].type == MMR_ARG_TIME && s->args[k].set &&
		    mmr_value_is_drawn(&s->args[k]) && fn(c, s, &s->args[k]))
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
	struct mmr_timing_range r;
	struct look look = {0};

	if (v->is_auto)
		bounds(c, s, &r, &look);
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
	struct mmr_timing_range r;

	if (v->is_auto)
		bounds(c, s, &r, &look);
	return false;
}

void mmr_timing_assume(const struct mmr_case *c)
{
	each_drawn(c, assume_here);
}

void mmr_timing_put(struct mmr_stmt *s, struct mmr_value *v,
		    const struct mmr_timing_range *r)
{
	int i = mmr_op_arg(s->op, "aim");

	v->is_auto = false;
	v->lo = r->lo;
	v->hi = r->hi;
	if (i < 0)
		return;
	s->args[i].set = r->aim_lo || r->aim_hi;
	s->args[i].lo = r->aim_lo;
	s->args[i].hi = r->aim_hi;
}

static bool bind(const struct mmr_case *c, struct mmr_stmt *s,
		 struct mmr_value *v)
{
	struct mmr_timing_range r;

	if (v->is_auto) {
		mmr_timing_bounds(c, s, &r);
		mmr_timing_put(s, v, &r);
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
