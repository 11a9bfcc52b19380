// SPDX-License-Identifier: GPL-2.0-or-later
/* doctor: the machine and its kernel. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../ops/clock.h"
#include "../ops/compile.h"
#include "../triage/scale.h"
#include "../triage/settings.h"
#include "doctor.h"

const char *mmr_doctor_read(const char *path, char *buf, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t got = -1;

	if (fd >= 0) {
		got = read(fd, buf, n - 1);
		close(fd);
	}
	buf[got > 0 ? got : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

static void check_kernel(struct mmr_doctor *d)
{
	struct utsname u;
	int major = 0, minor = 0;

	if (uname(&u))
		return;
	if (sscanf(u.release, "%d.%d", &major, &minor) != 2)
		major = minor = 0;
	if (major > 4 || (major == 4 && minor >= 14))
		mmr_doctor_add(d, true, "kernel", "%s %s %s", u.sysname,
			       u.release, u.machine);
	else
		mmr_doctor_add(d, false, "kernel",
			       "%s %s: mmrace is made for 4.14 and later",
			       u.release, u.machine);
	if (strcmp(u.machine, "x86_64") && strcmp(u.machine, "aarch64"))
		mmr_doctor_add(d, false, "architecture",
			       "%s: only x86_64 and aarch64 have a "
			       "mmrace-child",
			       u.machine);
}

static void check_cpus(struct mmr_doctor *d)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	int may = 1;

	if (!sched_getaffinity(0, sizeof(set), &set))
		may = CPU_COUNT(&set);
	if (may > 1)
		mmr_doctor_add(d, true, "CPUs",
			       "%d may be used, %ld are online", may, online);
	else
		mmr_doctor_add(d, false, "CPUs",
			       "only 1 may be used (%ld online): threads take "
			       "turns, so races that need two CPUs do not "
			       "happen",
			       online);
}

/* Nodes that have memory, from a list such as "0-1,3". */
static int count_list(const char *s)
{
	int n = 0;

	while (*s >= '0' && *s <= '9') {
		char *end;
		long lo = strtol(s, &end, 10), hi = lo;

		if (*end == '-')
			hi = strtol(end + 1, &end, 10);
		n += (int)(hi - lo + 1);
		s = *end == ',' ? end + 1 : end;
	}
	return n;
}

static void check_memory(struct mmr_doctor *d)
{
	int64_t total = mmr_meminfo("MemTotal");
	int64_t avail = mmr_meminfo("MemAvailable");
	int64_t swap = mmr_meminfo("SwapTotal");
	char buf[256];
	int nodes = count_list(mmr_doctor_read(
		"/sys/devices/system/node/has_memory", buf, sizeof(buf)));

	mmr_doctor_add(d, avail > 512 * 1024, "memory",
		       "%lld MiB, %lld MiB of it available%s",
		       (long long)total / 1024, (long long)avail / 1024,
		       avail > 512 * 1024 ? "" : ": little to work with");
	if (nodes > 1)
		mmr_doctor_add(d, true, "NUMA nodes", "%d with memory", nodes);
	else
		mmr_doctor_add(d, false, "NUMA nodes",
			       "1 with memory: cases that move pages between "
			       "nodes are skipped");
	if (swap > 0)
		mmr_doctor_add(d, true, "swap", "%lld MiB",
			       (long long)swap / 1024);
	else
		mmr_doctor_add(d, false, "swap",
			       "none: anonymous pages are never swapped out");
}

static void check_huge(struct mmr_doctor *d)
{
	int64_t total = mmr_meminfo("HugePages_Total");
	int64_t size = (int64_t)mmr_huge_page_size(), over = 0;
	bool may = !access(mmr_setting_path("nr_hugepages"), W_OK);
	const char *raise;

	if (total < 0) {
		mmr_doctor_add(d, false, "huge pages",
			       "this kernel has no hugetlb");
		return;
	}
	(void)!mmr_setting_get("nr_overcommit_hugepages", &over);
	raise = may ? "the pool can be raised with --allow-settings"
		    : "only root can raise the pool";
	mmr_doctor_add(d, total > 0 || may, "huge pages",
		       "%lld of %lld KiB, %lld free, %lld surplus allowed; %s",
		       (long long)total, (long long)size / 1024,
		       (long long)mmr_meminfo("HugePages_Free"),
		       (long long)over, raise);
}

static void check_thp(struct mmr_doctor *d)
{
	static const char *const files[] = {"enabled", "shmem_enabled",
					    "defrag"};
	char text[400] = "", buf[160], path[160];
	size_t i, len = 0;
	bool never = true;

	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path),
			 "/sys/kernel/mm/transparent_hugepage/%s", files[i]);
		mmr_doctor_read(path, buf, sizeof(buf));
		if (!buf[0])
			continue;
		if (i == 0)
			never = strstr(buf, "[never]") != NULL;
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s%s: %s", len ? "; " : "", files[i],
					buf);
	}
	if (!len)
		mmr_doctor_add(d, false, "transparent huge pages",
			       "this kernel has none");
	else
		mmr_doctor_add(d, !never, "transparent huge pages", "%s", text);
}

/* The stress is meant to make kernels complain: better known beforehand. */
static void check_panic(struct mmr_doctor *d)
{
	static const char *const files[] = {"panic_on_warn", "panic_on_oops",
					    "softlockup_panic",
					    "hung_task_panic"};
	char text[160] = "", path[80], buf[32];
	size_t i, len = 0;

	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/proc/sys/kernel/%s", files[i]);
		if (atoi(mmr_doctor_read(path, buf, sizeof(buf))) == 0)
			continue;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
					len ? ", " : "", files[i]);
	}
	if (len)
		mmr_doctor_add(d, false, "panic settings",
			       "%s set: what mmrace finds may take the machine "
			       "down",
			       text);
	else
		mmr_doctor_add(d, true, "panic settings",
			       "a kernel warning or stall leaves the machine "
			       "running");
}

static void check_clock(struct mmr_doctor *d)
{
	struct mmr_clock clock;

	mmr_clock_init(&clock);
	if (clock.source == MMR_CLOCK_COUNTER)
		mmr_doctor_add(d, true, "clock",
			       "the CPU's counter, %.0f MHz, read without a "
			       "system call",
			       (double)clock.hz / 1e6);
	else
		mmr_doctor_add(d, false, "clock",
			       "no invariant counter: CLOCK_MONOTONIC_RAW, so "
			       "rendezvous are less exact");
	mmr_doctor_add(d, mmr_scale_factor() < 4, "speed",
		       "limits on CPU time are multiplied by %.2f "
		       "(1: ordinary hardware)",
		       mmr_scale_factor());
}

void mmr_doctor_machine(struct mmr_doctor *d)
{
	check_kernel(d);
	check_cpus(d);
	check_memory(d);
	check_huge(d);
	check_thp(d);
	check_panic(d);
	check_clock(d);
}
