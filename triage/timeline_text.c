// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A timeline as text: around the moment when the culprit entered what it does
 * not come out of, one row a thread, one column a slice of time, a letter an
 * operation; then the last operations before that moment one by one.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "timeline.h"
#include "timeline_view.h"

#define WIDTH 64
#define ROWS_MAX 24
#define LIST 14

struct drawing {
	const struct mmr_timeline_view *v;
	int nrows;
	char cells[ROWS_MAX][WIDTH + 1];
	struct {
		int op;
		char letter;
	} ops[MMR_VIEW_OPS]; /* as they are first drawn */
	int nops;
};

static char letter_of(struct drawing *d, int op)
{
	static const char more[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *from[] = {d->v->ops[op], more};
	char c = '?';
	size_t f, i;
	int k;

	for (k = 0; k < d->nops; k++)
		if (d->ops[k].op == op)
			return d->ops[k].letter;
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
	d->ops[d->nops].op = op;
	d->ops[d->nops++].letter = c;
	return c;
}

static int column(const struct mmr_timeline_view *v, double us)
{
	double at = (us - v->lo) / (v->hi - v->lo) * WIDTH;

	if (at < 0)
		return 0;
	return at >= WIDTH ? WIDTH - 1 : (int)at;
}

static void draw_slice(struct drawing *d, const struct mmr_view_slice *s)
{
	int i, from, to;
	char *cells, c;

	if (s->ts + s->dur < d->v->lo || s->ts > d->v->hi || s->row < 0 ||
	    s->row >= d->nrows)
		return;
	cells = d->cells[s->row];
	c = letter_of(d, s->op);
	from = column(d->v, s->ts);
	to = column(d->v, s->ts + s->dur);
	for (i = from; i <= to; i++)
		cells[i] = c;
	if (s->unfinished) {
		for (i = from + 1; i <= to; i++)
			cells[i] = '=';
		cells[WIDTH - 1] = '>';
	}
}

/* Large results are addresses. */
static void list_result(const struct mmr_view_slice *s, FILE *out)
{
	long long r = (long long)json_integer_value(
		json_object_get(s->args, "result"));

	fprintf(out, r > INT32_MAX ? "  = 0x%llx" : "  = %lld", r);
	fprintf(out, " (%.1f us)\n", s->dur);
}

static void list_last(const struct mmr_timeline_view *v, FILE *out)
{
	const struct mmr_view_slice *s;
	size_t i, end = 0, first;
	const char *name, *text;

	while (end < v->nslices && v->slices[end].ts <= v->stall)
		end++;
	first = end > LIST ? end - LIST : 0;
	fprintf(out, "\nlast operations, time before the stall began:\n");
	for (i = first; i < end; i++) {
		s = &v->slices[i];
		name = s->row >= 0 ? v->rows[s->row].name : "?";
		text = json_string_value(json_object_get(s->args, "statement"));
		fprintf(out, "%12.1f us  %-16.*s %s", s->ts - v->stall,
			(int)strcspn(name, " "), name, text ? text : "");
		if (s->unfinished)
			fprintf(out, "  -- not finished after %.0f us\n",
				s->dur);
		else
			list_result(s, out);
	}
}

static void draw(struct drawing *d, FILE *out)
{
	const struct mmr_timeline_view *v = d->v;
	int k, width = 8;
	size_t i;

	d->nrows = v->nrows < ROWS_MAX ? v->nrows : ROWS_MAX;
	for (k = 0; k < d->nrows; k++) {
		memset(d->cells[k], '.', WIDTH);
		if ((int)strlen(v->rows[k].name) > width)
			width = (int)strlen(v->rows[k].name);
	}
	for (i = 0; i < v->nslices; i++)
		draw_slice(d, &v->slices[i]);
	fprintf(out, "%*s  %.0f us before the stall %*s\n", width, "",
		v->stall - v->lo, WIDTH / 2, "to after it began");
	for (k = 0; k < d->nrows; k++)
		fprintf(out, "%-*s |%s|\n", width, v->rows[k].name,
			d->cells[k]);
	fprintf(out, "%*s  ", width, "");
	for (k = 0; k < d->nops; k++)
		fprintf(out, "%s%c %s", k ? ", " : "", d->ops[k].letter,
			v->ops[d->ops[k].op]);
	fprintf(out, "%s= > not finished\n", d->nops ? ", " : "");
	list_last(v, out);
}

void mmr_timeline_text(const json_t *timeline, FILE *out)
{
	struct mmr_timeline_view *v = mmr_timeline_view(timeline);
	struct drawing *d = calloc(1, sizeof(*d));

	if (!v || !d)
		goto out;
	d->v = v;
	if (v->nslices)
		draw(d, out);
	else
		fprintf(out, "no operations recorded\n");
out:
	free(d);
	mmr_timeline_view_free(v);
}
