/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The descriptor of an operation: everything that the parser, printer, help,
 * man page, generator, minimiser, exporters and mmrace-child need to know of
 * it.  One descriptor an op, in ops/op_<family>.c; one line in ops/ops.def.
 *
 * op_<family>.c is compiled twice: for the engine, and, with MMR_CHILD
 * defined and freestanding, for mmrace-child.  Descriptors are constant data
 * and the same in both; `run` exists only in the child, `emit` only in the
 * engine (MMR_RUN and MMR_EMIT below give NULL in the other).
 */
#ifndef MMR_OPS_OP_H
#define MMR_OPS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MMR_MAX_ARGS 8

enum mmr_op_id {
#define MMR_OP(id, name, family) MMR_OP_##name = (id),
#include "ops.def"
#undef MMR_OP
	MMR_OP_LIMIT = 256 /* ids are below this */
};

/* What a ref can hold.  Bits, so that an argument can take several. */
enum mmr_ref_kind {
	MMR_REF_NONE = 0,
	MMR_REF_MAPPING = 1 << 0, /* address and length */
	MMR_REF_THREAD = 1 << 1, /* a spawned thread */
	MMR_REF_PROCESS = 1 << 2, /* a spawned process, or a set of them */
	MMR_REF_PIDFD = 1 << 3,
	MMR_REF_FILE = 1 << 4, /* a file descriptor to memory or a file */
	MMR_REF_UFFD = 1 << 5,
	MMR_REF_PROC = 1 << 6, /* an open file of /proc */
};

enum mmr_arg_type {
	MMR_ARG_REF, /* a ref's name; kinds says which */
	MMR_ARG_SIZE, /* bytes: 4096 1p 2h 4K 16M 1G */
	MMR_ARG_INT, /* a plain integer */
	MMR_ARG_TIME, /* one time or a range A..B: 20us, -20us..200us */
	MMR_ARG_ENUM, /* one name out of `names` */
	MMR_ARG_FLAGS, /* names joined by |, 0 for none */
	MMR_ARG_LATCH, /* free name of a latch (signal, wait) */
	MMR_ARG_SYNC, /* free name of a rendezvous */
	MMR_ARG_FUTEX, /* free name of a futex word */
	MMR_ARG_THREAD, /* name of a thread template, or idle */
	MMR_ARG_PROCESS, /* name of a process template, or idle */
	MMR_ARG_WORD, /* the bare word itself, there or not (fresh) */
};

enum mmr_arg_flags {
	MMR_ARG_POS = 1 << 0, /* positional: no NAME= in front */
	MMR_ARG_OPT = 1 << 1, /* may be left out: `def` holds */
	MMR_ARG_SIGNED = 1 << 2, /* TIME may be negative */
	MMR_ARG_AUTO = 1 << 3, /* TIME takes the word auto */
	MMR_ARG_LOG = 1 << 4, /* TIME takes the word log */
};

struct mmr_name {
	const char *name; /* as in the case file, lower case; NULL ends */
	const char *c; /* the C constant, for export: "MAP_SHARED" */
	int64_t value;
};

/* What a name needs of the running kernel, words as in a needs line:
 * "feature=madv_cold". */
struct mmr_name_need {
	int64_t value;
	const char *needs; /* NULL ends */
};

/* The name of a value, "?" when it has none. */
static inline const char *mmr_name_of(const struct mmr_name *names,
				      int64_t value)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->name;
	return "?";
}

struct mmr_argspec {
	const char *name;
	const char *help; /* one line */
	enum mmr_arg_type type;
	uint8_t flags; /* enum mmr_arg_flags */
	uint32_t kinds; /* REF: mask of enum mmr_ref_kind */
	int64_t min, max; /* SIZE: bytes (at 4K pages, 2M huge pages);
			   * TIME: ns; INT, FLAGS: value */
	int64_t def; /* when left out (SIZE: bytes, TIME: ns) */
	const struct mmr_name *names; /* ENUM, FLAGS */
	const struct mmr_name_need *needs; /* of the names; NULL: nothing */
	/* FLAGS: what is needed where a name is not given. */
	const struct mmr_name_need *without;
};

/*
 * How a kernel argument of a one-call op comes from the statement.  With
 * this filled in, an op needs neither `run` nor `emit`.
 */
enum mmr_from {
	MMR_FROM_END = 0, /* no more kernel arguments */
	MMR_FROM_CONST, /* k */
	MMR_FROM_VALUE, /* value of args[arg] (SIZE resolved to bytes) */
	MMR_FROM_POINTER, /* address of a 64-bit word with that value */
	MMR_FROM_ADDR, /* mapping args[arg]: address + its `off` argument */
	MMR_FROM_LEN, /* mapping args[arg]: its `len`, clipped to it */
	MMR_FROM_ARENA, /* SIZE args[arg]: arena base + it; 0 when left out */
	MMR_FROM_PID, /* process args[arg], 0 (self) when left out */
	MMR_FROM_PIDFD, /* pidfd of process or pidfd ref args[arg] */
	MMR_FROM_FD, /* file descriptor of ref args[arg], -1 when left out */
	MMR_FROM_IOV, /* address of an iovec: what ADDR and LEN would give */
};

struct mmr_from_spec {
	uint8_t from; /* enum mmr_from */
	uint8_t arg; /* index in args[] */
	uint8_t also; /* VALUE: index + 1 of an argument that is ORed in */
	int64_t k;
};

struct mmr_callspec {
	const char *name; /* libc function, or SYS_ name when none */
	bool has_wrapper; /* glibc of Debian 12 declares `name` */
	const char *header; /* "sys/mman.h", for export */
	int nr; /* __NR_ number, -1 when there is no single call */
	struct mmr_from_spec from[6];
};

/* For the monitor (DESIGN section 4). */
enum mmr_op_class {
	MMR_CLASS_CALL, /* a kernel call that should return */
	MMR_CLASS_TOUCH, /* access to memory, counts pages as progress */
	MMR_CLASS_BLOCK, /* a kernel call meant to block (futex wait): never
			  * long-syscall, but a culprit of a hang */
	MMR_CLASS_WAIT, /* waits for the case itself (pause, wait, sync,
			 * thread_join, process_reap): never a culprit */
	MMR_CLASS_PURE, /* user-space only (delay, signal) */
};

struct mmr_child; /* per-thread context of mmrace-child, child.h */
struct mmr_insn; /* one compiled statement, program.h */
struct mmr_emit; /* where exported C goes, emit.h */
struct mmr_stmt; /* case.h */

struct mmr_op {
	uint16_t id;
	const char *name;
	const char *help; /* one line */
	const char *race; /* which race is wanted, one sentence */
	enum mmr_op_class class;
	uint32_t makes; /* enum mmr_ref_kind; 0: takes no `ref =` */
	uint32_t unit_ns; /* CPU time a page of work costs at most on a
			   * healthy kernel, 0: not proportional */
	bool machine_wide; /* its work is all of the machine's memory */
	uint8_t nargs;
	struct mmr_argspec args[MMR_MAX_ARGS];
	struct mmr_callspec call;
	/* The system calls that it makes, for `mmrace ops`; NULL: call.name,
	 * or none. */
	const char *calls;
	/* Asked of the running kernel at run time: names for `needs`, such
	 * as "syscall=process_mrelease"; NULL: nothing special. */
	const char *needs;
	/* Child only.  Returns >= 0 or -errno: data, never a reason to stop.
	 * Stores a made ref itself.  NULL: the generic runner of `call`. */
	int64_t (*run)(struct mmr_child *, const struct mmr_insn *);
	/* Engine only: prints the C of a statement.  NULL: from `call`. */
	void (*emit)(struct mmr_emit *, const struct mmr_stmt *);
};

#ifdef MMR_CHILD
#define MMR_RUN(fn) (fn)
#define MMR_EMIT(fn) NULL
#else
#define MMR_RUN(fn) NULL
#define MMR_EMIT(fn) (fn)
#endif

/* Every family file defines an `mmr_op_<name>` for each of its ops. */
#define MMR_OP(id, name, family) extern const struct mmr_op mmr_op_##name;
#include "ops.def"
#undef MMR_OP

/* The descriptor of id, NULL when there is none.  Any thread. */
const struct mmr_op *mmr_op_by_id(unsigned int id);
/* The descriptor of a name as in the case file, NULL when unknown.
 * Engine only (it compares strings). */
const struct mmr_op *mmr_op_by_name(const char *name);
/* The system calls that an op makes, "-" when it makes none. */
const char *mmr_op_calls(const struct mmr_op *op);
/* Index of the argument `name` in op->args, -1 when there is none. */
int mmr_op_arg(const struct mmr_op *op, const char *name);

#endif
