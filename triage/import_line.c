// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One line of strace.  In front stand, depending on its options, a pid
 * ("[pid  7] " on a terminal, "7 " in a file) and a time (-r, -t, -tt, -ttt);
 * behind, with -T, the time that the call took.
 */
#include "import_strace.h"

#include <string.h>

#define SECOND 1000000000LL
#define UNFINISHED "<unfinished ...>"
#define EPOCH_LEAST 100000000LL /* s: a smaller one is since the last line */

static bool is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

static void skip_blanks(struct mmr_span *s)
{
	while (s->len && *s->s == ' ')
		s->s++, s->len--;
}

/* A number of at most 15 digits at the front; how many characters, 0: none. */
static int digits(struct mmr_span s, int64_t *v)
{
	int i;

	*v = 0;
	for (i = 0; i < s.len && i < 15 && is_digit(s.s[i]); i++)
		*v = *v * 10 + s.s[i] - '0';
	return i;
}

/* The digits behind a point, as ns. */
static int fraction(struct mmr_span s, int64_t *ns)
{
	int64_t unit = SECOND / 10;
	int i;

	for (i = 0; i < s.len && is_digit(s.s[i]); i++, unit /= 10)
		*ns += (s.s[i] - '0') * unit;
	return i;
}

/* 12:34:56[.789], 1690000000.123 or 0.000123; how many characters. */
static int read_time(struct mmr_span s, struct mmr_strace_line *l)
{
	int64_t v, ns = 0;
	int n = digits(s, &v), parts = 1, k;

	if (!n)
		return 0;
	while (n + 1 < s.len && s.s[n] == ':' && parts < 3) {
		int64_t w;

		k = digits((struct mmr_span){s.s + n + 1, s.len - n - 1}, &w);
		if (!k)
			return 0;
		v = v * 60 + w;
		n += k + 1;
		parts++;
	}
	if (n < s.len && s.s[n] == '.')
		n += 1 + fraction((struct mmr_span){s.s + n + 1, s.len - n - 1},
				  &ns);
	else if (parts == 1)
		return 0; /* a pid */
	if ((parts != 1 && parts != 3) || n >= s.len || s.s[n] != ' ')
		return 0;
	if (v > INT64_MAX / SECOND - 1)
		return 0;
	l->time_ns = v * SECOND + ns;
	l->relative = parts == 1 && v < EPOCH_LEAST;
	return n;
}

/* [  9] of -n, [00007f..] of -i: the number of a call, where it came from. */
static void skip_numbers(struct mmr_span *s)
{
	int i;

	while (s->len && *s->s == '[') {
		for (i = 1; i < s->len && (s->s[i] == ' ' || s->s[i] == '?' ||
					   is_digit(s->s[i]) ||
					   (s->s[i] >= 'a' && s->s[i] <= 'f'));
		     i++)
			;
		if (i >= s->len || s->s[i] != ']')
			return;
		*s = (struct mmr_span){s->s + i + 1, s->len - i - 1};
		skip_blanks(s);
	}
}

static void read_prefix(struct mmr_span *s, struct mmr_strace_line *l)
{
	int64_t pid;
	int n;

	skip_blanks(s);
	if (mmr_span_begins(*s, "[pid ")) {
		struct mmr_span in = {s->s + 5, s->len - 5};

		skip_blanks(&in);
		n = digits(in, &pid);
		if (n && n < in.len && in.s[n] == ']') {
			l->pid = pid;
			*s = (struct mmr_span){in.s + n + 1, in.len - n - 1};
		}
	} else {
		n = digits(*s, &pid);
		if (n && n < s->len && s->s[n] == ' ') {
			l->pid = pid;
			*s = (struct mmr_span){s->s + n, s->len - n};
		}
	}
	skip_blanks(s);
	n = read_time(*s, l);
	*s = (struct mmr_span){s->s + n, s->len - n};
	skip_blanks(s);
	skip_numbers(s);
}

static int name_length(struct mmr_span s)
{
	int i = 0;

	while (i < s.len && (is_digit(s.s[i]) || s.s[i] == '_' ||
			     (s.s[i] >= 'a' && s.s[i] <= 'z') ||
			     (s.s[i] >= 'A' && s.s[i] <= 'Z')))
		i++;
	return i;
}

void mmr_strace_read(struct mmr_span s, struct mmr_strace_line *l)
{
	const char *at;
	int n;

	*l = (struct mmr_strace_line){.pid = -1, .time_ns = -1};
	s = mmr_span_trim(s);
	read_prefix(&s, l);
	l->body = s;
	if (mmr_span_begins(s, "+++ ")) {
		l->kind = MMR_STRACE_EXITED;
		return;
	}
	/* On a terminal a new task is announced in the middle of the call that
	 * made it, and the rest stands on a line of its own. */
	if (mmr_span_begins(s, "--- ") || mmr_span_begins(s, "strace: ") ||
	    mmr_span_begins(s, "> ") || mmr_span_is(s, UNFINISHED)) {
		l->kind = MMR_STRACE_NOTE;
		return;
	}
	if (mmr_span_begins(s, "<... ")) {
		l->name = (struct mmr_span){s.s + 5, 0};
		l->name.len =
			name_length((struct mmr_span){s.s + 5, s.len - 5});
		at = memmem(s.s, (size_t)s.len, "resumed>", 8);
		if (!at || !l->name.len)
			return;
		l->kind = MMR_STRACE_RESUMED;
		l->body = mmr_span_trim(
			(struct mmr_span){at + 8, (int)(s.s + s.len - at) - 8});
		return;
	}
	n = name_length(s);
	if (!n || n >= s.len || s.s[n] != '(')
		return;
	l->name = (struct mmr_span){s.s, n};
	l->kind = MMR_STRACE_CALL;
	n = (int)strlen(UNFINISHED);
	if (s.len > n && !memcmp(s.s + s.len - n, UNFINISHED, (size_t)n)) {
		l->kind = MMR_STRACE_BEGUN;
		l->body.len -= n;
		return;
	}
	at = memmem(s.s, (size_t)s.len, "strace: Process ", 16);
	if (at && s.len > 8 && !memcmp(s.s + s.len - 8, "attached", 8)) {
		l->kind = MMR_STRACE_BEGUN;
		l->body.len = (int)(at - s.s);
	}
}

/* The last ")" that a result follows. */
static int find_result(struct mmr_span s)
{
	int i, k;

	for (i = s.len - 1; i >= 0; i--) {
		if (s.s[i] != '=' || i + 1 >= s.len || s.s[i + 1] != ' ')
			continue;
		for (k = i - 1; k >= 0 && s.s[k] == ' '; k--)
			;
		if (k >= 0 && s.s[k] == ')')
			return k;
	}
	return -1;
}

/* <0.000012> at the end. */
static int64_t read_took(struct mmr_span *s)
{
	int64_t v, ns = 0;
	int i = s->len - 1, n;

	if (i < 0 || s->s[i] != '>')
		return -1;
	while (i > 0 && s->s[i] != '<')
		i--;
	n = digits((struct mmr_span){s->s + i + 1, s->len - i - 1}, &v);
	if (!n || i + 1 + n >= s->len || s->s[i + 1 + n] != '.' || v > 1000000)
		return -1;
	fraction((struct mmr_span){s->s + i + n + 2, s->len - i - n - 2}, &ns);
	s->len = i;
	*s = mmr_span_trim(*s);
	return v * SECOND + ns;
}

/* 0x7f.., 3</lib/x>, -1 EINVAL (Invalid argument), ? */
static void read_result(struct mmr_span s, struct mmr_imp_call *c)
{
	struct mmr_imp im = {0};
	char name[24];
	int n = 0, k;

	while (n < s.len && s.s[n] != ' ' && s.s[n] != '<')
		n++;
	if (!mmr_imp_integer(&im, (struct mmr_span){s.s, n}, &c->ret))
		return;
	c->returned = true;
	if (c->ret != -1 || n + 1 >= s.len)
		return;
	for (k = 0; n + 1 + k < s.len && k < 23 && s.s[n + 1 + k] != ' '; k++)
		name[k] = s.s[n + 1 + k];
	name[k] = '\0';
	c->err = mmr_errno_value(name);
	if (c->err <= 0)
		c->err = 1; /* some error that a case has no name for */
}

bool mmr_strace_call(struct mmr_span body, struct mmr_imp_call *c,
		     int64_t *took_ns)
{
	int n = name_length(body), end = find_result(body);
	struct mmr_span rest;

	if (!n || end <= n || body.s[n] != '(')
		return false;
	c->name = (struct mmr_span){body.s, n};
	c->text = (struct mmr_span){body.s, end + 1};
	rest = (struct mmr_span){body.s + end + 1, body.len - end - 1};
	rest = mmr_span_trim(rest);
	*took_ns = read_took(&rest);
	/* "= " */
	rest.s++, rest.len--;
	read_result(mmr_span_trim(rest), c);
	c->nargs =
		mmr_span_split((struct mmr_span){body.s + n + 1, end - n - 1},
			       c->arg, MMR_IMP_ARGS);
	if (c->nargs < 0)
		c->nargs = 0;
	return true;
}
