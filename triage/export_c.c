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

#include "../ops/setting.h"
#include "../ops/sweep.h"
#include "export.h"
#include "export_c.h"

#define TOUCHES (MMR_USED_WRITE | MMR_USED_READ | MMR_USED_RANDOM)

static void put_idle(struct mmr_export *x)
{
	if (x->e.used & MMR_USED_IDLE_THREAD)
		fputs("static void *thread_idle(void *arg)\n{\n"
		      "\treturn arg;\n}\n\n",
		      x->out);
	if (x->e.used & MMR_USED_IDLE_PROC)
		fputs("static void proc_idle(void)\n{\n"
		      "\tfor (;;)\n\t\tpause();\n}\n\n",
		      x->out);
}

/* True when text names the function before it defines it. */
static bool is_early(const char *text, const char *head, const char *name)
{
	const char *def = strstr(text, head), *at;
	size_t n = strlen(name);

	for (at = strstr(text, name); at && def && at < def;
	     at = strstr(at + 1, name))
		if (strspn(at + n, "_abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == 0)
			return true;
	return false;
}

/* Templates may start each other: then their names come first. */
static void put_prototypes(struct mmr_export *x, const char *bodies)
{
	char name[64], head[100];
	int i, j, any = 0;

	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (j = 0; j <= p->nthreads; j++) {
			bool is_thread = j < p->nthreads;

			snprintf(name, sizeof(name), "%s_%s",
				 is_thread ? "thread" : "proc",
				 is_thread ? p->threads[j]->name : p->name);
			snprintf(head, sizeof(head),
				 is_thread ? "static void *%s(void *arg)"
					   : "static void %s(void)",
				 name);
			if (is_early(bodies, head, name))
				any = fprintf(x->out, "%s;\n", head);
		}
	}
	if (any)
		fputc('\n', x->out);
}

/* What each of several processes runs, in the order of their pids. */
static void put_plain_bodies(struct mmr_export *x)
{
	int i, k, n = 0;

	fputs("static void (*const bodies[PLAIN])(void) = {", x->out);
	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (k = 0; !p->is_template && k < p->copies; k++, n++)
			fprintf(x->out, "%s%sproc_%s", n ? "," : "",
				n % 4 ? " " : "\n\t", p->name);
	}
	fputs("\n};\n\n", x->out);
}

/* One limit for all: the longest that the case allows, else 2 s and as much
 * for each GiB that it maps. */
static void set_limits(struct mmr_export *x)
{
	const struct mmr_case *c = x->c;
	int i;

	x->limit_ms = 0;
	for (i = 0; i < c->nexpects; i++)
		if (c->expects[i].kind != MMR_EXPECT_CALL &&
		    c->expects[i].within_ns / 1000000 > x->limit_ms)
			x->limit_ms = c->expects[i].within_ns / 1000000;
	if (x->limit_ms < 100)
		x->limit_ms = 2000 + mmr_export_mapped(c) / (1 << 20) * 2;
	x->budget_s = (c->budget_ns + 999999999) / 1000000000;
}

/* How long before the meeting somebody may have to go on. */
static void lead(struct mmr_export *x, const struct mmr_value *skew)
{
	int64_t ns = skew->is_log    ? MMR_SWEEP_LOG_HI
		     : skew->is_auto ? 20000
				     : -skew->lo;

	if (ns > x->sync_lead_ns)
		x->sync_lead_ns = ns;
}

static void look_at_times(struct mmr_export *x, const struct mmr_block *b)
{
	int i, j;

	for (i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP) {
			look_at_times(x, &s->body);
			continue;
		}
		for (j = 0; j < s->op->nargs; j++)
			if (s->op->args[j].type == MMR_ARG_TIME &&
			    s->args[j].hi - s->args[j].lo > INT32_MAX)
				x->long_draws = true;
		for (j = 1; s->op->id == MMR_OP_sync && j < s->op->nargs; j++)
			if (s->args[j].set)
				lead(x, &s->args[j]);
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
	mmr_export_mark(x);
	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			look_at_times(x, &c->procs[i]->threads[j]->body);
	x->writes = mmr_setting_written(c);
	for (i = 0; mmr_setting_table[i].name; i++)
		if (mmr_setting_table[i].kind == MMR_SETTING_TRIGGER)
			x->writes &= ~(1ULL << i); /* nothing to put back */
	set_limits(x);
	mmr_export_find_misses(x);
	for (i = 0; i < c->nexpects; i++) /* not of what came after an unmap */
		x->content |= c->expects[i].kind == MMR_EXPECT_CONTENT &&
			      !x->e.own_stacks;
	if (x->nplain)
		mmr_export_plan(x);
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

/* A word in the text of a helper, but where it only counts what it did. */
static bool has_word(const char *text, const char *word)
{
	const char *at;

	for (at = strstr(text, word); at; at = strstr(at + 1, word))
		if (strncmp(at, MMR_EXPORT_MOVED, strlen(MMR_EXPORT_MOVED)) !=
		    0)
			return true;
	return false;
}

/* True when a text of an op speaks to the watchdog of each thread. */
static bool needs_steps(const struct mmr_export *x, const char *bodies)
{
	static const char *const words[] = {"me->", "slot(", "STEP(",
					    "shared->stop"};
	size_t w;
	int i;

	for (w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		if (strstr(bodies, words[w]))
			return true;
		for (i = 0; i < x->e.nhelpers; i++)
			if (has_word(x->e.helpers[i], words[w]))
				return true;
	}
	return false;
}

/* One statement alone, outside of a product, names the page size. */
static bool names_page_once(const char *bodies)
{
	const char *at = strstr(bodies, "page");

	return at && !strstr(at + 1, "page") && strncmp(at - 2, "* ", 2) != 0;
}

/* A process ref can be a plain pid where no helper takes one. */
static bool has_plain_procs(const struct mmr_export *x)
{
	return x->whole && !x->e.sets &&
	       !(x->e.used &
		 (MMR_USED_SPAWN_ANY | MMR_USED_KILL | MMR_USED_REAP |
		  MMR_USED_FRESH | MMR_USED_UNUSED));
}

/* True when nothing outside of a round looks at struct shared. */
static bool has_own_shared(const struct mmr_export *x, const char *bodies)
{
	return x->whole && !x->counts && !x->content && x->nplain == 1 &&
	       !x->c->keep && x->nsyncs == x->e.one_meet &&
	       !(x->e.used & MMR_USED_UFFD) && !strstr(bodies, "spawned_") &&
	       !strstr(bodies, "pids_") && strstr(bodies, "shared->");
}

/*
 * Twice, or three times: only when all is written is it known what the file
 * uses, and some statements are written by that.
 */
static char *write_known(struct mmr_export *x, int *rc)
{
	char *bodies = write_bodies(x, rc);

	if (!bodies)
		return NULL;
	if (x->whole && needs_steps(x, bodies)) {
		x->whole = x->counts = x->leaves = false;
		x->e.steps = true;
		x->e.polls = x->e.one_meet = x->e.groups = false;
		x->e.meet_waits = x->in_place = false;
		x->e.inlines = x->e.seeds = x->e.plain_maps = false;
		x->e.lone_draw = false;
		x->e.used = 0;
	}
	/* A spawn is written otherwise when its pidfd is used further on. */
	if (x->whole && x->e.used & MMR_USED_PIDFD) {
		free(bodies);
		bodies = write_bodies(x, rc);
		if (!bodies)
			return NULL;
	}
	x->e.plain_procs = has_plain_procs(x);
	x->own_shared = has_own_shared(x, bodies);
	x->e.calls_page = x->whole && names_page_once(bodies);
	if (x->e.calls_page)
		x->e.used &= ~(uint32_t)MMR_USED_PAGE;
	free(bodies);
	return write_bodies(x, rc);
}

static void settle(struct mmr_export *x, const char *bodies)
{
	uint32_t processes = MMR_USED_START | MMR_USED_SPAWN_ANY |
			     MMR_USED_KILL | MMR_USED_REAP | MMR_USED_FRESH |
			     MMR_USED_UNUSED;
	int i;

	if (x->e.used & processes)
		x->e.used |= MMR_USED_SPAWN;
	if (x->e.used & TOUCHES && (x->unmended || x->may_miss))
		x->e.used |= MMR_USED_RECOVER;
	if (x->e.used & (TOUCHES | MMR_USED_PART | MMR_USED_KEEP))
		x->e.used |= MMR_USED_MAP;
	x->folds = x->e.used & MMR_USED_SPAWN && mmr_export_folds(x);
	if (!x->whole)
		x->e.groups = mmr_export_may_leave(x);
	x->shares = !x->whole || x->counts || x->content ||
		    strstr(bodies, "shared->");
	x->clock =
		x->e.used & (MMR_USED_DELAY | MMR_USED_DRAW | MMR_USED_SYNC) ||
		strstr(bodies, "now()");
	for (i = 0; i < x->e.nhelpers; i++) {
		x->shares |= strstr(x->e.helpers[i], "shared->") != NULL;
		x->clock |= strstr(x->e.helpers[i], "now()") != NULL;
	}
	if (x->e.used & (MMR_USED_UFFD | MMR_USED_FRESH | MMR_USED_SYNC))
		x->shares = true;
}

static int refuse(struct mmr_export *x, const char *text)
{
	*x->diag = (struct mmr_diag){.line = 1, .col = 1};
	snprintf(x->diag->text, sizeof(x->diag->text), "%s", text);
	return -ENOTSUP;
}

/* All behind the headers, for the caller to free; NULL: out of memory. */
static char *write_rest(struct mmr_export *x, const char *bodies)
{
	FILE *out = x->out;
	char *text = NULL;
	size_t n;

	x->out = open_memstream(&text, &n);
	if (!x->out) {
		x->out = out;
		return NULL;
	}
	x->e.out = x->out;
	mmr_export_shared(x);
	mmr_export_refs(x);
	mmr_export_helpers(x);
	put_prototypes(x, bodies);
	put_idle(x);
	fputs(bodies, x->out);
	mmr_export_watch(x);
	mmr_export_need_helpers(x);
	if (mmr_export_has_array(x))
		put_plain_bodies(x);
	if (x->to == MMR_EXPORT_LTP)
		mmr_export_ltp(x);
	else
		mmr_export_main(x);
	if (fclose(x->out)) {
		free(text);
		text = NULL;
	}
	x->out = x->e.out = out;
	return text;
}

static int write_file(struct mmr_export *x)
{
	char *bodies, *text;
	int rc;

	if (!x->nplain)
		return refuse(x, "no process starts with the round: make one "
				 "that is no template");
	if (x->c->keep && x->nplain > 1)
		return refuse(x, "'rounds keep' with several processes has no "
				 "form in C: write 'rounds' without keep");
	bodies = write_known(x, &rc);
	if (!bodies)
		return rc;
	settle(x, bodies);
	text = write_rest(x, bodies);
	free(bodies);
	if (!text)
		return -ENOMEM;
	x->prints = strstr(text, "FILE *") || strstr(text, "printf(") ||
		    strstr(text, "scanf(");
	mmr_export_head(x);
	fputs(text, x->out);
	free(text);
	return ferror(x->out) ? -ENOMEM : 0;
}

/* Hands the text over, without a blank line behind another one: a part that
 * this case does not need leaves none. */
static int hand_over(const char *text, FILE *out)
{
	const char *p;

	for (p = text; *p; p++)
		if (!(p[0] == '\n' && p[1] == '\n' && p[2] == '\n'))
			fputc(*p, out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

int mmr_export(const struct mmr_case *c, enum mmr_export_to to,
	       const char *name, FILE *out, struct mmr_diag *diag)
{
	struct mmr_export *x = calloc(1, sizeof(*x));
	char made[64], *text = NULL;
	size_t n;
	int rc = -ENOMEM;

	if (!x)
		return -ENOMEM;
	*diag = (struct mmr_diag){0};
	x->c = x->e.c = c;
	x->to = to;
	x->name = name ? name
		       : mmr_export_name(c->title ? c->title : "", made,
					 sizeof(made));
	x->diag = diag;
	x->out = open_memstream(&text, &n);
	if (!x->out)
		goto out;
	analyse(x);
	rc = write_file(x);
	if (fclose(x->out) && !rc)
		rc = -ENOMEM;
	if (!rc)
		rc = hand_over(text, out);
	free(text);
out:
	free(x);
	return rc;
}
