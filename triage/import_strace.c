// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A log of strace -f: its calls in the order in which they began, its tasks
 * by their pids.  A task that a call made is a template that this call spawns;
 * one that was there before strace came starts with the round.
 *
 * Two passes: the first puts calls together that other lines interrupt, and
 * finds the places that mappings want; the second maps.
 */
#include "import_strace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/args.h"

#define SECOND 1000000000LL
#define PIDS 16384	     /* slots, at most three quarters full */
#define CALLS_MAX (4u << 20) /* of a log */
#define FIXED_MAX 512

struct pid {
	int64_t pid;
	struct mmr_imp_thread *t; /* NULL: the case has no room for it */
	int begun;		  /* its call that waits for its end, -1 */
};

struct record {
	enum mmr_strace_kind kind; /* CALL or EXITED */
	int line;
	int64_t pid, start_ns, end_ns;
	struct mmr_span body;
};

struct strace {
	struct mmr_imp *im;
	struct record *r;
	int n, cap;
	struct pid *pid;
	int npids, line;
	int64_t now_ns, day_ns; /* of relative times, past midnights */
	int64_t last_ns;
	struct mmr_imp_thread *last; /* of last_pid, most often the next */
	int64_t last_pid;
	bool timed;
	int64_t alone_pid; /* whose lines have no pid while it is alone */
};

/* The slot of a pid, a new one if it is not known; NULL: all are in use. */
static struct pid *find_pid(struct strace *z, int64_t pid)
{
	uint64_t at = (uint64_t)pid * 0x9e3779b97f4a7c15ULL >> 50;
	struct pid *p;

	for (;; at++) {
		p = &z->pid[at % PIDS];
		if (p->pid == pid)
			return p;
		if (p->pid == -2)
			break;
	}
	if (z->npids > PIDS / 4 * 3)
		return NULL;
	z->npids++;
	*p = (struct pid){.pid = pid, .begun = -1};
	return p;
}

/* -- first pass --------------------------------------------------------- */

/* One time line out of what the options of strace left. */
static int64_t absolute(struct strace *z, const struct mmr_strace_line *l)
{
	int64_t t = l->time_ns;

	if (t < 0)
		return -1;
	if (l->relative) {
		z->now_ns += t;
		return z->now_ns;
	}
	/* Times of a day begin anew at midnight. */
	if (t < 86400 * SECOND && t + z->day_ns < z->last_ns - 43200 * SECOND)
		z->day_ns += 86400 * SECOND;
	t += z->day_ns;
	z->last_ns = t;
	return t;
}

static struct record *add_record(struct strace *z,
				 const struct mmr_strace_line *l, int64_t t)
{
	struct record *more;

	if (z->n == z->cap) {
		int cap = z->cap ? z->cap * 2 : 1024;

		if ((unsigned int)z->n >= CALLS_MAX)
			return NULL;
		more = realloc(z->r, (size_t)cap * sizeof(*more));
		if (!more) {
			z->im->failed = true;
			return NULL;
		}
		z->r = more;
		z->cap = cap;
	}
	z->r[z->n] = (struct record){.kind = l->kind,
				     .line = z->line,
				     .pid = l->pid,
				     .start_ns = t,
				     .end_ns = t,
				     .body = l->body};
	return &z->r[z->n++];
}

/* A call that waits for its end, of that name. */
static struct record *begun(struct strace *z, int64_t pid, struct mmr_span name,
			    struct pid **slot)
{
	struct record *r;

	*slot = find_pid(z, pid);
	if (!*slot || (*slot)->begun < 0)
		return NULL;
	r = &z->r[(*slot)->begun];
	return r->body.len > name.len &&
			       !memcmp(r->body.s, name.s, (size_t)name.len)
		       ? r
		       : NULL;
}

/* What was begun and what was resumed, as if nothing had come between. */
static void resume(struct strace *z, const struct mmr_strace_line *l, int64_t t)
{
	struct pid *p;
	struct record *r = begun(z, l->pid, l->name, &p);
	char *text;

	/* On a terminal, a task that is alone has no pid in its lines. */
	if (!r && l->pid >= 0) {
		r = begun(z, -1, l->name, &p);
		if (r)
			z->alone_pid = l->pid;
	} else if (!r && z->alone_pid >= 0) {
		r = begun(z, z->alone_pid, l->name, &p);
	}

	if (!r) {
		/* Begun before the log did. */
		z->im->res->unread++;
		return;
	}
	p->begun = -1;
	text = mmr_imp_alloc(z->im, (size_t)(r->body.len + l->body.len) + 1);
	if (!text)
		return;
	memcpy(text, r->body.s, (size_t)r->body.len);
	memcpy(text + r->body.len, l->body.s, (size_t)l->body.len);
	r->body.s = text;
	r->body.len += l->body.len;
	r->kind = MMR_STRACE_CALL;
	r->end_ns = t;
}

static void first_line(struct strace *z, struct mmr_span s)
{
	struct mmr_strace_line l;
	struct record *r;
	struct pid *p;
	int64_t t;

	mmr_strace_read(s, &l);
	t = absolute(z, &l);
	z->timed |= t >= 0;
	switch (l.kind) {
	case MMR_STRACE_OTHER:
		/* What the program itself wrote; kept only as a number. */
		if (s.len) {
			z->im->res->unread++;
			mmr_imp_missed(z->im, z->line, s, "not understood");
		}
		break;
	case MMR_STRACE_NOTE:
		break;
	case MMR_STRACE_RESUMED:
		resume(z, &l, t);
		break;
	case MMR_STRACE_CALL:
	case MMR_STRACE_EXITED:
	case MMR_STRACE_BEGUN:
		r = add_record(z, &l, t);
		p = l.kind == MMR_STRACE_BEGUN ? find_pid(z, l.pid) : NULL;
		if (r && p)
			p->begun = (int)(r - z->r);
		break;
	}
}

/* Where a fixed mapping lies, what is below it has to lie, too. */
static void note_fixed(struct strace *z, const struct mmr_imp_call *c)
{
	struct mmr_imp *im = z->im;
	int64_t len, flags;
	int i;

	if (!mmr_span_is(c->name, "mmap") || c->nargs < 4 || !c->returned ||
	    c->err || im->nfixed == FIXED_MAX ||
	    !mmr_imp_integer(im, c->arg[1], &len) || len <= 0 ||
	    !mmr_imp_integer(im, c->arg[3], &flags) ||
	    !(flags & (MAP_FIXED | MMR_K_MAP_FIXED_NOREPLACE)))
		return;
	for (i = 0; i < im->nfixed; i++)
		if (im->fixed[i][0] == (uint64_t)c->ret &&
		    im->fixed[i][1] == (uint64_t)len)
			return;
	im->fixed[im->nfixed][0] = (uint64_t)c->ret;
	im->fixed[im->nfixed++][1] = (uint64_t)len;
}

static void first_pass(struct strace *z, const char *text, size_t len)
{
	const char *end = text + len, *next;
	struct mmr_imp_call c;
	int64_t took;
	int i;

	for (z->line = 1; text < end && !z->im->failed; text = next) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((nl ? nl : end) - text);

		next = nl ? nl + 1 : end;
		first_line(z, (struct mmr_span){text, n > 1 << 20 ? 1 << 20
								  : (int)n});
		z->line++;
	}
	z->im->res->lines = z->line - 1;
	for (i = 0; i < z->n; i++) {
		struct record *r = &z->r[i];

		memset(&c, 0, sizeof(c));
		if (r->kind == MMR_STRACE_CALL &&
		    mmr_span_begins(r->body, "mmap(") &&
		    mmr_strace_call(r->body, &c, &took))
			note_fixed(z, &c);
	}
}

/* -- second pass -------------------------------------------------------- */

static struct mmr_imp_thread *add_process(struct mmr_imp *im, bool is_template)
{
	const char *name =
		im->procs ? mmr_imp_str(im, "P%d", im->serial) : "main";
	struct mmr_imp_proc *p;

	if (im->nprocs >= MMR_IMP_PROCS || im->nthreads >= MMR_IMP_THREADS)
		return NULL;
	p = name ? mmr_imp_add_proc(im, name) : NULL;
	if (!p)
		return NULL;
	p->is_template = is_template;
	return mmr_imp_add_thread(im, p, mmr_imp_str(im, "T%d", im->serial++));
}

struct mmr_imp_thread *mmr_imp_new_task(struct mmr_imp *im,
					struct mmr_imp_thread *parent,
					int64_t pid, bool is_thread)
{
	struct strace *z = im->front;
	struct pid *slot = find_pid(z, pid);
	struct mmr_imp_thread *t = NULL;

	if (!slot)
		return NULL;
	if (!is_thread) {
		t = add_process(im, true);
		if (t)
			mmr_imp_map_inherit(im, t->proc, parent->proc);
	} else if (im->nthreads < MMR_IMP_THREADS) {
		t = mmr_imp_add_thread(im, parent->proc,
				       mmr_imp_str(im, "T%d", im->serial++));
		if (t)
			t->is_template = true;
	}
	if (t) {
		t->key = pid;
	} else {
		mmr_imp_cut(im,
			    "Tasks are missing from line %d on: a case has "
			    "at most %d processes and %d threads.",
			    z->line, MMR_CASE_MAX_PROCS, MMR_CASE_MAX_THREADS);
	}
	slot->t = t;
	slot->begun = -2; /* known from now on, with or without t */
	z->last_pid = -3;
	return t;
}

/* The task of a line.  NULL: the case has no room for it. */
static struct mmr_imp_thread *task_of(struct strace *z, int64_t pid)
{
	struct mmr_imp *im = z->im;
	struct pid *slot;

	if (pid == z->alone_pid)
		pid = -1;
	if (pid == z->last_pid)
		return z->last;
	slot = find_pid(z, pid);
	if (slot && !slot->t && slot->begun != -2) {
		/* It was there before: the first one, or another thread of
		 * what strace -p was pointed at. */
		if (!im->procs)
			slot->t = add_process(im, false);
		else if (im->nthreads < MMR_IMP_THREADS)
			slot->t = mmr_imp_add_thread(
				im, im->procs,
				mmr_imp_str(im, "T%d", im->serial++));
		if (slot->t)
			slot->t->key = pid;
		slot->begun = -2;
	}
	z->last_pid = pid;
	z->last = slot ? slot->t : NULL;
	return z->last;
}

static void task_ended(struct strace *z, struct mmr_imp_thread *t)
{
	struct mmr_imp_thread *i;

	t->ended = true;
	if (t->proc->last_caller == t)
		t->proc->last_caller = NULL;
	for (i = t->proc->threads; i; i = i->next)
		if (!i->ended)
			break;
	if (i)
		mmr_imp_merge_thread(z->im, t);
	else
		mmr_imp_merge_proc(z->im, t->proc);
	z->last_pid = -3;
}

static void on_record(struct strace *z, const struct record *r)
{
	struct mmr_imp_thread *t = task_of(z, r->pid);
	struct mmr_imp_call c = {
		.line = r->line, .start_ns = r->start_ns, .end_ns = r->end_ns};
	enum mmr_imp_did did;
	struct pid *slot;
	char why[160];
	int64_t took;

	z->line = r->line;
	if (!t) {
		z->im->res->calls += r->kind == MMR_STRACE_CALL;
		z->im->res->unmapped += r->kind == MMR_STRACE_CALL;
		return;
	}
	if (r->kind == MMR_STRACE_EXITED) {
		slot = find_pid(z, r->pid == z->alone_pid ? -1 : r->pid);
		if (slot)
			*slot = (struct pid){.pid = r->pid, .begun = -1};
		task_ended(z, t);
		return;
	}
	if (!mmr_strace_call(r->body, &c, &took)) {
		/* Its end is not in the log: nothing to build on. */
		if (r->kind == MMR_STRACE_CALL)
			z->im->res->unread++;
		return;
	}
	if (took >= 0 && c.start_ns >= 0)
		c.end_ns = c.start_ns + took;
	did = mmr_imp_call(z->im, t, &c, why, sizeof(why));
	mmr_imp_count(z->im, t, &c, did, why);
}

static void second_pass(struct strace *z)
{
	struct mmr_imp *im = z->im;
	int i;

	for (i = 0; i < PIDS; i++)
		z->pid[i].begun = -1;
	for (i = 0; i < z->n && !im->failed; i++) {
		if (im->nstmts > MMR_IMP_STMTS) {
			mmr_imp_cut(im,
				    "Cut at line %d of %d: a case has at most "
				    "%d statements.",
				    z->r[i].line, im->res->lines,
				    MMR_CASE_MAX_STMTS);
			break;
		}
		on_record(z, &z->r[i]);
	}
}

int mmr_imp_strace(struct mmr_imp *im, const char *text, size_t len)
{
	struct strace z = {.im = im, .last_pid = -3, .alone_pid = -3};
	int rc = -ENOMEM, i;

	im->front = &z;
	im->budget_ns = 60 * SECOND;
	im->fixed = calloc(FIXED_MAX, sizeof(*im->fixed));
	z.pid = calloc(PIDS, sizeof(*z.pid));
	if (im->fixed && z.pid) {
		for (i = 0; i < PIDS; i++)
			z.pid[i].pid = -2;
		first_pass(&z, text, len);
		im->untimed = !z.timed;
		second_pass(&z);
		rc = 0;
	}
	free(z.pid);
	free(z.r);
	im->front = NULL;
	return rc;
}
