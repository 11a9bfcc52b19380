// SPDX-License-Identifier: GPL-2.0-or-later
/* The rules: from what is watched to a verdict, or to the calm phase. */
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../ops/compile.h"
#include "../ops/content.h"

#define FAULTS_ONE_PAGE 100
#define FAULTS_ANY 100000 /* in storm_ns */
#define GIB (1LL << 30)
#define STARVING_OTHERS 20

static void fill(const struct mmr_detect *d, struct mmr_detect_out *out,
		 enum mmr_verdict verdict, const struct mmr_account *a,
		 uint64_t since_ns, int64_t limit_ns)
{
	struct mmr_suspect *s = &out->suspect;

	memset(s, 0, sizeof(*s));
	out->flagged = true;
	s->verdict = verdict;
	s->area = d->area;
	s->thread_slot = s->proc_slot = s->stmt = -1;
	s->wall_ns = (int64_t)(d->now_ns - since_ns);
	s->limit_ns = limit_ns;
	if (!a)
		return;
	s->cpu_ns = a->cpu;
	s->delay_ns = a->delay;
	s->asleep_ns = a->asleep;
	s->pause_ns = a->pause;
}

static void fill_thread(const struct mmr_detect *d, struct mmr_detect_out *out,
			enum mmr_verdict verdict, int slot, int64_t limit_ns)
{
	const struct mmr_watch *w = &d->w[slot];
	const struct mmr_thread_slot *t = &d->threads[slot];
	struct mmr_suspect *s = &out->suspect;
	uint64_t vol, invol;

	fill(d, out, verdict, &w->acc, w->since_ns, limit_ns);
	s->thread_slot = slot;
	s->proc_slot = t->proc_slot < MMR_PROC_SLOTS ? t->proc_slot : -1;
	s->stmt = (int)w->stmt - 1;
	s->based = true;
	s->seq0 = w->seq;
	s->progress0 = w->progress;
	s->host_pid = atomic_load_explicit(&t->host_pid, memory_order_relaxed);
	s->host_tid = atomic_load_explicit(&t->host_tid, memory_order_relaxed);
	s->faults = w->faults;
	s->fault_addr = w->fault_addr;
	s->fault_ns = (int64_t)(d->now_ns - w->faults_ns);
	if (w->switches && !d->probe->switches(d->probe->arg, s->host_pid,
					       s->host_tid, &vol, &invol)) {
		s->voluntary = vol - w->vol_base;
		s->involuntary = invol - w->invol_base;
	}
}

static bool storming(const struct mmr_detect *d, int slot)
{
	const struct mmr_watch *w = &d->w[slot];
	int64_t still = (int64_t)(d->now_ns - w->since_ns) - w->acc.pause;
	double part =
		(double)(d->now_ns - w->faults_ns) / (double)d->limits.storm_ns;

	if (!w->acc.on || still < d->limits.storm_ns ||
	    (int64_t)(d->now_ns - w->moved_ns) > MMR_WATCH_NS)
		return false;
	if (w->class == MMR_CLASS_TOUCH)
		return w->faults > FAULTS_ONE_PAGE;
	/* A call says nothing of its pages: populating 4 GiB takes a million
	 * faults, each for a new one. */
	if (w->faults <= 2 * mmr_watch_pages(d, slot))
		return false;
	return (double)w->faults >= FAULTS_ANY * (part > 0.5 ? part : 0.5);
}

/* One page's faults go on and on, but not for long enough yet.  The time that
 * a storm takes is no CPU time of a slow machine: it does not scale. */
static bool may_storm(const struct mmr_detect *d, int slot)
{
	const struct mmr_watch *w = &d->w[slot];

	return w->acc.on && w->class == MMR_CLASS_TOUCH &&
	       w->faults > FAULTS_ONE_PAGE &&
	       (int64_t)(d->now_ns - w->since_ns) > 300 * MMR_MS &&
	       (int64_t)(d->now_ns - w->moved_ns) <= MMR_WATCH_NS;
}

static bool judge_storm(struct mmr_detect *d, int n, struct mmr_detect_out *out)
{
	int i;

	for (i = 0; i < n; i++) {
		if (!mmr_watch_in_kernel(&d->w[i]))
			continue;
		if (storming(d, i)) {
			fill_thread(d, out, MMR_FAULT_STORM, i,
				    d->limits.storm_ns);
			return true;
		}
		if (may_storm(d, i))
			d->suspecting = true;
	}
	return false;
}

/* The fixed limit of a call, 0: the built-in rule holds. */
static int64_t fixed_limit(const struct mmr_detect_limits *l, unsigned int op)
{
	int i;

	for (i = 0; i < l->ncalls; i++)
		if (l->calls[i].op == op)
			return l->calls[i].ns;
	return l->syscall_ns;
}

/* What a call or exit that is over took, without the waits for a CPU and
 * without the times in which the machine or a CPU stood still. */
static bool judge_late(struct mmr_detect *d, struct mmr_detect_out *out)
{
	uint32_t n =
		atomic_load_explicit(&d->area->nlate, memory_order_acquire);

	while (d->nlate < n && d->nlate < MMR_LATE) {
		const struct mmr_late *l = &d->area->late[d->nlate];
		const struct mmr_probe *p = d->probe;
		struct mmr_account a = {.on = true};
		uint64_t from, to;
		int64_t wall, limit;
		bool exits = l->thread_slot == ~0u;

		if (!atomic_load_explicit(&l->ready, memory_order_acquire))
			return false;
		d->nlate++;
		if (l->stat >= d->program->nstats ||
		    (!exits && !d->insns[l->stat]))
			continue;
		from = mmr_watch_ns(d, l->start);
		to = mmr_watch_ns(d, l->end);
		wall = (int64_t)(to - from);
		a.pause = p->pause(p->arg, from, to);
		if (p->late(p->arg, from, to) > a.pause)
			a.pause = p->late(p->arg, from, to);
		a.cpu = (int64_t)l->cpu_ns < wall ? (int64_t)l->cpu_ns : wall;
		a.delay = (int64_t)l->delay_ns;
		a.asleep = wall - a.cpu - a.delay - a.pause;
		if (a.asleep < 0)
			a.asleep = 0;
		limit = exits ? d->limits.exit_ns
			      : fixed_limit(&d->limits, d->insns[l->stat]->op);
		if (!limit || wall - a.delay - a.pause < limit ||
		    a.cpu + a.asleep < limit)
			continue;
		fill(d, out, exits ? MMR_LONG_EXIT : MMR_LONG_SYSCALL, &a,
		     d->now_ns - (uint64_t)wall, limit);
		out->suspect.over = true;
		out->suspect.proc_slot = (int)l->proc_slot;
		if (!exits) {
			out->suspect.thread_slot = (int)l->thread_slot;
			out->suspect.stmt = (int)l->stat;
			out->suspect.host_pid =
				d->threads[l->thread_slot].host_pid;
			out->suspect.host_tid =
				d->threads[l->thread_slot].host_tid;
		}
		return true;
	}
	return false;
}

/*
 * Blocked on the lock of its address space while others of the process take it
 * again and again: their calls that came to an end since it went to sleep.
 */
static bool starving(const struct mmr_detect *d, int slot)
{
	const struct mmr_watch *w = &d->w[slot];
	const struct mmr_thread_slot *t = &d->threads[slot];
	const struct mmr_probe *p = d->probe;

	return p->on_mmap_lock &&
	       mmr_watch_others(d, slot) - w->others_base >= STARVING_OTHERS &&
	       p->on_mmap_lock(
		       p->arg,
		       atomic_load_explicit(&t->host_pid, memory_order_relaxed),
		       atomic_load_explicit(&t->host_tid,
					    memory_order_relaxed));
}

static bool judge_call(struct mmr_detect *d, int n, struct mmr_detect_out *out)
{
	int64_t limit, budget;
	int i;

	for (i = 0; i < n; i++) {
		const struct mmr_watch *w = &d->w[i];

		if (!mmr_watch_in_kernel(w) || !w->acc.on)
			continue;
		if ((w->class == MMR_CLASS_CALL ||
		     w->class == MMR_CLASS_TOUCH) &&
		    w->acc.asleep >= MMR_S && starving(d, i)) {
			fill_thread(d, out, MMR_LOCK_STARVATION, i, MMR_S);
			return true;
		}
		if (w->class != MMR_CLASS_CALL || mmr_watch_behind_daemon(w))
			continue;
		limit = fixed_limit(&d->limits, w->insn->op);
		/* It may pass its limit yet, however long that is. */
		if (w->acc.cpu + w->acc.asleep > 300 * MMR_MS)
			d->suspecting = true;
		if (limit) {
			if (w->acc.cpu + w->acc.asleep < limit)
				continue;
			fill_thread(d, out, MMR_LONG_SYSCALL, i, limit);
			return true;
		}
		budget = mmr_watch_budget(d, i);
		if (w->acc.asleep < MMR_S && w->acc.cpu < budget)
			continue;
		fill_thread(d, out, MMR_LONG_SYSCALL, i,
			    w->acc.asleep >= MMR_S ? MMR_S : budget);
		return true;
	}
	return false;
}

static bool judge_exit(struct mmr_detect *d, struct mmr_detect_out *out)
{
	uint32_t n = atomic_load_explicit(&d->area->proc_slots,
					  memory_order_relaxed);
	uint32_t i;

	for (i = 0; i < n && i < MMR_PROC_SLOTS && d->nexits; i++) {
		const struct mmr_exit_watch *x = &d->x[i];
		int64_t limit = d->limits.exit_ns, net;

		if (!x->exiting || x->over || !x->acc.on)
			continue;
		net = x->acc.asleep + x->acc.cpu;
		if (!limit) {
			limit = 2 * MMR_S + (int64_t)(x->peak / 1024) * MMR_S /
						    (GIB / 1024);
			net = x->acc.asleep +
			      (int64_t)((double)x->acc.cpu / d->limits.scale);
		}
		if (net > 300 * MMR_MS)
			d->suspecting = true;
		if (net < limit)
			continue;
		fill(d, out, MMR_LONG_EXIT, &x->acc, x->since_ns, limit);
		out->suspect.proc_slot = (int)i;
		out->suspect.based = true;
		out->suspect.seq0 = x->seq;
		out->suspect.host_pid = out->suspect.host_tid = x->host_pid;
		return true;
	}
	return false;
}

static void go_calm(struct mmr_detect *d, struct mmr_detect_out *out)
{
	out->calm = true;
	d->suspecting = true;
}

/* Storm: is it time to look whether it goes on by itself? */
static void judge_phase(struct mmr_detect *d, int n, struct mmr_detect_out *out)
{
	int64_t idle = (int64_t)(d->now_ns - d->moved_ns), most = 0, stuck;
	int i;

	for (i = 0; i < n; i++) {
		if (!mmr_watch_in_kernel(&d->w[i]))
			continue;
		/* Calm would end it; before long it is flagged, or over. */
		if (may_storm(d, i))
			return;
		stuck = mmr_watch_stuck(d, i);
		if (stuck > most)
			most = stuck;
		if (stuck >= MMR_STUCK_NS && d->w[i].class != MMR_CLASS_CALL)
			go_calm(d, out);
	}
	if (most > 300 * MMR_MS)
		d->suspecting = true;
	if (d->state != MMR_STATE_RUN || d->nbusy || idle < MMR_IDLE_NS)
		return;
	/* Nobody moves, and somebody is in the kernel, not for want of a
	 * CPU. */
	if (most >= MMR_IDLE_NS - 2 * d->watch_ns)
		go_calm(d, out);
	/* Frozen processes do not move by themselves: calm thaws them. */
	if (atomic_load_explicit(&d->area->frozen, memory_order_relaxed)) {
		go_calm(d, out);
		return;
	}
	/* All that is left wait for each other: no kernel operation is at
	 * the end of any wait-for edge, nor a process on its way out. */
	if (!d->nkernel && !d->nexits && d->nwait_plain) {
		out->void_round = true;
		go_calm(d, out);
	}
}

/* Calm: whoever is still where it was is stuck. */
static bool judge_calm(struct mmr_detect *d, int n, struct mmr_detect_out *out)
{
	int64_t need =
		d->limits.progress_ns < MMR_S ? d->limits.progress_ns : MMR_S;
	int best = -1, i;

	for (i = 0; i < n; i++) {
		const struct mmr_watch *w = &d->w[i];
		int64_t stuck = mmr_watch_stuck(d, i);

		if (!mmr_watch_in_kernel(w) || !w->acc.on)
			continue;
		if (stuck > 300 * MMR_MS)
			d->suspecting = true;
		if (stuck - w->calm_base < need ||
		    stuck + d->watch_ns < d->limits.progress_ns)
			continue;
		/* A futex waiter may wait for one who is stuck elsewhere. */
		if (best >= 0 && w->class == MMR_CLASS_BLOCK &&
		    d->w[best].class != MMR_CLASS_BLOCK)
			continue;
		if (best < 0 ||
		    (w->class != MMR_CLASS_BLOCK &&
		     d->w[best].class == MMR_CLASS_BLOCK) ||
		    w->since_ns < d->w[best].since_ns)
			best = i;
	}
	if (best < 0)
		return false;
	fill_thread(d, out,
		    d->w[best].class == MMR_CLASS_TOUCH &&
				    d->w[best].faults > FAULTS_ONE_PAGE &&
				    d->now_ns - d->w[best].moved_ns <
					    (uint64_t)MMR_WATCH_NS
			    ? MMR_FAULT_STORM
			    : MMR_HANG,
		    best, d->limits.progress_ns);
	return true;
}

bool mmr_judge_content(struct mmr_area *area, struct mmr_suspect *out)
{
	const struct mmr_thread_slot *t;
	const struct mmr_content *s;
	uint32_t v;

	if (!area->content_off)
		return false;
	s = MMR_AREA_AT(area, area->content_off, struct mmr_content);
	if (atomic_load_explicit(&s->hit, memory_order_acquire) != 2)
		return false;
	memset(out, 0, sizeof(*out));
	out->verdict = MMR_CORRUPTION;
	out->area = area;
	out->thread_slot = out->proc_slot = -1;
	out->stmt = s->stat < area->program.nstats ? s->stat : -1;
	if (s->thread_slot < MMR_THREAD_SLOTS) {
		t = MMR_AREA_AT(area, area->threads_off,
				struct mmr_thread_slot) +
		    s->thread_slot;
		out->thread_slot = (int)s->thread_slot;
		out->proc_slot =
			t->proc_slot < MMR_PROC_SLOTS ? t->proc_slot : -1;
		out->host_pid = t->host_pid;
		out->host_tid = t->host_tid;
	}
	v = s->value;
	if (MMR_HOLDS_KIND(v) == MMR_HOLDS_BYTE)
		snprintf(out->note, sizeof(out->note),
			 "the page at 0x%" PRIx64
			 " should have the byte 0x%02x "
			 "%s%u of the last write; bits 0x%" PRIx64 " are wrong",
			 s->addr, MMR_HOLDS_VALUE(v),
			 MMR_HOLDS_ALL(v) ? "all over, from +" : "at +",
			 MMR_HOLDS_POS(v), s->diff);
	else
		snprintf(out->note, sizeof(out->note),
			 "the page at 0x%" PRIx64
			 " should be zero; bits 0x%" PRIx64 " of it are not",
			 s->addr, s->diff);
	return true;
}

static bool judge_content(struct mmr_detect *d, struct mmr_detect_out *out)
{
	out->flagged = mmr_judge_content(d->area, &out->suspect);
	return out->flagged;
}

static bool judge_crash(struct mmr_detect *d, struct mmr_detect_out *out)
{
	uint32_t slot;

	if (!atomic_load_explicit(&d->area->crash_count, memory_order_relaxed))
		return false;
	slot = atomic_load_explicit(&d->area->crash_slot, memory_order_relaxed);
	fill(d, out, MMR_CRASH, NULL, d->now_ns, 0);
	if (slot && slot <= MMR_PROC_SLOTS) {
		out->suspect.proc_slot = (int)slot - 1;
		out->suspect.host_pid = atomic_load_explicit(
			&d->procs[slot - 1].host_pid, memory_order_relaxed);
	}
	return true;
}

bool mmr_judge(struct mmr_detect *d, struct mmr_detect_out *out)
{
	int n = (int)atomic_load_explicit(&d->area->thread_slots,
					  memory_order_relaxed);

	if (n > MMR_THREAD_SLOTS)
		n = MMR_THREAD_SLOTS;
	d->suspecting = false;
	if (judge_crash(d, out) || judge_content(d, out) ||
	    judge_storm(d, n, out) || judge_call(d, n, out) ||
	    judge_late(d, out) || judge_exit(d, out))
		return true;
	if (d->calm_ns)
		return judge_calm(d, n, out);
	judge_phase(d, n, out);
	return false;
}
