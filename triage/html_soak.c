// SPDX-License-Identifier: GPL-2.0-or-later
/* The soak on the page: what was run, how fast, its history, what was slow. */
#include "html.h"

#include <math.h>
#include <string.h>

#define BATCHES_MAX 2000 /* bars in the history */

static void counts(FILE *f, const json_t *s)
{
	static const struct {
		const char *key, *label;
	} rows[] = {
		{"cases", "cases run"},	   {"skipped", "skipped"},
		{"void", "void"},	   {"failed", "could not be run"},
		{"rounds", "rounds"},	   {"operations", "operations"},
		{"calls", "kernel calls"}, {"exits", "process exits"},
	};
	char buf[40], per[40];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (json_object_get(s, rows[i].key))
			mmr_html_fact(
				f, rows[i].label,
				mmr_html_count(buf, sizeof(buf),
					       mmr_html_num(s, rows[i].key)));
	mmr_html_factf(f, "a second", "%s operations, %s cases",
		       mmr_html_count(buf, sizeof(buf),
				      mmr_html_num(s, "operations_per_second")),
		       mmr_html_count(per, sizeof(per),
				      mmr_html_num(s, "cases_per_second")));
	if (mmr_html_num(s, "pause_ns") > 0)
		mmr_html_factf(f, "the machine stood still for", "%s",
			       mmr_html_time(buf, sizeof(buf),
					     mmr_html_num(s, "pause_ns")));
	if (json_object_get(s, "watch_cost"))
		mmr_html_factf(
			f, "watching cost", "%.2f %% of CPU time%s",
			mmr_html_num(s, "watch_cost") * 100,
			json_is_true(json_object_get(s, "watch_cost_high"))
				? ": more than it should"
				: "");
}

static void what_was_run(FILE *f, const json_t *s)
{
	char buf[40];

	fputs("<h2>What was run</h2>\n<dl>\n", f);
	mmr_html_fact(f, "state", mmr_html_str(s, "state"));
	mmr_html_factf(
		f, "time", "%s s",
		mmr_html_count(buf, sizeof(buf), mmr_html_num(s, "seconds")));
	mmr_html_fact(f, "profile", mmr_html_str(s, "profile"));
	mmr_html_factf(f, "seeds", "from %s, generator %.0f, shard %s",
		       mmr_html_str(s, "seed") ?: "?", mmr_html_num(s, "gen"),
		       mmr_html_str(s, "shard") ?: "0/1");
	mmr_html_factf(f, "at the same time", "%.0f case%s",
		       mmr_html_num(s, "jobs"),
		       mmr_html_num(s, "jobs") == 1 ? "" : "s");
	counts(f, s);
	fputs("</dl>\n", f);
}

static void sentences(FILE *f, const char *title, json_t *list)
{
	json_t *e;
	size_t i;

	if (!json_array_size(list))
		return;
	mmr_html_put(f, "<h3>%s</h3><ul>\n", title);
	json_array_foreach (list, i, e) {
		fputs("<li>", f);
		if (json_is_string(e)) {
			mmr_html_text(f, json_string_value(e));
		} else {
			mmr_html_put(f, "%.0f: ", mmr_html_num(e, "count"));
			mmr_html_text(f, mmr_html_str(e, "text"));
		}
		fputs("</li>\n", f);
	}
	fputs("</ul>\n", f);
}

static void known(FILE *f, json_t *list)
{
	json_t *e;
	size_t i;

	if (!json_array_size(list))
		return;
	fputs("<h3>Set aside by --known</h3><ul>\n", f);
	json_array_foreach (list, i, e) {
		mmr_html_put(f, "<li>%.0f times <code>",
			     mmr_html_num(e, "count"));
		mmr_html_text(f, mmr_html_str(e, "pattern"));
		fputs("</code> until ", f);
		mmr_html_text(f, mmr_html_str(e, "until"));
		fputs(": ", f);
		mmr_html_text(f, mmr_html_str(e, "reason"));
		fputs("</li>\n", f);
	}
	fputs("</ul>\n", f);
}

void mmr_html_soak(FILE *f, const struct mmr_html_source *src)
{
	const json_t *s = src->soak;

	if (!s && !json_array_size(src->history))
		return;
	fputs("<section id=\"soak\">\n", f);
	if (s)
		what_was_run(f, s);
	mmr_html_history(f, src->history);
	if (s) {
		mmr_html_latency(f, json_object_get(s, "ops"));
		known(f, json_object_get(s, "known"));
		sentences(f, "Skipped cases",
			  json_object_get(s, "skip_reasons"));
		sentences(f, "What this machine lacks",
			  json_object_get(s, "missing"));
	}
	fputs("</section>\n", f);
}

/* -- history ------------------------------------------------------------ */

static bool is_type(const json_t *line, const char *type)
{
	const char *t = mmr_html_str(line, "type");

	return t && !strcmp(t, type);
}

static double rate_of(const json_t *batch)
{
	double s = mmr_html_num(batch, "seconds");
	double n = mmr_html_num(json_object_get(batch, "counts"), "operations");

	return s > 0 && n > 0 ? n / s : 0;
}

/* Bars of the batches by the time that they took, a line where a soak began,
 * a mark at the batch in which a finding came. */
static void bars(FILE *f, const json_t *history, double all, double most)
{
	double at = 0, w, h;
	bool found = false;
	size_t i, n = 0;
	const json_t *l;

	for (i = 0; i < json_array_size(history) && n < BATCHES_MAX; i++) {
		l = json_array_get(history, i);
		if (is_type(l, "session") && at > 0)
			mmr_html_put(f,
				     "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" "
				     "y2=\"60\" class=\"grid\" stroke-width="
				     "\"3\"/>",
				     at / all * 1000, at / all * 1000);
		found |= is_type(l, "finding");
		if (!is_type(l, "batch"))
			continue;
		n++;
		w = fmax(mmr_html_num(l, "seconds"), 0) / all * 1000;
		h = most > 0 ? 56 * rate_of(l) / most : 0;
		mmr_html_put(f,
			     "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
			     "height=\"%.2f\" class=\"%s\"/>",
			     at / all * 1000, 60 - h,
			     fmax(w - (w > 4 ? 1 : 0), 0.5), h,
			     found ? "mark" : "bar");
		found = false;
		at += fmax(mmr_html_num(l, "seconds"), 0);
	}
}

void mmr_html_history(FILE *f, const json_t *history)
{
	double all = 0, most = 0, sessions = 0, findings = 0, lost = 0;
	char buf[40], time[24];
	const json_t *l;
	size_t i;

	for (i = 0; i < json_array_size(history); i++) {
		l = json_array_get(history, i);
		sessions += is_type(l, "session");
		findings += is_type(l, "finding");
		lost += is_type(l, "lost");
		if (!is_type(l, "batch"))
			continue;
		all += fmax(mmr_html_num(l, "seconds"), 0);
		most = fmax(most, rate_of(l));
	}
	if (all <= 0)
		return;
	mmr_html_put(f,
		     "<h3>History</h3>\n<p>%.0f start%s, %s of running, "
		     "findings seen %.0f times",
		     sessions, sessions == 1 ? "" : "s",
		     mmr_html_time(time, sizeof(time), all * 1e9), findings);
	if (lost > 0)
		mmr_html_put(f, ", ended by force %.0f times", lost);
	fputs(".</p>\n<figure><div class=\"strips\"><span>operations a second"
	      "<br><span class=\"dim\">up to ",
	      f);
	mmr_html_put(f,
		     "%s</span></span>\n<svg viewBox=\"0 0 1000 60\" "
		     "height=\"60\" preserveAspectRatio=\"none\" role=\"img\" "
		     "aria-label=\"operations a second over time\">",
		     mmr_html_count(buf, sizeof(buf), most));
	bars(f, history, all, most);
	mmr_html_put(f,
		     "</svg>\n<div class=\"axis\"><span>0</span><span>%s of "
		     "running</span></div></div>\n<figcaption>A bar for each "
		     "minute; red: with a finding.</figcaption></figure>\n",
		     time);
}
