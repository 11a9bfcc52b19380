// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cases print FILE: parses a case and prints it, to compare with the file.
 * cases seeds FIRST N: for N seeds of every profile, checks that
 * parse(print(gen(seed))) prints the same text, and that the text without any
 * one statement still parses and prints as itself; prints "N seeds, N
 * different, N deletions".  Thousands of seeds are too many for a process
 * each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../fuzz/gen.h"
#include "../../ops/case.h"

static int fail(uint64_t seed, const char *what, const char *text)
{
	printf("seed %llu: %s\n%s\n", (unsigned long long)seed, what,
	       text ? text : "");
	return 1;
}

/* Parses text and prints it: 0 when that gives text again. */
static int identity(uint64_t seed, const char *text)
{
	struct mmr_diag diag = {0};
	struct mmr_case *c = NULL;
	char *again;
	int err;

	err = mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL);
	if (err) {
		printf("%d:%d: %s\n", diag.line, diag.col, diag.text);
		return fail(seed, "does not parse", text);
	}
	again = mmr_case_print(c);
	err = !again || strcmp(again, text);
	if (err)
		fail(seed, "prints as something else", again);
	free(again);
	mmr_case_free(c);
	return err;
}

static int depth(const char *line)
{
	return (int)strspn(line, " ");
}

/* The text without its n-th statement (from 0), a loop with its body; NULL
 * when there is none. */
static char *without(const char *text, int n)
{
	char *out = malloc(strlen(text) + 1), *to = out;
	const char *line, *next;
	int indent = -1, found = 0; /* indent: of the loop that goes */

	for (line = text; out && *line; line = next) {
		int d = depth(line), is_end = !strncmp(line + d, "end\n", 4);

		next = strchr(line, '\n') + 1;
		if (indent >= 0) {
			if (d == indent && is_end)
				indent = -1;
			continue;
		}
		if (d >= 4 && !is_end && n-- == 0) {
			found = 1;
			if (!strncmp(line + d, "loop", 4))
				indent = d;
			continue;
		}
		memcpy(to, line, (size_t)(next - line));
		to += next - line;
	}
	if (out && found) {
		*to = '\0';
		return out;
	}
	free(out);
	return NULL;
}

/* The text without each statement in turn, but for the last one of all: must
 * parse, print as itself, and be what mmr_case_remove() makes of the case. */
static int deletions(uint64_t seed, const struct mmr_case *c, const char *text,
		     uint64_t *done)
{
	int i, n = mmr_case_count(c), bad = 0;

	for (i = 0; i < n && !bad; i++) {
		struct mmr_case *less = mmr_case_clone(c);
		char *want = without(text, i), *got = NULL;

		if (!less || !want || mmr_case_remove(less, i))
			return fail(seed, "cannot remove a statement", text);
		if (mmr_case_count(less) != 0) {
			got = mmr_case_print(less);
			bad = identity(seed, want);
			if (!bad && (!got || strcmp(got, want)))
				bad = fail(seed, "remove: another text", got);
			(*done)++;
		}
		free(want);
		free(got);
		mmr_case_free(less);
	}
	return bad;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* FNV-1a of the text below its origin line, which names the seed. */
static uint64_t hash(const char *text)
{
	const char *p = strstr(text, "\norigin");
	uint64_t h = 0xcbf29ce484222325ULL;

	p = p ? strchr(p + 1, '\n') : text;
	for (; p && *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
	return h;
}

static int seeds(uint64_t first, uint64_t n)
{
	uint64_t *hashes = calloc(n + 1, sizeof(*hashes));
	uint64_t i, different = 0, done = 0;
	const char *name, *help;
	int p, bad = 0, profiles;

	for (profiles = 0; mmr_profile_name(profiles, &help); profiles++)
		;
	if (!hashes || !profiles)
		return 1;
	for (p = 0; p < profiles; p++) {
		name = mmr_profile_name(p, &help);
		different = 1;
		for (i = 0; i < n && !bad; i++) {
			struct mmr_case *c =
				mmr_gen(first + i, mmr_profile_find(name));
			char *text = c ? mmr_case_print(c) : NULL;

			bad = !text || identity(first + i, text) ||
			      deletions(first + i, c, text, &done);
			hashes[i] = text ? hash(text) : 0;
			free(text);
			mmr_case_free(c);
		}
		qsort(hashes, n, sizeof(*hashes), compare);
		for (i = 1; i < n; i++)
			different += hashes[i] != hashes[i - 1];
		printf("%s: %llu seeds, %llu different, %llu deletions\n", name,
		       (unsigned long long)n, (unsigned long long)different,
		       (unsigned long long)done);
		if (bad)
			break;
	}
	free(hashes);
	return bad;
}

static int print(const char *path)
{
	struct mmr_diag diag = {0};
	struct mmr_case *c = NULL;
	char *text;

	if (mmr_case_load(path, &c, &diag, NULL, NULL)) {
		fprintf(stderr, "%s:%d:%d: %s\n", path, diag.line, diag.col,
			diag.text);
		return 2;
	}
	text = mmr_case_print(c);
	if (!text)
		return 3;
	fputs(text, stdout);
	free(text);
	mmr_case_free(c);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "print"))
		return print(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "seeds"))
		return seeds(strtoull(argv[2], NULL, 0),
			     strtoull(argv[3], NULL, 0));
	return 2;
}
