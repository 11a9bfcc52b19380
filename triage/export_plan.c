/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How an exported file is written: whether its watchdog watches whole rounds
 * or each thread, and what is the simplest form of the parts that this case
 * can do with.
 */
#include <linux/mman.h>
#include <string.h>

#include "../ops/sweep.h"
#include "export_c.h"

/* Generous costs of a healthy kernel on a slow machine, in ns. */
#define CALL_NS 20000
#define PAGE_NS 20000
#define SPAWN_NS 1000000
#define LONGEST_NS (60LL * 1000000000)

/* --- how long --- */

static int64_t add(int64_t a, int64_t b)
{
	return a > LONGEST_NS * 2 - b ? LONGEST_NS * 2 : a + b;
}

static int64_t times_ns(int64_t n, int64_t ns)
{
	return ns && n > LONGEST_NS * 2 / ns ? LONGEST_NS * 2 : n * ns;
}

int64_t mmr_export_bytes(const struct mmr_value *v)
{
	static const int shift[] = {[MMR_UNIT_BYTE] = 0,
				    [MMR_UNIT_PAGE] = 16, /* at most */
				    [MMR_UNIT_HUGE] = 21};

	if (v->lo > INT64_MAX >> shift[v->unit])
		return INT64_MAX;
	return v->lo << shift[v->unit];
}

/* Pages of 4 KiB, or accesses where those are fewer. */
static int64_t units(const struct mmr_value *v)
{
	if (v->unit == MMR_UNIT_PAGE)
		return v->lo;
	return mmr_export_bytes(v) / 4096 + 1;
}

struct largest {
	const char *ref;
	int64_t pages;
};

static int add_size(void *arg, const struct mmr_stmt *s,
		    const struct mmr_thread *t)
{
	struct largest *l = arg;
	int len = mmr_op_arg(s->op, "len"), prot = mmr_op_arg(s->op, "prot");

	(void)t;
	/* Nothing is in memory that nobody may touch. */
	if (s->op->id != MMR_OP_mmap || !s->ref || !s->args[prot].lo ||
	    strcmp(s->ref, l->ref) != 0)
		return 0;
	if (units(&s->args[len]) > l->pages)
		l->pages = units(&s->args[len]);
	return 0;
}

/* Pages that a statement on a mapping may work on. */
static int64_t pages_of(struct mmr_export *x, const struct mmr_stmt *s)
{
	int len = mmr_op_arg(s->op, "len"), i;
	struct largest l = {0};

	if (len >= 0 && s->args[len].set)
		return units(&s->args[len]);
	for (i = 0; i < s->op->nargs; i++)
		if (mmr_emit_ref_kind(&x->e, s, i) == MMR_REF_MAPPING) {
			l.ref = s->args[i].name;
			mmr_emit_each_stmt(x->c, add_size, &l);
		}
	return l.pages;
}

static int64_t stmt_ns(struct mmr_export *x, const struct mmr_stmt *s)
{
	int i, copies = 1;

	switch (s->op->id) {
	case MMR_OP_delay:
	case MMR_OP_nanosleep:
		return s->args[0].is_log ? MMR_SWEEP_LOG_HI : s->args[0].hi;
	case MMR_OP_process_spawn:
		i = mmr_export_proc(x->c, s->args[0].name);
		if (i >= 0)
			copies = x->c->procs[i]->copies;
		return times_ns(copies, SPAWN_NS);
	default:
		break;
	}
	if (s->op->id == MMR_OP_mmap &&
	    !(s->args[mmr_op_arg(s->op, "flags")].lo &
	      (MAP_POPULATE | MAP_LOCKED)))
		return CALL_NS;
	if (s->op->class == MMR_CLASS_TOUCH)
		return times_ns(pages_of(x, s), PAGE_NS);
	return add(CALL_NS, s->op->unit_ns
				    ? times_ns(pages_of(x, s), s->op->unit_ns)
				    : 0);
}

static int64_t block_ns(struct mmr_export *x, const struct mmr_block *b)
{
	int64_t sum = 0, n;
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_OP) {
			sum = add(sum, stmt_ns(x, s));
			continue;
		}
		n = block_ns(x, &s->body);
		if (s->until == MMR_UNTIL_COUNT)
			n = times_ns(s->count, n);
		else if (s->until == MMR_UNTIL_TIME)
			n = s->count;
		sum = add(sum, n);
	}
	return sum;
}

/* --- what a round leaves --- */

/* Behind a spawn that is in no loop, the same thread waits for the end. */
static bool is_reaped(const struct mmr_block *b, const struct mmr_stmt *spawn)
{
	bool behind = false;
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s == spawn)
			behind = s->ref != NULL;
		else if (behind && s->kind == MMR_STMT_OP &&
			 s->op->id == MMR_OP_process_reap &&
			 !strcmp(s->args[0].name, spawn->ref))
			return true;
	}
	return false;
}

struct spawned {
	const struct mmr_export *x;
	bool leaves, groups;
};

static int note_spawn(void *arg, const struct mmr_stmt *s,
		      const struct mmr_thread *t)
{
	struct spawned *sp = arg;
	struct mmr_proc *p = NULL;
	bool is_fresh, first = true;
	int i;

	if (s->op->id != MMR_OP_process_spawn)
		return 0;
	is_fresh = s->args[1].set;
	mmr_export_thread(sp->x->c, t->name, &p);
	if (!p->is_template && !t->is_template && !is_fresh &&
	    is_reaped(&t->body, s))
		return 0;
	sp->leaves = true;
	for (i = 0; p->threads[i] != t; i++)
		first &= p->threads[i]->is_template;
	if (p->is_template || t->is_template || is_fresh || !first ||
	    sp->x->nplain > 1)
		sp->groups = true;
	return 0;
}

/* --- the plan --- */

static bool polls_only(const struct mmr_block *b)
{
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			if (!polls_only(&s->body))
				return false;
			continue;
		}
		if (s->op->id == MMR_OP_wait &&
		    (i + 1 == b->n || b->stmts[i + 1]->kind != MMR_STMT_OP ||
		     b->stmts[i + 1]->op->id != MMR_OP_sync))
			return false;
	}
	return true;
}

static void note_sync(struct mmr_export *x, const char *name)
{
	x->sync = name;
	x->nsyncs++;
}

static bool has_call_limits(const struct mmr_case *c)
{
	int i;

	for (i = 0; i < c->nexpects; i++)
		if (c->expects[i].kind == MMR_EXPECT_CALL)
			return true;
	return false;
}

/* The watchdog of threads forks such a process, the other one knows nothing of
 * what is in a round. */
static int is_fresh(void *arg, const struct mmr_stmt *s,
		    const struct mmr_thread *t)
{
	(void)arg;
	(void)t;
	return s->op->id == MMR_OP_process_spawn &&
	       s->args[mmr_op_arg(s->op, "fresh")].set;
}

/* A thread that waits for so long looks as if it stood still. */
static int is_slow(void *arg, const struct mmr_stmt *s,
		   const struct mmr_thread *t)
{
	const struct mmr_export *x = arg;

	(void)t;
	return (s->op->id == MMR_OP_delay || s->op->id == MMR_OP_nanosleep) &&
	       s->args[0].hi > x->limit_ms * 1000000 / 4;
}

static bool is_whole(struct mmr_export *x)
{
	const struct mmr_case *c = x->c;
	int64_t ns;
	int i, j, n = 0;

	if (has_call_limits(c) || mmr_emit_each_stmt(c, is_fresh, NULL) ||
	    mmr_emit_each_stmt(c, is_slow, x))
		return false;
	for (i = 0; i < c->nprocs; i++) {
		const struct mmr_proc *p = c->procs[i];

		for (j = 0; j < p->nthreads; j++, n++) {
			const struct mmr_thread *t = p->threads[j];

			if (!x->thread_used[n])
				continue;
			if (t->segv == MMR_SEGV_RETURN)
				return false;
			if (mmr_export_is_plain(p, t) &&
			    !mmr_export_ends(x, p, t))
				return false;
			ns = times_ns(p->copies, block_ns(x, &t->body));
			x->bound_ns = add(x->bound_ns, ns);
		}
	}
	return x->bound_ns <= LONGEST_NS;
}

static int count_touches(const struct mmr_block *b)
{
	int i, n = 0;

	for (i = 0; i < b->n; i++)
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			n += count_touches(&b->stmts[i]->body);
		else
			n += b->stmts[i]->op->class == MMR_CLASS_TOUCH;
	return n;
}

/* True when every statement takes all of a mapping that one mmap makes, so
 * that its length need not be kept. */
static bool takes_all(const struct mmr_export *x, const struct mmr_block *b)
{
	int i, j, off, len;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			if (!takes_all(x, &s->body))
				return false;
			continue;
		}
		if (s->op->makes == MMR_REF_MAPPING && s->ref &&
		    (s->op->id != MMR_OP_mmap ||
		     !mmr_emit_is_private(&x->e, s->ref) ||
		     mmr_emit_count_made(&x->e, s->ref) > 1))
			return false;
		for (j = 0; j < s->op->nargs; j++)
			if (mmr_emit_ref_kind(&x->e, s, j) == MMR_REF_MAPPING)
				break;
		if (j == s->op->nargs || s->op->id == MMR_OP_mmap)
			continue;
		off = mmr_op_arg(s->op, "off");
		len = mmr_op_arg(s->op, "len");
		if ((s->op->emit && s->op->class != MMR_CLASS_TOUCH) ||
		    (off >= 0 && s->args[off].set) ||
		    (len >= 0 && s->args[len].set))
			return false;
	}
	return true;
}

/* What is written in its place and what needs a function. */
static void plan_helpers(struct mmr_export *x)
{
	int i, j, n = 0;

	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++)
			n += count_touches(&x->c->procs[i]->threads[j]->body);
	x->e.inlines = n <= 3 && !x->may_miss && !x->content;
	x->e.count = x->counts ? ", " MMR_EXPORT_STILL : "";
	x->e.seeds = !x->long_draws;
	x->e.plain_maps = x->e.inlines;
	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++)
			x->e.plain_maps &=
				takes_all(x, &x->c->procs[i]->threads[j]->body);
	if (x->may_fail && !x->e.plain_maps) {
		x->e.inlines = false; /* MAP_FAILED and a length are none */
		x->may_miss = true;
	}
}

struct waits {
	const char *latch; /* NULL: none, or not the same */
	int waits, syncs;
};

static int count_waits(void *arg, const struct mmr_stmt *s,
		       const struct mmr_thread *t)
{
	struct waits *w = arg;

	(void)t;
	w->syncs += s->op->id == MMR_OP_sync;
	if (s->op->id != MMR_OP_wait)
		return 0;
	if (!w->waits++)
		w->latch = s->args[0].name;
	else if (w->latch && strcmp(w->latch, s->args[0].name) != 0)
		w->latch = NULL;
	return 0;
}

/* Where all who meet wait for one latch right before, meet() does both. */
static void plan_meet_waits(struct mmr_export *x)
{
	struct waits w = {0};

	mmr_emit_each_stmt(x->c, count_waits, &w);
	x->e.meet_waits =
		x->e.one_meet && x->e.polls && w.latch && w.waits == w.syncs;
	x->meet_latch = w.latch;
}

static void plan_meeting(struct mmr_export *x)
{
	int i, j;

	mmr_export_names(x, MMR_ARG_SYNC, note_sync);
	x->e.one_meet = x->nsyncs == 1 && !x->c->keep;
	x->e.polls = true;
	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++) {
			const struct mmr_thread *t = x->c->procs[i]->threads[j];

			if (x->nsyncs == 1 &&
			    mmr_export_times(&t->body, x->sync) > 1)
				x->e.one_meet = false;
			x->e.polls &= polls_only(&t->body);
		}
}

static bool stands_in(const struct mmr_block *b, const struct mmr_stmt *s)
{
	int i;

	for (i = 0; i < b->n; i++)
		if (b->stmts[i] == s)
			return true;
	return false;
}

/* The clock is read in ns, but may tick in tens of them. */
#define MANY_NS 10000

struct draw_search {
	int n, many; /* times that are drawn, those of them from many */
};

static int count_draws(void *arg, const struct mmr_stmt *s,
		       const struct mmr_thread *t)
{
	struct draw_search *d = arg;
	int i;

	for (i = 0; i < s->op->nargs; i++) {
		const struct mmr_value *v = &s->args[i];

		if (s->op->args[i].type != MMR_ARG_TIME ||
		    !mmr_value_is_drawn(v))
			continue;
		d->n++;
		d->many += !v->is_auto && !v->is_log &&
			   v->hi - v->lo >= MANY_NS && !t->is_template &&
			   stands_in(&t->body, s);
	}
	return 0;
}

/* Two that draw, or one that does it again, could get times that have to do
 * with each other. */
static void plan_draws(struct mmr_export *x)
{
	struct draw_search d = {0};

	mmr_emit_each_stmt(x->c, count_draws, &d);
	x->e.lone_draw = x->e.seeds && d.n == 1 && d.many == 1 &&
			 x->nplain == 1 && !x->c->keep;
}

struct spawn_search {
	const struct mmr_stmt *s; /* the last one */
	const struct mmr_thread *t;
	int n;
};

static int find_spawn(void *arg, const struct mmr_stmt *s,
		      const struct mmr_thread *t)
{
	struct spawn_search *f = arg;

	if (s->op->id != MMR_OP_process_spawn)
		return 0;
	f->s = s;
	f->t = t;
	f->n++;
	return 0;
}

/* One process of one thread, started in one place, and not in a loop: what it
 * does is written there. */
static void plan_in_place(struct mmr_export *x)
{
	struct spawn_search f = {0};
	const struct mmr_proc *p;
	int i;

	mmr_emit_each_stmt(x->c, find_spawn, &f);
	i = f.n == 1 ? mmr_export_proc(x->c, f.s->args[0].name) : -1;
	if (i < 0 || x->leaves || x->e.groups || x->e.sets || x->c->keep ||
	    f.t->is_template || !stands_in(&f.t->body, f.s) || !f.s->ref ||
	    f.s->args[mmr_op_arg(f.s->op, "vm")].set ||
	    f.s->args[mmr_op_arg(f.s->op, "fresh")].set)
		return;
	p = x->c->procs[i];
	x->in_place = p->copies == 1 && p->nthreads == 1 &&
		      !p->threads[0]->is_template &&
		      !mmr_export_draws(&p->threads[0]->body) &&
		      !mmr_export_is_awaited(x->c, MMR_UNTIL_DONE,
					     p->threads[0]->name) &&
		      !mmr_export_is_awaited(x->c, MMR_UNTIL_EXITED, p->name);
}

void mmr_export_plan(struct mmr_export *x)
{
	struct spawned sp = {.x = x};

	x->whole = is_whole(x);
	x->e.steps = !x->whole;
	if (!x->whole)
		return;
	x->counts = x->c->keep || x->bound_ns > x->limit_ms * 1000000 / 4;
	mmr_emit_each_stmt(x->c, note_spawn, &sp);
	x->leaves = sp.leaves || x->nplain > 1;
	x->e.groups = sp.groups || x->nplain > 1;
	plan_meeting(x);
	plan_meet_waits(x);
	plan_helpers(x);
	plan_draws(x);
	plan_in_place(x);
}
