// SPDX-License-Identifier: GPL-2.0-or-later
/* Log-linear histograms: see the header for the error that they have. */
#include "histogram.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SUB 16 /* steps of a doubling; smaller values are exact */
#define SUB_BITS 4

static unsigned int bin_of(uint64_t ns)
{
	unsigned int msb, i;

	if (ns < SUB)
		return (unsigned int)ns;
	msb = 63 - (unsigned int)__builtin_clzll(ns);
	i = (msb - SUB_BITS + 1) * SUB +
	    (unsigned int)(ns >> (msb - SUB_BITS) & (SUB - 1));
	return i < MMR_HISTOGRAM_BINS ? i : MMR_HISTOGRAM_BINS - 1;
}

/* The middle of a step. */
static double value_of(unsigned int i)
{
	unsigned int octave = i / SUB;

	if (!octave)
		return i;
	return ldexp(SUB + i % SUB + 0.5, (int)octave - 1);
}

void mmr_histogram_add(struct mmr_histogram *h, uint64_t ns, uint64_t count)
{
	h->n += count;
	h->bin[bin_of(ns)] += count;
}

void mmr_histogram_merge(struct mmr_histogram *to,
			 const struct mmr_histogram *from)
{
	to->n += from->n;
	to->sum_ns += from->sum_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	for (int i = 0; i < MMR_HISTOGRAM_BINS; i++)
		to->bin[i] += from->bin[i];
}

double mmr_histogram_quantile(const struct mmr_histogram *h, double p)
{
	double want = ceil(p * (double)h->n);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < MMR_HISTOGRAM_BINS; i++) {
		sum += h->bin[i];
		if (!h->bin[i] || (double)sum < want)
			continue;
		/* The middle of the last step can be above the largest. */
		return h->max_ns && value_of(i) > (double)h->max_ns
			       ? (double)h->max_ns
			       : value_of(i);
	}
	return 0;
}

double mmr_histogram_mean(const struct mmr_histogram *h)
{
	return h->n ? (double)h->sum_ns / (double)h->n : 0;
}

double mmr_histogram_stdev(const struct mmr_histogram *h)
{
	double mean = 0, sum = 0, d;

	if (h->n < 2)
		return 0;
	/* About the mean of the middles, or their bias would count too. */
	for (unsigned int i = 0; i < MMR_HISTOGRAM_BINS; i++)
		mean += value_of(i) * (double)h->bin[i] / (double)h->n;
	for (unsigned int i = 0; i < MMR_HISTOGRAM_BINS; i++) {
		d = value_of(i) - mean;
		sum += d * d * (double)h->bin[i];
	}
	return sqrt(sum / (double)(h->n - 1));
}

json_t *mmr_histogram_steps_json(const struct mmr_histogram *h)
{
	json_t *steps = json_array();

	for (unsigned int i = 0; i < MMR_HISTOGRAM_BINS; i++)
		if (h->bin[i])
			json_array_append_new(steps,
					      json_pack("[I,I]",
							(json_int_t)value_of(i),
							(json_int_t)h->bin[i]));
	return steps;
}

json_t *mmr_histogram_json(const struct mmr_histogram *h)
{
	json_t *bins = json_array();

	for (int i = 0; i < MMR_HISTOGRAM_BINS; i++)
		if (h->bin[i])
			json_array_append_new(
				bins,
				json_pack("[i,I]", i, (json_int_t)h->bin[i]));
	return json_pack("{s:I, s:I, s:I, s:o}", "n", (json_int_t)h->n, "sum",
			 (json_int_t)h->sum_ns, "max", (json_int_t)h->max_ns,
			 "bins", bins);
}

int mmr_histogram_from_json(const json_t *j, struct mmr_histogram *h)
{
	const json_t *bins = json_object_get(j, "bins"), *pair;
	uint64_t n = 0;
	size_t i;

	memset(h, 0, sizeof(*h));
	if (!json_is_array(bins))
		return -EINVAL;
	json_array_foreach (bins, i, pair) {
		json_int_t at = json_integer_value(json_array_get(pair, 0));
		json_int_t count = json_integer_value(json_array_get(pair, 1));

		if (!json_is_array(pair) || at < 0 || count < 0 ||
		    at >= MMR_HISTOGRAM_BINS)
			return -EINVAL;
		h->bin[at] += (uint64_t)count;
		n += (uint64_t)count;
	}
	h->n = n;
	h->sum_ns = (uint64_t)json_integer_value(json_object_get(j, "sum"));
	h->max_ns = (uint64_t)json_integer_value(json_object_get(j, "max"));
	return 0;
}
