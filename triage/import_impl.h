/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of the importer.  A front end (import_syz.c, import_strace.c)
 * reads lines into calls and says which thread makes them; import_call.c and
 * import_op.c turn a call into nodes; import_fold.c folds what repeats into
 * loops; import_out.c makes the case of it all and writes it.
 *
 * All memory is the import's own and goes with it.  One thread.
 */
#ifndef MMR_TRIAGE_IMPORT_IMPL_H
#define MMR_TRIAGE_IMPORT_IMPL_H

#include <stdbool.h>

#include "import.h"

#define MMR_IMP_ARGS 12
#define MMR_IMP_STMTS 3500   /* room is left below the limit of a case */
#define MMR_IMP_PROCS 31     /* of 32 */
#define MMR_IMP_THREADS 250  /* of 256 */
#define MMR_IMP_LATCHES 60   /* of 64 */
#define MMR_IMP_COMMENTS 300 /* lines kept as comments */

/* A piece of the text. */
struct mmr_span {
	const char *s;
	int len;
};

struct mmr_imp_call {
	int line;
	struct mmr_span text;	       /* for comments */
	struct mmr_span name, variant; /* ioctl, UFFDIO_API */
	struct mmr_span arg[MMR_IMP_ARGS];
	int nargs;
	struct mmr_span var; /* syz: the resource that it makes */
	bool returned;	     /* ret and err are known */
	int64_t ret;
	int err;
	int64_t start_ns, end_ns; /* -1: not known */
};

/* Kinds of refs, each with names of its own, as a ref holds one kind. */
enum mmr_imp_kind {
	MMR_IMP_MAP,
	MMR_IMP_THREAD,
	MMR_IMP_PROCESS,
	MMR_IMP_PIDFD,
	MMR_IMP_FILE,
	MMR_IMP_UFFD,
	MMR_IMP_KINDS
};
#define MMR_IMP_REFS 240 /* names in all, of 256 that a case may have */

struct mmr_imp_comment {
	struct mmr_imp_comment *next;
	char text[200];
};

struct mmr_imp_nodes {
	struct mmr_imp_node **v;
	int n, cap;
};

struct mmr_imp_node {
	const struct mmr_op *op; /* NULL: a loop */
	const char *ref;
	struct mmr_value arg[MMR_MAX_ARGS];
	int naccept, accept[MMR_CASE_MAX_ACCEPT];
	int64_t delay_lo, delay_hi; /* before it, ns; 0: none */
	uint64_t hash;		    /* of all but delay and accept */
	int64_t count;		    /* of a loop */
	int depth;		    /* of loops in it, 0 for an op */
	struct mmr_imp_nodes body;
	struct mmr_imp_comment *comments;
	struct mmr_imp_node *next_spare;
};

struct mmr_imp_thread {
	const char *name;
	bool is_template;
	struct mmr_imp_proc *proc;
	struct mmr_imp_nodes nodes;
	struct mmr_imp_comment *comments; /* for what comes next */
	int64_t last_ns; /* end of the last call that was mapped, -1 */
	int64_t key;	 /* strace: the pid */
	int no;		 /* among all threads */
	uint64_t born;	 /* im->seq when it was added */
	bool ended;
	struct mmr_imp_node *spawn;    /* the statement that starts it, */
	struct mmr_imp_nodes *spawner; /* and the body that this is in */
	struct mmr_imp_thread *next;   /* in the process */
};

struct mmr_imp_map {
	bool used, live;
	uint64_t start, len, gone;
	uint64_t seq; /* the newest one counts where two overlap */
	const struct mmr_imp_thread *maker;
	int latch;	     /* opened once it is there, -1 none */
	uint32_t seen_by[8]; /* bits: threads that need not wait for it */
};

struct mmr_imp_obj { /* what a resource or a number stands for */
	char key[24];
	enum mmr_imp_kind kind;
	int ref; /* its number, -1: it has no name */
};

struct mmr_imp_proc {
	const char *name;
	bool is_template;
	int copies;
	int nthreads;
	struct mmr_imp_thread *threads, *last;
	struct mmr_imp_map map[MMR_IMP_REFS];
	struct mmr_imp_thread *last_caller; /* untimed: of the last call */
	int unnamed; /* mappings for which no name was left */
	bool taken[MMR_IMP_KINDS][MMR_IMP_REFS];
	struct mmr_imp_obj obj[MMR_IMP_REFS];
	int nobjs;
	struct mmr_imp_node *spawn; /* of a template, as in a thread */
	struct mmr_imp_nodes *spawner;
	/* The place of address a in the arena is a - base; it is chosen with
	 * the first mapping that needs one. */
	bool has_arena;
	uint64_t arena_base;
	struct mmr_imp_proc *next;
};

struct mmr_imp {
	const struct mmr_import_opts *o;
	struct mmr_import_result *res;
	struct mmr_imp_pool *pool;
	bool failed; /* out of memory: first of all, stop */
	struct mmr_imp_proc *procs, *last_proc;
	int nprocs, nthreads, nstmts, nlatches, ncomments;
	struct mmr_imp_node *spare; /* what folding left over */
	const char *ref_names[MMR_IMP_KINDS][MMR_IMP_REFS];
	int high[MMR_IMP_KINDS]; /* names used of each kind, in any process */
	uint64_t seq;
	int64_t rounds, budget_ns;
	bool untimed; /* strace: the order of calls is all that is known */
	/* syz: its data area is mapped on first use, by the thread that all
	 * begins with. */
	struct mmr_imp_thread *first;
	struct mmr_imp_node *data; /* put in front at the end */
	/* strace: places that later mappings want to be at. */
	uint64_t (*fixed)[2];
	int nfixed;
	void *front; /* the front end's own */
	int serial;  /* of names */
	struct mmr_imp_const *consts;
	int nconsts;
};

/* What became of a call. */
enum mmr_imp_did {
	MMR_IMP_MAPPED,
	MMR_IMP_IGNORED,  /* it says nothing of memory */
	MMR_IMP_UNMAPPED, /* why says it */
};

/* import.c: memory, notes, counts. */
void *mmr_imp_alloc(struct mmr_imp *im, size_t n); /* zeroed; NULL: failed */
const char *mmr_imp_str(struct mmr_imp *im, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A line of the source stays as a comment before what t does next. */
void mmr_imp_comment(struct mmr_imp *im, struct mmr_imp_thread *t, int line,
		     struct mmr_span text, const char *why);
void mmr_imp_missed(struct mmr_imp *im, int line, struct mmr_span call,
		    const char *why);
/* Counts a call; what could not be mapped becomes a comment. */
void mmr_imp_count(struct mmr_imp *im, struct mmr_imp_thread *t,
		   const struct mmr_imp_call *c, enum mmr_imp_did did,
		   const char *why);
void mmr_imp_cut(struct mmr_imp *im, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A process, the main one first; a thread in it.  NULL: no memory. */
struct mmr_imp_proc *mmr_imp_add_proc(struct mmr_imp *im, const char *name);
struct mmr_imp_thread *mmr_imp_add_thread(struct mmr_imp *im,
					  struct mmr_imp_proc *p,
					  const char *name);

/* import_value.c: pieces of text. */
bool mmr_span_is(struct mmr_span s, const char *text);
bool mmr_span_begins(struct mmr_span s, const char *text);
struct mmr_span mmr_span_trim(struct mmr_span s);
/* Splits at commas outside brackets and strings.  How many; -1: unbalanced. */
int mmr_span_split(struct mmr_span s, struct mmr_span *out, int max);
/* The bracket that closes the one before s[i]; -1: there is none. */
int mmr_span_close(struct mmr_span s, int i);
/* What stands between the brackets of {..} or [..]; NULL s when none. */
struct mmr_span mmr_span_inner(struct mmr_span s);
/* What &(..)=x or name=x or @u=x hands over: x.  Else s itself. */
struct mmr_span mmr_span_value(struct mmr_span s);
/* Numbers and pointers inside, in order, brackets gone.  How many. */
int mmr_span_leaves(struct mmr_span s, struct mmr_span *out, int max);
/* A number, C constants joined by |, or a syz pointer's address. */
bool mmr_imp_integer(struct mmr_imp *im, struct mmr_span s, int64_t *v);
/* An address; syz: as if its data area were at 0x20000000. */
bool mmr_imp_address(struct mmr_imp *im, struct mmr_span s, uint64_t *a);
int mmr_imp_consts(struct mmr_imp *im); /* once; 0 or -ENOMEM */

/* import_map.c: address spaces and refs of a process. */
const char *mmr_imp_ref_name(struct mmr_imp *im, enum mmr_imp_kind k, int n);
/* The lowest free number, -1: all are in use, or there are too many names. */
int mmr_imp_ref_take(struct mmr_imp *im, struct mmr_imp_proc *p,
		     enum mmr_imp_kind k);
void mmr_imp_map_add(struct mmr_imp *im, struct mmr_imp_thread *t, int ref,
		     uint64_t start, uint64_t len);
void mmr_imp_map_gone(struct mmr_imp_proc *p, uint64_t start, uint64_t len);
struct mmr_imp_part {
	int ref;
	uint64_t off, len;
	bool to_end; /* len is all that there is from off on */
};
/* The mappings that lie in start..start+len, at most max parts. */
int mmr_imp_map_find(struct mmr_imp *im, struct mmr_imp_thread *t,
		     uint64_t start, uint64_t len, struct mmr_imp_part *out,
		     int max);
void mmr_imp_map_clear(struct mmr_imp_proc *p);
void mmr_imp_map_inherit(struct mmr_imp *im, struct mmr_imp_proc *child,
			 const struct mmr_imp_proc *parent);
/* The place of an address in the arena.  False: it does not reach there. */
bool mmr_imp_map_at(struct mmr_imp_proc *p, uint64_t a, uint64_t len,
		    int64_t *at);
/* True when a mapping there has to say where it is. */
bool mmr_imp_map_placed(const struct mmr_imp *im, uint64_t start, uint64_t len);
struct mmr_imp_obj *mmr_imp_obj_find(struct mmr_imp_proc *p,
				     struct mmr_span key);
/* Forgets an older one of that key. */
struct mmr_imp_obj *mmr_imp_obj_add(struct mmr_imp *im, struct mmr_imp_proc *p,
				    struct mmr_span key, enum mmr_imp_kind k,
				    int ref);
void mmr_imp_obj_drop(struct mmr_imp_proc *p, struct mmr_span key);
/* The key of a syz resource, a descriptor (3</lib/x>), a pid. */
struct mmr_span mmr_imp_key(struct mmr_imp *im, struct mmr_span arg, char type,
			    char buf[24]);

/* import_op.c: descriptors. */
struct mmr_imp_node *mmr_imp_node(struct mmr_imp *im, const struct mmr_op *op);
/* Sets an argument by its name; false: the value is none of its. */
bool mmr_imp_set(struct mmr_imp *im, struct mmr_imp_node *n, const char *name,
		 int64_t v);
bool mmr_imp_set_name(struct mmr_imp_node *n, const char *name,
		      const char *value);
void mmr_imp_set_part(struct mmr_imp *im, struct mmr_imp_node *n,
		      const struct mmr_imp_part *part);
/* Appends a node to a thread, with the delay since its last call. */
void mmr_imp_emit(struct mmr_imp *im, struct mmr_imp_thread *t,
		  struct mmr_imp_node *n, const struct mmr_imp_call *c);
/* Any operation whose descriptor is this system call. */
enum mmr_imp_did mmr_imp_by_descriptor(struct mmr_imp *im,
				       struct mmr_imp_thread *t,
				       const struct mmr_imp_call *c, char *why,
				       size_t n);

/* import_call.c: calls that need more than a descriptor, then those. */
enum mmr_imp_did mmr_imp_call(struct mmr_imp *im, struct mmr_imp_thread *t,
			      const struct mmr_imp_call *c, char *why,
			      size_t n);
/* The wait that t needs before it uses a mapping of another thread. */
void mmr_imp_order(struct mmr_imp *im, struct mmr_imp_thread *t, int ref);
/* t goes on only when the thread of its process's last call has done that. */
void mmr_imp_follow(struct mmr_imp *im, struct mmr_imp_thread *t);

/* import_fold.c */
void mmr_imp_append(struct mmr_imp *im, struct mmr_imp_nodes *v,
		    struct mmr_imp_node *n);
/* The same in front of the waits at the end, in which a thread may be still:
 * what somebody waits for has to come before them. */
void mmr_imp_insert(struct mmr_imp *im, struct mmr_imp_nodes *v,
		    struct mmr_imp_node *n);

/* A template that has ended: if an earlier one of its kind does the same, that
 * one is started in its place, and it goes. */
void mmr_imp_merge_thread(struct mmr_imp *im, struct mmr_imp_thread *t);
void mmr_imp_merge_proc(struct mmr_imp *im, struct mmr_imp_proc *p);

/* import_out.c: res->text and its counts.  0, -EINVAL (diag), -ENOMEM. */
int mmr_imp_write(struct mmr_imp *im, struct mmr_diag *diag);

/* syz: maps its data area if a is in it and it is not mapped yet. */
bool mmr_imp_data(struct mmr_imp *im, uint64_t a);
/* strace: the pid that a call returned is a thread or process of its own from
 * now on; its template, NULL when there are too many. */
struct mmr_imp_thread *mmr_imp_new_task(struct mmr_imp *im,
					struct mmr_imp_thread *parent,
					int64_t pid, bool is_thread);

/* The front ends. */
int mmr_imp_syz(struct mmr_imp *im, const char *text, size_t len);
int mmr_imp_strace(struct mmr_imp *im, const char *text, size_t len);

#endif
