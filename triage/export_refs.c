/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The refs of a case as variables of the exported file. */
#include <string.h>

#include "export_c.h"

/* Each pid has its pidfd, both in one line. */
static bool has_fds(const struct mmr_export *x)
{
	return x->e.plain_procs && x->e.used & MMR_USED_PIDFD;
}

static const char *ref_type(struct mmr_export *x, const char *ref,
			    uint32_t kind)
{
	switch (kind) {
	case MMR_REF_MAPPING:
		return x->e.plain_maps ? "char *" : "struct map";
	case MMR_REF_THREAD:
		return mmr_emit_is_joined(&x->e, ref) ? "pthread_t"
						      : "struct handle";
	case MMR_REF_PROCESS:
		return x->e.sets	   ? "struct procs"
		       : !x->e.plain_procs ? "struct proc"
		       : has_fds(x)	   ? "int"
					   : "pid_t";
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
	bool is_pointer = d->type[strlen(d->type) - 1] == '*';
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
		fprintf(d->x->out, ", %s%s", is_pointer ? "*" : "", var);
	else if (!strcmp(d->type, "struct map"))
		fprintf(d->x->out,
			"static struct map {\n\tchar *at;\n\tsize_t len;\n"
			"} %s",
			var);
	else if (!strcmp(d->type, "struct proc") && d->x->folds)
		fprintf(d->x->out, "static struct proc {\n\tpid_t pid;\n%s} %s",
			d->x->e.used & MMR_USED_PIDFD
				? "\tint fd; /* a pidfd */\n"
				: "",
			var);
	else
		fprintf(d->x->out, "static %s%s%s", d->type,
			is_pointer ? "" : " ", var);
	/* The pidfd stands beside each plain pid. */
	if (s->op->makes == MMR_REF_PROCESS && has_fds(d->x))
		fprintf(d->x->out, ", %s_fd", var);
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
void mmr_export_refs(struct mmr_export *x)
{
	static const char *const types[] = {
		"struct map",	"char *",      "pthread_t", "struct handle",
		"struct procs", "struct proc", "pid_t",	    "int",
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
	fputc('\n', x->out);
}

static bool makes_proc(struct mmr_export *x, const struct mmr_block *b)
{
	int i;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP
			    ? makes_proc(x, &s->body)
			    : s->ref && !mmr_export_is_skipped(x, s) &&
				      s->op->makes == MMR_REF_PROCESS)
			return true;
	}
	return false;
}

bool mmr_export_folds(struct mmr_export *x)
{
	int i, j, n = 0;

	if (x->e.sets || x->e.plain_procs || x->e.used & MMR_USED_UNUSED)
		return false;
	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++, n++)
			if (x->thread_used[n] &&
			    makes_proc(x, &x->c->procs[i]->threads[j]->body))
				return true;
	return false;
}
