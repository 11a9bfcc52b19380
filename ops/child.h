/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of mmrace-child, for op families and the machine itself.
 *
 * mmrace-child is freestanding: no libc, no malloc, no locks, no thread-local
 * storage, no mutable file-scope state.  Everything arrives in `struct
 * mmr_child`, one for each thread, in private memory of its process.
 *
 *   child_main.c    start, holder, set-up of the supervisor
 *   child_super.c   rounds; child_clean.c: their end, what an exit cost
 *   child_interp.c  the interpreter: loops, statistics, ring
 *   child_call.c    the generic runner of one-call ops; refs, draws
 *   child_table.c   ops by id, plans of the generic runner
 *   child_touch.c   memory accesses and the recovery of their faults
 *   child_thread.c  threads, child_proc.c processes, child_flow.c waits
 *   child_mem.c     memset and its like, which the compiler calls
 */
#ifndef MMR_OPS_CHILD_H
#define MMR_OPS_CHILD_H

#include "area.h"
#include "op.h"
#include "sys.h"

/* What an operation runs through lies together. */
#define MMR_HOT __attribute__((section(".text.hot.mmr")))
/* The rest of it elsewhere: after each entry to the kernel the path of an
 * operation is out of the nearest cache, line by line. */
#define MMR_COLD __attribute__((cold, noinline))
#define MMR_RARELY(x) __builtin_expect(!!(x), 0)

#define MMR_ARENA_SIZE 0x4000000000UL /* 256 GiB */

/* What a run function returns when a ref that it needs was never assigned:
 * the statement counts nothing. */
#define MMR_SKIPPED INT64_MIN

/* A wait looks at ctl at least this often. */
#define MMR_SLICE_NS 50000000

/* A ref: written and read by all threads of its process; `seq` makes address
 * and length one unit (odd while written). */
struct mmr_ref {
	_Atomic uint32_t seq;
	_Atomic uint32_t kind; /* enum mmr_ref_kind; NONE: never assigned */
	_Atomic int64_t a;     /* MAPPING address; THREAD slot; PROCESS first
				* slot; fds: number */
	_Atomic int64_t b; /* MAPPING length; THREAD slot seq; PROCESS count */
};

#define MMR_HELD_REFS 4 /* more than an operation names */

struct mmr_ref_value {
	uint32_t kind;
	int64_t a, b;
};

#define MMR_PLAN_CONST                                                         \
	255	      /* in from[]: a constant that only the descriptor        \
		       * has; small ones are in arg[] */
#define MMR_PLANS 128 /* op ids are below this, child_table.c checks it */

/*
 * What runs an op, out of its descriptor: small, as an operation should touch
 * few pages of ours.  A page fault or unmap of the case flushes what the CPU
 * knew of page tables, and every page costs a walk then.
 */
struct mmr_plan {
	int64_t (*run)(struct mmr_child *, const struct mmr_insn *);
	int32_t nr;
	uint32_t makes;
	int8_t off, len; /* which arguments are so called, -1: none */
	uint8_t from[6], arg[6];
	uint8_t pad[2];
};

/*
 * What the supervisor works out once from the program: in private memory,
 * copied by every fork, constant from then on.
 */
struct mmr_machine {
	int16_t cpu[256];    /* by program thread: kernel CPU number, -1 none */
	uint64_t syncs[256]; /* by program thread: which it names */
	uint32_t sync_spins[64]; /* turns of a wait before it yields */
	uint32_t pad[64];	 /* plan[] ends with a page */
	uint32_t first_slot;	 /* thread slots from here on are for spawns */
	uint8_t no_namespace;	 /* and so every process needs PDEATHSIG */
	int32_t supervisor;	 /* its pid */
	/* Of the executable, start 0: not mapped anew; see child_image.h. */
	int32_t image_fd;
	uint32_t image_len, image_offset;
	uint64_t image_start;
	/* Last and backwards: the plans of the ops with low ids, which are in
	 * every case, lie in one page with the refs. */
	struct mmr_plan plan[MMR_PLANS];
};

/* Private memory of a process, copied by fork. */
struct mmr_process {
	int32_t slot;		     /* its proc slot */
	int32_t proc;		     /* index in the program */
	_Atomic uint32_t plain_live; /* plain threads not at their end; futex */
	_Atomic int64_t mapped, shown; /* bytes; what the proc slot says */
	struct mmr_ref refs[256];
	/* pidfds of other processes, by proc slot: fd + 1 << 32 | slot seq. */
	_Atomic uint64_t pidfds[MMR_PROC_SLOTS];
};

struct mmr_child {
	struct mmr_area *area;
	const struct mmr_program *program;
	const struct mmr_machine *machine;
	struct mmr_process *process;
	struct mmr_thread_slot *slots;
	struct mmr_proc_slot *procs;
	struct mmr_stat *stats;
	struct mmr_thread_slot *slot;
	struct mmr_proc_slot *proc; /* the process's own slot */
	uint32_t slot_index;
	uint32_t thread;       /* index in the program, MMR_THREAD_IDLE */
	uint8_t segv;	       /* enum mmr_segv */
	uint8_t plain;	       /* a plain thread of a plain process */
	uint8_t counted;       /* it no longer holds the round open */
	uint8_t shared_stats;  /* other threads write its statistics too */
	uint32_t hist_shift;   /* of the area */
	_Atomic int32_t fault; /* signal that ended the touch, 0 none */
	uint64_t round;	       /* number of this round for the draws */
	uint64_t serial;       /* area->round when it was started */
	uint64_t iteration;    /* of the loops around, for draws: folded from
				* the outermost inwards as it * 1000003 + i */
	uint64_t now;	       /* ticks at the start of this op */
	int64_t mapped;	       /* bytes that its process does not know of yet */
	/* For statements with `within`: run delay, CPU time and holds when it
	 * was last looked, and when that was. */
	uint64_t seen_delay_ns, seen_cpu_ns, seen_ticks;
	uint32_t seen_holds;
	/* Threads that this one made, and one of them to wait for. */
	uint32_t spawned, mark_slot;
	int32_t mark_tid;
	uint8_t ordered;   /* waits for its turn: child_order.c */
	uint64_t priority; /* while it may sleep */
	/* An operation that is followed reads each ref once (child_content.c),
	 * so that what is marked is what it acts on: those that it has read. */
	uint8_t once, nheld;
	struct {
		int64_t index;
		struct mmr_ref_value v;
	} held[MMR_HELD_REFS];
};

/* The plan of an op id. */
static inline const struct mmr_plan *mmr_child_plan(const struct mmr_machine *m,
						    unsigned int op)
{
	return &m->plan[MMR_PLANS - 1 - op];
}

static inline uint64_t mmr_child_now(const struct mmr_child *c)
{
	if (c->area->clock.source == MMR_CLOCK_COUNTER)
		return mmr_clock_counter();
	return mmr_sys_clock_raw();
}

/* True when loops, spawns and waits have to end. */
static inline bool mmr_child_stopping(const struct mmr_child *c)
{
	return atomic_load_explicit(&c->area->ctl, memory_order_relaxed) !=
	       MMR_CTL_STORM;
}

/*
 * For op families.  All are called by the thread that runs the statement.
 * `in` is the statement; an argument is named by its index in the descriptor.
 * Results are >= 0, -errno, or MMR_SKIPPED; made refs are stored by the
 * function (in->dst < 0: nobody wants the result).
 */

/* Reads a ref as one unit; kind NONE when it was never assigned or is not
 * one of kinds. */
struct mmr_ref_value mmr_child_ref(struct mmr_child *c, int64_t index,
				   uint32_t kinds);
void mmr_child_set_ref(struct mmr_child *c, int index, uint32_t kind, int64_t a,
		       int64_t b);
/* A draw for argument arg of this statement, round and iteration, ns,
 * independent of all others.  Stored as `drawn`. */
int64_t mmr_child_draw(struct mmr_child *c, const struct mmr_insn *in, int arg);
/* The same for an offset, which sweeps its range as sweep.h has it.  aim: the
 * argument with the part of the range that most rounds go to; 0 for none. */
int64_t mmr_child_offset(struct mmr_child *c, const struct mmr_insn *in,
			 int skew, int aim);
/* The part of a mapping that arguments off and len (indices, -1: none)
 * name, clipped to it.  False when nothing is left or there is no mapping. */
bool mmr_child_part(struct mmr_child *c, const struct mmr_insn *in, int map,
		    int off, int len, uint64_t *addr, uint64_t *size);

/* child_call.c.  The generic runner of op->call: a mapping ref is made of the
 * result and the argument `len`, an fd ref of the result.  A process set
 * (copies=N) gets the call once a member; the first error is the result. */
int64_t mmr_child_call(struct mmr_child *c, const struct mmr_insn *in,
		       const struct mmr_op *op);
/* The case maps delta bytes more than it did (the monitor's idea of how much
 * work an exit is). */
void mmr_child_mapped(struct mmr_child *c, int64_t delta);
/* What of that the thread kept for itself: at its end. */
void mmr_child_mapped_tell(struct mmr_child *c);
/* True when len bytes at arena offset `at` lie inside of the arena. */
static inline bool mmr_child_in_arena(int64_t at, int64_t len)
{
	return at >= 0 && at <= (int64_t)MMR_ARENA_SIZE && len >= 0 &&
	       len <= (int64_t)MMR_ARENA_SIZE - at;
}
/* close: the fd of a ref; the ref keeps the stale number. */
int64_t mmr_child_close(struct mmr_child *c, const struct mmr_insn *in,
			int arg);
/* userfaultfd(flags), reads of which do not block, and its API handshake,
 * which asks for features; makes UFFD. */
int64_t mmr_child_userfaultfd(struct mmr_child *c, const struct mmr_insn *in,
			      int64_t flags, uint64_t features);
/* UFFDIO_REGISTER of a part of a mapping; mode: UFFDIO_REGISTER_MODE_*. */
int64_t mmr_child_uffd_register(struct mmr_child *c, const struct mmr_insn *in,
				int uffd, int map, int off, int len,
				uint64_t mode);

/* child_content.c: 0, or the number of a new file's words + 1, for b of its
 * ref. */
bool mmr_content_on(const struct mmr_child *c);
int64_t mmr_content_new_file(struct mmr_child *c);
/* Changes a byte of a mapping and tells nobody. */
int64_t mmr_child_poke(struct mmr_child *c, const struct mmr_insn *in, int map,
		       int off);

/* child_cgroup.c.  Groups are numbers below MMR_GROUPS; -EPERM: the case does
 * not say that it needs any. */
int64_t mmr_child_cgroup_create(struct mmr_child *c, uint32_t group);
int64_t mmr_child_cgroup_remove(struct mmr_child *c, uint32_t group);
/* Writes text into a file of the group. */
int64_t mmr_child_cgroup_put(struct mmr_child *c, uint32_t group,
			     const char *file, const char *text);
int64_t mmr_child_cgroup_freeze(struct mmr_child *c, uint32_t group, bool on);
/* Moves the processes of the ref (left out: the own one); MMR_GROUPS: where
 * processes live without. */
int64_t mmr_child_cgroup_move(struct mmr_child *c, const struct mmr_insn *in,
			      int arg, uint32_t group);

/* child_procfs.c.  Writes text into a file, in one write: 0 or -errno. */
int64_t mmr_child_put_file(const char *path, const char *text);
/* v in decimal, into buf (24 bytes); returns where it begins there. */
const char *mmr_child_decimal(char *buf, int64_t v);

/* Which arguments of a touch are what, by index: order is an ENUM, 0
 * ascending, 1 pages in a drawn order; width the bytes of an access; below a
 * SIZE: that much below the mapping instead, 0 not. */
struct mmr_touch_args {
	int map, off, len, step, order, width, below;
	bool is_write;
};

/* child_touch.c.  Touches a part of a mapping every `step` bytes (0 bytes
 * counts as 1).  Pages touched; -EFAULT after a SIGSEGV, -EIO after a
 * SIGBUS. */
int64_t mmr_child_touch(struct mmr_child *c, const struct mmr_insn *in,
			const struct mmr_touch_args *a);

/* child_thread.c.  body: program thread or MMR_THREAD_IDLE. */
int64_t mmr_child_thread_spawn(struct mmr_child *c, const struct mmr_insn *in,
			       uint32_t body);
int64_t mmr_child_thread_join(struct mmr_child *c, const struct mmr_insn *in,
			      int arg);

/* Moves every other thread of the process to the next CPU, in whatever it is
 * doing; how many.  -ENODEV: there is one CPU. */
int64_t mmr_child_move_threads(struct mmr_child *c);

/* child_proc.c.  proc: program process or MMR_PROC_IDLE; its copies make a
 * set.  fresh: forked from the supervisor, without the spawner's memory.  vm:
 * it shares the spawner's memory, not a copy of it. */
int64_t mmr_child_process_spawn(struct mmr_child *c, const struct mmr_insn *in,
				uint32_t proc, bool fresh, bool vm);
/* Waits until the process (each of the set) is a zombie; does not reap. */
int64_t mmr_child_process_reap(struct mmr_child *c, const struct mmr_insn *in,
			       int arg);
int64_t mmr_child_kill(struct mmr_child *c, const struct mmr_insn *in, int arg,
		       int sig);
_Noreturn void mmr_child_exit_group(struct mmr_child *c,
				    const struct mmr_insn *in, int status);
/* Makes PIDFD of the (first) process of the ref. */
int64_t mmr_child_pidfd_open(struct mmr_child *c, const struct mmr_insn *in,
			     int arg);
/* A pidfd of proc slot `slot`, kept for this process; not to be closed. */
int64_t mmr_child_pidfd(struct mmr_child *c, uint32_t slot);
/* PTRACE_SEIZE; options: PTRACE_O_*.  The caller is the tracer until it
 * ends. */
int64_t mmr_child_ptrace_seize(struct mmr_child *c, const struct mmr_insn *in,
			       int arg, uint64_t options);

/* child_flow.c.  Waits end with -EINTR when the storm does. */
int64_t mmr_child_signal(struct mmr_child *c, int64_t latch);
int64_t mmr_child_wait(struct mmr_child *c, int64_t latch);
int64_t mmr_child_pause(struct mmr_child *c);
/* Busy below 200 us, else asleep for the most part.  arg: TIME operand. */
int64_t mmr_child_delay(struct mmr_child *c, const struct mmr_insn *in,
			int arg);
/* Asleep for all of it, also when that is too long.  arg: TIME operand. */
int64_t mmr_child_sleep(struct mmr_child *c, const struct mmr_insn *in,
			int arg);
/* sync: SYNC operand; skew, aim: TIME operands.  0, or how much too late it
 * started, ns; -ETIMEDOUT makes the round void. */
int64_t mmr_child_sync(struct mmr_child *c, const struct mmr_insn *in, int sync,
		       int skew, int aim);
/* A real FUTEX_WAIT without a time limit on a word that is 0 at the start of
 * the round; futex_wake sets it to 1 and wakes, so a wait after a wake gives
 * -EAGAIN, and one that nobody wakes never ends, calm or not. */
int64_t mmr_child_futex_wait(struct mmr_child *c, int64_t futex);
int64_t mmr_child_futex_wake(struct mmr_child *c, int64_t futex, int count);

#endif
