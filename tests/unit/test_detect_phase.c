// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The detector against made-up stories: storm and calm, void rounds, exits,
 * deaths.  Each test says which change of the rules makes it red.
 */
#include "detect_world.h"

/* Red when a thread asleep in a touch is not led through calm to a hang
 * within 3 s, or is one without calm. */
static void test_hang(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, WRITE);
	enter(&w, 1, WAIT);
	assert_true(pass(&w, 4000));
	assert_in_range(w.calm_at, 500, 750);
	FLAGGED(&w, MMR_HANG, w.calm_at + 950, 3000);
	assert_int_equal(w.out.suspect.thread_slot, 0);
	end(&w);
}

/* Red when one stuck thread among busy ones is not seen. */
static void test_hang_among_others(void **state)
{
	struct world w;
	int i;

	(void)state;
	begin(&w);
	enter(&w, 0, FUTEX);
	for (i = 0; i < 200 && !w.out.flagged; i++) {
		enter(&w, 1, MMAP);
		atomic_fetch_add(&w.t[1].progress, 100);
		tick(&w);
	}
	assert_in_range(w.calm_at, 900, 1250);
	FLAGGED(&w, MMR_HANG, w.calm_at + 950, 3000);
	end(&w);
}

/* Red when a fault is called a hang while the thread that answers faults waits
 * for a CPU, or excused while that one sleeps. */
static void test_hang_behind_server(void **state)
{
	struct world w;
	struct mmr_insn *in;
	uint32_t i;

	(void)state;
	for (int k = 0; k < 2; k++) {
		begin(&w);
		/* As if B's delay were the read of an event. */
		in = MMR_AREA_AT(w.area, w.area->program.insns_off,
				 struct mmr_insn);
		for (i = 0; i < w.area->program.ninsns; i++)
			if (in[i].stat == DELAY && in[i].op < MMR_OP_LIMIT)
				in[i].op = MMR_OP_uffd_read;
		enter(&w, 0, WRITE);
		enter(&w, 1, DELAY);
		w.task[1].state = k ? 'S' : 'R';
		for (i = 0; i < 400 && !w.out.flagged; i++)
			tick(&w);
		assert_int_equal(w.out.flagged, k);
		end(&w);
	}
}

/* Red when calm, for one that sleeps, ends a storm in the making beside it. */
static void test_storm_among_stuck(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 1, FUTEX);
	assert_false(pass(&w, 150));
	enter(&w, 0, WRITE);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	w.faults_per_tick[0] = 100;
	assert_true(pass(&w, 3000));
	assert_int_equal(w.calm_at, -1);
	FLAGGED(&w, MMR_FAULT_STORM, 1000, 1400);
	assert_int_equal(w.out.suspect.thread_slot, 0);
	end(&w);
	/* One that was over has no say: the sleeper's calm comes. */
	begin(&w);
	enter(&w, 1, FUTEX);
	enter(&w, 0, WRITE);
	w.task[0].state = 'R';
	w.run_per_tick[0] = TICK;
	w.faults_per_tick[0] = 100;
	assert_false(pass(&w, 450));
	w.faults_per_tick[0] = 0;
	w.run_per_tick[0] = 0;
	w.task[0].state = 'S';
	assert_true(pass(&w, 4000));
	assert_in_range(w.calm_at, 500, 1300);
	end(&w);
}

/* Red when what moves again in calm is a finding. */
static void test_calm_cures(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, FUTEX);
	assert_false(pass(&w, 900));
	assert_true(w.calm_at > 0);
	atomic_store(&w.t[0].state, MMR_THREAD_DONE);
	assert_false(pass(&w, 3000));
	/* The next round is a storm again. */
	atomic_store(&w.area->ctl, MMR_CTL_STORM);
	atomic_store(&w.area->round, 2);
	atomic_store(&w.area->rounds_done, 1);
	enter(&w, 0, FUTEX);
	w.calm_at = -1;
	assert_false(pass(&w, 300));
	assert_int_equal(w.calm_at, -1);
	/* Stuck again: calm again, and only then a hang. */
	assert_true(pass(&w, 4000));
	assert_true(w.calm_at > 0);
	FLAGGED(&w, MMR_HANG, w.calm_at + 950, w.calm_at + 1300);
	end(&w);
}

/* Red when a thread that /proc does not show is never judged, or judged as
 * if it had not had to wait for a CPU, or behind a holder. */
static void test_unknown_task(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, MUNMAP);
	atomic_store(&w.t[0].host_tid, 0);
	assert_true(pass(&w, 4000));
	FLAGGED(&w, MMR_LONG_SYSCALL, 2000, 2300);
	end(&w);

	begin(&w);
	atomic_store(&w.p[0].mapped, 1ULL << 40);
	enter(&w, 0, MUNMAP);
	atomic_store(&w.t[0].host_tid, 0);
	enter(&w, 1, MMAP);
	w.task[1].state = 'R';
	w.run_per_tick[1] = TICK;
	assert_false(pass(&w, 5000));
	end(&w);
}

/* Red when waiters alone are a hang, or no void round. */
static void test_waiters_only(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 1, WAIT);
	assert_false(pass(&w, 5000));
	assert_true(w.voided);
	assert_in_range(w.calm_at, 500, 800);
	end(&w);

	/* Not while somebody is only on his way. */
	begin(&w);
	enter(&w, 1, WAIT);
	enter(&w, 0, DELAY);
	assert_false(pass(&w, 1900));
	assert_false(w.voided);
	assert_int_equal(w.calm_at, -1);
	end(&w);
}

/* Red when three void rounds in a row do not end the run, or two do. */
static void test_three_voids(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	atomic_store(&w.area->rounds_done, 2);
	atomic_store(&w.area->rounds_void, 2);
	tick(&w);
	assert_false(w.out.voids);
	atomic_store(&w.area->rounds_done, 3);
	atomic_store(&w.area->rounds_void, 3);
	tick(&w);
	assert_true(w.out.voids);
	atomic_store(&w.area->rounds_done, 4);
	tick(&w);
	assert_false(w.out.voids);
	end(&w);
}

/* Red when a join hides that the joined task does not end. */
static void test_join_of_ending(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 2, MMAP);
	atomic_store(&w.t[2].state, MMR_THREAD_DONE);
	atomic_store(&w.t[2].tid, 7);
	enter(&w, 1, JOIN);
	atomic_store(&w.t[1].join_slot, 3);
	w.task[2].state = 'D';
	assert_true(pass(&w, 4000));
	FLAGGED(&w, MMR_HANG, 1000, 3000);
	assert_int_equal(w.out.suspect.thread_slot, 2);
	assert_int_equal(w.out.suspect.stmt, JOIN);
	end(&w);
}

static void start_exit(struct world *w, uint64_t mapped)
{
	atomic_store(&w->p[1].state, MMR_PROC_RUNNING);
	atomic_store(&w->p[1].mapped, mapped);
	tick(w);
	atomic_store(&w->p[1].pid, 5);
	atomic_store(&w->p[1].exit_start, ticks(w, w->now));
	w->exiting.sum.delay_known = true;
	w->exiting.ntasks = 1;
}

/* Red when the limit is not 2 s + 1 s a GiB, or the pid is not resolved. */
static void test_long_exit(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	start_exit(&w, 1ULL << 30);
	w.exiting.sum.state = 'D';
	assert_true(pass(&w, 6000));
	FLAGGED(&w, MMR_LONG_EXIT, 3000, 3300);
	assert_int_equal(w.out.suspect.proc_slot, 1);
	assert_int_equal(w.out.suspect.host_pid, 1005);
	end(&w);
}

/* Red when a zombie that only nobody reaps is a long exit. */
static void test_reapable_exit(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	start_exit(&w, 0);
	w.exiting.sum.state = 'D';
	assert_false(pass(&w, 1500));
	w.exiting.sum.state = 'Z';
	w.exiting.ntasks = 0;
	w.exiting.reapable = true;
	assert_false(pass(&w, 5000));
	end(&w);
}

/* Red when an exit that gets no CPU is long. */
static void test_starved_exit(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	start_exit(&w, 0);
	w.exiting.sum.state = 'R';
	w.exit_run_per_tick = TICK / 10;
	assert_false(pass(&w, 10000));
	end(&w);
}

/* Red when a dead process's threads count as stuck. */
static void test_threads_of_the_dead(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	enter(&w, 0, WRITE);
	atomic_store(&w.p[0].exit_start, ticks(&w, w.now));
	w.exit_err = -ESRCH;
	assert_false(pass(&w, 5000));
	assert_int_equal(w.calm_at, -1);
	end(&w);

	begin(&w);
	enter(&w, 0, WRITE);
	w.task[0].state = 'X';
	assert_false(pass(&w, 5000));
	end(&w);
}

/* Red when an unexplained death is not seen. */
static void test_crash(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	atomic_store(&w.area->crash_slot, 1);
	atomic_store(&w.area->crash_count, 1);
	assert_true(tick(&w));
	assert_int_equal(w.out.suspect.verdict, MMR_CRASH);
	assert_int_equal(w.out.suspect.proc_slot, 0);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_hang_among_others),
		cmocka_unit_test(test_hang_behind_server),
		cmocka_unit_test(test_storm_among_stuck),
		cmocka_unit_test(test_calm_cures),
		cmocka_unit_test(test_unknown_task),
		cmocka_unit_test(test_waiters_only),
		cmocka_unit_test(test_three_voids),
		cmocka_unit_test(test_join_of_ending),
		cmocka_unit_test(test_long_exit),
		cmocka_unit_test(test_reapable_exit),
		cmocka_unit_test(test_starved_exit),
		cmocka_unit_test(test_threads_of_the_dead),
		cmocka_unit_test(test_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
