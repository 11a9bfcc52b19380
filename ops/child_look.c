// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads and writes of a case that expects content: a write fills its bytes with
 * a value of its own, a read compares the page with what child_content.c knows
 * of it.
 */
#include <linux/errno.h>

#include "child_content.h"

/* n words from p on, every step bytes: the bits that are not as in want, into
 * *diff.  n bytes from p on become v.  Both: how many are left. */
uint64_t mmr_content_diff(uint64_t p, uint64_t n, uint64_t step, uint64_t want,
			  uint64_t *diff);
uint64_t mmr_content_fill(uint64_t p, uint64_t n, uint64_t step, uint64_t v);

/* clang-format off */
#if defined(__x86_64__)
__asm__(".section .text.hot.mmr, \"ax\"\n"
	".balign 64\n"
	".globl mmr_content_begin, mmr_content_exit\n"
	".globl mmr_content_diff, mmr_content_fill\n"
	".type mmr_content_diff, @function\n"
	".type mmr_content_fill, @function\n"
	"mmr_content_begin:\n"
	"mmr_content_fill:\n"
	"	.cfi_startproc\n"
	"1:	movb	%cl, (%rdi)\n"
	"	addq	%rdx, %rdi\n"
	"	decq	%rsi\n"
	"	jnz	1b\n"
	"	xorl	%eax, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mmr_content_fill, . - mmr_content_fill\n"
	"mmr_content_diff:\n"
	"	.cfi_startproc\n"
	"	xorl	%r9d, %r9d\n"
	"1:	movq	(%rdi), %rax\n"
	"	xorq	%rcx, %rax\n"
	"	orq	%rax, %r9\n"
	"	addq	%rdx, %rdi\n"
	"	decq	%rsi\n"
	"	jnz	1b\n"
	"	movq	%r9, (%r8)\n"
	"mmr_content_exit:\n"
	"	movq	%rsi, %rax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mmr_content_diff, . - mmr_content_diff\n"
	".text\n");
#else
__asm__(".section .text.hot.mmr, \"ax\"\n"
	".balign 64\n"
	".globl mmr_content_begin, mmr_content_exit\n"
	".globl mmr_content_diff, mmr_content_fill\n"
	".type mmr_content_diff, %function\n"
	".type mmr_content_fill, %function\n"
	"mmr_content_begin:\n"
	"mmr_content_fill:\n"
	"	.cfi_startproc\n"
	"1:	strb	w3, [x0]\n"
	"	add	x0, x0, x2\n"
	"	subs	x1, x1, #1\n"
	"	b.ne	1b\n"
	"	mov	x0, #0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mmr_content_fill, . - mmr_content_fill\n"
	"mmr_content_diff:\n"
	"	.cfi_startproc\n"
	"	mov	x5, #0\n"
	"1:	ldr	x6, [x0]\n"
	"	eor	x6, x6, x3\n"
	"	orr	x5, x5, x6\n"
	"	add	x0, x0, x2\n"
	"	subs	x1, x1, #1\n"
	"	b.ne	1b\n"
	"	str	x5, [x4]\n"
	"mmr_content_exit:\n"
	"	mov	x0, x1\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mmr_content_diff, . - mmr_content_diff\n"
	".text\n");
#endif
/* clang-format on */

struct look {
	struct mmr_child *c;
	const struct mmr_insn *in;
	uint64_t page, step, pages;
	uint32_t byte;
};

static void blame(const struct look *l, uint64_t addr, uint32_t value,
		  uint64_t diff)
{
	struct mmr_content *s = mmr_content_shared();
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&s->hit, &none, 1))
		return;
	s->stat = l->in->stat;
	s->thread_slot = l->c->slot_index;
	s->addr = addr;
	s->value = value;
	s->diff = diff;
	atomic_store(&s->hit, 2);
	mmr_event();
}

/* Compares the page at p with what it should hold.  0 when it does, -1 after a
 * fault; else the bits that differ. */
static int64_t compare(const struct look *l, uint64_t p, uint32_t value,
		       uint64_t *diff)
{
	uint64_t want = 0, n = l->page / 8, step = 8, mask = ~0ULL, at = 0;

	if (MMR_HOLDS_KIND(value) == MMR_HOLDS_BYTE) {
		want = MMR_HOLDS_VALUE(value) * 0x0101010101010101ULL;
		step = 64;
		n = l->page / step;
		if (!MMR_HOLDS_ALL(value)) {
			at = MMR_HOLDS_POS(value) & ~7ULL;
			mask = 0xffULL << (MMR_HOLDS_POS(value) & 7) * 8;
			n = 1;
		}
	}
	l->c->fault = 0;
	if (mmr_content_diff(p + at, n, step, want, diff))
		return -1;
	*diff &= mask;
	return *diff != 0;
}

/* What page p should hold, and the words that say so: false when it is not
 * known. */
struct known {
	struct mmr_page *p;
	_Atomic uint64_t *file;
	uint64_t word, file_word;
	uint32_t back, cut, value;
};

static bool know(struct known *k, struct mmr_page *p)
{
	*k = (struct known){.p = p};
	k->word = atomic_load(&p->word);
	k->back = atomic_load(&p->back);
	k->value = (uint32_t)k->word;
	if (!mmr_word_quiet(k->word) ||
	    MMR_BACK_KIND(k->back) == MMR_BACK_NONE ||
	    mmr_content_is_dead(k->back))
		return false;
	if (MMR_BACK_KIND(k->back) >= MMR_BACK_SHARED) {
		k->cut = atomic_load(&mmr_content_file(k->back)->cut);
		if (MMR_BACK_KIND(k->back) == MMR_BACK_SHARED ||
		    k->value == MMR_HOLDS_FILE) {
			k->file = mmr_content_file_word(p);
			k->file_word = atomic_load(k->file);
			k->value = (uint32_t)k->file_word;
			/* Looked at after the word: a copy that was made since
			 * then is a copy of that. */
			if (!mmr_word_quiet(k->file_word) ||
			    (MMR_BACK_KIND(k->back) == MMR_BACK_COPY &&
			     atomic_load(&mmr_content_own()->copied)))
				return false;
		} else if (k->cut != atomic_load(&p->cut)) {
			return false; /* cut since it was copied */
		}
	}
	return k->value == MMR_HOLDS_ZERO ||
	       MMR_HOLDS_KIND(k->value) == MMR_HOLDS_BYTE;
}

static bool still(const struct known *k)
{
	return atomic_load(&k->p->word) == k->word &&
	       atomic_load(&k->p->back) == k->back &&
	       (!k->file || atomic_load(k->file) == k->file_word) &&
	       !mmr_content_is_dead(k->back) &&
	       (MMR_BACK_KIND(k->back) < MMR_BACK_SHARED ||
		atomic_load(&mmr_content_file(k->back)->cut) == k->cut) &&
	       !atomic_load(&mmr_content_shared()->off);
}

static void check_page(struct look *l, uint64_t addr)
{
	struct mmr_page *p = mmr_content_page(l->c, addr);
	struct known k;
	uint64_t diff;
	int64_t ret;

	if (!p || !know(&k, p))
		return;
	ret = compare(l, addr, k.value, &diff);
	if (ret < 0 || !still(&k))
		return;
	atomic_fetch_add_explicit(&mmr_content_shared()->compared, 1,
				  memory_order_relaxed);
	if (ret)
		blame(l, addr, k.value, diff);
}

/* Writes n bytes from p on, within a page. */
static bool write_page(struct look *l, uint64_t at, uint64_t n)
{
	uint64_t start = at & ~(l->page - 1), pos = at - start, left;
	bool all = l->step == 1 && n == l->page;
	struct mmr_page *p = mmr_content_page(l->c, start);
	uint32_t value, token = 0, file_token = 0, cut = 0;
	_Atomic uint64_t *file = NULL;

	value = MMR_HOLDS(l->byte, pos, all);
	if (p) {
		atomic_fetch_add(&l->c->proc->changes, 1);
		token = mmr_word_begin(&p->word);
		if (MMR_BACK_KIND(p->back) == MMR_BACK_SHARED)
			file = mmr_content_file_word(p);
		if (file)
			file_token = mmr_word_begin(file);
		if (MMR_BACK_KIND(p->back) == MMR_BACK_COPY)
			cut = atomic_load(&mmr_content_file(p->back)->cut);
	}
	left = mmr_content_fill(at, n, l->step, l->byte);
	if (!p)
		return left == 0;
	if (left)
		value = MMR_HOLDS_UNKNOWN;
	if (file)
		mmr_word_end(file, file_token, value);
	atomic_store(&p->cut, cut);
	mmr_word_end(&p->word, token, value);
	atomic_fetch_add(&l->c->proc->changed, 1);
	return left == 0;
}

static bool touch_page(struct look *l, uint64_t at, uint64_t n, bool is_write)
{
	struct mmr_thread_slot *s = l->c->slot;
	uint64_t unused;

	atomic_store_explicit(&s->address, at, memory_order_relaxed);
	l->c->fault = 0;
	if (is_write) {
		if (!write_page(l, at, n))
			return false;
	} else {
		/* The access that the case asks for, then the rest. */
		if (mmr_content_diff(at & ~7ULL, 1, 8, 0, &unused))
			return false;
		check_page(l, at & ~(l->page - 1));
		l->c->fault = 0;
	}
	l->pages++;
	atomic_fetch_add_explicit(&s->progress, 1, memory_order_relaxed);
	return atomic_load_explicit(&l->c->area->ctl, memory_order_relaxed) !=
	       MMR_CTL_END;
}

enum { TOUCH_STEP = 3, TOUCH_ORDER, TOUCH_WIDTH, TOUCH_BELOW };

int64_t mmr_content_touch(struct mmr_child *c, const struct mmr_insn *in,
			  bool is_write)
{
	struct look l = {.c = c,
			 .in = in,
			 .page = c->program->page_size,
			 .step = (uint64_t)in->arg[TOUCH_STEP].lo};
	uint64_t addr, size, p, stop, n;

	if (!mmr_child_part(c, in, 0, 1, 2, &addr, &size))
		return MMR_SKIPPED;
	/* Rare kinds: a write of them leaves nobody knows what. */
	if (c->segv || (in->set >> TOUCH_BELOW & 1) ||
	    (in->set >> TOUCH_WIDTH & 1 && in->arg[TOUCH_WIDTH].lo > 1) ||
	    in->arg[TOUCH_ORDER].lo) {
		if (!is_write)
			return mmr_content_plain(c, in);
		if (c->segv || in->set >> TOUCH_BELOW & 1)
			mmr_content_give_up();
		return mmr_content_unknown(c, in);
	}
	if (!l.step)
		l.step = 1;
	l.byte = 1 + atomic_fetch_add(&mmr_content_shared()->bytes, 1) % 255;
	for (p = addr; p < addr + size; p += n * l.step) {
		stop = (p | (l.page - 1)) + 1;
		if (stop > addr + size)
			stop = addr + size;
		n = l.step >= l.page ? 1 : (stop - p + l.step - 1) / l.step;
		if (!touch_page(&l, p, n, is_write))
			break;
	}
	atomic_fetch_add_explicit(&c->stats[in->stat].pages, l.pages,
				  memory_order_relaxed);
	if (c->fault)
		return c->fault == 7 ? -EIO : -EFAULT;
	return (int64_t)l.pages;
}

int64_t mmr_child_poke(struct mmr_child *c, const struct mmr_insn *in, int map,
		       int off)
{
	uint64_t addr, size, word = 0;

	if (!mmr_child_part(c, in, map, off, -1, &addr, &size))
		return MMR_SKIPPED;
	c->fault = 0;
	if (mmr_content_diff(addr & ~7ULL, 1, 8, 0, &word) ||
	    mmr_content_fill(addr, 1, 1, ~(word >> (addr & 7) * 8) & 255))
		return c->fault == 7 ? -EIO : -EFAULT;
	return 0;
}
