/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes: their start, their end, and what looks at them from outside
 * meanwhile.  Every process named here is a descendant of the case.
 */
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/ptrace.h>

#include "kernel.h"
#include "op.h"

#ifndef MMR_CHILD
#include <string.h>

#include "emit.h"
#else
#include "child.h"
#endif

#define SIG(n)                                                                 \
	{                                                                      \
#n, "SIG" #n, SIG##n                                           \
	}
static const struct mmr_name signal_names[] = {
	SIG(KILL), SIG(TERM), SIG(ABRT), SIG(SEGV), SIG(BUS),  SIG(STOP),
	SIG(CONT), SIG(INT),  SIG(HUP),	 SIG(USR1), SIG(USR2), {NULL, NULL, 0},
};

static const struct mmr_name ptrace_names[] = {
	{"traceexit", "PTRACE_O_TRACEEXIT", PTRACE_O_TRACEEXIT},
	{NULL, NULL, 0},
};

#define ARG_PROCESS(what, which)                                               \
	{                                                                      \
		.name = "p", .help = what, .type = MMR_ARG_REF,                \
		.flags = MMR_ARG_POS, .kinds = (which)                         \
	}

enum { SPAWN_PROCESS, SPAWN_FRESH, SPAWN_VM };
enum { KILL_PROCESS, KILL_SIGNAL };

#ifdef MMR_CHILD
static int64_t run_process_spawn(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_process_spawn(
		c, in, (uint32_t)in->arg[SPAWN_PROCESS].lo,
		in->set >> SPAWN_FRESH & 1, in->set >> SPAWN_VM & 1);
}

static int64_t run_kill(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_kill(c, in, KILL_PROCESS,
			      (int)in->arg[KILL_SIGNAL].lo);
}

static int64_t run_process_reap(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_process_reap(c, in, 0);
}

static int64_t run_pidfd_open(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_pidfd_open(c, in, 0);
}

static int64_t run_ptrace_seize(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_ptrace_seize(c, in, 0, (uint64_t)in->arg[1].lo);
}

static int64_t run_exit_group(struct mmr_child *c, const struct mmr_insn *in)
{
	mmr_child_exit_group(c, in, (int)in->arg[0].lo);
}
#else
static void emit_process_spawn(struct mmr_emit *e, const struct mmr_stmt *s)
{
	const char *name = s->args[SPAWN_PROCESS].name;
	const char *spawn = "spawn";
	const char *pid = mmr_emit_pid(e);
	char var[64] = "unused";
	int i, copies = 1;

	for (i = 0; i < e->c->nprocs; i++)
		if (!strcmp(e->c->procs[i]->name, name))
			copies = e->c->procs[i]->copies;
	if (!strcmp(name, "idle"))
		e->used |= MMR_USED_IDLE_PROC;
	e->used |= MMR_USED_SPAWN;
	if (s->ref)
		mmr_emit_var(e, s->ref, MMR_REF_PROCESS, var, sizeof(var));
	else
		e->used |= MMR_USED_UNUSED;
	if (s->args[SPAWN_VM].set)
		mmr_emit_line(e, "/* The nearest to CLONE_VM that a C library "
				 "stands. */");
	if (s->args[SPAWN_FRESH].set) {
		e->used |= MMR_USED_FRESH;
		spawn = "spawn_fresh";
	}
	/* Over and over, a pidfd has to be closed: a helper does it. */
	if (!e->steps && !e->groups && !e->sets &&
	    !(e->used & MMR_USED_PIDFD && e->indent > 1)) {
		e->used |= MMR_USED_START;
		mmr_emit_step(e, "%s%s = start(proc_%s)", var, pid, name);
		if (e->used & MMR_USED_PIDFD)
			mmr_emit_step(e,
				      "%s%s = syscall(SYS_pidfd_open, %s%s, 0)",
				      var, mmr_emit_fd(e), var, pid);
		return;
	}
	if (!s->args[SPAWN_FRESH].set)
		e->used |= MMR_USED_SPAWN_ANY;
	if (e->sets)
		mmr_emit_step(e, "%s(&%s, proc_%s, %d)", spawn, var, name,
			      copies);
	else
		mmr_emit_step(e, "%s(&%s, proc_%s)", spawn, var, name);
}

static void emit_kill(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char p[64], sig[32];

	mmr_emit_arg(e, s, KILL_SIGNAL, sig, sizeof(sig));
	mmr_emit_header(e, "signal.h");
	if (mmr_emit_ref_kind(e, s, KILL_PROCESS) == MMR_REF_PIDFD) {
		mmr_emit_header(e, "sys/syscall.h");
		mmr_emit_constant(e, "SYS_pidfd_send_signal");
		mmr_emit_step(
			e, "syscall(SYS_pidfd_send_signal, %s, %s, NULL, 0)",
			mmr_emit_arg(e, s, KILL_PROCESS, p, sizeof(p)), sig);
		return;
	}
	/* pid 0 is the own group: never before it is set. */
	if (!e->steps && !e->sets &&
	    mmr_emit_follows(e, s, s->args[KILL_PROCESS].name)) {
		mmr_emit_arg(e, s, KILL_PROCESS, p, sizeof(p));
		mmr_emit_step(e, "kill(%s%s, %s)", p, mmr_emit_pid(e), sig);
		return;
	}
	e->used |= MMR_USED_SPAWN | MMR_USED_KILL;
	mmr_emit_each(e, s, KILL_PROCESS, p, sizeof(p));
	mmr_emit_step(e, "send_signal(%s, %s)", p, sig);
	mmr_emit_each_end(e);
}

/* Not a step: the one that exits may be the culprit, never the one that
 * waits. */
static void emit_process_reap(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char p[64];

	if (!e->steps && !e->sets && mmr_emit_follows(e, s, s->args[0].name)) {
		mmr_emit_arg(e, s, 0, p, sizeof(p));
		mmr_emit_line(e,
			      "waitid(P_PID, %s%s, NULL, WEXITED | WNOWAIT);",
			      p, mmr_emit_pid(e));
		return;
	}
	e->used |= MMR_USED_SPAWN | MMR_USED_REAP;
	mmr_emit_each(e, s, 0, p, sizeof(p));
	mmr_emit_line(e, "wait_gone(%s);", p);
	mmr_emit_each_end(e);
}

static void emit_exit_group(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char status[32];

	mmr_emit_arg(e, s, 0, status, sizeof(status));
	mmr_emit_line(e, "me->in = \"_exit(%s)\";", status);
	mmr_emit_line(e, "_exit(%s);", status);
}

static void emit_ptrace_seize(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char p[64], options[64];

	mmr_emit_header(e, "sys/ptrace.h");
	mmr_emit_arg(e, s, 1, options, sizeof(options));
	mmr_emit_each(e, s, 0, p, sizeof(p));
	mmr_emit_step(e, "ptrace(PTRACE_SEIZE, %s%s, 0, %s)", p,
		      mmr_emit_pid(e), options);
	mmr_emit_each_end(e);
}
#endif

const struct mmr_op mmr_op_process_mrelease = {
	.id = MMR_OP_process_mrelease,
	.name = "process_mrelease",
	.help = "free the memory of a killed process from outside",
	.race = "Walks an address space while exit_mmap tears its page "
		"tables down.",
	.class = MMR_CLASS_CALL,
	.unit_ns = 300,
	.nargs = 1,
	.args = {ARG_PROCESS("the killed process",
			     MMR_REF_PROCESS | MMR_REF_PIDFD)},
	.call = {.name = "SYS_process_mrelease",
		 .header = "sys/syscall.h",
		 .nr = MMR_K_SYS_process_mrelease,
		 .from = {{.from = MMR_FROM_PIDFD, .arg = 0},
			  {.from = MMR_FROM_CONST, .k = 0}}},
	.needs = "syscall=process_mrelease",
};

const struct mmr_op mmr_op_pidfd_open = {
	.id = MMR_OP_pidfd_open,
	.name = "pidfd_open",
	.help = "open a file descriptor that names a process",
	.race = "A name for a process that outlives it.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_PIDFD,
	.nargs = 1,
	.args = {ARG_PROCESS("the process", MMR_REF_PROCESS)},
	.call = {.name = "SYS_pidfd_open",
		 .header = "sys/syscall.h",
		 .nr = MMR_K_SYS_pidfd_open,
		 .from = {{.from = MMR_FROM_PID, .arg = 0},
			  {.from = MMR_FROM_CONST, .k = 0}}},
	.needs = "syscall=pidfd_open",
	.run = MMR_RUN(run_pidfd_open),
};

const struct mmr_op mmr_op_process_spawn = {
	.id = MMR_OP_process_spawn,
	.name = "process_spawn",
	.help = "fork a process template (all its copies)",
	.race = "fork copies page tables and shares pages while other threads "
		"fault, map and unmap.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_PROCESS,
	/* A process counts as 4 MiB and what it has mapped (watch.c): about
	 * 2 ms of forking for each, five times that is too much. */
	.unit_ns = 2000,
	.nargs = 3,
	.args =
		{
			{.name = "process",
			 .help = "the template, or idle",
			 .type = MMR_ARG_PROCESS,
			 .flags = MMR_ARG_POS},
			{.name = "fresh",
			 .help = "from the supervisor: inherits no memory",
			 .type = MMR_ARG_WORD,
			 .flags = MMR_ARG_OPT},
			{.name = "vm",
			 .help = "shares the memory of its spawner (CLONE_VM "
				 "without CLONE_THREAD)",
			 .type = MMR_ARG_WORD,
			 .flags = MMR_ARG_OPT},
		},
	.call = {.nr = -1},
	.calls = "clone",
	.run = MMR_RUN(run_process_spawn),
	.emit = MMR_EMIT(emit_process_spawn),
};

const struct mmr_op mmr_op_kill = {
	.id = MMR_OP_kill,
	.name = "kill",
	.help = "send a signal to a process",
	.race = "A fatal signal at any point of what the process does.",
	.class = MMR_CLASS_CALL,
	.nargs = 2,
	.args = {ARG_PROCESS("whom", MMR_REF_PROCESS | MMR_REF_PIDFD),
		 {.name = "signal",
		  .help = "which signal",
		  .type = MMR_ARG_ENUM,
		  .flags = MMR_ARG_POS,
		  .names = signal_names}},
	.call = {.nr = -1},
	.calls = "pidfd_send_signal kill",
	.run = MMR_RUN(run_kill),
	.emit = MMR_EMIT(emit_kill),
};

const struct mmr_op mmr_op_process_reap = {
	.id = MMR_OP_process_reap,
	.name = "process_reap",
	.help = "wait until a process can be reaped (all its copies)",
	.race = "How long an exit takes, seen from the parent.",
	.class = MMR_CLASS_WAIT,
	.nargs = 1,
	.args = {ARG_PROCESS("whom", MMR_REF_PROCESS)},
	.call = {.nr = -1},
	.calls = "waitid",
	.run = MMR_RUN(run_process_reap),
	.emit = MMR_EMIT(emit_process_reap),
};

/* WAIT, as the monitor times exits by the process, not by this statement. */
const struct mmr_op mmr_op_exit_group = {
	.id = MMR_OP_exit_group,
	.name = "exit_group",
	.help = "end the own process, all threads of it",
	.race = "exit_mmap against whatever still looks at the address space.",
	.class = MMR_CLASS_WAIT,
	.nargs = 1,
	.args = {{.name = "status",
		  .help = "exit status",
		  .type = MMR_ARG_INT,
		  .flags = MMR_ARG_OPT,
		  .max = 255}},
	.call = {.nr = -1},
	.calls = "exit_group",
	.run = MMR_RUN(run_exit_group),
	.emit = MMR_EMIT(emit_exit_group),
};

const struct mmr_op mmr_op_ptrace_seize = {
	.id = MMR_OP_ptrace_seize,
	.name = "ptrace_seize",
	.help = "become the tracer of a process, without stopping it",
	.race = "With traceexit its exit is held until the tracer goes on: "
		"an exit that does not end.",
	.class = MMR_CLASS_CALL,
	.nargs = 2,
	.args = {ARG_PROCESS("whom to trace", MMR_REF_PROCESS),
		 {.name = "options",
		  .help = "what stops it",
		  .type = MMR_ARG_FLAGS,
		  .flags = MMR_ARG_OPT,
		  .max = INT32_MAX,
		  .names = ptrace_names}},
	.call = {.name = "ptrace",
		 .has_wrapper = true,
		 .header = "sys/ptrace.h",
		 .nr = __NR_ptrace,
		 .from = {{.from = MMR_FROM_CONST, .k = PTRACE_SEIZE},
			  {.from = MMR_FROM_PID, .arg = 0},
			  {.from = MMR_FROM_CONST, .k = 0},
			  {.from = MMR_FROM_VALUE, .arg = 1}}},
	.run = MMR_RUN(run_ptrace_seize),
	.emit = MMR_EMIT(emit_ptrace_seize),
};
