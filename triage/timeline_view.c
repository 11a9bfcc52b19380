// SPDX-License-Identifier: GPL-2.0-or-later
/* Trace events back into what a drawing needs. */
#include "timeline_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *str(const json_t *e, const char *key)
{
	const char *s = json_string_value(json_object_get(e, key));

	return s ? s : "";
}

static int num(const json_t *e, const char *key)
{
	return (int)json_integer_value(json_object_get(e, key));
}

/* A time in us; what is none is 0. */
static double us(const json_t *e, const char *key)
{
	double t = json_number_value(json_object_get(e, key));

	return isfinite(t) && t > 0 ? (t < 1e15 ? t : 1e15) : 0;
}

static int op_index(struct mmr_timeline_view *v, const char *name)
{
	int i;

	for (i = 0; i < v->nops; i++)
		if (!strcmp(v->ops[i], name))
			return i;
	if (v->nops == MMR_VIEW_OPS)
		return v->nops - 1;
	v->ops[v->nops] = name;
	return v->nops++;
}

static void read_row(struct mmr_timeline_view *v, const json_t *e)
{
	struct mmr_view_row *r = &v->rows[v->nrows];
	const char *name = str(json_object_get(e, "args"), "name");

	if (!strcmp(name, "evidence") || v->nrows == MMR_VIEW_ROWS)
		return;
	r->pid = num(e, "pid");
	r->tid = num(e, "tid");
	r->name = name;
	r->proc = "";
	v->nrows++;
}

static void read_slice(struct mmr_timeline_view *v, const json_t *e)
{
	struct mmr_view_slice *s = &v->slices[v->nslices++];
	int i;

	s->ts = us(e, "ts");
	s->dur = us(e, "dur");
	s->name = str(e, "name");
	s->args = json_object_get(e, "args");
	s->unfinished = json_is_true(json_object_get(s->args, "unfinished"));
	if (json_is_true(json_object_get(s->args, "culprit"))) {
		v->stall = s->ts;
		v->culprit = true;
	}
	s->row = -1;
	for (i = 0; i < v->nrows; i++)
		if (v->rows[i].pid == num(e, "pid") &&
		    v->rows[i].tid == num(e, "tid"))
			s->row = i;
}

static void read_event(struct mmr_timeline_view *v, const json_t *e)
{
	const json_t *args = json_object_get(e, "args");
	const char *ph = str(e, "ph"), *cat = str(e, "cat");

	if (!strcmp(ph, "X") && !strcmp(cat, "op")) {
		read_slice(v, e);
	} else if (!strcmp(ph, "X") && !strcmp(cat, "evidence") &&
		   v->nsteps < 16) {
		v->steps[v->nsteps].ts = us(e, "ts");
		v->steps[v->nsteps].dur = us(e, "dur");
		v->steps[v->nsteps].name = str(e, "name");
		v->steps[v->nsteps++].moved =
			json_is_true(json_object_get(args, "moved"));
	} else if (!strcmp(ph, "C")) {
		v->faults[v->nfaults].ts = us(e, "ts");
		v->faults[v->nfaults++].value = us(args, "faults");
	} else if (!strcmp(cat, "flag") && v->flag == 0) {
		v->flag = us(e, "ts");
	}
	if (us(e, "ts") + us(e, "dur") > v->end)
		v->end = us(e, "ts") + us(e, "dur");
}

static void name_processes(struct mmr_timeline_view *v, const json_t *list)
{
	const json_t *e;
	size_t i;
	int k;

	for (i = 0; i < json_array_size(list); i++) {
		e = json_array_get(list, i);
		if (strcmp(str(e, "name"), "process_name"))
			continue;
		for (k = 0; k < v->nrows; k++)
			if (v->rows[k].pid == num(e, "pid"))
				v->rows[k].proc =
					str(json_object_get(e, "args"), "name");
	}
}

static int by_ts(const void *a, const void *b)
{
	const struct mmr_view_slice *x = a, *y = b;

	return (x->ts > y->ts) - (x->ts < y->ts);
}

static int points_by_ts(const void *a, const void *b)
{
	const struct mmr_view_point *x = a, *y = b;

	return (x->ts > y->ts) - (x->ts < y->ts);
}

/* The smallest window before the stall that shows a dozen operations. */
static void choose_window(struct mmr_timeline_view *v)
{
	static const double spans[] = {20,  100, 500, 1e3, 5e3,
				       2e4, 1e5, 1e6, 1e7, 1e8};
	double span = spans[0], oldest = v->stall;
	size_t i, k, n;

	for (k = 0; k < v->nslices; k++)
		if (v->slices[k].ts < oldest)
			oldest = v->slices[k].ts;
	for (i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		span = spans[i];
		for (k = 0, n = 0; k < v->nslices; k++)
			n += v->slices[k].ts <= v->stall &&
			     v->slices[k].ts > v->stall - span;
		if (n >= 12 || v->stall - span < oldest)
			break;
	}
	v->lo = v->stall - span;
	v->hi = v->stall + span / 4;
}

struct mmr_timeline_view *mmr_timeline_view(const json_t *timeline)
{
	const json_t *list = json_object_get(timeline, "traceEvents");
	struct mmr_timeline_view *v = calloc(1, sizeof(*v));
	size_t i, n = json_array_size(list);

	if (!v)
		return NULL;
	v->slices = calloc(n + 1, sizeof(*v->slices));
	v->faults = calloc(n + 1, sizeof(*v->faults));
	if (!v->slices || !v->faults) {
		mmr_timeline_view_free(v);
		return NULL;
	}
	/* Rows first: a slice looks for its own. */
	for (i = 0; i < n; i++)
		if (!strcmp(str(json_array_get(list, i), "name"),
			    "thread_name"))
			read_row(v, json_array_get(list, i));
	name_processes(v, list);
	for (i = 0; i < n; i++)
		read_event(v, json_array_get(list, i));
	if (!v->culprit)
		v->stall = v->flag;
	qsort(v->slices, v->nslices, sizeof(*v->slices), by_ts);
	qsort(v->faults, v->nfaults, sizeof(*v->faults), points_by_ts);
	for (i = 0; i < v->nslices; i++)
		v->slices[i].op = op_index(v, v->slices[i].name);
	choose_window(v);
	return v;
}

void mmr_timeline_view_free(struct mmr_timeline_view *v)
{
	if (!v)
		return;
	free(v->slices);
	free(v->faults);
	free(v);
}
