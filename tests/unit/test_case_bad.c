// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texts that are refused, or taken with a warning.  Red when a text that is
 * wrong gets through, or is refused at another place or for another reason;
 * when a limit moves; when a ref that nothing assigns is not said.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../ops/case.h"

#define MAIN "mmrace-case 1\n\nprocess main\n  thread A\n"
#define MMAP "m0 = mmap len=1p prot=rw flags=private|anon"

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
	{"mmrace-case 1\nneeds feature=x\n", 2, 15, "unknown feature"},
	{"mmrace-case 1\nneeds memory>=4p\n", 2, 15, "memory>= takes"},
	{"mmrace-case 1\nneeds thp thp\n", 2, 11, "given twice"},
	{"mmrace-case 1\nset panic=1\n", 2, 5, "unknown setting"},
	{"mmrace-case 1\nset nr_hugepages=-1\n", 2, 18, "must be from 0"},
	{"mmrace-case 1\nset thp_enabled=1\n", 2, 17,
	 "takes one of always madvise never"},
	{"mmrace-case 1\nset thp_enabled=force\n", 2, 17, "takes one of"},
	{"mmrace-case 1\nset compact_memory=1\n", 2, 20,
	 "say needs writes=compact_memory"},
	{"mmrace-case 1\nneeds writes=panic\n", 2, 14, "unknown setting"},
	{"mmrace-case 1\nneeds swap>=1p\n", 2, 13, "with K, M or G"},
	{"mmrace-case 1\nneeds memcg=1\n", 2, 12, "memcg stands alone"},
	{MAIN "    set_number thp_enabled 1\n", 5, 16, "unknown"},
	{MAIN "    set_mode thp_enabled 1\n", 5, 26, "unknown"},
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
	{"mmrace-case 1\nrounds 2 order=0\n", 2, 16, "must be from 1 to 7"},
	{"mmrace-case 1\nrounds 2 order=8\n", 2, 16, "must be from 1 to 7"},
	{"mmrace-case 1\nrounds 2 order=2 order=2\n", 2, 18, "second"},
	{MAIN "    delay log..1us\n", 5, 11, "no time"},
	{MAIN "    sync s skew=-log\n", 5, 17, "no time"},
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
		rc = mmr_case_parse(text, strlen(text), &c, &d, NULL, NULL);
		if (rc)
			fail_msg("%d:%d: %s in\n%.200s", d.line, d.col, d.text,
				 text);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_warning),
	};

	return cmocka_run_group_tests_name("case_bad", tests, NULL, NULL);
}
