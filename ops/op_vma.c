/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that move, seal, write back or look at mappings: mremap, msync,
 * mincore, mseal, remap_file_pages.
 */
#include <asm/unistd.h>

#include "args.h"

#ifndef MMR_CHILD
#include <string.h>

#include "emit.h"
#else
#include <asm/errno.h>

#include "child.h"
#endif

enum { MV_MAP, MV_OFF, MV_LEN, MV_NEW, MV_FLAGS, MV_AT, MV_ARGS };

#define VEC_BYTES 4096 /* of a mincore, on a small stack */

static const struct mmr_name mremap_names[] = {
	{"maymove", "MREMAP_MAYMOVE", MREMAP_MAYMOVE},
	{"fixed", "MREMAP_FIXED", MREMAP_FIXED},
	{"dontunmap", "MREMAP_DONTUNMAP", MMR_K_MREMAP_DONTUNMAP},
	{NULL, NULL, 0},
};

static const struct mmr_name_need mremap_needs[] = {
	{MMR_K_MREMAP_DONTUNMAP, "feature=mremap_dontunmap"},
	{0, NULL},
};

static const struct mmr_name msync_names[] = {
	{"async", "MS_ASYNC", MS_ASYNC},
	{"invalidate", "MS_INVALIDATE", MS_INVALIDATE},
	{"sync", "MS_SYNC", MS_SYNC},
	{NULL, NULL, 0},
};

#ifdef MMR_CHILD
/* A fixed place is inside the arena, for the reasons of a fixed mmap. */
static int64_t run_mremap(struct mmr_child *c, const struct mmr_insn *in)
{
	int64_t ret, to = 0, flags = in->arg[MV_FLAGS].lo;
	uint64_t addr, size, len;

	if (!mmr_child_part(c, in, MV_MAP, MV_OFF, MV_LEN, &addr, &size))
		return MMR_SKIPPED;
	len = in->set >> MV_NEW & 1 ? (uint64_t)in->arg[MV_NEW].lo : size;
	if (in->set >> MV_AT & 1)
		to = (int64_t)MMR_ARENA_BASE + in->arg[MV_AT].lo;
	if ((flags & MREMAP_FIXED) &&
	    (!to || !mmr_child_in_arena(in->arg[MV_AT].lo, (int64_t)len)))
		return -EINVAL;
	ret = mmr_sys5(__NR_mremap, (int64_t)addr, (int64_t)size, (int64_t)len,
		       flags, to);
	if (ret < 0)
		return ret;
	mmr_child_mapped(c, (int64_t)len - (flags & MMR_K_MREMAP_DONTUNMAP
						    ? 0
						    : (int64_t)size));
	mmr_child_set_ref(c, in->dst, MMR_REF_MAPPING, ret, (int64_t)len);
	return ret;
}

static int64_t run_mincore(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t addr, size, most = VEC_BYTES * c->program->page_size;
	unsigned char vec[VEC_BYTES];

	if (!mmr_child_part(c, in, 0, 1, 2, &addr, &size))
		return MMR_SKIPPED;
	return mmr_sys3(__NR_mincore, (int64_t)addr,
			(int64_t)(size < most ? size : most), mmr_sys_ptr(vec));
}
#else
static const char mincore_c[] =
	"static int in_core(struct map m)\n{\n"
	"\tstatic __thread unsigned char vec[4096];\n"
	"\tsize_t most = sizeof(vec) * (size_t)sysconf(_SC_PAGESIZE);\n\n"
	"\treturn mincore(m.at, m.len < most ? m.len : most, vec);\n}\n\n";

static void emit_mincore(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char map[128];

	mmr_emit_header(e, "sys/mman.h");
	mmr_emit_header(e, "unistd.h");
	mmr_emit_helper(e, mincore_c);
	mmr_emit_step(e, "in_core(%s)",
		      mmr_emit_part(e, s, 0, map, sizeof(map)));
}

static void emit_mremap(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char map[128], len[160], flags[96], at[64], to[80] = "NULL", var[64];
	char call[600];

	mmr_emit_header(e, "sys/mman.h");
	mmr_emit_part(e, s, MV_MAP, map, sizeof(map));
	mmr_emit_arg(e, s, MV_FLAGS, flags, sizeof(flags));
	snprintf(len, sizeof(len), "%s.len", map);
	if (s->args[MV_NEW].set)
		mmr_emit_arg(e, s, MV_NEW, len, sizeof(len));
	if (s->args[MV_AT].set) {
		e->used |= MMR_USED_ARENA;
		snprintf(to, sizeof(to), "ARENA + (%s)",
			 mmr_emit_arg(e, s, MV_AT, at, sizeof(at)));
	}
	snprintf(call, sizeof(call), "mremap(%s.at, %s.len, %s, %s, %s)", map,
		 map, len, flags, to);
	if (!s->ref) {
		mmr_emit_step(e, "%s", call);
		return;
	}
	e->used |= MMR_USED_KEEP | MMR_USED_MAP;
	mmr_emit_var(e, s->ref, MMR_REF_MAPPING, var, sizeof(var));
	mmr_emit_step(e, "keep(&%s, %s, %s)", var, call, len);
}
#endif

const struct mmr_op mmr_op_mremap = {
	.id = MMR_OP_mremap,
	.name = "mremap",
	.help = "move, grow or shrink a mapping or a part of it",
	.race = "Page tables move under threads that fault on them; the old "
		"address is free again before the TLB knows.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_MAPPING,
	.unit_ns = 2000,
	.nargs = MV_ARGS,
	.args = {MMR_ARG_MAPPING,
		 MMR_ARG_OFF,
		 MMR_ARG_LEN,
		 {.name = "new",
		  .help = "new length, that of the part when left out",
		  .type = MMR_ARG_SIZE,
		  .flags = MMR_ARG_OPT,
		  .min = 1,
		  .max = MMR_LEN_MAX,
		  .def = -1},
		 {.name = "flags",
		  .help = "whether and how it may move",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = 7,
		  .names = mremap_names,
		  .needs = mremap_needs},
		 {.name = "at",
		  .help = "new place in the arena, with fixed",
		  .type = MMR_ARG_SIZE,
		  .flags = MMR_ARG_OPT,
		  .max = MMR_AT_MAX,
		  .def = -1}},
	.call = {.nr = -1},
	.calls = "mremap",
	.run = MMR_RUN(run_mremap),
	.emit = MMR_EMIT(emit_mremap),
};

const struct mmr_op mmr_op_msync = {
	.id = MMR_OP_msync,
	.name = "msync",
	.help = "write a mapping or a part of it back to its file",
	.race = "Walks mappings and drops the lock for each file, while others "
		"unmap and truncate.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 300,
	.nargs = 4,
	.args = {MMR_ARG_MAPPING,
		 {.name = "flags",
		  .help = "how",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = 7,
		  .def = MS_SYNC,
		  .names = msync_names},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
	.call = {.name = "msync",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_msync,
		 .from = {MMR_FROM_PART, {.from = MMR_FROM_VALUE, .arg = 1}}},
};

const struct mmr_op mmr_op_mincore = {
	.id = MMR_OP_mincore,
	.name = "mincore",
	.help = "ask which pages are in memory, of 4096 at most",
	.race = "Walks page tables and the page cache without holding a page, "
		"while they are taken away.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 100,
	.nargs = 3,
	.args = {MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.nr = -1},
	.calls = "mincore",
	.run = MMR_RUN(run_mincore),
	.emit = MMR_EMIT(emit_mincore),
};

const struct mmr_op mmr_op_mseal = {
	.id = MMR_OP_mseal,
	.name = "mseal",
	.help = "seal a mapping or a part of it: it can no longer change",
	.race = "Splits and seals while others unmap, move and protect.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 100,
	.nargs = 3,
	.args = {MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.name = "SYS_mseal",
		 .header = "sys/syscall.h",
		 .nr = MMR_K_SYS_mseal,
		 .from = {MMR_FROM_PART, {.from = MMR_FROM_CONST, .k = 0}}},
	.needs = "syscall=mseal",
};

const struct mmr_op mmr_op_remap_file_pages = {
	.id = MMR_OP_remap_file_pages,
	.name = "remap_file_pages",
	.help = "show another part of the file in a part of a shared mapping",
	.race = "Looks a mapping up, drops it and maps again: what it looked "
		"at may have changed.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 1000,
	.nargs = 4,
	.args = {MMR_ARG_MAPPING,
		 {.name = "pgoff",
		  .help = "page of the file",
		  .type = MMR_ARG_INT,
		  .max = 1 << 24},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
	.call = {.name = "remap_file_pages",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_remap_file_pages,
		 .from = {MMR_FROM_PART,
			  {.from = MMR_FROM_CONST, .k = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1},
			  {.from = MMR_FROM_CONST, .k = 0}}},
	.needs = "syscall=remap_file_pages",
};
