// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The S1 loop written by hand, for s1.c: what a case is measured against.
 *
 *   s1_hand CPU CYCLES PAGES STEP MAP_FLAGS HINT    (decimal)
 *
 * File descriptor 3 is a page that gets the CPU time in ns, as a 64-bit word.
 * Freestanding and with the mappings of mmrace-child at their places: the
 * number of mappings decides what mmap and munmap cost, by up to a third, so
 * a libc program would measure its libraries.
 */
#include "../../ops/child_image.h"

_Noreturn void mmr_hand_start(const uint64_t *stack);

#if defined(__x86_64__)
__asm__(".text\n.globl _start\n_start:\n"
	"	xorl	%ebp, %ebp\n"
	"	movq	%rsp, %rdi\n"
	"	andq	$-16, %rsp\n"
	"	call	mmr_hand_start\n");
#else
__asm__(".text\n.globl _start\n_start:\n"
	"	mov	x0, sp\n"
	"	bl	mmr_hand_start\n");
#endif

static int64_t number(const char *s)
{
	int64_t v = 0;

	for (; *s >= '0' && *s <= '9'; s++)
		v = v * 10 + (*s - '0');
	return v;
}

/* len is no constant, so that the writes stay a loop. */
static int loop(int64_t cycles, int64_t len, int64_t step, int64_t flags,
		int64_t hint)
{
	volatile char *m;
	int64_t at, k;

	for (; cycles > 0; cycles--) {
		at = mmr_sys6(__NR_mmap, hint, len, 3, flags, -1, 0);
		if (at < 0)
			return 3;
		m = (volatile char *)(uintptr_t)at;
		for (k = 0; k < len; k += step)
			m[k] = (char)k;
		mmr_sys2(__NR_munmap, at, len);
	}
	return 0;
}

_Noreturn void mmr_hand_start(const uint64_t *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);
	uint64_t cpu = (uint64_t)number(argv[1]), mask[16] = {0};
	uint64_t *out = (uint64_t *)MMR_AREA_ADDR;
	struct mmr_image image;
	int status;

	mmr_image_merge(stack, &image);
	mmr_sys6(__NR_mmap, MMR_CHILD_BASE, MMR_CHILD_SIZE, 3, 0x4032, -1, 0);
	mmr_sys6(__NR_mmap, MMR_AREA_ADDR, 4096, 3, 0x11, 3, 0);
	mask[(cpu >> 6) & 15] |= 1ULL << (cpu & 63);
	mmr_sys3(__NR_sched_setaffinity, 0, sizeof(mask), mmr_sys_ptr(mask));
	status = loop(number(argv[2]), number(argv[3]) * 4096, number(argv[4]),
		      number(argv[5]), number(argv[6]));
	*out = (uint64_t)mmr_sys_clock(2); /* CLOCK_PROCESS_CPUTIME_ID */
	mmr_sys_exit_group(status);
}
