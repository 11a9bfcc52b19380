// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Accesses to memory that may be gone, and the recovery of their faults: the
 * one file that handles SIGSEGV and SIGBUS.
 *
 * The accesses are leaf functions in assembler between two symbols; they keep
 * nothing on the stack, so the handler may move the program counter to their
 * exit and they return how many accesses are left.  The handler finds its
 * thread's context from its own stack, the alternate one.
 */
#include <asm-generic/errno-base.h>
#include <linux/signal.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>

#include "child_machine.h"
#include "rng.h"

#define SIG_BUS 7
#define SIG_SEGV 11
#define SA_SIGINFO_BIT 4ul
#define SA_RESTORER_BIT 0x04000000ul
#define SA_ONSTACK_BIT 0x08000000ul

/* n accesses from p on, every step bytes; how many are left (0: all done). */
uint64_t mmr_touch_write(uint64_t p, uint64_t n, uint64_t step);
uint64_t mmr_touch_read(uint64_t p, uint64_t n, uint64_t step);
/* The same in words of 2, 4 and 8 bytes, at any address. */
uint64_t mmr_touch_write2(uint64_t p, uint64_t n, uint64_t step);
uint64_t mmr_touch_write4(uint64_t p, uint64_t n, uint64_t step);
uint64_t mmr_touch_write8(uint64_t p, uint64_t n, uint64_t step);
uint64_t mmr_touch_read2(uint64_t p, uint64_t n, uint64_t step);
uint64_t mmr_touch_read4(uint64_t p, uint64_t n, uint64_t step);
uint64_t mmr_touch_read8(uint64_t p, uint64_t n, uint64_t step);
/*
 * One byte (1, when written) in each of n places that lie in pages of their own, told to the slot
 * before and after.  Ends early at MMR_CTL_END in *ctl.  In one piece: who comes
 * back from a fault finds the CPU's return addresses overwritten, and each
 * return costs a misprediction.
 */
uint64_t mmr_touch_write_pages(uint64_t p, uint64_t n, uint64_t step,
			       struct mmr_thread_slot *slot,
			       const _Atomic uint32_t *ctl);
uint64_t mmr_touch_read_pages(uint64_t p, uint64_t n, uint64_t step,
			      struct mmr_thread_slot *slot,
			      const _Atomic uint32_t *ctl);
_Static_assert(offsetof(struct mmr_thread_slot, progress) == 16 &&
		       offsetof(struct mmr_thread_slot, address) == 24 &&
		       MMR_CTL_END == 2,
	       "mmr_touch_*_pages() has these as numbers");
extern const char mmr_touch_begin[], mmr_touch_exit[];
void mmr_touch_restorer(void);

#if defined(__x86_64__)
/*
 * Where a handler returns to.  Unwinders go through it by the registers that
 * the kernel saved: the stack pointer lies at the ucontext then, and the frame
 * begins one byte early, as they look one byte before a return address.
 * Numbers are DWARF's (register, then its place in the ucontext), and the
 * instruction has the form that they know it by where they do not read these.
 */
#define SAVED(reg, low, high)                                                  \
	".cfi_escape 0x10, " reg ", 3, 0x77, " low ", " high "\n"
/* clang-format off */
#define RESTORER_ASM                                                           \
	".text\n"                                                              \
	"	.balign 16\n"                                                        \
	"	.cfi_startproc simple\n"                                             \
	"	.cfi_signal_frame\n"                                                 \
	"	.cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06\n" /* CFA: rsp */        \
	SAVED("16", "0xa8", "0x01") /* rip */                                  \
	SAVED("6", "0xf8", "0x00") /* rbp */                                   \
	SAVED("3", "0x80", "0x01") /* rbx */                                   \
	SAVED("12", "0xc8", "0x00") /* r12 to r15 */                           \
	SAVED("13", "0xd0", "0x00")                                            \
	SAVED("14", "0xd8", "0x00")                                            \
	SAVED("15", "0xe0", "0x00")                                            \
	"	nop\n"                                                               \
	"mmr_touch_restorer:\n"                                                \
	"	movq	$15, %rax\n"                                                  \
	"	syscall\n"                                                           \
	"	.cfi_endproc\n"                                                      \
	"	.size mmr_touch_restorer, . - mmr_touch_restorer\n"
/* clang-format on */

/* A loop of one access. */
#define WIDE(name, access)                                                     \
	"	.balign 16\n"                                                        \
	"	.globl " name "\n"                                             \
	"	.type " name ", @function\n" name ":\n"                        \
	"	.cfi_startproc\n"                                                    \
	"1:	" access "\n"                                                  \
	"	addq	%rdx, %rdi\n"                                                   \
	"	decq	%rsi\n"                                                         \
	"	jnz	1b\n"                                                            \
	"	movq	%rsi, %rax\n"                                                   \
	"	ret\n"                                                               \
	"	.cfi_endproc\n"                                                      \
	"	.size " name ", . - " name "\n"
/* And of one access a page. */
#define PAGES(name, access)                                                    \
	"	.balign 16\n"                                                        \
	"	.globl " name "\n"                                             \
	"	.type " name ", @function\n" name ":\n"                        \
	"	.cfi_startproc\n"                                                    \
	"1:	movq	%rdi, 24(%rcx)\n"                                           \
	"	" access "\n"                                                  \
	"	incq	16(%rcx)\n"                                                    \
	"	addq	%rdx, %rdi\n"                                                  \
	"	decq	%rsi\n"                                                        \
	"	jz	2f\n"                                                            \
	"	cmpl	$2, (%r8)\n"                                                   \
	"	jne	1b\n"                                                           \
	"2:	movq	%rsi, %rax\n"                                               \
	"	ret\n"                                                              \
	"	.cfi_endproc\n"                                                     \
	"	.size " name ", . - " name "\n"
__asm__(".section .text.hot.mmr, \"ax\"\n"
	".balign 64\n"
	".globl mmr_touch_begin, mmr_touch_exit\n"
	".globl mmr_touch_write, mmr_touch_read, mmr_touch_restorer\n"
	".type mmr_touch_write, @function\n"
	".type mmr_touch_read, @function\n"
	".type mmr_touch_restorer, @function\n"
	"mmr_touch_begin:\n"
	"mmr_touch_write:\n"
	"	.cfi_startproc\n"
	"1:	movb	%sil, (%rdi)\n"
	"	addq	%rdx, %rdi\n"
	"	decq	%rsi\n"
	"	jnz	1b\n"
	"	xorl	%eax, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mmr_touch_write, . - mmr_touch_write\n"
	PAGES("mmr_touch_write_pages", "movb	$1, (%rdi)")
	PAGES("mmr_touch_read_pages", "movzbl	(%rdi), %eax") WIDE(
		"mmr_touch_write2",
		"movw	%si, (%rdi)") WIDE("mmr_touch_write4",
					   "movl	%esi, (%rdi)")
		WIDE("mmr_touch_write8",
		     "movq	%rsi, (%rdi)") WIDE("mmr_touch_read2",
						    "movzwl	(%rdi), %eax")
			WIDE("mmr_touch_read4", "movl	(%rdi), %eax") WIDE(
				"mmr_touch_read8",
				"movq	(%rdi), %rax") "	.balign 16\n"
						       "mmr_touch_read:\n"
						       "	.cfi_"
						       "startproc\n"
						       "1:	movzbl	"
						       "(%rdi), %eax\n"
						       "	addq	%rdx, "
						       "%rdi\n"
						       "	decq	%rsi\n"
						       "	jnz	1b\n"
						       "mmr_touch_exit:\n"
						       "	movq	%rsi, "
						       "%rax\n"
						       "	ret\n"
						       "	.cfi_endproc\n"
						       "	.size "
						       "mmr_touch_read, . - "
						       "mmr_touch_"
						       "read\n" RESTORER_ASM);
#define RESTORER mmr_sys_ptr((const void *)(uintptr_t)mmr_touch_restorer)
#define FRAME_PC(uc) ((uc)->uc_mcontext.rip)
#else
#define WIDE(name, access)                                                     \
	"	.globl " name "\n"                                             \
	"	.type " name ", %function\n" name ":\n"                        \
	"	.cfi_startproc\n"                                                    \
	"1:	" access "\n"                                                  \
	"	add	x0, x0, x2\n"                                                    \
	"	subs	x1, x1, #1\n"                                                   \
	"	b.ne	1b\n"                                                           \
	"	mov	x0, x1\n"                                                        \
	"	ret\n"                                                               \
	"	.cfi_endproc\n"                                                      \
	"	.size " name ", . - " name "\n"
#define PAGES(name, access)                                                    \
	"	.globl " name "\n"                                             \
	"	.type " name ", %function\n" name ":\n"                        \
	"	.cfi_startproc\n"                                                    \
	"1:	str	x0, [x3, #24]\n"                                             \
	"	" access "\n"                                                  \
	"	ldr	x5, [x3, #16]\n"                                                \
	"	add	x5, x5, #1\n"                                                   \
	"	str	x5, [x3, #16]\n"                                                \
	"	add	x0, x0, x2\n"                                                   \
	"	subs	x1, x1, #1\n"                                                  \
	"	b.eq	2f\n"                                                          \
	"	ldr	w5, [x4]\n"                                                     \
	"	cmp	w5, #2\n"                                                       \
	"	b.ne	1b\n"                                                          \
	"2:	mov	x0, x1\n"                                                    \
	"	ret\n"                                                              \
	"	.cfi_endproc\n"                                                     \
	"	.size " name ", . - " name "\n"
__asm__(".section .text.hot.mmr, \"ax\"\n"
	".balign 64\n"
	".globl mmr_touch_begin, mmr_touch_exit\n"
	".globl mmr_touch_write, mmr_touch_read\n"
	".type mmr_touch_write, %function\n"
	".type mmr_touch_read, %function\n"
	"mmr_touch_begin:\n"
	"mmr_touch_write:\n"
	"	.cfi_startproc\n"
	"1:	strb	w1, [x0]\n"
	"	add	x0, x0, x2\n"
	"	subs	x1, x1, #1\n"
	"	b.ne	1b\n"
	"	mov	x0, #0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size mmr_touch_write, . - mmr_touch_write\n"
	PAGES("mmr_touch_write_pages", "mov	w6, #1\n	strb	w6, [x0]")
	PAGES("mmr_touch_read_pages", "ldrb	w6, [x0]") WIDE(
		"mmr_touch_write2",
		"strh	w1, [x0]") WIDE("mmr_touch_write4",
					"str	w1, [x0]")
		WIDE("mmr_touch_write8",
		     "str	x1, [x0]") WIDE("mmr_touch_read2",
						"ldrh	w3, [x0]")
			WIDE("mmr_touch_read4", "ldr	w3, [x0]") WIDE(
				"mmr_touch_read8",
				"ldr	x3, [x0]") "mmr_touch_read:\n"
						   "	.cfi_startproc\n"
						   "1:	ldrb	w3, [x0]\n"
						   "	add	x0, x0, x2\n"
						   "	subs	x1, x1, #1\n"
						   "	b.ne	1b\n"
						   "mmr_touch_exit:\n"
						   "	mov	x0, x1\n"
						   "	ret\n"
						   "	.cfi_endproc\n"
						   "	.size mmr_touch_read, "
						   ". - mmr_touch_read\n"
						   ".text\n");
#define RESTORER 0 /* the kernel's own, in the vdso */
#define FRAME_PC(uc) ((uc)->uc_mcontext.pc)
#endif

/* As the kernel takes it on both architectures. */
struct kernel_sigaction {
	void (*handler)(int, void *, void *);
	uint64_t flags;
	int64_t restorer;
	uint64_t mask;
};

/* The head of the kernel's siginfo, as far as a fault fills it. */
struct fault_info {
	int32_t signo, err, code, pad;
	uint64_t addr;
};

void mmr_sigaction(int sig, void (*handler)(int, void *, void *),
		   uint64_t flags)
{
	struct kernel_sigaction sa = {.handler = handler, .flags = flags};

	if (RESTORER) {
		sa.restorer = RESTORER;
		sa.flags |= SA_RESTORER_BIT;
	}
	mmr_sys4(__NR_rt_sigaction, sig, mmr_sys_ptr(&sa), 0, 8);
}

/* The signal is nothing that a touch explains: the process dies of it, as it
 * would without us. */
static void die(struct mmr_child *c, int sig, int code)
{
	mmr_sigaction(sig, NULL, 0);
	if (c && c->proc)
		mmr_proc_exit_begin(c->proc, mmr_now(), 0);
	if (code <= 0) /* sent by a process: it does not come back alone */
		mmr_sys3(__NR_tgkill, mmr_sys0(__NR_getpid),
			 mmr_sys0(__NR_gettid), sig);
}

static void on_fault(int sig, void *info_arg, void *context)
{
	const struct fault_info *info = info_arg;
	struct ucontext *uc = context;
	struct mmr_child *c = NULL;
	uint64_t base, pc = FRAME_PC(uc);

	base = (uint64_t)__builtin_frame_address(0) & ~(MMR_STACK_STRIDE - 1);
	if (base >= MMR_STACKS_ADDR && base < MMR_CHILD_BASE + MMR_CHILD_SIZE)
		c = MMR_AT(base + MMR_STACK_STRIDE - MMR_CONTEXT_SIZE,
			   struct mmr_child);
	if (c && info->code > 0 && pc >= (uint64_t)mmr_content_begin &&
	    pc < (uint64_t)mmr_content_exit) {
		c->fault = sig;
		FRAME_PC(uc) = (uint64_t)mmr_content_exit;
		return;
	}
	if (!c || info->code <= 0 || pc < (uint64_t)mmr_touch_begin ||
	    pc >= (uint64_t)mmr_touch_exit) {
		die(c, sig, info->code);
		return;
	}
	if (sig == SIG_SEGV && c->segv) { /* segv=return */
		struct mmr_thread_slot *s = c->slot;

		atomic_store_explicit(&s->fault_addr, info->addr,
				      memory_order_relaxed);
		atomic_store_explicit(
			&s->faults,
			atomic_load_explicit(&s->faults, memory_order_relaxed) +
				1,
			memory_order_relaxed);
		return;
	}
	c->fault = sig;
	FRAME_PC(uc) = (uint64_t)mmr_touch_exit;
}

void mmr_touch_install(void)
{
	mmr_sigaction(SIG_SEGV, on_fault, SA_SIGINFO_BIT | SA_ONSTACK_BIT);
	mmr_sigaction(SIG_BUS, on_fault, SA_SIGINFO_BIT | SA_ONSTACK_BIT);
}

/* One touch statement. */
struct touch {
	struct mmr_child *c;
	uint64_t page, step;
	uint64_t pages; /* touched so far */
	uint32_t width;
	bool is_write;
};

/* By comparison, as an indirect jump after a fault is mispredicted. */
static uint64_t touch_words(const struct touch *t, uint64_t p, uint64_t n)
{
	if (t->width == 2)
		return t->is_write ? mmr_touch_write2(p, n, t->step)
				   : mmr_touch_read2(p, n, t->step);
	if (t->width == 4)
		return t->is_write ? mmr_touch_write4(p, n, t->step)
				   : mmr_touch_read4(p, n, t->step);
	return t->is_write ? mmr_touch_write8(p, n, t->step)
			   : mmr_touch_read8(p, n, t->step);
}

/* One place in each page. */
MMR_HOT static bool touch_pages(struct touch *t, uint64_t p, uint64_t end)
{
	const _Atomic uint32_t *ctl = &t->c->area->ctl;
	uint64_t n = (end - p + t->step - 1) / t->step, left;

	left = t->is_write ? mmr_touch_write_pages(p, n, t->step, t->c->slot,
						   ctl)
			   : mmr_touch_read_pages(p, n, t->step, t->c->slot,
						  ctl);
	t->pages += n - left;
	return !left;
}

/* Touches p..end within page borders; false when it faulted or has to end. */
MMR_HOT static bool touch_range(struct touch *t, uint64_t p, uint64_t end)
{
	struct mmr_thread_slot *s = t->c->slot;
	uint64_t stop, n, left, progress;

	if (t->step >= t->page && t->width == 1 && p < end)
		return touch_pages(t, p, end);
	while (p < end) {
		stop = (p | (t->page - 1)) + 1;
		if (stop > end)
			stop = end;
		if (t->step == 1)
			n = stop - p;
		else if (t->step >= t->page) /* a word across a border */
			n = 1;
		else
			n = (stop - p + t->step - 1) / t->step;
		atomic_store_explicit(&s->address, p, memory_order_relaxed);
		if (t->width != 1)
			left = touch_words(t, p, n);
		else
			left = t->is_write ? mmr_touch_write(p, n, t->step)
					   : mmr_touch_read(p, n, t->step);
		if (left)
			return false;
		t->pages++;
		progress = atomic_load_explicit(&s->progress,
						memory_order_relaxed);
		atomic_store_explicit(&s->progress, progress + 1,
				      memory_order_relaxed);
		p += n * t->step;
		if (atomic_load_explicit(&t->c->area->ctl,
					 memory_order_relaxed) == MMR_CTL_END)
			return false;
	}
	return true;
}

/* Pages (or steps, when these are longer) in a drawn order that visits each
 * once: a full-period generator modulo a power of two, its values mixed. */
static void touch_random(struct touch *t, uint64_t addr, uint64_t end,
			 uint64_t key)
{
	uint64_t unit = t->step > t->page ? t->step : t->page;
	uint64_t base = t->step > t->page ? addr : addr & ~(t->page - 1);
	uint64_t n = (end - base + unit - 1) / unit;
	uint64_t bits = n > 1 ? 64 - (uint64_t)__builtin_clzll(n - 1) : 0;
	uint64_t mask = (1ULL << bits) - 1, shift = bits / 2 + 1;
	uint64_t add = mmr_rng_mix(key) | 1, x = key & mask;
	uint64_t i, u, lo, hi;

	for (i = 0; i <= mask; i++) {
		x = (x * 0xd1342543de82ef95ULL + add) & mask;
		u = (x * (key | 1)) & mask;
		u ^= u >> shift;
		if (u >= n)
			continue;
		lo = base + u * unit;
		hi = lo + unit < end ? lo + unit : end;
		if (!touch_range(t, lo > addr ? lo : addr, hi))
			return;
	}
}

MMR_HOT int64_t mmr_child_touch(struct mmr_child *c, const struct mmr_insn *in,
				const struct mmr_touch_args *a)
{
	struct touch t = {.c = c,
			  .page = c->program->page_size,
			  .step = (uint64_t)in->arg[a->step].lo,
			  .width = 1,
			  .is_write = a->is_write};
	_Atomic uint64_t *pages = &c->stats[in->stat].pages;
	uint64_t addr, size;

	if (!mmr_child_part(c, in, a->map, a->off, a->len, &addr, &size))
		return MMR_SKIPPED;
	if (in->set >> a->width & 1)
		t.width = (uint32_t)in->arg[a->width].lo;
	if (in->set >> a->below & 1 && in->arg[a->below].lo) { /* what is there grew out of a fault */
		addr = (uint64_t)mmr_child_ref(c, in->arg[a->map].lo,
					       MMR_REF_MAPPING)
			       .a;
		size = (uint64_t)in->arg[a->below].lo;
		addr -= size < addr ? size : addr;
	}
	/* The last word ends where the part does. */
	size -= size < t.width ? size : t.width - 1;
	if (!t.step)
		t.step = 1;
	c->fault = 0;
	if (in->arg[a->order].lo)
		touch_random(&t, addr, addr + size,
			     mmr_rng_key(mmr_rng_key(in->tag, c->round),
					 c->iteration));
	else
		touch_range(&t, addr, addr + size);
	if (c->shared_stats)
		atomic_fetch_add_explicit(pages, t.pages, memory_order_relaxed);
	else
		atomic_store_explicit(
			pages,
			atomic_load_explicit(pages, memory_order_relaxed) +
				t.pages,
			memory_order_relaxed);
	if (c->fault)
		return c->fault == SIG_BUS ? -EIO : -EFAULT;
	return (int64_t)t.pages;
}
