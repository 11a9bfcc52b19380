// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * monitor CASE MEET CHILD PAIRS: what watching costs.  Runs both cases with and
 * without the monitor in turn (on off off on ..., so that a drift of the
 * machine hits both).  Of CASE it compares operations a second, of MEET how
 * often its touch came too late after the rendezvous (it failed): the races
 * that a case wins must not depend on being watched.  Prints the median ratio
 * of the pairs and how far they spread, and the difference with its interval:
 * with a spread of 5 % a cost of 1 % cannot be told, and that is to be seen.
 * The same of operations in a second of the case's own CPU time, which a loaded
 * machine disturbs much less, and that leaves out only what the monitor and the
 * heartbeats themselves took of the CPUs: a line of its own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../ops/clock.h"
#include "../../triage/heartbeat.h"
#include "../../triage/monitor.h"
#include "../../triage/run.h"

#define MAX_PAIRS 500
/* Short runs and many of them: what drifts does so over seconds. */
#define RUN_NS 750000000LL
#define MEET_NS 400000000LL

/* What a run came to: operations a second, operations a second of its CPU time,
 * and the part of its touches that failed. */
struct speed {
	double wall, cpu, failed;
};

/* CPU time of all that has been started and is over, in s. */
static double children_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int run(const struct mmr_case *c, bool watched, int64_t ns,
	       struct speed *s)
{
	double before = children_s(), cpu;
	struct mmr_run_opts opts = {.seed = 1,
				    .rounds = 1000000000,
				    .budget_ns = ns,
				    .no_monitor = !watched};
	struct mmr_run_result res = {0};
	uint64_t count = 0, errors = 0;
	const struct mmr_stmt *st;
	int err = mmr_run(c, &opts, &res), i;

	if (!err && res.verdict != MMR_NOTHING) {
		fprintf(stderr, "monitor: %s: %s\n",
			mmr_verdict_name(res.verdict), res.text);
		err = -1;
	}
	for (i = 0; !err && i < res.nstmts; i++) {
		st = mmr_case_stmt(c, i);
		if (!st || st->kind != MMR_STMT_OP ||
		    st->op->class != MMR_CLASS_TOUCH)
			continue;
		count += res.stmts[i].count;
		errors += res.stmts[i].errors;
	}
	cpu = children_s() - before;
	s->wall = res.wall_ns > 0 ? (double)res.ops * 1e9 / (double)res.wall_ns
				  : 0;
	s->cpu = cpu > 0 ? (double)res.ops / cpu : 0;
	s->failed = count ? (double)errors / (double)count : 0;
	mmr_run_result_free(&res);
	return err;
}

/* Both ways, the one first or the other: s[0] watched, s[1] not. */
static int pair(const struct mmr_case *c, int number, int64_t ns,
		struct speed s[2])
{
	int first = number % 2, err;

	err = run(c, !first, ns, &s[first]);
	if (!err)
		err = run(c, first, ns, &s[!first]);
	return err;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median, and the order statistics that hold the true one in 95 of 100
 * cases (half of n, and 0.98 roots of n to each side). */
static void print_speed(const char *unit, double *ratio, int n)
{
	int off = (int)ceil(0.98 * sqrt(n));
	int lo = n / 2 - off, hi = (n - 1) / 2 + off;

	qsort(ratio, (size_t)n, sizeof(*ratio), compare);
	printf("monitor: operations a %s, on/off %.4f (median of %d pairs, "
	       "95 %%: %.4f to %.4f; of ten pairs eight in %.4f to %.4f; "
	       "target >= 0.99)\n",
	       unit, (ratio[n / 2] + ratio[(n - 1) / 2]) / 2, n,
	       ratio[lo < 0 ? 0 : lo], ratio[hi > n - 1 ? n - 1 : hi],
	       ratio[n / 10], ratio[n - 1 - n / 10]);
}

/* The mean of the differences of pairs, with 95 % of a normal one. */
static void print_races(const double *diff, double on, double off, int n)
{
	double mean = 0, var = 0, width;
	int i;

	for (i = 0; i < n; i++)
		mean += diff[i] / n;
	for (i = 0; i < n; i++)
		var += (diff[i] - mean) * (diff[i] - mean) /
		       (n > 1 ? n - 1 : 1);
	width = 1.96 * sqrt(var / n);
	printf("races: won at a rendezvous %.2f %% watched, %.2f %% not; "
	       "difference %+.2f %% (95 %%: %+.2f to %+.2f): %s\n",
	       on * 100 / n, off * 100 / n, mean * 100, (mean - width) * 100,
	       (mean + width) * 100,
	       fabs(mean) > width ? "SIGNIFICANT" : "no significant change");
}

static void print_cost(int64_t wall_ns)
{
	double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
	double all = (double)wall_ns * cpus;

	printf("watching: monitor %.2f %%, heartbeats %.2f %% of %.0f CPUs' "
	       "time, %.0f ticks\n",
	       (double)mmr_monitor_cost_ns() * 100 / all,
	       (double)mmr_heartbeat_cost_ns() * 100 / all, cpus,
	       (double)mmr_monitor_ticks());
}

static int measure(const struct mmr_case *c, const struct mmr_case *meet, int n)
{
	double wall[MAX_PAIRS], cpu[MAX_PAIRS], diff[MAX_PAIRS];
	double on = 0, off = 0;
	int64_t begin = mmr_clock_monotonic();
	struct speed s[2];
	int i, err = 0;

	for (i = 0; i < n && !err; i++) {
		err = pair(c, i, RUN_NS, s);
		if (err)
			break;
		wall[i] = s[1].wall > 0 ? s[0].wall / s[1].wall : 0;
		cpu[i] = s[1].cpu > 0 ? s[0].cpu / s[1].cpu : 0;
		fprintf(stderr,
			"monitor: on %.0f, off %.0f operations/s; "
			"%.0f, %.0f a CPU second\n",
			s[0].wall, s[1].wall, s[0].cpu, s[1].cpu);
		err = pair(meet, i, MEET_NS, s);
		diff[i] = s[0].failed - s[1].failed;
		on += s[0].failed;
		off += s[1].failed;
	}
	if (err)
		return 3;
	print_speed("second", wall, n);
	print_speed("CPU second", cpu, n);
	print_races(diff, on, off, n);
	print_cost(mmr_clock_monotonic() - begin);
	return 0;
}

static int load(const char *path, struct mmr_case **c)
{
	struct mmr_diag diag = {0};

	if (!mmr_case_load(path, c, &diag, NULL, NULL))
		return 0;
	fprintf(stderr, "%s:%d:%d: %s\n", path, diag.line, diag.col, diag.text);
	return 2;
}

int main(int argc, char **argv)
{
	struct mmr_case *c = NULL, *meet = NULL;
	char text[400] = "";
	int n, rc;

	if (argc != 5)
		return 2;
	n = atoi(argv[4]);
	if (n < 1 || n > MAX_PAIRS)
		return 2;
	if (load(argv[1], &c) || load(argv[2], &meet))
		return 2;
	if (mmr_engine_start(argv[3], text, sizeof(text))) {
		fprintf(stderr, "monitor: %s\n", text);
		return 3;
	}
	rc = measure(c, meet, n);
	mmr_engine_stop();
	mmr_case_free(c);
	mmr_case_free(meet);
	return rc;
}
