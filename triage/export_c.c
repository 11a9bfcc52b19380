/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A case as one C file that needs only libc.  Statements come from the ops'
 * descriptors (ops/emit.h), one for one; here is what stands around them:
 * threads, loops, processes, the names, and the order of it all.
 *
 * Bodies are written first, into memory, as only they tell which helpers,
 * headers and constants the file needs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "export_c.h"

#define TOUCHES (MMR_USED_WRITE | MMR_USED_READ | MMR_USED_RANDOM)

int mmr_export_proc(const struct mmr_case *c, const char *name)
{
	int i;

	for (i = 0; i < c->nprocs; i++)
		if (!strcmp(c->procs[i]->name, name))
			return i;
	return -1;
}

int mmr_export_thread(const struct mmr_case *c, const char *name,
		      struct mmr_proc **proc)
{
	int i, j, n = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++, n++) {
			if (strcmp(c->procs[i]->threads[j]->name, name) != 0)
				continue;
			if (proc)
				*proc = c->procs[i];
			return n;
		}
	return -1;
}

const struct mmr_proc *mmr_export_first_plain(const struct mmr_case *c)
{
	int i;

	for (i = 0; i < c->nprocs; i++)
		if (!c->procs[i]->is_template)
			break;
	return c->procs[i];
}

bool mmr_export_is_plain(const struct mmr_proc *p, const struct mmr_thread *t)
{
	return !p->is_template && !t->is_template;
}

static int find_names(const struct mmr_block *b, enum mmr_arg_type type,
		      const char **names, int n, int max)
{
	int i, j, k;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			n = find_names(&s->body, type, names, n, max);
			continue;
		}
		for (j = 0; j < s->op->nargs; j++) {
			if (s->op->args[j].type != type || !s->args[j].name)
				continue;
			for (k = 0; k < n; k++)
				if (!strcmp(names[k], s->args[j].name))
					break;
			if (k == n && n < max)
				names[n++] = s->args[j].name;
		}
	}
	return n;
}

void mmr_export_names(struct mmr_export *x, enum mmr_arg_type type,
		      void (*fn)(struct mmr_export *x, const char *name))
{
	const char *names[MMR_CASE_MAX_NAMES];
	int i, j, n = 0;

	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++)
			n = find_names(&x->c->procs[i]->threads[j]->body, type,
				       names, n, MMR_CASE_MAX_NAMES);
	for (i = 0; i < n; i++)
		fn(x, names[i]);
}

static bool block_awaits(const struct mmr_block *b, enum mmr_until until,
			 const char *name)
{
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind != MMR_STMT_LOOP)
			continue;
		if ((s->until == until && !strcmp(s->until_name, name)) ||
		    block_awaits(&s->body, until, name))
			return true;
	}
	return false;
}

bool mmr_export_is_awaited(const struct mmr_case *c, enum mmr_until until,
			   const char *name)
{
	int i, j;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			if (block_awaits(&c->procs[i]->threads[j]->body, until,
					 name))
				return true;
	return false;
}

bool mmr_export_meets(const struct mmr_block *b, const char *sync)
{
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP
			    ? mmr_export_meets(&s->body, sync)
			    : s->op->id == MMR_OP_sync &&
				      !strcmp(s->args[0].name, sync))
			return true;
	}
	return false;
}

int mmr_export_parties(const struct mmr_case *c, const char *sync)
{
	int i, j, n = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			if (mmr_export_is_plain(c->procs[i],
						c->procs[i]->threads[j]) &&
			    mmr_export_meets(&c->procs[i]->threads[j]->body,
					     sync))
				n += c->procs[i]->copies;
	return n;
}

/*
 * What the machine would skip, as nothing makes a ref that it needs, is left
 * out.  A reference to a process is skipped by its helper at run time.
 */
bool mmr_export_is_skipped(struct mmr_export *x, const struct mmr_stmt *s)
{
	int i;

	for (i = 0; i < s->op->nargs; i++) {
		const struct mmr_argspec *a = &s->op->args[i];

		if (a->type == MMR_ARG_REF && s->args[i].name &&
		    !mmr_emit_ref_kind(&x->e, s, i))
			return true;
	}
	return false;
}

/* Marks what a block starts, and what that starts. */
static void mark_block(struct mmr_export *x, const struct mmr_block *b);

static void mark_proc(struct mmr_export *x, int index)
{
	const struct mmr_proc *p = x->c->procs[index];
	int j;

	x->proc_used[index] = true;
	for (j = 0; j < p->nthreads; j++) {
		int n = mmr_export_thread(x->c, p->threads[j]->name, NULL);

		if (p->threads[j]->is_template || x->thread_used[n])
			continue;
		x->thread_used[n] = true;
		mark_block(x, &p->threads[j]->body);
	}
}

static void mark_block(struct mmr_export *x, const struct mmr_block *b)
{
	struct mmr_proc *p;
	int i, n;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			mark_block(x, &s->body);
		} else if (s->op->id == MMR_OP_process_spawn) {
			x->simple = false;
			n = mmr_export_proc(x->c, s->args[0].name);
			if (n >= 0 && !x->proc_used[n])
				mark_proc(x, n);
		} else if (s->op->id == MMR_OP_thread_spawn) {
			n = mmr_export_thread(x->c, s->args[0].name, &p);
			if (n < 0)
				continue;
			x->simple = false;
			if (x->thread_used[n])
				continue;
			x->thread_used[n] = true;
			mark_block(x,
				   &p->threads[n - mmr_export_thread(
							   x->c,
							   p->threads[0]->name,
							   NULL)]
					    ->body);
		}
	}
}

static void put_idle(struct mmr_export *x)
{
	if (x->e.used & MMR_USED_IDLE_THREAD)
		fputs("static void *thread_idle(void *arg)\n{\n"
		      "\treturn arg;\n}\n\n",
		      x->out);
	if (x->e.used & MMR_USED_IDLE_PROC)
		fputs("static void *proc_idle(void *arg)\n{\n"
		      "\tfor (;;)\n\t\tpause();\n\treturn arg;\n}\n\n",
		      x->out);
}

/* Templates may start each other, so their names come first. */
static void put_prototypes(struct mmr_export *x)
{
	int i, j, n = 0, any = 0;

	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (j = 0; j < p->nthreads; j++, n++)
			if (p->threads[j]->is_template && x->thread_used[n])
				any = fprintf(
					x->out,
					"static void *thread_%s(void *);\n",
					p->threads[j]->name);
		if (p->is_template && x->proc_used[i])
			any = fprintf(x->out, "static void *proc_%s(void *);\n",
				      p->name);
	}
	if (any)
		fputc('\n', x->out);
}

/* --- the top of the file --- */

static const char *ref_type(struct mmr_export *x, const char *ref,
			    uint32_t kind)
{
	switch (kind) {
	case MMR_REF_MAPPING:
		return "struct map";
	case MMR_REF_THREAD:
		return mmr_emit_is_joined(&x->e, ref) ? "pthread_t"
						      : "struct handle";
	case MMR_REF_PROCESS:
		return x->e.sets ? "struct procs" : "struct proc";
	default:
		return "int";
	}
}

struct declared {
	struct mmr_export *x;
	const char *type; /* the one that is being declared */
	const char *name[MMR_CASE_MAX_REFS]; /* of all types */
	int n, of_type;
};

static void declare_ref(struct declared *d, const struct mmr_stmt *s)
{
	char var[64];
	int k;

	if (!s->ref || mmr_export_is_skipped(d->x, s) ||
	    strcmp(ref_type(d->x, s->ref, s->op->makes), d->type) != 0)
		return;
	for (k = 0; k < d->n; k++)
		if (!strcmp(d->name[k], s->ref))
			return;
	if (d->n == MMR_CASE_MAX_REFS)
		return;
	d->name[d->n++] = s->ref;
	mmr_emit_var(&d->x->e, s->ref, s->op->makes, var, sizeof(var));
	if (d->of_type++)
		fprintf(d->x->out, ", %s", var);
	else if (s->op->makes == MMR_REF_MAPPING)
		fprintf(d->x->out,
			"static struct map {\n\tchar *at;\n\tsize_t len;\n"
			"} %s",
			var);
	else
		fprintf(d->x->out, "static %s %s", d->type, var);
}

static void declare_block(struct declared *d, const struct mmr_block *b)
{
	int i;

	for (i = 0; i < b->n; i++) {
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			declare_block(d, &b->stmts[i]->body);
		else
			declare_ref(d, b->stmts[i]);
	}
}

/* Each process has its own copy, as fork leaves it. */
static void put_refs(struct mmr_export *x)
{
	static const char *const types[] = {
		"struct map",	"pthread_t",   "struct handle",
		"struct procs", "struct proc", "int",
	};
	struct declared d = {.x = x};
	size_t k;
	int i, j, n;

	for (k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
		d.type = types[k];
		d.of_type = 0;
		for (i = 0, n = 0; i < x->c->nprocs; i++)
			for (j = 0; j < x->c->procs[i]->nthreads; j++, n++)
				if (x->thread_used[n])
					declare_block(&d, &x->c->procs[i]
								   ->threads[j]
								   ->body);
		if (d.of_type)
			fputs(";\n", x->out);
	}
	if (x->e.used & MMR_USED_UNUSED) {
		fprintf(x->out, "static %s unused;\n",
			ref_type(x, "", MMR_REF_PROCESS));
		d.n++;
	}
	if (d.n)
		fputc('\n', x->out);
}

/* One limit for all: the longest that the case allows, else 2 s and as much
 * for each GiB that it maps. */
static void set_limits(struct mmr_export *x)
{
	const struct mmr_case *c = x->c;
	int i;

	x->limit_ms = 0;
	for (i = 0; i < c->nexpects; i++)
		if (c->expects[i].within_ns / 1000000 > x->limit_ms)
			x->limit_ms = c->expects[i].within_ns / 1000000;
	if (x->limit_ms < 100)
		x->limit_ms = 2000 + mmr_export_mapped(c) / (1 << 20) * 2;
	x->budget_s = (c->budget_ns + 999999999) / 1000000000;
}

static void set_lead(struct mmr_export *x, const struct mmr_block *b)
{
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP)
			set_lead(x, &s->body);
		else if (s->op->id == MMR_OP_sync && s->args[1].set &&
			 !s->args[1].is_auto &&
			 -s->args[1].lo > x->sync_lead_ns)
			x->sync_lead_ns = -s->args[1].lo;
	}
}

static void analyse(struct mmr_export *x)
{
	const struct mmr_case *c = x->c;
	int i, j;

	for (i = 0; i < c->nprocs; i++) {
		if (c->procs[i]->is_template) {
			if (c->procs[i]->copies > 1)
				x->e.sets = true;
			continue;
		}
		x->nplain += c->procs[i]->copies;
	}
	x->simple = x->nplain == 1;
	for (i = 0; i < c->nprocs; i++) {
		if (!c->procs[i]->is_template)
			mark_proc(x, i);
		for (j = 0; j < c->procs[i]->nthreads; j++)
			set_lead(x, &c->procs[i]->threads[j]->body);
	}
	set_limits(x);
	mmr_export_find_misses(x);
}

/* The bodies, into memory for the caller to free: NULL when out of it or
 * (*rc) when a statement has no C. */
static char *write_bodies(struct mmr_export *x, int *rc)
{
	char *text = NULL;
	size_t n;

	*rc = -ENOMEM;
	x->e.out = open_memstream(&text, &n);
	if (!x->e.out)
		return NULL;
	*rc = mmr_export_bodies(x);
	if (fclose(x->e.out) && !*rc)
		*rc = -ENOMEM;
	x->e.out = x->out;
	if (!*rc)
		return text;
	free(text);
	return NULL;
}

int mmr_export_c(const struct mmr_case *c, FILE *out, struct mmr_diag *diag)
{
	struct mmr_export *x = calloc(1, sizeof(*x));
	char *bodies;
	int rc;

	if (!x)
		return -ENOMEM;
	x->c = x->e.c = c;
	x->out = out;
	x->diag = diag;
	analyse(x);
	if (!x->nplain) {
		snprintf(diag->text, sizeof(diag->text),
			 "no process starts with the round");
		rc = -ENOTSUP;
		goto out;
	}
	if (c->keep && x->nplain > 1) {
		*diag = (struct mmr_diag){.text = ""};
		snprintf(diag->text, sizeof(diag->text),
			 "'rounds keep' with several processes has no form "
			 "in C");
		rc = -ENOTSUP;
		goto out;
	}
	bodies = write_bodies(x, &rc);
	if (!bodies)
		goto out;
	if (x->e.used & TOUCHES && (x->unmended || x->may_miss))
		x->e.used |= MMR_USED_RECOVER;
	mmr_export_head(x);
	mmr_export_shared(x);
	put_refs(x);
	mmr_export_helpers(x);
	put_prototypes(x);
	put_idle(x);
	fputs(bodies, out);
	free(bodies);
	mmr_export_main(x);
	if (fflush(out) || ferror(out))
		rc = -EIO;
out:
	free(x);
	return rc;
}
