// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What kind of stall it is.  Told by what was seen and not by the verdict
 * alone: a call over its budget may be blocked, starved, busy in one place or
 * slow but moving, and each of them is looked into elsewhere.
 */
#include <linux/futex.h>
#include <string.h>

#include "../ops/compile.h"
#include "ladder.h"

#define SPIN_SAMPLES 20 /* fewer do not tell one place from many */

/* Who calls the sleep on a read-write semaphore when that semaphore is the
 * lock of the address space (functions of mm/ and arch/, 4.14 to 6.18). */
static const char *const mmap_lockers[] = {
	"mmap_read_lock",
	"mmap_write_lock",
	"vm_mmap_pgoff",
	"vm_munmap",
	"__vm_munmap",
	"do_madvise",
	"madvise_lock",
	"do_mprotect_pkey",
	"lock_mm_and_find_vma",
	"get_mmap_lock_carefully",
	"do_user_addr_fault",
	"__do_page_fault",
	"do_page_fault",
	"do_mem_abort",
	"exit_mm",
	"do_exit",
	"exit_mmap",
	"dup_mm",
	"dup_mmap",
	"copy_mm",
	"__mm_populate",
	"do_mlock",
	"do_migrate_pages",
	"do_mbind",
	"mbind_range",
	"userfaultfd_register",
	"userfaultfd_release",
	"process_mrelease",
	"__do_sys_mremap",
	"__do_sys_brk",
	"khugepaged_scan_mm_slot",
	"collapse_huge_page",
};

static bool starts(const char *frames, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(frames, name, n) &&
	       (frames[n] == '<' || frames[n] == '\0');
}

/* Past the frames of the semaphore itself; NULL: no sleep on one. */
static const char *below_rwsem(const char *frames)
{
	static const char *const sleep[] = {"rwsem_down_", "down_read",
					    "down_write", "__down_read",
					    "__down_write"};
	const char *p = frames;
	bool on = false, any = true;
	size_t i;

	while (*p && any) {
		any = false;
		for (i = 0; i < sizeof(sleep) / sizeof(sleep[0]); i++)
			any |= !strncmp(p, sleep[i], strlen(sleep[i])) ||
			       starts(p, "call_rwsem_down_read_failed") ||
			       starts(p, "call_rwsem_down_write_failed");
		on |= any;
		if (any) {
			p = strchrnul(p, '<');
			p += *p == '<';
		}
	}
	return on ? p : NULL;
}

/* Asleep on the lock of the address space.  Without a stack the function that
 * it sleeps in has to do: a call of ours takes no other semaphore as long. */
static bool waits_for_mmap_lock(const char *frames)
{
	const char *caller = below_rwsem(frames);
	size_t i;

	if (!caller)
		return false;
	for (i = 0; i < sizeof(mmap_lockers) / sizeof(mmap_lockers[0]); i++)
		if (starts(caller, mmap_lockers[i]))
			return true;
	return !*caller;
}

static const struct mmr_thread_slot *slot_at(const struct mmr_ladder *l, int i)
{
	return MMR_AREA_AT(l->s->area, l->s->area->threads_off,
			   struct mmr_thread_slot) +
	       i;
}

uint64_t mmr_ladder_other_ops(const struct mmr_ladder *l)
{
	const struct mmr_thread_slot *t;
	uint32_t i, n;
	uint64_t sum = 0;

	if (!l->s->area || l->s->proc_slot < 0)
		return 0;
	n = atomic_load(&l->s->area->thread_slots);
	for (i = 0; i < n && i < MMR_THREAD_SLOTS; i++) {
		t = slot_at(l, (int)i);
		if ((int)i != l->s->thread_slot &&
		    t->proc_slot == l->s->proc_slot &&
		    atomic_load(&t->state) != MMR_THREAD_FREE)
			sum += atomic_load(&t->ops);
	}
	return sum;
}

/* True when that thread is in an operation that takes the lock. */
static bool in_kernel_op(const struct mmr_ladder *l, int slot)
{
	const struct mmr_stmt *st;
	uint32_t stmt;

	if (slot < 0 || !l->s->area)
		return false;
	stmt = atomic_load(&slot_at(l, slot)->stmt);
	st = stmt ? mmr_case_stmt(l->s->c, (int)stmt - 1) : NULL;
	return st && st->kind == MMR_STMT_OP &&
	       (st->op->class == MMR_CLASS_CALL ||
		st->op->class == MMR_CLASS_TOUCH);
}

/* Of the same process, in the kernel for the case, and not waiting for the
 * lock itself; who sleeps goes before who runs. */
static int find_holder(const struct mmr_ladder *l)
{
	int i, best = -1;

	for (i = 0; i < l->nothers; i++) {
		const struct mmr_other *o = &l->others[i];

		if (o->pid != l->pid || !in_kernel_op(l, o->slot) ||
		    waits_for_mmap_lock(o->frames))
			continue;
		if (best < 0 ||
		    (o->state == 'D' && l->others[best].state != 'D'))
			best = i;
	}
	return best;
}

/* The slot of the thread that has the lock which the culprit's statement asks
 * for.  -1: none, or no lock that has its owner written in it. */
static int find_owner(const struct mmr_ladder *l)
{
	struct mmr_area *a = l->s->area;
	const struct mmr_insn *in;
	uint32_t i, n, owner = 0;

	if (!a || l->s->stmt < 0)
		return -1;
	in = MMR_AREA_AT(a, a->program.insns_off, struct mmr_insn);
	for (i = 0; i < a->program.ninsns && !owner; i++)
		if (in[i].op == MMR_OP_futex_lock_pi &&
		    in[i].stat == l->s->stmt && in[i].arg[0].lo >= 0 &&
		    in[i].arg[0].lo < MMR_CASE_MAX_NAMES)
			owner = atomic_load(&a->futexes[in[i].arg[0].lo]) &
				FUTEX_TID_MASK;
	n = owner ? atomic_load(&a->thread_slots) : 0;
	for (i = 0; i < n && i < MMR_THREAD_SLOTS; i++)
		if ((uint32_t)atomic_load(&slot_at(l, (int)i)->tid) == owner)
			return (int)i;
	return -1;
}

static bool asleep(const struct mmr_ladder *l)
{
	return l->state == 'D' || l->state == 'S' || l->state == 'I';
}

static enum mmr_stall kind(const struct mmr_ladder *l)
{
	const struct mmr_suspect *s = l->s;

	if (l->post_mortem)
		return MMR_STALL_NONE;
	if (s->wall_ns > 0 && s->pause_ns > s->wall_ns / 2)
		return MMR_STALL_PAUSE;
	if (l->s->verdict == MMR_FAULT_STORM)
		return MMR_STALL_STORM;
	if (l->s->verdict == MMR_LOCK_STARVATION)
		return MMR_STALL_STARVED;
	if (l->state == 't' || l->state == 'T')
		return MMR_STALL_HELD;
	if (asleep(l))
		return l->steady ? MMR_STALL_BLOCKED : MMR_STALL_SLOW;
	if (l->state != 'R')
		return s->asleep_ns > s->cpu_ns ? MMR_STALL_BLOCKED
						: MMR_STALL_UNKNOWN;
	if (l->path_samples < SPIN_SAMPLES)
		return MMR_STALL_UNKNOWN;
	return l->paths > 2 ? MMR_STALL_SLOW : MMR_STALL_SPINS;
}

void mmr_ladder_classify(struct mmr_ladder *l)
{
	uint64_t now;

	l->holder = -1;
	l->owner = asleep(l) ? find_owner(l) : -1;
	l->lock_wait = l->steady && waits_for_mmap_lock(l->frames);
	if (l->lock_wait) {
		now = mmr_ladder_other_ops(l);
		l->other_ops = now > l->ops0 ? now - l->ops0 : 0;
		l->holder = find_holder(l);
	}
	l->stall = kind(l);
}

const char *mmr_stall_name(enum mmr_stall s)
{
	static const char *const names[] = {
		[MMR_STALL_NONE] = "none",
		[MMR_STALL_STORM] = "storm",
		[MMR_STALL_STARVED] = "starvation",
		[MMR_STALL_BLOCKED] = "blocked",
		[MMR_STALL_HELD] = "held",
		[MMR_STALL_SPINS] = "spins",
		[MMR_STALL_SLOW] = "slow-but-moving",
		[MMR_STALL_PAUSE] = "machine-pause",
		[MMR_STALL_UNKNOWN] = "unknown",
	};

	return s <= MMR_STALL_UNKNOWN ? names[s] : "unknown";
}
