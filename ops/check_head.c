// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rules for a case's header, for cases that a program made: the parser
 * has checked the same with the place at hand.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"
#include "lex.h"
#include "need_probe.h"
#include "setting.h"

static int __attribute__((format(printf, 2, 3)))
fail(struct mmr_diag *diag, const char *fmt, ...)
{
	va_list ap;

	diag->line = 0;
	diag->col = 0;
	va_start(ap, fmt);
	vsnprintf(diag->text, sizeof(diag->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool is_token(const char *s)
{
	size_t i, n = strlen(s);

	for (i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f || s[i] == '#' || s[i] == '"')
			return false;
	return n > 0 && n <= 64;
}

static bool is_free_text(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= MMR_LEX_TITLE && mmr_lex_is_text(s, n) &&
	       s[0] != ' ' && s[n - 1] != ' ' && !strstr(s, "  ");
}

static int check_origin(const struct mmr_origin *o, struct mmr_diag *diag)
{
	const char *tokens[] = {o->tool, o->kernel, o->arch, o->profile};
	size_t i;

	for (i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		if (tokens[i] && !is_token(tokens[i]))
			return fail(diag, "origin: not one word");
	if (o->gen < 0 || o->cpus < 0)
		return fail(diag, "origin: negative number");
	return 0;
}

static bool bad_setting(const struct mmr_setting *s)
{
	int index = mmr_setting_index(s->name);
	char buf[48];
	int64_t v;

	if (mmr_setting_table[index].kind == MMR_SETTING_TRIGGER)
		return true;
	mmr_setting_text(index, s->value, buf, sizeof(buf));
	return mmr_setting_value(index, buf, strlen(buf), &v) != 0;
}

int mmr_check_head(const struct mmr_case *c, struct mmr_diag *diag)
{
	int i;

	if (c->title && !is_free_text(c->title))
		return fail(diag, "the title is no line of text");
	if (c->rounds < 1 || c->rounds > MMR_CASE_MAX_ROUNDS)
		return fail(diag, "rounds go from 1 to %d",
			    MMR_CASE_MAX_ROUNDS);
	if (c->order < 0 || c->order > MMR_CASE_MAX_ORDER)
		return fail(diag, "order goes from 1 to %d",
			    MMR_CASE_MAX_ORDER);
	if (c->budget_ns < 0)
		return fail(diag, "negative budget");
	if (c->nneeds > MMR_CHECK_NEEDS || c->nsettings > MMR_CHECK_SETTINGS ||
	    c->nexpects > MMR_CHECK_EXPECTS)
		return fail(diag, "too many needs, settings or expects");
	for (i = 0; i < c->nneeds; i++)
		if (!mmr_need_known(&c->needs[i]))
			return fail(diag, "unknown need '%s'",
				    c->needs[i].name ? c->needs[i].name : "");
	for (i = 0; i < c->nsettings; i++)
		if (!mmr_setting_known(c->settings[i].name) ||
		    bad_setting(&c->settings[i]))
			return fail(diag, "unknown setting '%s'",
				    c->settings[i].name);
	for (i = 0; i < c->nexpects; i++)
		if (c->expects[i].within_ns < 0 ||
		    (c->expects[i].kind == MMR_EXPECT_CALL &&
		     !mmr_op_by_name(c->expects[i].name)) ||
		    (c->expects[i].kind == MMR_EXPECT_RESTORED &&
		     !is_token(c->expects[i].name)))
			return fail(diag, "an expectation that means nothing");
	if (c->fixed_commit && !is_token(c->fixed_commit))
		return fail(diag, "fixed: the commit is not one word");
	if (c->fixed_subject && !is_free_text(c->fixed_subject))
		return fail(diag, "fixed: the subject is no text");
	return check_origin(&c->origin, diag);
}
