// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls with a limit of their own (expect call OP within=): exact by the
 * thread's own clock, from a few microseconds on, where the watcher, who looks
 * now and then, would see nothing.
 *
 * Time in wait for a CPU is not the call's.  The kernel adds it up for a task
 * when it gets its CPU; reading that costs more than many a call, so it is read
 * when the last look is older than half of the limit.  What was waited since
 * then is an upper bound of what was waited in the call: with it the watcher
 * may miss one, and blames none wrongly.
 */
#include "child_machine.h"

#define CLOCK_THREAD_OWN 3

static void look(struct mmr_child *c, uint64_t now)
{
	int64_t cpu = mmr_sys_clock(CLOCK_THREAD_OWN);

	c->seen_delay_ns = mmr_procfs_delay(0);
	c->seen_cpu_ns = cpu < 0 ? 0 : (uint64_t)cpu;
	c->seen_holds = atomic_load(&c->area->holds);
	c->seen_ticks = now;
}

void mmr_late_begin(struct mmr_child *c, const struct mmr_insn *in)
{
	if (c->seen_ticks && c->now - c->seen_ticks < in->within / 2 &&
	    c->seen_holds == atomic_load(&c->area->holds))
		return;
	look(c, c->now);
	c->now = mmr_child_now(c);
	atomic_store_explicit(&c->slot->start, c->now, memory_order_relaxed);
}

static struct mmr_late *next(void)
{
	uint32_t n = atomic_fetch_add(&MMR_AREA_PTR->nlate, 1);

	return n < MMR_LATE ? &MMR_AREA_PTR->late[n] : NULL;
}

void mmr_late_end(struct mmr_child *c, const struct mmr_insn *in, uint64_t end)
{
	uint64_t delay = mmr_procfs_delay(0), cpu_before = c->seen_cpu_ns;
	uint64_t delay_before = c->seen_delay_ns;
	bool held = c->seen_holds != atomic_load(&c->area->holds) ||
		    atomic_load(&c->area->frozen) ||
		    atomic_load(&c->proc->held);
	struct mmr_late *l;

	look(c, end);
	if (held || delay == ~0ULL || delay_before == ~0ULL)
		return;
	/* No time over the limit is left: not worth a place. */
	delay -= delay_before;
	if (mmr_ns(end - c->now) < mmr_ns(in->within) + delay)
		return;
	l = next();
	if (!l)
		return;
	l->thread_slot = c->slot_index;
	l->proc_slot = c->slot->proc_slot;
	l->stat = in->stat;
	l->start = c->now;
	l->end = end;
	l->cpu_ns = c->seen_cpu_ns - cpu_before;
	l->delay_ns = delay;
	atomic_store(&l->ready, 1);
}

void mmr_late_exit(uint32_t proc_slot, uint64_t start, uint64_t end,
		   uint64_t cpu_ns, uint64_t delay_ns)
{
	struct mmr_late *l = next();

	if (!l)
		return;
	l->thread_slot = ~0u;
	l->proc_slot = proc_slot;
	l->stat = 0;
	l->start = start;
	l->end = end;
	l->cpu_ns = cpu_ns;
	l->delay_ns = delay_ns;
	atomic_store(&l->ready, 1);
}
