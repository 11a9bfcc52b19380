/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of a case: it only grows, and goes as a whole with the case.
 * For the files of the case module (case, parse, edit); others build with
 * the functions of case.h.
 */
#ifndef MMR_OPS_POOL_H
#define MMR_OPS_POOL_H

#include <stddef.h>

#include "case.h"

/* n zeroed bytes that live as long as c.  NULL: no memory. */
void *mmr_pool_alloc(struct mmr_case *c, size_t n);
/* A copy of n bytes with a NUL behind them.  NULL: no memory. */
const char *mmr_pool_str(struct mmr_case *c, const char *s, size_t n);
/*
 * Room for one more element in an array of n: arr itself, or a bigger copy
 * of it.  Arrays have no capacity field: it follows from n, being the next
 * power of two.  NULL: no memory, arr is untouched.
 */
void *mmr_pool_grow(struct mmr_case *c, void *arr, int n, size_t size);

#endif
