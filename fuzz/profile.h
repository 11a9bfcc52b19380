/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles, parsed from fuzz/profiles.  Read-only after the first
 * mmr_profile_find(); any thread.
 */
#ifndef MMR_FUZZ_PROFILE_H
#define MMR_FUZZ_PROFILE_H

#include "../ops/rng.h"
#include "gen.h"

#define MMR_PROFILE_MAX 16   /* profiles */
#define MMR_PROFILE_WORDS 64 /* in one list */

/* A word of a list and how often it is drawn, relative to the others. */
struct mmr_weight {
	char word[24];
	int weight;
};

struct mmr_weights {
	struct mmr_weight w[MMR_PROFILE_WORDS];
	int n;
};

struct mmr_range {
	int lo, hi;
};

struct mmr_profile {
	char name[24];
	char help[80];
	struct mmr_weights ops, must, advice, backing, cpu, edge, mix, signal;
	struct mmr_range objects, pages, threads, copies, rounds, turns, body,
		epochs;
	struct mmr_range large_pages, large_objects, reserve_pages;
	/* Percent. */
	int swarm, sync, delay, invalid, large, children, nodes, ordered;
	int surplus, reserve, outside, content, widen;
};

/* A word of the list, drawn by weight; "" when all weights are 0.  use, when
 * not NULL, has a byte a word: 0 takes the word out. */
const char *mmr_weights_draw(const struct mmr_weights *w, const uint8_t *use,
			     uint64_t draw);
/* Index of the word, -1 when it is not in the list. */
int mmr_weights_find(const struct mmr_weights *w, const char *word);

#endif
