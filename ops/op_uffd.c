/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userfaultfd: faults that wait for user space.  Registered and never served
 * is the canary of a hang in a page fault.
 */
#include <linux/userfaultfd.h>

#include "kernel.h"
#include "op.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include "child.h"
#endif

#define LEN_MAX (64LL << 40)

enum { UFFD_FLAGS };
enum { REG_UFFD, REG_MAP, REG_MODE, REG_OFF, REG_LEN, REG_ARGS };

static const struct mmr_name uffd_flag_names[] = {
	{"user_mode_only", "UFFD_USER_MODE_ONLY", MMR_K_UFFD_USER_MODE_ONLY},
	{NULL, NULL, 0},
};

static const struct mmr_name uffd_mode_names[] = {
	{"missing", "UFFDIO_REGISTER_MODE_MISSING",
	 UFFDIO_REGISTER_MODE_MISSING},
	{"wp", "UFFDIO_REGISTER_MODE_WP", MMR_K_UFFDIO_REGISTER_MODE_WP},
	{"minor", "UFFDIO_REGISTER_MODE_MINOR",
	 MMR_K_UFFDIO_REGISTER_MODE_MINOR},
	{NULL, NULL, 0},
};

#ifdef MMR_CHILD
static int64_t run_userfaultfd(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_userfaultfd(c, in, in->arg[UFFD_FLAGS].lo);
}

static int64_t run_uffd_register(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_uffd_register(c, in, REG_UFFD, REG_MAP, REG_OFF,
				       REG_LEN, (uint64_t)in->arg[REG_MODE].lo);
}
#else
static void emit_userfaultfd(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char flags[64], var[64];

	e->used |= MMR_USED_UFFD;
	mmr_emit_arg(e, s, UFFD_FLAGS, flags, sizeof(flags));
	if (s->ref)
		mmr_emit_step(
			e, "%s = uffd_open(%s)",
			mmr_emit_var(e, s->ref, MMR_REF_UFFD, var, sizeof(var)),
			flags);
	else
		mmr_emit_step(e, "uffd_open(%s)", flags);
}

static void emit_uffd_register(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char uffd[64], map[128], mode[128];

	e->used |= MMR_USED_UFFD_REGISTER;
	mmr_emit_arg(e, s, REG_UFFD, uffd, sizeof(uffd));
	mmr_emit_part(e, s, REG_MAP, map, sizeof(map));
	mmr_emit_arg(e, s, REG_MODE, mode, sizeof(mode));
	mmr_emit_step(e, "uffd_register(%s, %s, %s)", uffd, map, mode);
}
#endif

const struct mmr_op mmr_op_userfaultfd = {
	.id = MMR_OP_userfaultfd,
	.name = "userfaultfd",
	.help = "open a userfaultfd and agree on its interface",
	.race = "Faults that user space has to answer, late or never.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_UFFD,
	.nargs = 1,
	.args = {{.name = "flags",
		  .help = "user_mode_only needs no privilege",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = INT32_MAX,
		  .names = uffd_flag_names}},
	.call = {.nr = -1},
	.needs = "syscall=userfaultfd",
	.run = MMR_RUN(run_userfaultfd),
	.emit = MMR_EMIT(emit_userfaultfd),
};

const struct mmr_op mmr_op_uffd_register = {
	.id = MMR_OP_uffd_register,
	.name = "uffd_register",
	.help = "hand the faults of a mapping to a userfaultfd",
	.race = "Faults in the range stop until they are answered.",
	.class = MMR_CLASS_CALL,
	.nargs = REG_ARGS,
	.args =
		{
			{.name = "u",
			 .help = "the userfaultfd",
			 .type = MMR_ARG_REF,
			 .flags = MMR_ARG_POS,
			 .kinds = MMR_REF_UFFD},
			{.name = "m",
			 .help = "the mapping",
			 .type = MMR_ARG_REF,
			 .flags = MMR_ARG_POS,
			 .kinds = MMR_REF_MAPPING},
			{.name = "mode",
			 .help = "which faults",
			 .type = MMR_ARG_FLAGS,
			 .flags = MMR_ARG_OPT,
			 .min = 1,
			 .max = 7,
			 .def = UFFDIO_REGISTER_MODE_MISSING,
			 .names = uffd_mode_names},
			{.name = "off",
			 .help = "start within the mapping",
			 .type = MMR_ARG_SIZE,
			 .flags = MMR_ARG_OPT,
			 .max = LEN_MAX},
			{.name = "len",
			 .help = "bytes from there, 0: to its end",
			 .type = MMR_ARG_SIZE,
			 .flags = MMR_ARG_OPT,
			 .max = LEN_MAX},
		},
	.call = {.nr = -1},
	.run = MMR_RUN(run_uffd_register),
	.emit = MMR_EMIT(emit_uffd_register),
};
