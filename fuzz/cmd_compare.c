// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace compare: is the one slower than the other, or failing more often? */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/compare.h"
#include "../triage/replay.h"
#include "measure.h"
#include "opts.h"

#define RUNS 20 /* a side */
#define FULL 8	/* kinds of calls that are all shown in full */

struct own {
	const char *against; /* kernel of side b */
	bool all;
};

static int set_against(void *own, const char *value)
{
	((struct own *)own)->against = value;
	return 0;
}

MMR_OPT_FLAG(set_all, struct own, all);

static const struct mmr_opt own_opts[] = {
	{"against", "KERNEL",
	 "the other side of one CASE: another guest kernel, see --guest",
	 set_against},
	{"all", NULL, "the whole table for each kind of call", set_all},
	{0},
};

static const struct mmr_command command = {
	.name = "compare",
	.synopsis = "A B | CASE --guest KERNEL --against KERNEL",
	.about =
		"Says for each kind of call, and for the exits of processes, "
		"whether B is slower or\nfaster than A, with percentiles and "
		"the change with its 95 % interval, and whether\nit fails more "
		"often.  The unit is the run: what is told from chance is "
		"whether runs\ndiffer, by a permutation test, with at most 5 % "
		"false alarms over all kinds\ntogether.  Where that does not "
		"do, it says that it cannot tell.  An exit is told by "
		"the clock and by its time on\na CPU.\n\n"
		"A and B are folders of soaks, records of `mmrace replay "
		"--record`, or cases: those\nare run here, in turns, --runs of "
		"each (default 20).  One CASE with --guest and\n--against is "
		"run in two kernels in turns.",
	.examples =
		"  mmrace compare before after                two soaks\n"
		"  mmrace compare s2-1m.case s2-64m.case --runs 30\n"
		"  mmrace compare s2-1m.case --guest debian:6.1 --against "
		"debian:6.12\n"
		"  mmrace replay x.case --runs 20 --record old.jsonl   then "
		"the same on another\n"
		"  mmrace compare old.jsonl new.jsonl                  kernel, "
		"and this\n",
	.groups = MMR_OPTS_RUN | MMR_OPTS_RUNS | MMR_OPTS_SEED,
	.opts = own_opts,
	.min_args = 1,
	.max_args = 2,
};

static bool is_case(const char *path)
{
	static const char magic[] = "mmrace-case";
	char start[sizeof(magic)] = "";
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(start, 1, sizeof(magic) - 1, f) : 0;

	if (f)
		fclose(f);
	return n == sizeof(magic) - 1 && !strcmp(start, magic);
}

/* What is run for one side. */
struct side {
	struct mmr_case *c;
	struct mmr_run_opts run;
	struct mmr_record *record;
	uint64_t runs;
};

/* One run of one side.  0, or the exit code after a message. */
static int run_side(struct side *s)
{
	struct mmr_run_result res = {0};
	int rc;

	s->run.first_round = s->runs * (uint64_t)s->c->rounds;
	s->run.no_evidence = true;
	rc = mmr_run(s->c, &s->run, &res);
	if (rc) {
		mmr_opts_error("%s", strerror(-rc));
		return MMR_EXIT_FAILED;
	}
	if (res.verdict == MMR_SKIPPED || res.verdict == MMR_TOOL_FAILED) {
		mmr_opts_error("%s", res.text);
		rc = mmr_opts_verdict_exit(res.verdict);
	} else if (!mmr_engine_interrupted()) {
		if (mmr_record_add(s->record, s->runs, s->c, &res))
			rc = MMR_EXIT_FAILED;
		s->runs++;
	}
	mmr_run_result_free(&res);
	return rc;
}

/* In turns, so that what changes with time falls on both; each pair begins
 * with the other side. */
static int run_both(const struct mmr_cmd_opts *o, struct side sides[2])
{
	uint64_t runs = o->runs ? o->runs : RUNS;
	struct mmr_progress p;
	int rc = 0;

	mmr_progress_init(&p, o->quiet);
	for (uint64_t i = 0; i < 2 * runs && !rc; i++) {
		int which = (int)((i + i / 2) % 2);

		if (mmr_engine_interrupted())
			break;
		if (mmr_progress_due(&p))
			mmr_progress_show(&p, "run %" PRIu64 " of %" PRIu64,
					  i + 1, 2 * runs);
		rc = run_side(&sides[which]);
	}
	mmr_progress_end(&p);
	return rc;
}

static int open_other(const struct mmr_cmd_opts *o, const char *kernel,
		      struct mmr_guest **g)
{
	struct mmr_guest_opts opts = o->guest;
	char text[400] = "";
	int rc;

	opts.kernel = kernel;
	rc = mmr_guest_open(&opts, g, text, sizeof(text));
	if (!rc)
		return 0;
	mmr_opts_error("%s", text[0] ? text : strerror(-rc));
	return MMR_EXIT_FAILED;
}

/* Runs the cases; fills both sides of the comparison. */
static int measure(struct mmr_cmd_opts *o, const struct own *own,
		   struct mmr_record_side out[2])
{
	struct side sides[2] = {0};
	struct mmr_guest *other = NULL;
	int rc = 0, n = o->nargs;

	for (int i = 0; i < 2 && !rc; i++) {
		rc = mmr_opts_case(o, o->args[i < n ? i : 0], &sides[i].c);
		if (rc)
			break;
		sides[i].run.seed = o->run.seed;
		sides[i].record = mmr_record_new(o->args[i < n ? i : 0]);
		rc = sides[i].record ? 0 : MMR_EXIT_FAILED;
	}
	if (!rc)
		rc = mmr_opts_engine_start(o);
	if (rc)
		goto out;
	if (own->against)
		rc = open_other(o, own->against, &other);
	for (int i = 0; i < 2; i++) {
		uint64_t seed = sides[i].run.seed;

		sides[i].run = o->run;
		sides[i].run.seed = seed;
	}
	if (other)
		sides[1].run.guest = other;
	if (!rc)
		rc = run_both(o, sides);
	for (int i = 0; i < 2 && !rc; i++)
		if (mmr_record_side(sides[i].record, &out[i]))
			rc = MMR_EXIT_FAILED;
	if (other)
		mmr_guest_close(other);
	mmr_opts_engine_stop();
out:
	for (int i = 0; i < 2; i++) {
		mmr_record_free(sides[i].record);
		mmr_case_free(sides[i].c);
	}
	return rc;
}

static int load(const struct mmr_cmd_opts *o, struct mmr_record_side out[2])
{
	char text[400] = "";

	for (int i = 0; i < 2; i++) {
		int rc = mmr_record_load(o->args[i], &out[i], text,
					 sizeof(text));

		if (rc) {
			mmr_opts_error("%s", text);
			return rc == -ENOMEM ? MMR_EXIT_FAILED : MMR_EXIT_USAGE;
		}
	}
	return 0;
}

static json_t *figure_json(const struct mmr_compare_figure *f)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "a", f->a, "b", f->b,
			 "ratio", f->ratio, "lo95", f->lo, "hi95", f->hi);
}

static json_t *kind_json(const struct mmr_compare_kind *k)
{
	json_t *j = json_pack("{s:s, s:s, s:b, s:i, s:i, s:I, s:I, s:f, s:f, "
			      "s:f}",
			      "kind", k->name, "result",
			      mmr_compare_name(k->word), "in_tail", k->in_tail,
			      "runs_a", k->runs_a, "runs_b", k->runs_b,
			      "calls_a", (json_int_t)k->calls_a, "calls_b",
			      (json_int_t)k->calls_b, "p_typical", k->p_typical,
			      "p_tail", k->p_tail, "p_corrected", k->p_all);

	for (int f = 0; f < MMR_FIGURES; f++)
		json_object_set_new(j, mmr_figure_name(f),
				    figure_json(&k->figure[f]));
	return j;
}

static json_t *side_json(const struct mmr_record_side *s)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "what", s->what,
			 "kernel", s->kernel, "build", s->build, "arch",
			 s->arch, "cpus", s->cpus, "runs", s->nruns);
}

static void print_json(const struct mmr_record_side sides[2],
		       const struct mmr_compare *c)
{
	json_t *j = json_object(), *kinds = json_array(), *rates = json_array();

	for (int i = 0; i < c->nkinds; i++)
		json_array_append_new(kinds, kind_json(&c->kinds[i]));
	for (int i = 0; i < c->nrates; i++) {
		const struct mmr_compare_rate *r = &c->rates[i];

		json_array_append_new(
			rates, json_pack("{s:s, s:I, s:I, s:f, s:b}", "verdict",
					 r->verdict, "a", (json_int_t)r->a, "b",
					 (json_int_t)r->b, "p", r->p, "differs",
					 r->differs));
	}
	json_object_set_new(j, "differs", json_boolean(c->differs));
	json_object_set_new(j, "a", side_json(&sides[0]));
	json_object_set_new(j, "b", side_json(&sides[1]));
	json_object_set_new(j, "rates", rates);
	json_object_set_new(j, "kinds", kinds);
	mmr_opts_print_json(j);
}

static double percent(double ratio)
{
	return (ratio - 1) * 100;
}

/* The table that people print of such measurements: a line a figure. */
static void print_table(const struct mmr_compare_kind *k)
{
	char a[24], b[24];

	printf("  %-6s %10s %10s  %s\n", "", "A", "B",
	       "change of a run's (95 %)");
	for (int i = 0; i < MMR_FIGURES; i++) {
		const struct mmr_compare_figure *f = &k->figure[i];

		printf("  %-6s %10s %10s", mmr_figure_name(i),
		       mmr_measure_time(a, sizeof(a), f->a),
		       mmr_measure_time(b, sizeof(b), f->b));
		if (i == MMR_FIGURE_STDEV)
			printf("  %.1f %% and %.1f %% of the mean\n",
			       f->a * 100 / k->figure[MMR_FIGURE_MEAN].a,
			       f->b * 100 / k->figure[MMR_FIGURE_MEAN].b);
		else
			printf("  %+.1f %% (%+.1f to %+.1f)\n",
			       percent(f->ratio), percent(f->lo),
			       percent(f->hi));
	}
}

static void print_kind(const struct mmr_compare_kind *k, bool full)
{
	const struct mmr_compare_figure *f =
		&k->figure[k->in_tail ? MMR_FIGURE_P99 : MMR_FIGURE_P50];

	printf("%-28s %-11s %s %+6.1f %% (%+.1f to %+.1f), p %.4f; %d and %d "
	       "runs, %" PRIu64 " and %" PRIu64 " calls\n",
	       k->name, mmr_compare_name(k->word), k->in_tail ? "p99" : "p50",
	       percent(f->ratio), percent(f->lo), percent(f->hi),
	       k->in_tail ? k->p_tail : k->p_typical, k->runs_a, k->runs_b,
	       k->calls_a, k->calls_b);
	if (full)
		print_table(k);
}

static bool differs(const struct mmr_compare_kind *k)
{
	return k->word == MMR_COMPARE_SLOWER || k->word == MMR_COMPARE_FASTER;
}

static void print_text(const struct mmr_record_side sides[2],
		       const struct mmr_compare *c, bool all)
{
	int unsure = 0, few = 0;

	for (int i = 0; i < 2; i++)
		printf("%c  %s: %d runs on Linux %s %s, %d CPUs\n", 'A' + i,
		       sides[i].what, sides[i].nruns, sides[i].kernel,
		       sides[i].arch, sides[i].cpus);
	putchar('\n');
	for (int i = 0; i < c->nrates; i++) {
		const struct mmr_compare_rate *r = &c->rates[i];

		printf("%-28s %-11s %" PRIu64 " of %d runs (%.2g to %.2g), "
		       "%" PRIu64 " of %d (%.2g to %.2g), p %.4f\n",
		       r->verdict,
		       !r->differs ? "cannot tell"
		       : (double)r->b / sides[1].nruns >
				       (double)r->a / sides[0].nruns
			       ? "more often"
			       : "less often",
		       r->a, sides[0].nruns, r->lo_a, r->hi_a, r->b,
		       sides[1].nruns, r->lo_b, r->hi_b, r->p);
	}
	for (int i = 0; i < c->nkinds; i++) {
		const struct mmr_compare_kind *k = &c->kinds[i];

		if (!all && (k->runs_a < MMR_COMPARE_RUNS ||
			     k->runs_b < MMR_COMPARE_RUNS)) {
			few++;
			continue;
		}
		unsure += k->word == MMR_COMPARE_CANNOT_TELL;
		print_kind(k, all || c->nkinds <= FULL || differs(k));
	}
	if (few)
		printf("%d kinds with fewer than %d runs on a side are left "
		       "out (--all shows them)\n",
		       few, MMR_COMPARE_RUNS);
	if (!c->nkinds)
		printf("no kind of call is in both\n");
	else if (!c->differs)
		printf("\nno difference that chance does not explain%s\n",
		       unsure ? "; where it says cannot tell, more runs "
				"would"
			      : "");
}

int mmr_cmd_compare(int argc, char **argv)
{
	struct mmr_record_side sides[2] = {0};
	struct mmr_compare c = {0};
	struct mmr_cmd_opts o;
	struct own own = {0};
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own), cases = 0;

	if (rc >= 0)
		return rc;
	for (int i = 0; i < o.nargs; i++)
		cases += is_case(o.args[i]);
	if (own.against && (!o.guest.kernel || o.nargs != 1))
		return mmr_opts_error("--against wants one CASE and --guest");
	if (o.nargs == 1 && !own.against)
		return mmr_opts_error("compare it with what?  Give a second "
				      "one, or --guest and --against");
	if (cases && cases != o.nargs)
		return mmr_opts_error("a case and a record cannot be compared: "
				      "record both, or run both");
	if (own.against && !cases)
		return mmr_opts_error("%s: is no case", o.args[0]);
	rc = cases ? measure(&o, &own, sides) : load(&o, sides);
	if (!rc && mmr_compare(&sides[0], &sides[1], &c))
		rc = MMR_EXIT_FAILED;
	if (!rc) {
		if (o.json)
			print_json(sides, &c);
		else
			print_text(sides, &c, own.all);
		rc = c.differs ? MMR_EXIT_FOUND : MMR_EXIT_NOTHING;
	}
	mmr_compare_free(&c);
	mmr_record_side_free(&sides[0]);
	mmr_record_side_free(&sides[1]);
	return rc;
}
