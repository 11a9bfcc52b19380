// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text to case and back; what is refused is in test_case_bad.c.  Red when a
 * canonical text does not print as itself; when deleting a statement leaves a
 * case that no longer parses; when a case that a program made is held to other
 * rules than a text.
 */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../fuzz/gen.h"
#include "../../ops/case.h"

#define MAIN "mmrace-case 1\n\nprocess main\n  thread A\n"

static struct mmr_case *parse(const char *text)
{
	struct mmr_diag d;
	struct mmr_case *c;

	if (mmr_case_parse(text, strlen(text), &c, &d, NULL, NULL))
		fail_msg("%d:%d: %s in\n%s", d.line, d.col, d.text, text);
	return c;
}

static void prints_as(const struct mmr_case *c, const char *want)
{
	char *have = mmr_case_print(c);

	assert_non_null(have);
	assert_string_equal(have, want);
	free(have);
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "re");
	char *s = calloc(1, 1 << 16);

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	assert_non_null(s);
	assert_true(fread(s, 1, (1 << 16) - 1, f) > 0);
	fclose(f);
	return s;
}

static void test_golden(void **state)
{
	struct mmr_diag d;
	struct mmr_case *c;
	char *text, *dot;
	glob_t g;
	size_t i;

	(void)state;
	assert_int_equal(glob("tests/golden/*.case", 0, NULL, &g), 0);
	assert_true(g.gl_pathc >= 4);
	for (i = 0; i < g.gl_pathc; i++) {
		text = slurp(g.gl_pathv[i]);
		c = parse(text);
		prints_as(c, text);
		mmr_case_free(c);
		/* NAME.in: another text of the same case. */
		dot = strrchr(g.gl_pathv[i], '.');
		memcpy(dot, ".in", 4);
		if (mmr_case_load(g.gl_pathv[i], &c, &d, NULL, NULL) == 0) {
			prints_as(c, text);
			mmr_case_free(c);
		} else {
			assert_int_equal(d.line, 0);
		}
		free(text);
	}
	globfree(&g);
}

/* The arena's start is a place, not the lack of one: were it the default, it
 * would not be printed, and MAP_FIXED would go to address 0. */
static void test_at_zero(void **state)
{
	static const char text[] =
		MAIN "    m0 = mmap len=1p prot=r flags=anon|fixed at=0\n";
	struct mmr_case *c = parse(text);

	(void)state;
	prints_as(c, text);
	mmr_case_free(c);
}

/* print(parse(print(c))) is print(c), and so for c without any one of its
 * statements. */
static void holds(const struct mmr_case *c)
{
	struct mmr_case *less, *again;
	char *text = mmr_case_print(c);
	int i, n = mmr_case_count(c);

	assert_non_null(text);
	again = parse(text);
	prints_as(again, text);
	mmr_case_free(again);
	free(text);
	for (i = 0; i < n; i++) {
		less = mmr_case_clone(c);
		assert_non_null(less);
		assert_int_equal(mmr_case_remove(less, i), 0);
		if (mmr_case_count(less)) {
			text = mmr_case_print(less);
			again = parse(text);
			prints_as(again, text);
			mmr_case_free(again);
			free(text);
		}
		mmr_case_free(less);
	}
}

static void test_deletion(void **state)
{
	static const char *const seeds[] = {
		"tests/golden/all-forms.case",
		"tests/golden/design-fault.case",
		"tests/golden/design-mrelease.case",
	};
	struct mmr_case *c;
	uint64_t edit;
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		text = slurp(seeds[i]);
		c = parse(text);
		free(text);
		holds(c);
		for (edit = 0; edit < 150; edit++) {
			mmr_mutate(c, edit);
			holds(c);
		}
		mmr_case_free(c);
	}
}

static void test_numbering(void **state)
{
	struct mmr_proc *p;
	struct mmr_case *c;
	char *text;

	(void)state;
	text = slurp("tests/golden/design-fault.case");
	c = parse(text);
	assert_int_equal(mmr_case_count(c), 7);
	assert_int_equal(mmr_case_stmt(c, 0)->kind, MMR_STMT_LOOP);
	assert_string_equal(mmr_case_stmt(c, 3)->op->name, "munmap");
	assert_string_equal(mmr_case_stmt_thread(c, 4, &p)->name, "B");
	assert_string_equal(p->name, "main");
	assert_null(mmr_case_stmt(c, 7));
	assert_null(mmr_case_stmt(c, -1));
	assert_int_equal(mmr_case_remove(c, 7), -ENOENT);
	assert_int_equal(mmr_case_unwrap(c, 1), -EINVAL);
	assert_int_equal(mmr_case_unwrap(c, 0), 0);
	assert_int_equal(mmr_case_count(c), 6);
	assert_string_equal(mmr_case_stmt(c, 0)->op->name, "mmap");
	assert_string_equal(mmr_case_stmt(c, 2)->op->name, "munmap");
	holds(c);
	/* B's loop waits for A: it goes with A. */
	assert_int_equal(mmr_case_remove_thread(c, c->procs[0], 0), 0);
	assert_int_equal(mmr_case_count(c), 0);
	assert_int_equal(mmr_case_remove_thread(c, c->procs[0], 1), -ENOENT);
	mmr_case_free(c);
	free(text);
}

static void test_remove_proc(void **state)
{
	char *text = slurp("tests/golden/all-forms.case"), *out;
	struct mmr_case *c = parse(text);

	(void)state;
	assert_int_equal(mmr_case_remove_proc(c, 0), 0);
	out = mmr_case_print(c);
	assert_null(strstr(out, "child"));
	assert_null(strstr(out, "thread C\n"));
	assert_non_null(strstr(out, "process_spawn idle fresh"));
	free(out);
	/* A goes: B is pinned to no thread any more, and C2 still to B. */
	assert_int_equal(mmr_case_remove_thread(c, c->procs[0], 0), 0);
	out = mmr_case_print(c);
	assert_non_null(strstr(out, "thread B segv=return\n"));
	assert_non_null(strstr(out, "thread C2 cpu=same(B)\n"));
	assert_null(strstr(out, "done(A)"));
	free(out);
	holds(c);
	assert_int_equal(mmr_case_remove_proc(c, 1), -ENOENT);
	mmr_case_free(c);
	free(text);
}

static void test_clone(void **state)
{
	char *text = slurp("tests/golden/all-forms.case");
	struct mmr_case *c = parse(text), *copy = mmr_case_clone(c);

	(void)state;
	assert_non_null(copy);
	while (mmr_case_count(c))
		assert_int_equal(mmr_case_remove(c, 0), 0);
	mmr_case_free(c);
	prints_as(copy, text);
	mmr_case_free(copy);
	free(text);
}

/* Cases that a program makes are held to the same rules. */
static void test_build(void **state)
{
	struct mmr_case *c = mmr_case_new();
	struct mmr_proc *p = mmr_case_add_proc(c, "main");
	struct mmr_thread *t = mmr_case_add_thread(c, p, "A");
	struct mmr_diag d;
	struct mmr_stmt *s;

	(void)state;
	assert_int_equal(mmr_case_check(c, &d), -EINVAL);
	assert_non_null(strstr(d.text, "no statement"));
	s = mmr_case_add_op(c, &t->body, mmr_op_by_name("write"), NULL);
	assert_int_equal(mmr_case_check(c, &d), -EINVAL);
	assert_non_null(strstr(d.text, "write needs m"));
	s->args[0].set = true;
	s->args[0].name = "m0";
	assert_int_equal(mmr_case_check(c, &d), 0);
	s->args[3].set = true; /* step, at its default: not printed */
	prints_as(c, MAIN "    write m0\n");
	s->args[3].lo = 0;
	assert_int_equal(mmr_case_check(c, &d), -EINVAL);
	s->args[3].lo = 2;
	s->args[3].unit = MMR_UNIT_PAGE;
	s->naccept = 1;
	s->accept[0] = EFAULT;
	prints_as(c, MAIN "    write m0 step=2p -> EFAULT\n");
	s->accept[0] = 99999;
	assert_int_equal(mmr_case_check(c, &d), -EINVAL);
	s->naccept = 0;
	c->title = "two\nlines";
	assert_int_equal(mmr_case_check(c, &d), -EINVAL);
	c->title = NULL;
	assert_int_equal(mmr_case_add_need(c, MMR_NEED_CAP, 0, "x"), 0);
	assert_int_equal(mmr_case_check(c, &d), -EINVAL);
	c->nneeds = 0;
	s = mmr_case_add_loop(c, &t->body, MMR_UNTIL_DONE, 0, "Z");
	assert_int_equal(mmr_case_check(c, &d), -EINVAL);
	assert_non_null(strstr(d.text, "unknown thread 'Z'"));
	s->until_name = "A";
	assert_int_equal(mmr_case_check(c, &d), 0);
	mmr_case_free(c);
}

static void test_numbers(void **state)
{
	enum mmr_unit unit;
	char buf[48];
	int64_t v;

	(void)state;
	assert_int_equal(mmr_case_parse_time("20us", &v), 0);
	assert_int_equal(v, 20000);
	assert_int_equal(mmr_case_parse_time("0", &v), 0);
	assert_int_equal(mmr_case_parse_time("20", &v), -EINVAL);
	assert_int_equal(mmr_case_parse_time("-1s", &v), -EINVAL);
	assert_int_equal(mmr_case_parse_time("1.5s", &v), -EINVAL);
	assert_int_equal(mmr_case_parse_time("", &v), -EINVAL);
	assert_int_equal(mmr_case_parse_time("9223372037s", &v), -EINVAL);
	assert_int_equal(mmr_case_parse_size("3h", &v, &unit), 0);
	assert_int_equal(v, 3);
	assert_int_equal(unit, MMR_UNIT_HUGE);
	assert_int_equal(mmr_case_parse_size("4K", &v, &unit), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(mmr_case_parse_size("4KK", &v, &unit), -EINVAL);
	assert_string_equal(mmr_case_print_time(buf, 48, 1500000), "1500us");
	assert_string_equal(mmr_case_print_time(buf, 48, -2000000000), "-2s");
	assert_string_equal(
		mmr_case_print_size(buf, 48, 3 << 20, MMR_UNIT_BYTE), "3M");
	assert_string_equal(mmr_case_print_size(buf, 48, 1025, MMR_UNIT_BYTE),
			    "1025");
	assert_int_equal(mmr_errno_value("EINVAL"), EINVAL);
	assert_int_equal(mmr_errno_value("0"), 0);
	assert_int_equal(mmr_errno_value("EXYZ"), -1);
	assert_string_equal(mmr_errno_name(EAGAIN), "EAGAIN");
	assert_null(mmr_errno_name(99999));
}

/* What every op's descriptor has to keep for parser and printer. */
static void test_descriptors(void **state)
{
	const struct mmr_argspec *a;
	const struct mmr_op *op;
	unsigned int id, n = 0;
	int i, optional;

	(void)state;
	for (id = 0; id < MMR_OP_LIMIT; id++) {
		op = mmr_op_by_id(id);
		if (!op)
			continue;
		n++;
		assert_int_equal(op->id, id);
		assert_ptr_equal(mmr_op_by_name(op->name), op);
		assert_true(op->help && op->race);
		optional = 0;
		for (i = 0; i < op->nargs; i++) {
			a = &op->args[i];
			assert_int_equal(mmr_op_arg(op, a->name), i);
			assert_non_null(a->help);
			if (a->type == MMR_ARG_REF)
				assert_true(a->kinds);
			if (a->type == MMR_ARG_ENUM || a->type == MMR_ARG_FLAGS)
				assert_true(a->names && a->names[0].name);
			/* A bare word is there or not. */
			if (a->type == MMR_ARG_WORD)
				assert_true(a->flags & MMR_ARG_OPT);
			/* Nothing positional behind what may be left out. */
			if (a->flags & MMR_ARG_POS) {
				assert_false(optional);
				optional = a->flags & MMR_ARG_OPT;
			}
		}
		assert_int_equal(mmr_op_arg(op, "no such"), -1);
	}
	assert_true(n >= 28);
	assert_null(mmr_op_by_name("mmapp"));
	assert_null(mmr_op_by_id(MMR_OP_LIMIT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_at_zero),
		cmocka_unit_test(test_deletion),
		cmocka_unit_test(test_numbering),
		cmocka_unit_test(test_remove_proc),
		cmocka_unit_test(test_clone),
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_descriptors),
	};

	return cmocka_run_group_tests_name("case", tests, NULL, NULL);
}
