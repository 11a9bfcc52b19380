// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a case needs to say something: how many runs its rate demands, and
 * whether others may run at the same time.
 */
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stat.h"

#define MISS 0.05 /* a failure of the seen rate is missed that often */

const char *mmr_suite_outcome_name(enum mmr_suite_outcome o)
{
	static const char *const names[] = {"pass",	    "fail",  "skip",
					    "inconclusive", "error", "known"};

	return names[o];
}

double mmr_suite_bound(uint64_t n)
{
	return n ? -expm1(log(MISS) / (double)n) : 1;
}

/*
 * What a case has of the machine as a whole.  Beside another case the one
 * would change what the other measures, or fail for the other's deeds.
 */
static const char *machine_wide(const struct mmr_case *c)
{
	int i;

	if (c->nsettings)
		return "it changes kernel settings";
	for (i = 0; i < c->nneeds; i++)
		if (c->needs[i].kind == MMR_NEED_HUGEPAGES)
			return "it needs the pool of huge pages";
		else if (c->needs[i].kind == MMR_NEED_MEMORY)
			return "it needs much of the memory";
		else if (c->needs[i].kind == MMR_NEED_WRITES ||
			 c->needs[i].kind == MMR_NEED_SWAP)
			return "it changes the machine's memory management";
	for (i = 0; i < c->nexpects; i++)
		if (c->expects[i].kind == MMR_EXPECT_RESTORED)
			return "it compares a count of the whole machine";
		else if (c->expects[i].kind == MMR_EXPECT_QUIET)
			return "it reads the kernel log";
	for (i = 0; i < mmr_case_count(c); i++) {
		const struct mmr_stmt *st = mmr_case_stmt(c, i);

		if (st->kind == MMR_STMT_OP && st->op->machine_wide)
			return "it works on the memory of the whole machine";
	}
	return NULL;
}

void mmr_suite_plan(struct mmr_suite *s, const struct mmr_suite_opts *o)
{
	int i;

	for (i = 0; i < s->n; i++) {
		struct mmr_suite_case *t = &s->cases[i];
		const struct mmr_case *c = t->c;

		t->want_runs = o->runs;
		if (!o->runs && c->seen_hits > 0 && c->seen_runs > 0)
			t->want_runs = mmr_stat_runs(
				(double)c->seen_hits / (double)c->seen_runs,
				MISS);
		/* Each guest is a machine of its own. */
		t->alone_why = o->run.guest ? NULL : machine_wide(c);
		t->alone = t->alone_why != NULL;
	}
}

/* 12345 as 12,345. */
static char *grouped(char *buf, size_t n, uint64_t v)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%llu",
				      (unsigned long long)v);
	size_t i, at = 0;

	for (i = 0; i < len && at + 2 < n; i++) {
		if (i && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

/* A share in percent, with two digits that say something. */
static char *percent(char *buf, size_t n, double p)
{
	p *= 100;
	if (p > 0 && p < 0.001)
		snprintf(buf, n, "%.1e %%", p);
	else
		snprintf(buf, n, "%.*f %%",
			 p >= 10 || p <= 0 ? 0
			 : p >= 1	   ? 1
			 : p >= 0.1	   ? 2
			 : p >= 0.01	   ? 3
					   : 4,
			 p);
	return buf;
}

char *mmr_suite_rate_text(char *buf, size_t n, const struct mmr_suite_case *t)
{
	uint64_t valid = t->rounds - t->rounds_void;
	char a[32], b[32], p[24], q[24], r[24];
	double lo, hi;

	if (t->hits) {
		mmr_stat_interval(t->hits, t->runs, 0.95, &lo, &hi);
		snprintf(buf, n, "%s of %s runs: rate %s (%s to %s at 95 %%)",
			 grouped(a, sizeof(a), t->hits),
			 grouped(b, sizeof(b), t->runs),
			 percent(p, sizeof(p),
				 (double)t->hits / (double)t->runs),
			 percent(q, sizeof(q), lo), percent(r, sizeof(r), hi));
	} else if (!valid) {
		snprintf(buf, n, "0 of 0 rounds");
	} else if (t->runs > 1) {
		snprintf(buf, n,
			 "0 of %s rounds: rate < %s at 95 %%; 0 of %s runs: "
			 "< %s",
			 grouped(a, sizeof(a), valid),
			 percent(p, sizeof(p), mmr_suite_bound(valid)),
			 grouped(b, sizeof(b), t->runs),
			 percent(q, sizeof(q), mmr_suite_bound(t->runs)));
	} else {
		snprintf(buf, n, "0 of %s rounds: rate < %s at 95 %%",
			 grouped(a, sizeof(a), valid),
			 percent(p, sizeof(p), mmr_suite_bound(valid)));
	}
	return buf;
}
