// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What has to come back after a case, on counts of a made-up tree: a field that
 * the case names, and the promised huge pages of each case that uses the pool.
 * Red when: a count below zero is missed, one that was there before is blamed
 * on the case, or a case without huge pages is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../triage/finding.h"
#include "../../triage/restored.h"
#include "../../triage/settings.h"

#define BODY "rounds 1 budget=1s\nprocess main\n  thread A\n    delay 1us\n"

static char root[64];

static void reserved(const char *count)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "HugePages_Free:        4\nHugePages_Rsvd:    %s\n", count);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	char dir[128];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/mmr_restored.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(dir, sizeof(dir), "%s/proc", root);
	if (mmr_mkdir_p(dir))
		return -1;
	mmr_settings_root(root);
	return 0;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	mmr_settings_root(NULL);
	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	unlink(path);
	snprintf(path, sizeof(path), "%s/proc", root);
	rmdir(path);
	return rmdir(root);
}

/* What did not come back when the count goes from `before` to `after`. */
static const char *check(const char *head, const char *before,
			 const char *after)
{
	static char text[256];
	static const struct mmr_outside none;
	struct mmr_restored f;
	struct mmr_diag d = {.text = ""};
	struct mmr_case *c = NULL;
	const char *name;
	char in[256];

	snprintf(in, sizeof(in), "mmrace-case 1\n%s" BODY, head);
	assert_int_equal(mmr_case_parse(in, strlen(in), &c, &d, NULL, NULL), 0);
	reserved(before);
	mmr_restored_note(&f, c, &none);
	reserved(after);
	name = mmr_restored_check(&f, c, &none, 0, text, sizeof(text));
	if (name)
		assert_non_null(strstr(text, name));
	mmr_case_free(c);
	return name ? text : NULL;
}

#define POOL "needs hugepages>=1\n"
#define SET "set nr_hugepages=4\n"
#define MINUS_1 "18446744073709551615"
#define MINUS_2 "18446744073709551614"

static void test_below_zero(void **state)
{
	const char *text = check(POOL, "0", MINUS_1);

	(void)state;
	assert_non_null(text);
	assert_non_null(strstr(text, "was 0 before and is -1"));
	assert_non_null(check(SET, "3", MINUS_2));
	assert_non_null(check(POOL, MINUS_1, MINUS_2));
}

static void test_not_ours(void **state)
{
	(void)state;
	assert_null(check(POOL, "0", "0"));
	/* Somebody else's, as it may be on a machine in use. */
	assert_null(check(POOL, "0", "2"));
	assert_null(check(POOL, "2", "0"));
	/* The kernel lost count before. */
	assert_null(check(POOL, MINUS_1, MINUS_1));
	assert_null(check(POOL, MINUS_2, MINUS_1));
	/* No huge page in the case. */
	assert_null(check("", "0", MINUS_1));
}

static void test_named(void **state)
{
	static const char expect[] = "expect restored HugePages_Rsvd\n";

	(void)state;
	assert_null(check(expect, "1", "1"));
	assert_non_null(check(expect, "1", "2"));
	assert_non_null(check(expect, "2", "1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_zero),
		cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_named),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
