// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What orders and times the threads of a case: latches, rendezvous, delays,
 * futexes.  All waits but the futex of a case sleep in slices, and end when
 * the storm does.
 */
#include <linux/errno.h>

#include "child_machine.h"

#define LATCH_SET 1u
#define LATCH_WAITED 2u /* not set, and somebody sleeps on it */

#define SYNC_START_NS 1500 /* from the last arrival to the common start */
#define SYNC_TIMEOUT_NS 1000000000
#define SYNC_SPINS 2000 /* before it gives the CPU to others */

#define DELAY_SPIN_NS 200000 /* a sleep is off by up to that */
#define DELAY_MARGIN_NS 100000

int64_t mmr_child_signal(struct mmr_child *c, int64_t latch)
{
	_Atomic uint32_t *w = &c->area->latches[latch];

	if (atomic_exchange(w, LATCH_SET) == LATCH_WAITED)
		mmr_sys_futex_wake(w, INT32_MAX);
	return 0;
}

int64_t mmr_child_wait(struct mmr_child *c, int64_t latch)
{
	_Atomic uint32_t *w = &c->area->latches[latch];
	uint32_t v, i;

	for (i = 0; i < 200; i++) {
		if (atomic_load_explicit(w, memory_order_acquire) == LATCH_SET)
			return 0;
		mmr_sys_relax();
	}
	for (;;) {
		v = 0;
		if (!atomic_compare_exchange_strong(w, &v, LATCH_WAITED) &&
		    v == LATCH_SET)
			return 0;
		if (mmr_child_stopping(c))
			return -EINTR;
		mmr_sys_futex_wait(w, LATCH_WAITED, MMR_SLICE_NS);
	}
}

static bool anyone_paused(void)
{
	uint32_t i;

	for (i = 0; i < MMR_MACHINE_PTR->first_slot; i++)
		if (atomic_load(&mmr_thread_slots()[i].paused))
			return true;
	return false;
}

/* A process that ends by itself wakes the supervisor anyway. */
void mmr_flow_release(struct mmr_child *c)
{
	if (!c->plain || c->counted)
		return;
	c->counted = 1;
	if (atomic_fetch_sub(&c->area->plain_left, 1) == 1 &&
	    (c->program->keep || anyone_paused()))
		mmr_event();
}

/* Until the process is killed or the storm is over; meanwhile the thread does
 * not hold the round open. */
int64_t mmr_child_pause(struct mmr_child *c)
{
	struct mmr_area *a = c->area;

	atomic_store(&c->slot->paused, 1);
	mmr_flow_release(c);
	while (!mmr_child_stopping(c))
		mmr_sys_futex_wait(&a->ctl, MMR_CTL_STORM, MMR_SLICE_NS);
	return 0;
}

/* Busy until ticks t, without a yield: within tens of nanoseconds. */
static void spin_until(const struct mmr_child *c, uint64_t t)
{
	while ((int64_t)(mmr_child_now(c) - t) < 0)
		;
}

int64_t mmr_child_delay(struct mmr_child *c, const struct mmr_insn *in, int arg)
{
	int64_t ns = mmr_child_draw(c, in, &in->arg[arg]), left;
	uint64_t end;

	if (ns <= 0)
		return 0;
	end = c->now + mmr_ticks((uint64_t)ns);
	while (ns > DELAY_SPIN_NS) {
		if (mmr_child_stopping(c))
			return -EINTR;
		left = (int64_t)(end - mmr_child_now(c));
		left = left > 0 ? (int64_t)mmr_ns((uint64_t)left) : 0;
		if (left <= DELAY_SPIN_NS)
			break;
		left -= DELAY_MARGIN_NS;
		mmr_sys_nanosleep(left < MMR_SLICE_NS ? left : MMR_SLICE_NS);
	}
	spin_until(c, end);
	return 0;
}

/* Starts the party when all of it is there or has left.  Arrivals and
 * departures may see this at the same time: who takes the count does it. */
static void sync_try(uint32_t i)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint32_t n = atomic_load(&a->syncs[i].arrived);

	if (!n || n + atomic_load(&a->syncs[i].left) < mmr_psyncs()[i].parties)
		return;
	if (!atomic_compare_exchange_strong(&a->syncs[i].arrived, &n, 0))
		return;
	atomic_store(&a->syncs[i].deadline,
		     mmr_now() + mmr_ticks(SYNC_START_NS) +
			     MMR_MACHINE_PTR->sync_lead[i]);
	atomic_fetch_add(&a->syncs[i].generation, 1);
}

void mmr_flow_leave(uint32_t thread)
{
	uint64_t mask;
	uint32_t i;

	if (thread >= 256)
		return;
	for (mask = MMR_MACHINE_PTR->syncs[thread]; mask; mask &= mask - 1) {
		i = (uint32_t)__builtin_ctzll(mask);
		atomic_fetch_add(&MMR_AREA_PTR->syncs[i].left, 1);
		sync_try(i);
	}
}

/* Waits for the party's start; false: it never came. */
static bool sync_wait(struct mmr_child *c, uint32_t i, uint32_t gen)
{
	struct mmr_area *a = c->area;
	uint64_t limit = c->now + mmr_ticks(SYNC_TIMEOUT_NS);
	uint32_t spins = 0;

	while (atomic_load_explicit(&a->syncs[i].generation,
				    memory_order_acquire) == gen) {
		if (spins++ < SYNC_SPINS) {
			mmr_sys_relax();
			continue;
		}
		mmr_sys_yield();
		if (mmr_child_stopping(c) || mmr_child_now(c) > limit)
			return false;
	}
	return true;
}

int64_t mmr_child_sync(struct mmr_child *c, const struct mmr_insn *in, int sync,
		       int skew)
{
	uint32_t i = (uint32_t)in->arg[sync].lo, gen;
	struct mmr_area *a = c->area;
	uint64_t start;
	int64_t ns;

	if (!mmr_psyncs()[i].parties || atomic_load(&a->round_void))
		return 0;
	ns = mmr_child_draw(c, in, &in->arg[skew]);
	gen = atomic_load(&a->syncs[i].generation);
	if (c->plain) {
		atomic_fetch_add(&a->syncs[i].arrived, 1);
		sync_try(i);
	}
	if (!sync_wait(c, i, gen)) {
		if (mmr_child_stopping(c))
			return -EINTR;
		atomic_store(&a->round_void, 1);
		return -ETIMEDOUT;
	}
	start = atomic_load(&a->syncs[i].deadline);
	start += ns < 0 ? -mmr_ticks((uint64_t)-ns) : mmr_ticks((uint64_t)ns);
	while ((int64_t)(start - mmr_child_now(c)) >
	       (int64_t)mmr_ticks(DELAY_MARGIN_NS)) {
		mmr_sys_yield();
		if (mmr_child_stopping(c))
			return -EINTR;
	}
	spin_until(c, start);
	return 0;
}

int64_t mmr_child_futex_wait(struct mmr_child *c, int64_t futex)
{
	return mmr_sys_futex_wait(&c->area->futexes[futex], 0, -1);
}

int64_t mmr_child_futex_wake(struct mmr_child *c, int64_t futex, int count)
{
	_Atomic uint32_t *w = &c->area->futexes[futex];

	atomic_store(w, 1);
	return mmr_sys_futex_wake(w, count);
}
