/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address-space calls: mmap, munmap, mprotect, madvise.  They take the
 * address-space lock for writing (or downgrade it, munmap), so they are what
 * page faults, exits and each other race with.
 */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "kernel.h"
#include "op.h"

#ifdef MMR_CHILD
#include <asm/errno.h>

#include "child.h"
#endif

static const struct mmr_name prot_names[] = {
	{"none", "PROT_NONE", PROT_NONE},
	{"r", "PROT_READ", PROT_READ},
	{"w", "PROT_WRITE", PROT_WRITE},
	{"rw", "PROT_READ | PROT_WRITE", PROT_READ | PROT_WRITE},
	{"x", "PROT_EXEC", PROT_EXEC},
	{"rx", "PROT_READ | PROT_EXEC", PROT_READ | PROT_EXEC},
	{"wx", "PROT_WRITE | PROT_EXEC", PROT_WRITE | PROT_EXEC},
	{"rwx", "PROT_READ | PROT_WRITE | PROT_EXEC",
	 PROT_READ | PROT_WRITE | PROT_EXEC},
	{NULL, NULL, 0},
};

/* Single bits only: a value prints back in one way. */
static const struct mmr_name map_flag_names[] = {
	{"shared", "MAP_SHARED", MAP_SHARED},
	{"private", "MAP_PRIVATE", MAP_PRIVATE},
	{"droppable", "MAP_DROPPABLE", MMR_K_MAP_DROPPABLE},
	{"anon", "MAP_ANONYMOUS", MAP_ANONYMOUS},
	{"hugetlb", "MAP_HUGETLB", MAP_HUGETLB},
	{"noreserve", "MAP_NORESERVE", MAP_NORESERVE},
	{"populate", "MAP_POPULATE", MAP_POPULATE},
	{"nonblock", "MAP_NONBLOCK", MAP_NONBLOCK},
	{"locked", "MAP_LOCKED", MAP_LOCKED},
	{"stack", "MAP_STACK", MAP_STACK},
	{"growsdown", "MAP_GROWSDOWN", MAP_GROWSDOWN},
	{"fixed", "MAP_FIXED", MAP_FIXED},
	{"fixed_noreplace", "MAP_FIXED_NOREPLACE", MMR_K_MAP_FIXED_NOREPLACE},
	{NULL, NULL, 0},
};

/* Without hwpoison and soft_offline, which take memory from everybody. */
static const struct mmr_name advice_names[] = {
	{"normal", "MADV_NORMAL", MADV_NORMAL},
	{"random", "MADV_RANDOM", MADV_RANDOM},
	{"sequential", "MADV_SEQUENTIAL", MADV_SEQUENTIAL},
	{"willneed", "MADV_WILLNEED", MADV_WILLNEED},
	{"dontneed", "MADV_DONTNEED", MADV_DONTNEED},
	{"free", "MADV_FREE", MADV_FREE},
	{"remove", "MADV_REMOVE", MADV_REMOVE},
	{"dontfork", "MADV_DONTFORK", MADV_DONTFORK},
	{"dofork", "MADV_DOFORK", MADV_DOFORK},
	{"mergeable", "MADV_MERGEABLE", MADV_MERGEABLE},
	{"unmergeable", "MADV_UNMERGEABLE", MADV_UNMERGEABLE},
	{"hugepage", "MADV_HUGEPAGE", MADV_HUGEPAGE},
	{"nohugepage", "MADV_NOHUGEPAGE", MADV_NOHUGEPAGE},
	{"dontdump", "MADV_DONTDUMP", MADV_DONTDUMP},
	{"dodump", "MADV_DODUMP", MADV_DODUMP},
	{"wipeonfork", "MADV_WIPEONFORK", MADV_WIPEONFORK},
	{"keeponfork", "MADV_KEEPONFORK", MADV_KEEPONFORK},
	{"cold", "MADV_COLD", MMR_K_MADV_COLD},
	{"pageout", "MADV_PAGEOUT", MMR_K_MADV_PAGEOUT},
	{"populate_read", "MADV_POPULATE_READ", MMR_K_MADV_POPULATE_READ},
	{"populate_write", "MADV_POPULATE_WRITE", MMR_K_MADV_POPULATE_WRITE},
	{"dontneed_locked", "MADV_DONTNEED_LOCKED", MMR_K_MADV_DONTNEED_LOCKED},
	{"collapse", "MADV_COLLAPSE", MMR_K_MADV_COLLAPSE},
	{"guard_install", "MADV_GUARD_INSTALL", MMR_K_MADV_GUARD_INSTALL},
	{"guard_remove", "MADV_GUARD_REMOVE", MMR_K_MADV_GUARD_REMOVE},
	{NULL, NULL, 0},
};

#define LEN_MAX (64LL << 40)
#define AT_MAX (256LL << 30) /* MMR_ARENA_SIZE */

/* The mapping and the part of it that the call is about: args 0, off, len. */
#define ARG_MAPPING                                                            \
	{                                                                      \
		.name = "m", .help = "the mapping", .type = MMR_ARG_REF,       \
		.flags = MMR_ARG_POS, .kinds = MMR_REF_MAPPING                 \
	}
#define ARG_OFF                                                                \
	{                                                                      \
		.name = "off", .help = "start within the mapping",             \
		.type = MMR_ARG_SIZE, .flags = MMR_ARG_OPT, .max = LEN_MAX     \
	}
#define ARG_LEN                                                                \
	{                                                                      \
		.name = "len", .help = "bytes from there, 0: to its end",      \
		.type = MMR_ARG_SIZE, .flags = MMR_ARG_OPT, .max = LEN_MAX     \
	}

#ifdef MMR_CHILD
enum { MMAP_LEN, MMAP_PROT, MMAP_FLAGS, MMAP_AT };

/*
 * A fixed mapping replaces what is there, so it has to stay inside the arena;
 * the kernel would also take it elsewhere, over the machine itself.
 */
static int64_t run_mmap(struct mmr_child *c, const struct mmr_insn *in)
{
	const int64_t fixed = MAP_FIXED | MMR_K_MAP_FIXED_NOREPLACE;
	int64_t len = in->arg[MMAP_LEN].lo, at = in->arg[MMAP_AT].lo;

	if ((in->arg[MMAP_FLAGS].lo & fixed) &&
	    (!(in->set & 1u << MMAP_AT) || at > (int64_t)MMR_ARENA_SIZE ||
	     len > (int64_t)MMR_ARENA_SIZE - at))
		return -EINVAL;
	return mmr_child_call(c, in, &mmr_op_mmap);
}
#endif

const struct mmr_op mmr_op_mmap = {
	.id = MMR_OP_mmap,
	.name = "mmap",
	.help = "map memory or a file",
	.race = "A new mapping, often where one just went, against faults, "
		"forks and exits in the same address space.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_MAPPING,
	.unit_ns = 1000, /* populate and locked touch every page */
	.nargs = 5,
	.args =
		{
			{.name = "len",
			 .help = "length",
			 .type = MMR_ARG_SIZE,
			 .min = 1,
			 .max = LEN_MAX},
			{.name = "prot",
			 .help = "access allowed",
			 .type = MMR_ARG_ENUM,
			 .names = prot_names},
			{.name = "flags",
			 .help = "kind of mapping",
			 .type = MMR_ARG_FLAGS,
			 .max = INT32_MAX,
			 .names = map_flag_names},
			{.name = "at",
			 .help = "place in the arena; a hint unless fixed",
			 .type = MMR_ARG_SIZE,
			 .flags = MMR_ARG_OPT,
			 .max = AT_MAX,
			 .def = -1},
			{.name = "fd",
			 .help = "the file to map",
			 .type = MMR_ARG_REF,
			 .flags = MMR_ARG_OPT,
			 .kinds = MMR_REF_FILE},
		},
	.call = {.name = "mmap",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_mmap,
		 .from = {{.from = MMR_FROM_ARENA, .arg = 3},
			  {.from = MMR_FROM_VALUE, .arg = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1},
			  {.from = MMR_FROM_VALUE, .arg = 2},
			  {.from = MMR_FROM_FD, .arg = 4},
			  {.from = MMR_FROM_CONST, .k = 0}}},
	.run = MMR_RUN(run_mmap),
};

const struct mmr_op mmr_op_munmap = {
	.id = MMR_OP_munmap,
	.name = "munmap",
	.help = "unmap a mapping or a part of it",
	.race = "Page tables and TLB entries go while other threads fault on "
		"them, map there again, or run on another CPU.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 250,
	.nargs = 3,
	.args = {ARG_MAPPING, ARG_OFF, ARG_LEN},
	.call = {.name = "munmap",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_munmap,
		 .from = {{.from = MMR_FROM_ADDR, .arg = 0},
			  {.from = MMR_FROM_LEN, .arg = 0}}},
};

const struct mmr_op mmr_op_mprotect = {
	.id = MMR_OP_mprotect,
	.name = "mprotect",
	.help = "change the access that a mapping or a part of it allows",
	.race = "Page table entries change under threads that access, fault "
		"or fork; a part splits the mapping.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 100,
	.nargs = 4,
	.args = {ARG_MAPPING,
		 {.name = "prot",
		  .help = "access allowed from now on",
		  .type = MMR_ARG_ENUM,
		  .names = prot_names},
		 ARG_OFF,
		 ARG_LEN},
	.call = {.name = "mprotect",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_mprotect,
		 .from = {{.from = MMR_FROM_ADDR, .arg = 0},
			  {.from = MMR_FROM_LEN, .arg = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1}}},
};

const struct mmr_op mmr_op_madvise = {
	.id = MMR_OP_madvise,
	.name = "madvise",
	.help = "advise on a mapping or a part of it",
	.race = "Pages are dropped, populated, collapsed or reclaimed with "
		"the lock held for reading only, beside faults and exits.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 1000, /* populate_write touches every page */
	.nargs = 4,
	.args = {ARG_MAPPING,
		 {.name = "advice",
		  .help = "what to do",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = advice_names},
		 ARG_OFF,
		 ARG_LEN},
	.call = {.name = "madvise",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_madvise,
		 .from = {{.from = MMR_FROM_ADDR, .arg = 0},
			  {.from = MMR_FROM_LEN, .arg = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1}}},
};
