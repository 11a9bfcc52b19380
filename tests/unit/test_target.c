// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of live targets under real concurrency: threads that add and
 * retire against one that walks, and events one way.  Run it under TSan and
 * ASan too (make check-tsan, check-asan): a use after free or a lost
 * reference shows there for sure, here as a wrong magic word.  Also the
 * heartbeat's arithmetic, and samples of this very process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../triage/heartbeat.h"
#include "../../triage/target.h"

#define WRITERS 3
#define TURNS 4000

static struct mmr_area *fake_area(int *fd)
{
	struct mmr_area *a;

	*fd = memfd_create("test", MFD_CLOEXEC);
	assert_true(*fd >= 0);
	assert_int_equal(ftruncate(*fd, sizeof(*a)), 0);
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(a != MAP_FAILED);
	a->magic = MMR_AREA_MAGIC;
	a->size = sizeof(*a);
	return a;
}

static struct mmr_target *fake_target(void)
{
	int fd;
	struct mmr_area *a = fake_area(&fd);
	struct mmr_target *t = mmr_target_new(a, fd);

	assert_non_null(t);
	return t;
}

/* Red when a retired target is still found, or a live one is not. */
static void test_collect(void **state)
{
	struct mmr_target *a = fake_target(), *b = fake_target(), *out[8];
	int n;

	(void)state;
	mmr_target_add(a);
	mmr_target_add(b);
	assert_int_equal(mmr_target_count(), 2);
	n = mmr_target_collect(out, 8);
	assert_int_equal(n, 2);
	assert_ptr_equal(out[0], a);
	mmr_target_put(out[0]);
	mmr_target_put(out[1]);
	assert_int_equal(mmr_target_collect(out, 1), 1);
	mmr_target_put(out[0]);
	mmr_target_retire(a);
	n = mmr_target_collect(out, 8);
	assert_int_equal(n, 1);
	assert_ptr_equal(out[0], b);
	mmr_target_put(a);
	/* b outlives its runner while somebody holds it. */
	mmr_target_retire(b);
	mmr_target_put(b);
	assert_int_equal(out[0]->area->magic, MMR_AREA_MAGIC);
	mmr_target_put(out[0]);
	assert_int_equal(mmr_target_collect(out, 8), 0);
	mmr_target_barrier();
}

/* Red when an event is lost, reordered, or nobody is woken. */
static void test_events(void **state)
{
	struct mmr_target *t = fake_target();
	struct pollfd p = {.fd = t->event_fd, .events = POLLIN};
	struct mmr_event *e;
	int i;

	(void)state;
	assert_null(mmr_target_receive(t));
	assert_int_equal(poll(&p, 1, 0), 0);
	for (i = 0; i < 3; i++) {
		e = calloc(1, sizeof(*e));
		e->suspect.stmt = i;
		e->suspect.klog = strdup("lines");
		mmr_target_send(t, e);
	}
	assert_int_equal(poll(&p, 1, 0), 1);
	for (i = 0; i < 2; i++) {
		e = mmr_target_receive(t);
		assert_non_null(e);
		assert_int_equal(e->suspect.stmt, i);
		mmr_event_free(e);
	}
	/* The third one goes with the target. */
	mmr_target_put(t);
	mmr_target_barrier();
}

/* Red when ctl goes back from END. */
static void test_ctl(void **state)
{
	struct mmr_target *t = fake_target();

	(void)state;
	mmr_target_ctl(t, MMR_CTL_CALM);
	assert_int_equal(atomic_load(&t->area->ctl), MMR_CTL_CALM);
	mmr_target_ctl(t, MMR_CTL_END);
	mmr_target_ctl(t, MMR_CTL_CALM);
	assert_int_equal(atomic_load(&t->area->ctl), MMR_CTL_END);
	mmr_target_put(t);
}

static _Atomic bool stop;
static _Atomic uint64_t seen, wrong;

static void *walker(void *arg)
{
	struct mmr_target *out[16];
	struct mmr_event *e;
	int i, n;

	(void)arg;
	while (!atomic_load(&stop)) {
		n = mmr_target_collect(out, 16);
		for (i = 0; i < n; i++) {
			if (out[i]->area->magic != MMR_AREA_MAGIC)
				atomic_fetch_add(&wrong, 1);
			if (!out[i]->fired) {
				out[i]->fired = true;
				e = calloc(1, sizeof(*e));
				mmr_target_send(out[i], e);
			}
			mmr_target_put(out[i]);
			atomic_fetch_add(&seen, 1);
		}
	}
	return NULL;
}

static void *writer(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < TURNS; i++) {
		struct mmr_target *t = fake_target();
		struct mmr_event *e;

		mmr_target_add(t);
		if (i % 7 == 0)
			sched_yield();
		e = mmr_target_receive(t);
		if (e)
			mmr_event_free(e);
		mmr_target_retire(t);
		mmr_target_put(t);
	}
	return NULL;
}

/* Red when a target goes while the walker looks at it, or is leaked (the
 * descriptors would run out: each target has two). */
static void test_concurrent(void **state)
{
	pthread_t w[WRITERS], r;
	struct mmr_target *out[4];
	int i;

	(void)state;
	assert_int_equal(pthread_create(&r, NULL, walker, NULL), 0);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&w[i], NULL, writer, NULL), 0);
	for (i = 0; i < WRITERS; i++)
		pthread_join(w[i], NULL);
	atomic_store(&stop, true);
	pthread_join(r, NULL);
	mmr_target_barrier();
	assert_int_equal(atomic_load(&wrong), 0);
	assert_int_equal(mmr_target_count(), 0);
	assert_int_equal(mmr_target_collect(out, 4), 0);
	assert_true(atomic_load(&seen) > 0);
}

#define MS 1000000ULL

/* Red when a pause is not what all CPUs were late for at once. */
static void test_pause(void **state)
{
	(void)state;
	mmr_heartbeat_fake(-1, 2, 0, 0);
	mmr_heartbeat_fake(0, 0, 100 * MS, 150 * MS);
	assert_int_equal(mmr_heartbeat_pause(0, 1000 * MS), 0);
	assert_int_equal(mmr_heartbeat_late(0, 1000 * MS), 50 * MS);
	mmr_heartbeat_fake(1, 0, 120 * MS, 180 * MS);
	assert_int_equal(mmr_heartbeat_pause(0, 1000 * MS), 30 * MS);
	assert_int_equal(mmr_heartbeat_pause(140 * MS, 145 * MS), 5 * MS);
	assert_int_equal(mmr_heartbeat_pause(150 * MS, 400 * MS), 0);
	assert_int_equal(mmr_heartbeat_late(0, 1000 * MS), 60 * MS);
	/* Two more, apart from each other. */
	mmr_heartbeat_fake(0, 0, 300 * MS, 310 * MS);
	mmr_heartbeat_fake(1, 0, 290 * MS, 305 * MS);
	assert_int_equal(mmr_heartbeat_pause(0, 1000 * MS), 35 * MS);
	/* A single CPU's short latenesses are ordinary. */
	mmr_heartbeat_fake(0, 0, 500 * MS, 503 * MS);
	assert_int_equal(mmr_heartbeat_late(450 * MS, 600 * MS), 0);
}

/* Red when a thread that spins looks asleep, or one that sleeps busy. */
static void test_sample_self(void **state)
{
	struct mmr_task_sample a, b;
	struct timespec t0, t1;

	(void)state;
	assert_int_equal(mmr_sample_task(getpid(), gettid(), &a), 0);
	assert_int_equal(a.state, 'R');
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
	while ((t1.tv_sec - t0.tv_sec) * 1000 +
		       (t1.tv_nsec - t0.tv_nsec) / 1000000 <
	       60);
	assert_int_equal(mmr_sample_task(getpid(), gettid(), &b), 0);
	assert_in_range(b.run_ns - a.run_ns, 30 * MS, 200 * MS);
	assert_int_equal(mmr_sample_task(getpid(), getpid() + 4000000, &b),
			 -ESRCH);
}

/* Red when a name with parentheses and spaces shifts the fields. */
static void test_parse_stat(void **state)
{
	static const char line[] =
		"7 (a) R 1 (b) D 42 7 7 0 -1 4194560 111 0 22 0 300 100 0 0 "
		"20 0 1 0 5 6 7\n";
	struct mmr_task_sample s;
	pid_t parent;

	(void)state;
	assert_int_equal(mmr_sample_parse_stat(line, &s, &parent), 0);
	assert_int_equal(s.state, 'D');
	assert_int_equal(parent, 42);
	assert_int_equal(s.minflt, 111);
	assert_int_equal(s.majflt, 22);
	assert_int_equal(s.run_ns, 400 * (1000000000ULL /
					  (uint64_t)sysconf(_SC_CLK_TCK)));
	assert_int_not_equal(mmr_sample_parse_stat("7 (x", &s, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collect),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_ctl),
		cmocka_unit_test(test_concurrent),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_sample_self),
		cmocka_unit_test(test_parse_stat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
