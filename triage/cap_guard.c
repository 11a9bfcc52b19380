// SPDX-License-Identifier: GPL-2.0-or-later
#include "cap_guard.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "../ops/clock.h"
#include "grow.h"
#include "settings.h"

#define LOOK_MS 50
#define DYING_NS 5000000000LL
#define LEAST 20 /* a 20th of the machine's memory stays available */

struct process {
	pid_t pid, parent;
	uint64_t kb; /* of its own */
	bool child;  /* runs a case, and is no guest or helper */
	bool ours;
};

static struct {
	pthread_t thread;
	_Atomic bool running;
	_Atomic uint64_t kills;
	int64_t kb;		   /* the cap */
	int64_t most_kb, least_kb; /* available: at most so far; always */
	pid_t victim;		   /* 0: none that is on its way out */
	int64_t since_ns;
} guard;

/* Parent and memory of one process; false when it is no more. */
static bool read_process(pid_t pid, struct process *p)
{
	char path[64], line[512], *end;
	unsigned long size, resident, shared;
	bool ok;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	ok = f && fgets(line, sizeof(line), f);
	if (f)
		fclose(f);
	/* The name in brackets may have anything in it. */
	end = ok ? strrchr(line, ')') : NULL;
	p->child = end && strstr(line, "(mmrace-child");
	if (!end || sscanf(end + 1, " %*c %d", &p->parent) != 1)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	ok = f && fscanf(f, "%lu %lu %lu", &size, &resident, &shared) == 3;
	if (f)
		fclose(f);
	p->pid = pid;
	p->kb = ok && resident > shared
			? (resident - shared) *
				  (unsigned long)sysconf(_SC_PAGESIZE) / 1024
			: 0;
	return ok;
}

/* All processes there are; the number or -errno. */
static int read_all(struct process **out)
{
	struct process *all = NULL, *more;
	const struct dirent *e;
	DIR *d = opendir("/proc");
	int n = 0;

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (pid <= 0)
			continue;
		more = mmr_grow(all, n, sizeof(*all));
		if (!more)
			break;
		all = more;
		memset(&all[n], 0, sizeof(all[n]));
		n += read_process(pid, &all[n]);
	}
	closedir(d);
	*out = all;
	return n;
}

/* Marks what descends from us.  Children mostly come after their parents, so
 * few passes do. */
static void find_ours(struct process *all, int n)
{
	pid_t self = getpid();
	bool more = true;

	while (more) {
		more = false;
		for (int i = 0; i < n; i++) {
			if (all[i].ours)
				continue;
			all[i].ours = all[i].parent == self;
			for (int k = 0; k < n && !all[i].ours; k++)
				all[i].ours = all[k].ours &&
					      all[k].pid == all[i].parent;
			more |= all[i].ours;
		}
	}
}

/* The last one that was killed still holds its memory.  One that cannot die is
 * not waited for without end. */
static bool dying(void)
{
	struct process p;

	if (guard.victim && read_process(guard.victim, &p) && p.kb &&
	    mmr_clock_monotonic() - guard.since_ns < DYING_NS)
		return true;
	guard.victim = 0;
	return false;
}

static void look(void)
{
	int64_t available = mmr_meminfo("MemAvailable"), sum = 0;
	struct process *all = NULL, *largest = NULL;
	int n;

	/* To look at all processes costs something: only when of the most that
	 * was available half of the cap went to anybody.  (Half, as others
	 * give memory back meanwhile.) */
	if (available > guard.most_kb)
		guard.most_kb = available;
	if (dying() || available < 0 ||
	    (available > guard.least_kb &&
	     guard.most_kb - available < guard.kb / 2))
		return;
	n = read_all(&all);
	find_ours(all, n);
	for (int i = 0; i < n; i++) {
		if (!all[i].ours || !all[i].child)
			continue;
		sum += (int64_t)all[i].kb;
		if (!largest || all[i].kb > largest->kb)
			largest = &all[i];
	}
	if (largest && (sum > guard.kb ||
			(available <= guard.least_kb && sum > guard.kb / 16))) {
		/* Counted first: who sees it dead knows why. */
		guard.kills++;
		kill(largest->pid, SIGKILL);
		guard.victim = largest->pid;
		guard.since_ns = mmr_clock_monotonic();
	}
	free(all);
}

static void *guard_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

	(void)arg;
	pthread_setname_np(pthread_self(), "mmr-cap");
	while (guard.running) {
		look();
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int mmr_cap_guard_start(uint64_t bytes)
{
	int rc;

	guard.kb = (int64_t)(bytes >> 10);
	guard.most_kb = 0;
	guard.victim = 0;
	guard.least_kb = mmr_meminfo("MemTotal") / LEAST;
	guard.running = true;
	rc = -pthread_create(&guard.thread, NULL, guard_main, NULL);
	if (rc)
		guard.running = false;
	return rc;
}

void mmr_cap_guard_stop(void)
{
	if (!atomic_exchange(&guard.running, false))
		return;
	pthread_join(guard.thread, NULL);
}

uint64_t mmr_cap_guard_kills(void)
{
	return guard.kills;
}
