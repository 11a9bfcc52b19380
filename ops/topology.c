// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The CPUs that a program may use, and how they lie to each other; and how
 * many steps its threads take together, for rounds that order them.
 */
#include <sched.h>
#include <stdio.h>

#include "compile.h"

#define UNCOUNTED 8 /* turns of a loop that ends with something else */
#define STEPS_MAX 1000000

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

/* Operations of a block, each loop's as often as it turns; one without a
 * count turns a few times. */
static uint64_t steps_of(const struct mmr_block *b)
{
	uint64_t n = 0, turns;
	int i;

	for (i = 0; i < b->n; i++) {
		if (b->stmts[i]->kind != MMR_STMT_LOOP) {
			n++;
			continue;
		}
		turns = b->stmts[i]->until == MMR_UNTIL_COUNT
				? (uint64_t)b->stmts[i]->count
				: UNCOUNTED;
		n += (turns < STEPS_MAX ? turns : STEPS_MAX) *
		     steps_of(&b->stmts[i]->body);
		if (n > STEPS_MAX)
			return STEPS_MAX;
	}
	return n;
}

void mmr_compile_order(struct mmr_program *pr, const struct mmr_case *c)
{
	uint64_t n = 0;
	int i, j;

	pr->order = (uint32_t)c->order;
	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			if (!c->procs[i]->is_template &&
			    !c->procs[i]->threads[j]->is_template)
				n += (uint64_t)c->procs[i]->copies *
				     steps_of(&c->procs[i]->threads[j]->body);
	pr->order_steps = (uint32_t)(n < 1 ? 1 : n < STEPS_MAX ? n : STEPS_MAX);
}

void mmr_compile_cpus(struct mmr_program *pr, const struct mmr_case *c,
		      const struct mmr_compile_opts *opts)
{
	choose(pr, opts);
	learn(pr, c);
}
