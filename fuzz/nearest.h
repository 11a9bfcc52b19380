/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was meant: the nearest of some names, for messages. */
#ifndef MMR_FUZZ_NEAREST_H
#define MMR_FUZZ_NEAREST_H

/* The next candidate, NULL at the end. */
typedef const char *mmr_nearest_next(void *arg, int i);

/* The candidate with the fewest edits from word, NULL when none is near. */
const char *mmr_nearest(const char *word, mmr_nearest_next *next, void *arg);

#endif
