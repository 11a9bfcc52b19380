/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A public interface file, written for mmrace's tests: of the kernel's
 * tools/testing/selftests/kselftest.h it has what exported tests use, by the
 * names and meanings that are documented there, so that they can be compiled
 * and run where no kernel source is.  It is no part of the kernel.
 */
#ifndef __KSELFTEST_H
#define __KSELFTEST_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define KSFT_PASS 0
#define KSFT_FAIL 1
#define KSFT_XFAIL 2
#define KSFT_XPASS 3
#define KSFT_SKIP 4

static unsigned int ksft_plan, ksft_passed, ksft_failed, ksft_skipped;

static inline void ksft_print_header(void)
{
	if (!getenv("KSFT_TAP_LEVEL"))
		puts("TAP version 13");
}

static inline void ksft_set_plan(unsigned int plan)
{
	ksft_plan = plan;
	printf("1..%u\n", plan);
}

static inline void ksft_print_cnts(void)
{
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n",
	       ksft_passed, ksft_failed, ksft_skipped);
}

static inline __attribute__((format(printf, 1, 2))) void
ksft_print_msg(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	printf("# ");
	vprintf(format, ap);
	va_end(ap);
}

static inline __attribute__((format(printf, 1, 2))) void
ksft_test_result_pass(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	printf("ok %u ", ++ksft_passed + ksft_failed + ksft_skipped);
	vprintf(format, ap);
	va_end(ap);
}

static inline __attribute__((format(printf, 1, 2))) void
ksft_test_result_fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	printf("not ok %u ", ksft_passed + ++ksft_failed + ksft_skipped);
	vprintf(format, ap);
	va_end(ap);
}

static inline __attribute__((noreturn)) void ksft_finished(void)
{
	ksft_print_cnts();
	exit(ksft_passed + ksft_skipped == ksft_plan ? KSFT_PASS : KSFT_FAIL);
}

static inline __attribute__((format(printf, 1, 2), noreturn)) void
ksft_exit_fail_msg(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	printf("Bail out! ");
	vprintf(format, ap);
	va_end(ap);
	ksft_print_cnts();
	exit(KSFT_FAIL);
}

static inline __attribute__((format(printf, 1, 2), noreturn)) void
ksft_exit_skip(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	printf(ksft_plan ? "ok 1 # SKIP " : "1..0 # SKIP ");
	vprintf(format, ap);
	va_end(ap);
	exit(KSFT_SKIP);
}

#endif
