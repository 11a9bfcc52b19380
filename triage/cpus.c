// SPDX-License-Identifier: GPL-2.0-or-later
/* Shares the machine's CPUs among jobs. */
#include "cpus.h"

#include <sched.h>
#include <string.h>

void mmr_cpus_share(struct mmr_run_opts *r, int job, int njobs)
{
	uint16_t cpus[64];
	cpu_set_t set;
	int n = 0, i;

	if (r->ncpus) {
		memcpy(cpus, r->cpus, sizeof(cpus));
		n = r->ncpus;
	} else if (!sched_getaffinity(0, sizeof(set), &set)) {
		for (i = 0; i < CPU_SETSIZE && n < 64; i++)
			if (CPU_ISSET(i, &set))
				cpus[n++] = (uint16_t)i;
	}
	if (n < 2 * njobs)
		return;
	r->ncpus = 0;
	for (i = job; i < n; i += njobs)
		r->cpus[r->ncpus++] = cpus[i];
}
