// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace replay: does it fail, how often, and how long does that take? */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/evidence.h"
#include "../triage/finding.h"
#include "../triage/record.h"
#include "../triage/replay.h"
#include "measure.h"
#include "opts.h"

#define OUT_DIR "mmrace-out"
#define BISECT_SKIP 125	 /* what git bisect run takes for "cannot tell" */
#define BISECT_ABORT 128 /* above 127 it stops the bisection */

/* Without a seen line and --runs: shows 14 % and more with 95 %. */
#define BISECT_RUNS 20
#define BISECT_WRONG 0.01 /* of each answer, as a bisection has many */

struct own {
	bool bisect;
	int jobs;
	double precision;
	const char *signature, *record;
};

MMR_OPT_FLAG(set_bisect, struct own, bisect);

static int set_jobs(void *own, const char *value)
{
	return mmr_opts_jobs(value, &((struct own *)own)->jobs);
}

static int set_precision(void *own, const char *value)
{
	struct own *o = own;
	char *end;

	o->precision = strtod(value, &end);
	if (end != value && !*end && o->precision > 0 && o->precision < 1)
		return 0;
	mmr_opts_error("--precision %s: wants a width of the interval between "
		       "0 and 1, such as 0.1",
		       value);
	return -EINVAL;
}

static int set_signature(void *own, const char *value)
{
	((struct own *)own)->signature = value;
	return 0;
}

static int set_record(void *own, const char *value)
{
	((struct own *)own)->record = value;
	return 0;
}

static const struct mmr_opt own_opts[] = {
	{"precision", "X",
	 "end when the 95 % interval is no wider than X (0.1)", set_precision},
	{"jobs", "N",
	 "runs at the same time (default 1); with --guest as many guests",
	 set_jobs},
	{"signature", "TEXT", "the failure that counts (default: the first)",
	 set_signature},
	{"record", "FILE", "what each run measured, for mmrace compare",
	 set_record},
	{"bisect", NULL,
	 "exit codes for git bisect run: 0 good, 1 bad, 125 skip", set_bisect},
	{0},
};

static const struct mmr_command command = {
	.name = "replay",
	.synopsis = "CASE | --seed N [--runs N] [--time T] [--bisect] ...",
	.about =
		"Runs a case and says whether it fails and how often.  A run "
		"is one execution of\nthe case with all its rounds, stopped at "
		"its first hit.  Without --runs, --time and\n--precision there "
		"is one run.  With them the rate a run, a round and a second "
		"comes\nwith its exact 95 % interval, the expected time to a "
		"failure and the runs that show\none in 95 of 100 times.  "
		"Failures with another signature, void runs and those "
		"in\nwhich "
		"mmrace itself failed are counted apart.  No hit in fewer runs "
		"than the seen line\nof the case demands is no answer: "
		"inconclusive.\n\n"
		"--bisect ends at the first hit, and makes as many runs as the "
		"seen line demands for\nan error of 1 % (20 without one); too "
		"few runs are 125, which git bisect skips.\n"
		"The first hit is stored as a finding below --out "
		"(default " OUT_DIR ").",
	.examples =
		"  mmrace replay corpus/seeds/s1-base.case    one run, with "
		"measurements\n"
		"  mmrace replay x.case --runs 100            its rate\n"
		"  mmrace replay x.case --precision 0.1       until it is "
		"known "
		"to +-5 %\n"
		"  mmrace replay x.case --time 10m --json     the same, for a "
		"program\n"
		"  git bisect run mmrace replay x.case --bisect\n",
	.groups = MMR_OPTS_RUN | MMR_OPTS_SEED | MMR_OPTS_RUNS | MMR_OPTS_TIME |
		  MMR_OPTS_OUT,
	.opts = own_opts,
	.min_args = 0,
	.max_args = 1,
};

static void show_progress(void *arg, uint64_t runs, uint64_t hits)
{
	struct mmr_progress *p = arg;

	if (runs && mmr_progress_due(p))
		mmr_progress_show(p, "%llu runs, %llu hits",
				  (unsigned long long)runs,
				  (unsigned long long)hits);
}

static void print_ci(const char *what, const struct mmr_rate_ci *ci)
{
	printf("         %.3g %s (95 %%: %.3g to %.3g)\n", ci->rate, what,
	       ci->lo, ci->hi);
}

static void print_expected(const struct mmr_replay_result *r,
			   const struct mmr_replay_rates *x)
{
	char mean[24], lo[24], hi[24];

	printf("expect   a failure every %s (95 %%: %s to %s)",
	       mmr_measure_time(mean, sizeof(mean), x->expected_s.rate * 1e9),
	       mmr_measure_time(lo, sizeof(lo), x->expected_s.lo * 1e9),
	       mmr_measure_time(hi, sizeof(hi), x->expected_s.hi * 1e9));
	if (r->runs > 1)
		printf("; %llu runs show one with 95 %%",
		       (unsigned long long)x->runs95);
	putchar('\n');
}

/*
 * What rounds without a hit say against a window: only those do in which every
 * start came at its time.  How many, and below what the rate of a hit is then,
 * with 95 %; -1: nothing is known.
 */
static uint64_t against(const struct mmr_replay_result *r, double *below)
{
	uint64_t lost = r->rounds_void + r->rounds_late, n;

	n = r->rounds > lost ? r->rounds - lost : 0;
	*below = n && !r->hits && !r->other_hits ? 1 - pow(0.05, 1 / (double)n)
						 : -1;
	return n;
}

static void print_late(const struct mmr_replay_result *r)
{
	double below;
	uint64_t n = against(r, &below);

	if (!r->rounds_late)
		return;
	printf("late     %llu rounds had a start that came late and say "
	       "nothing against a window",
	       (unsigned long long)r->rounds_late);
	if (below >= 0)
		printf("; the %llu others: below %.2g a round (95 %%)",
		       (unsigned long long)n, below);
	putchar('\n');
}

static void print_rate(const struct mmr_replay_result *r)
{
	struct mmr_replay_rates x;

	mmr_replay_get_rates(r, &x);
	printf("rate     %llu/%llu runs", (unsigned long long)r->hits,
	       (unsigned long long)r->runs);
	if (r->runs)
		printf(" = %.3g (95 %%: %.3g to %.3g)", x.run.rate, x.run.lo,
		       x.run.hi);
	if (r->other_hits)
		printf("; %llu with another signature",
		       (unsigned long long)r->other_hits);
	putchar('\n');
	if (mmr_stat_spread_factor(&r->spread) > MMR_STAT_MOVED)
		printf("         it moves by more than chance (%.1f times): "
		       "the intervals are as wide as that demands\n",
		       mmr_stat_spread_factor(&r->spread));
	if (!r->hits)
		return;
	if (x.round.rate >= 0)
		print_ci("a round", &x.round);
	print_ci("a second", &x.second);
	print_expected(r, &x);
}

/* Too few runs for a no: how many would do. */
static void print_answer(const struct mmr_replay_result *r)
{
	printf("answer   %s", mmr_answer_name(r->answer));
	if (r->answer == MMR_INCONCLUSIVE && !r->runs)
		printf(": no run said anything");
	else if (r->answer == MMR_INCONCLUSIVE && r->demanded > r->runs)
		printf(": no hit in %llu runs, and what was seen before "
		       "demands %llu",
		       (unsigned long long)r->runs,
		       (unsigned long long)r->demanded);
	else if (r->answer == MMR_INCONCLUSIVE)
		printf(": the precision was not reached");
	putchar('\n');
}

static void print_text(const struct mmr_case *c,
		       const struct mmr_replay_result *r, const char *path)
{
	const struct mmr_run_result *last = &r->last;
	char buf[24];

	printf("verdict  %s\n", mmr_verdict_name(last->verdict));
	if (last->text[0])
		printf("text     %s\n", last->text);
	if (last->verdict == MMR_SKIPPED || last->verdict == MMR_TOOL_FAILED)
		return;
	if (last->signature[0])
		printf("sign     %s\n", last->signature);
	if (path[0])
		printf("finding  %s\n", path);
	printf("rounds   %llu",
	       (unsigned long long)(r->rounds - r->rounds_void));
	if (r->rounds_void)
		printf(", %llu more were void",
		       (unsigned long long)r->rounds_void);
	if (r->voids)
		printf("; %llu runs were void as a whole",
		       (unsigned long long)r->voids);
	printf("; %s%llu operations in %s\n",
	       r->runs + r->voids < 2		   ? ""
	       : mmr_verdict_is_hit(last->verdict) ? "in the run of the first "
						     "hit "
						   : "in the last run ",
	       (unsigned long long)last->ops,
	       mmr_measure_time(buf, sizeof(buf), (double)last->wall_ns));
	if (r->tool_failures)
		printf("failed   %llu runs by mmrace itself, not counted\n",
		       (unsigned long long)r->tool_failures);
	print_rate(r);
	print_late(r);
	print_answer(r);
	if (last->quarantined)
		printf("left     %d tasks that could not be killed%s\n",
		       last->quarantined,
		       last->guest.kernel[0]
			       ? ""
			       : ": not run again on this machine; give "
				 "--guest KERNEL");
	mmr_measure_text(stdout, c, last);
}

static void set_ci(json_t *j, const char *key, const char *lo, const char *hi,
		   const struct mmr_rate_ci *ci)
{
	bool known = ci->rate >= 0;

	json_object_set_new(j, key, known ? json_real(ci->rate) : json_null());
	json_object_set_new(j, lo, json_real(ci->lo));
	json_object_set_new(j, hi,
			    isfinite(ci->hi) ? json_real(ci->hi) : json_null());
}

static json_t *rate_json(const struct mmr_replay_result *r)
{
	json_t *j = json_object();
	struct mmr_replay_rates x;
	double below;

	mmr_replay_get_rates(r, &x);
	set_ci(j, "per_run", "lo95", "hi95", &x.run);
	set_ci(j, "per_round", "per_round_lo95", "per_round_hi95", &x.round);
	set_ci(j, "per_second", "per_second_lo95", "per_second_hi95",
	       &x.second);
	set_ci(j, "expected_s", "expected_s_lo95", "expected_s_hi95",
	       &x.expected_s);
	json_object_set_new(j, "spread",
			    json_real(mmr_stat_spread_factor(&r->spread)));
	against(r, &below);
	json_object_set_new(j, "per_round_below95",
			    below < 0 ? json_null() : json_real(below));
	json_object_set_new(j, "runs_for_95",
			    x.runs95 ? json_integer((json_int_t)x.runs95)
				     : json_null());
	return j;
}

static void print_json(const struct mmr_case *c,
		       const struct mmr_replay_result *r, const char *path)
{
	const struct mmr_run_result *last = &r->last;
	bool none = last->verdict == MMR_SKIPPED ||
		    last->verdict == MMR_TOOL_FAILED;
	json_t *j = json_object();

	json_object_set_new(j, "verdict",
			    json_string(mmr_verdict_name(last->verdict)));
	json_object_set_new(j, "answer",
			    json_string(mmr_answer_name(r->answer)));
	json_object_set_new(j, none ? "reason" : "text",
			    json_string(last->text));
	if (!none) {
		const struct {
			const char *key;
			uint64_t v;
		} numbers[] = {
			{"runs", r->runs},
			{"hits", r->hits},
			{"other_hits", r->other_hits},
			{"void_runs", r->voids},
			{"failed_runs", r->tool_failures},
			{"runs_demanded", r->demanded},
			{"rounds", r->rounds},
			{"void_rounds", r->rounds_void},
			{"late_rounds", r->rounds_late},
			{"pages_compared", r->compared},
			{"wall_ns", (uint64_t)r->wall_ns},
			{"ops", last->ops},
			{"calls", last->calls},
			{"pause_ns", (uint64_t)last->pause_ns},
			{"left_behind", (uint64_t)last->quarantined},
		};

		json_object_set_new(j, "signature",
				    json_string(last->signature));
		json_object_set_new(j, "finding",
				    path[0] ? json_string(path) : json_null());
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]);
		     i++)
			json_object_set_new(
				j, numbers[i].key,
				json_integer((json_int_t)numbers[i].v));
		json_object_set_new(j, "rate", rate_json(r));
		json_object_set_new(j, "statements",
				    mmr_measure_stmts_json(c, last));
		json_object_set_new(j, "exits", mmr_measure_exits_json(last));
	}
	mmr_opts_print_json(j);
}

static int save(const struct mmr_cmd_opts *o, const struct mmr_case *c,
		const struct mmr_replay_result *r, char *path, size_t n)
{
	struct mmr_rate rate = {r->hits, r->runs, r->rounds, r->wall_ns};
	const char *dir = o->out ? o->out : OUT_DIR;
	int rc;

	path[0] = '\0';
	if (!mmr_verdict_is_hit(r->last.verdict))
		return 0;
	rc = mmr_finding_save(dir, c, NULL, &r->last,
			      r->runs > 1 ? &rate : NULL, path, n);
	if (rc) {
		mmr_opts_error("the finding cannot be stored in %s: %s; what "
			       "would have been its report.md:",
			       dir, strerror(-rc));
		fputc('\n', stderr);
		mmr_finding_print(stderr, c, &r->last,
				  r->runs > 1 ? &rate : NULL);
	}
	return rc;
}

/* What `git bisect run` makes of it. */
static int bisect_code(int code, const struct mmr_replay_result *r)
{
	if (r->hits)
		return MMR_EXIT_FOUND;
	if (code == MMR_EXIT_NEEDS || r->answer == MMR_INCONCLUSIVE)
		return BISECT_SKIP;
	/* Only other failures: they may hide the one that is asked for. */
	if (code == MMR_EXIT_FOUND || r->other_hits)
		return BISECT_SKIP;
	return code == MMR_EXIT_NOTHING ? code : BISECT_ABORT + code;
}

/* As many runs as the rate demands, unless it was said. */
static void plan_bisect(const struct mmr_cmd_opts *o, const struct mmr_case *c,
			struct mmr_replay_opts *ro)
{
	uint64_t runs =
		mmr_replay_demand(c->seen_hits, c->seen_runs, BISECT_WRONG);

	ro->first_hit = true;
	if (o->runs)
		return;
	ro->max_runs = runs ? runs : BISECT_RUNS;
	if (!o->quiet)
		fprintf(stderr,
			runs ? "bisect: up to %llu runs, as %lld/%lld "
			       "demands\n"
			     : "bisect: up to %llu runs; a seen line "
			       "or --runs would say how many\n",
			(unsigned long long)ro->max_runs,
			(long long)c->seen_hits, (long long)c->seen_runs);
}

static void report(const struct mmr_cmd_opts *o, const struct mmr_case *c,
		   const struct mmr_replay_result *r, int code)
{
	char path[4096] = "";

	/* Reproduced is reproduced, also when the disk is full: save() has
	 * said what could not be kept. */
	(void)!save(o, c, r, path, sizeof(path));
	if (o->json)
		print_json(c, r, path);
	else if (code == MMR_EXIT_NEEDS)
		fprintf(stderr, "skipped: %s\n", r->last.text);
	else
		print_text(c, r, path);
	if (code == MMR_EXIT_FAILED && r->last.verdict == MMR_TOOL_FAILED)
		mmr_opts_error("%s", r->last.text);
}

/* --record: what the runs measured. */
struct recording {
	struct mmr_record *record;
	const struct mmr_case *c;
	uint64_t runs;
	int rc;
};

static void keep_run(void *arg, const struct mmr_run_result *r)
{
	struct recording *k = arg;
	int rc = mmr_record_add(k->record, k->runs++, k->c, r);

	k->rc = k->rc ? k->rc : rc;
}

static int save_recording(struct recording *k, const char *path)
{
	int rc = k->rc ? k->rc : mmr_record_save(k->record, path);

	if (rc)
		mmr_opts_error("%s: %s", path, strerror(-rc));
	mmr_record_free(k->record);
	return rc ? MMR_EXIT_FAILED : 0;
}

static int replay(const struct mmr_cmd_opts *o, const struct own *own,
		  const struct mmr_case *c)
{
	struct mmr_replay_opts ro = {.run = o->run,
				     .jobs = own->jobs,
				     .max_runs = o->runs,
				     .time_ns = o->time_ns,
				     .precision = own->precision,
				     .want_signature = own->signature,
				     .progress = show_progress};
	struct mmr_replay_result r;
	struct mmr_progress progress;
	struct recording keep = {.c = c};
	int rc, code;

	if (own->bisect)
		plan_bisect(o, c, &ro);
	mmr_progress_init(&progress, o->quiet);
	ro.arg = &progress;
	if (own->record) {
		keep.record = mmr_record_new(c->title	? c->title
					     : o->nargs ? o->args[0]
							: "a seed");
		if (!keep.record)
			return MMR_EXIT_FAILED;
		ro.ran = keep_run;
		ro.ran_arg = &keep;
	}
	rc = mmr_replay(c, &ro, &r);
	mmr_progress_end(&progress);
	if (own->record && save_recording(&keep, own->record) && !rc)
		rc = -EIO;
	if (rc) {
		mmr_opts_error("the run failed: %s", strerror(-rc));
		mmr_run_result_free(&r.last);
		return own->bisect ? BISECT_ABORT + MMR_EXIT_FAILED
				   : MMR_EXIT_FAILED;
	}
	code = mmr_opts_verdict_exit(r.last.verdict);
	/* Another failure than the one that was asked for. */
	if (own->signature && !r.hits && code == MMR_EXIT_FOUND)
		code = MMR_EXIT_NOTHING;
	report(o, c, &r, code);
	if (own->bisect)
		code = bisect_code(code, &r);
	mmr_run_result_free(&r.last);
	return code;
}

int mmr_cmd_replay(int argc, char **argv)
{
	struct mmr_cmd_opts o;
	struct own own = {.jobs = 1};
	struct mmr_case *c = NULL;
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc < 0)
		rc = mmr_opts_case(&o, o.nargs ? o.args[0] : NULL, &c);
	else
		goto out;
	o.guest.count = own.jobs;
	mmr_evidence_spool(o.out ? o.out : OUT_DIR);
	if (!rc)
		rc = mmr_opts_engine_start(&o);
	if (!rc) {
		rc = replay(&o, &own, c);
		mmr_opts_engine_stop();
		mmr_case_free(c);
		return rc;
	}
	mmr_case_free(c);
out:
	return own.bisect && rc ? BISECT_ABORT + rc : rc;
}
