/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bare futex: the word is 0 until the first wake.  A wait that nobody wakes
 * never ends: the canary of a hang in a system call.
 */
#include "args.h"
#include "op.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include <asm/errno.h>

#include "child.h"
#endif

#define ARG_FUTEX                                                              \
	{                                                                      \
		.name = "futex", .help = "its name", .type = MMR_ARG_FUTEX,    \
		.flags = MMR_ARG_POS                                           \
	}

/* The kernel's: commands, and bits of the word. */
#define REQUEUE 3
#define LOCK_PI 6
#define UNLOCK_PI 7
#define WAITERS 0x80000000u
#define OWNER_DIED 0x40000000u

enum { OWN_MAP, OWN_FUTEX, OWN_OFF };

#ifdef MMR_CHILD
static int64_t run_futex_requeue(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_sys6(__NR_futex,
			mmr_sys_ptr(&c->area->futexes[in->arg[0].lo]), REQUEUE,
			in->arg[2].lo, in->arg[3].lo,
			mmr_sys_ptr(&c->area->futexes[in->arg[1].lo]), 0);
}

static int64_t run_futex_lock_pi(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_sys6(__NR_futex,
			mmr_sys_ptr(&c->area->futexes[in->arg[0].lo]), LOCK_PI,
			0, 0, 0, 0);
}

static int64_t run_futex_unlock_pi(struct mmr_child *c,
				   const struct mmr_insn *in)
{
	return mmr_sys6(__NR_futex,
			mmr_sys_ptr(&c->area->futexes[in->arg[0].lo]),
			UNLOCK_PI, 0, 0, 0, 0);
}

/*
 * A list of one entry, head and entry in the case's own memory, the word in
 * the shared area: the kernel finds it by the distance.  The kernel also
 * writes the list, as the mapping may have gone.
 */
static int64_t run_robust_own(struct mmr_child *c, const struct mmr_insn *in)
{
	_Atomic uint32_t *w = &c->area->futexes[in->arg[OWN_FUTEX].lo];
	uint32_t tid = (uint32_t)mmr_sys0(__NR_gettid), zero = 0;
	uint64_t addr, size, list[4];
	struct mmr_iovec from = {(uint64_t)mmr_sys_ptr(list), sizeof(list)}, to;
	int64_t ret;

	if (!mmr_child_part(c, in, OWN_MAP, OWN_OFF, -1, &addr, &size))
		return MMR_SKIPPED;
	if (size < sizeof(list))
		return -EINVAL;
	list[0] = addr + 24;
	list[1] = (uint64_t)mmr_sys_ptr(w) - (addr + 24);
	list[2] = 0;
	list[3] = addr;
	to = (struct mmr_iovec){addr, sizeof(list)};
	ret = mmr_sys6(__NR_process_vm_writev, mmr_sys0(__NR_getpid),
		       mmr_sys_ptr(&from), 1, mmr_sys_ptr(&to), 1, 0);
	if (ret < 0)
		return ret;
	if (!atomic_compare_exchange_strong(w, &zero, tid))
		return -EBUSY;
	return mmr_sys2(__NR_set_robust_list, (int64_t)addr, 24);
}

static int64_t run_robust_await(struct mmr_child *c, const struct mmr_insn *in)
{
	_Atomic uint32_t *w = &c->area->futexes[in->arg[0].lo];
	uint32_t v = atomic_load(w);
	int64_t ret;

	while (v && !(v & OWNER_DIED)) {
		if (!(v & WAITERS) &&
		    !atomic_compare_exchange_strong(w, &v, v | WAITERS))
			continue;
		ret = mmr_sys_futex_wait(w, v | WAITERS, -1);
		if (ret < 0 && ret != -EAGAIN && ret != -EINTR)
			return ret;
		v = atomic_load(w);
	}
	return 0;
}

static int64_t run_futex_wait(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_futex_wait(c, in->arg[0].lo);
}

static int64_t run_futex_wake(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_futex_wake(c, in->arg[0].lo, (int)in->arg[1].lo);
}
#else
static void futex_headers(struct mmr_emit *e)
{
	mmr_emit_header(e, "linux/futex.h");
	mmr_emit_header(e, "sys/syscall.h");
}

static void emit_futex_wait(struct mmr_emit *e, const struct mmr_stmt *s)
{
	futex_headers(e);
	mmr_emit_step(e,
		      "syscall(SYS_futex, &shared->futex_%s, FUTEX_WAIT, 0, "
		      "NULL, NULL, 0)",
		      s->args[0].name);
}

static void emit_futex_requeue(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char wake[32], count[32];

	futex_headers(e);
	mmr_emit_step(
		e,
		"syscall(SYS_futex, &shared->futex_%s, FUTEX_REQUEUE, "
		"%s, %sl, &shared->futex_%s, 0)",
		s->args[0].name, mmr_emit_arg(e, s, 2, wake, sizeof(wake)),
		mmr_emit_arg(e, s, 3, count, sizeof(count)), s->args[1].name);
}

static void emit_futex_pi(struct mmr_emit *e, const struct mmr_stmt *s,
			  const char *command)
{
	futex_headers(e);
	mmr_emit_step(e,
		      "syscall(SYS_futex, &shared->futex_%s, %s, 0, NULL, "
		      "NULL, 0)",
		      s->args[0].name, command);
}

static void emit_futex_lock_pi(struct mmr_emit *e, const struct mmr_stmt *s)
{
	emit_futex_pi(e, s, "FUTEX_LOCK_PI");
}

static void emit_futex_unlock_pi(struct mmr_emit *e, const struct mmr_stmt *s)
{
	emit_futex_pi(e, s, "FUTEX_UNLOCK_PI");
}

static const char own_c[] =
	"/* Owns the word until its death, by a list of one entry in m. */\n"
	"static int robust_own(struct map m, volatile void *word)\n"
	"{\n"
	"\tstruct list {\n"
	"\t\tstruct robust_list_head head;\n"
	"\t\tstruct robust_list entry;\n"
	"\t} list, *at = (void *)m.at;\n"
	"\tstruct iovec from = { &list, sizeof(list) }, to = { at, "
	"sizeof(list) };\n"
	"\tint zero = 0, tid = syscall(SYS_gettid);\n"
	"\n"
	"\tif (m.len < sizeof(list))\n"
	"\t\treturn -1;\n"
	"\tlist.head.list.next = &at->entry;\n"
	"\tlist.head.futex_offset = (char *)word - (char *)&at->entry;\n"
	"\tlist.head.list_op_pending = NULL;\n"
	"\tlist.entry.next = &at->head.list;\n"
	"\tif (process_vm_writev(getpid(), &from, 1, &to, 1, 0) < 0 ||\n"
	"\t    !__atomic_compare_exchange_n((int *)word, &zero, tid, 0,\n"
	"\t\t\t\t\t __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))\n"
	"\t\treturn -1;\n"
	"\treturn syscall(SYS_set_robust_list, at, sizeof(list.head));\n"
	"}\n\n";

static const char await_c[] =
	"static int robust_await(volatile void *word)\n"
	"{\n"
	"\t_Atomic unsigned int *w = (_Atomic unsigned int *)word;\n"
	"\tunsigned int v;\n"
	"\n"
	"\twhile ((v = *w) && !(v & FUTEX_OWNER_DIED))\n"
	"\t\tif (atomic_compare_exchange_strong(w, &v, v | FUTEX_WAITERS))\n"
	"\t\t\tsyscall(SYS_futex, word, FUTEX_WAIT, v | FUTEX_WAITERS,\n"
	"\t\t\t\tNULL, NULL, 0);\n"
	"\treturn 0;\n"
	"}\n\n";

static void emit_robust_own(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char m[64], off[48];

	futex_headers(e);
	mmr_emit_header(e, "sys/uio.h");
	mmr_emit_header(e, "unistd.h");
	e->used |= MMR_USED_MAP | MMR_USED_PART;
	mmr_emit_helper(e, own_c);
	mmr_emit_arg(e, s, OWN_MAP, m, sizeof(m));
	mmr_emit_arg(e, s, OWN_OFF, off, sizeof(off));
	mmr_emit_step(e, "robust_own(part(%s, %s, 0), &shared->futex_%s)", m,
		      off, s->args[OWN_FUTEX].name);
}

static void emit_robust_await(struct mmr_emit *e, const struct mmr_stmt *s)
{
	futex_headers(e);
	mmr_emit_header(e, "stdatomic.h");
	mmr_emit_helper(e, await_c);
	mmr_emit_step(e, "robust_await(&shared->futex_%s)", s->args[0].name);
}

static void emit_futex_wake(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char count[32];

	futex_headers(e);
	mmr_emit_step(
		e,
		"shared->futex_%s = 1, syscall(SYS_futex, &shared->futex_%s, "
		"FUTEX_WAKE, %s, NULL, NULL, 0)",
		s->args[0].name, s->args[0].name,
		mmr_emit_arg(e, s, 1, count, sizeof(count)));
}
#endif

const struct mmr_op mmr_op_futex_wait = {
	.id = MMR_OP_futex_wait,
	.name = "futex_wait",
	.help = "sleep on a futex word until woken",
	.race = "A wake that goes lost leaves its waiter asleep for ever.",
	.class = MMR_CLASS_BLOCK,
	.nargs = 1,
	.args = {ARG_FUTEX},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_futex_wait),
	.emit = MMR_EMIT(emit_futex_wait),
};

const struct mmr_op mmr_op_futex_wake = {
	.id = MMR_OP_futex_wake,
	.name = "futex_wake",
	.help = "wake threads that sleep on a futex word",
	.race = "A wake that goes lost leaves its waiter asleep for ever.",
	.class = MMR_CLASS_CALL,
	.nargs = 2,
	.args = {ARG_FUTEX,
		 {.name = "count",
		  .help = "how many at most",
		  .type = MMR_ARG_INT,
		  .flags = MMR_ARG_OPT,
		  .min = 1,
		  .max = INT32_MAX,
		  .def = 1}},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_futex_wake),
	.emit = MMR_EMIT(emit_futex_wake),
};

const struct mmr_op mmr_op_futex_requeue = {
	.id = MMR_OP_futex_requeue,
	.name = "futex_requeue",
	.help = "make threads that sleep on a futex sleep on another",
	.race = "Waiters change the queue while they are woken, killed or time "
		"out.",
	.class = MMR_CLASS_CALL,
	.nargs = 4,
	.args = {ARG_FUTEX,
		 {.name = "to",
		  .help = "the other one",
		  .type = MMR_ARG_FUTEX,
		  .flags = MMR_ARG_POS},
		 {.name = "wake",
		  .help = "how many wake up instead",
		  .type = MMR_ARG_INT,
		  .flags = MMR_ARG_OPT,
		  .max = INT32_MAX},
		 {.name = "count",
		  .help = "how many change at most",
		  .type = MMR_ARG_INT,
		  .flags = MMR_ARG_OPT,
		  .max = INT32_MAX,
		  .def = INT32_MAX}},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_futex_requeue),
	.emit = MMR_EMIT(emit_futex_requeue),
};

const struct mmr_op mmr_op_futex_lock_pi = {
	.id = MMR_OP_futex_lock_pi,
	.name = "futex_lock_pi",
	.help = "become the owner of a futex word, or sleep until it is free",
	.race = "The owner dies, is boosted, or gives it away, while waiters "
		"come and go.",
	.class = MMR_CLASS_BLOCK,
	.nargs = 1,
	.args = {ARG_FUTEX},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_futex_lock_pi),
	.emit = MMR_EMIT(emit_futex_lock_pi),
};

const struct mmr_op mmr_op_futex_unlock_pi = {
	.id = MMR_OP_futex_unlock_pi,
	.name = "futex_unlock_pi",
	.help = "give a futex word to its next owner",
	.race = "The next owner dies or times out just then.",
	.class = MMR_CLASS_CALL,
	.nargs = 1,
	.args = {ARG_FUTEX},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_futex_unlock_pi),
	.emit = MMR_EMIT(emit_futex_unlock_pi),
};

const struct mmr_op mmr_op_robust_own = {
	.id = MMR_OP_robust_own,
	.name = "robust_own",
	.help = "own a futex word until the thread dies (robust list)",
	.race = "The list lies in memory that is unmapped, or freed by "
		"process_mrelease, before the exit walks it.",
	.class = MMR_CLASS_CALL,
	.nargs = 3,
	.args = {MMR_ARG_MAPPING_AS("m", "where the list is to lie"), ARG_FUTEX,
		 MMR_ARG_OFF},
	.call = {.nr = -1},
	.calls = "process_vm_writev set_robust_list",
	.needs = "syscall=process_vm_writev",
	.run = MMR_RUN(run_robust_own),
	.emit = MMR_EMIT(emit_robust_own),
};

const struct mmr_op mmr_op_robust_await = {
	.id = MMR_OP_robust_await,
	.name = "robust_await",
	.help = "sleep until the owner of a futex word has died",
	.race = "An exit that does not find the list wakes nobody.",
	.class = MMR_CLASS_BLOCK,
	.nargs = 1,
	.args = {ARG_FUTEX},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_robust_await),
	.emit = MMR_EMIT(emit_robust_await),
};
