// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The elements of a pass, and a case with some of them applied.  All of them
 * are places in one base, so that any subset can be applied, in any order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "min.h"

static int index_block(struct mmr_min_set *set, const struct mmr_block *b,
		       int parent, int thread, int at)
{
	int i;

	for (i = 0; i < b->n; i++) {
		int me = at++;

		set->stmts[me] = b->stmts[i];
		set->parent[me] = parent;
		set->thread_of[me] = thread;
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			at = index_block(set, &b->stmts[i]->body, me, thread,
					 at);
	}
	return at;
}

int mmr_min_set_init(struct mmr_min_set *set, struct mmr_case *base)
{
	int i, j, at = 0, t = 0;
	size_t ns, nt = 0;

	memset(set, 0, sizeof(*set));
	set->base = base;
	set->nstmts = mmr_case_count(base);
	ns = (size_t)set->nstmts + 1;
	for (i = 0; i < base->nprocs; i++)
		nt += (size_t)base->procs[i]->nthreads;
	set->nthreads = (int)nt;
	set->stmts = malloc(ns * sizeof(*set->stmts));
	set->parent = malloc(ns * sizeof(*set->parent));
	set->thread_of = malloc(ns * sizeof(*set->thread_of));
	set->proc_of = malloc((nt + 1) * sizeof(*set->proc_of));
	set->threads = malloc((nt + 1) * sizeof(*set->threads));
	set->marks = calloc(ns + nt + (size_t)base->nprocs, 1);
	if (!set->stmts || !set->parent || !set->thread_of || !set->proc_of ||
	    !set->threads || !set->marks)
		return -ENOMEM;
	for (i = 0; i < base->nprocs; i++)
		for (j = 0; j < base->procs[i]->nthreads; j++, t++) {
			set->threads[t] = base->procs[i]->threads[j];
			set->proc_of[t] = i;
			at = index_block(set, &set->threads[t]->body, -1, t,
					 at);
		}
	return 0;
}

void mmr_min_set_free(struct mmr_min_set *set)
{
	mmr_case_free(set->base);
	free(set->e);
	free(set->stmts);
	free(set->parent);
	free(set->thread_of);
	free(set->proc_of);
	free(set->threads);
	free(set->marks);
	memset(set, 0, sizeof(*set));
}

int mmr_min_set_add(struct mmr_min_set *set, const struct mmr_min_edit *e)
{
	struct mmr_min_edit *more;

	if (set->n == set->max) {
		more = realloc(set->e,
			       ((size_t)set->max * 2 + 64) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		set->e = more;
		set->max = set->max * 2 + 64;
	}
	set->e[set->n++] = *e;
	return 0;
}

void mmr_min_set_close(struct mmr_min_set *set, uint8_t *gone)
{
	int i;

	mmr_min_mark(set, gone);
	for (i = 0; i < set->n; i++)
		gone[i] |= mmr_min_mark_has(set, &set->e[i]);
}

/* The place of the set's thread t in its process. */
static int thread_at(const struct mmr_min_set *set, int t)
{
	int at = 0, i;

	for (i = 0; i < t; i++)
		at += set->proc_of[i] == set->proc_of[t];
	return at;
}

/* Removes what is marked, from the end on, so that numbers stay right.  Names
 * of what is gone go with it (mmr_case_remove_thread). */
static int remove_marked(const struct mmr_min_set *set, struct mmr_case *c)
{
	const uint8_t *threads = set->marks + set->nstmts;
	const uint8_t *procs = threads + set->nthreads;
	int i, rc = 0;

	for (i = set->nstmts - 1; i >= 0 && !rc; i--)
		if (set->marks[i] &&
		    (set->parent[i] < 0 || !set->marks[set->parent[i]]))
			rc = mmr_case_remove(c, i);
	for (i = set->nthreads - 1; i >= 0 && !rc; i--)
		if (threads[i] && !procs[set->proc_of[i]])
			rc = mmr_case_remove_thread(c,
						    c->procs[set->proc_of[i]],
						    thread_at(set, i));
	for (i = set->base->nprocs - 1; i >= 0 && !rc; i--)
		if (procs[i])
			rc = mmr_case_remove_proc(c, i);
	return rc;
}

static int merge(const struct mmr_min_set *set, struct mmr_case *c,
		 const struct mmr_min_edit *e)
{
	struct mmr_proc *p = c->procs[set->proc_of[e->thread]];
	int to = thread_at(set, e->thread), from = thread_at(set, e->arg), i;
	struct mmr_block *a = &p->threads[to]->body;
	struct mmr_block *b = &p->threads[from]->body;
	struct mmr_stmt *s;

	for (i = 0; i < b->n; i++) {
		s = mmr_case_add_loop(c, a, MMR_UNTIL_STOP, 0, NULL);
		if (!s)
			return -ENOMEM;
		/* Strings and bodies live in the same case. */
		a->stmts[a->n - 1] = b->stmts[i];
	}
	return mmr_case_remove_thread(c, p, from);
}

static int change(const struct mmr_min_set *set, struct mmr_case *c,
		  const struct mmr_min_edit *e)
{
	struct mmr_stmt *s = e->stmt >= 0 ? mmr_case_stmt(c, e->stmt) : NULL;
	struct mmr_thread *t;
	struct mmr_value *v;

	switch (e->kind) {
	case MMR_MIN_KEEP:
		c->keep = false;
		break;
	case MMR_MIN_ORDER:
		c->order = 0;
		break;
	case MMR_MIN_ROUNDS:
		c->rounds = e->value;
		break;
	case MMR_MIN_COPIES:
		c->procs[e->proc]->copies = (int)e->value;
		break;
	case MMR_MIN_CPU:
	case MMR_MIN_SEGV:
		t = c->procs[set->proc_of[e->thread]]
			    ->threads[thread_at(set, e->thread)];
		if (e->kind == MMR_MIN_SEGV) {
			t->segv = MMR_SEGV_SKIP;
			break;
		}
		t->cpu = MMR_CPU_ANY;
		t->cpu_thread = NULL;
		break;
	case MMR_MIN_LOOP:
		s->count = e->value;
		break;
	case MMR_MIN_DEFAULT:
		v = &s->args[e->arg];
		memset(v, 0, sizeof(*v));
		v->lo = v->hi = s->op->args[e->arg].def;
		break;
	case MMR_MIN_FLAG:
		v = &s->args[e->arg];
		v->lo &= ~e->value;
		v->hi = v->lo;
		break;
	case MMR_MIN_NUMBER:
		v = &s->args[e->arg];
		v->lo = v->hi = e->value;
		break;
	default:
		break;
	}
	return 0;
}

struct mmr_case *mmr_min_set_apply(struct mmr_min_set *set, const uint8_t *gone)
{
	struct mmr_case *c = mmr_case_clone(set->base);
	struct mmr_diag diag = {0};
	int i, rc = 0;

	if (!c)
		return NULL;
	/* Changes first, while every place is where it was; then loops, and
	 * what is removed, from the end. */
	for (i = 0; i < set->n; i++)
		if (gone[i] && set->e[i].kind > MMR_MIN_UNWRAP &&
		    set->e[i].kind != MMR_MIN_MERGE)
			rc = rc ? rc : change(set, c, &set->e[i]);
	for (i = set->n - 1; i >= 0 && !rc; i--)
		if (gone[i] && set->e[i].kind == MMR_MIN_UNWRAP)
			rc = mmr_case_unwrap(c, set->e[i].stmt);
	for (i = set->n - 1; i >= 0 && !rc; i--)
		if (gone[i] && set->e[i].kind == MMR_MIN_MERGE)
			rc = merge(set, c, &set->e[i]);
	if (!rc && set->n && set->e[0].kind < MMR_MIN_UNWRAP) {
		mmr_min_mark(set, gone);
		rc = remove_marked(set, c);
	}
	c->seen_hits = c->seen_runs = 0;
	if (!rc && mmr_case_check(c, &diag))
		rc = -ENOENT;
	if (!rc)
		return c;
	mmr_case_free(c);
	return NULL;
}

static void describe_stmt(const struct mmr_min_set *set, int i, char *buf,
			  size_t n)
{
	char *text = mmr_case_print_stmt(set->stmts[i]);
	int t = set->thread_of[i];

	snprintf(buf, n, "`%s` of %s/%s", text ? text : "?",
		 set->base->procs[set->proc_of[t]]->name,
		 set->threads[t]->name);
	free(text);
}

static void describe_number(const struct mmr_min_set *set,
			    const struct mmr_min_edit *e, char *buf, size_t n)
{
	const struct mmr_argspec *spec = &set->stmts[e->stmt]->op->args[e->arg];
	const struct mmr_value *v = &set->stmts[e->stmt]->args[e->arg];
	char place[200], num[40];

	describe_stmt(set, e->stmt, place, sizeof(place));
	if (spec->type == MMR_ARG_SIZE)
		mmr_case_print_size(num, sizeof(num), e->value, v->unit);
	else if (spec->type == MMR_ARG_TIME)
		mmr_case_print_time(num, sizeof(num), e->value);
	else
		snprintf(num, sizeof(num), "%lld", (long long)e->value);
	snprintf(buf, n, "%s=%s in %s", spec->name, num, place);
}

/* One element, in words. */
static void describe(const struct mmr_min_set *set,
		     const struct mmr_min_edit *e, char *buf, size_t n)
{
	char place[220] = "";

	if (e->stmt >= 0 && e->kind >= MMR_MIN_STMT && e->kind != MMR_MIN_CPU)
		describe_stmt(set, e->stmt, place, sizeof(place));
	switch (e->kind) {
	case MMR_MIN_PROC:
		snprintf(buf, n, "process %s", set->base->procs[e->proc]->name);
		break;
	case MMR_MIN_THREAD:
		snprintf(buf, n, "thread %s/%s",
			 set->base->procs[set->proc_of[e->thread]]->name,
			 set->threads[e->thread]->name);
		break;
	case MMR_MIN_EPOCH:
		snprintf(buf, n, "epoch %s", e->name);
		break;
	case MMR_MIN_STMT:
		snprintf(buf, n, "%s", place);
		break;
	case MMR_MIN_UNWRAP:
		snprintf(buf, n, "once instead of %s", place);
		break;
	case MMR_MIN_KEEP:
		snprintf(buf, n, "no keep");
		break;
	case MMR_MIN_ORDER:
		snprintf(buf, n, "no order=");
		break;
	case MMR_MIN_CPU:
		snprintf(buf, n, "no cpu= for thread %s",
			 set->threads[e->thread]->name);
		break;
	case MMR_MIN_SEGV:
		snprintf(buf, n, "no segv=return for thread %s",
			 set->threads[e->thread]->name);
		break;
	case MMR_MIN_DEFAULT:
		snprintf(buf, n, "no %s= in %s",
			 set->stmts[e->stmt]->op->args[e->arg].name, place);
		break;
	case MMR_MIN_FLAG:
		snprintf(buf, n, "no %s in %s", e->name, place);
		break;
	case MMR_MIN_NUMBER:
		describe_number(set, e, buf, n);
		break;
	case MMR_MIN_LOOP:
		snprintf(buf, n, "%lld instead of %s", (long long)e->value,
			 place);
		break;
	case MMR_MIN_COPIES:
		snprintf(buf, n, "copies=%lld of process %s",
			 (long long)e->value, set->base->procs[e->proc]->name);
		break;
	case MMR_MIN_ROUNDS:
		snprintf(buf, n, "rounds %lld", (long long)e->value);
		break;
	case MMR_MIN_MERGE:
		snprintf(buf, n, "thread %s joined to %s",
			 set->threads[e->arg]->name,
			 set->threads[e->thread]->name);
		break;
	}
}

/* What is inside of another one that goes is not worth a word. */
static bool implied(const struct mmr_min_set *set, const uint8_t *gone,
		    const struct mmr_min_edit *e)
{
	int i, j;

	if (e->kind == MMR_MIN_THREAD || e->kind == MMR_MIN_STMT)
		for (i = 0; i < set->n; i++) {
			const struct mmr_min_edit *o = &set->e[i];
			int t = e->kind == MMR_MIN_THREAD
					? e->thread
					: set->thread_of[e->stmt];

			if (!gone[i] || o == e)
				continue;
			if (o->kind == MMR_MIN_PROC &&
			    o->proc == set->proc_of[t])
				return true;
			if (e->kind == MMR_MIN_THREAD)
				continue;
			if (o->kind == MMR_MIN_THREAD && o->thread == t)
				return true;
			for (j = set->parent[e->stmt];
			     j >= 0 && o->kind == MMR_MIN_STMT;
			     j = set->parent[j])
				if (o->stmt == j)
					return true;
		}
	return false;
}

void mmr_min_set_describe(const struct mmr_min_set *set, const uint8_t *gone,
			  char *buf, size_t n)
{
	char one[300];
	size_t have = 0;
	int i, more = 0, said = 0;

	buf[0] = '\0';
	for (i = 0; i < set->n; i++) {
		if (!gone[i] || implied(set, gone, &set->e[i]))
			continue;
		describe(set, &set->e[i], one, sizeof(one));
		if (said == 3 || have + strlen(one) + 32 > n) {
			more++;
			continue;
		}
		have += (size_t)snprintf(buf + have, n - have, "%s%s",
					 said ? ", " : "", one);
		said++;
	}
	if (more)
		snprintf(buf + have, n - have, " and %d more", more);
}
