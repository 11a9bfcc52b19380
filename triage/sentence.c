// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hit in one sentence: who is stuck in which statement, since when, on a
 * CPU or asleep, where, faulting how fast, and what ended it.  And the
 * signature, which holds only what is the same next time.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "../ops/compile.h"
#include "ladder.h"

#define STMT_MAX 90	/* characters of a statement in a sentence */
#define SIGNALS_MIN 100 /* so many in a thread are a storm's */

struct text {
	char *buf;
	size_t n, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t,
						      const char *fmt, ...)
{
	va_list ap;
	int k;

	if (t->used >= t->n)
		return;
	va_start(ap, fmt);
	k = vsnprintf(t->buf + t->used, t->n - t->used, fmt, ap);
	va_end(ap);
	if (k > 0)
		t->used += (size_t)k;
}

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* "1.2 s", "12.5 us": so that a short limit reads as well as a long one. */
static void add_time(struct text *t, const char *before, int64_t ns)
{
	double v = (double)ns;

	if (ns && v < 1e6)
		add(t, "%s%.4g us", before, v / 1e3);
	else if (ns && v < 1e8)
		add(t, "%s%.4g ms", before, v / 1e6);
	else
		add(t, "%s%.4g s", before, v / 1e9);
}

static void add_who(const struct mmr_ladder *l, struct text *t)
{
	const struct mmr_suspect *s = l->s;
	const char *thread, *proc;

	if (s->thread_slot < 0) {
		add(t, "process %s", mmr_ladder_proc_name(s, s->proc_slot));
		if (l->pid)
			add(t, " (pid %d)", l->pid);
		return;
	}
	mmr_ladder_names(s, s->thread_slot, &thread, &proc);
	add(t, "thread %s of process %s", thread, proc);
	if (l->tid)
		add(t, " (tid %d)", l->tid);
}

static void add_stmt(const struct mmr_ladder *l, int stmt, struct text *t)
{
	const struct mmr_stmt *st = mmr_case_stmt(l->s->c, stmt);
	char *text = stmt >= 0 && st ? mmr_case_print_stmt(st) : NULL;

	if (text && strlen(text) > STMT_MAX)
		strcpy(text + STMT_MAX - 3, "...");
	if (text)
		add(t, " in `%s`", text);
	free(text);
}

static void add_statement(const struct mmr_ladder *l, struct text *t)
{
	add_stmt(l, l->s->stmt, t);
}

static void add_slot_statement(const struct mmr_ladder *l, int slot,
			       struct text *t)
{
	const struct mmr_thread_slot *s =
		MMR_AREA_AT(l->s->area, l->s->area->threads_off,
			    struct mmr_thread_slot) +
		slot;

	add_stmt(l, (int)atomic_load(&s->stmt) - 1, t);
}

/* Seconds since the flag was taken up. */
static double looked(const struct mmr_ladder *l)
{
	return seconds(mmr_clock_monotonic() - l->t0_ns);
}

/* Who has the futex that it asks for, as the futex itself says. */
static void add_owner(const struct mmr_ladder *l, struct text *t)
{
	const struct mmr_thread_slot *o;
	const char *thread, *proc;

	if (l->owner < 0)
		return;
	o = MMR_AREA_AT(l->s->area, l->s->area->threads_off,
			struct mmr_thread_slot) +
	    l->owner;
	mmr_ladder_names(l->s, l->owner, &thread, &proc);
	add(t, ", for a lock that thread %s of process %s (tid %d) holds",
	    thread, proc, (int)atomic_load(&o->host_tid));
	add_slot_statement(l, l->owner, t);
}

/* Who holds it by ptrace, which the kernel tells. */
static void add_tracer(const struct mmr_ladder *l, struct text *t)
{
	const char *thread, *proc;

	if (!l->tracer)
		return;
	add(t, ", held by its tracer");
	if (l->tracer_slot >= 0) {
		mmr_ladder_names(l->s, l->tracer_slot, &thread, &proc);
		add(t, " thread %s of process %s", thread, proc);
	}
	add(t, " (tid %d)", l->tracer);
}

/* Who may have the lock that it waits for: the one of its process that is in
 * the kernel and does not wait for it.  The kernel does not tell the owner. */
static void add_holder(const struct mmr_ladder *l, struct text *t)
{
	const struct mmr_other *o;
	const char *thread, *proc;

	if (!l->lock_wait)
		return;
	if (l->s->verdict != MMR_LOCK_STARVATION)
		add(t, ", waiting for the address-space lock");
	if (l->holder < 0)
		return;
	o = &l->others[l->holder];
	mmr_ladder_names(l->s, o->slot, &thread, &proc);
	add(t, ", which thread %s (tid %d) may hold", thread, o->tid);
	add_slot_statement(l, o->slot, t);
	if (o->state == 'R')
		add(t, ", on CPU");
	else if (o->frames[0])
		add(t, ", asleep in %.*s", (int)strcspn(o->frames, "<"),
		    o->frames);
}

/* What the kind of stall adds to what has been said. */
static void add_kind(const struct mmr_ladder *l, struct text *t)
{
	switch (l->stall) {
	case MMR_STALL_PAUSE:
		add(t, "; the machine stood still for most of that time, which "
		       "is no fault of the kernel that runs here");
		break;
	case MMR_STALL_BLOCKED:
		add(t, ": blocked");
		break;
	case MMR_STALL_SPINS:
		add(t, ", always in the same place: it spins");
		break;
	case MMR_STALL_SLOW:
		if (l->paths > 2)
			add(t, ", in %d places of the kernel", l->paths);
		add(t, ": slow, but it moves");
		break;
	default:
		break;
	}
}

/* "asleep in futex_wait_queue (state S)", "on CPU (98 %)". */
static void add_where(const struct mmr_ladder *l, struct text *t)
{
	const struct mmr_suspect *s = l->s;
	size_t first = strcspn(l->frames, "<");
	double on = l->cpu_share;

	/* Over the whole stall, where the monitor saw it. */
	if (s->cpu_ns > 0 && s->wall_ns > 0)
		on = (double)s->cpu_ns / (double)s->wall_ns;
	if (l->state == 'R' || (!l->state && on > 0.5)) {
		add(t, ", on CPU");
		if (on >= 0)
			add(t, " (%.0f %%)", on > 1 ? 100 : on * 100);
		return;
	}
	if (!l->state && !s->asleep_ns)
		return;
	if (l->state == 't' || l->state == 'T')
		add(t, ", stopped");
	else if (l->state == 'Z')
		add(t, ", a zombie");
	else
		add(t, ", asleep");
	if (first)
		add(t, " in %.*s", (int)first, l->frames);
	else if (l->wchan[0])
		add(t, " in %s", l->wchan);
	if (l->state)
		add(t, " (state %c)", l->state);
	add_tracer(l, t);
	add_owner(l, t);
	add_holder(l, t);
}

/*
 * The monitor's count is over the whole stall and has what perf, the task's
 * own counters and the handler saw; perf's is of its short look only.
 */
static double fault_rate(const struct mmr_ladder *l)
{
	double monitor = -1;

	if (l->s->fault_ns > 0)
		monitor = (double)l->s->faults * 1e9 / (double)l->s->fault_ns;
	return monitor > 0 ? monitor : l->faults_per_s;
}

static void add_faults(const struct mmr_ladder *l, struct text *t)
{
	double rate = fault_rate(l);
	uint64_t addr = l->addr_of ? l->addr : l->s->fault_addr;

	if (l->s->verdict != MMR_FAULT_STORM && rate < 100)
		return;
	if (rate >= 0)
		add(t, ", %.0f page faults/s", rate);
	if (!addr)
		return;
	if (l->addr_of && l->addr_of == l->addr_all)
		add(t, " all at 0x%" PRIx64, addr);
	else if (l->addr_of)
		add(t, ", %" PRIu64 " of %" PRIu64 " at 0x%" PRIx64, l->addr_of,
		    l->addr_all, addr);
	else
		add(t, " at 0x%" PRIx64, addr);
}

/* Context switches, over the longer of the two looks at them. */
static void add_switches(const struct mmr_ladder *l, struct text *t)
{
	int64_t vol = l->voluntary, invol = l->involuntary;
	double ms = l->switch_ms;

	if (l->s->fault_ns > 0 && l->s->fault_ns > (int64_t)(ms * 1e6)) {
		vol = (int64_t)l->s->voluntary;
		invol = (int64_t)l->s->involuntary;
		ms = (double)l->s->fault_ns / 1e6;
	}
	if (vol < 0 || ms <= 0)
		return;
	if (vol)
		add(t, ", %" PRId64 " voluntary", vol);
	else
		add(t, ", no voluntary");
	if (invol == 0)
		add(t, " and no forced");
	else if (invol > 0)
		add(t, " and %" PRId64 " forced", invol);
	add(t, " context switch%s in %.2f s",
	    invol > 1 || (vol > 1 && invol < 0) ? "es" : "", ms / 1e3);
}

/* True when the faults of a storm come to a handler, which lets the access be
 * tried again: another stall than one that the kernel keeps to itself. */
static bool signals(const struct mmr_ladder *l)
{
	const struct mmr_thread_slot *t;

	if (!l->s->area || l->s->thread_slot < 0)
		return false;
	t = MMR_AREA_AT(l->s->area, l->s->area->threads_off,
			struct mmr_thread_slot) +
	    l->s->thread_slot;
	return atomic_load(&t->faults) > SIGNALS_MIN;
}

static void add_crash(const struct mmr_ladder *l, struct text *t)
{
	const struct mmr_proc_slot *p;
	int status, sig;

	add_who(l, t);
	if (l->s->proc_slot < 0 || !l->s->area) {
		add(t, " died of a signal that the case does not explain");
		return;
	}
	p = MMR_AREA_AT(l->s->area, l->s->area->procs_off,
			struct mmr_proc_slot) +
	    l->s->proc_slot;
	status = atomic_load(&p->status);
	sig = status & 0xff;
	add(t, " died of SIG%s, which the case does not explain",
	    sigabbrev_np(sig) ? sigabbrev_np(sig) : "?");
	if (l->s->stmt >= 0)
		add(t, ", last seen");
	add_statement(l, t);
}

static void add_stalled(const struct mmr_ladder *l, struct text *t)
{
	const struct mmr_suspect *s = l->s;
	double wall = seconds(s->wall_ns);

	add_who(l, t);
	if (s->over) {
		add_time(t, " took ", s->wall_ns);
		add_statement(l, t);
		add_time(t, " (limit ", s->limit_ns);
		add_time(t, "): ", s->cpu_ns);
		add_time(t, " on a CPU, ", s->asleep_ns);
		add_time(t, " asleep, ", s->delay_ns);
		add(t, " waiting for a CPU");
		return;
	}
	switch (l->s->verdict) {
	case MMR_FAULT_STORM:
		add(t, " faults again and again");
		add_statement(l, t);
		add(t, ", no new page for %.2f s", wall);
		break;
	case MMR_LONG_EXIT:
		add(t, " has not finished its exit after %.2f s", wall);
		break;
	case MMR_LOCK_STARVATION:
		add(t, " waits for the address-space lock");
		add_statement(l, t);
		add(t,
		    " since %.2f s, while others take it (they finished "
		    "%" PRIu64 " calls during %.2f s of looking)",
		    wall, l->other_ops, looked(l));
		break;
	case MMR_HANG:
		add(t, " is stuck");
		add_statement(l, t);
		add(t, ": no progress in the calm phase for %.2f s", wall);
		break;
	default:
		add(t, " is");
		add_statement(l, t);
		add(t, " since %.2f s", wall);
		break;
	}
	if (s->limit_ns)
		add(t, " (limit %.4g s)", seconds(s->limit_ns));
	add_where(l, t);
	add_kind(l, t);
	add_faults(l, t);
	add_switches(l, t);
	if (s->verdict == MMR_FAULT_STORM && signals(l))
		add(t, "; each fault ends in a SIGSEGV whose handler returns");
	if (s->pause_ns > 1000000)
		add(t, "; %.0f ms of it the machine stood still",
		    (double)s->pause_ns / 1e6);
	if (l->steps && l->ended_by && !strcmp(l->ended_by, "itself"))
		add(t, "; it went on by itself before it was looked at");
	else if (l->steps && l->ended_by && l->ended_by == l->s->before)
		add(t, "; it went on after %s", l->ended_by);
	else if (l->steps && l->ended_by)
		add(t, "; it went on after step %s", l->ended_by);
	else if (l->steps)
		add(t, "; no step of looking at it ended it");
}

void mmr_ladder_sentence(const struct mmr_ladder *l, char *out, size_t n)
{
	struct text t = {out, n, 0};
	char title[160];

	if (!n)
		return;
	out[0] = '\0';
	switch (l->s->verdict) {
	case MMR_CRASH:
		add_crash(l, &t);
		break;
	case MMR_KERNEL_LOG:
		mmr_signature_klog(l->s->klog ? l->s->klog : "", title,
				   sizeof(title));
		add(&t, "the kernel log has: %s", title);
		break;
	case MMR_CORRUPTION:
		add_who(l, &t);
		add(&t, " read what was not written");
		add_statement(l, &t);
		add(&t, "%s%s", l->s->note[0] ? ": " : "", l->s->note);
		break;
	case MMR_LEAK:
		add(&t, "what the case took did not come back");
		break;
	default:
		add_stalled(l, &t);
		break;
	}
}

void mmr_ladder_signature(const struct mmr_ladder *l, char *sig, size_t nsig,
			  char *id, size_t nid)
{
	const struct mmr_suspect *s = l->s;
	const struct mmr_stmt *st = mmr_case_stmt(s->c, s->stmt);
	const char *op = s->verdict == MMR_LONG_EXIT ? "exit" : "-";
	const struct mmr_proc_slot *p;
	struct text t = {sig, nsig, 0};
	char title[160];

	if (s->stmt >= 0 && st)
		op = st->kind == MMR_STMT_OP ? st->op->name : "loop";
	sig[0] = '\0';
	add(&t, "%s", mmr_verdict_name(l->s->verdict));
	switch (l->s->verdict) {
	case MMR_KERNEL_LOG:
		mmr_signature_klog(s->klog ? s->klog : "", title,
				   sizeof(title));
		add(&t, " %s", title);
		break;
	case MMR_CRASH:
		p = s->area && s->proc_slot >= 0
			    ? MMR_AREA_AT(s->area, s->area->procs_off,
					  struct mmr_proc_slot) +
				      s->proc_slot
			    : NULL;
		add(&t, " %s", op);
		if (p)
			add(&t, " signal %d", atomic_load(&p->status) & 0xff);
		break;
	case MMR_FAULT_STORM:
		/* Its stack is another one at every look. */
		add(&t, " %s%s", op, signals(l) ? "+SIGSEGV" : "");
		break;
	default:
		add(&t, " %s", op);
		if (l->frames[0] && !s->over && s->verdict != MMR_CORRUPTION)
			add(&t, " %s", l->frames);
		break;
	}
	mmr_signature_id(l->s->verdict, sig, id, nid);
}
