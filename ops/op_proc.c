/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What /proc shows of an address space, and does to it.  The file is opened
 * by one statement and used by others, so that a reader can be inside while
 * its process unmaps, forks or exits.
 *
 * Other processes are named by the pid that the engine's /proc has for them,
 * and only for reading: one that is gone might be somebody else's by now.
 */
#include <asm/unistd.h>

#include "args.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include <asm/errno.h>
#include <linux/fcntl.h>

#include "child.h"
#endif

/* How a file is opened follows from its number. */
enum { FILE_READ = 0, FILE_PAGEMAP = 8, FILE_MEM = 16, FILE_CLEAR = 17 };

static const struct mmr_name file_names[] = {
	{"maps", "\"maps\"", FILE_READ},
	{"smaps", "\"smaps\"", FILE_READ + 1},
	{"smaps_rollup", "\"smaps_rollup\"", FILE_READ + 2},
	{"numa_maps", "\"numa_maps\"", FILE_READ + 3},
	{"status", "\"status\"", FILE_READ + 4},
	{"statm", "\"statm\"", FILE_READ + 5},
	{"stat", "\"stat\"", FILE_READ + 6},
	{"environ", "\"environ\"", FILE_READ + 7},
	{"pagemap", "\"pagemap\"", FILE_PAGEMAP},
	{"mem", "\"mem\"", FILE_MEM},
	{"clear_refs", "\"clear_refs\"", FILE_CLEAR},
	{NULL, NULL, 0},
};

static const struct mmr_name_need file_needs[] = {
	{FILE_READ + 2, "feature=proc_smaps_rollup"},
	{FILE_READ + 3, "feature=proc_numa_maps"},
	{FILE_PAGEMAP, "feature=proc_pagemap"},
	{FILE_CLEAR, "feature=proc_clear_refs"},
	{0, NULL},
};

static const struct mmr_name clear_names[] = {
	{"all", "\"1\"", '1'},	    {"anon", "\"2\"", '2'},
	{"mapped", "\"3\"", '3'},   {"soft_dirty", "\"4\"", '4'},
	{"peak_rss", "\"5\"", '5'}, {NULL, NULL, 0},
};

#define ARG_PROC_FILE                                                          \
	{                                                                      \
		.name = "f", .help = "what proc_open made",                    \
		.type = MMR_ARG_REF, .flags = MMR_ARG_POS,                     \
		.kinds = MMR_REF_PROC                                          \
	}

#define BLOCK 4096 /* of a read or write, on a small stack */

enum { OPEN_FILE, OPEN_PROCESS };
enum { MEM_FILE, MEM_MAP, MEM_OFF, MEM_LEN };

#ifdef MMR_CHILD
static char *put(char *to, const char *s)
{
	while (*s)
		*to++ = *s++;
	*to = '\0';
	return to;
}

static char *put_number(char *to, uint32_t n)
{
	char digits[12], *p = digits + 11;

	*p = '\0';
	do {
		*--p = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	return put(to, p);
}

/* A name's text without its quotation marks: one table for both sides. */
static const char *file_name(int64_t value)
{
	int i;

	for (i = 0; file_names[i].name; i++)
		if (file_names[i].value == value)
			return file_names[i].name;
	return "";
}

static int64_t run_proc_open(struct mmr_child *c, const struct mmr_insn *in)
{
	int64_t file = in->arg[OPEN_FILE].lo, fd, flags = O_RDONLY;
	struct mmr_ref_value v;
	char path[64], *p;
	int32_t pid;

	p = put(path, "/proc/");
	if (in->arg[OPEN_PROCESS].lo < 0) {
		p = put(p, "self");
	} else {
		v = mmr_child_ref(c, in->arg[OPEN_PROCESS].lo, MMR_REF_PROCESS);
		if (!v.kind)
			return MMR_SKIPPED;
		if (file >= FILE_MEM)
			return -EPERM;
		pid = atomic_load(&c->procs[v.a].host_pid);
		if (pid <= 0) /* just forked, or idle */
			return -ESRCH;
		p = put_number(p, (uint32_t)pid);
	}
	p = put(p, "/");
	put(p, file_name(file));
	if (file == FILE_MEM)
		flags = O_RDWR;
	if (file == FILE_CLEAR)
		flags = O_WRONLY;
	fd = mmr_sys4(__NR_openat, AT_FDCWD, mmr_sys_ptr(path),
		      flags | O_CLOEXEC, 0);
	if (fd >= 0)
		mmr_child_set_ref(c, in->dst, MMR_REF_PROC, fd, file);
	return fd;
}

/* The open file of argument 0; false: none, or not one of lo..hi. */
static bool file_of(struct mmr_child *c, const struct mmr_insn *in, int64_t lo,
		    int64_t hi, int64_t *fd, int64_t *ret)
{
	struct mmr_ref_value v;

	v = mmr_child_ref(c, in->arg[MEM_FILE].lo, MMR_REF_PROC);
	*fd = v.a;
	*ret = v.kind ? -EINVAL : MMR_SKIPPED;
	return v.kind && v.b >= lo && v.b <= hi;
}

/* From its start to its end, whatever another thread reads of it. */
static int64_t run_proc_read(struct mmr_child *c, const struct mmr_insn *in)
{
	int64_t fd, ret, sum = 0;
	char block[BLOCK];

	if (!file_of(c, in, FILE_READ, FILE_PAGEMAP - 1, &fd, &ret))
		return ret;
	do {
		ret = mmr_sys4(__NR_pread64, fd, mmr_sys_ptr(block), BLOCK,
			       sum);
		if (ret < 0)
			return ret;
		sum += ret;
	} while (ret &&
		 atomic_load_explicit(&c->area->ctl, memory_order_relaxed) !=
			 MMR_CTL_END);
	return sum;
}

static int64_t run_pagemap_read(struct mmr_child *c, const struct mmr_insn *in)
{
	uint64_t addr, size, page = c->program->page_size, n;
	uint64_t entries[BLOCK / 8];
	int64_t fd, ret;

	if (!file_of(c, in, FILE_PAGEMAP, FILE_PAGEMAP, &fd, &ret))
		return ret;
	if (!mmr_child_part(c, in, MEM_MAP, MEM_OFF, MEM_LEN, &addr, &size))
		return MMR_SKIPPED;
	n = (size + page - 1) / page * 8;
	return mmr_sys4(__NR_pread64, fd, mmr_sys_ptr(entries),
			(int64_t)(n < BLOCK ? n : BLOCK),
			(int64_t)(addr / page * 8));
}

static int64_t run_mem(struct mmr_child *c, const struct mmr_insn *in, long nr)
{
	uint64_t addr, size, block[BLOCK / 8];
	int64_t fd, ret;
	size_t i;

	if (!file_of(c, in, FILE_MEM, FILE_MEM, &fd, &ret))
		return ret;
	if (!mmr_child_part(c, in, MEM_MAP, MEM_OFF, MEM_LEN, &addr, &size))
		return MMR_SKIPPED;
	for (i = 0; nr == __NR_pwrite64 && i < BLOCK / 8; i++)
		block[i] = 0x0101010101010101; /* as a touch writes */
	return mmr_sys4(nr, fd, mmr_sys_ptr(block),
			(int64_t)(size < BLOCK ? size : BLOCK), (int64_t)addr);
}

static int64_t run_mem_read(struct mmr_child *c, const struct mmr_insn *in)
{
	return run_mem(c, in, __NR_pread64);
}

static int64_t run_mem_write(struct mmr_child *c, const struct mmr_insn *in)
{
	return run_mem(c, in, __NR_pwrite64);
}

static int64_t run_clear_refs(struct mmr_child *c, const struct mmr_insn *in)
{
	char text[2] = {(char)in->arg[1].lo, '\0'};
	int64_t fd, ret;

	if (!file_of(c, in, FILE_CLEAR, FILE_CLEAR, &fd, &ret))
		return ret;
	return mmr_sys4(__NR_pwrite64, fd, mmr_sys_ptr(text), 1, 0);
}
#else
static const char open_c[] =
	"static int proc_open(pid_t pid, const char *name, int flags)\n{\n"
	"\tchar path[64];\n\n"
	"\tif (pid)\n"
	"\t\tsnprintf(path, sizeof(path), \"/proc/%d/%s\", pid, name);\n"
	"\telse\n"
	"\t\tsnprintf(path, sizeof(path), \"/proc/self/%s\", name);\n"
	"\treturn open(path, flags | O_CLOEXEC);\n}\n\n";

static const char read_c[] =
	"static int read_all(int fd)\n{\n"
	"\tchar block[4096];\n\tssize_t n;\n\toff_t at = 0;\n\n"
	"\twhile ((n = pread(fd, block, sizeof(block), at)) > 0)\n"
	"\t\tat += n;\n"
	"\treturn (int)n;\n}\n\n";

static const char pagemap_c[] =
	"static int pagemap_read(int fd, struct map m)\n"
	"{\n"
	"\tunsigned long entry[512], size = getpagesize();\n"
	"\tsize_t n = (m.len + size - 1) / size * sizeof(entry[0]);\n"
	"\toff_t at = (unsigned long)m.at / size * sizeof(entry[0]);\n"
	"\n"
	"\treturn pread(fd, entry, n < sizeof(entry) ? n : sizeof(entry), "
	"at);\n"
	"}\n\n";

static const char mem_read_c[] =
	"static int mem_read(int fd, struct map m)\n"
	"{\n"
	"\tchar block[4096];\n"
	"\tsize_t n = m.len < sizeof(block) ? m.len : sizeof(block);\n"
	"\n"
	"\treturn pread(fd, block, n, (off_t)m.at);\n"
	"}\n\n";

static const char mem_write_c[] =
	"static int mem_write(int fd, struct map m)\n"
	"{\n"
	"\tchar block[4096];\n"
	"\tsize_t n = m.len < sizeof(block) ? m.len : sizeof(block);\n"
	"\n"
	"\tmemset(block, 1, sizeof(block));\n"
	"\treturn pwrite(fd, block, n, (off_t)m.at);\n"
	"}\n\n";

static void emit_proc_open(struct mmr_emit *e, const struct mmr_stmt *s)
{
	int64_t file = s->args[OPEN_FILE].lo;
	char name[40], pid[96] = "0", p[80], var[64], assign[80] = "";
	bool other = mmr_emit_ref_kind(e, s, OPEN_PROCESS) != MMR_REF_NONE;

	mmr_emit_header(e, "fcntl.h");
	mmr_emit_header(e, "stdio.h");
	mmr_emit_helper(e, open_c);
	mmr_emit_arg(e, s, OPEN_FILE, name, sizeof(name));
	if (other) {
		mmr_emit_arg(e, s, OPEN_PROCESS, p, sizeof(p));
		e->used |= MMR_USED_SPAWN;
		snprintf(pid, sizeof(pid), "%s%s%s", p, e->sets ? ".p[0]" : "",
			 mmr_emit_pid(e));
	}
	if (s->ref)
		snprintf(assign, sizeof(assign), "%s = ",
			 mmr_emit_var(e, s->ref, MMR_REF_PROC, var,
				      sizeof(var)));
	mmr_emit_step(e, "%sproc_open(%s, %s, %s)", assign, pid, name,
		      file == FILE_MEM	   ? "O_RDWR"
		      : file == FILE_CLEAR ? "O_WRONLY"
					   : "O_RDONLY");
}

static void emit_proc_read(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char f[64];

	mmr_emit_header(e, "unistd.h");
	mmr_emit_helper(e, read_c);
	mmr_emit_step(e, "read_all(%s)",
		      mmr_emit_arg(e, s, MEM_FILE, f, sizeof(f)));
}

static void emit_mem(struct mmr_emit *e, const struct mmr_stmt *s,
		     const char *name, const char *helper)
{
	char f[64], map[128];

	mmr_emit_header(e, "unistd.h");
	mmr_emit_header(e, "string.h");
	mmr_emit_helper(e, helper);
	mmr_emit_arg(e, s, MEM_FILE, f, sizeof(f));
	mmr_emit_part(e, s, MEM_MAP, map, sizeof(map));
	mmr_emit_step(e, "%s(%s, %s)", name, f, map);
}

static void emit_pagemap_read(struct mmr_emit *e, const struct mmr_stmt *s)
{
	emit_mem(e, s, "pagemap_read", pagemap_c);
}

static void emit_mem_read(struct mmr_emit *e, const struct mmr_stmt *s)
{
	emit_mem(e, s, "mem_read", mem_read_c);
}

static void emit_mem_write(struct mmr_emit *e, const struct mmr_stmt *s)
{
	emit_mem(e, s, "mem_write", mem_write_c);
}

static void emit_clear_refs(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char f[64], what[16];

	mmr_emit_header(e, "unistd.h");
	mmr_emit_arg(e, s, 0, f, sizeof(f));
	mmr_emit_step(e, "pwrite(%s, %s, 1, 0)", f,
		      mmr_emit_arg(e, s, 1, what, sizeof(what)));
}
#endif

const struct mmr_op mmr_op_proc_open = {
	.id = MMR_OP_proc_open,
	.name = "proc_open",
	.help = "open a file of /proc about the own process, or another's",
	.race = "Keeps an address space alive, and looked at, beyond the end "
		"of its process.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_PROC,
	.nargs = 2,
	.args = {{.name = "file",
		  .help = "which; mem and clear_refs of the own process only",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = file_names,
		  .needs = file_needs},
		 {.name = "p",
		  .help = "whose (the first of a set), not an idle one's",
		  .type = MMR_ARG_REF,
		  .flags = MMR_ARG_OPT,
		  .kinds = MMR_REF_PROCESS}},
	.call = {.nr = -1},
	.calls = "openat",
	.run = MMR_RUN(run_proc_open),
	.emit = MMR_EMIT(emit_proc_open),
};

const struct mmr_op mmr_op_proc_read = {
	.id = MMR_OP_proc_read,
	.name = "proc_read",
	.help = "read such a file to its end; not mem, pagemap, clear_refs",
	.race = "Walks mappings and page tables in pieces, while they come "
		"and go between the pieces.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 2000,
	.nargs = 1,
	.args = {ARG_PROC_FILE},
	.call = {.nr = -1},
	.calls = "pread64",
	.run = MMR_RUN(run_proc_read),
	.emit = MMR_EMIT(emit_proc_read),
};

const struct mmr_op mmr_op_pagemap_read = {
	.id = MMR_OP_pagemap_read,
	.name = "pagemap_read",
	.help = "read what pagemap has for a mapping, 512 pages at most",
	.race = "Reads page table entries while they change under it.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 200,
	.nargs = 4,
	.args = {ARG_PROC_FILE, MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.nr = -1},
	.calls = "pread64",
	.run = MMR_RUN(run_pagemap_read),
	.emit = MMR_EMIT(emit_pagemap_read),
};

const struct mmr_op mmr_op_mem_read = {
	.id = MMR_OP_mem_read,
	.name = "mem_read",
	.help = "read a mapping through /proc/self/mem, 4 KiB at most",
	.race = "Gets at pages whatever their protection, while they go.",
	.class = MMR_CLASS_CALL,
	.nargs = 4,
	.args = {ARG_PROC_FILE, MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.nr = -1},
	.calls = "pread64",
	.run = MMR_RUN(run_mem_read),
	.emit = MMR_EMIT(emit_mem_read),
};

const struct mmr_op mmr_op_mem_write = {
	.id = MMR_OP_mem_write,
	.name = "mem_write",
	.help = "write a mapping through /proc/self/mem, 4 KiB at most",
	.race = "Breaks copy-on-write of a read-only mapping by force, while "
		"the copy is thrown away.",
	.class = MMR_CLASS_CALL,
	.nargs = 4,
	.args = {ARG_PROC_FILE, MMR_ARG_MAPPING, MMR_ARG_OFF, MMR_ARG_LEN},
	.call = {.nr = -1},
	.calls = "pwrite64",
	.run = MMR_RUN(run_mem_write),
	.emit = MMR_EMIT(emit_mem_write),
};

const struct mmr_op mmr_op_clear_refs = {
	.id = MMR_OP_clear_refs,
	.name = "clear_refs",
	.help = "write to clear_refs: forget which pages were used",
	.race = "Clears bits in all page tables, which write-protects and "
		"flushes, beside faults and forks.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 500,
	.nargs = 2,
	.args = {ARG_PROC_FILE,
		 {.name = "what",
		  .help = "of which pages",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = clear_names}},
	.call = {.nr = -1},
	.calls = "pwrite64",
	.run = MMR_RUN(run_clear_refs),
	.emit = MMR_EMIT(emit_clear_refs),
};
