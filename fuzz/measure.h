/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a run measured, as text and as JSON. */
#ifndef MMR_FUZZ_MEASURE_H
#define MMR_FUZZ_MEASURE_H

#include <stdio.h>

#include "../triage/run.h"

/* "1.25 ms": three digits with the unit that fits; buf gets it. */
const char *mmr_measure_time(char *buf, size_t n, double ns);

#define MMR_MEASURE_COST_MAX 0.02 /* of the CPUs' time, for watching */
/* A line with the part of all CPUs' time that watching took, 0 to 1, and of
 * whom; and one that says so when it is more than that much. */
void mmr_measure_cost(FILE *out, uint64_t monitor_ns, uint64_t heartbeat_ns,
		      double part);

/* A table of the statements that ran: how often, errors by name, latencies;
 * then the exits of processes. */
void mmr_measure_text(FILE *out, const struct mmr_case *c,
		      const struct mmr_run_result *res);
/* The same as arrays. */
json_t *mmr_measure_stmts_json(const struct mmr_case *c,
			       const struct mmr_run_result *res);
json_t *mmr_measure_exits_json(const struct mmr_run_result *res);

#endif
