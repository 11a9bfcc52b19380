// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The interpreter: runs a thread's statements, times each, counts it and puts
 * it in the ring.
 *
 * It has to cost little beside a page fault, or it would hide the races that
 * it is to find: one clock read an operation (the end of one is the start of
 * the next), plain stores to the thread's own slot, no division.
 */
#include "case.h"
#include "child_machine.h"

struct frame {
	uint32_t loop; /* its LOOP instruction */
	uint32_t ops;  /* slot->ops when the turn began */
	uint64_t turn;
	uint64_t base;	   /* c->iteration outside */
	uint64_t deadline; /* ticks, for= */
};

static inline void add64(struct mmr_child *c, _Atomic uint64_t *p, uint64_t v)
{
	if (MMR_RARELY(c->shared_stats))
		atomic_fetch_add_explicit(p, v, memory_order_relaxed);
	else
		atomic_store_explicit(
			p, atomic_load_explicit(p, memory_order_relaxed) + v,
			memory_order_relaxed);
}

static inline void add32(struct mmr_child *c, _Atomic uint32_t *p)
{
	if (MMR_RARELY(c->shared_stats))
		atomic_fetch_add_explicit(p, 1, memory_order_relaxed);
	else
		atomic_store_explicit(
			p, atomic_load_explicit(p, memory_order_relaxed) + 1,
			memory_order_relaxed);
}

static MMR_COLD void count_error(struct mmr_child *c, struct mmr_stat *s,
				 int err)
{
	int32_t seen;
	int i;

	add64(c, &s->errors, 1);
	for (i = 0; i < MMR_ERRS; i++) {
		seen = atomic_load_explicit(&s->errs[i].err,
					    memory_order_relaxed);
		if (!seen &&
		    atomic_compare_exchange_strong(&s->errs[i].err, &seen, err))
			seen = err;
		if (seen == err) {
			add32(c, &s->errs[i].n);
			return;
		}
	}
}

/* An end of the storm may end a call early: then nothing is unexpected. */
static MMR_COLD void check_accept(struct mmr_child *c,
				  const struct mmr_insn *in, struct mmr_stat *s,
				  int err)
{
	int i;

	for (i = 0; i < in->naccept; i++)
		if (in->accept[i] == err)
			return;
	if (!mmr_child_stopping(c))
		add64(c, &s->unexpected, 1);
}

MMR_HOT void mmr_interp_count(struct mmr_child *c, const struct mmr_insn *in,
			      int64_t ret, uint64_t end)
{
	struct mmr_stat *s = &c->stats[in->stat];
	struct mmr_thread_slot *slot = c->slot;
	uint64_t ticks = end - c->now, max;
	struct mmr_ring_entry *e;
	uint32_t n;

	add64(c, &s->count, 1);
	add64(c, &s->sum, ticks);
	add32(c, &s->hist[mmr_hist_index(ticks >> c->hist_shift)]);
	max = atomic_load_explicit(&s->max, memory_order_relaxed);
	while (MMR_RARELY(ticks > max) &&
	       !atomic_compare_exchange_weak_explicit(&s->max, &max, ticks,
						      memory_order_relaxed,
						      memory_order_relaxed))
		;
	if (MMR_RARELY(ret < 0))
		count_error(c, s, (int)-ret);
	if (MMR_RARELY(in->naccept))
		check_accept(c, in, s, ret < 0 ? (int)-ret : 0);
	n = atomic_load_explicit(&slot->ops, memory_order_relaxed);
	e = &slot->ring[n % MMR_RING];
	e->seq = n + 1;
	e->stat = in->stat;
	e->round = (uint16_t)c->serial;
	e->ret = ret;
	e->start = c->now;
	e->end = end;
	atomic_store_explicit(&slot->ops, n + 1, memory_order_release);
}

static inline void progress(struct mmr_thread_slot *slot)
{
	atomic_store_explicit(
		&slot->progress,
		atomic_load_explicit(&slot->progress, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/*
 * A call that needs no looking up, here and not in a function: who returns from
 * the kernel finds the CPU's stack of return addresses overwritten, and each
 * return that follows is mispredicted.
 */
static inline int64_t quick_call(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t addr = (uint64_t)in->raw[0], size = (uint64_t)in->raw[1];
	const struct mmr_plan *plan;
	int64_t ret;

	if (in->quick == MMR_QUICK_PART) {
		plan = mmr_child_plan(c->machine, in->op);
		if (!mmr_child_part(c, in, in->map, plan->off, plan->len, &addr,
				    &size))
			return MMR_SKIPPED;
	}
	ret = mmr_sys6(in->nr, (int64_t)addr, (int64_t)size, in->raw[2],
		       in->raw[3], in->raw[4], in->raw[5]);
	if (MMR_RARELY(ret < 0))
		return ret;
	if (in->quick == MMR_QUICK_MAKES) {
		mmr_child_mapped(c, (int64_t)size);
		mmr_child_set_ref(c, in->dst, MMR_REF_MAPPING, ret,
				  (int64_t)size);
	} else if (in->op == MMR_OP_munmap) {
		mmr_child_mapped(c, -(int64_t)size);
	}
	return ret;
}

static inline void run_op(struct mmr_child *c, const struct mmr_insn *in)
{
	struct mmr_thread_slot *slot = c->slot;
	const struct mmr_plan *plan;
	uint64_t end;
	int64_t ret;

	if (MMR_RARELY(c->ordered))
		mmr_order_before(c, in);
	atomic_store_explicit(&slot->start, c->now, memory_order_relaxed);
	atomic_store_explicit(&slot->stmt, in->stat + 1u, memory_order_release);
	if (MMR_RARELY(in->within))
		mmr_late_begin(c, in);
	if (MMR_RARELY(c->program->content)) {
		ret = mmr_content_run(c, in);
	} else if (in->quick) {
		ret = quick_call(c, in);
	} else {
		plan = mmr_child_plan(c->machine, in->op);
		ret = plan->run ? plan->run(c, in)
				: mmr_child_call(c, in, NULL);
	}
	if (!MMR_RARELY(ret == MMR_SKIPPED)) {
		end = mmr_child_now(c);
		if (MMR_RARELY(in->within) && end - c->now > in->within)
			mmr_late_end(c, in, end);
		mmr_interp_count(c, in, ret, end);
		c->now = end;
	}
	if (MMR_RARELY(c->ordered))
		mmr_order_after(c, in);
	progress(slot);
}

/* All threads of that body, or processes, spawned so far are at their end.
 * (A death in the middle of the count can count a thread twice.) */
static bool all_done(const struct mmr_child *c, const struct mmr_insn *in)
{
	uint32_t i = in->until_index;

	if (in->until == MMR_UNTIL_DONE)
		return i >= 256 ||
		       atomic_load(&c->area->thread_count[i].done) >=
			       atomic_load(&c->area->thread_count[i].spawned);
	return i >= 32 || atomic_load(&c->area->proc_count[i].done) >=
				  atomic_load(&c->area->proc_count[i].spawned);
}

/* True when the loop takes (another) turn. */
static bool loop_goes(struct mmr_child *c, const struct mmr_insn *in,
		      const struct frame *f)
{
	if (mmr_child_stopping(c))
		return false;
	switch (in->until) {
	case MMR_UNTIL_COUNT:
		return f->turn < (uint64_t)in->count;
	case MMR_UNTIL_DONE:
	case MMR_UNTIL_EXITED:
		return !all_done(c, in);
	case MMR_UNTIL_TIME:
		c->now = mmr_child_now(c);
		return c->now < f->deadline;
	default:
		return true;
	}
}

static void loop_begin(struct mmr_child *c, const struct mmr_insn *in,
		       struct frame *f, uint32_t pc)
{
	f->loop = pc;
	f->turn = 0;
	f->base = c->iteration;
	f->ops = atomic_load_explicit(&c->slot->ops, memory_order_relaxed);
	f->deadline = 0;
	if (in->until == MMR_UNTIL_TIME)
		f->deadline = c->now + mmr_ticks((uint64_t)in->count);
	c->iteration = f->base * 1000003;
}

static void loop_next(struct mmr_child *c, struct frame *f)
{
	uint32_t ops =
		atomic_load_explicit(&c->slot->ops, memory_order_relaxed);

	f->turn++;
	c->iteration = f->base * 1000003 + f->turn;
	if (MMR_RARELY(ops == f->ops)) { /* nothing in it took time */
		mmr_sys_relax();
		if (!(f->turn & 1023))
			mmr_sys_yield();
		atomic_store_explicit(&c->slot->stmt, 0, memory_order_relaxed);
		c->now = mmr_child_now(c);
		progress(c->slot);
	}
	f->ops = ops;
}

MMR_HOT void mmr_interp_run(struct mmr_child *c)
{
	const struct mmr_pthread *t = &mmr_pthreads()[c->thread];
	const struct mmr_insn *insns = mmr_insns() + t->first;
	struct frame frames[MMR_CASE_MAX_DEPTH];
	uint32_t pc = 0, depth = 0;
	const struct mmr_insn *in;
	struct frame *f;

	c->iteration = 0;
	c->now = mmr_child_now(c);
	while (pc < t->ninsn) {
		in = &insns[pc];
		if (!MMR_RARELY(in->op >= MMR_OP_LIMIT)) {
			run_op(c, in);
			pc++;
			continue;
		}
		if (in->op == MMR_INSN_LOOP) {
			f = &frames[depth++];
			loop_begin(c, in, f, pc);
		} else { /* END: back to the head of the innermost loop */
			f = &frames[depth - 1];
			in = &insns[f->loop];
			loop_next(c, f);
		}
		if (loop_goes(c, in, f)) {
			pc = f->loop + 1;
			continue;
		}
		c->iteration = f->base;
		depth--;
		pc = (in->jump - t->first) + 1;
	}
	mmr_child_mapped_tell(c);
	atomic_store_explicit(&c->slot->stmt, 0, memory_order_release);
}
