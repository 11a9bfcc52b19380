// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel logs taken apart: logs made by hand in tests/klog, and such as no
 * file should hold.  Red when lines of two reports that came mixed are not put
 * apart by who wrote them, when a line is lost or doubled, or when a report is
 * taken for ended, or for another one, that is not.
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
#include "../../triage/klog_split.h"
#include "../../triage/ladder.h"

static struct mmr_klog_split split_file(const char *name)
{
	struct mmr_klog_split s;
	char path[128], *text = calloc(1, 1 << 16);
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "tests/klog/%s", name);
	f = fopen(path, "r");
	assert_non_null(text);
	assert_non_null(f);
	n = fread(text, 1, 1 << 16, f);
	fclose(f);
	assert_int_equal(mmr_klog_split(text, n, &s), 0);
	free(text);
	return s;
}

static void is_report(const struct mmr_klog_split *s, int i, const char *kind,
		      const char *title, long cpu, long pid, const char *comm,
		      size_t lines, bool complete)
{
	const struct mmr_klog_report *r = &s->reports[i];

	assert_true(i < s->n);
	assert_string_equal(r->kind, kind);
	assert_non_null(strstr(r->title, title));
	assert_int_equal(r->cpu, cpu);
	assert_int_equal(r->pid, pid);
	assert_string_equal(r->comm, comm);
	assert_int_equal(r->lines, lines);
	assert_int_equal(r->complete, complete);
}

static void two_cpus(void **state)
{
	struct mmr_klog_split s = split_file("two-cpus.log");

	(void)state;
	assert_int_equal(s.n, 2);
	/* By their first line that says what. */
	is_report(&s, 0, "warning", "WARNING: CPU: 1 PID: 202 at mm/rmap.c", 1,
		  202, "zapper", 9, true);
	is_report(&s, 1, "kasan", "BUG: KASAN: slab-use-after-free", 0, 101,
		  "mmrace-child", 9, true);
	assert_null(strstr(s.reports[0].text, "T101"));
	assert_null(strstr(s.reports[1].text, "T202"));
	assert_non_null(strstr(s.reports[1].text, "do_user_addr_fault"));
	assert_false(s.reports[0].mixed || s.reports[1].mixed);
	/* What is nobody's: the other task's line and the one past the end. */
	assert_non_null(strstr(s.rest, "ordinary:"));
	assert_non_null(strstr(s.rest, "Disabling lock debugging"));
	mmr_klog_split_free(&s);
}

static void irq_and_task(void **state)
{
	struct mmr_klog_split s = split_file("irq-and-task.log");

	(void)state;
	assert_int_equal(s.n, 3);
	is_report(&s, 0, "soft-lockup", "soft lockup - CPU#1", 1, 77,
		  "mmrace-child", 6, false);
	is_report(&s, 1, "hung-task", "task khugepaged:39", -1, 39,
		  "khugepaged", 6, false);
	is_report(&s, 2, "hung-task", "task mmrace-child:78", -1, 78,
		  "mmrace-child", 2, false);
	assert_null(strstr(s.reports[0].text, "rwsem_down_write"));
	/* Four seconds later it is another story. */
	assert_non_null(strstr(s.rest, "usb 1-1"));
	mmr_klog_split_free(&s);
}

static void no_caller(void **state)
{
	struct mmr_klog_split s = split_file("no-caller.log");

	(void)state;
	assert_int_equal(s.n, 2);
	assert_string_equal(s.reports[0].kind, "warning");
	assert_string_equal(s.reports[1].kind, "bad-page");
	/* Nothing tells whose the lines are: then that is said. */
	assert_false(s.reports[0].mixed);
	assert_true(s.reports[1].mixed);
	mmr_klog_split_free(&s);
}

static void truncated(void **state)
{
	struct mmr_klog_split s = split_file("truncated.log");

	(void)state;
	assert_int_equal(s.n, 1);
	is_report(&s, 0, "oops", "unable to handle page fault", 3, 4242,
		  "mmrace-child", 6, false);
	assert_non_null(strstr(s.reports[0].text, "RSP: 0018:ffff\n"));
	/* With the line of the license. */
	assert_int_equal(s.rest_lines, 2);
	mmr_klog_split_free(&s);
}

static void records(void **state)
{
	struct mmr_klog_split s = split_file("kmsg.log");

	(void)state;
	assert_int_equal(s.n, 2);
	is_report(&s, 0, "lockdep", "possible recursive locking", -1, -1, "", 6,
		  false);
	is_report(&s, 1, "rcu-stall", "rcu_preempt detected stalls", -1, -1, "",
		  2, false);
	assert_string_equal(s.reports[0].caller, "T12");
	assert_string_equal(s.reports[1].caller, "C0");
	mmr_klog_split_free(&s);
}

static void sanitizers(void **state)
{
	struct mmr_klog_split s = split_file("sanitizers.log");
	char title[160];

	(void)state;
	assert_int_equal(s.n, 3);
	is_report(&s, 0, "kcsan", "data-race in do_fault", -1, -1, "", 4, true);
	is_report(&s, 1, "ubsan", "array-index-out-of-bounds", -1, -1, "", 4,
		  true);
	/* BUG, its oops and the panic after it are one trouble. */
	is_report(&s, 2, "bug", "kernel BUG at mm/hugetlb.c:5555", -1, -1, "",
		  4, true);
	assert_int_equal(s.rest_lines, 1);
	mmr_signature_klog(s.reports[1].text, title, sizeof(title));
	assert_string_equal(
		title, "UBSAN: array-index-out-of-bounds in mm/vma.c:77:12");
	mmr_klog_split_free(&s);
}

static void binary(void **state)
{
	struct mmr_klog_split s = split_file("binary.log");
	json_t *j = mmr_klog_reports_json(&s);

	(void)state;
	assert_int_equal(s.n, 1);
	assert_string_equal(s.reports[0].kind, "kasan");
	assert_string_equal(s.reports[0].caller, "T5");
	assert_int_equal(json_array_size(j), 1);
	json_decref(j);
	mmr_klog_split_free(&s);
}

/* The cause of a panic, whoever else was in trouble before. */
static void panics(void **state)
{
	static const char con[] =
		"[    1.000000] WARNING: CPU: 0 PID: 1 at mm/early.c:1 f+0x1\n"
		"[    1.000001] ---[ end trace 0 ]---\n"
		"[    9.000000][   T77] BUG: unable to handle page fault for "
		"address: ffff888012\n"
		"[    9.000001][   T77] Oops: 0002 [#1] SMP\n"
		"[    9.000002][   T77] Kernel panic - not syncing: Fatal "
		"exception\n";
	json_t *reports;
	char title[120];

	(void)state;
	mmr_signature_panic(con, title, sizeof(title), &reports);
	assert_string_equal(title,
			    "BUG: unable to handle page fault for address:");
	assert_int_equal(json_array_size(reports), 2);
	json_decref(reports);
	mmr_signature_panic("nothing\n", title, sizeof(title), &reports);
	assert_string_equal(title, "");
	json_decref(reports);
}

/* A line of a MiB in a report, one that is nothing but a title, NULs. */
static void monsters(void **state)
{
	size_t n = 3u << 20, i;
	char *text = malloc(n);
	struct mmr_klog_split s;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', n);
	memcpy(text, "BUG: KASAN: a\n", 14);
	text[(1u << 20) + 14] = '\n';
	memcpy(text + (1u << 20) + 15, "WARNING: ", 9);
	text[n - 1] = '\n';
	assert_int_equal(mmr_klog_split(text, n, &s), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.reports[0].lines, 2);
	assert_int_equal(s.reports[0].len, 14 + (1u << 20) + 1);
	assert_int_equal(strlen(s.reports[1].text), s.reports[1].len);
	mmr_klog_split_free(&s);
	memset(text, 0, n);
	assert_int_equal(mmr_klog_split(text, n, &s), 0);
	assert_int_equal(s.n, 0);
	mmr_klog_split_free(&s);
	/* More reports than anybody reads: all lines are kept. */
	for (i = 0; i + 7 <= n; i += 7)
		memcpy(text + i, "BUG: x\n", 7);
	assert_int_equal(mmr_klog_split(text, i, &s), 0);
	assert_true(s.n > 100);
	for (i = 0; (int)i < s.n; i++)
		s.rest_lines += s.reports[i].lines;
	assert_int_equal(s.rest_lines, n / 7);
	mmr_klog_split_free(&s);
	assert_int_equal(mmr_klog_split("", 0, &s), 0);
	mmr_klog_split_free(&s);
	free(text);
}

/* What the store keeps says who wrote it, and its signature does not. */
static void store_keeps_callers(void **state)
{
	static const char *const recs[] = {
		"4,50,1000,-,caller=T7;WARNING: CPU: 0 PID: 7 at mm/a.c:1 "
		"f+0x1",
		"4,51,1001,-,caller=C1;BUG: KASAN: bad in g+0x1/0x2",
		"4,52,1002,-,caller=T7;Call Trace: of the warning",
	};
	struct mmr_klog_mark m = {.seq = 50};
	struct mmr_klog_split s;
	char title[160], *log;
	size_t i;

	(void)state;
	mmr_klog_reset();
	for (i = 0; i < 3; i++)
		mmr_klog_feed(recs[i], strlen(recs[i]));
	assert_true(mmr_klog_pending(&m));
	log = mmr_klog_take(&m);
	assert_non_null(log);
	assert_int_equal(mmr_klog_split(log, strlen(log), &s), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.reports[0].lines, 2);
	mmr_signature_klog(log, title, sizeof(title));
	assert_string_equal(title, "WARNING: CPU: PID: at mm/a.c:1 f");
	mmr_klog_split_free(&s);
	free(log);
	mmr_klog_reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_cpus),
		cmocka_unit_test(irq_and_task),
		cmocka_unit_test(no_caller),
		cmocka_unit_test(truncated),
		cmocka_unit_test(records),
		cmocka_unit_test(sanitizers),
		cmocka_unit_test(binary),
		cmocka_unit_test(panics),
		cmocka_unit_test(monsters),
		cmocka_unit_test(store_keeps_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
