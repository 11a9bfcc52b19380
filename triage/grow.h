/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arrays that grow one by one. */
#ifndef MMR_TRIAGE_GROW_H
#define MMR_TRIAGE_GROW_H

#include <stdlib.h>

/* Room for one more after n things of this size: moved in steps of powers of
 * two, so p has to be NULL at first and grow by nothing else.  NULL: no memory,
 * and p is as it was. */
static inline void *mmr_grow(void *p, int n, size_t size)
{
	if (n & (n - 1))
		return p;
	return realloc(p, (n ? 2 * (size_t)n : 1) * size);
}

#endif
