// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Results of a suite for programs: the JUnit file that build servers read
 * (there is no standard; elements and attributes are those that Ant writes
 * and Jenkins, GitLab and GitHub read), and JSON.
 */
#include <string.h>

#include "suite.h"

#define NAME_MAX_LEN 400

/* Attribute or text: XML 1.0 has no control characters at all. */
static void xml(FILE *f, const char *s)
{
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;

		if (ch == '&')
			fputs("&amp;", f);
		else if (ch == '<')
			fputs("&lt;", f);
		else if (ch == '>')
			fputs("&gt;", f);
		else if (ch == '"')
			fputs("&quot;", f);
		else if ((ch < ' ' && ch != '\n' && ch != '\t') || ch >= 0x7f)
			fputc('?', f); /* also: a log is of no known encoding */
		else
			fputc(ch, f);
	}
}

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static void testcase_body(FILE *f, const struct mmr_suite_case *t)
{
	const char *tag = t->outcome == MMR_SUITE_FAIL ? "failure" : "error";
	char rate[200];

	if (t->outcome == MMR_SUITE_SKIP || t->outcome == MMR_SUITE_KNOWN ||
	    t->outcome == MMR_SUITE_INCONCLUSIVE) {
		fprintf(f, "      <skipped message=\"%s",
			t->outcome == MMR_SUITE_SKIP	? ""
			: t->outcome == MMR_SUITE_KNOWN ? "known: "
							: "inconclusive: ");
		xml(f, t->why);
		fputs("\"/>\n", f);
	} else if (t->outcome != MMR_SUITE_PASS) {
		fprintf(f, "      <%s type=\"%s\" message=\"", tag,
			mmr_verdict_name(t->verdict));
		xml(f, t->why);
		fputs("\">", f);
		xml(f, t->why);
		fputc('\n', f);
		if (t->finding[0]) {
			fputs("finding: ", f);
			xml(f, t->finding);
			fputc('\n', f);
		}
		fprintf(f, "</%s>\n", tag);
	}
	if (t->runs || t->rounds) {
		fputs("      <system-out>", f);
		xml(f, mmr_suite_rate_text(rate, sizeof(rate), t));
		fputs("</system-out>\n", f);
	}
	if (t->log) {
		fputs("      <system-err>", f);
		xml(f, t->log);
		fputs("</system-err>\n", f);
	}
}

/* dir/name: the folder is the class. */
static void testcase(FILE *f, const struct mmr_suite_case *t)
{
	const char *base = strrchr(t->name, '/');
	char dir[NAME_MAX_LEN] = "mmrace";

	if (base)
		snprintf(dir, sizeof(dir), "%.*s", (int)(base - t->name),
			 t->name);
	fputs("    <testcase classname=\"", f);
	xml(f, dir);
	fputs("\" name=\"", f);
	xml(f, base ? base + 1 : t->name);
	fprintf(f, "\" time=\"%.3f\">\n", seconds(t->wall_ns));
	testcase_body(f, t);
	fputs("    </testcase>\n", f);
}

static void counts(FILE *f, const struct mmr_suite *s, bool skipped)
{
	fprintf(f,
		" name=\"mmrace\" tests=\"%d\" failures=\"%d\" errors=\"%d\"",
		s->n, s->count[MMR_SUITE_FAIL], s->count[MMR_SUITE_ERROR]);
	if (skipped)
		fprintf(f, " skipped=\"%d\"",
			s->count[MMR_SUITE_SKIP] + s->count[MMR_SUITE_KNOWN] +
				s->count[MMR_SUITE_INCONCLUSIVE]);
	fprintf(f, " time=\"%.3f\"", seconds(s->wall_ns));
}

void mmr_suite_junit(FILE *f, const struct mmr_suite *s)
{
	int i;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", f);
	counts(f, s, false);
	fputs(">\n  <testsuite", f);
	counts(f, s, true);
	fprintf(f, " timestamp=\"%s\">\n", s->start);
	if (s->guest[0]) {
		fputs("    <properties>\n      <property name=\"guest\" "
		      "value=\"",
		      f);
		xml(f, s->guest);
		fputs("\"/>\n    </properties>\n", f);
	}
	for (i = 0; i < s->n; i++)
		testcase(f, &s->cases[i]);
	fputs("  </testsuite>\n</testsuites>\n", f);
}

static void set_string(json_t *j, const char *key, const char *s)
{
	json_object_set_new(j, key, s && s[0] ? json_string(s) : json_null());
}

static json_t *case_json(const struct mmr_suite_case *t)
{
	uint64_t valid = t->rounds - t->rounds_void;
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = {
		{"runs", t->runs},
		{"hits", t->hits},
		{"void_runs", t->voids},
		{"rounds", valid},
		{"void_rounds", t->rounds_void},
		{"calls", t->calls},
		{"wall_ns", (uint64_t)t->wall_ns},
		{"left_behind", (uint64_t)t->quarantined},
	};
	json_t *j = json_object();
	char rate[200];
	size_t i;

	set_string(j, "name", t->name);
	set_string(j, "path", t->path);
	set_string(j, "outcome", mmr_suite_outcome_name(t->outcome));
	set_string(j, "verdict", mmr_verdict_name(t->verdict));
	set_string(j, "reason", t->why);
	set_string(j, "signature", t->signature);
	set_string(j, "finding", t->finding);
	json_object_set_new(j, "wanted_runs",
			    t->want_runs
				    ? json_integer((json_int_t)t->want_runs)
				    : json_null());
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(j, numbers[i].key,
				    json_integer((json_int_t)numbers[i].v));
	json_object_set_new(j, "round_rate_bound95",
			    !t->hits && valid
				    ? json_real(mmr_suite_bound(valid))
				    : json_null());
	json_object_set_new(j, "run_rate_bound95",
			    !t->hits && t->runs
				    ? json_real(mmr_suite_bound(t->runs))
				    : json_null());
	set_string(j, "rate", mmr_suite_rate_text(rate, sizeof(rate), t));
	set_string(j, "alone", t->alone_why);
	return j;
}

json_t *mmr_suite_json(const struct mmr_suite *s)
{
	json_t *j = json_object(), *cases = json_array();
	int i;

	for (i = 0; i < s->n; i++)
		json_array_append_new(cases, case_json(&s->cases[i]));
	for (i = 0; i < MMR_SUITE_OUTCOMES; i++)
		json_object_set_new(
			j, mmr_suite_outcome_name((enum mmr_suite_outcome)i),
			json_integer(s->count[i]));
	json_object_set_new(j, "total", json_integer(s->n));
	json_object_set_new(j, "wall_ns", json_integer(s->wall_ns));
	set_string(j, "guest", s->guest);
	json_object_set_new(j, "cases", cases);
	return j;
}
