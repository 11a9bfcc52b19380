/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of the evidence ladder: what its steps share.  Private to
 * evidence.c, ladder*.c, signature.c and sentence.c.
 */
#ifndef MMR_TRIAGE_LADDER_H
#define MMR_TRIAGE_LADDER_H

#include "evidence.h"
#include "perf.h"
#include "timeline.h"

#define MMR_FRAMES 6  /* kernel frames that make a signature */
#define MMR_OTHERS 96 /* other tasks whose state is kept */

/* What kind of stall it is, from what the steps have seen. */
enum mmr_stall {
	MMR_STALL_NONE,	   /* no stall: a crash, a log, an oracle */
	MMR_STALL_STORM,   /* faults and faults, and nothing comes of it */
	MMR_STALL_STARVED, /* waits for a lock that others keep taking */
	MMR_STALL_BLOCKED, /* asleep in one place */
	MMR_STALL_HELD,	   /* stopped, or held by a tracer */
	MMR_STALL_SPINS,   /* on a CPU, always in the same place */
	MMR_STALL_SLOW,	   /* moves, but does not get to its end */
	MMR_STALL_PAUSE,   /* the machine stood still most of the time */
	MMR_STALL_UNKNOWN,
};

/* A task of the case that is not the culprit, as step 3 found it. */
struct mmr_other {
	pid_t pid, tid;
	int slot; /* -1: none of ours */
	char state;
	char frames[160];
	uint32_t stmt; /* its statement + 1, 0 none or unknown */
	pid_t like;    /* an earlier one in the same place; 0: the first */
};

struct mmr_ladder {
	const struct mmr_suspect *s;
	json_t *root, *steps, *missing; /* evidence.json and parts of it */
	json_t *timeline;
	struct mmr_timeline_base base;
	int64_t t0_ns;	      /* CLOCK_MONOTONIC when the flag was taken up */
	const char *ended_by; /* NULL: nothing yet */
	bool post_mortem;     /* the culprit is over: nobody to look at */
	double patience;      /* how much longer than on an idle machine what
			       * a step did takes to show, 1 to 20 */

	/* The culprit's slot as it was at the flag. */
	uint64_t progress0;
	uint32_t seq0, state0;
	int32_t tid0;	/* cleared by the kernel when its task has gone */
	uint64_t segv0; /* SIGSEGV counted in its slot */

	/* What the steps found out, for the sentence and the signature. */
	pid_t pid, tid;
	char state;	  /* R S D t Z as /proc has it, 0: unknown */
	bool steady;	  /* asleep with one stack in all samples */
	char frames[160]; /* its kernel frames, "a<b<c", "" unknown */
	char wchan[64];
	double faults_per_s; /* < 0: unknown */
	uint64_t faults;     /* perf's, in its window */
	int paths;	     /* kernel call chains on a CPU */
	uint64_t path_samples;
	uint64_t addr, addr_of, addr_all; /* sampled most, of how many */
	int64_t voluntary, involuntary;	  /* in switch_ms; -1: unknown */
	double switch_ms;
	pid_t tracer;	  /* who has it under ptrace, 0 nobody */
	int tracer_slot;  /* its thread slot, -1: not one of ours */
	double cpu_share; /* of the look at it, < 0: unknown */

	struct mmr_other others[MMR_OTHERS];
	int nothers;
	uint64_t ops0; /* calls that others of its process had finished */

	/* What that amounts to (ladder_class.c). */
	enum mmr_stall stall;
	bool lock_wait;	    /* for the address-space lock, by its stack */
	int holder;	    /* in others[], who may have it; -1: nobody known */
	int owner;	    /* slot of who has the futex; -1: nobody known */
	uint64_t other_ops; /* calls that others finished meanwhile */

	/* stacks.txt */
	FILE *stacks;
	char *vmstat0;	 /* /proc/vmstat at step 1 */
	char *softirqs0; /* /proc/softirqs then */
	json_t *before;	 /* PSI and cgroup then */
	char *log;	 /* the kernel log since the mark, whole */
};

/* Names of the thread and process in a slot as the case has them. */
void mmr_ladder_names(const struct mmr_suspect *s, int slot,
		      const char **thread, const char **proc);
/* Name of the process in a proc slot. */
const char *mmr_ladder_proc_name(const struct mmr_suspect *s, int proc_slot);
/* Which thread slot a task has; -1: none of ours. */
int mmr_ladder_slot_of(const struct mmr_ladder *l, pid_t tid);
/* True when the culprit has moved since the flag. */
bool mmr_ladder_moved(const struct mmr_ladder *l);
/* A line for what could not be had. */
void mmr_ladder_missing(struct mmr_ladder *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* JSON text of bytes that need not be UTF-8. */
json_t *mmr_ladder_text(const char *s, size_t n);
/* Reads a small file of /proc or /sys: at most max bytes, NUL-terminated, to
 * be freed.  NULL with errno. */
char *mmr_ladder_read(const char *path, size_t max);

/* What step 4 compares with, read by step 1. */
void mmr_ladder_before(struct mmr_ladder *l);
/* The steps; each returns a note of a few words, "" none. */
const char *mmr_ladder_memory(struct mmr_ladder *l);
const char *mmr_ladder_perf(struct mmr_ladder *l);
const char *mmr_ladder_proc(struct mmr_ladder *l);
/* The same for the culprit alone. */
const char *mmr_ladder_proc_brief(struct mmr_ladder *l);
const char *mmr_ladder_kernel(struct mmr_ladder *l);
const char *mmr_ladder_maps(struct mmr_ladder *l);
const char *mmr_ladder_sysrq(struct mmr_ladder *l);
const char *mmr_ladder_ptrace(struct mmr_ladder *l);
/* Symbol names into the perf part, after the last step. */
void mmr_ladder_symbols(struct mmr_ladder *l);
/* The CPU profile of the culprit, with its names, into stacks.txt. */
void mmr_ladder_profile(struct mmr_ladder *l);

/* Calls that threads of the culprit's process finished so far, without its
 * own. */
uint64_t mmr_ladder_other_ops(const struct mmr_ladder *l);
/* From what the steps have seen: the kind of stall, and who may hold what it
 * waits for.  After the steps, before the sentence. */
void mmr_ladder_classify(struct mmr_ladder *l);
/* "storm", "blocked" and so on, for evidence.json. */
const char *mmr_stall_name(enum mmr_stall s);
/* The sentence and the signature, from what is known by now. */
void mmr_ladder_sentence(const struct mmr_ladder *l, char *out, size_t n);
void mmr_ladder_signature(const struct mmr_ladder *l, char *sig, size_t nsig,
			  char *id, size_t nid);
/* verdict-HASH of a signature (signature.c). */
void mmr_signature_id(enum mmr_verdict v, const char *sig, char *id, size_t n);
/* The title of a kernel log: its first line that says what happened,
 * without numbers and addresses. */
void mmr_signature_klog(const char *log, char *out, size_t n);

#endif
