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

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"

#define PIDS_MAX 8192
#define PREFIX "mmrace-"
#define MAX_CHILDREN 64

enum cap_mode { CAP_NONE, CAP_RLIMIT, CAP_V1, CAP_V2 };

static struct {
	enum cap_mode mode;
	char memory[512]; /* folders of the groups; v2: one for both */
	char pids[512];
	uint64_t bytes;
	char text[160];
} cap;

static int put(const char *dir, const char *file, const char *value)
{
	char path[600];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int put_number(const char *dir, const char *file, uint64_t v)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	return put(dir, file, buf);
}

/* The number after word in a small file ("" : the first one), ~0 when there
 * is none. */
static uint64_t get(const char *dir, const char *file, const char *word)
{
	char path[600], buf[4096], *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ~0ULL;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return ~0ULL;
	buf[n] = 0;
	p = strstr(buf, word);
	if (!p)
		return ~0ULL;
	p += strlen(word);
	p += strspn(p, " \t");
	return *p >= '0' && *p <= '9' ? strtoull(p, NULL, 10) : ~0ULL;
}

static unsigned int share_percent = 50;

void mmr_cap_share(unsigned int percent)
{
	share_percent = percent;
}

static uint64_t share_of_memory(void)
{
	uint64_t kb = get("/proc", "meminfo", "MemTotal:");

	return kb == ~0ULL ? 1ULL << 30 : kb / 100 * share_percent * 1024;
}

/*
 * Folder of our own group in a hierarchy.  controller NULL: the v2 one.
 * mountinfo tells where it is mounted, /proc/self/cgroup where we are in it.
 */
static int own_group(const char *controller, char *out, size_t n)
{
	char line[1024], mount[256] = "", group[256] = "";
	FILE *f = fopen("/proc/self/mounts", "re");

	while (f && fgets(line, sizeof(line), f)) {
		char where[256], type[32], opts[512], *p;

		if (sscanf(line, "%*s %255s %31s %511s", where, type, opts) !=
		    3)
			continue;
		if (!controller && !strcmp(type, "cgroup2"))
			snprintf(mount, sizeof(mount), "%s", where);
		if (!controller || strcmp(type, "cgroup"))
			continue;
		for (p = strtok(opts, ","); p; p = strtok(NULL, ","))
			if (!strcmp(p, controller))
				snprintf(mount, sizeof(mount), "%s", where);
	}
	if (f)
		fclose(f);
	f = fopen("/proc/self/cgroup", "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *names = strchr(line, ':'), *path, *p;

		path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		names++;
		if (!controller && !*names)
			snprintf(group, sizeof(group), "%s", path);
		for (p = strtok(names, ","); controller && p;
		     p = strtok(NULL, ","))
			if (!strcmp(p, controller))
				snprintf(group, sizeof(group), "%s", path);
	}
	if (f)
		fclose(f);
	if (!*mount || !*group)
		return -ENOENT;
	snprintf(out, n, "%s%s", mount, strcmp(group, "/") ? group : "");
	/* In a container the path may be one of the host: then the mount is
	 * ours. */
	if (access(out, F_OK))
		snprintf(out, n, "%s", mount);
	return 0;
}

/* Groups of engines that are no more. */
static void sweep(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *e;
	char path[800];

	while (dir && (e = readdir(dir))) {
		pid_t pid;

		if (strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1))
			continue;
		pid = (pid_t)strtol(e->d_name + sizeof(PREFIX) - 1, NULL, 10);
		if (pid <= 0 || !kill(pid, 0) || errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, e->d_name);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

static int make(const char *parent, char *out, size_t n)
{
	sweep(parent);
	if (snprintf(out, n, "%s/" PREFIX "%d", parent, getpid()) >= (int)n)
		return -ENAMETOOLONG;
	if (mkdir(out, 0755) && errno != EEXIST)
		return -errno;
	return 0;
}

static void smaller(const char *dir, const char *file)
{
	uint64_t limit = get(dir, file, "");

	/* Our own group's cap may be below the machine's memory. */
	if (limit != ~0ULL && limit / 2 < cap.bytes)
		cap.bytes = limit / 2;
}

/*
 * v2: a group that holds processes gives no controllers to groups below it,
 * so besides our own group the one above it is tried: a sibling of ours,
 * never further up, or we would leave a cap that somebody set for us.
 */
static int start_v2(void)
{
	char own[512], *slash;
	size_t i, mount;

	if (own_group(NULL, own, sizeof(own)))
		return -ENOENT;
	mount = strcmp(own, "/sys/fs/cgroup") ? 14 : 0;
	smaller(own, "memory.max");
	for (i = 0; i < 2; i++) {
		put(own, "cgroup.subtree_control", "+memory +pids");
		if (!make(own, cap.memory, sizeof(cap.memory))) {
			if (!put_number(cap.memory, "memory.max", cap.bytes)) {
				snprintf(cap.pids, sizeof(cap.pids), "%s",
					 cap.memory);
				put_number(cap.pids, "pids.max", PIDS_MAX);
				cap.mode = CAP_V2;
				return 0;
			}
			rmdir(cap.memory);
		}
		slash = strrchr(own, '/');
		if (!mount || !slash || strlen(own) <= mount ||
		    (size_t)(slash - own) < mount)
			break;
		*slash = 0;
	}
	cap.memory[0] = 0;
	return -ENOTSUP;
}

static int start_v1(void)
{
	char own[400];

	if (own_group("memory", own, sizeof(own)) ||
	    make(own, cap.memory, sizeof(cap.memory))) {
		cap.memory[0] = 0;
		return -ENOENT;
	}
	smaller(own, "memory.limit_in_bytes");
	if (put_number(cap.memory, "memory.limit_in_bytes", cap.bytes)) {
		rmdir(cap.memory);
		cap.memory[0] = 0;
		return -EPERM;
	}
	if (own_group("pids", own, sizeof(own)) ||
	    make(own, cap.pids, sizeof(cap.pids)) ||
	    put_number(cap.pids, "pids.max", PIDS_MAX)) {
		if (cap.pids[0])
			rmdir(cap.pids);
		cap.pids[0] = 0;
	}
	cap.mode = CAP_V1;
	return 0;
}

int mmr_cap_start(void)
{
	static const char *const by[] = {"", "", "cgroup v1", "cgroup v2"};

	memset(&cap, 0, sizeof(cap));
	cap.bytes = share_of_memory();
	if (!start_v2() || !start_v1()) {
		snprintf(cap.text, sizeof(cap.text), "memory %.1f GiB%s by %s",
			 (double)cap.bytes / (1 << 30),
			 cap.pids[0] ? " and 8192 processes" : "",
			 by[cap.mode]);
		return 0;
	}
	cap.mode = CAP_RLIMIT;
	snprintf(cap.text, sizeof(cap.text),
		 "no cgroup can be made here: memory is capped for each "
		 "process of a case (%.1f GiB, by rlimit), not for all "
		 "together",
		 (double)cap.bytes / (1 << 30));
	return 0;
}

static void remove_group(const char *dir)
{
	struct timespec ms = {0, 1000000};
	int i;

	for (i = 0; *dir && i < 200; i++) {
		if (!rmdir(dir) || errno != EBUSY)
			return;
		nanosleep(&ms, NULL);
	}
}

void mmr_cap_stop(void)
{
	remove_group(cap.memory);
	if (strcmp(cap.memory, cap.pids))
		remove_group(cap.pids);
	cap.mode = CAP_NONE;
	cap.memory[0] = cap.pids[0] = 0;
}

void mmr_cap_enter(void)
{
	if (cap.mode != CAP_V1)
		return;
	put_number(cap.memory, "tasks", (uint64_t)gettid());
	if (cap.pids[0])
		put_number(cap.pids, "tasks", (uint64_t)gettid());
}

static void settle(pid_t pid, int depth)
{
	struct rlimit as = {cap.bytes, cap.bytes};
	pid_t children[MAX_CHILDREN];
	int i, n;

	if (cap.mode == CAP_V2)
		put_number(cap.memory, "cgroup.procs", (uint64_t)pid);
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

uint64_t mmr_cap_oom_kills(void)
{
	uint64_t n = ~0ULL;

	if (cap.mode == CAP_V2)
		n = get(cap.memory, "memory.events", "oom_kill ");
	else if (cap.mode == CAP_V1)
		n = get(cap.memory, "memory.oom_control", "oom_kill ");
	return n == ~0ULL ? 0 : n;
}

const char *mmr_cap_text(int *ok)
{
	*ok = cap.mode == CAP_V1 || cap.mode == CAP_V2;
	return cap.text;
}
