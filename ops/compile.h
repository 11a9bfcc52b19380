/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a case to the shared area that mmrace-child runs.  Engine side.
 */
#ifndef MMR_OPS_COMPILE_H
#define MMR_OPS_COMPILE_H

#include "area.h"
#include "case.h"

struct mmr_compile_opts {
	uint64_t seed;	      /* key of all draws */
	uint64_t first_round; /* number of the first round, for the draws */
	uint64_t rounds;      /* to run; 0: what the case says */
	int64_t budget_ns;    /* > 0: instead of what the case says */
	uint16_t cpus[64];    /* kernel numbers of the CPUs to use */
	int ncpus;	      /* 0: those of this process's affinity mask */
	bool no_offsets;      /* skew=auto is 0: to measure what it starts */
};

/*
 * Creates a memfd with the compiled program and maps it shared.  0, or
 * -EINVAL (diag says why), -ENOMEM, -errno of the kernel.  The caller ends
 * it with mmr_area_close().  Any thread.
 */
int mmr_compile(const struct mmr_case *c, const struct mmr_compile_opts *opts,
		struct mmr_area **area, int *fd, struct mmr_diag *diag)
	__attribute__((warn_unused_result));
void mmr_area_close(struct mmr_area *area, int fd);

/* topology.c, for compile.c: fills cpus[] and, where the case's placement asks
 * for it, cores[] and nodes[]. */
void mmr_compile_cpus(struct mmr_program *pr, const struct mmr_case *c,
		      const struct mmr_compile_opts *opts);

/* The same for rounds ... order=D. */
void mmr_compile_order(struct mmr_program *pr, const struct mmr_case *c);
/* Puts the kernel arguments of one operation together, where no run has to;
 * the instruction stays as it is where one has. */
void mmr_compile_quick(const struct mmr_op *op, struct mmr_insn *in);

#define MMR_AREA_AT(area, off, type) ((type *)((char *)(area) + (off)))

/* Default huge page size of this machine in bytes (from /proc/meminfo),
 * 2 MiB when it has none. */
uint64_t mmr_huge_page_size(void);

#endif
