// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * flush PID: takes the first page of each memory file (memfd) that the process
 * has open away from under its mappings.  The kernel clears the page's entries
 * in all page tables, and has every CPU that runs the process flush what its
 * TLB has of them: from then on, and not before, an access faults.  Nothing
 * is sent to the process, and it is not stopped.  0: done for one file at
 * least.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int flush_file(int dir, const char *name)
{
	char to[64];
	ssize_t n = readlinkat(dir, name, to, sizeof(to) - 1);
	int fd, err;

	if (n < 0)
		return 0;
	to[n] = '\0';
	if (strncmp(to, "/memfd:mmrace ", 14))
		return 0;
	fd = openat(dir, name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	err = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			sysconf(_SC_PAGESIZE));
	close(fd);
	return !err;
}

int main(int argc, char **argv)
{
	const struct dirent *e;
	char path[64];
	int done = 0;
	DIR *d;

	if (argc != 2)
		return 2;
	snprintf(path, sizeof(path), "/proc/%d/fd", atoi(argv[1]));
	d = opendir(path);
	if (!d)
		return 1;
	while ((e = readdir(d)))
		done += flush_file(dirfd(d), e->d_name);
	closedir(d);
	return !done;
}
