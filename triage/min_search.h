/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search of the minimiser, which knows nothing of cases: a set of n
 * elements, and an oracle that runs what is left when some of them are taken
 * away, and says whether that failed.  Failures come by chance.
 *
 * Each element has a belief: how likely it is needed.  The search takes away
 * the elements whose joint removal promises most, runs what is left once, and
 * learns from a miss; a hit is followed by a sequential test (Wald) before
 * anything is given up for good.  This is ProbDD (Wang, Shen, Chen, Xiong,
 * Zhang, "Probabilistic Delta Debugging", FSE 2021) for an oracle of chance,
 * with rates that stay anchored at the first one.
 *
 *   min_sprt.c    two sequential tests: a rate, and pairs
 *   min_belief.c  what to take away next, and what a run says of it
 *   min_flight.c  runs in flight
 *   min_search.c  candidates, the passes
 *   min_rate.c    reference, null rate, control, fresh runs
 *
 * One thread calls; runs may overlap (jobs).  Results are always taken in the
 * order in which runs were started, whatever ends first: a test that took
 * the quick ones first would be biased, as a hit takes longer than a miss or
 * the other way round.  No clock but the oracle's, no draw of its own.
 */
#ifndef MMR_TRIAGE_MIN_SEARCH_H
#define MMR_TRIAGE_MIN_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stat.h"

#define MMR_SEARCH_JOBS 32
/* Seconds; of runs that short the time is that of starting them. */
#define MMR_SEARCH_MIN_COST 0.05
#define MMR_SEARCH_HIGH 0.7 /* rates above it are known with a few runs */
#define MMR_SEARCH_IDS 16   /* failures told apart */

enum mmr_search_kind {
	MMR_SEARCH_MISS,
	MMR_SEARCH_FAIL, /* failed; id says how */
	MMR_SEARCH_VOID, /* says nothing: nothing came to its end */
};

enum mmr_search_what {
	MMR_SEARCH_BEST,     /* the base of the pass without gone[] */
	MMR_SEARCH_ORIGINAL, /* what was given */
	MMR_SEARCH_EMPTY,    /* nothing of it, but as long */
	MMR_SEARCH_NEUTRAL,  /* without what seems guilty */
	MMR_SEARCH_ARM,	     /* a variant, see mmr_search_race() */
};

struct mmr_search_run {
	enum mmr_search_kind kind;
	int id;	     /* FAIL: which failure, 0..MMR_SEARCH_IDS-1 */
	double cost; /* seconds that the run took */
	/* Of which question; the search fills them in. */
	enum mmr_search_what what;
	int arm;
};

struct mmr_search_query {
	enum mmr_search_what what;
	const uint8_t *gone; /* BEST: n flags, only valid during the call */
	int arm;
};

/* Why there is a line of the log. */
enum mmr_search_why {
	MMR_SEARCH_REFERENCE,
	MMR_SEARCH_NULL,
	MMR_SEARCH_TRY,
	MMR_SEARCH_CONFIRM,
	MMR_SEARCH_CONTROL,
	MMR_SEARCH_BACK,
	MMR_SEARCH_RACE,
	MMR_SEARCH_FRESH,
	MMR_SEARCH_WITHOUT,
};

struct mmr_search_step {
	enum mmr_search_why why;
	enum mmr_search_what what;
	const uint8_t *add; /* TRY, CONFIRM, WITHOUT: the elements; else NULL */
	uint64_t runs, hits, others, voids;
	const char *decision; /* a few words */
	/* Of a test: the two rates it told apart and its two errors; 0. */
	double p0, p1, alpha, beta;
	double belief; /* TRY: chance that none of add is needed */
};

struct mmr_search_ops {
	/*
	 * Begins a run in a slot that is free; blocks when no worker is.
	 * 0; -ENOENT: no such program can be (not counted); -ETIME: the
	 * budget is over; -EINTR; other -errno end the search.
	 */
	int (*start)(void *arg, const struct mmr_search_query *q, int slot);
	/* Waits for it and frees the slot.  0 or -errno as above. */
	int (*wait)(void *arg, int slot, struct mmr_search_run *r);
	/* Its result is not wanted any more; frees the slot. */
	void (*drop)(void *arg, int slot);
	/* Adds to gone[] what cannot stay without it; NULL: nothing. */
	void (*close)(void *arg, uint8_t *gone);
	/* This is the best from here on; must be kept before it returns. */
	int (*accept)(void *arg, const uint8_t *gone);
	/* Back to an earlier best (control); likewise. */
	int (*back)(void *arg, const uint8_t *gone);
	/*
	 * Runs of the best are over in a part of the time that the reference
	 * took: they are to be `factor` times as long from here on.  NULL, or
	 * nothing done: they cannot be.
	 */
	void (*lengthen)(void *arg, double factor);
	void (*note)(void *arg, const struct mmr_search_step *step);
	double (*now)(void *arg); /* seconds */
};

/* How much of the rate may go with what is taken away. */
enum mmr_search_care {
	MMR_SEARCH_PLAIN,   /* a statement less is worth some of it */
	MMR_SEARCH_CAREFUL, /* a smaller number is not */
};

struct mmr_search_tally {
	uint64_t runs, hits, others, voids;
	double misses;		/* each by its length against the reference's */
	double cost, miss_cost; /* seconds */
};

struct mmr_search_pass {
	int n;
	enum mmr_search_care care;
	bool rough;   /* another pass looks closer */
	uint8_t *out; /* taken away, from the base of the pass */
	double *pi;   /* belief that it is needed */
	uint64_t salt;
	/* Closures of single elements, as lists; anew after an accept. */
	int *list, *at;
	uint8_t *history; /* out before each accept since the last control */
	int nhistory, max_history;
	int refuted;  /* tests, since the last control */
	uint8_t *tmp; /* 4 * n */
	double *spec; /* beliefs with runs in flight counted as misses */
	int *order;
};

struct mmr_search_flight {
	int slot, arm;
	enum mmr_search_what what;
	uint8_t *set; /* explored set, owned; NULL */
};

struct mmr_search_count {
	uint64_t key;
	struct mmr_search_tally t;
};

struct mmr_search {
	const struct mmr_search_ops *ops;
	void *arg;
	int jobs; /* 1..MMR_SEARCH_JOBS */

	/* The reference. */
	int want;   /* the failure that counts, -1: the most frequent one */
	int wanted; /* which that is */
	double p;   /* its rate a run: the anchor */
	double now; /* what is known of the best's: for beliefs */
	double miss_cost; /* seconds, 0 unknown */
	struct mmr_search_tally ref;
	uint64_t ids[MMR_SEARCH_IDS]; /* hits of each failure */

	/* False alarms: of neutral programs first, then of what was refuted. */
	struct mmr_search_tally null;
	double pool_runs, pool_hits;
	bool null_thorough; /* it was asked twice */
	bool refused;	    /* p < 5 f */
	bool faded;	    /* so since the rate fell: what was taken stays */

	int recalibrated, changes;   /* of the original's rate meanwhile */
	struct mmr_search_tally all; /* everything */
	struct mmr_search_pass *pass;

	struct mmr_search_flight fly[MMR_SEARCH_JOBS];
	int nfly;      /* in order of start */
	uint32_t busy; /* slots */
	struct mmr_search_count *table;
	uint64_t salt;
};

int mmr_search_init(struct mmr_search *s, const struct mmr_search_ops *ops,
		    void *arg, int jobs) __attribute__((warn_unused_result));
void mmr_search_free(struct mmr_search *s);

/*
 * Runs the original until its rate is known: 20 hits, fewer when it fails
 * often, and what there is after `limit` seconds.  Without a hit it ends after
 * max_runs or wait seconds.  0 (hits in s->ref), or -errno.
 */
struct mmr_search_ref {
	uint64_t max_runs;
	double wait, limit;
	uint64_t hits; /* a probe: that many are enough; 0 */
	uint64_t runs; /* likewise */
	bool go_on;    /* the runs of a probe before it count too */
};
int mmr_search_reference(struct mmr_search *s, const struct mmr_search_ref *o)
	__attribute__((warn_unused_result));

/* Null rate: how often programs fail that should not, in `limit` seconds; asked
 * again, it takes the runs that it needs to be sure.  0 (s->refused) or
 * -errno. */
int mmr_search_null(struct mmr_search *s, double limit)
	__attribute__((warn_unused_result));

/*
 * A pass over n elements.  prior: belief that one is needed, or pi/out of an
 * earlier one to go on with (NULL).  twice: what stays is looked at again;
 * rough: another pass does.
 * out (n flags) gets what is taken away, also on error.  0, -errno, or
 * -ECANCELED: too many false alarms (s->refused, s->faded).
 */
struct mmr_search_reduce {
	int n;
	enum mmr_search_care care;
	double prior;
	bool twice, rough;
	const double *pi;
	const uint8_t *out;
};
int mmr_search_reduce(struct mmr_search *s, const struct mmr_search_reduce *o,
		      uint8_t *out) __attribute__((warn_unused_result));

/* Which of n variants (arms) first fails twice?  Its number, -1 when the
 * limit of runs or the time (now) came first, or -errno below -1. */
int mmr_search_race(struct mmr_search *s, int n, uint64_t most, double until)
	__attribute__((warn_unused_result));

/* At most so many fresh runs of the best, begun before `until` (one at least).
 * spread gets them in their order. */
int mmr_search_fresh(struct mmr_search *s, uint64_t runs, double until,
		     struct mmr_search_tally *t, struct mmr_stat_spread *spread)
	__attribute__((warn_unused_result));

/* For each of n elements at most `runs` fresh runs of the best without it (and
 * what depends on it); ends early with -ETIME and what it has. */
int mmr_search_without(struct mmr_search *s, int n, uint64_t runs, double until,
		       struct mmr_search_tally *t)
	__attribute__((warn_unused_result));

/* ---- between the parts ---- */

/* Wald's test of p >= p1 against p <= p0. */
struct mmr_sprt {
	double p0, p1, alpha, beta;
	double hit, miss, nothing; /* what a run adds */
	double accept, reject;	   /* where it ends */
	double l;
	uint64_t runs, most; /* then the sign decides */
};

void mmr_sprt_init(struct mmr_sprt *t, double p1, double p0, double alpha,
		   double beta);
/* What one more run says; weight: of a miss, 1 for one of full length. */
void mmr_sprt_add(struct mmr_sprt *t, bool hit, double weight);
/* 1 accepted, 0 rejected, -1 undecided. */
int mmr_sprt_state(const struct mmr_sprt *t);
/* Runs that it needs at least until it can end. */
int mmr_sprt_least(const struct mmr_sprt *t);

/* Sets in gone[] (n flags, zeroed) what to take away next, by the beliefs pi;
 * how many.  0: nothing is left to try.  belief: that none is needed. */
int mmr_belief_pick(const struct mmr_search *s, const double *pi, double most,
		    uint8_t *gone, double *belief);
/* A run without set missed that would have hit with chance `like` if none of
 * it were needed. */
void mmr_belief_miss(double *pi, const uint8_t *set, int n, double like);
/* It hit, which by mistake happens with chance f. */
void mmr_belief_hit(double *pi, const uint8_t *set, int n, double p, double f);
/* Closures of the single elements, given what is out. */
int mmr_belief_close(struct mmr_search *s) __attribute__((warn_unused_result));

/* Runs in flight. */
int mmr_flight_start(struct mmr_search *s, const struct mmr_search_query *q,
		     const uint8_t *set) __attribute__((warn_unused_result));
/* The oldest; set (owned by the caller) when not NULL. */
int mmr_flight_take(struct mmr_search *s, struct mmr_search_run *r,
		    uint8_t **set) __attribute__((warn_unused_result));
void mmr_flight_drop(struct mmr_search *s);
/* Counts r in t and in all. */
void mmr_search_count(struct mmr_search *s, struct mmr_search_tally *t,
		      const struct mmr_search_run *r);
bool mmr_search_hit(const struct mmr_search *s, const struct mmr_search_run *r);
/* Length of a missed run against the reference's, as the weight of a miss. */
double mmr_search_weight(const struct mmr_search *s, double cost);
/* Runs q until t is decided: 1, 0 or -errno; adds to c. */
int mmr_search_test(struct mmr_search *s, const struct mmr_search_query *q,
		    struct mmr_sprt *t, struct mmr_search_tally *c)
	__attribute__((warn_unused_result));
/* What is known of false alarms, a run. */
double mmr_search_false(const struct mmr_search *s);
/* Is the rate of the best still the reference's?  1; 0: the search has to go
 * on with other beliefs (it went back, or the anchor has moved); -errno. */
int mmr_search_control(struct mmr_search *s)
	__attribute__((warn_unused_result));
void mmr_search_note(struct mmr_search *s, const struct mmr_search_step *st,
		     const struct mmr_search_tally *t);

#endif
