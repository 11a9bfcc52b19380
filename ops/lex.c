// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines, words and numbers of a case text.
 *
 * Nothing here asks the locale: a case means the same everywhere.  A case
 * from a stranger may hold anything, so every byte is looked at before it
 * means something: no NUL, no control characters, bytes from 0x80 on only as
 * UTF-8 and only in titles and comments.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "lex.h"

static int __attribute__((format(printf, 3, 4)))
fail(struct mmr_lex *l, int col, const char *fmt, ...)
{
	va_list ap;

	l->diag->line = l->line;
	l->diag->col = col;
	va_start(ap, fmt);
	vsnprintf(l->diag->text, sizeof(l->diag->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Length of the well-formed UTF-8 character at s, 0 when it is none. */
static int utf8_len(const unsigned char *s, size_t n)
{
	static const unsigned int least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned int c = s[0], v;
	int len, i;

	if (c < 0x80)
		return 1;
	len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	if (c < 0xc2 || c > 0xf4 || (size_t)len > n)
		return 0;
	v = c & (0x7fu >> len);
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (s[i] & 0x3f);
	}
	/* Overlong, a surrogate, beyond Unicode, or a C1 control. */
	if (v < least[len] || (v >= 0xd800 && v <= 0xdfff) || v > 0x10ffff ||
	    v < 0xa0)
		return 0;
	return len;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Looks at the bytes from..to of the current line.  0 or -EINVAL. */
static int check_bytes(struct mmr_lex *l, const char *line, int from, int to,
		       bool free_text)
{
	int i = from, n;
	unsigned char c;

	while (i < to) {
		c = (unsigned char)line[i];
		if (c == 0)
			return fail(l, i + 1, "a NUL byte: this is no text");
		if (c == '\r')
			return fail(l, i + 1,
				    "a carriage return: lines end in a line "
				    "feed alone");
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return fail(l, i + 1, "control character 0x%02x", c);
		if (c >= 0x80 && !free_text)
			return fail(l, i + 1,
				    "byte 0x%02x: only titles and comments "
				    "hold more than ASCII",
				    c);
		n = utf8_len((const unsigned char *)line + i, (size_t)(to - i));
		if (n == 0)
			return fail(l, i + 1, "byte 0x%02x is no UTF-8", c);
		i += n;
	}
	return 0;
}

/* The rest of the line as one word. */
static int take_free_text(struct mmr_lex *l, const char *line, int from, int to)
{
	while (to > from && is_blank(line[to - 1]))
		to--;
	if (to == from)
		return 0;
	l->word[l->n++] = (struct mmr_word){line + from, to - from, from + 1};
	return check_bytes(l, line, from, to, mmr_lex_is(&l->word[0], "title"));
}

/* Splits one line.  0 or -EINVAL. */
static int split(struct mmr_lex *l, const char *line, int len)
{
	int i = 0, start, rc;

	l->n = 0;
	for (;;) {
		while (i < len && is_blank(line[i]))
			i++;
		if (i == len)
			return 0;
		if (line[i] == '#')
			return check_bytes(l, line, i, len, true);
		if (l->n == MMR_LEX_WORDS)
			return fail(l, i + 1, "more than %d words in a line",
				    MMR_LEX_WORDS);
		start = i;
		while (i < len && !is_blank(line[i]))
			i++;
		rc = check_bytes(l, line, start, i, false);
		if (rc)
			return rc;
		l->word[l->n++] =
			(struct mmr_word){line + start, i - start, start + 1};
		if (l->in_head &&
		    ((l->n == 1 && mmr_lex_is(&l->word[0], "title")) ||
		     (l->n == 2 && mmr_lex_is(&l->word[0], "fixed")))) {
			while (i < len && is_blank(line[i]))
				i++;
			return take_free_text(l, line, i, len);
		}
	}
}

int mmr_lex_next(struct mmr_lex *l)
{
	const char *line, *end;
	size_t len;
	int rc;

	while (l->pos < l->len) {
		line = l->text + l->pos;
		end = memchr(line, '\n', l->len - l->pos);
		len = end ? (size_t)(end - line) : l->len - l->pos;
		l->pos += len + (end ? 1 : 0);
		l->line++;
		rc = split(l, line, (int)len);
		if (rc)
			return rc;
		if (l->n)
			return 1;
	}
	return 0;
}

bool mmr_lex_is(const struct mmr_word *w, const char *s)
{
	size_t n = strlen(s);

	return (size_t)w->len == n && memcmp(w->s, s, n) == 0;
}

bool mmr_lex_is_name(const char *s, size_t len)
{
	static const char *const reserved[] = {"process", "thread", "loop",
					       "end", "idle"};
	size_t i;
	char c;

	if (len == 0 || len >= MMR_CASE_NAME_LEN)
		return false;
	for (i = 0; i < len; i++) {
		c = s[i];
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    c == '_' || (i > 0 && c >= '0' && c <= '9'))
			continue;
		return false;
	}
	for (i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (strlen(reserved[i]) == len &&
		    memcmp(s, reserved[i], len) == 0)
			return false;
	return true;
}

bool mmr_lex_is_text(const char *s, size_t len)
{
	size_t i = 0;
	int n;

	while (i < len) {
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
		n = utf8_len((const unsigned char *)s + i, len - i);
		if (n == 0)
			return false;
		i += (size_t)n;
	}
	return true;
}

/* Digits at the start of s; *used of them. */
static int digits(const char *s, size_t len, int64_t *v, size_t *used)
{
	int64_t n = 0;
	size_t i;

	for (i = 0; i < len && s[i] >= '0' && s[i] <= '9'; i++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, s[i] - '0', &n))
			return -ERANGE;
	if (i == 0)
		return -EINVAL;
	*v = n;
	*used = i;
	return 0;
}

int mmr_lex_int(const char *s, size_t len, int64_t *v)
{
	bool minus = len > 0 && s[0] == '-';
	size_t used;
	int rc;

	rc = digits(s + minus, len - minus, v, &used);
	if (rc)
		return rc;
	if (used + minus != len)
		return -EINVAL;
	if (minus)
		*v = -*v;
	return 0;
}

int mmr_lex_seed(const char *s, size_t len, uint64_t *v)
{
	uint64_t base = 10, n = 0, digit;
	size_t i = 0;

	if (len > 2 && s[0] == '0' && s[1] == 'x') {
		base = 16;
		i = 2;
	}
	if (i == len)
		return -EINVAL;
	for (; i < len; i++) {
		if (s[i] >= '0' && s[i] <= '9')
			digit = (uint64_t)(s[i] - '0');
		else if (base == 16 && s[i] >= 'a' && s[i] <= 'f')
			digit = (uint64_t)(s[i] - 'a' + 10);
		else if (base == 16 && s[i] >= 'A' && s[i] <= 'F')
			digit = (uint64_t)(s[i] - 'A' + 10);
		else
			return -EINVAL;
		if (__builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, digit, &n))
			return -ERANGE;
	}
	*v = n;
	return 0;
}

int mmr_lex_time(const char *s, size_t len, int64_t *ns)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {
		{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	bool minus = len > 0 && s[0] == '-';
	size_t used, i;
	int rc;

	s += minus;
	len -= minus;
	rc = digits(s, len, ns, &used);
	if (rc)
		return rc;
	if (used == len)
		return *ns == 0 ? 0 : -EINVAL;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].name) != len - used ||
		    memcmp(units[i].name, s + used, len - used) != 0)
			continue;
		if (__builtin_mul_overflow(*ns, units[i].ns, ns))
			return -ERANGE;
		if (minus)
			*ns = -*ns;
		return 0;
	}
	return -EINVAL;
}

int mmr_lex_size(const char *s, size_t len, int64_t *count, enum mmr_unit *unit)
{
	int64_t factor = 1;
	size_t used;
	int rc;

	*unit = MMR_UNIT_BYTE;
	rc = digits(s, len, count, &used);
	if (rc)
		return rc;
	if (used == len)
		return 0;
	if (used + 1 != len)
		return -EINVAL;
	switch (s[used]) {
	case 'p':
		*unit = MMR_UNIT_PAGE;
		break;
	case 'h':
		*unit = MMR_UNIT_HUGE;
		break;
	case 'K':
		factor = 1LL << 10;
		break;
	case 'M':
		factor = 1LL << 20;
		break;
	case 'G':
		factor = 1LL << 30;
		break;
	default:
		return -EINVAL;
	}
	return __builtin_mul_overflow(*count, factor, count) ? -ERANGE : 0;
}

int mmr_case_parse_time(const char *s, int64_t *ns)
{
	/* Negative times are for ranges only. */
	if (s[0] == '-' || mmr_lex_time(s, strlen(s), ns))
		return -EINVAL;
	return 0;
}

int mmr_case_parse_size(const char *s, int64_t *count, enum mmr_unit *unit)
{
	return mmr_lex_size(s, strlen(s), count, unit) ? -EINVAL : 0;
}
