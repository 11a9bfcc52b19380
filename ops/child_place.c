// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the mappings lie that are followed (expect content), and what memory
 * they show: made by mmap, moved by mremap.
 */
#include <linux/mman.h>

#include "child_content.h"

#define MREMAP_MAY 1
#define MREMAP_TO 2
#define MREMAP_KEEP 4 /* MREMAP_DONTUNMAP */

static uint32_t back_of(const struct mmr_child *c, uint32_t kind, uint64_t file,
			uint64_t page)
{
	(void)c;
	return page < MMR_FILE_PAGES ? MMR_BACK(kind, file, page)
				     : MMR_BACK_NONE;
}

/* A number for a file's words, + 1; 0: there is none left. */
int64_t mmr_content_new_file(struct mmr_child *c)
{
	struct mmr_content *s = mmr_content_shared();
	uint32_t i, k;

	if (!mmr_content_on(c))
		return 0;
	/* A closed number may come back: what stale refs name is another
	 * file then. */
	if (mmr_content_own()->closed)
		mmr_content_give_up();
	i = atomic_fetch_add(&s->files, 1);
	if (i >= MMR_CONTENT_FILES)
		return 0;
	for (k = 0; k < MMR_FILE_PAGES; k++)
		atomic_store(&s->file[i].page[k], 0);
	atomic_store(&s->file[i].cut, 0);
	atomic_store(&s->file[i].dead, 0);
	return (int64_t)i + 1;
}

/* A place that nobody had or will have, for n pages; 0: none left. */
static uint64_t new_place(struct mmr_child *c, uint64_t n, uint32_t *first)
{
	struct mmr_followed *f = mmr_content_own();
	uint32_t i;

	(void)c;
	*first = atomic_fetch_add(&f->used, (uint32_t)n);
	if (*first + n > MMR_FOLLOWED - MMR_ARENA_PAGES) {
		atomic_fetch_sub(&f->used, (uint32_t)n);
		return 0;
	}
	i = atomic_fetch_add(&mmr_content_shared()->places, 1);
	if (i >= MMR_PLACES_N)
		return 0;
	*first += MMR_ARENA_PAGES;
	f->place[i].first = *first;
	f->place[i].n = (uint32_t)n;
	return MMR_PLACES + ((uint64_t)i << MMR_PLACE_BITS);
}

/* What a new mapping shows, by its arguments. */
struct kind {
	uint32_t kind; /* enum mmr_back_kind */
	uint64_t file, page;
	uint32_t value;
};

enum { MMAP_LEN, MMAP_PROT, MMAP_FLAGS, MMAP_AT, MMAP_FD, MMAP_FOFF };

static struct kind mapping_kind(struct mmr_child *c, const struct mmr_insn *in)
{
	struct kind k = {MMR_BACK_PRIVATE, 0, 0, MMR_HOLDS_ZERO};
	int64_t flags = in->arg[MMAP_FLAGS].lo, file;
	bool is_shared = (flags & 3) == MAP_SHARED;
	struct mmr_ref_value v;

	if ((flags & 3) != MAP_SHARED && (flags & 3) != MAP_PRIVATE) {
		k.kind = MMR_BACK_NONE;
	} else if (flags & (MAP_GROWSDOWN | MAP_STACK)) {
		k.kind = MMR_BACK_NONE;
	} else if (flags & MAP_ANONYMOUS) {
		file = is_shared ? mmr_content_new_anon(c) : 1;
		if (is_shared)
			k.kind = file ? MMR_BACK_SHARED : MMR_BACK_NONE;
		k.file = (uint64_t)(file ? file - 1 : 0);
	} else {
		v = mmr_child_ref(c, in->arg[MMAP_FD].lo, MMR_REF_FILE);
		k.kind = is_shared ? MMR_BACK_SHARED : MMR_BACK_COPY;
		k.value = MMR_HOLDS_FILE;
		if (!v.kind || !v.b)
			k.kind = MMR_BACK_NONE;
		else
			k.file = (uint64_t)v.b - 1;
		k.page =
			(uint64_t)in->arg[MMAP_FOFF].lo / c->program->page_size;
	}
	return k;
}

int64_t mmr_content_new_anon(struct mmr_child *c)
{
	uint32_t closed = mmr_content_own()->closed;
	int64_t file;

	mmr_content_own()->closed =
		0; /* a mapping has no number that comes back */
	file = mmr_content_new_file(c);
	mmr_content_own()->closed = closed;
	return file;
}

/* A shared mapping that is not followed: what is written through it is not
 * known. */
static void not_followed(const struct kind *k)
{
	if (k->kind == MMR_BACK_SHARED)
		atomic_store(&mmr_content_shared()->file[k->file].dead, 1);
}

static void set_pages(struct mmr_child *c, uint64_t addr, uint64_t n,
		      const struct kind *k)
{
	uint64_t page = c->program->page_size, i;
	struct mmr_page *p;

	for (i = 0; i < n; i++) {
		p = mmr_content_page(c, addr + i * page);
		if (!p)
			continue;
		if (k->kind >= MMR_BACK_SHARED)
			atomic_store(&p->back,
				     back_of(c, k->kind, k->file, k->page + i));
		else
			atomic_store(&p->back, MMR_BACK(k->kind, 0, 0));
	}
}

/* In the arena: over what may be there. */
static int64_t map_fixed(struct mmr_child *c, const struct mmr_insn *in,
			 const struct kind *k, uint64_t addr, uint64_t n)
{
	struct mmr_content_change ch;
	int64_t ret;
	uint64_t i;

	if (!mmr_content_change_begin(&ch, c, addr,
				      n * c->program->page_size)) {
		not_followed(k);
		return mmr_content_plain(c, in);
	}
	atomic_fetch_add(&c->proc->remaps, 1);
	/* All of it, or what lies behind is reached without being followed. */
	if (!mmr_content_page(c, addr) ||
	    !mmr_content_page(c, addr + (n - 1) * c->program->page_size))
		not_followed(k);
	ret = mmr_content_plain(c, in);
	if (ret >= 0 && (uint64_t)ret == addr)
		set_pages(c, addr, n, k);
	else if (ret >= 0)
		not_followed(k);
	for (i = 0; i < ch.n; i++) {
		struct mmr_page *p =
			mmr_content_page(c, addr + i * c->program->page_size);

		/* With another change under way nobody knows what is there
		 * now, nor whose file it writes to. */
		if (!p || mmr_word_end(&p->word, ch.token[i],
				       ret >= 0 && (uint64_t)ret == addr
					       ? k->value
					       : MMR_HOLDS_UNKNOWN))
			continue;
		if (MMR_BACK_KIND(atomic_load(&p->back)) >= MMR_BACK_SHARED)
			atomic_store(
				&mmr_content_file(atomic_load(&p->back))->dead,
				1);
		atomic_store(&p->back, MMR_BACK_NONE);
	}
	atomic_fetch_add(&c->proc->changed, 1);
	atomic_fetch_add(&c->proc->remapped, 1);
	return ret;
}

int64_t mmr_content_mmap(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t page = c->program->page_size, at, i;
	uint64_t n = ((uint64_t)in->arg[MMAP_LEN].lo + page - 1) / page;
	struct kind k = mapping_kind(c, in);
	struct mmr_insn copy;
	uint32_t first;
	int64_t ret;

	if (in->arg[MMAP_FLAGS].lo & MAP_HUGETLB)
		mmr_content_own()->huge = 1;
	if (in->arg[MMAP_FLAGS].lo & (MAP_LOCKED | MAP_POPULATE))
		atomic_store(&mmr_content_own()->copied, 1);
	if (in->set >> MMAP_AT & 1)
		return map_fixed(c, in, &k,
				 MMR_ARENA_BASE + (uint64_t)in->arg[MMAP_AT].lo,
				 n);
	if (k.kind == MMR_BACK_NONE || n > MMR_CHANGE_PAGES || !n ||
	    !(at = new_place(c, n, &first))) {
		not_followed(&k);
		return mmr_content_plain(c, in);
	}
	/* Before it is there: whoever reads the ref finds it followed. */
	set_pages(c, at, n, &k);
	for (i = 0; i < n; i++)
		atomic_store(&mmr_content_own()->page[first + i].word, k.value);
	copy = *in;
	copy.set |= 1u << MMAP_AT;
	copy.arg[MMAP_AT].lo = (int64_t)(at - MMR_ARENA_BASE);
	ret = mmr_content_plain(c, &copy);
	if (ret >= 0 && (uint64_t)ret != at)
		not_followed(&k);
	return ret;
}

/* Not followed from here on, nor the files that they show. */
static void forget_part(struct mmr_child *c, uint64_t addr, uint64_t size)
{
	uint64_t page = c->program->page_size, a;
	struct mmr_page *p;

	for (a = addr & ~(page - 1); a < addr + size; a += page) {
		p = mmr_content_page(c, a);
		if (!p)
			continue;
		if (mmr_content_file_word(p))
			atomic_store(&mmr_content_file(p->back)->dead, 1);
		atomic_store(&p->back, MMR_BACK_NONE);
		mmr_word_begin(&p->word); /* for good */
	}
}

/* A whole mapping that may move goes to a place of its own and is followed
 * there; else the old pages are unknown and the new ones not followed. */
int64_t mmr_content_mremap(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t page = c->program->page_size, addr, size, n, at, i;
	struct mmr_ref_value v =
		mmr_child_ref(c, in->arg[0].lo, MMR_REF_MAPPING);
	int64_t flags = in->arg[4].lo, ret;
	bool keeps = flags & MREMAP_KEEP;
	struct mmr_content_change k;
	uint32_t first;

	if (!mmr_content_part(c, in, &addr, &size))
		return MMR_SKIPPED;
	n = (size + page - 1) / page;
	/* With another length, or to a place of the case's: not followed. */
	if ((in->set >> 3 & 1 && (uint64_t)in->arg[3].lo != size) ||
	    addr != (uint64_t)v.a || !(flags & MREMAP_MAY) ||
	    flags & MREMAP_TO || n > MMR_CHANGE_PAGES ||
	    (addr | size) & (page - 1) || !(at = new_place(c, n, &first))) {
		forget_part(c, addr, size);
		if (flags & MREMAP_TO)
			mmr_content_give_up();
		return mmr_content_plain(c, in);
	}
	if (!mmr_content_change_begin(&k, c, addr, size))
		return mmr_content_plain(c, in);
	ret = mmr_sys5(__NR_mremap, (int64_t)addr, (int64_t)size, (int64_t)size,
		       flags | MREMAP_TO, (int64_t)at);
	for (i = 0; i < n; i++) {
		struct mmr_page *p = mmr_content_page(c, addr + i * page);
		struct mmr_page *q = &mmr_content_own()->page[first + i];
		uint32_t value;

		atomic_store(&q->back, MMR_BACK_NONE);
		if (!p)
			continue;
		value = (uint32_t)atomic_load(&p->word);
		if (!mmr_word_end(&p->word, k.token[i],
				  ret < 0 ? value
				  : keeps ? MMR_HOLDS_ZERO
					  : MMR_HOLDS_UNKNOWN))
			value = MMR_HOLDS_UNKNOWN;
		if (ret < 0)
			continue;
		atomic_store(&q->cut, atomic_load(&p->cut));
		atomic_store(&q->word, value);
		atomic_store(&q->back, atomic_load(&p->back));
		if (!keeps)
			atomic_store(&p->back, MMR_BACK_NONE);
		else if (MMR_BACK_KIND(p->back) == MMR_BACK_COPY)
			mmr_word_begin(&p->word);
	}
	atomic_fetch_add(&c->proc->changed, 1);
	if (ret >= 0)
		mmr_child_set_ref(c, in->dst, MMR_REF_MAPPING, ret,
				  (int64_t)size);
	return ret;
}
