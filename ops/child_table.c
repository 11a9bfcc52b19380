// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Operations by id, for mmrace-child.  Constant data: what the generic runner
 * needs beyond a descriptor is worked out once by the supervisor, which keeps
 * name comparisons off the path of a call.
 */
#include "child_machine.h"

#define MMR_OP(id, name, family)                                               \
	_Static_assert((id) < MMR_PLANS, "MMR_PLANS is too small for " #name);
#include "ops.def"
#undef MMR_OP

static const struct mmr_op *const ops[MMR_OP_LIMIT] = {
#define MMR_OP(id, name, family) [id] = &mmr_op_##name,
#include "ops.def"
#undef MMR_OP
};

const struct mmr_op *mmr_table_op(unsigned int id)
{
	return id < MMR_OP_LIMIT ? ops[id] : NULL;
}

static int arg_index(const struct mmr_op *op, const char *name)
{
	const char *a, *b;
	int i;

	for (i = 0; i < op->nargs; i++) {
		for (a = op->args[i].name, b = name; *a && *a == *b; a++, b++)
			;
		if (*a == *b)
			return i;
	}
	return -1;
}

void mmr_table_plan(struct mmr_plan *plan, const struct mmr_op *op)
{
	int i;

	plan->run = op->run;
	plan->nr = op->call.nr;
	plan->makes = op->makes;
	plan->off = (int8_t)arg_index(op, "off");
	plan->len = (int8_t)arg_index(op, "len");
	for (i = 0; i < 6; i++) {
		plan->from[i] = op->call.from[i].from;
		plan->arg[i] = op->call.from[i].arg;
		if (plan->from[i] != MMR_FROM_CONST)
			continue;
		if (op->call.from[i].k >= 0 && op->call.from[i].k < 256) {
			plan->arg[i] = (uint8_t)op->call.from[i].k;
		} else {
			plan->from[i] = MMR_PLAN_CONST;
			plan->arg[i] = 0;
		}
	}
}
