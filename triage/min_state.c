// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a later run needs to go on: beside the best (FILE), FILE.state with
 * the same best, the pass, what it took away, its beliefs, and the rates.
 *
 * The state is written first, then the best: a kill in between leaves a FILE
 * that is one step behind, and the next run writes it again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ops/clock.h"
#include "finding.h"
#include "min.h"

#define FORMAT 1

static char *state_path(const struct mmr_min *m)
{
	char *path = NULL;

	if (!m->opts->best_path ||
	    asprintf(&path, "%s.state", m->opts->best_path) < 0)
		return NULL;
	return path;
}

static json_t *case_json(const struct mmr_case *c)
{
	char *text = c ? mmr_case_print(c) : NULL;
	json_t *j = text ? json_string(text) : NULL;

	free(text);
	return j ? j : json_null();
}

static json_t *tally_json(const struct mmr_search_tally *t)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:f,s:f}", "runs",
			 (json_int_t)t->runs, "hits", (json_int_t)t->hits,
			 "others", (json_int_t)t->others, "voids",
			 (json_int_t)t->voids, "misses", t->misses, "cost",
			 t->cost);
}

static void tally_from(const json_t *j, struct mmr_search_tally *t)
{
	t->runs = (uint64_t)json_integer_value(json_object_get(j, "runs"));
	t->hits = (uint64_t)json_integer_value(json_object_get(j, "hits"));
	t->others = (uint64_t)json_integer_value(json_object_get(j, "others"));
	t->voids = (uint64_t)json_integer_value(json_object_get(j, "voids"));
	t->misses = json_number_value(json_object_get(j, "misses"));
	t->cost = json_number_value(json_object_get(j, "cost"));
}

/* The numbers of the search and of the runs, by name, both ways. */
struct field {
	const char *name;
	double *real;
	uint64_t *u64;
	int64_t *i64;
	int *i;
};

static int fields(struct mmr_min *m, struct field *f)
{
	struct mmr_search *s = &m->search;
	const struct field all[] = {
		{.name = "p", .real = &s->p},
		{.name = "now", .real = &s->now},
		{.name = "miss_cost", .real = &s->miss_cost},
		{.name = "pool_runs", .real = &s->pool_runs},
		{.name = "pool_hits", .real = &s->pool_hits},
		{.name = "rounds", .u64 = &m->rounds},
		{.name = "next_round", .u64 = &m->next_round},
		{.name = "runs", .u64 = &m->res->runs},
		{.name = "run_ns", .i64 = &m->run_ns},
		{.name = "hit_ns", .i64 = &m->hit_ns},
		{.name = "miss_ns", .i64 = &m->miss_ns},
		{.name = "slowest_ns", .i64 = &m->slowest_ns},
		{.name = "wanted", .i = &s->wanted},
		{.name = "recalibrated", .i = &s->recalibrated},
		{.name = "changes", .i = &s->changes},
		{.name = "guilty", .i = &m->guilty},
		{.name = "step", .i = &m->step},
		{.name = "changed", .i = &m->changed},
	};

	memcpy(f, all, sizeof(all));
	return (int)(sizeof(all) / sizeof(all[0]));
}

static json_t *pass_json(const struct mmr_min *m)
{
	const struct mmr_search_pass *p = m->search.pass;
	json_t *out = json_array(), *pi = json_array();
	int i;

	for (i = 0; p && i < p->n; i++) {
		json_array_append_new(out, json_integer(p->out[i]));
		json_array_append_new(pi, json_real(p->pi[i]));
	}
	return json_pack("{s:o,s:o,s:o}", "base", case_json(m->set.base), "out",
			 out, "beliefs", pi);
}

static json_t *failures_json(const struct mmr_min *m)
{
	json_t *j = json_array();
	int i;

	for (i = 0; i < m->nsigs; i++)
		json_array_append_new(j, json_pack("{s:s,s:s,s:i}", "signature",
						   m->sigs[i], "text",
						   m->texts[i], "verdict",
						   (int)m->verdicts[i]));
	return j;
}

static json_t *to_json(struct mmr_min *m)
{
	json_t *j = json_object();
	struct field f[32];
	int i, n = fields(m, f);

	json_object_set_new(j, "format", json_integer(FORMAT));
	json_object_set_new(j, "given", case_json(m->given));
	json_object_set_new(j, "first", case_json(m->first));
	json_object_set_new(j, "best", case_json(m->best));
	json_object_set_new(j, "phase", json_integer(m->phase));
	json_object_set_new(j, "pass", pass_json(m));
	json_object_set_new(j, "reference", tally_json(&m->search.ref));
	json_object_set_new(j, "null", tally_json(&m->search.null));
	json_object_set_new(j, "failures", failures_json(m));
	for (i = 0; i < n; i++)
		json_object_set_new(
			j, f[i].name,
			f[i].real  ? json_real(*f[i].real)
			: f[i].u64 ? json_integer((json_int_t)*f[i].u64)
			: f[i].i64 ? json_integer((json_int_t)*f[i].i64)
				   : json_integer(*f[i].i));
	return j;
}

int mmr_min_save(struct mmr_min *m)
{
	char *path = state_path(m), *text = NULL;
	int rc = -ENOMEM;
	json_t *j;

	if (!m->opts->best_path) {
		free(path);
		return 0;
	}
	j = to_json(m);
	text = j ? json_dumps(j, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
	if (path && text)
		rc = mmr_write_file(path, text, strlen(text));
	free(text);
	free(path);
	json_decref(j);
	if (rc)
		return rc;
	text = mmr_case_print(m->best);
	rc = text ? mmr_write_file(m->opts->best_path, text, strlen(text))
		  : -ENOMEM;
	free(text);
	m->saved_ns = mmr_clock_monotonic();
	return rc;
}

int mmr_min_save_result(struct mmr_min *m)
{
	char *path = state_path(m), *text;
	int rc = 0;

	/* The state stays as it was in the pass that the time cut off. */
	if (m->opts->best_path) {
		text = mmr_case_print(m->best);
		rc = text ? mmr_write_file(m->opts->best_path, text,
					   strlen(text))
			  : -ENOMEM;
		free(text);
	}
	if (!rc && path && m->res->complete)
		unlink(path);
	free(path);
	return rc;
}

static struct mmr_case *case_from(const json_t *j)
{
	const char *text = json_string_value(j);
	struct mmr_case *c = NULL;
	struct mmr_diag diag = {0};

	if (!text || mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL))
		return NULL;
	return c;
}

static bool same_case(const struct mmr_case *c, const json_t *j)
{
	const char *text = json_string_value(j);
	char *own = mmr_case_print(c);
	bool same = text && own && !strcmp(text, own);

	free(own);
	return same;
}

static void failures_from(struct mmr_min *m, const json_t *j)
{
	size_t i;
	json_t *f;

	json_array_foreach (j, i, f) {
		const char *sig =
			json_string_value(json_object_get(f, "signature"));
		const char *text =
			json_string_value(json_object_get(f, "text"));

		if (i >= MMR_SEARCH_IDS)
			break;
		snprintf(m->sigs[i], sizeof(m->sigs[i]), "%s", sig ? sig : "");
		snprintf(m->texts[i], sizeof(m->texts[i]), "%s",
			 text ? text : "");
		m->verdicts[i] = (enum mmr_verdict)json_integer_value(
			json_object_get(f, "verdict"));
		m->nsigs = (int)i + 1;
	}
}

/* The pass that was cut off; without it the phase begins anew. */
static int pass_from(struct mmr_min *m, const json_t *j)
{
	const json_t *out = json_object_get(j, "out");
	const json_t *pi = json_object_get(j, "beliefs");
	size_t n = json_array_size(out), i;

	if (!n || json_array_size(pi) != n)
		return 0;
	m->resume_base = case_from(json_object_get(j, "base"));
	m->resume_out = malloc(n);
	m->resume_pi = malloc(n * sizeof(*m->resume_pi));
	if (!m->resume_base || !m->resume_out || !m->resume_pi)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		m->resume_out[i] =
			json_integer_value(json_array_get(out, i)) != 0;
		m->resume_pi[i] = json_number_value(json_array_get(pi, i));
	}
	m->resume_n = (int)n;
	return 0;
}

static int from_json(struct mmr_min *m, const json_t *j)
{
	struct mmr_case *first = case_from(json_object_get(j, "first"));
	struct mmr_case *best = case_from(json_object_get(j, "best"));
	struct field f[32];
	int i, n = fields(m, f);

	if (!first || !best) {
		mmr_case_free(first);
		mmr_case_free(best);
		return 0;
	}
	mmr_case_free(m->first);
	mmr_case_free(m->best);
	m->first = first;
	m->best = best;
	m->phase = (enum mmr_min_phase)json_integer_value(
		json_object_get(j, "phase"));
	tally_from(json_object_get(j, "reference"), &m->search.ref);
	tally_from(json_object_get(j, "null"), &m->search.null);
	failures_from(m, json_object_get(j, "failures"));
	for (i = 0; i < n; i++) {
		const json_t *v = json_object_get(j, f[i].name);

		if (f[i].real)
			*f[i].real = json_number_value(v);
		else if (f[i].u64)
			*f[i].u64 = (uint64_t)json_integer_value(v);
		else if (f[i].i64)
			*f[i].i64 = json_integer_value(v);
		else
			*f[i].i = (int)json_integer_value(v);
	}
	i = pass_from(m, json_object_get(j, "pass"));
	return i ? i : 1;
}

int mmr_min_load(struct mmr_min *m)
{
	char *path = state_path(m);
	json_t *j = path ? json_load_file(path, 0, NULL) : NULL;
	int rc = 0;

	if (!j) {
		free(path);
		return 0;
	}
	if (json_integer_value(json_object_get(j, "format")) != FORMAT)
		mmr_min_say(m, "%s is of another version: not used", path);
	else if (!same_case(m->given, json_object_get(j, "given")))
		mmr_min_say(m, "%s is of another case: not used", path);
	else
		rc = from_json(m, j);
	json_decref(j);
	free(path);
	return rc;
}
