/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The canary of `expect content`: a byte that changes and nobody is told, as it
 * would when a kernel mixes pages up.
 */
#include "op.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include "child.h"
#endif

enum { POKE_MAP, POKE_OFF };

#ifdef MMR_CHILD
static int64_t run_poke(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_poke(c, in, POKE_MAP, POKE_OFF);
}
#else
static void emit_poke(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char map[128];

	mmr_emit_part(e, s, POKE_MAP, map, sizeof(map));
	e->used |= MMR_USED_WRITE;
	mmr_emit_step(e, "touch_write(%s, %s.len)", map, map);
}
#endif

const struct mmr_op mmr_op_poke = {
	.id = MMR_OP_poke,
	.name = "poke",
	.help = "change one byte behind the back of `expect content`",
	.race = "None: it is what must be found when content is watched.",
	.class = MMR_CLASS_TOUCH,
	.nargs = 2,
	.args = {{.name = "m",
		  .help = "the mapping",
		  .type = MMR_ARG_REF,
		  .flags = MMR_ARG_POS,
		  .kinds = MMR_REF_MAPPING},
		 {.name = "off",
		  .help = "which byte of it",
		  .type = MMR_ARG_SIZE,
		  .flags = MMR_ARG_OPT,
		  .max = 64LL << 40}},
	.call = {.nr = -1},
	.run = MMR_RUN(run_poke),
	.emit = MMR_EMIT(emit_poke),
};
