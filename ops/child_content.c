// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What was written is what is read (expect content), as far as the case's own
 * order of things says what that is.
 *
 * Each page that is followed has a word: how many changes of it have begun, how
 * many have ended, and what it holds.  A change that was alone (nobody began
 * another before it ended) leaves it known; changes that overlap leave it
 * unknown, until one is alone again.  A read compares only what was known
 * before and, unchanged, after: so no race that the case permits is ever
 * blamed.
 *
 * Pages are followed by address, as a ref may be stale.  Mappings without a
 * place of their own get one that is never used again; the start of the arena,
 * where places are used again, is followed page by page.  Private memory has
 * its words in private memory of the child, which a fork copies with it; what
 * is shared has them in the area.  What cannot be followed is not looked at,
 * and what it could reach is not any more: `off` for all, `dead` for a file.
 */
#include <linux/mman.h>
#include <linux/errno.h>

#include "child_content.h"

#define PUNCH_HOLE 2

bool mmr_content_on(const struct mmr_child *c)
{
	return c->program->content && !atomic_load(&mmr_content_shared()->off);
}

/* -- changes of a range ---------------------------------------------------- */

bool mmr_content_change_begin(struct mmr_content_change *k, struct mmr_child *c,
			      uint64_t addr, uint64_t size)
{
	uint64_t page = c->program->page_size, first = addr & ~(page - 1);
	uint64_t n = (addr + size - first + page - 1) / page;
	struct mmr_page *p;
	uint32_t i;

	k->c = c;
	k->addr = first;
	k->n = 0;
	if (n > MMR_CHANGE_PAGES) {
		if (mmr_content_page(c, first) ||
		    mmr_content_page(c, addr + size - 1))
			mmr_content_give_up();
		return false;
	}
	atomic_fetch_add(&c->proc->changes, 1);
	k->n = (uint32_t)n;
	for (i = 0; i < k->n; i++) {
		p = mmr_content_page(c, first + i * page);
		if (p)
			k->token[i] = mmr_word_begin(&p->word);
	}
	return true;
}

/* What a page of this kind holds afterwards. */
struct outcome {
	uint32_t private, over_file; /* of private anonymous, private file */
};

static void change_end(struct mmr_content_change *k, const struct outcome *o)
{
	uint64_t page = k->c->program->page_size;
	struct mmr_page *p;
	uint32_t i, value;

	for (i = 0; i < k->n; i++) {
		p = mmr_content_page(k->c, k->addr + i * page);
		if (!p)
			continue;
		value = MMR_BACK_KIND(atomic_load(&p->back)) == MMR_BACK_COPY
				? o->over_file
				: o->private;
		/* It stays what it was. */
		if (value == MMR_HOLDS_SAME)
			value = (uint32_t)atomic_load(&p->word);
		mmr_word_end(&p->word, k->token[i], value);
	}
	if (k->n)
		atomic_fetch_add(&k->c->proc->changed, 1);
}

/* -- what operations change -------------------------------------------- */

bool mmr_content_part(struct mmr_child *c, const struct mmr_insn *in,
		      uint64_t *addr, uint64_t *size)
{
	const struct mmr_plan *plan = mmr_child_plan(c->machine, in->op);

	return mmr_child_part(c, in, 0, plan->off, plan->len, addr, size);
}

/* Runs it, with its pages changed to ok or, when it failed, unknown. */
static int64_t change_run(struct mmr_child *c, const struct mmr_insn *in,
			  struct outcome ok)
{
	static const struct outcome unknown = {MMR_HOLDS_UNKNOWN,
					       MMR_HOLDS_UNKNOWN};
	uint64_t addr, size;
	struct mmr_content_change k;
	int64_t ret;

	if (!mmr_content_part(c, in, &addr, &size))
		return mmr_content_plain(c, in);
	mmr_content_change_begin(&k, c, addr, size);
	ret = mmr_content_plain(c, in);
	change_end(&k, ret < 0 ? &unknown : &ok);
	return ret;
}

/* Also the words of the file that the pages show: `value` when it went well. */
static int64_t change_shared(struct mmr_child *c, const struct mmr_insn *in,
			     uint32_t value)
{
	uint64_t page = c->program->page_size, addr, size;
	uint32_t token[MMR_CHANGE_PAGES], i;
	_Atomic uint64_t *w;
	struct mmr_content_change k;
	int64_t ret;

	if (!mmr_content_part(c, in, &addr, &size) ||
	    !mmr_content_change_begin(&k, c, addr, size))
		return mmr_content_plain(c, in);
	for (i = 0; i < k.n; i++) {
		struct mmr_page *p = mmr_content_page(c, k.addr + i * page);

		w = p ? mmr_content_file_word(p) : NULL;
		if (w) {
			token[i] = mmr_word_begin(w);
			atomic_fetch_add(&mmr_content_file(p->back)->cut, 1);
		}
	}
	ret = mmr_content_plain(c, in);
	for (i = 0; i < k.n; i++) {
		struct mmr_page *p = mmr_content_page(c, k.addr + i * page);

		w = p ? mmr_content_file_word(p) : NULL;
		if (w)
			mmr_word_end(w, token[i],
				     ret < 0 || (addr | size) & (page - 1)
					     ? MMR_HOLDS_UNKNOWN
					     : value);
		if (w)
			atomic_fetch_add(&mmr_content_file(p->back)->cut, 1);
	}
	change_end(&k, &(struct outcome){MMR_HOLDS_UNKNOWN, MMR_HOLDS_UNKNOWN});
	return ret;
}

static int64_t content_madvise(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t huge = c->program->huge_size, addr, size;

	switch (in->arg[1].lo) {
	case MADV_DONTNEED:
	case 24: /* MADV_DONTNEED_LOCKED */
		/* Of huge pages less may go than was asked. */
		if (mmr_content_own()->huge &&
		    mmr_content_part(c, in, &addr, &size) &&
		    (addr | size) & (huge - 1))
			return change_run(c, in,
					  (struct outcome){MMR_HOLDS_UNKNOWN,
							   MMR_HOLDS_UNKNOWN});
		return change_run(
			c, in,
			(struct outcome){MMR_HOLDS_ZERO, MMR_HOLDS_FILE});
	case MADV_REMOVE:
		return change_shared(c, in,
				     mmr_content_own()->huge ? MMR_HOLDS_UNKNOWN
							     : MMR_HOLDS_ZERO);
	case MADV_WIPEONFORK:
	case MADV_DONTFORK:
	case MADV_KEEPONFORK:
	case MADV_DOFORK:
		mmr_content_own()->not_forked = 1;
		return mmr_content_plain(c, in);
	case 23: /* MADV_POPULATE_WRITE */
		atomic_store(&mmr_content_own()->copied, 1);
		return mmr_content_plain(c, in);
	case MADV_FREE:
	case 100: /* MADV_HWPOISON */
	case 101: /* MADV_SOFT_OFFLINE */
	case 102: /* MADV_GUARD_INSTALL */
	case 103:
		return change_run(
			c, in,
			(struct outcome){MMR_HOLDS_UNKNOWN, MMR_HOLDS_UNKNOWN});
	default: /* leaves what is there */
		return mmr_content_plain(c, in);
	}
}

/* ftruncate f len: what lies behind len is zero when it comes back. */
static int64_t content_file(struct mmr_child *c, const struct mmr_insn *in,
			    uint64_t from, uint64_t to, uint32_t value)
{
	uint64_t page = c->program->page_size, first = from / page;
	uint64_t last = (to + page - 1) / page, i;
	struct mmr_ref_value v = mmr_child_ref(c, in->arg[0].lo, MMR_REF_FILE);
	struct mmr_content_file *f;
	uint32_t token[MMR_FILE_PAGES];
	int64_t ret;

	if (!v.kind || !v.b)
		return mmr_content_plain(c, in);
	f = &mmr_content_shared()->file[v.b - 1];
	if (last > MMR_FILE_PAGES)
		last = MMR_FILE_PAGES;
	atomic_fetch_add(&f->cut, 1);
	for (i = first; i < last; i++)
		token[i] = mmr_word_begin(&f->page[i]);
	ret = mmr_content_plain(c, in);
	for (i = first; i < last; i++)
		mmr_word_end(&f->page[i], token[i],
			     ret < 0 || i * page < from || (i + 1) * page > to
				     ? MMR_HOLDS_UNKNOWN
				     : value);
	atomic_fetch_add(&f->cut, 1);
	return ret;
}

static int64_t content_fallocate(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t off = (uint64_t)in->arg[2].lo;

	if (!(in->arg[1].lo & PUNCH_HOLE))
		return mmr_content_plain(c, in);
	return content_file(c, in, off, off + (uint64_t)in->arg[3].lo,
			    mmr_content_own()->huge ? MMR_HOLDS_UNKNOWN
						    : MMR_HOLDS_ZERO);
}

int64_t mmr_content_unknown(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t page = c->program->page_size, addr, size;
	uint32_t token[MMR_CHANGE_PAGES], i;
	_Atomic uint64_t *w;
	struct mmr_content_change k;
	int64_t ret;

	if (!mmr_content_part(c, in, &addr, &size) ||
	    !mmr_content_change_begin(&k, c, addr, size + 8))
		return mmr_content_plain(c, in);
	for (i = 0; i < k.n; i++) {
		struct mmr_page *p = mmr_content_page(c, k.addr + i * page);

		w = p ? mmr_content_file_word(p) : NULL;
		if (w)
			token[i] = mmr_word_begin(w);
	}
	ret = mmr_content_plain(c, in);
	for (i = 0; i < k.n; i++) {
		struct mmr_page *p = mmr_content_page(c, k.addr + i * page);

		w = p ? mmr_content_file_word(p) : NULL;
		if (w)
			mmr_word_end(w, token[i], MMR_HOLDS_UNKNOWN);
	}
	change_end(&k, &(struct outcome){MMR_HOLDS_UNKNOWN, MMR_HOLDS_UNKNOWN});
	return ret;
}

/* -- forks ----------------------------------------------------------------- */

/* A fork copies pages and their words at different moments: only when nobody
 * of the process changed any of them meanwhile do they fit. */
static int64_t content_spawn(struct mmr_child *c, const struct mmr_insn *in)
{
	struct mmr_followed *f = mmr_content_own();
	uint32_t n = atomic_load(&c->proc->changes);

	f->forked_maps = atomic_load(&c->proc->remaps);
	f->forked_placed = atomic_load(&c->proc->remapped) == f->forked_maps;
	f->forked_quiet = atomic_load(&c->proc->changed) == n;
	f->forked_at = n;
	f->forker = c->process->slot + 1;
	return mmr_content_plain(c, in);
}

void mmr_content_forked(struct mmr_child *c)
{
	struct mmr_followed *f = mmr_content_own();
	struct mmr_proc_slot *parent;
	uint32_t i, back;

	if (!c->program->content)
		return;
	parent = f->forker ? &c->procs[f->forker - 1] : NULL;
	if (parent && f->forked_quiet && !f->not_forked &&
	    atomic_load(&parent->changes) == f->forked_at)
		return;
	/* What lies where in the arena is not known either: what is written
	 * there could be anybody's. */
	if (parent && (!f->forked_placed ||
		       atomic_load(&parent->remaps) != f->forked_maps))
		mmr_content_give_up();
	for (i = 0; i < MMR_ARENA_PAGES + f->used && i < MMR_FOLLOWED; i++) {
		back = atomic_load(&f->page[i].back);
		if (MMR_BACK_KIND(back) == MMR_BACK_SHARED)
			continue; /* its words are not copies */
		if (MMR_BACK_KIND(back) != MMR_BACK_NONE)
			atomic_store(&f->page[i].word, MMR_HOLDS_UNKNOWN);
	}
	/* A shared page whose word was in change then stays so: that is right,
	 * nobody will end it here. */
}

/* -- by operation ---------------------------------------------------------- */

int64_t mmr_content_plain(struct mmr_child *c, const struct mmr_insn *in)
{
	const struct mmr_plan *plan = mmr_child_plan(c->machine, in->op);

	return plan->run ? plan->run(c, in) : mmr_child_call(c, in, NULL);
}

/* Changes memory in a way that is not followed. */
static int64_t stranger(struct mmr_child *c, const struct mmr_insn *in)
{
	mmr_content_give_up();
	return mmr_content_plain(c, in);
}

static int64_t run_followed(struct mmr_child *c, const struct mmr_insn *in)
{
	switch (in->op) {
	case MMR_OP_write:
		return mmr_content_touch(c, in, true);
	case MMR_OP_read:
		return mmr_content_touch(c, in, false);
	case MMR_OP_mmap:
		return mmr_content_mmap(c, in);
	case MMR_OP_munmap:
		return change_run(
			c, in,
			(struct outcome){MMR_HOLDS_UNKNOWN, MMR_HOLDS_UNKNOWN});
	case MMR_OP_madvise:
		return content_madvise(c, in);
	case MMR_OP_memfd_create:
		if (in->arg[0].lo & 4) /* MFD_HUGETLB */
			mmr_content_own()->huge = 1;
		return mmr_content_plain(c, in);
	case MMR_OP_ftruncate:
		return content_file(c, in, (uint64_t)in->arg[1].lo,
				    MMR_FILE_PAGES * c->program->page_size,
				    MMR_HOLDS_ZERO);
	case MMR_OP_fallocate:
		return content_fallocate(c, in);
	case MMR_OP_mremap:
		return mmr_content_mremap(c, in);
	case MMR_OP_mlock:
	case MMR_OP_mlock2:
	case MMR_OP_mlockall:
		/* Pages come as a write would bring them (mm/gup.c,
		 * populate_vma_page_range()): of a private file mapping that
		 * can be written they are copies from then on. */
		atomic_store(&mmr_content_own()->copied, 1);
		return mmr_content_plain(c, in);
	case MMR_OP_close:
		mmr_content_own()->closed = 1;
		return mmr_content_plain(c, in);
	case MMR_OP_process_spawn:
		if (in->set >> 2 & 1) /* vm: two share one memory */
			return stranger(c, in);
		return content_spawn(c, in);
	case MMR_OP_userfaultfd:
	case MMR_OP_remap_file_pages:
	case MMR_OP_mem_write:
	case MMR_OP_process_madvise:
	case MMR_OP_process_vm_readv: /* writes into its own */
	case MMR_OP_process_vm_writev:
		return stranger(c, in);
	default:
		return mmr_content_plain(c, in);
	}
}

/* A ref may change between two looks: pages would be marked and others written,
 * so that there is one. */
int64_t mmr_content_run(struct mmr_child *c, const struct mmr_insn *in)
{
	int64_t ret;

	if (atomic_load_explicit(&mmr_content_shared()->off,
				 memory_order_relaxed))
		return mmr_content_plain(c, in);
	c->once = 1;
	c->nheld = 0;
	ret = run_followed(c, in);
	c->once = 0;
	return ret;
}

void mmr_content_reset(void)
{
	struct mmr_content *s = mmr_content_shared();

	if (!MMR_AREA_PTR->program.content || MMR_AREA_PTR->program.keep)
		return;
	atomic_store(&s->off, 0);
	atomic_store(&s->places, 0);
	atomic_store(&s->files, 0);
}

bool mmr_content_hit(void)
{
	return MMR_AREA_PTR->program.content &&
	       atomic_load(&mmr_content_shared()->hit);
}
