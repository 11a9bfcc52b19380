// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel log reader on records as /dev/kmsg gives them: what is trouble,
 * whose it is, and what is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../triage/klog.h"

/* Red when a report of the kernel is missed. */
static void test_trouble(void **state)
{
	static const char *const lines[] = {
		"WARNING: CPU: 1 PID: 77 at mm/memory.c:1 do_fault+0x1/0x2",
		"BUG: unable to handle page fault for address: ffff888",
		"BUG: KASAN: use-after-free in exit_mmap+0x1/0x2",
		"BUG: Bad page state in process mmrace-child  pfn:1234",
		"BUG: Bad rss-counter state mm:00000000 type:MM_ANONPAGES",
		"kernel BUG at mm/hugetlb.c:5555!",
		"Oops: 0000 [#1] PREEMPT SMP",
		"general protection fault, probably for non-canonical address",
		"INFO: task mmrace-child:99 blocked for more than 120 seconds.",
		"rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
		"rcu: INFO: rcu_sched self-detected stall on CPU",
		"watchdog: BUG: soft lockup - CPU#3 stuck for 26s!",
		"Unable to handle kernel NULL pointer dereference",
		"list_del corruption. prev->next should be ffff",
		"UBSAN: array-index-out-of-bounds in mm/vma.c:1:2",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (!mmr_klog_is_trouble(lines[i]))
			fail_msg("missed: %s", lines[i]);
}

/* Red when an ordinary line, or what a case does to itself, is a finding. */
static void test_no_trouble(void **state)
{
	static const char *const lines[] = {
		"mmrace-child[77]: segfault at 0 ip 0000000000401015 sp 0",
		"traps: mmrace-child[7] general protection fault ip:1 sp:2",
		"Memory cgroup out of memory: Killed process 77 (mmrace-chi)",
		"mmrace-child invoked oom-killer: gfp_mask=0xcc0, order=0",
		"oom_reaper: reaped process 77 (x), now anon-rss:0kB",
		"mmrace-child: page allocation failure: order:4",
		"perf: interrupt took too long (2512 > 2500), lowering",
		"device eth0 entered promiscuous mode",
		"ACPI: bus type USB registered",
		"clocksource: timekeeping watchdog: marked unstable",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (mmr_klog_is_trouble(lines[i]))
			fail_msg("false alarm: %s", lines[i]);
}

static void feed(unsigned int prio, unsigned int seq, const char *text)
{
	char buf[1024];
	int n = snprintf(buf, sizeof(buf),
			 "%u,%u,123456,-;%s\n SUBSYSTEM=x\n DEVICE=y\n", prio,
			 seq, text);

	mmr_klog_feed(buf, (size_t)n);
}

/* Red when trouble before the mark, or trouble that somebody has taken, is
 * a run's. */
static void test_mark_and_take(void **state)
{
	struct mmr_klog_mark m, later;
	char *s;

	(void)state;
	mmr_klog_reset();
	feed(4, 10, "WARNING: CPU: 0 PID: 1 at old.c:1");
	mmr_klog_get_mark(&m);
	assert_int_equal(m.seq, 11);
	assert_false(mmr_klog_pending(&m));
	assert_null(mmr_klog_take(&m));
	feed(6, 11, "an ordinary line");
	assert_false(mmr_klog_pending(&m));
	feed(4, 12, "WARNING: CPU: 0 PID: 1 at new.c:1");
	feed(4, 13, "Call Trace:");
	assert_true(mmr_klog_pending(&m));
	s = mmr_klog_take(&m);
	assert_non_null(s);
	assert_string_equal(s, "WARNING: CPU: 0 PID: 1 at new.c:1\n"
			       "Call Trace:\n");
	free(s);
	assert_false(mmr_klog_pending(&m));
	assert_null(mmr_klog_take(&m));
	mmr_klog_get_mark(&later);
	assert_false(mmr_klog_pending(&later));
	s = mmr_klog_since(&m);
	assert_non_null(strstr(s, "ordinary"));
	assert_null(strstr(s, "old.c"));
	free(s);
}

/* Red when words that user space wrote into the log are the kernel's. */
static void test_user_space(void **state)
{
	struct mmr_klog_mark m;

	(void)state;
	mmr_klog_reset();
	mmr_klog_get_mark(&m);
	feed(12, 1, "WARNING: says a program");
	assert_false(mmr_klog_pending(&m));
	feed(4, 2, "WARNING: says the kernel");
	assert_true(mmr_klog_pending(&m));
}

/* Red when the store grows, or the newest lines are lost. */
static void test_flood(void **state)
{
	struct mmr_klog_mark m;
	char text[64], *s;
	unsigned int i;

	(void)state;
	mmr_klog_reset();
	mmr_klog_get_mark(&m);
	for (i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "line %u", i);
		feed(6, i, text);
	}
	feed(4, i, "BUG: the last one");
	s = mmr_klog_take(&m);
	assert_string_equal(s, "BUG: the last one\n");
	free(s);
	s = mmr_klog_since(&m);
	assert_true(strlen(s) < 512 * 16);
	assert_non_null(strstr(s, "line 99999\n"));
	free(s);
}

/* Red when a broken record does harm. */
static void test_broken(void **state)
{
	struct mmr_klog_mark m;
	static const char *const records[] = {"",    ";",	"4",
					      "4,5", "x,y,z;t", "4,7,1,-;"};
	size_t i;

	(void)state;
	mmr_klog_reset();
	for (i = 0; i < sizeof(records) / sizeof(*records); i++)
		mmr_klog_feed(records[i], strlen(records[i]));
	mmr_klog_get_mark(&m);
	assert_int_equal(m.seq, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trouble),
		cmocka_unit_test(test_no_trouble),
		cmocka_unit_test(test_mark_and_take),
		cmocka_unit_test(test_user_space),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
