// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads: raw clone on our own stacks, without thread-local storage, and
 * what a process does from its fork to its first statement.
 *
 * A slot in the area stands for a thread.  Those of plain threads are fixed;
 * the others are claimed, and claimed again only when the kernel has cleared
 * the tid, as the stack, which goes by the slot's number, is free only then.
 * A claimed slot still names its last process, so it has a state of its own
 * until it names the new one: the supervisor buries by that name.
 */
#include <linux/errno.h>
#include <linux/prctl.h>

#include "case.h"
#include "child_machine.h"

#define MANY 64	      /* threads that may be on their way out */
#define GONE_NS 50000 /* between two looks */
#define GONE_TRIES 2000
#define CLONE_FLAGS                                                            \
	(0x100 /* VM */ | 0x200 /* FS */ | 0x400 /* FILES */ |                 \
	 0x800 /* SIGHAND */ | 0x10000 /* THREAD */ | 0x40000 /* SYSVSEM */ |  \
	 0x100000 /* PARENT_SETTID */ | 0x200000 /* CHILD_CLEARTID */)

#define VM_FLAGS (0x100 /* VM */ | 0x8000 /* PARENT */ | 17 /* SIGCHLD */)

/* clone() whose child calls fn(arg) on the new stack and never returns. */
int64_t mmr_thread_raw_clone(uint64_t flags, uint64_t stack, void *ptid,
			     void *ctid, void (*fn)(struct mmr_child *),
			     struct mmr_child *arg);
/* Calls fn(arg) on another stack, for good. */
_Noreturn void mmr_thread_switch(uint64_t stack, void (*fn)(struct mmr_child *),
				 struct mmr_child *arg);

#if defined(__x86_64__)
__asm__(".text\n"
	".globl mmr_thread_raw_clone, mmr_thread_switch\n"
	".type mmr_thread_raw_clone, @function\n"
	".type mmr_thread_switch, @function\n"
	"mmr_thread_raw_clone:\n"
	"	.cfi_startproc\n"
	"	movq	%rcx, %r10\n"
	"	movl	$56, %eax\n"
	"	syscall\n"
	"	testl	%eax, %eax\n"
	"	jz	1f\n"
	"	cltq\n"
	"	ret\n"
	"1:	.cfi_undefined rip\n"
	"	xorl	%ebp, %ebp\n"
	"	movq	%r9, %rdi\n"
	"	call	*%r8\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	"	.size mmr_thread_raw_clone, . - mmr_thread_raw_clone\n"
	"mmr_thread_switch:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	movq	%rdi, %rsp\n"
	"	xorl	%ebp, %ebp\n"
	"	movq	%rdx, %rdi\n"
	"	call	*%rsi\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	"	.size mmr_thread_switch, . - mmr_thread_switch\n");
#else
__asm__(".text\n"
	".globl mmr_thread_raw_clone, mmr_thread_switch\n"
	".type mmr_thread_raw_clone, %function\n"
	".type mmr_thread_switch, %function\n"
	"mmr_thread_raw_clone:\n"
	"	.cfi_startproc\n"
	"	mov	x6, x5\n"
	"	mov	x5, x4\n"
	"	mov	x4, x3\n"
	"	mov	x3, #0\n"
	"	mov	x8, #220\n"
	"	svc	#0\n"
	"	cbz	x0, 1f\n"
	"	ret\n"
	"1:	.cfi_undefined x30\n"
	"	mov	x29, #0\n"
	"	mov	x30, #0\n"
	"	mov	x0, x6\n"
	"	blr	x5\n"
	"	brk	#1\n"
	"	.cfi_endproc\n"
	"	.size mmr_thread_raw_clone, . - mmr_thread_raw_clone\n"
	"mmr_thread_switch:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined x30\n"
	"	mov	sp, x0\n"
	"	mov	x29, #0\n"
	"	mov	x30, #0\n"
	"	mov	x0, x2\n"
	"	blr	x1\n"
	"	brk	#1\n"
	"	.cfi_endproc\n"
	"	.size mmr_thread_switch, . - mmr_thread_switch\n");
#endif

static uint64_t piece(uint32_t slot)
{
	return MMR_STACKS_ADDR + slot * MMR_STACK_STRIDE;
}

/* And there the context lies. */
static uint64_t stack_top(uint32_t slot)
{
	_Static_assert(sizeof(struct mmr_child) <= MMR_CONTEXT_SIZE,
		       "the context is larger than its place");
	return piece(slot) + MMR_STACK_STRIDE - MMR_CONTEXT_SIZE;
}

int64_t mmr_thread_claim(void)
{
	struct mmr_thread_slot *slots = mmr_thread_slots(), *s;
	uint32_t i, state, used;

	for (i = MMR_MACHINE_PTR->first_slot; i < MMR_THREAD_SLOTS; i++) {
		s = &slots[i];
		state = atomic_load(&s->state);
		if (state != MMR_THREAD_FREE &&
		    (state != MMR_THREAD_DONE || atomic_load(&s->tid)))
			continue;
		if (!atomic_compare_exchange_strong(&s->state, &state,
						    MMR_THREAD_CLAIMED))
			continue;
		used = atomic_load(&MMR_AREA_PTR->thread_slots);
		while (used <= i &&
		       !atomic_compare_exchange_weak(
			       &MMR_AREA_PTR->thread_slots, &used, i + 1))
			;
		return i;
	}
	return -EAGAIN;
}

/* A new round begins for the thread (in a kept process: another one). */
static void begin_round(struct mmr_child *c)
{
	c->serial = atomic_load(&c->area->round);
	c->round = c->program->first_round + c->serial - 1;
	c->counted = 0;
	atomic_store(&c->slot->paused, 0);
}

struct mmr_child *mmr_thread_prepare(uint32_t slot, uint32_t thread,
				     uint32_t proc, uint32_t parent)
{
	struct mmr_child *c = MMR_AT(stack_top(slot), struct mmr_child);
	struct mmr_thread_slot *s = &mmr_thread_slots()[slot];
	const struct mmr_pproc *pp;

	s->thread = (uint16_t)thread;
	s->proc_slot = (uint16_t)proc;
	s->parent_slot = parent;
	s->plain = 0;
	atomic_fetch_add(&s->seq, 1);
	atomic_store_explicit(&s->stmt, 0, memory_order_relaxed);
	/* From here on it is that process's, to be buried with it. */
	atomic_store_explicit(&s->state, MMR_THREAD_STARTING,
			      memory_order_release);
	c->slot = s;
	c->thread = thread;
	if (thread == MMR_THREAD_IDLE)
		return c;
	atomic_store_explicit(&s->faults, 0, memory_order_relaxed);
	atomic_store_explicit(&s->address, 0, memory_order_relaxed);
	s->host_pid = s->host_tid = 0;
	s->join_slot = s->reap_slot = 0;
	s->cpu = -1;
	c->area = MMR_AREA_PTR;
	c->program = &c->area->program;
	c->machine = MMR_MACHINE_PTR;
	c->process = MMR_PROCESS_PTR;
	c->slots = mmr_thread_slots();
	c->procs = mmr_proc_slots();
	c->stats = MMR_PART(c->area->stats_off, struct mmr_stat);
	c->proc = &c->procs[proc];
	c->slot_index = slot;
	c->segv = mmr_pthreads()[thread].segv;
	pp = &mmr_pprocs()[mmr_pthreads()[thread].proc];
	c->plain = !pp->is_template && !mmr_pthreads()[thread].is_template;
	c->ordered = c->plain && c->program->order;
	s->plain = c->plain;
	c->shared_stats = !c->plain || pp->copies > 1;
	c->hist_shift = c->area->hist_shift;
	c->fault = 0;
	c->spawned = 0;
	c->mark_tid = 0;
	c->once = 0;
	begin_round(c);
	return c;
}

/* Pins the thread as its case says; when it says nothing, takes back what it
 * inherited from a pinned spawner. */
static void place(struct mmr_child *c)
{
	const struct mmr_program *p = c->program;
	int cpu = c->machine->cpu[c->thread];
	uint64_t mask[16] = {0};
	uint32_t i;

	if (cpu >= 0) {
		mask[(cpu >> 6) & 15] |= 1ULL << (cpu & 63);
		atomic_store(&c->slot->cpu, cpu);
	} else {
		if (!c->slot->parent_slot ||
		    c->slots[c->slot->parent_slot - 1].cpu < 0)
			return;
		for (i = 0; i < p->ncpus; i++)
			mask[(p->cpus[i] >> 6) & 15] |= 1ULL
							<< (p->cpus[i] & 63);
	}
	mmr_sys3(__NR_sched_setaffinity, 0, sizeof(mask), mmr_sys_ptr(mask));
}

static void publish(struct mmr_child *c)
{
	int32_t pid, tid;

	mmr_procfs_ids(&pid, &tid);
	atomic_store(&c->slot->host_pid, pid);
	atomic_store(&c->slot->host_tid, tid);
	atomic_store(&c->proc->host_pid, pid);
}

static void set_up(struct mmr_child *c)
{
	struct {
		uint64_t sp;
		int32_t flags;
		uint64_t size;
	} alt = {piece(c->slot_index), 0, MMR_ALTSTACK_SIZE};

	mmr_sys2(__NR_sigaltstack, mmr_sys_ptr(&alt), 0);
	place(c);
	publish(c);
}

/* Counted before the state says so: who dies in between is counted again by
 * the supervisor, which does no harm, while a thread never counted would. */
static void done(struct mmr_child *c)
{
	struct mmr_process *p = c->process;

	atomic_fetch_add(&c->area->thread_count[c->thread].done, 1);
	if (c->plain)
		mmr_flow_leave(c->thread);
	if (c->ordered)
		mmr_order_leave(c->slot_index);
	atomic_store(&c->slot->state, MMR_THREAD_DONE);
	mmr_flow_release(c);
	if (mmr_pthreads()[c->thread].is_template)
		return;
	if (atomic_fetch_sub(&p->plain_live, 1) == 1)
		mmr_sys_futex_wake(&p->plain_live, 1);
}

/* In a kept process a plain thread waits here for the next round. */
static void next_round(struct mmr_child *c)
{
	while (atomic_load(&c->area->round) == c->serial)
		mmr_sys_futex_wait(&c->area->round, (uint32_t)c->serial,
				   MMR_SLICE_NS);
	begin_round(c);
	atomic_store(&c->slot->state, MMR_THREAD_RUNNING);
}

static void body(struct mmr_child *c)
{
	set_up(c);
	atomic_store(&c->slot->state, MMR_THREAD_RUNNING);
	for (;;) {
		mmr_interp_run(c);
		done(c);
		if (!c->program->keep || !c->plain)
			return;
		next_round(c);
	}
}

static void thread_main(struct mmr_child *c)
{
	if (c->thread == MMR_THREAD_IDLE)
		atomic_store(&c->slot->state, MMR_THREAD_DONE);
	else
		body(c);
	mmr_sys_exit(0);
}

int64_t mmr_thread_clone(struct mmr_child *ctx)
{
	struct mmr_thread_slot *s = ctx->slot;

	return mmr_thread_raw_clone(CLONE_FLAGS, (uint64_t)(uintptr_t)ctx,
				    &s->tid, &s->tid, thread_main, ctx);
}

int mmr_thread_first(uint32_t proc)
{
	const struct mmr_pproc *pp = &mmr_pprocs()[proc];
	uint32_t i;

	for (i = 0; i < pp->nthreads; i++)
		if (!mmr_pthreads()[pp->first + i].is_template)
			return (int)(pp->first + i);
	return -1;
}

uint32_t mmr_thread_plain(uint32_t proc)
{
	const struct mmr_pproc *pp = &mmr_pprocs()[proc];
	uint32_t i, n = 0;

	for (i = 0; i < pp->nthreads; i++)
		n += !mmr_pthreads()[pp->first + i].is_template;
	return n;
}

int64_t mmr_thread_slot(uint32_t thread, uint32_t copy)
{
	const struct mmr_pthread *t = &mmr_pthreads()[thread];
	uint64_t slot;

	if (t->slot < 0)
		return mmr_thread_claim();
	slot = (uint64_t)t->slot + (uint64_t)copy * mmr_thread_plain(t->proc);
	return slot < MMR_THREAD_SLOTS ? (int64_t)slot : -EAGAIN;
}

/* The other plain threads of a process.  One that cannot be started is done
 * at once, and makes the round void. */
static void start_others(struct mmr_child *leader)
{
	const struct mmr_pproc *pp = &mmr_pprocs()[leader->process->proc];
	uint32_t t, proc = (uint32_t)leader->process->slot;
	const struct mmr_pthread *pt;
	struct mmr_child *c;
	int64_t slot;

	for (t = leader->thread + 1; t < pp->first + pp->nthreads; t++) {
		pt = &mmr_pthreads()[t];
		if (pt->is_template)
			continue;
		slot = mmr_thread_slot(t, leader->proc->copy);
		if (slot >= 0) {
			c = mmr_thread_prepare((uint32_t)slot, t, proc,
					       leader->slot->parent_slot);
			c->process = leader->process;
			if (mmr_thread_clone(c) >= 0)
				continue;
			c->slot->state = MMR_THREAD_FREE;
		}
		atomic_store(&leader->area->round_void, 1);
		atomic_fetch_add(&leader->area->thread_count[t].done, 1);
		atomic_fetch_sub(&leader->process->plain_live, 1);
		if (leader->plain) {
			mmr_flow_leave(t);
			atomic_fetch_sub(&leader->area->plain_left, 1);
		}
	}
}

/* The first plain thread of a process, in its leader.  It is the last to go:
 * /proc shows little of a process whose leader has ended. */
static void leader_main(struct mmr_child *c)
{
	uint32_t live;

	atomic_store(&c->slot->tid, (int32_t)mmr_sys0(__NR_gettid));
	start_others(c);
	body(c);
	while ((live = atomic_load(&c->process->plain_live)) != 0)
		mmr_sys_futex_wait(&c->process->plain_live, live, MMR_SLICE_NS);
	atomic_fetch_or(&c->proc->explained, MMR_EXPLAINED_EXIT);
	mmr_proc_exit_begin(c->proc, 0, 0);
	mmr_sys_exit_group(0);
}

/* A fork of a process whose other threads wrote refs just then leaves halves;
 * nobody will finish them. */
static void mend_refs(struct mmr_process *pr, uint32_t n)
{
	uint32_t i, seq;

	for (i = 0; i < n; i++) {
		seq = atomic_load(&pr->refs[i].seq);
		if (!(seq & 1))
			continue;
		atomic_store(&pr->refs[i].kind, MMR_REF_NONE);
		atomic_store(&pr->refs[i].seq, seq + 1);
	}
}

_Noreturn void mmr_thread_process(uint32_t slot, int64_t leader)
{
	struct mmr_proc_slot *p = &mmr_proc_slots()[slot];
	const struct mmr_machine *m = MMR_MACHINE_PTR;
	struct mmr_process *pr = MMR_PROCESS_PTR;
	struct mmr_child *c;
	uint32_t parent;

	if (m->no_namespace) {
		mmr_sys2(__NR_prctl, PR_SET_PDEATHSIG, 9);
		if (mmr_sys0(__NR_getppid) != m->supervisor)
			mmr_sys_exit_group(0);
	}
	atomic_store(&p->pid, (int32_t)mmr_sys0(__NR_getpid));
	if (leader < 0) {
		for (;;)
			mmr_sys5(__NR_ppoll, 0, 0, 0, 0, 0);
	}
	pr->slot = (int32_t)slot;
	pr->proc = p->proc;
	mend_refs(pr, MMR_AREA_PTR->program.nrefs);
	atomic_store(&pr->plain_live, mmr_thread_plain(p->proc));
	parent = mmr_thread_slots()[leader].parent_slot;
	c = mmr_thread_prepare((uint32_t)leader,
			       (uint32_t)mmr_thread_first(p->proc), slot,
			       parent);
	mmr_content_forked(c);
	mmr_thread_switch(stack_top((uint32_t)leader), leader_main, c);
}

static void sleep_for_good(void)
{
	for (;;)
		mmr_sys5(__NR_ppoll, 0, 0, 0, 0, 0);
}

static void vm_main(struct mmr_child *c)
{
	const struct mmr_machine *m = MMR_MACHINE_PTR;

	if (m->no_namespace) {
		mmr_sys2(__NR_prctl, PR_SET_PDEATHSIG, 9);
		if (mmr_sys0(__NR_getppid) != m->supervisor)
			mmr_sys_exit_group(0);
	}
	if (c->thread == MMR_THREAD_IDLE)
		sleep_for_good();
	atomic_store(&c->proc->pid, (int32_t)mmr_sys0(__NR_getpid));
	leader_main(c);
}

int64_t mmr_thread_vm_process(struct mmr_child *c, uint32_t slot,
			      int64_t leader)
{
	struct mmr_proc_slot *p = &mmr_proc_slots()[slot];
	struct mmr_process *pr;
	struct mmr_child *n;
	uint32_t thread = MMR_THREAD_IDLE;

	_Static_assert(sizeof(struct mmr_process) <= MMR_VM_STRIDE,
		       "a process is larger than its place");
	if (slot >= MMR_VM_PROCS)
		return -EAGAIN;
	pr = MMR_AT(MMR_VM_ADDR + slot * MMR_VM_STRIDE, struct mmr_process);
	if (p->proc != MMR_PROC_IDLE) {
		*pr = *c->process; /* refs as of now, as in a fork */
		pr->slot = (int32_t)slot;
		pr->proc = p->proc;
		mend_refs(pr, MMR_AREA_PTR->program.nrefs);
		atomic_store(&pr->plain_live, mmr_thread_plain(p->proc));
		thread = (uint32_t)mmr_thread_first(p->proc);
	}
	n = mmr_thread_prepare((uint32_t)leader, thread, slot,
			       c->slot_index + 1);
	n->process = pr;
	return mmr_thread_raw_clone(VM_FLAGS, (uint64_t)(uintptr_t)n, NULL,
				    NULL, vm_main, n);
}

/*
 * A thread that is joined wants a CPU once more to be gone.  On a busy one
 * those of a loop pile up, until nothing can be started beside them: now and
 * then the one of MANY before has to be gone.
 */
static void wait_for_gone(struct mmr_child *c, uint32_t slot, int32_t tid)
{
	int64_t pid = mmr_sys0(__NR_getpid);
	int i;

	for (i = 0; c->mark_tid && i < GONE_TRIES && !mmr_child_stopping(c) &&
		    atomic_load(&c->slots[c->mark_slot].tid) != c->mark_tid &&
		    !mmr_sys3(__NR_tgkill, pid, c->mark_tid, 0);
	     i++)
		mmr_sys_nanosleep(GONE_NS);
	c->mark_slot = slot;
	c->mark_tid = tid;
}

int64_t mmr_child_thread_spawn(struct mmr_child *c, const struct mmr_insn *in,
			       uint32_t thread)
{
	struct mmr_child *n;
	int64_t slot, ret;
	uint32_t seq;

	if (mmr_child_stopping(c))
		return MMR_SKIPPED;
	slot = mmr_thread_claim();
	if (slot < 0)
		return slot;
	n = mmr_thread_prepare((uint32_t)slot, thread,
			       (uint32_t)c->process->slot, c->slot_index + 1);
	n->process = c->process;
	seq = atomic_load(&n->slot->seq);
	if (thread < 256)
		atomic_fetch_add(&c->area->thread_count[thread].spawned, 1);
	ret = mmr_thread_clone(n);
	if (ret < 0) {
		if (thread < 256)
			atomic_fetch_sub(&c->area->thread_count[thread].spawned,
					 1);
		atomic_store(&n->slot->tid, 0);
		atomic_store(&n->slot->state, MMR_THREAD_FREE);
		return ret;
	}
	mmr_child_set_ref(c, in->dst, MMR_REF_THREAD, slot, seq);
	if (++c->spawned % MANY == 0)
		wait_for_gone(c, (uint32_t)slot, (int32_t)ret);
	return 0;
}

static int64_t pin(int32_t tid, int cpu)
{
	uint64_t mask[16] = {0};

	mask[(cpu >> 6) & 15] = 1ULL << (cpu & 63);
	return mmr_sys3(__NR_sched_setaffinity, tid, sizeof(mask),
			mmr_sys_ptr(mask));
}

/* The CPU of the program after this one, -1 (unpinned) any. */
static int next_cpu(const struct mmr_program *p, int cpu)
{
	uint32_t i;

	for (i = 0; i < p->ncpus && p->cpus[i] != cpu; i++)
		;
	return p->cpus[(i + 1) % p->ncpus];
}

int64_t mmr_child_move_threads(struct mmr_child *c)
{
	uint32_t i, n = atomic_load(&c->area->thread_slots);
	int64_t moved = 0;
	int32_t tid;
	int cpu;

	if (c->program->ncpus < 2)
		return -ENODEV;
	for (i = 0; i < n; i++) {
		tid = atomic_load(&c->slots[i].tid);
		if (c->slots[i].proc_slot != c->slot->proc_slot ||
		    &c->slots[i] == c->slot || !tid ||
		    atomic_load(&c->slots[i].state) != MMR_THREAD_RUNNING)
			continue;
		cpu = next_cpu(c->program, atomic_load(&c->slots[i].cpu));
		if (pin(tid, cpu) < 0)
			continue; /* it has just ended */
		atomic_store(&c->slots[i].cpu, cpu);
		moved++;
	}
	return moved;
}

int64_t mmr_child_thread_join(struct mmr_child *c, const struct mmr_insn *in,
			      int arg)
{
	struct mmr_ref_value v;
	struct mmr_thread_slot *s;
	int32_t tid;
	int64_t ret = 0;

	v = mmr_child_ref(c, in->arg[arg].lo, MMR_REF_THREAD);
	if (!v.kind)
		return MMR_SKIPPED;
	s = &c->slots[v.a];
	atomic_store(&c->slot->join_slot, (uint32_t)v.a + 1);
	while ((tid = atomic_load(&s->tid)) != 0 &&
	       atomic_load(&s->seq) == (uint32_t)v.b) {
		if (mmr_child_stopping(c)) {
			ret = -EINTR;
			break;
		}
		mmr_sys_futex_wait(&s->tid, (uint32_t)tid, MMR_SLICE_NS);
	}
	atomic_store(&c->slot->join_slot, 0);
	return ret;
}
