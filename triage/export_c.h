/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the C exporter, for each other only:
 *   export_c.c     the order of the file, what is reached, the refs
 *   export_head.c  the comment on top, headers, constants
 *   export_body.c  statements, loops, threads, processes
 *   export_safe.c  whether an access may meet no memory
 *   export_help.c  the helpers that the statements call
 *   export_main.c  needs, watchdog and main()
 */
#ifndef MMR_TRIAGE_EXPORT_C_H
#define MMR_TRIAGE_EXPORT_C_H

#include "../ops/emit.h"

struct mmr_export {
	struct mmr_emit e;
	const struct mmr_case *c;
	FILE *out; /* where e.out goes in the end */
	struct mmr_diag *diag;
	/* One plain process, no spawns but idle threads: the watchdog knows
	 * all threads beforehand and waits for one process. */
	bool simple;
	bool may_miss; /* an access may meet no memory */
	bool unmended; /* a thread has segv=return */
	bool pins;     /* a thread has cpu= */
	bool waits;    /* a round may come to rest with nobody to blame */
	bool fields;   /* reads fields of /proc files */
	int64_t limit_ms, budget_s;
	int64_t sync_lead_ns; /* longest skew before the meeting */
	bool thread_used[MMR_CASE_MAX_THREADS]; /* by number over the case */
	bool proc_used[MMR_CASE_MAX_PROCS];
	int nplain; /* plain processes, copies counted */
};

/* Index of a process or thread (over all processes) by name, -1 none. */
int mmr_export_proc(const struct mmr_case *c, const char *name);
int mmr_export_thread(const struct mmr_case *c, const char *name,
		      struct mmr_proc **proc);
/* The plain process of a simple case. */
const struct mmr_proc *mmr_export_first_plain(const struct mmr_case *c);
/* True when thread t is run by a plain process from its start. */
bool mmr_export_is_plain(const struct mmr_proc *p, const struct mmr_thread *t);

/* Names that an argument of this type has in the case, each once: calls fn. */
void mmr_export_names(struct mmr_export *x, enum mmr_arg_type type,
		      void (*fn)(struct mmr_export *x, const char *name));
/* Names of threads (DONE) or processes (EXITED) that loops wait for. */
bool mmr_export_is_awaited(const struct mmr_case *c, enum mmr_until until,
			   const char *name);
/* True when thread t names the rendezvous; parties: plain threads that do. */
bool mmr_export_meets(const struct mmr_block *b, const char *sync);
int mmr_export_parties(const struct mmr_case *c, const char *sync);

/* True when the machine would skip the statement: nothing makes a ref that it
 * needs. */
bool mmr_export_is_skipped(struct mmr_export *x, const struct mmr_stmt *s);
/* export_body.c: threads and processes, into x->e.out.  0 or -ENOTSUP. */
int mmr_export_bodies(struct mmr_export *x);
/* The lines that start a process's threads, at the current indentation. */
void mmr_export_proc_body(struct mmr_export *x, const struct mmr_proc *p);
/* export_head.c: comment, headers, constants. */
void mmr_export_head(struct mmr_export *x);
/* export_safe.c: sets x->may_miss and x->e.own_stacks. */
void mmr_export_find_misses(struct mmr_export *x);
/* Bytes of the largest mappings of the case, added up; 0 when small. */
int64_t mmr_export_mapped(const struct mmr_case *c);

/* export_help.c: struct shared and what the statements call. */
void mmr_export_shared(struct mmr_export *x);
void mmr_export_helpers(struct mmr_export *x);
/* Whether a round may end with everybody asleep, and whether it may leave
 * processes behind. */
bool mmr_export_may_rest(const struct mmr_export *x);
bool mmr_export_may_leave(const struct mmr_export *x);
/* export_main.c: headers that needs and main() take, then both. */
void mmr_export_main_headers(struct mmr_export *x);
void mmr_export_main(struct mmr_export *x);

#endif
