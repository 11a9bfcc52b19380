// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chooses the clock of a run and measures its rate.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

#define MEASURE_NS 20000000 /* an error of some ns in it is below 1e-6 */

static struct mmr_clock the_clock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t raw_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)
/* True when path has a line that begins with start and holds all words. */
static bool line_has(const char *path, const char *start,
		     const char *const *words)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0, n;
	bool found = false;
	const char *at;
	int i;

	if (!f)
		return false;
	while (!found && getline(&line, &size, f) > 0) {
		if (strncmp(line, start, strlen(start)) != 0)
			continue;
		found = true;
		for (i = 0; words[i]; i++) {
			n = strlen(words[i]);
			at = line;
			while ((at = strstr(at, words[i])) &&
			       ((at > line && at[-1] != ' ') ||
				(at[n] != ' ' && at[n] != '\n')))
				at += n;
			found &= at != NULL;
		}
		break;
	}
	free(line);
	fclose(f);
	return found;
}

/*
 * The counter runs at one rate and on in idle states (the CPU says so), and
 * is the same on all CPUs (else the kernel takes it out of its list).
 */
static bool counter_is_good(void)
{
	static const char *const flags[] = {"constant_tsc", "nonstop_tsc",
					    NULL};
	static const char *const tsc[] = {"tsc", NULL};

	return line_has("/proc/cpuinfo", "flags", flags) &&
	       line_has("/sys/devices/system/clocksource/clocksource0/"
			"available_clocksource",
			"", tsc);
}

/* Both clocks at one instant: the closest of some pairs of reads. */
static void read_pair(uint64_t *ticks, uint64_t *ns)
{
	uint64_t before, after, t, best = UINT64_MAX;
	int i;

	for (i = 0; i < 16; i++) {
		before = raw_now();
		t = mmr_clock_counter();
		after = raw_now();
		if (after - before >= best)
			continue;
		best = after - before;
		*ticks = t;
		*ns = before + (after - before) / 2;
	}
}

static uint64_t counter_hz(void)
{
	struct timespec pause = {0, MEASURE_NS};
	uint64_t t0 = 0, t1 = 0, ns0 = 0, ns1 = 0;

	read_pair(&t0, &ns0);
	nanosleep(&pause, NULL);
	read_pair(&t1, &ns1);
	if (t1 <= t0 || ns1 <= ns0)
		return 0;
	return (uint64_t)((unsigned __int128)(t1 - t0) * 1000000000 /
			  (ns1 - ns0));
}
#elif defined(__aarch64__)
/* The architecture promises one rate on all CPUs, and says which. */
static bool counter_is_good(void)
{
	return true;
}

static uint64_t counter_hz(void)
{
	uint64_t hz;

	__asm__ __volatile__("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
}
#else
static bool counter_is_good(void)
{
	return false;
}

static uint64_t counter_hz(void)
{
	return 0;
}
#endif

static void init(void)
{
	struct mmr_clock *c = &the_clock;

	c->source = MMR_CLOCK_COUNTER;
	c->hz = counter_is_good() ? counter_hz() : 0;
	/* Below 1 MHz something is wrong with it (some firmware says 0). */
	if (c->hz < 1000000) {
		c->source = MMR_CLOCK_RAW;
		c->hz = 1000000000;
	}
	c->ns_mult = (uint64_t)(((unsigned __int128)1000000000 << 32) / c->hz);
	c->tick_mult =
		(uint64_t)(((unsigned __int128)c->hz << 32) / 1000000000);
}

void mmr_clock_init(struct mmr_clock *c)
{
	pthread_once(&once, init);
	*c = the_clock;
}

uint64_t mmr_clock_now(const struct mmr_clock *c)
{
	return c->source == MMR_CLOCK_COUNTER ? mmr_clock_counter() : raw_now();
}

int64_t mmr_clock_monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

char *mmr_clock_date(char *buf, size_t n)
{
	time_t now = time(NULL);
	struct tm tm;

	if (!gmtime_r(&now, &tm) ||
	    !strftime(buf, n, "%Y-%m-%dT%H:%M:%SZ", &tm))
		buf[0] = '\0';
	return buf;
}
