// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf software counters on one task: how many page faults, where, and from
 * which code, without stopping it.  The storm of 2019 (research: S1) ended
 * under a debugger and not under perf, so this is the second step.
 *
 * What the kernel refuses (perf_event_paranoid, seccomp) is stated, not
 * worked around: first with kernel mode, then user mode only, then nothing.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf.h"

/* Some 350 samples, emptied every 50 ms: enough to tell one address from
 * many, and too few to slow a storm down. */
#define RING_PAGES 8
#define NONE                                                                   \
	{                                                                      \
		-1, -1, -1, -1, -1, NULL, 0, false                             \
	}

static int perf_open(struct perf_event_attr *attr, pid_t tid)
{
	long fd = syscall(SYS_perf_event_open, attr, tid, -1, -1,
			  PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static struct perf_event_attr counter(uint64_t config, bool user_only)
{
	struct perf_event_attr a;

	memset(&a, 0, sizeof(a));
	a.type = PERF_TYPE_SOFTWARE;
	a.size = sizeof(a);
	a.config = config;
	a.exclude_kernel = user_only;
	a.exclude_hv = 1;
	return a;
}

static int open_ring(struct mmr_perf *p, struct perf_event_attr *a, pid_t tid)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages;
	void *ring;
	int err = 0;

	a->sample_type =
		PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_CALLCHAIN;
	a->exclude_callchain_kernel = p->user_only;
	p->sample_fd = perf_open(a, tid);
	if (p->sample_fd < 0) {
		err = p->sample_fd;
		p->sample_fd = -1;
		return err;
	}
	/* perf_event_mlock_kb may be nearly used up: less will do too. */
	for (pages = RING_PAGES; pages; pages /= 4) {
		p->ring_len = (pages + 1) * page;
		ring = mmap(NULL, p->ring_len, PROT_READ | PROT_WRITE,
			    MAP_SHARED, p->sample_fd, 0);
		if (ring != MAP_FAILED) {
			p->ring = ring;
			return 0;
		}
		err = -errno;
	}
	close(p->sample_fd);
	p->sample_fd = -1;
	p->ring_len = 0;
	return err;
}

int mmr_perf_open(pid_t tid, struct mmr_perf *p)
{
	const struct mmr_perf none = NONE;
	struct perf_event_attr a;

	*p = none;
	a = counter(PERF_COUNT_SW_PAGE_FAULTS, false);
	p->fault_fd = perf_open(&a, tid);
	if (p->fault_fd == -EACCES || p->fault_fd == -EPERM) {
		p->user_only = true;
		a.exclude_kernel = 1;
		p->fault_fd = perf_open(&a, tid);
	}
	if (p->fault_fd < 0) {
		int err = p->fault_fd;

		*p = none;
		return err;
	}
	a = counter(PERF_COUNT_SW_CPU_MIGRATIONS, p->user_only);
	p->migration_fd = perf_open(&a, tid);
	a = counter(PERF_COUNT_SW_TASK_CLOCK, p->user_only);
	p->clock_fd = perf_open(&a, tid);
	/* Switches happen in kernel mode: without it they would read 0. */
	a = counter(PERF_COUNT_SW_CONTEXT_SWITCHES, false);
	p->switch_fd = p->user_only ? -1 : perf_open(&a, tid);
	a = counter(PERF_COUNT_SW_PAGE_FAULTS, p->user_only);
	a.sample_period = 1; /* when the ring is full, samples are dropped */
	open_ring(p, &a, tid);
	return 0;
}

int mmr_perf_profile_open(pid_t tid, struct mmr_perf *p)
{
	const struct mmr_perf none = NONE;
	struct perf_event_attr a;
	int err;

	*p = none;
	a = counter(PERF_COUNT_SW_CPU_CLOCK, false);
	a.freq = 1;
	a.sample_freq = 499;
	err = open_ring(p, &a, tid);
	if (err == -EACCES || err == -EPERM) {
		p->user_only = true;
		a.exclude_kernel = 1;
		err = open_ring(p, &a, tid);
	}
	return err;
}

void mmr_perf_close(struct mmr_perf *p)
{
	const struct mmr_perf none = NONE;
	int fds[] = {p->fault_fd, p->sample_fd, p->switch_fd, p->clock_fd,
		     p->migration_fd};
	size_t i;

	if (p->ring)
		munmap(p->ring, p->ring_len);
	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*p = none;
}

void mmr_perf_none(struct mmr_perf *p)
{
	const struct mmr_perf none = NONE;

	*p = none;
}

void mmr_perf_stop_samples(struct mmr_perf *p)
{
	if (p->sample_fd >= 0)
		ioctl(p->sample_fd, PERF_EVENT_IOC_DISABLE, 0);
}

static int64_t value(int fd)
{
	uint64_t v;

	if (fd < 0 || read(fd, &v, sizeof(v)) != (ssize_t)sizeof(v))
		return -1;
	return (int64_t)v;
}

uint64_t mmr_perf_faults(struct mmr_perf *p)
{
	int64_t v = value(p->fault_fd);

	return v < 0 ? 0 : (uint64_t)v;
}

int64_t mmr_perf_switches(const struct mmr_perf *p)
{
	return value(p->switch_fd);
}

int64_t mmr_perf_migrations(const struct mmr_perf *p)
{
	return value(p->migration_fd);
}

int64_t mmr_perf_clock_ns(const struct mmr_perf *p)
{
	return value(p->clock_fd);
}

static void count_addr(struct mmr_perf_sum *sum, uint64_t addr)
{
	int i;

	for (i = 0; i < sum->naddrs; i++)
		if (sum->addrs[i].addr == addr)
			break;
	if (i == MMR_PERF_ADDRS)
		return;
	if (i == sum->naddrs) {
		sum->addrs[i].addr = addr;
		sum->addrs[i].n = 0;
		sum->naddrs++;
	}
	sum->addrs[i].n++;
}

static void count_chain(struct mmr_perf_sum *sum, const uint64_t *ips,
			uint64_t n)
{
	struct mmr_perf_chain c = {.hash = 0xcbf29ce484222325ULL, .n = 1};
	bool kernel = false;
	uint64_t i;
	int k;

	for (i = 0; i < n; i++) {
		if (ips[i] >= PERF_CONTEXT_MAX) { /* a marker */
			kernel = ips[i] == (uint64_t)PERF_CONTEXT_KERNEL;
			continue;
		}
		c.hash = (c.hash ^ ips[i]) * 0x100000001b3ULL;
		if (c.nips == MMR_PERF_DEPTH)
			continue;
		c.ips[c.nips++] = ips[i];
		c.nkernel += kernel;
	}
	for (k = 0; k < sum->nchains; k++) {
		if (sum->chains[k].hash == c.hash) {
			sum->chains[k].n++;
			return;
		}
	}
	if (sum->nchains < MMR_PERF_CHAINS)
		sum->chains[sum->nchains++] = c;
}

/* Copies len bytes at position pos of a ring of size bytes. */
static void ring_copy(void *to, const char *data, uint64_t size, uint64_t pos,
		      size_t len)
{
	size_t off = pos & (size - 1);
	size_t part = len < size - off ? len : size - off;

	memcpy(to, data + off, part);
	memcpy((char *)to + part, data, len - part);
}

void mmr_perf_drain(struct mmr_perf *p, struct mmr_perf_sum *sum)
{
	struct perf_event_mmap_page *page = p->ring;
	struct perf_event_header h;
	uint64_t rec[256]; /* header, ip, addr, nr, at most 252 of 127 ips */
	uint64_t head, tail, size;
	const char *data;

	if (!page)
		return;
	data = (const char *)page + sysconf(_SC_PAGESIZE);
	size = p->ring_len - (size_t)sysconf(_SC_PAGESIZE);
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	for (tail = page->data_tail; tail + sizeof(h) <= head; tail += h.size) {
		ring_copy(&h, data, size, tail, sizeof(h));
		if (h.size < sizeof(h))
			break; /* never, but a loop without end is worse */
		if (h.size > sizeof(rec))
			continue;
		ring_copy(rec, data, size, tail, h.size);
		if (h.type == PERF_RECORD_LOST) {
			sum->lost += rec[2];
		} else if (h.type == PERF_RECORD_SAMPLE && h.size >= 32) {
			sum->samples++;
			count_addr(sum, rec[2]);
			if (rec[3] <= h.size / 8u - 4)
				count_chain(sum, rec + 4, rec[3]);
		}
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

uint64_t mmr_perf_top_address(struct mmr_perf *p, uint64_t *of_it,
			      uint64_t *in_all)
{
	struct mmr_perf_sum *sum = calloc(1, sizeof(*sum));
	uint64_t addr = 0;
	int i;

	*of_it = 0;
	*in_all = 0;
	if (!sum)
		return 0;
	mmr_perf_drain(p, sum);
	for (i = 0; i < sum->naddrs; i++) {
		if (sum->addrs[i].n > *of_it) {
			*of_it = sum->addrs[i].n;
			addr = sum->addrs[i].addr;
		}
	}
	*in_all = sum->samples;
	free(sum);
	return addr;
}
