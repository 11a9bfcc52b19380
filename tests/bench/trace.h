/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tracepoints of a tree of processes, for overlap.c: when each began and ended
 * the calls that matter and its page faults, when its address space went.
 *
 * A fault has a tracepoint where it begins only; where it ends the kernel
 * counts it (perf's minor-faults and major-faults), and that counter's samples
 * are the other end.  perf events of each CPU, all into one ring a CPU, read by
 * the caller's thread.
 */
#ifndef MMR_BENCH_TRACE_H
#define MMR_BENCH_TRACE_H

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "timing.h"

#define TRACE_PAGES 4096 /* of a ring, a power of two: 16 MiB */
#define TRACE_CPUS 64
#define TRACE_EVENTS 32
#define TRACE_PIDS 65536

enum trace_call {
	TRACE_MUNMAP,
	TRACE_MMAP,
	TRACE_CLONE,
	TRACE_MPROTECT,
	TRACE_MADVISE,
	TRACE_MIGRATE,
	TRACE_MRELEASE,
	TRACE_CALLS,
	TRACE_FAULT = TRACE_CALLS,
	TRACE_EXIT, /* from the exit of a task to the end of its memory */
	TRACE_KINDS
};

/* Half of them begin a call, the others end one.  Without a name: a counter
 * of the kernel's own. */
static const struct {
	const char *name;
	int kind;
	bool ends;
	uint64_t counter;
} trace_points[] = {
	{"syscalls/sys_enter_munmap", TRACE_MUNMAP, false, 0},
	{"syscalls/sys_exit_munmap", TRACE_MUNMAP, true, 0},
	{"syscalls/sys_enter_mmap", TRACE_MMAP, false, 0},
	{"syscalls/sys_exit_mmap", TRACE_MMAP, true, 0},
	{"syscalls/sys_enter_clone", TRACE_CLONE, false, 0},
	{"syscalls/sys_exit_clone", TRACE_CLONE, true, 0},
	{"syscalls/sys_enter_mprotect", TRACE_MPROTECT, false, 0},
	{"syscalls/sys_exit_mprotect", TRACE_MPROTECT, true, 0},
	{"syscalls/sys_enter_madvise", TRACE_MADVISE, false, 0},
	{"syscalls/sys_exit_madvise", TRACE_MADVISE, true, 0},
	{"syscalls/sys_enter_migrate_pages", TRACE_MIGRATE, false, 0},
	{"syscalls/sys_exit_migrate_pages", TRACE_MIGRATE, true, 0},
	{"syscalls/sys_enter_process_mrelease", TRACE_MRELEASE, false, 0},
	{"syscalls/sys_exit_process_mrelease", TRACE_MRELEASE, true, 0},
	{"exceptions/page_fault_user", TRACE_FAULT, false, 0},
	{NULL, TRACE_FAULT, true, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{NULL, TRACE_FAULT, true, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"sched/sched_process_exit", TRACE_EXIT, false, 0},
	{"mmap/exit_mmap", TRACE_EXIT, true, 0},
};
#define TRACE_POINTS (sizeof(trace_points) / sizeof(trace_points[0]))

struct trace_item {
	uint64_t time;
	uint32_t pid, tid;
	uint8_t point;	 /* index in trace_points, or TRACE_FORK */
	uint32_t parent; /* TRACE_FORK */
};
#define TRACE_FORK 0xff

struct trace {
	const char *root; /* of tracefs */
	int ncpus;
	uint16_t cpus[TRACE_CPUS];
	int leader[TRACE_CPUS], fds[TRACE_CPUS][TRACE_POINTS];
	uint64_t ids[TRACE_CPUS][TRACE_POINTS];
	void *ring[TRACE_CPUS];
	struct trace_item *items;
	size_t n, size;
	uint64_t lost;
};

/* tracefs where it is, else mounted for this process alone. */
static inline bool trace_find(struct trace *t)
{
	static char own[] = "/tmp/mmr-trace-XXXXXX";

	t->root = "/sys/kernel/tracing";
	if (!access("/sys/kernel/tracing/events/sched", R_OK))
		return true;
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(own))
		return false;
	t->root = own;
	return mount("none", own, "tracefs", 0, NULL) == 0;
}

/* The numbers of the tracepoints are known: nothing of it stays behind. */
static inline void trace_forget(struct trace *t)
{
	if (strcmp(t->root, "/sys/kernel/tracing") == 0)
		return;
	umount2(t->root, MNT_DETACH);
	rmdir(t->root);
}

static inline int trace_id(const struct trace *t, const char *name)
{
	char path[256];
	int id = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/events/%s/id", t->root, name);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &id) != 1)
		id = -1;
	fclose(f);
	return id;
}

static inline int trace_open(struct perf_event_attr *attr, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1,
			    (unsigned long)PERF_FLAG_FD_CLOEXEC);
}

static inline bool trace_begin(struct trace *t)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME,
		.sample_period = 1,
		.task = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC_RAW,
	};
	size_t len = (TRACE_PAGES + 1) * 4096UL;
	int c, id;
	size_t k;

	if (!trace_find(t))
		return false;
	t->ncpus = bench_cpus(t->cpus, TRACE_CPUS);
	for (c = 0; c < t->ncpus; c++) {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_DUMMY;
		attr.task = 1;
		t->leader[c] = trace_open(&attr, t->cpus[c]);
		if (t->leader[c] < 0)
			return false;
		t->ring[c] = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
				  t->leader[c], 0);
		if (t->ring[c] == MAP_FAILED)
			return false;
		attr.task = 0;
		for (k = 0; k < TRACE_POINTS; k++) {
			t->fds[c][k] = -1;
			attr.type = PERF_TYPE_SOFTWARE;
			attr.config = trace_points[k].counter;
			if (trace_points[k].name) {
				id = trace_id(t, trace_points[k].name);
				if (id < 0)
					continue;
				attr.type = PERF_TYPE_TRACEPOINT;
				attr.config = (uint64_t)id;
			}
			t->fds[c][k] = trace_open(&attr, t->cpus[c]);
			if (t->fds[c][k] < 0)
				return false;
			ioctl(t->fds[c][k], PERF_EVENT_IOC_ID, &t->ids[c][k]);
			ioctl(t->fds[c][k], PERF_EVENT_IOC_SET_OUTPUT,
			      t->leader[c]);
		}
	}
	trace_forget(t);
	return true;
}

/* How many of the events this kernel has. */
static inline int trace_kinds(const struct trace *t)
{
	size_t k;
	int n = 0;

	for (k = 0; k < TRACE_POINTS; k++)
		n += t->fds[0][k] >= 0;
	return n;
}

static inline void trace_put(struct trace *t, const struct trace_item *it)
{
	if (t->n == t->size) {
		t->size = t->size ? 2 * t->size : 1 << 20;
		t->items = realloc(t->items, t->size * sizeof(*t->items));
		if (!t->items)
			bench_fail("no memory");
	}
	t->items[t->n++] = *it;
}

static inline void trace_record(struct trace *t, int c,
				const struct perf_event_header *h,
				const uint64_t *w)
{
	const uint32_t *half = (const uint32_t *)w;
	struct trace_item it = {0};
	size_t k;

	if (h->type == PERF_RECORD_LOST) {
		t->lost += w[1];
	} else if (h->type == PERF_RECORD_FORK) {
		/* pid ppid tid ptid time */
		it = (struct trace_item){w[2], half[0], half[2], TRACE_FORK,
					 half[1]};
		trace_put(t, &it);
	} else if (h->type == PERF_RECORD_SAMPLE) {
		for (k = 0; k < TRACE_POINTS && t->ids[c][k] != w[0]; k++)
			;
		it = (struct trace_item){w[2], half[2], half[3], (uint8_t)k, 0};
		if (k < TRACE_POINTS)
			trace_put(t, &it);
	}
}

/* What has come since: before a ring is full. */
static inline void trace_read(struct trace *t)
{
	const uint64_t size = TRACE_PAGES * 4096UL;
	int c;

	for (c = 0; c < t->ncpus; c++) {
		struct perf_event_mmap_page *page = t->ring[c];
		const char *data = (const char *)t->ring[c] + 4096;
		uint64_t head, tail = page->data_tail, buf[64];

		head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		while (tail < head) {
			struct perf_event_header h;
			uint16_t i;

			/* Records are whole words: headers never wrap. */
			memcpy(&h, data + tail % size, sizeof(h));
			for (i = 8; i < h.size && i < sizeof(buf); i += 8)
				memcpy(&buf[i / 8 - 1],
				       data + (tail + i) % size, 8);
			trace_record(t, c, &h, buf);
			tail += h.size;
		}
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

static int trace_by_time(const void *a, const void *b)
{
	const struct trace_item *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

/* Keeps what the tree of this process did, in the order of time. */
static inline void trace_family(struct trace *t, pid_t root)
{
	static bool mine[1 << 22];
	size_t i, n = 0;

	memset(mine, 0, sizeof(mine));
	mine[root & ((1 << 22) - 1)] = true;
	qsort(t->items, t->n, sizeof(*t->items), trace_by_time);
	for (i = 0; i < t->n; i++) {
		struct trace_item *it = &t->items[i];

		if (it->point == TRACE_FORK) {
			if (mine[it->parent & ((1 << 22) - 1)])
				mine[it->pid & ((1 << 22) - 1)] = true;
		} else if (mine[it->pid & ((1 << 22) - 1)]) {
			t->items[n++] = *it;
		}
	}
	t->n = n;
}

#endif
