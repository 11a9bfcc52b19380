/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bodies of an exported C file: statements, loops, threads, processes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "export_c.h"

/* The condition under which a thread or process is not yet over. */
static void until_condition(struct mmr_export *x, const struct mmr_stmt *s,
			    char *buf, size_t n)
{
	struct mmr_proc *p = NULL;
	int i;

	if (s->until == MMR_UNTIL_EXITED) {
		snprintf(buf, n, "running(shared->pids_%s)", s->until_name);
		return;
	}
	i = mmr_export_thread(x->c, s->until_name, &p);
	if (i >= 0 && x->simple)
		snprintf(buf, n, "!shared->done_%s", s->until_name);
	else
		snprintf(buf, n, "shared->done_%s < shared->spawned_%s",
			 s->until_name, s->until_name);
}

static int emit_block(struct mmr_export *x, const struct mmr_block *b,
		      int depth);

/* A loop around one C statement needs no braces. */
static bool is_bare(struct mmr_export *x, const struct mmr_block *b)
{
	const struct mmr_stmt *first = b->n ? b->stmts[0] : NULL;

	if (!first || first->kind != MMR_STMT_OP ||
	    mmr_export_is_skipped(x, first))
		return false;
	if (b->n == 2) /* a spawn and its join are one */
		return first->op->id == MMR_OP_thread_spawn &&
		       mmr_emit_is_joined(&x->e, first->ref);
	return b->n == 1 && first->op->class == MMR_CLASS_TOUCH;
}

static int emit_loop(struct mmr_export *x, const struct mmr_stmt *s, int depth)
{
	const char *open = is_bare(x, &s->body) ? "" : " {";
	char i = (char)('i' + depth), cond[160];
	int rc;

	switch (s->until) {
	case MMR_UNTIL_COUNT:
		mmr_emit_line(&x->e,
			      "for (int %c = 0; %c < %" PRId64
			      " && !shared->stop; %c++)%s",
			      i, i, s->count, i, open);
		break;
	case MMR_UNTIL_TIME:
		x->e.used |= MMR_USED_DELAY;
		mmr_emit_line(&x->e,
			      "for (long %c = now() + %" PRId64
			      "; now() < %c && !shared->stop;)%s",
			      i, s->count, i, open);
		break;
	case MMR_UNTIL_STOP:
		mmr_emit_line(&x->e, "while (!shared->stop)%s", open);
		break;
	default:
		until_condition(x, s, cond, sizeof(cond));
		mmr_emit_line(&x->e, "while (%s && !shared->stop)%s", cond,
			      open);
		break;
	}
	x->e.indent++;
	rc = emit_block(x, &s->body, depth + 1);
	x->e.indent--;
	if (*open)
		mmr_emit_line(&x->e, "}");
	return rc;
}

/* Counts that `until` loops read, before what they count is started. */
static void emit_spawned(struct mmr_export *x, const struct mmr_stmt *s)
{
	const char *name = s->args[0].name;
	const struct mmr_proc *p;
	int i, j;

	if (s->op->id == MMR_OP_thread_spawn &&
	    mmr_export_is_awaited(x->c, MMR_UNTIL_DONE, name))
		mmr_emit_line(&x->e, "shared->spawned_%s++;", name);
	if (s->op->id != MMR_OP_process_spawn)
		return;
	i = mmr_export_proc(x->c, name);
	if (i < 0)
		return;
	p = x->c->procs[i];
	for (j = 0; j < p->nthreads; j++)
		if (!p->threads[j]->is_template &&
		    mmr_export_is_awaited(x->c, MMR_UNTIL_DONE,
					  p->threads[j]->name))
			mmr_emit_line(&x->e, "shared->spawned_%s += %d;",
				      p->threads[j]->name, p->copies);
}

/* Hands the pids of a process that a loop waits for to that loop. */
static void emit_pids(struct mmr_export *x, const struct mmr_stmt *s)
{
	const char *name = s->args[0].name;
	char var[64] = "unused";

	if (s->op->id != MMR_OP_process_spawn || !strcmp(name, "idle") ||
	    !mmr_export_is_awaited(x->c, MMR_UNTIL_EXITED, name))
		return;
	if (s->ref)
		mmr_emit_var(&x->e, s->ref, MMR_REF_PROCESS, var, sizeof(var));
	if (!x->e.sets) {
		mmr_emit_line(&x->e, "shared->pids_%s[0] = %s.pid;", name, var);
		return;
	}
	mmr_emit_line(&x->e, "for (int i = 0; i < %s.n; i++)", var);
	x->e.indent++;
	mmr_emit_line(&x->e, "shared->pids_%s[i] = %s.p[i].pid;", name, var);
	x->e.indent--;
}

static int emit_stmt(struct mmr_export *x, const struct mmr_stmt *s)
{
	if (mmr_export_is_skipped(x, s))
		return 0;
	if (s->op->class == MMR_CLASS_WAIT && s->op->id != MMR_OP_exit_group &&
	    !(s->op->id == MMR_OP_thread_join &&
	      mmr_emit_is_joined(&x->e, s->args[0].name)))
		x->waits = true;
	emit_spawned(x, s);
	if (s->op->emit) {
		s->op->emit(&x->e, s);
		emit_pids(x, s);
		return 0;
	}
	if (s->op->call.name) {
		mmr_emit_call(&x->e, s);
		return 0;
	}
	x->diag->line = s->line;
	x->diag->col = s->col;
	snprintf(x->diag->text, sizeof(x->diag->text), "'%s' has no form in C",
		 s->op->name);
	return -ENOTSUP;
}

static int emit_block(struct mmr_export *x, const struct mmr_block *b,
		      int depth)
{
	int i, rc = 0;

	for (i = 0; i < b->n && !rc; i++) {
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			rc = emit_loop(x, b->stmts[i], depth);
		else
			rc = emit_stmt(x, b->stmts[i]);
	}
	return rc;
}

/* --- threads and processes --- */

/* The number to pin a thread to, -1: not pinned.  A chain that ends at an
 * unpinned thread pins nobody. */
static int pin_number(const struct mmr_case *c, const struct mmr_thread *t,
		      int depth)
{
	struct mmr_proc *p;
	int i, n;

	if (t->cpu == MMR_CPU_NUMBER)
		return t->cpu_number;
	if (t->cpu == MMR_CPU_ANY || depth > MMR_CASE_MAX_THREADS)
		return -1;
	i = mmr_export_thread(c, t->cpu_thread, &p);
	if (i < 0)
		return -1;
	i -= mmr_export_thread(c, p->threads[0]->name, NULL);
	n = pin_number(c, p->threads[i], depth + 1);
	return n < 0 || t->cpu == MMR_CPU_SAME ? n : n + 1;
}

static void emit_leave(struct mmr_export *x, const char *sync)
{
	if (mmr_export_meets(&x->e.thread->body, sync))
		mmr_emit_line(&x->e, "leave(&shared->sync_%s);", sync);
}

static int emit_thread(struct mmr_export *x, const struct mmr_proc *p,
		       const struct mmr_thread *t, int index)
{
	int cpu = pin_number(x->c, t, 0), rc;

	x->e.proc = p;
	x->e.thread = t;
	x->e.indent = 0;
	mmr_emit_line(&x->e, "static void *thread_%s(void *arg)", t->name);
	mmr_emit_line(&x->e, "{");
	x->e.indent = 1;
	if (x->simple)
		mmr_emit_line(&x->e, "me = &shared->thread[%d];", index);
	else
		mmr_emit_line(&x->e, "me = slot(getpid());");
	if (cpu >= 0) {
		x->pins = true;
		mmr_emit_line(&x->e, "pin(%d);", cpu);
	}
	if (t->segv == MMR_SEGV_RETURN) {
		x->unmended = true;
		mmr_emit_line(&x->e, "unmended = 1;");
	}
	rc = emit_block(x, &t->body, 0);
	if (mmr_export_is_plain(p, t))
		mmr_export_names(x, MMR_ARG_SYNC, emit_leave);
	if (mmr_export_is_awaited(x->c, MMR_UNTIL_DONE, t->name))
		mmr_emit_line(&x->e, "shared->done_%s++;", t->name);
	mmr_emit_line(&x->e, "return arg;");
	x->e.indent = 0;
	mmr_emit_line(&x->e, "}\n");
	return rc;
}

/* `rounds keep`: the process and its mappings live on, so it counts its
 * rounds itself. */
static void put_keep(struct mmr_export *x)
{
	mmr_emit_line(&x->e, "for (int round = 0; round < ROUNDS && "
			     "!shared->stop; round++) {");
	x->e.indent++;
}

static void reset_latch(struct mmr_export *x, const char *name)
{
	mmr_emit_line(&x->e, "shared->latch_%s = 0;", name);
}

static void reset_sync(struct mmr_export *x, const char *name)
{
	mmr_emit_line(&x->e, "shared->sync_%s.left = 0;", name);
}

static void put_reset(struct mmr_export *x)
{
	int i, j;

	mmr_export_names(x, MMR_ARG_LATCH, reset_latch);
	mmr_export_names(x, MMR_ARG_SYNC, reset_sync);
	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++) {
			const char *t = x->c->procs[i]->threads[j]->name;

			if (mmr_export_is_awaited(x->c, MMR_UNTIL_DONE, t))
				mmr_emit_line(&x->e, "shared->done_%s = 0;", t);
		}
	x->e.indent--;
	mmr_emit_line(&x->e, "}");
}

/* Starts the threads of a process and waits for them; the first one is the
 * process itself, as in a case's run. */
void mmr_export_proc_body(struct mmr_export *x, const struct mmr_proc *p)
{
	const struct mmr_thread *first = NULL;
	int j, others = 0;

	for (j = 0; j < p->nthreads; j++) {
		if (p->threads[j]->is_template)
			continue;
		if (!first)
			first = p->threads[j];
		else
			others++;
	}
	if (others && !x->simple)
		mmr_emit_line(&x->e, "pthread_t other[%d];\n", others);
	if (x->c->keep)
		put_keep(x);
	for (j = 0, others = 0; j < p->nthreads; j++)
		if (!p->threads[j]->is_template && p->threads[j] != first)
			mmr_emit_line(&x->e,
				      x->e.own_stacks
					      ? "thread_create(&other[%d], "
						"thread_%s);"
					      : "pthread_create(&other[%d], "
						"NULL, thread_%s, NULL);",
				      others++, p->threads[j]->name);
	if (first)
		mmr_emit_line(&x->e, "thread_%s(NULL);", first->name);
	for (j = 0; j < others; j++)
		mmr_emit_line(&x->e, "pthread_join(other[%d], NULL);", j);
	if (x->c->keep)
		put_reset(x);
}

static void emit_proc(struct mmr_export *x, const struct mmr_proc *p)
{
	x->e.indent = 0;
	mmr_emit_line(&x->e, "static void *proc_%s(void *arg)", p->name);
	mmr_emit_line(&x->e, "{");
	x->e.indent = 1;
	mmr_export_proc_body(x, p);
	mmr_emit_line(&x->e, "return arg;");
	x->e.indent = 0;
	mmr_emit_line(&x->e, "}\n");
}

int mmr_export_bodies(struct mmr_export *x)
{
	int i, j, n = 0, plain = 0, rc = 0;

	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (j = 0; j < p->nthreads && !rc; j++, n++)
			if (x->thread_used[n])
				rc = emit_thread(x, p, p->threads[j], plain++);
		if (rc)
			return rc;
		if (x->proc_used[i] && !x->simple)
			emit_proc(x, p);
	}
	return 0;
}
