/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a thread or process may do, taken back in the middle of a case: a
 * capability, a resource limit.  Both go with it.
 */
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/resource.h>

#include "op.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include <asm/errno.h>

#include "child.h"
#endif

#define CAP(name, NAME)                                                        \
	{                                                                      \
		name, "CAP_" #NAME, CAP_##NAME                                 \
	}
static const struct mmr_name cap_names[] = {
	CAP("sys_nice", SYS_NICE),	   CAP("ipc_lock", IPC_LOCK),
	CAP("sys_admin", SYS_ADMIN),	   CAP("sys_ptrace", SYS_PTRACE),
	CAP("sys_resource", SYS_RESOURCE), {NULL, NULL, 0},
};

/* asm-generic/resource.h, which all architectures here use. */
static const struct mmr_name limit_names[] = {
	{"data", "RLIMIT_DATA", 2}, {"stack", "RLIMIT_STACK", 3},
	{"core", "RLIMIT_CORE", 4}, {"memlock", "RLIMIT_MEMLOCK", 8},
	{"as", "RLIMIT_AS", 9},	    {NULL, NULL, 0},
};

#ifdef MMR_CHILD
static int64_t run_drop_cap(struct mmr_child *c, const struct mmr_insn *in)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	uint32_t cap = (uint32_t)in->arg[0].lo, bit = 1u << (cap & 31);
	int64_t ret;

	(void)c;
	ret = mmr_sys2(__NR_capget, mmr_sys_ptr(&head), mmr_sys_ptr(data));
	if (ret < 0)
		return ret;
	data[cap >> 5].effective &= ~bit;
	data[cap >> 5].permitted &= ~bit;
	data[cap >> 5].inheritable &= ~bit;
	return mmr_sys2(__NR_capset, mmr_sys_ptr(&head), mmr_sys_ptr(data));
}

static int64_t run_setrlimit(struct mmr_child *c, const struct mmr_insn *in)
{
	struct {
		uint64_t soft, hard;
	} lim = {0, 0};
	int64_t ret;

	(void)c;
	ret = mmr_sys4(__NR_prlimit64, 0, in->arg[0].lo, 0, mmr_sys_ptr(&lim));
	if (ret < 0)
		return ret;
	/* The soft one alone: it can be raised again. */
	lim.soft = (uint64_t)in->arg[1].lo;
	if (lim.soft > lim.hard)
		lim.soft = lim.hard;
	return mmr_sys4(__NR_prlimit64, 0, in->arg[0].lo, mmr_sys_ptr(&lim), 0);
}
#else
static const char drop_cap_c[] =
	"static int drop_cap(int cap)\n{\n"
	"\tstruct __user_cap_header_struct head = {\n"
	"\t\t_LINUX_CAPABILITY_VERSION_3, 0\n\t};\n"
	"\tstruct __user_cap_data_struct data[2];\n"
	"\tstruct __user_cap_data_struct *d = &data[CAP_TO_INDEX(cap)];\n\n"
	"\tif (syscall(SYS_capget, &head, data))\n\t\treturn -1;\n"
	"\td->effective &= ~CAP_TO_MASK(cap);\n"
	"\td->permitted &= ~CAP_TO_MASK(cap);\n"
	"\td->inheritable &= ~CAP_TO_MASK(cap);\n"
	"\treturn (int)syscall(SYS_capset, &head, data);\n}\n\n";

static const char set_limit_c[] =
	"static int set_limit(int what, unsigned long value)\n{\n"
	"\tstruct rlimit l;\n\n"
	"\tif (getrlimit(what, &l))\n\t\treturn -1;\n"
	"\tl.rlim_cur = value < l.rlim_max ? value : l.rlim_max;\n"
	"\treturn setrlimit(what, &l);\n}\n\n";

static void emit_drop_cap(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char cap[48];

	mmr_emit_header(e, "linux/capability.h");
	mmr_emit_header(e, "sys/syscall.h");
	mmr_emit_helper(e, drop_cap_c);
	mmr_emit_step(e, "drop_cap(%s)",
		      mmr_emit_arg(e, s, 0, cap, sizeof(cap)));
}

static void emit_setrlimit(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char what[48], value[64];

	mmr_emit_header(e, "sys/resource.h");
	mmr_emit_helper(e, set_limit_c);
	mmr_emit_step(e, "set_limit(%s, %s)",
		      mmr_emit_arg(e, s, 0, what, sizeof(what)),
		      mmr_emit_arg(e, s, 1, value, sizeof(value)));
}
#endif

const struct mmr_op mmr_op_drop_cap = {
	.id = MMR_OP_drop_cap,
	.name = "drop_cap",
	.help = "give up a capability, for the calling thread alone",
	.race = "One thread may move shared pages or lock memory, the other "
		"may not.",
	.class = MMR_CLASS_CALL,
	.nargs = 1,
	.args = {{.name = "cap",
		  .help = "which one",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = cap_names}},
	.call = {.nr = -1},
	.calls = "capget capset",
	.run = MMR_RUN(run_drop_cap),
	.emit = MMR_EMIT(emit_drop_cap),
};

const struct mmr_op mmr_op_setrlimit = {
	.id = MMR_OP_setrlimit,
	.name = "setrlimit",
	.help = "set a (soft) limit of the own process",
	.race = "A limit that falls below what is mapped, locked or grown.",
	.class = MMR_CLASS_CALL,
	.nargs = 2,
	.args = {{.name = "limit",
		  .help = "which one",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = limit_names},
		 {.name = "value",
		  .help = "from now on, at most the hard limit",
		  .type = MMR_ARG_SIZE,
		  .flags = MMR_ARG_POS,
		  .max = 64LL << 40}},
	.call = {.nr = -1},
	.calls = "prlimit64",
	.run = MMR_RUN(run_setrlimit),
	.emit = MMR_EMIT(emit_setrlimit),
};
