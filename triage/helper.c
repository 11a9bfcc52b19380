// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The engine's side of the disposable helper; the other side is
 * evidence_helper.c.  A helper in D state cannot be killed and must not be
 * waited for: it is put aside, and whoever comes next looks whether it has
 * gone meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helper.h"

#define ABANDONED_MAX 64
#define ARGS_MAX 120

extern char **environ;

static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t abandoned[ABANDONED_MAX];
static int abandoned_n;

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reaps abandoned helpers that have gone; with pid > 0 adds one first. */
static void put_aside(pid_t pid)
{
	int i;

	pthread_mutex_lock(&abandoned_lock);
	if (pid > 0 && abandoned_n < ABANDONED_MAX)
		abandoned[abandoned_n++] = pid;
	for (i = 0; i < abandoned_n;) {
		if (waitpid(abandoned[i], NULL, WNOHANG) != 0)
			abandoned[i] = abandoned[--abandoned_n];
		else
			i++;
	}
	pthread_mutex_unlock(&abandoned_lock);
}

static int start(const char *const args[], int out, pid_t *pid)
{
	const char *exe = getenv("MMRACE_HELPER");
	char name[] = "mmrace", kind[] = "__evidence";
	char *argv[ARGS_MAX + 3] = {name, kind};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none;
	int i, ret;

	/* posix_spawn takes its arguments as writable, and leaves them. */
	for (i = 0; args[i] && i < ARGS_MAX; i++)
		memcpy(&argv[i + 2], &args[i], sizeof(argv[0]));
	ret = posix_spawn_file_actions_init(&fa);
	if (ret)
		return -ret;
	ret = posix_spawnattr_init(&attr);
	if (ret)
		goto out_fa;
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setpgroup(&attr, 0); /* Ctrl-C is the engine's */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETPGROUP);
	ret = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY,
					       0);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&fa, out, 1);
	if (!ret)
		ret = posix_spawn_file_actions_addopen(&fa, 2, "/dev/null",
						       O_WRONLY, 0);
	if (!ret)
		ret = posix_spawn(pid, exe ? exe : "/proc/self/exe", &fa, &attr,
				  argv, environ);
	posix_spawnattr_destroy(&attr);
out_fa:
	posix_spawn_file_actions_destroy(&fa);
	return -ret;
}

/* 0: end of file or cap; -ETIME. */
static int collect(int fd, char *buf, size_t cap, int64_t deadline, size_t *len)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t left;
	ssize_t got;

	while (*len < cap) {
		left = deadline - now_ms();
		if (left <= 0)
			return -ETIME;
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
		if (!p.revents)
			continue;
		got = read(fd, buf + *len, cap - *len);
		if (got == 0)
			return 0;
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (got > 0)
			*len += (size_t)got;
	}
	return 0;
}

/* Its end, given a moment; else it is killed and put aside. */
static int finish(pid_t pid, int64_t deadline)
{
	const struct timespec nap = {0, 500000};
	int status;
	pid_t got;

	do {
		got = waitpid(pid, &status, WNOHANG);
		if (got == pid)
			return WIFEXITED(status) && !WEXITSTATUS(status)
				       ? 0
				       : -EPROTO;
		if (got < 0 && errno != EINTR)
			return -EPROTO; /* reaped by somebody else */
		nanosleep(&nap, NULL);
	} while (now_ms() < deadline);
	kill(pid, SIGKILL);
	nanosleep(&(struct timespec){0, 5000000}, NULL);
	put_aside(pid);
	return -ETIME;
}

int mmr_helper_run(const char *const args[], int deadline_ms, char **out,
		   size_t *len)
{
	int64_t deadline = now_ms() + deadline_ms;
	int fds[2], ret, end;
	char *buf, *fit;
	pid_t pid;

	put_aside(0);
	*len = 0;
	*out = NULL;
	buf = malloc(MMR_HELPER_CAP + 1);
	if (!buf)
		return -ENOMEM;
	buf[0] = '\0';
	*out = buf;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	ret = start(args, fds[1], &pid);
	close(fds[1]);
	if (ret) {
		close(fds[0]);
		return ret;
	}
	ret = collect(fds[0], buf, MMR_HELPER_CAP, deadline, len);
	close(fds[0]); /* one that still writes gets SIGPIPE */
	buf[*len] = '\0';
	fit = realloc(buf, *len + 1);
	if (fit)
		*out = fit;
	end = finish(pid, ret ? 0 : deadline);
	return ret ? ret : end;
}
