/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What child_content.c keeps of the pages of a process, in its own memory, and
 * what it shares with child_place.c, which says where they lie, and
 * child_look.c, which compares.
 */
#ifndef MMR_OPS_CHILD_CONTENT_H
#define MMR_OPS_CHILD_CONTENT_H

#include "child_machine.h"
#include "content.h"

#define MMR_CONTENT_ADDR (MMR_CHILD_BASE + 0x20000)
#define MMR_CONTENT_ROOM 0xe0000UL

#define MMR_ARENA_PAGES 2048 /* followed at the start of the arena */
#define MMR_FOLLOWED 53248   /* pages in all */
/* Places of 1 GiB, each for one mapping. */
#define MMR_PLACES 0x100000000000UL
#define MMR_PLACE_BITS 30
#define MMR_PLACES_N 4096
#define MMR_PLACES_SIZE ((uint64_t)MMR_PLACES_N << MMR_PLACE_BITS)

/* What memory a page shows: kind, number of a file, page of it. */
enum mmr_back_kind {
	MMR_BACK_NONE, /* not followed */
	MMR_BACK_PRIVATE,
	MMR_BACK_SHARED, /* a file's page */
	MMR_BACK_COPY,	 /* a file's page until it is written */
};
#define MMR_BACK(kind, file, page)                                             \
	((uint32_t)(kind) | (uint32_t)(file) << 4 | (uint32_t)(page) << 16)
#define MMR_BACK_KIND(b) ((b)&15u)
#define MMR_BACK_FILE(b) ((b) >> 4 & 0xfffu)
#define MMR_BACK_PAGE(b) ((b) >> 16)

struct mmr_page {
	_Atomic uint64_t word;
	_Atomic uint32_t back;
	_Atomic uint32_t cut; /* its file's, when it became a copy */
};

struct mmr_followed {
	_Atomic uint32_t used; /* pages beyond the arena's */
	uint32_t closed;       /* a descriptor was */
	uint32_t huge;	       /* pages of the pool are in use */
	uint32_t not_forked;   /* some memory does not go with a fork */
	/* Pages may have become copies of their file's without a write. */
	_Atomic uint32_t copied;
	/* At the last fork: by whom (+ 1), and whether nobody changed
	 * anything. */
	int32_t forker;
	uint32_t forked_at, forked_quiet, forked_maps, forked_placed;
	struct {
		uint32_t first, n; /* pages */
	} place[MMR_PLACES_N];
	struct mmr_page page[MMR_FOLLOWED];
};

_Static_assert(sizeof(struct mmr_followed) <= MMR_CONTENT_ROOM,
	       "what is followed is larger than its room");

static inline struct mmr_content *mmr_content_shared(void)
{
	return MMR_PART(MMR_AREA_PTR->content_off, struct mmr_content);
}

static inline struct mmr_followed *mmr_content_own(void)
{
	return MMR_AT(MMR_CONTENT_ADDR, struct mmr_followed);
}

static inline uint32_t mmr_word_begun(uint64_t w)
{
	return (uint32_t)(w >> 48);
}

static inline uint32_t mmr_word_ended(uint64_t w)
{
	return (uint32_t)(w >> 32) & 0xffff;
}

static inline bool mmr_word_quiet(uint64_t w)
{
	return mmr_word_begun(w) == mmr_word_ended(w);
}

/* A change begins: its number, with ALONE when nobody else was changing. */
#define ALONE 0x10000u
static inline uint32_t mmr_word_begin(_Atomic uint64_t *word)
{
	uint64_t w = atomic_fetch_add(word, 1ULL << 48);

	return mmr_word_begun(w) | (mmr_word_quiet(w) ? ALONE : 0);
}

/* It ends and leaves `value`, if it was alone to the end: then true. */
static inline bool mmr_word_end(_Atomic uint64_t *word, uint32_t token,
				uint32_t value)
{
	uint64_t w = atomic_load(word), new;
	bool alone;

	do {
		alone = (token & ALONE) &&
			mmr_word_begun(w) == ((token + 1) & 0xffff) &&
			mmr_word_ended(w) == (token & 0xffff);
		new = (w & 0xffffULL << 48) |
		      (uint64_t)((mmr_word_ended(w) + 1) & 0xffff) << 32 |
		      (alone ? value : MMR_HOLDS_UNKNOWN);
	} while (!atomic_compare_exchange_weak(word, &w, new));
	return alone;
}

static inline struct mmr_page *mmr_content_page(struct mmr_child *c,
						uint64_t addr)
{
	struct mmr_followed *f = mmr_content_own();
	uint64_t page = c->program->page_size, i;

	if (addr >= MMR_PLACES && addr - MMR_PLACES < MMR_PLACES_SIZE) {
		i = (addr - MMR_PLACES) >> MMR_PLACE_BITS;
		addr &= (1ULL << MMR_PLACE_BITS) - 1;
		if (addr / page >= f->place[i].n)
			return NULL;
		return &f->page[f->place[i].first + addr / page];
	}
	if (addr < MMR_ARENA_BASE)
		return NULL;
	i = (addr - MMR_ARENA_BASE) / page;
	return i < MMR_ARENA_PAGES ? &f->page[i] : NULL;
}

/* The word of a shared page that p shows, NULL: p is private, or not known. */
static inline _Atomic uint64_t *mmr_content_file_word(const struct mmr_page *p)
{
	uint32_t back = atomic_load(&p->back);

	if (MMR_BACK_KIND(back) < MMR_BACK_SHARED)
		return NULL;
	return &mmr_content_shared()
			->file[MMR_BACK_FILE(back)]
			.page[MMR_BACK_PAGE(back)];
}

static inline struct mmr_content_file *mmr_content_file(uint32_t back)
{
	return &mmr_content_shared()->file[MMR_BACK_FILE(back)];
}

static inline bool mmr_content_is_dead(uint32_t back)
{
	return MMR_BACK_KIND(back) >= MMR_BACK_SHARED &&
	       atomic_load(&mmr_content_file(back)->dead);
}

/* Nothing is looked at any more in this round. */
static inline void mmr_content_give_up(void)
{
	atomic_store(&mmr_content_shared()->off, 1);
}

#define MMR_CHANGE_PAGES 1024 /* that one operation may change */

struct mmr_content_change {
	struct mmr_child *c;
	uint64_t addr;
	uint32_t n; /* pages; 0: none is followed */
	uint32_t token[MMR_CHANGE_PAGES];
};

/* All pages of addr..addr+size; false: too many to follow, and given up. */
bool mmr_content_change_begin(struct mmr_content_change *k, struct mmr_child *c,
			      uint64_t addr, uint64_t size);
/* The pages of an operation on a mapping; false: none that are followed. */
bool mmr_content_part(struct mmr_child *c, const struct mmr_insn *in,
		      uint64_t *addr, uint64_t *size);
/* mmap and mremap, with what they show followed (child_place.c). */
int64_t mmr_content_mmap(struct mmr_child *c, const struct mmr_insn *in);
int64_t mmr_content_mremap(struct mmr_child *c, const struct mmr_insn *in);

int64_t mmr_content_plain(struct mmr_child *c, const struct mmr_insn *in);
int64_t mmr_content_unknown(struct mmr_child *c, const struct mmr_insn *in);
int64_t mmr_content_new_anon(struct mmr_child *c);

int64_t mmr_content_touch(struct mmr_child *c, const struct mmr_insn *in,
			  bool is_write);

#endif
