/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The contestants of window.c: how they bring the actors together, where they
 * put each one's start, and what they learn.  Header only, for one program.
 *
 *   free        B takes each object as soon as A has made it
 *   barrier     a spinning barrier, no offset
 *   uniform     and one side waits 0 to 1 ms
 *   log         a common instant, one side off it by 20 ns to 1 ms,
 *               log-uniform
 *   fuzzy-sync  after the description in LTP's tst_fuzzy_sync.h: averages of
 *               five durations, a delay only when all of them are stable
 *   calibrated  a common instant, a few rounds to learn durations (as many as
 *               mmrace takes, MMR_CALIB_FIRST), then uniform
 *   ours        the same with the sweep of ops/sweep.h, aimed as skew=auto is
 *               where the actor is a loop: what it does, it does to its end
 *   ours, calls the same, aimed as where the actor is a single call; what that
 *               costs where the window is anywhere in it all the same
 *   reused      no contestant, see window.c
 */
#ifndef MMR_BENCH_WINDOW_H
#define MMR_BENCH_WINDOW_H

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../../ops/calib.h"
#include "../../ops/clock.h"
#include "../../ops/sweep.h"
#include "timing.h"

#define BENCH_ACTORS 4
#define BENCH_CELLS 64
#define BENCH_REPS 2500
#define BENCH_LEAD_NS 1500
#define BENCH_SPINS 2000
#define BENCH_LEARN MMR_CALIB_FIRST /* rounds */
#define BENCH_LOOP_REST 8	    /* as in ops/timing.c */
#define BENCH_CALL_ENTRY 8
#define BENCH_CALL_REST 2
#define BENCH_A_NS 20000
#define BENCH_B_NS 5000
#define BENCH_WINDOW_NS 2000 /* between the two mprotects */

enum bench_way {
	BENCH_FREE,
	BENCH_BARRIER,
	BENCH_UNIFORM,
	BENCH_LOG,
	BENCH_FUZZY_SYNC,
	BENCH_CALIBRATED, /* from here on with calibration */
	BENCH_OURS,
	BENCH_OURS_CALLS,
	BENCH_REUSED,
	BENCH_WAYS
};

struct bench_word {
	_Alignas(64) _Atomic uint64_t n;
};

/* Exponential averages, as fuzzy-sync has them. */
struct bench_ema {
	double avg, dev;
};

struct bench_fuzzy {
	struct bench_ema diff_start, a, b, diff_end, spins;
	uint64_t start[2], end[2];
	_Atomic uint64_t waited[2]; /* turns at the end of the round */
	uint64_t samples, opened;
	double delay; /* turns; < 0: A waits */
	bool open;
};

struct bench_race {
	int actors, ncpus;
	uint16_t cpus[64];
	bool prot;
	enum bench_way way;
	struct mmr_clock clock;
	uint64_t seed, limit, window;
	uint64_t place[BENCH_ACTORS], length[BENCH_ACTORS]; /* ticks */
	struct {
		_Alignas(64) uint64_t n;
	} cell[BENCH_CELLS];
	char *page;
	_Alignas(64) _Atomic bool stop;
	_Atomic uint64_t hit; /* round + 1 */
	bool found;
	uint64_t rounds;
	/* The rendezvous before and the one after the bodies. */
	struct bench_word arrived, generation, parted, object;
	_Alignas(64) _Atomic uint64_t lead;
	_Atomic uint64_t deadline;
	struct bench_word done[BENCH_ACTORS];
	double learnt[BENCH_ACTORS][BENCH_LEARN]; /* ns */
	double d[BENCH_ACTORS];			  /* their 90th percentile */
	double m[BENCH_ACTORS];			  /* their median */
	struct bench_fuzzy fuzzy;
	uint64_t fuzzy_runs, fuzzy_open;
};

static inline const char *bench_way_name(enum bench_way way)
{
	static const char *const names[] = {
		"free-running", "barrier only", "uniform +-1 ms",
		"log-uniform",	"fuzzy-sync",	"calibrated uniform",
		"ours",		"ours, calls",	"(free, reused object)",
	};

	return names[way];
}

static inline uint64_t bench_ticks(void)
{
	return mmr_clock_counter();
}

static inline uint64_t bench_from_ns(const struct bench_race *r, double ns)
{
	return (uint64_t)(ns * (double)r->clock.hz / 1e9);
}

static inline double bench_to_ns(const struct bench_race *r, uint64_t ticks)
{
	return (double)ticks * 1e9 / (double)r->clock.hz;
}

static inline double bench_unit(uint64_t u)
{
	return (double)(u >> 11) / 9007199254740992.0;
}

static inline void bench_race_init(struct bench_race *r, int actors, int ncpus,
				   bool prot)
{
	int have;

	memset(r, 0, sizeof(*r));
	mmr_clock_init(&r->clock);
	if (r->clock.source != MMR_CLOCK_COUNTER)
		bench_fail("no counter to measure with");
	have = bench_cpus(r->cpus, 64);
	r->ncpus = ncpus < have ? ncpus : have;
	r->actors = actors < BENCH_ACTORS ? actors : BENCH_ACTORS;
	if (r->actors < 2 || r->ncpus < 1)
		bench_fail("two actors and a CPU at least");
	r->prot = prot;
	r->page = aligned_alloc(4096, 4096);
	if (!r->page)
		bench_fail("no memory");
	memset(r->page, 1, 4096);
}

static inline void bench_race_begin(struct bench_race *r, enum bench_way way,
				    uint64_t seed, double seconds)
{
	int i;

	r->way = way;
	r->seed = mmr_rng_key(seed, 77);
	atomic_store(&r->stop, false);
	atomic_store(&r->hit, 0);
	r->found = false;
	r->rounds = 0;
	memset(&r->cell, 0, sizeof(r->cell));
	memset(&r->fuzzy, 0, sizeof(r->fuzzy));
	atomic_store(&r->arrived.n, 0);
	atomic_store(&r->generation.n, 0);
	atomic_store(&r->parted.n, 0);
	atomic_store(&r->object.n, 0);
	atomic_store(&r->lead, 0);
	for (i = 0; i < r->actors; i++) {
		double ns = i ? BENCH_B_NS : BENCH_A_NS;

		atomic_store(&r->done[i].n, 0);
		r->length[i] = bench_from_ns(r, ns);
		if (r->prot && !i)
			ns -= BENCH_WINDOW_NS;
		/* The same places for all contestants. */
		r->place[i] = bench_from_ns(
			r, ns * bench_unit(mmr_rng_key(r->seed,
						       (uint64_t)i + 100)));
	}
	r->window = bench_from_ns(r, BENCH_WINDOW_NS);
	r->limit = bench_ticks() + bench_from_ns(r, seconds * 1e9);
}

static inline void bench_relax(const struct bench_race *r, uint64_t *turns)
{
	uint64_t most = r->actors > r->ncpus ? 0 : BENCH_SPINS;

	if ((*turns)++ < most)
		__asm__ __volatile__("" ::: "memory");
	else
		sched_yield();
}

/* Waits until word w is at least n; turns that it took, or stop. */
static inline uint64_t bench_await(struct bench_race *r, struct bench_word *w,
				   uint64_t n)
{
	uint64_t turns = 0;

	while (atomic_load_explicit(&w->n, memory_order_acquire) < n &&
	       !atomic_load_explicit(&r->stop, memory_order_relaxed))
		bench_relax(r, &turns);
	return turns;
}

static inline void bench_spin_until(const struct bench_race *r, uint64_t t)
{
	int64_t margin = (int64_t)bench_from_ns(r, 100000);

	if (r->actors > r->ncpus)
		margin = 0;
	while ((int64_t)(t - bench_ticks()) > margin)
		sched_yield();
	while ((int64_t)(t - bench_ticks()) > 0)
		;
}

/* The offset of an actor in a round, ns. */
static inline double bench_offset(const struct bench_race *r, int actor,
				  uint64_t round)
{
	uint64_t key = mmr_rng_key(r->seed, (uint64_t)actor), u;
	double lo, hi, from, to;

	if (!actor)
		return 0;
	u = mmr_rng_key(key, round);
	if (r->way == BENCH_UNIFORM)
		return (bench_unit(u) - .5) * 2e6;
	if (r->way == BENCH_LOG)
		return (double)mmr_sweep_log(u, 1);
	if (r->way < BENCH_CALIBRATED || round < BENCH_LEARN)
		return 0;
	lo = -1.1 * r->d[actor];
	hi = 1.1 * r->d[0];
	if (r->way == BENCH_CALIBRATED)
		return lo + bench_unit(u) * (hi - lo);
	if (r->way == BENCH_OURS_CALLS) {
		from = 1. / BENCH_CALL_ENTRY;
		to = 1 - 1. / BENCH_CALL_REST;
	} else {
		from = 0;
		to = 1 - 1. / BENCH_LOOP_REST;
	}
	u = mmr_sweep(key, (unsigned int)actor - 1, round, 0);
	return (double)mmr_sweep_aim(
		u, (int64_t)lo, (int64_t)hi,
		(int64_t)(from * r->m[0] - to * r->m[actor]),
		(int64_t)(to * r->m[0] - from * r->m[actor]));
}

/* A spinning barrier; the last one lets all go at one deadline. */
static inline uint64_t bench_rendezvous(struct bench_race *r, uint64_t round,
					double ns)
{
	uint64_t lead, old;

	if (ns < 0) {
		lead = bench_from_ns(r, -ns);
		old = atomic_load(&r->lead);
		while (lead > old &&
		       !atomic_compare_exchange_weak(&r->lead, &old, lead))
			;
	}
	if (atomic_fetch_add(&r->arrived.n, 1) + 1 ==
	    (round + 1) * (uint64_t)r->actors) {
		lead = atomic_exchange(&r->lead, 0);
		atomic_store(&r->deadline,
			     bench_ticks() + lead +
				     bench_from_ns(r, BENCH_LEAD_NS));
		atomic_store(&r->generation.n, round + 1);
	}
	bench_await(r, &r->generation, round + 1);
	return atomic_load(&r->deadline);
}

/* Turns as those of the wait at the end: how fuzzy-sync delays. */
static inline void bench_delay_turns(struct bench_race *r, double turns)
{
	uint64_t n = turns < 1e7 ? (uint64_t)turns : 10000000, i;

	for (i = 0; i < n; i++) {
		(void)atomic_load_explicit(&r->parted.n, memory_order_acquire);
		(void)atomic_load_explicit(&r->stop, memory_order_relaxed);
		__asm__ __volatile__("" ::: "memory");
	}
}

/* Brings actor to the start of round; 0: it is all over. */
static inline uint64_t bench_meet(struct bench_race *r, int actor,
				  uint64_t round)
{
	double ns = bench_offset(r, actor, round);
	uint64_t start;

	if (r->way == BENCH_FREE) {
		if (!actor) /* once the others are done with the last one */
			atomic_store(&r->object.n, round + 1);
		bench_await(r, &r->object, round + 1);
		return 1;
	}
	start = bench_rendezvous(r, round, ns);
	if (atomic_load(&r->stop))
		return 0;
	if (r->way == BENCH_FUZZY_SYNC) {
		if (!actor && r->fuzzy.delay < 0)
			bench_delay_turns(r, -r->fuzzy.delay);
		else if (actor && r->fuzzy.delay > 0)
			bench_delay_turns(r, r->fuzzy.delay);
		return 1;
	}
	if (r->way == BENCH_BARRIER)
		return 1;
	bench_spin_until(r, start + (ns < 0 ? -bench_from_ns(r, -ns)
					    : bench_from_ns(r, ns)));
	return 1;
}

/* All are done with the round's object before A looks at it. */
static inline void bench_part(struct bench_race *r, int actor)
{
	uint64_t n = atomic_fetch_add(&r->parted.n, 1) + 1, turns;
	uint64_t all = (uint64_t)r->actors;

	turns = bench_await(r, &r->parted, (n + all - 1) / all * all);
	if (actor < 2)
		atomic_store(&r->fuzzy.waited[actor], turns);
}

static inline void bench_ema_add(struct bench_ema *e, double v, bool first)
{
	double alpha = first ? 1 : .25;

	e->avg = alpha * v + (1 - alpha) * e->avg;
	e->dev = first ? fabs(v)
		       : alpha * fabs(v - e->avg) + (1 - alpha) * e->dev;
}

static inline bool bench_ema_stable(const struct bench_ema *e)
{
	return e->avg == 0 ? e->dev == 0 : fabs(e->dev / e->avg) <= .1;
}

/* By A at the end of a round: what both measured in the round before. */
static inline void bench_fuzzy_update(struct bench_race *r, uint64_t round)
{
	struct bench_fuzzy *f = &r->fuzzy;
	double per_turn, waited, span;
	bool first = !f->samples;
	uint64_t u;

	if (!f->open) {
		bench_ema_add(
			&f->diff_start,
			bench_to_ns(r, 0) +
				(double)(int64_t)(f->start[0] - f->start[1]),
			first);
		bench_ema_add(&f->a, (double)(f->end[0] - f->start[0]), first);
		bench_ema_add(&f->b, (double)(f->end[1] - f->start[1]), first);
		bench_ema_add(&f->diff_end,
			      (double)(int64_t)(f->end[0] - f->end[1]), first);
		waited = (double)(atomic_load(&f->waited[0]) +
				  atomic_load(&f->waited[1]));
		bench_ema_add(&f->spins, waited, first);
		f->samples++;
		f->open = f->samples >= 1024 &&
			  bench_ema_stable(&f->diff_start) &&
			  bench_ema_stable(&f->a) && bench_ema_stable(&f->b) &&
			  bench_ema_stable(&f->diff_end) &&
			  bench_ema_stable(&f->spins);
		r->fuzzy_open += f->open;
	}
	f->delay = 0;
	if (!f->open || f->spins.avg < 1)
		return;
	per_turn = fabs(f->diff_end.avg) / f->spins.avg;
	span = f->a.avg + f->b.avg;
	u = mmr_rng_key(r->seed, round);
	if (per_turn > 0)
		f->delay = 1.1 * (bench_unit(u) * span - f->b.avg) / per_turn;
}

static inline void bench_learn(struct bench_race *r, int actor, uint64_t round,
			       uint64_t start, uint64_t end)
{
	double copy[BENCH_LEARN];

	if (r->way == BENCH_FUZZY_SYNC && actor < 2) {
		r->fuzzy.start[actor] = start;
		r->fuzzy.end[actor] = end;
		/* B's words of this round are written before it parts. */
		if (!actor && round) {
			bench_await(r, &r->parted,
				    (round + 1) * (uint64_t)r->actors - 1);
			bench_fuzzy_update(r, round);
		}
		r->fuzzy_runs += !actor && !round;
	}
	if (r->way < BENCH_CALIBRATED || round >= BENCH_LEARN)
		return;
	r->learnt[actor][round] = bench_to_ns(r, end - start);
	if (round + 1 < BENCH_LEARN)
		return;
	memcpy(copy, r->learnt[actor], sizeof(copy));
	r->d[actor] = bench_quantile(copy, BENCH_LEARN, .9);
	r->m[actor] = bench_quantile(copy, BENCH_LEARN, .5);
}

static inline const char *bench_fuzzy_note(const struct bench_race *r)
{
	static char buf[80];

	snprintf(buf, sizeof(buf), "; left sampling in %llu of %llu",
		 (unsigned long long)r->fuzzy_open,
		 (unsigned long long)r->fuzzy_runs);
	return buf;
}

/* Were additions to the reused object lost?  All stop for a moment: A counts
 * what the others finished, and waits until it does not change. */
static inline bool bench_batch_lost(struct bench_race *r)
{
	uint64_t n = 0, seen = *(volatile uint64_t *)&r->cell[0].n;
	int i;

	/* Whoever is in the middle of a round has added or has not: off by
	 * one a thread is no loss. */
	for (i = 0; i < r->actors; i++)
		n += atomic_load(&r->done[i].n);
	return seen + (uint64_t)r->actors < n;
}

#endif
