// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls whose kernel arguments are the same in every run, or all but the part
 * of a mapping that they are about: put together once, when the case is
 * compiled.
 */
#include <sys/mman.h>

#include "compile.h"
#include "kernel.h"
#include "op.h"

/* One kernel argument that no run has to work out; false: it is none. */
static bool quick_arg(const struct mmr_op *op, int i, struct mmr_insn *in)
{
	const struct mmr_from_spec *from = &op->call.from[i];
	int64_t v = in->arg[from->arg].lo;

	switch (from->from) {
	case MMR_FROM_CONST:
		in->raw[i] = from->k;
		return true;
	case MMR_FROM_VALUE:
		in->raw[i] = v;
		return true;
	case MMR_FROM_ARENA:
		in->raw[i] = in->set >> from->arg & 1
				     ? (int64_t)MMR_ARENA_BASE + v
				     : 0;
		return true;
	case MMR_FROM_FD: /* left out */
		in->raw[i] = -1;
		return v < 0;
	default:
		return false;
	}
}

#define MMR_FIXED (MAP_FIXED | MMR_K_MAP_FIXED_NOREPLACE)

void mmr_compile_quick(const struct mmr_op *op, struct mmr_insn *in)
{
	const struct mmr_from_spec *from = op->call.from;
	bool part = from[0].from == MMR_FROM_ADDR &&
		    from[1].from == MMR_FROM_LEN && from[0].arg == from[1].arg;
	int i, len = mmr_op_arg(op, "len"), flags = mmr_op_arg(op, "flags");

	if (op->call.nr < 0 || (op->makes && op->makes != MMR_REF_MAPPING))
		return;
	/* Somebody has to see to it that it goes where it may. */
	if (op->id == MMR_OP_mmap && in->arg[flags].lo & MMR_FIXED)
		return;
	for (i = part ? 2 : 0; i < 6 && from[i].from != MMR_FROM_END; i++)
		if (!quick_arg(op, i, in))
			return;
	if (op->makes && (part || len < 0 || from[1].from != MMR_FROM_VALUE ||
			  from[1].arg != len))
		return;
	in->nr = op->call.nr;
	in->map = from[0].arg;
	in->quick = part	? MMR_QUICK_PART
		    : op->makes ? MMR_QUICK_MAKES
				: MMR_QUICK_PLAIN;
}
