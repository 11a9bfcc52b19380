/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that stays: mlock, mlock2, munlock, mlockall, munlockall.  Locking
 * faults all pages in, and takes each page off the lists that reclaim and
 * migration work on.
 */
#include <asm/unistd.h>

#include "args.h"

static const struct mmr_name mlock2_names[] = {
	{"onfault", "MLOCK_ONFAULT", MLOCK_ONFAULT},
	{NULL, NULL, 0},
};

static const struct mmr_name mlockall_names[] = {
	{"current", "MCL_CURRENT", MCL_CURRENT},
	{"future", "MCL_FUTURE", MCL_FUTURE},
	{"onfault", "MCL_ONFAULT", MCL_ONFAULT},
	{NULL, NULL, 0},
};

const struct mmr_op mmr_op_mlock = {
	.id = MMR_OP_mlock,
	.name = "mlock",
	.help = "fault a mapping or a part of it in and keep it in memory",
	.race = "Populates with the lock given up and taken again, beside "
		"unmapping, migration and exit.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 2000,
	.nargs = 3,
	.args = {MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.name = "mlock",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_mlock,
		 .from = {MMR_FROM_PART}},
};

const struct mmr_op mmr_op_mlock2 = {
	.id = MMR_OP_mlock2,
	.name = "mlock2",
	.help = "mlock with flags: onfault locks pages as they come",
	.race = "Pages are locked by the fault that brings them.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 2000,
	.nargs = 4,
	.args = {MMR_ARG_MAPPING,
		 {.name = "flags",
		  .help = "when",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = 1,
		  .names = mlock2_names},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
	/* libc calls mlock for it when there are no flags. */
	.call = {.name = "SYS_mlock2",
		 .header = "sys/mman.h",
		 .nr = __NR_mlock2,
		 .from = {MMR_FROM_PART, {.from = MMR_FROM_VALUE, .arg = 1}}},
	.needs = "syscall=mlock2",
};

const struct mmr_op mmr_op_munlock = {
	.id = MMR_OP_munlock,
	.name = "munlock",
	.help = "let a mapping or a part of it go from memory again",
	.race = "Pages go back on the lists of reclaim, while faults and "
		"migration look at them.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 500,
	.nargs = 3,
	.args = {MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.name = "munlock",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_munlock,
		 .from = {MMR_FROM_PART}},
};

const struct mmr_op mmr_op_mlockall = {
	.id = MMR_OP_mlockall,
	.name = "mlockall",
	.help = "lock all that the own process has mapped, or will map",
	.race = "Goes over all mappings, beside those that come and go.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 2000,
	.nargs = 1,
	.args = {{.name = "flags",
		  .help = "what and when",
		  .type = MMR_ARG_FLAGS,
		  .min = 1,
		  .max = 7,
		  .names = mlockall_names}},
	.call = {.name = "mlockall",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_mlockall,
		 .from = {{.from = MMR_FROM_VALUE, .arg = 0}}},
};

const struct mmr_op mmr_op_munlockall = {
	.id = MMR_OP_munlockall,
	.name = "munlockall",
	.help = "undo mlockall and every mlock of the own process",
	.race = "Goes over all mappings, beside those that come and go.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 500,
	.call = {.name = "munlockall",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_munlockall,
		 .from = {{.from = MMR_FROM_END}}},
};
