/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run's result as JSON and back: how it leaves a guest. */
#ifndef MMR_TRIAGE_RESULT_JSON_H
#define MMR_TRIAGE_RESULT_JSON_H

#include "run.h"

/* All that mmr_run() filled in.  NULL: no memory.  Any thread. */
json_t *mmr_result_to_json(const struct mmr_run_result *res);
/* The same back, for the case that ran (names of processes come from it).
 * 0, -EINVAL when j is no result of that case, -ENOMEM. */
int mmr_result_from_json(const json_t *j, const struct mmr_case *c,
			 struct mmr_run_result *res)
	__attribute__((warn_unused_result));

#endif
