// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * faultcount TID MS FILE: another program's count of a task's page faults.
 * Counts in slices of 10 ms for MS ms and writes a line for each into FILE:
 * CLOCK_MONOTONIC in ns, faults since the start, ms on a CPU since the start.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int open_counter(uint64_t config, pid_t tid)
{
	struct perf_event_attr a;

	memset(&a, 0, sizeof(a));
	a.type = PERF_TYPE_SOFTWARE;
	a.size = sizeof(a);
	a.config = config;
	return (int)syscall(SYS_perf_event_open, &a, tid, -1, -1, 0UL);
}

static uint64_t value(int fd)
{
	uint64_t v = 0;

	return read(fd, &v, sizeof(v)) == (ssize_t)sizeof(v) ? v : 0;
}

int main(int argc, char **argv)
{
	const struct timespec nap = {0, 10000000};
	int faults, clock, i;
	struct timespec t;
	FILE *f;

	if (argc != 4)
		return 2;
	faults = open_counter(PERF_COUNT_SW_PAGE_FAULTS, atoi(argv[1]));
	clock = open_counter(PERF_COUNT_SW_TASK_CLOCK, atoi(argv[1]));
	f = fopen(argv[3], "we");
	if (faults < 0 || clock < 0 || !f)
		return 1;
	for (i = 0; i < atoi(argv[2]) / 10; i++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		fprintf(f, "%" PRIu64 " %" PRIu64 " %.3f\n",
			(uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec,
			value(faults), (double)value(clock) / 1e6);
		nanosleep(&nap, NULL);
	}
	return fclose(f) ? 1 : 0;
}
