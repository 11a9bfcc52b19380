/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory files: memory that is shared by descriptor, truncated while it is
 * mapped, and goes with its last user.
 */
#include <asm/unistd.h>
#include <linux/falloc.h>
#include <linux/memfd.h>

#include "args.h"

#ifndef MMR_CHILD
#include <string.h>

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

static const struct mmr_name_need memfd_flag_needs[] = {
	{MFD_HUGETLB, "feature=memfd_hugetlb"},
	{MMR_K_MFD_NOEXEC_SEAL, "feature=memfd_noexec_seal"},
	{MMR_K_MFD_EXEC, "feature=memfd_exec"},
	{0, NULL},
};

/* Sizes of huge pages, base two, where the kernel looks for them. */
#define HUGE(log) ((int64_t)(log) << MFD_HUGE_SHIFT)
static const struct mmr_name memfd_huge_names[] = {
	{"default", "0", 0},	       {"64k", "16u << 26", HUGE(16)},
	{"2m", "21u << 26", HUGE(21)}, {"32m", "25u << 26", HUGE(25)},
	{"1g", "30u << 26", HUGE(30)}, {NULL, NULL, 0},
};

/* Single bits: keep_size goes with punch_hole and zero_range. */
static const struct mmr_name fallocate_names[] = {
	{"keep_size", "FALLOC_FL_KEEP_SIZE", FALLOC_FL_KEEP_SIZE},
	{"punch_hole", "FALLOC_FL_PUNCH_HOLE", FALLOC_FL_PUNCH_HOLE},
	{"collapse_range", "FALLOC_FL_COLLAPSE_RANGE",
	 FALLOC_FL_COLLAPSE_RANGE},
	{"zero_range", "FALLOC_FL_ZERO_RANGE", FALLOC_FL_ZERO_RANGE},
	{"insert_range", "FALLOC_FL_INSERT_RANGE", FALLOC_FL_INSERT_RANGE},
	{"unshare_range", "FALLOC_FL_UNSHARE_RANGE", FALLOC_FL_UNSHARE_RANGE},
	{NULL, NULL, 0},
};

enum { MEMFD_FLAGS, MEMFD_HUGE };

#ifdef MMR_CHILD
static int64_t run_memfd_create(struct mmr_child *c, const struct mmr_insn *in)
{
	int64_t fd = mmr_sys2(__NR_memfd_create, mmr_sys_ptr("mmrace"),
			      MFD_CLOEXEC | in->arg[MEMFD_FLAGS].lo |
				      in->arg[MEMFD_HUGE].lo);

	if (fd >= 0 && in->dst >= 0)
		mmr_child_set_ref(c, in->dst, MMR_REF_FILE, fd,
				  mmr_content_new_file(c));
	return fd;
}

static int64_t run_close(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_close(c, in, 0);
}
#else
static void emit_memfd_create(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char flags[192], huge[32], var[64];

	mmr_emit_header(e, "sys/mman.h");
	flags[0] = '\0';
	if (s->args[MEMFD_FLAGS].lo) {
		strcpy(flags, " | ");
		mmr_emit_arg(e, s, MEMFD_FLAGS, flags + 3, sizeof(flags) - 3);
	}
	if (s->args[MEMFD_HUGE].set) {
		mmr_emit_arg(e, s, MEMFD_HUGE, huge, sizeof(huge));
		snprintf(flags + strlen(flags), sizeof(flags) - strlen(flags),
			 " | %s", huge);
	}
	if (s->ref)
		mmr_emit_step(
			e, "%s = memfd_create(\"mmrace\", MFD_CLOEXEC%s)",
			mmr_emit_var(e, s->ref, MMR_REF_FILE, var, sizeof(var)),
			flags);
	else
		mmr_emit_step(e, "memfd_create(\"mmrace\", MFD_CLOEXEC%s)",
			      flags);
}
#endif

const struct mmr_op mmr_op_memfd_create = {
	.id = MMR_OP_memfd_create,
	.name = "memfd_create",
	.help = "make a file that lives in memory",
	.race = "Pages with two owners, the file and whoever maps it.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_FILE,
	.nargs = 2,
	.args = {{.name = "flags",
		  .help = "kind of file",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = INT32_MAX,
		  .names = memfd_flag_names,
		  .needs = memfd_flag_needs},
		 {.name = "huge",
		  .help = "size of huge pages, with hugetlb",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_OPT,
		  .names = memfd_huge_names}},
	.call = {.nr = -1},
	.calls = "memfd_create",
	.needs = "syscall=memfd_create",
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
	.args = {MMR_ARG_FILE,
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

const struct mmr_op mmr_op_fallocate = {
	.id = MMR_OP_fallocate,
	.name = "fallocate",
	.help = "give pages to a part of a file, or take them from it",
	.race = "A hole is punched while others fault the pages in, map them "
		"privately, or wait for them.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 2000,
	.nargs = 4,
	.args = {MMR_ARG_FILE,
		 {.name = "mode",
		  .help = "what to do, give pages when left out",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = 255,
		  .names = fallocate_names},
		 {.name = "off",
		  .help = "start within the file",
		  .type = MMR_ARG_SIZE,
		  .flags = MMR_ARG_OPT,
		  .max = MMR_LEN_MAX},
		 {.name = "len",
		  .help = "bytes from there",
		  .type = MMR_ARG_SIZE,
		  .min = 1,
		  .max = 16LL << 30}},
	.call = {.name = "fallocate",
		 .has_wrapper = true,
		 .header = "fcntl.h",
		 .nr = __NR_fallocate,
		 .from = {{.from = MMR_FROM_FD, .arg = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1},
			  {.from = MMR_FROM_VALUE, .arg = 2},
			  {.from = MMR_FROM_VALUE, .arg = 3}}},
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
		  .kinds = MMR_REF_FILE | MMR_REF_PIDFD | MMR_REF_UFFD |
			   MMR_REF_PROC}},
	.call = {.name = "close",
		 .has_wrapper = true,
		 .header = "unistd.h",
		 .nr = __NR_close,
		 .from = {{.from = MMR_FROM_FD, .arg = 0}}},
	.run = MMR_RUN(run_close),
};
