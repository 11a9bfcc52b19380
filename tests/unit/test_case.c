// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text to case and back.  Red when a text that is wrong gets through, or is
 * refused at another place; when a canonical text does not print as itself;
 * when deleting a statement leaves a case that no longer parses; when a limit
 * moves.
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
#define MMAP "m0 = mmap len=1p prot=rw flags=private|anon"

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

static const struct {
	const char *text;
	int line, col;
	const char *says;
} bad[] = {
	/* Not a case at all. */
	{"", 1, 1, "it is empty"},
	{"\n\n# nothing\n", 1, 1, "it is empty"},
	{"hello\n", 1, 1, "mmrace-case 1"},
	{"mmrace-case\n", 1, 1, "only mmrace-case 1"},
	{"mmrace-case 2\n", 1, 13, "only mmrace-case 1"},
	{"mmrace-case 1 2\n", 1, 13, "only mmrace-case 1"},
	{"\x7f"
	 "ELF\x02\n",
	 1, 1, "control character 0x7f"},
	{"mmrace-case 1\r\n", 1, 14, "carriage return"},
	{"mmrace-case 1\ntitle   a\001b\n", 2, 10, "control character 0x01"},
	{"mmrace-case 1\ntitle   \xc0\xaf\n", 2, 9, "no UTF-8"},
	{"mmrace-case 1\ntitle   \xed\xa0\x80\n", 2, 9, "no UTF-8"},
	{"mmrace-case 1\n# \xf5\x80\x80\x80\n", 2, 3, "no UTF-8"},
	{"mmrace-case 1\n# \xe2\x82\n", 2, 3, "no UTF-8"},
	{MAIN "    wait \xc3\xa4\n", 5, 10, "only titles and comments"},
	/* Header. */
	{"mmrace-case 1\nfrobnicate\n", 2, 1, "unknown word 'frobnicate'"},
	{"mmrace-case 1\ntitle\n", 2, 1, "needs a text"},
	{"mmrace-case 1\ntitle a\ntitle b\n", 3, 1, "second title"},
	{"mmrace-case 1\norigin seed=x\n", 2, 13, "a seed is"},
	{"mmrace-case 1\norigin seed=18446744073709551616\n", 2, 13, "a seed"},
	{"mmrace-case 1\norigin seed=1 seed=1\n", 2, 15, "second 'seed'"},
	{"mmrace-case 1\norigin kernel=\n", 2, 15, "empty value"},
	{"mmrace-case 1\norigin\n", 2, 1, "NAME=VALUE"},
	{"mmrace-case 1\nneeds moon=full\n", 2, 7, "unknown need"},
	{"mmrace-case 1\nneeds cpus=2\n", 2, 7, "expected cpus>="},
	{"mmrace-case 1\nneeds cpus>=0\n", 2, 13, "must be from 1"},
	{"mmrace-case 1\nneeds cap=CAP_X\n", 2, 11, "unknown capability"},
	{"mmrace-case 1\nneeds syscall=x\n", 2, 15, "unknown system call"},
	{"mmrace-case 1\nneeds arch=vax\n", 2, 12, "unknown architecture"},
	{"mmrace-case 1\nneeds memory>=4p\n", 2, 15, "memory>= takes"},
	{"mmrace-case 1\nneeds thp thp\n", 2, 11, "given twice"},
	{"mmrace-case 1\nset panic=1\n", 2, 5, "unknown setting"},
	{"mmrace-case 1\nset nr_hugepages=-1\n", 2, 18, "must be from 0"},
	{"mmrace-case 1\nrounds\n", 2, 1, "needs a number"},
	{"mmrace-case 1\nrounds 0\n", 2, 8, "must be from 1"},
	{"mmrace-case 1\nrounds 1000000001\n", 2, 8, "must be from 1"},
	{"mmrace-case 1\nrounds 1 budget=-1s\n", 2, 17, "negative"},
	{"mmrace-case 1\nrounds 1 keep keep\n", 2, 15, "second 'keep'"},
	{"mmrace-case 1\nexpect miracles\n", 2, 8, "unknown expectation"},
	{"mmrace-case 1\nexpect progress\n", 2, 8, "expected within="},
	{"mmrace-case 1\nexpect call mmapp within=1s\n", 2, 13, "unknown op"},
	{"mmrace-case 1\nexpect quiet please\n", 2, 14, "unknown word"},
	{"mmrace-case 1\nseen 8/7\n", 2, 6, "must be from 0 to 7"},
	{"mmrace-case 1\nseen 8\n", 2, 1, "HITS/RUNS"},
	{"mmrace-case 1\nfixed abc subject\n", 2, 11, "in quotes"},
	{"mmrace-case 1\ntitle x\n", 1, 1, "no process"},
	/* Processes and threads. */
	{"mmrace-case 1\nthread A\n", 2, 1, "before any process"},
	{"mmrace-case 1\n  pause\n", 2, 3, "unknown word 'pause'"},
	{"mmrace-case 1\nprocess\n", 2, 1, "needs a name"},
	{"mmrace-case 1\nprocess idle\n", 2, 9, "no name for a process"},
	{"mmrace-case 1\nprocess 1x\n", 2, 9, "no name for a process"},
	{"mmrace-case 1\nprocess p copies=0\n", 2, 18, "must be from 1"},
	{"mmrace-case 1\nprocess p copies=1001\n", 2, 18, "must be from 1"},
	{"mmrace-case 1\nprocess p\n  pause\n", 3, 3, "expected a thread"},
	{"mmrace-case 1\nprocess p template\nthread A\npause\n", 2, 1,
	 "no process that starts"},
	{"mmrace-case 1\nprocess p\nthread A template\npause\n", 2, 1,
	 "no thread that starts"},
	{"mmrace-case 1\nprocess p copies=300\nthread A\npause\n", 2, 1,
	 "more than 256 threads start"},
	{MAIN "    pause\n  thread A\n", 6, 1, "two threads 'A'"},
	{MAIN "    pause\nprocess main\n  thread B\n", 6, 1, "two processes"},
	{MAIN "    pause\nprocess q\n  thread A\n", 7, 1, "two threads 'A'"},
	{MAIN "  thread B cpu=same(C)\n", 5, 21, "unknown thread 'C'"},
	{MAIN "  thread B cpu=other(B)\n", 5, 1, "leads back to itself"},
	{MAIN "  thread B cpu=other(C)\n  thread C cpu=same(B)\n", 5, 1,
	 "leads back to itself"},
	{MAIN "  thread B cpu=1024\n", 5, 16, "from 0 to 1023"},
	{MAIN "  thread B cpu=x\n", 5, 16, "cpu= takes"},
	{MAIN "  thread B segv=fix\n", 5, 17, "skip or return"},
	{MAIN "  thread B colour=red\n", 5, 12, "unknown or second"},
	{MAIN "title late\n", 5, 1, "before the first process"},
	/* Loops. */
	{MAIN, 3, 1, "no statement"},
	{MAIN "    end\n", 5, 5, "end without a loop"},
	{MAIN "    loop 5\n      pause\n", 5, 5, "no end"},
	{MAIN "    loop 5\n    pause\n  thread B\n", 5, 5, "no end"},
	{MAIN "    loop 0\n    end\n", 5, 10, "must be from 1"},
	{MAIN "    loop 1000000001\n    end\n", 5, 10, "must be from 1"},
	{MAIN "    loop 99999999999999999999\n    end\n", 5, 10, "must be"},
	{MAIN "    loop for=0\n    end\n", 5, 14, "1ns to 3600s"},
	{MAIN "    loop for=3601s\n    end\n", 5, 14, "1ns to 3600s"},
	{MAIN "    loop until=done(B)\n    end\n", 5, 21, "unknown thread"},
	{MAIN "    loop until=exited(B)\n    end\n", 5, 23, "unknown process"},
	{MAIN "    loop until=done(idle)\n    end\n", 5, 21, "no name for"},
	{MAIN "    loop until=x\n    end\n", 5, 10, "a loop takes"},
	{MAIN "    loop 1 2\n    end\n", 5, 12, "unknown word '2'"},
	{MAIN "loop\nloop\nloop\nloop\nloop\n", 9, 1, "4 deep"},
	{MAIN "    loop 2\n    end x\n", 6, 9, "behind end"},
	/* Statements. */
	{MAIN "    mmapp m0\n", 5, 5, "unknown op 'mmapp'"},
	{MAIN "    m0 = mmapp\n", 5, 10, "unknown op 'mmapp'"},
	{MAIN "    m0 =\n", 5, 8, "= needs an op"},
	{MAIN "    end = mmap\n", 5, 5, "no name for a ref"},
	{MAIN "    x = pause\n", 5, 5, "makes nothing"},
	{MAIN "    m0 = mmap len=1p prot=rw\n", 5, 10, "mmap needs flags="},
	{MAIN "    munmap\n", 5, 5, "munmap needs m"},
	{MAIN "    munmap m=m0\n", 5, 12, "unknown argument 'm'"},
	{MAIN "    " MMAP " x=1\n", 5, 49, "unknown argument 'x'"},
	{MAIN "    " MMAP " fresh\n", 5, 49, "unknown word 'fresh'"},
	{MAIN "    m0 = mmap len=1p len=1p\n", 5, 22, "len is given twice"},
	{MAIN "    m0 = mmap len=0\n", 5, 19, "at least 1"},
	{MAIN "    m0 = mmap len=1x\n", 5, 19, "no size"},
	{MAIN "    m0 = mmap len=-1\n", 5, 19, "no size"},
	{MAIN "    m0 = mmap len=65537G\n", 5, 19, "limit of 65536G"},
	{MAIN "    m0 = mmap len=9223372036854775807h\n", 5, 19, "beyond"},
	{MAIN "    m0 = mmap len=9999999999999G\n", 5, 19, "too large"},
	{MAIN "    m0 = mmap prot=rwq\n", 5, 20,
	 "prot: unknown 'rwq', known: "},
	{MAIN "    m0 = mmap flags=anon|bogus\n", 5, 26, "unknown 'bogus'"},
	{MAIN "    m0 = mmap flags=anon|anon\n", 5, 26, "anon is given twice"},
	{MAIN "    m0 = mmap flags=anon|\n", 5, 26, "unknown ''"},
	{MAIN "    delay 20\n", 5, 11, "no time"},
	{MAIN "    delay 1.5s\n", 5, 11, "no time"},
	{MAIN "    delay -1us\n", 5, 11, "cannot be negative"},
	{MAIN "    delay 2us..1us\n", 5, 11, "ends before it begins"},
	{MAIN "    delay 2us..\n", 5, 16, "no time"},
	{MAIN "    delay auto\n", 5, 11, "no time"},
	{MAIN "    delay 61s\n", 5, 11, "limit of 60s"},
	{MAIN "    delay 9999999999999s\n", 5, 11, "too large"},
	{MAIN "    exit_group status=256\n", 5, 23, "from 0 to 255"},
	{MAIN "    exit_group status=x\n", 5, 23, "no number"},
	{MAIN "    pause ->\n", 5, 11, "needs results"},
	{MAIN "    pause -> EWHATEVER\n", 5, 14, "unknown result"},
	{MAIN "    pause -> 0|0\n", 5, 16, "given twice"},
	{MAIN "    pause -> 0 EIO\n", 5, 16, "behind the results"},
	{MAIN "    pause -> 0|1\n", 5, 16, "unknown result"},
	{MAIN "    t = thread_spawn body=B\n", 5, 27, "unknown thread 'B'"},
	{MAIN "    t = thread_spawn body=body\n", 5, 27, "unknown thread"},
	{MAIN "    t = thread_spawn body=A\n", 5, 27, "no template"},
	{MAIN "    p = process_spawn q\n", 5, 23, "unknown process 'q'"},
	{MAIN "    p = process_spawn main\n", 5, 23, "no template"},
	{MAIN "    p = process_spawn idle fresh fresh\n", 5, 34, "twice"},
	{MAIN "    " MMAP "\n    thread_join m0\n", 6, 17,
	 "m0 is a mapping, thread_join needs a thread"},
	{MAIN "    " MMAP "\n    m0 = userfaultfd\n", 6, 5,
	 "m0 is a mapping elsewhere, userfaultfd makes a userfaultfd"},
	{MAIN "    x = process_spawn x\n", 5, 23, "unknown process 'x'"},
	{MAIN "  thread T template\n    sync s\n", 6, 5, "a rendezvous is for"},
};

static void refuse(const char *text, size_t len, int line, int col,
		   const char *says)
{
	struct mmr_diag d = {0};
	struct mmr_case *c;
	int rc = mmr_case_parse(text, len, &c, &d, NULL, NULL);

	if (rc == 0)
		mmr_case_free(c);
	if (rc != -EINVAL || d.line != line || d.col != col ||
	    !strstr(d.text, says))
		fail_msg("%s\nwanted %d:%d %s, got %d, %d:%d %s", text, line,
			 col, says, rc, d.line, d.col, d.text);
}

static void test_bad(void **state)
{
	static const char nul[] = MAIN "    pause\0\n";
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuse(bad[i].text, strlen(bad[i].text), bad[i].line,
		       bad[i].col, bad[i].says);
	refuse(nul, sizeof(nul) - 1, 5, 10, "NUL");
}

/* head, then n times the line with its number in it, then tail. */
static char *repeat(const char *head, int n, const char *line, const char *tail)
{
	char *s = malloc(strlen(head) + strlen(tail) + 64u * (size_t)n + 1), *p;
	int i;

	assert_non_null(s);
	p = stpcpy(s, head);
	for (i = 0; i < n; i++)
		p += snprintf(p, 64, line, i);
	strcpy(p, tail);
	return s;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

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

static void test_limits(void **state)
{
	static const struct {
		const char *head, *line, *tail;
		int most;
		const char *says;
	} limits[] = {
		{MAIN, "    pause\n", "", 4096, "more than 4096 statements"},
		{MAIN, "    signal l%d\n", "", 64, "more than 64 latches"},
		{MAIN, "    sync l%d\n", "", 64, "more than 64 rendezvous"},
		{MAIN, "    futex_wake l%d\n", "", 64, "more than 64 futexes"},
		{MAIN, "    r%d = memfd_create\n", "", 256,
		 "more than 256 refs"},
		{MAIN, "    close r%d\n", "", 256, "more than 256 refs"},
		{MAIN "    pause\n", "  thread t%d template\n", "", 255,
		 "more than 256 threads"},
		{MAIN "    pause", " x%d", "", 0, "unknown word"},
		{MAIN "    pause #", "%d", "\n", 10000, ""},
		{"mmrace-case 1\n", "expect quiet\n",
		 "process p\nthread a\npause\n", 32, "more than 32 expect"},
	};
	struct mmr_diag d;
	struct mmr_case *c;
	char *text;
	size_t i;
	int rc;

	(void)state;
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		text = repeat(limits[i].head, limits[i].most, limits[i].line,
			      limits[i].tail);
		c = parse(text);
		mmr_case_free(c);
		free(text);
		if (!limits[i].says[0])
			continue;
		text = repeat(limits[i].head, limits[i].most + 1,
			      limits[i].line, limits[i].tail);
		rc = mmr_case_parse(text, strlen(text), &c, &d, NULL, NULL);
		assert_int_equal(rc, -EINVAL);
		if (!strstr(d.text, limits[i].says))
			fail_msg("wanted %s, got %s", limits[i].says, d.text);
		free(text);
	}
	text = repeat("mmrace-case 1\n", 60000, "# %18d\n", "");
	refuse(text, strlen(text), 1, 1, "1048576 bytes");
	free(text);
}

struct warnings {
	int n;
	struct mmr_diag last;
};

static void on_warning(void *arg, const struct mmr_diag *d)
{
	struct warnings *w = arg;

	w->n++;
	w->last = *d;
}

static void test_warning(void **state)
{
	static const char text[] =
		MAIN "    write m0\n"
		     "    munmap m0\n"
		     "    m1 = mmap len=1p prot=rw flags=anon\n"
		     "    write m1\n"
		     "    kill p0 KILL\n";
	struct warnings w = {0};
	struct mmr_diag d;
	struct mmr_case *c;

	(void)state;
	assert_int_equal(
		mmr_case_parse(text, strlen(text), &c, &d, on_warning, &w), 0);
	mmr_case_free(c);
	/* m0 once, p0 once. */
	assert_int_equal(w.n, 2);
	assert_int_equal(w.last.line, 9);
	assert_int_equal(w.last.col, 10);
	assert_non_null(strstr(w.last.text, "nothing assigns p0"));
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
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_at_zero),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_warning),
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
