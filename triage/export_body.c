/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bodies of an exported C file: statements, loops, threads, processes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export_c.h"

/* The condition under which a thread or process is not yet over. */
static void until_condition(struct mmr_export *x, const struct mmr_stmt *s,
			    char *buf, size_t n)
{
	const char *where = mmr_export_where(x);
	struct mmr_proc *p = NULL;
	int i;

	if (s->until == MMR_UNTIL_EXITED) {
		i = mmr_export_proc(x->c, s->until_name);
		snprintf(buf, n, "any_running(shared->pids_%s, %d)",
			 s->until_name, i < 0 ? 1 : x->c->procs[i]->copies);
		return;
	}
	i = mmr_export_thread(x->c, s->until_name, &p);
	if (i >= 0 && x->simple)
		snprintf(buf, n, "!%sdone_%s", where, s->until_name);
	else
		snprintf(buf, n, "%sdone_%s < %sspawned_%s", where,
			 s->until_name, where, s->until_name);
}

static int emit_block(struct mmr_export *x, const struct mmr_block *b,
		      int depth);

/* The statements of a loop, one deeper; *lines: how many lines they take. */
static int emit_turn(struct mmr_export *x, const struct mmr_block *b, int depth,
		     char **text, int *lines)
{
	FILE *out = x->e.out;
	size_t n, i;
	int rc;

	x->e.out = open_memstream(text, &n);
	if (!x->e.out) {
		x->e.out = out;
		return -ENOMEM;
	}
	x->e.indent++;
	rc = emit_block(x, b, depth + 1);
	x->e.indent--;
	if (fclose(x->e.out) && !rc)
		rc = -ENOMEM;
	x->e.out = out;
	for (i = 0, *lines = 0; i < n && !rc; i++)
		*lines += (*text)[i] == '\n';
	return rc;
}

/* Nothing that a turn of the loop does counts. */
static bool counts_turns(const struct mmr_export *x, const struct mmr_block *b)
{
	int i;

	for (i = 0; i < b->n && x->counts; i++)
		if (b->stmts[i]->kind == MMR_STMT_LOOP ||
		    b->stmts[i]->op->class == MMR_CLASS_TOUCH)
			return false;
	return x->counts;
}

static int emit_loop(struct mmr_export *x, const struct mmr_stmt *s, int depth)
{
	const char *open, *stop = x->whole ? "" : " && !shared->stop";
	char i = (char)('i' + depth), cond[160], *text = NULL;
	int rc, lines = 0;

	rc = emit_turn(x, &s->body, depth, &text, &lines);
	if (rc)
		goto out;
	open = lines <= 1 ? "" : " {"; /* one line needs no braces */
	switch (s->until) {
	case MMR_UNTIL_COUNT:
		mmr_emit_line(
			&x->e, "for (int %c = 0; %c < %" PRId64 "%s; %c++%s)%s",
			i, i, s->count, stop, i,
			counts_turns(x, &s->body) ? ", " MMR_EXPORT_STILL : "",
			open);
		break;
	case MMR_UNTIL_TIME:
		mmr_emit_line(&x->e,
			      "for (long long %c = now() + %" PRId64
			      "; now() < %c%s;)%s",
			      i, s->count, i, stop, open);
		break;
	case MMR_UNTIL_STOP:
		mmr_emit_line(&x->e, "while (!shared->stop)%s", open);
		break;
	default:
		until_condition(x, s, cond, sizeof(cond));
		mmr_emit_line(&x->e, "while (%s%s)%s", cond, stop, open);
		break;
	}
	fputs(text, x->e.out);
	if (!lines) {
		x->e.indent++;
		mmr_emit_line(&x->e, ";");
		x->e.indent--;
	}
	if (*open)
		mmr_emit_line(&x->e, "}");
out:
	free(text);
	return rc;
}

/* Counts that `until` loops read, before what they count is started. */
static void emit_spawned(struct mmr_export *x, const struct mmr_stmt *s)
{
	const char *name = s->args[0].name, *where = mmr_export_where(x);
	const struct mmr_proc *p;
	int i, j;

	if (s->op->id == MMR_OP_thread_spawn &&
	    mmr_export_is_awaited(x->c, MMR_UNTIL_DONE, name))
		mmr_emit_line(&x->e, "%sspawned_%s++;", where, name);
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
			mmr_emit_line(&x->e, "%sspawned_%s += %d;", where,
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
		mmr_emit_line(&x->e, "shared->pids_%s[0] = %s%s;", name, var,
			      mmr_emit_pid(&x->e));
		return;
	}
	mmr_emit_line(&x->e, "for (int i = 0; i < %s.n; i++)", var);
	x->e.indent++;
	mmr_emit_line(&x->e, "shared->pids_%s[i] = %s.p[i].pid;", name, var);
	x->e.indent--;
}

/* The limit of a call that the case gives one, in ms; 0: none. */
static int64_t call_limit(struct mmr_export *x, const struct mmr_stmt *s)
{
	int i;

	for (i = 0; i < x->c->nexpects; i++)
		if (x->c->expects[i].kind == MMR_EXPECT_CALL &&
		    !strcmp(x->c->expects[i].name, s->op->name))
			return x->c->expects[i].within_ns / 1000000;
	return 0;
}

static int refuse(struct mmr_export *x, const struct mmr_stmt *s)
{
	x->diag->line = s->line;
	x->diag->col = s->col;
	snprintf(x->diag->text, sizeof(x->diag->text),
		 "'%s' has no form in C: remove the statement, or export "
		 "without it (mmrace min does it when it does not matter)",
		 s->op->name);
	return -ENOTSUP;
}

static int emit_thread_body(struct mmr_export *x, const struct mmr_proc *p,
			    const struct mmr_thread *t, int index);

/* The case's one spawn, as a fork with what the new process does behind it. */
static int emit_in_place(struct mmr_export *x, const struct mmr_stmt *s)
{
	const struct mmr_proc *from = x->e.proc, *p;
	const struct mmr_thread *by = x->e.thread;
	const struct mmr_block *b;
	char var[64];
	int rc;

	p = x->c->procs[mmr_export_proc(x->c, s->args[0].name)];
	b = &p->threads[0]->body;
	mmr_emit_var(&x->e, s->ref, MMR_REF_PROCESS, var, sizeof(var));
	strcat(var, mmr_emit_pid(&x->e));
	x->e.used |= MMR_USED_SPAWN;
	if (x->to == MMR_EXPORT_LTP) {
		mmr_emit_line(&x->e, "%s = SAFE_FORK();", var);
	} else {
		mmr_emit_line(&x->e, "%s = fork();", var);
		mmr_emit_line(&x->e, "if (%s < 0)", var);
		mmr_emit_line(&x->e, "\terr(%s, \"fork\");",
			      x->to == MMR_EXPORT_C ? "4" : "KSFT_SKIP");
	}
	mmr_emit_line(&x->e, "if (!%s) {", var);
	x->e.indent++;
	mmr_emit_line(&x->e, "prctl(PR_SET_PDEATHSIG, SIGKILL);");
	rc = emit_thread_body(x, p, p->threads[0], 0);
	if (x->may_miss || !b->n || b->stmts[b->n - 1]->kind != MMR_STMT_OP ||
	    b->stmts[b->n - 1]->op->id != MMR_OP_pause)
		mmr_emit_line(&x->e, "_exit(0);");
	x->e.indent--;
	mmr_emit_line(&x->e, "}");
	x->e.proc = from;
	x->e.thread = by;
	if (x->e.used & MMR_USED_PIDFD) {
		mmr_emit_var(&x->e, s->ref, MMR_REF_PROCESS, var, sizeof(var));
		mmr_emit_line(&x->e, "%s%s = syscall(SYS_pidfd_open, %s%s, 0);",
			      var, mmr_emit_fd(&x->e), var,
			      mmr_emit_pid(&x->e));
	}
	return rc;
}

static int emit_stmt(struct mmr_export *x, const struct mmr_stmt *s)
{
	int64_t within = call_limit(x, s);

	if (mmr_export_is_skipped(x, s))
		return 0;
	if (!s->op->emit && !s->op->call.name)
		return refuse(x, s);
	if (s->op->class == MMR_CLASS_WAIT && s->op->id != MMR_OP_exit_group &&
	    !(s->op->id == MMR_OP_thread_join &&
	      mmr_emit_is_joined(&x->e, s->args[0].name)))
		x->waits = true;
	emit_spawned(x, s);
	if (within)
		mmr_emit_line(&x->e, "me->within = %" PRId64 ";", within);
	if (x->in_place && s->op->id == MMR_OP_process_spawn) {
		int rc = emit_in_place(x, s);

		if (rc)
			return rc;
	} else if (s->op->emit)
		s->op->emit(&x->e, s);
	else
		mmr_emit_call(&x->e, s);
	if (within)
		mmr_emit_line(&x->e, "me->within = 0;");
	x->has_within |= within > 0;
	emit_pids(x, s);
	return 0;
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
	if (!x->e.one_meet && mmr_export_meets(&x->e.thread->body, sync))
		mmr_emit_line(&x->e, "leave(&shared->sync_%s);", sync);
}

/* The seed of a thread that draws; true when it has one. */
static bool emit_seed(struct mmr_export *x, const struct mmr_thread *t)
{
	if (!x->e.seeds || x->e.lone_draw || !mmr_export_draws(&t->body))
		return false;
	mmr_emit_header(&x->e, "stdlib.h");
	mmr_emit_line(&x->e, "unsigned int seed = now();");
	return true;
}

/* What a thread does, at the current indentation; index: of its slot. */
static int emit_thread_body(struct mmr_export *x, const struct mmr_proc *p,
			    const struct mmr_thread *t, int index)
{
	int cpu = pin_number(x->c, t, 0), rc;

	x->e.proc = p;
	x->e.thread = t;
	if (!x->whole && x->simple)
		mmr_emit_line(&x->e, "me = &shared->thread[%d];", index);
	else if (!x->whole)
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
		mmr_emit_line(&x->e, "%sdone_%s%s;", mmr_export_where(x),
			      t->name, x->simple ? " = 1" : "++");
	return rc;
}

static int emit_thread(struct mmr_export *x, const struct mmr_proc *p,
		       const struct mmr_thread *t, int index)
{
	int rc;

	x->e.indent = 0;
	mmr_emit_line(&x->e, "static void *thread_%s(void *arg)", t->name);
	mmr_emit_line(&x->e, "{");
	x->e.indent = 1;
	if (emit_seed(x, t))
		fputc('\n', x->e.out);
	rc = emit_thread_body(x, p, t, index);
	mmr_emit_line(&x->e, "return arg;");
	x->e.indent = 0;
	mmr_emit_line(&x->e, "}\n");
	return rc;
}

/* `rounds keep`: the process and its mappings live on, so it counts its
 * rounds itself. */
static void put_keep(struct mmr_export *x)
{
	mmr_emit_line(&x->e, x->whole ? "for (int round = 0; round < ROUNDS; "
					"round++, " MMR_EXPORT_STILL ") {"
				      : "for (int round = 0; round < ROUNDS && "
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
				mmr_emit_line(&x->e, "%sdone_%s = 0;",
					      mmr_export_where(x), t);
		}
	x->e.indent--;
	mmr_emit_line(&x->e, "}");
}

/* The first one that the process itself is, as in a case's run. */
static const struct mmr_thread *first_thread(const struct mmr_proc *p)
{
	int j;

	for (j = 0; j < p->nthreads; j++)
		if (!p->threads[j]->is_template)
			return p->threads[j];
	return NULL;
}

static bool is_inline(const struct mmr_export *x, const struct mmr_proc *p)
{
	int n = mmr_export_plain_threads(p);

	return !x->c->keep && (n == 1 || (n && x->whole));
}

static void emit_creates(struct mmr_export *x, const struct mmr_proc *p)
{
	const struct mmr_thread *first = first_thread(p);
	int j, n = 0, others = mmr_export_plain_threads(p) - 1;
	char var[32] = "other";

	for (j = 0; j < p->nthreads; j++) {
		if (p->threads[j]->is_template || p->threads[j] == first)
			continue;
		if (others > 1)
			snprintf(var, sizeof(var), "other[%d]", n++);
		if (x->e.own_stacks)
			mmr_emit_line(&x->e, "thread_create(&%s, thread_%s);",
				      var, p->threads[j]->name);
		else
			mmr_emit_line(&x->e,
				      "pthread_create(&%s, NULL, thread_%s, "
				      "NULL);",
				      var, p->threads[j]->name);
	}
}

static int count_spawns(void *arg, const struct mmr_stmt *s,
			const struct mmr_thread *t)
{
	(void)t;
	*(int *)arg += s->op->id == MMR_OP_process_spawn;
	return 0;
}

/* A round leaves nobody behind: reaped now, when no pid of it is named any
 * more. */
static void emit_reap(struct mmr_export *x, const struct mmr_proc *p)
{
	int n = 0;

	if (!x->whole || x->leaves || !x->spawns || p->is_template)
		return;
	mmr_emit_each_stmt(x->c, count_spawns, &n);
	if (n == 1 && !x->e.sets) {
		mmr_emit_line(&x->e, "wait(NULL);");
		return;
	}
	mmr_emit_line(&x->e, "while (wait(NULL) > 0)");
	mmr_emit_line(&x->e, "\t;");
}

/* What its processes share, new in each round. */
static void emit_shared(struct mmr_export *x)
{
	mmr_emit_line(&x->e,
		      "shared = %s(NULL, sizeof(*shared), PROT_READ | "
		      "PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);",
		      x->to == MMR_EXPORT_LTP ? "SAFE_MMAP" : "mmap");
}

/* Starts the threads of a process and waits for them. */
static int emit_proc(struct mmr_export *x, const struct mmr_proc *p)
{
	const struct mmr_thread *first = first_thread(p);
	int others = mmr_export_plain_threads(p) - 1, rc = 0;
	bool declares;

	x->e.indent = 0;
	mmr_emit_line(&x->e, "static void proc_%s(void)", p->name);
	mmr_emit_line(&x->e, "{");
	x->e.indent = 1;
	declares = others > 0;
	if (others == 1)
		mmr_emit_line(&x->e, "pthread_t other;");
	else if (others > 1)
		mmr_emit_line(&x->e, "pthread_t other[%d];", others);
	if (is_inline(x, p))
		declares |= emit_seed(x, first);
	if (declares)
		fputc('\n', x->e.out);
	if (x->c->keep)
		put_keep(x);
	if (x->own_shared && !p->is_template)
		emit_shared(x);
	emit_creates(x, p);
	if (is_inline(x, p))
		rc = emit_thread_body(x, p, first, 0);
	else if (first)
		mmr_emit_line(&x->e, "thread_%s(NULL);", first->name);
	if (others == 1)
		mmr_emit_line(&x->e, "pthread_join(other, NULL);");
	if (others > 1) {
		mmr_emit_line(&x->e, "for (int i = 0; i < %d; i++)", others);
		mmr_emit_line(&x->e, "\tpthread_join(other[i], NULL);");
	}
	emit_reap(x, p);
	if (x->c->keep)
		put_reset(x);
	x->e.indent = 0;
	mmr_emit_line(&x->e, "}\n");
	return rc;
}

int mmr_export_bodies(struct mmr_export *x)
{
	int i, j, n = 0, plain = 0, rc = 0;

	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (j = 0; j < p->nthreads && !rc; j++, n++)
			if (x->thread_used[n] &&
			    !(x->in_place && p->is_template) &&
			    !(is_inline(x, p) &&
			      p->threads[j] == first_thread(p)))
				rc = emit_thread(x, p, p->threads[j], plain++);
		if (rc)
			return rc;
		if (x->proc_used[i] && !(x->in_place && p->is_template))
			rc = emit_proc(x, p);
	}
	return rc;
}
