// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes of a case: spawn, kill, wait for the end, and what is known about
 * how they end.
 *
 * All are children of the supervisor (CLONE_PARENT), which alone reaps them,
 * at the end of the round; so no pid comes back under a case, and all of them
 * die with the supervisor even where there is no PID namespace.
 */
#include <linux/errno.h>
#include <linux/ptrace.h>

#include "child_machine.h"

#define FORK_FLAGS (17 /* SIGCHLD */ | 0x8000 /* CLONE_PARENT */)
#define CLOCK_PROCESS_OWN 2
#define POLL_IN 1
#define SIG_MAX 31
#define LATE_NS 50000 /* an end seen at once by a wait that began later */
#define FRESH_TRY_NS 500000000
#define EAGER_PIDFDS 16 /* sets up to that get their pidfds when made */

/* CPU clock of a process (kernel: CPUCLOCK_SCHED of its thread group). */
static int64_t cpu_time(int64_t pid)
{
	return mmr_sys_clock(pid ? (int)((~(uint32_t)pid << 3) | 2)
				 : CLOCK_PROCESS_OWN);
}

/* pid 0: the caller's own process. */
void mmr_proc_exit_begin(struct mmr_proc_slot *p, uint64_t now, int64_t pid)
{
	int64_t cpu;

	if (atomic_load(&p->exit_start) ||
	    atomic_load(&p->state) != MMR_PROC_RUNNING)
		return;
	cpu = cpu_time(pid);
	atomic_store(&p->delay_at_exit_ns, pid ? ~0ULL : mmr_procfs_delay(0));
	atomic_store(&p->cpu_at_exit_ns, cpu < 0 ? 0 : (uint64_t)cpu);
	atomic_store(&p->exit_start, now ? now : mmr_now());
}

void mmr_proc_dead(struct mmr_proc_slot *p, uint64_t now)
{
	uint64_t zero = 0;
	uint32_t running = MMR_PROC_RUNNING;

	atomic_compare_exchange_strong(&p->exit_end, &zero, now);
	if (!atomic_compare_exchange_strong(&p->state, &running,
					    MMR_PROC_REAPABLE))
		return;
	if (p->proc != MMR_PROC_IDLE)
		atomic_fetch_add(&MMR_AREA_PTR->proc_count[p->proc].done, 1);
	mmr_sys_futex_wake(&p->state, INT32_MAX);
}

int64_t mmr_proc_claim(uint32_t proc, uint32_t n, int32_t owner)
{
	struct mmr_area *a = MMR_AREA_PTR;
	struct mmr_proc_slot *p;
	uint32_t first, i;

	first = atomic_load(&a->proc_slots);
	do {
		if (first + n > MMR_PROC_SLOTS)
			return -EAGAIN;
	} while (!atomic_compare_exchange_weak(&a->proc_slots, &first,
					       first + n));
	for (i = 0; i < n; i++) {
		p = &mmr_proc_slots()[first + i];
		atomic_fetch_add(&p->seq, 1);
		p->proc = (uint16_t)proc;
		p->copy = (uint16_t)i;
		p->pidfd = -1;
		p->owner = owner;
		p->pid = 0;
		p->host_pid = 0;
		p->status = 0;
		p->explained = 0;
		p->held = 0;
		p->exit_start = p->exit_end = 0;
		p->cpu_at_exit_ns = p->delay_at_exit_ns = 0;
		p->mapped = 0;
		p->changes = p->changed = p->remaps = p->remapped = 0;
		if (proc != MMR_PROC_IDLE)
			atomic_fetch_add(&a->proc_count[proc].spawned, 1);
		atomic_store(&p->state, MMR_PROC_RUNNING);
	}
	return first;
}

/* What a fork that failed had been counted as. */
void mmr_proc_unclaim(uint32_t slot)
{
	struct mmr_proc_slot *p = &mmr_proc_slots()[slot];

	if (p->proc != MMR_PROC_IDLE)
		atomic_fetch_sub(&MMR_AREA_PTR->proc_count[p->proc].spawned, 1);
	atomic_store(&p->state, MMR_PROC_FREE);
}

void mmr_proc_count_threads(uint32_t proc, uint32_t delta)
{
	const struct mmr_pproc *pp;
	uint32_t i;

	if (proc == MMR_PROC_IDLE)
		return;
	pp = &mmr_pprocs()[proc];
	for (i = pp->first; i < pp->first + pp->nthreads; i++)
		if (!mmr_pthreads()[i].is_template)
			atomic_fetch_add(&MMR_AREA_PTR->thread_count[i].spawned,
					 delta);
}

static int64_t fork_one(struct mmr_child *c, uint32_t proc, uint32_t slot,
			bool vm)
{
	struct mmr_proc_slot *p = &c->procs[slot];
	struct mmr_thread_slot *s;
	int64_t leader = -1, ret;

	if (proc != MMR_PROC_IDLE || vm) {
		leader = mmr_thread_claim();
		if (leader < 0)
			return leader;
		s = &c->slots[leader];
		s->thread = proc == MMR_PROC_IDLE
				    ? MMR_THREAD_IDLE
				    : (uint16_t)mmr_thread_first(proc);
		s->proc_slot = (uint16_t)slot;
		s->parent_slot = c->slot_index + 1;
		atomic_store(&s->state, MMR_THREAD_STARTING);
	}
	atomic_store(&p->mapped, atomic_load(&c->proc->mapped));
	mmr_proc_count_threads(proc, 1);
	if (vm) {
		ret = mmr_thread_vm_process(c, slot, leader);
	} else {
		ret = mmr_sys_fork(FORK_FLAGS);
		if (ret == 0) {
			if (c->process != MMR_PROCESS_PTR)
				*MMR_PROCESS_PTR = *c->process;
			mmr_thread_process(slot, leader);
		}
	}
	if (ret < 0) {
		mmr_proc_count_threads(proc, ~0u);
		if (leader >= 0)
			atomic_store(&c->slots[leader].state, MMR_THREAD_FREE);
		return ret;
	}
	atomic_store(&p->pid, (int32_t)ret);
	return 0;
}

/* One request at a time; the supervisor answers with the first slot. */
static int64_t ask_fresh(struct mmr_child *c, uint32_t proc)
{
	struct mmr_area *a = c->area;
	uint64_t limit = c->now + mmr_ticks(FRESH_TRY_NS);
	uint32_t none = 0;
	int32_t answer;

	while (!atomic_compare_exchange_strong(&a->fresh_request, &none,
					       proc + 1)) {
		if (mmr_child_stopping(c) || mmr_child_now(c) > limit)
			return -EAGAIN;
		mmr_sys_futex_wait(&a->fresh_request, none, 1000000);
		none = 0;
	}
	mmr_event();
	while ((answer = atomic_load(&a->fresh_slot)) == 0) {
		if (mmr_child_stopping(c))
			return -EINTR; /* the end of the round clears it */
		mmr_sys_futex_wait(&a->fresh_slot, 0, MMR_SLICE_NS);
	}
	atomic_store(&a->fresh_slot, 0);
	atomic_store(&a->fresh_request, 0);
	mmr_sys_futex_wake(&a->fresh_request, 1);
	return answer < 0 ? answer : answer - 1;
}

int64_t mmr_child_process_spawn(struct mmr_child *c, const struct mmr_insn *in,
				uint32_t proc, bool fresh, bool vm)
{
	uint32_t n = 1, i;
	int64_t first, ret = 0;

	if (mmr_child_stopping(c))
		return MMR_SKIPPED;
	if (proc != MMR_PROC_IDLE) {
		n = mmr_pprocs()[proc].copies;
		if (mmr_thread_first(proc) < 0)
			return MMR_SKIPPED; /* nothing would run in it */
	}
	if (fresh) {
		first = ask_fresh(c, proc);
		if (first >= 0)
			mmr_child_set_ref(c, in->dst, MMR_REF_PROCESS, first,
					  n);
		return first < 0 ? first : 0;
	}
	first = mmr_proc_claim(proc, n, c->process->slot);
	if (first < 0)
		return first;
	for (i = 0; i < n; i++) {
		ret = fork_one(c, proc, (uint32_t)first + i, vm);
		if (ret < 0)
			break;
		if (n <= EAGER_PIDFDS)
			mmr_child_pidfd(c, (uint32_t)first + i);
	}
	if (i)
		mmr_child_set_ref(c, in->dst, MMR_REF_PROCESS, first, i);
	for (; i < n; i++)
		mmr_proc_unclaim((uint32_t)first + i);
	return ret;
}

int64_t mmr_child_pidfd(struct mmr_child *c, uint32_t slot)
{
	_Atomic uint64_t *kept = &c->process->pidfds[slot];
	struct mmr_proc_slot *p = &c->procs[slot];
	uint32_t seq = atomic_load(&p->seq);
	uint64_t old = atomic_load(kept), new;
	int64_t fd;

	if (old && (uint32_t)old == seq)
		return (int64_t)(old >> 32) - 1;
	fd = mmr_sys2(MMR_NR_pidfd_open, atomic_load(&p->pid), 0);
	if (fd < 0)
		return fd;
	new = (uint64_t)(fd + 1) << 32 | seq;
	if (!atomic_compare_exchange_strong(kept, &old, new)) {
		mmr_sys1(__NR_close, fd); /* another thread was faster */
		return (int64_t)(old >> 32) - 1;
	}
	if (old)
		mmr_sys1(__NR_close, (int64_t)(old >> 32) - 1);
	return fd;
}

/* Waits until slot is dead.  0, or -EINTR when the storm ended first. */
static int64_t wait_dead(struct mmr_child *c, uint32_t slot)
{
	struct {
		int32_t fd;
		int16_t events, revents;
	} poll = {-1, POLL_IN, 0};
	struct mmr_timespec ts;
	struct mmr_proc_slot *p = &c->procs[slot];
	bool first = true;
	uint64_t start, now;
	int64_t n;

	poll.fd = (int32_t)mmr_child_pidfd(c, slot);
	while (atomic_load(&p->state) == MMR_PROC_RUNNING) {
		if (poll.fd >= 0) {
			ts.sec = 0;
			ts.nsec = first ? 0 : MMR_SLICE_NS;
			n = mmr_sys5(__NR_ppoll, mmr_sys_ptr(&poll), 1,
				     mmr_sys_ptr(&ts), 0, 8);
			if (n > 0 && !(poll.revents & POLL_IN)) {
				/* The case closed our fd, by a stale number
				 * of its own: that is no end. */
				poll.fd = -1;
			} else if (n > 0) {
				now = mmr_child_now(c);
				start = atomic_load(&p->exit_start);
				if (first && mmr_ns(now - start) > LATE_NS)
					atomic_fetch_or(&p->explained,
							MMR_EXPLAINED_QUIET);
				mmr_proc_dead(p, now);
				return 0;
			}
		} else if (!first) { /* the supervisor says it */
			mmr_sys_futex_wait(&p->state, MMR_PROC_RUNNING,
					   MMR_SLICE_NS);
		}
		if (!first && mmr_child_stopping(c))
			return -EINTR;
		first = false;
	}
	return 0;
}

int64_t mmr_child_process_reap(struct mmr_child *c, const struct mmr_insn *in,
			       int arg)
{
	struct mmr_ref_value v;
	int64_t i, ret = 0;

	v = mmr_child_ref(c, in->arg[arg].lo, MMR_REF_PROCESS);
	if (!v.kind)
		return MMR_SKIPPED;
	for (i = 0; i < v.b && ret == 0; i++) {
		atomic_store(&c->slot->reap_slot, (uint32_t)(v.a + i) + 1);
		ret = wait_dead(c, (uint32_t)(v.a + i));
	}
	atomic_store(&c->slot->reap_slot, 0);
	return ret;
}

/* Signals whose default does not end a process: CHLD CONT STOP TSTP TTIN TTOU
 * URG WINCH. */
static bool is_fatal(int sig)
{
	const uint32_t harmless = 1u << 17 | 1u << 18 | 1u << 19 | 1u << 20 |
				  1u << 21 | 1u << 22 | 1u << 23 | 1u << 28;

	return sig > 0 && sig <= SIG_MAX && !(harmless >> sig & 1);
}

/*
 * A fatal signal begins an exit, which is timed from here; not so for a
 * process that is stopped or traced, which any signal but KILL leaves as it
 * is.
 */
static void before_signal(struct mmr_proc_slot *p, int sig)
{
	if (sig == SIG_STOP) {
		atomic_fetch_or(&p->held, MMR_HELD_STOPPED);
		atomic_fetch_add(&MMR_AREA_PTR->holds, 1);
	}
	if (sig == SIG_CONT)
		atomic_fetch_and(&p->held, ~MMR_HELD_STOPPED);
	if (!is_fatal(sig))
		return;
	atomic_fetch_or(&p->explained, 1u << sig);
	if (sig == SIG_KILL || !atomic_load(&p->held))
		mmr_proc_exit_begin(p, 0, atomic_load(&p->pid));
}

int64_t mmr_child_kill(struct mmr_child *c, const struct mmr_insn *in, int arg,
		       int sig)
{
	struct mmr_ref_value v;
	struct mmr_proc_slot *p;
	int64_t i, pid, ret, first = 0;

	v = mmr_child_ref(c, in->arg[arg].lo, MMR_REF_PROCESS | MMR_REF_PIDFD);
	if (!v.kind)
		return MMR_SKIPPED;
	if (v.kind == MMR_REF_PIDFD) {
		before_signal(&c->procs[v.b], sig);
		return mmr_sys4(MMR_NR_pidfd_send_signal, v.a, sig, 0, 0);
	}
	for (i = 0; i < v.b; i++) {
		p = &c->procs[v.a + i];
		pid = atomic_load(&p->pid);
		if (pid <= 1) /* never ours to send to */
			continue;
		before_signal(p, sig);
		ret = mmr_sys2(__NR_kill, pid, sig);
		if (ret < 0 && first == 0)
			first = ret;
	}
	return first;
}

/* Ends the process in the middle of the statement, so it is counted before. */
_Noreturn void mmr_child_exit_group(struct mmr_child *c,
				    const struct mmr_insn *in, int status)
{
	mmr_interp_count(c, in, 0, mmr_child_now(c));
	atomic_fetch_or(&c->proc->explained, MMR_EXPLAINED_EXIT);
	mmr_proc_exit_begin(c->proc, 0, 0);
	mmr_sys_exit_group(status);
}

int64_t mmr_child_pidfd_open(struct mmr_child *c, const struct mmr_insn *in,
			     int arg)
{
	struct mmr_ref_value v;
	int64_t fd;

	v = mmr_child_ref(c, in->arg[arg].lo, MMR_REF_PROCESS);
	if (!v.kind)
		return MMR_SKIPPED;
	fd = mmr_sys2(MMR_NR_pidfd_open, atomic_load(&c->procs[v.a].pid), 0);
	if (fd >= 0)
		mmr_child_set_ref(c, in->dst, MMR_REF_PIDFD, fd, v.a);
	return fd;
}

int64_t mmr_child_ptrace_seize(struct mmr_child *c, const struct mmr_insn *in,
			       int arg, uint64_t options)
{
	struct mmr_ref_value v;
	struct mmr_proc_slot *p;
	int64_t i, ret, first = 0;

	v = mmr_child_ref(c, in->arg[arg].lo, MMR_REF_PROCESS);
	if (!v.kind)
		return MMR_SKIPPED;
	for (i = 0; i < v.b; i++) {
		p = &c->procs[v.a + i];
		ret = mmr_sys4(__NR_ptrace, PTRACE_SEIZE, atomic_load(&p->pid),
			       0, (int64_t)options);
		if (ret == 0) {
			atomic_fetch_or(&p->held, MMR_HELD_TRACED);
			atomic_fetch_add(&c->area->holds, 1);
		}
		if (ret < 0 && first == 0)
			first = ret;
	}
	return first;
}
