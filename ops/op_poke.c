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
/* Writes of exported C write 1; what this one does is found. */
static const char poke_c[] = "static int poke(struct map m)\n{\n"
			     "\tif (m.len && !sigsetjmp(back, 0))\n"
			     "\t\t*(volatile char *)m.at = 2;\n"
			     "\treturn 0;\n}\n\n";

static void emit_poke(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char map[128];

	mmr_emit_part(e, s, POKE_MAP, map, sizeof(map));
	mmr_emit_header(e, "setjmp.h");
	mmr_emit_helper(e, poke_c);
	e->used |= MMR_USED_MAP | MMR_USED_RECOVER;
	mmr_emit_step(e, "poke(%s)", map);
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
