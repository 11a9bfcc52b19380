// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calibration in user mode.  The reference is a machine of the 2020s: a step
 * of the spin loop (one multiplication that waits for the one before, about
 * 4 cycles) 1.5 ns, getpid with mitigations 250 ns.
 *
 * By the wall clock and not by that of the thread: in an emulated guest the
 * latter stands still between ticks.  The best of many tries leaves out what
 * the load takes.
 */
#include "scale.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The best try counts, as load only slows down; each is short, so that some
 * run undisturbed also where a hypervisor takes the CPU away all the time. */
#define TRIES 100
#define SPINS 20000
#define CALLS 200
#define SPIN_REF_NS (1.5 * SPINS)
#define CALL_REF_NS (250.0 * CALLS)
#define ORDINARY 4.0 /* up to that many times slower is ordinary */

static double factor;
static _Atomic bool emulated;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double spin(void)
{
	double t = now_ns();
	uint64_t x = 1;
	int i;

	for (i = 0; i < SPINS; i++) {
		x = x * 6364136223846793005ULL + 1;
		__asm__ __volatile__("" : "+r"(x));
	}
	return now_ns() - t;
}

static double calls(void)
{
	double t = now_ns();
	int i;

	for (i = 0; i < CALLS; i++)
		syscall(SYS_getpid);
	return now_ns() - t;
}

static void measure(void)
{
	double s = 1e18, c = 1e18, v;
	int i;

	for (i = 0; i < TRIES; i++) {
		v = spin();
		s = v < s ? v : s;
		v = calls();
		c = v < c ? v : c;
		/* Ordinary already: no need to go on. */
		if (s < SPIN_REF_NS * ORDINARY && c < CALL_REF_NS * ORDINARY)
			break;
	}
	s /= SPIN_REF_NS;
	c /= CALL_REF_NS;
	factor = s > c ? s : c;
	if (factor < ORDINARY)
		factor = 1;
}

double mmr_scale_factor(void)
{
	pthread_once(&once, measure);
	return emulated && factor < MMR_SCALE_EMULATED ? MMR_SCALE_EMULATED
						       : factor;
}

void mmr_scale_emulated(void)
{
	emulated = true;
}
