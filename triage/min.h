/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the minimiser that know cases, for minimise.c and min_*.c
 * only.  The search itself knows none: min_search.h.
 *
 *   minimise.c    in which order, until when, what is left in the end
 *   min_set.c     what can be taken away from a case at once, and applying it
 *   min_mark.c    what goes with what is taken away
 *   min_list.c    the elements of each pass
 *   min_oracle.c  cases for the search's questions, runs, who failed how
 *   min_amplify.c a rare failure is made frequent first
 *   min_state.c   what a later run needs to go on
 *   min_log.c     why each step was taken
 */
#ifndef MMR_TRIAGE_MIN_H
#define MMR_TRIAGE_MIN_H

#include <pthread.h>

#include "min_search.h"
#include "replay.h"

/* ---- min_set.c, min_mark.c, min_list.c ---- */

enum mmr_min_kind {
	MMR_MIN_PROC, /* removal: */
	MMR_MIN_THREAD,
	MMR_MIN_EPOCH, /* sync `name` and what follows it up to the next */
	MMR_MIN_STMT,
	MMR_MIN_UNWRAP, /* change: */
	MMR_MIN_KEEP,
	MMR_MIN_ORDER,
	MMR_MIN_CPU,
	MMR_MIN_SEGV,
	MMR_MIN_DEFAULT, /* argument `arg` */
	MMR_MIN_FLAG,	 /* without flag `value` */
	MMR_MIN_NUMBER,	 /* argument `arg` is `value` */
	MMR_MIN_LOOP,	 /* the loop's turns are `value` */
	MMR_MIN_COPIES,
	MMR_MIN_ROUNDS,
	MMR_MIN_MERGE, /* thread `arg` at the end of `thread` */
};

/* One element: its place in the base. */
struct mmr_min_edit {
	enum mmr_min_kind kind;
	int proc, thread, stmt, arg;
	int64_t value;
	const char *name; /* the base's */
};

/* The elements of a pass over a case. */
struct mmr_min_set {
	struct mmr_case *base; /* owned */
	struct mmr_min_edit *e;
	int n, max;
	/* The base, by index: statements, threads, processes. */
	int nstmts, nthreads;
	struct mmr_stmt **stmts;
	int *parent;	/* the loop around it, -1 */
	int *thread_of; /* statement's thread, over all processes */
	int *proc_of;	/* thread's process */
	struct mmr_thread **threads;
	uint8_t *marks; /* nstmts + nthreads + nprocs */
};

/* Takes over base.  0 or -ENOMEM. */
int mmr_min_set_init(struct mmr_min_set *set, struct mmr_case *base)
	__attribute__((warn_unused_result));
void mmr_min_set_free(struct mmr_min_set *set);
int mmr_min_set_add(struct mmr_min_set *set, const struct mmr_min_edit *e)
	__attribute__((warn_unused_result));
/* The base with the elements of gone applied; NULL: that is no case, or no
 * memory. */
struct mmr_case *mmr_min_set_apply(struct mmr_min_set *set,
				   const uint8_t *gone);
/* Adds to gone what cannot stay without it. */
void mmr_min_set_close(struct mmr_min_set *set, uint8_t *gone);
/* "`write m0` of main/A and 3 more"; buf gets it. */
void mmr_min_set_describe(const struct mmr_min_set *set, const uint8_t *gone,
			  char *buf, size_t n);

/* Fills set->marks from gone, and what follows from it. */
void mmr_min_mark(struct mmr_min_set *set, const uint8_t *gone);
bool mmr_min_mark_has(const struct mmr_min_set *set,
		      const struct mmr_min_edit *e);

/* Elements of the set's base.  0 or -ENOMEM. */
int mmr_min_list_parts(struct mmr_min_set *set);    /* processes to epochs */
int mmr_min_list_stmts(struct mmr_min_set *set);    /* statements, loops */
int mmr_min_list_plain(struct mmr_min_set *set);    /* what can be default */
int mmr_min_list_merges(struct mmr_min_set *set);   /* pairs of threads */
int mmr_min_list_rounding(struct mmr_min_set *set); /* delays */
/* Numbers that are above their least, each to half of what it is. */
int mmr_min_list_halves(struct mmr_min_set *set);

/* ---- the whole ---- */

enum mmr_min_phase {
	MMR_MIN_PARTS,
	MMR_MIN_STMTS,
	MMR_MIN_PLAIN,
	MMR_MIN_HALVES,
	MMR_MIN_ROUNDING,
	MMR_MIN_MERGES,
	MMR_MIN_AGAIN, /* statements once more, if something else has gone */
	MMR_MIN_LAST,  /* rounds */
	MMR_MIN_DONE
};

struct mmr_min_job {
	bool busy, running, done, dropped;
	uint64_t turn; /* jobs begin in this order */
	struct mmr_case *c;
	struct mmr_run_opts o;
	bool cut, original;
	int rc;
	struct mmr_search_run run;
};

struct mmr_min {
	const struct mmr_min_opts *opts;
	struct mmr_min_result *res;
	struct mmr_case *given; /* as it was given */
	struct mmr_case *first; /* the reference: given, or amplified */
	struct mmr_case *best;
	struct mmr_search search;
	struct mmr_min_set set; /* of the pass */
	enum mmr_min_phase phase;
	/* The pass that was cut off; NULL none. */
	struct mmr_case *resume_base;
	uint8_t *resume_out;
	double *resume_pi;
	int resume_n;
	bool own_rounds; /* runs are as the case says (fresh ones) */

	int64_t start_ns, deadline_ns, end_ns; /* CLOCK_MONOTONIC */
	int64_t saved_ns;
	int step, accepted;
	int changed;	/* numbers and the like since the statements' pass */
	FILE *log_file; /* beside the result */

	/* Runs of candidates: rounds, time; 0: the case's. */
	uint64_t rounds;
	int64_t run_ns;
	int64_t hit_ns, miss_ns; /* means of the reference */
	int64_t slowest_ns;	 /* hit */
	uint64_t hit_rounds, all_rounds, last_round; /* of the latest hit */
	int guilty; /* statement of `first`, -1 unknown */

	struct mmr_case **arms; /* of a race */

	/* Shared with the workers. */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_t threads[MMR_SEARCH_JOBS];
	int nthreads;
	bool stop;
	struct mmr_min_job jobs[2 * MMR_SEARCH_JOBS];
	uint64_t turn;
	int slot[MMR_SEARCH_JOBS]; /* job of a slot of the search */
	uint64_t next_round;	   /* every run draws from rounds of its own */
	int tool_failures;	   /* in a row */
	int nsigs;
	char sigs[MMR_SEARCH_IDS][200];
	char texts[MMR_SEARCH_IDS][400];
	enum mmr_verdict verdicts[MMR_SEARCH_IDS];
	char last_text[400]; /* of the last run that hit nothing */
	enum mmr_verdict last;
	int quarantined;
};

extern const struct mmr_search_ops mmr_min_ops;

/* Workers for opts->jobs.  0 or -errno; stop waits for what still runs. */
int mmr_min_workers_start(struct mmr_min *m)
	__attribute__((warn_unused_result));
void mmr_min_workers_stop(struct mmr_min *m);

/* Raises the rate of a rare failure: more rounds a run, then timing,
 * placement and repetition.  0 or -errno. */
int mmr_min_amplify(struct mmr_min *m) __attribute__((warn_unused_result));
/* Measures m->first; what follows from it for the runs of candidates. */
int mmr_min_reference(struct mmr_min *m) __attribute__((warn_unused_result));
/* Rounds and time of candidates' runs. */
void mmr_min_bounds(struct mmr_min *m);

/* Best and state to disk.  0 or -errno. */
int mmr_min_save(struct mmr_min *m) __attribute__((warn_unused_result));
/* Reads the state of an earlier run of the same case.  1 when there is one, 0
 * none, -errno. */
int mmr_min_load(struct mmr_min *m) __attribute__((warn_unused_result));
/* The end: the best with what is known of it; the state only stays when there
 * is something to go on with. */
int mmr_min_save_result(struct mmr_min *m) __attribute__((warn_unused_result));

void mmr_min_note(struct mmr_min *m, const struct mmr_search_step *step);
/* A line without runs. */
void mmr_min_say(struct mmr_min *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
