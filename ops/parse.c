// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The parser of mmrace-case 1.  Strict: what it does not know is an error
 * with its place, as a case that silently means less than it says would be
 * worse than none.  Everything about operations comes from their descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "parse.h"
#include "print.h"
#include "pool.h"

int mmr_parse_fail(struct mmr_parse *p, const struct mmr_word *w,
		   const char *fmt, ...)
{
	struct mmr_diag *d = p->l.diag;
	va_list ap;

	d->line = p->l.line;
	d->col = w->col;
	va_start(ap, fmt);
	vsnprintf(d->text, sizeof(d->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

bool mmr_parse_split(const struct mmr_word *w, struct mmr_word *key,
		     struct mmr_word *value)
{
	const char *eq = memchr(w->s, '=', (size_t)w->len);
	int n;

	if (!eq || eq == w->s)
		return false;
	n = (int)(eq - w->s);
	*key = (struct mmr_word){w->s, n, w->col};
	*value = (struct mmr_word){eq + 1, w->len - n - 1, w->col + n + 1};
	return true;
}

int mmr_parse_int(struct mmr_parse *p, const struct mmr_word *w, int64_t lo,
		  int64_t hi, const char *what, int64_t *v)
{
	int rc = mmr_lex_int(w->s, (size_t)w->len, v);

	if (rc == -EINVAL)
		return mmr_parse_fail(p, w, "%s: '%.*s' is no number", what,
				      ELLIPSIS(w));
	if (rc || *v < lo || *v > hi)
		return mmr_parse_fail(p, w, "%s must be from %lld to %lld",
				      what, (long long)lo, (long long)hi);
	return 0;
}

int mmr_parse_signed_time(struct mmr_parse *p, const struct mmr_word *w,
			  int64_t *ns)
{
	int rc = mmr_lex_time(w->s, (size_t)w->len, ns);

	if (rc == -ERANGE)
		return mmr_parse_fail(p, w, "'%.*s' is too large", ELLIPSIS(w));
	if (rc)
		return mmr_parse_fail(p, w,
				      "'%.*s' is no time: a whole number with "
				      "ns, us, ms or s",
				      ELLIPSIS(w));
	return 0;
}

int mmr_parse_time(struct mmr_parse *p, const struct mmr_word *w, int64_t *ns)
{
	int rc = mmr_parse_signed_time(p, w, ns);

	if (!rc && *ns < 0)
		return mmr_parse_fail(p, w, "a negative time");
	return rc;
}

int mmr_parse_copy(struct mmr_parse *p, const struct mmr_word *w,
		   const char **s)
{
	*s = mmr_pool_str(p->c, w->s, (size_t)w->len);
	return *s ? 0 : -ENOMEM;
}

int mmr_parse_name(struct mmr_parse *p, const struct mmr_word *w,
		   const char *what, const char **name)
{
	if (!mmr_lex_is_name(w->s, (size_t)w->len))
		return mmr_parse_fail(p, w, "'%.*s' is no name for %s",
				      ELLIPSIS(w), what);
	return mmr_parse_copy(p, w, name);
}

/* FUNCTION(NAME), as in done(A): the name between the brackets. */
static bool in_brackets(const struct mmr_word *w, const char *function,
			struct mmr_word *name)
{
	int n = (int)strlen(function);

	if (w->len < n + 2 || memcmp(w->s, function, (size_t)n) != 0 ||
	    w->s[n] != '(' || w->s[w->len - 1] != ')')
		return false;
	*name = (struct mmr_word){w->s + n + 1, w->len - n - 2, w->col + n + 1};
	return true;
}

static int parse_loop_head(struct mmr_parse *p, enum mmr_until *until,
			   int64_t *count, const char **name)
{
	const struct mmr_word *w = &p->l.word[1];
	struct mmr_word key, value, inner;
	int rc;

	*until = MMR_UNTIL_STOP;
	if (p->l.n == 1)
		return 0;
	if (p->l.n > 2)
		return mmr_parse_fail(p, &w[1], "unknown word '%.*s' in loop",
				      ELLIPSIS(&w[1]));
	if (!mmr_parse_split(w, &key, &value)) {
		*until = MMR_UNTIL_COUNT;
		return mmr_parse_int(p, w, 1, MMR_CASE_MAX_LOOP, "loop", count);
	}
	if (mmr_lex_is(&key, "for")) {
		*until = MMR_UNTIL_TIME;
		rc = mmr_parse_time(p, &value, count);
		if (!rc && (*count < 1 || *count > MMR_CHECK_LOOP_NS))
			rc = mmr_parse_fail(p, &value,
					    "a loop runs for 1ns to 3600s");
		return rc;
	}
	if (mmr_lex_is(&key, "until")) {
		*until = in_brackets(&value, "done", &inner) ? MMR_UNTIL_DONE
			 : in_brackets(&value, "exited", &inner)
				 ? MMR_UNTIL_EXITED
				 : MMR_UNTIL_STOP;
		if (*until != MMR_UNTIL_STOP)
			return mmr_parse_name(p, &inner,
					      *until == MMR_UNTIL_DONE
						      ? "a thread"
						      : "a process",
					      name);
	}
	return mmr_parse_fail(p, w,
			      "unknown '%.*s': a loop takes N, for=TIME, "
			      "until=done(THREAD) or until=exited(PROCESS)",
			      ELLIPSIS(w));
}

static int parse_loop(struct mmr_parse *p)
{
	enum mmr_until until;
	const char *name = NULL;
	struct mmr_stmt *s;
	int64_t count = 0;
	int rc;

	rc = parse_loop_head(p, &until, &count, &name);
	if (rc)
		return rc;
	if (p->depth == MMR_CASE_MAX_DEPTH)
		return mmr_parse_fail(p, &p->l.word[0],
				      "loops nest %d deep at most",
				      MMR_CASE_MAX_DEPTH);
	s = mmr_case_add_loop(p->c, p->block[p->depth], until, count, name);
	if (!s)
		return -ENOMEM;
	s->line = p->l.line;
	s->col = p->l.word[0].col;
	p->loop[p->depth] = s;
	p->block[++p->depth] = &s->body;
	return 0;
}

static int parse_stmt(struct mmr_parse *p)
{
	const struct mmr_word *w = p->l.word;
	bool assigns = p->l.n > 1 && mmr_lex_is(&w[1], "=");

	if (!p->t)
		return mmr_parse_fail(p, w, "expected a thread, found '%.*s'",
				      ELLIPSIS(w));
	if (!assigns && mmr_lex_is(w, "end")) {
		if (p->l.n > 1)
			return mmr_parse_fail(p, &w[1],
					      "unknown word '%.*s' behind end",
					      ELLIPSIS(&w[1]));
		if (p->depth == 0)
			return mmr_parse_fail(p, w, "end without a loop");
		p->depth--;
		return 0;
	}
	if (p->nstmts++ == MMR_CASE_MAX_STMTS)
		return mmr_parse_fail(p, w, "more than %d statements",
				      MMR_CASE_MAX_STMTS);
	if (!assigns && mmr_lex_is(w, "loop"))
		return parse_loop(p);
	return mmr_parse_op(p);
}

/* A process, thread, or the text ends here: no loop may be open. */
static int close_thread(struct mmr_parse *p)
{
	const struct mmr_stmt *s;

	if (p->depth == 0)
		return 0;
	s = p->loop[p->depth - 1];
	p->l.line = s->line;
	return mmr_parse_fail(p, &(struct mmr_word){.col = s->col},
			      "this loop has no end");
}

static int parse_process(struct mmr_parse *p)
{
	struct mmr_word *w = p->l.word, key, value;
	const char *name;
	bool copies = false;
	int64_t n;
	int i, rc;

	rc = close_thread(p);
	if (rc)
		return rc;
	if (p->l.n < 2)
		return mmr_parse_fail(p, w, "process needs a name");
	rc = mmr_parse_name(p, &w[1], "a process", &name);
	if (rc)
		return rc;
	if (p->c->nprocs == MMR_CASE_MAX_PROCS)
		return mmr_parse_fail(p, w, "more than %d processes",
				      MMR_CASE_MAX_PROCS);
	p->t = NULL;
	p->p = mmr_case_add_proc(p->c, name);
	if (!p->p)
		return -ENOMEM;
	p->p->line = p->l.line;
	for (i = 2; i < p->l.n; i++) {
		if (mmr_lex_is(&w[i], "template") && !p->p->is_template) {
			p->p->is_template = true;
		} else if (mmr_parse_split(&w[i], &key, &value) &&
			   mmr_lex_is(&key, "copies") && !copies) {
			copies = true;
			rc = mmr_parse_int(p, &value, 1, MMR_CASE_MAX_COPIES,
					   "copies", &n);
			if (rc)
				return rc;
			p->p->copies = (int)n;
		} else {
			return mmr_parse_fail(p, &w[i],
					      "unknown or second '%.*s' in "
					      "process",
					      ELLIPSIS(&w[i]));
		}
	}
	return 0;
}

static int parse_cpu(struct mmr_parse *p, const struct mmr_word *w)
{
	enum mmr_cpu_kind kind;
	struct mmr_word inner;
	int64_t n;
	int rc;

	if (mmr_lex_is(w, "any"))
		return 0;
	for (kind = MMR_CPU_SAME; kind <= MMR_CPU_FAR; kind++) {
		if (!in_brackets(w, mmr_cpu_word(kind), &inner))
			continue;
		p->t->cpu = kind;
		return mmr_parse_name(p, &inner, "a thread", &p->t->cpu_thread);
	}
	rc = mmr_lex_int(w->s, (size_t)w->len, &n);
	if (rc == -EINVAL)
		return mmr_parse_fail(p, w,
				      "cpu= takes a number, any, or same, "
				      "other, sibling, far(THREAD)");
	if (rc || n < 0 || n > MMR_CHECK_CPU)
		return mmr_parse_fail(p, w, "cpu=N goes from 0 to %d",
				      MMR_CHECK_CPU);
	p->t->cpu = MMR_CPU_NUMBER;
	p->t->cpu_number = (int)n;
	return 0;
}

static int parse_thread_attr(struct mmr_parse *p, const struct mmr_word *w,
			     uint32_t *given)
{
	struct mmr_word key, value;
	uint32_t what;

	if (!mmr_parse_split(w, &key, &value))
		what = mmr_lex_is(w, "template") ? 1 : 0;
	else
		what = mmr_lex_is(&key, "cpu")	  ? 2
		       : mmr_lex_is(&key, "segv") ? 4
						  : 0;
	if (!what || (*given & what))
		return mmr_parse_fail(p, w,
				      "unknown or second '%.*s' in thread",
				      ELLIPSIS(w));
	*given |= what;
	if (what == 1) {
		p->t->is_template = true;
		return 0;
	}
	if (what == 2)
		return parse_cpu(p, &value);
	if (mmr_lex_is(&value, "return"))
		p->t->segv = MMR_SEGV_RETURN;
	else if (!mmr_lex_is(&value, "skip"))
		return mmr_parse_fail(p, &value, "segv= takes skip or return");
	return 0;
}

static int parse_thread(struct mmr_parse *p)
{
	struct mmr_word *w = p->l.word;
	uint32_t given = 0;
	const char *name;
	int i, rc;

	rc = close_thread(p);
	if (rc)
		return rc;
	if (!p->p)
		return mmr_parse_fail(p, w, "a thread before any process");
	if (p->l.n < 2)
		return mmr_parse_fail(p, w, "thread needs a name");
	rc = mmr_parse_name(p, &w[1], "a thread", &name);
	if (rc)
		return rc;
	if (p->nthreads++ == MMR_CASE_MAX_THREADS)
		return mmr_parse_fail(p, w, "more than %d threads",
				      MMR_CASE_MAX_THREADS);
	p->t = mmr_case_add_thread(p->c, p->p, name);
	if (!p->t)
		return -ENOMEM;
	p->t->line = p->l.line;
	p->block[0] = &p->t->body;
	for (i = 2; i < p->l.n; i++) {
		rc = parse_thread_attr(p, &w[i], &given);
		if (rc)
			return rc;
	}
	return 0;
}

static int parse_line(struct mmr_parse *p)
{
	const struct mmr_word *w = p->l.word;
	bool assigns = p->l.n > 1 && mmr_lex_is(&w[1], "=");

	if (!assigns && mmr_lex_is(w, "process")) {
		p->l.in_head = false;
		return parse_process(p);
	}
	if (!assigns && mmr_lex_is(w, "thread"))
		return parse_thread(p);
	if (p->p)
		return parse_stmt(p);
	return mmr_parse_head_line(p);
}

static int parse_magic(struct mmr_parse *p)
{
	const struct mmr_word *w = p->l.word;

	if (!mmr_lex_is(w, "mmrace-case"))
		return mmr_parse_fail(p, w,
				      "this is no case: the first line must "
				      "be 'mmrace-case 1'");
	if (p->l.n != 2 || !mmr_lex_is(&w[1], "1"))
		return mmr_parse_fail(p, &w[p->l.n > 1],
				      "only mmrace-case 1 is known here");
	return 0;
}

static int parse_lines(struct mmr_parse *p)
{
	bool first = true;
	int rc;

	while ((rc = mmr_lex_next(&p->l)) > 0) {
		rc = first ? parse_magic(p) : parse_line(p);
		if (rc)
			return rc;
		first = false;
	}
	if (rc)
		return rc;
	if (first) {
		p->l.line = 1;
		return mmr_parse_fail(p, &(struct mmr_word){.col = 1},
				      "this is no case: it is empty");
	}
	return close_thread(p);
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_';
}

/* The rules know the statement and the word; the text knows the column. */
static void find_column(const struct mmr_parse *p, struct mmr_diag *d,
			const struct mmr_check_place *place)
{
	const char *s = p->l.text, *end = s + p->l.len, *nl;
	size_t n, i, line_len;
	int line = 1;

	if (!place->word || d->line < 1)
		return;
	for (; line < d->line; line++)
		s = (const char *)memchr(s, '\n', (size_t)(end - s)) + 1;
	nl = memchr(s, '\n', (size_t)(end - s));
	line_len = nl ? (size_t)(nl - s) : (size_t)(end - s);
	n = strlen(place->word);
	for (i = (size_t)(d->col - 1); i + n <= line_len; i++) {
		if (memcmp(s + i, place->word, n) != 0 ||
		    (i > 0 && is_name_char(s[i - 1])) ||
		    (i + n < line_len && is_name_char(s[i + n])))
			continue;
		/* `m0 = ..` and `body=..` are not where it is used. */
		if (place->in_args && ((i + n < line_len && s[i + n] == '=') ||
				       i == (size_t)(d->col - 1)))
			continue;
		d->col = (int)i + 1;
		return;
	}
}

static void on_warning(void *arg, const struct mmr_diag *diag,
		       const struct mmr_check_place *place)
{
	struct mmr_parse *p = arg;
	struct mmr_diag d = *diag;

	find_column(p, &d, place);
	p->warn(p->arg, &d);
}

int mmr_case_parse(const char *text, size_t len, struct mmr_case **out,
		   struct mmr_diag *diag,
		   void (*warn)(void *arg, const struct mmr_diag *), void *arg)
{
	struct mmr_check_place place;
	struct mmr_parse *p;
	int rc;

	*out = NULL;
	*diag = (struct mmr_diag){.line = 1, .col = 1};
	if (len > MMR_CASE_MAX_BYTES) {
		snprintf(diag->text, sizeof(diag->text),
			 "a case has %u bytes at most", MMR_CASE_MAX_BYTES);
		return -EINVAL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->l.text = text;
	p->l.len = len;
	p->l.in_head = true;
	p->l.diag = diag;
	p->warn = warn;
	p->arg = arg;
	p->c = mmr_case_new();
	rc = p->c ? parse_lines(p) : -ENOMEM;
	if (!rc) {
		rc = mmr_check_case(p->c, diag, &place,
				    warn ? on_warning : NULL, p);
		if (rc == -EINVAL) {
			find_column(p, diag, &place);
			if (diag->line < 1)
				diag->line = diag->col = 1;
		}
	}
	if (rc)
		mmr_case_free(p->c);
	else
		*out = p->c;
	free(p);
	return rc;
}

int mmr_case_load(const char *path, struct mmr_case **out,
		  struct mmr_diag *diag,
		  void (*warn)(void *arg, const struct mmr_diag *), void *arg)
{
	size_t n = 0, size = MMR_CASE_MAX_BYTES + 1;
	bool is_stdin = strcmp(path, "-") == 0;
	ssize_t got;
	char *buf;
	int fd, rc;

	*out = NULL;
	*diag = (struct mmr_diag){0};
	buf = malloc(size);
	if (!buf)
		return -ENOMEM;
	fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	rc = fd < 0 ? -errno : 0;
	while (!rc && n < size) {
		got = read(fd, buf + n, size - n);
		if (got == 0)
			break;
		if (got > 0)
			n += (size_t)got;
		else if (errno != EINTR)
			rc = -errno;
	}
	if (fd >= 0 && !is_stdin)
		close(fd);
	if (rc)
		snprintf(diag->text, sizeof(diag->text), "cannot be read: %s",
			 strerror(-rc));
	else
		rc = mmr_case_parse(buf, n, out, diag, warn, arg);
	free(buf);
	return rc;
}
