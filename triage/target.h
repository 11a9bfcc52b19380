/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live targets: every case that runs now.  Runner threads add and retire
 * them; the monitor walks them on every tick without a lock (RCU list of
 * liburcu, memb flavour) and sends events back through a wait-free queue.
 *
 * What may run at the same time as what ("-" nothing to mind, "L" the list's
 * mutex inside takes care, "1" only one thread may do it per target):
 *
 *              add  retire  collect  send  receive  put
 *   add         L     L        -      -       -      -
 *   retire      L     L        -      -       -      -
 *   collect     -     -        -      -       -      -
 *   send        -     -        -      1       -      *
 *   receive     -     -        -      -       1      *
 *   put         -     -        -      *       *      -
 *
 *   *  by whoever holds a reference of its own: put() ends its own use only.
 *
 * collect() is the only read-side section there is.  It takes references and
 * leaves; looking at a target (reads of /proc, which may sleep) comes after
 * it, on a reference, or a read in D state would stop every grace period.
 * A target's area lives until the last reference has gone, its own memory a
 * grace period longer (call_rcu), as collect() may still look at its count.
 */
#ifndef MMR_TRIAGE_TARGET_H
#define MMR_TRIAGE_TARGET_H

#include <stdatomic.h>
#include <urcu/urcu-memb.h>
#include <urcu/list.h>
#include <urcu/wfcqueue.h>

#include "detect.h"
#include "evidence.h"
#include "klog.h"

struct mmr_event {
	struct cds_wfcq_node node;
	struct mmr_suspect suspect; /* klog: the event's, freed with it */
};

struct mmr_target {
	struct cds_list_head node;
	_Atomic int refs;
	struct rcu_head rcu;
	_Atomic bool retired;	 /* the runner has gone: look no further */
	_Atomic bool over;	 /* no reference left */
	_Atomic bool suspecting; /* the detector is on to something */

	/* Constant from add() on.  `c` is for the runner and for evidence
	 * taken by it: the monitor never follows it. */
	const struct mmr_case *c;
	struct mmr_area *area;
	int area_fd;
	struct mmr_klog_mark klog_mark;
	struct mmr_detect_limits limits;

	struct mmr_detect *detect; /* the monitor's own */
	bool fired;		   /* the monitor's own: one event a run */
	uint64_t klog_seen_ns;	   /* the monitor's own */

	/* Monitor to runner. */
	struct cds_wfcq_head head;
	struct cds_wfcq_tail tail;
	_Atomic unsigned int sent; /* events ever */
	unsigned int received;	   /* the runner's own */
	int event_fd;		   /* readable when something was sent */
};

/* Empty, with one reference, which is the caller's; takes over area and fd
 * when it returns one.  NULL: no memory, no descriptor. */
struct mmr_target *mmr_target_new(struct mmr_area *area, int area_fd);
/* Puts it on the list, on a reference of the list's own. */
void mmr_target_add(struct mmr_target *t);
/* Takes it off the list again. */
void mmr_target_retire(struct mmr_target *t);
void mmr_target_put(struct mmr_target *t);
/* References to at most max live targets; their number. */
int mmr_target_collect(struct mmr_target **out, int max);
/* How many are live. */
int mmr_target_count(void);

/* Takes over e.  Wait-free but for a write to the event's descriptor. */
void mmr_target_send(struct mmr_target *t, struct mmr_event *e);
/* NULL: nothing there.  The caller ends it with mmr_event_free(). */
struct mmr_event *mmr_target_receive(struct mmr_target *t);
void mmr_event_free(struct mmr_event *e);

/* Sets the target's phase (enum mmr_ctl) and wakes what waits for the case
 * itself; never back from END.  Any thread with a reference. */
void mmr_target_ctl(struct mmr_target *t, uint32_t ctl);

/* Registers the calling thread with liburcu, once; it is taken off at the
 * thread's end.  add, retire, put and collect do it themselves. */
void mmr_target_thread(void);
/* Waits until all memory of targets that are no more has been freed. */
void mmr_target_barrier(void);

#endif
