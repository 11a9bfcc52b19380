/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the minimiser, for minimise.c and min_*.c only.
 *
 *   min_oracle.c  does a candidate still fail?  (runs, repeats, statistics)
 *   min_edit.c    what can be taken away?       (a pass over one kind of thing)
 *   min_control.c has the rate slipped away in small steps, and by which?
 *   minimise.c    in which order, until when?   (strategy, budget, result)
 *
 * A better search replaces minimise.c's order and min_oracle.c's decision; the
 * edits stay.
 */
#ifndef MMR_TRIAGE_MIN_H
#define MMR_TRIAGE_MIN_H

#include "replay.h"

#define MMR_MIN_REFS 16	  /* reference hits that are kept */
#define MMR_MIN_SEEN 4096 /* candidates remembered as rejected */

struct mmr_min {
	const struct mmr_min_opts *opts;
	struct mmr_min_result *res;
	struct mmr_case *best;	       /* the smallest that failed so far */
	int64_t start_ns, deadline_ns; /* CLOCK_MONOTONIC */
	uint64_t next_round; /* every run draws from rounds of its own */
	int step;
	int accepted;	   /* in this pass */
	int tool_failures; /* in a row */

	/* Every best since the last one whose rate is known to be good, that
	 * one first; m->best is not among them. */
	struct mmr_case **past;
	int npast, max_past;

	/* The reference: the case as it was given. */
	int nrefs;
	uint64_t ref_rounds[MMR_MIN_REFS]; /* rounds until the hit */
	int64_t ref_wall_ns;		   /* slowest hit */
	char signature[200];

	/* What follows from it for candidates. */
	bool always;	 /* it failed every time in its first round */
	double p;	 /* chance that one bounded run of the reference hits */
	uint64_t rounds; /* bound of a candidate's run, 0: the case's */
	int64_t run_ns;	 /* likewise */

	uint64_t seen[MMR_MIN_SEEN]; /* hashes of rejected texts, 0 free */
};

/* How much of the rate may go with what is taken away. */
enum mmr_min_care {
	MMR_MIN_PLAIN,	 /* a statement less is worth some of it */
	MMR_MIN_CAREFUL, /* a smaller number is not */
};

/* Runs the case as given until its rate is known; fills the reference.  0,
 * -errno; m->res->reproduced 0 and text: why nothing can be done. */
int mmr_min_reference(struct mmr_min *m, const struct mmr_case *c)
	__attribute__((warn_unused_result));
/* Runs cand until it is decided.  1: it fails likewise, 0: not, -ETIME: the
 * budget is over, -EINTR, -errno. */
int mmr_min_test(struct mmr_min *m, const struct mmr_case *cand,
		 enum mmr_min_care care, uint64_t *runs, uint64_t *hits)
	__attribute__((warn_unused_result));
/* Runs c until it is clear whether it still has the reference's rate: 1, 0,
 * -errno as above. */
int mmr_min_control(struct mmr_min *m, const struct mmr_case *c, uint64_t *runs,
		    uint64_t *hits) __attribute__((warn_unused_result));
/* One full run (the case's own rounds and budget, within limit_ns): 1 hit,
 * 0 none, -EAGAIN void or cut short, -errno. */
int mmr_min_full_run(struct mmr_min *m, const struct mmr_case *c,
		     int64_t limit_ns) __attribute__((warn_unused_result));

/*
 * Offers cand in place of the best; owns cand from here.  1: it is the best
 * now (and on disk), 0: not, -errno as above.  what: for the log.
 */
int mmr_min_try(struct mmr_min *m, struct mmr_case *cand,
		enum mmr_min_care care, const char *what)
	__attribute__((warn_unused_result));

/* A line of the log. */
void mmr_min_log(struct mmr_min *m, const char *what, uint64_t runs,
		 uint64_t hits, const char *decision);
/* Writes the best to disk.  0 or -errno. */
int mmr_min_save(const struct mmr_min *m) __attribute__((warn_unused_result));
/* Never offers this text again. */
int mmr_min_reject(struct mmr_min *m, const struct mmr_case *c)
	__attribute__((warn_unused_result));

/* min_control.c.  The best goes among the past ones, cand in its place. */
int mmr_min_advance(struct mmr_min *m, struct mmr_case *cand)
	__attribute__((warn_unused_result));
/* The best is known to be good: forgets what was before it. */
void mmr_min_forget(struct mmr_min *m);
/* Is the best's rate still that of the reference?  1; 0: it was not, and the
 * last good one is the best again; -errno as above. */
int mmr_min_check_rate(struct mmr_min *m) __attribute__((warn_unused_result));

/* Passes; each returns 0 when it is through, else -errno as above, and adds
 * what it took away to m->accepted. */
int mmr_min_pass_procs(struct mmr_min *m);
int mmr_min_pass_threads(struct mmr_min *m);
/* Neighbours, `chunk` statements of one block at a time. */
int mmr_min_pass_stmts(struct mmr_min *m, int chunk);
int mmr_min_pass_unwrap(struct mmr_min *m);
int mmr_min_pass_numbers(struct mmr_min *m); /* loops, copies, pinning */
int mmr_min_pass_args(struct mmr_min *m);    /* defaults, flags, sizes */
int mmr_min_pass_rounds(struct mmr_min *m);

#endif
