// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One finding on the page, in the order in which it is read: what happens, how
 * often, what each thread did, where it hangs, what was looked at and what that
 * changed, how to see it again, on which machine.
 */
#include "html.h"

#include <inttypes.h>
#include <string.h>

static void chips(FILE *f, const struct mmr_html_finding *d)
{
	const char *class = mmr_html_str(d->verdict, "class");

	fputs("<p><span class=\"chip\">", f);
	mmr_html_text(f, mmr_html_str(d->verdict, "verdict"));
	fputs("</span>", f);
	if (class && strcmp(class, "none") && strcmp(class, "unknown")) {
		fputs(" <span class=\"chip\">", f);
		mmr_html_text(f, class);
		fputs("</span>", f);
	}
	if (d->known)
		fputs(" <span class=\"chip calm\">set aside</span>", f);
	fputs("</p>\n", f);
}

static void facts(FILE *f, const struct mmr_html_finding *d)
{
	const json_t *v = d->verdict;
	const json_t *m = json_object_get(d->evidence, "measured");
	const json_t *p = json_object_get(d->evidence, "perf");
	char buf[40];

	fputs("<dl>\n", f);
	mmr_html_fact(f, "signature", mmr_html_str(v, "signature"));
	mmr_html_factf(f, "seen", "%.0f time%s", mmr_html_num(v, "count"),
		       mmr_html_num(v, "count") == 1 ? "" : "s");
	mmr_html_fact(f, "first seen", mmr_html_str(v, "first_seen"));
	mmr_html_fact(f, "last seen", mmr_html_str(v, "last_seen"));
	mmr_html_fact(f, "ended by", mmr_html_str(v, "ended_by"));
	if (mmr_html_num(m, "wall_ms") > 0) {
		mmr_html_factf(f, "stalled for", "%.0f ms (rule: %.0f ms)",
			       mmr_html_num(m, "wall_ms"),
			       mmr_html_num(m, "limit_ms"));
		mmr_html_factf(f, "of it on CPU, asleep, waiting",
			       "%.0f, %.0f, %.0f ms", mmr_html_num(m, "cpu_ms"),
			       mmr_html_num(m, "asleep_ms"),
			       mmr_html_num(m, "run_delay_ms"));
	}
	if (p && mmr_html_num(p, "faults_per_s") >= 1)
		mmr_html_fact(f, "page faults a second (perf)",
			      mmr_html_count(buf, sizeof(buf),
					     mmr_html_num(p, "faults_per_s")));
	mmr_html_fact(f, "title of the case", mmr_html_str(v, "title"));
	mmr_html_fact(f, "seed", mmr_html_str(v, "seed"));
	mmr_html_fact(f, "profile", mmr_html_str(v, "profile"));
	mmr_html_factf(f, "kernel", "%s %s, %.0f CPUs",
		       mmr_html_str(v, "kernel") ?: "?",
		       mmr_html_str(v, "arch") ?: "?", mmr_html_num(v, "cpus"));
	mmr_html_fact(f, "guest", mmr_html_str(v, "guest"));
	mmr_html_fact(f, "mmrace", mmr_html_str(v, "tool"));
	fputs("</dl>\n", f);
}

static void steps(FILE *f, const json_t *e)
{
	const json_t *list = json_object_get(e, "steps"), *s;
	json_t *missing = json_object_get(e, "missing"), *m;
	bool moved;
	size_t i;

	if (!json_array_size(list))
		return;
	fputs("<h3>What was looked at, and what it changed</h3>\n"
	      "<div class=\"wide\" "
	      "tabindex=\"0\"><table><thead><tr><th>step</th>"
	      "<th class=\"n\">at</th><th class=\"n\">took</th><th>then</th>"
	      "</tr></thead><tbody>\n",
	      f);
	for (i = 0; i < json_array_size(list); i++) {
		s = json_array_get(list, i);
		moved = json_is_true(json_object_get(s, "moved"));
		mmr_html_put(f, "<tr%s><td>%.0f ",
			     moved ? " class=\"moved\"" : "",
			     mmr_html_num(s, "step"));
		mmr_html_text(f, mmr_html_str(s, "name"));
		mmr_html_put(f,
			     "</td><td class=\"n\">%.1f ms</td><td class=\"n\">"
			     "%.1f ms</td><td>",
			     mmr_html_num(s, "at_ms"),
			     mmr_html_num(s, "took_ms"));
		if (moved)
			fputs("it moved again. ", f);
		mmr_html_text(f, mmr_html_str(s, "note"));
		fputs("</td></tr>\n", f);
	}
	fputs("</tbody></table></div>\n", f);
	if (!json_array_size(missing))
		return;
	fputs("<p>Could not be had:</p><ul>\n", f);
	json_array_foreach (missing, i, m) {
		fputs("<li>", f);
		mmr_html_text(f, json_string_value(m));
		fputs("</li>\n", f);
	}
	fputs("</ul>\n", f);
}

static void reproduce(FILE *f, const struct mmr_html_finding *d)
{
	const char *seed = mmr_html_str(d->verdict, "seed");

	fputs("<h3>How to see it again</h3>\n<pre tabindex=\"0\">"
	      "mmrace replay ",
	      f);
	mmr_html_text(f, d->id);
	fputs("/case.case --runs 20    # its rate here\nmmrace min ", f);
	mmr_html_text(f, d->id);
	fputs("/case.case -o small.case   # as small as it gets\n"
	      "gcc -O2 -pthread ",
	      f);
	mmr_html_text(f, d->id);
	fputs("/repro.c -o repro &amp;&amp; ./repro   # without mmrace\n", f);
	if (seed) {
		fputs("mmrace gen --seed ", f);
		mmr_html_text(f, seed);
		if (mmr_html_str(d->verdict, "profile")) {
			fputs(" --profile ", f);
			mmr_html_text(f, mmr_html_str(d->verdict, "profile"));
		}
		fputs("   # the case as it was generated\n", f);
	}
	fputs("</pre>\n", f);
}

static void kernel_reports(FILE *f, const struct mmr_html_finding *d)
{
	const json_t *k = json_object_get(d->evidence, "kernel");
	json_t *list = json_object_get(k, "reports"), *r;
	size_t i;

	json_array_foreach (list, i, r) {
		if (i == 16)
			break;
		if (!i)
			fputs("<h3>Kernel log</h3>\n", f);
		fputs("<details open><summary>", f);
		mmr_html_text(f, mmr_html_str(r, "kind"));
		if (mmr_html_num(r, "cpu") >= 0)
			mmr_html_put(f, ", CPU %.0f", mmr_html_num(r, "cpu"));
		if (mmr_html_num(r, "pid") >= 0) {
			fputs(", task ", f);
			mmr_html_text(f, mmr_html_str(r, "comm"));
			mmr_html_put(f, " (%.0f)", mmr_html_num(r, "pid"));
		}
		fputs("</summary><pre tabindex=\"0\">", f);
		mmr_html_text(f, mmr_html_str(r, "text"));
		fputs("</pre></details>\n", f);
	}
	mmr_html_block(f, "Kernel log as it came", d->log, false);
}

void mmr_html_finding(FILE *f, const struct mmr_html_finding *d, int number)
{
	mmr_html_put(f, "<section id=\"f%d\"><h2>", number);
	mmr_html_text(f, d->id);
	fputs("</h2>\n", f);
	chips(f, d);
	fputs("<p class=\"says\">", f);
	mmr_html_text(f, mmr_html_str(d->verdict, "text"));
	fputs("</p>\n", f);
	facts(f, d);
	mmr_html_rate(f, json_object_get(d->verdict, "rate"));
	mmr_html_timeline(f, d->timeline, number);
	if (d->stacks && *d->stacks) {
		fputs("<h3>Stacks</h3>\n<pre tabindex=\"0\">", f);
		mmr_html_text(f, d->stacks);
		fputs("</pre>\n", f);
	}
	kernel_reports(f, d);
	steps(f, d->evidence);
	fputs("<h3>The case</h3>\n<pre tabindex=\"0\">", f);
	mmr_html_text(f, d->case_text ? d->case_text : "(not there)");
	fputs("</pre>\n", f);
	reproduce(f, d);
	if (d->samples)
		mmr_html_put(f,
			     "<p>Evidence of %d later sighting%s is in "
			     "<code>samples/</code>.</p>\n",
			     d->samples, d->samples == 1 ? "" : "s");
	mmr_html_block(f,
		       "report.md, with kernel configuration and machine: "
		       "ready for a mail",
		       d->report, false);
	fputs("</section>\n", f);
}
