/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel constants that the headers of a supported system may lack: plain
 * numbers from the kernel's include/uapi, the same on every architecture that
 * we build for.  Whether the running kernel knows them is asked at run time.
 *
 * MMR_KERNEL_CONSTANTS(X) calls X(NAME, value) for each; our own code says
 * MMR_K_NAME, exported C says NAME and gets an #ifndef for those it uses.
 */
#ifndef MMR_OPS_KERNEL_H
#define MMR_OPS_KERNEL_H

/* clang-format off */
#define MMR_KERNEL_CONSTANTS(X)						\
	X(MAP_FIXED_NOREPLACE, 0x100000)				\
	X(MAP_DROPPABLE, 0x08)						\
	X(MADV_COLD, 20)						\
	X(MADV_PAGEOUT, 21)						\
	X(MADV_POPULATE_READ, 22)					\
	X(MADV_POPULATE_WRITE, 23)					\
	X(MADV_DONTNEED_LOCKED, 24)					\
	X(MADV_COLLAPSE, 25)						\
	X(MADV_GUARD_INSTALL, 102)					\
	X(MADV_GUARD_REMOVE, 103)					\
	X(MADV_SOFT_OFFLINE, 101)					\
	X(MREMAP_DONTUNMAP, 4)						\
	X(MPOL_PREFERRED_MANY, 5)					\
	X(MPOL_WEIGHTED_INTERLEAVE, 6)					\
	X(MFD_NOEXEC_SEAL, 0x08)					\
	X(MFD_EXEC, 0x10)						\
	X(UFFD_USER_MODE_ONLY, 1)					\
	X(UFFDIO_REGISTER_MODE_WP, 2)					\
	X(UFFDIO_REGISTER_MODE_MINOR, 4)				\
	X(UFFD_FEATURE_MINOR_HUGETLBFS, 1 << 9)				\
	X(UFFD_FEATURE_MINOR_SHMEM, 1 << 10)				\
	X(UFFD_FEATURE_EXACT_ADDRESS, 1 << 11)				\
	X(UFFD_FEATURE_WP_HUGETLBFS_SHMEM, 1 << 12)			\
	X(UFFD_FEATURE_WP_UNPOPULATED, 1 << 13)				\
	X(UFFD_FEATURE_POISON, 1 << 14)					\
	X(UFFD_FEATURE_WP_ASYNC, 1 << 15)				\
	X(UFFD_FEATURE_MOVE, 1 << 16)					\
	X(UFFDIO_COPY_MODE_WP, 2)					\
	X(UFFDIO_CONTINUE_MODE_DONTWAKE, 1)				\
	X(UFFDIO_CONTINUE_MODE_WP, 2)					\
	X(UFFDIO_POISON_MODE_DONTWAKE, 1)				\
	X(UFFDIO_MOVE_MODE_DONTWAKE, 1)					\
	X(UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES, 2)				\
	X(SYS_io_uring_setup, 425)					\
	X(SYS_io_uring_register, 427)					\
	X(SYS_pidfd_send_signal, 424)					\
	X(SYS_pidfd_open, 434)						\
	X(SYS_process_madvise, 440)					\
	X(SYS_process_mrelease, 448)					\
	X(SYS_set_mempolicy_home_node, 450)				\
	X(SYS_mseal, 462)
/* clang-format on */

#define MMR_KERNEL_ENUM(name, value) MMR_K_##name = (value),
enum mmr_kernel_constant { MMR_KERNEL_CONSTANTS(MMR_KERNEL_ENUM) };
#undef MMR_KERNEL_ENUM

#endif
