// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The monitor thread: walks the live targets, feeds each one's detector, and
 * does what it wants done: the calm phase, and events to the runner.
 */
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "heartbeat.h"
#include "target.h"

#define TICK_NS 15000000
#define MAX_TARGETS 256
#define SPLAT_NS 60000000 /* a report of many lines takes that long to come */

static struct {
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	_Atomic uint64_t ticks;
	_Atomic int64_t pause_ns;
} mon;

static int probe_task(void *arg, pid_t pid, pid_t tid,
		      struct mmr_task_sample *s)
{
	(void)arg;
	return mmr_sample_task(pid, tid, s);
}

static int probe_exiting(void *arg, pid_t pid, struct mmr_exit_sample *s)
{
	(void)arg;
	return mmr_sample_exit(pid, s);
}

static int probe_switches(void *arg, pid_t pid, pid_t tid, uint64_t *vol,
			  uint64_t *invol)
{
	(void)arg;
	return mmr_sample_switches(pid, tid, vol, invol);
}

static pid_t probe_resolve(void *arg, pid_t supervisor, pid_t nspid)
{
	(void)arg;
	return mmr_sample_resolve(supervisor, nspid);
}

static int64_t probe_pause(void *arg, uint64_t from, uint64_t to)
{
	(void)arg;
	return mmr_heartbeat_pause(from, to);
}

static int64_t probe_late(void *arg, uint64_t from, uint64_t to)
{
	(void)arg;
	return mmr_heartbeat_late(from, to);
}

static bool probe_on_mmap_lock(void *arg, pid_t pid, pid_t tid)
{
	(void)arg;
	return mmr_sample_on_mmap_lock(pid, tid);
}

static void *probe_faults_open(void *arg, pid_t tid)
{
	struct mmr_perf *p = malloc(sizeof(*p));

	(void)arg;
	if (p && mmr_perf_open(tid, p)) {
		free(p);
		p = NULL;
	}
	return p;
}

static uint64_t probe_faults_read(void *arg, void *handle, uint64_t *addr)
{
	uint64_t of_it = 0, in_all = 0;

	(void)arg;
	*addr = mmr_perf_top_address(handle, &of_it, &in_all);
	return mmr_perf_faults(handle);
}

static void probe_faults_close(void *arg, void *handle)
{
	(void)arg;
	mmr_perf_close(handle);
	free(handle);
}

static const struct mmr_probe probe = {
	.task = probe_task,
	.exiting = probe_exiting,
	.switches = probe_switches,
	.resolve = probe_resolve,
	.pause = probe_pause,
	.late = probe_late,
	.on_mmap_lock = probe_on_mmap_lock,
	.faults_open = probe_faults_open,
	.faults_read = probe_faults_read,
	.faults_close = probe_faults_close,
};

static void send(struct mmr_target *t, const struct mmr_suspect *s,
		 uint64_t now)
{
	struct mmr_event *e = calloc(1, sizeof(*e));

	/* Out of memory: the next tick tries again (but for a log, which has
	 * been taken). */
	if (!e) {
		free((void *)(uintptr_t)s->klog);
		return;
	}
	e->suspect = *s;
	e->suspect.flagged_ns =
		mmr_clock_monotonic() - (int64_t)(mmr_engine_now_ns() - now);
	t->fired = true;
	/* Its counters would sample beside those of the evidence. */
	mmr_detect_free(t->detect);
	t->detect = NULL;
	mmr_target_send(t, e);
}

/* Kernel log trouble goes to the first target that runs since before it. */
static void look_at_log(struct mmr_target *t, uint64_t now)
{
	struct mmr_suspect s = {.verdict = MMR_KERNEL_LOG,
				.area = t->area,
				.thread_slot = -1,
				.proc_slot = -1,
				.stmt = -1};

	if (!mmr_klog_pending(&t->klog_mark)) {
		t->klog_seen_ns = 0;
		return;
	}
	if (!t->klog_seen_ns)
		t->klog_seen_ns = now;
	if (now - t->klog_seen_ns < SPLAT_NS)
		return;
	s.klog = mmr_klog_take(&t->klog_mark);
	s.wall_ns = (int64_t)(now - t->klog_seen_ns);
	if (s.klog)
		send(t, &s, now);
}

static void look_at(struct mmr_target *t, uint64_t now)
{
	struct mmr_detect_out out;

	if (t->fired || atomic_load_explicit(&t->retired, memory_order_acquire))
		return;
	if (!t->detect)
		t->detect = mmr_detect_new(t->area, &t->limits, &probe);
	if (!t->detect)
		return;
	mmr_detect_tick(t->detect, now, &out);
	atomic_store_explicit(&t->suspecting, mmr_detect_suspecting(t->detect),
			      memory_order_relaxed);
	if (out.void_round)
		atomic_store(&t->area->ctl_void, 1);
	if (out.calm)
		mmr_target_ctl(t, MMR_CTL_CALM);
	if (out.flagged) {
		send(t, &out.suspect, now);
		return;
	}
	if (out.voids) {
		out.suspect.verdict = MMR_VOID;
		send(t, &out.suspect, now);
		return;
	}
	look_at_log(t, now);
}

static void tick(uint64_t *last_ns)
{
	struct mmr_target *live[MAX_TARGETS];
	uint64_t now = mmr_engine_now_ns();
	int i, n;

	atomic_fetch_add_explicit(&mon.pause_ns,
				  mmr_heartbeat_pause(*last_ns, now),
				  memory_order_relaxed);
	*last_ns = now;
	mmr_klog_poll();
	n = mmr_target_collect(live, MAX_TARGETS);
	for (i = 0; i < n; i++) {
		look_at(live[i], mmr_engine_now_ns());
		mmr_target_put(live[i]);
	}
	atomic_fetch_add_explicit(&mon.ticks, 1, memory_order_relaxed);
}

/* 0 when b is no later than a. */
static uint64_t ns_between(const struct timespec *a, const struct timespec *b)
{
	int64_t ns = (int64_t)(b->tv_sec - a->tv_sec) * 1000000000 +
		     (b->tv_nsec - a->tv_nsec);

	return ns > 0 ? (uint64_t)ns : 0;
}

static void *monitor_main(void *arg)
{
	uint64_t last = mmr_engine_now_ns(), due, delay;
	struct timespec t;
	int fd;

	(void)arg;
	fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	prctl(PR_SET_NAME, "mmr-monitor");
	mmr_heartbeat_short_turns();
	prctl(PR_SET_TIMERSLACK, 1000000);
	clock_gettime(CLOCK_MONOTONIC, &t);
	while (!atomic_load_explicit(&mon.stop, memory_order_relaxed)) {
		struct timespec now;

		t.tv_nsec += TICK_NS;
		if (t.tv_nsec >= 1000000000) {
			t.tv_nsec -= 1000000000;
			t.tv_sec++;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		due = mmr_engine_now_ns() + ns_between(&now, &t);
		delay = mmr_heartbeat_run_delay(fd);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		delay = mmr_heartbeat_run_delay(fd) - delay;
		mmr_heartbeat_nap(due, mmr_engine_now_ns() - delay);
		tick(&last);
		/* Late already: no run of ticks to catch up. */
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > t.tv_sec ||
		    (now.tv_sec == t.tv_sec && now.tv_nsec > t.tv_nsec))
			t = now;
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

int mmr_monitor_start(void)
{
	int err;

	atomic_store(&mon.stop, false);
	atomic_store(&mon.ticks, 0);
	atomic_store(&mon.pause_ns, 0);
	err = pthread_create(&mon.thread, NULL, monitor_main, NULL);
	mon.running = !err;
	return -err;
}

void mmr_monitor_stop(void)
{
	if (!mon.running)
		return;
	atomic_store(&mon.stop, true);
	pthread_join(mon.thread, NULL);
	mon.running = false;
}

uint64_t mmr_monitor_cost_ns(void)
{
	struct timespec t;
	clockid_t id;

	if (!mon.running || pthread_getcpuclockid(mon.thread, &id) ||
	    clock_gettime(id, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t mmr_monitor_ticks(void)
{
	return atomic_load(&mon.ticks);
}

int64_t mmr_monitor_pause_ns(void)
{
	return atomic_load(&mon.pause_ns);
}
