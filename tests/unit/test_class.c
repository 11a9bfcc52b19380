// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kind of a stall and its sentence, from made-up looks at it.  Red when a
 * storm, a starved, a blocked, a held, a spinning or a slow but moving thread,
 * or a pause of the machine, is taken for one of the others, when the one who
 * may hold the lock is not named, or when a sentence leaves out what was seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../ops/compile.h"
#include "../../triage/ladder.h"

static const char text[] = "mmrace-case 1\n"
			   "process main\n"
			   "  thread A\n"
			   "    m0 = mmap len=16M prot=rw flags=private|anon\n"
			   "    munmap m0\n"
			   "    write m0\n"
			   "  thread B\n"
			   "    migrate_pages from=n0 to=n1\n"
			   "    pause\n";
enum { MMAP, MUNMAP, WRITE, MIGRATE, PAUSE };

#define WAITS                                                                  \
	"rwsem_down_write_slowpath<down_write_killable<__vm_munmap<"           \
	"__x64_sys_munmap"

struct world {
	struct mmr_case *c;
	struct mmr_area *area;
	int fd;
	struct mmr_thread_slot *t;
	struct mmr_suspect s;
	struct mmr_ladder l;
	char says[400];
};

static void enter(struct world *w, int slot, int tid, int stmt)
{
	struct mmr_thread_slot *t = &w->t[slot];

	atomic_store(&t->state, MMR_THREAD_RUNNING);
	atomic_store(&t->host_pid, 100);
	atomic_store(&t->host_tid, tid);
	atomic_store(&t->stmt, (uint32_t)stmt + 1);
	t->thread = (uint16_t)slot;
	t->proc_slot = 0;
}

static int make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct mmr_compile_opts opts = {.seed = 1};
	struct mmr_diag diag;

	if (!w || mmr_case_parse(text, strlen(text), &w->c, &diag, NULL, NULL))
		return -1;
	if (mmr_compile(w->c, &opts, &w->area, &w->fd, &diag))
		return -1;
	w->t = MMR_AREA_AT(w->area, w->area->threads_off,
			   struct mmr_thread_slot);
	atomic_store(&w->area->thread_slots, 2);
	atomic_store(&w->area->proc_slots, 1);
	enter(w, 0, 101, MUNMAP);
	enter(w, 1, 102, MIGRATE);
	w->s = (struct mmr_suspect){.verdict = MMR_LONG_SYSCALL,
				    .c = w->c,
				    .area = w->area,
				    .stmt = MUNMAP,
				    .host_pid = 100,
				    .host_tid = 101,
				    .wall_ns = 1200000000,
				    .asleep_ns = 1100000000,
				    .limit_ns = 1000000000};
	w->l = (struct mmr_ladder){.s = &w->s,
				   .pid = 100,
				   .tid = 101,
				   .state = 'D',
				   .steady = true,
				   .faults_per_s = -1,
				   .cpu_share = -1,
				   .voluntary = -1,
				   .involuntary = -1,
				   .tracer_slot = -1};
	*state = w;
	return 0;
}

static int drop(void **state)
{
	struct world *w = *state;

	mmr_area_close(w->area, w->fd);
	mmr_case_free(w->c);
	free(w);
	return 0;
}

static void is_kind(struct world *w, enum mmr_stall kind)
{
	mmr_ladder_classify(&w->l);
	mmr_ladder_sentence(&w->l, w->says, sizeof(w->says));
	if (w->l.stall != kind)
		fail_msg("%s, not %s: %s", mmr_stall_name(w->l.stall),
			 mmr_stall_name(kind), w->says);
}

static void says(const struct world *w, const char *what)
{
	if (!strstr(w->says, what))
		fail_msg("'%s' is not in: %s", what, w->says);
}

static void blocked(void **state)
{
	struct world *w = *state;

	strcpy(w->l.frames, "synchronize_rcu<unmap_region<__vm_munmap");
	is_kind(w, MMR_STALL_BLOCKED);
	says(w, "thread A of process main (tid 101) is in `munmap m0` since "
		"1.20 s (limit 1 s), asleep in synchronize_rcu (state D): "
		"blocked");
	assert_false(w->l.lock_wait);
}

/* Who is in the kernel and does not wait for the lock may have it. */
static void lock_and_holder(void **state)
{
	struct world *w = *state;
	struct mmr_other *o = &w->l.others[0];

	strcpy(w->l.frames, WAITS);
	o[0] = (struct mmr_other){.pid = 100,
				  .tid = 103,
				  .slot = -1,
				  .state = 'S',
				  .frames = "futex_wait"};
	o[1] = (struct mmr_other){.pid = 100,
				  .tid = 102,
				  .slot = 1,
				  .state = 'D',
				  .frames = "folio_wait_bit<migrate"};
	o[2] = (struct mmr_other){.pid = 900,
				  .tid = 901,
				  .slot = 1,
				  .state = 'D',
				  .frames = "of another process"};
	w->l.nothers = 3;
	is_kind(w, MMR_STALL_BLOCKED);
	assert_true(w->l.lock_wait);
	assert_int_equal(w->l.holder, 1);
	says(w, "waiting for the address-space lock, which thread B (tid 102) "
		"may hold in `migrate_pages from=n0 to=n1`, asleep in "
		"folio_wait_bit");
	/* One that waits for it as well does not hold it, nor one in pause. */
	strcpy(o[1].frames, WAITS);
	is_kind(w, MMR_STALL_BLOCKED);
	assert_int_equal(w->l.holder, -1);
	strcpy(o[1].frames, "futex_wait");
	atomic_store(&w->t[1].stmt, PAUSE + 1);
	is_kind(w, MMR_STALL_BLOCKED);
	assert_int_equal(w->l.holder, -1);
}

/* Another semaphore is not the address space's; without a stack it is. */
static void which_lock(void **state)
{
	struct world *w = *state;

	strcpy(w->l.frames, "rwsem_down_write_slowpath<down_write<"
			    "unlink_anon_vmas<free_pgtables");
	is_kind(w, MMR_STALL_BLOCKED);
	assert_false(w->l.lock_wait);
	strcpy(w->l.frames, "rwsem_down_read_slowpath");
	is_kind(w, MMR_STALL_BLOCKED);
	assert_true(w->l.lock_wait);
	strcpy(w->l.frames, "rwsem_down_read_slowpath<down_read_killable<"
			    "lock_mm_and_find_vma<do_user_addr_fault");
	is_kind(w, MMR_STALL_BLOCKED);
	assert_true(w->l.lock_wait);
}

static void starved(void **state)
{
	struct world *w = *state;

	w->s.verdict = MMR_LOCK_STARVATION;
	strcpy(w->l.frames, WAITS);
	w->l.ops0 = mmr_ladder_other_ops(&w->l);
	atomic_store(&w->t[1].ops, 500);
	atomic_store(&w->t[0].ops, 9); /* its own do not count */
	is_kind(w, MMR_STALL_STARVED);
	assert_int_equal(w->l.other_ops, 500);
	says(w, "waits for the address-space lock in `munmap m0` since 1.20 s, "
		"while others take it (they finished 500 calls");
}

static void on_a_cpu(void **state)
{
	struct world *w = *state;

	w->l.state = 'R';
	w->l.steady = false;
	w->s.asleep_ns = 0;
	w->s.cpu_ns = 1150000000;
	w->l.paths = 1;
	w->l.path_samples = 90;
	is_kind(w, MMR_STALL_SPINS);
	says(w, "on CPU (96 %), always in the same place: it spins");
	w->l.paths = 12;
	is_kind(w, MMR_STALL_SLOW);
	says(w, "in 12 places of the kernel: slow, but it moves");
	/* Too few samples say nothing. */
	w->l.path_samples = 3;
	is_kind(w, MMR_STALL_UNKNOWN);
}

/* It sleeps, but now here, now there. */
static void sleeps_and_moves(void **state)
{
	struct world *w = *state;

	w->l.steady = false;
	is_kind(w, MMR_STALL_SLOW);
	says(w, "asleep (state D): slow, but it moves");
}

static void storm(void **state)
{
	struct world *w = *state;
	char sign[80], id[2][48];

	w->s.verdict = MMR_FAULT_STORM;
	w->s.stmt = WRITE;
	w->s.faults = 500000;
	w->s.fault_ns = 1000000000;
	w->s.fault_addr = 0x7f00dead0000;
	w->l.state = 'R';
	is_kind(w, MMR_STALL_STORM);
	says(w, "faults again and again in `write m0`, no new page for 1.20 s");
	says(w, "500000 page faults/s at 0x7f00dead0000");
	mmr_ladder_signature(&w->l, sign, sizeof(sign), id[0], sizeof(id[0]));
	assert_string_equal(sign, "fault-storm write");
	/* The same statement, and another stall: these come to a handler. */
	atomic_store(&w->t[0].faults, 500000);
	is_kind(w, MMR_STALL_STORM);
	says(w, "; each fault ends in a SIGSEGV whose handler returns");
	mmr_ladder_signature(&w->l, sign, sizeof(sign), id[1], sizeof(id[1]));
	assert_string_equal(sign, "fault-storm write+SIGSEGV");
	assert_string_not_equal(id[0], id[1]);
}

static void held_and_paused(void **state)
{
	struct world *w = *state;

	w->l.state = 't';
	w->l.tracer = 102;
	w->l.tracer_slot = 1;
	is_kind(w, MMR_STALL_HELD);
	says(w, "held by its tracer thread B of process main (tid 102)");
	/* A machine that stood still most of the time explains all else. */
	w->s.pause_ns = 800000000;
	is_kind(w, MMR_STALL_PAUSE);
	says(w, "the machine stood still for most of that time");
	w->l.post_mortem = true;
	is_kind(w, MMR_STALL_NONE);
}

/* Returned before anybody looked: what it took, in units that fit. */
static void is_over(void **state)
{
	struct world *w = *state;

	w->s.over = true;
	w->l.post_mortem = true;
	w->s.wall_ns = 1200000000;
	w->s.limit_ns = 2000;
	w->s.cpu_ns = 12680;
	w->s.asleep_ns = 54300000;
	w->s.delay_ns = 0;
	is_kind(w, MMR_STALL_NONE);
	says(w, "took 1.2 s in `munmap m0` (limit 2 us): 12.68 us on a CPU, "
		"54.3 ms asleep, 0 s waiting for a CPU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(blocked, make, drop),
		cmocka_unit_test_setup_teardown(lock_and_holder, make, drop),
		cmocka_unit_test_setup_teardown(which_lock, make, drop),
		cmocka_unit_test_setup_teardown(starved, make, drop),
		cmocka_unit_test_setup_teardown(on_a_cpu, make, drop),
		cmocka_unit_test_setup_teardown(sleeps_and_moves, make, drop),
		cmocka_unit_test_setup_teardown(storm, make, drop),
		cmocka_unit_test_setup_teardown(held_and_paused, make, drop),
		cmocka_unit_test_setup_teardown(is_over, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
