/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run in a guest is the same mmr_run() on the other side of a serial line:
 * its result crosses as JSON, field for field.
 */
#include "result_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "histogram.h"

static json_t *num(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *measure_to_json(const struct mmr_measure *m)
{
	json_t *j = json_object(), *errs = json_array();

	for (int i = 0; i < MMR_ERRS && m->errs[i].n; i++)
		json_array_append_new(errs,
				      json_pack("[i,I]", m->errs[i].err,
						(json_int_t)m->errs[i].n));
	json_object_set_new(j, "count", num(m->count));
	json_object_set_new(j, "errors", num(m->errors));
	json_object_set_new(j, "unexpected", num(m->unexpected));
	json_object_set_new(j, "pages", num(m->pages));
	json_object_set_new(j, "late", num(m->late));
	json_object_set_new(j, "sum", num(m->sum_ns));
	json_object_set_new(j, "max", num(m->max_ns));
	json_object_set_new(j, "p50", num(m->p50_ns));
	json_object_set_new(j, "p95", num(m->p95_ns));
	json_object_set_new(j, "p99", num(m->p99_ns));
	json_object_set_new(j, "errs", errs);
	if (m->hist)
		json_object_set_new(j, "hist", mmr_histogram_json(m->hist));
	return j;
}

static json_t *exit_to_json(const struct mmr_exit_measure *m)
{
	json_t *j = json_object();

	json_object_set_new(j, "proc", json_string(m->proc));
	json_object_set_new(j, "count", num(m->count));
	json_object_set_new(j, "p50", num(m->p50_ns));
	json_object_set_new(j, "p95", num(m->p95_ns));
	json_object_set_new(j, "p99", num(m->p99_ns));
	json_object_set_new(j, "mean", num(m->mean_ns));
	json_object_set_new(j, "stdev", num(m->stdev_ns));
	json_object_set_new(j, "max", num(m->max_ns));
	json_object_set_new(j, "wall", num(m->wall_ns));
	json_object_set_new(j, "cpu", num(m->cpu_ns));
	json_object_set_new(j, "delay", num(m->delay_ns));
	json_object_set_new(j, "asleep", num(m->asleep_ns));
	if (m->hist)
		json_object_set_new(j, "hist", mmr_histogram_json(m->hist));
	if (m->cpu_hist)
		json_object_set_new(j, "cpu_hist",
				    mmr_histogram_json(m->cpu_hist));
	return j;
}

/* Strings from a kernel log may hold bytes that are not UTF-8. */
static json_t *text(const char *s)
{
	json_t *j = s ? json_string(s) : json_null();

	if (!j) {
		char *copy = strdup(s);

		for (char *p = copy; p && *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
		j = copy ? json_string(copy) : NULL;
		free(copy);
	}
	return j;
}

json_t *mmr_result_to_json(const struct mmr_run_result *res)
{
	json_t *j = json_object(), *stmts = json_array(), *exits = json_array();

	for (int i = 0; i < res->nstmts; i++)
		json_array_append_new(stmts, measure_to_json(&res->stmts[i]));
	for (int i = 0; i < res->nexits; i++)
		json_array_append_new(exits, exit_to_json(&res->exits[i]));
	json_object_set_new(j, "verdict", num((uint64_t)res->verdict));
	json_object_set_new(j, "text", text(res->text));
	json_object_set_new(j, "signature", text(res->signature));
	json_object_set_new(j, "id", text(res->id));
	json_object_set_new(j, "stmt", json_integer(res->stmt));
	json_object_set_new(j, "rounds", num(res->rounds));
	json_object_set_new(j, "rounds_void", num(res->rounds_void));
	json_object_set_new(j, "rounds_late", num(res->rounds_late));
	json_object_set_new(j, "hit_round", num(res->hit_round));
	json_object_set_new(j, "ops", num(res->ops));
	json_object_set_new(j, "calls", num(res->calls));
	json_object_set_new(j, "wall", json_integer(res->wall_ns));
	json_object_set_new(j, "detect", json_integer(res->detect_ns));
	json_object_set_new(j, "pause", json_integer(res->pause_ns));
	json_object_set_new(j, "quarantined", json_integer(res->quarantined));
	json_object_set_new(j, "compared", json_integer((json_int_t)res->compared));
	json_object_set_new(j, "stmts", stmts);
	json_object_set_new(j, "exits", exits);
	json_object_set_new(j, "stacks", text(res->stacks));
	json_object_set_new(j, "log", text(res->log));
	json_object_set_new(j, "exact", text(res->exact));
	json_object_set_new(j, "bound", text(res->bound));
	if (res->evidence)
		json_object_set(j, "evidence", res->evidence);
	if (res->timeline)
		json_object_set(j, "timeline", res->timeline);
	return j;
}

static uint64_t get(const json_t *j, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(j, key));
}

static void copy(const json_t *j, const char *key, char *out, size_t n)
{
	const char *s = json_string_value(json_object_get(j, key));

	snprintf(out, n, "%s", s ? s : "");
}

static char *dup(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? strdup(s) : NULL;
}

/* NULL when there is none, or none that makes sense. */
static struct mmr_histogram *hist_from_json(const json_t *j, const char *key)
{
	const json_t *hist = json_object_get(j, key);
	struct mmr_histogram *h = hist ? malloc(sizeof(*h)) : NULL;

	if (h && mmr_histogram_from_json(hist, h)) {
		free(h);
		h = NULL;
	}
	return h;
}

static void measure_from_json(const json_t *j, struct mmr_measure *m)
{
	const json_t *errs = json_object_get(j, "errs");

	m->count = get(j, "count");
	m->errors = get(j, "errors");
	m->unexpected = get(j, "unexpected");
	m->pages = get(j, "pages");
	m->late = get(j, "late");
	m->sum_ns = get(j, "sum");
	m->max_ns = get(j, "max");
	m->p50_ns = get(j, "p50");
	m->p95_ns = get(j, "p95");
	m->p99_ns = get(j, "p99");
	m->hist = hist_from_json(j, "hist");
	for (size_t i = 0; i < json_array_size(errs) && i < MMR_ERRS; i++) {
		const json_t *e = json_array_get(errs, i);

		m->errs[i].err = (int)json_integer_value(json_array_get(e, 0));
		m->errs[i].n =
			(uint32_t)json_integer_value(json_array_get(e, 1));
	}
}

static const char *proc_name(const struct mmr_case *c, const char *name)
{
	for (int i = 0; name && i < c->nprocs; i++)
		if (!strcmp(c->procs[i]->name, name))
			return c->procs[i]->name;
	return "idle";
}

static void exit_from_json(const json_t *j, const struct mmr_case *c,
			   struct mmr_exit_measure *m)
{
	m->proc = proc_name(c, json_string_value(json_object_get(j, "proc")));
	m->count = get(j, "count");
	m->p50_ns = get(j, "p50");
	m->p95_ns = get(j, "p95");
	m->p99_ns = get(j, "p99");
	m->mean_ns = get(j, "mean");
	m->stdev_ns = get(j, "stdev");
	m->max_ns = get(j, "max");
	m->wall_ns = get(j, "wall");
	m->cpu_ns = get(j, "cpu");
	m->delay_ns = get(j, "delay");
	m->asleep_ns = get(j, "asleep");
	m->hist = hist_from_json(j, "hist");
	m->cpu_hist = hist_from_json(j, "cpu_hist");
}

int mmr_result_from_json(const json_t *j, const struct mmr_case *c,
			 struct mmr_run_result *res)
{
	const json_t *stmts = json_object_get(j, "stmts");
	const json_t *exits = json_object_get(j, "exits");
	uint64_t verdict = get(j, "verdict");

	memset(res, 0, sizeof(*res));
	if (!json_is_object(j) || verdict >= MMR_VERDICTS)
		return -EINVAL;
	res->verdict = (enum mmr_verdict)verdict;
	copy(j, "text", res->text, sizeof(res->text));
	copy(j, "signature", res->signature, sizeof(res->signature));
	copy(j, "id", res->id, sizeof(res->id));
	res->stmt = (int)get(j, "stmt");
	res->rounds = get(j, "rounds");
	res->rounds_void = get(j, "rounds_void");
	res->rounds_late = get(j, "rounds_late");
	res->hit_round = get(j, "hit_round");
	res->ops = get(j, "ops");
	res->calls = get(j, "calls");
	res->wall_ns = (int64_t)get(j, "wall");
	res->detect_ns = (int64_t)get(j, "detect");
	res->pause_ns = (int64_t)get(j, "pause");
	res->quarantined = (int)get(j, "quarantined");
	res->compared = (uint64_t)get(j, "compared");
	res->stmts = calloc(json_array_size(stmts) + 1, sizeof(*res->stmts));
	res->exits = calloc(json_array_size(exits) + 1, sizeof(*res->exits));
	if (!res->stmts || !res->exits) {
		mmr_run_result_free(res);
		return -ENOMEM;
	}
	res->nstmts = (int)json_array_size(stmts);
	res->nexits = (int)json_array_size(exits);
	for (int i = 0; i < res->nstmts; i++)
		measure_from_json(json_array_get(stmts, (size_t)i),
				  &res->stmts[i]);
	for (int i = 0; i < res->nexits; i++)
		exit_from_json(json_array_get(exits, (size_t)i), c,
			       &res->exits[i]);
	res->stacks = dup(j, "stacks");
	res->log = dup(j, "log");
	res->exact = dup(j, "exact");
	res->bound = dup(j, "bound");
	res->evidence = json_deep_copy(json_object_get(j, "evidence"));
	res->timeline = json_deep_copy(json_object_get(j, "timeline"));
	return 0;
}
