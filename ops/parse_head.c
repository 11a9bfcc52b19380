// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Header lines of a case: what it is, what it needs, how long it runs, what
 * must hold, what is known of it.
 */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "need_probe.h"
#include "parse.h"
#include "pool.h"
#include "print.h"
#include "setting.h"

#define CHECK_ONE(rc)                                                          \
	do {                                                                   \
		int rc_ = (rc);                                                \
		if (rc_)                                                       \
			return rc_;                                            \
	} while (0)

/* A word for `origin` and `fixed`: printable, bounded. */
static int token(struct mmr_parse *p, const struct mmr_word *w, const char **s)
{
	if (w->len == 0)
		return mmr_parse_fail(p, w, "an empty value");
	if (w->len > 64)
		return mmr_parse_fail(p, w, "longer than 64 characters");
	if (memchr(w->s, '#', (size_t)w->len) ||
	    memchr(w->s, '"', (size_t)w->len))
		return mmr_parse_fail(p, w, "no # and no \" here");
	return mmr_parse_copy(p, w, s);
}

/* Free text with each run of blanks as one space. */
static int free_text(struct mmr_parse *p, const struct mmr_word *w,
		     const char **out)
{
	char *copy = mmr_pool_alloc(p->c, (size_t)w->len + 1);
	int i, n = 0;
	char c;

	if (!copy)
		return -ENOMEM;
	for (i = 0; i < w->len; i++) {
		c = w->s[i] == '\t' ? ' ' : w->s[i];
		if (c == ' ' && (n == 0 || copy[n - 1] == ' '))
			continue;
		copy[n++] = c;
	}
	while (n > 0 && copy[n - 1] == ' ')
		copy[--n] = 0;
	if (n == 0)
		return mmr_parse_fail(p, w, "an empty text");
	if (n > MMR_LEX_TITLE)
		return mmr_parse_fail(p, w, "longer than %d bytes",
				      MMR_LEX_TITLE);
	*out = copy;
	return 0;
}

static int head_title(struct mmr_parse *p)
{
	if (p->l.n != 2)
		return mmr_parse_fail(p, &p->l.word[0], "title needs a text");
	return free_text(p, &p->l.word[1], &p->c->title);
}

static int head_origin(struct mmr_parse *p)
{
	struct mmr_origin *o = &p->c->origin;
	struct mmr_word key, value;
	int64_t n;
	int i;

	for (i = 1; i < p->l.n; i++) {
		if (!mmr_parse_split(&p->l.word[i], &key, &value))
			return mmr_parse_fail(p, &p->l.word[i],
					      "origin takes NAME=VALUE");
		if (mmr_lex_is(&key, "seed") && !o->has_seed) {
			if (mmr_lex_seed(value.s, (size_t)value.len, &o->seed))
				return mmr_parse_fail(
					p, &value,
					"a seed is a 64-bit number, decimal "
					"or 0x and hexadecimal");
			o->has_seed = true;
		} else if (mmr_lex_is(&key, "gen") && !o->gen) {
			CHECK_ONE(mmr_parse_int(p, &value, 1, 1000000, "gen",
						&n));
			o->gen = (int)n;
		} else if (mmr_lex_is(&key, "cpus") && !o->cpus) {
			CHECK_ONE(mmr_parse_int(p, &value, 1, 1000000, "cpus",
						&n));
			o->cpus = (int)n;
		} else if (mmr_lex_is(&key, "tool") && !o->tool) {
			CHECK_ONE(token(p, &value, &o->tool));
		} else if (mmr_lex_is(&key, "kernel") && !o->kernel) {
			CHECK_ONE(token(p, &value, &o->kernel));
		} else if (mmr_lex_is(&key, "arch") && !o->arch) {
			CHECK_ONE(token(p, &value, &o->arch));
		} else if (mmr_lex_is(&key, "profile") && !o->profile) {
			CHECK_ONE(token(p, &value, &o->profile));
		} else {
			return mmr_parse_fail(p, &key,
					      "unknown or second '%.*s' in "
					      "origin",
					      ELLIPSIS(&key));
		}
	}
	return p->l.n > 1 ? 0
			  : mmr_parse_fail(p, &p->l.word[0],
					   "origin takes NAME=VALUE");
}

/* KIND>=N, KIND=NAME, or KIND; the kind without what follows. */
static int need_kind(const struct mmr_word *w, enum mmr_need_kind *kind)
{
	struct mmr_word word = *w;
	int i;

	for (i = 0; i < w->len; i++)
		if (w->s[i] == '>' || w->s[i] == '=')
			break;
	word.len = i;
	for (i = MMR_NEED_CPUS; i <= MMR_NEED_LAST; i++) {
		if (mmr_lex_is(&word, mmr_need_word((enum mmr_need_kind)i))) {
			*kind = (enum mmr_need_kind)i;
			return word.len;
		}
	}
	return -EINVAL;
}

static int parse_need(struct mmr_parse *p, const struct mmr_word *w,
		      struct mmr_need *need)
{
	int used = need_kind(w, &need->kind);
	struct mmr_word rest;
	enum mmr_unit unit;
	const char *sign;

	if (used < 0)
		return mmr_parse_fail(p, w, "unknown need '%.*s'", ELLIPSIS(w));
	rest = (struct mmr_word){w->s + used, w->len - used, w->col + used};
	if (need->kind == MMR_NEED_THP || need->kind == MMR_NEED_MEMCG ||
	    need->kind == MMR_NEED_CORE) {
		if (rest.len)
			return mmr_parse_fail(p, &rest, "%s stands alone",
					      mmr_need_word(need->kind));
		return 0;
	}
	sign = need->kind == MMR_NEED_CPUS || need->kind == MMR_NEED_NODES ||
			       need->kind == MMR_NEED_HUGEPAGES ||
			       need->kind == MMR_NEED_MEMORY ||
			       need->kind == MMR_NEED_SWAP
		       ? ">="
		       : "=";
	used = (int)strlen(sign);
	if (rest.len < used || memcmp(rest.s, sign, (size_t)used) != 0)
		return mmr_parse_fail(p, w, "expected %s%s",
				      mmr_need_word(need->kind), sign);
	rest = (struct mmr_word){rest.s + used, rest.len - used,
				 rest.col + used};
	if (need->kind == MMR_NEED_MEMORY || need->kind == MMR_NEED_SWAP) {
		if (mmr_lex_size(rest.s, (size_t)rest.len, &need->n, &unit) ||
		    unit != MMR_UNIT_BYTE || need->n < 1)
			return mmr_parse_fail(p, &rest,
					      "%s>= takes a number with "
					      "K, M or G",
					      mmr_need_word(need->kind));
		return 0;
	}
	if (sign[0] == '>')
		return mmr_parse_int(p, &rest, 1, 1000000000,
				     mmr_need_word(need->kind), &need->n);
	CHECK_ONE(token(p, &rest, &need->name));
	if (!mmr_need_known(need))
		return mmr_parse_fail(
			p, &rest, "unknown %s '%.*s'",
			need->kind == MMR_NEED_WRITES	 ? "setting"
			: need->kind == MMR_NEED_ARCH	 ? "architecture"
			: need->kind == MMR_NEED_SYSCALL ? "system call"
			: need->kind == MMR_NEED_FEATURE ? "feature"
							 : "capability",
			ELLIPSIS(&rest));
	return 0;
}

static int head_needs(struct mmr_parse *p)
{
	struct mmr_case *c = p->c;
	struct mmr_need need, *old;
	int i, j;

	for (i = 1; i < p->l.n; i++) {
		need = (struct mmr_need){0};
		CHECK_ONE(parse_need(p, &p->l.word[i], &need));
		for (j = 0; j < c->nneeds; j++) {
			old = &c->needs[j];
			if (old->kind == need.kind &&
			    (!need.name || strcmp(old->name, need.name) == 0))
				return mmr_parse_fail(p, &p->l.word[i],
						      "given twice");
		}
		if (c->nneeds == MMR_CHECK_NEEDS)
			return mmr_parse_fail(p, &p->l.word[i],
					      "more than %d needs",
					      MMR_CHECK_NEEDS);
		CHECK_ONE(mmr_case_add_need(c, need.kind, need.n, need.name));
	}
	return p->l.n > 1 ? 0 : mmr_parse_fail(p, &p->l.word[0], "needs what?");
}

static int set_value(struct mmr_parse *p, int index, const struct mmr_word *w,
		     int64_t *v)
{
	const struct mmr_setting_info *s = &mmr_setting_table[index];
	char words[120] = "";
	size_t n = 0, i;

	if (s->kind == MMR_SETTING_TRIGGER)
		return mmr_parse_fail(p, w,
				      "%s has no value to set: say needs "
				      "writes=%s",
				      s->name, s->name);
	if (!mmr_setting_value(index, w->s, (size_t)w->len, v))
		return 0;
	if (s->kind == MMR_SETTING_NUMBER)
		return mmr_parse_fail(p, w, "%s must be from 0 to %lld",
				      s->name, (long long)s->max);
	for (i = 0; mmr_setting_modes[i].name; i++)
		if (s->max >> mmr_setting_modes[i].value & 1)
			n += (size_t)snprintf(words + n, sizeof(words) - n,
					      " %s", mmr_setting_modes[i].name);
	return mmr_parse_fail(p, w, "%s takes one of%s", s->name, words);
}

static int head_set(struct mmr_parse *p)
{
	struct mmr_case *c = p->c;
	struct mmr_word key, value;
	const char *name;
	int64_t v;
	int i, j;

	for (i = 1; i < p->l.n; i++) {
		if (!mmr_parse_split(&p->l.word[i], &key, &value))
			return mmr_parse_fail(p, &p->l.word[i],
					      "set takes NAME=VALUE");
		CHECK_ONE(mmr_parse_copy(p, &key, &name));
		if (!mmr_setting_known(name))
			return mmr_parse_fail(p, &key, "unknown setting '%.*s'",
					      ELLIPSIS(&key));
		CHECK_ONE(set_value(p, mmr_setting_index(name), &value, &v));
		for (j = 0; j < c->nsettings; j++)
			if (strcmp(c->settings[j].name, name) == 0)
				return mmr_parse_fail(p, &key, "given twice");
		CHECK_ONE(mmr_case_add_setting(c, name, v));
	}
	return p->l.n > 1 ? 0
			  : mmr_parse_fail(p, &p->l.word[0],
					   "set takes NAME=VALUE");
}

static int head_rounds(struct mmr_parse *p)
{
	struct mmr_case *c = p->c;
	struct mmr_word key, value;
	bool budget = false;
	int i;

	if (p->l.n < 2)
		return mmr_parse_fail(p, &p->l.word[0],
				      "rounds needs a number");
	CHECK_ONE(mmr_parse_int(p, &p->l.word[1], 1, MMR_CASE_MAX_ROUNDS,
				"rounds", &c->rounds));
	for (i = 2; i < p->l.n; i++) {
		if (mmr_lex_is(&p->l.word[i], "keep") && !c->keep) {
			c->keep = true;
		} else if (mmr_parse_split(&p->l.word[i], &key, &value) &&
			   mmr_lex_is(&key, "budget") && !budget) {
			budget = true;
			CHECK_ONE(mmr_parse_time(p, &value, &c->budget_ns));
		} else if (mmr_parse_split(&p->l.word[i], &key, &value) &&
			   mmr_lex_is(&key, "order") && !c->order) {
			CHECK_ONE(mmr_parse_int(p, &value, 1,
						MMR_CASE_MAX_ORDER, "order",
						&c->order));
		} else {
			return mmr_parse_fail(p, &p->l.word[i],
					      "unknown or second '%.*s' in "
					      "rounds",
					      ELLIPSIS(&p->l.word[i]));
		}
	}
	return 0;
}

/* within=TIME as word i. */
static int within(struct mmr_parse *p, int i, int64_t *ns)
{
	struct mmr_word key, value;

	if (i >= p->l.n)
		return mmr_parse_fail(p, &p->l.word[p->l.n - 1],
				      "expected within= after this");
	if (!mmr_parse_split(&p->l.word[i], &key, &value) ||
	    !mmr_lex_is(&key, "within"))
		return mmr_parse_fail(p, &p->l.word[i], "expected within=");
	CHECK_ONE(mmr_parse_time(p, &value, ns));
	if (*ns == 0)
		return mmr_parse_fail(p, &value, "within no time at all");
	return 0;
}

static int parse_expect(struct mmr_parse *p, struct mmr_expect *e, int *used)
{
	const struct mmr_word *w = p->l.word;

	if (mmr_lex_is(&w[1], "progress") || mmr_lex_is(&w[1], "exit")) {
		e->kind = mmr_lex_is(&w[1], "exit") ? MMR_EXPECT_EXIT
						    : MMR_EXPECT_PROGRESS;
		*used = 3;
		return within(p, 2, &e->within_ns);
	}
	if (mmr_lex_is(&w[1], "call")) {
		e->kind = MMR_EXPECT_CALL;
		if (p->l.n < 3)
			return mmr_parse_fail(p, &w[1], "call of which op?");
		CHECK_ONE(token(p, &w[2], &e->name));
		if (!mmr_op_by_name(e->name))
			return mmr_parse_fail(p, &w[2], "unknown op '%.*s'",
					      ELLIPSIS(&w[2]));
		*used = 4;
		return within(p, 3, &e->within_ns);
	}
	if (mmr_lex_is(&w[1], "restored")) {
		e->kind = MMR_EXPECT_RESTORED;
		*used = 3;
		if (p->l.n < 3)
			return mmr_parse_fail(p, &w[1], "which field?");
		return token(p, &w[2], &e->name);
	}
	*used = 2;
	if (mmr_lex_is(&w[1], "content"))
		e->kind = MMR_EXPECT_CONTENT;
	else if (mmr_lex_is(&w[1], "quiet"))
		e->kind = MMR_EXPECT_QUIET;
	else
		return mmr_parse_fail(p, &w[1], "unknown expectation '%.*s'",
				      ELLIPSIS(&w[1]));
	return 0;
}

static int head_expect(struct mmr_parse *p)
{
	struct mmr_case *c = p->c;
	struct mmr_expect e = {0}, *expects;
	int used = 0;

	if (p->l.n < 2)
		return mmr_parse_fail(p, &p->l.word[0], "expect what?");
	CHECK_ONE(parse_expect(p, &e, &used));
	if (p->l.n > used)
		return mmr_parse_fail(p, &p->l.word[used],
				      "unknown word '%.*s'",
				      ELLIPSIS(&p->l.word[used]));
	if (c->nexpects == MMR_CHECK_EXPECTS)
		return mmr_parse_fail(p, &p->l.word[0],
				      "more than %d expectations",
				      MMR_CHECK_EXPECTS);
	expects = mmr_pool_grow(c, c->expects, c->nexpects, sizeof(*expects));
	if (!expects)
		return -ENOMEM;
	c->expects = expects;
	expects[c->nexpects++] = e;
	return 0;
}

static int head_seen(struct mmr_parse *p)
{
	const struct mmr_word *w = &p->l.word[1];
	const char *slash;
	struct mmr_word hits, runs;

	if (p->l.n != 2 || !(slash = memchr(w->s, '/', (size_t)w->len)))
		return mmr_parse_fail(p, &p->l.word[0], "seen takes HITS/RUNS");
	hits = (struct mmr_word){w->s, (int)(slash - w->s), w->col};
	runs = (struct mmr_word){slash + 1, w->len - hits.len - 1,
				 w->col + hits.len + 1};
	CHECK_ONE(mmr_parse_int(p, &runs, 1, INT64_MAX, "runs",
				&p->c->seen_runs));
	return mmr_parse_int(p, &hits, 0, p->c->seen_runs, "hits",
			     &p->c->seen_hits);
}

static int head_fixed(struct mmr_parse *p)
{
	struct mmr_word w;

	if (p->l.n < 2)
		return mmr_parse_fail(p, &p->l.word[0], "fixed needs a commit");
	CHECK_ONE(token(p, &p->l.word[1], &p->c->fixed_commit));
	if (p->l.n == 2)
		return 0;
	w = p->l.word[2];
	if (w.len < 2 || w.s[0] != '"' || w.s[w.len - 1] != '"')
		return mmr_parse_fail(p, &w, "the subject stands in quotes");
	w.s++;
	w.col++;
	w.len -= 2;
	return free_text(p, &w, &p->c->fixed_subject);
}

static const struct {
	const char *word;
	int (*parse)(struct mmr_parse *);
	bool once;
} heads[] = {
	{"title", head_title, true},   {"origin", head_origin, true},
	{"needs", head_needs, false},  {"set", head_set, false},
	{"rounds", head_rounds, true}, {"expect", head_expect, false},
	{"seen", head_seen, true},     {"fixed", head_fixed, true},
};

bool mmr_parse_is_head(const struct mmr_word *w)
{
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (mmr_lex_is(w, heads[i].word))
			return true;
	return false;
}

int mmr_parse_head_line(struct mmr_parse *p)
{
	const struct mmr_word *w = &p->l.word[0];
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (!mmr_lex_is(w, heads[i].word))
			continue;
		if (heads[i].once && (p->seen & (1u << i)))
			return mmr_parse_fail(p, w, "a second %s line",
					      heads[i].word);
		p->seen |= 1u << i;
		return heads[i].parse(p);
	}
	return mmr_parse_fail(p, w, "unknown word '%.*s'", ELLIPSIS(w));
}
