// SPDX-License-Identifier: GPL-2.0-or-later
#include "core_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "mmrace-core-"

static const char *parent(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir == '/' ? dir : "/tmp";
}

int mmr_core_make(char *out, size_t n, char *text, size_t ntext)
{
	static _Atomic unsigned int number;
	char pattern[160] = "";
	int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd >= 0) {
		got = read(fd, pattern, sizeof(pattern) - 1);
		close(fd);
		pattern[got > 0 ? got : 0] = 0;
		pattern[strcspn(pattern, "\n")] = 0;
	}
	if (!*pattern || strpbrk(pattern, "|/")) {
		snprintf(text, ntext,
			 "needs core dumps in a folder of its own, and this "
			 "machine's go elsewhere (kernel.core_pattern is %s)",
			 *pattern ? pattern : "empty");
		return -ENOTSUP;
	}
	if (snprintf(out, n, "%s/" PREFIX "%d-%u", parent(), getpid(),
		     atomic_fetch_add(&number, 1)) >= (int)n)
		return -ENAMETOOLONG;
	if (mkdir(out, 0777)) {
		snprintf(text, ntext, "needs a folder for core dumps: %s: %s",
			 out, strerror(errno));
		out[0] = 0;
		return -errno;
	}
	return 0;
}

void mmr_core_remove(const char *dir)
{
	struct dirent *e;
	DIR *d;
	int fd;

	if (!*dir)
		return;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	/* Files only: the kernel makes nothing else. */
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(fd, e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

void mmr_core_sweep(void)
{
	char path[400];
	struct dirent *e;
	DIR *d = opendir(parent());
	struct stat st;
	pid_t pid;

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1))
			continue;
		pid = (pid_t)strtol(e->d_name + sizeof(PREFIX) - 1, NULL, 10);
		if (pid <= 0 || !kill(pid, 0) || errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%.120s/%.255s", parent(),
			 e->d_name);
		if (!lstat(path, &st) && S_ISDIR(st.st_mode) &&
		    st.st_uid == geteuid())
			mmr_core_remove(path);
	}
	if (d)
		closedir(d);
}
