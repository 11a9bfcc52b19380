// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs the cases of a suite: jobs take one after the other; those that need
 * the machine for themselves wait until the others are through.
 *
 *   cases[i] result   the job that took it, until `done`; then read-only
 *   the rest of work  any job, under `lock`
 *   result()          under `lock`, so that no two lines mix
 *
 * A job lives until all are over: a guest lives as long as the thread that
 * restored it, and another job may be running in it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../ops/clock.h"
#include "cpus.h"
#include "finding.h"
#include "guest.h"
#include "scale.h"
#include "suite.h"

#define SECOND 1000000000LL
#define TICK_NS 50000000LL
#define LEAST_NS (2 * SECOND)	 /* the monitor needs one to suspect a hang */
#define STUCK_NS 600000000LL	 /* past its budget: it had to be killed */
#define VOID_RUNS 5		 /* more than that of them: give up */
#define ENDLESS_NS (30 * SECOND) /* a run of a case without a budget */

struct job {
	struct work *work;
	int number;
	pthread_t thread;
	struct mmr_run_opts run;
	const struct mmr_suite_case *now; /* what it runs, NULL nothing */
};

struct work {
	struct mmr_suite *s;
	const struct mmr_suite_opts *o;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int64_t deadline_ns; /* CLOCK_MONOTONIC, 0: none */
	bool *taken;
	int nwaiting; /* cases that nobody has taken */
	int nrunning;
	int reported; /* result() was called for that many */
	struct job jobs[MMR_SUITE_JOBS];
	int njobs;
};

/* -- one case ----------------------------------------------------------- */

struct attempt {
	struct mmr_suite_case *t;
	const struct job *job;
	int64_t limit_ns; /* for all its runs */
	int64_t run_ns;	  /* that the last run took */
	char why_void[400];
	bool cut;   /* the time was over before its runs were done */
	bool stuck; /* a run did not end when it was told to */
};

static void say(struct mmr_suite_case *t, enum mmr_suite_outcome o,
		const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void say(struct mmr_suite_case *t, enum mmr_suite_outcome o,
		const char *fmt, ...)
{
	va_list ap;

	t->outcome = o;
	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
}

static void keep_log(struct mmr_suite_case *t, const char *log)
{
	size_t len = log ? strlen(log) : 0;

	if (len)
		t->log = strdup(len > MMR_SUITE_LOG ? log + len - MMR_SUITE_LOG
						    : log);
}

/* The kernel has one log: what it says may be another case's doing. */
static void name_others(struct work *w, struct mmr_suite_case *t)
{
	size_t len;
	int i;

	pthread_mutex_lock(&w->lock);
	for (i = 0; i < w->njobs; i++) {
		const struct mmr_suite_case *other = w->jobs[i].now;

		len = strlen(t->why);
		if (other && other != t && len < sizeof(t->why))
			snprintf(t->why + len, sizeof(t->why) - len,
				 "; %s ran at that time", other->name);
	}
	pthread_mutex_unlock(&w->lock);
}

static void on_hit(struct attempt *a, const struct mmr_run_result *r)
{
	struct work *w = a->job->work;
	struct mmr_suite_case *t = a->t;
	struct mmr_rate rate = {t->hits, t->runs, t->rounds, t->wall_ns};
	size_t len;
	int rc;

	say(t, MMR_SUITE_FAIL, "%s: %s", mmr_verdict_name(r->verdict), r->text);
	snprintf(t->signature, sizeof(t->signature), "%s", r->signature);
	keep_log(t, r->log);
	if (r->verdict == MMR_KERNEL_LOG && !a->job->run.guest)
		name_others(w, t);
	if (!w->o->out)
		return;
	pthread_mutex_lock(&w->lock); /* one writer a folder */
	rc = mmr_finding_save(w->o->out, t->c, NULL, r,
			      t->runs > 1 ? &rate : NULL, t->finding,
			      sizeof(t->finding));
	pthread_mutex_unlock(&w->lock);
	if (!rc)
		return;
	t->finding[0] = '\0';
	len = strlen(t->why);
	snprintf(t->why + len, sizeof(t->why) - len,
		 "; the finding cannot be stored: %s", strerror(-rc));
}

/*
 * Rounds that came to their end.  What the budget ended is no healthy round:
 * it may have been the one that hangs.
 */
static uint64_t whole_rounds(const struct mmr_run_result *r, int64_t budget_ns)
{
	uint64_t valid = r->rounds - r->rounds_void;

	return valid && r->wall_ns >= budget_ns ? valid - 1 : valid;
}

/* How late a run may end after its budget.  An emulated guest is slow to kill
 * what is left, and its budget does not count the time that it stood still. */
static int64_t slack_ns(const struct attempt *a, const struct mmr_run_result *r)
{
	struct mmr_guest_stats st;

	if (!a->job->run.guest)
		return STUCK_NS;
	mmr_guest_get_stats(a->job->run.guest, &st);
	if (st.scale < MMR_SCALE_EMULATED)
		return STUCK_NS;
	return (int64_t)((double)STUCK_NS * st.scale) + r->pause_ns;
}

/* A run without a hit.  True: go on with the next one. */
static bool count_quiet(struct attempt *a, const struct mmr_run_result *r,
			int64_t budget_ns, bool shortened)
{
	struct mmr_suite_case *t = a->t;
	uint64_t whole = whole_rounds(r, budget_ns);
	bool over = r->wall_ns >= budget_ns;

	t->rounds += whole + r->rounds_void;
	if (over && r->wall_ns >= budget_ns + slack_ns(a, r))
		a->stuck = true;
	/* A run that was cut is no sample of runs; its rounds still count. */
	if (mmr_engine_interrupted() || (shortened && over)) {
		a->cut = true;
		return false;
	}
	if (r->verdict == MMR_VOID || !whole) {
		t->voids++;
		if (!a->why_void[0])
			snprintf(a->why_void, sizeof(a->why_void), "%s",
				 r->verdict == MMR_VOID
					 ? r->text
					 : "no round came to its end within "
					   "the budget");
		return t->voids <= VOID_RUNS;
	}
	t->runs++;
	/* What cannot be killed is still there: not once more on top. */
	return !r->quarantined;
}

/* Counts a run.  True: go on with the next one. */
static bool count(struct attempt *a, const struct mmr_run_result *r,
		  int64_t budget_ns, bool shortened)
{
	struct mmr_suite_case *t = a->t;

	t->verdict = r->verdict;
	if (r->verdict == MMR_SKIPPED) {
		say(t, MMR_SUITE_SKIP, "%s", r->text);
		return false;
	}
	if (r->verdict == MMR_TOOL_FAILED) {
		say(t, MMR_SUITE_ERROR, "%s", r->text);
		return false;
	}
	if (r->verdict == MMR_KNOWN) {
		say(t, MMR_SUITE_KNOWN, "%s", r->text);
		snprintf(t->signature, sizeof(t->signature), "%s",
			 r->signature);
	}
	t->rounds_void += r->rounds_void;
	t->calls += r->calls;
	t->wall_ns += r->wall_ns;
	t->quarantined = r->quarantined;
	a->run_ns = r->wall_ns;
	if (r->verdict == MMR_KNOWN)
		return false;
	if (!mmr_verdict_is_hit(r->verdict))
		return count_quiet(a, r, budget_ns, shortened);
	t->rounds += r->rounds;
	t->runs++;
	t->hits++;
	on_hit(a, r);
	return false;
}

/* What can be said without a hit. */
static void conclude(struct attempt *a)
{
	struct mmr_suite_case *t = a->t;
	const char *over =
		mmr_engine_interrupted() ? "interrupted" : "the time was over";

	if (a->stuck)
		say(t, MMR_SUITE_INCONCLUSIVE,
		    "its last round did not end when its time was over");
	else if (t->want_runs && t->runs < t->want_runs &&
		 (a->cut || mmr_engine_interrupted()))
		say(t, MMR_SUITE_INCONCLUSIVE,
		    "%s after %llu of the %llu runs that it wants", over,
		    (unsigned long long)t->runs,
		    (unsigned long long)t->want_runs);
	else if (t->rounds == t->rounds_void)
		say(t, MMR_SUITE_INCONCLUSIVE, "%s",
		    a->why_void[0] ? a->why_void : over);
	else if (t->want_runs && t->runs < t->want_runs)
		say(t, MMR_SUITE_INCONCLUSIVE,
		    "only %llu of the %llu runs that it wants counted: %s",
		    (unsigned long long)t->runs,
		    (unsigned long long)t->want_runs,
		    a->why_void[0] ? a->why_void
				   : "tasks were left that cannot be killed");
	else
		t->outcome = MMR_SUITE_PASS;
}

/* Time for the next run, ns; 0: no further run. */
static int64_t next_budget(struct attempt *a, uint64_t i, bool *shortened)
{
	const struct mmr_suite_opts *o = a->job->work->o;
	struct mmr_suite_case *t = a->t;
	int64_t budget = t->c->budget_ns ? t->c->budget_ns : ENDLESS_NS;
	int64_t spent = mmr_clock_monotonic() - t->start_ns;
	int64_t left = a->limit_ns - spent;

	*shortened = false;
	if (mmr_engine_interrupted())
		return 0;
	if (t->want_runs && t->runs >= t->want_runs)
		return 0;
	if (!t->want_runs && i) {
		/* More runs only as long as its time lasts. */
		if (spent >= o->case_ns)
			return 0;
		if (left > o->case_ns - spent)
			left = o->case_ns - spent;
	}
	/* Only the first run is cut: the end of a run says something. */
	if (i ? left < a->run_ns : left < LEAST_NS) {
		a->cut = a->cut || t->want_runs || !i;
		return 0;
	}
	if (left < budget) {
		*shortened = true;
		budget = left;
	}
	return budget;
}

static void run_case(const struct job *job, struct mmr_suite_case *t,
		     int64_t limit_ns)
{
	struct attempt a = {.t = t, .job = job, .limit_ns = limit_ns};
	struct mmr_run_result r;
	uint64_t i;
	bool more = true, shortened;
	int rc;

	t->start_ns = mmr_clock_monotonic();
	t->outcome = MMR_SUITE_PASS;
	for (i = 0; more; i++) {
		struct mmr_run_opts o = job->run;

		o.budget_ns = next_budget(&a, i, &shortened);
		if (!o.budget_ns)
			break;
		o.seed = t->seed;
		o.first_round += i * (uint64_t)t->c->rounds;
		memset(&r, 0, sizeof(r));
		rc = mmr_run(t->c, &o, &r);
		if (rc)
			say(t, MMR_SUITE_ERROR, "%s", strerror(-rc));
		more = !rc && count(&a, &r, o.budget_ns, shortened);
		mmr_run_result_free(&r);
	}
	if (t->outcome == MMR_SUITE_PASS)
		conclude(&a);
}

/* -- jobs --------------------------------------------------------------- */

/* A case for this job, under the lock; NULL: none is left for it now. */
static struct mmr_suite_case *pick(struct work *w, const struct job *job)
{
	int i;

	/* One job alone keeps to the order of the list. */
	for (i = 0; i < w->s->n; i++)
		if (!w->taken[i] && (w->njobs == 1 || !w->s->cases[i].alone))
			return &w->s->cases[i];
	/* Those that want the machine for themselves: job 0, when all is
	 * quiet. */
	for (i = 0; job->number == 0 && !w->nrunning && i < w->s->n; i++)
		if (!w->taken[i])
			return &w->s->cases[i];
	return NULL;
}

/* The part of what is left that a case may have, under the lock. */
static int64_t share(const struct work *w, const struct mmr_suite_case *t)
{
	int64_t left = w->deadline_ns - mmr_clock_monotonic();
	int64_t part;
	int beside = t->alone ? 1 : w->njobs;

	if (!w->deadline_ns)
		return INT64_MAX;
	if (left <= 0)
		return 0;
	if (beside > w->nwaiting + 1)
		beside = w->nwaiting + 1;
	/* As if the others took all of theirs; what they leave is shared. */
	part = left / (w->nwaiting + 1) * beside;
	if (part < LEAST_NS)
		part = LEAST_NS;
	return part < left ? part : left;
}

static void report(struct work *w)
{
	struct mmr_suite *s = w->s;

	while (w->reported < s->n && s->cases[w->reported].done) {
		struct mmr_suite_case *t = &s->cases[w->reported++];

		if (w->o->result)
			w->o->result(w->o->arg, s, t);
	}
}

static void *job_main(void *arg)
{
	struct job *job = arg;
	struct work *w = job->work;
	struct mmr_suite_case *t;
	int64_t limit;

	pthread_mutex_lock(&w->lock);
	while (w->nwaiting || w->nrunning) {
		t = pick(w, job);
		if (!t) {
			pthread_cond_wait(&w->changed, &w->lock);
			continue;
		}
		w->taken[t - w->s->cases] = true;
		w->nwaiting--;
		w->nrunning++;
		job->now = t;
		limit = share(w, t);
		pthread_mutex_unlock(&w->lock);
		run_case(job, t, limit);
		pthread_mutex_lock(&w->lock);
		job->now = NULL;
		t->done = true;
		w->nrunning--;
		w->s->count[t->outcome]++;
		report(w);
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void show(struct work *w)
{
	char text[200] = "";
	size_t len = 0;
	int i;

	for (i = 0; i < w->njobs; i++) {
		const struct mmr_suite_case *t = w->jobs[i].now;

		if (t && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s%s", len ? ", " : "",
						t->name);
	}
	w->o->progress(w->o->arg, w->s, text);
}

/* Waits for the end with the caller's thread, which shows how it goes on. */
static void wait_all(struct work *w)
{
	struct timespec t;

	pthread_mutex_lock(&w->lock);
	while (w->nwaiting || w->nrunning) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += TICK_NS;
		if (t.tv_nsec >= SECOND) {
			t.tv_nsec -= SECOND;
			t.tv_sec++;
		}
		pthread_cond_timedwait(&w->changed, &w->lock, &t);
		if (w->o->progress)
			show(w);
	}
	pthread_mutex_unlock(&w->lock);
}

static int start_jobs(struct work *w)
{
	int started, rc = 0, i;

	for (started = 0; started < w->njobs; started++) {
		struct job *job = &w->jobs[started];

		job->work = w;
		job->number = started;
		job->run = w->o->run;
		mmr_cpus_share(&job->run, started, w->njobs);
		rc = -pthread_create(&job->thread, NULL, job_main, job);
		if (rc)
			break;
	}
	/* Fewer jobs do as well, as long as there is the first. */
	pthread_mutex_lock(&w->lock);
	w->njobs = started;
	pthread_mutex_unlock(&w->lock);
	if (!started)
		return rc;
	wait_all(w);
	for (i = 0; i < started; i++)
		pthread_join(w->jobs[i].thread, NULL);
	return 0;
}

static void note_start(struct mmr_suite *s)
{
	time_t now = time(NULL);
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(s->start, sizeof(s->start), "%Y-%m-%dT%H:%M:%S", &tm);
}

int mmr_suite_run(struct mmr_suite *s, const struct mmr_suite_opts *o)
{
	int64_t start = mmr_clock_monotonic();
	struct work *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int rc = -ENOMEM;

	if (!w)
		return rc;
	w->taken = calloc((size_t)s->n, sizeof(*w->taken));
	if (!w->taken)
		goto out;
	note_start(s);
	w->s = s;
	w->o = o;
	w->nwaiting = s->n;
	w->njobs = o->jobs < 1 ? 1 : o->jobs;
	if (w->njobs > MMR_SUITE_JOBS)
		w->njobs = MMR_SUITE_JOBS;
	if (o->time_ns)
		w->deadline_ns = start + o->time_ns;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	rc = start_jobs(w);
	pthread_cond_destroy(&w->changed);
	pthread_condattr_destroy(&attr);
	pthread_mutex_destroy(&w->lock);
	s->wall_ns = mmr_clock_monotonic() - start;
out:
	free(w->taken);
	free(w);
	return rc;
}

void mmr_suite_release(struct mmr_suite *s)
{
	int i;

	for (i = 0; i < s->n; i++) {
		free(s->cases[i].log);
		s->cases[i].log = NULL;
	}
}
