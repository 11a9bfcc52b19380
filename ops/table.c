// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of all operations, for the engine.  mmrace-child has a dispatch
 * of its own, as it may not compare strings through libc.
 */
#include <string.h>

#include "op.h"

static const struct mmr_op *const ops[MMR_OP_LIMIT] = {
#define MMR_OP(id, name, family) [id] = &mmr_op_##name,
#include "ops.def"
#undef MMR_OP
};

const struct mmr_op *mmr_op_by_id(unsigned int id)
{
	return id < MMR_OP_LIMIT ? ops[id] : NULL;
}

const struct mmr_op *mmr_op_by_name(const char *name)
{
	unsigned int i;

	for (i = 0; i < MMR_OP_LIMIT; i++)
		if (ops[i] && strcmp(ops[i]->name, name) == 0)
			return ops[i];
	return NULL;
}

const char *mmr_op_calls(const struct mmr_op *op)
{
	const char *name = op->call.name;

	if (op->calls)
		return op->calls;
	if (!name)
		return "-";
	return strncmp(name, "SYS_", 4) == 0 ? name + 4 : name;
}

int mmr_op_arg(const struct mmr_op *op, const char *name)
{
	int i;

	for (i = 0; i < op->nargs; i++)
		if (strcmp(op->args[i].name, name) == 0)
			return i;
	return -1;
}
