// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Features finer than a system call.  Each is asked of the running kernel in
 * a way that changes nothing: on no memory at all, on a page of our own, or
 * by what the kernel says of itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "feature.h"
#include "kernel.h"

enum how {
	ADVICE,	     /* an advice of madvise */
	MEMFD,	     /* a flag of memfd_create */
	MMAP,	     /* flags of mmap, anonymous */
	MREMAP,	     /* a flag of mremap, with MREMAP_MAYMOVE */
	POLICY,	     /* a mode of mbind */
	MEMBARRIER,  /* a command of membarrier */
	UFFD,	     /* a feature bit that userfaultfd offers */
	UFFD_IOCTL,  /* userfaultfd: a request that is in no feature bit */
	UFFD_KERNEL, /* userfaultfd for faults of system calls, too */
	PROC,	     /* a file of /proc/self */
};

static const struct feature {
	const char *name;
	const char *since;
	enum how how;
	unsigned long value;
	const char *file;
} features[] = {
	{"madv_free", "4.5", ADVICE, MADV_FREE, NULL},
	{"madv_wipeonfork", "4.14", ADVICE, MADV_WIPEONFORK, NULL},
	{"madv_cold", "5.4", ADVICE, MMR_K_MADV_COLD, NULL},
	{"madv_pageout", "5.4", ADVICE, MMR_K_MADV_PAGEOUT, NULL},
	{"madv_populate_read", "5.14", ADVICE, MMR_K_MADV_POPULATE_READ, NULL},
	{"madv_populate_write", "5.14", ADVICE, MMR_K_MADV_POPULATE_WRITE,
	 NULL},
	{"madv_dontneed_locked", "5.18", ADVICE, MMR_K_MADV_DONTNEED_LOCKED,
	 NULL},
	{"madv_collapse", "6.1", ADVICE, MMR_K_MADV_COLLAPSE, NULL},
	{"madv_guard_install", "6.13", ADVICE, MMR_K_MADV_GUARD_INSTALL, NULL},
	{"madv_mergeable", "2.6.32 with CONFIG_KSM", ADVICE, MADV_MERGEABLE,
	 NULL},
	{"madv_hugepage", "2.6.38 with CONFIG_TRANSPARENT_HUGEPAGE", ADVICE,
	 MADV_HUGEPAGE, NULL},
	{"madv_hwpoison", "2.6.32 with CONFIG_MEMORY_FAILURE", ADVICE,
	 MADV_HWPOISON, NULL},
	{"madv_soft_offline", "2.6.33 with CONFIG_MEMORY_FAILURE", ADVICE,
	 MMR_K_MADV_SOFT_OFFLINE, NULL},
	{"memfd_hugetlb", "4.14 with CONFIG_HUGETLBFS", MEMFD, MFD_HUGETLB,
	 NULL},
	{"memfd_exec", "6.3", MEMFD, MMR_K_MFD_EXEC, NULL},
	{"memfd_noexec_seal", "6.3", MEMFD, MMR_K_MFD_NOEXEC_SEAL, NULL},
	{"map_droppable", "6.11", MMAP, MMR_K_MAP_DROPPABLE, NULL},
	{"mremap_dontunmap", "5.7", MREMAP, MMR_K_MREMAP_DONTUNMAP, NULL},
	{"mpol_preferred_many", "5.15", POLICY, MMR_K_MPOL_PREFERRED_MANY,
	 NULL},
	{"mpol_weighted_interleave", "6.9", POLICY,
	 MMR_K_MPOL_WEIGHTED_INTERLEAVE, NULL},
	{"membarrier_private_expedited", "4.14", MEMBARRIER, 1 << 3, NULL},
	{"membarrier_global_expedited", "4.16", MEMBARRIER, 1 << 1, NULL},
	{"membarrier_sync_core", "4.16, on some architectures", MEMBARRIER,
	 1 << 5, NULL},
	{"membarrier_rseq", "5.10 with CONFIG_RSEQ", MEMBARRIER, 1 << 7, NULL},
	{"uffd_event_fork", "4.11", UFFD, UFFD_FEATURE_EVENT_FORK, NULL},
	{"uffd_event_remap", "4.11", UFFD, UFFD_FEATURE_EVENT_REMAP, NULL},
	{"uffd_event_remove", "4.11", UFFD, UFFD_FEATURE_EVENT_REMOVE, NULL},
	{"uffd_event_unmap", "4.11", UFFD, UFFD_FEATURE_EVENT_UNMAP, NULL},
	{"uffd_missing_hugetlbfs", "4.11", UFFD, UFFD_FEATURE_MISSING_HUGETLBFS,
	 NULL},
	{"uffd_missing_shmem", "4.11", UFFD, UFFD_FEATURE_MISSING_SHMEM, NULL},
	{"uffd_sigbus", "4.14", UFFD, UFFD_FEATURE_SIGBUS, NULL},
	{"uffd_thread_id", "4.14", UFFD, UFFD_FEATURE_THREAD_ID, NULL},
	{"uffd_wp", "5.7 on x86-64", UFFD, UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	 NULL},
	{"uffd_minor_hugetlbfs", "5.13", UFFD,
	 MMR_K_UFFD_FEATURE_MINOR_HUGETLBFS, NULL},
	{"uffd_minor_shmem", "5.14", UFFD, MMR_K_UFFD_FEATURE_MINOR_SHMEM,
	 NULL},
	{"uffd_exact_address", "5.18", UFFD, MMR_K_UFFD_FEATURE_EXACT_ADDRESS,
	 NULL},
	{"uffd_wp_hugetlbfs_shmem", "5.19", UFFD,
	 MMR_K_UFFD_FEATURE_WP_HUGETLBFS_SHMEM, NULL},
	{"uffd_wp_unpopulated", "6.4", UFFD, MMR_K_UFFD_FEATURE_WP_UNPOPULATED,
	 NULL},
	{"uffd_poison", "6.6", UFFD, MMR_K_UFFD_FEATURE_POISON, NULL},
	{"uffd_wp_async", "6.7", UFFD, MMR_K_UFFD_FEATURE_WP_ASYNC, NULL},
	{"uffd_move", "6.8", UFFD, MMR_K_UFFD_FEATURE_MOVE, NULL},
	{"uffd_kernel_faults",
	 "4.3, as root or with vm.unprivileged_userfaultfd at 1,", UFFD_KERNEL,
	 0, NULL},
	{"uffd_user_mode_only", "5.11", UFFD_IOCTL, MMR_K_UFFD_USER_MODE_ONLY,
	 NULL},
	{"proc_smaps_rollup", "4.14", PROC, 0, "smaps_rollup"},
	{"proc_numa_maps", "2.6.14 with CONFIG_NUMA", PROC, 0, "numa_maps"},
	{"proc_pagemap", "2.6.25 with CONFIG_PROC_PAGE_MONITOR", PROC, 0,
	 "pagemap"},
	{"proc_clear_refs", "2.6.22 with CONFIG_PROC_PAGE_MONITOR", PROC, 0,
	 "clear_refs"},
};

static const struct feature *find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (strcmp(features[i].name, name) == 0)
			return &features[i];
	return NULL;
}

const char *mmr_feature_name(int i)
{
	return i >= 0 && (size_t)i < sizeof(features) / sizeof(features[0])
		       ? features[i].name
		       : NULL;
}

bool mmr_feature_known(const char *name)
{
	return find(name) != NULL;
}

static bool has_fd(int fd)
{
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool has_map(const struct feature *f, size_t page)
{
	int flags = MAP_ANONYMOUS | (int)f->value;
	void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (at == MAP_FAILED)
		return false;
	munmap(at, page);
	return true;
}

/* On a private page of our own. */
static bool has_on_page(const struct feature *f, size_t page)
{
	unsigned long mask = 1;
	bool has = false;
	void *at, *to;

	at = mmap(NULL, page, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return false;
	if (f->how == POLICY) {
		has = syscall(__NR_mbind, at, page, f->value, &mask, 64, 0) ==
		      0;
	} else {
		to = mremap(at, page, page, MREMAP_MAYMOVE | (int)f->value,
			    NULL);
		has = to != MAP_FAILED;
		if (has)
			munmap(to, page);
	}
	munmap(at, page);
	return has;
}

static bool has_uffd(const struct feature *f)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd, rc;

	fd = (int)syscall(__NR_userfaultfd, O_CLOEXEC);
	if (fd < 0 || f->how == UFFD_IOCTL) {
		if (fd >= 0)
			close(fd);
		fd = (int)syscall(__NR_userfaultfd,
				  O_CLOEXEC | MMR_K_UFFD_USER_MODE_ONLY);
	}
	if (fd < 0)
		return false;
	rc = ioctl(fd, UFFDIO_API, &api);
	close(fd);
	return rc == 0 && (f->how == UFFD_IOCTL || api.features & f->value);
}

static bool has(const struct feature *f)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char path[64];
	long cmds;

	switch (f->how) {
	case ADVICE:
		return syscall(__NR_madvise, NULL, 0, f->value) == 0;
	case MEMFD:
		return has_fd(memfd_create("mmrace", (unsigned int)f->value |
							     MFD_CLOEXEC));
	case MMAP:
		return has_map(f, page);
	case MREMAP:
	case POLICY:
		return has_on_page(f, page);
	case MEMBARRIER:
		cmds = syscall(__NR_membarrier, 0, 0, 0);
		return cmds > 0 && (unsigned long)cmds & f->value;
	case UFFD:
	case UFFD_IOCTL:
		return has_uffd(f);
	case UFFD_KERNEL:
		return has_fd((int)syscall(__NR_userfaultfd, O_CLOEXEC));
	case PROC:
		snprintf(path, sizeof(path), "/proc/self/%s", f->file);
		return access(path, F_OK) == 0;
	}
	return false;
}

int mmr_feature_probe(const char *name, char *text, size_t n)
{
	const struct feature *f = find(name);
	int saved = errno;
	bool ok = f && has(f);

	errno = saved;
	if (ok)
		return 0;
	if (!f)
		snprintf(text, n, "needs the feature %s, which is unknown here",
			 name);
	else
		snprintf(text, n,
			 "needs %s, this kernel has none or forbids it (Linux "
			 "has it from %s on)",
			 name, f->since);
	return -ENOTSUP;
}

int mmr_feature_lacks(const char *name, char *buf, size_t n, const char **since)
{
	const struct feature *f = find(name);

	if (!f)
		return -ENOENT;
	*since = f->since;
	switch (f->how) {
	case ADVICE:
		snprintf(buf, n, "madvise(NULL, 0, %lu)", f->value);
		break;
	case MEMFD:
		snprintf(buf, n, "memfd_create(\"\", %#lx) < 0", f->value);
		break;
	case MMAP:
		snprintf(buf, n,
			 "mmap(NULL, 1, PROT_READ, MAP_ANONYMOUS | %#lx, -1, "
			 "0) == MAP_FAILED",
			 f->value);
		break;
	case MREMAP:
		snprintf(buf, n,
			 "mremap(mmap(NULL, 1, PROT_READ, MAP_PRIVATE | "
			 "MAP_ANONYMOUS, -1, 0), 1, 1, MREMAP_MAYMOVE | %lu) "
			 "== MAP_FAILED",
			 f->value);
		break;
	case POLICY:
		snprintf(buf, n,
			 "syscall(SYS_mbind, NULL, 0, %lu, "
			 "&(unsigned long){ 1 }, 64, 0)",
			 f->value);
		break;
	case MEMBARRIER:
		snprintf(buf, n, "!(syscall(SYS_membarrier, 0, 0, 0) & %#lx)",
			 f->value);
		break;
	case UFFD:
	case UFFD_IOCTL:
		snprintf(buf, n, "uffd_lacks(%#lx)",
			 f->how == UFFD ? f->value : 0);
		break;
	case UFFD_KERNEL:
		snprintf(buf, n, "close(syscall(SYS_userfaultfd, 0))");
		break;
	case PROC:
		snprintf(buf, n, "access(\"/proc/self/%s\", F_OK)", f->file);
		break;
	}
	return 0;
}
