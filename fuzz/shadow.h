/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shadow of a process of a case: what its refs hold after the statements
 * so far, as far as one thread's text says.  The generator draws from it, so
 * that most calls are valid; other threads make the rest.
 *
 * Statements are followed in the order of the text.  That is right for
 * generated cases, as each of their threads puts back what it changed.
 */
#ifndef MMR_FUZZ_SHADOW_H
#define MMR_FUZZ_SHADOW_H

#include "../ops/case.h"

#define MMR_SHADOW_MAPS 16
#define MMR_SHADOW_REFS 32

enum mmr_shadow_state {
	MMR_SHADOW_WHOLE, /* mapped, all of it */
	MMR_SHADOW_HOLED, /* a part is unmapped */
	MMR_SHADOW_GONE,  /* unmapped */
};

struct mmr_shadow_map {
	const char *name;	     /* of its ref; owned by the case */
	const struct mmr_stmt *made; /* the mmap that made it */
	const char *file;	     /* ref of its file, NULL: anonymous */
	bool shared, hugetlb;
	enum mmr_unit unit;
	int64_t len; /* units */
	enum mmr_shadow_state state;
	bool readable, writable; /* all of it */
	bool untouched;		 /* prot as mmap left it */
};

enum mmr_shadow_life {
	MMR_SHADOW_ALIVE,
	MMR_SHADOW_KILLED,
	MMR_SHADOW_REAPED,
	MMR_SHADOW_CLOSED,
};

struct mmr_shadow_ref { /* of any other kind */
	const char *name;
	uint32_t kind;		   /* enum mmr_ref_kind */
	enum mmr_shadow_life life; /* PROCESS */
	int thread;		   /* who made it */
	int64_t len;		   /* FILE: bytes */
	bool hugetlb;		   /* FILE */
};

struct mmr_shadow {
	struct mmr_shadow_map maps[MMR_SHADOW_MAPS];
	int nmaps;
	struct mmr_shadow_ref refs[MMR_SHADOW_REFS];
	int nrefs;
	int thread; /* the current one: set by the caller */
};

/* Follows one statement (a loop: nothing).  True when it should succeed if
 * no other thread were there. */
bool mmr_shadow_step(struct mmr_shadow *sh, const struct mmr_stmt *s);

/* NULL when there is none of that name (or kind). */
struct mmr_shadow_map *mmr_shadow_map(struct mmr_shadow *sh, const char *name);
struct mmr_shadow_ref *mmr_shadow_ref(struct mmr_shadow *sh, const char *name);
/* The last ref of a kind that is not closed, NULL when none. */
struct mmr_shadow_ref *mmr_shadow_last(struct mmr_shadow *sh, uint32_t kind);

/* A size in bytes, at 4 KiB pages and 2 MiB huge pages. */
int64_t mmr_shadow_bytes(int64_t count, enum mmr_unit unit);

#endif
