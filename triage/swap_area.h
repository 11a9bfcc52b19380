/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A swap area for the time of a case: a zram device of its own, else a file.
 * For settings.c, which holds the lock and the journal: one area at a time on
 * a machine.
 */
#ifndef MMR_TRIAGE_SWAP_AREA_H
#define MMR_TRIAGE_SWAP_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mmr_swap_area {
	int64_t bytes;	/* 0: none */
	int zram;	/* number of the device, -1: none yet, or a file */
	uint64_t known; /* bit i: zram device i was there before */
	char path[64];	/* to swap on; "" until it is made */
};

void mmr_swap_plan(struct mmr_swap_area *s, int64_t bytes);
/* Makes it and swaps on it.  `journal` is called when the journal has to be
 * written anew, before what it then says is done.  0, or -errno with a
 * sentence; what was made until then is for mmr_swap_remove(). */
int mmr_swap_make(struct mmr_swap_area *s, int (*journal)(void), char *text,
		  size_t n) __attribute__((warn_unused_result));
/* Swaps off and removes it, also what the journal of a dead one says.  Adds 1
 * to *removed when there was something.  0 or -errno. */
int mmr_swap_remove(struct mmr_swap_area *s, int *removed)
	__attribute__((warn_unused_result));
/* A journal line of it, "" when there is none; how long it is. */
int mmr_swap_to_text(const struct mmr_swap_area *s, char *buf, size_t n);
/* True when the line is one. */
bool mmr_swap_from_text(struct mmr_swap_area *s, const char *line);

#endif
