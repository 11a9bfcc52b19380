/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The case: its model, its text form (mmrace-case 1), and edits on it.
 *
 * A case owns all that it points to: strings and arrays live in it and go
 * with mmr_case_free().  Text is the truth: parse(print(c)) is c, and
 * print(parse(t)) is the one canonical form of t.
 */
#ifndef MMR_OPS_CASE_H
#define MMR_OPS_CASE_H

#include <stdint.h>
#include <stdio.h>

#include "op.h"

/* Limits: beyond them is an input error with its place. */
#define MMR_CASE_MAX_BYTES (1u << 20) /* of text */
#define MMR_CASE_MAX_PROCS 32
#define MMR_CASE_MAX_THREADS 256 /* over all processes */
#define MMR_CASE_MAX_COPIES 1000
#define MMR_CASE_MAX_STMTS 4096
#define MMR_CASE_MAX_DEPTH 4 /* of loops */
#define MMR_CASE_MAX_REFS 256
#define MMR_CASE_MAX_NAMES 64 /* of each of latch, sync, futex */
#define MMR_CASE_MAX_LOOP 1000000000
#define MMR_CASE_MAX_ROUNDS 1000000000
#define MMR_CASE_MAX_ORDER 7 /* depth */
#define MMR_CASE_MAX_ACCEPT 8
#define MMR_CASE_NAME_LEN 32 /* with the closing NUL */

enum mmr_unit { MMR_UNIT_BYTE, MMR_UNIT_PAGE, MMR_UNIT_HUGE };

/* One argument's value; which fields count follows from the argspec. */
struct mmr_value {
	bool set; /* given in the text (or not equal to the default) */
	bool is_auto; /* TIME: the word auto */
	bool is_log; /* TIME: the word log */
	enum mmr_unit unit; /* SIZE: lo counts bytes, pages, huge pages */
	int64_t lo; /* SIZE count, INT, ENUM and FLAGS value, TIME ns */
	int64_t hi; /* TIME: upper end of a range, == lo for one time */
	const char *name; /* REF, LATCH, SYNC, FUTEX, THREAD, PROCESS */
};

/* A time that is drawn anew: a range, auto or log. */
static inline bool mmr_value_is_drawn(const struct mmr_value *v)
{
	return v->is_auto || v->is_log || v->lo != v->hi;
}

enum mmr_stmt_kind { MMR_STMT_OP, MMR_STMT_LOOP };

enum mmr_until {
	MMR_UNTIL_COUNT, /* loop N */
	MMR_UNTIL_DONE, /* loop until=done(T) */
	MMR_UNTIL_EXITED, /* loop until=exited(P) */
	MMR_UNTIL_TIME, /* loop for=TIME */
	MMR_UNTIL_STOP, /* loop: until the round's storm ends */
};

struct mmr_block {
	struct mmr_stmt **stmts;
	int n;
};

struct mmr_stmt {
	enum mmr_stmt_kind kind;
	int line, col; /* where it stood, 0 when made by a program */

	/* MMR_STMT_OP */
	const struct mmr_op *op;
	const char *ref; /* the ref that it assigns, NULL when none */
	struct mmr_value args[MMR_MAX_ARGS]; /* op->nargs of them */
	int naccept; /* results after ->: 0 for success, else an errno */
	int accept[MMR_CASE_MAX_ACCEPT];

	/* MMR_STMT_LOOP */
	enum mmr_until until;
	int64_t count; /* COUNT: turns; TIME: ns */
	const char *until_name; /* DONE: thread, EXITED: process */
	struct mmr_block body;
};

enum mmr_cpu_kind {
	MMR_CPU_ANY, /* unpinned: the default */
	MMR_CPU_NUMBER, /* the N-th CPU that this process may use, modulo */
	MMR_CPU_SAME, /* the CPU of thread cpu_thread */
	MMR_CPU_OTHER, /* another CPU than that of cpu_thread */
	MMR_CPU_SIBLING, /* another CPU of the same core, else as OTHER */
	MMR_CPU_FAR, /* a CPU of another NUMA node, else as OTHER */
};

enum mmr_segv {
	MMR_SEGV_SKIP, /* the touch ends, its result says EFAULT */
	MMR_SEGV_RETURN, /* segv=return: back to the same access, unmended */
};

struct mmr_thread {
	const char *name;
	bool is_template;
	enum mmr_cpu_kind cpu;
	int cpu_number;
	const char *cpu_thread;
	enum mmr_segv segv;
	struct mmr_block body;
	int line;
};

struct mmr_proc {
	const char *name;
	bool is_template;
	int copies; /* >= 1 */
	struct mmr_thread **threads;
	int nthreads;
	int line;
};

enum mmr_need_kind {
	MMR_NEED_CPUS, /* cpus>=N */
	MMR_NEED_NODES, /* nodes>=N (with memory) */
	MMR_NEED_HUGEPAGES, /* hugepages>=N (free, default size) */
	MMR_NEED_CAP, /* cap=CAP_SYS_NICE */
	MMR_NEED_NOCAP, /* nocap=CAP_SYS_NICE: dropped before the case runs */
	MMR_NEED_SYSCALL, /* syscall=process_mrelease */
	MMR_NEED_ARCH, /* arch=x86_64 */
	MMR_NEED_MEMORY, /* memory>=4G (available) */
	MMR_NEED_THP, /* thp: transparent huge pages not "never" */
	MMR_NEED_FEATURE, /* feature=madv_cold: finer than a system call */
	MMR_NEED_WRITES, /* writes=ksm_run: its statements write it */
	MMR_NEED_SWAP, /* swap>=64M: a swap area of its own */
	MMR_NEED_MEMCG, /* memcg: memory cgroups of its own */
	MMR_NEED_CORE, /* core: dumps go into a folder of its own */
	MMR_NEED_LAST = MMR_NEED_CORE,
};

struct mmr_need {
	enum mmr_need_kind kind;
	int64_t n;
	const char *name;
};

/* set NAME=VALUE: a kernel setting for the time of the case; only with
 * --allow-settings, journalled, restored (triage/settings.h). */
struct mmr_setting {
	const char *name; /* of setting.h */
	int64_t value; /* MODE: number of the mode */
};

enum mmr_expect_kind {
	MMR_EXPECT_PROGRESS, /* progress within=2s */
	MMR_EXPECT_CALL, /* call OP within=1s */
	MMR_EXPECT_EXIT, /* exit within=5s */
	MMR_EXPECT_RESTORED, /* restored HugePages_Free */
	MMR_EXPECT_CONTENT, /* content */
	MMR_EXPECT_QUIET, /* quiet: no kernel warning */
};

struct mmr_expect {
	enum mmr_expect_kind kind;
	int64_t within_ns;
	const char *name; /* CALL: op, RESTORED: field of /proc/meminfo */
};

/* origin: any of these, in this order; 0 or NULL when not given. */
struct mmr_origin {
	bool has_seed;
	uint64_t seed;
	int gen;
	const char *tool, *kernel, *arch, *profile;
	int cpus;
};

struct mmr_case {
	const char *title; /* NULL when none */
	struct mmr_origin origin;
	struct mmr_need *needs;
	int nneeds;
	struct mmr_setting *settings;
	int nsettings;
	int64_t rounds; /* default 1 */
	bool keep; /* rounds N keep */
	int64_t order; /* rounds N order=D: depth, 0: threads run freely */
	int64_t budget_ns; /* default 30 s, 0 never */
	struct mmr_expect *expects;
	int nexpects;
	int64_t seen_hits, seen_runs; /* 0/0: no seen line */
	const char *fixed_commit, *fixed_subject;
	struct mmr_proc **procs;
	int nprocs;
	struct mmr_pool *pool; /* memory of it all; private to case.c */
};

/* An error or a warning with its place. */
struct mmr_diag {
	int line, col;
	char text[200];
};

/*
 * Parses text (len bytes, need not end in NUL).  On success 0 and *out, which
 * the caller frees; otherwise -EINVAL (diag filled) or -ENOMEM.  warn, when
 * not NULL, is called for each warning (a ref that nothing assigns).
 * Any thread; no state outside its arguments; locale has no influence.
 */
int mmr_case_parse(const char *text, size_t len, struct mmr_case **out,
		   struct mmr_diag *diag,
		   void (*warn)(void *arg, const struct mmr_diag *),
		   void *arg) __attribute__((warn_unused_result));

/* Reads and parses a file ("-": standard input).  Also -errno of the read.
 * A NUL byte or invalid text is an input error with its place. */
int mmr_case_load(const char *path, struct mmr_case **out,
		  struct mmr_diag *diag,
		  void (*warn)(void *arg, const struct mmr_diag *), void *arg)
	__attribute__((warn_unused_result));

/* The canonical text, NUL-terminated, for the caller to free; NULL: no
 * memory. */
char *mmr_case_print(const struct mmr_case *c);
/* One statement's canonical text without indentation and newline (a loop:
 * its header line only), for reports, logs and draw tags. */
char *mmr_case_print_stmt(const struct mmr_stmt *s);
/* "within" forms, for other printers: 20us, 1500ms, 2s; 1p, 4K.
 * Write at most n bytes into buf, return buf. */
char *mmr_case_print_time(char *buf, size_t n, int64_t ns);
char *mmr_case_print_size(char *buf, size_t n, int64_t count,
			  enum mmr_unit unit);
/* Parse "20us", "1.5s" is an error (integers only); -EINVAL when not a
 * time.  Also used for command-line options. */
int mmr_case_parse_time(const char *s, int64_t *ns);
int mmr_case_parse_size(const char *s, int64_t *count, enum mmr_unit *unit);

struct mmr_case *mmr_case_new(void); /* empty, defaults set; NULL: memory */
struct mmr_case *mmr_case_clone(const struct mmr_case *c);
void mmr_case_free(struct mmr_case *c);

/* Building (generator, importer, mutator).  Strings are copied in.  NULL or
 * -ENOMEM when memory is out. */
const char *mmr_case_str(struct mmr_case *c, const char *s);
struct mmr_proc *mmr_case_add_proc(struct mmr_case *c, const char *name);
struct mmr_thread *mmr_case_add_thread(struct mmr_case *c,
				       struct mmr_proc *p, const char *name);
/* A statement with all arguments at their defaults, appended to b. */
struct mmr_stmt *mmr_case_add_op(struct mmr_case *c, struct mmr_block *b,
				 const struct mmr_op *op, const char *ref);
struct mmr_stmt *mmr_case_add_loop(struct mmr_case *c, struct mmr_block *b,
				   enum mmr_until until, int64_t count,
				   const char *name);
int mmr_case_add_need(struct mmr_case *c, enum mmr_need_kind kind, int64_t n,
		      const char *name);
int mmr_case_add_setting(struct mmr_case *c, const char *name, int64_t value);
/* e is copied, its name too. */
int mmr_case_add_expect(struct mmr_case *c, const struct mmr_expect *e);

/*
 * Statements are numbered 0.. in the order of the text (a loop before its
 * body); this number is the index in the compiled program's statistics too.
 */
int mmr_case_count(const struct mmr_case *c);
struct mmr_stmt *mmr_case_stmt(const struct mmr_case *c, int index);
/* Which process and thread statement index belongs to. */
struct mmr_thread *mmr_case_stmt_thread(const struct mmr_case *c, int index,
					struct mmr_proc **proc);
/* Removes statement index (a loop with its body). -ENOENT: no such one. */
int mmr_case_remove(struct mmr_case *c, int index);
/* Puts a loop's body in its place (loop -> once). -EINVAL: not a loop. */
int mmr_case_unwrap(struct mmr_case *c, int index);
/* Removes a thread or process and what names it (spawns, loops until, cpu=).
 * -ENOENT: no such one. */
int mmr_case_remove_thread(struct mmr_case *c, struct mmr_proc *p, int i);
int mmr_case_remove_proc(struct mmr_case *c, int i);

/* Checks what the parser checks (names exist, limits hold, a statement is
 * there) on a case made by a program.  0 or -EINVAL with diag->text. */
int mmr_case_check(const struct mmr_case *c, struct mmr_diag *diag);

/* The names of errno values as the case file writes them ("EINVAL"); 0 is
 * "0".  NULL / -1 when unknown. */
const char *mmr_errno_name(int err);
int mmr_errno_value(const char *name);

#endif
