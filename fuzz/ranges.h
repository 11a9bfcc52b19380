/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of case numbers as ranges, in order and never touching each other:
 * what several jobs have finished is one long range and a few short ones.
 * Owned and locked by the caller.
 */
#ifndef MMR_FUZZ_RANGES_H
#define MMR_FUZZ_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct mmr_range {
	uint64_t from, to; /* both are in it */
};

/* n of the `max` places of r are in use; memory is the caller's. */
struct mmr_ranges {
	struct mmr_range *r;
	int n, max;
};

/* Adds from..to.  0, or -ENOSPC when it wants a place more than there is. */
int mmr_ranges_add(struct mmr_ranges *s, uint64_t from, uint64_t to)
	__attribute__((warn_unused_result));
bool mmr_ranges_has(const struct mmr_ranges *s, uint64_t x);
/* How many numbers from..to has in common with it. */
uint64_t mmr_ranges_common(const struct mmr_ranges *s, uint64_t from,
			   uint64_t to);
/* How many numbers are in it. */
uint64_t mmr_ranges_count(const struct mmr_ranges *s);
/* The smallest number >= x that is not in it. */
uint64_t mmr_ranges_gap(const struct mmr_ranges *s, uint64_t x);

#endif
