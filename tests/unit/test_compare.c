// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Red when a thing compared with itself differs more often than promised,
 * when a difference that is there is not found, when Fisher's p is not R's
 * fisher.test(), when a permutation test does not give the p that counting all
 * deals gives, when figures that are one and the same are corrected for being
 * many, when one run far off hides what the others say, when histograms lose
 * something in a merge or in JSON, or when a record is not read back as it was
 * written.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../ops/rng.h"
#include "../../triage/compare.h"
#include "../../triage/compare_deal.h"

static void test_histogram(void **state)
{
	struct mmr_histogram a = {0}, b = {0}, back;
	json_t *j;

	(void)state;
	for (uint64_t v = 1; v < 1000000; v += 7) {
		struct mmr_histogram *h = v % 2 ? &a : &b;

		mmr_histogram_add(h, v, 1);
		h->sum_ns += v;
		h->max_ns = v > h->max_ns ? v : h->max_ns;
	}
	mmr_histogram_merge(&a, &b);
	assert_int_equal(a.n, 142857);
	for (double p = 0.05; p < 1; p += 0.05) {
		double q = mmr_histogram_quantile(&a, p);

		assert_true(fabs(q / (p * 1e6) - 1) < 1.0 / 32 + 0.001);
	}
	assert_true(fabs(mmr_histogram_mean(&a) / 5e5 - 1) < 0.001);
	assert_true(fabs(mmr_histogram_stdev(&a) / (1e6 / sqrt(12)) - 1) <
		    0.005);
	j = mmr_histogram_json(&a);
	assert_int_equal(mmr_histogram_from_json(j, &back), 0);
	assert_memory_equal(&a, &back, sizeof(a));
	json_decref(j);
	j = json_loads("{\"bins\":[[-1,3]]}", 0, NULL);
	assert_true(mmr_histogram_from_json(j, &back) < 0);
	json_decref(j);
	j = json_loads("{\"bins\":[[1024,3]]}", 0, NULL);
	assert_true(mmr_histogram_from_json(j, &back) < 0);
	json_decref(j);
	/* The ends. */
	memset(&a, 0, sizeof(a));
	mmr_histogram_add(&a, 0, 1);
	mmr_histogram_add(&a, UINT64_MAX, 1);
	assert_int_equal(a.n, 2);
	assert_true(mmr_histogram_quantile(&a, 0.5) == 0);
}

static void test_fisher(void **state)
{
	static const struct {
		uint64_t ka, na, kb, nb;
		double p;
	} known[] = {
		{3, 10, 8, 10, 0.06977851},  {0, 20, 20, 20, 1.450889e-11},
		{1, 24, 5, 19, 0.072304326}, {0, 10, 0, 10, 1},
		{10, 10, 10, 10, 1},	     {2, 1000, 15, 1000, 0.0022575657},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		double p = mmr_compare_fisher(known[i].ka, known[i].na,
					      known[i].kb, known[i].nb);

		if (fabs(p - known[i].p) > 1e-5 * known[i].p + 1e-15)
			fail_msg("%zu: %.8g, not %.8g", i, p, known[i].p);
	}
}

static double uniform(struct mmr_rng *rng)
{
	return ((double)(mmr_rng_next(rng) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct mmr_rng *rng)
{
	return sqrt(-2 * log(uniform(rng))) * cos(2 * M_PI * uniform(rng));
}

#define KINDS 10

/* Runs whose luck is drawn run by run (CV of 12 %), 40 calls of each kind in
 * one; the first kind takes `factor` times as long. */
static void make_side(struct mmr_record_side *s, int runs, double factor,
		      struct mmr_rng *rng)
{
	memset(s, 0, sizeof(*s));
	s->kinds = calloc(KINDS, sizeof(*s->kinds));
	s->runs = calloc((size_t)runs, sizeof(*s->runs));
	s->nruns = runs;
	s->nkinds = KINDS;
	for (int r = 0; r < runs; r++) {
		struct mmr_record_run *run = &s->runs[r];
		double luck = exp(0.12 * normal(rng));

		snprintf(run->verdict, sizeof(run->verdict), "nothing");
		run->parts = calloc(KINDS, sizeof(*run->parts));
		run->nparts = KINDS;
		for (int k = 0; k < KINDS; k++) {
			struct mmr_histogram h = {0};

			for (int i = 0; i < 40; i++) {
				double ns = 1e5 * luck * (k ? 1 : factor) *
					    exp(0.3 * normal(rng));

				/* A burst now and then. */
				if (uniform(rng) < 0.01)
					ns *= 20;
				mmr_histogram_add(&h, (uint64_t)ns, 1);
				h.sum_ns += (uint64_t)ns;
				if (ns > (double)h.max_ns)
					h.max_ns = (uint64_t)ns;
			}
			run->parts[k].kind = k;
			for (int f = 0; f < MMR_FIGURES; f++)
				run->parts[k].figure[f] = mmr_figure_of(&h, f);
			mmr_histogram_merge(&s->kinds[k].hist, &h);
			snprintf(s->kinds[k].name, sizeof(s->kinds[k].name),
				 "kind %d", k);
			s->kinds[k].runs++;
		}
	}
}

/* Of `times` comparisons, how many differ in kind 0, and in any at all. */
static void trials(int times, int runs, double factor, int *first, int *any)
{
	struct mmr_rng rng = {.key = (uint64_t)(factor * 1000) + 17};

	*first = *any = 0;
	for (int i = 0; i < times; i++) {
		struct mmr_record_side a, b;
		struct mmr_compare c;

		make_side(&a, runs, 1, &rng);
		make_side(&b, runs, factor, &rng);
		assert_int_equal(mmr_compare(&a, &b, &c), 0);
		assert_int_equal(c.nkinds, KINDS);
		*any += c.differs;
		*first += c.kinds[0].word == MMR_COMPARE_SLOWER;
		mmr_compare_free(&c);
		mmr_record_side_free(&a);
		mmr_record_side_free(&b);
	}
}

static void test_null(void **state)
{
	int first, any;

	(void)state;
	trials(100, 20, 1, &first, &any);
	print_message("a thing with itself: %d of 100 differ\n", any);
	/* 5 expected; 11 and more have a chance of 1 %. */
	assert_in_range(any, 0, 10);
}

static void test_slower(void **state)
{
	int first, any;

	(void)state;
	trials(200, 20, 1.2, &first, &any);
	print_message("20 %% slower in one of ten kinds: found in %d of 200\n",
		      first);
	assert_in_range(first, 160, 200);
}

static void test_few(void **state)
{
	struct mmr_rng rng = {.key = 5};
	struct mmr_record_side a, b;
	struct mmr_compare c;

	(void)state;
	make_side(&a, 3, 1, &rng);
	make_side(&b, 3, 10, &rng);
	assert_int_equal(mmr_compare(&a, &b, &c), 0);
	assert_int_equal(c.kinds[0].word, MMR_COMPARE_CANNOT_TELL);
	assert_false(c.differs);
	mmr_compare_free(&c);
	mmr_record_side_free(&a);
	mmr_record_side_free(&b);
}

/* Four runs against four, all of a above all of b: 2 of the 70 deals are as
 * far apart.  Fifty figures that are the same one, and one of noise. */
static void test_deal(void **state)
{
	static const double x[] = {5, 6, 7, 8, 1, 2, 3, 4};
	static const double noise[] = {1, 5, 2, 4, 3, 1, 4, 5};
	static const double flat[] = {3, 3, 3, 3, 3, 3, 3, 3};
	static const int run[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct mmr_deal_test t[52];

	(void)state;
	for (int i = 0; i < 52; i++)
		t[i] = (struct mmr_deal_test){.x = x, .run = run, .n = 8};
	t[7].x = noise;
	t[51].x = flat;
	assert_int_equal(mmr_deal(t, 52, 4, 4, 1, 3), 0);
	for (int i = 0; i < 52; i++)
		assert_true(t[i].p <= t[i].p_all);
	/* Of 10,000 deals: the standard error is 0.0017. */
	assert_true(fabs(t[0].p - 2.0 / 70) < 0.007);
	assert_true(t[0].p_all < t[0].p + 0.05 && t[0].p_all == t[50].p_all);
	assert_true(t[7].p > 0.3);
	assert_true(t[51].p == 1 && t[51].p_all == 1);
	/* The noise alone is not better off for coming behind. */
	assert_true(t[7].p_all >= t[0].p_all);
	/* Fewer than five a side say nothing. */
	assert_int_equal(mmr_deal(t, 52, 4, 4, 5, 3), 0);
	assert_true(t[0].p == 1 && t[0].p_all == 1);
	assert_int_equal(mmr_deal(t, 0, 4, 4, 5, 3), 0);
}

/* A run in ten is thirty times as slow, on either side. */
static void test_far_off(void **state)
{
	struct mmr_record_side side[2];
	struct mmr_rng rng = {.key = 11};
	struct mmr_compare c;

	(void)state;
	for (int i = 0; i < 2; i++) {
		make_side(&side[i], 20, i ? 1.5 : 1, &rng);
		for (int r = 0; r < 2; r++)
			for (int f = 0; f < MMR_FIGURES; f++)
				side[i].runs[9 * r + i].parts[0].figure[f] *=
					30;
	}
	assert_int_equal(mmr_compare(&side[0], &side[1], &c), 0);
	assert_int_equal(c.kinds[0].word, MMR_COMPARE_SLOWER);
	assert_false(c.kinds[0].in_tail);
	assert_true(c.kinds[0].p_all <= MMR_COMPARE_LEVEL);
	assert_true(c.kinds[0].p_all >= c.kinds[0].p_typical);
	mmr_compare_free(&c);
	mmr_record_side_free(&side[0]);
	mmr_record_side_free(&side[1]);
}

static const char text[] = "mmrace-case 1\n"
			   "process main\n"
			   "  thread A\n"
			   "    m0 = mmap len=4p prot=rw flags=private|anon\n"
			   "    munmap m0\n"
			   "    munmap m0\n"
			   "    pause\n";

/* An empty file, whose name path becomes, and the case that runs are of. */
static struct mmr_case *begin_record(char *path)
{
	struct mmr_case *c;
	struct mmr_diag diag;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(
		mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL), 0);
	return c;
}

static void test_record(void **state)
{
	struct mmr_measure stmts[5] = {{0}};
	struct mmr_histogram h = {0};
	struct mmr_exit_measure out = {
		.proc = "main", .hist = &h, .cpu_hist = &h};
	struct mmr_run_result res = {
		.nstmts = 4, .stmts = stmts, .nexits = 1, .exits = &out};
	char path[] = "/tmp/mmrace-record-XXXXXX", why[400];
	struct mmr_record *r = mmr_record_new("a \"case\"");
	struct mmr_record_side side;
	struct mmr_case *c;

	(void)state;
	c = begin_record(path);
	mmr_histogram_add(&h, 1000, 3);
	h.sum_ns = 3000;
	h.max_ns = 1000;
	for (int i = 0; i < 4; i++)
		stmts[i].hist = &h;
	for (uint64_t i = 0; i < 3 * MMR_RECORD_MAX; i++) {
		res.verdict = i % 4 ? MMR_NOTHING : MMR_HANG;
		assert_int_equal(mmr_record_add(r, i, c, &res), 0);
	}
	assert_int_equal(mmr_record_save(r, path), 0);
	assert_int_equal(mmr_record_load(path, &side, why, sizeof(why)), 0);
	assert_string_equal(side.what, "a \"case\"");
	/* Bounded, and evenly. */
	assert_in_range(side.nruns, MMR_RECORD_MAX / 2, MMR_RECORD_MAX);
	for (int i = 1; i < side.nruns; i++)
		assert_true(side.runs[i].number - side.runs[i - 1].number ==
			    side.runs[1].number - side.runs[0].number);
	/* mmap, and munmap of both statements; a pause is none.  The exit of
	 * main, and what of it was on a CPU. */
	assert_int_equal(side.nkinds, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			side.kinds[i].hist.n,
			(strstr(side.kinds[i].name, "munmap") ? 6 : 3) *
				side.nruns);
	mmr_record_side_free(&side);
	assert_true(mmr_record_load("/etc/passwd", &side, why, sizeof(why)) <
		    0);
	assert_non_null(strstr(why, "/etc/passwd:1"));
	unlink(path);
	mmr_record_free(r);
	mmr_case_free(c);
}

/* A record on disk: bounded likewise, resumed with its stride, and whole after
 * a line that a kill cut short. */
static void test_record_file(void **state)
{
	struct mmr_run_result res = {0};
	char path[] = "/tmp/mmrace-record-XXXXXX", why[400];
	struct mmr_record *r = mmr_record_new("soak");
	struct mmr_record_side side;
	struct mmr_case *c;
	uint64_t i = 0;
	int fd;

	(void)state;
	c = begin_record(path);
	assert_int_equal(mmr_record_keep(r, path, false), 0);
	for (; i < MMR_RECORD_MAX + 10; i++)
		assert_int_equal(mmr_record_add(r, i, c, &res), 0);
	/* Killed here, in the middle of a line. */
	mmr_record_free(r);
	fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "{\"type\":\"run\",\"ru", 18), 18);
	close(fd);
	assert_int_equal(mmr_record_load(path, &side, why, sizeof(why)), 0);
	assert_int_equal(side.nruns, MMR_RECORD_MAX / 2 + 5);
	mmr_record_side_free(&side);
	r = mmr_record_new("soak");
	assert_int_equal(mmr_record_keep(r, path, true), 0);
	for (; i < MMR_RECORD_MAX + 20; i++)
		assert_int_equal(mmr_record_add(r, i, c, &res), 0);
	assert_int_equal(mmr_record_end(r), 0);
	mmr_record_free(r);
	assert_int_equal(mmr_record_load(path, &side, why, sizeof(why)), 0);
	assert_int_equal(side.nruns, MMR_RECORD_MAX / 2 + 10);
	for (int k = 0; k < side.nruns; k++)
		assert_int_equal(side.runs[k].number, 2 * k);
	mmr_record_side_free(&side);
	/* Another machine's goes; so does an earlier one's that is not resumed.
	 * A file is there also when nothing ran. */
	r = mmr_record_new("elsewhere");
	assert_int_equal(mmr_record_keep(r, path, true), 0);
	assert_int_equal(mmr_record_end(r), 0);
	mmr_record_free(r);
	assert_int_equal(mmr_record_load(path, &side, why, sizeof(why)), 0);
	assert_int_equal(side.nruns, 0);
	assert_string_equal(side.what, "elsewhere");
	mmr_record_side_free(&side);
	unlink(path);
	mmr_case_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_fisher),
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_slower),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_deal),
		cmocka_unit_test(test_far_off),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_record_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
