// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The frame of an import: memory, what is counted and kept as a comment, and
 * the order of the steps.
 */
#include "import_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 65536
#define MEMORY_MAX (512u << 20) /* of one import: a bound, not a need */

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(16) char data[];
};

struct mmr_imp_pool {
	struct chunk *chunks;
	size_t total;
};

void *mmr_imp_alloc(struct mmr_imp *im, size_t n)
{
	struct mmr_imp_pool *pool = im->pool;
	struct chunk *k = pool->chunks;
	size_t size;
	void *p;

	n = (n + 15) & ~(size_t)15;
	if (!k || k->size - k->used < n) {
		size = n > CHUNK ? n : CHUNK;
		k = pool->total + size > MEMORY_MAX ? NULL
						    : malloc(sizeof(*k) + size);
		if (!k) {
			im->failed = true;
			return NULL;
		}
		k->used = 0;
		k->size = size;
		k->next = pool->chunks;
		pool->chunks = k;
		pool->total += size;
	}
	p = k->data + k->used;
	k->used += n;
	return memset(p, 0, n);
}

static void free_pool(struct mmr_imp_pool *pool)
{
	struct chunk *k, *next;

	for (k = pool->chunks; k; k = next) {
		next = k->next;
		free(k);
	}
}

const char *mmr_imp_str(struct mmr_imp *im, const char *fmt, ...)
{
	char buf[300], *p;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	p = mmr_imp_alloc(im, strlen(buf) + 1);
	return p ? strcpy(p, buf) : NULL;
}

/* A stranger's text in a comment: one line of ASCII. */
static void copy_safe(char *to, size_t n, struct mmr_span s)
{
	size_t i;

	for (i = 0; i + 1 < n && i < (size_t)s.len; i++)
		to[i] = s.s[i] >= ' ' && s.s[i] < 0x7f ? s.s[i] : '?';
	to[i] = '\0';
	if ((size_t)s.len > i && i > 3)
		memcpy(to + i - 3, "...", 3);
}

void mmr_imp_comment(struct mmr_imp *im, struct mmr_imp_thread *t, int line,
		     struct mmr_span text, const char *why)
{
	struct mmr_imp_comment *c, **at;
	char call[100];

	if (im->ncomments++ >= MMR_IMP_COMMENTS)
		return;
	c = mmr_imp_alloc(im, sizeof(*c));
	if (!c)
		return;
	copy_safe(call, sizeof(call), text);
	snprintf(c->text, sizeof(c->text), "line %d: %s%s%s", line, call,
		 why[0] ? ": " : "", why);
	for (at = &t->comments; *at; at = &(*at)->next)
		;
	*at = c;
}

void mmr_imp_missed(struct mmr_imp *im, int line, struct mmr_span call,
		    const char *why)
{
	struct mmr_import_result *res = im->res;
	struct mmr_import_missed *m;

	if (res->nmissed == MMR_IMPORT_MISSED)
		return;
	if (!res->missed)
		res->missed = calloc(MMR_IMPORT_MISSED, sizeof(*res->missed));
	if (!res->missed) {
		im->failed = true;
		return;
	}
	m = &res->missed[res->nmissed++];
	m->line = line;
	copy_safe(m->call, sizeof(m->call), call);
	snprintf(m->why, sizeof(m->why), "%s", why);
}

static void count_ignored(struct mmr_imp *im, struct mmr_span name)
{
	char key[48];
	json_t *n;

	copy_safe(key, sizeof(key), name);
	n = json_object_get(im->res->ignored_calls, key);
	if (n)
		json_integer_set(n, json_integer_value(n) + 1);
	else if (json_object_size(im->res->ignored_calls) < 400)
		json_object_set_new(im->res->ignored_calls, key,
				    json_integer(1));
}

void mmr_imp_count(struct mmr_imp *im, struct mmr_imp_thread *t,
		   const struct mmr_imp_call *c, enum mmr_imp_did did,
		   const char *why)
{
	struct mmr_import_result *res = im->res;

	res->calls++;
	if (did == MMR_IMP_MAPPED) {
		res->mapped++;
	} else if (did == MMR_IMP_IGNORED) {
		res->ignored++;
		count_ignored(im, c->name);
	} else {
		res->unmapped++;
		mmr_imp_comment(im, t, c->line, c->text, why);
		mmr_imp_missed(im, c->line, c->text, why);
	}
}

void mmr_imp_cut(struct mmr_imp *im, const char *fmt, ...)
{
	va_list ap;

	if (im->res->cut[0])
		return;
	va_start(ap, fmt);
	vsnprintf(im->res->cut, sizeof(im->res->cut), fmt, ap);
	va_end(ap);
}

struct mmr_imp_proc *mmr_imp_add_proc(struct mmr_imp *im, const char *name)
{
	struct mmr_imp_proc *p = mmr_imp_alloc(im, sizeof(*p));

	if (!p)
		return NULL;
	p->name = name;
	p->copies = 1;
	if (im->last_proc)
		im->last_proc->next = p;
	else
		im->procs = p;
	im->last_proc = p;
	im->nprocs++;
	return p;
}

struct mmr_imp_thread *
mmr_imp_add_thread(struct mmr_imp *im, struct mmr_imp_proc *p, const char *name)
{
	struct mmr_imp_thread *t = mmr_imp_alloc(im, sizeof(*t));

	if (!t)
		return NULL;
	t->name = name;
	t->proc = p;
	t->last_ns = -1;
	t->no = im->nthreads;
	t->born = im->seq;
	if (p->last)
		p->last->next = t;
	else
		p->threads = t;
	p->last = t;
	p->nthreads++;
	im->nthreads++;
	return t;
}

static int fail(struct mmr_diag *diag, int line, const char *text)
{
	diag->line = line;
	diag->col = 1;
	snprintf(diag->text, sizeof(diag->text), "%s", text);
	return -EINVAL;
}

/* Nothing of it is in the case: then it is no import. */
static int check_result(const struct mmr_import_result *res,
			const struct mmr_import_opts *o, struct mmr_diag *diag)
{
	bool syz = o->from == MMR_IMPORT_SYZ;
	char text[200];

	if (!res->calls)
		return fail(diag, 1,
			    syz ? "no call in it: this is no syzkaller program"
				: "no system call in it: this is no log of "
				  "strace");
	if (res->mapped)
		return 0;
	snprintf(text, sizeof(text),
		 "none of its %d calls can be mapped%s%.100s", res->calls,
		 res->nmissed ? "; the first: " : ": none is about memory",
		 res->nmissed ? res->missed[0].why : "");
	return fail(diag, res->nmissed ? res->missed[0].line : 1, text);
}

int mmr_import(const char *text, size_t len, const struct mmr_import_opts *o,
	       struct mmr_import_result *res, struct mmr_diag *diag)
{
	struct mmr_imp_pool pool = {0};
	struct mmr_imp im = {.o = o, .res = res, .pool = &pool, .rounds = 1};
	int rc;

	memset(res, 0, sizeof(*res));
	memset(diag, 0, sizeof(*diag));
	res->ignored_calls = json_object();
	rc = res->ignored_calls ? mmr_imp_consts(&im) : -ENOMEM;
	if (!rc)
		rc = o->from == MMR_IMPORT_SYZ ? mmr_imp_syz(&im, text, len)
					       : mmr_imp_strace(&im, text, len);
	if (!rc && im.failed)
		rc = -ENOMEM;
	if (!rc)
		rc = check_result(res, o, diag);
	if (!rc)
		rc = mmr_imp_write(&im, diag);
	free(im.fixed);
	free_pool(&pool);
	if (rc)
		mmr_import_release(res);
	return rc;
}

void mmr_import_release(struct mmr_import_result *res)
{
	free(res->text);
	free(res->missed);
	json_decref(res->ignored_calls);
	memset(res, 0, sizeof(*res));
}
