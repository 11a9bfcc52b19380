/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel settings written in the middle of a case: the pool of huge pages, the
 * mode of transparent ones, KSM, NUMA balancing, compaction.
 *
 * They belong to the whole machine.  A case writes only what its header names
 * (set NAME=VALUE, needs writes=NAME), which the engine journals before and
 * puts back after, and only when the user allows it; else the result is EPERM.
 */
#include <asm/unistd.h>

#include "op.h"
#include "setting.h"

#ifndef MMR_CHILD
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "emit.h"
#else
#include "child.h"
#endif

#define VM "/proc/sys/vm/"
#define MM "/sys/kernel/mm/"
#define THP MM "transparent_hugepage/"
#define POOL_MAX (1 << 24)

enum {
	MODE_ALWAYS,
	MODE_MADVISE,
	MODE_NEVER,
	MODE_DEFER,
	MODE_DEFER_MADVISE,
	MODE_WITHIN_SIZE,
	MODE_ADVISE,
	MODE_DENY,
	MODE_FORCE,
};

enum { KSM_RUN = 8, COMPACT_MEMORY = 12, DROP_CACHES = 13 };

#define BIT(m) (1 << MODE_##m)

/* Appended to only: numbers are in journals and case files by name, but in
 * the shared area by place. */
#define NUMBER_SETTINGS(X)                                                     \
	X(0, nr_hugepages, VM "nr_hugepages", POOL_MAX)                        \
	X(1, nr_overcommit_hugepages, VM "nr_overcommit_hugepages", POOL_MAX)  \
	X(2, hugetlb_optimize_vmemmap, VM "hugetlb_optimize_vmemmap", 1)       \
	X(6, khugepaged_scan_ms, THP "khugepaged/scan_sleep_millisecs",        \
	  3600000)                                                             \
	X(7, khugepaged_pages, THP "khugepaged/pages_to_scan", 1 << 20)        \
	X(8, ksm_run, MM "ksm/run", 2)                                         \
	X(9, ksm_sleep_ms, MM "ksm/sleep_millisecs", 3600000)                  \
	X(10, ksm_pages, MM "ksm/pages_to_scan", 1 << 20)                      \
	X(11, numa_balancing, "/proc/sys/kernel/numa_balancing", 3)            \
	X(14, zswap_enabled, "/sys/module/zswap/parameters/enabled", 1)

#define MODE_SETTINGS(X)                                                       \
	X(3, thp_enabled, THP "enabled",                                       \
	  BIT(ALWAYS) | BIT(MADVISE) | BIT(NEVER))                             \
	X(4, thp_defrag, THP "defrag",                                         \
	  BIT(ALWAYS) | BIT(MADVISE) | BIT(NEVER) | BIT(DEFER) |               \
		  BIT(DEFER_MADVISE))                                          \
	X(5, thp_shmem, THP "shmem_enabled",                                   \
	  BIT(ALWAYS) | BIT(WITHIN_SIZE) | BIT(ADVISE) | BIT(NEVER) |          \
		  BIT(DENY) | BIT(FORCE))

#define TRIGGERS(X)                                                            \
	X(12, compact_memory, VM "compact_memory", 1)                          \
	X(13, drop_caches, VM "drop_caches", 3)

#define NUMBER_INFO(i, n, p, max_)                                             \
	[i] = {.name = #n,                                                     \
	       .path = p,                                                      \
	       .kind = MMR_SETTING_NUMBER,                                     \
	       .behind_daemon = (i) == KSM_RUN,                                \
	       .max = max_},
#define MODE_INFO(i, n, p, max_)                                               \
	[i] = {.name = #n, .path = p, .kind = MMR_SETTING_MODE, .max = max_},
#define TRIGGER_INFO(i, n, p, max_)                                            \
	[i] = {.name = #n, .path = p, .kind = MMR_SETTING_TRIGGER, .max = max_},
const struct mmr_setting_info mmr_setting_table[] = {
	NUMBER_SETTINGS(NUMBER_INFO) MODE_SETTINGS(MODE_INFO)
		TRIGGERS(TRIGGER_INFO)[15] = {0},
};

#define SETTING_NAME(i, n, p, max_) {#n, #n, i},
static const struct mmr_name number_names[] = {
	NUMBER_SETTINGS(SETTING_NAME){NULL, NULL, 0},
};

static const struct mmr_name mode_setting_names[] = {
	MODE_SETTINGS(SETTING_NAME){NULL, NULL, 0},
};

#define MODE(word, name)                                                       \
	{                                                                      \
		word, word, MODE_##name                                        \
	}
const struct mmr_name mmr_setting_modes[] = {
	MODE("always", ALWAYS),
	MODE("madvise", MADVISE),
	MODE("never", NEVER),
	MODE("defer", DEFER),
	MODE("defer+madvise", DEFER_MADVISE),
	MODE("within_size", WITHIN_SIZE),
	MODE("advise", ADVISE),
	MODE("deny", DENY),
	MODE("force", FORCE),
	{NULL, NULL, 0},
};

#ifdef MMR_CHILD
#include <asm/errno.h>

static int64_t write_setting(struct mmr_child *c, int64_t index,
			     const char *text)
{
	if (!(c->program->may_write >> index & 1))
		return -EPERM;
	return mmr_child_put_file(mmr_setting_table[index].path, text);
}

static int64_t run_set_number(struct mmr_child *c, const struct mmr_insn *in)
{
	char buf[24];

	return write_setting(c, in->arg[0].lo,
			     mmr_child_decimal(buf, in->arg[1].lo));
}

static int64_t run_set_mode(struct mmr_child *c, const struct mmr_insn *in)
{
	return write_setting(c, in->arg[0].lo,
			     mmr_setting_modes[in->arg[1].lo].name);
}

static int64_t run_compact_memory(struct mmr_child *c,
				  const struct mmr_insn *in)
{
	(void)in;
	return write_setting(c, COMPACT_MEMORY, "1");
}

static int64_t run_drop_caches(struct mmr_child *c, const struct mmr_insn *in)
{
	char buf[24];

	return write_setting(c, DROP_CACHES,
			     mmr_child_decimal(buf, in->arg[0].lo));
}
#else
/* Also of op_memcg.c. */
const char mmr_emit_put_file_c[] =
	"static int put_file(const char *path, const char *text)\n{\n"
	"\tint fd = open(path, O_WRONLY), ret;\n\n"
	"\tif (fd < 0)\n\t\treturn -1;\n"
	"\tret = write(fd, text, strlen(text)) < 0 ? -1 : 0;\n"
	"\tclose(fd);\n\treturn ret;\n}\n\n";

static void emit_put(struct mmr_emit *e, int64_t index, const char *text)
{
	mmr_emit_header(e, "fcntl.h");
	mmr_emit_header(e, "string.h");
	mmr_emit_header(e, "unistd.h");
	mmr_emit_helper(e, mmr_emit_put_file_c);
	mmr_emit_step(e, "put_file(\"%s\", \"%s\")",
		      mmr_setting_table[index].path, text);
}

static void emit_set_number(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%" PRId64, s->args[1].lo);
	emit_put(e, s->args[0].lo, buf);
}

static void emit_set_mode(struct mmr_emit *e, const struct mmr_stmt *s)
{
	emit_put(e, s->args[0].lo, mmr_setting_mode(s->args[1].lo));
}

static void emit_compact_memory(struct mmr_emit *e, const struct mmr_stmt *s)
{
	(void)s;
	emit_put(e, COMPACT_MEMORY, "1");
}

static void emit_drop_caches(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%" PRId64,
		 s->args[0].set ? s->args[0].lo : 3);
	emit_put(e, DROP_CACHES, buf);
}

int mmr_setting_index(const char *name)
{
	int i;

	for (i = 0; mmr_setting_table[i].name; i++)
		if (!strcmp(mmr_setting_table[i].name, name))
			return i;
	return -1;
}

const char *mmr_setting_mode(int64_t v)
{
	size_t i;

	for (i = 0; mmr_setting_modes[i].name; i++)
		if (mmr_setting_modes[i].value == v)
			return mmr_setting_modes[i].name;
	return NULL;
}

char *mmr_setting_text(int index, int64_t v, char *buf, size_t n)
{
	const char *mode = mmr_setting_mode(v);

	if (mmr_setting_table[index].kind == MMR_SETTING_MODE)
		snprintf(buf, n, "%s", mode ? mode : "?");
	else
		snprintf(buf, n, "%" PRId64, v);
	return buf;
}

int mmr_setting_value(int index, const char *text, size_t len, int64_t *v)
{
	const struct mmr_setting_info *s = &mmr_setting_table[index];
	char word[24], *end;
	size_t i;

	if (!len || len >= sizeof(word))
		return -EINVAL;
	memcpy(word, text, len);
	word[len] = 0;
	for (i = 0; s->kind == MMR_SETTING_MODE; i++) {
		if (!mmr_setting_modes[i].name)
			return -EINVAL;
		*v = mmr_setting_modes[i].value;
		if (!strcmp(mmr_setting_modes[i].name, word))
			return s->max >> *v & 1 ? 0 : -EINVAL;
	}
	if (word[0] < '0' || word[0] > '9')
		return -EINVAL;
	*v = strtoll(word, &end, 10);
	return *end || *v > s->max ? -EINVAL : 0;
}

static uint64_t written_by(const struct mmr_block *b)
{
	uint64_t mask = 0;
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP)
			mask |= written_by(&s->body);
		else if (s->op->id == MMR_OP_set_number ||
			 s->op->id == MMR_OP_set_mode)
			mask |= 1ULL << s->args[0].lo;
		else if (s->op->id == MMR_OP_compact_memory)
			mask |= 1ULL << COMPACT_MEMORY;
		else if (s->op->id == MMR_OP_drop_caches)
			mask |= 1ULL << DROP_CACHES;
	}
	return mask;
}

uint64_t mmr_setting_written(const struct mmr_case *c)
{
	uint64_t mask = 0;
	int i, j;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			mask |= written_by(&c->procs[i]->threads[j]->body);
	return mask;
}

uint64_t mmr_setting_named(const struct mmr_case *c)
{
	uint64_t mask = 0;
	int i, index;

	for (i = 0; i < c->nsettings; i++) {
		index = mmr_setting_index(c->settings[i].name);
		if (index >= 0)
			mask |= 1ULL << index;
	}
	for (i = 0; i < c->nneeds; i++) {
		if (c->needs[i].kind != MMR_NEED_WRITES)
			continue;
		index = mmr_setting_index(c->needs[i].name);
		if (index >= 0)
			mask |= 1ULL << index;
	}
	return mask;
}
#endif

#define ARG_SETTING(list)                                                      \
	{                                                                      \
		.name = "setting", .help = "which one", .type = MMR_ARG_ENUM,  \
		.flags = MMR_ARG_POS, .names = (list)                          \
	}

const struct mmr_op mmr_op_set_number = {
	.id = MMR_OP_set_number,
	.name = "set_number",
	.help = "write a kernel setting that the case's header names",
	.race = "A pool of huge pages that grows and shrinks under faults and "
		"exits; KSM or NUMA balancing that come and go.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 100,
	.machine_wide = true,
	.nargs = 2,
	.args = {ARG_SETTING(number_names),
		 {.name = "value",
		  .help = "what to write",
		  .type = MMR_ARG_INT,
		  .flags = MMR_ARG_POS,
		  .max = 3600000}},
	.call = {.nr = -1},
	.calls = "openat write close",
	.run = MMR_RUN(run_set_number),
	.emit = MMR_EMIT(emit_set_number),
};

const struct mmr_op mmr_op_set_mode = {
	.id = MMR_OP_set_mode,
	.name = "set_mode",
	.help = "choose the mode of a kernel setting that the header names",
	.race = "Transparent huge pages that become allowed or forbidden "
		"while faults and khugepaged make them.",
	.class = MMR_CLASS_CALL,
	.nargs = 2,
	.args = {ARG_SETTING(mode_setting_names),
		 {.name = "mode",
		  .help = "its mode from now on",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = mmr_setting_modes}},
	.call = {.nr = -1},
	.calls = "openat write close",
	.run = MMR_RUN(run_set_mode),
	.emit = MMR_EMIT(emit_set_mode),
};

const struct mmr_op mmr_op_compact_memory = {
	.id = MMR_OP_compact_memory,
	.name = "compact_memory",
	.help = "compact the memory of all zones (needs writes=compact_memory)",
	.race = "Every movable page may migrate, whoever uses it.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 200,
	.machine_wide = true,
	.call = {.nr = -1},
	.calls = "openat write close",
	.run = MMR_RUN(run_compact_memory),
	.emit = MMR_EMIT(emit_compact_memory),
};

const struct mmr_op mmr_op_drop_caches = {
	.id = MMR_OP_drop_caches,
	.name = "drop_caches",
	.help = "drop clean caches of the machine (needs writes=drop_caches)",
	.race = "Pages of files go while they are mapped and faulted in.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 200,
	.machine_wide = true,
	.nargs = 1,
	.args = {{.name = "what",
		  .help = "1 pages, 2 slab objects, 3 both",
		  .type = MMR_ARG_INT,
		  .flags = MMR_ARG_POS | MMR_ARG_OPT,
		  .min = 1,
		  .max = 3,
		  .def = 3}},
	.call = {.nr = -1},
	.calls = "openat write close",
	.run = MMR_RUN(run_drop_caches),
	.emit = MMR_EMIT(emit_drop_caches),
};
