// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settings are journalled before they change and restored after: checked on
 * a made-up tree (any user), and once on the real pool of huge pages (root).
 *
 * Red when: the change comes before the journal (a killed holder would leave
 * nothing to restore from), the lock outlives its holder, a value that
 * somebody else set since is overwritten, or a failed change stays.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../ops/setting.h"
#include "../../triage/finding.h"
#include "../../triage/settings.h"
#include "../../triage/swap_area.h"

static char root[64];

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int64_t get(const char *name)
{
	int64_t v = -1;

	assert_int_equal(mmr_setting_get(name, &v), 0);
	return v;
}

static bool exists(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return access(full, F_OK) == 0;
}

static int setup(void **state)
{
	char dir[128];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/mmr_settings.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(dir, sizeof(dir), "%s/proc/sys/vm", root);
	if (mmr_mkdir_p(dir))
		return -1;
	snprintf(dir, sizeof(dir), "%s/sys/kernel/mm/transparent_hugepage",
		 root);
	if (mmr_mkdir_p(dir))
		return -1;
	put("/proc/sys/vm/nr_hugepages", "3\n");
	put("/proc/sys/vm/nr_overcommit_hugepages", "0\n");
	put("/proc/meminfo", "MemTotal: 100 kB\nHugePages_Total:       3\n"
			     "HugePages_Free:        3\n"
			     "HugePages_Rsvd:        1\n");
	mmr_settings_root(root);
	return 0;
}

static int teardown(void **state)
{
	char cmd[128];

	(void)state;
	mmr_settings_root(NULL);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	return system(cmd);
}

static struct mmr_case *with_sets(int64_t pool, int64_t overcommit)
{
	struct mmr_case *c = mmr_case_new();

	assert_non_null(c);
	if (pool >= 0)
		assert_int_equal(mmr_case_add_setting(c, "nr_hugepages", pool),
				 0);
	if (overcommit >= 0)
		assert_int_equal(mmr_case_add_setting(c,
						      "nr_overcommit_hugepages",
						      overcommit),
				 0);
	return c;
}

static void test_paths(void **state)
{
	(void)state;
	assert_string_equal(mmr_setting_path("nr_hugepages"),
			    "/proc/sys/vm/nr_hugepages");
	assert_null(mmr_setting_path("../../etc/passwd"));
	assert_int_equal(mmr_meminfo("HugePages_Free"), 3);
	assert_int_equal(mmr_meminfo("HugePages"), -1);
}

static void test_apply_restore(void **state)
{
	struct mmr_case *c = with_sets(64, 16);
	char text[200];

	(void)state;
	assert_int_equal(mmr_settings_apply(c, text, sizeof(text)), 0);
	assert_int_equal(get("nr_hugepages"), 64);
	assert_int_equal(get("nr_overcommit_hugepages"), 16);
	assert_true(exists("/run/mmrace/settings"));
	assert_int_equal(mmr_settings_restore(), 0);
	assert_int_equal(get("nr_hugepages"), 3);
	assert_int_equal(get("nr_overcommit_hugepages"), 0);
	assert_false(exists("/run/mmrace/settings"));
	assert_int_equal(mmr_settings_restore(), 0);
	assert_int_equal(mmr_settings_recover(), 0);
	mmr_case_free(c);
}

static void test_need_raises_pool(void **state)
{
	struct mmr_case *c = mmr_case_new();
	char text[200];

	(void)state;
	/* 3 free, 1 of them promised: 2 can be had, 8 are needed. */
	assert_int_equal(mmr_case_add_need(c, MMR_NEED_HUGEPAGES, 8, NULL), 0);
	assert_int_equal(mmr_settings_apply(c, text, sizeof(text)), 0);
	assert_int_equal(get("nr_hugepages"), 9);
	assert_int_equal(mmr_settings_restore(), 0);
	assert_int_equal(get("nr_hugepages"), 3);
	mmr_case_free(c);
	/* Enough there: nothing is touched, not even the lock. */
	c = mmr_case_new();
	assert_int_equal(mmr_case_add_need(c, MMR_NEED_HUGEPAGES, 2, NULL), 0);
	assert_int_equal(mmr_settings_apply(c, text, sizeof(text)), 0);
	assert_false(exists("/run/mmrace/settings"));
	assert_int_equal(mmr_settings_restore(), 0);
	mmr_case_free(c);
}

/* A holder that is killed in the middle; its pid, already reaped. */
static void killed_holder(const struct mmr_case *c)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		char text[200];

		if (mmr_settings_apply(c, text, sizeof(text)))
			_exit(1);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void test_killed(void **state)
{
	struct mmr_case *c = with_sets(64, 16);
	char text[200];

	(void)state;
	killed_holder(c);
	assert_int_equal(get("nr_hugepages"), 64);
	assert_int_equal(mmr_settings_recover(), 2);
	assert_int_equal(get("nr_hugepages"), 3);
	assert_int_equal(get("nr_overcommit_hugepages"), 0);
	assert_false(exists("/run/mmrace/settings"));
	/* Without a recover in between the next apply sees to it, and does
	 * not take what was left for the machine's own. */
	killed_holder(c);
	assert_int_equal(mmr_settings_apply(c, text, sizeof(text)), 0);
	assert_int_equal(get("nr_hugepages"), 64);
	assert_int_equal(mmr_settings_restore(), 0);
	assert_int_equal(get("nr_hugepages"), 3);
	mmr_case_free(c);
}

static void test_foreign_change_stays(void **state)
{
	struct mmr_case *c = with_sets(64, 16);

	(void)state;
	killed_holder(c);
	put("/proc/sys/vm/nr_hugepages", "100\n");
	assert_int_equal(mmr_settings_recover(), 1);
	assert_int_equal(get("nr_hugepages"), 100);
	assert_int_equal(get("nr_overcommit_hugepages"), 0);
	put("/proc/sys/vm/nr_hugepages", "3\n");
	mmr_case_free(c);
}

static void test_forged_journal(void **state)
{
	(void)state;
	put("/run/mmrace/settings", "/etc/passwd 1 2\nno such line\n"
				    "nr_hugepages 3 64\n");
	put("/proc/sys/vm/nr_hugepages", "64\n");
	assert_int_equal(mmr_settings_recover(), 1);
	assert_int_equal(get("nr_hugepages"), 3);
}

static struct mmr_case *parse(const char *text)
{
	struct mmr_diag d = {0};
	struct mmr_case *c;

	if (mmr_case_parse(text, strlen(text), &c, &d, NULL, NULL))
		fail_msg("%d:%d: %s", d.line, d.col, d.text);
	return c;
}

/* Words in brackets, and what statements may write: anything of that is put
 * back, also by the next start. */
static void test_statements(void **state)
{
	struct mmr_case *c = parse("mmrace-case 1\n"
				   "needs writes=nr_hugepages\n"
				   "set thp_enabled=never\n"
				   "process main\nthread A\n"
				   "loop 2\nset_number nr_hugepages 9\nend\n"
				   "set_number nr_hugepages 1\n");
	static const int64_t within[] = {1, 2, 7, 9};
	char text[200];
	size_t i;

	(void)state;
	assert_int_equal(mmr_setting_written(c), 1);
	assert_int_equal(mmr_setting_named(c), 1 | 1 << 3);
	for (i = 0; i < sizeof(within) / sizeof(within[0]); i++) {
		put("/sys/kernel/mm/transparent_hugepage/enabled",
		    "always [madvise] never\n");
		assert_int_equal(get("thp_enabled"), 1);
		killed_holder(c);
		snprintf(text, sizeof(text), "%d\n", (int)within[i]);
		put("/proc/sys/vm/nr_hugepages", text);
		assert_int_equal(get("thp_enabled"), 2);
		assert_int_equal(mmr_settings_recover(), 2);
		assert_int_equal(get("nr_hugepages"), 3);
		assert_int_equal(get("thp_enabled"), 1);
	}
	/* Neither before nor written: somebody else's. */
	killed_holder(c);
	put("/proc/sys/vm/nr_hugepages", "10\n");
	assert_int_equal(mmr_settings_recover(), 1);
	assert_int_equal(get("nr_hugepages"), 10);
	put("/proc/sys/vm/nr_hugepages", "3\n");
	mmr_case_free(c);
}

static void test_swap_journal(void **state)
{
	struct mmr_swap_area s = {0}, back = {0};
	char line[100];

	(void)state;
	assert_int_equal(mmr_swap_to_text(&s, line, sizeof(line)), 0);
	assert_string_equal(line, "");
	mmr_swap_plan(&s, 5000000);
	assert_int_equal(s.bytes, 5 << 20);
	s.zram = 3;
	s.known = 5;
	mmr_swap_to_text(&s, line, sizeof(line));
	assert_true(mmr_swap_from_text(&back, line));
	assert_memory_equal(&s, &back, sizeof(s));
	assert_false(mmr_swap_from_text(&back, "nr_hugepages 1 2 3\n"));
	/* No device that there cannot be. */
	assert_true(mmr_swap_from_text(&back, "swap 4096 999 0\n"));
	assert_int_equal(back.zram, 3);
}

static void test_busy(void **state)
{
	struct mmr_case *c = with_sets(64, -1);
	int go[2], status;
	char text[200], b = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		close(go[0]);
		if (mmr_settings_apply(c, text, sizeof(text)))
			_exit(1);
		if (write(go[1], &b, 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(go[0], &b, 1), 1);
	assert_int_equal(mmr_settings_recover(), -EBUSY);
	assert_int_equal(mmr_settings_apply(c, text, sizeof(text)), -EBUSY);
	assert_non_null(strstr(text, "another mmrace"));
	assert_int_equal(get("nr_hugepages"), 64);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(go[0]);
	close(go[1]);
	assert_int_equal(mmr_settings_recover(), 1);
	assert_int_equal(get("nr_hugepages"), 3);
	mmr_case_free(c);
}

/* The second setting cannot be changed: the first one goes back. */
static void test_all_or_nothing(void **state)
{
	struct mmr_case *c = with_sets(64, 16);
	char text[200], full[256];

	(void)state;
	snprintf(full, sizeof(full), "%s/proc/sys/vm/nr_overcommit_hugepages",
		 root);
	/* Readable as a number, and refuses to be written: /dev/full reads
	 * as zeros, which is 0. */
	unlink(full);
	assert_int_equal(symlink("/dev/full", full), 0);
	assert_int_not_equal(mmr_settings_apply(c, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "nr_overcommit_hugepages"));
	assert_int_equal(get("nr_hugepages"), 3);
	assert_false(exists("/run/mmrace/settings"));
	unlink(full);
	put("/proc/sys/vm/nr_overcommit_hugepages", "0\n");
	mmr_case_free(c);
}

static void test_unprivileged(void **state)
{
	struct mmr_case *c = with_sets(64, -1);
	char text[200] = "", full[256];
	int status;
	pid_t pid;

	(void)state;
	snprintf(full, sizeof(full), "%s", root);
	chmod(full, 0755);
	pid = fork();
	if (pid == 0) {
		int rc;

		if (getuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(2);
		mmr_settings_root(NULL); /* the real machine */
		rc = mmr_settings_apply(c, text, sizeof(text));
		_exit(rc == -EPERM && strstr(text, "needs root") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	mmr_case_free(c);
}

static void test_real_pool(void **state)
{
	struct mmr_case *c;
	int64_t before;
	char text[200];

	(void)state;
	mmr_settings_root(NULL);
	if (getuid() || mmr_setting_get("nr_hugepages", &before)) {
		mmr_settings_root(root);
		skip();
	}
	c = with_sets(before + 4, -1);
	assert_int_equal(mmr_settings_apply(c, text, sizeof(text)), 0);
	assert_int_equal(get("nr_hugepages"), before + 4);
	assert_int_equal(mmr_settings_restore(), 0);
	assert_int_equal(get("nr_hugepages"), before);
	killed_holder(c);
	assert_int_equal(mmr_settings_recover(), 1);
	assert_int_equal(get("nr_hugepages"), before);
	mmr_case_free(c);
	/* More than there is: refused before it could hurt. */
	c = with_sets(INT64_C(1) << 30, -1);
	assert_int_equal(mmr_settings_apply(c, text, sizeof(text)), -ENOMEM);
	assert_non_null(strstr(text, "has room for"));
	assert_int_equal(get("nr_hugepages"), before);
	mmr_case_free(c);
	mmr_settings_root(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_apply_restore),
		cmocka_unit_test(test_need_raises_pool),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_foreign_change_stays),
		cmocka_unit_test(test_forged_journal),
		cmocka_unit_test(test_statements),
		cmocka_unit_test(test_swap_journal),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_unprivileged),
		cmocka_unit_test(test_real_pool),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
