// SPDX-License-Identifier: GPL-2.0-or-later
/* Known signatures: the file's parser, and matching. */
#include "known.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

#define ENTRIES_MAX 256
#define FILE_MAX (1u << 20)
#define DAY 86400
#define AHEAD_MAX (366LL * DAY)
#define LITERAL_MIN 4 /* letters of a pattern besides its verdict */

struct entry {
	char pattern[200], reason[200], until[16];
	time_t end; /* first second past its last day */
	_Atomic uint64_t count;
};

struct mmr_known {
	int n;
	struct entry e[ENTRIES_MAX];
};

struct parser {
	struct mmr_known *k;
	struct mmr_diag *diag;
	time_t today;
	int line;
	int state; /* 0: wants known, 1: reason, 2: until */
};

static int bad(struct parser *p, size_t col, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int bad(struct parser *p, size_t col, const char *fmt, ...)
{
	va_list ap;

	p->diag->line = p->line;
	p->diag->col = (int)col + 1;
	va_start(ap, fmt);
	vsnprintf(p->diag->text, sizeof(p->diag->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool is_verdict(const char *s, size_t n)
{
	int v;

	for (v = 0; v < MMR_VERDICTS; v++)
		if (mmr_verdict_is_hit((enum mmr_verdict)v) &&
		    strlen(mmr_verdict_name((enum mmr_verdict)v)) == n &&
		    !strncmp(mmr_verdict_name((enum mmr_verdict)v), s, n))
			return true;
	return false;
}

/* A verdict and enough of what follows it: no blanket. */
static int check_pattern(struct parser *p, size_t col, const char *s)
{
	size_t n = strcspn(s, " "), i, literal = 0;

	if (!is_verdict(s, n))
		return bad(p, col,
			   "a pattern begins with a whole verdict, such as "
			   "hang or long-syscall, not with '%.*s'",
			   (int)(n < 40 ? n : 40), s);
	for (i = n; s[i]; i++)
		literal += isalnum((unsigned char)s[i]) != 0;
	if (literal < LITERAL_MIN)
		return bad(p, col + n,
			   "a pattern names more than the verdict: the "
			   "operation, or a function of the kernel");
	return 0;
}

static int check_day(struct parser *p, size_t col, struct entry *e)
{
	struct tm tm = {0};
	const char *end = strptime(e->until, "%Y-%m-%d", &tm);
	char again[16] = "";
	time_t t = end ? timegm(&tm) : 0;

	if (end)
		strftime(again, sizeof(again), "%Y-%m-%d", &tm);
	/* Printed again it is the same: no 30th of February. */
	if (!end || *end || strcmp(again, e->until))
		return bad(p, col, "'%s' is no day; it wants YYYY-MM-DD",
			   e->until);
	if (t > p->today + AHEAD_MAX)
		return bad(p, col,
			   "%s is more than a year ahead: what is known "
			   "wants to be looked at again",
			   e->until);
	e->end = t + DAY;
	return 0;
}

static int copy(struct parser *p, size_t col, const char *s, char *out,
		size_t n)
{
	if (strlen(s) >= n)
		return bad(p, col, "too long: at most %zu characters", n - 1);
	snprintf(out, n, "%s", s);
	return 0;
}

static int take_line(struct parser *p, const char *key, const char *value,
		     size_t col)
{
	static const char *const keys[] = {"known", "reason", "until"};
	struct entry *e = &p->k->e[p->k->n];
	int err;

	if (strcmp(key, keys[p->state])) {
		if (p->state)
			return bad(p, 0, "'%s' is missing before '%s'",
				   keys[p->state], key);
		return bad(p, 0, "'%s' instead of 'known'", key);
	}
	if (!*value)
		return bad(p, col, "'%s' wants something behind it", key);
	switch (p->state) {
	case 0:
		if (p->k->n == ENTRIES_MAX)
			return bad(p, 0, "more than %d entries", ENTRIES_MAX);
		err = copy(p, col, value, e->pattern, sizeof(e->pattern));
		if (!err)
			err = check_pattern(p, col, value);
		break;
	case 1:
		err = copy(p, col, value, e->reason, sizeof(e->reason));
		break;
	default:
		err = copy(p, col, value, e->until, sizeof(e->until));
		if (!err)
			err = check_day(p, col, e);
		p->k->n += !err;
		break;
	}
	p->state = (p->state + 1) % 3;
	return err;
}

static int parse_line(struct parser *p, const char *line, size_t len)
{
	char buf[512], *key, *value;
	size_t n;

	if (len >= sizeof(buf))
		return bad(p, 0, "the line is too long");
	if (memchr(line, '\0', len))
		return bad(p, 0, "a NUL byte: this is no text");
	memcpy(buf, line, len);
	buf[len] = '\0';
	while (len && isspace((unsigned char)buf[len - 1]))
		buf[--len] = '\0';
	key = buf + strspn(buf, " \t");
	if (!*key || *key == '#')
		return 0;
	n = strcspn(key, " \t");
	value = key + n;
	value += strspn(value, " \t");
	key[n] = '\0';
	return take_line(p, key, value, (size_t)(value - buf));
}

int mmr_known_parse(const char *text, size_t len, time_t today,
		    struct mmr_known **out, struct mmr_diag *diag)
{
	struct parser p = {.diag = diag, .today = today};
	const char *end = text + len, *nl;
	int err = 0;

	memset(diag, 0, sizeof(*diag));
	p.k = calloc(1, sizeof(*p.k));
	if (!p.k)
		return -ENOMEM;
	while (text < end && !err) {
		nl = memchr(text, '\n', (size_t)(end - text));
		if (!nl)
			nl = end;
		p.line++;
		err = parse_line(&p, text, (size_t)(nl - text));
		text = nl + 1;
	}
	if (!err && p.state)
		err = bad(&p, 0, "the last entry has no '%s'",
			  p.state == 1 ? "reason" : "until");
	if (err) {
		mmr_known_free(p.k);
		return err;
	}
	*out = p.k;
	return 0;
}

int mmr_known_load(const char *path, struct mmr_known **out,
		   struct mmr_diag *diag)
{
	FILE *f = fopen(path, "re");
	char *text;
	size_t n;
	int err;

	memset(diag, 0, sizeof(*diag));
	if (!f)
		return -errno;
	text = malloc(FILE_MAX);
	if (!text) {
		fclose(f);
		return -ENOMEM;
	}
	n = fread(text, 1, FILE_MAX, f);
	err = ferror(f) ? -EIO : n == FILE_MAX ? -EFBIG : 0;
	fclose(f);
	if (!err)
		err = mmr_known_parse(text, n, time(NULL), out, diag);
	free(text);
	return err;
}

void mmr_known_free(struct mmr_known *k)
{
	free(k);
}

/* `*` is any text; backs up to the last star only, so it takes len * len at
 * most. */
static bool matches(const char *pat, const char *s)
{
	const char *star = NULL, *from = s;

	while (*s) {
		if (*pat == '*') {
			star = pat++;
			from = s;
		} else if (*pat == *s) {
			pat++;
			s++;
		} else if (star) {
			pat = star + 1;
			s = ++from;
		} else {
			return false;
		}
	}
	while (*pat == '*')
		pat++;
	return !*pat;
}

const char *mmr_known_match(struct mmr_known *k, const char *signature,
			    time_t now, char *until)
{
	int i;

	for (i = 0; k && i < k->n; i++) {
		struct entry *e = &k->e[i];

		if (now >= e->end || !matches(e->pattern, signature))
			continue;
		atomic_fetch_add(&e->count, 1);
		snprintf(until, 16, "%s", e->until);
		return e->reason;
	}
	return NULL;
}

json_t *mmr_known_json(const struct mmr_known *k)
{
	json_t *all = json_array();
	time_t now = time(NULL);
	int i;

	for (i = 0; k && i < k->n; i++) {
		const struct entry *e = &k->e[i];

		json_array_append_new(
			all,
			json_pack("{s:s, s:s, s:s, s:b, s:I}", "pattern",
				  e->pattern, "reason", e->reason, "until",
				  e->until, "expired", now >= e->end, "count",
				  (json_int_t)atomic_load(&e->count)));
	}
	return all;
}
