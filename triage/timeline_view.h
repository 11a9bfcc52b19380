/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A timeline read back for drawing: rows, slices, when the stall began and was
 * flagged, the steps of looking at it.  All strings belong to the JSON, which
 * has to outlive the view.
 */
#ifndef MMR_TRIAGE_TIMELINE_VIEW_H
#define MMR_TRIAGE_TIMELINE_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define MMR_VIEW_ROWS 64
#define MMR_VIEW_OPS 52

struct mmr_view_row {
	int pid, tid;
	const char *name, *proc; /* "T (tid 17)", "main (pid 17)" */
};

struct mmr_view_slice {
	double ts, dur; /* us */
	int row;	/* -1: of no row that is shown */
	int op;		/* index in ops */
	const char *name;
	const json_t *args;
	bool unfinished;
};

struct mmr_view_point {
	double ts, value;
};

struct mmr_view_step {
	double ts, dur;
	const char *name;
	bool moved;
};

struct mmr_timeline_view {
	struct mmr_view_row rows[MMR_VIEW_ROWS];
	int nrows;
	struct mmr_view_slice *slices; /* by ts */
	size_t nslices;
	struct mmr_view_point *faults; /* faults a second, by ts */
	size_t nfaults;
	struct mmr_view_step steps[16];
	int nsteps;
	double stall, flag; /* us: when it began, when it was flagged */
	bool culprit;	    /* its operation is there; else stall is flag */
	double lo, hi; /* a window before and after its begin that shows the
			* last dozen operations */
	double end;    /* of all that is in it */
	const char *ops[MMR_VIEW_OPS]; /* names, as they first come */
	int nops;
};

/* Any JSON is fine: what is no trace event is skipped.  NULL: no memory. */
struct mmr_timeline_view *mmr_timeline_view(const json_t *timeline);
void mmr_timeline_view_free(struct mmr_timeline_view *v);

#endif
