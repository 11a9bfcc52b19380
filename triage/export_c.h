/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the exporter, for each other only:
 *   export_c.c     the order of the file
 *   export_find.c  names, threads and processes; what is reached
 *   export_refs.c  the refs
 *   export_round.c whether a round ends by itself
 *   export_plan.c  how the file is written
 *   export_safe.c  whether an access may meet no memory
 *   export_head.c  the comment on top, headers, constants
 *   export_body.c  statements, loops, threads, processes
 *   export_help.c  the helpers that the statements call
 *   export_proc.c  those about processes
 *   export_watch.c the watchdog
 *   export_need.c  needs, and what is looked at before and after
 *   export_main.c  main() of C and kselftest
 *   export_ltp.c   struct tst_test and what it names
 *
 * The watchdog is main() itself, which only forks: it shares no address space
 * with what it watches and never waits for a process that will not die.
 */
#ifndef MMR_TRIAGE_EXPORT_C_H
#define MMR_TRIAGE_EXPORT_C_H

#include "../ops/emit.h"
#include "export.h"

struct mmr_export {
	struct mmr_emit e;
	const struct mmr_case *c;
	enum mmr_export_to to;
	const char *name;
	FILE *out; /* where e.out goes in the end */
	struct mmr_diag *diag;
	/* One plain process, no spawns but idle threads: the watchdog knows
	 * all threads beforehand and waits for one process. */
	bool simple;
	/* The whole round is watched, not each thread (= !e.steps). */
	bool whole;
	bool counts;	  /* whole: a long round that counts what it does */
	bool spawns;	  /* processes */
	bool leaves;	  /* a round may leave processes behind */
	const char *sync; /* whole: the last of nsyncs rendezvous */
	int nsyncs;
	const char *meet_latch; /* e.meet_waits: for this one */
	int listed;		/* names that a declaration has by now */
	bool may_miss;		/* an access may meet no memory */
	bool may_fail;		/* ... as mmap may fail, for no other reason */
	bool clock;		/* something calls now() */
	bool unmended;		/* a thread has segv=return */
	bool content;		/* reads are looked at: all writes write 1 */
	bool pins;		/* a thread has cpu= */
	bool waits;	 /* a round may come to rest with nobody to blame */
	bool has_within; /* a call has a limit of its own */
	bool long_draws; /* a time is drawn from more than RAND_MAX ns */
	bool shares;	 /* struct shared is there */
	bool folds;	 /* struct proc is declared with the first ref */
	bool in_place;	 /* the one spawn of the case is a fork in its place */
	bool own_shared; /* a round maps struct shared itself, so that it is
			  * new in each one; main() knows nothing of it */
	bool prints;	 /* the file uses stdio */
	uint64_t writes; /* bit i: statements write setting i */
	int64_t limit_ms, budget_s;
	int64_t bound_ns;     /* whole: what a round takes at most */
	int64_t sync_lead_ns; /* longest skew before the meeting */
	bool thread_used[MMR_CASE_MAX_THREADS]; /* by number over the case */
	bool proc_used[MMR_CASE_MAX_PROCS];
	int nplain; /* plain processes, copies counted */
};

/* How an op's own helper tells the watchdog that it gets on, and how a whole
 * round does. */
#define MMR_EXPORT_MOVED "me->moved++"
#define MMR_EXPORT_STILL "shared->idle_ms = 0"

#define MMR_EXPORT_PUT(x, ...) fprintf((x)->out, __VA_ARGS__)

static inline bool mmr_export_uses(const struct mmr_export *x, uint32_t used)
{
	return (x->e.used & used) != 0;
}

/* Index of a process or thread (over all processes) by name, -1 none. */
int mmr_export_proc(const struct mmr_case *c, const char *name);
int mmr_export_thread(const struct mmr_case *c, const char *name,
		      struct mmr_proc **proc);
/* The plain process of a simple case. */
const struct mmr_proc *mmr_export_first_plain(const struct mmr_case *c);
/* True when thread t is run by a plain process from its start. */
bool mmr_export_is_plain(const struct mmr_proc *p, const struct mmr_thread *t);
/* How many threads a process starts with. */
int mmr_export_plain_threads(const struct mmr_proc *p);

/* Names that an argument of this type has in the case, each once: calls fn. */
void mmr_export_names(struct mmr_export *x, enum mmr_arg_type type,
		      void (*fn)(struct mmr_export *x, const char *name));
/* Names of threads (DONE) or processes (EXITED) that loops wait for. */
bool mmr_export_is_awaited(const struct mmr_case *c, enum mmr_until until,
			   const char *name);
/* True when a loop waits for the exit of any process. */
bool mmr_export_awaits_exit(const struct mmr_case *c);
/* True when thread t names the rendezvous; parties: plain threads that do. */
bool mmr_export_meets(const struct mmr_block *b, const char *sync);
int mmr_export_parties(const struct mmr_case *c, const char *sync);
/* True when a time in it is drawn. */
bool mmr_export_draws(const struct mmr_block *b);
/* Where the counters of done threads are: "shared->", or "" where a round is
 * one process and each round a new one. */
const char *mmr_export_where(const struct mmr_export *x);

/* True when the machine would skip the statement: nothing makes a ref that it
 * needs. */
bool mmr_export_is_skipped(struct mmr_export *x, const struct mmr_stmt *s);
/* export_round.c: true when a thread comes to its end whatever happens, as
 * long as the kernel does its part; how often a round comes by a rendezvous
 * in this block, -1: that depends. */
bool mmr_export_ends(struct mmr_export *x, const struct mmr_proc *p,
		     const struct mmr_thread *t);
int64_t mmr_export_times(const struct mmr_block *b, const char *sync);
/* export_plan.c: sets whole, counts, leaves, groups, bound_ns and what of
 * x->e follows from them. */
void mmr_export_plan(struct mmr_export *x);
/* Bytes of a size, pages at most as large as they come; INT64_MAX: more. */
int64_t mmr_export_bytes(const struct mmr_value *v);
/* export_body.c: threads and processes, into x->e.out.  0 or -ENOTSUP. */
int mmr_export_bodies(struct mmr_export *x);
/* export_refs.c: the refs as variables; whether one of them is a process. */
void mmr_export_refs(struct mmr_export *x);
bool mmr_export_folds(struct mmr_export *x);
/* export_head.c: comment, headers, constants. */
void mmr_export_head(struct mmr_export *x);
/* Text inside a comment, which it must not end. */
void mmr_export_comment(struct mmr_export *x, const char *s);
/* Runs of the case that show its symptom with 95 %, 0: not known. */
int64_t mmr_export_runs(const struct mmr_case *c);
/* Rounds of one execution of the file, and seconds that they may take. */
int64_t mmr_export_rounds(const struct mmr_export *x);
int64_t mmr_export_runtime(const struct mmr_export *x);
/* True when the file itself looks at how long it runs. */
bool mmr_export_has_budget(const struct mmr_export *x);
/* export_safe.c: sets x->may_miss and x->e.own_stacks. */
void mmr_export_find_misses(struct mmr_export *x);
/* Bytes of the largest mappings of the case, added up; 0 when small. */
int64_t mmr_export_mapped(const struct mmr_case *c);

/* export_help.c: struct shared and what the statements call. */
void mmr_export_shared(struct mmr_export *x);
void mmr_export_helpers(struct mmr_export *x);
/* export_proc.c */
void mmr_export_proc_types(struct mmr_export *x);
void mmr_export_proc_helpers(struct mmr_export *x);
bool mmr_export_has_start(const struct mmr_export *x);
/* Marks what the case starts: thread_used, proc_used, simple, spawns. */
void mmr_export_mark(struct mmr_export *x);
/* True when watch() takes an array of processes. */
bool mmr_export_has_array(const struct mmr_export *x);
/* Whether a round may end with everybody asleep, and whether it may leave
 * processes behind. */
bool mmr_export_may_rest(const struct mmr_export *x);
bool mmr_export_may_leave(const struct mmr_export *x);

/* export_watch.c: the function watch(), where one is needed; else the loop in
 * main() that waits for a round's one process. */
void mmr_export_watch(struct mmr_export *x);
bool mmr_export_has_watch(const struct mmr_export *x);
void mmr_export_wait(struct mmr_export *x);
/* A round is wrong: says so at this indentation, and ends the test.  what: a
 * text, NULL: the variable wrong. */
void mmr_export_fail(struct mmr_export *x, int indent, const char *what);
/* The same in the loop of rounds, when `condition` holds. */
void mmr_export_fail_if(struct mmr_export *x, const char *condition,
			const char *what);
/* export_need.c: what stands before main(), the tests in it, what is noted
 * before the rounds and looked at after them. */
bool mmr_export_reads_fields(const struct mmr_export *x);
bool mmr_export_has_need(const struct mmr_export *x, enum mmr_need_kind kind);
void mmr_export_need_headers(struct mmr_export *x);
void mmr_export_need_helpers(struct mmr_export *x);
void mmr_export_needs(struct mmr_export *x);
void mmr_export_before(struct mmr_export *x);
void mmr_export_after(struct mmr_export *x);
/* The field of /proc/meminfo that has to come back, NULL: none. */
const char *mmr_export_restored(const struct mmr_export *x);
bool mmr_export_is_quiet(const struct mmr_export *x);
/* What it does may last until the machine boots anew. */
bool mmr_export_is_lasting(const struct mmr_export *x);

/* export_main.c: what is found out once; what a round needs at the top of its
 * function; what every round does, in a loop over i; main(). */
void mmr_export_setup(struct mmr_export *x);
void mmr_export_put_locals(struct mmr_export *x);
void mmr_export_put_round(struct mmr_export *x);
void mmr_export_main(struct mmr_export *x);
/* export_ltp.c */
void mmr_export_ltp(struct mmr_export *x);
void mmr_export_ltp_line(const struct mmr_case *c, const char *name, FILE *out);

#endif
