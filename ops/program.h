/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A case compiled for mmrace-child: plain data without pointers, at offsets
 * in the shared area (area.h).  compile.c makes it; interp.c runs it.
 *
 * Instructions of a thread lie one after the other, loops as a LOOP ... END
 * pair.  An instruction's `stat` is its statement's number in the case
 * (mmr_case_stmt); END carries the number of its loop.
 */
#ifndef MMR_OPS_PROGRAM_H
#define MMR_OPS_PROGRAM_H

#include <stdint.h>

#include "op.h"

#define MMR_INSN_LOOP 0xfff0
#define MMR_INSN_END 0xfff1

#define MMR_THREAD_IDLE 0xffff /* operand of THREAD: the built-in body */
#define MMR_PROC_IDLE 0xffff /* operand of PROCESS: sleeps until killed */

/* An operand, resolved: SIZE in bytes on this machine, FLAGS and ENUM the
 * kernel's value, TIME ns lo..hi, REF the ref's index or -1 when it was left
 * out, LATCH/SYNC/FUTEX/THREAD/PROCESS the index. */
struct mmr_operand {
	int64_t lo, hi;
};

/*
 * One-call ops whose arguments are all known when the case is compiled, but for
 * the part of a mapping that comes first in the call.  They are what most cases
 * consist of, and here nothing has to be looked up to make the call.
 */
enum mmr_quick {
	MMR_QUICK_NOT,
	MMR_QUICK_PLAIN, /* raw[] has them all */
	MMR_QUICK_MAKES, /* and the result is a mapping of raw[1] bytes */
	MMR_QUICK_PART, /* address and length come first: `map`, off, len */
};

#define MMR_MAX_ACCEPT 8
#define MMR_ORDER_MAX 8 /* depth of rounds ... order=D */

/* Where mappings with at= go: apart from everything of the child's own. */
#define MMR_ARENA_BASE 0x1000000000UL /* 64 GiB */

struct mmr_insn {
	uint16_t op; /* op id, MMR_INSN_LOOP, MMR_INSN_END */
	int16_t dst; /* ref index or -1 */
	uint16_t stat;
	uint8_t naccept;
	uint8_t until; /* LOOP: enum mmr_until */
	uint32_t jump; /* LOOP: its END; END: its LOOP (insn index) */
	uint32_t set; /* bit i: args[i] was given */
	uint32_t until_index; /* LOOP: thread or process index */
	uint8_t dim; /* of the sweep, see sweep.h */
	uint8_t log; /* bit i: args[i] is drawn log-uniform */
	uint8_t quick; /* enum mmr_quick */
	uint8_t map; /* QUICK_PART: which argument is the mapping */
	uint64_t tag; /* key of this statement's draws: thread name and the
		       * statement's own text, not its position */
	int64_t count; /* LOOP: turns, or ns */
	uint64_t within; /* ticks that it may take, 0: nobody asks; from the
			  * runner */
	/* quick: the call and its arguments, as far as they are constant. */
	int64_t raw[6];
	int64_t nr;
	struct mmr_operand arg[MMR_MAX_ARGS];
	int32_t accept[MMR_MAX_ACCEPT];
};

struct mmr_pthread { /* a thread of the program */
	uint32_t first, ninsn; /* its instructions */
	uint16_t proc; /* index in procs */
	uint8_t is_template;
	uint8_t segv; /* enum mmr_segv */
	uint8_t cpu_kind; /* enum mmr_cpu_kind */
	uint8_t pad[3];
	int32_t cpu_arg; /* NUMBER: n; SAME, OTHER: thread index */
	int32_t slot; /* plain: its fixed thread slot; template: -1 */
};

struct mmr_pproc { /* a process of the program */
	uint32_t first, nthreads; /* in pthreads */
	uint32_t copies;
	uint32_t is_template;
};

struct mmr_psync {
	uint32_t parties; /* plain threads that name it */
};

#define MMR_GROUPS 4 /* memory cgroups that a case can have: a to d */

/* State outside the case: from the runner, not from the text. */
struct mmr_outside {
	char swap[64]; /* path of its swap area, "" none */
	char core[200]; /* folder for core dumps, "" none */
	uint32_t memcg; /* version of its memory cgroups, 0: none */
	char group[320]; /* where they are made */
	char freezer[320]; /* v1: and their twins that can be frozen */
	char base[320], freezer_base[320]; /* where processes live else */
};

struct mmr_program {
	uint32_t ninsns, nthreads, nprocs, nrefs;
	uint32_t nsyncs, nlatches, nfutexes, nstats;
	uint64_t rounds; /* to run, 0: none */
	uint64_t first_round; /* number of the first one, for the draws */
	uint64_t budget_ns; /* 0: none */
	uint64_t seed;
	uint64_t page_size, huge_size;
	uint32_t keep;
	uint32_t order, order_steps; /* depth, 0: threads run freely; steps */
	uint32_t drop_caps_lo, drop_caps_hi; /* nocap=: dropped by supervisor */
	uint64_t may_write; /* bit i: setting i of setting.h */
	struct mmr_outside outside;
	uint32_t content; /* follow what is written (expect content) */
	uint64_t exit_within_ns; /* that an exit may take, 0: nobody asks */
	uint32_t ncpus; /* CPUs to use, cpus[] */
	uint16_t cpus[64]; /* their kernel numbers */
	uint16_t cores[64]; /* equal: the same core; */
	uint16_t nodes[64]; /* the same NUMA node */
	/* Offsets from the start of the area. */
	uint64_t insns_off, threads_off, procs_off, syncs_off;
};

#endif
