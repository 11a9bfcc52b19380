/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What /proc says of a task: whether it runs, waits or sleeps, and where its
 * time went.  Only files that take no lock of the target's address space.
 *
 * All functions: any thread, never inside an RCU read-side section (a read
 * of /proc can sleep, and would stop every grace period).
 */
#ifndef MMR_TRIAGE_SAMPLE_H
#define MMR_TRIAGE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mmr_task_sample {
	char state;	   /* R S D T t Z X as in /proc */
	bool delay_known;  /* the kernel has schedstat */
	uint64_t run_ns;   /* on a CPU, since the task's start */
	uint64_t delay_ns; /* runnable, waiting for a CPU; added up only when
			    * it gets one */
	uint64_t minflt, majflt;
};

/* A process on its way out: all its tasks together. */
struct mmr_exit_sample {
	struct mmr_task_sample sum; /* state: the most active one's */
	int ntasks;		    /* that are no zombies yet */
	bool reapable; /* the leader is a zombie and it is the last task */
};

/* 0, -ESRCH: no such task, -errno: /proc cannot be read. */
int mmr_sample_task(pid_t pid, pid_t tid, struct mmr_task_sample *s);
/* The same for a process that exits; looks at 64 tasks at most. */
int mmr_sample_exit(pid_t pid, struct mmr_exit_sample *s);
/* True when the task sleeps on the lock of its address space, as far as
 * /proc/.../wchan tells.  Takes no lock of the target. */
bool mmr_sample_on_mmap_lock(pid_t pid, pid_t tid);
/* Context switches so far.  0, -ESRCH, -errno. */
int mmr_sample_switches(pid_t pid, pid_t tid, uint64_t *voluntary,
			uint64_t *involuntary);
/* The pid in /proc of what has pid nspid in the PID namespace of supervisor:
 * walks all of /proc, so only on suspicion.  0: not found. */
pid_t mmr_sample_resolve(pid_t supervisor, pid_t nspid);
/* Children of a process (its first thread), at most max; the number. */
int mmr_sample_children(pid_t pid, pid_t *out, int max);
/* Its parent, 0: no such process. */
pid_t mmr_sample_parent(pid_t pid);

/* Parses the text of a stat file: for tests.  0 or -EINVAL. */
int mmr_sample_parse_stat(const char *text, struct mmr_task_sample *s,
			  pid_t *parent);

#endif
