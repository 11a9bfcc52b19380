/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A public interface file, written for mmrace's tests, as tst_test.h is: a
 * system call that the kernel does not have skips the test.
 */
#ifndef LAPI_SYSCALLS_H__
#define LAPI_SYSCALLS_H__

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define tst_syscall(nr, ...)                                                   \
	({                                                                     \
		long tst_ret = syscall(nr, ##__VA_ARGS__);                     \
                                                                               \
		if (tst_ret == -1 && errno == ENOSYS)                          \
			tst_brk(TCONF, "this kernel has no %s", #nr);          \
		tst_ret;                                                       \
	})

#endif
