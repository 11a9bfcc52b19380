// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rules that a case keeps: names exist, refs hold one kind, limits hold.
 *
 * One rule is about minimising: deleting any statement must leave a case
 * that still parses.  So nothing may depend on a statement being there, and
 * a ref has one kind over the whole case: were it enough that some assignment
 * fits, deleting that one would make the others wrong.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "area.h"
#include "check.h"
#include "lex.h"
#include "names.h"

struct check {
	const struct mmr_case *c;
	struct mmr_diag *diag;
	struct mmr_check_place *place;
	void (*warn)(void *arg, const struct mmr_diag *,
		     const struct mmr_check_place *);
	void *arg;
	struct mmr_names procs, threads, refs, free_names[3];
	const struct mmr_proc *proc[MMR_CASE_MAX_PROCS];
	const struct mmr_thread *thread[MMR_CASE_MAX_THREADS];
	const struct mmr_proc *thread_proc[MMR_CASE_MAX_THREADS];
	uint32_t kind[MMR_CASE_MAX_REFS]; /* of each ref, 0: not assigned */
	bool warned[MMR_CASE_MAX_REFS];
	int nstmts;
	/* Where the walk is. */
	const struct mmr_proc *p;
	const struct mmr_thread *t;
};

static int __attribute__((format(printf, 4, 5)))
fail(struct check *k, int line, int col, const char *fmt, ...)
{
	va_list ap;

	k->diag->line = line;
	k->diag->col = col;
	va_start(ap, fmt);
	vsnprintf(k->diag->text, sizeof(k->diag->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* The offending word is named so that the parser finds its column. */
#define FAIL_AT(k, s, what, behind_op, ...)                                    \
	((k)->place->word = (what), (k)->place->in_args = (behind_op),         \
	 fail((k), (s)->line, (s)->col, __VA_ARGS__))

static bool is_name(const char *s)
{
	return s && mmr_lex_is_name(s, strnlen(s, MMR_CASE_NAME_LEN));
}

/* The name of another thread or process that an argument gives. */
static int check_thread_arg(struct check *k, const struct mmr_stmt *s,
			    const char *name)
{
	int i;

	if (strcmp(name, "idle") == 0)
		return 0;
	i = mmr_names_find(&k->threads, name);
	if (i < 0)
		return FAIL_AT(k, s, name, true, "unknown thread '%s'", name);
	if (!k->thread[i]->is_template)
		return FAIL_AT(k, s, name, true,
			       "thread '%s' is no template: it starts with "
			       "the round",
			       name);
	if (k->thread_proc[i] != k->p)
		return FAIL_AT(k, s, name, true,
			       "thread '%s' belongs to process '%s'", name,
			       k->thread_proc[i]->name);
	return 0;
}

static int check_process_arg(struct check *k, const struct mmr_stmt *s,
			     const char *name)
{
	int i;

	if (strcmp(name, "idle") == 0)
		return 0;
	i = mmr_names_find(&k->procs, name);
	if (i < 0)
		return FAIL_AT(k, s, name, true, "unknown process '%s'", name);
	if (!k->proc[i]->is_template)
		return FAIL_AT(k, s, name, true,
			       "process '%s' is no template: it starts with "
			       "the round",
			       name);
	return 0;
}

static int check_free_name(struct check *k, const struct mmr_stmt *s,
			   enum mmr_arg_type type, const char *name)
{
	static const char *const what[] = {"latches", "rendezvous", "futexes"};
	int which = type == MMR_ARG_LATCH ? 0 : type == MMR_ARG_SYNC ? 1 : 2;
	struct mmr_names *t = &k->free_names[which];

	if (type == MMR_ARG_SYNC && (k->p->is_template || k->t->is_template))
		return FAIL_AT(k, s, NULL, false,
			       "a rendezvous is for the threads that start "
			       "with the round, '%s' is of a template",
			       k->t->name);
	if (mmr_names_find(t, name) < 0 && t->n == MMR_CASE_MAX_NAMES)
		return FAIL_AT(k, s, name, true, "more than %d %s",
			       MMR_CASE_MAX_NAMES, what[which]);
	mmr_names_add(t, name);
	return 0;
}

static int check_ref_arg(struct check *k, const struct mmr_stmt *s,
			 const struct mmr_argspec *a, const char *name)
{
	struct mmr_check_place place = {name, true};
	int i = mmr_names_find(&k->refs, name);
	struct mmr_diag d;

	if (i < 0) {
		i = mmr_names_add(&k->refs, name);
		if (i < 0)
			return FAIL_AT(k, s, name, true, "more than %d refs",
				       MMR_CASE_MAX_REFS);
	}
	if (k->kind[i] && !(k->kind[i] & a->kinds))
		return FAIL_AT(k, s, name, true, "%s is %s, %s needs %s", name,
			       mmr_ref_kind_text(k->kind[i]), s->op->name,
			       mmr_ref_kind_text(a->kinds));
	if (!k->kind[i] && k->warn && !k->warned[i]) {
		k->warned[i] = true;
		d.line = s->line;
		d.col = s->col;
		snprintf(d.text, sizeof(d.text),
			 "nothing assigns %s: what uses it is skipped", name);
		k->warn(k->arg, &d, &place);
	}
	return 0;
}

static int check_arg(struct check *k, const struct mmr_stmt *s, int i)
{
	const struct mmr_argspec *a = &s->op->args[i];
	const struct mmr_value *v = &s->args[i];
	char text[120];

	if (a->flags & MMR_ARG_OPT && mmr_value_is_default(a, v))
		return 0;
	if (!v->set)
		return FAIL_AT(k, s, NULL, false, "%s needs %s%s", s->op->name,
			       a->name, a->flags & MMR_ARG_POS ? "" : "=");
	if (mmr_check_value(a, v, text, sizeof(text)))
		return FAIL_AT(k, s, NULL, false, "%s", text);
	switch (a->type) {
	case MMR_ARG_REF:
		return check_ref_arg(k, s, a, v->name);
	case MMR_ARG_THREAD:
		return check_thread_arg(k, s, v->name);
	case MMR_ARG_PROCESS:
		return check_process_arg(k, s, v->name);
	case MMR_ARG_LATCH:
	case MMR_ARG_SYNC:
	case MMR_ARG_FUTEX:
		return check_free_name(k, s, a->type, v->name);
	default:
		return 0;
	}
}

static int check_op(struct check *k, const struct mmr_stmt *s)
{
	int i, j, rc;

	for (i = 0; i < s->op->nargs; i++) {
		rc = check_arg(k, s, i);
		if (rc)
			return rc;
	}
	if (s->naccept < 0 || s->naccept > MMR_CASE_MAX_ACCEPT)
		return FAIL_AT(k, s, NULL, false, "more than %d results",
			       MMR_CASE_MAX_ACCEPT);
	for (i = 0; i < s->naccept; i++) {
		if (!mmr_errno_name(s->accept[i]))
			return FAIL_AT(k, s, NULL, false, "unknown result %d",
				       s->accept[i]);
		for (j = 0; j < i; j++)
			if (s->accept[i] == s->accept[j])
				return FAIL_AT(k, s, NULL, false,
					       "result %s is given twice",
					       mmr_errno_name(s->accept[i]));
	}
	return 0;
}

static int check_loop(struct check *k, const struct mmr_stmt *s)
{
	switch (s->until) {
	case MMR_UNTIL_COUNT:
		if (s->count < 1 || s->count > MMR_CASE_MAX_LOOP)
			return FAIL_AT(k, s, NULL, false,
				       "a loop has 1 to %d turns",
				       MMR_CASE_MAX_LOOP);
		return 0;
	case MMR_UNTIL_TIME:
		if (s->count < 1 || s->count > MMR_CHECK_LOOP_NS)
			return FAIL_AT(k, s, NULL, false,
				       "a loop runs for 1ns to 3600s");
		return 0;
	case MMR_UNTIL_DONE:
		if (!s->until_name ||
		    mmr_names_find(&k->threads, s->until_name) < 0)
			return FAIL_AT(k, s, s->until_name, true,
				       "unknown thread '%s'",
				       s->until_name ? s->until_name : "");
		return 0;
	case MMR_UNTIL_EXITED:
		if (!s->until_name ||
		    mmr_names_find(&k->procs, s->until_name) < 0)
			return FAIL_AT(k, s, s->until_name, true,
				       "unknown process '%s'",
				       s->until_name ? s->until_name : "");
		return 0;
	case MMR_UNTIL_STOP:
		return 0;
	}
	return FAIL_AT(k, s, NULL, false, "unknown kind of loop");
}

static int check_block(struct check *k, const struct mmr_block *b, int depth)
{
	int i, rc;

	for (i = 0; i < b->n; i++) {
		if (b->stmts[i]->kind != MMR_STMT_LOOP) {
			rc = check_op(k, b->stmts[i]);
		} else {
			rc = check_loop(k, b->stmts[i]);
			if (!rc)
				rc = check_block(k, &b->stmts[i]->body,
						 depth + 1);
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* First walk: counts statements, bounds the depth for the walks to come, and
 * learns what each ref holds. */
static int collect(struct check *k, const struct mmr_block *b, int depth)
{
	const struct mmr_stmt *s;
	int i, r, rc;

	for (i = 0; i < b->n; i++) {
		s = b->stmts[i];
		if (++k->nstmts > MMR_CASE_MAX_STMTS)
			return FAIL_AT(k, s, NULL, false,
				       "more than %d statements",
				       MMR_CASE_MAX_STMTS);
		if (s->kind == MMR_STMT_LOOP) {
			if (depth == MMR_CASE_MAX_DEPTH)
				return FAIL_AT(k, s, NULL, false,
					       "loops nest %d deep at most",
					       MMR_CASE_MAX_DEPTH);
			rc = collect(k, &s->body, depth + 1);
			if (rc)
				return rc;
			continue;
		}
		if (!s->ref)
			continue;
		if (!is_name(s->ref))
			return FAIL_AT(k, s, NULL, false,
				       "'%.32s' is no name for a ref", s->ref);
		if (!s->op->makes)
			return FAIL_AT(k, s, s->ref, false,
				       "%s makes nothing that %s could hold",
				       s->op->name, s->ref);
		r = mmr_names_add(&k->refs, s->ref);
		if (r < 0)
			return FAIL_AT(k, s, s->ref, false, "more than %d refs",
				       MMR_CASE_MAX_REFS);
		if (k->kind[r] && k->kind[r] != s->op->makes)
			return FAIL_AT(k, s, s->ref, false,
				       "%s is %s elsewhere, %s makes %s",
				       s->ref, mmr_ref_kind_text(k->kind[r]),
				       s->op->name,
				       mmr_ref_kind_text(s->op->makes));
		k->kind[r] = s->op->makes;
	}
	return 0;
}

static int check_threads(struct check *k, const struct mmr_proc *p)
{
	const struct mmr_thread *t;
	int i, id, plain = 0;

	for (i = 0; i < p->nthreads; i++) {
		t = p->threads[i];
		if (!is_name(t->name))
			return fail(k, t->line, 1,
				    "'%.32s' is no name for a thread", t->name);
		if (mmr_names_find(&k->threads, t->name) >= 0)
			return fail(k, t->line, 1,
				    "there are two threads '%s': a thread's "
				    "name is its own in the whole case",
				    t->name);
		id = mmr_names_add(&k->threads, t->name);
		if (id < 0 || id >= MMR_CASE_MAX_THREADS)
			return fail(k, t->line, 1, "more than %d threads",
				    MMR_CASE_MAX_THREADS);
		k->thread[id] = t;
		k->thread_proc[id] = p;
		plain += !t->is_template;
	}
	if (!plain)
		return fail(k, p->line, 1,
			    "process '%s' has no thread that starts with it",
			    p->name);
	return plain;
}

static int check_procs(struct check *k)
{
	const struct mmr_case *c = k->c;
	const struct mmr_proc *p;
	int i, plain, procs = 0;
	int64_t slots = 0;

	if (c->nprocs > MMR_CASE_MAX_PROCS)
		return fail(k, c->procs[MMR_CASE_MAX_PROCS]->line, 1,
			    "more than %d processes", MMR_CASE_MAX_PROCS);
	for (i = 0; i < c->nprocs; i++) {
		p = c->procs[i];
		if (!is_name(p->name))
			return fail(k, p->line, 1,
				    "'%.32s' is no name for a process",
				    p->name);
		if (mmr_names_find(&k->procs, p->name) >= 0)
			return fail(k, p->line, 1,
				    "there are two processes '%s'", p->name);
		if (p->copies < 1 || p->copies > MMR_CASE_MAX_COPIES)
			return fail(k, p->line, 1, "copies must be 1 to %d",
				    MMR_CASE_MAX_COPIES);
		k->proc[mmr_names_add(&k->procs, p->name)] = p;
		plain = check_threads(k, p);
		if (plain < 0)
			return plain;
		if (p->is_template)
			continue;
		procs++;
		slots += (int64_t)plain * p->copies;
		if (slots > MMR_THREAD_SLOTS / 2)
			return fail(k, p->line, 1,
				    "more than %d threads start with the "
				    "round, all copies counted",
				    MMR_THREAD_SLOTS / 2);
	}
	if (!procs)
		return fail(k, c->nprocs ? c->procs[0]->line : 0, 1,
			    "no process that starts with the round");
	return 0;
}

/* cpu=same(T) and other(T) must lead to a thread that stands for itself. */
static int check_cpu(struct check *k, const struct mmr_thread *t)
{
	const struct mmr_thread *at = t;
	int i, steps;

	if (t->segv != MMR_SEGV_SKIP && t->segv != MMR_SEGV_RETURN)
		return fail(k, t->line, 1, "unknown segv=");
	if (t->cpu == MMR_CPU_NUMBER &&
	    (t->cpu_number < 0 || t->cpu_number > MMR_CHECK_CPU))
		return fail(k, t->line, 1, "cpu=N goes from 0 to %d",
			    MMR_CHECK_CPU);
	for (steps = 0; at->cpu >= MMR_CPU_SAME; steps++) {
		i = at->cpu_thread ? mmr_names_find(&k->threads, at->cpu_thread)
				   : -1;
		if (i < 0)
			return FAIL_AT(k,
				       &((struct mmr_stmt){.line = at->line,
							   .col = 1}),
				       at->cpu_thread, true,
				       "unknown thread '%s'",
				       at->cpu_thread ? at->cpu_thread : "");
		if (steps == MMR_CASE_MAX_THREADS || k->thread[i] == t)
			return fail(k, t->line, 1,
				    "cpu= of thread '%s' leads back to itself",
				    t->name);
		at = k->thread[i];
	}
	return 0;
}

typedef int (*block_fn)(struct check *, const struct mmr_block *, int);

static int each_thread(struct check *k, block_fn fn)
{
	const struct mmr_case *c = k->c;
	int i, j, rc;

	for (i = 0; i < c->nprocs; i++) {
		k->p = c->procs[i];
		for (j = 0; j < k->p->nthreads; j++) {
			k->t = k->p->threads[j];
			rc = fn(k, &k->t->body, 0);
			if (rc)
				return rc;
		}
	}
	return 0;
}

int mmr_check_case(const struct mmr_case *c, struct mmr_diag *diag,
		   struct mmr_check_place *place,
		   void (*warn)(void *arg, const struct mmr_diag *,
				const struct mmr_check_place *),
		   void *arg)
{
	struct check *k = calloc(1, sizeof(*k));
	int i, rc;

	if (!k)
		return -ENOMEM;
	k->c = c;
	k->diag = diag;
	k->place = place;
	k->warn = warn;
	k->arg = arg;
	*place = (struct mmr_check_place){0};
	rc = mmr_check_head(c, diag);
	if (!rc)
		rc = check_procs(k);
	for (i = 0; !rc && i < k->threads.n; i++)
		rc = check_cpu(k, k->thread[i]);
	if (!rc)
		rc = each_thread(k, collect);
	if (!rc)
		rc = each_thread(k, check_block);
	if (!rc && k->nstmts == 0)
		rc = fail(k, c->procs[0]->line, 1, "no statement");
	free(k);
	return rc;
}

int mmr_case_check(const struct mmr_case *c, struct mmr_diag *diag)
{
	struct mmr_check_place place;
	struct mmr_diag mine;

	return mmr_check_case(c, diag ? diag : &mine, &place, NULL, NULL);
}
