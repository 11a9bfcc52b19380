// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Holder and supervisor run from a copy of the executable that is theirs
 * alone.  migrate_pages of a process moves what others share with it too (with
 * CAP_SYS_NICE), its code among it; while a page is on its way, whoever runs
 * into it waits.  A supervisor that waits for the very call that is under test
 * ends no round, and takes no order from the watcher.
 *
 * The processes of the case go back to the file: they share their code with
 * each other, as programs do, and the unwinder finds the file by its name.
 */
#include "child_image.h"

#define AT_FDCWD_VALUE (-100)
#define O_CLOEXEC_VALUE 02000000
#define MAP_PRIVATE_VALUE 2
#define MAP_FIXED_VALUE 0x10
#define MAP_ANON_VALUE 0x20
#define PROT_RW 3
#define PROT_RX 5
#define MREMAP_BOTH 3 /* MAYMOVE and FIXED */

void mmr_image_own(const struct mmr_image *image)
{
	int64_t fd, at, len = (int64_t)(image->end - image->start);

	if (!image->one_piece)
		return;
	fd = mmr_sys4(__NR_openat, AT_FDCWD_VALUE,
		      mmr_sys_ptr("/proc/self/exe"), O_CLOEXEC_VALUE, 0);
	if (fd < 0)
		return;
	at = mmr_sys6(__NR_mmap, 0, len, PROT_RW,
		      MAP_PRIVATE_VALUE | MAP_ANON_VALUE, -1, 0);
	if (at < 0)
		goto close;
	/* The rest of the last page stays zero, as in the file's mapping. */
	if (mmr_sys4(__NR_pread64, fd, at, len, (int64_t)image->offset) <
	    (int64_t)image->bytes)
		goto unmap;
	if (mmr_sys3(__NR_mprotect, at, len, PROT_RX) < 0 ||
	    mmr_sys5(__NR_mremap, at, len, len, MREMAP_BOTH,
		     (int64_t)image->start) < 0)
		goto unmap;
	MMR_MACHINE_PTR->image_start = image->start;
	MMR_MACHINE_PTR->image_len = (uint32_t)len;
	MMR_MACHINE_PTR->image_offset = (uint32_t)image->offset;
	MMR_MACHINE_PTR->image_fd = (int32_t)fd;
	return;

unmap:
	mmr_sys2(__NR_munmap, at, len);
close:
	mmr_sys1(__NR_close, fd);
}

void mmr_image_share(void)
{
	const struct mmr_machine *m = MMR_MACHINE_PTR;

	if (!m->image_start)
		return;
	/* What runs meanwhile is the same bytes at the same place. */
	mmr_sys6(__NR_mmap, (int64_t)m->image_start, m->image_len, PROT_RX,
		 MAP_PRIVATE_VALUE | MAP_FIXED_VALUE, m->image_fd,
		 m->image_offset);
	mmr_sys1(__NR_close, m->image_fd);
}
