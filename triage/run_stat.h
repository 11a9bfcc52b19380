/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the counters in the shared area to a result's measurements. */
#ifndef MMR_TRIAGE_RUN_STAT_H
#define MMR_TRIAGE_RUN_STAT_H

#include "run.h"

/* Fills res->{rounds,rounds_void,ops,calls,stmts,nstmts,exits,nexits} from
 * an area that nobody writes any more (or hardly).  0 or -ENOMEM. */
int mmr_run_collect(const struct mmr_case *c, struct mmr_area *area,
		    struct mmr_run_result *res)
	__attribute__((warn_unused_result));

/* How many operations a statement's histogram has, and two of their quantiles
 * in ns.  Any time. */
uint64_t mmr_run_quantiles(const struct mmr_area *area, struct mmr_stat *st,
			   uint64_t *median_ns, uint64_t *p90_ns);

#endif
