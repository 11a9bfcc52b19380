/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One case under watch: the one entry that replay, min, soak and the fuzzers
 * call.  A run is one execution of the case, stopped at its first hit.
 */
#ifndef MMR_TRIAGE_RUN_H
#define MMR_TRIAGE_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../ops/area.h"
#include "../ops/case.h"

struct mmr_histogram; /* histogram.h */

enum mmr_verdict {
	MMR_NOTHING, /* nothing found */
	MMR_VOID, /* no round counted: a rendezvous or latch never came */
	MMR_SKIPPED, /* needs not met: text says what */
	MMR_FAULT_STORM,
	MMR_LONG_SYSCALL,
	MMR_LONG_EXIT,
	MMR_LOCK_STARVATION,
	MMR_HANG,
	MMR_KERNEL_LOG,
	MMR_CORRUPTION,
	MMR_LEAK,
	MMR_CRASH,
	MMR_TOOL_FAILED, /* mmrace itself: text says what */
	MMR_KNOWN, /* a hit that is set aside by --known: text says why */
	MMR_VERDICTS
};

/* "fault-storm" and so on; the same words in JSON, status and file names. */
const char *mmr_verdict_name(enum mmr_verdict v);
/* True for what is a finding (FAULT_STORM .. CRASH). */
bool mmr_verdict_is_hit(enum mmr_verdict v);

/* Limits, ns; 0: the built-in ones of DESIGN section 4. */
struct mmr_limits {
	int64_t progress_ns; /* calm phase: no progress that long is a hang */
	int64_t syscall_ns; /* fixed limit of one call's net time */
	int64_t exit_ns; /* fixed limit of an exit */
	int64_t storm_ns; /* faults without progress that long */
};

struct mmr_run_opts {
	uint64_t seed;
	uint64_t first_round;
	uint64_t rounds; /* 0: as the case says */
	int64_t budget_ns; /* 0: as the case says */
	struct mmr_limits limits;
	bool allow_settings;
	bool hold; /* leave a stall alive until Ctrl-C */
	bool no_monitor; /* bench only: nobody watches */
	bool no_evidence; /* only the verdict and signature (min) */
	bool no_offsets; /* skew=auto is 0: rounds that calibrate */
	struct mmr_guest *guest; /* run in one of these guests; NULL: here */
	struct mmr_known *known; /* signatures that are set aside, NULL none */
	const char *on_finding; /* command run at the first hit, NULL none */
	uint16_t cpus[64]; /* to use; ncpus 0: all allowed */
	int ncpus;
};

/* One statement's measurements, in ns. */
struct mmr_measure {
	uint64_t count, errors, unexpected, pages, late;
	uint64_t sum_ns, max_ns;
	struct {
		int err;
		uint32_t n;
	} errs[MMR_ERRS];
	uint64_t p50_ns, p95_ns, p99_ns;
	struct mmr_histogram *hist; /* NULL when count is 0 */
};

struct mmr_exit_measure {
	const char *proc; /* name in the case, or "idle"; owned by the case */
	uint64_t count, p50_ns, p95_ns, p99_ns, mean_ns, stdev_ns, max_ns;
	uint64_t wall_ns, cpu_ns, delay_ns, asleep_ns; /* sums */
	struct mmr_histogram *hist, *cpu_hist; /* NULL when count is 0 */
};

struct mmr_run_result {
	enum mmr_verdict verdict;
	char text[400]; /* the sentence: who is stuck in what, since when */
	char signature[200]; /* verdict, op, top kernel frames */
	char id[48]; /* verdict-HASH, finding folder's name */
	int stmt; /* the culprit's statement, -1: none */
	uint64_t rounds, rounds_void; /* done, and of them void */
	uint64_t rounds_late; /* others with a start that came late: they say
			       * nothing against a window */
	uint64_t hit_round; /* of the draws: first_round + .. */
	uint64_t ops, calls; /* finished operations; of them kernel calls */
	int64_t wall_ns; /* of the run without set-up, evidence, clean-up */
	int64_t detect_ns; /* from the stall's start to the flag */
	int64_t pause_ns; /* machine-wide pauses seen meanwhile */
	struct mmr_measure *stmts; /* mmr_case_count() of them */
	int nstmts;
	struct mmr_exit_measure *exits;
	int nexits;
	json_t *evidence; /* evidence.json; NULL when nothing was found */
	json_t *timeline; /* Chrome trace events; NULL likewise */
	char *stacks; /* stacks.txt */
	char *log; /* kernel log since the mark, when there is any */
	/* The case with the offsets of the hit, and with the bounds that they
	 * were drawn from, in ns; NULL: it draws none (calibrate.h). */
	char *exact, *bound;
	/* The guest that it ran in; kernel "": this machine. */
	struct {
		char kernel[80], arch[16], text[160];
		int cpus;
	} guest;
	uint64_t compared; /* pages that were read and known (expect content) */
	int quarantined; /* tasks that could not be killed, set aside */
};

/*
 * Runs the case once.  Blocks until it is over: at most its budget, the time
 * of evidence (bounded) and one second.  0 and *res filled (res->verdict may
 * be TOOL_FAILED); the caller frees with mmr_run_result_free().  Threads:
 * any, several at once; mmr_engine_start() first.
 */
int mmr_run(const struct mmr_case *c, const struct mmr_run_opts *opts,
	    struct mmr_run_result *res) __attribute__((warn_unused_result));
void mmr_run_result_free(struct mmr_run_result *res);

/*
 * Starts what all runs share: clock, spawner thread, monitor thread and its
 * table of live targets, heartbeats, kernel log reader, caps, and brings back
 * settings that an earlier mmrace left changed.  child: path of mmrace-child,
 * NULL: beside the executable.  0, or -errno with a sentence in text.  Once a
 * process.  mmr_engine_stop() ends all of it and every target.
 */
int mmr_engine_start(const char *child, char *text, size_t n);
void mmr_engine_stop(void);

/* From a signal handler or another thread: running and later runs end soon,
 * with what they have. */
void mmr_engine_interrupt(void);
bool mmr_engine_interrupted(void);

#endif
