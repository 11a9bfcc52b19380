/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The evidence ladder (DESIGN section 5): least intrusive first, progress
 * checked after every step, the step after which it moved again recorded.
 */
#ifndef MMR_TRIAGE_EVIDENCE_H
#define MMR_TRIAGE_EVIDENCE_H

#include "run.h"

/* What the monitor knows when it flags something. */
struct mmr_suspect {
	enum mmr_verdict verdict;
	const struct mmr_case *c;
	struct mmr_area *area;
	int thread_slot;	  /* the culprit thread, -1 none (long-exit) */
	int proc_slot;		  /* the culprit's process, -1 none */
	int stmt;		  /* its statement, -1 none */
	pid_t host_pid, host_tid; /* of the culprit, 0 unknown */
	/* Measured since the suspicion, ns of wall time and what it was. */
	int64_t wall_ns, cpu_ns, delay_ns, asleep_ns, pause_ns;
	uint64_t faults; /* page faults in fault_ns */
	int64_t fault_ns;
	uint64_t fault_addr;		 /* 0 unknown */
	uint64_t voluntary, involuntary; /* context switches in fault_ns */
	int64_t limit_ns;		 /* the rule that was crossed */
	int64_t flagged_ns;		 /* when, CLOCK_MONOTONIC; 0 unknown */
	/* The culprit's slot when it was flagged (based: known), so that a
	 * stall which ended before the first look is told from one that a
	 * look ended. */
	bool based;
	uint32_t seq0;
	uint64_t progress0;
	const char *before; /* done to it since the flag: "on-finding",
			     * "hold"; NULL: nothing */
	uint64_t klog_mark; /* kernel log sequence at the run's start */
	const char *klog;   /* KERNEL_LOG: the lines */
	bool over;	/* it has returned: wall_ns is what it took in all */
	char note[160]; /* more for the sentence, "" nothing */
};

/*
 * Climbs the ladder and fills res->{text,signature,id,evidence,timeline,
 * stacks}.  Returns 0 always with what could be had; bounded by 5 s.  Called
 * by the runner thread, never by the monitor.  Steps that may meet the stuck
 * lock run in a disposable helper process (`mmrace __evidence ...`, see
 * mmr_evidence_helper()).
 */
int mmr_evidence_take(const struct mmr_suspect *s, struct mmr_run_result *res);
/* Only verdict, sentence, signature (steps 1 and kernel stack): for min. */
int mmr_evidence_brief(const struct mmr_suspect *s, struct mmr_run_result *res);

/* Where steps 1 to 4 are put on disk before step 5 (spool-PID-N.json); the
 * file goes when the ladder is done, and stays when the machine does not live
 * to see that.  The folder is made when it is needed.  NULL or not writable:
 * TMPDIR or /tmp.  Set before the first run; not thread-safe. */
void mmr_evidence_spool(const char *dir);
/* Step 6 (sysrq w and l) is taken only when asked for.  Set as above. */
void mmr_evidence_sysrq(bool on);

/* Entry of the disposable helper: main() calls it for argv[1] "__evidence".
 * Returns the exit code. */
int mmr_evidence_helper(int argc, char **argv);

/* Normalised frames of a /proc/PID/stack text into out ("a<b<c", without
 * offsets, addresses, entry frames and uncertain ones), at most max. */
void mmr_signature_frames(const char *stack, int max, char *out, size_t n);

/* What a console that ends in a panic says of its cause: the title of the
 * report that ended so, without numbers and addresses; "" when there is none.
 * *reports: all of them, for evidence.json, a new array. */
void mmr_signature_panic(const char *console, char *out, size_t n,
			 json_t **reports);

/*
 * perf software counters on one task (perf.c).  Opening needs no privilege
 * for own children; -errno when refused.
 */
struct mmr_perf {
	int fault_fd, sample_fd, switch_fd, clock_fd, migration_fd;
	void *ring;
	size_t ring_len;
	bool user_only; /* perf_event_paranoid leaves only user mode */
};
int mmr_perf_open(pid_t tid, struct mmr_perf *p);
/* Page faults since opening; the address that was sampled most since the
 * last call and how many samples of it and in all. */
uint64_t mmr_perf_faults(struct mmr_perf *p);
uint64_t mmr_perf_top_address(struct mmr_perf *p, uint64_t *of_it,
			      uint64_t *in_all);
void mmr_perf_close(struct mmr_perf *p);

/* User stack of a task by ptrace and libunwind, text with one frame a line
 * ("#0 mmr_touch_write+0x4 (mmrace-child)"); the last step.  0 or -errno. */
int mmr_unwind_task(pid_t pid, pid_t tid, char *out, size_t n);

#endif
