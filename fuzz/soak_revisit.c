// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a soak comes back to: findings, for a rate and a smaller case, and
 * suspects, cases in which a call took far longer than its kind does here.
 *
 * A suspect is no finding.  It is run again, and a sequential test decides
 * between chance (cases become suspects at the rate that this soak saw) and
 * the case itself (the same statement is as slow in half of the runs).  Only
 * what holds up is listed.  All of it together takes at most a share of the
 * soak's time; the rate of a finding, a few runs, is always taken.
 */
#include "soak_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "../triage/calibrate.h"
#include "../triage/replay.h"

#define FLOOR_NS 10000000ULL /* shorter is never suspect */
#define TIMES 20	     /* the 99.9th percentile of its kind */
#define PAUSES 5	     /* the longest pause of the last minute */
#define KNOWN 1000	     /* calls of a kind before any is judged */
#define WINDOW_NS 60000000000LL
#define RUNS 40 /* of a suspect, at most, with those that came to nothing */
#define USUAL 6 /* after so many the test has mostly decided */
#define FALSE_ALARM 0.005
#define MISSED 0.05
#define RATE 0.5 /* of a case that is slow by itself */
#define SHRINK_MIN_NS 10000000000LL
#define SHRINK_MAX_NS 300000000000LL
#define BOOT_NS 150000000000LL /* no guest takes longer to boot */

/* May it take some more of the time? */
static int64_t allowance(struct mmr_soak *s)
{
	int64_t now = mmr_clock_monotonic(), share;

	share = (now - s->start_ns) / 100 * s->opts->revisit * s->opts->jobs;
	return share - s->revisit_ns;
}

static void spend(struct mmr_soak *s, int64_t start_ns)
{
	s->revisit_ns += mmr_clock_monotonic() - start_ns;
}

/* How often the same case shows the same again: up to ten more runs. */
static void confirm(struct mmr_soak_job *job, const struct mmr_case *c,
		    const struct mmr_run_result *first, struct mmr_rate *rate)
{
	struct mmr_run_result res;

	int64_t start = mmr_clock_monotonic();

	for (int i = 0; i < MMR_SOAK_CONFIRM && job->soak->opts->revisit &&
			!mmr_soak_over(job->soak);
	     i++) {
		memset(&res, 0, sizeof(res));
		if (mmr_soak_run(job, c, true, &res)) {
			mmr_run_result_free(&res);
			break;
		}
		/* As in a replay: what came to nothing is no sample, nor what
		 * the end of the soak cut short. */
		if (!mmr_verdict_is_hit(res.verdict) &&
		    (res.verdict != MMR_NOTHING || mmr_soak_over(job->soak))) {
			mmr_run_result_free(&res);
			continue;
		}
		rate->runs++;
		rate->rounds += res.rounds;
		rate->wall_ns += res.wall_ns;
		if (res.verdict == first->verdict &&
		    !strcmp(res.signature, first->signature))
			rate->hits++;
		mmr_run_result_free(&res);
	}
	spend(job->soak, start);
}

struct mmr_case *mmr_soak_confirm(struct mmr_soak_job *job,
				  const struct mmr_case *c,
				  const struct mmr_run_result *first,
				  struct mmr_rate *rate)
{
	struct mmr_case *exact = mmr_calibrate_case(first, true);

	*rate = (struct mmr_rate){0};
	if (exact)
		confirm(job, exact, first, rate);
	if (rate->hits)
		return exact;
	mmr_case_free(exact);
	*rate = (struct mmr_rate){1, 1, first->rounds, first->wall_ns};
	confirm(job, c, first, rate);
	return NULL;
}

/* Pauses of the machine seen within the last minute or two. */
static uint64_t longest_pause(struct mmr_soak *s, int64_t pause_ns)
{
	int64_t now = mmr_clock_monotonic();

	if (now - s->pause_since_ns > WINDOW_NS) {
		s->pause_before_ns = s->pause_max_ns;
		s->pause_max_ns = 0;
		s->pause_since_ns = now;
	}
	if (pause_ns > s->pause_max_ns)
		s->pause_max_ns = pause_ns;
	return (uint64_t)(s->pause_max_ns > s->pause_before_ns
				  ? s->pause_max_ns
				  : s->pause_before_ns);
}

/* How long a call of this kind may take before it is suspect, ns. */
static uint64_t limit_of(struct mmr_soak *s, const struct mmr_op *op,
			 uint64_t pause)
{
	const struct mmr_soak_op *o = &s->stat.op[op->id];
	uint64_t limit =
		TIMES * (uint64_t)mmr_histogram_quantile(&o->hist, 0.999);

	if (o->hist.n < KNOWN)
		return UINT64_MAX;
	if (limit < PAUSES * pause)
		limit = PAUSES * pause;
	return limit < FLOOR_NS ? FLOOR_NS : limit;
}

/* The statement that is suspect, -1: none.  Under lock. */
static int find_suspect(struct mmr_soak *s, const struct mmr_case *c,
			const struct mmr_run_result *res, uint64_t *limit)
{
	uint64_t pause = longest_pause(s, res->pause_ns);
	const struct mmr_stmt *stmt;

	for (int i = 0; i < res->nstmts; i++) {
		if (res->stmts[i].max_ns < FLOOR_NS)
			continue;
		stmt = mmr_case_stmt(c, i);
		if (!stmt || stmt->kind != MMR_STMT_OP ||
		    (stmt->op->class != MMR_CLASS_CALL &&
		     stmt->op->class != MMR_CLASS_TOUCH))
			continue;
		*limit = limit_of(s, stmt->op, pause);
		if (res->stmts[i].max_ns > *limit)
			return i;
	}
	return -1;
}

/* Wald's test: true when the case is slow by itself; undecided at the deadline
 * it is not. */
static bool holds_up(struct mmr_soak_job *job, const struct mmr_case *c,
		     int stmt, uint64_t limit, double null, int64_t deadline,
		     struct mmr_soak_suspect *out)
{
	double sum = 0;
	double hit = log(RATE / null), miss = log((1 - RATE) / (1 - null));
	int i;

	for (i = 0; i < RUNS && !mmr_soak_over(job->soak) &&
		    mmr_clock_monotonic() < deadline;
	     i++) {
		struct mmr_run_result res = {0};

		if (mmr_soak_run(job, c, true, &res))
			break;
		if (res.verdict == MMR_NOTHING && stmt < res.nstmts &&
		    !mmr_soak_over(job->soak)) {
			bool slow = res.stmts[stmt].max_ns > limit;

			out->runs++;
			out->hits += slow;
			sum += slow ? hit : miss;
		}
		mmr_run_result_free(&res);
		if (sum >= log((1 - MISSED) / FALSE_ALARM))
			return true;
		if (sum <= log(MISSED / (1 - FALSE_ALARM)))
			return false;
	}
	return false;
}

static void keep_suspect(struct mmr_soak *s, const struct mmr_case *c,
			 const struct mmr_soak_suspect *found)
{
	char path[4200], *text = mmr_case_print(c);
	int rc;

	snprintf(path, sizeof(path), "%s/suspects", s->opts->out);
	rc = mmr_mkdir_p(path);
	snprintf(path, sizeof(path), "%s/suspects/%s-0x%" PRIx64 ".case",
		 s->opts->out, found->op->name, found->seed);
	if (!rc && text)
		rc = mmr_write_file(path, text, strlen(text));
	if (rc || !text)
		mmr_soak_say(s, "%s: %s", path, strerror(text ? -rc : ENOMEM));
	free(text);
}

void mmr_soak_suspect(struct mmr_soak_job *job, const struct mmr_case *c,
		      uint64_t seed, const struct mmr_run_result *res)
{
	struct mmr_soak *s = job->soak;
	struct mmr_soak_suspect found = {.seed = seed};
	/* Once more as long as this run, so often. */
	int64_t cost = USUAL * res->wall_ns, start;
	uint64_t limit;
	double null;
	int stmt;

	pthread_mutex_lock(&s->lock);
	stmt = find_suspect(s, c, res, &limit);
	s->suspects += stmt >= 0;
	/* Never less than what this soak can have seen by now. */
	null = 3 * (double)(s->suspects + 1) / (double)(s->stat.cases + 1);
	pthread_mutex_unlock(&s->lock);
	/* What was found goes first: it waits until its share is large enough
	 * for a start.  So does a suspect: a debt would be paid by those that
	 * come later, for minutes. */
	if (stmt < 0 || s->to_shrink || allowance(s) < cost || mmr_soak_over(s))
		return;
	null = null > RATE / 2 ? RATE / 2 : null;
	found.op = mmr_case_stmt(c, stmt)->op;
	found.worst_ns = res->stmts[stmt].max_ns;
	found.limit_ns = limit;
	start = mmr_clock_monotonic();
	if (holds_up(job, c, stmt, limit, null, start + 2 * cost, &found)) {
		pthread_mutex_lock(&s->lock);
		if (s->nconfirmed < MMR_SOAK_SUSPECTS)
			s->confirmed[s->nconfirmed] = found;
		s->nconfirmed++;
		pthread_mutex_unlock(&s->lock);
		keep_suspect(s, c, &found);
	}
	spend(s, start);
}

/* The guest of --shrink-guest, NULL: it does not come up.  Under shrink_lock.
 */
static struct mmr_guest *shrink_guest(struct mmr_soak *s)
{
	char text[400] = "";

	if (s->shrink_guest || s->shrink_failed)
		return s->shrink_guest;
	if (mmr_guest_open(&s->opts->shrink, &s->shrink_guest, text,
			   sizeof(text))) {
		s->shrink_guest = NULL;
		s->shrink_failed = true; /* nor will it the next time */
		mmr_soak_say(s, "--shrink-guest: %s", text);
	}
	return s->shrink_guest;
}

void mmr_soak_shrink_end(struct mmr_soak *s)
{
	if (s->shrink_guest)
		mmr_guest_close(s->shrink_guest);
	s->shrink_guest = NULL;
}

/* The first one that waits, which waits no more; its folder. */
static bool take(struct mmr_soak *s, char *folder, size_t n)
{
	bool found = false;

	pthread_mutex_lock(&s->finding_lock);
	for (int i = 0; i < s->nfindings && !found; i++) {
		found = s->findings[i].to_shrink;
		if (!found)
			continue;
		s->findings[i].to_shrink = false;
		s->to_shrink--;
		snprintf(folder, n, "%s", s->findings[i].path);
	}
	pthread_mutex_unlock(&s->finding_lock);
	return found;
}

static void shrink(struct mmr_soak_job *job, int64_t budget_ns,
		   const char *folder)
{
	struct mmr_soak *s = job->soak;
	struct mmr_min_opts o = {.run = job->run};
	struct mmr_min_result res = {0};
	int64_t start = mmr_clock_monotonic();
	struct mmr_case *c;
	struct mmr_diag diag;
	char path[400];

	snprintf(path, sizeof(path), "%s/case.case", folder);
	if (mmr_case_load(path, &c, &diag, NULL, NULL))
		return;
	if (s->opts->shrink.kernel)
		o.run.guest = shrink_guest(s);
	snprintf(path, sizeof(path), "%s/min.case", folder);
	o.best_path = path;
	o.run.on_finding = NULL;
	o.run.seed = c->origin.has_seed ? c->origin.seed : 0;
	/* Also the boot of the guest was some of its time. */
	o.budget_ns = budget_ns - (mmr_clock_monotonic() - start);
	if ((!s->opts->shrink.kernel || o.run.guest) && o.budget_ns > 0 &&
	    mmr_minimise(c, &o, &res))
		mmr_soak_say(s, "%s could not be written", path);
	mmr_case_free(res.best);
	mmr_case_free(c);
}

void mmr_soak_shrink(struct mmr_soak_job *job)
{
	struct mmr_soak *s = job->soak;
	bool in_guest = s->opts->shrink.kernel != NULL;
	int64_t start = mmr_clock_monotonic(), left = INT64_MAX, budget;
	char folder[300];

	if (s->deadline_ns)
		left = (s->deadline_ns - start) / 2;
	budget = allowance(s);
	if (budget > left)
		budget = left;
	if (budget > SHRINK_MAX_NS)
		budget = SHRINK_MAX_NS;
	if (budget < SHRINK_MIN_NS || mmr_soak_over(s))
		return;
	/* There is one guest, which may have to boot first. */
	if (in_guest && ((!s->shrink_guest && left < BOOT_NS) ||
			 pthread_mutex_trylock(&s->shrink_lock)))
		return;
	if (take(s, folder, sizeof(folder)))
		shrink(job, budget, folder);
	if (in_guest)
		pthread_mutex_unlock(&s->shrink_lock);
	spend(s, start);
}
