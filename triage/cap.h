/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Caps for all that cases start: memory and number of processes, by cgroup
 * v2, else by cgroup v1, else by rlimits.  (mmrace-child itself makes its
 * processes the first that the OOM killer takes, and sees to core dumps.)
 */
#ifndef MMR_TRIAGE_CAP_H
#define MMR_TRIAGE_CAP_H

#include <stdint.h>
#include <sys/types.h>

/* The share of the machine's memory, in percent, instead of 50: in a guest that
 * has nothing else to do.  Before mmr_cap_start(). */
void mmr_cap_share(unsigned int percent);
/* Gives way to others that want the CPU: nice 5, inherited by all that is
 * started.  Before mmr_cap_start(), on the main thread before others. */
void mmr_cap_yield(void);
/* For a machine that others use: a tenth of its memory, the lowest priority for
 * CPU (nice 19, inherited by all that is started) and disk.  Before
 * mmr_cap_start(), on the main thread before others.  0 or -errno. */
int mmr_cap_gentle(void);
/* Makes the groups (mmrace-PID beside or below our own) and removes those of
 * dead engines.  0: some cap holds. */
int mmr_cap_start(void);
/* Removes the groups; waits up to 0.2 s for the last task to leave. */
void mmr_cap_stop(void);
/* Called by the spawner thread about itself, once: what it starts is capped
 * from its first instruction (v1). */
void mmr_cap_enter(void);
/* Called after each start with the new process: caps it and what it forked
 * meanwhile (v2, rlimits). */
void mmr_cap_settle(pid_t pid);
/* Where groups of a case can be made.  -ENOTSUP: nowhere. */
struct mmr_cap_groups {
	int version;	    /* 1, 2 */
	const char *memory; /* below it */
	const char *tasks;  /* where processes live otherwise */
	/* v1: the same for the freezer, "" when there is none. */
	const char *freezer, *freezer_base;
};
int mmr_cap_groups(struct mmr_cap_groups *g);
/* A use of memory by all that cases started, in kB, by its name in
 * /proc/meminfo (AnonPages, Mapped, Shmem); -1: not known by group. */
int64_t mmr_cap_use_kb(const char *field);
/* Processes that the OOM killer took because of our memory cap so far. */
uint64_t mmr_cap_oom_kills(void);
/* The cap of memory, bytes; 0: none holds. */
uint64_t mmr_cap_bytes(void);
/* "memory 11.7 GiB and 8192 processes by cgroup v1", for doctor; a sentence
 * that says what is missing when ok is set to 0. */
const char *mmr_cap_text(int *ok);

#endif
