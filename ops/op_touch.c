/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access to memory: write and read.  They count every page as progress, so a
 * long touch is no stall; a touch of memory that has gone ends with EFAULT
 * (or, with segv=return, goes back to the same access for ever).
 */
#include "op.h"

#ifndef MMR_CHILD
#include <stdio.h>
#include <string.h>

#include "emit.h"
#else
#include "child.h"
#endif

enum {
	TOUCH_MAP,
	TOUCH_OFF,
	TOUCH_LEN,
	TOUCH_STEP,
	TOUCH_ORDER,
	TOUCH_WIDTH,
	TOUCH_BELOW,
	TOUCH_ARGS
};

#define LEN_MAX (64LL << 40)
#define BELOW_MAX (256LL << 20)

static const struct mmr_name order_names[] = {
	{"seq", "0", 0},
	{"rand", "1", 1},
	{NULL, NULL, 0},
};

static const struct mmr_name width_names[] = {
	{"1", "1", 1}, {"2", "2", 2},	{"4", "4", 4},
	{"8", "8", 8}, {NULL, NULL, 0},
};

/* clang-format off */
#define TOUCH_ARGUMENTS							\
	{								\
		{ .name = "m",						\
		  .help = "the mapping",				\
		  .type = MMR_ARG_REF,					\
		  .flags = MMR_ARG_POS,					\
		  .kinds = MMR_REF_MAPPING },				\
		{ .name = "off",					\
		  .help = "start within the mapping",			\
		  .type = MMR_ARG_SIZE,					\
		  .flags = MMR_ARG_OPT,					\
		  .max = LEN_MAX },					\
		{ .name = "len",					\
		  .help = "bytes from there, 0: to its end",		\
		  .type = MMR_ARG_SIZE,					\
		  .flags = MMR_ARG_OPT,					\
		  .max = LEN_MAX },					\
		{ .name = "step",					\
		  .help = "bytes from one access to the next",		\
		  .type = MMR_ARG_SIZE,					\
		  .flags = MMR_ARG_OPT,					\
		  .min = 1,						\
		  .max = LEN_MAX,					\
		  .def = 1 },						\
		{ .name = "order",					\
		  .help = "from start to end, or drawn",		\
		  .type = MMR_ARG_ENUM,					\
		  .flags = MMR_ARG_OPT,					\
		  .names = order_names },				\
		{ .name = "width",					\
		  .help = "bytes of an access, at any address",		\
		  .type = MMR_ARG_ENUM,					\
		  .flags = MMR_ARG_OPT,					\
		  .def = 1,						\
		  .names = width_names },				\
		{ .name = "below",					\
		  .help = "that much below the mapping instead (growsdown)", \
		  .type = MMR_ARG_SIZE,					\
		  .flags = MMR_ARG_OPT,					\
		  .max = BELOW_MAX },					\
	}
/* clang-format on */

#ifdef MMR_CHILD
#define TOUCH_INDEXES(write)                                                   \
	{                                                                      \
		TOUCH_MAP, TOUCH_OFF, TOUCH_LEN, TOUCH_STEP, TOUCH_ORDER,      \
			TOUCH_WIDTH, TOUCH_BELOW, (write)                      \
	}

MMR_HOT static int64_t run_write(struct mmr_child *c, const struct mmr_insn *in)
{
	static const struct mmr_touch_args a = TOUCH_INDEXES(true);

	return mmr_child_touch(c, in, &a);
}

MMR_HOT static int64_t run_read(struct mmr_child *c, const struct mmr_insn *in)
{
	static const struct mmr_touch_args a = TOUCH_INDEXES(false);

	return mmr_child_touch(c, in, &a);
}
#else
static const char wide_c[] =
	"static void touch_one(volatile void *p, size_t width, int write)\n"
	"{\n"
	"\tvolatile short *two = p;\n"
	"\tvolatile int *four = p;\n"
	"\tvolatile long *eight = p;\n"
	"\n"
	"\tif (width == 2)\n"
	"\t\twrite ? (void)(*two = 1) : (void)*two;\n"
	"\telse if (width == 4)\n"
	"\t\twrite ? (void)(*four = 1) : (void)*four;\n"
	"\telse\n"
	"\t\twrite ? (void)(*eight = 1) : (void)*eight;\n"
	"}\n"
	"\n"
	"static int touch_wide(struct map m, size_t step, size_t width, int "
	"write,\n"
	"\t\t      int random)\n"
	"{\n"
	"\tlong all = m.len < width ? 0 : (long)((m.len - width) / step + 1);\n"
	"\n"
	"\tif (sigsetjmp(back, 0))\n"
	"\t\treturn -1;\n"
	"\tfor (long i = 0; i < all; i++, me->moved++)\n"
	"\t\ttouch_one(m.at + (random ? draw(0, all - 1) : i) * (long)step,\n"
	"\t\t\t  width, write);\n"
	"\treturn 0;\n"
	"}\n\n";

/* The loop itself, where a function for it would be more to read. */
static void emit_touch_here(struct mmr_emit *e, const struct mmr_stmt *s,
			    const char *step, bool is_write)
{
	char at[200], len[200], next[80] = "++", there[240] = "";

	mmr_emit_at(e, s, TOUCH_MAP, at, sizeof(at));
	mmr_emit_len(e, s, TOUCH_MAP, len, sizeof(len));
	if (strcmp(step, "1") != 0)
		snprintf(next, sizeof(next), " += %s", step);
	if (mmr_emit_may_fail(e, s->args[TOUCH_MAP].name))
		snprintf(there, sizeof(there), "%s != MAP_FAILED && ", at);
	mmr_emit_line(e, "for (size_t n = 0; %sn < %s; n%s%s)", there, len,
		      next, e->count);
	e->indent++;
	mmr_emit_line(e, "%s((volatile char *)%s)[n]%s;",
		      is_write ? "" : "(void)", at, is_write ? " = 1" : "");
	e->indent--;
}

static void emit_touch(struct mmr_emit *e, const struct mmr_stmt *s,
		       bool is_write)
{
	const struct mmr_value *order = &s->args[TOUCH_ORDER];
	char map[192], step[64], m[64], below[48];

	mmr_emit_part(e, s, TOUCH_MAP, map, sizeof(map));
	mmr_emit_arg(e, s, TOUCH_STEP, step, sizeof(step));
	if (s->args[TOUCH_BELOW].set && s->args[TOUCH_BELOW].lo) {
		e->used |= MMR_USED_RECOVER;
		mmr_emit_arg(e, s, TOUCH_MAP, m, sizeof(m));
		mmr_emit_arg(e, s, TOUCH_BELOW, below, sizeof(below));
		snprintf(map, sizeof(map), "(struct map){ %s.at - (%s), %s }",
			 m, below, below);
	}
	if (s->args[TOUCH_WIDTH].set && s->args[TOUCH_WIDTH].lo > 1) {
		e->used |= MMR_USED_RECOVER | MMR_USED_DRAW | MMR_USED_MAP;
		mmr_emit_helper(e, wide_c);
		mmr_emit_step(e, "touch_wide(%s, %s, %lld, %d, %d)", map, step,
			      (long long)s->args[TOUCH_WIDTH].lo, is_write,
			      order->set && order->lo);
		return;
	}
	if (order->set && order->lo) {
		e->used |= MMR_USED_RANDOM | MMR_USED_DRAW;
		mmr_emit_step(e, "touch_random(%s, %s, %d)", map, step,
			      is_write);
		return;
	}
	if (e->inlines) {
		emit_touch_here(e, s, step, is_write);
		return;
	}
	e->used |= is_write ? MMR_USED_WRITE : MMR_USED_READ;
	mmr_emit_step(e, "touch_%s(%s, %s)", is_write ? "write" : "read", map,
		      step);
}

static void emit_write(struct mmr_emit *e, const struct mmr_stmt *s)
{
	emit_touch(e, s, true);
}

static void emit_read(struct mmr_emit *e, const struct mmr_stmt *s)
{
	emit_touch(e, s, false);
}
#endif

const struct mmr_op mmr_op_write = {
	.id = MMR_OP_write,
	.name = "write",
	.help = "write to a mapping, a byte a step",
	.race = "Page faults that make or change an entry, while others take "
		"it away, split, migrate or share it.",
	.class = MMR_CLASS_TOUCH,
	.nargs = TOUCH_ARGS,
	.args = TOUCH_ARGUMENTS,
	.call = {.nr = -1},
	.run = MMR_RUN(run_write),
	.emit = MMR_EMIT(emit_write),
};

const struct mmr_op mmr_op_read = {
	.id = MMR_OP_read,
	.name = "read",
	.help = "read from a mapping, a byte a step",
	.race = "Read faults (zero page, page cache, swap) while others "
		"write, take the entry away or migrate it.",
	.class = MMR_CLASS_TOUCH,
	.nargs = TOUCH_ARGS,
	.args = TOUCH_ARGUMENTS,
	.call = {.nr = -1},
	.run = MMR_RUN(run_read),
	.emit = MMR_EMIT(emit_read),
};
