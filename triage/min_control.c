// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The slow slide: each step passes its short test, and in the end the case
 * fails once in ten runs.  A wait that orders two threads is typical: without
 * it the race is still there, only rarer.
 *
 * So the best is run more often now and then.  When its rate has gone, the
 * step that took it is found by halving among the past ones, the best goes
 * back to before it, and that step is not tried again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "min.h"

int mmr_min_advance(struct mmr_min *m, struct mmr_case *cand)
{
	struct mmr_case **more;

	if (m->npast == m->max_past) {
		more = realloc(m->past, (size_t)(m->max_past + 64) *
						sizeof(struct mmr_case *));
		if (!more) {
			mmr_case_free(cand);
			return -ENOMEM;
		}
		m->past = more;
		m->max_past += 64;
	}
	m->past[m->npast++] = m->best;
	m->best = cand;
	return 0;
}

void mmr_min_forget(struct mmr_min *m)
{
	while (m->npast > 0)
		mmr_case_free(m->past[--m->npast]);
}

/* past[good] is the best from here on; what came after it goes. */
static int step_back(struct mmr_min *m, int good)
{
	struct mmr_case *bad =
		good + 1 < m->npast ? m->past[good + 1] : m->best;
	int rc = mmr_min_reject(m, bad);

	mmr_case_free(m->best);
	m->best = m->past[good];
	while (--m->npast > good)
		mmr_case_free(m->past[m->npast]);
	mmr_min_forget(m);
	return rc ? rc : mmr_min_save(m);
}

int mmr_min_check_rate(struct mmr_min *m)
{
	uint64_t runs, hits;
	int lo = 0, hi = m->npast, rc;
	char what[64];

	if (!m->npast)
		return 1; /* nothing has changed since */
	m->step++;
	rc = mmr_min_control(m, m->best, &runs, &hits);
	if (rc < 0)
		return rc;
	mmr_min_log(m, "rate of the best so far", runs, hits,
		    rc ? "good" : "it has slipped away");
	if (rc) {
		mmr_min_forget(m);
		return 1;
	}
	/* past[lo] is good, past[hi] (or the best) is not. */
	while (hi - lo > 1) {
		int mid = lo + (hi - lo) / 2;

		m->step++;
		rc = mmr_min_control(m, m->past[mid], &runs, &hits);
		if (rc < 0)
			break;
		snprintf(what, sizeof(what), "rate %d steps back",
			 m->npast - mid);
		mmr_min_log(m, what, runs, hits, rc ? "good" : "bad");
		if (rc)
			lo = mid;
		else
			hi = mid;
	}
	/* Also when time is over: what is known to be good is the result. */
	if (rc >= 0 || rc == -ETIME || rc == -EINTR) {
		int err = step_back(m, lo);

		m->step++;
		mmr_min_log(m, "back to before it", 0, 0, "done");
		if (err)
			return err;
	}
	return rc < 0 ? rc : 0;
}
