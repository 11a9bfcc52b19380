/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks the running kernel whether it can run a case.
 */
#ifndef MMR_OPS_NEEDS_H
#define MMR_OPS_NEEDS_H

#include "case.h"

/*
 * Checks the case's needs lines and what its ops need.  0: all met;
 * -ENOTSUP: text holds one sentence, as of mmr_need_ask().  With may_set,
 * hugepages>=N counts as met when the pool could be raised to it (the caller
 * raises it).  Any thread.
 */
int mmr_needs_check(const struct mmr_case *c, bool may_set, char *text,
		    size_t n);

#endif
