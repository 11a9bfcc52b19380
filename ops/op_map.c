/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address-space calls: mmap, munmap, mprotect, madvise.  They take the
 * address-space lock for writing (or downgrade it, munmap), so they are what
 * page faults, exits and each other race with.
 */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "args.h"

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

/* The last two take memory from everybody: only where the user allows it. */
static const struct mmr_name advice_names[] = {
	MMR_ADVICE_NAMES,
	{"soft_offline", "MADV_SOFT_OFFLINE", MMR_K_MADV_SOFT_OFFLINE},
	{"hwpoison", "MADV_HWPOISON", MADV_HWPOISON},
	{NULL, NULL, 0},
};

static const struct mmr_name_need advice_needs[] = {
	MMR_ADVICE_NEEDS,
	{MMR_K_MADV_SOFT_OFFLINE,
	 "allowed cap=CAP_SYS_ADMIN feature=madv_soft_offline"},
	{MADV_HWPOISON, "allowed cap=CAP_SYS_ADMIN feature=madv_hwpoison"},
	{0, NULL},
};

static const struct mmr_name_need map_flag_needs[] = {
	{MMR_K_MAP_DROPPABLE, "feature=map_droppable"},
	{0, NULL},
};

/* Sizes of huge pages, base two, where the kernel looks for them. */
#define HUGE(log) ((int64_t)(log) << MAP_HUGE_SHIFT)
static const struct mmr_name huge_names[] = {
	{"default", "0", 0},	      {"64k", "16 << 26", HUGE(16)},
	{"2m", "21 << 26", HUGE(21)}, {"32m", "25 << 26", HUGE(25)},
	{"1g", "30 << 26", HUGE(30)}, {NULL, NULL, 0},
};

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
	    (!(in->set & 1u << MMAP_AT) || !mmr_child_in_arena(at, len)))
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
	.nargs = 7,
	.args =
		{
			{.name = "len",
			 .help = "length",
			 .type = MMR_ARG_SIZE,
			 .min = 1,
			 .max = MMR_LEN_MAX},
			{.name = "prot",
			 .help = "access allowed",
			 .type = MMR_ARG_ENUM,
			 .names = prot_names},
			{.name = "flags",
			 .help = "kind of mapping",
			 .type = MMR_ARG_FLAGS,
			 .max = INT32_MAX,
			 .names = map_flag_names,
			 .needs = map_flag_needs},
			{.name = "at",
			 .help = "place in the arena; a hint unless fixed",
			 .type = MMR_ARG_SIZE,
			 .flags = MMR_ARG_OPT,
			 .max = MMR_AT_MAX,
			 .def = -1},
			{.name = "fd",
			 .help = "the file to map",
			 .type = MMR_ARG_REF,
			 .flags = MMR_ARG_OPT,
			 .kinds = MMR_REF_FILE},
			{.name = "foff",
			 .help = "start within the file",
			 .type = MMR_ARG_SIZE,
			 .flags = MMR_ARG_OPT,
			 .max = MMR_LEN_MAX},
			{.name = "huge",
			 .help = "size of huge pages, with hugetlb",
			 .type = MMR_ARG_ENUM,
			 .flags = MMR_ARG_OPT,
			 .names = huge_names},
		},
	.call = {.name = "mmap",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_mmap,
		 .from = {{.from = MMR_FROM_ARENA, .arg = 3},
			  {.from = MMR_FROM_VALUE, .arg = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1},
			  {.from = MMR_FROM_VALUE, .arg = 2, .also = 7},
			  {.from = MMR_FROM_FD, .arg = 4},
			  {.from = MMR_FROM_VALUE, .arg = 5}}},
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
	.args = {MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
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
	.args = {MMR_ARG_MAPPING,
		 {.name = "prot",
		  .help = "access allowed from now on",
		  .type = MMR_ARG_ENUM,
		  .names = prot_names},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
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
	.args = {MMR_ARG_MAPPING,
		 {.name = "advice",
		  .help = "what to do",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = advice_names,
		  .needs = advice_needs},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
	.call = {.name = "madvise",
		 .has_wrapper = true,
		 .header = "sys/mman.h",
		 .nr = __NR_madvise,
		 .from = {{.from = MMR_FROM_ADDR, .arg = 0},
			  {.from = MMR_FROM_LEN, .arg = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1}}},
};
