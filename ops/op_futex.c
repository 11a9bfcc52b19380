/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bare futex: the word is 0 until the first wake.  A wait that nobody wakes
 * never ends: the canary of a hang in a system call.
 */
#include "op.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include "child.h"
#endif

#define ARG_FUTEX                                                              \
	{                                                                      \
		.name = "futex", .help = "its name", .type = MMR_ARG_FUTEX,    \
		.flags = MMR_ARG_POS                                           \
	}

#ifdef MMR_CHILD
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
	.run = MMR_RUN(run_futex_wake),
	.emit = MMR_EMIT(emit_futex_wake),
};
