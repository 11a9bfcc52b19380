// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * window KIND ACTORS CPUS [REPETITIONS [SECONDS]]: rounds and CPU time until a
 * window is first hit, for ways to time the two sides of a race, in turn.
 *
 *   KIND one   two user threads and one instruction: both add to a word that
 *              is not locked; a hit is a lost addition
 *        prot  the first sets a page to PROT_NONE and back after 2 us, the
 *              others load from it; a hit is a SIGSEGV
 *
 * Actor A works for 20 us, the others for 5 us, each with its instruction at a
 * place that is drawn once a repetition and that no contestant knows.  Each
 * round has an object of its own, made by A and used up, as in a race on one
 * exit or one mapping; so a free-running B takes an object as soon as it is
 * there.  `reused` is the other kind of race, on an object that outlives the
 * round, where free loops need no timing: it is there to be seen, and is no
 * contestant.  A repetition that hits nothing counts with its limit.
 */
#include "window.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define CLOSE 25

static struct bench_race race;
static _Thread_local sigjmp_buf *recover;

static void on_segv(int sig)
{
	(void)sig;
	if (!recover)
		_exit(3);
	siglongjmp(*recover, 1);
}

static void work(uint64_t until)
{
	while (bench_ticks() < until)
		;
}

/* Not locked: load, add, store; on x86-64 it is one instruction. */
static void add_one(uint64_t *p)
{
#if defined(__x86_64__)
	__asm__ __volatile__("incq %0" : "+m"(*p));
#else
	*(volatile uint64_t *)p += 1;
#endif
}

static void touch_page(uint64_t round)
{
	sigjmp_buf env;

	recover = &env;
	if (sigsetjmp(env, 0))
		atomic_store(&race.hit, round + 1);
	else
		(void)*(volatile char *)race.page;
	recover = NULL;
}

/* One side of the race: its length, with the instruction at its place. */
static void body(int actor, uint64_t round)
{
	uint64_t start = bench_ticks();

	work(start + race.place[actor]);
	if (!race.prot)
		add_one(&race.cell[round % BENCH_CELLS].n);
	else if (actor)
		touch_page(round);
	else
		mprotect(race.page, 4096, PROT_NONE);
	if (race.prot && !actor) {
		work(bench_ticks() + race.window);
		mprotect(race.page, 4096, PROT_READ | PROT_WRITE);
	}
	work(start + race.length[actor]);
}

/* A looks at the last round's object: all are done with it. */
static bool lost(uint64_t round)
{
	uint64_t *n = &race.cell[round % BENCH_CELLS].n;
	bool hit = !race.prot && *n != (uint64_t)race.actors;

	*n = 0;
	return hit;
}

static void actor_rounds(int actor)
{
	uint64_t round, start, limit = race.limit;

	for (round = 0;; round++) {
		start = bench_meet(&race, actor, round);
		if (!start || atomic_load(&race.stop))
			break;
		start = bench_ticks();
		body(actor, round);
		bench_learn(&race, actor, round, start, bench_ticks());
		bench_part(&race, actor);
		if (actor)
			continue;
		if (lost(round) || atomic_load(&race.hit)) {
			race.rounds = round + 1;
			race.found = true;
		} else if (bench_ticks() > limit) {
			race.rounds = round + 1;
		} else {
			continue;
		}
		atomic_store(&race.stop, true);
	}
}

/* Free loops over the same object: A looks after a batch what was lost. */
static void actor_reused(int actor)
{
	uint64_t round = 0, limit = race.limit;

	while (!atomic_load(&race.stop)) {
		body(actor, 0);
		round++;
		if (race.actors > race.ncpus)
			sched_yield();
		atomic_store(&race.done[actor].n, round);
		if (actor || (!race.prot && round % 50))
			continue;
		if (!race.prot)
			race.found = bench_batch_lost(&race);
		if (race.found || atomic_load(&race.hit)) {
			race.found = true;
		} else if (bench_ticks() <= limit) {
			continue;
		}
		race.rounds = round;
		atomic_store(&race.stop, true);
	}
}

static void *actor_main(void *arg)
{
	int actor = (int)(intptr_t)arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(race.cpus[actor % race.ncpus], &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (race.way == BENCH_REUSED)
		actor_reused(actor);
	else
		actor_rounds(actor);
	return NULL;
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Until the first hit or the limit; CPU seconds of all actors. */
static double repeat(enum bench_way way, uint64_t seed, double seconds)
{
	pthread_t t[BENCH_ACTORS];
	double start = cpu_s();
	int i;

	bench_race_begin(&race, way, seed, seconds);
	for (i = 1; i < race.actors; i++)
		if (pthread_create(&t[i], NULL, actor_main,
				   (void *)(intptr_t)i))
			bench_fail("no thread");
	if (pthread_create(&t[0], NULL, actor_main, NULL))
		bench_fail("no thread");
	for (i = 0; i < race.actors; i++)
		pthread_join(t[i], NULL);
	return cpu_s() - start;
}

struct result {
	double rounds[BENCH_REPS], cpu[BENCH_REPS];
	int n, hits;
};

static void report(enum bench_way way, struct result *r, double *out)
{
	double all_rounds = 0, all_cpu = 0, rounds;
	const char *more = r->hits * 2 > r->n ? "" : ">";
	int i;

	for (i = 0; i < r->n; i++) {
		all_rounds += r->rounds[i];
		all_cpu += r->cpu[i];
	}
	rounds = bench_quantile(r->rounds, (size_t)r->n, .5);
	*out = bench_quantile(r->cpu, (size_t)r->n, .5);
	printf("%-22s hit in %3d of %3d; to the first hit, median: %s%.0f "
	       "rounds, %s%.4f CPU s; %.0f rounds a CPU s%s\n",
	       bench_way_name(way), r->hits, r->n, more, rounds, more, *out,
	       all_rounds / all_cpu,
	       way == BENCH_FUZZY_SYNC ? bench_fuzzy_note(&race) : "");
	fflush(stdout);
}

/* Those that are compared to a tenth, and find soon, do it more often. */
static int times(int way)
{
	return way >= BENCH_CALIBRATED && way != BENCH_REUSED ? CLOSE : 1;
}

static void run_all(int reps, double seconds)
{
	static struct result r[BENCH_WAYS];
	double out[BENCH_WAYS], best = 1e9;
	int i, k, way;

	for (i = 0; i < reps; i++) /* in turn: a drift hits all alike */
		for (way = 0; way < BENCH_WAYS; way++)
			for (k = 0; k < times(way); k++) {
				int n = r[way].n++;

				r[way].cpu[n] = repeat((enum bench_way)way,
						       (uint64_t)n, seconds);
				r[way].rounds[n] = (double)race.rounds;
				r[way].hits += race.found;
			}
	for (way = 0; way < BENCH_WAYS; way++)
		report((enum bench_way)way, &r[way], &out[way]);
	for (way = 0; way < BENCH_CALIBRATED; way++)
		best = out[way] < best ? out[way] : best;
	printf("ours against the best without calibration: %.1f times fewer "
	       "CPU s (target 5); against calibrated uniform: %.2f (target "
	       "at most 1.1), aimed as calls %.2f\n",
	       best / out[BENCH_OURS], out[BENCH_OURS] / out[BENCH_CALIBRATED],
	       out[BENCH_OURS_CALLS] / out[BENCH_CALIBRATED]);
}

int main(int argc, char **argv)
{
	int reps = argc > 4 ? atoi(argv[4]) : 20;
	double seconds = argc > 5 ? atof(argv[5]) : 1;
	struct sigaction sa = {.sa_handler = on_segv, .sa_flags = SA_NODEFER};

	if (argc < 4 || reps < 1 || reps * CLOSE > BENCH_REPS) {
		fprintf(stderr, "usage: window one|prot ACTORS CPUS "
				"[REPETITIONS [SECONDS]]\n");
		return 2;
	}
	bench_race_init(&race, atoi(argv[2]), atoi(argv[3]),
			!strcmp(argv[1], "prot"));
	sigaction(SIGSEGV, &sa, NULL);
	printf("window %s: %d actors on %d CPUs, %d repetitions of at most "
	       "%.1f s, load %s\n",
	       argv[1], race.actors, race.ncpus, reps, seconds, bench_load());
	fflush(stdout);
	run_all(reps, seconds);
	printf("window %s: load %s\n", argv[1], bench_load());
	return 0;
}
