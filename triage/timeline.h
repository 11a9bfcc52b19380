/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The timeline of a hit as Chrome trace events, which Perfetto opens: threads
 * as rows, operations as slices, page faults as a counter, the flag and the
 * steps of the evidence ladder as instants and slices.
 */
#ifndef MMR_TRIAGE_TIMELINE_H
#define MMR_TRIAGE_TIMELINE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "../ops/area.h"
#include "../ops/case.h"

/* Where the trace's time 0 lies, and what the flag's time is in it. */
struct mmr_timeline_base {
	uint64_t ticks; /* of the area's clock at ts 0 */
	double flag_us;
};

/*
 * Reads the rings of all threads (racily, while they run) into a new trace.
 * culprit: thread slot or -1.  now: ticks of the flag.  NULL: no memory.
 * Any thread; takes no lock and writes nothing to the area.
 */
json_t *mmr_timeline_build(const struct mmr_case *c, struct mmr_area *a,
			   int culprit, uint64_t now,
			   struct mmr_timeline_base *base);
/* The flag as an instant over all rows. */
void mmr_timeline_flag(json_t *t, double ts_us, const char *verdict);
/* One value of the counter "page faults/s" of a process row. */
void mmr_timeline_faults(json_t *t, double ts_us, int pid, double per_s);
/* A step of the evidence ladder, on a row of its own. */
void mmr_timeline_step(json_t *t, double ts_us, double took_us,
		       const char *name, bool moved);

/* Draws the milliseconds around the start of the stall as text, one row a
 * thread, and lists the last operations. */
void mmr_timeline_text(const json_t *timeline, FILE *out);

#endif
