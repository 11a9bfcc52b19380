/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recipes, parsed from fuzz/recipes: statements with holes, by which generated
 * cases use most operations.  Read-only after the first mmr_recipe_find(); any
 * thread.
 */
#ifndef MMR_FUZZ_RECIPE_H
#define MMR_FUZZ_RECIPE_H

#include <stdbool.h>

#define MMR_RECIPE_LINES 8

/* What the mapping of a recipe has to be; bits. */
enum mmr_recipe_want {
	MMR_WANT_MAP = 1 << 0, /* mapped, all of it */
	MMR_WANT_READ = 1 << 1,
	MMR_WANT_WRITE = 1 << 2,
	MMR_WANT_PRIVATE = 1 << 3,
	MMR_WANT_SHARED = 1 << 4,
	MMR_WANT_ANON = 1 << 5,
	MMR_WANT_FILE = 1 << 6,
	MMR_WANT_HUGE = 1 << 7,
	MMR_WANT_SMALL = 1 << 8, /* base pages, at most 1 MiB */
	MMR_WANT_BASE = 1 << 9,	 /* not of huge pages of the pool */
	MMR_WANT_KID = 1 << 10,	 /* a child process */
};

struct mmr_recipe {
	char name[24];
	unsigned int want; /* enum mmr_recipe_want */
	bool in_kid, in_body;
	bool outside; /* its header changes the state of the machine */
	const char *head[MMR_RECIPE_LINES];
	const char *early[MMR_RECIPE_LINES];
	const char *setup[MMR_RECIPE_LINES];
	const char *server[MMR_RECIPE_LINES];
	const char *closing[MMR_RECIPE_LINES];
	const char *lines[MMR_RECIPE_LINES];
};

/* NULL: there is none of that name. */
const struct mmr_recipe *mmr_recipe_find(const char *name);
/* The i-th one, NULL past the end. */
const struct mmr_recipe *mmr_recipe_at(int i);

#endif
