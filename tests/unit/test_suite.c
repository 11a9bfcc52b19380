// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Plans, bounds and formats of a suite.  Red when a bound is not the exact
 * one, a case gets another number of runs than its rate demands, or a sentence
 * breaks a format.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../triage/suite.h"

static struct mmr_case *parse(const char *text)
{
	struct mmr_diag diag;
	struct mmr_case *c = NULL;

	assert_int_equal(
		mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL), 0);
	return c;
}

#define BODY                                                                   \
	"process main\n thread A\n  m0 = mmap len=1p prot=rw "                 \
	"flags=private|anon\n"

static void test_bound(void **state)
{
	(void)state;
	assert_true(fabs(mmr_suite_bound(1) - 0.95) < 1e-12);
	/* (1 - p)^n = 0.05 */
	assert_true(fabs(pow(1 - mmr_suite_bound(2000), 2000) - 0.05) < 1e-9);
	assert_true(fabs(mmr_suite_bound(3000000000) * 3e9 - 2.9957) < 1e-3);
	assert_true(mmr_suite_bound(0) == 1);
}

static void test_rate_text(void **state)
{
	struct mmr_suite_case t = {
		.runs = 1, .rounds = 2010, .rounds_void = 10};
	char buf[200];

	(void)state;
	assert_string_equal(mmr_suite_rate_text(buf, sizeof(buf), &t),
			    "0 of 2,000 rounds: rate < 0.15 % at 95 %");
	t.runs = 42;
	t.rounds = 1234567;
	t.rounds_void = 0;
	assert_string_equal(mmr_suite_rate_text(buf, sizeof(buf), &t),
			    "0 of 1,234,567 rounds: rate < 2.4e-04 % at 95 %; "
			    "0 of 42 runs: < 6.9 %");
	t.hits = 1;
	t.runs = 4;
	assert_string_equal(mmr_suite_rate_text(buf, sizeof(buf), &t),
			    "1 of 4 runs: rate 25 % (0.63 % to 81 % at 95 %)");
}

static void test_plan(void **state)
{
	static const struct {
		const char *text;
		uint64_t runs;
		bool alone;
	} rows[] = {
		{"mmrace-case 1\n" BODY, 0, false},
		/* ln 0.05 / ln 0.93 = 41.3 */
		{"mmrace-case 1\nseen 7/100\n" BODY, 42, false},
		{"mmrace-case 1\nseen 3/3\n" BODY, 1, false},
		{"mmrace-case 1\nset nr_hugepages=4\n" BODY, 0, true},
		{"mmrace-case 1\nneeds hugepages>=4\n" BODY, 0, true},
		{"mmrace-case 1\nneeds memory>=1G\n" BODY, 0, true},
		{"mmrace-case 1\nneeds cpus>=2\n" BODY, 0, false},
		{"mmrace-case 1\nexpect restored HugePages_Free\n" BODY, 0,
		 true},
	};
	struct mmr_suite_opts o = {.jobs = 2};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mmr_case *c = parse(rows[i].text);
		struct mmr_suite_case t = {.name = "x", .c = c};
		struct mmr_suite s = {.cases = &t, .n = 1};

		o.runs = 0;
		mmr_suite_plan(&s, &o);
		assert_int_equal(t.want_runs, rows[i].runs);
		assert_int_equal(t.alone, rows[i].alone);
		assert_int_equal(t.alone_why != NULL, rows[i].alone);
		o.runs = 5;
		mmr_suite_plan(&s, &o);
		assert_int_equal(t.want_runs, 5);
		mmr_case_free(c);
	}
}

/* What a kernel log or a path may hold, in each format. */
static void test_formats(void **state)
{
	struct mmr_case *c = parse("mmrace-case 1\n" BODY);
	struct mmr_suite_case t = {.name = "dir/a&b",
				   .path = "p",
				   .c = c,
				   .done = true,
				   .outcome = MMR_SUITE_FAIL,
				   .verdict = MMR_HANG,
				   .runs = 1,
				   .hits = 1,
				   .log = (char[]){"<x> \x01 \xff ]]>\n"}};
	struct mmr_suite s = {
		.cases = &t, .n = 1, .count = {[MMR_SUITE_FAIL] = 1}};
	char *text = NULL;
	size_t len = 0;
	json_t *j;
	FILE *f;

	(void)state;
	strcpy(t.why, "it's # <stuck>\nin \"x\"");
	f = open_memstream(&text, &len);
	mmr_suite_junit(f, &s);
	fclose(f);
	assert_non_null(strstr(text, "classname=\"dir\" name=\"a&amp;b\""));
	assert_non_null(strstr(text, "&lt;stuck&gt;"));
	assert_non_null(strstr(text, "&lt;x&gt; ? ? ]]&gt;\n"));
	assert_null(strchr(text, '\x01'));
	free(text);
	f = open_memstream(&text, &len);
	mmr_suite_tap_case(f, &t, 1, false);
	fclose(f);
	assert_non_null(strstr(text, "not ok 1 - dir/a&b\n"));
	assert_non_null(strstr(text, "message: 'it''s # <stuck> in \"x\"'\n"));
	free(text);
	f = open_memstream(&text, &len);
	mmr_suite_tap_case(f, &t, 1, true);
	fclose(f);
	assert_non_null(strstr(text, "\n# it's _ <stuck> in \"x\"\n"));
	assert_non_null(strstr(text, "\nnot ok 1 dir/a&b\n"));
	free(text);
	j = mmr_suite_json(&s);
	assert_int_equal(json_integer_value(json_object_get(j, "fail")), 1);
	json_decref(j);
	mmr_case_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_rate_text),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
