/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More of perf.c than the monitor needs: call chains and a CPU profile. */
#ifndef MMR_TRIAGE_PERF_H
#define MMR_TRIAGE_PERF_H

#include "evidence.h"

#define MMR_PERF_CHAINS 32
#define MMR_PERF_DEPTH 24
#define MMR_PERF_ADDRS 64

/* A call chain as it was sampled, innermost first; kernel frames first. */
struct mmr_perf_chain {
	uint64_t hash;
	uint32_t n; /* samples of it */
	int nkernel, nips;
	uint64_t ips[MMR_PERF_DEPTH];
};

/* What samples add up to. */
struct mmr_perf_sum {
	uint64_t samples, lost;
	int naddrs;
	struct {
		uint64_t addr, n;
	} addrs[MMR_PERF_ADDRS];
	int nchains;
	struct mmr_perf_chain chains[MMR_PERF_CHAINS];
};

/* Adds the samples of page faults since the last call to sum. */
void mmr_perf_drain(struct mmr_perf *p, struct mmr_perf_sum *sum);
/* An empty one: close() and drain() take it. */
void mmr_perf_none(struct mmr_perf *p);
/* Counts on, but samples no more faults: sampling costs as much as a fault. */
void mmr_perf_stop_samples(struct mmr_perf *p);
/* -1 when that counter could not be opened. */
int64_t mmr_perf_switches(const struct mmr_perf *p);
int64_t mmr_perf_migrations(const struct mmr_perf *p);
int64_t mmr_perf_clock_ns(const struct mmr_perf *p);

/*
 * A profile of one task: where it is while on a CPU, about 500 samples a
 * second, kernel and user frames.  Uses only sample_fd and the ring.
 */
int mmr_perf_profile_open(pid_t tid, struct mmr_perf *p);

/*
 * Names ("symbol+0x1c") of n addresses into names + i * size; what has none
 * is left as it was.  Kernel: /proc/kallsyms, some 50 ms.  User: the symbol
 * table of a static executable that is not relocated.
 */
void mmr_perf_kernel_names(const uint64_t *ips, int n, char *names,
			   size_t size);
void mmr_perf_user_names(const char *exe, const uint64_t *ips, int n,
			 char *names, size_t size);

#endif
