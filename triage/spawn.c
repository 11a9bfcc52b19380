// SPDX-License-Identifier: GPL-2.0-or-later
/* The spawner thread, and how a run's processes are ended. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ops/area.h"
#include "../ops/clock.h"
#include "cap.h"
#include "sample.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define ASIDE 64 /* children that could not be killed; more are forgotten */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	pthread_t thread;
	bool running, stop;
	/* The request: one at a time. */
	bool busy, ready;
	const char *path;
	int area_fd;
	struct mmr_spawned *out;
	int err;
	/* Set aside. */
	struct mmr_spawned aside[ASIDE];
	int naside;
} sp = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.asked = PTHREAD_COND_INITIALIZER,
	.answered = PTHREAD_COND_INITIALIZER};

static int actions(posix_spawn_file_actions_t *fa, posix_spawnattr_t *attr,
		   int area_fd)
{
	sigset_t set;
	int i, err = 0;

	/* Not our own output: a child that cannot be killed would hold a
	 * pipe that somebody waits on. */
	for (i = 0; i < 3 && !err; i++)
		err = posix_spawn_file_actions_addopen(fa, i, "/dev/null",
						       O_RDWR, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(fa, area_fd,
						       MMR_AREA_FD);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(fa,
							       MMR_AREA_FD + 1);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(attr, &set);
	sigfillset(&set);
	sigdelset(&set, SIGKILL);
	sigdelset(&set, SIGSTOP);
	posix_spawnattr_setsigdefault(attr, &set);
	/* An own session: Ctrl-C is the engine's business, and the group is
	 * what kill() can name as a whole. */
	posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK |
					       POSIX_SPAWN_SETSIGDEF |
					       POSIX_SPAWN_SETSID);
	return err;
}

static int spawn(const char *path, int area_fd, struct mmr_spawned *out)
{
	char name[] = "mmrace-child", pid[16];
	char *argv[] = {name, pid, NULL}, *envp[] = {NULL};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	int err, fd = -1;

	/* The same number as the target's would be closed by no dup2. */
	if (area_fd == MMR_AREA_FD) {
		fd = fcntl(area_fd, F_DUPFD_CLOEXEC, MMR_AREA_FD + 1);
		if (fd < 0)
			return -errno;
		area_fd = fd;
	}
	snprintf(pid, sizeof(pid), "%d", getpid());
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	err = actions(&fa, &attr, area_fd);
	if (!err)
		err = posix_spawn(&out->holder, path, &fa, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
	if (fd >= 0)
		close(fd);
	out->pidfd = -1;
	out->status = 0;
	if (err) {
		out->holder = 0;
		return -err;
	}
	mmr_cap_settle(out->holder);
	out->pidfd = (int)syscall(SYS_pidfd_open, out->holder, 0);
	return 0;
}

static void *spawner_main(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "mmr-spawner");
	mmr_cap_enter();
	pthread_mutex_lock(&sp.lock);
	while (!sp.stop) {
		if (!sp.ready) {
			pthread_cond_wait(&sp.asked, &sp.lock);
			continue;
		}
		pthread_mutex_unlock(&sp.lock);
		sp.err = spawn(sp.path, sp.area_fd, sp.out);
		pthread_mutex_lock(&sp.lock);
		sp.ready = false;
		pthread_cond_broadcast(&sp.answered);
	}
	pthread_mutex_unlock(&sp.lock);
	return NULL;
}

int mmr_spawn_start(void)
{
	int err;

	sp.stop = false;
	err = pthread_create(&sp.thread, NULL, spawner_main, NULL);
	sp.running = !err;
	return -err;
}

void mmr_spawn_stop(void)
{
	if (!sp.running)
		return;
	pthread_mutex_lock(&sp.lock);
	sp.stop = true;
	pthread_cond_broadcast(&sp.asked);
	pthread_mutex_unlock(&sp.lock);
	pthread_join(sp.thread, NULL);
	sp.running = false;
}

int mmr_spawn_child(const char *path, int area_fd, struct mmr_spawned *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->pidfd = -1;
	if (!sp.running)
		return -ESRCH;
	pthread_mutex_lock(&sp.lock);
	while (sp.busy)
		pthread_cond_wait(&sp.answered, &sp.lock);
	sp.busy = sp.ready = true;
	sp.path = path;
	sp.area_fd = area_fd;
	sp.out = out;
	pthread_cond_signal(&sp.asked);
	while (sp.ready)
		pthread_cond_wait(&sp.answered, &sp.lock);
	err = sp.err;
	sp.busy = false;
	pthread_cond_broadcast(&sp.answered);
	pthread_mutex_unlock(&sp.lock);
	return err;
}

static void forget(struct mmr_spawned *s)
{
	if (s->pidfd >= 0)
		close(s->pidfd);
	s->pidfd = -1;
	s->holder = 0;
}

int mmr_spawn_reap(struct mmr_spawned *s)
{
	siginfo_t info = {.si_pid = 0};
	int err;

	if (!s->holder)
		return 1;
	do
		err = waitid(P_PID, (id_t)s->holder, &info,
			     WEXITED | WNOHANG | WNOWAIT);
	while (err && errno == EINTR);
	if (!err && !info.si_pid)
		return 0;
	/* Where there is no namespace, this ends what the case left behind;
	 * the unreaped holder keeps the group's number its own. */
	if (!err)
		kill(-s->holder, SIGKILL);
	waitpid(s->holder, &s->status, 0);
	forget(s);
	return 1;
}

/* Waits for the holder's end: 1, or 0 when the time is over. */
static int wait_end(struct mmr_spawned *s, int64_t limit_ns)
{
	int64_t end = mmr_clock_monotonic() + limit_ns, left;

	while (!mmr_spawn_reap(s)) {
		struct pollfd p = {.fd = s->pidfd, .events = POLLIN};

		left = end - mmr_clock_monotonic();
		if (left <= 0)
			return 0;
		/* Without pidfd: look again every 2 ms. */
		poll(&p, s->pidfd >= 0,
		     s->pidfd >= 0 ? (int)(left / 1000000) + 1 : 2);
	}
	return 1;
}

static void reap_aside(void)
{
	int i;

	for (i = 0; i < sp.naside;)
		if (mmr_spawn_reap(&sp.aside[i]))
			sp.aside[i] = sp.aside[--sp.naside];
		else
			i++;
}

static void set_aside(struct mmr_spawned *s)
{
	pthread_mutex_lock(&sp.lock);
	reap_aside();
	if (sp.naside < ASIDE)
		sp.aside[sp.naside++] = *s;
	else
		forget(s);
	pthread_mutex_unlock(&sp.lock);
	s->holder = 0;
	s->pidfd = -1;
}

int mmr_spawn_end(struct mmr_spawned *s, pid_t supervisor, int64_t limit_ns)
{
	if (mmr_spawn_reap(s))
		return 0;
	/*
	 * Pid 1 of the namespace: it goes only after everything in the
	 * namespace has gone, and the holder waits for it, so the holder's
	 * end says that all is gone.  The number is the supervisor's for sure
	 * while its parent is our unreaped child.
	 */
	if (supervisor > 0 && mmr_sample_parent(supervisor) == s->holder) {
		kill(supervisor, SIGKILL);
	} else {
		kill(-s->holder, SIGKILL);
		kill(s->holder, SIGKILL);
	}
	if (wait_end(s, limit_ns))
		return 0;
	set_aside(s);
	return -ETIMEDOUT;
}

int mmr_spawn_quarantined(void)
{
	int n;

	pthread_mutex_lock(&sp.lock);
	reap_aside();
	n = sp.naside;
	pthread_mutex_unlock(&sp.lock);
	return n;
}
