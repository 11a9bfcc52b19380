// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Results of a suite as lines: for people, as TAP version 13
 * (testanything.org) and as KTAP version 1 (the kernel's
 * Documentation/dev-tools/ktap.rst), whose totals are those of kselftest.
 *
 * Inconclusive is a skip in both: it is no failure, and counting it as passed
 * would claim what was not seen.
 */
#include <string.h>

#include "suite.h"

/* A line stays a line, and # begins a directive. */
static void put_safe(FILE *f, const char *s, bool hash)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			fputc(' ', f);
		else if (*s == '#' && !hash)
			fputc('_', f);
		else
			fputc(*s, f);
}

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

void mmr_suite_text_case(FILE *f, const struct mmr_suite_case *t, int width)
{
	static const char *const words[] = {"ok",     "FAIL",  "skip",
					    "unsure", "ERROR", "known"};
	char rate[200];

	fprintf(f, "%-6s  %-*s  ", words[t->outcome], width, t->name);
	if (t->outcome == MMR_SUITE_PASS)
		fprintf(f, "%s", mmr_suite_rate_text(rate, sizeof(rate), t));
	else
		put_safe(f, t->why, true);
	if (t->outcome == MMR_SUITE_INCONCLUSIVE && t->rounds > t->rounds_void)
		fprintf(f, " (%s)", mmr_suite_rate_text(rate, sizeof(rate), t));
	if (t->wall_ns)
		fprintf(f, ", %.1f s", seconds(t->wall_ns));
	fputc('\n', f);
	if (t->hits)
		fprintf(f, "%*s%s\n", width + 10, "",
			mmr_suite_rate_text(rate, sizeof(rate), t));
	if (t->hits && t->c->fixed_commit)
		fprintf(f, "%*sfixed by %s%s%s%s\n", width + 10, "",
			t->c->fixed_commit, t->c->fixed_subject ? " \"" : "",
			t->c->fixed_subject ? t->c->fixed_subject : "",
			t->c->fixed_subject ? "\"" : "");
	if (t->finding[0])
		fprintf(f, "%*s%s\n", width + 10, "", t->finding);
	if (t->hits && t->quarantined)
		fprintf(f, "%*s%d tasks are left that cannot be killed\n",
			width + 10, "", t->quarantined);
}

void mmr_suite_text_end(FILE *f, const struct mmr_suite *s)
{
	const char *const words[] = {"passed",
				     "failed",
				     "skipped",
				     "inconclusive",
				     "not run by an error",
				     "known"};
	int i;

	fprintf(f, "%d case%s:", s->n, s->n == 1 ? "" : "s");
	for (i = 0; i < MMR_SUITE_OUTCOMES; i++)
		if (s->count[i] || i <= MMR_SUITE_SKIP)
			fprintf(f, "%s %d %s", i ? "," : "", s->count[i],
				words[i]);
	fprintf(f, " in %.1f s", seconds(s->wall_ns));
	if (s->guest[0])
		fprintf(f, ", guest %s", s->guest);
	fputc('\n', f);
}

void mmr_suite_tap_head(FILE *f, const struct mmr_suite *s, bool ktap)
{
	fprintf(f, "%s\n1..%d\n", ktap ? "KTAP version 1" : "TAP version 13",
		s->n);
	fflush(f);
}

/* A value of the block behind a result: quoted, as a sentence may hold any
 * character. */
static void yaml(FILE *f, const char *key, const char *s)
{
	fprintf(f, "  %s: '", key);
	for (; *s; s++) {
		if (*s == '\'')
			fputc('\'', f);
		fputc((unsigned char)*s < ' ' ? ' ' : *s, f);
	}
	fputs("'\n", f);
}

static void tap_block(FILE *f, const struct mmr_suite_case *t)
{
	char rate[200];

	fputs("  ---\n", f);
	yaml(f, "rate", mmr_suite_rate_text(rate, sizeof(rate), t));
	fprintf(f, "  runs: %llu\n  rounds: %llu\n  seconds: %.3f\n",
		(unsigned long long)t->runs,
		(unsigned long long)(t->rounds - t->rounds_void),
		seconds(t->wall_ns));
	if (t->outcome != MMR_SUITE_PASS)
		yaml(f, "message", t->why);
	if (t->hits) {
		yaml(f, "verdict", mmr_verdict_name(t->verdict));
		yaml(f, "signature", t->signature);
	}
	if (t->finding[0])
		yaml(f, "finding", t->finding);
	fputs("  ...\n", f);
}

static void ktap_notes(FILE *f, const struct mmr_suite_case *t)
{
	char rate[200];

	fputs("# ", f);
	put_safe(f, t->name, false);
	fprintf(f, ": %s, %.1f s\n", mmr_suite_rate_text(rate, sizeof(rate), t),
		seconds(t->wall_ns));
	if (!t->hits)
		return;
	fputs("# ", f);
	put_safe(f, t->why, false);
	fputc('\n', f);
	if (t->finding[0]) {
		fputs("# finding ", f);
		put_safe(f, t->finding, false);
		fputc('\n', f);
	}
}

void mmr_suite_tap_case(FILE *f, const struct mmr_suite_case *t, int number,
			bool ktap)
{
	bool known = t->outcome == MMR_SUITE_KNOWN;
	/* An expected failure is a TODO that is not ok in TAP, and an ok that
	 * says XFAIL in what kselftest prints. */
	bool ok = t->outcome != MMR_SUITE_FAIL &&
		  t->outcome != MMR_SUITE_ERROR && (!known || ktap);

	if (ktap && t->runs)
		ktap_notes(f, t);
	/* KTAP has no dash between number and description. */
	fprintf(f, "%sok %d %s", ok ? "" : "not ", number, ktap ? "" : "- ");
	put_safe(f, t->name, false);
	if (t->outcome == MMR_SUITE_SKIP ||
	    t->outcome == MMR_SUITE_INCONCLUSIVE) {
		fputs(t->outcome == MMR_SUITE_SKIP ? " # SKIP "
						   : " # SKIP inconclusive: ",
		      f);
		put_safe(f, t->why, false);
	} else if (known) {
		fputs(ktap ? " # XFAIL " : " # TODO ", f);
		put_safe(f, t->why, false);
	} else if (t->outcome == MMR_SUITE_ERROR && ktap) {
		fputs(" # ERROR ", f);
		put_safe(f, t->why, false);
	}
	fputc('\n', f);
	if (!ktap && (t->runs || !ok))
		tap_block(f, t);
	fflush(f);
}

void mmr_suite_tap_end(FILE *f, const struct mmr_suite *s, bool ktap)
{
	if (ktap)
		fprintf(f,
			"# Totals: pass:%d fail:%d xfail:%d xpass:0 skip:%d "
			"error:%d\n",
			s->count[MMR_SUITE_PASS], s->count[MMR_SUITE_FAIL],
			s->count[MMR_SUITE_KNOWN],
			s->count[MMR_SUITE_SKIP] +
				s->count[MMR_SUITE_INCONCLUSIVE],
			s->count[MMR_SUITE_ERROR]);
	else
		fprintf(f,
			"# %d passed, %d failed, %d skipped, %d inconclusive, "
			"%d errors, %d known\n",
			s->count[MMR_SUITE_PASS], s->count[MMR_SUITE_FAIL],
			s->count[MMR_SUITE_SKIP],
			s->count[MMR_SUITE_INCONCLUSIVE],
			s->count[MMR_SUITE_ERROR], s->count[MMR_SUITE_KNOWN]);
}
