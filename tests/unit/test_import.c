// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The importer: each sample imports into what it says, 1,000 damaged ones do
 * no harm, long logs fold and end in time.  Red when a call maps to something
 * else, what could not be mapped is not named, or a result does not parse.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../ops/rng.h"
#include "../../triage/import.h"

#define SYZ "tests/import/syz"
#define STRACE "tests/import/strace"

static char *load(const char *dir, const char *name, size_t *len)
{
	char path[600], *text;
	FILE *f;
	long n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	text = malloc((size_t)n + 1);
	assert_non_null(text);
	*len = fread(text, 1, (size_t)n, f);
	text[*len] = '\0';
	fclose(f);
	return text;
}

static int import(const char *text, size_t len, enum mmr_import_from from,
		  struct mmr_import_result *r)
{
	struct mmr_import_opts o = {.from = from, .name = "x"};
	struct mmr_diag diag = {0};
	struct mmr_case *c = NULL;
	int rc = mmr_import(text, len, &o, r, &diag);

	if (rc) {
		assert_int_equal(rc, -EINVAL);
		assert_true(diag.line >= 1 && diag.text[0]);
		return rc;
	}
	assert_int_equal(
		mmr_case_parse(r->text, strlen(r->text), &c, &diag, NULL, NULL),
		0);
	assert_int_equal(mmr_case_count(c), r->statements);
	assert_int_equal(r->mapped + r->ignored + r->unmapped, r->calls);
	mmr_case_free(c);
	return 0;
}

static void has(const struct mmr_import_result *r, const char *piece)
{
	if (!strstr(r->text, piece)) {
		print_error("not in it: %s\n%s\n", piece, r->text);
		fail();
	}
}

/* Calls fn for each sample of a folder; returns how many there are. */
static int each(const char *dir,
		void (*fn)(const char *dir, const char *name, void *arg),
		void *arg)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			fn(dir, e->d_name, arg);
			n++;
		}
	closedir(d);
	return n;
}

static void import_sample(const char *dir, const char *name, void *arg)
{
	struct mmr_import_result r;
	size_t len;
	char *text = load(dir, name, &len);

	(void)arg;
	if (import(text, len,
		   strcmp(dir, SYZ) ? MMR_IMPORT_STRACE : MMR_IMPORT_SYZ, &r)) {
		print_error("%s does not import\n", name);
		fail();
	}
	assert_true(r.mapped > 0 && r.statements > 0);
	mmr_import_release(&r);
	free(text);
}

static void test_samples(void **state)
{
	(void)state;
	assert_true(each(SYZ, import_sample, NULL) >= 30);
	assert_true(each(STRACE, import_sample, NULL) >= 10);
}

/* A sample's text has to have these pieces. */
static void test_syz(void **state)
{
	static const struct {
		const char *name, *pieces[8];
		int mapped, unmapped;
	} rows[] = {
		{"01-mmap-munmap.syz",
		 {"m0 = mmap len=16K prot=rw flags=private|anon|fixed at=512M\n"
		  "    munmap m0 off=4K len=4K\n    munmap m0\n"},
		 3,
		 0},
		{"02-data-area.syz",
		 {"= mmap len=16M prot=rwx flags=private|anon|fixed at=512M",
		  "madvise m0 hugepage off=16368K\n", "madvise m0 dontneed\n"},
		 3,
		 0},
		{"03-async.syz",
		 {"t0 = thread_spawn body=X0\n",
		  "  thread X0 template\n"
		  "    madvise m0 populate_write"
		  "\n",
		  "  thread X1 template\n    munmap m0 off=1M len=4K\n",
		  "thread_join t1\n"},
		 4,
		 0},
		{"04-rerun.syz",
		 {"    loop 64\n      madvise m0 dontneed\n    end\n",
		  "template\n    loop 64\n      madvise m0 populate_write\n"},
		 3,
		 0},
		{"08-hugetlb-flags.syz",
		 {"flags=private|anon|hugetlb|fixed at=516M huge=2m\n"},
		 3,
		 0},
		{"09-userfaultfd.syz",
		 {"u0 = userfaultfd flags=user_mode_only\n"
		  "    uffd_register u0 m0\n",
		  "uffd_zeropage u0 m0 off=4K len=4K\n",
		  "uffd_copy u0 m0 off=8K len=4K mode=dontwake from=m1\n"},
		 8,
		 0},
		{"13-numa.syz",
		 {"mbind m0 mode=bind nodes=n0 flags=strict|move\n",
		  "migrate_pages from=n0 to=n1\n",
		  "move_pages m0 to=0 len=8K\n"},
		 5,
		 0},
		{"14-unknown-calls.syz",
		 {"    # line 5: bpf$PROG_LOAD(0x5,",
		  "no operation is this call"
		  "\n    mlock m0\n",
		  "# Imported: 2 of 5 calls, 3 could not be mapped.\n"},
		 2,
		 3},
		{"15-nested-pointers.syz",
		 {"process_madvise q0 m0 pageout len=8K\n"},
		 4,
		 1},
		{"16-options.syz",
		 {"rounds  25 budget=30s\n", "process main copies=4\n"},
		 2,
		 0},
		{"17-options-json.syz",
		 {"process main copies=2\n", "thread X0 template\n"
					     "    m0 = mmap len=32K"},
		 4,
		 0},
		{"24-two-mappings-one-call.syz",
		 {"mprotect m0 prot=rw off=4K\n    mprotect m1 prot=rw "
		  "len=4K\n    munmap m0\n    munmap m1\n"},
		 5,
		 0},
	};
	struct mmr_import_result r;
	size_t i, k, len;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = load(SYZ, rows[i].name, &len);

		assert_int_equal(import(text, len, MMR_IMPORT_SYZ, &r), 0);
		for (k = 0; k < 8 && rows[i].pieces[k]; k++)
			has(&r, rows[i].pieces[k]);
		assert_int_equal(r.mapped, rows[i].mapped);
		assert_int_equal(r.unmapped, rows[i].unmapped);
		assert_int_equal(r.nmissed, rows[i].unmapped);
		mmr_import_release(&r);
		free(text);
	}
}

static const char threads_log[] =
	"7 1700000100.000000 mmap(NULL, 8192, PROT_READ|PROT_WRITE, "
	"MAP_PRIVATE|MAP_ANONYMOUS|0x800, -1, 0) = 0x7f0000000000 <0.000010>\n"
	"7 1700000100.001000 clone3({flags=CLONE_VM|CLONE_THREAD, "
	"stack=0x7f}, 88 <unfinished ...>\n"
	"8 1700000100.001100 madvise(0x7f0000001000, 4096, MADV_DONTNEED) = 0 "
	"<0.000010>\n"
	"7 1700000100.001200 <... clone3 resumed> => {parent_tid=[8]}) = 8 "
	"<0.000200>\n"
	"7 1700000100.051000 mmap(NULL, 4096, PROT_READ, "
	"MAP_PRIVATE|MAP_ANONYMOUS, "
	"-1, 0) = 0x7f0000100000 <0.000010>\n"
	"8 1700000100.061000 mprotect(0x7f0000100000, 4096, PROT_NONE) = -1 "
	"ENOMEM "
	"(Cannot allocate memory) <0.000010>\n"
	"7 1700000100.061500 futex(0x7f0000200990, FUTEX_WAIT_BITSET"
	"|FUTEX_CLOCK_REALTIME, 8, NULL, FUTEX_BITSET_MATCH_ANY "
	"<unfinished ...>\n"
	"8 1700000100.062000 exit(0) = ?\n"
	"8 1700000100.062100 +++ exited with 0 +++\n"
	"7 1700000100.062200 <... futex resumed>) = 0 <0.000700>\n"
	"7 1700000100.062300 read(3, \"a) = 1\", 1) = 1 <0.000001>\n"
	"7 1700000100.063000 --- SIGUSR1 {si_signo=SIGUSR1} ---\n"
	"7 1700000100.064000 mbind(0xdead000, 4096, MPOL_BIND, [0x1], 64, 0) = "
	"0\n"
	"hello, world (and more)\n"
	"7 1700000100.065000 exit_group(0) = ?\n";

static void test_threads(void **state)
{
	struct mmr_import_result r;

	(void)state;
	assert_int_equal(
		import(threads_log, strlen(threads_log), MMR_IMPORT_STRACE, &r),
		0);
	has(&r, "m0 = mmap len=8K prot=rw flags=private|anon\n");
	has(&r, "t0 = thread_spawn body=T1\n");
	/* 50 ms from the end of clone to the next, less what is rounded. */
	has(&r, "    delay 49ms\n    m1 = mmap len=4K prot=r");
	has(&r, "  thread T1 template\n    madvise m0 dontneed off=4K\n");
	/* It uses what the other made after it was started. */
	has(&r, "    signal l0\n");
	has(&r, "    wait l0\n    delay 59ms\n"
		"    mprotect m1 prot=none -> 0|ENOMEM\n");
	has(&r, "thread_join t0\n");
	has(&r, "# line 13: mbind(0xdead000, 4096, MPOL_BIND, [0x1], 64, 0): "
		"no mapping at this address is known\n");
	assert_int_equal(r.unread, 1);
	assert_int_equal(r.mapped, 6);
	assert_int_equal(r.unmapped, 1);
	assert_int_equal(r.ignored, 3);
	assert_int_equal(
		json_integer_value(json_object_get(r.ignored_calls, "read")),
		1);
	mmr_import_release(&r);
}

/* Without times, one goes on when the other has done what it did before; and
 * nobody waits for what comes only behind a join of him. */
static void test_order(void **state)
{
	static const char text[] =
		"7 clone(child_stack=0x1, flags=CLONE_VM|CLONE_THREAD) = 8\n"
		"8 mmap(NULL, 8192, PROT_READ, MAP_SHARED|MAP_ANONYMOUS, -1, 0)"
		" = 0x7f0000000000\n"
		"7 madvise(0x7f0000000000, 8192, MADV_DONTNEED) = 0\n"
		"7 futex(0x7f0000200990, FUTEX_WAIT, 8, NULL <unfinished ...>\n"
		"8 munmap(0x7f0000000000, 8192) = 0\n"
		"8 +++ exited with 0 +++\n"
		"7 <... futex resumed>) = 0\n";
	static const char timed[] =
		"7 10:00:00 clone(child_stack=0x1, flags=CLONE_VM|CLONE_THREAD)"
		" = 8\n"
		"7 10:00:00 mmap(NULL, 8192, PROT_READ, MAP_SHARED|"
		"MAP_ANONYMOUS, -1, 0) = 0x7f0000000000\n"
		"7 10:00:00 futex(0x7f0000200990, FUTEX_WAIT, 8, NULL "
		"<unfinished ...>\n"
		"8 10:00:00 munmap(0x7f0000000000, 8192) = 0\n"
		"8 10:00:00 +++ exited with 0 +++\n"
		"7 10:00:00 <... futex resumed>) = 0\n";
	struct mmr_import_result r;

	(void)state;
	assert_int_equal(import(text, strlen(text), MMR_IMPORT_STRACE, &r), 0);
	has(&r, "    t0 = thread_spawn body=T1\n    wait l0\n"
		"    madvise m0 dontneed\n    signal l1\n"
		"    thread_join t0\n");
	has(&r, "    m0 = mmap len=8K prot=r flags=shared|anon\n"
		"    signal l0\n    wait l1\n    munmap m0\n");
	mmr_import_release(&r);
	assert_int_equal(import(timed, strlen(timed), MMR_IMPORT_STRACE, &r),
			 0);
	has(&r, "    m0 = mmap len=8K prot=r flags=shared|anon\n"
		"    signal l0\n    thread_join t0\n");
	has(&r, "template\n    wait l0\n    munmap m0\n");
	mmr_import_release(&r);
}

/* Six children of one kind are one template, spawned in a loop; no pids in
 * lines while the shell is alone. */
static void test_terminal(void **state)
{
	struct mmr_import_result r;
	size_t len;
	char *text = load(STRACE, "sh-tty.log", &len);

	(void)state;
	assert_int_equal(import(text, len, MMR_IMPORT_STRACE, &r), 0);
	has(&r, "    loop 6\n      p0 = process_spawn P1\n"
		"      process_reap p0\n    end\n");
	assert_int_equal(r.processes, 2);
	assert_int_equal(r.unread, 0);
	mmr_import_release(&r);
	free(text);
}

/* Options of strace that put something more into a line. */
static void test_extras(void **state)
{
	static const char text[] =
		"[   9] mmap(NULL, 8192, PROT_READ, MAP_SHARED|MAP_ANONYMOUS"
		"|MAP_32BIT, -1, 0) = 0x40000000\n"
		" > /lib/libc.so.6(mmap64+0x19) [0x1019d9]\n"
		"[00007f0012345678] [  10] mprotect(0x40000000, 4096, "
		"PROT_READ|PROT_WRITE) = 0\n"
		"[pid 12] [00007f0012345678] madvise(0x40001000, 4096, 0x9 /* "
		"MADV_REMOVE */) = 0\n"
		"mmap(0x40000000, 4096, PROT_READ, MAP_SHARED_VALIDATE"
		"|MAP_SYNC|MAP_FIXED, 5</dev/dax0.0>, 0) = 0x40000000\n"
		"mmap(NULL, 4096, PROT_FUTURE, MAP_PRIVATE|MAP_ANONYMOUS, -1, "
		"0) = 0x50000000\n";
	struct mmr_import_result r;

	(void)state;
	assert_int_equal(import(text, strlen(text), MMR_IMPORT_STRACE, &r), 0);
	assert_int_equal(r.unread, 0);
	assert_int_equal(r.mapped, 4);
	assert_int_equal(r.files, 1);
	has(&r, "m0 = mmap len=8K prot=r flags=shared|anon at=1G\n");
	has(&r, "mprotect m0 prot=rw len=4K\n");
	has(&r, "madvise m0 remove off=4K\n");
	has(&r, "m1 = mmap len=4K prot=r flags=shared|anon|fixed at=1G\n");
	has(&r, "PROT_FUTURE is no value known here\n");
	mmr_import_release(&r);
}

/* All the times that strace can write. */
static void test_times(void **state)
{
	static const char *const forms[] = {
		"%s munmap(0x1000000, 4096) = 0\n",
		"[pid    9] %s munmap(0x1000000, 4096) = 0\n",
		"9     %s munmap(0x1000000, 4096) = 0 <0.000001>\n"};
	static const char *const times[][3] = {
		{"1700000000.000000", "1700000000.020000", "1700000000.021000"},
		{"23:59:59.990000", "00:00:00.010000", "00:00:00.011000"},
		{"     0.000000", "     0.020000", "     0.001000"}};
	struct mmr_import_result r;
	char line[200], text[800];
	int f, t, i;

	(void)state;
	for (f = 0; f < 3; f++)
		for (t = 0; t < 3; t++) {
			snprintf(text, sizeof(text),
				 "%smmap(NULL, 4096, PROT_READ, MAP_SHARED|"
				 "MAP_ANONYMOUS, -1, 0) = 0x1000000\n",
				 f == 1	  ? "[pid 9] "
				 : f == 2 ? "9 "
					  : "");
			for (i = 0; i < 3; i++) {
				snprintf(line, sizeof(line), forms[f],
					 times[t][i]);
				strcat(text, line);
			}
			assert_int_equal(import(text, strlen(text),
						MMR_IMPORT_STRACE, &r),
					 0);
			assert_int_equal(r.mapped, 2 + 2 * (r.unmapped == 0));
			mmr_import_release(&r);
		}
}

/* 100,000 lines of a program that does the same again and again, and of one
 * that does not. */
static void test_long(void **state)
{
	size_t cap = 32 << 20, n = 0;
	char *text = malloc(cap);
	struct mmr_import_result r;
	struct timespec a, b;
	int i;

	(void)state;
	assert_non_null(text);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (i = 0; i < 50000; i++)
		n += (size_t)snprintf(
			text + n, cap - n,
			"7 %d.%06d mmap(NULL, 65536, PROT_READ|PROT_WRITE, "
			"MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f%07x000\n"
			"7 %d.%06d munmap(0x7f%07x000, 65536) = 0\n",
			1700000000 + i / 1000, i % 1000 * 1000, i * 16,
			1700000000 + i / 1000, i % 1000 * 1000 + 500, i * 16);
	assert_int_equal(import(text, n, MMR_IMPORT_STRACE, &r), 0);
	assert_int_equal(r.mapped, 100000);
	/* The first delay is none, so the first turn stands for itself or
	 * in the loop. */
	assert_true(r.statements <= 8);
	assert_int_equal(r.loops, 1);
	assert_string_equal(r.cut, "");
	mmr_import_release(&r);
	for (n = 0, i = 0; i < 100000; i++)
		n += (size_t)snprintf(
			text + n, cap - n,
			"7 1700000000.%06d mmap(NULL, %d, PROT_NONE, "
			"MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7e%07x000\n",
			i, 4096 * (1 + (i * 7919) % 5000),
			i * 5001 % 100000000);
	assert_int_equal(import(text, n, MMR_IMPORT_STRACE, &r), 0);
	assert_non_null(strstr(r.cut, "Cut at line"));
	has(&r, "# Cut at line ");
	assert_true(r.statements > 3000 && r.statements <= 4096);
	mmr_import_release(&r);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(b.tv_sec - a.tv_sec < 20); /* 0.2 s on an idle machine */
	free(text);
}

/* More tasks than a case can have. */
static void test_many_tasks(void **state)
{
	size_t cap = 1 << 20, n = 0;
	char *text = malloc(cap);
	struct mmr_import_result r;
	int i;

	(void)state;
	assert_non_null(text);
	for (i = 0; i < 400; i++)
		n += (size_t)snprintf(
			text + n, cap - n,
			"1 clone(child_stack=0x1, flags=CLONE_VM|%s) = %d\n"
			"%d mmap(NULL, %d, PROT_NONE, MAP_PRIVATE|"
			"MAP_ANONYMOUS, -1, 0) = 0x7f%05x000000\n",
			i % 4 ? "CLONE_THREAD" : "CLONE_VFORK", i + 10, i + 10,
			4096 * (i + 1), i);
	assert_int_equal(import(text, n, MMR_IMPORT_STRACE, &r), 0);
	assert_non_null(strstr(r.cut, "Tasks are missing"));
	assert_true(r.processes <= 32 && r.threads <= 256);
	mmr_import_release(&r);
	free(text);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"",	   "\n\n",	 "# nothing\n", "hello world\n",
		"mmap(\n", "getpid()\n", "\x00\xff\n"};
	struct mmr_import_result r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(
			import(texts[i], strlen(texts[i]), MMR_IMPORT_SYZ, &r),
			-EINVAL);
		assert_int_equal(import(texts[i], strlen(texts[i]),
					MMR_IMPORT_STRACE, &r),
				 -EINVAL);
	}
}

/* -- damage ------------------------------------------------------------- */

static void damage(char *text, size_t *len, uint64_t seed)
{
	struct mmr_rng g = {.key = seed};
	int n = 1 + (int)(mmr_rng_next(&g) % 8), i;

	for (i = 0; i<n && * len> 2; i++) {
		uint64_t draw = mmr_rng_next(&g);
		size_t at = draw % *len, k = (draw >> 32) % 40 + 1;

		if (k > *len - at)
			k = *len - at;
		switch (mmr_rng_next(&g) % 5) {
		case 0: /* a byte */
			text[at] = (char)mmr_rng_next(&g);
			break;
		case 1: /* a piece goes */
			memmove(text + at, text + at + k, *len - at - k);
			*len -= k;
			break;
		case 2: /* a piece goes over another */
			memmove(text + at, text + (*len - k) / 2, k);
			break;
		case 3: /* a character with a meaning */
			text[at] = "(){}[]<>&|=,\"'/0x-"[mmr_rng_next(&g) % 18];
			break;
		default: /* the rest goes */
			*len = at + 1;
		}
	}
}

struct damage {
	int per_sample, refused, done;
};

static void damage_sample(const char *dir, const char *name, void *arg)
{
	struct damage *d = arg;
	struct mmr_import_result r;
	size_t len, n;
	char *text = load(dir, name, &len);
	int i;

	for (i = 0; i < d->per_sample; i++) {
		/* A chunk of its own, so that an overrun is seen. */
		char *copy = malloc(len + 1);

		assert_non_null(copy);
		memcpy(copy, text, len);
		n = len;
		damage(copy, &n, (uint64_t)d->done * 1000003 + (uint64_t)i);
		copy = realloc(copy, n + !n);
		if (import(copy, n,
			   strcmp(dir, SYZ) ? MMR_IMPORT_STRACE
					    : MMR_IMPORT_SYZ,
			   &r))
			d->refused++;
		else
			mmr_import_release(&r);
		d->done++;
		free(copy);
	}
	free(text);
}

static void test_damage(void **state)
{
	struct damage d = {.per_sample = 30};

	(void)state;
	each(SYZ, damage_sample, &d);
	each(STRACE, damage_sample, &d);
	assert_true(d.done >= 1000);
	/* Most of them still say something. */
	assert_true(d.refused < d.done / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_syz),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_extras),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_many_tasks),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
