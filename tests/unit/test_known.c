// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file of --known: red when an entry without reason or day, one that says
 * no more than a verdict, or one for ever, is taken; when an expired one still
 * sets aside; when a star matches what it must not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../triage/known.h"

#define TODAY 1893456000 /* 2030-01-01 */
#define DAY 86400

static struct mmr_known *parse(const char *text)
{
	struct mmr_known *k = NULL;
	struct mmr_diag diag;

	if (mmr_known_parse(text, strlen(text), TODAY, &k, &diag))
		fail_msg("%d:%d: %s", diag.line, diag.col, diag.text);
	return k;
}

static void refused(const char *text, int line, int col, const char *why)
{
	struct mmr_known *k = NULL;
	struct mmr_diag diag;

	assert_int_equal(mmr_known_parse(text, strlen(text), TODAY, &k, &diag),
			 -EINVAL);
	assert_null(k);
	if (diag.line != line || diag.col != col || !strstr(diag.text, why))
		fail_msg("%d:%d: %s: not %d:%d: %s", diag.line, diag.col,
			 diag.text, line, col, why);
}

#define ENTRY(pattern, until)                                                  \
	"known   " pattern "\nreason  because\nuntil   " until "\n"

static void matching(void **state)
{
	static const char file[] = "# what we know\n\n" ENTRY(
		"hang write handle_userfault<*", "2030-02-01")
		ENTRY("kernel-log WARNING:* at mm/rmap.c:*", "2030-01-01")
			ENTRY("hang futex_wait", "2030-01-05");
	struct mmr_known *k = parse(file);
	char until[16];
	json_t *j;

	(void)state;
	assert_string_equal(mmr_known_match(k,
					    "hang write handle_userfault<do_x",
					    TODAY, until),
			    "because");
	assert_string_equal(until, "2030-02-01");
	/* The whole signature, not a part of it. */
	assert_null(mmr_known_match(k, "hang write handle_userfault", TODAY,
				    until));
	assert_null(mmr_known_match(k, "hang futex_wait futex_do_wait", TODAY,
				    until));
	assert_non_null(mmr_known_match(k, "hang futex_wait", TODAY, until));
	assert_non_null(mmr_known_match(
		k, "kernel-log WARNING: CPU: PID: at mm/rmap.c:77 f", TODAY,
		until));
	assert_null(mmr_known_match(k, "", TODAY, until));
	/* Its day counts to the end, and no longer. */
	assert_non_null(mmr_known_match(k, "hang futex_wait",
					TODAY + 5 * DAY - 1, until));
	assert_null(
		mmr_known_match(k, "hang futex_wait", TODAY + 5 * DAY, until));
	j = mmr_known_json(k);
	assert_int_equal(json_array_size(j), 3);
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(j, 2), "count")),
			 2);
	json_decref(j);
	mmr_known_free(k);
}

static void no_blanket(void **state)
{
	(void)state;
	refused(ENTRY("*", "2030-02-01"), 1, 9, "begins with a whole verdict");
	refused(ENTRY("hang", "2030-02-01"), 1, 13, "more than the verdict");
	refused(ENTRY("hang *", "2030-02-01"), 1, 13, "more than the verdict");
	refused(ENTRY("hang ***a*b*", "2030-02-01"), 1, 13, "more than");
	refused(ENTRY("ha* write handle", "2030-02-01"), 1, 9, "whole verdict");
	refused(ENTRY("nothing write foo", "2030-02-01"), 1, 9,
		"whole verdict");
}

static void reason_and_day(void **state)
{
	(void)state;
	refused("known hang write\nuntil 2030-02-01\n", 2, 1, "'reason'");
	refused("known hang write\nreason\n", 2, 7, "wants something");
	refused("known hang write\nreason x\n", 2, 1, "no 'until'");
	refused("known hang write\nreason x\nknown hang read\n", 3, 1,
		"'until' is missing");
	refused("reason x\n", 1, 1, "instead of 'known'");
	refused(ENTRY("hang write", "soon"), 3, 9, "YYYY-MM-DD");
	refused(ENTRY("hang write", "2030-02-30"), 3, 9, "is no day");
	refused(ENTRY("hang write", "2031-06-01"), 3, 9, "more than a year");
	refused("known hang write\003\n\n", 2, 1, "no 'reason'");
	mmr_known_free(parse("# nothing\n"));
	/* What has expired is no error: it only sets nothing aside. */
	mmr_known_free(parse(ENTRY("hang write", "2020-01-01")));
}

static void odd_bytes(void **state)
{
	struct mmr_known *k = NULL;
	struct mmr_diag diag;
	char big[2000];

	(void)state;
	memset(big, 'x', sizeof(big));
	assert_int_equal(mmr_known_parse(big, sizeof(big), TODAY, &k, &diag),
			 -EINVAL);
	assert_int_equal(mmr_known_parse("known\0x", 7, TODAY, &k, &diag),
			 -EINVAL);
	assert_non_null(strstr(diag.text, "NUL"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matching),
		cmocka_unit_test(no_blanket),
		cmocka_unit_test(reason_and_day),
		cmocka_unit_test(odd_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
