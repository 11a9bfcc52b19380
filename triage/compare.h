/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two sets of runs, compared: is anything slower, or failing more often?
 *
 * The unit is the run: calls of one run share its luck (a burst of load, a
 * frequency, a layout), and tests that take calls for independent find a
 * difference in a fifth of all comparisons of a thing with itself
 * (section 4 of the project's notes on algorithms: simulated).  So each run is
 * one number for each kind of call, a permutation test of runs says whether
 * there is a difference, resampling of runs how large.  The test is one for all
 * kinds together (compare_deal.h): 5 % is the chance of any false alarm in
 * them.
 */
#ifndef MMR_TRIAGE_COMPARE_H
#define MMR_TRIAGE_COMPARE_H

#include "record.h"

#define MMR_COMPARE_LEVEL 0.05
#define MMR_COMPARE_RUNS 5 /* a side, at least: else nobody can tell */

enum mmr_compare_word {
	MMR_COMPARE_CANNOT_TELL, /* too few runs, or too much noise */
	MMR_COMPARE_SAME,	 /* within 10 % either way, at 95 % */
	MMR_COMPARE_FASTER,
	MMR_COMPARE_SLOWER,
};

/* "cannot tell" and so on. */
const char *mmr_compare_name(enum mmr_compare_word w);

/* One figure of both sides; ratio b / a with its 95 % interval. */
struct mmr_compare_figure {
	double a, b, ratio, lo, hi;
};

struct mmr_compare_kind {
	const char *name; /* owned by the sides */
	int runs_a, runs_b;
	uint64_t calls_a, calls_b;
	struct mmr_compare_figure figure[MMR_FIGURES]; /* ns */
	double p_typical, p_tail; /* of the permutation tests, uncorrected */
	double p_all; /* the smaller one, corrected over all kinds */
	enum mmr_compare_word word;
	bool in_tail; /* what the word is about: the p99, or the median */
};

struct mmr_compare_rate {
	const char *verdict;
	uint64_t a, b;			  /* runs with it */
	double lo_a, hi_a, lo_b, hi_b, p; /* 95 %, Fisher's exact test */
	bool differs;
};

struct mmr_compare {
	struct mmr_compare_kind *kinds;
	int nkinds;
	struct mmr_compare_rate rates[MMR_VERDICTS];
	int nrates;
	bool differs; /* anything of it */
};

/*
 * Compares.  The same sides give the same result: permutations and samples
 * are drawn from a key.  0 or -ENOMEM; the caller frees with
 * mmr_compare_free(), before the sides.
 */
int mmr_compare(const struct mmr_record_side *a,
		const struct mmr_record_side *b, struct mmr_compare *out)
	__attribute__((warn_unused_result));
void mmr_compare_free(struct mmr_compare *c);

/* Two-sided p of Fisher's exact test: ka of na against kb of nb. */
double mmr_compare_fisher(uint64_t ka, uint64_t na, uint64_t kb, uint64_t nb);

#endif
