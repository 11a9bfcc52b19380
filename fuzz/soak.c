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
#include "../triage/spawn.h"
#include "opts.h"

#define FAILURES 20 /* of mmrace itself, one after the other: stop */
#define PAUSE_FIRST_NS 50000000LL
#define PAUSE_LAST_NS 5000000000LL

static int64_t time_left(const struct mmr_soak *s)
{
	return s->deadline_ns ? s->deadline_ns - mmr_clock_monotonic()
			      : INT64_MAX;
}

bool mmr_soak_over(struct mmr_soak *s)
{
	return s->stop || mmr_engine_interrupted() || time_left(s) <= 0;
}

int mmr_soak_run(struct mmr_soak_job *job, const struct mmr_case *c, bool brief,
		 struct mmr_run_result *res)
{
	struct mmr_run_opts run = job->run;
	int64_t left = time_left(job->soak);
	int rc;

	if (left < 1000000)
		left = 1000000;
	run.budget_ns =
		c->budget_ns && c->budget_ns < left ? c->budget_ns : left;
	run.no_evidence = brief;
	if (brief)
		run.on_finding = NULL;
	rc = mmr_run(c, &run, res);
	/* What cannot be killed keeps its memory and its locks: too much of
	 * it, and what follows says nothing about the cases any more. */
	if (mmr_spawn_quarantined() >= job->soak->opts->quarantine)
		job->soak->stop = true;
	return rc;
}

static struct mmr_soak_finding *find_finding(struct mmr_soak *s, const char *id)
{
	for (int i = 0; i < s->nfindings; i++)
		if (!strcmp(s->findings[i].id, id))
			return &s->findings[i];
	return NULL;
}

/* As much of it as the quota allows; -EDQUOT: nothing. */
static int store(struct mmr_soak *s, const char *dir, const struct mmr_case *c,
		 const struct mmr_run_result *res, char *path, size_t n)
{
	struct mmr_run_result brief = *res;
	uint64_t held;
	int rc;

	switch (mmr_soak_quota_room(s)) {
	case MMR_SOAK_ROOM:
		break;
	case MMR_SOAK_BRIEF:
		brief.evidence = brief.timeline = NULL;
		brief.stacks = brief.log = NULL;
		break;
	case MMR_SOAK_FULL:
		return -EDQUOT;
	}
	held = mmr_soak_quota_held(dir, res->id);
	rc = mmr_finding_save(dir, c, NULL, &brief, NULL, path, n);
	s->quota.used += mmr_soak_quota_held(dir, res->id) - held;
	return rc;
}

static void save(struct mmr_soak *s, const struct mmr_case *c, uint64_t seed,
		 const struct mmr_run_result *res)
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
	rc = store(s, s->opts->out, c, res, f->path, sizeof(f->path));
	/* An earlier soak into the same folder counts, too. */
	if (!rc && mmr_finding_count(f->path) > f->count)
		f->count = mmr_finding_count(f->path);
	if (rc) {
		if (rc != -EDQUOT)
			mmr_soak_say(s, "cannot store finding %s: %s", res->id,
				     strerror(-rc));
		if (f->count == 1) { /* once is enough for a log */
			fputs("what would have been its report.md:\n\n",
			      stderr);
			mmr_finding_print(stderr, c, res, NULL);
		}
		snprintf(f->path, sizeof(f->path), "(not stored: %s)",
			 strerror(-rc));
	}
}

static void found(struct mmr_soak_job *job, const struct mmr_case *c,
		  uint64_t seed, uint64_t number,
		  const struct mmr_run_result *res)
{
	struct mmr_soak *s = job->soak;
	struct mmr_soak_finding *f;
	struct mmr_case *exact;
	struct mmr_rate rate;
	bool again;
	int rc;

	/* First onto the disk, before anything else is tried with it. */
	pthread_mutex_lock(&s->finding_lock);
	again = find_finding(s, res->id) != NULL;
	save(s, c, seed, res);
	pthread_mutex_unlock(&s->finding_lock);
	pthread_mutex_lock(&s->lock);
	mmr_soak_book_finding(s, number, seed, res);
	pthread_mutex_unlock(&s->lock);
	if (!again)
		mmr_soak_note(s, "found %s with seed 0x%" PRIx64 ": %s",
			      res->id, seed, res->text);
	if (again)
		return;
	exact = mmr_soak_confirm(job, c, res, &rate);
	if (!exact && rate.runs < 2)
		return;
	pthread_mutex_lock(&s->finding_lock);
	f = find_finding(s, res->id);
	if (f)
		f->rate = rate;
	if (f && rate.hits && !res->quarantined && !s->opts->until_found) {
		f->to_shrink = true;
		s->to_shrink++;
	}
	rc = mmr_finding_rate(s->opts->out, exact ? exact : c, res, &rate);
	pthread_mutex_unlock(&s->finding_lock);
	if (rc)
		mmr_soak_say(s, "cannot store the rate of %s: %s", res->id,
			     strerror(-rc));
	mmr_case_free(exact);
}

/* What --known sets aside is kept all the same, in a folder of its own. */
static void keep_known(struct mmr_soak *s, const struct mmr_case *c,
		       const struct mmr_run_result *res)
{
	char dir[4200], path[4300];
	int rc;

	snprintf(dir, sizeof(dir), "%s/known", s->opts->out);
	pthread_mutex_lock(&s->finding_lock);
	rc = store(s, dir, c, res, path, sizeof(path));
	pthread_mutex_unlock(&s->finding_lock);
	if (rc && rc != -EDQUOT)
		mmr_soak_say(s, "cannot store %s in %s: %s", res->id, dir,
			     strerror(-rc));
}

/* The end of the soak came before its rounds were over. */
static bool cut_short(struct mmr_soak *s, const struct mmr_case *c,
		      const struct mmr_run_result *res)
{
	return mmr_soak_over(s) && res->rounds < (uint64_t)c->rounds &&
	       (res->verdict == MMR_NOTHING || res->verdict == MMR_VOID);
}

/* How many cases in a row could not be run. */
static int count(struct mmr_soak *s, const struct mmr_case *c, uint64_t seed,
		 uint64_t number, const struct mmr_run_result *res)
{
	int failures;

	pthread_mutex_lock(&s->lock);
	mmr_soak_stat_add(&s->stat, c, seed, res);
	/* Those that are so now; a guest takes its own with it. */
	s->stat.quarantined = mmr_spawn_quarantined();
	/* The measurements are a sample: one less is none lost. */
	(void)!mmr_record_add(s->record, number, c, res);
	/* Cut short, or not run at all, it is not done: --resume runs it. */
	if (!cut_short(s, c, res) && res->verdict != MMR_TOOL_FAILED)
		mmr_soak_book_add(s, number, res);
	if (res->verdict == MMR_TOOL_FAILED)
		s->failures++;
	else
		s->failures = 0;
	failures = s->failures;
	if (failures >= FAILURES)
		s->stop = true;
	pthread_mutex_unlock(&s->lock);
	return failures;
}

/*
 * What keeps cases from running may pass: memory or processes that others take
 * for a while.  Longer each time, so that FAILURES of them are a minute; at
 * once when none ever ran.
 */
static void pause_for_failure(struct mmr_soak *s, int n,
			      const struct mmr_run_result *res)
{
	struct timespec slice = {0, PAUSE_FIRST_NS};
	int64_t pause = PAUSE_FIRST_NS, until;
	bool ran;
	int i;

	pthread_mutex_lock(&s->lock);
	ran = s->stat.cases > 0;
	pthread_mutex_unlock(&s->lock);
	if (n == 1)
		mmr_soak_say(s, "a case could not be run: %s", res->text);
	if (n == FAILURES)
		mmr_soak_say(s,
			     "%d cases in a row could not be run, the last "
			     "one: %s; that is the end of this soak",
			     n, res->text);
	if (!ran)
		return;
	for (i = 1; i < n && pause < PAUSE_LAST_NS; i++)
		pause *= 2;
	until = mmr_clock_monotonic() +
		(pause < PAUSE_LAST_NS ? pause : PAUSE_LAST_NS);
	while (!mmr_soak_over(s) && mmr_clock_monotonic() < until)
		nanosleep(&slice, NULL);
}

static void one_case(struct mmr_soak_job *job, uint64_t seed, uint64_t number)
{
	struct mmr_soak *s = job->soak;
	struct mmr_case *c = mmr_gen(seed, s->gen);
	struct mmr_run_result res = {0};
	char *text = c ? mmr_case_print(c) : NULL;
	int failures = 0;
	int rc = text ? mmr_soak_disk_case(job, text, seed, number) : -ENOMEM;

	job->run.seed = seed;
	if (!rc)
		rc = mmr_soak_run(job, c, false, &res);
	if (rc) {
		res.verdict = MMR_TOOL_FAILED;
		snprintf(res.text, sizeof(res.text), "seed 0x%" PRIx64 ": %s",
			 seed, strerror(-rc));
	}
	/* A finding is on the disk before its case counts as done: a kill in
	 * between shows it twice rather than not at all. */
	if (!rc && mmr_verdict_is_hit(res.verdict))
		found(job, c, seed, number, &res);
	if (!rc && res.verdict == MMR_KNOWN)
		keep_known(s, c, &res);
	if (c)
		failures = count(s, c, seed, number, &res);
	if (res.verdict == MMR_TOOL_FAILED)
		pause_for_failure(s, failures, &res);
	if (!rc && res.verdict == MMR_NOTHING)
		mmr_soak_suspect(job, c, seed, &res);
	mmr_run_result_free(&res);
	free(text);
	mmr_case_free(c);
}

static void *job_main(void *arg)
{
	struct mmr_soak_job *job = arg;
	struct mmr_soak *s = job->soak;
	const struct mmr_soak_opts *o = s->opts;

	while (!mmr_soak_over(s) && !(o->until_found && s->nfindings)) {
		uint64_t i = s->next++;
		/* Its number among those of all shards, which --cases is
		 * about. */
		uint64_t all = i * (uint64_t)s->shards + (uint64_t)s->shard;

		if (o->cases && all >= o->cases)
			break;
		if (mmr_soak_book_wants(s, i))
			one_case(job, s->base + all, i);
		if (s->to_shrink)
			mmr_soak_shrink(job);
	}
	return NULL;
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
		mmr_soak_tell_start();
		s->start_ns = mmr_clock_monotonic();
		mmr_soak_time_save(s, "running");
		if (s->opts->time_ns)
			s->deadline_ns = s->start_ns + s->opts->time_ns;
	}
	for (; started < njobs && !rc; started++)
		rc = -pthread_create(&jobs[started].thread, NULL, job_main,
				     &jobs[started]);
	started -= rc && started;
	if (rc)
		s->stop = true;
	mmr_soak_time_keep(s, jobs, started);
	while (opened--)
		mmr_soak_disk_close(&jobs[opened]);
	s->end_ns = mmr_clock_monotonic();
	mmr_soak_shrink_end(s);
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

static int start_record(struct mmr_soak *s)
{
	char path[4200];
	int rc = -ENOMEM;

	snprintf(path, sizeof(path), "%s/" MMR_RECORD_FILE, s->opts->out);
	s->record = mmr_record_new(s->profile);
	if (s->record)
		rc = mmr_record_keep(s->record, path, s->opts->resume);
	if (!rc)
		return 0;
	mmr_opts_error("%s: %s", path, strerror(-rc));
	return MMR_EXIT_FAILED;
}

static int start(struct mmr_soak *s, const struct mmr_soak_opts *opts)
{
	int rc;

	s->opts = opts;
	s->gen = opts->profile;
	s->shard = opts->shard;
	s->shards = opts->shards > 0 ? opts->shards : 1;
	snprintf(s->profile, sizeof(s->profile), "mixed");
	for (int i = 0; mmr_profile_name(i, NULL); i++)
		if (mmr_profile_find(mmr_profile_name(i, NULL)) ==
		    opts->profile)
			snprintf(s->profile, sizeof(s->profile), "%s",
				 mmr_profile_name(i, NULL));
	s->base = opts->seed;
	if (!opts->seed_given &&
	    getrandom(&s->base, sizeof(s->base), 0) != sizeof(s->base))
		s->base = (uint64_t)mmr_clock_monotonic();
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->finding_lock, NULL);
	pthread_mutex_init(&s->shrink_lock, NULL);
	rc = mmr_mkdir_p(opts->out);
	if (rc) {
		mmr_opts_error("%s: %s", opts->out, strerror(-rc));
		return MMR_EXIT_FAILED;
	}
	rc = mmr_soak_log_open(s);
	if (rc) {
		mmr_opts_error("--log %s: %s", opts->log, strerror(-rc));
		return MMR_EXIT_USAGE;
	}
	rc = mmr_soak_book_open(s);
	if (!rc)
		rc = start_record(s);
	if (rc)
		return rc;
	mmr_soak_quota_start(s);
	mmr_soak_note(s,
		      "seed 0x%" PRIx64 ", profile %s, %d job%s, findings go "
		      "to %s/findings",
		      s->base, s->profile, opts->jobs,
		      opts->jobs > 1 ? "s" : "", opts->out);
	if (opts->resume)
		mmr_soak_note(s, "goes on after %" PRIu64 " cases",
			      s->book.before);
	return 0;
}

int mmr_soak(const struct mmr_soak_opts *opts)
{
	struct mmr_soak *s = calloc(1, sizeof(*s));
	const char *state;
	int rc;

	if (!s)
		return MMR_EXIT_FAILED;
	rc = start(s, opts);
	if (rc)
		goto out;
	rc = run_jobs(s);
	if (rc) {
		mmr_opts_error("%s: %s", opts->out, strerror(-rc));
		rc = MMR_EXIT_FAILED;
		goto out;
	}
	state = mmr_engine_interrupted() ? "interrupted"
		: s->stop		 ? "stopped"
					 : "done";
	mmr_soak_book_close(s, state);
	mmr_soak_time_save(s, state);
	if (opts->json)
		mmr_opts_print_json(mmr_soak_json(s, state));
	else
		mmr_soak_text(s, stdout);
	rc = exit_code(s);
out:
	mmr_soak_book_close(s, NULL);
	mmr_soak_log_close(s);
	mmr_record_free(s->record);
	free(s);
	return rc;
}
