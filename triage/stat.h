/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics of hits in runs.  Pure functions, any thread. */
#ifndef MMR_TRIAGE_STAT_H
#define MMR_TRIAGE_STAT_H

#include <stdint.h>

/* Clopper-Pearson interval of k in n at the given confidence (0.95).  n 0:
 * nothing is known, 0..1. */
void mmr_stat_interval(uint64_t k, uint64_t n, double conf, double *lo,
		       double *hi);

/* Runs after which a failure of rate p has been missed every time with at
 * most probability miss.  At least 1; UINT64_MAX when p is 0. */
uint64_t mmr_stat_runs(double p, double miss);

/* The rate that none in n still allows at 95 % confidence: 3/n, the rule of
 * three; 1 when n says nothing. */
double mmr_stat_none(uint64_t n);

/* Exact interval of the rate of a Poisson process that had k events in t > 0
 * (Garwood); in events a unit of t. */
void mmr_stat_poisson(uint64_t k, double t, double conf, double *lo,
		      double *hi);

/* Regularised lower incomplete gamma function P(a, x), a > 0. */
double mmr_stat_gamma(double a, double x);

/* Regularised incomplete beta function I_x(a, b), a and b > 0. */
double mmr_stat_beta(double a, double b, double x);

#endif
