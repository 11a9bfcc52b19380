/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_uring, as far as memory goes: a ring pins the pages of buffers that are
 * registered with it, until it is closed or its last process has ended.
 */
#include <asm/unistd.h>

#include "args.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include "child.h"
#endif

#define PARAMS 120 /* bytes of struct io_uring_params */

#ifdef MMR_CHILD
static int64_t run_io_uring_setup(struct mmr_child *c,
				  const struct mmr_insn *in)
{
	uint64_t params[PARAMS / 8] = {0};
	int64_t fd = mmr_sys2(MMR_K_SYS_io_uring_setup, in->arg[0].lo,
			      mmr_sys_ptr(params));

	if (fd >= 0)
		mmr_child_set_ref(c, in->dst, MMR_REF_FILE, fd, 0);
	return fd;
}
#else
static void emit_io_uring_setup(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char entries[32], var[64], assign[80] = "";

	mmr_emit_header(e, "sys/syscall.h");
	mmr_emit_header(e, "linux/io_uring.h");
	mmr_emit_constant(e, "SYS_io_uring_setup");
	if (s->ref)
		snprintf(assign, sizeof(assign), "%s = (int)",
			 mmr_emit_var(e, s->ref, MMR_REF_FILE, var,
				      sizeof(var)));
	mmr_emit_step(e,
		      "%ssyscall(SYS_io_uring_setup, %s, "
		      "&(struct io_uring_params){ 0 })",
		      assign, mmr_emit_arg(e, s, 0, entries, sizeof(entries)));
}
#endif

const struct mmr_op mmr_op_io_uring_setup = {
	.id = MMR_OP_io_uring_setup,
	.name = "io_uring_setup",
	.help = "make an io_uring",
	.race = "A ring keeps its process's memory in use beyond the exit.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_FILE,
	.nargs = 1,
	.args = {{.name = "entries",
		  .help = "of its queue",
		  .type = MMR_ARG_INT,
		  .flags = MMR_ARG_OPT,
		  .min = 1,
		  .max = 4096,
		  .def = 8}},
	.call = {.nr = -1},
	.calls = "io_uring_setup",
	.needs = "syscall=io_uring_setup",
	.run = MMR_RUN(run_io_uring_setup),
	.emit = MMR_EMIT(emit_io_uring_setup),
};

const struct mmr_op mmr_op_io_uring_register = {
	.id = MMR_OP_io_uring_register,
	.name = "io_uring_register",
	.help = "register a mapping with a ring: its pages are pinned",
	.race = "Pinned pages against fork, migration, unmapping and exit.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 2000,
	.nargs = 4,
	.args = {MMR_ARG_FILE, MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.name = "SYS_io_uring_register",
		 .header = "sys/syscall.h",
		 .nr = MMR_K_SYS_io_uring_register,
		 .from = {{.from = MMR_FROM_FD, .arg = 0},
			  {.from = MMR_FROM_CONST, .k = 0 /* buffers */},
			  {.from = MMR_FROM_IOV, .arg = 1},
			  {.from = MMR_FROM_CONST, .k = 1}}},
	.needs = "syscall=io_uring_setup",
};

const struct mmr_op mmr_op_io_uring_unregister = {
	.id = MMR_OP_io_uring_unregister,
	.name = "io_uring_unregister",
	.help = "take the registered mapping back from a ring: unpins its pages",
	.race = "Pages are unpinned while they are unmapped, forked, migrated.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 2000,
	.nargs = 1,
	.args = {MMR_ARG_FILE},
	.call = {.name = "SYS_io_uring_register",
		 .header = "sys/syscall.h",
		 .nr = MMR_K_SYS_io_uring_register,
		 .from = {{.from = MMR_FROM_FD, .arg = 0},
			  {.from = MMR_FROM_CONST, .k = 1 /* no buffers */},
			  {.from = MMR_FROM_CONST, .k = 0},
			  {.from = MMR_FROM_CONST, .k = 0}}},
	.needs = "syscall=io_uring_setup",
};
