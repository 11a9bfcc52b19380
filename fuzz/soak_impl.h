/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of the soak: what it counts (soak_stat.c), how that reads
 * (soak_report.c), what lies on disk meanwhile (soak_disk.c).
 *
 *   stat        any job, under `lock`
 *   findings    any job, under `finding_lock` (held while files are written)
 *   next, stop  any job, without a lock; so is a look at nfindings
 *   the rest    read-only after the start
 */
#ifndef MMR_FUZZ_SOAK_IMPL_H
#define MMR_FUZZ_SOAK_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../triage/finding.h"
#include "soak.h"

#define MMR_SOAK_JOBS 64
#define MMR_SOAK_REASONS 32
#define MMR_SOAK_FINDINGS 256
#define MMR_SOAK_CONFIRM 10 /* re-runs of a case that hit */

struct mmr_soak_op {
	uint64_t count, errors, unexpected, sum_ns, max_ns, max_seed;
	uint64_t hist[MMR_HIST]; /* of ns, from each case's percentiles */
};

struct mmr_soak_reason {
	char text[200]; /* the first one of its kind */
	bool various;	/* others differ in numbers */
	uint64_t count;
};

struct mmr_soak_stat {
	uint64_t cases, skipped, voids, failed, hits;
	uint64_t rounds, rounds_void, ops, calls;
	uint64_t exits, exit_max_ns, exit_max_seed, exit_asleep_ns;
	int64_t pause_ns;
	int quarantined;
	struct mmr_soak_op op[MMR_OP_LIMIT];
	struct mmr_soak_reason reasons[MMR_SOAK_REASONS];
	int nreasons;
	uint64_t other_reasons;
	char failure[400]; /* the first thing that mmrace itself could not do */
};

struct mmr_soak_finding {
	char id[48], path[300], text[400];
	uint64_t seed, count;
	struct mmr_rate rate;
};

struct mmr_soak {
	const struct mmr_soak_opts *opts;
	const char *profile;		       /* name */
	uint64_t base;			       /* seed of case 0 */
	int64_t start_ns, deadline_ns, end_ns; /* CLOCK_MONOTONIC; 0: none */
	_Atomic uint64_t next; /* number of the next case of this shard */
	int failures; /* of mmrace itself, in a row; under lock */
	_Atomic bool stop;
	pthread_mutex_t lock, finding_lock;
	struct mmr_soak_stat stat;
	struct mmr_soak_finding findings[MMR_SOAK_FINDINGS];
	_Atomic int nfindings; /* jobs look at it without the lock */
};

struct mmr_soak_job {
	struct mmr_soak *soak;
	int number;
	pthread_t thread;
	struct mmr_run_opts run;
	/* running-N.case */
	int fd;
	size_t written;
	int64_t synced_ns;
};

/* soak_stat.c: adds one run. */
void mmr_soak_stat_add(struct mmr_soak_stat *st, const struct mmr_case *c,
		       uint64_t seed, const struct mmr_run_result *res);
/* The value below which a share of an op's calls lies, ns. */
uint64_t mmr_soak_quantile(const struct mmr_soak_op *op, uint64_t per_mille);

/* soak_disk.c: what a kill or a panic leaves behind. */
/* Makes the folder, and keeps the cases in which an earlier soak ended; once,
 * before the jobs.  0 or -errno. */
int mmr_soak_disk_start(struct mmr_soak *s);
/* The job's own file.  0 or -errno. */
int mmr_soak_disk_open(struct mmr_soak_job *job);
/* Puts the case on disk before it runs.  0 or -errno. */
int mmr_soak_disk_case(struct mmr_soak_job *job, const char *text,
		       uint64_t seed);
/* Removes it: the job has ended by itself. */
void mmr_soak_disk_close(struct mmr_soak_job *job);

/* soak_report.c: under both locks, or when the jobs are over. */
/* A new object, which the caller frees. */
json_t *mmr_soak_json(struct mmr_soak *s, const char *state);
/* The report for reading, on standard output. */
void mmr_soak_text(struct mmr_soak *s);

#endif
