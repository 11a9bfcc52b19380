/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Durations as a log-linear histogram: 16 steps for each doubling, so a value
 * is at most 1/32 off its step's middle, from 1 ns to hours.  Histograms are
 * merged by addition, in any order, without loss.  Sum and maximum are exact.
 * What comes from the child's own, coarser histogram (8 steps) was at most 1/16
 * off before.
 *
 * Plain data, locked by its owner.
 */
#ifndef MMR_TRIAGE_HISTOGRAM_H
#define MMR_TRIAGE_HISTOGRAM_H

#include <jansson.h>
#include <stdint.h>

#define MMR_HISTOGRAM_BINS 1024

struct mmr_histogram {
	uint64_t n, sum_ns, max_ns;
	uint64_t bin[MMR_HISTOGRAM_BINS];
};

/* count durations of ns; sum and max are not touched. */
void mmr_histogram_add(struct mmr_histogram *h, uint64_t ns, uint64_t count);
void mmr_histogram_merge(struct mmr_histogram *to,
			 const struct mmr_histogram *from);
/* The duration that a share p (0..1) of them does not exceed, ns; 0: none. */
double mmr_histogram_quantile(const struct mmr_histogram *h, double p);
/* [[ns, count], ...]: the middles of the steps that are in use. */
json_t *mmr_histogram_steps_json(const struct mmr_histogram *h);
double mmr_histogram_mean(const struct mmr_histogram *h);
/* Standard deviation, from the steps' middles. */
double mmr_histogram_stdev(const struct mmr_histogram *h);
/* {"n":..,"sum":..,"max":..,"bins":[[i,count],..]}, for the caller. */
json_t *mmr_histogram_json(const struct mmr_histogram *h);
/* 0 or -EINVAL. */
int mmr_histogram_from_json(const json_t *j, struct mmr_histogram *h)
	__attribute__((warn_unused_result));

#endif
