/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the benches of timing share: medians, the machine's load, and a case
 * run by mmrace-child without watcher.
 */
#ifndef MMR_BENCH_TIMING_H
#define MMR_BENCH_TIMING_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../ops/compile.h"

extern char **environ;

static inline _Noreturn void bench_fail(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(3);
}

static inline int bench_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The p-th of n values, which are sorted by it. */
static inline double bench_quantile(double *v, size_t n, double p)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), bench_by_value);
	return v[(size_t)(p * (double)(n - 1) + 0.5)];
}

static inline double bench_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline const char *bench_load(void)
{
	static char buf[64];
	double v[3] = {0};

	if (getloadavg(v, 3) < 1)
		return "?";
	snprintf(buf, sizeof(buf), "%.2f %.2f %.2f", v[0], v[1], v[2]);
	return buf;
}

static inline int bench_cpus(uint16_t *cpus, int max)
{
	cpu_set_t set;
	int i, n = 0;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < CPU_SETSIZE && n < max; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = (uint16_t)i;
	return n;
}

struct bench_child {
	struct mmr_case *c;
	struct mmr_area *area;
	int fd; /* of the area */
	double cpu_s, wall_s;
};

/* Starts mmrace-child with the area; its pid. */
static inline pid_t bench_start(const char *child, int fd)
{
	posix_spawn_file_actions_t fa;
	char pid[16], path[512];
	char *argv[] = {path, pid, NULL};
	int high, rc;
	pid_t p;

	snprintf(path, sizeof(path), "%s", child);
	snprintf(pid, sizeof(pid), "%d", getpid());
	high = fcntl(fd, F_DUPFD_CLOEXEC, 64);
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, high, MMR_AREA_FD);
	rc = posix_spawn(&p, path, &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(high);
	if (rc)
		bench_fail("cannot start mmrace-child");
	return p;
}

/* Compiles text for these CPUs. */
static inline void bench_compile(struct bench_child *b, const char *text,
				 const struct mmr_compile_opts *opts)
{
	struct mmr_diag d = {0};

	if (mmr_case_parse(text, strlen(text), &b->c, &d, NULL, NULL) ||
	    mmr_compile(b->c, opts, &b->area, &b->fd, &d))
		bench_fail(d.text);
}

/* Waits for it; its CPU time with that of all it started. */
static inline void bench_wait(struct bench_child *b, pid_t p, double start)
{
	struct rusage u;
	int status;

	if (wait4(p, &status, 0, &u) != p || status)
		bench_fail(b->area->fail_text[0] ? b->area->fail_text
						 : "mmrace-child failed");
	b->wall_s = bench_now_s() - start;
	b->cpu_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		   (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static inline void bench_run(struct bench_child *b, const char *child,
			     const char *text,
			     const struct mmr_compile_opts *opts)
{
	double start;

	bench_compile(b, text, opts);
	start = bench_now_s();
	bench_wait(b, bench_start(child, b->fd), start);
}

static inline void bench_end(struct bench_child *b)
{
	mmr_area_close(b->area, b->fd);
	mmr_case_free(b->c);
}

#endif
