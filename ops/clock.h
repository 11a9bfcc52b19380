/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One clock for the child and its watcher: ticks of the time-stamp counter
 * where it is invariant (x86-64) or of CNTVCT (arm64), else nanoseconds of
 * CLOCK_MONOTONIC_RAW.  The engine decides the source and measures ticks per
 * second (mmr_clock_init in clock.c) and passes both in the area.
 */
#ifndef MMR_OPS_CLOCK_H
#define MMR_OPS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

enum mmr_clock_source {
	MMR_CLOCK_COUNTER = 0, /* TSC, CNTVCT */
	MMR_CLOCK_RAW = 1, /* CLOCK_MONOTONIC_RAW, ns, a system call */
};

struct mmr_clock {
	uint32_t source; /* enum mmr_clock_source */
	uint32_t pad;
	uint64_t hz; /* ticks a second */
	uint64_t ns_mult; /* ns = ticks * ns_mult >> 32 */
	uint64_t tick_mult; /* ticks = ns * tick_mult >> 32 */
};

static inline uint64_t mmr_clock_counter(void)
{
#if defined(__x86_64__)
	uint32_t lo, hi;

	__asm__ __volatile__("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return 0;
#endif
}

static inline uint64_t mmr_clock_to_ns(const struct mmr_clock *c, uint64_t t)
{
	return (uint64_t)(((unsigned __int128)t * c->ns_mult) >> 32);
}

static inline uint64_t mmr_clock_from_ns(const struct mmr_clock *c, uint64_t ns)
{
	return (uint64_t)(((unsigned __int128)ns * c->tick_mult) >> 32);
}

/* Engine only (clock.c): chooses the source and measures its rate (takes
 * 20 ms once per process; later calls copy the result).  Any thread. */
void mmr_clock_init(struct mmr_clock *c);
/* Engine only: now, in ticks of c. */
uint64_t mmr_clock_now(const struct mmr_clock *c);
/* Engine only: CLOCK_MONOTONIC in ns, for deadlines.  Any thread. */
int64_t mmr_clock_monotonic(void);
/* Engine only: now as a date, UTC, as in 2026-11-30T17:10:00Z.  buf: at least
 * 21 bytes; returned.  Any thread. */
char *mmr_clock_date(char *buf, size_t n);

#endif
