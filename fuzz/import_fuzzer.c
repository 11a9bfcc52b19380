// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer target for the importer: whatever the bytes are, as a syzkaller
 * program and as a log of strace, it either refuses them with a place, or what
 * it writes is a case that parses, keeps the rules, and prints as itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void broken(const char *what, const char *text)
{
	fprintf(stderr, "import_fuzzer: %s:\n%s\n", what, text ? text : "");
	abort();
}

static void check(const struct mmr_import_result *r)
{
	struct mmr_case *c = NULL, *again = NULL;
	struct mmr_diag diag = {0};
	char *text;

	if (mmr_case_parse(r->text, strlen(r->text), &c, &diag, NULL, NULL))
		broken(diag.text, r->text);
	text = mmr_case_print(c);
	if (!text ||
	    mmr_case_parse(text, strlen(text), &again, &diag, NULL, NULL))
		broken("printed, does not parse", text);
	if (mmr_case_count(c) != r->statements)
		broken("another number of statements", r->text);
	if (r->mapped + r->ignored + r->unmapped != r->calls)
		broken("calls that are not counted", r->text);
	free(text);
	mmr_case_free(again);
	mmr_case_free(c);
}

static void import(const char *text, size_t size, enum mmr_import_from from)
{
	struct mmr_import_opts o = {.from = from, .name = "x"};
	struct mmr_import_result r;
	struct mmr_diag diag = {0};
	int rc = mmr_import(text, size, &o, &r, &diag);

	if (rc && (rc != -22 || diag.line < 1 || !diag.text[0]))
		broken("an error without a place", diag.text);
	if (rc)
		return;
	check(&r);
	mmr_import_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import((const char *)data, size, MMR_IMPORT_SYZ);
	import((const char *)data, size, MMR_IMPORT_STRACE);
	return 0;
}
