// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rounds in which the threads act one after the other (rounds ... order=D).
 *
 * Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi,
 * Nagarakatte, ASPLOS 2010): each round gives every thread a random priority,
 * the highest that is ready runs its next operation, and at D - 1 random steps
 * the running one falls below all others.  A bug that D ordering constraints
 * make certain shows with at least 1 / (n * k^(D - 1)) a round, for n threads
 * of k steps together.
 *
 * From user space a thread that sleeps in the kernel for another one cannot
 * be seen: who waits for its turn for too long goes on, so a round ends always.
 */
#include "child_machine.h"
#include "rng.h"

#define ORDER_WAIT_NS 200000000 /* then the first one is stuck, or asleep */
#define ORDER_SPINS 100
#define ORDER_FALL_KEY 1000 /* keys of change points, beyond those of slots */

void mmr_order_begin(void)
{
	struct mmr_area *a = MMR_AREA_PTR;
	const struct mmr_program *p = &a->program;
	uint64_t key, round = p->first_round + atomic_load(&a->round);
	uint32_t i;

	if (!p->order)
		return;
	key = mmr_rng_key(mmr_rng_key_str(p->seed, "order"), round);
	for (i = 0; i < MMR_MACHINE_PTR->first_slot; i++)
		atomic_store(&a->priority[i], mmr_rng_key(key, i) | 1ULL << 63);
	for (i = 1; i < p->order; i++)
		a->fall[i] = 1 + (uint32_t)mmr_rng_below(
					 mmr_rng_key(key, ORDER_FALL_KEY + i),
					 p->order_steps);
	atomic_store(&a->step, 0);
}

/* Nobody ready has a higher priority. */
static bool is_first(const struct mmr_area *a, uint32_t slot)
{
	uint64_t mine = atomic_load(&a->priority[slot]);
	uint32_t i;

	for (i = 0; i < MMR_MACHINE_PTR->first_slot; i++)
		if (atomic_load_explicit(&a->priority[i],
					 memory_order_relaxed) > mine)
			return false;
	return true;
}

static bool may_sleep(const struct mmr_insn *in)
{
	const struct mmr_op *op = mmr_table_op(in->op);

	return op->class == MMR_CLASS_WAIT || op->class == MMR_CLASS_BLOCK;
}

void mmr_order_before(struct mmr_child *c, const struct mmr_insn *in)
{
	struct mmr_area *a = c->area;
	uint64_t limit;
	uint32_t turns;

	if (may_sleep(in)) { /* lets the others on meanwhile */
		c->priority = atomic_exchange(&a->priority[c->slot_index], 0);
		return;
	}
	atomic_store_explicit(&c->slot->stmt, 0, memory_order_relaxed);
	limit = c->now + mmr_ticks(ORDER_WAIT_NS);
	for (turns = 0; !is_first(a, c->slot_index); turns++) {
		if (turns < ORDER_SPINS) {
			mmr_sys_relax();
			continue;
		}
		mmr_sys_yield();
		if (mmr_child_stopping(c) || mmr_child_now(c) > limit)
			break;
	}
	c->now = mmr_child_now(c);
}

void mmr_order_after(struct mmr_child *c, const struct mmr_insn *in)
{
	struct mmr_area *a = c->area;
	uint32_t step, i;

	if (may_sleep(in)) {
		atomic_store(&a->priority[c->slot_index], c->priority);
		return;
	}
	step = atomic_fetch_add(&a->step, 1) + 1;
	for (i = 1; i < a->program.order; i++)
		if (a->fall[i] == step)
			atomic_store(&a->priority[c->slot_index],
				     MMR_ORDER_MAX - i);
}

void mmr_order_leave(uint32_t slot)
{
	if (slot < MMR_THREAD_SLOTS)
		atomic_store(&MMR_AREA_PTR->priority[slot], 0);
}
