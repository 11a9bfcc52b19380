/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of DESIGN section 4, fixed tier, as a state machine over what
 * the shared area and samples of tasks show.  It reads an area and asks a
 * probe; it writes nothing outside itself and knows no clock: a test feeds
 * it any story.
 *
 * Fast path, every tick: a thread whose progress, statement and start have
 * not changed for 100 ms gets watched: its state and CPU time are sampled
 * from then on, and each stretch of wall time between two samples is put
 * down as on a CPU, waiting for one, asleep, or nobody's (the machine stood
 * still, or somebody who may hold the lock was not let run).
 *
 * One thread only (the monitor's) may use a detector at a time.
 */
#ifndef MMR_TRIAGE_DETECT_H
#define MMR_TRIAGE_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#include "evidence.h"
#include "sample.h"

/* What the detector asks of the world.  All times ns of the area's clock. */
struct mmr_probe {
	void *arg;
	/* As mmr_sample_task(), mmr_sample_exit(). */
	int (*task)(void *arg, pid_t pid, pid_t tid, struct mmr_task_sample *s);
	int (*exiting)(void *arg, pid_t pid, struct mmr_exit_sample *s);
	int (*switches)(void *arg, pid_t pid, pid_t tid, uint64_t *voluntary,
			uint64_t *involuntary);
	pid_t (*resolve)(void *arg, pid_t supervisor, pid_t nspid);
	/* All CPUs late at once; the latest single CPU. */
	int64_t (*pause)(void *arg, uint64_t from_ns, uint64_t to_ns);
	int64_t (*late)(void *arg, uint64_t from_ns, uint64_t to_ns);
	/* True when the task sleeps on the lock of its address space. */
	bool (*on_mmap_lock)(void *arg, pid_t pid, pid_t tid);
	/* Fault counters of perf: a handle or NULL; faults since then and the
	 * address seen most (0 unknown). */
	void *(*faults_open)(void *arg, pid_t tid);
	uint64_t (*faults_read)(void *arg, void *handle, uint64_t *addr);
	void (*faults_close)(void *arg, void *handle);
};

#define MMR_DETECT_CALLS 16 /* expect call lines that are kept */

struct mmr_detect_limits {
	int64_t progress_ns; /* calm: without progress that long */
	int64_t storm_ns;
	int64_t syscall_ns; /* fixed one for every call, 0: built-in rule */
	int64_t exit_ns;    /* fixed one, 0: built-in rule */
	double scale;	    /* on CPU time, mmr_scale_factor() */
	int ncalls;
	struct {
		uint16_t op;
		int64_t ns;
	} calls[MMR_DETECT_CALLS];
};

/* From the case's expect lines; what the options say goes first. */
void mmr_detect_limits_init(struct mmr_detect_limits *l,
			    const struct mmr_case *c,
			    const struct mmr_limits *opts, double scale);

/* What a tick wants done. */
struct mmr_detect_out {
	bool calm;	 /* set ctl to CALM */
	bool void_round; /* and ctl_void */
	bool voids;	 /* three void rounds in a row and none was good */
	bool flagged;	 /* suspect is filled in */
	struct mmr_suspect suspect; /* c, klog and klog_mark are not */
};

/* Tells the program which statements have a limit of their own, and exits. */
void mmr_detect_limits_tell(const struct mmr_detect_limits *l,
			    struct mmr_area *area);

/* True when the child read what was not written; fills out. */
bool mmr_judge_content(struct mmr_area *area, struct mmr_suspect *out);

struct mmr_detect;

/* NULL: no memory. */
struct mmr_detect *mmr_detect_new(struct mmr_area *area,
				  const struct mmr_detect_limits *limits,
				  const struct mmr_probe *probe);
void mmr_detect_free(struct mmr_detect *d);
void mmr_detect_tick(struct mmr_detect *d, uint64_t now_ns,
		     struct mmr_detect_out *out);
/* True while something has stood still for a while: worth waiting for. */
bool mmr_detect_suspecting(const struct mmr_detect *d);

#endif
