/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an offset of a rendezvous goes, round by round.
 *
 * An offset that is drawn blindly leaves gaps; one that moves on by the golden
 * ratio of its range each round comes within 1.9/n of every place after n
 * rounds.  Where the jitter of a start is below the width of a window that is
 * worth a third of the rounds; where it is above it costs nothing.
 *
 * A draw is a pure function of (tag, dimension, round, turn), as those of
 * rng.h are: integers only, the same on every machine.  Several offsets of one
 * round have steps of their own, out of different quadratic fields, so that
 * together they fill the square and do not walk along its diagonal.  Each 4096
 * rounds a sweep starts at another place, so that two that share a step part.
 *
 * Three of four places lie where calls overlap, the others in all of the range:
 * the places of an interval are as even as those of the whole, so both parts
 * are sweeps.
 * Continued fractions with small terms alone: Kuipers, Niederreiter, "Uniform
 * Distribution of Sequences", chapter 2.3.
 */
#ifndef MMR_OPS_SWEEP_H
#define MMR_OPS_SWEEP_H

#include "rng.h"

#define MMR_SWEEP_DIMS 8
#define MMR_SWEEP_BLOCK 12 /* log2 of the rounds of one sweep */

/* Log-uniform offsets: 20 ns to 1 ms. */
#define MMR_SWEEP_LOG_LO 20
#define MMR_SWEEP_LOG_HI 1000000

/* The step of dimension i as a fraction of 2^64. */
static inline uint64_t mmr_sweep_step(unsigned int i)
{
	switch (i % MMR_SWEEP_DIMS) {
	case 0: /* (sqrt(5) - 1) / 2 */
		return 0x9e3779b97f4a7c15ULL;
	case 1: /* sqrt(2) - 1 */
		return 0x6a09e667f3bcc909ULL;
	case 2: /* sqrt(3) - 1 */
		return 0xbb67ae8584caa73bULL;
	case 3: /* (sqrt(13) - 3) / 2 */
		return 0x4d82b446159f360fULL;
	case 4: /* (sqrt(21) - 3) / 2 */
		return 0xca91d722a3d0a667ULL;
	case 5: /* (sqrt(15) - 3) / 2 */
		return 0x6fbdeb14f4ed9b17ULL;
	case 6: /* sqrt(7) - 2 */
		return 0xa54ff53a5f1d36f1ULL;
	default: /* sqrt(6) - 2 */
		return 0x7311c2812425cfa1ULL;
	}
}

/* The place in the range, as a fraction of 2^64. */
static inline uint64_t mmr_sweep(uint64_t tag, unsigned int dim, uint64_t round,
				 uint64_t turn)
{
	uint64_t start = mmr_rng_key(tag, round >> MMR_SWEEP_BLOCK);

	return start +
	       (round & ((1u << MMR_SWEEP_BLOCK) - 1)) * mmr_sweep_step(dim) +
	       turn * mmr_sweep_step(dim + 3);
}

/*
 * A place to a time: 20 ns to 1 ms, each octave as likely as the next, and
 * even within one.  both_signs: the lower half of the places is negative.
 */
static inline int64_t mmr_sweep_log(uint64_t u, int both_signs)
{
	uint64_t octaves, base;
	int negative = 0;

	if (both_signs) {
		negative = !(u >> 63);
		u <<= 1;
	}
	/* 15.5259 octaves, with 32 bits of fraction. */
	octaves = (uint64_t)(((unsigned __int128)u * 0xf86a00000ULL) >> 64);
	base = (uint64_t)MMR_SWEEP_LOG_LO << (octaves >> 32);
	base += base * (octaves & 0xffffffff) >> 32;
	return negative ? -(int64_t)base : (int64_t)base;
}

/*
 * A place to a time: three quarters of the places are spread over the aim, the
 * last one over lo..hi.
 */
static inline int64_t mmr_sweep_aim(uint64_t u, int64_t lo, int64_t hi,
				    int64_t aim_lo, int64_t aim_hi)
{
	if (u >> 62 == 3)
		return mmr_rng_range(u << 2, lo, hi);
	return mmr_rng_range(u + u / 3, aim_lo, aim_hi);
}

#endif
