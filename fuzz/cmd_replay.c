// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace replay: does it fail, how often, and how long does that take? */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/evidence.h"
#include "../triage/finding.h"
#include "../triage/replay.h"
#include "measure.h"
#include "opts.h"

#define OUT_DIR "mmrace-out"
#define BISECT_SKIP 125	 /* what git bisect run takes for "cannot tell" */
#define BISECT_ABORT 128 /* above 127 it stops the bisection */

struct own {
	bool bisect;
};

static int set_bisect(void *own, const char *value)
{
	(void)value;
	((struct own *)own)->bisect = true;
	return 0;
}

static const struct mmr_opt own_opts[] = {
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
		"its first hit.  Without --runs and --time\nthere is one run.  "
		"With them the rate comes with its exact 95 % interval, the\n"
		"expected time to a failure and the runs that show one in 95 "
		"of 100 times.\nThe first hit is stored as a finding below "
		"--out (default " OUT_DIR ").",
	.examples =
		"  mmrace replay corpus/seeds/s1-base.case    one run, with "
		"measurements\n"
		"  mmrace replay x.case --runs 100            its rate\n"
		"  mmrace replay x.case --time 10m --json     the same, for a "
		"program\n"
		"  git bisect run mmrace replay x.case --runs 20 --bisect\n",
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

/* What the numbers amount to; -1 where nothing is known. */
struct rates {
	double per_run, per_round, per_s, expected_s;
	uint64_t runs95;
};

static void get_rates(const struct mmr_replay_result *r, struct rates *x)
{
	double hits = (double)r->hits, wall = (double)r->wall_ns / 1e9;

	x->per_run = r->runs ? hits / (double)r->runs : -1;
	x->per_round = r->rounds ? hits / (double)r->rounds : -1;
	x->per_s = wall > 0 ? hits / wall : -1;
	x->expected_s = r->hits ? wall / hits : -1;
	x->runs95 = r->hits ? mmr_stat_runs(x->per_run, 0.05) : 0;
}

static void print_rate(const struct mmr_replay_result *r)
{
	struct rates x;
	char buf[24];

	get_rates(r, &x);
	printf("rate     %llu/%llu runs", (unsigned long long)r->hits,
	       (unsigned long long)r->runs);
	if (r->runs)
		printf(" = %.3g (95 %%: %.3g to %.3g)", x.per_run, r->lo,
		       r->hi);
	if (r->other_hits)
		printf("; %llu with another signature",
		       (unsigned long long)r->other_hits);
	putchar('\n');
	if (!r->hits)
		return;
	fputs("        ", stdout);
	if (x.per_round >= 0)
		printf(" %.3g a round,", x.per_round);
	printf(" %.3g a second; a failure every %s", x.per_s,
	       mmr_measure_time(buf, sizeof(buf), x.expected_s * 1e9));
	if (r->runs > 1)
		printf(", %llu runs show one with 95 %%",
		       (unsigned long long)x.runs95);
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
	print_rate(r);
	if (last->quarantined)
		printf("left     %d tasks that could not be killed%s\n",
		       last->quarantined,
		       last->guest.kernel[0]
			       ? ""
			       : ": not run again on this machine; give "
				 "--guest KERNEL");
	mmr_measure_text(stdout, c, last);
}

static json_t *real_or_null(double v)
{
	return v < 0 ? json_null() : json_real(v);
}

static json_t *rate_json(const struct mmr_replay_result *r)
{
	json_t *j = json_object();
	struct rates x;

	get_rates(r, &x);
	json_object_set_new(j, "per_run", real_or_null(x.per_run));
	json_object_set_new(j, "lo95", json_real(r->lo));
	json_object_set_new(j, "hi95", json_real(r->hi));
	json_object_set_new(j, "per_round", real_or_null(x.per_round));
	json_object_set_new(j, "per_second", real_or_null(x.per_s));
	json_object_set_new(j, "expected_s", real_or_null(x.expected_s));
	json_object_set_new(j, "runs_for_95",
			    r->hits ? json_integer((json_int_t)x.runs95)
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
			{"rounds", r->rounds},
			{"void_rounds", r->rounds_void},
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
	if (rc)
		mmr_opts_error("the finding cannot be stored in %s: %s", dir,
			       strerror(-rc));
	return rc;
}

static int bisect_code(int code, enum mmr_verdict v)
{
	if (v == MMR_VOID || code == MMR_EXIT_NEEDS)
		return BISECT_SKIP;
	if (code == MMR_EXIT_NOTHING || code == MMR_EXIT_FOUND)
		return code;
	return BISECT_ABORT + code;
}

static int replay(const struct mmr_cmd_opts *o, const struct mmr_case *c,
		  enum mmr_verdict *verdict)
{
	struct mmr_replay_opts ro = {.run = o->run,
				     .max_runs = o->runs,
				     .time_ns = o->time_ns,
				     .progress = show_progress};
	struct mmr_replay_result r;
	struct mmr_progress progress;
	char path[4096] = "";
	int rc, code;

	mmr_progress_init(&progress, o->quiet);
	ro.arg = &progress;
	rc = mmr_replay(c, &ro, &r);
	mmr_progress_end(&progress);
	if (rc) {
		mmr_opts_error("the run failed: %s", strerror(-rc));
		mmr_run_result_free(&r.last);
		return MMR_EXIT_FAILED;
	}
	*verdict = r.last.verdict;
	code = mmr_opts_verdict_exit(r.last.verdict);
	/* Reproduced is reproduced, also when the disk is full: save() has
	 * said what could not be kept. */
	(void)!save(o, c, &r, path, sizeof(path));
	if (o->json)
		print_json(c, &r, path);
	else if (code == MMR_EXIT_NEEDS)
		fprintf(stderr, "skipped: %s\n", r.last.text);
	else
		print_text(c, &r, path);
	if (code == MMR_EXIT_FAILED && r.last.verdict == MMR_TOOL_FAILED)
		mmr_opts_error("%s", r.last.text);
	mmr_run_result_free(&r.last);
	return code;
}

int mmr_cmd_replay(int argc, char **argv)
{
	enum mmr_verdict verdict = MMR_NOTHING;
	struct mmr_cmd_opts o;
	struct own own = {0};
	struct mmr_case *c = NULL;
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return own.bisect && rc ? BISECT_ABORT + rc : rc;
	rc = mmr_opts_case(&o, o.nargs ? o.args[0] : NULL, &c);
	mmr_evidence_spool(o.out ? o.out : OUT_DIR);
	if (!rc)
		rc = mmr_opts_engine_start(&o);
	if (!rc) {
		rc = replay(&o, c, &verdict);
		mmr_opts_engine_stop();
	}
	mmr_case_free(c);
	return own.bisect ? bisect_code(rc, verdict) : rc;
}
