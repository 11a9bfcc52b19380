/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that come and go in one address space. */
#include "op.h"

#ifndef MMR_CHILD
#include <stdio.h>
#include <string.h>

#include "emit.h"
#else
#include "child.h"
#endif

#ifdef MMR_CHILD
static int64_t run_thread_spawn(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_thread_spawn(c, in, (uint32_t)in->arg[0].lo);
}

static int64_t run_thread_join(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_thread_join(c, in, 0);
}

static int64_t run_move_threads(struct mmr_child *c, const struct mmr_insn *in)
{
	(void)in;
	return mmr_child_move_threads(c);
}
#else
/* A thread that is waited for at once. */
static void emit_create_join(struct mmr_emit *e, const char *var,
			     const char *body)
{
	char create[160];

	snprintf(create, sizeof(create),
		 e->own_stacks ? "thread_create(&%s, thread_%s)"
			       : "pthread_create(&%s, NULL, thread_%s, NULL)",
		 var, body);
	if (e->steps) {
		mmr_emit_step(e, "%s || pthread_join(%s, NULL)", create, var);
		return;
	}
	mmr_emit_line(e, "if (!%s)", create);
	e->indent++;
	mmr_emit_line(e, "pthread_join(%s, NULL);", var);
	e->indent--;
}

static void emit_thread_spawn(struct mmr_emit *e, const struct mmr_stmt *s)
{
	const char *body = s->args[0].name;
	char var[64];

	if (!strcmp(body, "idle"))
		e->used |= MMR_USED_IDLE_THREAD;
	if (s->ref)
		mmr_emit_var(e, s->ref, MMR_REF_THREAD, var, sizeof(var));
	if (mmr_emit_is_joined(e, s->ref)) {
		emit_create_join(e, var, body);
		return;
	}
	e->used |= MMR_USED_THREAD;
	mmr_emit_step(e, "thread_start(%s%s, thread_%s)", s->ref ? "&" : "",
		      s->ref ? var : "NULL", body);
}

static void emit_thread_join(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char t[64];

	if (mmr_emit_is_joined(e, s->args[0].name))
		return; /* with its spawn */
	e->used |= MMR_USED_THREAD;
	mmr_emit_line(e, "thread_end(&%s);",
		      mmr_emit_arg(e, s, 0, t, sizeof(t)));
}

static const char move_threads_c[] =
	"/* All other threads of the process go to their next CPU. */\n"
	"static int move_threads(void)\n"
	"{\n"
	"\tDIR *tasks = opendir(\"/proc/self/task\");\n"
	"\tstruct dirent *task;\n"
	"\tstatic int turn;\n"
	"\tcpu_set_t next;\n"
	"\n"
	"\tif (!tasks)\n"
	"\t\treturn -1;\n"
	"\tCPU_ZERO(&next);\n"
	"\tCPU_SET(turn++ % sysconf(_SC_NPROCESSORS_ONLN), &next);\n"
	"\twhile ((task = readdir(tasks))) {\n"
	"\t\tpid_t tid = atoi(task->d_name);\n"
	"\n"
	"\t\tif (tid && tid != gettid())\n"
	"\t\t\tsched_setaffinity(tid, sizeof(next), &next);\n"
	"\t}\n"
	"\treturn closedir(tasks);\n"
	"}\n\n";

static void emit_move_threads(struct mmr_emit *e, const struct mmr_stmt *s)
{
	(void)s;
	mmr_emit_header(e, "dirent.h");
	mmr_emit_header(e, "sched.h");
	mmr_emit_header(e, "stdlib.h");
	mmr_emit_header(e, "unistd.h");
	mmr_emit_helper(e, move_threads_c);
	mmr_emit_step(e, "move_threads()");
}
#endif

const struct mmr_op mmr_op_move_threads = {
	.id = MMR_OP_move_threads,
	.name = "move_threads",
	.help = "move all other threads of the process to their next CPU",
	.race = "A call goes on on another CPU: what it holds of the old one, "
		"per-CPU lists and its place in the address space's CPU mask, "
		"is put to the test.",
	.class = MMR_CLASS_CALL,
	.call = {.nr = -1},
	.calls = "sched_setaffinity",
	.run = MMR_RUN(run_move_threads),
	.emit = MMR_EMIT(emit_move_threads),
};

const struct mmr_op mmr_op_thread_spawn = {
	.id = MMR_OP_thread_spawn,
	.name = "thread_spawn",
	.help = "start a thread template in the own process",
	.race = "clone and the new stack's mapping, and a CPU that begins to "
		"use the address space, against faults and unmaps in it.",
	.class = MMR_CLASS_CALL,
	.makes = MMR_REF_THREAD,
	.nargs = 1,
	.args = {{.name = "body",
		  .help = "the template, or idle: returns at once",
		  .type = MMR_ARG_THREAD}},
	.call = {.nr = -1},
	.calls = "clone",
	.run = MMR_RUN(run_thread_spawn),
	.emit = MMR_EMIT(emit_thread_spawn),
};

const struct mmr_op mmr_op_thread_join = {
	.id = MMR_OP_thread_join,
	.name = "thread_join",
	.help = "wait until a spawned thread has gone",
	.race = "The kernel clears and wakes the thread id when it has left "
		"the address space.",
	.class = MMR_CLASS_WAIT,
	.nargs = 1,
	.args = {{.name = "t",
		  .help = "the thread",
		  .type = MMR_ARG_REF,
		  .flags = MMR_ARG_POS,
		  .kinds = MMR_REF_THREAD}},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_thread_join),
	.emit = MMR_EMIT(emit_thread_join),
};
