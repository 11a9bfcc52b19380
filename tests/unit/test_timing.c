// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Offsets and calibration.  Red when a draw changes on any compiler or
 * machine (golden), when a sweep leaves a gap that its step does not, when two
 * offsets of a round walk along a diagonal, when the bounds of skew=auto do
 * not follow from the table, or the table does not come back from its file.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../ops/compile.h"
#include "../../ops/sweep.h"
#include "../../ops/timing.h"

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The widest gap on the circle, in units of 1/n. */
static double widest(uint64_t *u, int n)
{
	uint64_t gap, max = 0;
	int i;

	qsort(u, (size_t)n, sizeof(*u), by_value);
	for (i = 0; i < n; i++) {
		gap = i ? u[i] - u[i - 1] : u[0] - u[n - 1];
		max = gap > max ? gap : max;
	}
	return (double)max / 18446744073709551616.0 * n;
}

static void test_gaps(void **state)
{
	uint64_t u[4096];
	double most;
	int d, i, n;

	(void)state;
	for (d = 0; d < MMR_SWEEP_DIMS; d++) {
		most = 0;
		for (n = 2; n <= 4096; n += n / 3 + 1) {
			double by_round, by_turn;

			for (i = 0; i < n; i++)
				u[i] = mmr_sweep(77, (unsigned int)d,
						 (uint64_t)i, 0);
			by_round = widest(u, n);
			for (i = 0; i < n; i++)
				u[i] = mmr_sweep(77, (unsigned int)d, 3,
						 (uint64_t)i);
			by_turn = widest(u, n);
			most = by_round > most ? by_round : most;
			assert_true(by_turn < 4);
		}
		print_message("dimension %d: gaps up to %.2f/n\n", d, most);
		assert_true(most < (d ? 4 : 1.9));
	}
}

/* Pairs of two offsets reach each of 16 x 16 fields, also by turns. */
static void test_pairs(void **state)
{
	uint8_t seen[16][16];
	int a, b, i, k, left;

	(void)state;
	for (a = 0; a < MMR_SWEEP_DIMS; a++)
		for (b = 0; b < a; b++)
			for (k = 0; k < 2; k++) {
				memset(seen, 0, sizeof(seen));
				for (i = 0; i < 4096; i++) {
					uint64_t r = k ? 0 : (uint64_t)i;
					uint64_t t = k ? (uint64_t)i : 0;

					seen[mmr_sweep(1, (unsigned int)a, r,
						       t) >>
					     60][mmr_sweep(2, (unsigned int)b,
							   r, t) >>
						 60] = 1;
				}
				for (left = 256, i = 0; i < 256; i++)
					left -= seen[i / 16][i % 16];
				assert_true(left == 0);
			}
}

static void test_log(void **state)
{
	int64_t v, last = 0, counts[16] = {0};
	int i, negative = 0;

	(void)state;
	assert_int_equal(mmr_sweep_log(0, 0), 20);
	assert_int_equal(mmr_sweep_log(UINT64_MAX, 0), 999999);
	for (i = 0; i < 65536; i++) {
		v = mmr_sweep_log((uint64_t)i << 48, 0);
		assert_true(v >= last);
		last = v;
		counts[63 - __builtin_clzll((uint64_t)v / 20)]++;
		v = mmr_sweep_log((uint64_t)i << 48, 1);
		negative += v < 0;
		assert_true(v >= -1000000 && v <= 1000000);
	}
	assert_int_equal(negative, 32768);
	/* Octaves alike, the last one is half as wide. */
	for (i = 0; i < 15; i++)
		assert_in_range(counts[i], 4200, 4240);
}

/* The same on every compiler and architecture. */
static void test_golden(void **state)
{
	(void)state;
	assert_int_equal(mmr_sweep(1, 0, 0, 0), mmr_rng_key(1, 0));
	assert_int_equal(mmr_sweep(1, 0, 5, 0) - mmr_sweep(1, 0, 4, 0),
			 0x9e3779b97f4a7c15ULL);
	assert_int_equal(mmr_sweep(1, 1, 5, 2) - mmr_sweep(1, 1, 5, 1),
			 0xca91d722a3d0a667ULL);
	assert_int_equal(mmr_sweep(9, 2, 4096, 0), mmr_rng_key(9, 1));
	assert_int_equal(mmr_sweep_log(0x9e3779b97f4a7c15ULL, 0), 16338);
	assert_int_equal(mmr_sweep_log(0x1e3779b97f4a7c15ULL, 1), -266);
	assert_int_equal(mmr_sweep_aim(0, -100, 100, 5, 14), 5);
	assert_int_equal(mmr_sweep_aim(0xbfffffffffffffffULL, -100, 100, 5, 14),
			 14);
	assert_int_equal(mmr_sweep_aim(0xc000000000000000ULL, -100, 100, 5, 14),
			 -100);
	assert_int_equal(mmr_sweep_aim(UINT64_MAX, -100, 100, 5, 14), 100);
}

/* Both parts of an aimed sweep are sweeps: neither has a wide gap. */
static void test_aim_gaps(void **state)
{
	uint64_t in[4096], out[4096], u;
	int n[2], i;

	(void)state;
	n[0] = n[1] = 0;
	for (i = 0; i < 4096; i++) {
		u = mmr_sweep(5, 0, (uint64_t)i, 0);
		if (u >> 62 == 3)
			out[n[1]++] = u << 2;
		else
			in[n[0]++] = u + u / 3;
	}
	assert_in_range(n[0], 3070, 3074);
	assert_true(widest(in, n[0]) < 3);
	assert_true(widest(out, n[1]) < 4);
}

static struct mmr_case *parse(const char *body)
{
	struct mmr_case *c = NULL;
	struct mmr_diag d = {0};
	char text[2048];

	snprintf(text, sizeof(text), "mmrace-case 1\nprocess main\n%s", body);
	if (mmr_case_parse(text, strlen(text), &c, &d, NULL, NULL))
		fail_msg("%d:%d: %s", d.line, d.col, d.text);
	return c;
}

static const char *const two = "thread A\n"
			       "m0 = mmap len=4p prot=rw flags=shared|anon\n"
			       "loop 10\n"
			       "sync s\n"
			       "munmap m0\n"
			       "end\n"
			       "thread B\n"
			       "loop 10\n"
			       "write m0 step=1p\n"
			       "delay 0..3us\n"
			       "sync s skew=auto\n"
			       "end\n";

static void test_bounds(void **state)
{
	struct mmr_calib_key key = {
		.op = MMR_OP_munmap, .size = 2, .backing = MMR_BACK_SHARED};
	struct mmr_case *c = parse(two), *bound;
	struct mmr_stmt *sync = mmr_case_stmt(c, 7);
	struct mmr_timing_range r;
	char *text;

	(void)state;
	mmr_calib_reset();
	assert_int_equal(sync->op->id, MMR_OP_sync);
	assert_true(mmr_timing_unknown(c));
	mmr_timing_bounds(c, sync, &r);
	/* Priors; on its own side, past the end of the loop, the delay too. */
	assert_int_equal(r.hi, 22000);
	assert_int_equal(r.lo, -(20000 + 3000) * 11 / 10);
	/* One call of each side, from its first eighth to its middle. */
	assert_int_equal(r.aim_lo, 2500 - 10000);
	assert_int_equal(r.aim_hi, 10000 - 2500);
	mmr_calib_add(key, 10, 1000, 4000);
	key.op = MMR_OP_write;
	assert_true(mmr_timing_unknown(c));
	mmr_calib_add(key, 10, 500, 600);
	assert_false(mmr_timing_unknown(c));
	mmr_timing_bounds(c, sync, &r);
	assert_int_equal(r.hi, 4400);
	assert_int_equal(r.lo, -(600 + 3000) * 11 / 10);
	/* By medians: 500 ns against 1000. */
	assert_int_equal(r.aim_lo, 125 - 250);
	assert_int_equal(r.aim_hi, 500 - 62);
	assert_true(mmr_timing_draws(c));
	bound = mmr_timing_bound(c);
	assert_non_null(bound);
	text = mmr_case_print_stmt(mmr_case_stmt(bound, 7));
	assert_string_equal(text, "sync s skew=-3960ns..4400ns "
				  "aim=-125ns..438ns");
	free(text);
	mmr_case_free(bound);
	mmr_case_free(c);
}

/* What each side aims at: the first call, a loop as one, what a kill begins; a
 * thread without an offset rather than a longer one. */
static void test_aim(void **state)
{
	static const struct {
		const char *text;
		int sync, lo, hi;
	} cases[] = {
		/* mprotect 1 us, munmap 2 us; read 400 ns. */
		{"thread A\nm0 = mmap len=1p prot=rw flags=private|anon\n"
		 "sync s\nmprotect m0 prot=none\nmunmap m0\n"
		 "thread B\nsync s skew=auto\nread m0 len=1\n",
		 4, 125 - 200, 500 - 50},
		/* Four reads in a loop. */
		{"thread A\nm0 = mmap len=1p prot=rw flags=private|anon\n"
		 "sync s\nmprotect m0 prot=none\n"
		 "thread B\nsync s skew=auto\nloop 4\nread m0 len=1\nend\n",
		 3, 125 - 1400, 500},
		/* After a delay of 1 us in the mean. */
		{"thread A\nm0 = mmap len=1p prot=rw flags=private|anon\n"
		 "sync s\nmprotect m0 prot=none\n"
		 "thread B\nsync s skew=auto\ndelay 0..2us\nread m0 len=1\n",
		 3, 125 - 1200, 500 - 1050},
		/* C is longer, but has an offset. */
		{"thread A\nm0 = mmap len=1p prot=rw flags=private|anon\n"
		 "sync s\nmprotect m0 prot=none\n"
		 "thread B\nsync s skew=auto\nread m0 len=1\n"
		 "thread C\nsync s skew=1us\nmunmap m0\n",
		 3, 125 - 200, 500 - 50},
		/* The exit of 8 us begins with the end of a kill of 3 us. */
		{"thread A\np0 = process_spawn idle\nsync s\nkill p0 KILL\n"
		 "process_reap p0\n"
		 "thread B\nsync s skew=auto\nprocess_mrelease p0\n",
		 4, 3000, 3000 + 4000},
		{"thread A\np0 = process_spawn idle\nsync s skew=auto\n"
		 "kill p0 KILL\nprocess_reap p0\n"
		 "thread B\nsync s\nprocess_mrelease p0\n",
		 1, -3000 - 4000, -3000},
	};
	static const struct {
		struct mmr_calib_key key;
		uint64_t ns;
	} table[] = {
		{{MMR_OP_mprotect, 0, MMR_BACK_PRIVATE}, 1000},
		{{MMR_OP_munmap, 0, MMR_BACK_PRIVATE}, 2000},
		{{MMR_OP_read, 0, MMR_BACK_PRIVATE}, 400},
		{{MMR_OP_kill, 0, MMR_BACK_NONE}, 3000},
		{{MMR_OP_process_reap, 0, MMR_BACK_NONE}, 8000},
		{{MMR_OP_process_mrelease, 0, MMR_BACK_NONE}, 5000},
	};
	struct mmr_timing_range r;
	struct mmr_case *c;
	size_t i;

	(void)state;
	mmr_calib_reset();
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		mmr_calib_add(table[i].key, 10, table[i].ns, 2 * table[i].ns);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		c = parse(cases[i].text);
		assert_int_equal(mmr_case_stmt(c, cases[i].sync)->op->id,
				 MMR_OP_sync);
		mmr_timing_bounds(c, mmr_case_stmt(c, cases[i].sync), &r);
		assert_int_equal(r.aim_lo, cases[i].lo);
		assert_int_equal(r.aim_hi, cases[i].hi);
		mmr_case_free(c);
	}
	mmr_calib_reset();
}

/* What auto stands for is drawn as auto is; without offsets nothing is. */
static void test_compiled(void **state)
{
	struct mmr_compile_opts opts = {.seed = 5};
	struct mmr_case *c = parse(two), *bound = mmr_timing_bound(c);
	struct mmr_area *a, *b;
	struct mmr_insn *ia, *ib;
	struct mmr_diag d;
	int fa, fb;

	(void)state;
	assert_int_equal(mmr_compile(c, &opts, &a, &fa, &d), 0);
	assert_int_equal(mmr_compile(bound, &opts, &b, &fb, &d), 0);
	/* mmap, loop, sync, munmap, end; loop, write, delay, sync. */
	ia = MMR_AREA_AT(a, a->program.insns_off, struct mmr_insn) + 8;
	ib = MMR_AREA_AT(b, b->program.insns_off, struct mmr_insn) + 8;
	assert_int_equal(ia->op, MMR_OP_sync);
	assert_true(ia->tag == ib->tag && ia->dim == ib->dim);
	assert_int_equal(ia->dim, 0);
	assert_int_equal(ia->arg[1].lo, ib->arg[1].lo);
	assert_int_equal(ia->arg[1].hi, ib->arg[1].hi);
	assert_true(ia->arg[1].lo < 0 && ia->arg[1].hi > 0);
	assert_int_equal(ia->arg[2].lo, ib->arg[2].lo);
	assert_int_equal(ia->arg[2].hi, ib->arg[2].hi);
	assert_true(ia->arg[2].lo < ia->arg[2].hi);
	mmr_area_close(b, fb);
	opts.no_offsets = true;
	assert_int_equal(mmr_compile(c, &opts, &b, &fb, &d), 0);
	ib = MMR_AREA_AT(b, b->program.insns_off, struct mmr_insn) + 8;
	assert_int_equal(ib->arg[1].lo, 0);
	assert_int_equal(ib->arg[1].hi, 0);
	mmr_area_close(a, fa);
	mmr_area_close(b, fb);
	mmr_case_free(bound);
	mmr_case_free(c);
}

static void test_keys(void **state)
{
	struct mmr_case *c =
		parse("thread A\n"
		      "m0 = mmap len=4p prot=rw flags=shared|anon|populate\n"
		      "write m0\n"
		      "write m0 step=1p len=1p\n"
		      "madvise m0 dontneed\n"
		      "m1 = mmap len=1h prot=rw flags=private|anon|hugetlb\n"
		      "read m1 step=1h\n"
		      "pause\n");
	static const struct {
		int stmt, size, backing;
	} want[] = {
		{0, 2, MMR_BACK_SHARED}, {1, 14, MMR_BACK_SHARED},
		{2, 0, MMR_BACK_SHARED}, {3, 2, MMR_BACK_SHARED},
		{4, 0, MMR_BACK_HUGE},	 {5, 0, MMR_BACK_HUGE},
	};
	struct mmr_calib_key key;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_true(mmr_timing_key(
			c->procs[0], mmr_case_stmt(c, want[i].stmt), &key));
		assert_int_equal(key.size, want[i].size);
		assert_int_equal(key.backing, want[i].backing);
	}
	assert_false(mmr_timing_key(c->procs[0], mmr_case_stmt(c, 6), &key));
	mmr_case_free(c);
}

static void test_table(void **state)
{
	struct mmr_calib_key key = {MMR_OP_munmap, 3, MMR_BACK_FILE};
	struct mmr_calib_time t;
	char dir[] = "/tmp/mmr-calib-XXXXXX", path[64], junk[80];
	FILE *f;
	int i;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sub/table", dir);
	mmr_calib_reset();
	assert_int_equal(mmr_calib_load(path), -ENOENT);
	assert_false(mmr_calib_get(key, &t));
	assert_int_equal(t.p90_ns, MMR_CALIB_PRIOR_NS);
	/* The first runs count alike; then a single one moves little. */
	mmr_calib_add(key, 5, 1000, 1000);
	mmr_calib_add(key, 5, 4000, 16000);
	assert_true(mmr_calib_get(key, &t));
	assert_in_range(t.median_ns, 1999, 2001);
	assert_in_range(t.p90_ns, 3999, 4001);
	for (i = 0; i < 200; i++)
		mmr_calib_add(key, 1, 3000, 3000);
	mmr_calib_add(key, 1, 300000, 3000000);
	mmr_calib_get(key, &t);
	assert_in_range(t.median_ns, 3700, 3800);
	assert_int_equal(mmr_calib_save(), 0);
	mmr_calib_reset();
	assert_int_equal(mmr_calib_load(path), 0);
	mmr_calib_get(key, &t);
	assert_in_range(t.median_ns, 3700, 3800);
	assert_int_equal(t.runs, 203);
	assert_int_equal(mmr_calib_each(NULL, NULL), 1);
	/* Another host's, and what makes no sense. */
	f = fopen(path, "w");
	fputs("mmrace-calibration 1\nhost elsewhere 1 \"?\"\n"
	      "munmap 3 file 1 1 5 5\n",
	      f);
	fclose(f);
	mmr_calib_reset();
	assert_int_equal(mmr_calib_load(path), -ENOENT);
	assert_int_equal(mmr_calib_each(NULL, NULL), 0);
	snprintf(junk, sizeof(junk), "rm -r %s", dir);
	assert_int_equal(system(junk), 0);
	mmr_calib_reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_aim_gaps),
		cmocka_unit_test(test_aim),
	};

	return cmocka_run_group_tests_name("timing", tests, NULL, NULL);
}
