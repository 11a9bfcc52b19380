/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cases as tests: each is run as often as its rate demands and ends as passed,
 * failed, skipped or inconclusive, with what its rounds say about its rate.
 *
 * Results are for any of several readers: lines for people, TAP, KTAP, JUnit
 * and JSON (suite_text.c, suite_file.c).
 */
#ifndef MMR_TRIAGE_SUITE_H
#define MMR_TRIAGE_SUITE_H

#include "run.h"

#define MMR_SUITE_JOBS 64
#define MMR_SUITE_LOG 8192 /* bytes kept of the kernel log */

enum mmr_suite_outcome {
	MMR_SUITE_PASS,
	MMR_SUITE_FAIL,
	MMR_SUITE_SKIP, /* needs not met: why says which */
	/* It says neither: void runs, or no time left. */
	MMR_SUITE_INCONCLUSIVE,
	MMR_SUITE_ERROR, /* mmrace itself failed */
	MMR_SUITE_KNOWN, /* a hit that --known sets aside */
	MMR_SUITE_OUTCOMES
};

struct mmr_suite_case {
	/* Given by the caller, who keeps them until the end. */
	const char *name; /* without blanks, # and control characters */
	const char *path;
	const struct mmr_case *c;
	uint64_t seed; /* of the draws */

	/* The plan, from mmr_suite_plan(). */
	uint64_t want_runs; /* 0: by time */
	bool alone;
	const char *alone_why; /* "it changes kernel settings" */

	/* The result; whole once `done`. */
	bool done;
	enum mmr_suite_outcome outcome;
	enum mmr_verdict verdict;
	char why[600];	     /* of all but a pass */
	char signature[200]; /* of a hit */
	char finding[300];   /* its folder, "" when none was stored */
	char *log;	     /* the kernel log's end, NULL none */
	uint64_t runs, voids, hits, rounds, rounds_void, calls;
	int64_t wall_ns, start_ns; /* CLOCK_MONOTONIC */
	int quarantined;	   /* tasks that could not be killed */
};

struct mmr_suite {
	struct mmr_suite_case *cases;
	int n;
	int count[MMR_SUITE_OUTCOMES]; /* of the finished ones */
	int64_t wall_ns;
	char start[32]; /* "2026-01-31T12:00:00", UTC */
	char guest[80]; /* kernel of the guests, "": this machine's */
};

struct mmr_suite_opts {
	struct mmr_run_opts run; /* seed: unused, each case has its own */
	int jobs;		 /* cases at the same time, 1 or more */
	uint64_t runs;		 /* of each case; 0: as its `seen` demands */
	int64_t case_ns;	 /* for a case that was never seen to fail */
	int64_t time_ns;	 /* for all of it; 0: no bound */
	const char *out;	 /* folder for findings, NULL: none are kept */
	/*
	 * result: in the order of the cases, as soon as a case and all before
	 * it are done; never two at once, from any of the threads.
	 * progress: now and then, from the caller's thread; running is a list
	 * of names.
	 */
	void (*result)(void *arg, const struct mmr_suite *s,
		       const struct mmr_suite_case *t);
	void (*progress)(void *arg, const struct mmr_suite *s,
			 const char *running);
	void *arg;
};

/* How often each case is to be run, and whether others may run beside it.
 * Pure. */
void mmr_suite_plan(struct mmr_suite *s, const struct mmr_suite_opts *o);

/*
 * Runs all cases after mmr_suite_plan().  Ends early, with results for all,
 * when interrupted.  0, or -errno (no threads).  The engine has to run.
 */
int mmr_suite_run(struct mmr_suite *s, const struct mmr_suite_opts *o)
	__attribute__((warn_unused_result));
/* Frees what the run left in the cases, not what the caller gave. */
void mmr_suite_release(struct mmr_suite *s);

const char *mmr_suite_outcome_name(enum mmr_suite_outcome o);

/* The rate that n rounds or runs without a hit leave possible at 95 %: exact,
 * about 3/n.  1 for n 0. */
double mmr_suite_bound(uint64_t n);
/* "0 of 2,000 rounds: rate < 0.15 % at 95 %", or the rate of the hits with
 * its interval.  Returns buf. */
char *mmr_suite_rate_text(char *buf, size_t n, const struct mmr_suite_case *t);

/* Lines for people, one a case and a last one. */
void mmr_suite_text_case(FILE *f, const struct mmr_suite_case *t, int width);
void mmr_suite_text_end(FILE *f, const struct mmr_suite *s);
/* TAP 13 (ktap false) or KTAP 1: the head with the plan, a case (number from
 * 1), and the totals. */
void mmr_suite_tap_head(FILE *f, const struct mmr_suite *s, bool ktap);
void mmr_suite_tap_case(FILE *f, const struct mmr_suite_case *t, int number,
			bool ktap);
void mmr_suite_tap_end(FILE *f, const struct mmr_suite *s, bool ktap);
void mmr_suite_junit(FILE *f, const struct mmr_suite *s);
/* A new object, which the caller frees; NULL: no memory. */
json_t *mmr_suite_json(const struct mmr_suite *s);

#endif
