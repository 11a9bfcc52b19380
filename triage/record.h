/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What runs measured, kept run by run: the food of `mmrace compare`.  A JSON
 * object a line: first where it ran, then a run each, its durations by kind of
 * call ("munmap 4p private", "exit victim") as histograms.
 *
 * A record of a soak is bounded: when it holds MMR_RECORD_MAX runs, every
 * second one goes, and from then on only every second case is kept, and so on.
 */
#ifndef MMR_TRIAGE_RECORD_H
#define MMR_TRIAGE_RECORD_H

#include "histogram.h"
#include "run.h"

#define MMR_RECORD_FILE "runs.jsonl" /* in the folder of a soak */
#define MMR_RECORD_MAX 4000

struct mmr_record;

/* Starts a record in memory.  what: the case's title or the profile. */
struct mmr_record *mmr_record_new(const char *what);
void mmr_record_free(struct mmr_record *r);
/*
 * From now on runs go to this file and not into memory: for soaks of a week,
 * which must not grow, and which a kill must not take its runs.  resume: goes
 * on with what the file holds, if that is of the same kernel and machine; else
 * the file begins anew.  Before the first run.  0 or -errno.
 */
int mmr_record_keep(struct mmr_record *r, const char *path, bool resume)
	__attribute__((warn_unused_result));
/* The file is whole and on disk, also when no run was added.  0 or -errno. */
int mmr_record_end(struct mmr_record *r) __attribute__((warn_unused_result));
/* Adds one run; number: of the case, or of the run.  0 or -errno. */
int mmr_record_add(struct mmr_record *r, uint64_t number,
		   const struct mmr_case *c, const struct mmr_run_result *res)
	__attribute__((warn_unused_result));
/* Writes what is in memory, atomically.  0 or -errno. */
int mmr_record_save(const struct mmr_record *r, const char *path)
	__attribute__((warn_unused_result));

/* What is told of durations. */
enum mmr_figure {
	MMR_FIGURE_P50,
	MMR_FIGURE_P95,
	MMR_FIGURE_P99,
	MMR_FIGURE_P999,
	MMR_FIGURE_MEAN,
	MMR_FIGURE_STDEV,
	MMR_FIGURES
};

/* "p50" .. "stdev". */
const char *mmr_figure_name(enum mmr_figure f);
double mmr_figure_of(const struct mmr_histogram *h, enum mmr_figure f);

/* As read: one kind of call in one run. */
struct mmr_record_part {
	int kind;		    /* index in the side's */
	double figure[MMR_FIGURES]; /* ns */
};

struct mmr_record_run {
	uint64_t number, rounds;
	char verdict[24];
	double wall_s;
	struct mmr_record_part *parts;
	int nparts;
};

/* One kind of call in all runs. */
struct mmr_record_kind {
	char name[104];
	struct mmr_histogram hist;
	int runs;
};

struct mmr_record_side {
	char what[200], kernel[80], build[160], arch[16];
	int cpus;
	struct mmr_record_run *runs;
	int nruns;
	struct mmr_record_kind *kinds;
	int nkinds;
	bool has_head;
};

/* Reads a record: a file, or the folder of a soak.  0, or -errno with a
 * sentence.  The caller calls mmr_record_side_free(). */
int mmr_record_load(const char *path, struct mmr_record_side *side, char *text,
		    size_t n) __attribute__((warn_unused_result));
/* The same of what was just recorded. */
int mmr_record_side(const struct mmr_record *r, struct mmr_record_side *side)
	__attribute__((warn_unused_result));
void mmr_record_side_free(struct mmr_record_side *side);

#endif
