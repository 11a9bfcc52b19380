// SPDX-License-Identifier: GPL-2.0-or-later
/* The detector's bookkeeping: who moved, who did not, where the time went. */
#include "watch.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../ops/compile.h"
#include "../ops/setting.h"

#define MAPPED_MAX (1ULL << 47) /* more is no address space */
#define BUDGET_MAX_NS (3600.0 * MMR_S)

static uint64_t get(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static uint32_t get32(const _Atomic uint32_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

uint64_t mmr_watch_ns(const struct mmr_detect *d, uint64_t ticks)
{
	return mmr_clock_to_ns(&d->area->clock, ticks);
}

void mmr_watch_drop(struct mmr_detect *d, struct mmr_watch *w)
{
	if (w->perf) {
		d->probe->faults_close(d->probe->arg, w->perf);
		w->perf = NULL;
		d->nperf--;
	}
	w->acc.on = false;
	w->calm_base = 0;
	w->faults = w->fault_addr = 0;
	w->switches = false;
}

static bool process_gone(const struct mmr_detect *d,
			 const struct mmr_thread_slot *s)
{
	const struct mmr_proc_slot *p;

	if (s->proc_slot >= MMR_PROC_SLOTS)
		return false;
	p = &d->procs[s->proc_slot];
	return get(&p->exit_start) || get32(&p->state) != MMR_PROC_RUNNING;
}

static void classify(struct mmr_detect *d, struct mmr_watch *w,
		     const struct mmr_thread_slot *s)
{
	const struct mmr_op *op = NULL;

	w->insn = NULL;
	w->class = MMR_WATCH_NONE;
	w->plain = s->thread < d->program->nthreads &&
		   !MMR_AREA_AT(d->area, d->program->threads_off,
				struct mmr_pthread)[s->thread]
			    .is_template;
	if (!w->stmt || w->stmt > d->program->nstats)
		return;
	w->insn = d->insns[w->stmt - 1];
	if (w->insn)
		op = mmr_op_by_id(w->insn->op);
	if (op)
		w->class = (int)op->class;
}

/* A thread past its body counts while somebody joins it and its task is
 * still there: then its exit is a kernel operation like any other. */
static bool ending(const struct mmr_thread_slot *s, const struct mmr_watch *w,
		   uint32_t seq)
{
	return w->joined_seq == seq + 1 &&
	       atomic_load_explicit(&s->tid, memory_order_relaxed);
}

static void look(struct mmr_detect *d, int i)
{
	const struct mmr_thread_slot *s = &d->threads[i];
	struct mmr_watch *w = &d->w[i];
	uint32_t state = get32(&s->state), seq = get32(&s->seq);
	uint32_t stmt = get32(&s->stmt), join;
	uint64_t start = get(&s->start), progress = get(&s->progress);
	uint64_t at;

	if (state == MMR_THREAD_DONE && ending(s, w, seq)) {
		if (w->class != MMR_WATCH_ENDING || !w->live) {
			mmr_watch_drop(d, w);
			w->live = true;
			w->dead = false;
			w->class = MMR_WATCH_ENDING;
			w->stmt = w->joiner_stmt;
			w->since_ns = d->moved_ns = d->now_ns;
			w->seq = seq;
		}
		return;
	}
	if (state != MMR_THREAD_RUNNING && state != MMR_THREAD_STARTING) {
		if (w->live) {
			mmr_watch_drop(d, w);
			w->live = false;
			d->moved_ns = d->now_ns;
		}
		return;
	}
	if (!w->live || w->seq != seq || w->stmt != stmt || w->start != start ||
	    w->progress != progress) {
		mmr_watch_drop(d, w);
		w->live = true;
		w->dead = false;
		w->seq = seq;
		w->stmt = stmt;
		w->start = start;
		w->progress = progress;
		w->since_ns = d->moved_ns = d->now_ns;
		classify(d, w, s);
		at = mmr_watch_ns(d, start);
		/* One call is one step: it began when it says so. */
		if ((w->class == MMR_CLASS_CALL ||
		     w->class == MMR_CLASS_BLOCK) &&
		    at < d->now_ns)
			w->since_ns = at;
	}
	if (!w->dead && process_gone(d, s)) {
		mmr_watch_drop(d, w);
		w->dead = true;
	}
	join = get32(&s->join_slot);
	if (join && join <= MMR_THREAD_SLOTS) {
		d->w[join - 1].joined_seq =
			get32(&d->threads[join - 1].seq) + 1;
		d->w[join - 1].joiner_stmt = stmt;
	}
}

/* Upper end of a delay: till then a thread in it is on its way. */
static int64_t patience(const struct mmr_watch *w)
{
	const struct mmr_op *op = w->insn ? mmr_op_by_id(w->insn->op) : NULL;
	int64_t ns = MMR_S;
	int i;

	for (i = 0; op && i < op->nargs; i++)
		if (op->args[i].type == MMR_ARG_TIME && w->insn->arg[i].hi > 0)
			ns += w->insn->arg[i].hi;
	return ns;
}

void mmr_watch_threads(struct mmr_detect *d)
{
	uint32_t n = get32(&d->area->thread_slots), i;

	d->nkernel = d->nwait_plain = d->nbusy = 0;
	if (n > MMR_THREAD_SLOTS)
		n = MMR_THREAD_SLOTS;
	for (i = 0; i < n; i++) {
		struct mmr_watch *w = &d->w[i];

		look(d, (int)i);
		if (!w->live || w->dead)
			continue;
		if (mmr_watch_in_kernel(w))
			d->nkernel++;
		else if (w->class == MMR_CLASS_WAIT)
			d->nwait_plain += w->plain;
		else if ((int64_t)(d->now_ns - w->since_ns) < patience(w))
			d->nbusy++;
	}
}

void mmr_watch_procs(struct mmr_detect *d)
{
	uint32_t n = get32(&d->area->proc_slots), i;

	d->nexits = 0;
	if (n > MMR_PROC_SLOTS)
		n = MMR_PROC_SLOTS;
	for (i = 0; i < n; i++) {
		const struct mmr_proc_slot *p = &d->procs[i];
		struct mmr_exit_watch *x = &d->x[i];
		uint64_t start = get(&p->exit_start), mapped = get(&p->mapped);
		uint32_t seq = get32(&p->seq);
		bool now;

		if (x->seq != seq) {
			memset(x, 0, sizeof(*x));
			x->seq = seq;
		}
		/* Threads that unmap the same pages at once can take it below
		 * 0: then it says nothing. */
		if (mapped > x->peak && mapped <= MAPPED_MAX)
			x->peak = mapped;
		now = start && !get(&p->exit_end) &&
		      get32(&p->state) == MMR_PROC_RUNNING;
		if (now != x->exiting) {
			d->moved_ns = d->now_ns;
			x->exiting = now;
			x->over = false;
			x->acc.on = false;
			x->since_ns = mmr_watch_ns(d, start);
		}
		d->nexits += x->exiting && !x->over;
	}
}

/* Bytes that a call may have to work on: what it was told, what its process
 * has mapped, and with a process as argument what all of them have. */
static uint64_t work_bytes(const struct mmr_detect *d, int slot,
			   const struct mmr_op *op)
{
	const struct mmr_insn *in = d->w[slot].insn;
	uint32_t proc = d->threads[slot].proc_slot, i, n;
	uint64_t bytes = proc < MMR_PROC_SLOTS ? d->x[proc].peak : 0;
	bool all = op->makes & MMR_REF_PROCESS;
	int a;

	if (op->machine_wide)
		return (uint64_t)sysconf(_SC_PHYS_PAGES) *
		       (uint64_t)sysconf(_SC_PAGESIZE);
	for (a = 0; a < op->nargs; a++) {
		if (op->args[a].type == MMR_ARG_SIZE &&
		    !strcmp(op->args[a].name, "len") &&
		    in->arg[a].lo > (int64_t)bytes)
			bytes = (uint64_t)in->arg[a].lo;
		if (op->args[a].kinds & (MMR_REF_PROCESS | MMR_REF_PIDFD))
			all = true;
	}
	if (!all)
		return bytes;
	n = get32(&d->area->proc_slots);
	for (i = 0; i < n && i < MMR_PROC_SLOTS; i++)
		if (i != proc)
			/* A process has pages that no case mapped. */
			bytes += d->x[i].peak + (4UL << 20);
	return bytes;
}

uint64_t mmr_watch_pages(const struct mmr_detect *d, int slot)
{
	const struct mmr_insn *in = d->w[slot].insn;
	const struct mmr_op *op = in ? mmr_op_by_id(in->op) : NULL;
	uint64_t page = d->program->page_size ? d->program->page_size : 4096;

	return op ? work_bytes(d, slot, op) / page : 0;
}

uint64_t mmr_watch_others(const struct mmr_detect *d, int slot)
{
	uint32_t n = get32(&d->area->thread_slots), i;
	uint64_t sum = 0;

	for (i = 0; i < n && i < MMR_THREAD_SLOTS; i++)
		if ((int)i != slot &&
		    d->threads[i].proc_slot == d->threads[slot].proc_slot)
			sum += get32(&d->threads[i].ops);
	return sum;
}

int64_t mmr_watch_budget(const struct mmr_detect *d, int slot)
{
	const struct mmr_watch *w = &d->w[slot];
	const struct mmr_op *op = w->insn ? mmr_op_by_id(w->insn->op) : NULL;
	double ns = (double)MMR_S, work;

	if (op && op->unit_ns) {
		work = 5.0 * op->unit_ns * (double)mmr_watch_pages(d, slot);
		if (work > ns)
			ns = work;
	}
	ns *= d->limits.scale;
	return (int64_t)(ns < BUDGET_MAX_NS ? ns : BUDGET_MAX_NS);
}

bool mmr_watch_behind_daemon(const struct mmr_watch *w)
{
	return w->insn &&
	       (w->insn->op == MMR_OP_set_number ||
		w->insn->op == MMR_OP_set_mode) &&
	       mmr_setting_table[w->insn->arg[0].lo].behind_daemon;
}

int64_t mmr_watch_stuck(const struct mmr_detect *d, int slot)
{
	const struct mmr_watch *w = &d->w[slot];
	int64_t cpu = w->acc.cpu;

	if (!w->acc.on || mmr_watch_behind_daemon(w))
		return 0;
	if (w->class == MMR_CLASS_CALL) {
		cpu -= mmr_watch_budget(d, slot);
		if (cpu < 0)
			cpu = 0;
	} else {
		cpu = (int64_t)((double)cpu / d->limits.scale);
	}
	return w->acc.asleep + cpu;
}

static void open_account(struct mmr_account *a, uint64_t now, int err)
{
	a->cpu = a->delay = a->asleep = a->pause = 0;
	a->last_ns = now;
	a->first = a->last = a->now;
	a->state = a->now.state;
	a->unknown = err != 0;
	a->on = true;
	a->fresh = false;
}

/*
 * Puts the time since the last sample where it belongs.  Run delay is known
 * only once the task has got its CPU, so while it is runnable all that it
 * did not run was delay.  Time asleep counts only when nobody is known who
 * may rightly hold what it waits for, and no CPU was late: a virtual CPU
 * that is lost for seconds can hold the lock.
 */
static void account(struct mmr_detect *d, struct mmr_account *a, bool tainted)
{
	const struct mmr_probe *p = d->probe;
	int64_t dt = (int64_t)(d->now_ns - a->last_ns), run, delay, rest;
	int64_t pause = p->pause(p->arg, a->last_ns, d->now_ns);
	int64_t late = p->late(p->arg, a->last_ns, d->now_ns);

	a->pause += pause;
	if (a->unknown) {
		/* Half of it, as it may as well have waited for a CPU. */
		rest = dt - (late > pause ? late : pause);
		if (rest > 0 && !tainted)
			a->asleep += rest / 2;
		a->last_ns = d->now_ns;
		a->fresh = false;
		return;
	}
	run = (int64_t)(a->now.run_ns - a->last.run_ns);
	delay = (int64_t)(a->now.delay_ns - a->last.delay_ns);
	if (run < 0)
		run = 0; /* a task of an exiting process has gone */
	if (run > dt)
		run = dt;
	if (delay < 0)
		delay = 0;
	a->cpu += run;
	rest = dt - run;
	/* T: stopped by a signal of the case, as good as not let run. */
	if (a->now.state == 'R' || a->now.state == 'T') {
		rest -= pause;
		a->delay += rest > 0 ? rest : 0;
	} else {
		if (delay > rest)
			delay = rest;
		a->delay += delay;
		rest -= delay + (late > pause ? late : pause);
		if (rest > 0 && !tainted)
			a->asleep += rest;
	}
	a->state = a->now.state;
	a->last = a->now;
	a->last_ns = d->now_ns;
	a->fresh = false;
}

static void watch_begin(struct mmr_detect *d, int i)
{
	const struct mmr_probe *p = d->probe;
	struct mmr_watch *w = &d->w[i];
	const struct mmr_thread_slot *s = &d->threads[i];
	pid_t pid = atomic_load_explicit(&s->host_pid, memory_order_relaxed);
	pid_t tid = atomic_load_explicit(&s->host_tid, memory_order_relaxed);

	w->segv_base = get(&s->faults);
	w->others_base = mmr_watch_others(d, i);
	w->faults = w->fault_addr = 0;
	w->faults_ns = w->moved_ns = d->now_ns;
	w->switches = tid && !p->switches(p->arg, pid, tid, &w->vol_base,
					  &w->invol_base);
}

static void count_faults(struct mmr_detect *d, int i)
{
	const struct mmr_probe *p = d->probe;
	struct mmr_watch *w = &d->w[i];
	const struct mmr_thread_slot *s = &d->threads[i];
	pid_t tid = atomic_load_explicit(&s->host_tid, memory_order_relaxed);
	uint64_t n = 0, segv = get(&s->faults) - w->segv_base, addr = 0;

	if (!w->acc.unknown)
		n = w->acc.last.minflt + w->acc.last.majflt -
		    w->acc.first.minflt - w->acc.first.majflt;
	if (!w->perf && tid && d->nperf < MMR_PERF_MAX &&
	    w->class == MMR_CLASS_TOUCH && p->faults_open &&
	    (int64_t)(d->now_ns - w->since_ns) >= MMR_PERF_NS) {
		w->perf = p->faults_open(p->arg, tid);
		d->nperf += w->perf != NULL;
	}
	if (w->perf) {
		uint64_t v = p->faults_read(p->arg, w->perf, &addr);

		if (v > n)
			n = v;
	}
	if (segv > n) {
		n = segv;
		addr = get(&s->fault_addr);
	}
	if (!addr && w->class == MMR_CLASS_TOUCH)
		addr = get(&s->address);
	if (n > w->faults) {
		w->faults = n;
		w->fault_addr = addr;
		w->moved_ns = d->now_ns;
	}
}

/* First pass over threads: takes the samples, finds who may hold a lock. */
static void sample_thread(struct mmr_detect *d, int i)
{
	const struct mmr_probe *p = d->probe;
	struct mmr_watch *w = &d->w[i];
	struct mmr_account *a = &w->acc;
	const struct mmr_thread_slot *s = &d->threads[i];
	pid_t pid = atomic_load_explicit(&s->host_pid, memory_order_relaxed);
	pid_t tid = atomic_load_explicit(&s->host_tid, memory_order_relaxed);
	int err;

	a->holder = false;
	if (!mmr_watch_in_kernel(w) ||
	    (int64_t)(d->now_ns - w->since_ns) < d->watch_ns)
		return;
	if (!a->on && d->nsampled >= MMR_WATCH_MAX)
		return;
	d->nsampled++;
	err = tid ? p->task(p->arg, pid, tid, &a->now) : -ENODATA;
	/* It moved meanwhile, or its slot changed hands: no sample of it. */
	if (get(&s->progress) != w->progress || get32(&s->seq) != w->seq)
		return;
	if (err == -ESRCH || (!err && a->now.state == 'Z')) {
		mmr_watch_drop(d, w);
		w->dead = true;
		return;
	}
	if (!a->on) {
		open_account(a, d->now_ns, err);
		watch_begin(d, i);
		return;
	}
	a->unknown = err != 0;
	a->fresh = true;
	a->holder =
		!err && a->now.state == 'R' &&
		(w->class != MMR_CLASS_CALL || a->cpu < mmr_watch_budget(d, i));
	d->nholders += a->holder;
}

/*
 * A thread that answers page faults, overdue because it is not let run: those
 * that wait for it are held up by nothing but the load of the machine.
 */
static void sample_server(struct mmr_detect *d, int i)
{
	const struct mmr_probe *p = d->probe;
	const struct mmr_watch *w = &d->w[i];
	const struct mmr_thread_slot *s = &d->threads[i];
	pid_t pid = atomic_load_explicit(&s->host_pid, memory_order_relaxed);
	pid_t tid = atomic_load_explicit(&s->host_tid, memory_order_relaxed);
	struct mmr_task_sample now;

	if (!w->live || w->dead || !w->insn ||
	    w->insn->op != MMR_OP_uffd_read || !tid ||
	    (int64_t)(d->now_ns - w->since_ns) < d->watch_ns ||
	    d->nsampled >= MMR_WATCH_MAX)
		return;
	d->nsampled++;
	if (!p->task(p->arg, pid, tid, &now) && now.state == 'R' &&
	    get(&s->progress) == w->progress && get32(&s->seq) == w->seq)
		d->nholders++;
}

static void sample_process(struct mmr_detect *d, int i)
{
	const struct mmr_probe *p = d->probe;
	struct mmr_exit_watch *x = &d->x[i];
	struct mmr_exit_sample s;
	int err;

	x->acc.holder = false;
	if (!x->exiting || x->over ||
	    (int64_t)(d->now_ns - x->since_ns) < d->watch_ns)
		return;
	if (!x->acc.on && d->nsampled >= MMR_WATCH_MAX)
		return;
	d->nsampled++;
	if (!x->host_pid)
		x->host_pid = atomic_load_explicit(&d->procs[i].host_pid,
						   memory_order_relaxed);
	if (!x->host_pid)
		x->host_pid = p->resolve(
			p->arg,
			atomic_load_explicit(&d->area->supervisor_host_pid,
					     memory_order_relaxed),
			atomic_load_explicit(&d->procs[i].pid,
					     memory_order_relaxed));
	err = x->host_pid ? p->exiting(p->arg, x->host_pid, &s) : -ESRCH;
	if (err == -ESRCH || (!err && s.reapable)) {
		x->over = true; /* as far as the kernel is concerned */
		d->nexits--;
		return;
	}
	x->acc.now = s.sum;
	if (!x->acc.on) {
		open_account(&x->acc, d->now_ns, err);
		return;
	}
	x->acc.unknown = err != 0;
	x->acc.fresh = true;
	x->acc.holder = !err && s.sum.state == 'R';
	d->nholders += x->acc.holder;
}

void mmr_watch_sample(struct mmr_detect *d)
{
	uint32_t nt = get32(&d->area->thread_slots);
	uint32_t np = get32(&d->area->proc_slots), i;
	/* Who is frozen may hold what others wait for. */
	bool frozen = get32(&d->area->frozen) != 0;

	if (nt > MMR_THREAD_SLOTS)
		nt = MMR_THREAD_SLOTS;
	if (np > MMR_PROC_SLOTS)
		np = MMR_PROC_SLOTS;
	d->nsampled = d->nholders = 0;
	/* Of many that stand still first those that should not: sleepers on
	 * a futex wait for one of them, as a rule. */
	for (i = 0; i < nt && d->nkernel; i++)
		if (d->w[i].class != MMR_CLASS_BLOCK)
			sample_thread(d, (int)i);
	for (i = 0; i < nt && d->nkernel; i++)
		if (d->w[i].class == MMR_CLASS_BLOCK)
			sample_thread(d, (int)i);
	for (i = 0; i < nt && d->nkernel; i++)
		sample_server(d, (int)i);
	for (i = 0; i < np && d->nexits; i++)
		sample_process(d, (int)i);
	/* Second pass: now it is known who else was on a CPU. */
	for (i = 0; i < nt && d->nsampled; i++) {
		struct mmr_account *a = &d->w[i].acc;

		if (!a->on || !a->fresh)
			continue;
		account(d, a, frozen || d->nholders > (int)a->holder);
		count_faults(d, (int)i);
	}
	for (i = 0; i < np && d->nsampled; i++)
		if (d->x[i].acc.on && d->x[i].acc.fresh)
			account(d, &d->x[i].acc,
				frozen ||
					d->nholders > (int)d->x[i].acc.holder);
}
