// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One statement of a case, other than a loop: the op, its arguments, its
 * accepted results.  All of it follows from the op's descriptor.
 */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "parse.h"

static int parse_time_arg(struct mmr_parse *p, const struct mmr_argspec *a,
			  const struct mmr_word *w, struct mmr_value *v)
{
	struct mmr_word lo = *w, hi = *w;
	int i, rc;

	if (mmr_lex_is(w, "auto") && (a->flags & MMR_ARG_AUTO)) {
		v->is_auto = true;
		v->lo = v->hi = a->def;
		return 0;
	}
	if (mmr_lex_is(w, "log") && (a->flags & MMR_ARG_LOG)) {
		v->is_log = true;
		v->lo = v->hi = a->def;
		return 0;
	}
	for (i = 0; i + 1 < w->len; i++) {
		if (w->s[i] != '.' || w->s[i + 1] != '.')
			continue;
		lo.len = i;
		hi = (struct mmr_word){w->s + i + 2, w->len - i - 2,
				       w->col + i + 2};
		break;
	}
	rc = mmr_parse_signed_time(p, &lo, &v->lo);
	return rc ? rc : mmr_parse_signed_time(p, &hi, &v->hi);
}

/* The value of one name of an ENUM's or FLAGS's table. */
static const struct mmr_name *listed(const struct mmr_argspec *a,
				     const struct mmr_word *w)
{
	const struct mmr_name *n;

	for (n = a->names; n->name; n++)
		if (mmr_lex_is(w, n->name))
			return n;
	return NULL;
}

static int unlisted(struct mmr_parse *p, const struct mmr_argspec *a,
		    const struct mmr_word *w)
{
	char list[120] = "";
	const struct mmr_name *n;
	size_t used = 0;

	for (n = a->names; n->name; n++) {
		if (used + strlen(n->name) + 6 > sizeof(list)) {
			used += (size_t)snprintf(list + used,
						 sizeof(list) - used, " ...");
			break;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used,
					 "%s%s", used ? " " : "", n->name);
	}
	return mmr_parse_fail(p, w, "%s: unknown '%.*s', known: %s", a->name,
			      ELLIPSIS(w), list);
}

static int parse_flags(struct mmr_parse *p, const struct mmr_argspec *a,
		       const struct mmr_word *w, struct mmr_value *v)
{
	const struct mmr_name *n;
	struct mmr_word part;
	int i, start = 0;

	v->lo = 0;
	if (mmr_lex_is(w, "0"))
		return 0;
	for (i = 0; i <= w->len; i++) {
		if (i < w->len && w->s[i] != '|')
			continue;
		part = (struct mmr_word){w->s + start, i - start,
					 w->col + start};
		n = listed(a, &part);
		if (!n)
			return unlisted(p, a, &part);
		if ((v->lo & n->value) == n->value)
			return mmr_parse_fail(p, &part, "%s is given twice",
					      n->name);
		v->lo |= n->value;
		start = i + 1;
	}
	return 0;
}

static int parse_name_arg(struct mmr_parse *p, const struct mmr_argspec *a,
			  const struct mmr_word *w, struct mmr_value *v)
{
	if ((a->type == MMR_ARG_THREAD || a->type == MMR_ARG_PROCESS) &&
	    mmr_lex_is(w, "idle"))
		return mmr_parse_copy(p, w, &v->name);
	return mmr_parse_name(p, w, a->name, &v->name);
}

static int parse_value(struct mmr_parse *p, const struct mmr_argspec *a,
		       const struct mmr_word *w, struct mmr_value *v)
{
	const struct mmr_name *n;
	char text[120];
	int rc = 0;

	v->set = true;
	switch (a->type) {
	case MMR_ARG_SIZE:
		rc = mmr_lex_size(w->s, (size_t)w->len, &v->lo, &v->unit);
		if (rc == -ERANGE)
			return mmr_parse_fail(p, w, "'%.*s' is too large",
					      ELLIPSIS(w));
		if (rc)
			return mmr_parse_fail(p, w,
					      "'%.*s' is no size: a number, "
					      "alone or with p, h, K, M or G",
					      ELLIPSIS(w));
		if (v->lo == 0)
			v->unit = MMR_UNIT_BYTE;
		break;
	case MMR_ARG_INT:
		rc = mmr_parse_int(p, w, a->min, a->max, a->name, &v->lo);
		break;
	case MMR_ARG_TIME:
		rc = parse_time_arg(p, a, w, v);
		break;
	case MMR_ARG_ENUM:
		n = listed(a, w);
		if (!n)
			return unlisted(p, a, w);
		v->lo = n->value;
		break;
	case MMR_ARG_FLAGS:
		rc = parse_flags(p, a, w, v);
		break;
	case MMR_ARG_WORD:
		v->lo = 1;
		break;
	default:
		rc = parse_name_arg(p, a, w, v);
	}
	if (rc)
		return rc;
	if (mmr_check_value(a, v, text, sizeof(text)))
		return mmr_parse_fail(p, w, "%s", text);
	if (a->flags & MMR_ARG_OPT && mmr_value_is_default(a, v))
		v->set = false;
	return 0;
}

/* Which argument a word without NAME= is: the next positional one that has
 * to be there, a bare word, the next positional one that may. */
static int positional(const struct mmr_op *op, uint32_t given,
		      const struct mmr_word *w)
{
	int i, optional = -1;

	for (i = 0; i < op->nargs; i++) {
		if (!(op->args[i].flags & MMR_ARG_POS) || given >> i & 1)
			continue;
		if (!(op->args[i].flags & MMR_ARG_OPT))
			return i;
		if (optional < 0)
			optional = i;
	}
	for (i = 0; i < op->nargs; i++)
		if (op->args[i].type == MMR_ARG_WORD &&
		    mmr_lex_is(w, op->args[i].name))
			return i;
	return optional;
}

static int which_arg(struct mmr_parse *p, const struct mmr_op *op,
		     uint32_t given, const struct mmr_word *w,
		     struct mmr_word *value)
{
	struct mmr_word key;
	int i;

	if (!mmr_parse_split(w, &key, value)) {
		*value = *w;
		i = positional(op, given, w);
		if (i < 0)
			return mmr_parse_fail(p, w, "unknown word '%.*s' in %s",
					      ELLIPSIS(w), op->name);
		return i;
	}
	for (i = 0; i < op->nargs; i++)
		if (mmr_lex_is(&key, op->args[i].name) &&
		    !(op->args[i].flags & MMR_ARG_POS) &&
		    op->args[i].type != MMR_ARG_WORD)
			return i;
	return mmr_parse_fail(p, &key, "unknown argument '%.*s' of %s",
			      ELLIPSIS(&key), op->name);
}

/* Results behind ->, the words from i on. */
static int parse_accept(struct mmr_parse *p, struct mmr_stmt *s, int i)
{
	const struct mmr_word *w = &p->l.word[i];
	struct mmr_word part;
	char name[24];
	int k, err, start = 0;

	if (i == p->l.n)
		return mmr_parse_fail(p, &p->l.word[i - 1],
				      "-> needs results, such as 0|EINVAL");
	if (i + 1 < p->l.n)
		return mmr_parse_fail(p, &p->l.word[i + 1],
				      "unknown word '%.*s' behind the results",
				      ELLIPSIS(&p->l.word[i + 1]));
	for (i = 0; i <= w->len; i++) {
		if (i < w->len && w->s[i] != '|')
			continue;
		part = (struct mmr_word){w->s + start, i - start,
					 w->col + start};
		start = i + 1;
		snprintf(name, sizeof(name), "%.*s", part.len, part.s);
		err = part.len < (int)sizeof(name) ? mmr_errno_value(name) : -1;
		if (err < 0)
			return mmr_parse_fail(p, &part,
					      "unknown result '%.*s': 0 or "
					      "the name of an errno",
					      ELLIPSIS(&part));
		for (k = 0; k < s->naccept; k++)
			if (s->accept[k] == err)
				return mmr_parse_fail(
					p, &part, "%s is given twice", name);
		if (s->naccept == MMR_CASE_MAX_ACCEPT)
			return mmr_parse_fail(p, &part, "more than %d results",
					      MMR_CASE_MAX_ACCEPT);
		s->accept[s->naccept++] = err;
	}
	return 0;
}

static int parse_args(struct mmr_parse *p, struct mmr_stmt *s, int first)
{
	const struct mmr_op *op = s->op;
	const struct mmr_word *w;
	struct mmr_word value;
	uint32_t given = 0;
	int i, a, rc;

	for (i = first; i < p->l.n; i++) {
		w = &p->l.word[i];
		if (mmr_lex_is(w, "->")) {
			rc = parse_accept(p, s, i + 1);
			if (rc)
				return rc;
			break;
		}
		a = which_arg(p, op, given, w, &value);
		if (a < 0)
			return a;
		if (given >> a & 1)
			return mmr_parse_fail(p, w, "%s is given twice",
					      op->args[a].name);
		given |= 1u << a;
		rc = parse_value(p, &op->args[a], &value, &s->args[a]);
		if (rc)
			return rc;
	}
	for (a = 0; a < op->nargs; a++)
		if (!(op->args[a].flags & MMR_ARG_OPT) && !(given >> a & 1))
			return mmr_parse_fail(
				p, &p->l.word[first - 1], "%s needs %s%s",
				op->name, op->args[a].name,
				op->args[a].flags & MMR_ARG_POS ? "" : "=");
	return 0;
}

int mmr_parse_op(struct mmr_parse *p)
{
	const struct mmr_word *w = p->l.word;
	bool assigns = p->l.n > 1 && mmr_lex_is(&w[1], "=");
	int at = assigns ? 2 : 0, rc;
	const char *ref = NULL;
	const struct mmr_op *op;
	struct mmr_stmt *s;
	char name[40];

	if (assigns) {
		rc = mmr_parse_name(p, &w[0], "a ref", &ref);
		if (rc)
			return rc;
		if (p->l.n == 2)
			return mmr_parse_fail(p, &w[1], "= needs an op");
	}
	snprintf(name, sizeof(name), "%.*s", w[at].len, w[at].s);
	op = w[at].len < (int)sizeof(name) ? mmr_op_by_name(name) : NULL;
	if (!op && !assigns && mmr_parse_is_head(&w[0]))
		return mmr_parse_fail(p, &w[0],
				      "'%.*s' belongs before the first process",
				      ELLIPSIS(&w[0]));
	if (!op)
		return mmr_parse_fail(p, &w[at], "unknown op '%.*s'",
				      ELLIPSIS(&w[at]));
	s = mmr_case_add_op(p->c, p->block[p->depth], op, ref);
	if (!s)
		return -ENOMEM;
	s->line = p->l.line;
	s->col = w[0].col;
	return parse_args(p, s, at + 1);
}
