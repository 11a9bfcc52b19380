/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A made-up world for the detector's tests: an area that the test writes as a
 * child would, and a probe that says what the test wants.
 */
#ifndef MMR_TESTS_DETECT_WORLD_H
#define MMR_TESTS_DETECT_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "../../ops/compile.h"
#include "../../triage/detect.h"

#define MS 1000000LL
#define TICK (15 * MS)
#define START (1000 * 1000 * MS)

/* main: A works, B joins; statements by number in the text. */
static const char text[] = "mmrace-case 1\n"
			   "process main\n"
			   "  thread A\n"
			   "    m0 = mmap len=16M prot=rw flags=private|anon\n"
			   "    write m0 step=1p\n"
			   "    munmap m0\n"
			   "    futex_wait f\n"
			   "  thread B\n"
			   "    wait never\n"
			   "    t0 = thread_spawn body=idle\n"
			   "    thread_join t0\n"
			   "    delay 2s\n";
enum { MMAP, WRITE, MUNMAP, FUTEX, WAIT, SPAWN, JOIN, DELAY };

struct world {
	struct mmr_case *c;
	struct mmr_area *area;
	int fd;
	struct mmr_thread_slot *t;
	struct mmr_proc_slot *p;
	struct mmr_detect *d;
	struct mmr_detect_out out;
	uint64_t now;
	/* What the probe says; rates are per tick. */
	struct mmr_task_sample task[8];
	int64_t run_per_tick[8], delay_per_tick[8];
	uint64_t faults_per_tick[8];
	struct mmr_exit_sample exiting;
	int64_t exit_run_per_tick;
	int exit_err;
	int64_t pause, late; /* of every stretch asked for: its part of 100 */
	bool on_lock;	     /* all sleep on the lock of an address space */
	int samples;	     /* taken so far */
	int64_t calm_at, flagged_at; /* ms since the start, -1 */
	bool voided;
};

static int probe_task(void *arg, pid_t pid, pid_t tid,
		      struct mmr_task_sample *s)
{
	struct world *w = arg;

	(void)pid;
	w->samples++;
	*s = w->task[tid - 100];
	return s->state == 'X' ? -ESRCH : 0;
}

static int probe_exiting(void *arg, pid_t pid, struct mmr_exit_sample *s)
{
	struct world *w = arg;

	(void)pid;
	*s = w->exiting;
	return w->exit_err;
}

static int probe_switches(void *arg, pid_t pid, pid_t tid, uint64_t *v,
			  uint64_t *i)
{
	(void)arg;
	(void)pid;
	(void)tid;
	*v = *i = 0;
	return 0;
}

static pid_t probe_resolve(void *arg, pid_t supervisor, pid_t nspid)
{
	(void)arg;
	(void)supervisor;
	return nspid + 1000;
}

static int64_t probe_pause(void *arg, uint64_t from, uint64_t to)
{
	struct world *w = arg;

	return (int64_t)(to - from) * w->pause / 100;
}

static int64_t probe_late(void *arg, uint64_t from, uint64_t to)
{
	struct world *w = arg;

	return (int64_t)(to - from) * w->late / 100;
}

static bool probe_on_mmap_lock(void *arg, pid_t pid, pid_t tid)
{
	struct world *w = arg;

	(void)pid;
	(void)tid;
	return w->on_lock;
}

static struct mmr_probe probe = {.task = probe_task,
				 .exiting = probe_exiting,
				 .switches = probe_switches,
				 .resolve = probe_resolve,
				 .pause = probe_pause,
				 .late = probe_late,
				 .on_mmap_lock = probe_on_mmap_lock};

static uint64_t ticks(struct world *w, uint64_t ns)
{
	return mmr_clock_from_ns(&w->area->clock, ns);
}

/* Thread slot i enters statement stmt now. */
static void enter(struct world *w, int i, int stmt)
{
	atomic_store(&w->t[i].state, MMR_THREAD_RUNNING);
	atomic_store(&w->t[i].stmt, (uint32_t)stmt + 1);
	atomic_store(&w->t[i].start, ticks(w, w->now));
	atomic_store(&w->t[i].host_pid, 100);
	atomic_store(&w->t[i].host_tid, 100 + i);
	w->t[i].thread = (uint16_t)(i == 1);
	w->t[i].proc_slot = 0;
}

static void begin_with(struct world *w, const struct mmr_limits *limits,
		       double scale)
{
	struct mmr_compile_opts opts = {.seed = 1};
	struct mmr_detect_limits l;
	struct mmr_diag diag;
	int i;

	memset(w, 0, sizeof(*w));
	assert_int_equal(
		mmr_case_parse(text, strlen(text), &w->c, &diag, NULL, NULL),
		0);
	assert_int_equal(mmr_compile(w->c, &opts, &w->area, &w->fd, &diag), 0);
	w->t = MMR_AREA_AT(w->area, w->area->threads_off,
			   struct mmr_thread_slot);
	w->p = MMR_AREA_AT(w->area, w->area->procs_off, struct mmr_proc_slot);
	w->now = START;
	w->calm_at = w->flagged_at = -1;
	atomic_store(&w->area->state, MMR_STATE_RUN);
	atomic_store(&w->area->round, 1);
	atomic_store(&w->area->thread_slots, 4);
	atomic_store(&w->area->proc_slots, 2);
	atomic_store(&w->p[0].state, MMR_PROC_RUNNING);
	for (i = 0; i < 8; i++) {
		w->task[i].state = 'S';
		w->task[i].delay_known = true;
	}
	mmr_detect_limits_init(&l, w->c, limits, scale);
	probe.arg = w;
	w->d = mmr_detect_new(w->area, &l, &probe);
	assert_non_null(w->d);
}

static void begin(struct world *w)
{
	static const struct mmr_limits none;

	begin_with(w, &none, 1);
}

static void end(struct world *w)
{
	mmr_detect_free(w->d);
	mmr_area_close(w->area, w->fd);
	mmr_case_free(w->c);
}

/* One tick, with what the monitor does about it. */
static bool tick(struct world *w)
{
	int i;

	w->now += TICK;
	for (i = 0; i < 8; i++) {
		w->task[i].run_ns += (uint64_t)w->run_per_tick[i];
		w->task[i].delay_ns += (uint64_t)w->delay_per_tick[i];
		w->task[i].minflt += w->faults_per_tick[i];
	}
	w->exiting.sum.run_ns += (uint64_t)w->exit_run_per_tick;
	mmr_detect_tick(w->d, w->now, &w->out);
	w->voided |= w->out.void_round;
	if (w->out.calm) {
		if (w->calm_at < 0)
			w->calm_at = (int64_t)(w->now - START) / MS;
		atomic_store(&w->area->ctl, MMR_CTL_CALM);
	}
	if (w->out.flagged && w->flagged_at < 0)
		w->flagged_at = (int64_t)(w->now - START) / MS;
	return w->out.flagged;
}

/* Ticks for ms, or until something is flagged. */
static bool pass(struct world *w, int64_t ms)
{
	uint64_t until = w->now + (uint64_t)(ms * MS);

	while (w->now < until)
		if (tick(w))
			return true;
	return false;
}

#define FLAGGED(w, what, from, to)                                             \
	do {                                                                   \
		assert_true((w)->out.flagged);                                 \
		assert_int_equal((w)->out.suspect.verdict, what);              \
		assert_in_range((w)->flagged_at, from, to);                    \
	} while (0)

#endif
