/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs for runs that go on side by side. */
#ifndef MMR_TRIAGE_CPUS_H
#define MMR_TRIAGE_CPUS_H

#include "run.h"

/*
 * The CPUs of job 0..njobs-1: each job gets its own when there are two for
 * each; fewer are shared by all, as a race needs two.  r->cpus is what all
 * jobs may use (ncpus 0: what this process may), and becomes the job's part.
 * Any thread.
 */
void mmr_cpus_share(struct mmr_run_opts *r, int job, int njobs);

#endif
