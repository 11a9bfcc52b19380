/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arguments that many operations have, for the tables in op_<family>.c. */
#ifndef MMR_OPS_ARGS_H
#define MMR_OPS_ARGS_H

#include <linux/mman.h>

#include "kernel.h"
#include "op.h"

#define MMR_LEN_MAX (64LL << 40)
#define MMR_AT_MAX (256LL << 30) /* MMR_ARENA_SIZE */

/* clang-format off */

/* The mapping, and with off and len the part of it that a call is about. */
#define MMR_ARG_MAPPING_AS(n, what)					\
	{								\
		.name = (n), .help = (what), .type = MMR_ARG_REF,	\
		.flags = MMR_ARG_POS, .kinds = MMR_REF_MAPPING		\
	}
#define MMR_ARG_MAPPING MMR_ARG_MAPPING_AS("m", "the mapping")
#define MMR_ARG_OFF							\
	{								\
		.name = "off", .help = "start within the mapping",	\
		.type = MMR_ARG_SIZE, .flags = MMR_ARG_OPT,		\
		.max = MMR_LEN_MAX					\
	}
#define MMR_ARG_LEN							\
	{								\
		.name = "len", .help = "bytes from there, 0: to its end", \
		.type = MMR_ARG_SIZE, .flags = MMR_ARG_OPT,		\
		.max = MMR_LEN_MAX					\
	}
#define MMR_ARG_PROCESS_AS(what, which)					\
	{								\
		.name = "p", .help = (what), .type = MMR_ARG_REF,	\
		.flags = MMR_ARG_POS, .kinds = (which)			\
	}
#define MMR_ARG_FILE							\
	{								\
		.name = "f", .help = "the file", .type = MMR_ARG_REF,	\
		.flags = MMR_ARG_POS, .kinds = MMR_REF_FILE		\
	}
#define MMR_ARG_UFFD							\
	{								\
		.name = "u", .help = "the userfaultfd",			\
		.type = MMR_ARG_REF, .flags = MMR_ARG_POS,		\
		.kinds = MMR_REF_UFFD					\
	}

/* Kernel arguments: address and length of that part. */
#define MMR_FROM_PART							\
	{.from = MMR_FROM_ADDR, .arg = 0}, {.from = MMR_FROM_LEN, .arg = 0}

/* NUMA nodes, one bit each. */
#define MMR_NODE_NAMES							\
	{"n0", "1ul << 0", 1 << 0}, {"n1", "1ul << 1", 1 << 1},		\
	{"n2", "1ul << 2", 1 << 2}, {"n3", "1ul << 3", 1 << 3},		\
	{"n4", "1ul << 4", 1 << 4}, {"n5", "1ul << 5", 1 << 5},		\
	{"n6", "1ul << 6", 1 << 6}, {"n7", "1ul << 7", 1 << 7},		\
	{NULL, NULL, 0}

/* Without hwpoison and soft_offline. */
#define MMR_ADVICE_NAMES						\
	{"normal", "MADV_NORMAL", MADV_NORMAL},				\
	{"random", "MADV_RANDOM", MADV_RANDOM},				\
	{"sequential", "MADV_SEQUENTIAL", MADV_SEQUENTIAL},		\
	{"willneed", "MADV_WILLNEED", MADV_WILLNEED},			\
	{"dontneed", "MADV_DONTNEED", MADV_DONTNEED},			\
	{"free", "MADV_FREE", MADV_FREE},				\
	{"remove", "MADV_REMOVE", MADV_REMOVE},				\
	{"dontfork", "MADV_DONTFORK", MADV_DONTFORK},			\
	{"dofork", "MADV_DOFORK", MADV_DOFORK},				\
	{"mergeable", "MADV_MERGEABLE", MADV_MERGEABLE},		\
	{"unmergeable", "MADV_UNMERGEABLE", MADV_UNMERGEABLE},		\
	{"hugepage", "MADV_HUGEPAGE", MADV_HUGEPAGE},			\
	{"nohugepage", "MADV_NOHUGEPAGE", MADV_NOHUGEPAGE},		\
	{"dontdump", "MADV_DONTDUMP", MADV_DONTDUMP},			\
	{"dodump", "MADV_DODUMP", MADV_DODUMP},				\
	{"wipeonfork", "MADV_WIPEONFORK", MADV_WIPEONFORK},		\
	{"keeponfork", "MADV_KEEPONFORK", MADV_KEEPONFORK},		\
	{"cold", "MADV_COLD", MMR_K_MADV_COLD},				\
	{"pageout", "MADV_PAGEOUT", MMR_K_MADV_PAGEOUT},		\
	{"populate_read", "MADV_POPULATE_READ",				\
	 MMR_K_MADV_POPULATE_READ},					\
	{"populate_write", "MADV_POPULATE_WRITE",			\
	 MMR_K_MADV_POPULATE_WRITE},					\
	{"dontneed_locked", "MADV_DONTNEED_LOCKED",			\
	 MMR_K_MADV_DONTNEED_LOCKED},					\
	{"collapse", "MADV_COLLAPSE", MMR_K_MADV_COLLAPSE},		\
	{"guard_install", "MADV_GUARD_INSTALL",				\
	 MMR_K_MADV_GUARD_INSTALL},					\
	{"guard_remove", "MADV_GUARD_REMOVE", MMR_K_MADV_GUARD_REMOVE}

#define MMR_ADVICE_NEEDS						\
	{MADV_FREE, "feature=madv_free"},				\
	{MADV_MERGEABLE, "feature=madv_mergeable"},			\
	{MADV_UNMERGEABLE, "feature=madv_mergeable"},			\
	{MADV_HUGEPAGE, "feature=madv_hugepage"},			\
	{MADV_NOHUGEPAGE, "feature=madv_hugepage"},			\
	{MADV_WIPEONFORK, "feature=madv_wipeonfork"},			\
	{MADV_KEEPONFORK, "feature=madv_wipeonfork"},			\
	{MMR_K_MADV_COLD, "feature=madv_cold"},				\
	{MMR_K_MADV_PAGEOUT, "feature=madv_pageout"},			\
	{MMR_K_MADV_POPULATE_READ, "feature=madv_populate_read"},	\
	{MMR_K_MADV_POPULATE_WRITE, "feature=madv_populate_write"},	\
	{MMR_K_MADV_DONTNEED_LOCKED, "feature=madv_dontneed_locked"},	\
	{MMR_K_MADV_COLLAPSE, "feature=madv_collapse"},			\
	{MMR_K_MADV_GUARD_INSTALL, "feature=madv_guard_install"},	\
	{MMR_K_MADV_GUARD_REMOVE, "feature=madv_guard_install"}
/* clang-format on */

#endif
