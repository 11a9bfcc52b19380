/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where memory lies among NUMA nodes: policies, and pages that move.  What a
 * move costs depends on privilege (shared pages move only with CAP_SYS_NICE),
 * direction, and the number of processes that map a page.
 */
#include <asm/unistd.h>
#include <linux/mempolicy.h>

#include "args.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include "child.h"
#endif

#define MOVE_PAGES 256 /* of a move_pages, on a small stack */

static const struct mmr_name node_names[] = {MMR_NODE_NAMES};

static const struct mmr_name mode_names[] = {
	{"default", "MPOL_DEFAULT", MPOL_DEFAULT},
	{"preferred", "MPOL_PREFERRED", MPOL_PREFERRED},
	{"bind", "MPOL_BIND", MPOL_BIND},
	{"interleave", "MPOL_INTERLEAVE", MPOL_INTERLEAVE},
	{"local", "MPOL_LOCAL", MPOL_LOCAL},
	{"preferred_many", "MPOL_PREFERRED_MANY", MMR_K_MPOL_PREFERRED_MANY},
	{"weighted_interleave", "MPOL_WEIGHTED_INTERLEAVE",
	 MMR_K_MPOL_WEIGHTED_INTERLEAVE},
	{NULL, NULL, 0},
};

static const struct mmr_name_need mode_needs[] = {
	{MMR_K_MPOL_PREFERRED_MANY, "feature=mpol_preferred_many"},
	{MMR_K_MPOL_WEIGHTED_INTERLEAVE, "feature=mpol_weighted_interleave"},
	{0, NULL},
};

static const struct mmr_name how_names[] = {
	{"static_nodes", "MPOL_F_STATIC_NODES", MPOL_F_STATIC_NODES},
	{"relative_nodes", "MPOL_F_RELATIVE_NODES", MPOL_F_RELATIVE_NODES},
	{"numa_balancing", "MPOL_F_NUMA_BALANCING", MPOL_F_NUMA_BALANCING},
	{NULL, NULL, 0},
};

static const struct mmr_name mbind_names[] = {
	{"strict", "MPOL_MF_STRICT", MPOL_MF_STRICT},
	{"move", "MPOL_MF_MOVE", MPOL_MF_MOVE},
	{"move_all", "MPOL_MF_MOVE_ALL", MPOL_MF_MOVE_ALL},
	{NULL, NULL, 0},
};

static const struct mmr_name move_names[] = {
	{"move", "MPOL_MF_MOVE", MPOL_MF_MOVE},
	{"move_all", "MPOL_MF_MOVE_ALL", MPOL_MF_MOVE_ALL},
	{NULL, NULL, 0},
};

#define ARG_MODE                                                               \
	{                                                                      \
		.name = "mode", .help = "kind of policy",                      \
		.type = MMR_ARG_ENUM, .names = mode_names, .needs = mode_needs \
	}
#define ARG_NODES                                                              \
	{                                                                      \
		.name = "nodes", .help = "which nodes it is about",            \
		.type = MMR_ARG_FLAGS, .flags = MMR_ARG_OPT, .max = 255,       \
		.names = node_names                                            \
	}
#define ARG_HOW                                                                \
	{                                                                      \
		.name = "how", .help = "what the nodes mean to the policy",    \
		.type = MMR_ARG_FLAGS, .flags = MMR_ARG_OPT, .max = INT32_MAX, \
		.names = how_names                                             \
	}

enum { MOVE_PROCESS, MOVE_MAP, MOVE_TO, MOVE_FLAGS, MOVE_OFF, MOVE_LEN };

#ifdef MMR_CHILD
/* One call a process of the set, each for the same addresses. */
static int64_t run_move_pages(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t page = c->program->page_size, addr, size, n, i;
	struct mmr_ref_value v = {MMR_REF_PROCESS, 0, 1};
	int64_t member, ret, first = 0, pid = 0;
	bool other = in->arg[MOVE_PROCESS].lo >= 0;
	uint64_t pages[MOVE_PAGES];
	int32_t nodes[MOVE_PAGES], status[MOVE_PAGES];

	if (!mmr_child_part(c, in, MOVE_MAP, MOVE_OFF, MOVE_LEN, &addr, &size))
		return MMR_SKIPPED;
	if (other)
		v = mmr_child_ref(c, in->arg[MOVE_PROCESS].lo, MMR_REF_PROCESS);
	if (!v.kind)
		return MMR_SKIPPED;
	n = (size + page - 1) / page;
	if (n > MOVE_PAGES)
		n = MOVE_PAGES;
	for (i = 0; i < n; i++) {
		pages[i] = addr + i * page;
		nodes[i] = (int32_t)in->arg[MOVE_TO].lo;
	}
	for (member = 0; member < v.b; member++) {
		if (other)
			pid = atomic_load(&c->procs[v.a + member].pid);
		ret = other && !pid ? -3 /* ESRCH */
				    : mmr_sys6(__NR_move_pages, pid, (int64_t)n,
					       mmr_sys_ptr(pages),
					       in->set >> MOVE_TO & 1
						       ? mmr_sys_ptr(nodes)
						       : 0,
					       mmr_sys_ptr(status),
					       in->arg[MOVE_FLAGS].lo);
		if (!member || (ret < 0 && first >= 0))
			first = ret;
	}
	return first;
}
#else
static const char move_pages_c[] =
	"/* Pages of m to a node, or (-1) just asks where they are. */\n"
	"static long move_to(pid_t pid, struct map m, int node, int flags)\n"
	"{\n"
	"\tstatic __thread int to[256], status[256];\n"
	"\tstatic __thread void *at[256];\n"
	"\tsize_t size = getpagesize(), n;\n"
	"\n"
	"\tfor (n = 0; n < 256 && n * size < m.len; n++) {\n"
	"\t\tat[n] = m.at + n * size;\n"
	"\t\tto[n] = node;\n"
	"\t}\n"
	"\treturn syscall(SYS_move_pages, pid, n, at, node < 0 ? NULL : to,\n"
	"\t\t       status, flags);\n"
	"}\n\n";

static void emit_move_pages(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char p[80] = "", pid[96] = "0", map[128], flags[64];
	bool other = mmr_emit_ref_kind(e, s, MOVE_PROCESS) != MMR_REF_NONE;

	mmr_emit_header(e, "sys/syscall.h");
	mmr_emit_header(e, "linux/mempolicy.h");
	mmr_emit_header(e, "unistd.h");
	e->used |= MMR_USED_MAP;
	mmr_emit_helper(e, move_pages_c);
	mmr_emit_part(e, s, MOVE_MAP, map, sizeof(map));
	mmr_emit_arg(e, s, MOVE_FLAGS, flags, sizeof(flags));
	if (other) {
		mmr_emit_each(e, s, MOVE_PROCESS, p, sizeof(p));
		snprintf(pid, sizeof(pid), "%s%s", p, mmr_emit_pid(e));
	}
	mmr_emit_step(e, "move_to(%s, %s, %d, %s)", pid, map,
		      s->args[MOVE_TO].set ? (int)s->args[MOVE_TO].lo : -1,
		      flags);
	if (other)
		mmr_emit_each_end(e);
}
#endif

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

const struct mmr_op mmr_op_mbind = {
	.id = MMR_OP_mbind,
	.name = "mbind",
	.help = "set the NUMA policy of a mapping or a part of it",
	.race = "Splits mappings, changes a policy that faults look at, and "
		"moves pages with move or move_all.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 5000,
	.nargs = 7,
	.args = {MMR_ARG_MAPPING,
		 ARG_MODE,
		 ARG_NODES,
		 ARG_HOW,
		 {.name = "flags",
		  .help = "what becomes of pages that are there",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = 7,
		  .names = mbind_names},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
	.call = {.name = "SYS_mbind",
		 .header = "linux/mempolicy.h",
		 .nr = __NR_mbind,
		 .from = {MMR_FROM_PART,
			  {.from = MMR_FROM_VALUE, .arg = 1, .also = 4},
			  {.from = MMR_FROM_POINTER, .arg = 2},
			  {.from = MMR_FROM_CONST, .k = 64},
			  {.from = MMR_FROM_VALUE, .arg = 4}}},
	.needs = "syscall=mbind",
};

const struct mmr_op mmr_op_set_mempolicy = {
	.id = MMR_OP_set_mempolicy,
	.name = "set_mempolicy",
	.help = "set the NUMA policy of the calling thread",
	.race = "The policy that each fault of the thread looks at.",
	.class = MMR_CLASS_CALL,
	.nargs = 3,
	.args = {ARG_MODE, ARG_NODES, ARG_HOW},
	.call = {.name = "SYS_set_mempolicy",
		 .header = "linux/mempolicy.h",
		 .nr = __NR_set_mempolicy,
		 .from = {{.from = MMR_FROM_VALUE, .arg = 0, .also = 3},
			  {.from = MMR_FROM_POINTER, .arg = 1},
			  {.from = MMR_FROM_CONST, .k = 64}}},
	.needs = "syscall=set_mempolicy",
};

const struct mmr_op mmr_op_set_mempolicy_home_node = {
	.id = MMR_OP_set_mempolicy_home_node,
	.name = "set_mempolicy_home_node",
	.help = "say at which node a policy of several nodes begins",
	.race = "Changes a policy in place that faults look at.",
	.class = MMR_CLASS_CALL,
	.nargs = 4,
	.args = {MMR_ARG_MAPPING,
		 {.name = "node",
		  .help = "the node",
		  .type = MMR_ARG_INT,
		  .max = 1023},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
	.call = {.name = "SYS_set_mempolicy_home_node",
		 .header = "sys/syscall.h",
		 .nr = MMR_K_SYS_set_mempolicy_home_node,
		 .from = {MMR_FROM_PART,
			  {.from = MMR_FROM_VALUE, .arg = 1},
			  {.from = MMR_FROM_CONST, .k = 0}}},
	.needs = "syscall=set_mempolicy_home_node",
};

const struct mmr_op mmr_op_move_pages = {
	.id = MMR_OP_move_pages,
	.name = "move_pages",
	.help = "move pages of a mapping to a node, 256 at most, or ask where "
		"they are",
	.race = "Pages are isolated one by one and migrated together, while "
		"they are unmapped, split or shared.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 5000,
	.nargs = 6,
	.args = {{.name = "p",
		  .help = "in whose memory, the caller's when left out",
		  .type = MMR_ARG_REF,
		  .flags = MMR_ARG_OPT,
		  .kinds = MMR_REF_PROCESS},
		 MMR_ARG_MAPPING,
		 {.name = "to",
		  .help = "the node, just asks when left out",
		  .type = MMR_ARG_INT,
		  .flags = MMR_ARG_OPT,
		  .max = 1023,
		  .def = -1},
		 {.name = "flags",
		  .help = "move_all: pages that others map too",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = 6,
		  .def = MPOL_MF_MOVE,
		  .names = move_names},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
	.call = {.nr = -1},
	.calls = "move_pages",
	.needs = "syscall=move_pages",
	.run = MMR_RUN(run_move_pages),
	.emit = MMR_EMIT(emit_move_pages),
};
