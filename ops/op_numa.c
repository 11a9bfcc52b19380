/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moving memory between NUMA nodes.  What it costs depends on privilege
 * (shared pages move only with CAP_SYS_NICE), direction, and the number of
 * processes that map a page.
 */
#include <asm/unistd.h>

#include "op.h"

#define NODE(n)                                                                \
	{                                                                      \
		"n" #n, "1ul << " #n, 1LL << (n)                               \
	}
static const struct mmr_name node_names[] = {
	NODE(0), NODE(1), NODE(2), NODE(3),	    NODE(4),
	NODE(5), NODE(6), NODE(7), {NULL, NULL, 0},
};

const struct mmr_op mmr_op_migrate_pages = {
	.id = MMR_OP_migrate_pages,
	.name = "migrate_pages",
	.help = "move a process's pages from one set of nodes to another",
	.race = "Entries become migration entries and come back, while "
		"sharers fault on them, fork and exit.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 5000,
	.nargs = 3,
	.args =
		{
			{.name = "p",
			 .help = "whose pages, the caller's when left out",
			 .type = MMR_ARG_REF,
			 .flags = MMR_ARG_POS | MMR_ARG_OPT,
			 .kinds = MMR_REF_PROCESS},
			{.name = "from",
			 .help = "nodes to leave",
			 .type = MMR_ARG_FLAGS,
			 .max = 255,
			 .names = node_names},
			{.name = "to",
			 .help = "nodes to go to",
			 .type = MMR_ARG_FLAGS,
			 .max = 255,
			 .names = node_names},
		},
	.call = {.name = "SYS_migrate_pages",
		 .header = "sys/syscall.h",
		 .nr = __NR_migrate_pages,
		 .from = {{.from = MMR_FROM_PID, .arg = 0},
			  {.from = MMR_FROM_CONST, .k = 64},
			  {.from = MMR_FROM_POINTER, .arg = 1},
			  {.from = MMR_FROM_POINTER, .arg = 2}}},
	.needs = "syscall=migrate_pages",
};
