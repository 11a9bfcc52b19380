// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mmrace-child: its start.  Called as `mmrace-child PID` with the area on file
 * descriptor 3; PID is the engine, as /proc shows it.
 *
 *   holder       child of the engine's spawner thread; dies with it, waits
 *    supervisor  first process of a PID namespace; dies with the holder
 *     processes  of the case; die with the supervisor
 *
 * Where namespaces are not allowed, the parent-death signal does the last
 * step too.
 */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/prctl.h>
#include <linux/wait.h>

#include "case.h"
#include "child_image.h"
#include "child_machine.h"

#define CLONE_NEWUSER_FLAG 0x10000000
#define CLONE_NEWPID_FLAG 0x20000000
#define SIG_CHLD 17
#define SEEK_END_VALUE 2
#define PROT_RW 3
#define MAP_SHARED_FIXED 0x11
#define MAP_PRIVATE_FIXED (0x12 | 0x20 | 0x4000) /* anonymous, no reserve */
#define MADV_NOHUGEPAGE_VALUE 15
#define RLIMIT_CORE_VALUE 4
#define RLIMIT_NOFILE_VALUE 7
#define EXIT_OWN_FAULT 3
#define CORE_BYTES (16UL << 20)
#define SPINS 2000 /* about 100 us */
#define SPINS_CROWDED 100

_Noreturn void mmr_main_start(const uint64_t *stack);

#if defined(__x86_64__)
__asm__(".text\n"
	".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	xorl	%ebp, %ebp\n"
	"	movq	%rsp, %rdi\n"
	"	andq	$-16, %rsp\n"
	"	call	mmr_main_start\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	"	.size _start, . - _start\n");
#else
__asm__(".text\n"
	".globl _start\n"
	".type _start, %function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined x30\n"
	"	mov	x29, #0\n"
	"	mov	x30, #0\n"
	"	mov	x0, sp\n"
	"	bl	mmr_main_start\n"
	"	brk	#1\n"
	"	.cfi_endproc\n"
	"	.size _start, . - _start\n");
#endif

static char *append(char *out, const char *end, const char *s)
{
	while (*s && out < end)
		*out++ = *s++;
	return out;
}

/* "TEXT (error N)" */
static void say(const char *text, int64_t err)
{
	struct mmr_area *a = MMR_AREA_PTR;
	char digits[12], *out = a->fail_text;
	const char *end = out + sizeof(a->fail_text) - 1;
	int n = sizeof(digits);

	digits[--n] = 0;
	if (err < 0)
		err = -err;
	do {
		digits[--n] = (char)('0' + err % 10);
		err /= 10;
	} while (err && n);
	out = append(out, end, text);
	out = append(out, end, " (error ");
	out = append(out, end, digits + n);
	out = append(out, end, ")");
	*out = 0;
	atomic_store(&a->state, MMR_STATE_FAILED);
	mmr_sys_futex_wake(&a->state, INT32_MAX);
}

_Noreturn void mmr_main_fail(const char *text, int64_t err)
{
	say(text, err);
	mmr_sys_exit_group(EXIT_OWN_FAULT);
}

/* Maps the area, or ends: there is nowhere to say why. */
static void map_area(void)
{
	int64_t size, at;

	size = mmr_sys3(__NR_lseek, MMR_AREA_FD, 0, SEEK_END_VALUE);
	if (size < (int64_t)sizeof(struct mmr_area))
		mmr_sys_exit_group(EXIT_OWN_FAULT);
	at = mmr_sys6(__NR_mmap, MMR_AREA_ADDR, size, PROT_RW, MAP_SHARED_FIXED,
		      MMR_AREA_FD, 0);
	if (at < 0 || MMR_AREA_PTR->magic != MMR_AREA_MAGIC ||
	    MMR_AREA_PTR->size > (uint64_t)size)
		mmr_sys_exit_group(EXIT_OWN_FAULT);
	if (MMR_AREA_PTR->version != MMR_AREA_VERSION)
		mmr_main_fail("mmrace and mmrace-child are of different builds",
			      0);
	mmr_sys1(__NR_close, MMR_AREA_FD);
}

static void map_own(void)
{
	int64_t at;

	at = mmr_sys6(__NR_mmap, MMR_CHILD_BASE, MMR_CHILD_SIZE, PROT_RW,
		      MAP_PRIVATE_FIXED, -1, 0);
	if (at < 0)
		mmr_main_fail("no memory for mmrace-child", at);
	/* A huge page here would be zeroed, and copied, by every fork. */
	mmr_sys3(__NR_madvise, MMR_CHILD_BASE, MMR_CHILD_SIZE,
		 MADV_NOHUGEPAGE_VALUE);
}

/* Another CPU than that at index `at`: on the same core, on another node, or
 * the next one where there is none of these. */
static uint32_t other_cpu(uint32_t at, uint32_t kind)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;
	uint32_t i, k;

	for (k = 1; k < p->ncpus; k++) {
		i = (at + k) % p->ncpus;
		if ((kind == MMR_CPU_SIBLING && p->cores[i] == p->cores[at]) ||
		    (kind == MMR_CPU_FAR && p->nodes[i] != p->nodes[at]))
			return i;
	}
	return (at + 1) % p->ncpus;
}

/* The index of thread t's CPU, by a chain of relations that the case's check
 * has found to end. */
static uint32_t cpu_index(uint32_t t, uint32_t depth)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;
	const struct mmr_pthread *pt = &mmr_pthreads()[t];
	uint32_t at;

	if (pt->cpu_kind == MMR_CPU_NUMBER)
		return (uint32_t)pt->cpu_arg % p->ncpus;
	if (pt->cpu_kind == MMR_CPU_ANY || depth > p->nthreads)
		return t % p->ncpus;
	at = cpu_index((uint32_t)pt->cpu_arg, depth + 1);
	return pt->cpu_kind == MMR_CPU_SAME ? at : other_cpu(at, pt->cpu_kind);
}

/* Which CPU thread t of the program goes to, -1 none.  One that another is
 * placed relative to has a place too, or the relation would mean nothing. */
static int cpu_of(uint32_t t)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;
	uint32_t i;

	if (mmr_pthreads()[t].cpu_kind == MMR_CPU_ANY) {
		for (i = 0; i < p->nthreads; i++)
			if (mmr_pthreads()[i].cpu_kind >= MMR_CPU_SAME &&
			    (uint32_t)mmr_pthreads()[i].cpu_arg == t)
				break;
		if (i == p->nthreads)
			return -1;
	}
	return p->cpus[cpu_index(t, 0)];
}

/* Which rendezvous thread t names. */
static uint64_t syncs_of(uint32_t t)
{
	const struct mmr_pthread *pt = &mmr_pthreads()[t];
	const struct mmr_insn *in = mmr_insns() + pt->first;
	uint64_t mask = 0;
	uint32_t i;

	for (i = 0; i < pt->ninsn; i++, in++)
		if (in->op == MMR_OP_sync)
			mask |= 1ULL << ((uint32_t)in->arg[0].lo & 63);
	return mask;
}

/*
 * How long to wait busy for the others of rendezvous s.  Where they may need
 * this very CPU, not at all; where other threads of the case do, a moment.
 */
static uint32_t spins_of(const struct mmr_machine *m, uint32_t s)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;
	uint32_t t, i, all = 0, copies, parties = mmr_psyncs()[s].parties;
	int16_t cpus[64];
	uint32_t n = 0;

	if (parties > p->ncpus)
		return 0;
	for (t = 0; t < p->nthreads; t++) {
		if (mmr_pthreads()[t].is_template ||
		    mmr_pprocs()[mmr_pthreads()[t].proc].is_template)
			continue;
		copies = mmr_pprocs()[mmr_pthreads()[t].proc].copies;
		all += copies;
		if (!(m->syncs[t] >> s & 1) || m->cpu[t] < 0)
			continue;
		if (copies > 1)
			return 0;
		for (i = 0; i < n; i++)
			if (cpus[i] == m->cpu[t])
				return 0;
		if (n < 64)
			cpus[n++] = m->cpu[t];
	}
	return all > p->ncpus ? SPINS_CROWDED : SPINS;
}

/* The compiler does not know which ops have a way of their own; mmap has one
 * for fixed addresses alone. */
static void keep_own_ways(uint32_t n)
{
	struct mmr_insn *in =
		MMR_PART(MMR_AREA_PTR->program.insns_off, struct mmr_insn);
	uint32_t i;

	for (i = 0; i < n; i++)
		if (in[i].op < MMR_INSN_LOOP && in[i].op != MMR_OP_mmap &&
		    mmr_child_plan(MMR_MACHINE_PTR, in[i].op)->run)
			in[i].quick = MMR_QUICK_NOT;
}

static void plan_machine(void)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;
	struct mmr_machine *m = MMR_MACHINE_PTR;
	const struct mmr_pproc *pp;
	uint32_t i;

	for (i = 0; i < MMR_PLANS; i++)
		if (mmr_table_op(i))
			mmr_table_plan(&m->plan[MMR_PLANS - 1 - i],
				       mmr_table_op(i));
	for (i = 0; i < p->ninsns; i++)
		if (mmr_insns()[i].op < MMR_INSN_LOOP &&
		    !mmr_table_op(mmr_insns()[i].op))
			mmr_main_fail("the program has an unknown operation",
				      mmr_insns()[i].op);
	keep_own_ways(p->ninsns);
	for (i = 0; i < p->nthreads; i++) {
		m->cpu[i] = (int16_t)cpu_of(i);
		m->syncs[i] = syncs_of(i);
	}
	for (i = 0; i < p->nsyncs; i++)
		m->sync_spins[i] = spins_of(m, i);
	for (i = 0; i < p->nprocs; i++) {
		pp = &mmr_pprocs()[i];
		if (!pp->is_template)
			m->first_slot += mmr_thread_plain(i) * pp->copies;
	}
	if (m->first_slot > MMR_THREAD_SLOTS)
		m->first_slot = MMR_THREAD_SLOTS;
	atomic_store(&MMR_AREA_PTR->thread_slots, m->first_slot);
}

/* All that the case says it must not have. */
static void drop_caps(uint32_t lo, uint32_t hi)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	uint32_t i;

	if (!lo && !hi)
		return;
	for (i = 0; i < 64; i++)
		if ((i < 32 ? lo >> i : hi >> (i - 32)) & 1)
			mmr_sys2(__NR_prctl, PR_CAPBSET_DROP, i);
	if (mmr_sys2(__NR_capget, mmr_sys_ptr(&head), mmr_sys_ptr(data)) < 0)
		mmr_main_fail("capabilities cannot be read", 0);
	for (i = 0; i < 2; i++) {
		data[i].effective &= ~(i ? hi : lo);
		data[i].permitted &= ~(i ? hi : lo);
		data[i].inheritable &= ~(i ? hi : lo);
	}
	if (mmr_sys2(__NR_capset, mmr_sys_ptr(&head), mmr_sys_ptr(data)) < 0)
		mmr_main_fail("capabilities cannot be dropped", 0);
}

static void set_limits(void)
{
	struct {
		uint64_t soft, hard;
	} lim = {0, 0};

	/* No core files of crashes that a case provokes, if it does not ask
	 * for them; then small ones, in a folder that goes with it. */
	if (MMR_AREA_PTR->program.outside.core[0] &&
	    mmr_sys1(__NR_chdir,
		     mmr_sys_ptr(MMR_AREA_PTR->program.outside.core)) == 0)
		lim.soft = lim.hard = CORE_BYTES;
	mmr_sys4(__NR_prlimit64, 0, RLIMIT_CORE_VALUE, mmr_sys_ptr(&lim), 0);
	if (mmr_sys4(__NR_prlimit64, 0, RLIMIT_NOFILE_VALUE, 0,
		     mmr_sys_ptr(&lim)) == 0) {
		lim.soft = lim.hard;
		mmr_sys4(__NR_prlimit64, 0, RLIMIT_NOFILE_VALUE,
			 mmr_sys_ptr(&lim), 0);
	}
}

/* What the CPUs of the program are is the engine's to say; beyond 64 it cannot
 * say it, and then nothing is narrowed. */
static void use_cpus(void)
{
	const struct mmr_program *p = &MMR_AREA_PTR->program;
	uint64_t mask[16] = {0};
	uint32_t i;

	if (p->ncpus >= 64)
		return;
	for (i = 0; i < p->ncpus; i++)
		mask[(p->cpus[i] >> 6) & 15] |= 1ULL << (p->cpus[i] & 63);
	mmr_sys3(__NR_sched_setaffinity, 0, sizeof(mask), mmr_sys_ptr(mask));
}

static _Noreturn void supervise(int32_t holder, bool no_namespace)
{
	struct mmr_machine *m = MMR_MACHINE_PTR;
	int32_t pid, tid;
	int64_t ppid;

	mmr_sys2(__NR_prctl, PR_SET_PDEATHSIG, SIG_KILL);
	/* The holder may have died before that; in a namespace getppid() is
	 * always 0, but /proc is that of the engine. */
	ppid = mmr_procfs_ppid();
	if (ppid && ppid != holder)
		mmr_sys_exit_group(EXIT_OWN_FAULT);
	m->supervisor = (int32_t)mmr_sys0(__NR_getpid);
	m->no_namespace = no_namespace;
	if (no_namespace)
		mmr_sys2(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1);
	mmr_sys2(__NR_prctl, PR_SET_TIMERSLACK, 1);
	mmr_procfs_ids(&pid, &tid);
	atomic_store(&MMR_AREA_PTR->supervisor_host_pid, pid);
	use_cpus();
	set_limits();
	plan_machine();
	drop_caps(MMR_AREA_PTR->program.drop_caps_lo,
		  MMR_AREA_PTR->program.drop_caps_hi);
	mmr_touch_install();
	mmr_super_run();
}

/* Waits for the supervisor and ends as it did. */
static _Noreturn void hold(int64_t supervisor)
{
	int32_t info[32] = {0};
	uint32_t state;
	int64_t ret;

	do {
		ret = mmr_sys5(__NR_waitid, P_PID, supervisor,
			       mmr_sys_ptr(info), WEXITED, 0);
	} while (ret == -EINTR);
	state = atomic_load(&MMR_AREA_PTR->state);
	if (state != MMR_STATE_DONE && state != MMR_STATE_FAILED)
		mmr_main_fail("the supervisor of mmrace-child was killed",
			      info[6]);
	mmr_sys_exit_group(state == MMR_STATE_DONE ? 0 : EXIT_OWN_FAULT);
}

static void die_with(int64_t engine)
{
	mmr_sys2(__NR_prctl, PR_SET_PDEATHSIG, SIG_KILL);
	if (engine && mmr_sys0(__NR_getppid) != engine)
		mmr_sys_exit_group(EXIT_OWN_FAULT);
}

_Noreturn void mmr_main_start(const uint64_t *stack)
{
	const char *arg = stack[0] > 1 ? (const char *)stack[2] : "";
	int64_t engine = 0, ret, flags = CLONE_NEWPID_FLAG;
	struct mmr_image image;
	int32_t self;

	for (; *arg >= '0' && *arg <= '9'; arg++)
		engine = engine * 10 + (*arg - '0');
	die_with(engine);
	map_area();
	map_own();
	mmr_image_merge(stack, &image);
	mmr_image_own(&image);
	/* The first to go when memory runs out. */
	(void)mmr_child_put_file("/proc/self/oom_score_adj", "1000");
	self = (int32_t)mmr_sys0(__NR_getpid);
	if (mmr_sys0(__NR_geteuid) != 0)
		flags |= CLONE_NEWUSER_FLAG;
	ret = mmr_sys1(__NR_unshare, flags);
	if (ret == 0) /* new credentials cancel the signal */
		die_with(engine);
	flags = ret;
	ret = mmr_sys_fork(SIG_CHLD);
	if (ret == 0)
		supervise(self, flags < 0);
	if (ret < 0)
		mmr_main_fail("mmrace-child cannot fork", ret);
	hold(ret);
}
