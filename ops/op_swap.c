/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The case's own swap area (needs swap>=N), taken away and given back while
 * pages are in it.  The path is the engine's: a case cannot name another.
 */
#include <asm/unistd.h>

#include "op.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include <asm/errno.h>

#include "child.h"

#define PREFER_100 0x8064 /* SWAP_FLAG_PREFER, as it was before */

static int64_t run_swapoff(struct mmr_child *c, const struct mmr_insn *in)
{
	(void)in;
	if (!c->program->outside.swap[0])
		return -EPERM;
	return mmr_sys1(__NR_swapoff, mmr_sys_ptr(c->program->outside.swap));
}

static int64_t run_swapon(struct mmr_child *c, const struct mmr_insn *in)
{
	(void)in;
	if (!c->program->outside.swap[0])
		return -EPERM;
	return mmr_sys2(__NR_swapon, mmr_sys_ptr(c->program->outside.swap),
			PREFER_100);
}
#endif

#ifndef MMR_CHILD
static void emit_swapoff(struct mmr_emit *e, const struct mmr_stmt *s)
{
	(void)s;
	mmr_emit_header(e, "stdlib.h");
	mmr_emit_header(e, "sys/swap.h");
	mmr_emit_step(e, "swapoff(getenv(\"SWAP_AREA\"))");
}

static void emit_swapon(struct mmr_emit *e, const struct mmr_stmt *s)
{
	(void)s;
	mmr_emit_header(e, "stdlib.h");
	mmr_emit_header(e, "sys/swap.h");
	mmr_emit_step(e, "swapon(getenv(\"SWAP_AREA\"), "
			 "SWAP_FLAG_PREFER | 100)");
}
#endif

const struct mmr_op mmr_op_swapoff = {
	.id = MMR_OP_swapoff,
	.name = "swapoff",
	.help = "stop swapping to the case's own area (needs swap>=N)",
	.race = "Swap entries turn back into pages under faults, forks and "
		"exits that hold them.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 5000,
	.machine_wide = true,
	.call = {.nr = -1},
	.calls = "swapoff",
	.needs = "swap>=64M cap=CAP_SYS_ADMIN",
	.run = MMR_RUN(run_swapoff),
	.emit = MMR_EMIT(emit_swapoff),
};

const struct mmr_op mmr_op_swapon = {
	.id = MMR_OP_swapon,
	.name = "swapon",
	.help = "swap to the case's own area again, after a swapoff",
	.race = "The area's number comes back while old entries of it may "
		"still be looked up.",
	.class = MMR_CLASS_CALL,
	.call = {.nr = -1},
	.calls = "swapon",
	.needs = "swap>=64M cap=CAP_SYS_ADMIN",
	.run = MMR_RUN(run_swapon),
	.emit = MMR_EMIT(emit_swapon),
};
