// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A timeline as text: around the moment when the culprit entered what it does
 * not come out of, one row a thread, one column a slice of time, a letter an
 * operation; then the last operations before that moment one by one.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "timeline.h"

#define WIDTH 64
#define ROWS_MAX 24
#define OPS_MAX 52
#define LIST 14

struct row {
	int pid, tid;
	const char *name;
	char cells[WIDTH + 1];
};

struct slice {
	double ts, dur;
	int pid, tid;
	const char *name;
	const json_t *args;
	bool unfinished;
};

struct drawing {
	struct row rows[ROWS_MAX];
	int nrows;
	struct slice *slices;
	size_t nslices;
	double stall, lo, hi; /* us */
	struct {
		const char *name;
		char letter;
	} ops[OPS_MAX];
	int nops;
};

static const char *str(const json_t *e, const char *key)
{
	const char *s = json_string_value(json_object_get(e, key));

	return s ? s : "";
}

static int num(const json_t *e, const char *key)
{
	return (int)json_integer_value(json_object_get(e, key));
}

static void read_event(struct drawing *d, const json_t *e)
{
	const json_t *args = json_object_get(e, "args");
	const char *ph = str(e, "ph"), *cat = str(e, "cat");
	struct slice *s;

	if (!strcmp(ph, "M") && !strcmp(str(e, "name"), "thread_name") &&
	    strcmp(str(args, "name"), "evidence") && d->nrows < ROWS_MAX) {
		d->rows[d->nrows].pid = num(e, "pid");
		d->rows[d->nrows].tid = num(e, "tid");
		d->rows[d->nrows++].name = str(args, "name");
	}
	if (!strcmp(cat, "flag") && d->stall == 0)
		d->stall = json_number_value(json_object_get(e, "ts"));
	if (strcmp(ph, "X") || strcmp(cat, "op"))
		return;
	s = &d->slices[d->nslices++];
	s->ts = json_number_value(json_object_get(e, "ts"));
	s->dur = json_number_value(json_object_get(e, "dur"));
	s->pid = num(e, "pid");
	s->tid = num(e, "tid");
	s->name = str(e, "name");
	s->args = args;
	s->unfinished = json_is_true(json_object_get(args, "unfinished"));
	if (json_is_true(json_object_get(args, "culprit")))
		d->stall = s->ts;
}

static int by_ts(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	return (x->ts > y->ts) - (x->ts < y->ts);
}

/* The smallest window before the stall that shows a dozen operations. */
static void choose_window(struct drawing *d)
{
	static const double spans[] = {20,  100, 500, 1e3, 5e3,
				       2e4, 1e5, 1e6, 1e7, 1e8};
	double span = spans[0], oldest = d->stall;
	size_t i, k, n;

	for (k = 0; k < d->nslices; k++)
		if (d->slices[k].ts < oldest)
			oldest = d->slices[k].ts;
	for (i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		span = spans[i];
		for (k = 0, n = 0; k < d->nslices; k++)
			n += d->slices[k].ts <= d->stall &&
			     d->slices[k].ts > d->stall - span;
		if (n >= 12 || d->stall - span < oldest)
			break;
	}
	d->lo = d->stall - span;
	d->hi = d->stall + span / 4;
}

static char letter_of(struct drawing *d, const char *name)
{
	static const char more[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *from[] = {name, more};
	char c = '?';
	size_t f, i;
	int k;

	for (k = 0; k < d->nops; k++)
		if (!strcmp(d->ops[k].name, name))
			return d->ops[k].letter;
	if (d->nops == OPS_MAX)
		return c;
	for (f = 0; f < 2; f++)
		for (i = 0; from[f][i]; i++) {
			c = from[f][i];
			for (k = 0; k < d->nops && d->ops[k].letter != c; k++)
				;
			if (isalpha((unsigned char)c) && k == d->nops)
				goto found;
		}
	return '?';
found:
	d->ops[d->nops].name = name;
	d->ops[d->nops++].letter = c;
	return c;
}

static int column(const struct drawing *d, double us)
{
	double at = (us - d->lo) / (d->hi - d->lo) * WIDTH;

	if (at < 0)
		return 0;
	return at >= WIDTH ? WIDTH - 1 : (int)at;
}

static void draw_slice(struct drawing *d, const struct slice *s)
{
	struct row *r = NULL;
	int i, from, to;
	char c;

	if (s->ts + s->dur < d->lo || s->ts > d->hi)
		return;
	for (i = 0; i < d->nrows; i++)
		if (d->rows[i].pid == s->pid && d->rows[i].tid == s->tid)
			r = &d->rows[i];
	if (!r)
		return;
	c = letter_of(d, s->name);
	from = column(d, s->ts);
	to = column(d, s->ts + s->dur);
	for (i = from; i <= to; i++)
		r->cells[i] = c;
	if (s->unfinished) {
		for (i = from + 1; i <= to; i++)
			r->cells[i] = '=';
		r->cells[WIDTH - 1] = '>';
	}
}

/* Large results are addresses. */
static void list_result(const struct slice *s, FILE *out)
{
	long long r = (long long)json_integer_value(
		json_object_get(s->args, "result"));

	fprintf(out, r > INT32_MAX ? "  = 0x%llx" : "  = %lld", r);
	fprintf(out, " (%.1f us)\n", s->dur);
}

static void list_last(const struct drawing *d, FILE *out)
{
	size_t i, end = 0, first;
	const struct slice *s;
	const char *name;
	int k;

	while (end < d->nslices && d->slices[end].ts <= d->stall)
		end++;
	first = end > LIST ? end - LIST : 0;
	fprintf(out, "\nlast operations, time before the stall began:\n");
	for (i = first; i < end; i++) {
		s = &d->slices[i];
		name = "?";
		for (k = 0; k < d->nrows; k++)
			if (d->rows[k].pid == s->pid &&
			    d->rows[k].tid == s->tid)
				name = d->rows[k].name;
		fprintf(out, "%12.1f us  %-16.*s %s", s->ts - d->stall,
			(int)strcspn(name, " "), name,
			str(s->args, "statement"));
		if (s->unfinished)
			fprintf(out, "  -- not finished after %.0f us\n",
				s->dur);
		else
			list_result(s, out);
	}
}

void mmr_timeline_text(const json_t *timeline, FILE *out)
{
	const json_t *list = json_object_get(timeline, "traceEvents");
	struct drawing *d = calloc(1, sizeof(*d));
	size_t i, n = json_array_size(list);
	int k, width = 8;

	if (!d)
		return;
	d->slices = calloc(n + 1, sizeof(*d->slices));
	if (!d->slices)
		goto out;
	for (i = 0; i < n; i++)
		read_event(d, json_array_get(list, i));
	if (!d->nslices) {
		fprintf(out, "no operations recorded\n");
		goto out;
	}
	qsort(d->slices, d->nslices, sizeof(*d->slices), by_ts);
	choose_window(d);
	for (k = 0; k < d->nrows; k++) {
		memset(d->rows[k].cells, '.', WIDTH);
		if ((int)strlen(d->rows[k].name) > width)
			width = (int)strlen(d->rows[k].name);
	}
	for (i = 0; i < d->nslices; i++)
		draw_slice(d, &d->slices[i]);
	fprintf(out, "%*s  %.0f us before the stall %*s\n", width, "",
		d->stall - d->lo, WIDTH / 2, "to after it began");
	for (k = 0; k < d->nrows; k++)
		fprintf(out, "%-*s |%s|\n", width, d->rows[k].name,
			d->rows[k].cells);
	fprintf(out, "%*s  ", width, "");
	for (k = 0; k < d->nops; k++)
		fprintf(out, "%s%c %s", k ? ", " : "", d->ops[k].letter,
			d->ops[k].name);
	fprintf(out, "%s= > not finished\n", d->nops ? ", " : "");
	list_last(d, out);
out:
	free(d->slices);
	free(d);
}
