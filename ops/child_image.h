/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The executable's own mappings; for mmrace-child and what is measured
 * against it. */
#ifndef MMR_OPS_CHILD_IMAGE_H
#define MMR_OPS_CHILD_IMAGE_H

#include <linux/auxvec.h>
#include <linux/elf.h>

#include "child_machine.h"

struct mmr_image {
	uint64_t start, end;	/* of all segments, whole pages */
	uint64_t offset, bytes; /* of start in the file; what it has from
				 * there on */
	bool one_piece;		/* one mapping of the file can hold all */
};

/*
 * One mapping for the whole executable.  A kernel with maple trees keeps up to
 * 16 mappings and gaps in one node; at that border every mmap and munmap of a
 * case would split and join nodes, which costs a microsecond and is not what
 * other programs see.  stack: as the kernel left it, with argv, the
 * environment and then the auxiliary vector, which knows the segments.
 */
static inline void mmr_image_merge(const uint64_t *stack,
				   struct mmr_image *image)
{
	const uint64_t *p = stack + 2 + stack[0];
	uint64_t i, n = 0, page = 4096, last = 0;
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
	image->start = UINT64_MAX;
	image->end = image->offset = image->bytes = 0;
	image->one_piece = true;
	for (i = 0; h && i < n; i++) {
		if (h[i].p_type != PT_LOAD)
			continue;
		if (h[i].p_flags & PF_W) { /* never merged, and ours has none */
			image->one_piece = false;
			return;
		}
		if (image->end && h[i].p_vaddr - h[i].p_offset != last)
			image->one_piece = false;
		last = h[i].p_vaddr - h[i].p_offset;
		if (h[i].p_vaddr < image->start) {
			image->start = h[i].p_vaddr & ~(page - 1);
			image->offset = h[i].p_offset & ~(page - 1);
		}
		if (h[i].p_vaddr + h[i].p_memsz > image->end)
			image->end = h[i].p_vaddr + h[i].p_memsz;
	}
	if (image->start >= image->end) {
		image->one_piece = false;
		return;
	}
	image->bytes = image->end - image->start;
	image->end = (image->end + page - 1) & ~(page - 1);
	mmr_sys3(__NR_mprotect, (int64_t)image->start, (int64_t)image->bytes,
		 5 /* PROT_READ | PROT_EXEC */);
}

/* child_image.c.  From here on the caller, and what is forked from it, runs
 * from a copy of its own; where that fails it goes on as it is. */
void mmr_image_own(const struct mmr_image *image);
/* A process of the case, just forked from the supervisor, goes back to the
 * file. */
void mmr_image_share(void);

#endif
