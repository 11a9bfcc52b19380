// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Why each step was taken: a line for a reader, and the same for a program.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "min.h"

#define SAVE_NS 5000000000LL

static double since_start(const struct mmr_min *m)
{
	return (double)(mmr_clock_monotonic() - m->start_ns) / 1e9;
}

static void put(struct mmr_min *m, const char *line)
{
	FILE *to[2] = {m->opts->log, m->log_file};
	int i;

	for (i = 0; i < 2; i++) {
		if (!to[i])
			continue;
		fprintf(to[i], "%4d %6.1fs  %s\n", m->step, since_start(m),
			line);
		fflush(to[i]);
	}
}

void mmr_min_say(struct mmr_min *m, const char *fmt, ...)
{
	char line[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	m->step++;
	put(m, line);
	if (m->res->steps)
		json_array_append_new(m->res->steps,
				      json_pack("{s:i,s:f,s:s}", "step",
						m->step, "t", since_start(m),
						"what", line));
}

/* What the step is about. */
static void about(const struct mmr_min *m, const struct mmr_search_step *st,
		  char *buf, size_t n)
{
	static const char *const programs[] = {
		[MMR_SEARCH_BEST] = "the best so far",
		[MMR_SEARCH_ORIGINAL] = "the case as given",
		[MMR_SEARCH_EMPTY] = "the empty case",
		[MMR_SEARCH_NEUTRAL] = ("the case without the statement that "
					"was caught"),
		[MMR_SEARCH_ARM] = "a variant",
	};
	char set[700];

	if (!st->add) {
		snprintf(buf, n, "%s%s",
			 st->why == MMR_SEARCH_CONTROL ? "control of "
			 : st->why == MMR_SEARCH_FRESH ? "fresh runs of "
						       : "",
			 st->why == MMR_SEARCH_FRESH ? "the result"
						     : programs[st->what]);
		return;
	}
	mmr_min_set_describe(&m->set, st->add, set, sizeof(set));
	snprintf(buf, n, "%s%s%s",
		 st->why == MMR_SEARCH_BACK ? "the rate is gone since: " : "",
		 m->set.e[0].kind < MMR_MIN_UNWRAP ? "without " : "", set);
}

/* Counts and what they led to. */
static size_t results(const struct mmr_search_step *st, char *buf, size_t n)
{
	size_t have = 0;

	if (st->runs || st->voids)
		have += (size_t)snprintf(buf, n, ": %llu/%llu hits",
					 (unsigned long long)st->hits,
					 (unsigned long long)st->runs);
	if (st->others)
		have += (size_t)snprintf(buf + have, n - have,
					 ", %llu other failures",
					 (unsigned long long)st->others);
	if (st->voids)
		have += (size_t)snprintf(buf + have, n - have, ", %llu void",
					 (unsigned long long)st->voids);
	have += (size_t)snprintf(buf + have, n - have, ", %s", st->decision);
	if (st->p1 > 0)
		have += (size_t)snprintf(
			buf + have, n - have,
			" (rate >= %.3g, not <= %.3g; wrong with at most "
			"%.1f %%, %.1f %%)",
			st->p1, st->p0, 100 * st->alpha, 100 * st->beta);
	else if (st->belief > 0)
		have += (size_t)snprintf(buf + have, n - have,
					 " (chance that it can go: %.0f %%)",
					 100 * st->belief);
	return have;
}

static void add_json(struct mmr_min *m, const struct mmr_search_step *st,
		     const char *what)
{
	json_t *j;

	if (!m->res->steps)
		return;
	j = json_pack("{s:i,s:f,s:s,s:I,s:I,s:I,s:I,s:s,s:i}", "step", m->step,
		      "t", since_start(m), "what", what, "runs",
		      (json_int_t)st->runs, "hits", (json_int_t)st->hits,
		      "other_hits", (json_int_t)st->others, "void_runs",
		      (json_int_t)st->voids, "decision", st->decision, "left",
		      mmr_case_count(m->best));
	if (j && st->p1 > 0)
		json_object_update_new(j,
				       json_pack("{s:f,s:f,s:f,s:f}", "p1",
						 st->p1, "p0", st->p0, "alpha",
						 st->alpha, "beta", st->beta));
	else if (j && st->belief > 0)
		json_object_set_new(j, "belief", json_real(st->belief));
	json_array_append_new(m->res->steps, j);
}

void mmr_min_note(struct mmr_min *m, const struct mmr_search_step *st)
{
	char what[900], line[1400];
	size_t have;

	m->step++;
	about(m, st, what, sizeof(what));
	have = (size_t)snprintf(line, sizeof(line), "%s", what);
	have += results(st, line + have, sizeof(line) - have);
	snprintf(line + have, sizeof(line) - have, "; %d left",
		 mmr_case_count(m->best));
	put(m, line);
	add_json(m, st, what);
	if (m->opts->progress)
		m->opts->progress(m->opts->arg, mmr_case_count(m->best),
				  m->res->runs, what);
	/* What was learned since is worth keeping too. */
	if (m->phase < MMR_MIN_DONE && m->search.pass &&
	    mmr_clock_monotonic() - m->saved_ns > SAVE_NS)
		(void)!mmr_min_save(m);
}
