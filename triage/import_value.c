// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pieces of text and what they mean: both formats nest values in brackets and
 * strings, write numbers alike, and differ in their pointers.
 *
 * C constants are those of all operations' tables, so what a descriptor can
 * say can also be read; a few more stand below, which no operation names.
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>

#include "import_impl.h"

struct mmr_imp_const {
	const char *name;
	int len;
	int64_t value;
};

/* Where syzkaller's text has its data area (prog/target.go: encoding address
 * 0x7f0000000000, since 2024 0x200000000000), and where its executor has it. */
#define SYZ_TEXT_OLD 0x7f0000000000ULL
#define SYZ_TEXT_NEW 0x200000000000ULL
#define SYZ_DATA 0x20000000ULL
#define SYZ_SPAN (1ULL << 32)

#define C(n)                                                                   \
	{                                                                      \
#n, (int)sizeof(#n) - 1, n                                     \
	}
/* From the kernel's headers; MAP_FILE and the next two mean nothing to it. */
static const struct mmr_imp_const more_consts[] = {
	C(CLONE_VM),
	C(CLONE_FS),
	C(CLONE_FILES),
	C(CLONE_SIGHAND),
	C(CLONE_PIDFD),
	C(CLONE_PTRACE),
	C(CLONE_VFORK),
	C(CLONE_PARENT),
	C(CLONE_THREAD),
	C(CLONE_NEWNS),
	C(CLONE_SYSVSEM),
	C(CLONE_SETTLS),
	C(CLONE_PARENT_SETTID),
	C(CLONE_CHILD_CLEARTID),
	C(CLONE_DETACHED),
	C(CLONE_UNTRACED),
	C(CLONE_CHILD_SETTID),
	C(CLONE_NEWPID),
	C(CLONE_NEWUSER),
	C(FUTEX_WAIT),
	C(FUTEX_WAKE),
	C(FUTEX_WAIT_BITSET),
	C(FUTEX_WAKE_BITSET),
	C(FUTEX_PRIVATE_FLAG),
	C(FUTEX_CLOCK_REALTIME),
	C(FUTEX_WAIT_PRIVATE),
	C(FUTEX_WAKE_PRIVATE),
	C(FUTEX_WAIT_BITSET_PRIVATE),
	C(FUTEX_WAKE_BITSET_PRIVATE),
	{"MAP_FILE", 8, 0},
	{"MAP_SHARED_VALIDATE", 19, 3},
	{"MAP_SYNC", 8, 0x80000},
	{"MAP_32BIT", 9, 0x40},
	{"PROT_SEM", 8, 8},
	{"PROT_GROWSDOWN", 14, 0x1000000},
	{"PROT_GROWSUP", 12, 0x2000000},
	{"MAP_DENYWRITE", 13, 0},
	{"MAP_EXECUTABLE", 14, 0},
	{"MAP_HUGE_SHIFT", 14, 26},
	{"MFD_CLOEXEC", 11, 1},
	{"O_CLOEXEC", 9, 02000000},
	{"O_NONBLOCK", 10, 04000},
	{"O_RDONLY", 8, 0},
	{"O_RDWR", 6, 2},
	{"NULL", 4, 0},
	{"SIGCHLD", 7, 17},
	{"PTRACE_SEIZE", 12, 0x4206},
};
#undef C

bool mmr_span_is(struct mmr_span s, const char *text)
{
	return s.len >= 0 && (size_t)s.len == strlen(text) &&
	       !memcmp(s.s, text, (size_t)s.len);
}

bool mmr_span_begins(struct mmr_span s, const char *text)
{
	size_t n = strlen(text);

	return s.len >= 0 && (size_t)s.len >= n && !memcmp(s.s, text, n);
}

struct mmr_span mmr_span_trim(struct mmr_span s)
{
	while (s.len > 0 && (*s.s == ' ' || *s.s == '\t'))
		s.s++, s.len--;
	while (s.len > 0 && (s.s[s.len - 1] == ' ' || s.s[s.len - 1] == '\t' ||
			     s.s[s.len - 1] == '\r'))
		s.len--;
	return s;
}

/* Behind the string that begins at s[i]; s.len when it does not end. */
static int skip_string(struct mmr_span s, int i)
{
	char quote = s.s[i++];

	while (i < s.len && s.s[i] != quote)
		i += s.s[i] == '\\' ? 2 : 1;
	return i < s.len ? i + 1 : s.len;
}

/* Behind a comment of strace, such as the number of elements. */
static int skip_comment(struct mmr_span s, int i)
{
	for (i += 2; i + 1 < s.len; i++)
		if (s.s[i] == '*' && s.s[i + 1] == '/')
			return i + 2;
	return s.len;
}

/*
 * The first of the characters in stop that stands outside brackets, strings
 * and comments, from i on; s.len: none; -1: a bracket closes that none opened.
 */
static int find_outside(struct mmr_span s, int i, const char *stop)
{
	int depth = 0;

	while (i < s.len) {
		char ch = s.s[i];

		if (!depth && ch && strchr(stop, ch))
			return i;
		if (ch == '"' || ch == '\'') {
			i = skip_string(s, i);
			continue;
		}
		if (ch == '/' && i + 1 < s.len && s.s[i + 1] == '*') {
			i = skip_comment(s, i);
			continue;
		}
		if (ch == '(' || ch == '[' || ch == '{')
			depth++;
		else if (ch == ')' || ch == ']' || ch == '}')
			depth--;
		if (depth < 0)
			return -1;
		i++;
	}
	return depth ? -1 : s.len;
}

int mmr_span_split(struct mmr_span s, struct mmr_span *out, int max)
{
	int from = 0, n = 0, to;

	if (!mmr_span_trim(s).len)
		return 0;
	for (;;) {
		to = find_outside(s, from, ",");
		if (to < 0)
			return -1;
		if (n < max)
			out[n++] = mmr_span_trim(
				(struct mmr_span){s.s + from, to - from});
		if (to >= s.len)
			return n;
		from = to + 1;
	}
}

int mmr_span_close(struct mmr_span s, int i)
{
	int at = find_outside(s, i, ")]}");

	return at < s.len ? at : -1;
}

struct mmr_span mmr_span_inner(struct mmr_span s)
{
	if (s.len < 2 || !((s.s[0] == '{' && s.s[s.len - 1] == '}') ||
			   (s.s[0] == '[' && s.s[s.len - 1] == ']')))
		return (struct mmr_span){NULL, 0};
	return (struct mmr_span){s.s + 1, s.len - 2};
}

struct mmr_span mmr_span_value(struct mmr_span s)
{
	int eq;

	if (!s.len || strchr("{[\"'", s.s[0]))
		return s;
	/* <r1=>0x0: the value is behind it. */
	if (s.s[0] == '<') {
		const char *end = memchr(s.s, '>', (size_t)s.len);

		if (!end)
			return s;
		s.len -= (int)(end + 1 - s.s);
		s.s = end + 1;
		return s;
	}
	eq = find_outside(s, 0, "=");
	if (eq < 0 || eq >= s.len)
		return s;
	return mmr_span_trim((struct mmr_span){s.s + eq + 1, s.len - eq - 1});
}

static int leaves(struct mmr_span s, struct mmr_span *out, int n, int max,
		  int depth)
{
	struct mmr_span part[64], inner;
	int parts, i;

	s = mmr_span_trim(s);
	/* A pointer in a structure is its address; a name is dropped. */
	if (s.len && s.s[0] != '&')
		s = mmr_span_value(s);
	inner = mmr_span_inner(s);
	if (!inner.s) {
		if (n < max)
			out[n++] = s;
		return n;
	}
	parts = depth > 8 ? 0 : mmr_span_split(inner, part, 64);
	for (i = 0; i < parts; i++)
		n = leaves(part[i], out, n, max, depth + 1);
	return n;
}

int mmr_span_leaves(struct mmr_span s, struct mmr_span *out, int max)
{
	s = mmr_span_trim(s);
	if (s.len && s.s[0] == '&')
		s = mmr_span_value(s);
	return leaves(s, out, 0, max, 0);
}

static int by_name(const void *a, const void *b)
{
	const struct mmr_imp_const *x = a, *y = b;
	int n = x->len < y->len ? x->len : y->len;
	int d = memcmp(x->name, y->name, (size_t)n);

	return d ? d : x->len - y->len;
}

static void add_const(struct mmr_imp *im, const char *name, int64_t value)
{
	/* One name only: "PROT_READ | PROT_WRITE" is two. */
	if (!name || strpbrk(name, " |<(") ||
	    !((*name >= 'A' && *name <= 'Z') || *name == '_'))
		return;
	im->consts[im->nconsts++] =
		(struct mmr_imp_const){name, (int)strlen(name), value};
}

/* Calls fn for each name of each operation; returns how many there are. */
static int each_name(struct mmr_imp *im)
{
	int n = 0;

	for (unsigned int id = 0; id < MMR_OP_LIMIT; id++) {
		const struct mmr_op *op = mmr_op_by_id(id);

		for (int i = 0; op && i < op->nargs; i++) {
			const struct mmr_name *p = op->args[i].names;

			for (; p && p->name; p++, n++)
				if (im->consts)
					add_const(im, p->c, p->value);
		}
	}
	return n;
}

int mmr_imp_consts(struct mmr_imp *im)
{
	size_t n = sizeof(more_consts) / sizeof(more_consts[0]), i;

	im->consts = mmr_imp_alloc(im, ((size_t)each_name(im) + n) *
					       sizeof(*im->consts));
	if (!im->consts)
		return -ENOMEM;
	each_name(im);
	for (i = 0; i < n; i++)
		im->consts[im->nconsts++] = more_consts[i];
	qsort(im->consts, (size_t)im->nconsts, sizeof(*im->consts), by_name);
	return 0;
}

static bool number(struct mmr_span s, int64_t *v)
{
	bool negative = s.len > 1 && s.s[0] == '-';
	int i = negative, base = 10;
	uint64_t n = 0;

	if (i < s.len && s.s[i] == '0' && i + 1 < s.len) {
		base = s.s[i + 1] == 'x' ? 16 : 8;
		i += base == 16 ? 2 : 1;
	}
	if (i >= s.len)
		return false;
	for (; i < s.len; i++) {
		char ch = s.s[i];
		int d = ch >= '0' && ch <= '9'	 ? ch - '0'
			: ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
			: ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
						 : 16;

		if (d >= base ||
		    n > (UINT64_MAX - (uint64_t)d) / (uint64_t)base)
			return false;
		n = n * (uint64_t)base + (uint64_t)d;
	}
	*v = (int64_t)(negative ? -n : n);
	return true;
}

static bool word(struct mmr_imp *im, struct mmr_span s, int64_t *v)
{
	struct mmr_imp_const key = {.name = s.s, .len = s.len}, *found;
	const char *shift;
	int64_t a, b;

	s = mmr_span_trim(s);
	if (number(s, v))
		return true;
	key.name = s.s;
	key.len = s.len;
	found = s.len && im->nconsts
			? bsearch(&key, im->consts, (size_t)im->nconsts,
				  sizeof(*im->consts), by_name)
			: NULL;
	if (found) {
		*v = found->value;
		return true;
	}
	/* 21<<MAP_HUGE_SHIFT */
	shift = s.len > 3 ? memmem(s.s, (size_t)s.len, "<<", 2) : NULL;
	if (!shift)
		return false;
	if (!word(im, (struct mmr_span){s.s, (int)(shift - s.s)}, &a) ||
	    !word(im,
		  (struct mmr_span){shift + 2, (int)(s.s + s.len - shift) - 2},
		  &b) ||
	    a < 0 || b < 0 || b > 40 || a > INT32_MAX)
		return false;
	*v = a << b;
	return true;
}

/* Without the comment behind a value, or the value that "=> x" changed it
 * to. */
static struct mmr_span plain(struct mmr_span s)
{
	int i;
	const char *arrow =
		s.len > 2 ? memmem(s.s, (size_t)s.len, "=>", 2) : NULL;

	for (i = 0; i + 1 < s.len; i++)
		if (s.s[i] == '/' && s.s[i + 1] == '*')
			s.len = i;
	if (arrow && arrow - s.s < s.len)
		s.len = (int)(arrow - s.s);
	return mmr_span_trim(s);
}

static bool is_pointer(struct mmr_span s)
{
	return s.len > 3 && s.s[0] == '&' && s.s[1] == '(';
}

bool mmr_imp_integer(struct mmr_imp *im, struct mmr_span s, int64_t *v)
{
	int64_t part;
	int from = 0, i;

	s = mmr_span_trim(s);
	if (is_pointer(s)) {
		uint64_t a;

		if (!mmr_imp_address(im, s, &a))
			return false;
		*v = (int64_t)a;
		return true;
	}
	s = plain(mmr_span_value(s));
	if (mmr_span_is(s, "nil")) {
		*v = 0;
		return true;
	}
	*v = 0;
	for (i = 0; i <= s.len; i++) {
		if (i < s.len && s.s[i] != '|')
			continue;
		if (!word(im, (struct mmr_span){s.s + from, i - from}, &part))
			return false;
		*v |= part;
		from = i + 1;
	}
	return s.len > 0;
}

bool mmr_imp_address(struct mmr_imp *im, struct mmr_span s, uint64_t *a)
{
	struct mmr_span in;
	int64_t v;
	int end;

	s = mmr_span_trim(s);
	if (!is_pointer(s)) {
		if (!mmr_imp_integer(im, s, &v))
			return false;
		*a = (uint64_t)v;
	} else {
		in = (struct mmr_span){s.s + 2, s.len - 2};
		for (end = 0; end < in.len && in.s[end] != ')' &&
			      in.s[end] != '/' && in.s[end] != '=';
		     end++)
			;
		in.len = end;
		/* (0x7f0000001000+0x20) of older programs */
		for (end = 1; end < in.len && in.s[end] != '+'; end++)
			;
		if (!number((struct mmr_span){in.s,
					      end < in.len ? end : in.len},
			    &v))
			return false;
		*a = (uint64_t)v;
		if (end < in.len) {
			in.s += end + 1;
			in.len -= end + 1;
			if (!number(in, &v))
				return false;
			*a += (uint64_t)v;
		}
	}
	if (im->o->from != MMR_IMPORT_SYZ)
		return true;
	if (*a - (SYZ_TEXT_OLD - SYZ_SPAN) < 2 * SYZ_SPAN)
		*a = *a - SYZ_TEXT_OLD + SYZ_DATA;
	else if (*a - (SYZ_TEXT_NEW - SYZ_SPAN) < 2 * SYZ_SPAN)
		*a = *a - SYZ_TEXT_NEW + SYZ_DATA;
	return true;
}
