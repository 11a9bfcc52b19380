// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Signatures: red when a frame that differs from run to run gets in, when a
 * frame that tells two stalls apart is dropped, or when the hash changes
 * (then findings of earlier versions no longer match).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../triage/evidence.h"
#include "../../triage/ladder.h"

static const char futex_x86[] =
	"[<0>] futex_do_wait+0x46/0x90\n"
	"[<0>] __futex_wait+0x8a/0x100\n"
	"[<0>] futex_wait+0x67/0x120\n"
	"[<0>] do_futex+0xfd/0x250\n"
	"[<0>] __x64_sys_futex+0x112/0x210\n"
	"[<0>] do_syscall_64+0x71/0x280\n"
	"[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n";

static const char futex_arm[] =
	"[<ffff800008123456>] __switch_to+0xe0/0x110\n"
	"[<ffff800008123456>] futex_do_wait+0x10/0x98\n"
	"[<ffff800008123456>] __futex_wait+0xa/0xa0\n"
	"[<ffff800008123456>] ? stale_frame+0x1/0x2\n"
	"[<ffff800008123456>] futex_wait.isra.0+0x1/0x120\n"
	"[<ffff800008123456>] do_futex+0x11/0x33 [mod]\n"
	"[<ffff800008123456>] __arm64_sys_futex+0x1/0x2\n"
	"[<ffff800008123456>] invoke_syscall.constprop.0+0x50/0xe0\n"
	"[<ffff800008123456>] do_el0_svc+0x2c/0x60\n"
	"[<ffff800008123456>] el0_svc+0x2c/0x84\n"
	"[<0>] 0xffffffffffffffff\n";

static void frames_same_on_both(void **state)
{
	char a[160], b[160];

	(void)state;
	mmr_signature_frames(futex_x86, 6, a, sizeof(a));
	mmr_signature_frames(futex_arm, 6, b, sizeof(b));
	assert_string_equal(a,
			    "futex_do_wait<__futex_wait<futex_wait<do_futex");
	assert_string_equal(a, b);
}

static void frames_bounded(void **state)
{
	char a[32];

	(void)state;
	mmr_signature_frames(futex_x86, 2, a, sizeof(a));
	assert_string_equal(a, "futex_do_wait<__futex_wait");
	/* Whole frames only, when the room ends before the frames do. */
	mmr_signature_frames(futex_x86, 6, a, 20);
	assert_string_equal(a, "futex_do_wait");
	mmr_signature_frames("", 6, a, sizeof(a));
	assert_string_equal(a, "");
	mmr_signature_frames("[<0>", 6, a, sizeof(a));
	assert_string_equal(a, "");
	mmr_signature_frames("\n\n \xff\xfe\n[<0>] a+0x1/0x2", 6, a, sizeof(a));
	assert_non_null(strstr(a, "a"));
}

static void klog_title(void **state)
{
	char a[160], b[160];

	(void)state;
	mmr_signature_klog("[ 12.3] mmrace: seed 7\n"
			   "[ 12.4] WARNING: CPU: 1 PID: 4711 at "
			   "mm/memory.c:1234 zap_pte_range+0x12/0x900\n"
			   "[ 12.4] Modules linked in:\n",
			   a, sizeof(a));
	mmr_signature_klog("WARNING: CPU: 0 PID: 12 at mm/memory.c:1234 "
			   "zap_pte_range+0x99/0x900",
			   b, sizeof(b));
	assert_string_equal(
		a, "WARNING: CPU: PID: at mm/memory.c:1234 zap_pte_range");
	assert_string_equal(a, b);
	mmr_signature_klog("BUG: Bad page state in process mmrace-child  "
			   "pfn:10a3f",
			   a, sizeof(a));
	mmr_signature_klog("BUG: Bad page state in process mmrace-child  "
			   "pfn:ffff",
			   b, sizeof(b));
	assert_string_equal(a, b);
	mmr_signature_klog("", a, sizeof(a));
	assert_string_equal(a, "");
}

static void ids(void **state)
{
	char a[48], b[48];

	(void)state;
	mmr_signature_id(MMR_HANG, "hang futex_wait futex_do_wait<__futex_wait",
			 a, sizeof(a));
	mmr_signature_id(MMR_HANG, "hang futex_wait futex_do_wait<futex_wait",
			 b, sizeof(b));
	assert_string_not_equal(a, b);
	assert_int_equal(strncmp(a, "hang-", 5), 0);
	assert_int_equal(strlen(a), 15);
	assert_int_equal(strspn(a + 5, "0123456789abcdef"), 10);
	mmr_signature_id(MMR_FAULT_STORM, "fault-storm write", a, sizeof(a));
	assert_string_equal(a, "fault-storm-068b2337f2");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_same_on_both),
		cmocka_unit_test(frames_bounded),
		cmocka_unit_test(klog_title),
		cmocka_unit_test(ids),
	};

	(void)argc;
	(void)argv;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
