/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sleep that whatever disturbs the thread ends: unlike a futex wait the
 * kernel never restarts it, not even after a stop by a debugger.  What a stall
 * looks like that is gone when somebody looks, on a kernel that has none.
 */
#include <asm/unistd.h>

#include "op.h"

static const struct mmr_name signal_names[] = {
	{"usr1", "(1UL << (SIGUSR1 - 1))", 1 << 9},
	{"usr2", "(1UL << (SIGUSR2 - 1))", 1 << 11},
	{0},
};

const struct mmr_op mmr_op_rt_sigtimedwait = {
	.id = MMR_OP_rt_sigtimedwait,
	.name = "rt_sigtimedwait",
	.help = "sleep until a signal or a tracer disturbs the thread",
	.race = "A sleeper that somebody has to disturb, and whoever stops, "
		"traces or kills its process meanwhile.",
	.class = MMR_CLASS_BLOCK,
	.nargs = 1,
	.args = {{.name = "set",
		  .help = "signals to take when they are blocked",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = 1 << 9 | 1 << 11,
		  .names = signal_names}},
	.call = {.name = "SYS_rt_sigtimedwait",
		 .header = "sys/syscall.h",
		 .nr = __NR_rt_sigtimedwait,
		 .from = {{.from = MMR_FROM_POINTER, .arg = 0},
			  {.from = MMR_FROM_CONST, .k = 0},
			  {.from = MMR_FROM_CONST, .k = 0},
			  {.from = MMR_FROM_CONST, .k = 8}}},
};
