// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * faultcount EXE MS FILE: another program's count of page faults.  For MS ms
 * looks every 10 ms for tasks that run the file EXE, opens a counter for each
 * new one, and writes a line for each into FILE: its tid, CLOCK_MONOTONIC in
 * ns, its faults since the counter was opened.
 */
#include <dirent.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TASKS_MAX 256

static struct {
	pid_t tid;
	int fd;
} tasks[TASKS_MAX];
static int ntasks;

static int open_counter(pid_t tid)
{
	struct perf_event_attr a;
	long fd;

	memset(&a, 0, sizeof(a));
	a.type = PERF_TYPE_SOFTWARE;
	a.size = sizeof(a);
	a.config = PERF_COUNT_SW_PAGE_FAULTS;
	fd = syscall(SYS_perf_event_open, &a, tid, -1, -1, 0UL);
	if (fd < 0) {
		/* Without privilege: faults in user mode, as all of a touch. */
		a.exclude_kernel = 1;
		fd = syscall(SYS_perf_event_open, &a, tid, -1, -1, 0UL);
	}
	return (int)fd;
}

static void count_task(pid_t tid)
{
	int i;

	for (i = 0; i < ntasks; i++)
		if (tasks[i].tid == tid)
			return;
	if (i == TASKS_MAX)
		return;
	tasks[i].tid = tid;
	tasks[i].fd = open_counter(tid);
	ntasks++;
}

/* Numbers that are names in a folder of /proc. */
static void each(const char *path, void (*f)(const char *path, pid_t n))
{
	DIR *d = opendir(path);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (atoi(e->d_name) > 0)
			f(path, atoi(e->d_name));
	if (d)
		closedir(d);
}

static const char *wanted;

static void look_at_task(const char *path, pid_t tid)
{
	(void)path;
	count_task(tid);
}

static void look_at_process(const char *path, pid_t pid)
{
	char name[64], exe[4096];
	ssize_t n;

	snprintf(name, sizeof(name), "%s/%d/exe", path, pid);
	n = readlink(name, exe, sizeof(exe) - 1);
	if (n < 0)
		return;
	exe[n] = '\0';
	if (strcmp(exe, wanted))
		return;
	snprintf(name, sizeof(name), "%s/%d/task", path, pid);
	each(name, look_at_task);
}

static void print_counts(FILE *f)
{
	struct timespec t;
	uint64_t v;
	int i;

	for (i = 0; i < ntasks; i++) {
		if (tasks[i].fd < 0)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &t);
		if (read(tasks[i].fd, &v, sizeof(v)) == (ssize_t)sizeof(v))
			fprintf(f, "%d %" PRIu64 " %" PRIu64 "\n", tasks[i].tid,
				(uint64_t)t.tv_sec * 1000000000 +
					(uint64_t)t.tv_nsec,
				v);
	}
	fflush(f);
}

int main(int argc, char **argv)
{
	const struct timespec nap = {0, 10000000};
	FILE *f;
	int i;

	if (argc != 4)
		return 2;
	wanted = argv[1];
	f = fopen(argv[3], "we");
	if (!f)
		return 1;
	for (i = 0; i < atoi(argv[2]) / 10; i++) {
		each("/proc", look_at_process);
		print_counts(f);
		nanosleep(&nap, NULL);
	}
	return fclose(f) ? 1 : 0;
}
