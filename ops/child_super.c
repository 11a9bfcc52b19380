// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The supervisor: rounds.  It stays single-threaded and its memory clean, so
 * that a fork of it is cheap and every process starts from the same state.
 */
#include <linux/errno.h>

#include "case.h"
#include "child_image.h"
#include "child_machine.h"

#define SIG_CHLD 17
#define END_GRACE_NS 200000000 /* for threads to end by themselves */
#define SCAN_MANY 64 /* more processes: look for the dead less often */
#define SCAN_GAP_NS 1000000
#define FORK_TRIES 100 /* rounds in a row without a single process */

/* Sets up what the round shares; nobody runs yet, or (keep) waits for the
 * number of the round to change. */
static void reset_round(void)
{
	struct mmr_area *a = MMR_AREA_PTR;
	const struct mmr_program *p = &a->program;
	const struct mmr_pproc *pp;
	uint32_t i, j, left = 0;

	for (i = 0; i < p->nlatches; i++)
		atomic_store(&a->latches[i], 0);
	for (i = 0; i < p->nfutexes; i++)
		atomic_store(&a->futexes[i], 0);
	for (i = 0; i < p->nsyncs; i++) {
		atomic_store(&a->syncs[i].arrived, 0);
		atomic_store(&a->syncs[i].left, 0);
		atomic_store(&a->syncs[i].lead, 0);
	}
	for (i = 0; i < p->nprocs; i++) {
		pp = &mmr_pprocs()[i];
		atomic_store(&a->proc_count[i].spawned, 0);
		atomic_store(&a->proc_count[i].done, 0);
		if (!pp->is_template)
			left += pp->copies * mmr_thread_plain(i);
		for (j = pp->first; j < pp->first + pp->nthreads; j++) {
			atomic_store(&a->thread_count[j].done, 0);
			atomic_store(
				&a->thread_count[j].spawned,
				pp->is_template || mmr_pthreads()[j].is_template
					? 0
					: pp->copies);
		}
	}
	atomic_store(&a->plain_left, left);
	atomic_store(&a->fresh_request, 0);
	atomic_store(&a->fresh_slot, 0);
	atomic_store(&a->round_void, 0);
	atomic_store(&a->round_late, 0);
	mmr_order_begin();
}

/* Free again: slots of spawned threads and, without keep, of processes. */
static void reset_slots(void)
{
	struct mmr_area *a = MMR_AREA_PTR;
	struct mmr_thread_slot *t = mmr_thread_slots();
	struct mmr_proc_slot *p = mmr_proc_slots();
	uint32_t i, n, kept = 0;

	n = atomic_load(&a->thread_slots);
	for (i = MMR_MACHINE_PTR->first_slot; i < n; i++)
		if (!a->program.keep || !atomic_load(&t[i].tid))
			atomic_store(&t[i].state, MMR_THREAD_FREE);
	n = atomic_load(&a->proc_slots);
	for (i = 0; i < n; i++)
		if (atomic_load(&p[i].state) == MMR_PROC_RUNNING) {
			kept = i + 1;
		} else {
			/* A kept process may still have a ref to it, and the
			 * number may be somebody else's by now. */
			atomic_store(&p[i].pid, 0);
			atomic_store(&p[i].state, MMR_PROC_FREE);
		}
	atomic_store(&a->proc_slots, kept);
}

int64_t mmr_super_fork(uint32_t proc, uint32_t copy, uint32_t slot)
{
	struct mmr_proc_slot *p = &mmr_proc_slots()[slot];
	struct mmr_thread_slot *s;
	int64_t leader = -1, ret;

	p->copy = (uint16_t)copy;
	if (proc != MMR_PROC_IDLE) {
		leader =
			mmr_thread_slot((uint32_t)mmr_thread_first(proc), copy);
		if (leader < 0)
			return leader;
		s = &mmr_thread_slots()[leader];
		s->thread = (uint16_t)mmr_thread_first(proc);
		s->proc_slot = (uint16_t)slot;
		s->parent_slot = 0;
		atomic_store(&s->paused, 0);
		atomic_store(&s->state, MMR_THREAD_STARTING);
	}
	ret = mmr_sys_fork(SIG_CHLD);
	if (ret == 0) {
		mmr_image_share();
		mmr_sigaction(SIG_CHLD, NULL, 0);
		mmr_thread_process(slot, leader);
	}
	if (ret < 0) {
		if (leader >= 0)
			atomic_store(&mmr_thread_slots()[leader].state,
				     MMR_THREAD_FREE);
		return ret;
	}
	atomic_store(&p->pid, (int32_t)ret);
	return 0;
}

static bool is_kept(uint32_t proc, uint32_t copy)
{
	struct mmr_proc_slot *p = mmr_proc_slots();
	uint32_t i, n = atomic_load(&MMR_AREA_PTR->proc_slots);

	if (!MMR_AREA_PTR->program.keep)
		return false;
	for (i = 0; i < n; i++)
		if (p[i].proc == proc && p[i].copy == copy &&
		    atomic_load(&p[i].state) == MMR_PROC_RUNNING)
			return true;
	return false;
}

/* A copy that cannot be forked: its threads count as done, so that nobody
 * waits for them. */
static void give_up(uint32_t proc)
{
	struct mmr_area *a = MMR_AREA_PTR;
	const struct mmr_pproc *pp = &mmr_pprocs()[proc];
	uint32_t i;

	atomic_store(&a->round_void, 1);
	for (i = pp->first; i < pp->first + pp->nthreads; i++) {
		if (mmr_pthreads()[i].is_template)
			continue;
		atomic_fetch_add(&a->thread_count[i].done, 1);
		atomic_fetch_sub(&a->plain_left, 1);
		mmr_flow_leave(i);
	}
}

/* Forks the plain processes; how many run. */
static uint32_t start_plain(void)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;
	uint32_t i, k, running = 0;
	int64_t slot, ret;

	for (i = 0; i < p->nprocs; i++) {
		if (mmr_pprocs()[i].is_template || mmr_thread_first(i) < 0)
			continue;
		for (k = 0; k < mmr_pprocs()[i].copies; k++) {
			if (is_kept(i, k)) {
				atomic_fetch_add(
					&MMR_AREA_PTR->proc_count[i].spawned,
					1);
				running++;
				continue;
			}
			ret = slot = mmr_proc_claim(i, 1, MMR_OWNER_NONE);
			if (slot >= 0)
				ret = mmr_super_fork(i, k, (uint32_t)slot);
			if (ret >= 0) {
				running++;
				continue;
			}
			if (slot >= 0)
				atomic_store(&mmr_proc_slots()[slot].state,
					     MMR_PROC_FREE);
			give_up(i);
		}
	}
	return running;
}

static bool has_paused(uint32_t proc)
{
	struct mmr_thread_slot *t = mmr_thread_slots();
	uint32_t i;

	for (i = 0; i < MMR_MACHINE_PTR->first_slot; i++)
		if (t[i].proc_slot == proc && atomic_load(&t[i].paused))
			return true;
	return false;
}

/*
 * Every plain thread is at its end or in pause, or its process is dead.  A
 * process whose threads are all at their end exits by itself, and that is
 * waited for: the exit is part of the case.
 */
static bool round_over(void)
{
	bool keep = MMR_AREA_PTR->program.keep;
	struct mmr_thread_slot *t = mmr_thread_slots();
	uint32_t i, state;

	for (i = 0; i < MMR_MACHINE_PTR->first_slot; i++) {
		state = atomic_load(&t[i].state);
		if (state == MMR_THREAD_FREE ||
		    atomic_load(&mmr_proc_slots()[t[i].proc_slot].status) ||
		    atomic_load(&t[i].paused))
			continue;
		if (state != MMR_THREAD_DONE ||
		    (!keep && !has_paused(t[i].proc_slot)))
			return false;
	}
	return true;
}

static void serve_fresh(void)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint32_t proc, n = 1, i;
	int64_t slot, ret = 0;

	proc = atomic_load(&a->fresh_request);
	if (!proc || proc == MMR_FRESH_SERVED)
		return;
	proc--;
	if (proc != MMR_PROC_IDLE)
		n = mmr_pprocs()[proc].copies;
	slot = mmr_proc_claim(proc, n, MMR_OWNER_NONE);
	for (i = 0; slot >= 0 && i < n; i++) {
		mmr_proc_count_threads(proc, 1);
		ret = mmr_super_fork(proc, i, (uint32_t)slot + i);
		if (ret >= 0)
			continue;
		mmr_proc_count_threads(proc, ~0u);
		break;
	}
	for (; slot >= 0 && i < n; i++)
		mmr_proc_unclaim((uint32_t)slot + i);
	if (slot < 0)
		ret = slot;
	/* First: who takes the answer clears both words, one by one, and must
	 * not be served again in between. */
	atomic_store(&a->fresh_request, MMR_FRESH_SERVED);
	atomic_store(&a->fresh_slot, (int32_t)(ret < 0 ? ret : slot + 1));
	mmr_sys_futex_wake(&a->fresh_slot, 1);
}

/* Looks for the dead when a SIGCHLD came since the last look; when there are
 * many processes at most once a millisecond. */
static void look_for_dead(void)
{
	struct mmr_super *s = MMR_SUPER_PTR;
	uint32_t chld = atomic_load(&s->sigchld);
	uint64_t now;

	if (chld == s->seen)
		return;
	if (atomic_load(&MMR_AREA_PTR->proc_slots) > SCAN_MANY) {
		now = mmr_now();
		if (now - s->scanned < mmr_ticks(SCAN_GAP_NS))
			mmr_sys_nanosleep(SCAN_GAP_NS);
		s->scanned = mmr_now();
		chld = atomic_load(&s->sigchld);
	}
	s->seen = chld;
	mmr_clean_scan();
}

/* The storm is over when the time is, if the watcher did not end it before. */
static bool budget_over(void)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;

	return p->budget_ns &&
	       mmr_now() - MMR_SUPER_PTR->begin >= mmr_ticks(p->budget_ns);
}

/* END cuts the round short, after a moment. */
static bool has_to_end(void)
{
	struct mmr_super *s = MMR_SUPER_PTR;

	if (atomic_load(&MMR_AREA_PTR->ctl) != MMR_CTL_END)
		return false;
	if (!s->end_seen)
		s->end_seen = mmr_now();
	return mmr_now() - s->end_seen > mmr_ticks(END_GRACE_NS);
}

static void watch_round(void)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint32_t event, storm = MMR_CTL_STORM;
	bool ending;

	for (;;) {
		event = atomic_load(&a->event);
		look_for_dead();
		serve_fresh();
		if (round_over())
			return;
		if (has_to_end()) {
			atomic_store(&a->round_void, 1);
			return;
		}
		if (budget_over())
			atomic_compare_exchange_strong(&a->ctl, &storm,
						       MMR_CTL_CALM);
		storm = MMR_CTL_STORM;
		ending = atomic_load(&a->ctl) != MMR_CTL_STORM;
		if (ending && atomic_load(&a->frozen))
			mmr_cgroup_thaw_all();
		mmr_sys_futex_wait(&a->event, event,
				   ending ? MMR_SLICE_NS / 5 : MMR_SLICE_NS);
	}
}

static bool kept_busy(void)
{
	struct mmr_thread_slot *t = mmr_thread_slots();
	uint32_t i, state, n = atomic_load(&MMR_AREA_PTR->thread_slots);
	const struct mmr_proc_slot *p;

	for (i = 0; i < n; i++) {
		state = atomic_load(&t[i].state);
		p = &mmr_proc_slots()[t[i].proc_slot];
		if (state == MMR_THREAD_FREE || atomic_load(&p->status) ||
		    mmr_proc_is_spawned(p))
			continue;
		if (i < MMR_MACHINE_PTR->first_slot ? state != MMR_THREAD_DONE
						    : atomic_load(&t[i].tid))
			return true;
	}
	return false;
}

/* In kept processes spawned threads, and plain ones in pause, end with the
 * storm.  False: some did not, and the processes cannot be kept. */
static bool settle_kept(void)
{
	uint64_t limit = mmr_now() + mmr_ticks(1000000000);
	uint32_t storm = MMR_CTL_STORM;

	if (!MMR_AREA_PTR->program.keep)
		return false;
	if (!kept_busy())
		return true;
	atomic_compare_exchange_strong(&MMR_AREA_PTR->ctl, &storm,
				       MMR_CTL_CALM);
	mmr_sys_futex_wake(&MMR_AREA_PTR->ctl, INT32_MAX);
	while (kept_busy()) {
		if (mmr_now() > limit) {
			atomic_store(&MMR_AREA_PTR->round_void, 1);
			return false;
		}
		mmr_sys_nanosleep(200000);
	}
	return true;
}

/* Plain threads of kept processes count as running before they know of the
 * new round. */
static void restart_kept(void)
{
	struct mmr_thread_slot *t = mmr_thread_slots();
	uint32_t i;

	for (i = 0; i < MMR_MACHINE_PTR->first_slot; i++) {
		if (atomic_load(&t[i].state) != MMR_THREAD_DONE ||
		    atomic_load(&mmr_proc_slots()[t[i].proc_slot].state) !=
			    MMR_PROC_RUNNING)
			continue;
		atomic_store(&t[i].paused, 0);
		atomic_store(&t[i].state, MMR_THREAD_STARTING);
	}
}

static void one_round(void)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint32_t calm = MMR_CTL_CALM, running;

	reset_round();
	mmr_content_reset();
	atomic_compare_exchange_strong(&a->ctl, &calm, MMR_CTL_STORM);
	atomic_store(&a->round_start, mmr_now());
	if (a->program.keep)
		restart_kept();
	atomic_fetch_add(&a->round, 1);
	atomic_store(&a->state, MMR_STATE_RUN);
	if (a->program.keep)
		mmr_sys_futex_wake(&a->round, INT32_MAX);
	running = start_plain();
	MMR_SUPER_PTR->failed_forks =
		running ? 0 : MMR_SUPER_PTR->failed_forks + 1;
	if (running)
		watch_round();
	else
		mmr_sys_nanosleep(10000000);
	if (MMR_SUPER_PTR->failed_forks >= FORK_TRIES)
		mmr_main_fail("no process of the case can be forked", -EAGAIN);
	atomic_store(&a->state, MMR_STATE_CLEAN);
	mmr_cgroup_thaw_all();
	mmr_clean_round(!settle_kept());
	if (!a->program.keep)
		mmr_cgroup_remove_all();
	if (atomic_load(&a->round_void) || atomic_load(&a->ctl_void))
		atomic_fetch_add(&a->rounds_void, 1);
	else if (atomic_load(&a->round_late))
		atomic_fetch_add(&a->rounds_late, 1);
	atomic_store(&a->ctl_void, 0);
	atomic_fetch_add(&a->rounds_done, 1);
}

/* A handler, so that the futex wait ends; `event` catches what comes just
 * before it. */
static void on_sigchld(int sig, void *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	atomic_fetch_add(&MMR_SUPER_PTR->sigchld, 1);
	atomic_fetch_add(&MMR_AREA_PTR->event, 1);
}

static bool has_plain(void)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;
	uint32_t i;

	for (i = 0; i < p->nprocs; i++)
		if (!mmr_pprocs()[i].is_template && mmr_thread_first(i) >= 0)
			return true;
	return false;
}

_Noreturn void mmr_super_run(void)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint64_t i;

	mmr_sigaction(SIG_CHLD, on_sigchld, 0);
	MMR_SUPER_PTR->begin = mmr_now();
	for (i = 0; i < a->program.rounds && has_plain(); i++) {
		if (i)
			reset_slots();
		one_round();
		/* A run ends with its first hit; its slots stay to be read. */
		if (atomic_load(&a->ctl) == MMR_CTL_END || budget_over() ||
		    atomic_load(&a->crash_count) || mmr_content_hit())
			break;
	}
	atomic_store(&a->state, MMR_STATE_DONE);
	mmr_sys_exit_group(0);
}
