// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The soak: each job makes the case of the next seed, puts it on disk, runs
 * it under watch and counts.  A hit is stored at once and then re-run for a
 * rate.  The caller's thread keeps time, progress and ledger.
 */
#include "soak_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "../ops/clock.h"
#include "../triage/cpus.h"
#include "opts.h"

#define TICK_NS 50000000L
#define LEDGER_NS 5000000000LL
#define FAILURES 20 /* of mmrace itself, one after the other: stop */

static int64_t time_left(const struct mmr_soak *s)
{
	return s->deadline_ns ? s->deadline_ns - mmr_clock_monotonic()
			      : INT64_MAX;
}

static bool over(struct mmr_soak *s)
{
	return s->stop || mmr_engine_interrupted() || time_left(s) <= 0;
}

/* The case's own budget, or what is left of the soak if that is less. */
static int run_once(struct mmr_soak_job *job, const struct mmr_case *c,
		    bool brief, struct mmr_run_result *res)
{
	struct mmr_run_opts run = job->run;
	int64_t left = time_left(job->soak);

	if (left < 1000000)
		left = 1000000;
	run.budget_ns =
		c->budget_ns && c->budget_ns < left ? c->budget_ns : left;
	run.no_evidence = brief;
	if (brief)
		run.on_finding = NULL;
	return mmr_run(c, &run, res);
}

static struct mmr_soak_finding *find_finding(struct mmr_soak *s, const char *id)
{
	for (int i = 0; i < s->nfindings; i++)
		if (!strcmp(s->findings[i].id, id))
			return &s->findings[i];
	return NULL;
}

/* How often the same case shows the same again: up to ten more runs. */
static void confirm(struct mmr_soak_job *job, const struct mmr_case *c,
		    const struct mmr_run_result *first, struct mmr_rate *rate)
{
	struct mmr_run_result res;

	*rate = (struct mmr_rate){1, 1, first->rounds, first->wall_ns};
	for (int i = 0; i < MMR_SOAK_CONFIRM && !over(job->soak); i++) {
		memset(&res, 0, sizeof(res));
		if (run_once(job, c, true, &res)) {
			mmr_run_result_free(&res);
			return;
		}
		/* As in a replay: what came to nothing is no sample, nor what
		 * the end of the soak cut short. */
		if (!mmr_verdict_is_hit(res.verdict) &&
		    (res.verdict != MMR_NOTHING || over(job->soak))) {
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
}

static void save(struct mmr_soak *s, const struct mmr_case *c, uint64_t seed,
		 const struct mmr_run_result *res, const struct mmr_rate *rate)
{
	struct mmr_soak_finding *f, full;
	int rc;

	f = find_finding(s, res->id);
	if (!f && s->nfindings < MMR_SOAK_FINDINGS) {
		f = &s->findings[s->nfindings++];
		snprintf(f->id, sizeof(f->id), "%s", res->id);
		snprintf(f->text, sizeof(f->text), "%s", res->text);
		f->seed = seed;
	}
	if (!f) { /* on disk it still goes */
		memset(&full, 0, sizeof(full));
		f = &full;
	}
	f->count++;
	if (rate)
		f->rate = *rate;
	rc = mmr_finding_save(s->opts->out, c, NULL, res, rate, f->path,
			      sizeof(f->path));
	if (rc) {
		fprintf(stderr, "mmrace soak: cannot store finding %s: %s\n",
			res->id, strerror(-rc));
		snprintf(f->path, sizeof(f->path), "(not stored: %s)",
			 strerror(-rc));
	}
}

static void found(struct mmr_soak_job *job, const struct mmr_case *c,
		  uint64_t seed, const struct mmr_run_result *res)
{
	struct mmr_soak *s = job->soak;
	struct mmr_soak_finding *f;
	struct mmr_rate rate;
	bool again;

	/* First onto the disk, before anything else is tried with it. */
	pthread_mutex_lock(&s->finding_lock);
	again = find_finding(s, res->id) != NULL;
	save(s, c, seed, res, NULL);
	pthread_mutex_unlock(&s->finding_lock);
	if (again)
		return;
	confirm(job, c, res, &rate);
	if (rate.runs < 2)
		return;
	pthread_mutex_lock(&s->finding_lock);
	f = find_finding(s, res->id);
	if (f)
		f->count--; /* the same sighting, now with a rate */
	save(s, c, seed, res, &rate);
	pthread_mutex_unlock(&s->finding_lock);
}

static void count(struct mmr_soak *s, const struct mmr_case *c, uint64_t seed,
		  const struct mmr_run_result *res)
{
	pthread_mutex_lock(&s->lock);
	mmr_soak_stat_add(&s->stat, c, seed, res);
	if (res->verdict == MMR_TOOL_FAILED)
		s->failures++;
	else
		s->failures = 0;
	if (s->failures >= FAILURES)
		s->stop = true;
	pthread_mutex_unlock(&s->lock);
}

static void one_case(struct mmr_soak_job *job, uint64_t seed)
{
	struct mmr_soak *s = job->soak;
	struct mmr_case *c = mmr_gen(seed, s->opts->profile);
	struct mmr_run_result res = {0};
	char *text = c ? mmr_case_print(c) : NULL;
	int rc = text ? mmr_soak_disk_case(job, text, seed) : -ENOMEM;

	job->run.seed = seed;
	if (!rc)
		rc = run_once(job, c, false, &res);
	if (rc) {
		res.verdict = MMR_TOOL_FAILED;
		snprintf(res.text, sizeof(res.text), "seed 0x%" PRIx64 ": %s",
			 seed, strerror(-rc));
	}
	if (c)
		count(s, c, seed, &res);
	if (!rc && mmr_verdict_is_hit(res.verdict))
		found(job, c, seed, &res);
	mmr_run_result_free(&res);
	free(text);
	mmr_case_free(c);
}

static void *job_main(void *arg)
{
	struct mmr_soak_job *job = arg;
	struct mmr_soak *s = job->soak;
	const struct mmr_soak_opts *o = s->opts;
	int shards = o->shards > 0 ? o->shards : 1;

	while (!over(s) && !(o->until_found && s->nfindings)) {
		uint64_t i = s->next++;

		if (o->cases && i >= o->cases)
			break;
		one_case(job,
			 s->base + i * (uint64_t)shards + (uint64_t)o->shard);
	}
	return NULL;
}

static void ledger(struct mmr_soak *s, const char *state)
{
	char path[4200], *text;
	json_t *j;
	int rc;

	pthread_mutex_lock(&s->finding_lock);
	pthread_mutex_lock(&s->lock);
	j = mmr_soak_json(s, state);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&s->finding_lock);
	text = j ? json_dumps(j, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
	snprintf(path, sizeof(path), "%s/soak.json", s->opts->out);
	rc = text ? mmr_write_file(path, text, strlen(text)) : -ENOMEM;
	if (rc)
		fprintf(stderr, "mmrace soak: %s: %s\n", path, strerror(-rc));
	free(text);
	json_decref(j);
}

static void show(struct mmr_soak *s, struct mmr_progress *p)
{
	int64_t spent = mmr_clock_monotonic() - s->start_ns;
	uint64_t cases, skipped, ops;
	int found_now;

	pthread_mutex_lock(&s->lock);
	cases = s->stat.cases;
	skipped = s->stat.skipped;
	ops = s->stat.ops;
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&s->finding_lock);
	found_now = s->nfindings;
	pthread_mutex_unlock(&s->finding_lock);
	mmr_progress_show(p,
			  "%lld s: %" PRIu64 " cases (%" PRIu64
			  " skipped), %.0f cases/s, %.0f ops/s, %d finding%s",
			  (long long)(spent / 1000000000), cases, skipped,
			  (double)(cases + skipped) * 1e9 / (double)spent,
			  (double)ops * 1e9 / (double)spent, found_now,
			  found_now == 1 ? "" : "s");
}

/* Until the jobs are over: they look at the time themselves. */
static void keep_time(struct mmr_soak *s, struct mmr_soak_job *jobs, int njobs)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	int64_t ledger_ns = s->start_ns + LEDGER_NS / 5;
	struct mmr_progress p;
	int done = 0;

	mmr_progress_init(&p, s->opts->quiet);
	while (done < njobs) {
		nanosleep(&tick, NULL);
		while (done < njobs &&
		       !pthread_tryjoin_np(jobs[done].thread, NULL))
			done++;
		if (mmr_progress_due(&p))
			show(s, &p);
		if (mmr_clock_monotonic() >= ledger_ns && !over(s)) {
			ledger(s, "running");
			ledger_ns = mmr_clock_monotonic() + LEDGER_NS;
		}
	}
	mmr_progress_end(&p);
}

static int run_jobs(struct mmr_soak *s)
{
	int njobs = s->opts->jobs, started = 0, opened, rc = 0;
	struct mmr_soak_job *jobs = calloc((size_t)njobs, sizeof(*jobs));

	if (!jobs)
		return -ENOMEM;
	for (opened = 0; opened < njobs && !rc; opened++) {
		jobs[opened].soak = s;
		jobs[opened].number = opened;
		rc = mmr_soak_disk_open(&jobs[opened]);
	}
	opened -= rc != 0;
	if (!rc) {
		for (int i = 0; i < njobs; i++) {
			jobs[i].run = s->opts->run;
			mmr_cpus_share(&jobs[i].run, i, njobs);
		}
		s->start_ns = mmr_clock_monotonic();
		ledger(s, "running");
		if (s->opts->time_ns)
			s->deadline_ns = s->start_ns + s->opts->time_ns;
	}
	for (; started < njobs && !rc; started++)
		rc = -pthread_create(&jobs[started].thread, NULL, job_main,
				     &jobs[started]);
	started -= rc && started;
	if (rc)
		s->stop = true;
	keep_time(s, jobs, started);
	while (opened--)
		mmr_soak_disk_close(&jobs[opened]);
	s->end_ns = mmr_clock_monotonic();
	free(jobs);
	return rc;
}

static int exit_code(const struct mmr_soak *s)
{
	if (s->nfindings)
		return MMR_EXIT_FOUND;
	if (s->failures >= FAILURES || (s->stat.failed && !s->stat.cases))
		return MMR_EXIT_FAILED;
	if (s->stat.skipped && !s->stat.cases)
		return MMR_EXIT_NEEDS;
	return MMR_EXIT_NOTHING;
}

static int start(struct mmr_soak *s, const struct mmr_soak_opts *opts)
{
	int rc;

	s->opts = opts;
	s->profile = "mixed";
	for (int i = 0; mmr_profile_name(i, NULL); i++)
		if (mmr_profile_find(mmr_profile_name(i, NULL)) ==
		    opts->profile)
			s->profile = mmr_profile_name(i, NULL);
	s->base = opts->seed;
	if (!opts->seed_given &&
	    getrandom(&s->base, sizeof(s->base), 0) != sizeof(s->base))
		s->base = (uint64_t)mmr_clock_monotonic();
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->finding_lock, NULL);
	rc = mmr_soak_disk_start(s);
	if (rc) {
		mmr_opts_error("%s: %s", opts->out, strerror(-rc));
		return rc;
	}
	if (!opts->quiet)
		fprintf(stderr,
			"mmrace soak: seed 0x%" PRIx64 ", profile %s, %d "
			"job%s, findings go to %s/findings\n",
			s->base, s->profile, opts->jobs,
			opts->jobs > 1 ? "s" : "", opts->out);
	return 0;
}

int mmr_soak(const struct mmr_soak_opts *opts)
{
	struct mmr_soak *s = calloc(1, sizeof(*s));
	const char *state;
	int rc;

	if (!s || start(s, opts)) {
		free(s);
		return MMR_EXIT_FAILED;
	}
	rc = run_jobs(s);
	if (rc) {
		mmr_opts_error("%s: %s", opts->out, strerror(-rc));
		free(s);
		return MMR_EXIT_FAILED;
	}
	state = mmr_engine_interrupted() ? "interrupted" : "done";
	ledger(s, state);
	if (opts->json)
		mmr_opts_print_json(mmr_soak_json(s, state));
	else
		mmr_soak_text(s);
	rc = exit_code(s);
	free(s);
	return rc;
}
