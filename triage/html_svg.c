// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pictures.  Each is a strip of its own, 1000 wide and as wide as its
 * place in the page, drawn without text: what it means stands beside it.
 */
#include "html.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timeline_view.h"

#define WIDTH 1000.0
#define HEIGHT 20
#define ROWS 32
#define COLOURS 12
#define SLICES_MAX 4000 /* in one picture */

static void strip_begin(FILE *f, int height, const char *label)
{
	mmr_html_put(f,
		     "<svg viewBox=\"0 0 1000 %d\" height=\"%d\" "
		     "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
		     height, height);
	mmr_html_text(f, label);
	fputs("\">", f);
}

static void strip_end(FILE *f)
{
	fputs("</svg>\n", f);
}

static void rect(FILE *f, double x, double y, double w, double h,
		 const char *class)
{
	mmr_html_put(f,
		     "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
		     "height=\"%.2f\" class=\"%s\"/>",
		     x, y, w, h, class);
}

static double clamp(double x)
{
	return !(x > 0) ? 0 : x > WIDTH ? WIDTH : x;
}

/* -- a timeline --------------------------------------------------------- */

struct frame {
	double lo, hi; /* us */
};

static double place(const struct frame *w, double us)
{
	return clamp((us - w->lo) / (w->hi - w->lo) * WIDTH);
}

static void slice(FILE *f, const struct frame *w,
		  const struct mmr_view_slice *s, double stall)
{
	double from = place(w, s->ts), to = place(w, s->ts + s->dur);
	const char *text =
		json_string_value(json_object_get(s->args, "statement"));
	char buf[24];

	if (s->ts > w->hi || s->ts + s->dur < w->lo)
		return;
	if (to - from < 2)
		to = from + 2; /* the shortest is still to be seen */
	mmr_html_put(f,
		     "<rect x=\"%.2f\" y=\"3\" width=\"%.2f\" height=\"14\" "
		     "class=\"o%d%s\"><title>",
		     from, to - from, s->op % COLOURS,
		     s->unfinished ? " open" : "");
	mmr_html_text(f, text ? text : s->name);
	mmr_html_put(f, ", %s from the stall's begin, %s%s</title></rect>",
		     mmr_html_time(buf, sizeof(buf), fabs(s->ts - stall) * 1e3),
		     s->ts < stall ? "before, " : "after, ",
		     s->unfinished ? "not finished" : "finished");
	if (s->unfinished)
		rect(f, from, 17, to - from, 3, "stuck");
}

static void rows(FILE *f, const struct mmr_timeline_view *v,
		 const struct frame *w)
{
	size_t i, n;
	int k;

	for (k = 0; k < v->nrows && k < ROWS; k++) {
		fputs("<span>", f);
		mmr_html_text(f, v->rows[k].name);
		fputs("<br><span class=\"dim\">", f);
		mmr_html_text(f, v->rows[k].proc);
		fputs("</span></span>\n", f);
		strip_begin(f, HEIGHT, v->rows[k].name);
		for (i = 0, n = 0; i < v->nslices && n < SLICES_MAX; i++) {
			if (v->slices[i].row != k)
				continue;
			slice(f, w, &v->slices[i], v->stall);
			n++;
		}
		rect(f, place(w, v->stall) - 1, 0, 2, HEIGHT, "mark");
		strip_end(f);
	}
}

static void axis(FILE *f, double from_us, double to_us)
{
	char a[24], b[24];

	mmr_html_put(f,
		     "<div class=\"axis\"><span>%s before</span><span>the "
		     "stall begins at the line</span><span>%s after</span>"
		     "</div>\n",
		     mmr_html_time(a, sizeof(a), from_us * 1e3),
		     mmr_html_time(b, sizeof(b), to_us * 1e3));
}

/* The operations that the picture has, by colour. */
static void legend(FILE *f, const struct mmr_timeline_view *v,
		   const struct frame *w)
{
	bool used[MMR_VIEW_OPS] = {false};
	size_t i;
	int k;

	for (i = 0; i < v->nslices; i++)
		if (v->slices[i].ts <= w->hi &&
		    v->slices[i].ts + v->slices[i].dur >= w->lo)
			used[v->slices[i].op] = true;
	fputs("<ul class=\"legend\">\n", f);
	for (k = 0; k < v->nops; k++) {
		if (!used[k])
			continue;
		mmr_html_put(f, "<li><i class=\"o%d\"></i>", k % COLOURS);
		mmr_html_text(f, v->ops[k]);
		fputs("</li>\n", f);
	}
	fputs("<li><i class=\"stuck\" style=\"background:var(--bad)\"></i>not "
	      "finished</li>\n</ul>\n",
	      f);
}

/* From the begin of the stall to the end of the looks at it. */
static void looks(FILE *f, const struct mmr_timeline_view *v)
{
	struct frame w = {v->stall, v->end > v->stall ? v->end : v->stall + 1};
	char a[24], b[24], label[80];
	double most = 1;
	size_t i;
	int k;

	if (!v->nsteps)
		return;
	fputs("<figure><div class=\"strips\">\n", f);
	for (i = 0; i < v->nfaults; i++)
		if (v->faults[i].value > most)
			most = v->faults[i].value;
	if (v->nfaults) {
		snprintf(label, sizeof(label), "page faults a second");
		fputs("<span>page faults a second<br><span class=\"dim\">up "
		      "to ",
		      f);
		mmr_html_put(f, "%s</span></span>\n",
			     mmr_html_count(a, sizeof(a), most));
		strip_begin(f, 40, label);
		for (i = 0; i < v->nfaults; i++) {
			double next = i + 1 < v->nfaults ? v->faults[i + 1].ts
							 : v->faults[i].ts + 1;
			double x = place(&w, v->faults[i].ts);
			double h = 38 * v->faults[i].value / most;

			rect(f, x, 40 - h, fmax(place(&w, next) - x, 2), h,
			     "bar");
		}
		strip_end(f);
	}
	fputs("<span>looked at by mmrace</span>\n", f);
	strip_begin(f, HEIGHT, "steps of looking at it");
	for (k = 0; k < v->nsteps; k++) {
		double x = place(&w, v->steps[k].ts);
		double to = place(&w, v->steps[k].ts + v->steps[k].dur);

		mmr_html_put(f,
			     "<rect x=\"%.2f\" y=\"3\" width=\"%.2f\" height="
			     "\"14\" class=\"%s\"><title>",
			     x, fmax(to - x, 2),
			     v->steps[k].moved ? "mark" : "step");
		mmr_html_text(f, v->steps[k].name);
		fputs("</title></rect>", f);
	}
	rect(f, place(&w, v->flag) - 1, 0, 2, HEIGHT, "mark");
	strip_end(f);
	mmr_html_put(f,
		     "<div class=\"axis\"><span>the stall begins</span><span>"
		     "flagged after %s: the line</span><span>%s</span></div>\n",
		     mmr_html_time(a, sizeof(a), (v->flag - v->stall) * 1e3),
		     mmr_html_time(b, sizeof(b), (w.hi - w.lo) * 1e3));
	fputs("</div><figcaption>The stall as a whole, and when it was looked "
	      "at.</figcaption></figure>\n",
	      f);
}

void mmr_html_timeline(FILE *f, const json_t *timeline, int number)
{
	struct mmr_timeline_view *v = mmr_timeline_view(timeline);
	struct frame w;

	if (!v || !v->nslices || !v->nrows)
		goto out;
	w.lo = v->lo;
	w.hi = v->hi;
	mmr_html_put(f, "<h3 id=\"t%d\">The last moments</h3>\n", number);
	fputs("<figure><div class=\"strips\">\n", f);
	rows(f, v, &w);
	axis(f, v->stall - v->lo, v->hi - v->stall);
	fputs("</div>\n", f);
	legend(f, v, &w);
	if (v->nrows > ROWS)
		mmr_html_put(f,
			     "<p class=\"dim\">%d more threads are in "
			     "timeline.json</p>\n",
			     v->nrows - ROWS);
	fputs("<figcaption>What each thread did; <code>timeline.json</code> "
	      "opens in Perfetto.</figcaption></figure>\n",
	      f);
	looks(f, v);
out:
	mmr_timeline_view_free(v);
}

/* -- rates -------------------------------------------------------------- */

void mmr_html_rate(FILE *f, const json_t *rate)
{
	double lo = mmr_html_num(rate, "lo"), hi = mmr_html_num(rate, "hi");
	double runs = mmr_html_num(rate, "runs");
	double hits = mmr_html_num(rate, "hits");
	double at = runs > 0 ? hits / runs : 0;
	char buf[24];

	if (!json_is_object(rate) || runs <= 0)
		return;
	lo = fmin(fmax(lo, 0), 1);
	hi = fmin(fmax(hi, lo), 1);
	mmr_html_put(f,
		     "<h3>How often</h3>\n<p>%.0f of %.0f runs: %.3g %% (95 %% "
		     "interval %.3g to %.3g %%)",
		     hits, runs, at * 100, lo * 100, hi * 100);
	if (hits > 0)
		mmr_html_put(f, "; one in about %s of running",
			     mmr_html_time(buf, sizeof(buf),
					   mmr_html_num(rate, "wall_s") * 1e9 /
						   hits));
	fputs(".</p>\n<figure><div class=\"strips\"><span>rate a run</span>\n",
	      f);
	strip_begin(f, HEIGHT, "rate with its interval");
	rect(f, lo * WIDTH, 4, fmax((hi - lo) * WIDTH, 2), 12, "soft");
	rect(f, clamp(at * WIDTH - 2), 2, 4, 16, "bar");
	strip_end(f);
	fputs("<div class=\"axis\"><span>0 %</span><span>50 %</span>"
	      "<span>100 %</span></div></div></figure>\n",
	      f);
}

/* -- latencies ---------------------------------------------------------- */

#define FASTEST 10.0 /* ns, the left end */
#define DECADES 10.0 /* to 100 s */

static double log_place(double ns)
{
	return clamp((log10(ns > FASTEST ? ns : FASTEST) - log10(FASTEST)) /
		     DECADES * WIDTH);
}

/* Bars of the distribution; without one a span from median to the slowest. */
static void distribution(FILE *f, const json_t *op)
{
	json_t *hist = json_object_get(op, "hist"), *b;
	double most = 1, n, x;
	size_t i;

	for (i = 1; i < (size_t)DECADES; i++)
		mmr_html_put(f,
			     "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"0\" y2=\"30\" "
			     "class=\"grid\"/>",
			     (double)i * WIDTH / DECADES,
			     (double)i * WIDTH / DECADES);
	json_array_foreach (hist, i, b) {
		n = json_number_value(json_array_get(b, 1));
		most = n > most ? n : most;
	}
	if (!json_array_size(hist)) {
		x = log_place(mmr_html_num(op, "p50_ns"));
		rect(f, x, 9,
		     fmax(log_place(mmr_html_num(op, "p99_ns")) - x, 3), 12,
		     "bar");
	}
	json_array_foreach (hist, i, b) {
		x = log_place(json_number_value(json_array_get(b, 0)));
		n = json_number_value(json_array_get(b, 1));
		/* By the logarithm: one call in a million is what counts. */
		n = n > 0 ? 2 + 26 * log(1 + n) / log(1 + most) : 0;
		rect(f, x, 30 - n, 9, n, "bar");
	}
	x = log_place(mmr_html_num(op, "max_ns"));
	rect(f, fmin(x, WIDTH - 3), 0, 3, 30, "mark");
}

void mmr_html_latency(FILE *f, const json_t *ops)
{
	char p50[24], p99[24], max[24], n[40];
	const json_t *op;
	size_t i;

	if (!json_array_size(ops))
		return;
	fputs("<h3>Latency of each operation</h3>\n<figure>"
	      "<div class=\"strips\">\n",
	      f);
	for (i = 0; i < json_array_size(ops); i++) {
		op = json_array_get(ops, i);
		fputs("<span><b>", f);
		mmr_html_text(f, mmr_html_str(op, "op"));
		mmr_html_put(
			f,
			"</b> %s&times;<br><span class=\"dim\">p50 %s, p99 %s, "
			"max %s</span></span>\n",
			mmr_html_count(n, sizeof(n), mmr_html_num(op, "count")),
			mmr_html_time(p50, sizeof(p50),
				      mmr_html_num(op, "p50_ns")),
			mmr_html_time(p99, sizeof(p99),
				      mmr_html_num(op, "p99_ns")),
			mmr_html_time(max, sizeof(max),
				      mmr_html_num(op, "max_ns")));
		strip_begin(f, 30, mmr_html_str(op, "op"));
		distribution(f, op);
		strip_end(f);
	}
	fputs("<div class=\"axis\"><span>10 ns</span><span>1 us</span>"
	      "<span>100 us</span><span>10 ms</span><span>1 s</span>"
	      "<span>100 s</span></div></div>\n<figcaption>Time from left to "
	      "right and number of calls both by the logarithm; the line at "
	      "the right is the slowest call.</figcaption></figure>\n",
	      f);
}
