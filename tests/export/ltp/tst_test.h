/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A public interface file, written for mmrace's tests: of LTP's new library it
 * has what exported tests use, by the names and meanings that LTP documents
 * for include/tst_test.h, so that they can be compiled and run where LTP is
 * not.  It changes no setting of the machine: where LTP would reserve or write
 * something, it asks whether that is so already.  It is no part of LTP.
 */
#ifndef TST_TEST_H__
#define TST_TEST_H__

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum tst_res_flags {
	TPASS = 0,
	TFAIL = 1,
	TBROK = 2,
	TWARN = 4,
	TINFO = 16,
	TCONF = 32,
	TERRNO = 0x100,
};

#define TST_TAINT_D (1 << 7)
#define TST_TAINT_W (1 << 9)

#define TST_SR_TCONF 0x0

#define TST_CAP_DROP 1
#define TST_CAP_REQ (1 << 1)
#define TST_CAP(action, capability)                                            \
	{                                                                      \
		action, capability, #capability                                \
	}

enum tst_hp_policy {
	TST_REQUEST,
	TST_NEEDS,
};

struct tst_hugepage {
	const unsigned long number;
	enum tst_hp_policy policy;
};

struct tst_path_val {
	const char *path;
	const char *val;
	unsigned int flags;
};

struct tst_tag {
	const char *name;
	const char *value;
};

struct tst_cap {
	unsigned int action;
	unsigned int id;
	const char *name;
};

struct tst_test {
	const char *min_kver;
	const char *const *supported_archs;
	unsigned int needs_root : 1;
	unsigned int forks_child : 1;
	unsigned long min_cpus;
	unsigned long min_mem_avail; /* MiB */
	struct tst_hugepage hugepages;
	unsigned int taint_check;
	int timeout, runtime; /* s */
	void (*setup)(void);
	void (*cleanup)(void);
	void (*test_all)(void);
	const struct tst_path_val *save_restore;
	const char *const *needs_kconfigs;
	struct tst_cap *caps;
	const struct tst_tag *tags;
};

static struct tst_test test;

/* Shared by all processes of a test. */
static struct tst_results {
	atomic_int passed, failed, broken, skipped;
} *tst_results;
static time_t tst_end;

static inline __attribute__((format(printf, 2, 0))) void
tst_vres(int type, const char *format, va_list ap)
{
	static const struct {
		int type;
		const char *name;
	} names[] = {{TFAIL, "TFAIL"}, {TBROK, "TBROK"}, {TWARN, "TWARN"},
		     {TINFO, "TINFO"}, {TCONF, "TCONF"}, {TPASS, "TPASS"}};
	size_t i;

	type &= 0xff;
	for (i = 0; names[i].type != type && names[i].type != TPASS; i++)
		;
	fprintf(stderr, "%s: ", names[i].name);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	tst_results->passed += type == TPASS;
	tst_results->failed += type == TFAIL;
	tst_results->broken += type == TBROK;
	tst_results->skipped += type == TCONF;
}

static inline __attribute__((format(printf, 2, 3))) void
tst_res(int type, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	tst_vres(type, format, ap);
	va_end(ap);
}

static inline __attribute__((format(printf, 2, 3), noreturn)) void
tst_brk(int type, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	tst_vres(type, format, ap);
	va_end(ap);
	if (test.cleanup)
		test.cleanup();
	exit(0); /* whatever it has left goes with it */
}

static inline unsigned int tst_remaining_runtime(void)
{
	time_t now = time(NULL);

	return now < tst_end ? (unsigned int)(tst_end - now) : 0;
}

static inline pid_t tst_fork(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		tst_brk(TBROK | TERRNO, "fork: %s", strerror(errno));
	return pid;
}
#define SAFE_FORK() tst_fork()

static inline void *tst_mmap(void *at, size_t len, int prot, int flags, int fd,
			     off_t off)
{
	void *map = mmap(at, len, prot, flags, fd, off);

	if (map == MAP_FAILED)
		tst_brk(TBROK | TERRNO, "mmap: %s", strerror(errno));
	return map;
}
#define SAFE_MMAP tst_mmap

/* The number behind name in a file, or its first; hexadecimal where it has
 * 0x in front. */
static inline long long tst_number(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	long long n = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name))) {
			n = strtoll(line + strlen(name), NULL, 10);
			break;
		}
	if (f)
		fclose(f);
	return n;
}

#define SAFE_READ_MEMINFO(item) ((long)tst_number("/proc/meminfo", item))

static inline size_t tst_get_hugepage_size(void)
{
	return (size_t)SAFE_READ_MEMINFO("Hugepagesize:") << 10;
}

static inline void tst_drop(unsigned int cap)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	syscall(SYS_capget, &head, data);
	data[CAP_TO_INDEX(cap)].effective &= ~CAP_TO_MASK(cap);
	data[CAP_TO_INDEX(cap)].permitted &= ~CAP_TO_MASK(cap);
	data[CAP_TO_INDEX(cap)].inheritable &= ~CAP_TO_MASK(cap);
	syscall(SYS_capset, &head, data);
}

static inline void tst_check_kernel(void)
{
	int have[2] = {0}, want[2] = {0}, i;
	struct utsname uts;

	uname(&uts);
	sscanf(uts.release, "%d.%d", &have[0], &have[1]);
	if (test.min_kver)
		sscanf(test.min_kver, "%d.%d", &want[0], &want[1]);
	if (have[0] < want[0] || (have[0] == want[0] && have[1] < want[1]))
		tst_brk(TCONF, "needs Linux %d.%d", want[0], want[1]);
	for (i = 0; test.supported_archs && test.supported_archs[i]; i++)
		if (!strcmp(test.supported_archs[i], uts.machine))
			return;
	if (test.supported_archs)
		tst_brk(TCONF, "not on %s", uts.machine);
}

/* What the library asks or sets before setup(). */
static inline void tst_prepare(void)
{
	const struct tst_path_val *p;
	const struct tst_cap *c;
	char have[128], *word;
	FILE *f;

	tst_check_kernel();
	if (test.needs_root && geteuid())
		tst_brk(TCONF, "needs root");
	if (sysconf(_SC_NPROCESSORS_ONLN) < (long)test.min_cpus)
		tst_brk(TCONF, "needs %lu CPUs", test.min_cpus);
	if (tst_number("/proc/meminfo", "MemAvailable:") >> 10 <
	    (long long)test.min_mem_avail)
		tst_brk(TCONF, "needs %lu MiB", test.min_mem_avail);
	if (tst_number("/proc/meminfo", "HugePages_Free:") <
	    (long long)test.hugepages.number)
		tst_brk(TCONF, "needs %lu huge pages", test.hugepages.number);
	for (p = test.save_restore; p && p->path; p++) {
		f = fopen(p->path, "r");
		if (!f || !fgets(have, sizeof(have), f))
			tst_brk(TCONF, "no %s", p->path);
		fclose(f);
		word = strchr(have, '[');
		if (p->val &&
		    strncmp(word ? word + 1 : have, p->val, strlen(p->val)))
			tst_brk(TCONF, "%s is not as needed", p->path);
	}
	for (c = test.caps; c && c->name; c++)
		if (c->action == TST_CAP_DROP)
			tst_drop(c->id);
}

static inline void tst_run(void)
{
	unsigned int taint = 0;

	tst_prepare();
	if (test.setup)
		test.setup();
	if (test.taint_check)
		taint = (unsigned int)tst_number("/proc/sys/kernel/tainted",
						 "");
	tst_end = time(NULL) + test.runtime;
	test.test_all();
	while (wait(NULL) > 0)
		;
	if (test.taint_check &&
	    (unsigned int)tst_number("/proc/sys/kernel/tainted", "") & ~taint &
		    test.taint_check)
		tst_res(TFAIL, "the kernel is tainted");
	if (test.cleanup)
		test.cleanup();
}

int main(void)
{
	int status;
	pid_t pid;

	tst_results = mmap(NULL, sizeof(*tst_results), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tst_results == MAP_FAILED)
		return TBROK;
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		tst_run();
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return TBROK;
	kill(-pid, SIGKILL); /* what the test has left */
	if (WIFSIGNALED(status))
		tst_results->broken++;
	if (!tst_results->passed && !tst_results->failed &&
	    !tst_results->broken && !tst_results->skipped)
		tst_results->broken++; /* it has said nothing */
	return (tst_results->failed ? TFAIL : 0) |
	       (tst_results->broken ? TBROK : 0) |
	       (tst_results->skipped && !tst_results->passed ? TCONF : 0);
}

#endif
