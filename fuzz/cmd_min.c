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
};

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
	{0},
};

static const struct mmr_command command = {
	.name = "min",
	.synopsis = "CASE | --seed N [--budget T] [-o FILE] ...",
	.about = "Takes away from a case what its failure does not need: "
		 "processes, threads,\nstatements, loops, then numbers.  "
		 "Failures of chance are met by repeated runs, as\nmany as the "
		 "case's own rate demands, and only the same failure counts.  "
		 "The best\nso far is in FILE (default: CASE with .min.case) "
		 "after every step, so it can be\nstopped at any time.  "
		 "Standard error has a line for each step; the result goes to\n"
		 "standard output too.",
	.examples = "  mmrace min x.case                       to x.min.case, "
		    "in at most 10 minutes\n"
		    "  mmrace min x.case --budget 1h -o small.case\n",
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
		{"reference_runs", r->ref_runs},
		{"reference_hits", r->ref_hits},
		{"final_runs", r->final_runs},
		{"final_hits", r->final_hits},
	};
	json_t *j = json_object();
	double lo, hi;

	json_object_set_new(j, "reproduced", json_boolean(r->reproduced));
	json_object_set_new(j, "verdict",
			    json_string(mmr_verdict_name(r->verdict)));
	json_object_set_new(j, r->reproduced ? "text" : "reason",
			    json_string(r->text));
	json_object_set_new(j, "signature", json_string(r->signature));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(j, numbers[i].key,
				    json_integer((json_int_t)numbers[i].v));
	mmr_stat_interval(r->final_hits, r->final_runs, 0.95, &lo, &hi);
	json_object_set_new(j, "final_lo95", json_real(lo));
	json_object_set_new(j, "final_hi95", json_real(hi));
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
			"runs fail; %llu runs in all; in %s\n",
			r->stmts_after, r->stmts_before,
			(unsigned long long)r->final_hits,
			(unsigned long long)r->final_runs,
			(unsigned long long)r->runs, path);
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
				  .budget_ns = own->budget_ns,
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
	mmr_case_free(r.best);
	free(path);
	return rc;
}

int mmr_cmd_min(int argc, char **argv)
{
	struct own own = {.budget_ns = BUDGET_NS};
	struct mmr_cmd_opts o;
	struct mmr_case *c = NULL;
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return rc;
	rc = mmr_opts_case(&o, o.nargs ? o.args[0] : NULL, &c);
	if (!rc)
		rc = mmr_opts_engine_start(&o);
	if (!rc) {
		rc = minimise(&o, &own, c);
		mmr_opts_engine_stop();
	}
	mmr_case_free(c);
	return rc;
}
