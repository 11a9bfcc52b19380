/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userfaultfd: faults that wait for user space.  Registered and never served
 * is the canary of a hang in a page fault.
 */
#include <linux/userfaultfd.h>

#include "args.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include "child.h"
#endif

enum { UFFD_FLAGS, UFFD_FEATURES };
enum { REG_UFFD, REG_MAP, REG_MODE, REG_OFF, REG_LEN, REG_ARGS };

static const struct mmr_name uffd_flag_names[] = {
	{"user_mode_only", "UFFD_USER_MODE_ONLY", MMR_K_UFFD_USER_MODE_ONLY},
	{NULL, NULL, 0},
};

static const struct mmr_name_need uffd_flag_needs[] = {
	{MMR_K_UFFD_USER_MODE_ONLY, "feature=uffd_user_mode_only"},
	{0, NULL},
};

static const struct mmr_name_need uffd_flag_without[] = {
	{MMR_K_UFFD_USER_MODE_ONLY, "feature=uffd_kernel_faults"},
	{0, NULL},
};

/* clang-format off */
#define FEATURE(name, c)						\
	{ name, "UFFD_FEATURE_" #c, UFFD_FEATURE_##c }
#define NEW_FEATURE(name, c)						\
	{ name, "UFFD_FEATURE_" #c, MMR_K_UFFD_FEATURE_##c }
static const struct mmr_name feature_names[] = {
	FEATURE("event_fork", EVENT_FORK),
	FEATURE("event_remap", EVENT_REMAP),
	FEATURE("event_remove", EVENT_REMOVE),
	FEATURE("event_unmap", EVENT_UNMAP),
	FEATURE("missing_hugetlbfs", MISSING_HUGETLBFS),
	FEATURE("missing_shmem", MISSING_SHMEM),
	FEATURE("wp", PAGEFAULT_FLAG_WP),
	FEATURE("sigbus", SIGBUS),
	FEATURE("thread_id", THREAD_ID),
	NEW_FEATURE("minor_hugetlbfs", MINOR_HUGETLBFS),
	NEW_FEATURE("minor_shmem", MINOR_SHMEM),
	NEW_FEATURE("exact_address", EXACT_ADDRESS),
	NEW_FEATURE("wp_hugetlbfs_shmem", WP_HUGETLBFS_SHMEM),
	NEW_FEATURE("wp_unpopulated", WP_UNPOPULATED),
	NEW_FEATURE("poison", POISON),
	NEW_FEATURE("wp_async", WP_ASYNC),
	NEW_FEATURE("move", MOVE),
	{NULL, NULL, 0},
};

static const struct mmr_name_need feature_needs[] = {
	{UFFD_FEATURE_EVENT_FORK, "feature=uffd_event_fork"},
	{UFFD_FEATURE_EVENT_REMAP, "feature=uffd_event_remap"},
	{UFFD_FEATURE_EVENT_REMOVE, "feature=uffd_event_remove"},
	{UFFD_FEATURE_EVENT_UNMAP, "feature=uffd_event_unmap"},
	{UFFD_FEATURE_MISSING_HUGETLBFS, "feature=uffd_missing_hugetlbfs"},
	{UFFD_FEATURE_MISSING_SHMEM, "feature=uffd_missing_shmem"},
	{UFFD_FEATURE_PAGEFAULT_FLAG_WP, "feature=uffd_wp"},
	{UFFD_FEATURE_SIGBUS, "feature=uffd_sigbus"},
	{UFFD_FEATURE_THREAD_ID, "feature=uffd_thread_id"},
	{MMR_K_UFFD_FEATURE_MINOR_HUGETLBFS, "feature=uffd_minor_hugetlbfs"},
	{MMR_K_UFFD_FEATURE_MINOR_SHMEM, "feature=uffd_minor_shmem"},
	{MMR_K_UFFD_FEATURE_EXACT_ADDRESS, "feature=uffd_exact_address"},
	{MMR_K_UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	 "feature=uffd_wp_hugetlbfs_shmem"},
	{MMR_K_UFFD_FEATURE_WP_UNPOPULATED, "feature=uffd_wp_unpopulated"},
	{MMR_K_UFFD_FEATURE_POISON, "feature=uffd_poison"},
	{MMR_K_UFFD_FEATURE_WP_ASYNC, "feature=uffd_wp_async"},
	{MMR_K_UFFD_FEATURE_MOVE, "feature=uffd_move"},
	{0, NULL},
};

static const struct mmr_name_need uffd_mode_needs[] = {
	{MMR_K_UFFDIO_REGISTER_MODE_WP, "feature=uffd_wp"},
	{MMR_K_UFFDIO_REGISTER_MODE_MINOR, "feature=uffd_minor_shmem"},
	{0, NULL},
};
/* clang-format on */

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
	return mmr_child_userfaultfd(c, in, in->arg[UFFD_FLAGS].lo,
				     (uint64_t)in->arg[UFFD_FEATURES].lo);
}

static int64_t run_uffd_register(struct mmr_child *c, const struct mmr_insn *in)
{
	/* Who would answer has left with the storm. */
	if (mmr_child_stopping(c))
		return MMR_SKIPPED;
	return mmr_child_uffd_register(c, in, REG_UFFD, REG_MAP, REG_OFF,
				       REG_LEN, (uint64_t)in->arg[REG_MODE].lo);
}
#else
static void emit_userfaultfd(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char flags[64], features[800], var[64];

	e->used |= MMR_USED_UFFD;
	mmr_emit_arg(e, s, UFFD_FLAGS, flags, sizeof(flags));
	mmr_emit_arg(e, s, UFFD_FEATURES, features, sizeof(features));
	if (s->ref)
		mmr_emit_step(
			e, "%s = uffd_open(%s, %s)",
			mmr_emit_var(e, s->ref, MMR_REF_UFFD, var, sizeof(var)),
			flags, features);
	else
		mmr_emit_step(e, "uffd_open(%s, %s)", flags, features);
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
	.nargs = 2,
	.args = {{.name = "flags",
		  .help = "user_mode_only needs no privilege",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = INT32_MAX,
		  .names = uffd_flag_names,
		  .needs = uffd_flag_needs,
		  .without = uffd_flag_without},
		 {.name = "features",
		  .help = "what it asks for in the handshake",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = INT32_MAX,
		  .names = feature_names,
		  .needs = feature_needs}},
	.call = {.nr = -1},
	.calls = "userfaultfd ioctl",
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
			 .names = uffd_mode_names,
			 .needs = uffd_mode_needs},
			{.name = "off",
			 .help = "start within the mapping",
			 .type = MMR_ARG_SIZE,
			 .flags = MMR_ARG_OPT,
			 .max = MMR_LEN_MAX},
			{.name = "len",
			 .help = "bytes from there, 0: to its end",
			 .type = MMR_ARG_SIZE,
			 .flags = MMR_ARG_OPT,
			 .max = MMR_LEN_MAX},
		},
	.call = {.nr = -1},
	.calls = "ioctl",
	.run = MMR_RUN(run_uffd_register),
	.emit = MMR_EMIT(emit_uffd_register),
};
