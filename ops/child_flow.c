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

#define SYNC_START_NS 700 /* from the last arrival to the common start */
#define SYNC_TIMEOUT_NS 1000000000
#define SYNC_LATE_NS 100 /* a start later than that has missed its offset */
#define SYNC_LATE_RAW_NS                                                       \
	1000 /* the same where a look at the clock is a call                   \
	      */

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

/* Busy until ticks t, without a yield: within tens of nanoseconds.  When it
 * really was. */
static uint64_t spin_until(const struct mmr_child *c, uint64_t t)
{
	uint64_t now;

	do {
		now = mmr_child_now(c);
	} while ((int64_t)(now - t) < 0);
	return now;
}

int64_t mmr_child_delay(struct mmr_child *c, const struct mmr_insn *in, int arg)
{
	int64_t ns = mmr_child_draw(c, in, arg), left;
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

int64_t mmr_child_sleep(struct mmr_child *c, const struct mmr_insn *in, int arg)
{
	int64_t left = mmr_child_draw(c, in, arg), ns;

	for (; left > 0; left -= ns) {
		ns = left < MMR_SLICE_NS ? left : MMR_SLICE_NS;
		mmr_sys_nanosleep(ns);
		if (left > ns && mmr_child_stopping(c))
			return -EINTR;
	}
	return 0;
}

/* Starts the party when all of it is there or has left.  Arrivals and
 * departures may see this at the same time: who takes the count does it. */
static void sync_try(uint32_t i)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint32_t n = atomic_load(&a->syncs[i].arrived);
	uint64_t lead;

	if (!n || n + atomic_load(&a->syncs[i].left) < mmr_psyncs()[i].parties)
		return;
	if (!atomic_compare_exchange_strong(&a->syncs[i].arrived, &n, 0))
		return;
	lead = atomic_exchange(&a->syncs[i].lead, 0);
	atomic_store(&a->syncs[i].deadline,
		     mmr_now() + mmr_ticks(SYNC_START_NS) + lead);
	atomic_fetch_add(&a->syncs[i].generation, 1);
}

/* Joins the party.  ns: the thread's offset; who starts before the others
 * makes them wait for that. */
static void sync_arrive(uint32_t i, int64_t ns)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint64_t lead, old;

	if (ns < 0) {
		lead = mmr_ticks((uint64_t)-ns);
		old = atomic_load(&a->syncs[i].lead);
		while (lead > old && !atomic_compare_exchange_weak(
					     &a->syncs[i].lead, &old, lead))
			;
	}
	atomic_fetch_add(&a->syncs[i].arrived, 1);
	sync_try(i);
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
	uint32_t spins = 0, most = c->machine->sync_spins[i];

	while (atomic_load_explicit(&a->syncs[i].generation,
				    memory_order_acquire) == gen) {
		if (spins++ < most) {
			mmr_sys_relax();
			continue;
		}
		mmr_sys_yield();
		if (mmr_child_stopping(c) || mmr_child_now(c) > limit)
			return false;
	}
	return true;
}

/*
 * Waits for the thread's own instant; how much too late it was, ns, 0 when not
 * worth a word.  Far from it, or where others of the party need this CPU, in
 * yields.
 */
static int64_t sync_start(struct mmr_child *c, const struct mmr_insn *in,
			  uint64_t start, bool crowded)
{
	int64_t margin = crowded ? 0 : (int64_t)mmr_ticks(DELAY_MARGIN_NS);
	uint64_t late;

	while ((int64_t)(start - mmr_child_now(c)) > margin) {
		mmr_sys_yield();
		if (mmr_child_stopping(c))
			return -EINTR;
	}
	late = mmr_ns(spin_until(c, start) - start);
	if (late <= (c->area->clock.source == MMR_CLOCK_COUNTER
			     ? SYNC_LATE_NS
			     : SYNC_LATE_RAW_NS))
		return 0;
	atomic_fetch_add(&c->stats[in->stat].late, 1);
	atomic_store(&c->area->round_late, 1);
	return (int64_t)late;
}

int64_t mmr_child_sync(struct mmr_child *c, const struct mmr_insn *in, int sync,
		       int skew, int aim)
{
	uint32_t i = (uint32_t)in->arg[sync].lo, gen;
	struct mmr_area *a = c->area;
	uint64_t start;
	int64_t ns;

	if (!mmr_psyncs()[i].parties || atomic_load(&a->round_void))
		return 0;
	ns = mmr_child_offset(c, in, skew, aim);
	gen = atomic_load(&a->syncs[i].generation);
	if (c->plain)
		sync_arrive(i, ns);
	if (!sync_wait(c, i, gen)) {
		if (mmr_child_stopping(c))
			return -EINTR;
		atomic_store(&a->round_void, 1);
		return -ETIMEDOUT;
	}
	start = atomic_load(&a->syncs[i].deadline);
	start += ns < 0 ? -mmr_ticks((uint64_t)-ns) : mmr_ticks((uint64_t)ns);
	return sync_start(c, in, start, !c->machine->sync_spins[i]);
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
