// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The CPUs that a program may use, and how they lie to each other.
 */
#include <sched.h>
#include <stdio.h>

#include "compile.h"

static void choose(struct mmr_program *pr, const struct mmr_compile_opts *opts)
{
	cpu_set_t set;
	uint16_t cpu;
	int i;

	for (i = 0; i < opts->ncpus && i < 64; i++)
		pr->cpus[pr->ncpus++] = opts->cpus[i];
	if (pr->ncpus)
		return;
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		for (cpu = 0; cpu < CPU_SETSIZE && pr->ncpus < 64; cpu++)
			if (CPU_ISSET(cpu, &set))
				pr->cpus[pr->ncpus++] = cpu;
	if (!pr->ncpus)
		pr->ncpus = 1; /* CPU 0: pinning to it fails, nothing else */
}

/* A small number in a file of a CPU's, -1: there is none. */
static int cpu_number(uint16_t cpu, const char *what)
{
	char path[100];
	int n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/%s", cpu,
		 what);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

/* Which CPUs share a core (known by its first CPU), which a node. */
static void learn(struct mmr_program *pr, const struct mmr_case *c)
{
	bool wanted = false;
	char path[64];
	uint32_t i;
	int j, k;

	for (j = 0; j < c->nprocs; j++)
		for (k = 0; k < c->procs[j]->nthreads; k++)
			wanted |=
				c->procs[j]->threads[k]->cpu >= MMR_CPU_SIBLING;
	for (i = 0; i < pr->ncpus; i++) {
		pr->cores[i] = pr->cpus[i];
		if (!wanted)
			continue;
		j = cpu_number(pr->cpus[i], "topology/thread_siblings_list");
		if (j >= 0)
			pr->cores[i] = (uint16_t)j;
		for (j = 0; j < 64; j++) {
			snprintf(path, sizeof(path), "node%d/cpulist", j);
			if (cpu_number(pr->cpus[i], path) >= 0)
				pr->nodes[i] = (uint16_t)j;
		}
	}
}

void mmr_compile_cpus(struct mmr_program *pr, const struct mmr_case *c,
		      const struct mmr_compile_opts *opts)
{
	choose(pr, opts);
	learn(pr, c);
}
