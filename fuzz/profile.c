// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parses fuzz/profiles, which the Makefile builds in as profiles.inc.  The
 * text is ours, so a mistake in it is a bug of ours and stops at once, with
 * its line; tests/unit/test_gen.c checks every word against the descriptors.
 */
#include "profile.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char profile_text[] =
#include "profiles.inc"
	;

static struct mmr_profile profiles[MMR_PROFILE_MAX];
static int nprofiles;
static pthread_once_t parsed = PTHREAD_ONCE_INIT;

enum key_type { KEY_WEIGHTS, KEY_RANGE, KEY_PERCENT };

#define KEY(type, field)                                                       \
	{                                                                      \
#field, type, offsetof(struct mmr_profile, field)              \
	}

static const struct key {
	const char *name;
	enum key_type type;
	size_t offset;
} keys[] = {
	KEY(KEY_WEIGHTS, ops),	       KEY(KEY_WEIGHTS, must),
	KEY(KEY_WEIGHTS, advice),      KEY(KEY_WEIGHTS, backing),
	KEY(KEY_WEIGHTS, cpu),	       KEY(KEY_WEIGHTS, edge),
	KEY(KEY_WEIGHTS, mix),	       KEY(KEY_WEIGHTS, signal),
	KEY(KEY_RANGE, objects),       KEY(KEY_RANGE, pages),
	KEY(KEY_RANGE, threads),       KEY(KEY_RANGE, copies),
	KEY(KEY_RANGE, rounds),	       KEY(KEY_RANGE, turns),
	KEY(KEY_RANGE, body),	       KEY(KEY_RANGE, epochs),
	KEY(KEY_RANGE, large_pages),   KEY(KEY_RANGE, large_objects),
	KEY(KEY_PERCENT, swarm),       KEY(KEY_PERCENT, sync),
	KEY(KEY_PERCENT, delay),       KEY(KEY_PERCENT, invalid),
	KEY(KEY_PERCENT, large),       KEY(KEY_PERCENT, children),
	KEY(KEY_PERCENT, nodes),       KEY(KEY_PERCENT, ordered),
	KEY(KEY_PERCENT, surplus),     KEY(KEY_PERCENT, reserve),
	KEY(KEY_RANGE, reserve_pages), KEY(KEY_PERCENT, outside),
	KEY(KEY_PERCENT, content),     KEY(KEY_PERCENT, widen),
};

static void __attribute__((noreturn)) bad(int line, const char *what)
{
	fprintf(stderr, "mmrace: fuzz/profiles:%d: %s\n", line, what);
	abort();
}

static int number(const char **s, int line)
{
	int v = 0;

	if (**s < '0' || **s > '9')
		bad(line, "a number is missing");
	while (**s >= '0' && **s <= '9' && v < 100000000)
		v = v * 10 + (*(*s)++ - '0');
	return v;
}

static const char *blanks(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

/* word=weight word ...; a word without a weight has 1. */
static void parse_weights(const char *s, struct mmr_weights *out, int line)
{
	/* A list replaces what an earlier profile or line said. */
	out->n = 0;
	for (s = blanks(s); *s; s = blanks(s)) {
		size_t n = strcspn(s, "= \t");
		struct mmr_weight *w = &out->w[out->n];

		if (out->n == MMR_PROFILE_WORDS || n >= sizeof(w->word) || !n)
			bad(line, "too many words, or one too long");
		memset(w, 0, sizeof(*w));
		memcpy(w->word, s, n);
		w->weight = 1;
		s += n;
		if (*s == '=') {
			s++;
			w->weight = number(&s, line);
		}
		out->n++;
	}
}

static void parse_value(const struct key *k, struct mmr_profile *p,
			const char *s, int line)
{
	char *field = (char *)p + k->offset;
	struct mmr_range r;

	s = blanks(s);
	switch (k->type) {
	case KEY_WEIGHTS:
		parse_weights(s, (struct mmr_weights *)(void *)field, line);
		return;
	case KEY_RANGE:
		r.lo = r.hi = number(&s, line);
		if (!strncmp(s, "..", 2)) {
			s += 2;
			r.hi = number(&s, line);
		}
		if (*s || r.lo > r.hi)
			bad(line, "wants LO..HI");
		memcpy(field, &r, sizeof(r));
		return;
	case KEY_PERCENT:
		r.lo = number(&s, line);
		if (strcmp(s, "%") || r.lo > 100)
			bad(line, "wants a percentage");
		memcpy(field, &r.lo, sizeof(r.lo));
		return;
	}
}

static void parse_line(const char *s, int line)
{
	char word[24];
	size_t n;

	s = blanks(s);
	if (!*s || *s == '#')
		return;
	n = strcspn(s, " \t");
	if (n >= sizeof(word))
		bad(line, "no such key");
	memcpy(word, s, n);
	word[n] = '\0';
	s = blanks(s + n);
	if (!strcmp(word, "profile")) {
		struct mmr_profile *p = &profiles[nprofiles];

		if (nprofiles == MMR_PROFILE_MAX || strlen(s) >= 24 || !*s)
			bad(line, "too many profiles, or a bad name");
		/* A profile starts as a copy of the first, `base`. */
		if (nprofiles)
			*p = profiles[0];
		p->mix.n = 0;
		snprintf(p->name, sizeof(p->name), "%s", s);
		nprofiles++;
		return;
	}
	if (!nprofiles)
		bad(line, "wants a profile first");
	if (!strcmp(word, "help")) {
		snprintf(profiles[nprofiles - 1].help, sizeof(profiles[0].help),
			 "%s", s);
		return;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(word, keys[i].name)) {
			parse_value(&keys[i], &profiles[nprofiles - 1], s,
				    line);
			return;
		}
	bad(line, "no such key");
}

static void parse_all(void)
{
	const char *s = profile_text;
	char buf[1024];

	for (int line = 1; *s; line++) {
		size_t n = strcspn(s, "\n");

		if (n >= sizeof(buf))
			bad(line, "line too long");
		memcpy(buf, s, n);
		buf[n] = '\0';
		parse_line(buf, line);
		s += n + (s[n] == '\n');
	}
	if (nprofiles < 2)
		bad(0, "no profile");
}

const struct mmr_profile *mmr_profile_find(const char *name)
{
	pthread_once(&parsed, parse_all);
	/* 1: the first one, `base`, is only what the others start from. */
	for (int i = 1; i < nprofiles; i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

const char *mmr_profile_name(int i, const char **help)
{
	pthread_once(&parsed, parse_all);
	if (i < 0 || i + 1 >= nprofiles)
		return NULL;
	if (help)
		*help = profiles[i + 1].help;
	return profiles[i + 1].name;
}

const char *mmr_weights_draw(const struct mmr_weights *w, const uint8_t *use,
			     uint64_t draw)
{
	uint64_t sum = 0, at;

	for (int i = 0; i < w->n; i++)
		if (!use || use[i])
			sum += (uint64_t)w->w[i].weight;
	if (!sum)
		return "";
	at = mmr_rng_below(draw, sum);
	for (int i = 0; i < w->n; i++) {
		if (use && !use[i])
			continue;
		if (at < (uint64_t)w->w[i].weight)
			return w->w[i].word;
		at -= (uint64_t)w->w[i].weight;
	}
	return "";
}

int mmr_weights_find(const struct mmr_weights *w, const char *word)
{
	for (int i = 0; i < w->n; i++)
		if (!strcmp(w->w[i].word, word))
			return i;
	return -1;
}
