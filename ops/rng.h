/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counter-based random numbers: a draw is a pure function of its key, so any
 * one draw can be made again alone, on any machine, in any order, by the
 * engine, by mmrace-child and by an exported program.
 *
 * The mixer is the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014;
 * constants by David Stafford, "mix 13").  No state, no clock, no pid.
 */
#ifndef MMR_OPS_RNG_H
#define MMR_OPS_RNG_H

#include <stdint.h>

/* Bijective 64-bit mixer. */
static inline uint64_t mmr_rng_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return x;
}

/* A key made of a key and one more word; order matters. */
static inline uint64_t mmr_rng_key(uint64_t key, uint64_t word)
{
	return mmr_rng_mix(key + 0x9e3779b97f4a7c15ULL + mmr_rng_mix(word));
}

/* A key made of a key and a string (FNV-1a inside). */
static inline uint64_t mmr_rng_key_str(uint64_t key, const char *s)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
	return mmr_rng_key(key, h);
}

/* Scales a 64-bit draw to 0..n-1 (n > 0) without a division. */
static inline uint64_t mmr_rng_below(uint64_t draw, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)draw * n) >> 64);
}

/* Scales a 64-bit draw to lo..hi inclusive (lo <= hi). */
static inline int64_t mmr_rng_range(uint64_t draw, int64_t lo, int64_t hi)
{
	uint64_t span = (uint64_t)hi - (uint64_t)lo + 1;

	if (span == 0) /* the whole 64-bit range */
		return (int64_t)draw;
	return (int64_t)((uint64_t)lo + mmr_rng_below(draw, span));
}

/* A sequential stream over the counter-based draws, for the generator. */
struct mmr_rng {
	uint64_t key;
	uint64_t count;
};

static inline uint64_t mmr_rng_next(struct mmr_rng *r)
{
	return mmr_rng_key(r->key, r->count++);
}

#endif
