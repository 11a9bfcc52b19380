// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads of /proc for the monitor. */
#include "sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TASKS 64 /* of an exiting process that are looked at */
#define MAX_DEPTH 16 /* of the walk from a process to its supervisor */

/* A small file of /proc into buf, NUL-terminated.  Length or -errno. */
static int slurp(const char *path, char *buf, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	len = read(fd, buf, n - 1);
	if (len < 0)
		len = -errno;
	else
		buf[len] = 0;
	close(fd);
	return (int)len;
}

int mmr_sample_parse_stat(const char *text, struct mmr_task_sample *s,
			  pid_t *parent)
{
	/* The name in parentheses may hold anything, parentheses too. */
	const char *p = strrchr(text, ')');
	unsigned long minflt, majflt, utime, stime;
	long hz = sysconf(_SC_CLK_TCK);
	int ppid;

	if (!p ||
	    sscanf(p + 1, " %c %d %*d %*d %*d %*d %*u %lu %*u %lu %*u %lu %lu",
		   &s->state, &ppid, &minflt, &majflt, &utime, &stime) != 6)
		return -EINVAL;
	s->minflt = minflt;
	s->majflt = majflt;
	s->run_ns = (utime + stime) * (1000000000UL / (uint64_t)hz);
	s->delay_ns = 0;
	s->delay_known = false;
	if (parent)
		*parent = ppid;
	return 0;
}

int mmr_sample_task(pid_t pid, pid_t tid, struct mmr_task_sample *s)
{
	char path[64], buf[1024];
	unsigned long long run, delay;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	n = slurp(path, buf, sizeof(buf));
	if (n < 0)
		return n;
	if (mmr_sample_parse_stat(buf, s, NULL))
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	n = slurp(path, buf, sizeof(buf));
	if (n > 0 && sscanf(buf, "%llu %llu", &run, &delay) == 2) {
		s->run_ns = run;
		s->delay_ns = delay;
		s->delay_known = true;
	}
	return 0;
}

static int activity(char state)
{
	static const char order[] = "XZtTSDR"; /* the last one most active */
	const char *p = strchr(order, state);

	return p && state ? (int)(p - order) : 2;
}

int mmr_sample_exit(pid_t pid, struct mmr_exit_sample *s)
{
	struct mmr_task_sample t;
	char path[64];
	struct dirent *e;
	bool leader_zombie = false;
	int looked = 0;
	DIR *dir;

	memset(s, 0, sizeof(*s));
	s->sum.state = 'X';
	s->sum.delay_known = true;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((e = readdir(dir)) && looked < MAX_TASKS) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0 || mmr_sample_task(pid, tid, &t))
			continue;
		looked++;
		s->sum.run_ns += t.run_ns;
		s->sum.delay_ns += t.delay_ns;
		s->sum.minflt += t.minflt;
		s->sum.majflt += t.majflt;
		s->sum.delay_known &= t.delay_known;
		if (activity(t.state) > activity(s->sum.state))
			s->sum.state = t.state;
		if (t.state != 'Z' && t.state != 'X')
			s->ntasks++;
		else if (tid == pid)
			leader_zombie = true;
	}
	closedir(dir);
	if (!looked)
		return -ESRCH;
	s->reapable = leader_zombie && !s->ntasks;
	return 0;
}

int mmr_sample_switches(pid_t pid, pid_t tid, uint64_t *voluntary,
			uint64_t *involuntary)
{
	static const char name[] = "voluntary_ctxt_switches:";
	char path[64], buf[4096], *p;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	n = slurp(path, buf, sizeof(buf));
	if (n < 0)
		return n;
	p = strstr(buf, name);
	if (!p)
		return -ENODATA;
	p += sizeof(name) - 1;
	*voluntary = strtoull(p, &p, 10);
	p = strstr(p, name);
	*involuntary = p ? strtoull(p + sizeof(name) - 1, NULL, 10) : 0;
	return 0;
}

pid_t mmr_sample_parent(pid_t pid)
{
	struct mmr_task_sample s;
	char path[64], buf[1024];
	pid_t parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (slurp(path, buf, sizeof(buf)) < 0 ||
	    mmr_sample_parse_stat(buf, &s, &parent))
		return 0;
	return parent;
}

static bool descends(pid_t pid, pid_t from)
{
	int i;

	for (i = 0; i < MAX_DEPTH && pid > 1; i++) {
		if (pid == from)
			return true;
		pid = mmr_sample_parent(pid);
	}
	return false;
}

/* The last number of the NSpid line: its pid in its own namespace. */
static pid_t innermost(pid_t pid)
{
	char path[64], buf[4096], *p, *end;
	pid_t last = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (slurp(path, buf, sizeof(buf)) < 0)
		return 0;
	p = strstr(buf, "\nNSpid:");
	if (!p)
		return 0;
	for (p += 7; *p && *p != '\n'; p = end) {
		long v = strtol(p, &end, 10);

		if (end == p)
			break;
		last = (pid_t)v;
	}
	return last;
}

pid_t mmr_sample_resolve(pid_t supervisor, pid_t nspid)
{
	struct dirent *e;
	pid_t found = 0;
	DIR *dir = opendir("/proc");

	if (!dir)
		return 0;
	while (!found && (e = readdir(dir))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && innermost(pid) == nspid &&
		    descends(pid, supervisor))
			found = pid;
	}
	closedir(dir);
	return found;
}

int mmr_sample_children(pid_t pid, pid_t *out, int max)
{
	char path[64], buf[4096], *p, *end;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (slurp(path, buf, sizeof(buf)) <= 0)
		return 0;
	for (p = buf; n < max; p = end) {
		long v = strtol(p, &end, 10);

		if (end == p)
			break;
		out[n++] = (pid_t)v;
	}
	return n;
}

/*
 * The kernel leaves out what sleeps on a lock's behalf, so wchan names who
 * wanted it: these take the lock of an address space and sleep for nothing
 * else themselves (mm/mmap.c, mm/memory.c, mm/madvise.c, mm/mprotect.c,
 * mm/mremap.c, mm/mlock.c, mm/gup.c, kernel/fork.c, kernel/exit.c).
 */
bool mmr_sample_on_mmap_lock(pid_t pid, pid_t tid)
{
	static const char *const takers[] = {
		"vm_mmap_pgoff",
		"__vm_munmap",
		"do_mprotect_pkey",
		"do_madvise",
		"madvise_lock",
		"__do_sys_mremap",
		"__se_sys_mremap",
		"do_mlock",
		"__mm_populate",
		"lock_mm_and_find_vma",
		"do_user_addr_fault",
		"dup_mmap",
		"dup_mm",
		"__do_sys_brk",
		"exit_mmap",
		"exit_mm",
		"rwsem_down_read_slowpath",
		"rwsem_down_write_slowpath",
	};
	char path[64], name[64] = "";
	ssize_t n;
	size_t i;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	name[n > 0 ? n : 0] = 0;
	for (i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
		if (!strcmp(name, takers[i]))
			return true;
	return false;
}
