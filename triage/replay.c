// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Replay: the same case run after run, and what that says of its rate.
 */
#include "replay.h"

#include <errno.h>
#include <string.h>

#include "../ops/clock.h"

uint64_t mmr_replay_rounds(const struct mmr_run_result *r, uint64_t first)
{
	if (mmr_verdict_is_hit(r->verdict) && r->hit_round >= first &&
	    r->hit_round - first >= r->rounds)
		return r->hit_round - first + 1;
	return r->rounds;
}

/* Counts one run; true when it goes into res->last. */
static bool count(struct mmr_replay_result *res, const struct mmr_run_result *r,
		  uint64_t first_round, char *want, size_t n)
{
	bool first = !res->hits && !res->other_hits;

	res->rounds += mmr_replay_rounds(r, first_round);
	res->rounds_void += r->rounds_void;
	res->wall_ns += r->wall_ns;
	if (r->verdict == MMR_VOID) {
		res->voids++;
		return first;
	}
	res->runs++;
	if (!mmr_verdict_is_hit(r->verdict))
		return first;
	if (!want[0])
		snprintf(want, n, "%s", r->signature);
	if (!strcmp(want, r->signature)) {
		res->hits++;
		return res->hits == 1;
	}
	res->other_hits++;
	return first;
}

/* A run that the deadline cut short and that hit nothing is no sample: it
 * would make the rate look smaller than it is. */
static bool cut_short(const struct mmr_run_result *r, bool shortened)
{
	return !mmr_verdict_is_hit(r->verdict) &&
	       (shortened || mmr_engine_interrupted());
}

int mmr_replay(const struct mmr_case *c, const struct mmr_replay_opts *opts,
	       struct mmr_replay_result *res)
{
	int64_t deadline =
		opts->time_ns ? mmr_clock_monotonic() + opts->time_ns : 0;
	int64_t budget =
		opts->run.budget_ns ? opts->run.budget_ns : c->budget_ns;
	uint64_t rounds =
		opts->run.rounds ? opts->run.rounds : (uint64_t)c->rounds;
	uint64_t max = opts->max_runs, i;
	char want[200] = "";
	int rc = 0;

	memset(res, 0, sizeof(*res));
	if (opts->want_signature)
		snprintf(want, sizeof(want), "%s", opts->want_signature);
	if (!max)
		max = deadline ? UINT64_MAX : 1;
	if (opts->progress)
		opts->progress(opts->arg, 0, 0);
	for (i = 0; i < max && !mmr_engine_interrupted(); i++) {
		struct mmr_run_opts o = opts->run;
		struct mmr_run_result r = {0};
		bool shortened = false, keep;

		o.first_round += i * rounds;
		if (deadline) {
			int64_t left = deadline - mmr_clock_monotonic();

			if (left <= 0)
				break;
			if (!budget || left < budget) {
				o.budget_ns = left;
				shortened = true;
			}
		}
		rc = mmr_run(c, &o, &r);
		if (rc)
			break;
		/* Cut by the deadline only if it used all that was left. */
		shortened = shortened && r.rounds < rounds;
		if (r.verdict == MMR_SKIPPED || r.verdict == MMR_TOOL_FAILED) {
			mmr_run_result_free(&res->last);
			res->last = r;
			break;
		}
		if (i > 0 && cut_short(&r, shortened)) {
			mmr_run_result_free(&r);
			break;
		}
		/* What it leaves behind cannot be killed: not again on this
		 * machine.  A guest is thrown away with it. */
		if (r.quarantined > 0 && !o.guest)
			max = i + 1;
		keep = count(res, &r, o.first_round, want, sizeof(want));
		if (keep) {
			mmr_run_result_free(&res->last);
			res->last = r;
		} else {
			mmr_run_result_free(&r);
		}
		if (opts->progress)
			opts->progress(opts->arg, res->runs + res->voids,
				       res->hits);
	}
	mmr_stat_interval(res->hits, res->runs, 0.95, &res->lo, &res->hi);
	return rc;
}
