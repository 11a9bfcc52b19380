/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The executable's own mappings; for mmrace-child and what is measured
 * against it. */
#ifndef MMR_OPS_CHILD_IMAGE_H
#define MMR_OPS_CHILD_IMAGE_H

#include <linux/auxvec.h>
#include <linux/elf.h>

#include "child_machine.h"

/*
 * One mapping for the whole executable.  A kernel with maple trees keeps up to
 * 16 mappings and gaps in one node; at that border every mmap and munmap of a
 * case would split and join nodes, which costs a microsecond and is not what
 * other programs see.  stack: as the kernel left it, with argv, the
 * environment and then the auxiliary vector, which knows the segments.
 */
static inline void mmr_image_merge(const uint64_t *stack)
{
	const uint64_t *p = stack + 2 + stack[0];
	uint64_t i, n = 0, start = UINT64_MAX, end = 0, page = 4096;
	const Elf64_Phdr *h = NULL;

	while (*p++)
		;
	for (; p[0] != AT_NULL; p += 2) {
		if (p[0] == AT_PHDR)
			h = MMR_AT(p[1], const Elf64_Phdr);
		if (p[0] == AT_PHNUM)
			n = p[1];
		if (p[0] == AT_PAGESZ)
			page = p[1];
	}
	for (i = 0; h && i < n; i++) {
		if (h[i].p_type != PT_LOAD)
			continue;
		if (h[i].p_flags & PF_W)
			return; /* never merged, and ours has none */
		if (h[i].p_vaddr < start)
			start = h[i].p_vaddr & ~(page - 1);
		if (h[i].p_vaddr + h[i].p_memsz > end)
			end = h[i].p_vaddr + h[i].p_memsz;
	}
	if (start < end)
		mmr_sys3(__NR_mprotect, (int64_t)start, (int64_t)(end - start),
			 5 /* PROT_READ | PROT_EXEC */);
}

#endif
