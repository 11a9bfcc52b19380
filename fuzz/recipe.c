// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parses fuzz/recipes, which the Makefile builds in as recipes.inc.  The text
 * is ours, so a mistake in it is a bug of ours and stops at once, with its
 * line; that every statement parses is a matter of tests/unit/test_gen.c.
 */
#include "recipe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char recipe_text[] =
#include "recipes.inc"
	;

#define RECIPES 96

static struct mmr_recipe recipes[RECIPES];
static int nrecipes;
static char *lines_text; /* the text, lines ended by NUL */
static pthread_once_t parsed = PTHREAD_ONCE_INIT;

static const struct {
	const char *word;
	unsigned int bits;
} wants[] = {
	{"map", MMR_WANT_MAP},
	{"read", MMR_WANT_MAP | MMR_WANT_READ},
	{"write", MMR_WANT_MAP | MMR_WANT_WRITE},
	{"private", MMR_WANT_MAP | MMR_WANT_PRIVATE},
	{"shared", MMR_WANT_MAP | MMR_WANT_SHARED},
	{"anon", MMR_WANT_MAP | MMR_WANT_ANON},
	{"file", MMR_WANT_MAP | MMR_WANT_FILE},
	{"huge", MMR_WANT_MAP | MMR_WANT_HUGE},
	{"small", MMR_WANT_MAP | MMR_WANT_SMALL | MMR_WANT_BASE},
	{"base", MMR_WANT_MAP | MMR_WANT_BASE},
	{"kid", MMR_WANT_KID},
};

static void __attribute__((noreturn)) bad(int line, const char *what)
{
	fprintf(stderr, "mmrace: fuzz/recipes:%d: %s\n", line, what);
	abort();
}

static void put_line(const char **list, const char *s, int line)
{
	int i = 0;

	while (i < MMR_RECIPE_LINES && list[i])
		i++;
	if (i == MMR_RECIPE_LINES)
		bad(line, "too many lines of a kind");
	list[i] = s;
}

static void parse_wants(struct mmr_recipe *r, const char *s, int line)
{
	size_t i, n;

	for (s += strspn(s, " "); *s; s += n + strspn(s + n, " ")) {
		n = strcspn(s, " ");
		for (i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
			if (strlen(wants[i].word) == n &&
			    !strncmp(wants[i].word, s, n))
				break;
		if (i == sizeof(wants) / sizeof(wants[0]))
			bad(line, "unknown want");
		r->want |= wants[i].bits;
	}
}

/* The text behind a keyword at the start of s, NULL when it is another. */
static const char *behind(const char *s, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(s, word, n) || (s[n] && s[n] != ' '))
		return NULL;
	return s + n + strspn(s + n, " ");
}

static void parse_line(const char *s, int line)
{
	struct mmr_recipe *r = nrecipes ? &recipes[nrecipes - 1] : NULL;
	const char *rest;

	s += strspn(s, " \t");
	if (!*s || *s == '#')
		return;
	rest = behind(s, "recipe");
	if (rest) {
		if (nrecipes == RECIPES || strlen(rest) >= sizeof(r->name))
			bad(line, "too many recipes, or a bad name");
		r = &recipes[nrecipes++];
		snprintf(r->name, sizeof(r->name), "%s", rest);
		return;
	}
	if (!r)
		bad(line, "wants a recipe first");
	if ((rest = behind(s, "wants"))) {
		parse_wants(r, rest, line);
	} else if ((rest = behind(s, "also"))) {
		r->in_kid = strstr(rest, "kid") != NULL;
		r->in_body = strstr(rest, "body") != NULL;
	} else if (behind(s, "needs") || behind(s, "set")) {
		put_line(r->head, s, line);
		r->outside |= behind(s, "set") || strstr(s, "writes=") ||
			      strstr(s, "swap>=");
	} else if ((rest = behind(s, "early"))) {
		put_line(r->early, rest, line);
	} else if ((rest = behind(s, "setup"))) {
		put_line(r->setup, rest, line);
	} else if ((rest = behind(s, "server"))) {
		put_line(r->server, rest, line);
	} else if ((rest = behind(s, "closing"))) {
		put_line(r->closing, rest, line);
	} else {
		put_line(r->lines, s, line);
	}
}

static void parse_all(void)
{
	char *s, *end;
	int line = 1;

	lines_text = strdup(recipe_text);
	if (!lines_text)
		bad(0, "no memory");
	for (s = lines_text; *s; s = end, line++) {
		end = s + strcspn(s, "\n");
		if (*end)
			*end++ = 0;
		parse_line(s, line);
	}
}

const struct mmr_recipe *mmr_recipe_at(int i)
{
	pthread_once(&parsed, parse_all);
	return i >= 0 && i < nrecipes ? &recipes[i] : NULL;
}

const struct mmr_recipe *mmr_recipe_find(const char *name)
{
	const struct mmr_recipe *r;
	int i;

	for (i = 0; (r = mmr_recipe_at(i)); i++)
		if (!strcmp(r->name, name))
			return r;
	return NULL;
}
