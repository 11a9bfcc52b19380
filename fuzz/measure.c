// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measurements of a run for people and for programs.  Exits are split into
 * on-CPU, waiting for a CPU and asleep, as the cure differs: a slow loop in
 * the kernel, a busy machine, a wait for somebody else.
 */
#include "measure.h"

#define SLOW_NS 1000000000 /* the fixed limit of a call */

#include <stdlib.h>
#include <string.h>

const char *mmr_measure_time(char *buf, size_t n, double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	int u = 0;

	while (u < 3 && ns >= 999.5) {
		ns /= 1000;
		u++;
	}
	snprintf(buf, n,
		 ns < 9.995 && u   ? "%.2f %s"
		 : ns < 99.95 && u ? "%.1f %s"
				   : "%.0f %s",
		 ns, units[u]);
	return buf;
}

void mmr_measure_cost(FILE *out, uint64_t monitor_ns, uint64_t heartbeat_ns,
		      double part)
{
	char t[24];

	fprintf(out, "watching    %.2f %% of the CPUs' time: monitor %s",
		part * 100, mmr_measure_time(t, sizeof(t), (double)monitor_ns));
	fprintf(out, ", heartbeats %s\n",
		mmr_measure_time(t, sizeof(t), (double)heartbeat_ns));
	if (part > MMR_MEASURE_COST_MAX)
		fprintf(out,
			"            that is more than %.0f %%: rates of this "
			"soak are too small\n",
			MMR_MEASURE_COST_MAX * 100);
}

static void print_time(FILE *out, uint64_t ns)
{
	char buf[24];

	fprintf(out, " %8s", mmr_measure_time(buf, sizeof(buf), (double)ns));
}

/* " EINVAL 12, ESRCH 3", or how many when there is no list. */
static void print_errors(FILE *out, const struct mmr_measure *m)
{
	const char *sep = "  ";
	int i;

	for (i = 0; i < MMR_ERRS; i++) {
		const char *name;

		if (!m->errs[i].err || !m->errs[i].n)
			continue;
		name = mmr_errno_name(m->errs[i].err);
		if (name)
			fprintf(out, "%s%s %u", sep, name, m->errs[i].n);
		else
			fprintf(out, "%serrno %d %u", sep, m->errs[i].err,
				m->errs[i].n);
		sep = ", ";
	}
	if (m->late) {
		fprintf(out, "%slate %llu", sep, (unsigned long long)m->late);
		sep = ", ";
	}
	if (m->unexpected)
		fprintf(out, "%snot in -> %llu", sep,
			(unsigned long long)m->unexpected);
}

/* How wide the column of statements has to be. */
static int stmt_width(const struct mmr_case *c,
		      const struct mmr_run_result *res)
{
	int i, len, width = 20;

	for (i = 0; i < res->nstmts && i < mmr_case_count(c); i++) {
		char *text = mmr_case_print_stmt(mmr_case_stmt(c, i));

		len = text ? (int)strlen(text) : 0;
		if (res->stmts[i].count && len > width)
			width = len < 60 ? len : 60;
		free(text);
	}
	return width;
}

static void print_stmt(FILE *out, const struct mmr_case *c, int i, int width,
		       const struct mmr_measure *m)
{
	struct mmr_proc *p = NULL;
	struct mmr_thread *t = mmr_case_stmt_thread(c, i, &p);
	char *text = mmr_case_print_stmt(mmr_case_stmt(c, i));
	char place[80];

	snprintf(place, sizeof(place), "%s/%s", p ? p->name : "?",
		 t ? t->name : "?");
	fprintf(out, "  %-10.24s %-*.60s %9llu", place, width,
		text ? text : "?", (unsigned long long)m->count);
	print_time(out, m->p50_ns);
	print_time(out, m->p95_ns);
	print_time(out, m->p99_ns);
	print_time(out, m->max_ns);
	print_errors(out, m);
	fputc('\n', out);
	free(text);
}

static void print_exits(FILE *out, const struct mmr_run_result *res)
{
	bool any = false;
	int i;

	for (i = 0; i < res->nexits; i++) {
		const struct mmr_exit_measure *e = &res->exits[i];
		double all = e->wall_ns ? (double)e->wall_ns : 1;

		if (!e->count)
			continue;
		if (!any)
			fprintf(out,
				"exits of a process, from exit_group or the "
				"fatal signal until it can be reaped:\n"
				"  %-12s %7s %8s %8s %8s %8s %8s %8s\n",
				"process", "count", "p50", "p95", "p99", "max",
				"mean", "stdev");
		any = true;
		fprintf(out, "  %-12s %7llu", e->proc,
			(unsigned long long)e->count);
		print_time(out, e->p50_ns);
		print_time(out, e->p95_ns);
		print_time(out, e->p99_ns);
		print_time(out, e->max_ns);
		print_time(out, e->mean_ns);
		print_time(out, e->stdev_ns);
		fprintf(out,
			"\n  %-12s of that time: %.1f %% on CPU, %.1f %% "
			"waiting for a CPU, %.1f %% asleep\n",
			"", 100 * (double)e->cpu_ns / all,
			100 * (double)e->delay_ns / all,
			100 * (double)e->asleep_ns / all);
	}
}

/* A call over the fixed limit that is no finding: it was on a CPU, and its time
 * is in proportion to what it had to do. */
static bool is_slow(const struct mmr_case *c, const struct mmr_run_result *res,
		    int i)
{
	const struct mmr_stmt *s = mmr_case_stmt(c, i);

	return s->kind == MMR_STMT_OP && s->op->class == MMR_CLASS_CALL &&
	       res->stmts[i].max_ns >= SLOW_NS &&
	       !(mmr_verdict_is_hit(res->verdict) && res->stmt == i);
}

static void print_slow(FILE *out, const struct mmr_case *c,
		       const struct mmr_run_result *res, int i)
{
	char *text = mmr_case_print_stmt(mmr_case_stmt(c, i));
	char p50[32], max[32];

	fprintf(out,
		"slow     `%s`: from %s (median) to %s; on a CPU and in "
		"proportion to its work, no finding\n",
		text ? text : "?",
		mmr_measure_time(p50, sizeof(p50),
				 (double)res->stmts[i].p50_ns),
		mmr_measure_time(max, sizeof(max),
				 (double)res->stmts[i].max_ns));
	free(text);
}

void mmr_measure_text(FILE *out, const struct mmr_case *c,
		      const struct mmr_run_result *res)
{
	int i, n = mmr_case_count(c), width = stmt_width(c, res);
	bool any = false;

	for (i = 0; i < res->nstmts && i < n; i++) {
		if (!res->stmts[i].count ||
		    mmr_case_stmt(c, i)->kind != MMR_STMT_OP)
			continue;
		if (!any)
			fprintf(out,
				"  %-10s %-*s %9s %8s %8s %8s %8s  errors\n",
				"where", width, "statement", "count", "p50",
				"p95", "p99", "max");
		any = true;
		print_stmt(out, c, i, width, &res->stmts[i]);
	}
	for (i = 0; i < res->nstmts && i < n; i++)
		if (is_slow(c, res, i))
			print_slow(out, c, res, i);
	print_exits(out, res);
}

static json_t *num(uint64_t v)
{
	return json_integer((json_int_t)v);
}

json_t *mmr_measure_stmts_json(const struct mmr_case *c,
			       const struct mmr_run_result *res)
{
	json_t *all = json_array();
	int i, k, n = mmr_case_count(c);

	for (i = 0; i < res->nstmts && i < n; i++) {
		const struct mmr_measure *m = &res->stmts[i];
		struct mmr_proc *p = NULL;
		struct mmr_thread *t = mmr_case_stmt_thread(c, i, &p);
		const struct mmr_stmt *s = mmr_case_stmt(c, i);
		json_t *j, *errs;
		char *text;

		if (!m->count || s->kind != MMR_STMT_OP)
			continue;
		text = mmr_case_print_stmt(s);
		j = json_object();
		errs = json_object();
		for (k = 0; k < MMR_ERRS; k++) {
			const char *name = mmr_errno_name(m->errs[k].err);

			if (m->errs[k].err && m->errs[k].n)
				json_object_set_new(errs, name ? name : "?",
						    num(m->errs[k].n));
		}
		json_object_set_new(j, "process",
				    json_string(p ? p->name : "?"));
		json_object_set_new(j, "thread",
				    json_string(t ? t->name : "?"));
		json_object_set_new(j, "statement",
				    json_string(text ? text : "?"));
		json_object_set_new(j, "op", json_string(s->op->name));
		json_object_set_new(j, "count", num(m->count));
		json_object_set_new(j, "pages", num(m->pages));
		json_object_set_new(j, "late", num(m->late));
		json_object_set_new(j, "errors", errs);
		json_object_set_new(j, "unexpected", num(m->unexpected));
		json_object_set_new(j, "sum_ns", num(m->sum_ns));
		json_object_set_new(j, "p50_ns", num(m->p50_ns));
		json_object_set_new(j, "p95_ns", num(m->p95_ns));
		json_object_set_new(j, "p99_ns", num(m->p99_ns));
		json_object_set_new(j, "max_ns", num(m->max_ns));
		json_object_set_new(j, "slow",
				    json_boolean(is_slow(c, res, i)));
		json_array_append_new(all, j);
		free(text);
	}
	return all;
}

json_t *mmr_measure_exits_json(const struct mmr_run_result *res)
{
	json_t *all = json_array();
	int i;

	for (i = 0; i < res->nexits; i++) {
		const struct mmr_exit_measure *e = &res->exits[i];
		json_t *j;

		if (!e->count)
			continue;
		j = json_object();
		json_object_set_new(j, "process", json_string(e->proc));
		json_object_set_new(j, "count", num(e->count));
		json_object_set_new(j, "p50_ns", num(e->p50_ns));
		json_object_set_new(j, "p95_ns", num(e->p95_ns));
		json_object_set_new(j, "p99_ns", num(e->p99_ns));
		json_object_set_new(j, "max_ns", num(e->max_ns));
		json_object_set_new(j, "mean_ns", num(e->mean_ns));
		json_object_set_new(j, "stdev_ns", num(e->stdev_ns));
		json_object_set_new(j, "wall_ns", num(e->wall_ns));
		json_object_set_new(j, "on_cpu_ns", num(e->cpu_ns));
		json_object_set_new(j, "waiting_for_cpu_ns", num(e->delay_ns));
		json_object_set_new(j, "asleep_ns", num(e->asleep_ns));
		json_array_append_new(all, j);
	}
	return all;
}
