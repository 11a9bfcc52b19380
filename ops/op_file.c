/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory files: memory that is shared by descriptor, truncated while it is
 * mapped, and goes with its last user.
 */
#include <asm/unistd.h>
#include <linux/memfd.h>

#include "kernel.h"
#include "op.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include "child.h"
#endif

static const struct mmr_name memfd_flag_names[] = {
	{"hugetlb", "MFD_HUGETLB", MFD_HUGETLB},
	{"allow_sealing", "MFD_ALLOW_SEALING", MFD_ALLOW_SEALING},
	{"noexec_seal", "MFD_NOEXEC_SEAL", MMR_K_MFD_NOEXEC_SEAL},
	{"exec", "MFD_EXEC", MMR_K_MFD_EXEC},
	{NULL, NULL, 0},
};

#ifdef MMR_CHILD
static int64_t run_memfd_create(struct mmr_child *c, const struct mmr_insn *in)
{
	int64_t fd = mmr_sys2(__NR_memfd_create, mmr_sys_ptr("mmrace"),
			      MFD_CLOEXEC | in->arg[0].lo);

	if (fd >= 0 && in->dst >= 0)
		mmr_child_set_ref(c, in->dst, MMR_REF_FILE, fd, 0);
	return fd;
}

static int64_t run_close(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_close(c, in, 0);
}
#else
static void emit_memfd_create(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char flags[128], var[64];

	mmr_emit_header(e, "sys/mman.h");
	mmr_emit_arg(e, s, 0, flags, sizeof(flags));
	if (s->ref)
		mmr_emit_step(
			e, "%s = memfd_create(\"mmrace\", %s)",
			mmr_emit_var(e, s->ref, MMR_REF_FILE, var, sizeof(var)),
			flags);
	else
		mmr_emit_step(e, "memfd_create(\"mmrace\", %s)", flags);
}
#endif

const struct mmr_op mmr_op_memfd_create = {
	.id = MMR_OP_memfd_create,
	.name = "memfd_create",
	.help = "make a file that lives in memory",
	.race = "Pages with two owners, the file and whoever maps it.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_FILE,
	.nargs = 1,
	.args = {{.name = "flags",
		  .help = "kind of file",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = INT32_MAX,
		  .names = memfd_flag_names}},
	.call = {.nr = -1},
	.run = MMR_RUN(run_memfd_create),
	.emit = MMR_EMIT(emit_memfd_create),
};

const struct mmr_op mmr_op_ftruncate = {
	.id = MMR_OP_ftruncate,
	.name = "ftruncate",
	.help = "set the length of a file",
	.race = "Takes pages away from under mappings and faults.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 300,
	.nargs = 2,
	.args = {{.name = "f",
		  .help = "the file",
		  .type = MMR_ARG_REF,
		  .flags = MMR_ARG_POS,
		  .kinds = MMR_REF_FILE},
		 {.name = "len",
		  .help = "new length",
		  .type = MMR_ARG_SIZE,
		  .max = 64LL << 40}},
	.call = {.name = "ftruncate",
		 .has_wrapper = true,
		 .header = "unistd.h",
		 .nr = __NR_ftruncate,
		 .from = {{.from = MMR_FROM_FD, .arg = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1}}},
};

const struct mmr_op mmr_op_close = {
	.id = MMR_OP_close,
	.name = "close",
	.help = "close a file, pidfd or userfaultfd",
	.race = "The last reference may go here: to the file's pages, or to "
		"the faults that wait for an answer.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 300,
	.nargs = 1,
	.args = {{.name = "fd",
		  .help = "what to close",
		  .type = MMR_ARG_REF,
		  .flags = MMR_ARG_POS,
		  .kinds = MMR_REF_FILE | MMR_REF_PIDFD | MMR_REF_UFFD}},
	.call = {.name = "close",
		 .has_wrapper = true,
		 .header = "unistd.h",
		 .nr = __NR_close,
		 .from = {{.from = MMR_FROM_FD, .arg = 0}}},
	.run = MMR_RUN(run_close),
};
