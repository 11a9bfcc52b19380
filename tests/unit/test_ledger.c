// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Red when a case that was counted is gone after kill -9, is counted twice,
 * when half a line spoils what stands before or after it, or when joining
 * ledgers depends on their order or on how often it is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../fuzz/ledger.h"
#include "../../fuzz/ledger_impl.h"

static char top[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/mmrace-ledger-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	char cmd[100];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
	return system(cmd);
}

static char *dir_of(const char *name, char *buf)
{
	snprintf(buf, 128, "%s/%s", top, name);
	if (mkdir(buf, 0755))
		assert_int_equal(errno, EEXIST);
	return buf;
}

static struct mmr_ledger_session session(int shard, int shards)
{
	struct mmr_ledger_session s = {.gen = 2,
				       .seed = 0xfedcba9876543210ULL,
				       .shard = shard,
				       .shards = shards,
				       .cpus = 2};

	snprintf(s.profile, sizeof(s.profile), "mixed");
	snprintf(s.kernel, sizeof(s.kernel), "6.18.0 \"odd\"");
	return s;
}

static struct mmr_ledger_counts one(enum mmr_verdict v)
{
	struct mmr_ledger_counts c = {.rounds = 3, .ops = 10, .calls = 7};

	c.verdicts[v] = 1;
	return c;
}

static struct mmr_ledger *open_ledger(const char *dir)
{
	struct mmr_ledger *l;
	char text[400] = "";
	int rc = mmr_ledger_open(dir, &l, text, sizeof(text));

	if (rc)
		fail_msg("%d %s", rc, text);
	return l;
}

static void test_ranges(void **state)
{
	struct mmr_range r[64];
	struct mmr_ranges s = {r, 0, 64};
	bool has[100] = {0};
	uint64_t x = 12345;

	(void)state;
	for (int i = 0; i < 400; i++) {
		uint64_t a, b, n = 0;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		a = (x >> 33) % 100;
		b = a + (x >> 50) % 3;
		b = b > 99 ? 99 : b;
		if (i % 50 == 0) {
			s.n = 0;
			memset(has, 0, sizeof(has));
		}
		assert_int_equal(mmr_ranges_add(&s, a, b), 0);
		while (a <= b)
			has[a++] = true;
		for (uint64_t j = 0; j < 100; j++) {
			n += has[j];
			assert_int_equal(mmr_ranges_has(&s, j), has[j]);
			for (a = j; a < 100 && has[a];)
				a++;
			assert_int_equal(mmr_ranges_gap(&s, j), a);
		}
		assert_int_equal(mmr_ranges_count(&s), n);
		for (int j = 1; j < s.n; j++)
			assert_true(r[j].from > r[j - 1].to + 1);
	}
	s.n = 0;
	s.max = 1;
	assert_int_equal(mmr_ranges_add(&s, 0, UINT64_MAX), 0);
	assert_int_equal(mmr_ranges_add(&s, 5, 6), 0);
	s.n = 0;
	assert_int_equal(mmr_ranges_add(&s, 5, 6), 0);
	assert_int_equal(mmr_ranges_add(&s, 8, 9), -ENOSPC);
	assert_int_equal(mmr_ranges_add(&s, 7, 7), 0);
}

static void test_round_trip(void **state)
{
	struct mmr_ledger_session s = session(3, 8);
	struct mmr_ledger_counts c;
	struct mmr_ledger_view v;
	struct mmr_ranges done;
	char buf[128], *dir = dir_of("trip", buf), text[400];
	struct mmr_ledger *l = open_ledger(dir), *second;

	(void)state;
	assert_int_equal(mmr_ledger_open(dir, &second, text, sizeof(text)),
			 -EBUSY);
	assert_non_null(strstr(text, "--out"));
	assert_int_equal(mmr_ledger_begin(l, &s), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		/* Every second number: more ranges than a batch holds. */
		c = one(i % 10 ? MMR_NOTHING : MMR_HANG);
		assert_int_equal(mmr_ledger_add(l, 2 * i, &c), 0);
	}
	assert_int_equal(mmr_ledger_finding(l, 0, 77, MMR_HANG, "hang-1"), 0);
	assert_int_equal(mmr_ledger_lost(l, s.id, 5, UINT64_MAX), 0);
	assert_int_equal(mmr_ledger_close(l, "done"), 0);
	assert_int_equal(mmr_ledger_read(dir, &v), 0);
	assert_int_equal(v.nsessions, 1);
	assert_int_equal(v.damaged, 0);
	assert_true(v.sessions[0].seed == s.seed);
	assert_string_equal(v.sessions[0].kernel, s.kernel);
	assert_string_equal(v.sessions[0].state, "done");
	assert_int_equal(v.sessions[0].counts.verdicts[MMR_HANG], 100);
	assert_int_equal(mmr_ledger_samples(&v.sessions[0].counts), 1000);
	assert_int_equal(v.sessions[0].counts.rounds, 3000);
	assert_int_equal(v.sessions[0].findings, 1);
	assert_int_equal(v.nlost, 1);
	assert_true(v.lost[0].seed == UINT64_MAX);
	mmr_ledger_view_free(&v);
	assert_int_equal(mmr_ledger_done(dir, &s, &done), 0);
	assert_int_equal(mmr_ranges_count(&done), 1000);
	assert_true(mmr_ranges_has(&done, 1998));
	assert_false(mmr_ranges_has(&done, 1));
	free(done.r);
	s.shard = 4; /* other cases */
	assert_int_equal(mmr_ledger_done(dir, &s, &done), 0);
	assert_int_equal(mmr_ranges_count(&done), 0);
	free(done.r);
}

/* Counts until it is killed; *acked is what it has been told is kept. */
static _Noreturn void count_for_ever(const char *dir, _Atomic uint64_t *acked)
{
	struct mmr_ledger_counts c = one(MMR_NOTHING);
	struct mmr_ledger_session s = session(0, 1);
	struct mmr_ranges done;
	struct mmr_ledger *l;
	char text[400];

	if (mmr_ledger_open(dir, &l, text, sizeof(text)) ||
	    mmr_ledger_done(dir, &s, &done) || mmr_ledger_begin(l, &s))
		_exit(3);
	for (uint64_t i = mmr_ranges_gap(&done, 0);; i++) {
		if (mmr_ledger_add(l, i, &c))
			_exit(4);
		*acked = i + 1;
	}
}

static void test_kill(void **state)
{
	_Atomic uint64_t *acked = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char buf[128], *dir = dir_of("kill", buf);
	struct mmr_ledger_session s = session(0, 1);
	struct mmr_ledger_view v;
	struct mmr_ranges done;
	uint64_t n = 0;
	int status;

	(void)state;
	assert_true(acked != MAP_FAILED);
	for (int i = 0; i < 30; i++) {
		uint64_t before = *acked;
		pid_t pid = fork();

		if (!pid)
			count_for_ever(dir, acked);
		while (*acked < before + 1 + (uint64_t)(i * 37 % 500))
			if (waitpid(pid, &status, WNOHANG) == pid)
				fail_msg("ended with %x", status);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(mmr_ledger_read(dir, &v), 0);
		assert_int_equal(v.damaged, 0);
		assert_int_equal(v.nsessions, i + 1);
		n = 0;
		for (int j = 0; j < v.nsessions; j++)
			n += mmr_ledger_samples(&v.sessions[j].counts);
		/* The one in flight may have got through or not. */
		assert_in_range(n, *acked, *acked + 1);
		*acked = n;
		mmr_ledger_view_free(&v);
		assert_int_equal(mmr_ledger_done(dir, &s, &done), 0);
		assert_int_equal(mmr_ranges_count(&done), n);
		assert_int_equal(done.n, 1);
		free(done.r);
	}
	munmap(acked, 4096);
}

static void write_to(const char *dir, const char *name, const char *what,
		     size_t n)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, what, n), n);
	close(fd);
}

static void test_damage(void **state)
{
	static const char half[] = "{\"type\":\"batch\",\"session\":\"x";
	struct mmr_ledger_session s = session(0, 1);
	struct mmr_ledger_counts c = one(MMR_VOID);
	char buf[128], *dir = dir_of("damage", buf), noise[6000];
	struct mmr_ledger_view v;
	struct mmr_ledger *l = open_ledger(dir);

	(void)state;
	assert_int_equal(mmr_ledger_begin(l, &s), 0);
	assert_int_equal(mmr_ledger_add(l, 0, &c), 0);
	assert_int_equal(mmr_ledger_close(l, NULL), 0);
	write_to(dir, MMR_LEDGER_FILE, half, sizeof(half) - 1);
	memset(noise, 0xa5, sizeof(noise));
	write_to(dir, MMR_LEDGER_NOW, noise, sizeof(noise));
	s.id[0] = '\0';
	l = open_ledger(dir);
	assert_int_equal(mmr_ledger_begin(l, &s), 0);
	assert_int_equal(mmr_ledger_add(l, 1, &c), 0);
	assert_int_equal(mmr_ledger_close(l, "done"), 0);
	write_to(dir, MMR_LEDGER_FILE, "[]\n7\n\0\n{}\n", 10);
	assert_int_equal(mmr_ledger_read(dir, &v), 0);
	assert_int_equal(v.nsessions, 2);
	assert_true(v.damaged >= 4);
	assert_int_equal(v.sessions[0].counts.verdicts[MMR_VOID], 1);
	assert_int_equal(v.sessions[1].counts.verdicts[MMR_VOID], 1);
	assert_int_equal(mmr_ledger_samples(&v.sessions[0].counts), 0);
	mmr_ledger_view_free(&v);
	assert_int_equal(mmr_ledger_read("/nonexistent", &v), -ENOENT);
}

static char *text_of(const char *dir)
{
	char path[200], *text = calloc(1, 1 << 20);
	int fd;

	snprintf(path, sizeof(path), "%s/" MMR_LEDGER_FILE, dir);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && text);
	assert_true(read(fd, text, (1 << 20) - 1) > 0);
	close(fd);
	return text;
}

static void test_merge(void **state)
{
	char bufs[4][128], b1[128], b2[128], text[400] = "";
	char *dirs[4], *back[4], *all[6], *x, *y, *out, *again;
	struct mmr_ledger_view v;
	uint64_t n = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct mmr_ledger_session s = session(i, 4);
		struct mmr_ledger_counts c = one(MMR_NOTHING);
		struct mmr_ledger *l;
		char name[8];

		snprintf(name, sizeof(name), "m%d", i);
		dirs[i] = back[3 - i] = dir_of(name, bufs[i]);
		l = open_ledger(dirs[i]);
		assert_int_equal(mmr_ledger_begin(l, &s), 0);
		for (uint64_t k = 0; k < 25 + (uint64_t)i; k++)
			assert_int_equal(mmr_ledger_add(l, k, &c), 0);
		assert_int_equal(mmr_ledger_close(l, i ? "done" : NULL), 0);
	}
	out = dir_of("joined", b1);
	assert_int_equal(mmr_ledger_merge(dirs, 4, out, text, sizeof(text)), 0);
	x = text_of(out);
	again = dir_of("again", b2);
	assert_int_equal(mmr_ledger_merge(back, 4, again, text, sizeof(text)),
			 0);
	y = text_of(again);
	assert_string_equal(x, y);
	free(y);
	/* The joined one with two of its parts, onto itself. */
	all[0] = out;
	all[1] = dirs[2];
	all[2] = dirs[0];
	assert_int_equal(mmr_ledger_merge(all, 3, out, text, sizeof(text)), 0);
	y = text_of(out);
	assert_string_equal(x, y);
	free(x);
	free(y);
	assert_int_equal(mmr_ledger_read(out, &v), 0);
	assert_int_equal(v.nsessions, 4);
	for (int i = 0; i < 4; i++)
		n += mmr_ledger_samples(&v.sessions[i].counts);
	assert_int_equal(n, 25 + 26 + 27 + 28);
	mmr_ledger_view_free(&v);
	all[0] = top; /* no soak wrote there */
	assert_int_equal(mmr_ledger_merge(all, 1, again, text, sizeof(text)),
			 -ENOENT);
	assert_non_null(strstr(text, top));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
