// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Red when the interval is not the exact one: the values are those of R's
 * binom.test() and qbeta(), and the definition itself is checked on a grid
 * (the binomial tails at both ends are 2.5 %).  Red also when an interval is
 * not wider for a rate that moves, or is for one that stands still.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../ops/rng.h"
#include "../../triage/stat.h"

static void near(double have, double want, double tolerance)
{
	if (fabs(have - want) > tolerance)
		fail_msg("%.12g, not %.12g", have, want);
}

static void test_known(void **state)
{
	static const struct {
		uint64_t k, n;
		double lo, hi;
	} known[] = {
		{0, 10, 0, 0.3084971},
		{10, 10, 0.6915029, 1},
		{5, 10, 0.1870860, 0.8129140},
		{1, 1, 0.025, 1},
		{0, 1, 0, 0.975},
		{7, 100, 0.02860534, 0.13891973},
		{0, 3000, 0, 0.0012288718},
	};
	double lo, hi;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		mmr_stat_interval(known[i].k, known[i].n, 0.95, &lo, &hi);
		near(lo, known[i].lo, 2e-6);
		near(hi, known[i].hi, 2e-6);
	}
	near(mmr_stat_none(0), 1, 0);
	near(mmr_stat_none(3), 1, 0);
	near(mmr_stat_none(3000), 0.001, 1e-12);
	mmr_stat_interval(0, 0, 0.95, &lo, &hi);
	near(lo, 0, 0);
	near(hi, 1, 0);
}

/* P(X >= k) for X binomial(n, p), summed in logarithms. */
static double upper_tail(uint64_t k, uint64_t n, double p)
{
	double sum = 0, dn = (double)n;
	uint64_t i;

	for (i = k; i <= n; i++) {
		double di = (double)i;

		sum += exp(lgamma(dn + 1) - lgamma(di + 1) -
			   lgamma(dn - di + 1) + di * log(p) +
			   (dn - di) * log1p(-p));
	}
	return sum;
}

static void test_definition(void **state)
{
	static const uint64_t sizes[] = {1, 2, 3, 10, 57, 300, 2000};
	double lo, hi;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t n = sizes[i], k, step = n / 7 + 1;

		for (k = 0; k <= n; k += step) {
			mmr_stat_interval(k, n, 0.95, &lo, &hi);
			assert_true(lo >= 0 && hi <= 1 && lo < hi);
			if (k > 0)
				near(upper_tail(k, n, lo), 0.025, 1e-7);
			if (k < n)
				near(1 - upper_tail(k + 1, n, hi), 0.025, 1e-7);
		}
	}
}

static void test_large(void **state)
{
	double lo, hi;

	(void)state;
	/* The normal approximation is good here: 0.3 +- 1.96 * 0.000458. */
	mmr_stat_interval(300000, 1000000, 0.95, &lo, &hi);
	near(lo, 0.3 - 0.000898, 2e-6);
	near(hi, 0.3 + 0.000898, 2e-6);
}

static void test_beta(void **state)
{
	(void)state;
	near(mmr_stat_beta(1, 1, 0.3), 0.3, 1e-12);
	near(mmr_stat_beta(2, 3, 0.4), 0.5248, 1e-12);
	near(mmr_stat_beta(5, 1, 0.5), 0.03125, 1e-12);
	near(mmr_stat_beta(3, 7, 0), 0, 0);
	near(mmr_stat_beta(3, 7, 1), 1, 0);
}

static void test_runs(void **state)
{
	(void)state;
	/* ln(0.05)/ln(0.7) = 8.4, ln(0.01)/ln(0.1) = 2, 59 is the classic. */
	assert_int_equal(mmr_stat_runs(0.3, 0.05), 9);
	assert_int_equal(mmr_stat_runs(0.9, 0.01), 2);
	assert_int_equal(mmr_stat_runs(0.05, 0.05), 59);
	assert_int_equal(mmr_stat_runs(1, 0.05), 1);
	assert_int_equal(mmr_stat_runs(0.999, 0.05), 1);
	assert_true(mmr_stat_runs(0, 0.05) == UINT64_MAX);
}

/* Garwood's limits: qgamma() of R. */
static void test_poisson(void **state)
{
	static const struct {
		uint64_t k;
		double lo, hi;
	} known[] = {
		{0, 0, 3.688879},
		{1, 0.02531781, 5.571643},
		{5, 1.623486, 11.66833},
		{100, 81.36398, 121.6267},
	};
	double lo, hi;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		mmr_stat_poisson(known[i].k, 1, 0.95, &lo, &hi);
		near(lo, known[i].lo, 1e-4);
		near(hi, known[i].hi, 1e-4);
		/* Twice the time, half the rate. */
		mmr_stat_poisson(known[i].k, 2, 0.95, &lo, &hi);
		near(lo, known[i].lo / 2, 1e-4);
	}
	/* P(1, x) is 1 - exp(-x), on both sides of its two methods. */
	near(mmr_stat_gamma(1, 0.5), 1 - exp(-0.5), 1e-12);
	near(mmr_stat_gamma(1, 7), 1 - exp(-7), 1e-12);
}

static double draw(struct mmr_rng *r)
{
	return (double)(mmr_rng_next(r) >> 11) / 9007199254740992.0;
}

static void test_spread(void **state)
{
	struct mmr_stat_spread s = {0};
	int i;

	(void)state;
	/* A hit every other run: parts of 4 that are all alike. */
	for (i = 0; i < 31; i++)
		mmr_stat_spread_add(&s, i & 1);
	near(mmr_stat_spread_factor(&s), 0, 0);
	assert_int_equal(s.size, 2);
	for (; i < 64; i++)
		mmr_stat_spread_add(&s, i & 1);
	assert_int_equal(s.size, 4);
	assert_int_equal(s.n, 16);
	near(mmr_stat_spread_factor(&s), 0, 1e-12);
	near(mmr_stat_weight(&s), 1, 0);
	/* All of the first half and none of the second: chi square is the
	 * number of runs, 16 parts have 15 degrees of freedom. */
	memset(&s, 0, sizeof(s));
	for (i = 0; i < 64; i++)
		mmr_stat_spread_add(&s, i < 32);
	near(mmr_stat_spread_factor(&s), 64.0 / 15, 1e-12);
	/* t(15) is 2.131450. */
	near(mmr_stat_weight(&s),
	     1.959964 * 1.959964 / (2.131450 * 2.131450) * 15 / 64, 4e-4);
	/* It never fails, or always: nothing moves. */
	memset(&s, 0, sizeof(s));
	for (i = 0; i < 1000; i++)
		mmr_stat_spread_add(&s, true);
	near(mmr_stat_weight(&s), 1, 0);
}

/*
 * How often the 95 % interval of 80 runs has the mean rate, when the rate is
 * drawn anew every few runs: the plain one, and the one by parts.
 */
static void coverage(double low, double high, double *plain, double *parts)
{
	struct mmr_rng r = {77, 0};
	int i, k, n = 4000;
	double lo, hi, w, p = low, mean = (low + high) / 2;

	*plain = *parts = 0;
	for (k = 0; k < n; k++) {
		struct mmr_stat_spread s = {0};
		double hits = 0;

		for (i = 0; i < 80; i++) {
			bool hit;

			if (i % 8 == 0)
				p = draw(&r) < 0.5 ? low : high;
			hit = draw(&r) < p;
			hits += hit;
			mmr_stat_spread_add(&s, hit);
		}
		mmr_stat_interval(hits, 80, 0.95, &lo, &hi);
		*plain += lo <= mean && mean <= hi;
		w = mmr_stat_weight(&s);
		mmr_stat_interval(hits * w, 80 * w, 0.95, &lo, &hi);
		*parts += lo <= mean && mean <= hi;
	}
	*plain /= n;
	*parts /= n;
	print_message("rate %.2f or %.2f: plain %.3f, by parts %.3f\n", low,
		      high, *plain, *parts);
}

static void test_coverage(void **state)
{
	double plain, parts;

	(void)state;
	coverage(0.8, 0.8, &plain, &parts);
	assert_true(plain > 0.94 && parts >= plain && parts < 0.99);
	coverage(0.4, 0.8, &plain, &parts);
	assert_true(plain < 0.89 && parts > 0.92);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_definition),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_beta),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_poisson),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_coverage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
