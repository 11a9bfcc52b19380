/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between a run and the calibration table (ops/calib.h), and from draws to
 * nanoseconds.  Any thread.
 */
#ifndef MMR_TRIAGE_CALIBRATE_H
#define MMR_TRIAGE_CALIBRATE_H

#include "run.h"

/*
 * Before a run of a case whose skew=auto starts what this host never saw: at
 * most MMR_CALIB_FIRST rounds without offsets, themselves a run under watch.
 * True when that run is the result (it hit, or could not be done): *res is
 * filled.  Else *res is to be filled by the caller, and *budget_ns, what is
 * left of its time, is less.
 */
bool mmr_calibrate_first(const struct mmr_case *c,
			 const struct mmr_run_opts *opts, int64_t *budget_ns,
			 struct mmr_run_result *res);
/* Adds what a run measured; the file is written now and then. */
void mmr_calibrate_add(const struct mmr_case *c, struct mmr_area *area);
/* The offsets of this instant into res->exact, and the bounds that were in
 * force into res->bound: at a hit, before anything moves on. */
void mmr_calibrate_resolve(const struct mmr_case *c, struct mmr_area *area,
			   struct mmr_run_result *res);
/*
 * The case of a hit as it is stored: nanoseconds where calibration had a say,
 * and the very offsets of the hit when exact.  NULL: nothing was drawn, or no
 * memory, and the case is stored as it is.  The caller frees it.
 */
struct mmr_case *mmr_calibrate_case(const struct mmr_run_result *res,
				    bool exact);

#endif
