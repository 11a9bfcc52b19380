// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Statistics of hits in runs and in time: the exact intervals, from the
 * incomplete beta and gamma functions, and how many runs a rate demands.
 */
#include <math.h>

#include "stat.h"

#define BETA_TURNS 2000
#define BETA_TINY 1e-300

/* Continued fraction of the incomplete beta function by Lentz's method; it
 * converges in O(sqrt(max(a, b))) turns for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), f, delta;
	int m;

	d = 1 / (fabs(d) < BETA_TINY ? BETA_TINY : d);
	f = d;
	for (m = 1; m <= BETA_TURNS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x /
			     ((a + 2 * m) * (a + 2 * m + 1));

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < BETA_TINY ? BETA_TINY : d);
		c = fabs(c) < BETA_TINY ? BETA_TINY : c;
		f *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < BETA_TINY ? BETA_TINY : d);
		c = fabs(c) < BETA_TINY ? BETA_TINY : c;
		delta = d * c;
		f *= delta;
		if (fabs(delta - 1) < 1e-14)
			break;
	}
	return f;
}

double mmr_stat_beta(double a, double b, double x)
{
	double front;
	int sign;

	if (!(x > 0))
		return 0;
	if (x >= 1)
		return 1;
	/* lgamma_r, as lgamma keeps the sign in a global. */
	front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) -
		    lgamma_r(b, &sign) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The x at which I_x(a, b) is q.  The function rises, so halving finds it;
 * 200 halvings are below the spacing of doubles anywhere in 0..1. */
static double beta_inverse(double a, double b, double q)
{
	double lo = 0, hi = 1, mid = 0.5;
	int i;

	for (i = 0; i < 200; i++) {
		mid = lo + (hi - lo) / 2;
		if (mid <= lo || mid >= hi)
			break;
		if (mmr_stat_beta(a, b, mid) < q)
			lo = mid;
		else
			hi = mid;
	}
	return mid;
}

void mmr_stat_interval(double k, double n, double conf, double *lo, double *hi)
{
	double tail = (1 - conf) / 2;

	*lo = 0;
	*hi = 1;
	if (!(n > 0))
		return;
	if (k > n)
		k = n;
	if (k > 0)
		*lo = beta_inverse(k, n - k + 1, tail);
	if (k < n)
		*hi = beta_inverse(k + 1, n - k, 1 - tail);
}

/* The series of P(a, x) for x < a + 1, else the continued fraction of 1 - P by
 * Lentz's method: both converge in O(sqrt(a)) turns there. */
double mmr_stat_gamma(double a, double x)
{
	double front, sum, term, b, c, d, delta;
	int i, sign;

	if (!(x > 0))
		return 0;
	front = exp(a * log(x) - x - lgamma_r(a, &sign));
	if (x < a + 1) {
		sum = term = 1 / a;
		for (i = 1; i < BETA_TURNS && term > sum * 1e-16; i++) {
			term *= x / (a + i);
			sum += term;
		}
		return front * sum;
	}
	b = x + 1 - a;
	c = 1 / BETA_TINY;
	d = 1 / b;
	sum = d;
	for (i = 1; i < BETA_TURNS; i++) {
		double an = -i * (i - a);

		b += 2;
		d = an * d + b;
		d = 1 / (fabs(d) < BETA_TINY ? BETA_TINY : d);
		c = b + an / c;
		c = fabs(c) < BETA_TINY ? BETA_TINY : c;
		delta = c * d;
		sum *= delta;
		if (fabs(delta - 1) < 1e-14)
			break;
	}
	return 1 - front * sum;
}

/* The x at which P(a, x) is q; it rises. */
static double gamma_inverse(double a, double q)
{
	double lo = 0, hi = a + 1, mid;
	int i;

	while (mmr_stat_gamma(a, hi) < q && hi < 1e300)
		hi *= 2;
	for (i = 0; i < 200; i++) {
		mid = lo + (hi - lo) / 2;
		if (mid <= lo || mid >= hi)
			break;
		if (mmr_stat_gamma(a, mid) < q)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

void mmr_stat_poisson(double k, double t, double conf, double *lo, double *hi)
{
	double tail = (1 - conf) / 2;

	*lo = k > 0 ? gamma_inverse(k, tail) / t : 0;
	*hi = gamma_inverse(k + 1, 1 - tail) / t;
}

double mmr_stat_none(uint64_t n)
{
	return n > 3 ? 3.0 / (double)n : 1;
}

uint64_t mmr_stat_runs(double p, double miss)
{
	double n;

	if (!(p > 0))
		return UINT64_MAX;
	if (p >= 1)
		return 1;
	n = ceil(log(miss) / log1p(-p) - 1e-9);
	if (n < 1)
		return 1;
	return n < 1e18 ? (uint64_t)n : UINT64_MAX;
}
