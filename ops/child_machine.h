/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the machine (child_*.c) need of each other; op families
 * use child.h alone.
 *
 * Permanent memory lies at fixed low addresses, apart from where the kernel
 * puts mappings of its own choice: a stale munmap of a case never hits it.
 * The area is shared; everything else is private and copied by fork.  It ends
 * where the area begins, which saves a gap: see child_image.h.
 */
#ifndef MMR_OPS_CHILD_MACHINE_H
#define MMR_OPS_CHILD_MACHINE_H

#include "child.h"

#define MMR_CHILD_SIZE (0x300000UL + MMR_STACK_STRIDE * MMR_THREAD_SLOTS)
#define MMR_CHILD_BASE (MMR_AREA_ADDR - MMR_CHILD_SIZE)
#define MMR_SUPER_ADDR MMR_CHILD_BASE
/* The plans that count, then the process's refs, in one page. */
#define MMR_PROCESS_ADDR (MMR_CHILD_BASE + 0x10800)
#define MMR_MACHINE_ADDR (MMR_PROCESS_ADDR - sizeof(struct mmr_machine))
/* What a process that shares its spawner's memory has instead, by proc slot. */
#define MMR_VM_ADDR (MMR_CHILD_BASE + 0x100000)
#define MMR_VM_STRIDE 0x8000UL
#define MMR_VM_PROCS 64
/* One piece a thread slot: the alternate signal stack, the stack, and on top
 * the context, in one page with the start of the stack.  Aligned to its size,
 * so that a signal handler finds the context from its own stack pointer. */
#define MMR_STACKS_ADDR (MMR_CHILD_BASE + 0x300000)
#define MMR_STACK_STRIDE 0x10000UL
#define MMR_ALTSTACK_SIZE 0x8000UL
#define MMR_CONTEXT_SIZE 512UL

#define MMR_AT(addr, type) ((type *)(uintptr_t)(addr))
#define MMR_AREA_PTR MMR_AT(MMR_AREA_ADDR, struct mmr_area)
#define MMR_MACHINE_PTR MMR_AT(MMR_MACHINE_ADDR, struct mmr_machine)
#define MMR_PROCESS_PTR MMR_AT(MMR_PROCESS_ADDR, struct mmr_process)
#define MMR_SUPER_PTR MMR_AT(MMR_SUPER_ADDR, struct mmr_super)
#define MMR_PART(off, type) MMR_AT(MMR_AREA_ADDR + (off), type)

/* The kernel's numbers, the same on every architecture here. */
#define SIG_KILL 9
#define SIG_CONT 18
#define SIG_STOP 19

#define MMR_EXPLAINED_QUIET 1u /* bit 0 of `explained` */
#define MMR_EXPLAINED_EXIT (1u << 31)

/* A new process counts as started by the supervisor. */
#define MMR_OWNER_NONE (-1)

/* Of the supervisor alone; the signal handler counts SIGCHLD here. */
struct mmr_super {
	_Atomic uint32_t sigchld;
	uint32_t seen;	       /* sigchld when it last looked for the dead */
	uint64_t scanned;      /* ticks then */
	uint64_t begin;	       /* ticks at the start of the first round */
	uint64_t end_seen;     /* ticks when it first saw MMR_CTL_END */
	uint32_t failed_forks; /* in a row */
};

/* child_main.c.  Writes the sentence, state FAILED, and ends. */
_Noreturn void mmr_main_fail(const char *text, int64_t err);
/* child_super.c: runs all rounds. */
_Noreturn void mmr_super_run(void);
/* Forks process `proc` (idle too) into proc slot `slot`; supervisor only. */
int64_t mmr_super_fork(uint32_t proc, uint32_t copy, uint32_t slot);
/* child_clean.c: looks which processes died, counts what they leave. */
void mmr_clean_scan(void);
/* Kills and reaps what the round left, all: kept processes too; returns when
 * it has gone. */
void mmr_clean_round(bool all);

/* child_table.c: the descriptor of an op id, NULL when there is none. */
const struct mmr_op *mmr_table_op(unsigned int id);
void mmr_table_plan(struct mmr_plan *plan, const struct mmr_op *op);

/* child_interp.c: runs the statements of c's thread once. */
void mmr_interp_run(struct mmr_child *c);
/* Counts an operation that began at c->now: statistics and ring. */
void mmr_interp_count(struct mmr_child *c, const struct mmr_insn *in,
		      int64_t ret, uint64_t end);

/* child_late.c.  Before and after a statement that has a limit (in->within), and
 * of an exit: what took too long is put down for the watcher. */
void mmr_late_begin(struct mmr_child *c, const struct mmr_insn *in);
void mmr_late_end(struct mmr_child *c, const struct mmr_insn *in, uint64_t end);
void mmr_late_exit(uint32_t proc_slot, uint64_t start, uint64_t end,
		   uint64_t cpu_ns, uint64_t delay_ns);

/* child_thread.c.  A free thread slot, -EAGAIN when there is none. */
int64_t mmr_thread_claim(void);
/* Makes slot ready for program thread `thread` of proc slot `proc`. */
struct mmr_child *mmr_thread_prepare(uint32_t slot, uint32_t thread,
				     uint32_t proc, uint32_t parent);
/* Starts it in this process; tid or -errno. */
int64_t mmr_thread_clone(struct mmr_child *ctx);
/* The forked process becomes proc slot `slot`: never returns.  leader: its
 * first plain thread's slot, -1: an idle process. */
_Noreturn void mmr_thread_process(uint32_t slot, int64_t leader);
/* The same for one that shares the memory of c's process (CLONE_VM), which
 * starts it: its pid or -errno.  leader: as above, or a slot to sleep in. */
int64_t mmr_thread_vm_process(struct mmr_child *c, uint32_t slot,
			      int64_t leader);
/* First plain thread of a program process, -1 when it has none; how many. */
int mmr_thread_first(uint32_t proc);
uint32_t mmr_thread_plain(uint32_t proc);
/* The slot for a plain thread of copy `copy` of its process: its own, or in a
 * template a claimed one; -EAGAIN when there is none. */
int64_t mmr_thread_slot(uint32_t thread, uint32_t copy);
/* child_flow.c: a thread of that program thread, at its end or dead, leaves
 * every rendezvous that it names. */
void mmr_flow_leave(uint32_t thread);
/* It no longer holds the round open; the last one wakes the supervisor. */
void mmr_flow_release(struct mmr_child *c);

/* child_order.c.  Draws the priorities of a round; supervisor. */
void mmr_order_begin(void);
/* Before and after each operation of an ordered thread. */
void mmr_order_before(struct mmr_child *c, const struct mmr_insn *in);
void mmr_order_after(struct mmr_child *c, const struct mmr_insn *in);
/* The thread of that slot is at its end. */
void mmr_order_leave(uint32_t slot);

/* child_proc.c.  n adjacent proc slots, set up; first index or -EAGAIN. */
int64_t mmr_proc_claim(uint32_t proc, uint32_t n, int32_t owner);
/* The process of slot p begins to die now: p's time and CPU time. */
void mmr_proc_exit_begin(struct mmr_proc_slot *p, uint64_t now, int64_t pid);
/* Takes back a slot whose fork failed. */
void mmr_proc_unclaim(uint32_t slot);
/* Counts (delta 1) or uncounts (~0) the plain threads of a process as spawned.
 */
void mmr_proc_count_threads(uint32_t proc, uint32_t delta);
/* Marks slot p dead; whoever comes first counts it. */
void mmr_proc_dead(struct mmr_proc_slot *p, uint64_t now);

/* child_content.c: an operation of a case that expects content; a process that
 * was just forked; a new round. */
int64_t mmr_content_run(struct mmr_child *c, const struct mmr_insn *in);
void mmr_content_forked(struct mmr_child *c);
void mmr_content_reset(void);
bool mmr_content_hit(void);
extern const char mmr_content_begin[], mmr_content_exit[];

/* child_cgroup.c: for the supervisor, in calm and between rounds. */
void mmr_cgroup_thaw_all(void);
void mmr_cgroup_remove_all(void);

/* child_touch.c: handlers of SIGSEGV and SIGBUS, for all that is forked. */
void mmr_touch_install(void);
void mmr_sigaction(int sig, void (*handler)(int, void *, void *),
		   uint64_t flags);

/* child_procfs.c.  Numbers as the procfs of the engine shows them. */
void mmr_procfs_ids(int32_t *pid, int32_t *tid);
/* Run delay of a task (0: the calling thread), ns; ~0 unknown. */
uint64_t mmr_procfs_delay(int32_t host_pid);
/* ppid of the caller there, 0 unknown. */
int64_t mmr_procfs_ppid(void);

static inline struct mmr_thread_slot *mmr_thread_slots(void)
{
	return MMR_PART(MMR_AREA_PTR->threads_off, struct mmr_thread_slot);
}

static inline struct mmr_proc_slot *mmr_proc_slots(void)
{
	return MMR_PART(MMR_AREA_PTR->procs_off, struct mmr_proc_slot);
}

static inline const struct mmr_pproc *mmr_pprocs(void)
{
	return MMR_PART(MMR_AREA_PTR->program.procs_off,
			const struct mmr_pproc);
}

static inline const struct mmr_pthread *mmr_pthreads(void)
{
	return MMR_PART(MMR_AREA_PTR->program.threads_off,
			const struct mmr_pthread);
}

static inline const struct mmr_psync *mmr_psyncs(void)
{
	return MMR_PART(MMR_AREA_PTR->program.syncs_off,
			const struct mmr_psync);
}

static inline const struct mmr_insn *mmr_insns(void)
{
	return MMR_PART(MMR_AREA_PTR->program.insns_off, const struct mmr_insn);
}

static inline uint64_t mmr_now(void)
{
	if (MMR_AREA_PTR->clock.source == MMR_CLOCK_COUNTER)
		return mmr_clock_counter();
	return mmr_sys_clock_raw();
}

static inline uint64_t mmr_ticks(uint64_t ns)
{
	return mmr_clock_from_ns(&MMR_AREA_PTR->clock, ns);
}

static inline uint64_t mmr_ns(uint64_t ticks)
{
	return mmr_clock_to_ns(&MMR_AREA_PTR->clock, ticks);
}

/* Not a plain process: it goes with its round, keep or not. */
static inline bool mmr_proc_is_spawned(const struct mmr_proc_slot *p)
{
	return p->proc == MMR_PROC_IDLE || mmr_pprocs()[p->proc].is_template;
}

/* Wakes the supervisor. */
static inline void mmr_event(void)
{
	atomic_fetch_add(&MMR_AREA_PTR->event, 1);
	mmr_sys_futex_wake(&MMR_AREA_PTR->event, 1);
}

#endif
