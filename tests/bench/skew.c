// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * skew CHILD [RUNS]: how far apart mmrace-child starts the threads of a
 * rendezvous, and how many of them it makes a second: on two CPUs, on one,
 * with three and four threads, and with twice as many threads as CPUs.
 *
 * Each run is one process of 120 rendezvous; the start is where `sync` ended,
 * as the ring of each thread has it.
 */
#include "timing.h"

#define TURNS 120
#define RATE_TURNS 1000000000
#define RATE_NS 300000000
#define MAX_THREADS 8

struct setup {
	const char *name;
	int threads, ncpus; /* 0: all */
	int crowd;	    /* threads more that only keep the CPUs busy */
};

static char *text_of(const struct setup *s, int turns, bool pinned)
{
	static char text[4096];
	size_t n = 0;
	int i;

	n += (size_t)snprintf(text, sizeof(text),
			      "mmrace-case 1\n\nprocess main\n");
	for (i = 0; i < s->threads; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "  thread T%d", i);
		if (pinned)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      " cpu=%d", i);
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "\n    loop %d\n      sync s\n    end\n",
				      turns);
	}
	for (i = 0; i < s->crowd; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "  thread C%d\n    loop until=done(T0)\n"
				      "      delay 5us\n    end\n",
				      i);
	return text;
}

/* Start times of the rendezvous still in the ring, by thread. */
static void collect(const struct setup *s, struct mmr_area *area, double *skew,
		    size_t *n, double *late, double *starts)
{
	struct mmr_thread_slot *t =
		MMR_AREA_AT(area, area->threads_off, struct mmr_thread_slot);
	struct mmr_stat *st =
		MMR_AREA_AT(area, area->stats_off, struct mmr_stat);
	uint64_t a, b;
	int i, k;

	for (k = 0; k < TURNS; k++)
		for (i = 1; i < s->threads; i++) {
			a = t[0].ring[k % MMR_RING].end;
			b = t[i].ring[k % MMR_RING].end;
			skew[(*n)++] = (double)(int64_t)(b - a) * 1e9 /
				       (double)area->clock.hz;
		}
	for (i = 0; i < s->threads; i++) {
		*late += (double)st[2 * i + 1].late;
		*starts += (double)st[2 * i + 1].count;
	}
}

static double rate_of(struct mmr_area *area)
{
	return (double)MMR_AREA_AT(area, area->stats_off, struct mmr_stat)[1]
		.count;
}

static void measure(const struct setup *s, const char *child, int runs)
{
	struct mmr_compile_opts opts = {.seed = 1, .ncpus = s->ncpus};
	uint16_t cpus[64];
	int i, have = bench_cpus(cpus, 64);
	double *skew, late = 0, starts = 0, rate[100], in50 = 0;
	struct bench_child b;
	size_t n = 0, k;

	/* Busy threads and real-time priority: nobody else would run. */
	if (s->ncpus > have || (s->crowd && sched_getscheduler(0)))
		return;
	memcpy(opts.cpus, cpus, sizeof(cpus));
	skew = calloc((size_t)runs * TURNS * MAX_THREADS, sizeof(*skew));
	if (!skew)
		bench_fail("no memory");
	for (i = 0; i < runs; i++) {
		opts.seed = (uint64_t)i;
		bench_run(&b, child, text_of(s, TURNS, true), &opts);
		collect(s, b.area, skew, &n, &late, &starts);
		bench_end(&b);
	}
	opts.budget_ns = RATE_NS;
	for (i = 0; i < runs / 2 + 1 && i < 100; i++) {
		bench_run(&b, child, text_of(s, RATE_TURNS, true), &opts);
		rate[i] = rate_of(b.area) / b.wall_s;
		bench_end(&b);
	}
	for (k = 0; k < n; k++)
		in50 += skew[k] > -50 && skew[k] < 50;
	printf("skew %-28s p1 %.0f p10 %.0f p50 %.0f p90 %.0f p99 %.0f ns, "
	       "within 50 ns %.1f %%, late %.2f %%, %.0f a second (median)\n",
	       s->name, bench_quantile(skew, n, .01),
	       bench_quantile(skew, n, .1), bench_quantile(skew, n, .5),
	       bench_quantile(skew, n, .9), bench_quantile(skew, n, .99),
	       in50 * 100 / (double)n, late * 100 / starts,
	       bench_quantile(rate, (size_t)i, .5));
	fflush(stdout);
	free(skew);
}

int main(int argc, char **argv)
{
	static const struct setup setups[] = {
		{"2 threads, 2 CPUs", 2, 2, 0},
		{"2 threads, 1 CPU", 2, 1, 0},
		{"3 threads, 2 CPUs", 3, 2, 0},
		{"4 threads, 2 CPUs", 4, 2, 0},
		{"2 threads, 2 CPUs, 2 busy", 2, 2, 2},
		{"4 threads, 1 CPU", 4, 1, 0},
	};
	int runs = argc > 2 ? atoi(argv[2]) : 40;
	size_t i;

	if (argc < 2 || runs < 1) {
		fprintf(stderr, "usage: skew CHILD [RUNS]\n");
		return 2;
	}
	printf("skew: load %s; target within 50 ns from p10 to p90 on two "
	       "idle CPUs, one CPU at most 10 times slower\n",
	       bench_load());
	for (i = 0; i < sizeof(setups) / sizeof(setups[0]); i++)
		measure(&setups[i], argv[1], runs);
	printf("skew: load %s\n", bench_load());
	return 0;
}
