// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One need, asked of the running kernel and never of the headers.
 */
#include "need_probe.h"

#include <asm/unistd.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "compile.h"
#include "feature.h"
#include "kernel.h"
#include "print.h"
#include "setting.h"

/*
 * How each call is asked: with arguments that it refuses before it does
 * anything (a descriptor or pid of -1, flags that do not exist).  Numbers
 * from 424 on are the same on every architecture, and Debian 12's headers
 * lack the later ones.
 */
#define BAD -1L
static const struct probe {
	const char *name;
	long nr;
	const char *since;
	long arg[6];
} probes[] = {
	{"cachestat", 451, "6.5", {BAD, 0, 0, BAD}},
	{"clone3", 435, "5.3", {0, 0}},
	{"io_uring_setup", MMR_K_SYS_io_uring_setup, "5.1", {0, 0}},
	{"kcmp", __NR_kcmp, "3.5", {BAD, BAD, BAD}},
	{"mbind", __NR_mbind, "2.6.7", {0, 0, BAD, 0, 0, BAD}},
	{"membarrier", __NR_membarrier, "4.3", {BAD, BAD}},
	{"memfd_create", __NR_memfd_create, "3.17", {0, BAD}},
	{"memfd_secret", 447, "5.14", {BAD}},
	{"migrate_pages", __NR_migrate_pages, "2.6.16", {BAD, 0, 0, 0}},
	{"mlock2", __NR_mlock2, "4.4", {0, 0, BAD}},
	{"move_pages", __NR_move_pages, "2.6.18", {BAD, 0, 0, 0, 0, BAD}},
	{"mseal", MMR_K_SYS_mseal, "6.10", {0, 0, BAD}},
	{"pidfd_getfd", 438, "5.6", {BAD, BAD, BAD}},
	{"pidfd_open", MMR_K_SYS_pidfd_open, "5.3", {BAD, 0}},
	{"pidfd_send_signal",
	 MMR_K_SYS_pidfd_send_signal,
	 "5.1",
	 {BAD, 0, 0, BAD}},
	{"pkey_mprotect", __NR_pkey_mprotect, "4.9", {1, 0, 0, BAD}},
	{"process_madvise",
	 MMR_K_SYS_process_madvise,
	 "5.10",
	 {BAD, 0, 0, 0, BAD}},
	{"process_mrelease", MMR_K_SYS_process_mrelease, "5.15", {BAD, BAD}},
	{"process_vm_readv",
	 __NR_process_vm_readv,
	 "3.2",
	 {BAD, 0, 0, 0, 0, BAD}},
	{"process_vm_writev",
	 __NR_process_vm_writev,
	 "3.2",
	 {BAD, 0, 0, 0, 0, BAD}},
	{"ptrace", __NR_ptrace, "1.0", {BAD, BAD, 0, 0}},
	{"remap_file_pages", __NR_remap_file_pages, "2.5.46", {0, 0, 1}},
	{"set_mempolicy", __NR_set_mempolicy, "2.6.7", {BAD, 0, 0}},
	{"set_mempolicy_home_node",
	 MMR_K_SYS_set_mempolicy_home_node,
	 "5.17",
	 {0, 0, 0, BAD}},
	{"userfaultfd", __NR_userfaultfd, "4.3", {BAD}},
};

/* In the order of their numbers, which never change. */
static const char *const caps[] = {
	"CHOWN",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"KILL",
	"SETGID",
	"SETUID",
	"SETPCAP",
	"LINUX_IMMUTABLE",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_ADMIN",
	"NET_RAW",
	"IPC_LOCK",
	"IPC_OWNER",
	"SYS_MODULE",
	"SYS_RAWIO",
	"SYS_CHROOT",
	"SYS_PTRACE",
	"SYS_PACCT",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_NICE",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"MKNOD",
	"LEASE",
	"AUDIT_WRITE",
	"AUDIT_CONTROL",
	"SETFCAP",
	"MAC_OVERRIDE",
	"MAC_ADMIN",
	"SYSLOG",
	"WAKE_ALARM",
	"BLOCK_SUSPEND",
	"AUDIT_READ",
	"PERFMON",
	"BPF",
	"CHECKPOINT_RESTORE",
};

static const char *const arches[] = {
	"x86_64", "aarch64", "riscv64", "s390x",   "ppc64le",	  "ppc64",
	"i686",	  "armv7l",  "mips64",	"sparc64", "loongarch64",
};

static const struct probe *find_probe(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		if (strcmp(probes[i].name, name) == 0)
			return &probes[i];
	return NULL;
}

int mmr_syscall_probe(const char *name)
{
	const struct probe *p = find_probe(name);
	long rc;

	if (!p)
		return -EINVAL;
	rc = syscall(p->nr, p->arg[0], p->arg[1], p->arg[2], p->arg[3],
		     p->arg[4], p->arg[5]);
	if (rc >= 0 || (errno != ENOSYS && errno != EPERM))
		return 0;
	return -errno;
}

int mmr_cap_number(const char *name)
{
	size_t i;

	if (strncmp(name, "CAP_", 4) != 0)
		return -1;
	for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
		if (strcmp(caps[i], name + 4) == 0)
			return (int)i;
	return -1;
}

bool mmr_need_known(const struct mmr_need *need)
{
	size_t i;

	switch (need->kind) {
	case MMR_NEED_CAP:
	case MMR_NEED_NOCAP:
		return need->name && mmr_cap_number(need->name) >= 0;
	case MMR_NEED_SYSCALL:
		return need->name && find_probe(need->name);
	case MMR_NEED_ARCH:
		for (i = 0; i < sizeof(arches) / sizeof(arches[0]); i++)
			if (need->name && strcmp(arches[i], need->name) == 0)
				return true;
		return false;
	case MMR_NEED_FEATURE:
		return need->name && mmr_feature_known(need->name);
	case MMR_NEED_THP:
	case MMR_NEED_MEMCG:
	case MMR_NEED_CORE:
		return true;
	case MMR_NEED_WRITES:
		return need->name && mmr_setting_index(need->name) >= 0;
	default:
		return need->n >= 1;
	}
}

int mmr_need_missing(char *text, size_t n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, n, fmt, ap);
	va_end(ap);
	return -ENOTSUP;
}

/* The first line of a file, without its end; false when it cannot be read. */
static bool read_line(const char *path, char *buf, size_t n)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(buf, (int)n, f) != NULL;
	fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = 0;
	return ok;
}

int64_t mmr_need_meminfo(const char *field)
{
	FILE *f = fopen("/proc/meminfo", "re");
	size_t n = strlen(field);
	int64_t v = INT64_MIN;
	char line[128];

	if (!f)
		return v;
	while (v == INT64_MIN && fgets(line, sizeof(line), f))
		if (strncmp(line, field, n) == 0 && line[n] == ':')
			v = (int64_t)strtoull(line + n + 1, NULL, 10);
	fclose(f);
	return v;
}

/* Bytes of memory to be had, 0 when the kernel does not say. */
static int64_t available(void)
{
	int64_t kib = mmr_need_meminfo("MemAvailable");

	return kib < 0 ? 0 : kib << 10;
}

static int need_cpus(const struct mmr_need *need, char *text, size_t n)
{
	cpu_set_t set;
	int have = 1;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		have = CPU_COUNT(&set);
	if (have >= need->n)
		return 0;
	return mmr_need_missing(
		text, n, "needs %" PRId64 " CPUs, this process may use %d",
		need->n, have);
}

/* Members of a list such as 0-1,3. */
static int64_t count_list(const char *s)
{
	int64_t n = 0;
	long from, to;
	char *end;

	while (*s) {
		from = to = strtol(s, &end, 10);
		if (end == s)
			break;
		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		n += to - from + 1;
		s = *end == ',' ? end + 1 : end;
	}
	return n;
}

static int need_nodes(const struct mmr_need *need, char *text, size_t n)
{
	char line[256];
	int64_t have = 1; /* a kernel without NUMA */

	if (read_line("/sys/devices/system/node/has_memory", line,
		      sizeof(line)))
		have = count_list(line);
	if (have >= need->n)
		return 0;
	return mmr_need_missing(
		text, n,
		"needs %" PRId64
		" NUMA nodes with memory, this machine has %" PRId64,
		need->n, have);
}

static int need_hugepages(const struct mmr_need *need, bool may_set, char *text,
			  size_t n)
{
	int64_t avail = available(), rsvd, have, more;
	uint64_t size = mmr_huge_page_size();
	char buf[48];

	have = mmr_need_meminfo("HugePages_Free");
	rsvd = mmr_need_meminfo("HugePages_Rsvd");
	if (have == INT64_MIN)
		return mmr_need_missing(
			text, n,
			"needs huge pages, this kernel has no pool of "
			"them (CONFIG_HUGETLBFS)");
	/* More than there are: a kernel whose count went below zero. */
	have -= rsvd > 0 && rsvd <= have ? rsvd : 0;
	if (have >= need->n)
		return 0;
	more = need->n - have;
	mmr_case_print_size(buf, sizeof(buf), (int64_t)size, MMR_UNIT_BYTE);
	if (!may_set)
		return mmr_need_missing(
			text, n,
			"needs %" PRId64 " free huge pages of %s, there "
			"are %" PRId64 ": raise vm.nr_hugepages or "
			"give --allow-settings",
			need->n, buf, have);
	if (access("/proc/sys/vm/nr_hugepages", W_OK) || geteuid() != 0)
		return mmr_need_missing(
			text, n,
			"needs %" PRId64 " free huge pages of %s, there "
			"are %" PRId64 ", and making more needs root",
			need->n, buf, have);
	if (more > avail / (int64_t)size)
		return mmr_need_missing(
			text, n,
			"needs %" PRId64 " free huge pages of %s, there "
			"are %" PRId64 " and memory for %" PRId64 " more",
			need->n, buf, have, avail / (int64_t)size);
	return 0;
}

static int need_cap(const struct mmr_need *need, char *text, size_t n)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct d[2] = {0};
	int cap = mmr_cap_number(need->name);

	if (cap < 0)
		return mmr_need_missing(
			text, n, "needs %s, which is unknown here", need->name);
	if (syscall(__NR_capget, &h, d) == 0 &&
	    (d[cap / 32].effective >> (cap % 32) & 1))
		return 0;
	return mmr_need_missing(
		text, n, "needs %s, this process does not have it: run as root",
		need->name);
}

static int need_syscall(const struct mmr_need *need, char *text, size_t n)
{
	const struct probe *p = find_probe(need->name);
	int rc = mmr_syscall_probe(need->name);

	if (rc == 0)
		return 0;
	if (rc == -EINVAL || !p)
		return mmr_need_missing(
			text, n,
			"needs the system call %s, which is unknown here",
			need->name);
	if (rc == -EPERM)
		return mmr_need_missing(
			text, n,
			"needs the system call %s, which is forbidden "
			"here (a seccomp filter, or run as root)",
			need->name);
	return mmr_need_missing(
		text, n,
		"needs the system call %s, this kernel has none "
		"(Linux has it from %s on)",
		need->name, p->since);
}

static int need_arch(const struct mmr_need *need, char *text, size_t n)
{
	struct utsname u;

	if (uname(&u) == 0 && strcmp(u.machine, need->name) == 0)
		return 0;
	return mmr_need_missing(
		text, n, "needs a machine of architecture %s, this is %s",
		need->name, u.machine);
}

static int need_memory(const struct mmr_need *need, char *text, size_t n)
{
	int64_t have = available();
	char buf[48];

	if (have >= need->n)
		return 0;
	return mmr_need_missing(
		text, n, "needs %s of available memory, there are %" PRId64 "M",
		mmr_case_print_size(buf, sizeof(buf), need->n, MMR_UNIT_BYTE),
		have < 0 ? 0 : have >> 20);
}

static int need_thp(char *text, size_t n)
{
	char line[128];

	if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", line,
		       sizeof(line)))
		return mmr_need_missing(
			text, n,
			"needs transparent huge pages, this kernel has "
			"none");
	if (!strstr(line, "[never]"))
		return 0;
	return mmr_need_missing(
		text, n,
		"needs transparent huge pages, which are off: write "
		"madvise to "
		"/sys/kernel/mm/transparent_hugepage/enabled");
}

/* A setting that is to change: is it there, may it be changed? */
static int need_writes(const char *name, bool may_set, char *text, size_t n)
{
	const char *path = mmr_setting_table[mmr_setting_index(name)].path;

	if (access(path, F_OK))
		return mmr_need_missing(
			text, n,
			"needs to change %s, and this kernel has no %s", name,
			path);
	if (!may_set)
		return mmr_need_missing(
			text, n,
			"needs to change %s for as long as it runs: "
			"give --allow-settings",
			name);
	if (geteuid() != 0 || access(path, W_OK))
		return mmr_need_missing(
			text, n,
			"needs to change %s, which takes root and a "
			"writable %s",
			name, path);
	return 0;
}

static int need_swap(bool may_set, char *text, size_t n)
{
	if (access("/proc/swaps", F_OK))
		return mmr_need_missing(
			text, n,
			"needs a swap area, and this kernel has no "
			"swapping (CONFIG_SWAP)");
	if (!may_set)
		return mmr_need_missing(
			text, n,
			"needs a swap area of its own for as long as it "
			"runs: give --allow-settings");
	if (geteuid() != 0)
		return mmr_need_missing(
			text, n,
			"needs a swap area of its own, which takes "
			"root");
	return 0;
}

int mmr_need_ask(const struct mmr_need *need, bool may_set, char *text,
		 size_t n)
{
	switch (need->kind) {
	case MMR_NEED_CPUS:
		return need_cpus(need, text, n);
	case MMR_NEED_NODES:
		return need_nodes(need, text, n);
	case MMR_NEED_HUGEPAGES:
		return need_hugepages(need, may_set, text, n);
	case MMR_NEED_CAP:
		return need_cap(need, text, n);
	case MMR_NEED_NOCAP:
		return 0; /* what is there can be dropped */
	case MMR_NEED_SYSCALL:
		return need_syscall(need, text, n);
	case MMR_NEED_ARCH:
		return need_arch(need, text, n);
	case MMR_NEED_MEMORY:
		return need_memory(need, text, n);
	case MMR_NEED_THP:
		return need_thp(text, n);
	case MMR_NEED_FEATURE:
		return mmr_feature_probe(need->name, text, n);
	case MMR_NEED_WRITES:
		return need_writes(need->name, may_set, text, n);
	case MMR_NEED_SWAP:
		return need_swap(may_set, text, n);
	case MMR_NEED_MEMCG:
	case MMR_NEED_CORE:
		return 0; /* made, or not, when the run begins */
	}
	return mmr_need_missing(text, n, "needs something unknown");
}
int mmr_need_probe(const struct mmr_need *need, char *text, size_t n)
{
	return mmr_need_ask(need, false, text, n);
}
