/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small table from names to numbers 0.. in the order of arrival: for
 * whoever gives the names of a case their numbers.  The names stay the
 * caller's.
 */
#ifndef MMR_OPS_NAMES_H
#define MMR_OPS_NAMES_H

#include <stdint.h>
#include <string.h>

#define MMR_NAMES_MAX 256
#define MMR_NAMES_SLOTS 512 /* open addressing, at most half full */

struct mmr_names {
	const char *name[MMR_NAMES_MAX];
	int n;
	uint16_t slot[MMR_NAMES_SLOTS]; /* number + 1, 0: free */
};

static inline unsigned int mmr_names_slot(const struct mmr_names *t,
					  const char *s)
{
	uint32_t h = 0x811c9dc5;
	const char *p;
	unsigned int i;

	for (p = s; *p; p++)
		h = (h ^ (uint8_t)*p) * 0x01000193;
	i = (h ^ h >> 16) % MMR_NAMES_SLOTS;
	while (t->slot[i] && strcmp(t->name[t->slot[i] - 1], s) != 0)
		i = (i + 1) % MMR_NAMES_SLOTS;
	return i;
}

/* The number of s, -1 when it has none. */
static inline int mmr_names_find(const struct mmr_names *t, const char *s)
{
	return (int)t->slot[mmr_names_slot(t, s)] - 1;
}

/* The number of s, a new one when it had none; -1: the table is full. */
static inline int mmr_names_add(struct mmr_names *t, const char *s)
{
	unsigned int i = mmr_names_slot(t, s);

	if (t->slot[i])
		return t->slot[i] - 1;
	if (t->n == MMR_NAMES_MAX)
		return -1;
	t->name[t->n] = s;
	t->slot[i] = (uint16_t)++t->n;
	return t->n - 1;
}

#endif
