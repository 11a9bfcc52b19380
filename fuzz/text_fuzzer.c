// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer target for the case text: whatever the bytes are, the parser
 * either refuses them with a place, or what it made of them prints as a text
 * that parses and prints as itself, and still does so without any one of its
 * statements.
 *
 * The mutator edits the case where the bytes are one (an edit of bytes hardly
 * ever leaves a case), and bytes where they are none, or every fourth time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/case.h"
#include "../ops/rng.h"
#include "gen.h"

#define MAX_DELETIONS 32 /* an input: they cost its square */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static void broken(const char *what, const char *text)
{
	fprintf(stderr, "text_fuzzer: %s:\n%s\n", what, text ? text : "");
	abort();
}

static void count_warning(void *arg, const struct mmr_diag *diag)
{
	unsigned int *n = arg;

	if (diag->line < 1 || diag->col < 1 || !diag->text[0])
		broken("a warning without a place", diag->text);
	++*n;
}

static struct mmr_case *parse(const char *text, size_t size)
{
	struct mmr_diag diag;
	unsigned int warnings = 0;
	struct mmr_case *c;
	int rc =
		mmr_case_parse(text, size, &c, &diag, count_warning, &warnings);

	if (rc == 0)
		return c;
	if (c || diag.line < 1 || diag.col < 1 || !diag.text[0])
		broken("an error without a place", diag.text);
	return NULL;
}

static void fixed_point(const char *text)
{
	struct mmr_case *c = parse(text, strlen(text));
	char *again;

	if (!c)
		broken("printed, does not parse", text);
	again = mmr_case_print(c);
	if (!again || strcmp(again, text) != 0)
		broken("printed, prints as something else", text);
	free(again);
	mmr_case_free(c);
}

static void without(const struct mmr_case *c, int i)
{
	struct mmr_case *less = mmr_case_clone(c);
	char *text;

	if (!less || mmr_case_remove(less, i))
		broken("a statement that cannot be removed", NULL);
	if (mmr_case_count(less)) {
		text = mmr_case_print(less);
		fixed_point(text);
		free(text);
	}
	mmr_case_free(less);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mmr_case *c = parse((const char *)data, size);
	struct mmr_diag diag;
	int i, n, step;
	char *text;

	if (!c)
		return 0;
	text = mmr_case_print(c);
	fixed_point(text);
	if (mmr_case_check(c, &diag))
		broken(diag.text, text);
	n = mmr_case_count(c);
	step = 1 + n / MAX_DELETIONS;
	for (i = 0; i < n; i += step)
		without(c, i);
	free(text);
	mmr_case_free(c);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned int seed)
{
	struct mmr_diag diag;
	struct mmr_case *c;
	size_t n = 0;
	char *text;

	if (mmr_rng_mix(seed) % 4 == 0 ||
	    mmr_case_parse((const char *)data, size, &c, &diag, NULL, NULL))
		return LLVMFuzzerMutate(data, size, max_size);
	mmr_mutate(c, seed);
	text = mmr_case_print(c);
	if (text)
		n = strlen(text);
	if (n && n <= max_size)
		memcpy(data, text, n);
	else
		n = 0;
	free(text);
	mmr_case_free(c);
	return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
