// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs in flight, taken in the order in which they began, and what one run
 * adds to a count.
 */
#include "min_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The least that a short miss counts. */
#define MIN_WEIGHT 0.25

int mmr_flight_start(struct mmr_search *s, const struct mmr_search_query *q,
		     const uint8_t *set)
{
	struct mmr_search_flight *f = &s->fly[s->nfly];
	size_t n = s->pass ? (size_t)s->pass->n : 0;
	int slot = 0, rc;

	while (s->busy & 1u << slot)
		slot++;
	f->set = NULL;
	f->slot = slot;
	f->what = q->what;
	f->arm = q->arm;
	if (set) {
		f->set = malloc(n + 1);
		if (!f->set)
			return -ENOMEM;
		memcpy(f->set, set, n);
	}
	rc = s->ops->start(s->arg, q, slot);
	if (rc) {
		free(f->set);
		return rc;
	}
	s->busy |= 1u << slot;
	s->nfly++;
	return 0;
}

int mmr_flight_take(struct mmr_search *s, struct mmr_search_run *r,
		    uint8_t **set)
{
	struct mmr_search_flight f = s->fly[0];
	int rc = s->ops->wait(s->arg, f.slot, r);

	r->what = f.what;
	r->arm = f.arm;
	s->busy &= ~(1u << f.slot);
	s->nfly--;
	memmove(s->fly, s->fly + 1, (size_t)s->nfly * sizeof(*s->fly));
	if (rc || !set)
		free(f.set);
	else
		*set = f.set;
	return rc;
}

void mmr_flight_drop(struct mmr_search *s)
{
	int i;

	for (i = 0; i < s->nfly; i++) {
		s->ops->drop(s->arg, s->fly[i].slot);
		free(s->fly[i].set);
	}
	s->nfly = 0;
	s->busy = 0;
}

bool mmr_search_hit(const struct mmr_search *s, const struct mmr_search_run *r)
{
	return r->kind == MMR_SEARCH_FAIL && r->id == s->wanted;
}

double mmr_search_weight(const struct mmr_search *s, double cost)
{
	double w;

	/* Of runs that short the time is that of starting them. */
	if (s->miss_cost < MMR_SEARCH_MIN_COST || !(cost > 0))
		return 1;
	w = cost / s->miss_cost;
	return w < MIN_WEIGHT ? MIN_WEIGHT : w > 1 ? 1 : w;
}

static void add(const struct mmr_search *s, struct mmr_search_tally *t,
		const struct mmr_search_run *r)
{
	t->cost += r->cost;
	if (r->kind == MMR_SEARCH_VOID) {
		t->voids++;
		return;
	}
	t->runs++;
	if (mmr_search_hit(s, r)) {
		t->hits++;
		return;
	}
	t->misses += mmr_search_weight(s, r->cost);
	if (r->kind == MMR_SEARCH_MISS)
		t->miss_cost += r->cost;
	t->others += r->kind == MMR_SEARCH_FAIL;
}

void mmr_search_count(struct mmr_search *s, struct mmr_search_tally *t,
		      const struct mmr_search_run *r)
{
	if (t)
		add(s, t, r);
	add(s, &s->all, r);
}

void mmr_search_note(struct mmr_search *s, const struct mmr_search_step *st,
		     const struct mmr_search_tally *t)
{
	struct mmr_search_step step = *st;

	if (!s->ops->note)
		return;
	if (t) {
		step.runs = t->runs;
		step.hits = t->hits;
		step.others = t->others;
		step.voids = t->voids;
	}
	s->ops->note(s->arg, &step);
}
