/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of the detector: what is kept of each thread and process slot,
 * and how its time is accounted.  Private to detect.c, watch.c and judge.c.
 */
#ifndef MMR_TRIAGE_WATCH_H
#define MMR_TRIAGE_WATCH_H

#include "detect.h"

#define MMR_MS 1000000LL
#define MMR_S 1000000000LL

#define MMR_WATCH_NS (100 * MMR_MS) /* unchanged that long: sample it */
#define MMR_PERF_NS (200 * MMR_MS)  /* count its faults by perf, too */
#define MMR_IDLE_NS (500 * MMR_MS)  /* nobody moves: calm */
#define MMR_STUCK_NS                                                           \
	(900 * MMR_MS)	 /* one is stuck: calm (with the 100 ms                \
			  * before it was sampled: 1 s) */
#define MMR_WATCH_MAX 72 /* tasks and exits sampled a tick */
#define MMR_PERF_MAX 4	 /* perf counters open at once */

/* Where wall time went since the account was opened. */
struct mmr_account {
	bool on;
	bool unknown; /* the task cannot be sampled */
	char state;
	uint64_t last_ns;
	struct mmr_task_sample first, last;
	int64_t cpu, delay, asleep, pause; /* ns */
	bool holder; /* this tick: may hold what others wait for */
	/* The sample of this tick, before it is put into the account. */
	bool fresh;
	struct mmr_task_sample now;
};

/* Classes of what a thread is in, besides those of ops. */
enum mmr_watch_class {
	MMR_WATCH_NONE = MMR_CLASS_PURE + 1, /* between statements */
	MMR_WATCH_ENDING, /* past its body, its task not gone, joined */
};

struct mmr_watch {	 /* of a thread slot */
	bool live, dead; /* dead: the task or its process has gone */
	bool plain;
	uint32_t seq, stmt;
	uint64_t start, progress; /* as last seen */
	int class;		  /* enum mmr_op_class, enum mmr_watch_class */
	const struct mmr_insn *insn; /* NULL: none */
	uint64_t since_ns;	     /* when it last moved */
	uint32_t joined_seq; /* seq + 1 of the user that somebody joins */
	uint32_t joiner_stmt;
	int64_t calm_base; /* stuck time before calm */
	/* Faults since the watch began. */
	uint64_t segv_base, faults, fault_addr;
	uint64_t moved_ns;  /* when the count last rose */
	uint64_t faults_ns; /* when counting began */
	uint64_t vol_base, invol_base;
	uint64_t others_base; /* mmr_watch_others() when it began */
	bool switches;
	void *perf;
	struct mmr_account acc;
};

struct mmr_exit_watch { /* of a proc slot */
	bool exiting, over;
	uint32_t seq;
	uint64_t peak; /* bytes mapped at most */
	uint64_t since_ns;
	pid_t host_pid;
	struct mmr_account acc;
};

struct mmr_detect {
	struct mmr_area *area;
	const struct mmr_program *program;
	struct mmr_thread_slot *threads;
	struct mmr_proc_slot *procs;
	struct mmr_detect_limits limits;
	const struct mmr_probe *probe;
	const struct mmr_insn **insns; /* by statement */
	int64_t watch_ns;
	uint64_t now_ns;
	uint64_t moved_ns; /* when anything of the target last moved */
	uint64_t calm_ns;  /* since when ctl is not STORM, 0: storm */
	uint64_t round, rounds_done, rounds_void, voids;
	uint32_t nlate; /* of area->late, judged so far */
	uint32_t state;
	/* Of this tick. */
	int nkernel, nwait_plain, nbusy, nexits, nsampled, nholders;
	int nperf; /* open ones */
	bool suspecting;
	struct mmr_watch w[MMR_THREAD_SLOTS];
	struct mmr_exit_watch x[MMR_PROC_SLOTS];
};

/* watch.c */

uint64_t mmr_watch_ns(const struct mmr_detect *d, uint64_t ticks);
/* Puts a watch back to "not sampled". */
void mmr_watch_drop(struct mmr_detect *d, struct mmr_watch *w);
/* Looks at all slots: what moved, what is what. */
void mmr_watch_threads(struct mmr_detect *d);
void mmr_watch_procs(struct mmr_detect *d);
/* Samples what has stood still and accounts for it. */
void mmr_watch_sample(struct mmr_detect *d);
/* Pages that a call may have to work on, at most. */
uint64_t mmr_watch_pages(const struct mmr_detect *d, int slot);
/* Operations that the other threads of its process have finished so far. */
uint64_t mmr_watch_others(const struct mmr_detect *d, int slot);
/* CPU time that a call may take for the work it was given, ns. */
int64_t mmr_watch_budget(const struct mmr_detect *d, int slot);
/* It waits for a thread of the kernel that may wait for a CPU. */
bool mmr_watch_behind_daemon(const struct mmr_watch *w);
/* Net time that counts against a thread: asleep, and on a CPU, for a CALL
 * only beyond its budget. */
int64_t mmr_watch_stuck(const struct mmr_detect *d, int slot);
static inline bool mmr_watch_in_kernel(const struct mmr_watch *w)
{
	return w->live && !w->dead &&
	       (w->class == MMR_CLASS_CALL || w->class == MMR_CLASS_TOUCH ||
		w->class == MMR_CLASS_BLOCK || w->class == MMR_WATCH_ENDING);
}

/* judge.c: the rules.  The first that holds fills out and returns true. */
bool mmr_judge(struct mmr_detect *d, struct mmr_detect_out *out);

#endif
