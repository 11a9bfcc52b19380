// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Resource caps.
 *
 * cgroup v1 moves single threads: the spawner thread enters the group and
 * what it starts is born there, while the engine's own memory stays outside.
 * v2 moves whole processes only: each child is moved right after its start,
 * and whatever it forked before that with it.
 */
#include "cap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cap_guard.h"
#include "cgroup.h"
#include "sample.h"

#define PIDS_MAX 8192 /* or a quarter of what the machine may have */
#define SWAP_MAX (512ULL << 20)
#define YIELD 5 /* nice: a third of the CPU time of one that does not yield */
#define REMOVE_MS 200
#define MAX_CHILDREN 64

enum cap_mode { CAP_NONE, CAP_RLIMIT, CAP_V1, CAP_V2 };

static struct {
	enum cap_mode mode;
	/* Folders of the groups; v2: one for memory and pids. */
	char memory[MMR_CGROUP_PATH], pids[MMR_CGROUP_PATH];
	char tasks[MMR_CGROUP_PATH]; /* where processes live */
	char freezer[MMR_CGROUP_PATH], freezer_base[MMR_CGROUP_PATH]; /* v1 */
	uint64_t bytes, processes;
	char text[200];
} cap;

static unsigned int share_percent = 50;

void mmr_cap_share(unsigned int percent)
{
	share_percent = percent;
}

void mmr_cap_yield(void)
{
	/* As it was, or weaker; it needs no right. */
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) < YIELD && !errno)
		(void)!setpriority(PRIO_PROCESS, 0, YIELD);
}

int mmr_cap_gentle(void)
{
	const int idle_class = 3 << 13; /* of ioprio_set(2): when none asks */
	int rc = 0;

	mmr_cap_share(10);
	if (setpriority(PRIO_PROCESS, 0, 19))
		rc = -errno;
	if (syscall(SYS_ioprio_set, 1 /* a process */, 0, idle_class) && !rc)
		rc = -errno;
	return rc;
}

static uint64_t share_of_memory(void)
{
	uint64_t kb = mmr_cgroup_get("/proc", "meminfo", "MemTotal:");

	return kb == ~0ULL ? 1ULL << 30 : kb / 100 * share_percent * 1024;
}

static uint64_t share_of_processes(void)
{
	static const char *const limits[] = {"threads-max", "pid_max"};
	uint64_t n = PIDS_MAX, max;

	for (int i = 0; i < 2; i++) {
		max = mmr_cgroup_get("/proc/sys/kernel", limits[i], "");
		if (max != ~0ULL && max / 4 < n)
			n = max / 4;
	}
	return n;
}

static void smaller(const char *dir, const char *file)
{
	uint64_t limit = mmr_cgroup_get(dir, file, "");

	/* Our own group's cap may be below the machine's memory. */
	if (limit != ~0ULL && limit / 2 < cap.bytes)
		cap.bytes = limit / 2;
}

/* Swapping would only move what the cap is for: a little, for cases about
 * swapping.  Not where the kernel has no such file. */
static void cap_swap(void)
{
	if (cap.mode == CAP_V2)
		mmr_cgroup_put_number(cap.memory, "memory.swap.max", SWAP_MAX);
	if (cap.mode == CAP_V1)
		mmr_cgroup_put_number(cap.memory, "memory.memsw.limit_in_bytes",
				      cap.bytes + SWAP_MAX);
}

/* Below `own`: the group with the caps, and the one where processes live, as a
 * group that holds processes can have none with controllers below it. */
static int make_v2(const char *own)
{
	int rc = mmr_cgroup_enable(own, "memory pids");

	if (!rc)
		rc = mmr_cgroup_note(own);
	if (rc)
		return rc;
	rc = mmr_cgroup_make(own, cap.memory, sizeof(cap.memory));
	if (rc)
		return rc;
	snprintf(cap.pids, sizeof(cap.pids), "%s", cap.memory);
	snprintf(cap.tasks, sizeof(cap.tasks), "%.300s/run", cap.memory);
	rc = mmr_cgroup_put_number(cap.memory, "memory.max", cap.bytes);
	if (!rc && mkdir(cap.tasks, 0755) && errno != EEXIST)
		rc = -errno;
	if (rc) {
		mmr_cgroup_remove(cap.memory, 0);
		return rc;
	}
	mmr_cgroup_put_number(cap.memory, "pids.max", cap.processes);
	mmr_cgroup_put(cap.memory, "cgroup.subtree_control", "+memory");
	cap.mode = CAP_V2;
	cap_swap();
	return 0;
}

/*
 * v2: a group that holds processes gives no controllers to groups below it,
 * so besides our own group the one above it is tried: a sibling of ours,
 * never further up, or we would leave a cap that somebody set for us.
 */
static int start_v2(void)
{
	char own[MMR_CGROUP_PATH - 32], *slash;
	size_t i, mount;
	int lock;

	if (mmr_cgroup_own(NULL, own, sizeof(own)))
		return -ENOENT;
	mount = strncmp(own, "/sys/fs/cgroup/", 15) ? 0 : 14;
	smaller(own, "memory.max");
	lock = mmr_cgroup_lock();
	if (lock < 0)
		return lock;
	for (i = 0; i < 2; i++) {
		if (!make_v2(own))
			break;
		mmr_cgroup_release(own);
		slash = strrchr(own, '/');
		if (!mount || !slash || (size_t)(slash - own) < mount)
			break;
		*slash = 0;
	}
	mmr_cgroup_unlock(lock);
	if (cap.mode == CAP_V2)
		return 0;
	cap.memory[0] = cap.pids[0] = cap.tasks[0] = 0;
	return -ENOTSUP;
}

/* A group of ours below `own`, which the journal knows before. */
static int make_v1(const char *own, char *out, size_t n)
{
	if (mmr_cgroup_note(own))
		return -EACCES;
	return mmr_cgroup_make(own, out, n);
}

static int make_all_v1(void)
{
	char own[MMR_CGROUP_PATH - 32];

	if (mmr_cgroup_own("memory", own, sizeof(own)) ||
	    make_v1(own, cap.memory, sizeof(cap.memory))) {
		cap.memory[0] = 0;
		return -ENOENT;
	}
	smaller(own, "memory.limit_in_bytes");
	/* Kernels that count groups below only when told to. */
	mmr_cgroup_put(cap.memory, "memory.use_hierarchy", "1");
	if (mmr_cgroup_put_number(cap.memory, "memory.limit_in_bytes",
				  cap.bytes)) {
		rmdir(cap.memory);
		cap.memory[0] = 0;
		return -EPERM;
	}
	if (mmr_cgroup_own("pids", own, sizeof(own)) ||
	    make_v1(own, cap.pids, sizeof(cap.pids)) ||
	    mmr_cgroup_put_number(cap.pids, "pids.max", cap.processes)) {
		if (cap.pids[0])
			rmdir(cap.pids);
		cap.pids[0] = 0;
	}
	/* For groups of cases; without it they cannot be frozen. */
	if (mmr_cgroup_own("freezer", cap.freezer_base,
			   sizeof(cap.freezer_base) - 32) ||
	    make_v1(cap.freezer_base, cap.freezer, sizeof(cap.freezer)))
		cap.freezer[0] = 0;
	snprintf(cap.tasks, sizeof(cap.tasks), "%s", cap.memory);
	cap.mode = CAP_V1;
	cap_swap();
	return 0;
}

static int start_v1(void)
{
	int rc, lock = mmr_cgroup_lock();

	if (lock < 0)
		return lock;
	rc = make_all_v1();
	mmr_cgroup_unlock(lock);
	return rc;
}

/* What killed engines left, in hierarchies that we shall not use too. */
static void clean_up(void)
{
	int lock = mmr_cgroup_lock();

	if (lock < 0)
		return;
	mmr_cgroup_release(NULL);
	mmr_cgroup_unlock(lock);
}

int mmr_cap_start(void)
{
	static const char *const by[] = {"", "", "cgroup v1", "cgroup v2"};
	bool guarded;
	char pids[40] = "";

	memset(&cap, 0, sizeof(cap));
	cap.bytes = share_of_memory();
	cap.processes = share_of_processes();
	clean_up();
	if (!start_v2() || !start_v1()) {
		if (cap.pids[0])
			snprintf(pids, sizeof(pids), " and %d processes",
				 (int)cap.processes);
		snprintf(cap.text, sizeof(cap.text), "memory %.1f GiB%s by %s",
			 (double)cap.bytes / (1 << 30), pids, by[cap.mode]);
		return 0;
	}
	cap.mode = CAP_RLIMIT;
	guarded = !mmr_cap_guard_start(cap.bytes);
	snprintf(cap.text, sizeof(cap.text),
		 "no cgroup can be made here: memory is capped for each "
		 "process of a case (%.1f GiB, by rlimit), %s",
		 (double)cap.bytes / (1 << 30),
		 guarded ? "and for all together by ending the largest"
			 : "not for all together");
	return 0;
}

void mmr_cap_stop(void)
{
	int lock;

	mmr_cap_guard_stop();
	lock = mmr_cgroup_lock();
	if (*cap.memory)
		mmr_cgroup_remove(cap.memory, REMOVE_MS);
	if (*cap.pids && strcmp(cap.memory, cap.pids))
		mmr_cgroup_remove(cap.pids, REMOVE_MS);
	if (*cap.freezer)
		mmr_cgroup_remove(cap.freezer, REMOVE_MS);
	/* And what others left, where nobody else is any more. */
	if (lock >= 0)
		mmr_cgroup_release(NULL);
	mmr_cgroup_unlock(lock);
	cap.mode = CAP_NONE;
	cap.memory[0] = cap.pids[0] = cap.freezer[0] = 0;
}

int mmr_cap_groups(struct mmr_cap_groups *g)
{
	if (cap.mode != CAP_V1 && cap.mode != CAP_V2)
		return -ENOTSUP;
	g->version = cap.mode == CAP_V1 ? 1 : 2;
	g->memory = cap.memory;
	g->tasks = cap.tasks;
	g->freezer = cap.freezer;
	g->freezer_base = cap.freezer_base;
	return 0;
}

void mmr_cap_enter(void)
{
	if (cap.mode != CAP_V1)
		return;
	mmr_cgroup_put_number(cap.memory, "tasks", (uint64_t)gettid());
	if (cap.pids[0])
		mmr_cgroup_put_number(cap.pids, "tasks", (uint64_t)gettid());
}

static void settle(pid_t pid, int depth)
{
	struct rlimit as = {cap.bytes, cap.bytes};
	pid_t children[MAX_CHILDREN];
	int i, n;

	if (cap.mode == CAP_V2)
		mmr_cgroup_put_number(cap.tasks, "cgroup.procs", (uint64_t)pid);
	if (cap.mode == CAP_RLIMIT)
		prlimit(pid, RLIMIT_AS, &as, NULL);
	if (depth > 2)
		return;
	n = mmr_sample_children(pid, children, MAX_CHILDREN);
	for (i = 0; i < n; i++)
		settle(children[i], depth + 1);
}

void mmr_cap_settle(pid_t pid)
{
	if (cap.mode == CAP_V2 || cap.mode == CAP_RLIMIT)
		settle(pid, 0);
}

int64_t mmr_cap_use_kb(const char *field)
{
	static const struct {
		const char *field, *v1, *v2;
	} names[] = {
		{"AnonPages", "total_rss ", "anon "},
		{"Mapped", "total_mapped_file ", "file_mapped "},
		{"Shmem", "total_shmem ", "shmem "},
	};
	uint64_t v = ~0ULL;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].field, field))
			continue;
		if (cap.mode == CAP_V1)
			v = mmr_cgroup_get(cap.memory, "memory.stat",
					   names[i].v1);
		if (cap.mode == CAP_V2)
			v = mmr_cgroup_get(cap.memory, "memory.stat",
					   names[i].v2);
	}
	return v == ~0ULL ? -1 : (int64_t)(v >> 10);
}

uint64_t mmr_cap_oom_kills(void)
{
	uint64_t n = ~0ULL;

	if (cap.mode == CAP_V2)
		n = mmr_cgroup_get(cap.memory, "memory.events", "oom_kill ");
	else if (cap.mode == CAP_V1)
		n = mmr_cgroup_get(cap.memory, "memory.oom_control",
				   "oom_kill ");
	return (n == ~0ULL ? 0 : n) + mmr_cap_guard_kills();
}

uint64_t mmr_cap_bytes(void)
{
	return cap.mode == CAP_NONE ? 0 : cap.bytes;
}

const char *mmr_cap_text(int *ok)
{
	*ok = cap.mode == CAP_V1 || cap.mode == CAP_V2;
	return cap.text;
}
