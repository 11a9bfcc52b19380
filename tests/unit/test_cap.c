// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Red when processes of cases take more memory together than they were given,
 * where no cgroup counts it, or when one that is none of them is killed.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../triage/cap_guard.h"
#include "../../triage/settings.h"

#define MIB (1UL << 20)
#define EACH (256 * MIB)
#define CHILDREN 4

/* A process that holds memory until it is killed. */
static pid_t hold(const char *name, size_t bytes, int ready)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	(void)!write(ready, "", 1);
	for (;;)
		pause();
}

/* How many of them a signal ends within some seconds. */
static int killed(const pid_t *pids, int n, int wanted)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int dead = 0;

	for (int i = 0; i < 5000 && dead < wanted; i++) {
		dead = 0;
		for (int k = 0; k < n; k++) {
			siginfo_t info = {0};

			waitid(P_PID, (id_t)pids[k], &info,
			       WEXITED | WNOHANG | WNOWAIT);
			dead += info.si_pid != 0;
		}
		nanosleep(&ms, NULL);
	}
	return dead;
}

static void test_guard(void **state)
{
	pid_t pids[CHILDREN + 1];
	int ready[2];
	char c;

	(void)state;
	if (mmr_meminfo("MemAvailable") < (int64_t)(8 * EACH >> 10))
		skip();
	assert_int_equal(pipe(ready), 0);
	/* Two of the four fit; the largest of all is no case's. */
	assert_int_equal(mmr_cap_guard_start(2 * EACH + EACH / 2), 0);
	pids[CHILDREN] = hold("bystander", 2 * EACH, ready[1]);
	for (int i = 0; i < CHILDREN; i++)
		pids[i] = hold("mmrace-child", EACH, ready[1]);
	assert_int_equal(killed(pids, CHILDREN, 2), 2);
	assert_int_equal(mmr_cap_guard_kills(), 2);
	/* Those that are left are within it. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(waitpid(pids[CHILDREN], NULL, WNOHANG), 0);
	mmr_cap_guard_stop();
	assert_int_equal(mmr_cap_guard_kills(), 2);
	for (int i = 0; i <= CHILDREN; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
