/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory cgroups: limits that are reached, groups that freeze, move and go
 * while their pages are faulted in, migrated and freed.
 *
 * A case has up to four groups of its own, a to d, below a folder that the
 * engine makes for it (needs memcg) and removes.  v1 keeps what can be frozen
 * in another hierarchy; a group then has a twin there, with the same members.
 */
#include <asm/unistd.h>

#include "op.h"

#ifndef MMR_CHILD
#include <stdio.h>
#include <string.h>

#include "case.h"
#include "emit.h"
#include "setting.h"
#else
#include "child.h"
#endif

#define LEN_MAX (64LL << 40)

static const struct mmr_name group_names[] = {
	{"a", "a", 0}, {"b", "b", 1},	{"c", "c", 2},
	{"d", "d", 3}, {NULL, NULL, 0},
};

static const struct mmr_name home_names[] = {
	{"a", "a", 0}, {"b", "b", 1},	      {"c", "c", 2},
	{"d", "d", 3}, {"home", "../run", 4}, {NULL, NULL, 0},
};

static const struct mmr_name limit_names[] = {
	{"max", "memory.max", 0},
	{"swap", "memory.swap.max", 1},
	{NULL, NULL, 0},
};

#ifdef MMR_CHILD
static int64_t run_cgroup_create(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_cgroup_create(c, (uint32_t)in->arg[0].lo);
}

static int64_t run_cgroup_remove(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_cgroup_remove(c, (uint32_t)in->arg[0].lo);
}

static int64_t run_cgroup_limit(struct mmr_child *c, const struct mmr_insn *in)
{
	static const char files[2][2][32] = {
		{"memory.limit_in_bytes", "memory.max"},
		{"memory.memsw.limit_in_bytes", "memory.swap.max"},
	};
	bool v2 = c->program->outside.memcg == 2;
	char buf[24];

	return mmr_child_cgroup_put(c, (uint32_t)in->arg[0].lo,
				    files[in->arg[2].lo & 1][v2],
				    mmr_child_decimal(buf, in->arg[1].lo));
}

static int64_t run_cgroup_reclaim(struct mmr_child *c,
				  const struct mmr_insn *in)
{
	char buf[24];

	if (c->program->outside.memcg == 1)
		return mmr_child_cgroup_put(c, (uint32_t)in->arg[0].lo,
					    "memory.force_empty", "0");
	return mmr_child_cgroup_put(c, (uint32_t)in->arg[0].lo,
				    "memory.reclaim",
				    mmr_child_decimal(buf, in->arg[1].lo));
}

static int64_t run_cgroup_freeze(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_cgroup_freeze(c, (uint32_t)in->arg[0].lo, true);
}

static int64_t run_cgroup_thaw(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_cgroup_freeze(c, (uint32_t)in->arg[0].lo, false);
}

static int64_t run_cgroup_move(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_cgroup_move(c, in, 0, (uint32_t)in->arg[1].lo);
}
#else
/* The exported C takes a folder of v2 with the memory controller on for what is
 * below it. */
static const char group_c[] =
	"static char *group(const char *name, const char *file)\n{\n"
	"\tstatic __thread char path[512];\n\n"
	"\tsnprintf(path, sizeof(path), \"%s/%s%s\", getenv(\"CGROUP\"), "
	"name, file);\n"
	"\treturn path;\n}\n\n";

static void need_group(struct mmr_emit *e, bool put)
{
	mmr_emit_header(e, "stdio.h");
	mmr_emit_header(e, "stdlib.h");
	mmr_emit_helper(e, group_c);
	if (!put)
		return;
	mmr_emit_header(e, "fcntl.h");
	mmr_emit_header(e, "string.h");
	mmr_emit_header(e, "unistd.h");
	mmr_emit_helper(e, mmr_emit_put_file_c);
}

static const char *group_of(const struct mmr_stmt *s, int i)
{
	return home_names[s->args[i].lo].c;
}

static void emit_cgroup_create(struct mmr_emit *e, const struct mmr_stmt *s)
{
	need_group(e, false);
	mmr_emit_header(e, "sys/stat.h");
	mmr_emit_step(e, "mkdir(group(\"%s\", \"\"), 0755)", group_of(s, 0));
}

static void emit_cgroup_remove(struct mmr_emit *e, const struct mmr_stmt *s)
{
	need_group(e, false);
	mmr_emit_header(e, "unistd.h");
	mmr_emit_step(e, "rmdir(group(\"%s\", \"\"))", group_of(s, 0));
}

static void put(struct mmr_emit *e, const char *group, const char *file,
		const char *text)
{
	need_group(e, true);
	mmr_emit_step(e, "put_file(group(\"%s\", \"/%s\"), %s)", group, file,
		      text);
}

static const char number_c[] = "static char *number(unsigned long v)\n{\n"
			       "\tstatic __thread char text[24];\n\n"
			       "\tsnprintf(text, sizeof(text), \"%lu\", v);\n"
			       "\treturn text;\n}\n\n";

static void put_number(struct mmr_emit *e, const struct mmr_stmt *s,
		       const char *file)
{
	char size[64], text[80];

	mmr_emit_helper(e, number_c);
	mmr_emit_arg(e, s, 1, size, sizeof(size));
	snprintf(text, sizeof(text), "number(%s)", size);
	put(e, group_of(s, 0), file, text);
}

static void emit_cgroup_limit(struct mmr_emit *e, const struct mmr_stmt *s)
{
	put_number(e, s, limit_names[s->args[2].set ? s->args[2].lo : 0].c);
}

static void emit_cgroup_reclaim(struct mmr_emit *e, const struct mmr_stmt *s)
{
	put_number(e, s, "memory.reclaim");
}

static void emit_cgroup_freeze(struct mmr_emit *e, const struct mmr_stmt *s)
{
	put(e, group_of(s, 0), "cgroup.freeze", "\"1\"");
}

static void emit_cgroup_thaw(struct mmr_emit *e, const struct mmr_stmt *s)
{
	put(e, group_of(s, 0), "cgroup.freeze", "\"0\"");
}

static void emit_cgroup_move(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char p[64], text[100];

	if (!s->args[0].set) {
		put(e, group_of(s, 1), "cgroup.procs", "\"0\"");
		return;
	}
	mmr_emit_helper(e, number_c);
	mmr_emit_each(e, s, 0, p, sizeof(p));
	snprintf(text, sizeof(text), "number((unsigned long)%s%s)", p,
		 mmr_emit_pid(e));
	put(e, group_of(s, 1), "cgroup.procs", text);
	mmr_emit_each_end(e);
}
#endif

#define ARG_GROUP                                                              \
	{                                                                      \
		.name = "group", .help = "which one", .type = MMR_ARG_ENUM,    \
		.flags = MMR_ARG_POS, .names = group_names                     \
	}

const struct mmr_op mmr_op_cgroup_create = {
	.id = MMR_OP_cgroup_create,
	.name = "cgroup_create",
	.help = "make a memory cgroup of the case (needs memcg)",
	.race = "Groups that come and go while pages are charged to them.",
	.class = MMR_CLASS_CALL,
	.nargs = 1,
	.args = {ARG_GROUP},
	.call = {.nr = -1},
	.calls = "mkdirat",
	.needs = "memcg",
	.run = MMR_RUN(run_cgroup_create),
	.emit = MMR_EMIT(emit_cgroup_create),
};

const struct mmr_op mmr_op_cgroup_remove = {
	.id = MMR_OP_cgroup_remove,
	.name = "cgroup_remove",
	.help = "remove a memory cgroup that no process is in",
	.race = "What is still charged to the group moves to its parent, "
		"under those who free it.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 1000,
	.nargs = 1,
	.args = {ARG_GROUP},
	.call = {.nr = -1},
	.calls = "unlinkat",
	.needs = "memcg",
	.run = MMR_RUN(run_cgroup_remove),
	.emit = MMR_EMIT(emit_cgroup_remove),
};

const struct mmr_op mmr_op_cgroup_limit = {
	.id = MMR_OP_cgroup_limit,
	.name = "cgroup_limit",
	.help = "limit the memory of a group; reclaims down to it",
	.race = "Faults that find the group full reclaim, swap or meet the "
		"OOM killer.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 10000,
	.machine_wide = true,
	.nargs = 3,
	.args = {ARG_GROUP,
		 {.name = "size",
		  .help = "at most that much",
		  .type = MMR_ARG_SIZE,
		  .flags = MMR_ARG_POS,
		  .max = LEN_MAX},
		 {.name = "of",
		  .help = "of memory, or of swap (v1: of both together)",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_OPT,
		  .names = limit_names}},
	.call = {.nr = -1},
	.calls = "openat write close",
	.needs = "memcg",
	.run = MMR_RUN(run_cgroup_limit),
	.emit = MMR_EMIT(emit_cgroup_limit),
};

const struct mmr_op mmr_op_cgroup_reclaim = {
	.id = MMR_OP_cgroup_reclaim,
	.name = "cgroup_reclaim",
	.help = "reclaim memory of a group (v1: all of an empty one)",
	.race = "Pages are unmapped and written out under faults and exits.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 10000,
	.machine_wide = true,
	.nargs = 2,
	.args = {ARG_GROUP,
		 {.name = "size",
		  .help = "how much",
		  .type = MMR_ARG_SIZE,
		  .flags = MMR_ARG_POS,
		  .max = LEN_MAX}},
	.call = {.nr = -1},
	.calls = "openat write close",
	.needs = "memcg",
	.run = MMR_RUN(run_cgroup_reclaim),
	.emit = MMR_EMIT(emit_cgroup_reclaim),
};

const struct mmr_op mmr_op_cgroup_freeze = {
	.id = MMR_OP_cgroup_freeze,
	.name = "cgroup_freeze",
	.help = "freeze the processes of a group, until thawed or calm",
	.race = "Tasks that stop wherever they sleep, with what they hold.",
	.class = MMR_CLASS_CALL,
	.nargs = 1,
	.args = {ARG_GROUP},
	.call = {.nr = -1},
	.calls = "openat write close",
	.needs = "memcg",
	.run = MMR_RUN(run_cgroup_freeze),
	.emit = MMR_EMIT(emit_cgroup_freeze),
};

const struct mmr_op mmr_op_cgroup_thaw = {
	.id = MMR_OP_cgroup_thaw,
	.name = "cgroup_thaw",
	.help = "let the processes of a group go on",
	.race = "Tasks that stop wherever they sleep, with what they hold.",
	.class = MMR_CLASS_CALL,
	.nargs = 1,
	.args = {ARG_GROUP},
	.call = {.nr = -1},
	.calls = "openat write close",
	.needs = "memcg",
	.run = MMR_RUN(run_cgroup_thaw),
	.emit = MMR_EMIT(emit_cgroup_thaw),
};

const struct mmr_op mmr_op_cgroup_move = {
	.id = MMR_OP_cgroup_move,
	.name = "cgroup_move",
	.help = "move a process, all threads of it, into a group",
	.race = "The owner of charges changes while they are made.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 1000,
	.nargs = 2,
	.args = {{.name = "p",
		  .help = "whom, the own process when left out",
		  .type = MMR_ARG_REF,
		  .flags = MMR_ARG_POS | MMR_ARG_OPT,
		  .kinds = MMR_REF_PROCESS},
		 {.name = "to",
		  .help = "a group, or where it came from",
		  .type = MMR_ARG_ENUM,
		  .names = home_names}},
	.call = {.nr = -1},
	.calls = "openat write close",
	.needs = "memcg",
	.run = MMR_RUN(run_cgroup_move),
	.emit = MMR_EMIT(emit_cgroup_move),
};
