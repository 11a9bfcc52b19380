/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an op's exported C goes.  Engine side; triage/export_c.c drives it.
 *
 * Names in exported C: a mapping ref m0 is `m0` (struct map { char *at; size_t
 * len; } or char *), a process ref `p0` (struct proc { pid_t pid; int fd; } or
 * pid_t, then with the pidfd p0_fd; with copies struct procs), a thread ref
 * `t0`, a file, pidfd or userfaultfd ref `f0` (int).  A name that C could take
 * for its own gets a suffix.  `page` and `huge` are variables with the sizes
 * of this machine's pages.
 *
 * The same statements go into two kinds of files.  Where a round is short and
 * every wait in it is served, its watchdog asks no more than that it ends, and
 * a statement is the bare call.  Else it watches each thread: statements stand
 * in STEP(), and loops test shared->stop (`steps` below).
 */
#ifndef MMR_OPS_EMIT_H
#define MMR_OPS_EMIT_H

#include <stdio.h>

#include "case.h"

/* What the ops used, so that the file holds just the helpers for that. */
enum mmr_emit_used {
	MMR_USED_WRITE = 1 << 0,	  /* touch_write() */
	MMR_USED_READ = 1 << 1,		  /* touch_read() */
	MMR_USED_RANDOM = 1 << 2,	  /* touch_random() */
	MMR_USED_RECOVER = 1 << 3,	  /* touches that may meet no memory */
	MMR_USED_LATCH = 1 << 4,	  /* latch_signal() */
	MMR_USED_WAIT = 1 << 5,		  /* latch_wait() */
	MMR_USED_SYNC = 1 << 6,		  /* meet(), leave() */
	MMR_USED_DELAY = 1 << 7,	  /* delay_ns() */
	MMR_USED_DRAW = 1 << 8,		  /* draw() */
	MMR_USED_SPAWN = 1 << 9,	  /* spawn() and struct proc */
	MMR_USED_FRESH = 1 << 10,	  /* spawn_fresh() */
	MMR_USED_KILL = 1 << 11,	  /* send_signal() */
	MMR_USED_REAP = 1 << 12,	  /* wait_gone() */
	MMR_USED_PIDFD = 1 << 13,	  /* a pidfd in struct proc */
	MMR_USED_THREAD = 1 << 14,	  /* thread_start(), thread_end() */
	MMR_USED_UFFD = 1 << 15,	  /* uffd_open() */
	MMR_USED_UFFD_REGISTER = 1 << 16, /* uffd_register() */
	MMR_USED_MAP = 1 << 17,		  /* struct map */
	MMR_USED_KEEP = 1 << 18,	  /* keep() */
	MMR_USED_PART = 1 << 19,	  /* part() */
	MMR_USED_ARENA = 1 << 20,	  /* ARENA */
	MMR_USED_PAGE = 1 << 21,	  /* the variable page */
	MMR_USED_HUGE = 1 << 22,	  /* the variable huge */
	MMR_USED_IDLE_THREAD = 1 << 23,	  /* thread_idle() */
	MMR_USED_IDLE_PROC = 1 << 24,	  /* proc_idle() */
	MMR_USED_PAUSE = 1 << 25,	  /* pause() */
	MMR_USED_UNUSED = 1 << 26,	  /* a spawned process without a ref */
	MMR_USED_START = 1 << 28,	  /* start() by a statement */
	MMR_USED_SPAWN_ANY = 1 << 29,	  /* spawn() itself */
};

#define MMR_EMIT_HEADERS 32
#define MMR_EMIT_HELPERS 32

struct mmr_emit {
	FILE *out;
	int indent; /* tabs */
	const struct mmr_case *c;
	const struct mmr_proc *proc; /* where the statement stands */
	const struct mmr_thread *thread;
	uint32_t used;	    /* enum mmr_emit_used */
	uint64_t constants; /* bit i: i-th of MMR_KERNEL_CONSTANTS */
	const char *headers[MMR_EMIT_HEADERS]; /* "sys/mman.h", no doubles */
	int nheaders;
	const char *helpers[MMR_EMIT_HELPERS]; /* C text, no doubles */
	int nhelpers;
	bool own_stacks; /* start threads by thread_create(): their stacks must
			  * not lie where mappings come and go */
	bool sets;	 /* a template has copies: process refs are sets */
	bool steps;	 /* each thread is watched */
	bool seeds;	 /* a thread that draws has a seed of its own, instead
			  * of draw() */
	bool lone_draw;	 /* the case draws one time, from many: what the clock
			  * says is as good */
	bool inlines;	 /* few accesses: each a loop in its place */
	const char *count; /* behind the third part of such a loop */
	bool plain_maps;   /* a mapping ref has one length, and is a char * */
	bool polls;	   /* a rendezvous follows every wait for a latch, so
			    * that the moment of waking does not matter */
	bool groups;	  /* processes end as a group: their parents may be gone
			   * before them.  Else start() starts one that goes
			   * with its parent */
	bool one_meet;	  /* one rendezvous, once a round: meet(skew) */
	bool meet_waits;  /* and it waits for the latch before it as well */
	bool plain_procs; /* a process ref is a pid_t, and its pidfd an int */
	bool calls_page;  /* one statement alone wants to know the page size */
};

/* One line at the current indentation, newline added; broken behind a comma
 * or an operator where it is longer than 80 columns. */
void mmr_emit_line(struct mmr_emit *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* An expression as a statement that may be the culprit of a stall: STEP(...),
 * so that the watchdog times it, or just itself. */
void mmr_emit_step(struct mmr_emit *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The C expression of argument i of s (its default when left out), into buf;
 * returns buf. */
char *mmr_emit_arg(struct mmr_emit *e, const struct mmr_stmt *s, int i,
		   char *buf, size_t n);
/* From a call descriptor: the statement as one call. */
void mmr_emit_call(struct mmr_emit *e, const struct mmr_stmt *s);

/* The mapping argument i with its off and len arguments: "m0" or
 * "part(m0, page, page)".  Returns buf. */
char *mmr_emit_part(struct mmr_emit *e, const struct mmr_stmt *s, int map,
		    char *buf, size_t n);
/*
 * A process argument: "p0", or with sets a `for` line over its members is
 * printed first, one deeper, and it is "p0.p[i]"; mmr_emit_each_end() goes
 * back.
 */
char *mmr_emit_each(struct mmr_emit *e, const struct mmr_stmt *s, int i,
		    char *buf, size_t n);
void mmr_emit_each_end(struct mmr_emit *e);

/* What follows the name of a process where its pid or its pidfd is meant. */
const char *mmr_emit_pid(const struct mmr_emit *e);
const char *mmr_emit_fd(const struct mmr_emit *e);

/* The C variable of a ref of this kind (enum mmr_ref_kind). */
char *mmr_emit_var(struct mmr_emit *e, const char *ref, uint32_t kind,
		   char *buf, size_t n);
/* Which kind ref argument i has: of those that it takes, one that a statement
 * of the case makes under its name.  0: none does, or it was left out. */
uint32_t mmr_emit_ref_kind(const struct mmr_emit *e, const struct mmr_stmt *s,
			   int i);
/* The kinds (enum mmr_ref_kind) that statements make under this name, and the
 * first of them. */
uint32_t mmr_emit_kinds_made(const struct mmr_emit *e, const char *ref);
const struct mmr_stmt *mmr_emit_maker(const struct mmr_emit *e,
				      const char *ref);
/* Calls fn for every op statement of the case until it returns non-zero, and
 * returns that. */
typedef int mmr_emit_stmt_fn(void *arg, const struct mmr_stmt *s,
			     const struct mmr_thread *t);
int mmr_emit_each_stmt(const struct mmr_case *c, mmr_emit_stmt_fn *fn,
		       void *arg);
/* True when an mmap that makes it may be refused on a healthy machine: it is
 * large, or of huge pages. */
bool mmr_emit_may_fail(const struct mmr_emit *e, const char *ref);
/* How many statements make it. */
int mmr_emit_count_made(const struct mmr_emit *e, const char *ref);
/* True when just one thread of the case names this ref. */
bool mmr_emit_is_private(const struct mmr_emit *e, const char *ref);
/* True when every spawn of a thread ref starts an idle thread and its join
 * follows at once: both are one line then, and the ref is a pthread_t. */
bool mmr_emit_is_joined(const struct mmr_emit *e, const char *ref);
/* Address and length of the mapping argument i with its off and len: m0.at and
 * m0.len, or what they are written as here.  Return buf. */
char *mmr_emit_at(struct mmr_emit *e, const struct mmr_stmt *s, int map,
		  char *buf, size_t n);
char *mmr_emit_len(struct mmr_emit *e, const struct mmr_stmt *s, int map,
		   char *buf, size_t n);
/* A time of [lo, hi] ns that is drawn anew each time, as an expression. */
char *mmr_emit_draw(struct mmr_emit *e, long long lo, long long hi, char *buf,
		    size_t n);
/* True when an earlier statement of the same thread, one that it cannot have
 * passed by, made the ref: it is set here. */
bool mmr_emit_follows(const struct mmr_emit *e, const struct mmr_stmt *s,
		      const char *ref);
/* The file needs this header. */
void mmr_emit_header(struct mmr_emit *e, const char *header);
/* The file needs this function, which an op has as C text of its own: it
 * stands behind the types and the helpers of MMR_USED_*. */
void mmr_emit_helper(struct mmr_emit *e, const char *text);
/* The file uses this C constant; it may need a definition (kernel.h). */
void mmr_emit_constant(struct mmr_emit *e, const char *name);

#endif
