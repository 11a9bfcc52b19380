/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory that mmrace-child shares with its watcher (a memfd): the
 * compiled program, control words from the watcher, and what every thread
 * and process of the case is doing.  The child writes without locks; the
 * watcher reads racily: each word by itself is right, `seq` tells when a
 * slot changed hands.
 *
 *   word            written by          read by
 *   ctl_*           watcher             everybody in the child
 *   state, round    supervisor          watcher
 *   thread slots    their own thread    watcher, joiners
 *   proc slots      spawner, supervisor, killer (each its own words)
 *   stats, ring     the running thread  watcher (afterwards exact)
 */
#ifndef MMR_OPS_AREA_H
#define MMR_OPS_AREA_H

#include <stdatomic.h>
#include <stdint.h>

#include "clock.h"
#include "program.h"

#define MMR_AREA_MAGIC 0x6d6d72616365ULL /* "mmrace" */
#define MMR_AREA_VERSION 6
#define MMR_AREA_FD 3 /* mmrace-child finds the area here */
#define MMR_AREA_ADDR 0x600000000UL /* and maps it there */

#define MMR_THREAD_SLOTS 512
#define MMR_PROC_SLOTS 2048
#define MMR_RING 128 /* finished operations kept a thread */
#define MMR_HIST 256 /* log-linear, 8 steps an octave, see mmr_hist_index */
#define MMR_ERRS 12 /* different errnos counted a statement */
#define MMR_FRESH_SERVED UINT32_MAX /* in fresh_request */

enum mmr_ctl {
	MMR_CTL_STORM = 0, /* the case as written */
	MMR_CTL_CALM = 1, /* loops stop, spawning stops, waits end */
	MMR_CTL_END = 2, /* and the supervisor ends after this round */
};

enum mmr_area_state {
	MMR_STATE_BOOT = 0,
	MMR_STATE_RUN = 1, /* a round's processes run */
	MMR_STATE_CLEAN = 2, /* between rounds: killing, reaping */
	MMR_STATE_DONE = 3, /* all rounds done */
	MMR_STATE_FAILED = 4, /* the child itself failed: fail_text */
};

enum mmr_thread_state {
	MMR_THREAD_FREE = 0,
	MMR_THREAD_STARTING = 1,
	MMR_THREAD_RUNNING = 2,
	MMR_THREAD_DONE = 3, /* body at its end; the task may still exit */
	MMR_THREAD_CLAIMED = 4, /* taken, but it does not say yet for whom */
};

struct mmr_ring_entry {
	uint32_t seq; /* 1.. ; 0: never used */
	uint16_t stat;
	uint16_t round; /* low bits */
	int64_t ret; /* >= 0 or -errno */
	uint64_t start, end; /* ticks */
};

struct mmr_thread_slot {
	/* First cache line: what is going on, for the watcher. */
	_Alignas(64) _Atomic uint32_t state; /* enum mmr_thread_state */
	_Atomic uint32_t stmt; /* statement number + 1, 0: in none */
	_Atomic uint64_t start; /* ticks when it entered stmt */
	_Atomic uint64_t progress; /* operations finished + pages touched */
	_Atomic uint64_t address; /* TOUCH: page it is at */
	_Atomic uint64_t faults; /* SIGSEGV that came back unmended */
	_Atomic uint64_t fault_addr; /* of the last one */
	_Atomic uint32_t seq; /* counts users of the slot */
	_Atomic uint32_t ops; /* finished ones, low bits: ring position */
	/* Second: who it is. */
	_Atomic int32_t host_pid, host_tid; /* as /proc shows them; 0 unknown */
	_Atomic int32_t tid; /* in the PID namespace; cleared and futex-woken
			      * by the kernel when the task has gone */
	uint16_t thread; /* index in the program, MMR_THREAD_IDLE */
	uint16_t proc_slot;
	uint32_t parent_slot; /* who spawned it + 1 */
	_Atomic uint32_t join_slot; /* while in thread_join: whom + 1 */
	_Atomic uint32_t reap_slot; /* while in process_reap: whom + 1 */
	_Atomic int32_t cpu; /* pinned to, -1 when not */
	_Atomic uint32_t paused; /* in pause: does not hold the round open */
	uint32_t plain; /* a plain thread of a plain process */
	/* From here: only its own thread, until the run is over. */
	_Alignas(64) struct mmr_ring_entry ring[MMR_RING];
};

enum mmr_proc_state {
	MMR_PROC_FREE = 0,
	MMR_PROC_RUNNING = 1,
	MMR_PROC_REAPABLE = 2, /* seen as a zombie */
	MMR_PROC_REAPED = 3,
};

#define MMR_HELD_STOPPED 1u
#define MMR_HELD_TRACED 2u

struct mmr_proc_slot {
	_Alignas(64) _Atomic uint32_t state; /* enum mmr_proc_state */
	_Atomic int32_t pid; /* in the namespace */
	_Atomic int32_t host_pid; /* 0 unknown (just forked, or idle) */
	_Atomic uint32_t seq;
	uint16_t proc; /* index in the program, MMR_PROC_IDLE */
	uint16_t copy;
	_Atomic int32_t status; /* as waitid gives it: CLD_* << 16 | status */
	_Atomic uint32_t explained; /* bit n: signal n was sent by the case or
				     * the supervisor; bit 31: exit_group;
				     * bit 0: its exit is not to be measured
				     * (the supervisor's clean-up, or the end
				     * was seen late) */
	_Atomic uint32_t held; /* MMR_HELD_*: by a stop, by a tracer */
	_Atomic uint64_t exit_start; /* ticks: exit_group or fatal signal, 0 */
	_Atomic uint64_t exit_end; /* ticks: seen reapable, 0 */
	_Atomic uint64_t cpu_at_exit_ns; /* CPU time when exit_start was set */
	_Atomic uint64_t delay_at_exit_ns; /* run delay then; ~0 unknown */
	_Atomic uint64_t mapped; /* bytes mapped by the case now, to 1 MiB */
	/* Changes of memory, and of what is mapped where in the arena, begun
	 * and ended: child_content.c */
	_Atomic uint32_t changes, changed, remaps, remapped;
	int32_t pidfd; /* valid in the spawner's process, -1 none */
	int32_t owner; /* the spawner's proc slot, -1: the supervisor */
};

#define MMR_LATE 16

struct mmr_late {
	_Atomic uint32_t ready; /* written, all of it */
	uint32_t thread_slot;	/* ~0: an exit of proc_slot */
	uint32_t proc_slot;
	uint16_t stat; /* of its statement */
	uint16_t pad;
	uint64_t start, end; /* ticks */
	uint64_t cpu_ns, delay_ns; /* at least, at most */
};

struct mmr_stat {
	_Atomic uint64_t count, errors, unexpected; /* unexpected: not in -> */
	_Atomic uint64_t sum, max; /* ticks */
	_Atomic uint64_t pages; /* touched */
	_Atomic uint64_t late; /* sync: starts that came after their time */
	_Atomic int64_t drawn; /* sync, delay: the last offset, ns */
	struct {
		_Atomic int32_t err; /* errno > 0; 0: unused */
		_Atomic uint32_t n;
	} errs[MMR_ERRS];
	_Atomic uint32_t hist[MMR_HIST]; /* of ticks >> hist_shift */
};

/* Exits of a process of the program. */
struct mmr_exit_stat {
	uint64_t count;
	uint64_t wall_ns, cpu_ns, delay_ns; /* sums; asleep is the rest */
	uint64_t max_ns;
	uint64_t delay_known; /* exits of which the run delay is known */
	uint64_t cpu_max_ns;
	uint32_t hist[MMR_HIST]; /* of ns >> 10 (1.024 us) */
	uint32_t cpu_hist[MMR_HIST]; /* what of it was on a CPU, likewise */
};

struct mmr_area {
	uint64_t magic;
	uint32_t version;
	uint32_t hist_shift;
	uint64_t size;
	struct mmr_clock clock;
	struct mmr_program program;
	uint64_t threads_off; /* struct mmr_thread_slot[MMR_THREAD_SLOTS] */
	uint64_t procs_off; /* struct mmr_proc_slot[MMR_PROC_SLOTS] */
	uint64_t stats_off; /* struct mmr_stat[program.nstats] */
	uint64_t content_off; /* struct mmr_content, 0: none */
	uint64_t exits_off; /* struct mmr_exit_stat[program.nprocs + 1],
			     * the last one for idle */

	/* From the watcher. */
	_Alignas(64) _Atomic uint32_t ctl; /* enum mmr_ctl; futex: waits for
					    * the case itself sleep on it */
	_Atomic uint32_t ctl_void; /* watcher: count this round as void */

	/* From the supervisor. */
	_Alignas(64) _Atomic uint32_t state; /* enum mmr_area_state */
	_Atomic uint32_t event; /* futex: wakes the supervisor */
	_Atomic uint64_t round; /* rounds begun */
	_Atomic uint64_t rounds_done; /* rounds at their end, void too */
	_Atomic uint64_t rounds_void;
	_Atomic uint64_t rounds_late; /* with a start that came late, and not
				       * void: nothing against a window */
	_Atomic uint64_t round_start; /* ticks */
	_Atomic uint64_t crash_count; /* processes ended by a signal that the
				       * case does not explain */
	_Atomic uint32_t crash_slot; /* proc slot + 1 of the first one */
	/* In use at most: the watcher looks no further. */
	_Atomic uint32_t thread_slots, proc_slots;
	_Atomic int32_t supervisor_host_pid;
	char fail_text[160];

	/* What took longer than it may, for the watcher to judge; beyond
	 * MMR_LATE they are only counted. */
	_Atomic uint32_t nlate;
	struct mmr_late late[MMR_LATE];
	_Atomic uint32_t holds; /* counts stops, traces and freezes: time in
				 * which somebody was held is nobody's */
	_Atomic uint32_t frozen; /* bit i: group i of the case is, or is about
				  * to be, frozen */

	/* Of the round. */
	_Atomic uint32_t round_void; /* a rendezvous timed out, ... */
	_Atomic uint32_t round_late; /* a start came after its time */
	_Atomic uint32_t plain_left; /* plain threads that hold it open: not
				      * at their end, dead or in pause */
	_Alignas(64) _Atomic uint32_t latches[64];
	_Alignas(64) _Atomic uint32_t futexes[64];
	struct {
		_Alignas(64) _Atomic uint32_t arrived; /* this generation */
		_Atomic uint32_t left; /* parties that finished or died */
		_Atomic uint32_t generation;
		_Atomic uint64_t lead; /* ticks: the earliest of those that
					* arrived starts that much before */
		_Atomic uint64_t deadline; /* ticks; 0: not yet */
	} syncs[64];
	struct { /* by program thread / process: spawned and done so far */
		_Atomic uint32_t spawned, done;
	} thread_count[256], proc_count[32];
	/* rounds ... order=D: by thread slot, 0: not ready; steps at which
	 * the running one falls. */
	_Atomic uint64_t priority[MMR_THREAD_SLOTS];
	_Atomic uint32_t step;
	uint32_t fall[MMR_ORDER_MAX];
	/* A request for a `fresh` process: one at a time. */
	_Atomic uint32_t fresh_request; /* program process + 1, futex;
					 * MMR_FRESH_SERVED: answered */
	_Atomic int32_t fresh_slot; /* answer: slot + 1, or -errno */
};

/* Index in a log-linear histogram: 8 steps an octave, values 0..7 exact,
 * relative error at most 1/16 (middle of a step). */
static inline unsigned int mmr_hist_index(uint64_t v)
{
	unsigned int msb, i;

	if (v < 8)
		return (unsigned int)v;
	msb = 63 - (unsigned int)__builtin_clzll(v);
	i = ((msb - 2) << 3) + (unsigned int)((v >> (msb - 3)) & 7);
	return i < MMR_HIST ? i : MMR_HIST - 1;
}

/* The middle of step i, in the unit that was put in. */
static inline uint64_t mmr_hist_value(unsigned int i)
{
	unsigned int octave = i >> 3;

	if (octave < 1)
		return i;
	return ((uint64_t)(8 + (i & 7)) << (octave - 1)) +
	       ((1ULL << (octave - 1)) >> 1);
}

#endif
