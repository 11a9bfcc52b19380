// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of live targets; its rules are in target.h. */
#include "target.h"

#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <urcu/rculist.h>

#include "../ops/compile.h"

/* caa_container_of() of liburcu 0.13 drops a const of its own making. */
#pragma GCC diagnostic ignored "-Wcast-qual"

static CDS_LIST_HEAD(live);
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER; /* writers */
static _Atomic int live_count;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static __thread bool registered;

static void thread_end(void *arg)
{
	(void)arg;
	urcu_memb_unregister_thread();
}

static void make_key(void)
{
	if (pthread_key_create(&key, thread_end))
		abort();
}

void mmr_target_thread(void)
{
	if (registered)
		return;
	pthread_once(&key_once, make_key);
	urcu_memb_register_thread();
	pthread_setspecific(key, &registered);
	registered = true;
}

struct mmr_target *mmr_target_new(struct mmr_area *area, int area_fd)
{
	struct mmr_target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->event_fd < 0) {
		free(t);
		return NULL;
	}
	atomic_store(&t->refs, 1);
	cds_wfcq_init(&t->head, &t->tail);
	t->area = area;
	t->area_fd = area_fd;
	return t;
}

void mmr_target_add(struct mmr_target *t)
{
	mmr_target_thread();
	/* collect() acquires it: what was set before is seen there, also by
	 * tools that do not know liburcu's barriers. */
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_release);
	pthread_mutex_lock(&live_lock);
	cds_list_add_tail_rcu(&t->node, &live);
	pthread_mutex_unlock(&live_lock);
	atomic_fetch_add(&live_count, 1);
}

void mmr_target_retire(struct mmr_target *t)
{
	atomic_store_explicit(&t->retired, true, memory_order_release);
	pthread_mutex_lock(&live_lock);
	cds_list_del_rcu(&t->node);
	pthread_mutex_unlock(&live_lock);
	atomic_fetch_sub(&live_count, 1);
	mmr_target_put(t);
}

/* A grace period after the last reference.  The pair of `over` tells tools
 * that know C11 atomics only what call_rcu() orders; that collect() has left
 * its read-side section they cannot see (tests/tsan.supp). */
static void free_target(struct rcu_head *head)
{
	struct mmr_target *t = caa_container_of(head, struct mmr_target, rcu);

	if (atomic_load_explicit(&t->over, memory_order_acquire))
		free(t);
}

/* The last reference has gone: nobody looks at the area any more; collect()
 * may still find the target on a list that it walks, and its count at 0. */
static void release(struct mmr_target *t)
{
	struct mmr_event *e;

	while ((e = mmr_target_receive(t)))
		mmr_event_free(e);
	cds_wfcq_destroy(&t->head, &t->tail);
	close(t->event_fd);
	mmr_detect_free(t->detect);
	if (t->area)
		mmr_area_close(t->area, t->area_fd);
	mmr_target_thread();
	atomic_store_explicit(&t->over, true, memory_order_release);
	urcu_memb_call_rcu(&t->rcu, free_target);
}

void mmr_target_put(struct mmr_target *t)
{
	if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
		release(t);
}

/* A reference, unless the last one has gone. */
static bool get(struct mmr_target *t)
{
	int n = atomic_load_explicit(&t->refs, memory_order_relaxed);

	while (n && !atomic_compare_exchange_weak_explicit(
			    &t->refs, &n, n + 1, memory_order_acquire,
			    memory_order_relaxed))
		;
	return n;
}

int mmr_target_collect(struct mmr_target **out, int max)
{
	struct mmr_target *t;
	int n = 0;

	mmr_target_thread();
	urcu_memb_read_lock();
	cds_list_for_each_entry_rcu (t, &live, node) {
		if (n == max)
			break;
		if (get(t))
			out[n++] = t;
	}
	urcu_memb_read_unlock();
	return n;
}

int mmr_target_count(void)
{
	return atomic_load(&live_count);
}

void mmr_target_send(struct mmr_target *t, struct mmr_event *e)
{
	uint64_t one = 1;

	cds_wfcq_node_init(&e->node);
	cds_wfcq_enqueue(&t->head, &t->tail, &e->node);
	atomic_fetch_add_explicit(&t->sent, 1, memory_order_release);
	/* A full counter is readable as well. */
	if (write(t->event_fd, &one, sizeof(one)) < 0)
		return;
}

struct mmr_event *mmr_target_receive(struct mmr_target *t)
{
	struct cds_wfcq_node *node;

	if (atomic_load_explicit(&t->sent, memory_order_acquire) == t->received)
		return NULL;
	node = cds_wfcq_dequeue_blocking(&t->head, &t->tail);
	t->received += node != NULL;
	return node ? caa_container_of(node, struct mmr_event, node) : NULL;
}

void mmr_event_free(struct mmr_event *e)
{
	if (!e)
		return;
	free((void *)(uintptr_t)e->suspect.klog);
	free(e);
}

void mmr_target_ctl(struct mmr_target *t, uint32_t ctl)
{
	_Atomic uint32_t *word = &t->area->ctl;
	uint32_t old = atomic_load(word);

	while (old < ctl && !atomic_compare_exchange_weak(word, &old, ctl))
		;
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void mmr_target_barrier(void)
{
	mmr_target_thread();
	urcu_memb_barrier();
}
