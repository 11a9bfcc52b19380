// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace min: the same failure from as little as possible. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/replay.h"
#include "opts.h"

#define BUDGET_NS 600000000000LL

struct own {
	int64_t budget_ns;
	int jobs;
	const char *signature;
};

static int set_jobs(void *own, const char *value)
{
	return mmr_opts_jobs(value, &((struct own *)own)->jobs);
}

static int set_signature(void *own, const char *value)
{
	((struct own *)own)->signature = value;
	return 0;
}

static int set_budget(void *own, const char *value)
{
	struct own *o = own;

	if (!mmr_opts_time(value, &o->budget_ns) && o->budget_ns > 0)
		return 0;
	mmr_opts_error("--budget %s: wants a time, such as 90s or 10m", value);
	return -EINVAL;
}

static const struct mmr_opt own_opts[] = {
	{"budget", "T", "wall time for all of it (default 10m)", set_budget},
	{"jobs", "N",
	 "runs at the same time (default 1); with --guest as many "
	 "guests",
	 set_jobs},
	{"signature", "TEXT",
	 "the failure that counts (default: the most "
	 "frequent one)",
	 set_signature},
	{0},
};

static const struct mmr_command command = {
	.name = "min",
	.synopsis = "CASE | --seed N [--budget T] [-o FILE] ...",
	.about =
		"Takes away from a case what its failure does not need: "
		"processes, threads, epochs,\nstatements, loops, then flags, "
		"placement, sizes, times, threads, and rounds.  Failures\nof "
		"chance are met by repeated runs and sequential tests against "
		"the rate that the\ncase had at first; only the same failure "
		"counts.  How often a case fails that should\nnot is measured "
		"too, and what fails less than five times as often is "
		"refused.\n\n"
		"The best so far is in FILE (default: CASE with .min.case) "
		"after every step, why each\nstep was taken in FILE.log and on "
		"standard error.  It can be stopped at any time, also\nby kill "
		"-9: the same command goes on from FILE.state.  The result "
		"goes "
		"to standard\noutput with the rate of fresh runs (seen), and "
		"with --json also how it fared without\neach statement.",
	.examples = "  mmrace min x.case                       to x.min.case, "
		    "in at most 10 minutes\n"
		    "  mmrace min x.case --budget 1h -o small.case\n"
		    "  mmrace min x.case --guest debian:6.1 --jobs 4   in four "
		    "guests side by side\n",
	.groups = MMR_OPTS_RUN | MMR_OPTS_SEED | MMR_OPTS_FILE,
	.opts = own_opts,
	.min_args = 0,
	.max_args = 1,
};

static char *default_path(const struct mmr_cmd_opts *o)
{
	char *path = NULL;
	int n;

	if (!o->nargs) {
		if (asprintf(&path, "seed-%llu.min.case",
			     (unsigned long long)o->seed) < 0)
			return NULL;
		return path;
	}
	if (!strcmp(o->args[0], "-"))
		return strdup("stdin.min.case");
	n = (int)strlen(o->args[0]);
	if (n > 5 && !strcmp(o->args[0] + n - 5, ".case"))
		n -= 5;
	if (asprintf(&path, "%.*s.min.case", n, o->args[0]) < 0)
		return NULL;
	return path;
}

static json_t *without_json(const struct mmr_min_result *r)
{
	json_t *j = json_array();
	int i;

	for (i = 0; i < r->nwithout; i++)
		json_array_append_new(
			j, json_pack("{s:s,s:I,s:I}", "statement",
				     r->without[i].stmt, "runs",
				     (json_int_t)r->without[i].runs, "hits",
				     (json_int_t)r->without[i].hits));
	return j;
}

static void print_json(const struct mmr_min_result *r, const char *path,
		       const char *text)
{
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = {
		{"statements_before", (uint64_t)r->stmts_before},
		{"statements_after", (uint64_t)r->stmts_after},
		{"runs", r->runs},
		{"hits", r->hits},
		{"void_runs", r->voids},
		{"reference_runs", r->ref_runs},
		{"reference_hits", r->ref_hits},
		{"reference_other_hits", r->ref_others},
		{"null_runs", r->null_runs},
		{"null_hits", r->null_hits},
		{"final_runs", r->final_runs},
		{"final_hits", r->final_hits},
		{"final_void_runs", r->final_voids},
	};
	json_t *j = json_object();
	double lo, hi;

	json_object_set_new(j, "reproduced", json_boolean(r->reproduced));
	json_object_set_new(j, "verdict",
			    json_string(mmr_verdict_name(r->verdict)));
	json_object_set_new(j, r->reproduced ? "text" : "reason",
			    json_string(r->text));
	json_object_set_new(j, "signature", json_string(r->signature));
	json_object_set_new(j, "complete", json_boolean(r->complete));
	json_object_set_new(j, "faded", json_boolean(r->faded));
	json_object_set_new(j, "continued", json_boolean(r->continued));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(j, numbers[i].key,
				    json_integer((json_int_t)numbers[i].v));
	mmr_min_interval(r, &lo, &hi);
	json_object_set_new(j, "final_lo95", json_real(lo));
	json_object_set_new(j, "final_hi95", json_real(hi));
	json_object_set_new(
		j, "final_spread",
		json_real(mmr_stat_spread_factor(&r->final_spread)));
	json_object_set_new(
		j, "final_per_second",
		r->final_s > 0 ? json_real((double)r->final_hits / r->final_s)
			       : json_null());
	json_object_set_new(j, "without", without_json(r));
	json_object_set_new(j, "steps",
			    r->steps ? json_incref(r->steps) : json_array());
	json_object_set_new(j, "file", text ? json_string(path) : json_null());
	json_object_set_new(j, "case", text ? json_string(text) : json_null());
	mmr_opts_print_json(j);
}

static int report(const struct mmr_cmd_opts *o, const struct mmr_min_result *r,
		  const char *path)
{
	char *text = r->best ? mmr_case_print(r->best) : NULL;

	if (o->json)
		print_json(r, path, text);
	else if (text)
		fputs(text, stdout);
	else if (r->text[0])
		fprintf(stderr, "%s%s\n",
			r->verdict == MMR_SKIPPED ? "skipped: " : "", r->text);
	if (text && !o->quiet)
		fprintf(stderr,
			"min: %d of %d statements left, %llu of %llu fresh "
			"runs fail; %llu runs in all; in %s%s\n",
			r->stmts_after, r->stmts_before,
			(unsigned long long)r->final_hits,
			(unsigned long long)r->final_runs,
			(unsigned long long)r->runs, path,
			r->complete ? ""
			: r->faded  ? "; its rate fell below five times that "
				      "of false alarms: nothing more was taken "
				      "away"
				    : "; the time was over: the same command "
				      "goes on from there");
	free(text);
	if (r->best)
		return MMR_EXIT_FOUND;
	if (mmr_verdict_is_hit(r->verdict))
		return MMR_EXIT_NOTHING; /* refused: the text says why */
	return mmr_opts_verdict_exit(r->verdict);
}

static int minimise(const struct mmr_cmd_opts *o, const struct own *own,
		    const struct mmr_case *c)
{
	struct mmr_min_opts mo = {.run = o->run,
				  .jobs = own->jobs,
				  .budget_ns = own->budget_ns,
				  .want_signature = own->signature,
				  .log = o->quiet ? NULL : stderr};
	struct mmr_min_result r = {0};
	char *path = o->out ? strdup(o->out) : default_path(o);
	int rc;

	if (!path) {
		mmr_opts_error("out of memory");
		return MMR_EXIT_FAILED;
	}
	mo.best_path = path;
	rc = mmr_minimise(c, &mo, &r);
	if (rc) {
		mmr_opts_error("%s: %s", r.text[0] ? r.text : path,
			       strerror(-rc));
		rc = MMR_EXIT_FAILED;
	} else {
		rc = report(o, &r, path);
	}
	mmr_min_result_free(&r);
	free(path);
	return rc;
}

int mmr_cmd_min(int argc, char **argv)
{
	struct own own = {.budget_ns = BUDGET_NS, .jobs = 1};
	struct mmr_cmd_opts o;
	struct mmr_case *c = NULL;
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return rc;
	rc = mmr_opts_case(&o, o.nargs ? o.args[0] : NULL, &c);
	o.guest.count = own.jobs;
	if (!rc)
		rc = mmr_opts_engine_start(&o);
	if (!rc) {
		rc = minimise(&o, &own, c);
		mmr_opts_engine_stop();
	}
	mmr_case_free(c);
	return rc;
}
