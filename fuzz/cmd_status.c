// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace status: reads the ledger of a soak, running or over. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../triage/stat.h"
#include "ledger.h"
#include "opts.h"

static const struct mmr_command command = {
	.name = "status",
	.synopsis = "DIR",
	.about = "Says what the soak that writes into DIR has done so far "
		 "(DIR/soak.json, at most\nsome seconds old), and what all "
		 "soaks that ever wrote there did (the ledger), by\nkernel and "
		 "profile: cases, rounds, verdicts, and, where nothing was "
		 "found, the\nbound that this puts on the rate of what was "
		 "looked for.",
	.examples = "  mmrace status mmrace-out\n"
		    "  mmrace status mmrace-out --json    all of it\n"
		    "  kill -USR1 PID                     asks a running soak "
		    "itself\n",
	.min_args = 1,
	.max_args = 1,
};

static const char *word(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "?";
}

static long long number(const json_t *j, const char *key)
{
	return (long long)json_integer_value(json_object_get(j, key));
}

static const char *state(const json_t *j)
{
	pid_t pid = (pid_t)number(j, "pid");

	if (strcmp(word(j, "state"), "running"))
		return word(j, "state");
	/* The ledger of a killed soak still says running. */
	if (pid > 0 && kill(pid, 0) && errno == ESRCH)
		return "ended without a word";
	return "running";
}

static void print_status(const json_t *j, const char *dir)
{
	const json_t *found = json_object_get(j, "findings");
	const json_t *f;
	size_t i;

	printf("%s: %s, %.0f s, kernel %s, profile %s, seeds from %s\n", dir,
	       state(j), json_number_value(json_object_get(j, "seconds")),
	       word(j, "kernel"), word(j, "profile"), word(j, "seed"));
	printf("cases       %lld run, %lld skipped, %lld void\n",
	       number(j, "cases"), number(j, "skipped"), number(j, "void"));
	printf("rounds      %lld\n", number(j, "rounds"));
	printf("operations  %lld; operations per second %.0f\n",
	       number(j, "operations"),
	       json_number_value(json_object_get(j, "operations_per_second")));
	printf("findings    %zu\n", json_array_size(found));
	json_array_foreach (found, i, f)
		printf("  %s, seen %lld times: %s\n", word(f, "folder"),
		       number(f, "count"), word(f, "text"));
}

/* Sessions on one kernel build with one profile belong together. */
struct group {
	const struct mmr_ledger_session *first;
	struct mmr_ledger_counts counts;
	double seconds;
	uint64_t findings;
	int sessions;
};

static int group_sessions(const struct mmr_ledger_view *v, struct group *g)
{
	int n = 0, k;

	for (int i = 0; i < v->nsessions; i++) {
		const struct mmr_ledger_session *s = &v->sessions[i];

		for (k = 0; k < n; k++)
			if (!strcmp(g[k].first->kernel, s->kernel) &&
			    !strcmp(g[k].first->build, s->build) &&
			    !strcmp(g[k].first->arch, s->arch) &&
			    !strcmp(g[k].first->profile, s->profile))
				break;
		if (k == n)
			g[n++] = (struct group){.first = s};
		mmr_ledger_sum(&g[k].counts, &s->counts);
		g[k].seconds += s->seconds;
		g[k].findings += s->findings;
		g[k].sessions++;
	}
	return n;
}

static double bound(const struct group *g)
{
	return mmr_stat_none(g->counts.rounds - g->counts.rounds_void);
}

static json_t *group_json(const struct group *g)
{
	json_t *j = mmr_ledger_counts_json(&g->counts);

	json_object_set_new(j, "kernel", json_string(g->first->kernel));
	json_object_set_new(j, "build", json_string(g->first->build));
	json_object_set_new(j, "arch", json_string(g->first->arch));
	json_object_set_new(j, "profile", json_string(g->first->profile));
	json_object_set_new(j, "sessions", json_integer(g->sessions));
	json_object_set_new(j, "seconds", json_real(g->seconds));
	json_object_set_new(
		j, "cases",
		json_integer((json_int_t)mmr_ledger_samples(&g->counts)));
	json_object_set_new(j, "finding_sightings",
			    json_integer((json_int_t)g->findings));
	json_object_set_new(j, "null_bound_per_round",
			    g->findings ? json_null() : json_real(bound(g)));
	return j;
}

static json_t *ledger_json(const struct mmr_ledger_view *v,
			   const struct group *g, int n)
{
	json_t *j = json_object(), *a = json_array(), *lost = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(a, group_json(&g[i]));
	for (int i = 0; i < v->nlost; i++)
		json_array_append_new(
			lost,
			json_pack("{s:s, s:I, s:o}", "session",
				  v->lost[i].session, "case",
				  (json_int_t)v->lost[i].index, "seed",
				  json_sprintf("0x%" PRIx64, v->lost[i].seed)));
	json_object_set_new(j, "sessions", json_integer(v->nsessions));
	json_object_set_new(j, "kernels", a);
	json_object_set_new(j, "lost", lost);
	json_object_set_new(j, "damaged_lines",
			    json_integer((json_int_t)v->damaged));
	return j;
}

static void print_ledger(const struct mmr_ledger_view *v, const struct group *g,
			 int n)
{
	printf("\nall soaks that wrote there\n");
	for (int i = 0; i < n; i++) {
		const struct mmr_ledger_counts *c = &g[i].counts;

		printf("  kernel %s %s, profile %s: %d session%s, %.0f s, "
		       "%" PRIu64 " cases, %" PRIu64 " rounds\n",
		       g[i].first->kernel, g[i].first->arch,
		       g[i].first->profile, g[i].sessions,
		       g[i].sessions == 1 ? "" : "s", g[i].seconds,
		       mmr_ledger_samples(c), c->rounds);
		printf("   ");
		for (int k = 0; k < MMR_VERDICTS; k++)
			if (c->verdicts[k])
				printf(" %s %" PRIu64, mmr_verdict_name(k),
				       c->verdicts[k]);
		putchar('\n');
		if (!g[i].findings && bound(&g[i]) < 1)
			printf("    nothing found: at 95 %% confidence fewer "
			       "than one in %.0f rounds\n",
			       1 / bound(&g[i]));
	}
	for (int i = 0; i < v->nlost; i++)
		printf("  ended in the middle of case %" PRIu64
		       ", seed 0x%" PRIx64 "\n",
		       v->lost[i].index, v->lost[i].seed);
	if (v->damaged)
		printf("  %" PRIu64 " line%s of the ledger damaged\n",
		       v->damaged, v->damaged == 1 ? " is" : "s are");
}

/* soak.json, which a merged folder has none of; NULL: none, *rc says why. */
static json_t *load_soak(const char *dir, int *rc)
{
	json_error_t err;
	char path[4200];
	json_t *j;

	*rc = 0;
	snprintf(path, sizeof(path), "%s/soak.json", dir);
	if (access(path, F_OK))
		return NULL;
	j = json_load_file(path, 0, &err);
	if (j && json_is_object(j))
		return j;
	*rc = mmr_opts_error("%s: %s", path,
			     j ? "is no state of a soak" : err.text);
	json_decref(j);
	return NULL;
}

int mmr_cmd_status(int argc, char **argv)
{
	struct mmr_ledger_view v = {0};
	struct group *g = NULL;
	struct mmr_cmd_opts o;
	bool has_ledger;
	json_t *j;
	int rc = mmr_opts_parse(&command, argc, argv, &o, NULL), n = 0;

	if (rc >= 0)
		return rc;
	j = load_soak(o.args[0], &rc);
	if (rc)
		return rc;
	has_ledger = !mmr_ledger_read(o.args[0], &v);
	if (!j && !has_ledger)
		return mmr_opts_error("%s: no soak wrote there", o.args[0]);
	g = calloc((size_t)v.nsessions + 1, sizeof(*g));
	if (g)
		n = group_sessions(&v, g);
	if (o.json) {
		if (!j)
			j = json_object();
		else
			json_object_set_new(j, "state", json_string(state(j)));
		if (has_ledger)
			json_object_set_new(j, "ledger", ledger_json(&v, g, n));
		mmr_opts_print_json(j);
	} else {
		if (j)
			print_status(j, o.args[0]);
		if (has_ledger)
			print_ledger(&v, g, n);
		json_decref(j);
	}
	free(g);
	mmr_ledger_view_free(&v);
	return MMR_EXIT_NOTHING;
}
