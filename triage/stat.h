/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics of hits in runs.  Pure functions, any thread. */
#ifndef MMR_TRIAGE_STAT_H
#define MMR_TRIAGE_STAT_H

#include <stdbool.h>
#include <stdint.h>

/* Clopper-Pearson interval of k in n at the given confidence (0.95).  n 0:
 * nothing is known, 0..1.  Parts of runs: see mmr_stat_weight(). */
void mmr_stat_interval(double k, double n, double conf, double *lo, double *hi);

/* Runs after which a failure of rate p has been missed every time with at
 * most probability miss.  At least 1; UINT64_MAX when p is 0. */
uint64_t mmr_stat_runs(double p, double miss);

/* The rate that none in n still allows at 95 % confidence: 3/n, the rule of
 * three; 1 when n says nothing. */
double mmr_stat_none(uint64_t n);

/* Exact interval of the rate of a Poisson process that had k events in t > 0
 * (Garwood); in events a unit of t. */
void mmr_stat_poisson(double k, double t, double conf, double *lo, double *hi);

/*
 * Runs in the order of time, in parts of equal length: 8 to 16 of them from
 * the 32nd run on.  What the parts differ by more than chance is how much the
 * rate itself moved meanwhile.  Zeroed at first.
 */
#define MMR_STAT_PARTS 16
struct mmr_stat_spread {
	uint64_t size; /* runs a part */
	int n;	       /* parts, the last one may not be full */
	uint64_t runs[MMR_STAT_PARTS], hits[MMR_STAT_PARTS];
};

void mmr_stat_spread_add(struct mmr_stat_spread *s, bool hit);

/* Variance of the parts' hits against that of a rate that stands still: about
 * 1 for such a one.  0: too few runs to tell. */
double mmr_stat_spread_factor(const struct mmr_stat_spread *s);
/* Worth a word: a rate that stands still gets there in one of 20 times. */
#define MMR_STAT_MOVED 1.9

/*
 * What a run is worth, 1 or less: hits and runs times this, in the intervals
 * above, make them as wide as the parts' spread demands (Korn and Graubard,
 * Survey Methodology 24, 1998, p. 193).
 */
double mmr_stat_weight(const struct mmr_stat_spread *s);

/* Regularised lower incomplete gamma function P(a, x), a > 0. */
double mmr_stat_gamma(double a, double x);

/* Regularised incomplete beta function I_x(a, b), a and b > 0. */
double mmr_stat_beta(double a, double b, double x);

#endif
