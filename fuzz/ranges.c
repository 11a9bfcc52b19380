// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets of case numbers, kept as sorted ranges. */
#include "ranges.h"

#include <errno.h>
#include <string.h>

/* The first range that ends at x or later; n when none does. */
static int at_or_after(const struct mmr_ranges *s, uint64_t x)
{
	int lo = 0, hi = s->n;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (s->r[mid].to < x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int mmr_ranges_add(struct mmr_ranges *s, uint64_t from, uint64_t to)
{
	/* Also one that ends right before from is joined. */
	int first = at_or_after(s, from ? from - 1 : 0), end = first;

	while (end < s->n && (to == UINT64_MAX || s->r[end].from <= to + 1)) {
		if (s->r[end].from < from)
			from = s->r[end].from;
		if (s->r[end].to > to)
			to = s->r[end].to;
		end++;
	}
	if (end == first && s->n == s->max)
		return -ENOSPC;
	memmove(&s->r[first + 1], &s->r[end],
		(size_t)(s->n - end) * sizeof(*s->r));
	s->r[first] = (struct mmr_range){from, to};
	s->n += first + 1 - end;
	return 0;
}

bool mmr_ranges_has(const struct mmr_ranges *s, uint64_t x)
{
	int i = at_or_after(s, x);

	return i < s->n && s->r[i].from <= x;
}

uint64_t mmr_ranges_common(const struct mmr_ranges *s, uint64_t from,
			   uint64_t to)
{
	uint64_t sum = 0;

	for (int i = at_or_after(s, from); i < s->n && s->r[i].from <= to;
	     i++) {
		uint64_t a = s->r[i].from > from ? s->r[i].from : from;
		uint64_t b = s->r[i].to < to ? s->r[i].to : to;

		sum += b - a + 1;
	}
	return sum;
}

uint64_t mmr_ranges_count(const struct mmr_ranges *s)
{
	return mmr_ranges_common(s, 0, UINT64_MAX);
}

uint64_t mmr_ranges_gap(const struct mmr_ranges *s, uint64_t x)
{
	int i = at_or_after(s, x);

	return i < s->n && s->r[i].from <= x ? s->r[i].to + 1 : x;
}
