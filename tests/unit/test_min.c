// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The minimiser against a simulated kernel: a candidate fails, with some
 * chance a round, exactly when it still holds the statements that matter.
 *
 * Red when: a needed statement is lost, an unneeded one stays though it
 * always fails, another failure is taken for the same one, the budget is
 * overrun, the file on disk is not the best, or a case that never fails (or
 * always, when empty too) is "minimised".
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../ops/rng.h"
#include "../../triage/replay.h"

/* 40 statements in 4 threads of two processes around 4 that matter. */
static const char head[] = "mmrace-case 1\n"
			   "title   padded\n";
static const char body[] = "\n"
			   "process main\n"
			   "  thread A\n"
			   "    x0 = mmap len=4p prot=rw flags=private|anon\n"
			   "    write x0\n"
			   "    loop 50\n"
			   "      m0 = mmap len=8p prot=rw flags=shared|anon\n"
			   "      madvise m0 willneed\n"
			   "      write m0 step=1p\n"
			   "      madvise m0 cold\n"
			   "      delay 3us\n"
			   "    end\n"
			   "    madvise x0 dontneed\n"
			   "    write x0\n"
			   "    munmap x0\n"
			   "    delay 1us\n"
			   "    delay 2us\n"
			   "  thread B\n"
			   "    x1 = mmap len=4p prot=rw flags=private|anon\n"
			   "    write x1\n"
			   "    madvise x1 dontneed\n"
			   "    write x1\n"
			   "    madvise x1 free\n"
			   "    madvise m0 dontneed\n"
			   "    read x1\n"
			   "    munmap x1\n"
			   "    delay 5us\n"
			   "    delay 6us\n"
			   "  thread C\n"
			   "    x2 = mmap len=4p prot=rw flags=private|anon\n"
			   "    write x2\n"
			   "    madvise x2 dontneed\n"
			   "    write x2\n"
			   "    munmap x2\n"
			   "    munmap m0\n"
			   "\n"
			   "process other copies=2\n"
			   "  thread D\n"
			   "    x3 = mmap len=4p prot=rw flags=private|anon\n"
			   "    write x3\n"
			   "    madvise x3 dontneed\n"
			   "    write x3\n"
			   "    loop 7\n"
			   "      read x3\n"
			   "    end\n"
			   "    munmap x3\n"
			   "    delay 7us\n"
			   "    delay 8us\n";

struct sim {
	double p;     /* chance of a hit a round */
	double other; /* chance of another failure a run */
	bool helpers; /* without `delay 5us`, `delay 6us` half the rate each */
	bool empty_fails;
	bool never;
	struct mmr_rng rng;
	uint64_t runs;
	int64_t slept_ns; /* of each run that does not hit */
};

static double draw(struct sim *s)
{
	return (double)(mmr_rng_next(&s->rng) >> 11) / 9007199254740992.0;
}

/* All that matters is there: the mapping, its write and the madvise of B;
 * len and loops do not, flags do. */
static bool holds(const struct mmr_case *c)
{
	bool map = false, touch = false, drop = false;
	int i, n = mmr_case_count(c);

	for (i = 0; i < n; i++) {
		const struct mmr_stmt *st = mmr_case_stmt(c, i);
		struct mmr_thread *t = mmr_case_stmt_thread(c, i, NULL);
		char *text;

		if (st->kind != MMR_STMT_OP)
			continue;
		text = mmr_case_print_stmt(st);
		assert_non_null(text);
		map |= !strcmp(t->name, "A") &&
		       !strncmp(text, "m0 = mmap", 9) &&
		       strstr(text, "shared|anon");
		touch |= map && !strncmp(text, "write m0", 8);
		drop |= !strcmp(t->name, "B") &&
			!strcmp(text, "madvise m0 dontneed");
		free(text);
	}
	return map && touch && drop;
}

/* How much of the rate the helpers that are gone have taken with them. */
static double helped(const struct mmr_case *c)
{
	char *text = mmr_case_print(c);
	double share = 1;

	assert_non_null(text);
	share *= strstr(text, "delay 5us") ? 1 : 0.5;
	share *= strstr(text, "delay 6us") ? 1 : 0.5;
	free(text);
	return share;
}

static int sim_run(void *arg, const struct mmr_case *c,
		   const struct mmr_run_opts *o, struct mmr_run_result *r)
{
	struct sim *s = arg;
	double p = s->helpers ? s->p * helped(c) : s->p;
	uint64_t i;

	s->runs++;
	assert_true(o->no_evidence);
	r->verdict = MMR_NOTHING;
	r->rounds = o->rounds;
	r->wall_ns = 1000000;
	if (draw(s) < s->other) {
		r->verdict = MMR_HANG;
		strcpy(r->signature, "hang|futex_wait|x");
		return 0;
	}
	if (s->slept_ns)
		usleep((useconds_t)(s->slept_ns / 1000));
	if (s->never || !(s->empty_fails || holds(c)))
		return 0;
	for (i = 0; i < o->rounds; i++) {
		if (draw(s) >= p)
			continue;
		r->verdict = MMR_FAULT_STORM;
		strcpy(r->signature, "fault-storm|write|handle_mm_fault");
		r->rounds = i + 1;
		r->hit_round = o->first_round + i;
		return 0;
	}
	return 0;
}

static struct mmr_case *padded(const char *rounds)
{
	struct mmr_case *c = NULL;
	struct mmr_diag diag = {0};
	char text[8192];
	int n = snprintf(text, sizeof(text), "%s%s%s", head, rounds, body);

	if (mmr_case_parse(text, (size_t)n, &c, &diag, NULL, NULL))
		fail_msg("%d:%d: %s", diag.line, diag.col, diag.text);
	return c;
}

static void run(struct sim *s, const char *rounds, const char *path,
		int64_t budget_ns, struct mmr_min_result *r)
{
	struct mmr_case *c = padded(rounds);
	struct mmr_min_opts o = {.budget_ns = budget_ns,
				 .best_path = path,
				 .run_fn = sim_run,
				 .run_arg = s};

	if (getenv("MMR_MIN_LOG"))
		o.log = stderr;
	assert_int_equal(mmr_minimise(c, &o, r), 0);
	mmr_case_free(c);
}

#define MINUTE 60000000000LL
static const char core[] = "process main\n"
			   "  thread A\n"
			   "    m0 = mmap len=1p prot=rw flags=shared|anon\n"
			   "    write m0\n"
			   "  thread B\n"
			   "    madvise m0 dontneed\n";

static void test_certain(void **state)
{
	struct sim s = {.p = 1, .rng = {1, 0}};
	char path[] = "/tmp/mmr_min.XXXXXX", disk[4096] = "", *text;
	struct mmr_min_result r;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	run(&s, "", path, MINUTE, &r);
	assert_int_equal(r.reproduced, 1);
	assert_int_equal(r.stmts_after, 3);
	assert_int_equal(r.final_hits, r.final_runs);
	assert_true(r.final_runs >= 5);
	text = mmr_case_print(r.best);
	assert_non_null(strstr(text, core));
	/* The file is the result, with its fresh rate. */
	assert_non_null(strstr(text, "seen    80/80\n"));
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && read(fd, disk, sizeof(disk) - 1) > 0);
	close(fd);
	assert_string_equal(disk, text);
	if (s.runs > 260)
		fail_msg("%llu runs", (unsigned long long)s.runs);
	free(text);
	unlink(path);
	mmr_min_result_free(&r);
}

/* Of 40 minimisations at a rate, how many end with the core, how many with
 * less than it. */
static void many(double p, const char *rounds, int *exact, int *over,
		 double *runs)
{
	int i;

	*exact = *over = 0;
	*runs = 0;
	for (i = 0; i < 40; i++) {
		struct sim s = {
			.p = p, .other = 0.02, .rng = {(uint64_t)i + 100, 0}};
		struct mmr_min_result r;

		run(&s, rounds, NULL, MINUTE, &r);
		assert_int_equal(r.reproduced, 1);
		*exact += r.stmts_after == 3;
		*over += !holds(r.best);
		*runs += (double)s.runs / 40;
		mmr_min_result_free(&r);
	}
	print_message("p %.2f: exact %d, over %d of 40, mean runs %.0f\n", p,
		      *exact, *over, *runs);
}

static void test_chance(void **state)
{
	double runs;
	int exact, over;

	(void)state;
	/* 0.3 a run of one round; and 0.01 a round of 1000. */
	many(0.3, "", &exact, &over, &runs);
	assert_int_equal(over, 0);
	assert_true(exact >= 34);
	many(0.01, "rounds  1000\n", &exact, &over, &runs);
	assert_int_equal(over, 0);
	assert_true(exact >= 34);
}

/* What fails every time goes on doing so: statements that only keep the rate
 * up stay. */
static void test_slide(void **state)
{
	int i, kept = 0;

	(void)state;
	for (i = 0; i < 40; i++) {
		struct sim s = {
			.p = 1, .helpers = true, .rng = {(uint64_t)i + 500, 0}};
		struct mmr_min_result r;

		run(&s, "", NULL, MINUTE, &r);
		kept += helped(r.best) == 1 && r.stmts_after == 5;
		mmr_min_result_free(&r);
	}
	print_message("kept its rate: %d of 40\n", kept);
	assert_true(kept >= 32);
}

static void test_rounds_bound(void **state)
{
	struct sim s = {.p = 1, .rng = {2, 0}};
	struct mmr_min_result r;

	(void)state;
	run(&s, "rounds  100000\n", NULL, MINUTE, &r);
	assert_int_equal(r.best->rounds, 1);
	mmr_min_result_free(&r);
}

static void test_never(void **state)
{
	struct sim s = {.never = true, .rng = {3, 0}};
	struct mmr_min_result r;

	(void)state;
	run(&s, "", "/nonexistent/must/not/be/written", MINUTE, &r);
	assert_int_equal(r.reproduced, 0);
	assert_null(r.best);
	assert_non_null(strstr(r.text, "did not reproduce"));
}

static void test_empty_fails(void **state)
{
	struct sim s = {.p = 1, .empty_fails = true, .rng = {4, 0}};
	struct mmr_min_result r;

	(void)state;
	run(&s, "", "/nonexistent/must/not/be/written", MINUTE, &r);
	assert_int_equal(r.reproduced, 0);
	assert_null(r.best);
	assert_non_null(strstr(r.text, "nothing in it fails likewise"));
}

static void test_budget(void **state)
{
	struct sim s = {.p = 1, .rng = {5, 0}, .slept_ns = 20000000};
	struct mmr_min_result r;
	struct timespec a, b;
	double took;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &a);
	run(&s, "", NULL, 1000000000, &r);
	clock_gettime(CLOCK_MONOTONIC, &b);
	took = (double)(b.tv_sec - a.tv_sec) +
	       (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	assert_true(took < 1.2);
	/* Cut short, and still a case that fails. */
	assert_int_equal(r.reproduced, 1);
	assert_true(holds(r.best));
	mmr_min_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_certain),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_slide),
		cmocka_unit_test(test_rounds_bound),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_empty_fails),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
