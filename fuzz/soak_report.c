// SPDX-License-Identifier: GPL-2.0-or-later
/* The report of a soak: on standard output, and as the ledger soak.json. */
#include "soak_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../ops/clock.h"
#include "../triage/stat.h"
#include "../triage/engine.h"
#include "../triage/heartbeat.h"
#include "../triage/known.h"
#include "../triage/monitor.h"
#include "../triage/version.h"
#include "measure.h"

double mmr_soak_seconds(const struct mmr_soak *s)
{
	int64_t end = s->end_ns ? s->end_ns : mmr_clock_monotonic();

	return (double)(end - s->start_ns) / 1e9;
}

static double per_second(const struct mmr_soak *s, uint64_t n)
{
	double t = mmr_soak_seconds(s);

	return t > 0 ? (double)n / t : 0;
}

static double null_bound(const struct mmr_soak_stat *st)
{
	return mmr_stat_none(st->rounds - st->rounds_void);
}

static json_t *hex(uint64_t v)
{
	return json_sprintf("0x%" PRIx64, v);
}

static json_t *num(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *ops_json(const struct mmr_soak_stat *st)
{
	json_t *a = json_array();

	for (unsigned int id = 0; id < MMR_OP_LIMIT; id++) {
		const struct mmr_soak_op *o = &st->op[id];
		const struct mmr_op *op = mmr_op_by_id(id);
		json_t *j;

		if (!op || !o->hist.n)
			continue;
		j = json_object();
		json_object_set_new(j, "op", json_string(op->name));
		json_object_set_new(j, "count", num(o->hist.n));
		json_object_set_new(j, "errors", num(o->errors));
		json_object_set_new(j, "unexpected", num(o->unexpected));
		json_object_set_new(j, "failed", num(o->failed));
		json_object_set_new(j, "mean_ns",
				    num(o->hist.sum_ns / o->hist.n));
		json_object_set_new(
			j, "p50_ns",
			num((uint64_t)mmr_histogram_quantile(&o->hist, 0.50)));
		json_object_set_new(
			j, "p99_ns",
			num((uint64_t)mmr_histogram_quantile(&o->hist, 0.99)));
		json_object_set_new(j, "max_ns", num(o->hist.max_ns));
		json_object_set_new(j, "max_seed", hex(o->max_seed));
		json_object_set_new(j, "hist",
				    mmr_histogram_steps_json(&o->hist));
		json_array_append_new(a, j);
	}
	return a;
}

static json_t *findings_json(const struct mmr_soak *s)
{
	json_t *a = json_array();

	for (int i = 0; i < s->nfindings; i++) {
		const struct mmr_soak_finding *f = &s->findings[i];
		json_t *j = json_object();

		json_object_set_new(j, "id", json_string(f->id));
		json_object_set_new(j, "folder", json_string(f->path));
		json_object_set_new(j, "text", json_string(f->text));
		json_object_set_new(j, "seed", hex(f->seed));
		json_object_set_new(j, "count", num(f->count));
		json_object_set_new(j, "hits", num(f->rate.hits));
		json_object_set_new(j, "runs", num(f->rate.runs));
		json_array_append_new(a, j);
	}
	return a;
}

static int suspects_kept(const struct mmr_soak *s)
{
	return s->nconfirmed < MMR_SOAK_SUSPECTS ? s->nconfirmed
						 : MMR_SOAK_SUSPECTS;
}

static json_t *suspects_json(const struct mmr_soak *s)
{
	json_t *a = json_array();

	for (int i = 0; i < suspects_kept(s); i++) {
		const struct mmr_soak_suspect *x = &s->confirmed[i];
		json_t *j = json_object();

		json_object_set_new(j, "op", json_string(x->op->name));
		json_object_set_new(j, "seed", hex(x->seed));
		json_object_set_new(j, "worst_ns", num(x->worst_ns));
		json_object_set_new(j, "limit_ns", num(x->limit_ns));
		json_object_set_new(j, "hits", num(x->hits));
		json_object_set_new(j, "runs", num(x->runs));
		json_array_append_new(a, j);
	}
	return a;
}

static json_t *reasons_json(const struct mmr_soak_stat *st)
{
	json_t *a = json_array();

	for (int i = 0; i < st->nreasons; i++) {
		json_t *j = json_object();

		json_object_set_new(j, "count", num(st->reasons[i].count));
		json_object_set_new(j, "text",
				    json_string(st->reasons[i].text));
		json_array_append_new(a, j);
	}
	return a;
}

static json_t *notes_json(void)
{
	json_t *a = json_array();

	if (mmr_engine_notes(a))
		json_array_clear(a);
	return a;
}

static json_t *verdicts_json(const struct mmr_soak_stat *st)
{
	json_t *j = json_object();

	for (int v = 0; v < MMR_VERDICTS; v++)
		json_object_set_new(j, mmr_verdict_name(v),
				    num(st->verdicts[v]));
	return j;
}

/* The part of the CPUs' time that watching takes: the monitor thread and the
 * heartbeats. */
static double watch_cost(const struct mmr_soak *s)
{
	double ns =
		(double)mmr_monitor_cost_ns() + (double)mmr_heartbeat_cost_ns();
	double all = mmr_soak_seconds(s) * 1e9 *
		     (double)sysconf(_SC_NPROCESSORS_ONLN);

	return all > 0 ? ns / all : 0;
}

static void print_cost(const struct mmr_soak *s, FILE *f)
{
	if (!mmr_monitor_ticks())
		return;
	fputc('\n', f);
	mmr_measure_cost(f, mmr_monitor_cost_ns(), mmr_heartbeat_cost_ns(),
			 watch_cost(s));
}

static void counts_json(const struct mmr_soak *s, json_t *j)
{
	const struct mmr_soak_stat *st = &s->stat;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"cases", st->cases},
		{"skipped", st->skipped},
		{"void", st->voids},
		{"failed", st->failed},
		{"rounds", st->rounds},
		{"rounds_void", st->rounds_void},
		{"operations", st->ops},
		{"calls", st->calls},
		{"exits", st->exits},
		{"exit_max_ns", st->exit_max_ns},
		{"pause_ns", (uint64_t)st->pause_ns},
		{"quarantined", (uint64_t)st->quarantined},
		{"op_pairs", mmr_soak_pairs(st)},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		json_object_set_new(j, counts[i].name, num(counts[i].value));
	json_object_set_new(j, "valid_share", json_real(mmr_soak_valid(st)));
	json_object_set_new(j, "verdicts", verdicts_json(st));
	json_object_set_new(j, "operations_per_second",
			    json_real(per_second(s, st->ops)));
	json_object_set_new(j, "watch_cost", json_real(watch_cost(s)));
	json_object_set_new(j, "watch_cost_high",
			    json_boolean(watch_cost(s) > MMR_MEASURE_COST_MAX));
	json_object_set_new(j, "cases_per_second",
			    json_real(per_second(s, st->cases + st->skipped)));
}

json_t *mmr_soak_json(struct mmr_soak *s, const char *state)
{
	const struct mmr_soak_opts *o = s->opts;
	json_t *j = json_object();
	struct utsname u;

	uname(&u);
	json_object_set_new(j, "mmrace", json_string(MMR_VERSION));
	json_object_set_new(j, "state", json_string(state));
	json_object_set_new(j, "pid", json_integer(getpid()));
	json_object_set_new(j, "kernel", json_string(u.release));
	json_object_set_new(j, "arch", json_string(u.machine));
	json_object_set_new(j, "cpus",
			    json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(j, "profile", json_string(s->profile));
	json_object_set_new(j, "gen", json_integer(MMR_GEN_VERSION));
	json_object_set_new(j, "seed", hex(s->base));
	json_object_set_new(j, "next", num(s->next));
	json_object_set_new(j, "session", json_string(s->book.session.id));
	json_object_set_new(j, "cases_before", num(s->book.before));
	json_object_set_new(j, "shard",
			    json_sprintf("%d/%d", s->shard, s->shards));
	json_object_set_new(j, "jobs", json_integer(o->jobs));
	json_object_set_new(j, "seconds", json_real(mmr_soak_seconds(s)));
	counts_json(s, j);
	if (s->stat.failed)
		json_object_set_new(j, "failure", json_string(s->stat.failure));
	json_object_set_new(j, "null_bound_per_round",
			    s->nfindings ? json_null()
					 : json_real(null_bound(&s->stat)));
	json_object_set_new(j, "ops", ops_json(&s->stat));
	json_object_set_new(j, "skip_reasons", reasons_json(&s->stat));
	json_object_set_new(j, "findings", findings_json(s));
	json_object_set_new(j, "suspects", num(s->suspects));
	json_object_set_new(j, "suspects_confirmed", suspects_json(s));
	json_object_set_new(j, "revisit_seconds",
			    json_real((double)s->revisit_ns / 1e9));
	if (o->run.known)
		json_object_set_new(j, "known", mmr_known_json(o->run.known));
	json_object_set_new(j, "missing", notes_json());
	return j;
}

/* Slowest first. */
static int by_max(const void *a, const void *b, void *arg)
{
	const struct mmr_soak_stat *st = arg;
	uint64_t x = st->op[*(const int *)a].hist.max_ns;
	uint64_t y = st->op[*(const int *)b].hist.max_ns;

	return x < y ? 1 : x > y ? -1 : *(const int *)a - *(const int *)b;
}

static void print_ops(struct mmr_soak_stat *st, FILE *f)
{
	char p50[24], p99[24], max[24];
	int ids[MMR_OP_LIMIT], n = 0;

	for (int id = 0; id < MMR_OP_LIMIT; id++)
		if (st->op[id].hist.n && mmr_op_by_id((unsigned int)id))
			ids[n++] = id;
	if (!n)
		return;
	qsort_r(ids, (size_t)n, sizeof(ids[0]), by_max, st);
	fprintf(f,
		"\nlatencies, the worst first\n%-18s %11s %10s %9s %9s %9s  "
		"%s\n",
		"operation", "count", "errors", "p50", "p99", "max",
		"seed of max");
	for (int i = 0; i < n; i++) {
		const struct mmr_soak_op *o = &st->op[ids[i]];

		fprintf(f,
			"%-18s %11" PRIu64 " %10" PRIu64
			" %9s %9s %9s  0x%" PRIx64 "\n",
			mmr_op_by_id((unsigned int)ids[i])->name, o->hist.n,
			o->errors,
			mmr_measure_time(
				p50, sizeof(p50),
				mmr_histogram_quantile(&o->hist, 0.50)),
			mmr_measure_time(
				p99, sizeof(p99),
				mmr_histogram_quantile(&o->hist, 0.99)),
			mmr_measure_time(max, sizeof(max),
					 (double)o->hist.max_ns),
			o->max_seed);
	}
	if (st->exits)
		fprintf(f,
			"%-18s %11" PRIu64 " %10s %9s %9s %9s  0x%" PRIx64 "\n",
			"(process exit)", st->exits, "", "", "",
			mmr_measure_time(max, sizeof(max),
					 (double)st->exit_max_ns),
			st->exit_max_seed);
}

static void print_findings(const struct mmr_soak *s, FILE *f)
{
	const struct mmr_soak_stat *st = &s->stat;

	fprintf(f, "\nfindings: %d\n", s->nfindings);
	for (int i = 0; i < s->nfindings; i++) {
		const struct mmr_soak_finding *d = &s->findings[i];

		fprintf(f,
			"  %s\n    %s\n    seed 0x%" PRIx64 ", seen %" PRIu64
			" time%s",
			d->path, d->text, d->seed, d->count,
			d->count == 1 ? "" : "s");
		if (d->rate.runs)
			fprintf(f,
				"; the case hits in %" PRIu64 " of %" PRIu64
				" runs",
				d->rate.hits, d->rate.runs);
		putc('\n', f);
	}
	if (!s->nfindings && st->rounds > st->rounds_void)
		fprintf(f,
			"  none in %" PRIu64
			" rounds: at 95 %% confidence fewer than one in %.0f\n",
			st->rounds - st->rounds_void,
			floor(1 / null_bound(st)));
}

static void print_suspects(const struct mmr_soak *s, FILE *f)
{
	char worst[24], limit[24];

	if (!s->suspects)
		return;
	fprintf(f,
		"\nsuspects: %" PRIu64 " cases with a call far slower than "
		"its kind; %d of them again and again\n",
		s->suspects, s->nconfirmed);
	for (int i = 0; i < suspects_kept(s); i++) {
		const struct mmr_soak_suspect *x = &s->confirmed[i];

		fprintf(f,
			"  %s %s (limit here %s) in %" PRIu64 " of %" PRIu64
			" more runs, seed 0x%" PRIx64 "\n",
			x->op->name,
			mmr_measure_time(worst, sizeof(worst),
					 (double)x->worst_ns),
			mmr_measure_time(limit, sizeof(limit),
					 (double)x->limit_ns),
			x->hits, x->runs, x->seed);
	}
}

static void print_known(const struct mmr_soak *s, FILE *f)
{
	json_t *all, *e;
	size_t i;

	if (!s->opts->run.known)
		return;
	all = mmr_known_json(s->opts->run.known);
	fprintf(f, "\nset aside by --known\n");
	json_array_foreach (all, i, e)
		fprintf(f, "  %8lld  %s (until %s: %s)\n",
			(long long)json_integer_value(
				json_object_get(e, "count")),
			json_string_value(json_object_get(e, "pattern")),
			json_string_value(json_object_get(e, "until")),
			json_string_value(json_object_get(e, "reason")));
	json_decref(all);
}

static void print_notes(FILE *f)
{
	json_t *notes = notes_json(), *note;
	size_t i;

	if (json_array_size(notes))
		fprintf(f, "\nmissing on this machine\n");
	json_array_foreach (notes, i, note)
		fprintf(f, "  %s\n", json_string_value(note));
	json_decref(notes);
}

static void print_skips(const struct mmr_soak_stat *st, FILE *f)
{
	if (!st->skipped)
		return;
	fprintf(f, "\nskipped\n");
	for (int i = 0; i < st->nreasons; i++)
		fprintf(f, "  %8" PRIu64 "  %s%s\n", st->reasons[i].count,
			st->reasons[i].text,
			st->reasons[i].various ? " (or other numbers)" : "");
	if (st->other_reasons)
		fprintf(f, "  %8" PRIu64 "  other reasons\n",
			st->other_reasons);
}

void mmr_soak_text(struct mmr_soak *s, FILE *f)
{
	struct mmr_soak_stat *st = &s->stat;
	struct utsname u;
	char t[24];

	uname(&u);
	fprintf(f, "mmrace %s soak: %.1f s on Linux %s %s, %ld CPUs\n",
		MMR_VERSION, mmr_soak_seconds(s), u.release, u.machine,
		sysconf(_SC_NPROCESSORS_ONLN));
	fprintf(f, "profile %s, generator %d, seeds from 0x%" PRIx64 "\n\n",
		s->profile, MMR_GEN_VERSION, s->base);
	fprintf(f,
		"cases       %" PRIu64 " run, %" PRIu64 " skipped, %" PRIu64
		" void; %.1f a second\n",
		st->cases, st->skipped, st->voids,
		per_second(s, st->cases + st->skipped));
	fprintf(f, "rounds      %" PRIu64 ", of them void %" PRIu64 "\n",
		st->rounds, st->rounds_void);
	fprintf(f, "operations  %" PRIu64 "; operations per second %.0f\n",
		st->ops, per_second(s, st->ops));
	fprintf(f,
		"            %.1f %% of what was not meant to fail did not; %u "
		"pairs "
		"of operations in two threads\n",
		100 * mmr_soak_valid(&s->stat), mmr_soak_pairs(&s->stat));
	if (st->pause_ns)
		fprintf(f,
			"pauses      the machine stood still for %s, which is "
			"not counted\n",
			mmr_measure_time(t, sizeof(t), (double)st->pause_ns));
	if (st->quarantined)
		fprintf(f, "set aside   %d tasks that could not be killed\n",
			st->quarantined);
	if (st->failed)
		fprintf(f,
			"failed      %" PRIu64 " cases could not be run: %s\n",
			st->failed, st->failure);
	print_ops(st, f);
	print_skips(st, f);
	print_findings(s, f);
	print_suspects(s, f);
	print_known(s, f);
	print_cost(s, f);
	print_notes(f);
	fflush(f);
}
