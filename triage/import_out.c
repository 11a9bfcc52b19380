// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The case of what was read, and its text.  The printer knows no comments, so
 * they are put between its lines here: each belongs to the statement behind
 * it, and statements are numbered in the order of the text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import_impl.h"

struct out {
	struct mmr_imp *im;
	struct mmr_case *c;
	/* Comments before statement i; those at the end of thread i. */
	struct mmr_imp_comment **before, **after;
	int nstmts, max, nthreads;
};

static struct mmr_imp_thread *find_body(struct mmr_imp_proc *p,
					const char *name)
{
	struct mmr_imp_thread *t;

	for (t = p->threads; t; t = t->next)
		if (t->is_template && !strcmp(t->name, name))
			return t;
	return NULL;
}

/* A template without statements is the built-in idle. */
static bool is_idle(const struct mmr_imp_thread *t)
{
	return t->is_template && !t->nodes.n;
}

static struct mmr_imp_comment **new_stmt(struct out *o)
{
	return o->nstmts < o->max ? &o->before[o->nstmts++] : NULL;
}

static int add_delay(struct out *o, struct mmr_block *b,
		     const struct mmr_imp_node *n)
{
	const struct mmr_op *op = mmr_op_by_name("delay");
	struct mmr_stmt *s;

	if (n->delay_hi <= 0)
		return 0;
	s = op ? mmr_case_add_op(o->c, b, op, NULL) : NULL;
	if (!s || !new_stmt(o))
		return -ENOMEM;
	s->args[0].set = true;
	s->args[0].lo = n->delay_lo;
	s->args[0].hi = n->delay_hi;
	return 0;
}

static int add_op(struct out *o, struct mmr_imp_proc *p, struct mmr_block *b,
		  const struct mmr_imp_node *n)
{
	struct mmr_stmt *s = mmr_case_add_op(o->c, b, n->op, n->ref);
	struct mmr_imp_thread *body;
	int i;

	if (!s || !new_stmt(o))
		return -ENOMEM;
	for (i = 0; i < n->op->nargs; i++) {
		const char *name = n->arg[i].name;

		s->args[i] = n->arg[i];
		if (!name)
			continue;
		body = n->op->args[i].type == MMR_ARG_THREAD
			       ? find_body(p, name)
			       : NULL;
		if (body && is_idle(body))
			name = "idle";
		s->args[i].name = mmr_case_str(o->c, name);
		if (!s->args[i].name)
			return -ENOMEM;
	}
	s->naccept = n->naccept;
	memcpy(s->accept, n->accept, sizeof(s->accept));
	return 0;
}

static int add_nodes(struct out *o, struct mmr_imp_proc *p, struct mmr_block *b,
		     const struct mmr_imp_nodes *v)
{
	int i, at, rc = 0;

	for (i = 0; i < v->n && !rc; i++) {
		const struct mmr_imp_node *n = v->v[i];

		at = o->nstmts;
		rc = add_delay(o, b, n);
		if (rc)
			return rc;
		if (n->op) {
			rc = add_op(o, p, b, n);
		} else {
			struct mmr_stmt *s = mmr_case_add_loop(
				o->c, b, MMR_UNTIL_COUNT, n->count, NULL);

			if (!s || !new_stmt(o))
				return -ENOMEM;
			o->im->res->loops++;
			rc = add_nodes(o, p, &s->body, &n->body);
		}
		if (at < o->max)
			o->before[at] = n->comments;
	}
	return rc;
}

static int add_threads(struct out *o, struct mmr_imp_proc *p)
{
	struct mmr_proc *proc = mmr_case_add_proc(o->c, p->name);
	struct mmr_imp_thread *t;
	int rc = proc ? 0 : -ENOMEM;

	if (rc)
		return rc;
	proc->is_template = p->is_template;
	proc->copies = p->copies;
	for (t = p->threads; t && !rc; t = t->next) {
		struct mmr_thread *thread;

		if (is_idle(t))
			continue;
		thread = mmr_case_add_thread(o->c, proc, t->name);
		if (!thread)
			return -ENOMEM;
		thread->is_template = t->is_template;
		rc = add_nodes(o, p, &thread->body, &t->nodes);
		o->after[o->nthreads++] = t->comments;
	}
	return rc;
}

static int build(struct out *o)
{
	const struct mmr_import_opts *opts = o->im->o;
	bool syz = opts->from == MMR_IMPORT_SYZ;
	struct mmr_imp_proc *p;
	char title[120];
	size_t i;
	int rc = 0;

	snprintf(title, sizeof(title), "%s%s%.80s",
		 syz ? "a syzkaller program" : "a log of strace",
		 opts->name ? ": " : "", opts->name ? opts->name : "");
	for (i = 0; title[i]; i++)
		if (title[i] < ' ' || title[i] >= 0x7f)
			title[i] = '?';
	o->c->title = mmr_case_str(o->c, title);
	if (!o->c->title)
		return -ENOMEM;
	o->c->rounds = o->im->rounds;
	if (o->im->budget_ns)
		o->c->budget_ns = o->im->budget_ns;
	for (p = o->im->procs; p && !rc; p = p->next)
		rc = add_threads(o, p);
	return rc;
}

/* -- text --------------------------------------------------------------- */

static void put_comments(FILE *f, const struct mmr_imp_comment *c, int indent)
{
	for (; c; c = c->next)
		fprintf(f, "%*s# %s\n", indent, "", c->text);
}

static void put_head(FILE *f, const struct mmr_imp *im)
{
	const struct mmr_import_result *r = im->res;

	fprintf(f, "# Imported: %d of %d calls", r->mapped, r->calls);
	if (r->ignored)
		fprintf(f, ", %d are not about memory", r->ignored);
	if (r->unmapped)
		fprintf(f, ", %d could not be mapped", r->unmapped);
	if (r->unread)
		fprintf(f, ", %d lines were not understood", r->unread);
	fputs(".\n", f);
	if (r->files)
		fprintf(f, "# %d mapping%s of files %s anonymous here.\n",
			r->files, r->files == 1 ? "" : "s",
			r->files == 1 ? "is" : "are");
	if (r->delays_cut)
		fprintf(f, "# %d longer pause%s shortened.\n", r->delays_cut,
			r->delays_cut == 1 ? " is" : "s are");
	if (r->cut[0])
		fprintf(f, "# %s\n", r->cut);
	if (im->ncomments > MMR_IMP_COMMENTS)
		fprintf(f,
			"# %d more lines that could not be mapped are not "
			"kept here.\n",
			im->ncomments - MMR_IMP_COMMENTS);
}

static bool begins(const char *line, const char *word)
{
	return !strncmp(line, word, strlen(word));
}

/* The printer's lines, with comments between them. */
static void put_text(FILE *f, struct out *o, const char *text)
{
	int stmt = 0, thread = -1;
	bool head = true;

	while (*text) {
		const char *end = strchr(text, '\n'), *word = text;
		int len = end ? (int)(end - text) : (int)strlen(text);

		while (*word == ' ')
			word++;
		if (begins(word, "process ") && word == text)
			head = false;
		if (!head && (!len || begins(word, "thread ")) && thread >= 0 &&
		    o->after[thread]) {
			put_comments(f, o->after[thread], 4);
			o->after[thread] = NULL;
		}
		if (!head && begins(word, "thread ")) {
			thread++;
		} else if (!head && len && word != text &&
			   !begins(word, "end\n")) {
			if (stmt < o->nstmts)
				put_comments(f, o->before[stmt],
					     (int)(word - text));
			stmt++;
		}
		fprintf(f, "%.*s\n", len, text);
		if (begins(text, "mmrace-case 1"))
			put_head(f, o->im);
		if (!end)
			break;
		text = end + 1;
	}
	if (thread >= 0)
		put_comments(f, o->after[thread], 4);
}

/* What is written has to be a case: seen by the one who reads cases. */
static int check_text(const char *text, size_t len, struct mmr_diag *diag)
{
	struct mmr_case *c = NULL;
	int rc = mmr_case_parse(text, len, &c, diag, NULL, NULL);

	mmr_case_free(c);
	return rc;
}

static int write_text(struct out *o, struct mmr_diag *diag)
{
	char *plain = mmr_case_print(o->c), *text = NULL;
	size_t len = 0;
	FILE *f;
	int rc;

	if (!plain)
		return -ENOMEM;
	f = open_memstream(&text, &len);
	if (!f) {
		free(plain);
		return -ENOMEM;
	}
	put_text(f, o, plain);
	free(plain);
	rc = fclose(f) ? -ENOMEM : check_text(text, len, diag);
	if (rc)
		free(text);
	else
		o->im->res->text = text;
	return rc;
}

int mmr_imp_write(struct mmr_imp *im, struct mmr_diag *diag)
{
	struct out o = {.im = im, .max = MMR_CASE_MAX_STMTS};
	int rc = -ENOMEM;

	o.c = mmr_case_new();
	o.before = mmr_imp_alloc(im, (size_t)o.max * sizeof(*o.before));
	o.after = mmr_imp_alloc(im,
				(size_t)(im->nthreads + 1) * sizeof(*o.after));
	if (o.c && o.before && o.after)
		rc = build(&o);
	if (!rc)
		rc = mmr_case_check(o.c, diag);
	if (!rc)
		rc = write_text(&o, diag);
	if (!rc) {
		im->res->statements = mmr_case_count(o.c);
		im->res->processes = o.c->nprocs;
		im->res->threads = o.nthreads;
	}
	mmr_case_free(o.c);
	return rc;
}
