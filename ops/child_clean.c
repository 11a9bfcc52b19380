// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of processes, seen by the supervisor, and of a round: whatever
 * lives is killed, all is reaped, and what each exit cost is added up.
 */
#include <linux/errno.h>
#include <linux/wait.h>

#include "child_machine.h"

#define CLD_EXITED_CODE 1
#define KILLED (-2) /* in a proc slot's pidfd, which is of no use then */
#define REAP_ONE (WEXITED | WNOHANG | __WALL)

/* The kernel's siginfo as waitid fills it. */
union child_info {
	struct {
		int32_t signo, err, code, pad;
		int32_t pid, uid, status;
	} s;
	char whole[128];
};

static int64_t wait_child(int type, int64_t pid, union child_info *info,
			  int options)
{
	info->s.pid = 0;
	return mmr_sys5(__NR_waitid, type, pid, mmr_sys_ptr(info), options, 0);
}

/*
 * The slot of a thread of a dead process that had reached its end.  With its
 * tid still there (the last task of a process does not clear it) nobody can
 * claim it; without, somebody may have done so by now, and it is left alone.
 */
static void bury_done(struct mmr_thread_slot *t, uint32_t seq)
{
	if (!atomic_load(&t->tid) || atomic_load(&t->seq) != seq ||
	    atomic_load(&t->state) != MMR_THREAD_DONE)
		return;
	atomic_store(&t->tid, 0); /* from here on it can be claimed */
	mmr_sys_futex_wake(&t->tid, INT32_MAX);
}

/*
 * Threads of a dead process that did not reach their end.  Slots change hands
 * meanwhile: one that starts or runs and names the dead process is its own,
 * as the name comes before that state, and stays so until it is free here.
 */
static void bury_threads(uint32_t proc)
{
	struct mmr_area *a = MMR_AREA_PTR;
	struct mmr_thread_slot *t;
	uint32_t i, state, seq, n = atomic_load(&a->thread_slots);

	for (i = 0; i < n; i++) {
		t = &mmr_thread_slots()[i];
		seq = atomic_load(&t->seq);
		state = atomic_load(&t->state);
		if (t->proc_slot != proc)
			continue;
		if (state == MMR_THREAD_DONE)
			bury_done(t, seq);
		mmr_order_leave(i);
		if (state != MMR_THREAD_STARTING && state != MMR_THREAD_RUNNING)
			continue;
		if (t->thread < 256) {
			atomic_fetch_add(&a->thread_count[t->thread].done, 1);
			if (t->plain)
				mmr_flow_leave(t->thread);
			if (t->plain && !atomic_load(&t->paused))
				atomic_fetch_sub(&a->plain_left, 1);
		}
		atomic_store(&t->tid, 0);
		mmr_sys_futex_wake(&t->tid, INT32_MAX);
		atomic_store(&t->state, i < MMR_MACHINE_PTR->first_slot
						? MMR_THREAD_DONE
						: MMR_THREAD_FREE);
	}
}

/* A process is dead: once for each, whoever saw it first. */
static void bury(uint32_t slot, const union child_info *info, uint64_t now)
{
	struct mmr_area *a = MMR_AREA_PTR;
	struct mmr_proc_slot *p = &mmr_proc_slots()[slot];
	uint32_t zero = 0, sig = (uint32_t)info->s.status;

	if (atomic_load(&p->status))
		return;
	atomic_store(&p->status,
		     info->s.code << 16 | (info->s.status & 0xffff));
	mmr_proc_dead(p, now);
	bury_threads(slot);
	if (info->s.code == CLD_EXITED_CODE ||
	    (atomic_load(&p->explained) >> (sig & 31) & 1))
		return;
	if (sig == SIG_KILL) { /* the OOM killer: no finding */
		/* A case with groups of its own may want it. */
		if (!a->program.outside.memcg)
			atomic_store(&a->round_void, 1);
		return;
	}
	atomic_fetch_add(&a->crash_count, 1);
	atomic_compare_exchange_strong(&a->crash_slot, &zero, slot + 1);
}

void mmr_clean_scan(void)
{
	struct mmr_proc_slot *p = mmr_proc_slots();
	uint32_t i, n = atomic_load(&MMR_AREA_PTR->proc_slots);
	union child_info info;
	int64_t pid;

	for (i = 0; i < n; i++) {
		pid = atomic_load(&p[i].pid);
		if (!pid || atomic_load(&p[i].status) ||
		    atomic_load(&p[i].state) == MMR_PROC_FREE)
			continue;
		if (wait_child(P_PID, pid, &info, REAP_ONE | WNOWAIT) == 0 &&
		    info.s.pid)
			bury(i, &info, mmr_now());
	}
}

/* Asleep is what is left of an exit's time.  Where the run delay is not known
 * all of it could have been that: then only the CPU time counts. */
static void judge(struct mmr_proc_slot *p, uint64_t start, uint64_t ns)
{
	uint64_t within = MMR_AREA_PTR->program.exit_within_ns, delay = ns;
	uint64_t before = atomic_load(&p->delay_at_exit_ns), now;
	int64_t cpu;

	if (!within || ns < within || atomic_load(&p->held))
		return;
	cpu = mmr_sys_clock((int)((~(uint32_t)p->pid << 3) | 2));
	cpu -= (int64_t)atomic_load(&p->cpu_at_exit_ns);
	if (before != ~0ULL && atomic_load(&p->host_pid)) {
		now = mmr_procfs_delay(atomic_load(&p->host_pid));
		if (now != ~0ULL && now >= before)
			delay = now - before;
	}
	mmr_late_exit((uint32_t)(p - mmr_proc_slots()), start,
		      atomic_load(&p->exit_end), cpu > 0 ? (uint64_t)cpu : 0,
		      delay);
}

static void add_cpu(struct mmr_exit_stat *e, uint64_t ns)
{
	e->cpu_ns += ns;
	if (ns > e->cpu_max_ns)
		e->cpu_max_ns = ns;
	e->cpu_hist[mmr_hist_index(ns >> 10)]++;
}

/* What the exit of a zombie cost.  Not for what we killed ourselves. */
static void measure(struct mmr_proc_slot *p)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint64_t start = atomic_load(&p->exit_start), ns, delay;
	struct mmr_exit_stat *e;
	int64_t cpu;

	if (!start || (atomic_load(&p->explained) & MMR_EXPLAINED_QUIET) ||
	    atomic_load(&p->exit_end) < start)
		return;
	e = MMR_PART(a->exits_off, struct mmr_exit_stat);
	e += p->proc == MMR_PROC_IDLE ? a->program.nprocs : p->proc;
	ns = mmr_ns(atomic_load(&p->exit_end) - start);
	e->count++;
	e->wall_ns += ns;
	if (ns > e->max_ns)
		e->max_ns = ns;
	e->hist[mmr_hist_index(ns >> 10)]++;
	judge(p, start, ns);
	/* The CPU time at the start lacks what other threads used since the
	 * last tick; an exit itself is the work of one task. */
	cpu = mmr_sys_clock((int)((~(uint32_t)p->pid << 3) | 2));
	cpu -= (int64_t)atomic_load(&p->cpu_at_exit_ns);
	add_cpu(e, cpu < 0 ? 0 : (uint64_t)cpu < ns ? (uint64_t)cpu : ns);
	if (atomic_load(&p->delay_at_exit_ns) == ~0ULL ||
	    !atomic_load(&p->host_pid))
		return;
	delay = mmr_procfs_delay(atomic_load(&p->host_pid));
	if (delay == ~0ULL || delay < atomic_load(&p->delay_at_exit_ns))
		return;
	e->delay_ns += delay - atomic_load(&p->delay_at_exit_ns);
	e->delay_known++;
}

/* Kills what is to go and was not killed here yet (again: once more; a second
 * SIGKILL frees who is held at its exit event).  How many are to go. */
static uint32_t kill_rest(bool all, bool again)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint32_t i, left = 0, n = atomic_load(&a->proc_slots);
	struct mmr_proc_slot *p;
	int64_t pid;

	for (i = 0; i < n; i++) {
		p = &mmr_proc_slots()[i];
		if (atomic_load(&p->state) == MMR_PROC_FREE ||
		    atomic_load(&p->state) == MMR_PROC_REAPED ||
		    (!all && !mmr_proc_is_spawned(p)))
			continue;
		pid = atomic_load(&p->pid);
		left += all || pid; /* 0: claimed by one who died before */
		if (!pid || atomic_load(&p->status) ||
		    (p->pidfd == KILLED && !again))
			continue;
		if (!atomic_load(&p->exit_start)) {
			atomic_fetch_or(&p->explained, MMR_EXPLAINED_QUIET);
			mmr_proc_exit_begin(p, 0, pid);
		}
		atomic_fetch_or(&p->explained, 1u << SIG_KILL);
		mmr_sys2(__NR_kill, pid, SIG_KILL);
		p->pidfd = KILLED;
	}
	return left;
}

static int64_t find_slot(int32_t pid)
{
	struct mmr_proc_slot *p = mmr_proc_slots();
	uint32_t i, n = atomic_load(&MMR_AREA_PTR->proc_slots);

	for (i = 0; i < n; i++)
		if (atomic_load(&p[i].pid) == pid &&
		    atomic_load(&p[i].state) != MMR_PROC_FREE &&
		    atomic_load(&p[i].state) != MMR_PROC_REAPED)
			return i;
	return -1;
}

/* Reaps one zombie.  1, 0 when there is none now, -ECHILD. */
static int64_t reap_one(void)
{
	struct mmr_proc_slot *p = NULL;
	union child_info info;
	int64_t ret, slot;

	ret = wait_child(P_ALL, 0, &info, REAP_ONE | WNOWAIT);
	if (ret < 0 || !info.s.pid)
		return ret < 0 ? ret : 0;
	slot = find_slot(info.s.pid);
	if (slot >= 0) {
		p = &mmr_proc_slots()[slot];
		bury((uint32_t)slot, &info, mmr_now());
		measure(p);
	}
	wait_child(P_PID, info.s.pid, &info, REAP_ONE);
	if (p)
		atomic_store(&p->state, MMR_PROC_REAPED);
	return 1;
}

/* A process slot that was claimed and never forked goes with the others. */
static void finish(void)
{
	struct mmr_proc_slot *p = mmr_proc_slots();
	uint32_t i, n = atomic_load(&MMR_AREA_PTR->proc_slots);

	for (i = 0; i < n; i++)
		if (atomic_load(&p[i].state) != MMR_PROC_FREE)
			atomic_store(&p[i].state, MMR_PROC_REAPED);
}

/* A task in an uninterruptible sleep is waited for for ever, in slices: the
 * watcher sees that we live, and decides. */
void mmr_clean_round(bool all)
{
	struct mmr_area *a = MMR_AREA_PTR;
	uint64_t killed = mmr_now();
	bool again = false;
	uint32_t event;
	int64_t got;

	for (;;) {
		event = atomic_load(&a->event);
		if (kill_rest(all, again) == 0)
			return;
		again = false;
		while ((got = reap_one()) > 0)
			;
		if (got < 0) {
			finish();
			return;
		}
		if (kill_rest(all, false) == 0)
			return;
		mmr_sys_futex_wait(&a->event, event, MMR_SLICE_NS);
		if (mmr_ns(mmr_now() - killed) >= MMR_SLICE_NS) {
			again = true;
			killed = mmr_now();
			atomic_fetch_add(&a->event, 1);
		}
	}
}
