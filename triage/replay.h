/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replay with a rate, and minimising by removal with repeated runs. */
#ifndef MMR_TRIAGE_REPLAY_H
#define MMR_TRIAGE_REPLAY_H

#include "run.h"
#include "stat.h"

struct mmr_replay_opts {
	struct mmr_run_opts run;
	int jobs;	   /* runs at the same time, 0: 1 */
	uint64_t max_runs; /* 0: 1, or without end with time_ns or precision */
	int64_t time_ns;   /* 0: no bound */
	double precision;  /* the 95 % interval's width is enough; 0: never */
	bool first_hit;	   /* the first hit is enough */
	/* The failure that counts; NULL: that of the first hit. */
	const char *want_signature;
	/* Before the first run and after each one, one call at a time. */
	void (*progress)(void *arg, uint64_t runs, uint64_t hits);
	void *arg;
	/* Each run that counts, in the order in which they began; or NULL. */
	void (*ran)(void *ran_arg, const struct mmr_run_result *r);
	void *ran_arg;
};

/* What the runs say of the question whether it fails. */
enum mmr_answer {
	MMR_REPRODUCED,
	MMR_NOT_REPRODUCED,
	MMR_INCONCLUSIVE, /* too few runs that say something */
};

struct mmr_replay_result {
	/* runs: those that say something, void ones apart.  hits: with the
	 * wanted signature; other_hits: with another.  tool_failures: those
	 * in which mmrace itself failed, in no other count. */
	uint64_t runs, hits, other_hits, voids, tool_failures;
	uint64_t rounds, rounds_void;
	uint64_t rounds_late; /* without a hit, with a start that came late */
	uint64_t compared;    /* as in a run */
	int64_t wall_ns;      /* of all runs, without set-up */
	int64_t elapsed_ns;   /* of the whole replay */
	double lo, hi;	      /* 95 % interval of hits/runs */
	struct mmr_stat_spread spread; /* of runs, as they came */
	bool precise;		       /* the asked precision was reached */
	enum mmr_answer answer;
	uint64_t demanded;	    /* runs that a "no" would need, 0 unknown */
	char signature[200];	    /* the failure that counts, "" none seen */
	struct mmr_run_result last; /* the first hit, else the last run */
};

/* Each with its 95 % interval (exact, and as much wider as the rate moved while
 * it was measured: mmr_stat_weight()); unknown: rate < 0. */
struct mmr_rate_ci {
	double rate, lo, hi;
};

struct mmr_replay_rates {
	struct mmr_rate_ci run, round, second; /* hits a run, and so on */
	struct mmr_rate_ci expected_s; /* until a failure; hi may be INFINITY */
	uint64_t runs95; /* runs that show one with 95 %, 0 unknown */
};

/*
 * Runs c again and again; every run draws from rounds of its own, so that
 * the same start gives the same runs.  Results count in the order in which the
 * runs began.  Ends early when a run is skipped, when mmrace fails time after
 * time (res->last says why), and when interrupted.  0, or -errno.  The caller
 * frees res->last.
 */
int mmr_replay(const struct mmr_case *c, const struct mmr_replay_opts *opts,
	       struct mmr_replay_result *res)
	__attribute__((warn_unused_result));

void mmr_replay_get_rates(const struct mmr_replay_result *res,
			  struct mmr_replay_rates *x);
/* "reproduced", "not-reproduced", "inconclusive". */
const char *mmr_answer_name(enum mmr_answer a);

/*
 * Runs without a hit after which a failure that was seen hits times in runs
 * is called gone, wrongly with at most the chance `wrong`.  The rate may be
 * as low as the lower end of its 80 % interval.
 */
uint64_t mmr_replay_demand(int64_t hits, int64_t runs, double wrong);

/*
 * Do two signatures mean one failure?  Verdict and operation are the same, and
 * so are two of the frames and half of either one's, or one of them has none:
 * the stack was not caught then.
 */
bool mmr_replay_same(const char *a, const char *b);

/* Rounds that a run began, the one of its hit included (r->rounds has those
 * at their end); first: its first round. */
uint64_t mmr_replay_rounds(const struct mmr_run_result *r, uint64_t first);

struct mmr_min_opts {
	struct mmr_run_opts run;
	int jobs;		    /* runs at the same time, 0: 1 */
	int64_t budget_ns;	    /* wall clock, always honoured */
	const char *want_signature; /* NULL: the most frequent failure */
	/* The best so far, rewritten after each accept; beside it .state, from
	 * which a later run with the same path goes on, and .log.  NULL none.
	 */
	const char *best_path;
	FILE *log; /* a line a step, NULL none */
	/* After each run (what NULL) and each step. */
	void (*progress)(void *arg, int stmts, uint64_t runs, const char *what);
	void *arg;
	/* Runs a candidate; NULL: mmr_run().  Tests put a simulation here.
	 * From one thread only, unless jobs says more. */
	int (*run_fn)(void *run_arg, const struct mmr_case *c,
		      const struct mmr_run_opts *o, struct mmr_run_result *res);
	void *run_arg;
};

/* What became of the result without one of its statements. */
struct mmr_min_without {
	char stmt[240]; /* "`write m0` of main/A" */
	uint64_t runs, hits;
};

struct mmr_min_result {
	struct mmr_case *best; /* NULL when nothing was done */
	int stmts_before, stmts_after;
	uint64_t runs, hits; /* of everything */
	/* Of the case as it was given, or as it was amplified. */
	uint64_t ref_runs, ref_hits, ref_others, voids;
	uint64_t null_runs, null_hits; /* of programs that should not fail */
	uint64_t final_runs, final_hits, final_voids; /* fresh, of the result */
	struct mmr_stat_spread final_spread;
	double final_s;			 /* seconds that the fresh runs took */
	struct mmr_min_without *without; /* nwithout of them */
	int nwithout;
	bool complete;	/* nothing more goes; else the time was over, or */
	bool faded;	/* the rate fell below five times that of nothing */
	bool continued; /* from an earlier run's state */
	int reproduced; /* 0: nothing was done, text says why */
	enum mmr_verdict verdict; /* of the failure; else of the last run */
	char signature[200];
	char text[400]; /* a sentence */
	json_t *steps;	/* what was tried and why, an array */
};

/*
 * Makes c smaller while the same failure (signature) stays.  Blocks for at
 * most its budget, plus the end of the run in flight.  0 with *res filled
 * (also when it did not reproduce), or -errno of best_path or memory.  The
 * caller frees it with mmr_min_result_free().
 */
int mmr_minimise(const struct mmr_case *c, const struct mmr_min_opts *opts,
		 struct mmr_min_result *res)
	__attribute__((warn_unused_result));
/* The 95 % interval of the result's rate, from the fresh runs. */
void mmr_min_interval(const struct mmr_min_result *res, double *lo, double *hi);
void mmr_min_result_free(struct mmr_min_result *res);

#endif
