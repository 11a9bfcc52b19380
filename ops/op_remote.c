/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work on the memory of another process of the case, by the addresses that
 * the caller has for it: process_madvise, process_vm_readv and writev.  And
 * membarrier, which interrupts whoever runs the same address space.
 */
#include <asm/unistd.h>
#include <linux/membarrier.h>

#include "args.h"

#ifdef MMR_CHILD
#include <asm/errno.h>

#include "child.h"
#endif

static const struct mmr_name advice_names[] = {
	MMR_ADVICE_NAMES,
	{NULL, NULL, 0},
};

static const struct mmr_name_need advice_needs[] = {
	MMR_ADVICE_NEEDS,
	{0, NULL},
};

#define CMD(name, c)                                                           \
	{                                                                      \
		name, "MEMBARRIER_CMD_" #c, MEMBARRIER_CMD_##c                 \
	}
static const struct mmr_name membarrier_names[] = {
	CMD("query", QUERY),
	CMD("global", GLOBAL),
	CMD("global_expedited", GLOBAL_EXPEDITED),
	CMD("register_global_expedited", REGISTER_GLOBAL_EXPEDITED),
	CMD("private_expedited", PRIVATE_EXPEDITED),
	CMD("register_private_expedited", REGISTER_PRIVATE_EXPEDITED),
	CMD("private_expedited_sync_core", PRIVATE_EXPEDITED_SYNC_CORE),
	CMD("register_private_expedited_sync_core",
	    REGISTER_PRIVATE_EXPEDITED_SYNC_CORE),
	CMD("private_expedited_rseq", PRIVATE_EXPEDITED_RSEQ),
	CMD("register_private_expedited_rseq", REGISTER_PRIVATE_EXPEDITED_RSEQ),
	{NULL, NULL, 0},
};

static const struct mmr_name_need membarrier_needs[] = {
	{MEMBARRIER_CMD_GLOBAL_EXPEDITED,
	 "feature=membarrier_global_expedited"},
	{MEMBARRIER_CMD_PRIVATE_EXPEDITED,
	 "feature=membarrier_private_expedited"},
	{MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE,
	 "feature=membarrier_sync_core"},
	{MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, "feature=membarrier_rseq"},
	{0, NULL},
};

#ifdef MMR_CHILD
/*
 * By pid: a process that was reaped could be somebody else's by now, but for
 * a namespace that holds nobody else.
 */
static int64_t run_process_vm(struct mmr_child *c, const struct mmr_insn *in)
{
	if (c->machine->no_namespace)
		return -EPERM;
	return mmr_child_call(c, in, NULL);
}
#endif

#define ARG_REMOTE MMR_ARG_MAPPING_AS("r", "the mapping there")

const struct mmr_op mmr_op_process_madvise = {
	.id = MMR_OP_process_madvise,
	.name = "process_madvise",
	.help = "advise on a mapping in another process",
	.race = "Takes the lock of an address space from outside, while its "
		"owner faults, unmaps or exits.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 1000,
	.nargs = 5,
	.args = {MMR_ARG_PROCESS_AS("whose mapping",
				    MMR_REF_PROCESS | MMR_REF_PIDFD),
		 MMR_ARG_MAPPING,
		 {.name = "advice",
		  .help = "what to do",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = advice_names,
		  .needs = advice_needs},
		 MMR_ARG_OFF,
		 MMR_ARG_LEN},
	.call = {.name = "SYS_process_madvise",
		 .header = "sys/mman.h",
		 .nr = MMR_K_SYS_process_madvise,
		 .from = {{.from = MMR_FROM_PIDFD, .arg = 0},
			  {.from = MMR_FROM_IOV, .arg = 1},
			  {.from = MMR_FROM_CONST, .k = 1},
			  {.from = MMR_FROM_VALUE, .arg = 2},
			  {.from = MMR_FROM_CONST, .k = 0}}},
	.needs = "syscall=process_madvise",
};

#define VM_CALL(op, what, why)                                                 \
	const struct mmr_op mmr_op_##op = {                                    \
		.id = MMR_OP_##op,                                             \
		.name = #op,                                                   \
		.help = (what),                                                \
		.race = (why),                                                 \
		.class = MMR_CLASS_CALL,                                       \
		.unit_ns = 2000,                                               \
		.nargs = 5,                                                    \
		.args = {MMR_ARG_PROCESS_AS("whose memory", MMR_REF_PROCESS),  \
			 MMR_ARG_MAPPING_AS("m", "the caller's mapping"),      \
			 ARG_REMOTE, MMR_ARG_OFF, MMR_ARG_LEN},                \
		.call = {.name = #op,                                          \
			 .has_wrapper = true,                                  \
			 .header = "sys/uio.h",                                \
			 .nr = __NR_##op,                                      \
			 .from = {{.from = MMR_FROM_PID, .arg = 0},            \
				  {.from = MMR_FROM_IOV, .arg = 1},            \
				  {.from = MMR_FROM_CONST, .k = 1},            \
				  {.from = MMR_FROM_IOV, .arg = 2},            \
				  {.from = MMR_FROM_CONST, .k = 1},            \
				  {.from = MMR_FROM_CONST, .k = 0}}},          \
		.needs = "syscall=" #op,                                       \
		.run = MMR_RUN(run_process_vm),                                \
	}

VM_CALL(process_vm_readv, "copy from a mapping of another process",
	"Pins pages of an address space from outside, while its owner "
	"unmaps, forks or exits.");
VM_CALL(process_vm_writev, "copy to a mapping of another process",
	"Breaks sharing after fork from outside, while its owner writes, "
	"unmaps or exits.");

const struct mmr_op mmr_op_membarrier = {
	.id = MMR_OP_membarrier,
	.name = "membarrier",
	.help = "make all threads pass a memory barrier",
	.race = "Interrupts CPUs that run the address space: widens windows "
		"between a page table and its TLB entries.",
	.class = MMR_CLASS_CALL,
	.nargs = 1,
	.args = {{.name = "cmd",
		  .help = "which barrier; each kind is registered first",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = membarrier_names,
		  .needs = membarrier_needs}},
	.call = {.name = "SYS_membarrier",
		 .header = "linux/membarrier.h",
		 .nr = __NR_membarrier,
		 .from = {{.from = MMR_FROM_VALUE, .arg = 0},
			  {.from = MMR_FROM_CONST, .k = 0},
			  {.from = MMR_FROM_CONST, .k = 0}}},
	.needs = "syscall=membarrier",
};
