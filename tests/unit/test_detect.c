// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The detector against made-up stories: calls and fault storms.  Each test
 * says which change of the rules makes it red.
 */
#include "detect_world.h"

#include "../../triage/scale.h"

/* Red when a call asleep is not flagged, or later than 250 ms after 1 s. */
static void test_call_asleep(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'D';
	assert_true(pass(&w, 3000));
	FLAGGED(&w, MMR_LONG_SYSCALL, 1000, 1250);
	assert_int_equal(w.out.suspect.thread_slot, 0);
	assert_int_equal(w.out.suspect.stmt, MUNMAP);
	assert_int_equal(w.out.suspect.host_tid, 100);
	end(&w);
}

/* Red when time waiting for a CPU counts, known by state or by schedstat. */
static void test_call_starved(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'R';
	assert_false(pass(&w, 10000));
	w.task[0].state = 'S';
	w.delay_per_tick[0] = TICK;
	assert_false(pass(&w, 10000));
	assert_int_equal(w.calm_at, -1);
	end(&w);
}

/* Red when pauses of the machine, or of one CPU, count as sleep. */
static void test_call_paused(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'D';
	w.pause = w.late = 100;
	assert_false(pass(&w, 5000));
	w.pause = 0;
	assert_false(pass(&w, 5000));
	w.late = 0;
	assert_true(pass(&w, 1100));
	end(&w);
}

/* Red when CPU time is not judged by the work: 16 MiB at 5 times unit_ns is
 * far below 1 s, so 1 s holds; 8 GiB mapped gives it more. */
static void test_call_on_cpu(void **state)
{
	const struct mmr_op *op = mmr_op_by_name("munmap");
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	assert_true(pass(&w, 3000));
	FLAGGED(&w, MMR_LONG_SYSCALL, 1000, 1250);
	end(&w);

	assert_true(op->unit_ns > 0);
	begin(&w);
	atomic_store(&w.p[0].mapped,
		     4096ULL * 2000000000ULL / (5 * op->unit_ns));
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	assert_true(pass(&w, 4000));
	FLAGGED(&w, MMR_LONG_SYSCALL, 1990, 2250);
	end(&w);
}

/* Red when a count of mapped bytes that went below 0 counts as work: the
 * limit of a call, or of an exit, would be anything. */
static void test_mapped_below_zero(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	atomic_store(&w.p[0].mapped, (uint64_t)-4096);
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	assert_true(pass(&w, 3000));
	FLAGGED(&w, MMR_LONG_SYSCALL, 1000, 1250);
	end(&w);
}

/* Red when the scale factor is not applied to CPU time, or is to sleep. */
static void test_scale(void **state)
{
	static const struct mmr_limits none;
	struct world w;

	(void)state;
	begin_with(&w, &none, 5);
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	assert_false(pass(&w, 4500));
	assert_true(pass(&w, 1000));
	end(&w);
	begin_with(&w, &none, 5);
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'D';
	assert_true(pass(&w, 1300));
	end(&w);
}

/* Red when a run would end while a call may yet pass its limit: half a second
 * of ten, on a machine that is ten times slower. */
static void test_suspecting(void **state)
{
	static const struct mmr_limits none;
	struct world w;

	(void)state;
	begin_with(&w, &none, 10);
	enter(&w, 0, MUNMAP);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	assert_false(pass(&w, 200));
	assert_false(mmr_detect_suspecting(w.d));
	assert_false(pass(&w, 400));
	assert_true(mmr_detect_suspecting(w.d));
	enter(&w, 0, MUNMAP); /* the next one: it is over */
	tick(&w);
	assert_false(mmr_detect_suspecting(w.d));
	end(&w);
	/* A storm in the making, which the factor has nothing to do with. */
	begin_with(&w, &none, 10);
	enter(&w, 0, WRITE);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	w.faults_per_tick[0] = 100;
	assert_false(pass(&w, 500));
	assert_true(mmr_detect_suspecting(w.d));
	end(&w);
}

/* Red when what the runner says of the machine does not count, or replaces a
 * factor that is larger. */
static void test_emulated(void **state)
{
	double before = mmr_scale_factor();

	(void)state;
	assert_true(before >= 1);
	mmr_scale_emulated();
	assert_true(mmr_scale_factor() >= MMR_SCALE_EMULATED);
	assert_true(mmr_scale_factor() >= before);
}

/* Red when a wait is held against a thread while another one rightly holds
 * the lock on a CPU; and when a stream of short calls excuses it too. */
static void test_call_behind_holder(void **state)
{
	struct world w;
	int i;

	(void)state;
	begin(&w);
	atomic_store(&w.p[0].mapped, 1ULL << 40); /* all budget it wants */
	enter(&w, 0, MUNMAP);
	enter(&w, 1, MMAP);
	w.task[0].state = 'D';
	w.task[1].state = 'R';
	w.run_per_tick[1] = TICK;
	assert_false(pass(&w, 5000));
	for (i = 0; i < 80 && !w.out.flagged; i++) {
		enter(&w, 1, MMAP); /* a new one each tick */
		tick(&w);
	}
	assert_true(w.out.flagged);
	assert_int_equal(w.out.suspect.thread_slot, 0);
	end(&w);
}

/* Red when a fixed limit is not held in net time. */
static void test_fixed_limit(void **state)
{
	static const struct mmr_limits limit = {.syscall_ns = 200 * MS};
	struct world w;

	(void)state;
	begin_with(&w, &limit, 1);
	enter(&w, 0, MMAP);
	w.task[0].state = 'D';
	assert_true(pass(&w, 1000));
	FLAGGED(&w, MMR_LONG_SYSCALL, 200, 450);
	end(&w);
}

/* Red when a thread that makes progress is looked at at all. */
static void test_healthy(void **state)
{
	struct world w;
	int i;

	(void)state;
	begin(&w);
	enter(&w, 0, WRITE);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	w.faults_per_tick[0] = 1000;
	for (i = 0; i < 400; i++) {
		atomic_fetch_add(&w.t[0].progress, 1000);
		assert_false(tick(&w));
	}
	assert_int_equal(w.samples, 0);
	assert_int_equal(w.calm_at, -1);
	end(&w);
}

/* Red when more than 100 faults for one page in 1 s are no storm, or 80 are
 * one, or a hang is called what is a storm. */
static void test_storm(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, WRITE);
	atomic_store(&w.t[0].address, 0x7000);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	w.faults_per_tick[0] = 10000;
	assert_true(pass(&w, 3000));
	FLAGGED(&w, MMR_FAULT_STORM, 1000, 1250);
	assert_true(w.out.suspect.faults > 500000);
	assert_int_equal(w.out.suspect.fault_addr, 0x7000);
	end(&w);

	begin(&w);
	enter(&w, 0, WRITE);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	w.faults_per_tick[0] = 1;
	pass(&w, 1200);
	assert_false(w.out.flagged);
	end(&w);
}

/* Red when the faults of a call that populates its pages are a storm, or
 * more faults than it has pages are none. */
static void test_storm_in_call(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	atomic_store(&w.p[0].mapped, 4096ULL * 2000000);
	enter(&w, 0, MMAP);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK / 2;
	w.faults_per_tick[0] = 10000;
	assert_false(pass(&w, 3000));
	end(&w);

	begin(&w);
	enter(&w, 0, MMAP);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK / 2;
	w.faults_per_tick[0] = 10000;
	assert_true(pass(&w, 3000));
	FLAGGED(&w, MMR_FAULT_STORM, 1000, 1250);
	end(&w);
}

/* Red when faults that end in the child's own handler do not count. */
static void test_storm_by_signal(void **state)
{
	struct world w;
	int i;

	(void)state;
	begin(&w);
	enter(&w, 0, WRITE);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	for (i = 0; i < 80 && !w.out.flagged; i++) {
		atomic_fetch_add(&w.t[0].faults, 5000);
		atomic_store(&w.t[0].fault_addr, 0x1234000);
		tick(&w);
	}
	FLAGGED(&w, MMR_FAULT_STORM, 1000, 1250);
	assert_int_equal(w.out.suspect.fault_addr, 0x1234000);
	end(&w);
}

/* Thread 1 goes on: n operations a tick. */
static bool pass_beside(struct world *w, int64_t ms, uint32_t n)
{
	uint64_t until = w->now + (uint64_t)(ms * MS);

	while (w->now < until) {
		atomic_fetch_add(&w->t[1].ops, n);
		atomic_fetch_add(&w->t[1].progress, n);
		atomic_store(&w->t[1].start, ticks(w, w->now));
		if (tick(w))
			return true;
	}
	return false;
}

/* Red when a wait for the lock of the address space is told apart neither from
 * another sleep nor from one in which nobody else gets it, or is not seen in
 * a page fault. */
static void test_lock_starvation(void **state)
{
	static const struct {
		int stmt;
		bool on_lock;
		uint32_t others; /* operations a tick */
		enum mmr_verdict verdict;
	} stories[] = {
		{MUNMAP, true, 5, MMR_LOCK_STARVATION},
		{WRITE, true, 5, MMR_LOCK_STARVATION},
		{MUNMAP, true, 0, MMR_LONG_SYSCALL},
		{MUNMAP, false, 5, MMR_LONG_SYSCALL},
	};
	struct world w;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		begin(&w);
		enter(&w, 0, stories[i].stmt);
		enter(&w, 1, MMAP);
		w.task[1].state = 'R';
		w.task[0].state = 'D';
		w.on_lock = stories[i].on_lock;
		if (!stories[i].others)
			atomic_store(&w.t[1].state, MMR_THREAD_DONE);
		assert_true(pass_beside(&w, 1400, stories[i].others));
		FLAGGED(&w, stories[i].verdict, 1000, 1250);
		assert_int_equal(w.out.suspect.stmt, stories[i].stmt);
		end(&w);
	}
	/* Of another process: not the same lock. */
	begin(&w);
	enter(&w, 0, MUNMAP);
	enter(&w, 1, MMAP);
	w.t[1].proc_slot = 1;
	w.task[1].state = 'R';
	w.on_lock = true;
	assert_true(pass_beside(&w, 1400, 5));
	FLAGGED(&w, MMR_LONG_SYSCALL, 1000, 1250);
	end(&w);
}

/* A call of thread 0 that is over: wall, of it CPU and run delay, in us. */
static bool over(struct world *w, uint64_t wall, uint64_t cpu, uint64_t delay)
{
	uint32_t n = atomic_fetch_add(&w->area->nlate, 1);
	struct mmr_late *l = &w->area->late[n];

	l->thread_slot = 0;
	l->proc_slot = 0;
	l->stat = MUNMAP;
	l->end = ticks(w, w->now);
	l->start = ticks(w, w->now - wall * 1000);
	l->cpu_ns = cpu * 1000;
	l->delay_ns = delay * 1000;
	atomic_store(&l->ready, 1);
	return tick(w);
}

/* Red when a call that has returned is not judged below 200 ms, when its waits
 * for a CPU or a pause of the machine are held against it, or when one without
 * a limit of its own is. */
static void test_call_over(void **state)
{
	struct mmr_limits limits = {.syscall_ns = 5 * MS};
	struct world w;

	(void)state;
	begin_with(&w, &limits, 1);
	atomic_store(&w.t[0].state, MMR_THREAD_RUNNING);
	assert_false(over(&w, 4900, 4900, 0));
	assert_false(over(&w, 90000, 1000, 88000));
	assert_false(over(&w, 9000, 2000, 4100));
	w.pause = w.late = 60;
	assert_false(over(&w, 9000, 9000, 0));
	w.pause = w.late = 0;
	assert_true(over(&w, 9000, 2000, 1500));
	assert_int_equal(w.out.suspect.verdict, MMR_LONG_SYSCALL);
	assert_true(w.out.suspect.over);
	assert_int_equal(w.out.suspect.stmt, MUNMAP);
	assert_in_range(w.out.suspect.asleep_ns, 5400000, 5600000);
	end(&w);

	begin(&w);
	atomic_store(&w.t[0].state, MMR_THREAD_RUNNING);
	assert_false(over(&w, 90000, 90000, 0));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_asleep),
		cmocka_unit_test(test_call_starved),
		cmocka_unit_test(test_call_paused),
		cmocka_unit_test(test_call_on_cpu),
		cmocka_unit_test(test_mapped_below_zero),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_suspecting),
		cmocka_unit_test(test_emulated),
		cmocka_unit_test(test_call_behind_holder),
		cmocka_unit_test(test_fixed_limit),
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_storm_in_call),
		cmocka_unit_test(test_storm_by_signal),
		cmocka_unit_test(test_lock_starvation),
		cmocka_unit_test(test_call_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
