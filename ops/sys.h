/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Raw system calls for mmrace-child: inline, they return the kernel's value
 * (>= 0 or -errno) and touch neither errno nor thread-local storage, so that
 * threads made by raw clone can use them.
 *
 * Only calls that the machine itself makes have a function here; one-call ops
 * go through mmr_sys6() with the number of their descriptor.
 */
#ifndef MMR_OPS_SYS_H
#define MMR_OPS_SYS_H

#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that the headers of Debian 12 or older may lack; the same on every
 * architecture from 424 on. */
#define MMR_NR_pidfd_send_signal 424
#define MMR_NR_pidfd_open 434
#define MMR_NR_process_mrelease 448

#if defined(__x86_64__)

static inline int64_t mmr_sys6(long nr, int64_t a, int64_t b, int64_t c,
			       int64_t d, int64_t e, int64_t f)
{
	register int64_t r10 __asm__("r10") = d;
	register int64_t r8 __asm__("r8") = e;
	register int64_t r9 __asm__("r9") = f;
	int64_t ret;

	__asm__ __volatile__("syscall"
			     : "=a"(ret)
			     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10),
			       "r"(r8), "r"(r9)
			     : "rcx", "r11", "memory");
	return ret;
}

#elif defined(__aarch64__)

static inline int64_t mmr_sys6(long nr, int64_t a, int64_t b, int64_t c,
			       int64_t d, int64_t e, int64_t f)
{
	register int64_t x8 __asm__("x8") = nr;
	register int64_t x0 __asm__("x0") = a;
	register int64_t x1 __asm__("x1") = b;
	register int64_t x2 __asm__("x2") = c;
	register int64_t x3 __asm__("x3") = d;
	register int64_t x4 __asm__("x4") = e;
	register int64_t x5 __asm__("x5") = f;

	__asm__ __volatile__("svc #0"
			     : "+r"(x0)
			     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4),
			       "r"(x5)
			     : "memory");
	return x0;
}

#else
#error "mmrace-child runs on x86_64 and aarch64"
#endif

static inline int64_t mmr_sys0(long nr)
{
	return mmr_sys6(nr, 0, 0, 0, 0, 0, 0);
}

static inline int64_t mmr_sys1(long nr, int64_t a)
{
	return mmr_sys6(nr, a, 0, 0, 0, 0, 0);
}

static inline int64_t mmr_sys2(long nr, int64_t a, int64_t b)
{
	return mmr_sys6(nr, a, b, 0, 0, 0, 0);
}

static inline int64_t mmr_sys3(long nr, int64_t a, int64_t b, int64_t c)
{
	return mmr_sys6(nr, a, b, c, 0, 0, 0);
}

static inline int64_t mmr_sys4(long nr, int64_t a, int64_t b, int64_t c,
			       int64_t d)
{
	return mmr_sys6(nr, a, b, c, d, 0, 0);
}

static inline int64_t mmr_sys5(long nr, int64_t a, int64_t b, int64_t c,
			       int64_t d, int64_t e)
{
	return mmr_sys6(nr, a, b, c, d, e, 0);
}

/* A pointer as a system call's argument. */
static inline int64_t mmr_sys_ptr(const volatile void *p)
{
	return (int64_t)(uintptr_t)p;
}

struct mmr_iovec {
	uint64_t base, len;
};

struct mmr_timespec {
	int64_t sec, nsec;
};

/* ns of a clock, or -errno. */
static inline int64_t mmr_sys_clock(int clock)
{
	struct mmr_timespec ts = {0, 0};
	int64_t ret;

	ret = mmr_sys2(__NR_clock_gettime, clock, mmr_sys_ptr(&ts));
	return ret < 0 ? ret : ts.sec * 1000000000 + ts.nsec;
}

/* CLOCK_MONOTONIC_RAW in ns. */
static inline uint64_t mmr_sys_clock_raw(void)
{
	return (uint64_t)mmr_sys_clock(4);
}

/* The futex words lie in shared memory: never the private variants. */
static inline int64_t mmr_sys_futex_wait(const volatile void *word,
					 uint32_t val, int64_t ns)
{
	struct mmr_timespec ts = {0, ns}; /* ns < 0: no end; below 1 s */

	return mmr_sys6(__NR_futex, mmr_sys_ptr(word), 0, val,
			ns < 0 ? 0 : mmr_sys_ptr(&ts), 0, 0);
}

static inline int64_t mmr_sys_futex_wake(const volatile void *word, int n)
{
	return mmr_sys3(__NR_futex, mmr_sys_ptr(word), 1, n);
}

static inline void mmr_sys_yield(void)
{
	mmr_sys0(__NR_sched_yield);
}

static inline void mmr_sys_nanosleep(int64_t ns) /* below 1 s */
{
	struct mmr_timespec ts = {0, ns};

	mmr_sys2(__NR_nanosleep, mmr_sys_ptr(&ts), 0);
}

static inline _Noreturn void mmr_sys_exit_group(int status)
{
	for (;;)
		mmr_sys1(__NR_exit_group, status);
}

static inline _Noreturn void mmr_sys_exit(int status)
{
	for (;;)
		mmr_sys1(__NR_exit, status);
}

/* A fork: clone with no new stack.  0 in the new process. */
static inline int64_t mmr_sys_fork(uint64_t flags)
{
	return mmr_sys5(__NR_clone, (int64_t)flags, 0, 0, 0, 0);
}

static inline void mmr_sys_relax(void)
{
#if defined(__x86_64__)
	__asm__ __volatile__("pause" ::: "memory");
#else
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

#endif
