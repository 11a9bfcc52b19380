// SPDX-License-Identifier: GPL-2.0-or-later
/* Files and folders that are there as a whole or not at all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "finding.h"

int mmr_mkdir_p(const char *path)
{
	char *copy = strdup(path), *p;
	int ret = 0;

	if (!copy)
		return -ENOMEM;
	for (p = copy + 1; *copy && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			ret = -errno;
		*p = '/';
		if (ret)
			goto out;
	}
	if (mkdir(copy, 0777) && errno != EEXIST)
		ret = -errno;
out:
	free(copy);
	return ret;
}

int mmr_file_sync_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	/* Some file systems cannot sync a folder: then there is no need. */
	if (fsync(fd) && errno != EINVAL)
		ret = -errno;
	close(fd);
	return ret;
}

static int write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			p += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

/* Writes and syncs; nothing is left of a file that did not get whole. */
int mmr_file_write_sync(const char *path, const void *data, size_t n)
{
	int fd, ret;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	ret = write_all(fd, data, n);
	if (!ret && fsync(fd))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	if (ret)
		unlink(path);
	return ret;
}

int mmr_file_append_line(int fd, const char *line)
{
	size_t n = strlen(line);
	struct iovec parts[] = {{(void *)(uintptr_t)line, n},
				{(void *)(uintptr_t) "\n", 1}};
	off_t end = lseek(fd, 0, SEEK_END);
	ssize_t done = end < 0 ? -1 : writev(fd, parts, 2);
	int rc;

	if (done == (ssize_t)n + 1)
		return 0;
	rc = done < 0 ? -errno : -ENOSPC;
	if (done > 0 && ftruncate(fd, end)) {
		/* Half a line stays: readers count it as damaged. */
	}
	return rc;
}

/* Into what is there already and no plain file. */
static int write_through(const char *path, const void *data, size_t n)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = write_all(fd, data, n);
	if (close(fd) && !ret)
		ret = -errno;
	return ret;
}

int mmr_write_file(const char *path, const void *data, size_t n)
{
	char *tmp = NULL, *dir = NULL, *slash;
	struct stat st;
	int ret;

	/* A device or a pipe is written to, never put another file over. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return write_through(path, data, n);
	if (asprintf(&tmp, "%s.tmp-%d", path, getpid()) < 0)
		return -ENOMEM;
	ret = mmr_file_write_sync(tmp, data, n);
	if (ret)
		goto out;
	if (rename(tmp, path)) {
		ret = -errno;
		unlink(tmp);
		goto out;
	}
	dir = strdup(path);
	slash = dir ? strrchr(dir, '/') : NULL;
	if (slash)
		slash[slash == dir] = '\0'; /* "/x" lies in "/" */
	ret = slash ? mmr_file_sync_dir(dir)
	      : dir ? mmr_file_sync_dir(".")
		    : -ENOMEM;
out:
	free(dir);
	free(tmp);
	return ret;
}

void mmr_remove_tree(const char *path, int depth)
{
	const struct dirent *e;
	DIR *d = opendir(path);
	char *sub;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (asprintf(&sub, "%s/%s", path, e->d_name) < 0)
			break;
		if (unlink(sub) && depth > 0)
			mmr_remove_tree(sub, depth - 1);
		free(sub);
	}
	if (d)
		closedir(d);
	rmdir(path);
}
