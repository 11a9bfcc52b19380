// SPDX-License-Identifier: GPL-2.0-or-later
/* A heartbeat on each CPU, and what their latenesses have in common. */
#include "heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../ops/clock.h"

#define PERIOD_NS 10000000
#define KEEP_NS 1000000 /* shorter latenesses are ordinary */
#define LATE_NS 5000000 /* of a single CPU: worth a doubt */
#define OVERDUE_NS 50000000
#define RING 256
#define SPANS 32 /* pieces of a window that are told apart */

struct late {
	_Atomic uint64_t due, came;
};

struct beat {
	_Alignas(64) _Atomic uint64_t due; /* of the next beat, 0 none yet */
	_Atomic uint64_t head;		   /* entries ever written */
	struct late ring[RING];
	_Atomic int stat_fd; /* of its task, -1 none */
	pthread_t thread;
	bool running;
	int cpu;
};

struct span {
	uint64_t from, to;
};

static struct {
	struct beat *beats;
	int n;
	_Atomic bool stop;
	_Atomic bool fifo;
	struct mmr_clock clock;
} hb;

/* What the watcher of all of it notes of its own naps. */
static struct beat waker;

static void note(struct beat *b, uint64_t due, uint64_t came)
{
	uint64_t h = atomic_load_explicit(&b->head, memory_order_relaxed);
	struct late *l = &b->ring[h % RING];

	atomic_store_explicit(&l->due, due, memory_order_relaxed);
	atomic_store_explicit(&l->came, came, memory_order_relaxed);
	atomic_store_explicit(&b->head, h + 1, memory_order_release);
}

static uint64_t monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void mmr_heartbeat_short_turns(void)
{
	struct { /* struct sched_attr of the kernel */
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = {.size = sizeof(a)};

	/* What cannot be set stays as it is. */
	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) || a.policy)
		return;
	a.runtime = 100000; /* ns, the least */
	syscall(SYS_sched_setattr, 0, &a, 0);
}

uint64_t mmr_heartbeat_run_delay(int fd)
{
	unsigned long long run, delay;
	char buf[80];
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof(buf) - 1, 0);

	if (n <= 0)
		return 0;
	buf[n] = 0;
	return sscanf(buf, "%llu %llu", &run, &delay) == 2 ? delay : 0;
}

/*
 * Without real-time priority a beat is late on a busy CPU, too.  Then it was
 * runnable and waited, which the kernel counts; in a pause of the machine
 * not even its timer came.
 */
static void *beat_main(void *arg)
{
	struct beat *b = arg;
	int fd = -1;
	uint64_t delay0 = 0, delay1;
	struct sched_param param = {.sched_priority = 1};
	uint64_t due, now, at;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(b->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_NAME, "mmr-beat");
	prctl(PR_SET_TIMERSLACK, 1);
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param)) {
		atomic_store(&hb.fifo, false);
		mmr_heartbeat_short_turns();
		atomic_store(&b->stat_fd, open("/proc/thread-self/stat",
					       O_RDONLY | O_CLOEXEC));
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		delay0 = mmr_heartbeat_run_delay(fd);
	}
	due = monotonic() + PERIOD_NS;
	while (!atomic_load_explicit(&hb.stop, memory_order_relaxed)) {
		struct timespec ts = {(time_t)(due / 1000000000),
				      (long)(due % 1000000000)};

		at = mmr_clock_to_ns(&hb.clock, mmr_clock_now(&hb.clock));
		now = monotonic();
		atomic_store_explicit(&b->due, at + due - now,
				      memory_order_release);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		now = monotonic();
		at = mmr_clock_to_ns(&hb.clock, mmr_clock_now(&hb.clock));
		delay1 = mmr_heartbeat_run_delay(fd);
		if (now > due + KEEP_NS + delay1 - delay0)
			note(b, at - (now - due), at - (delay1 - delay0));
		delay0 = delay1;
		due += PERIOD_NS;
		if (due <= now)
			due = now + PERIOD_NS;
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

int mmr_heartbeat_start(void)
{
	cpu_set_t set;
	pthread_attr_t attr;
	int i, err = 0;

	mmr_clock_init(&hb.clock);
	if (sched_getaffinity(0, sizeof(set), &set)) {
		CPU_ZERO(&set);
		CPU_SET(0, &set);
	}
	hb.beats =
		aligned_alloc(64, (size_t)CPU_COUNT(&set) * sizeof(*hb.beats));
	if (!hb.beats)
		return -ENOMEM;
	__builtin_memset(hb.beats, 0,
			 (size_t)CPU_COUNT(&set) * sizeof(*hb.beats));
	atomic_store(&hb.stop, false);
	atomic_store(&hb.fifo, true);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (i = 0; i < CPU_SETSIZE; i++) {
		struct beat *b = &hb.beats[hb.n];

		if (!CPU_ISSET(i, &set))
			continue;
		b->cpu = i;
		atomic_store(&b->stat_fd, -1);
		err = pthread_create(&b->thread, &attr, beat_main, b);
		if (err)
			break;
		b->running = true;
		hb.n++;
	}
	pthread_attr_destroy(&attr);
	return -err;
}

void mmr_heartbeat_stop(void)
{
	int i;

	atomic_store(&hb.stop, true);
	for (i = 0; i < hb.n; i++)
		if (hb.beats[i].running)
			pthread_join(hb.beats[i].thread, NULL);
	for (i = 0; i < hb.n; i++)
		if (atomic_load(&hb.beats[i].stat_fd) >= 0)
			close(atomic_load(&hb.beats[i].stat_fd));
	hb.n = 0;
	free(hb.beats);
	hb.beats = NULL;
}

void mmr_heartbeat_fake(int i, int n, uint64_t due_ns, uint64_t came_ns)
{
	if (i >= 0) {
		note(&hb.beats[i], due_ns, came_ns);
		return;
	}
	free(hb.beats);
	hb.beats = aligned_alloc(64, (size_t)n * sizeof(*hb.beats));
	if (!hb.beats)
		abort();
	__builtin_memset(hb.beats, 0, (size_t)n * sizeof(*hb.beats));
	for (i = 0; i < n; i++)
		atomic_store(&hb.beats[i].stat_fd, -1);
	hb.n = n;
	atomic_store(&hb.fifo, true);
}

void mmr_heartbeat_nap(uint64_t due_ns, uint64_t came_ns)
{
	if (came_ns > due_ns + KEEP_NS)
		note(&waker, due_ns, came_ns);
}

/* The spans of a ring within from..to that are at least min long, newest
 * first, behind the n that are in out; their number in all. */
static int ring_spans(const struct beat *b, uint64_t from, uint64_t to,
		      uint64_t min, struct span *out, int n, int max)
{
	uint64_t head = atomic_load_explicit(&b->head, memory_order_acquire);
	uint64_t k, due, came, oldest = head > RING - 1 ? head - (RING - 1) : 0;

	for (k = head; k > oldest && n < max; k--) {
		const struct late *l = &b->ring[(k - 1) % RING];

		due = atomic_load_explicit(&l->due, memory_order_relaxed);
		came = atomic_load_explicit(&l->came, memory_order_relaxed);
		if (came <= from)
			break;
		if (due >= to || came - due < min)
			continue;
		out[n].from = due > from ? due : from;
		out[n++].to = came < to ? came : to;
	}
	return n;
}

/* True when the beat's thread is runnable: it waits for its CPU, which runs
 * others meanwhile. */
static bool waits_for_cpu(const struct beat *b)
{
	int fd = atomic_load_explicit(&b->stat_fd, memory_order_relaxed);
	char buf[64], *p;
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof(buf) - 1, 0);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	p = strrchr(buf, ')');
	return p && p[1] == ' ' && p[2] == 'R';
}

/* The spans within from..to in which CPU b was late by at least min, newest
 * first; at most max. */
static int lates(const struct beat *b, uint64_t from, uint64_t to, uint64_t min,
		 struct span *out, int max)
{
	uint64_t due = atomic_load_explicit(&b->due, memory_order_acquire);
	bool overdue = due && to > due + min;
	int n = 0;

	/* The beat that is overdue now.  Without real-time priority it may
	 * just wait for its CPU, as long as that is not very long, or as long
	 * as the kernel says so: then only what kept the watcher itself from
	 * waking was a pause. */
	if (overdue && !atomic_load_explicit(&hb.fifo, memory_order_relaxed)) {
		if (waits_for_cpu(b)) {
			overdue = false;
			n = ring_spans(&waker, due > from ? due : from, to, min,
				       out, n, max);
		} else {
			due += OVERDUE_NS;
			overdue = to > due + min;
		}
	}
	if (overdue && n < max) {
		out[n].from = due > from ? due : from;
		out[n++].to = to;
	}
	return ring_spans(b, from, to, min, out, n, max);
}

static int64_t total(const struct span *s, int n)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < n; i++)
		sum += s[i].to - s[i].from;
	return (int64_t)sum;
}

int64_t mmr_heartbeat_pause(uint64_t from_ns, uint64_t to_ns)
{
	struct span all[SPANS], mine[SPANS], next[SPANS];
	int i, j, k, n = 1, m, out;

	if (!hb.n || to_ns <= from_ns)
		return 0;
	all[0].from = from_ns;
	all[0].to = to_ns;
	for (i = 0; i < hb.n && n; i++) {
		m = lates(&hb.beats[i], from_ns, to_ns, KEEP_NS, mine, SPANS);
		for (j = 0, out = 0; j < n; j++)
			for (k = 0; k < m && out < SPANS; k++) {
				struct span s = all[j];

				if (mine[k].from > s.from)
					s.from = mine[k].from;
				if (mine[k].to < s.to)
					s.to = mine[k].to;
				if (s.from < s.to)
					next[out++] = s;
			}
		__builtin_memcpy(all, next, (size_t)out * sizeof(*all));
		n = out;
	}
	return total(all, n);
}

int64_t mmr_heartbeat_late(uint64_t from_ns, uint64_t to_ns)
{
	struct span mine[SPANS];
	int64_t t, max = 0;
	int i, m;

	if (to_ns <= from_ns)
		return 0;
	for (i = 0; i < hb.n; i++) {
		m = lates(&hb.beats[i], from_ns, to_ns, LATE_NS, mine, SPANS);
		t = total(mine, m);
		if (t > max)
			max = t;
	}
	return max;
}

uint64_t mmr_heartbeat_cost_ns(void)
{
	uint64_t sum = 0;
	struct timespec t;
	clockid_t id;
	int i;

	for (i = 0; i < hb.n; i++)
		if (hb.beats[i].running &&
		    !pthread_getcpuclockid(hb.beats[i].thread, &id) &&
		    !clock_gettime(id, &t))
			sum += (uint64_t)t.tv_sec * 1000000000 +
			       (uint64_t)t.tv_nsec;
	return sum;
}

bool mmr_heartbeat_fifo(void)
{
	return hb.n && atomic_load(&hb.fifo);
}

int mmr_heartbeat_cpus(void)
{
	return hb.n;
}
