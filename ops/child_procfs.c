// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The little that mmrace-child reads from /proc, which is the engine's: it
 * shows the process numbers that the watcher can use.
 */
#include "child_machine.h"

#define AT_FDCWD_VALUE (-100)
#define O_WRONLY_VALUE 1

static int64_t read_file(const char *path, char *buf, size_t n)
{
	int64_t fd, got;

	fd = mmr_sys4(__NR_openat, AT_FDCWD_VALUE, mmr_sys_ptr(path), 0, 0);
	if (fd < 0)
		return fd;
	got = mmr_sys3(__NR_read, fd, mmr_sys_ptr(buf), (int64_t)n - 1);
	mmr_sys1(__NR_close, fd);
	buf[got > 0 ? got : 0] = 0;
	return got;
}

int64_t mmr_child_put_file(const char *path, const char *text)
{
	int64_t fd, ret, n = 0;

	while (text[n])
		n++;
	fd = mmr_sys4(__NR_openat, AT_FDCWD_VALUE, mmr_sys_ptr(path),
		      O_WRONLY_VALUE, 0);
	if (fd < 0)
		return fd;
	ret = mmr_sys3(__NR_write, fd, mmr_sys_ptr(text), n);
	mmr_sys1(__NR_close, fd);
	return ret < 0 ? ret : 0;
}

const char *mmr_child_decimal(char *buf, int64_t v)
{
	uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;
	int n = 23;

	buf[n] = 0;
	do {
		buf[--n] = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (v < 0)
		buf[--n] = '-';
	return buf + n;
}

/* A decimal number at *p, which moves behind it; 0 when there is none. */
static uint64_t number(const char **p)
{
	uint64_t v = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++)
		v = v * 10 + (uint64_t)(**p - '0');
	return v;
}

/* thread-self points to "PID/task/TID". */
void mmr_procfs_ids(int32_t *pid, int32_t *tid)
{
	char buf[64];
	const char *p = buf;
	int64_t n;

	*pid = *tid = 0;
	n = mmr_sys4(__NR_readlinkat, AT_FDCWD_VALUE,
		     mmr_sys_ptr("/proc/thread-self"), mmr_sys_ptr(buf),
		     sizeof(buf) - 1);
	if (n <= 0)
		return;
	buf[n] = 0;
	*pid = (int32_t)number(&p);
	while (*p && (*p < '0' || *p > '9'))
		p++;
	*tid = (int32_t)number(&p);
}

/* "/proc/" and a number and a rest, for a path of a task. */
static void task_path(char *out, int32_t pid, const char *rest)
{
	const char *head = "/proc/";
	char digits[12];
	int n = 0;

	while (*head)
		*out++ = *head++;
	do {
		digits[n++] = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid);
	while (n)
		*out++ = digits[--n];
	while ((*out++ = *rest++))
		;
}

uint64_t mmr_procfs_delay(int32_t host_pid)
{
	char path[48], buf[80];
	const char *p = buf;

	if (host_pid)
		task_path(path, host_pid, "/schedstat");
	if (read_file(host_pid ? path : "/proc/thread-self/schedstat", buf,
		      sizeof(buf)) <= 0)
		return ~0ULL;
	number(&p); /* time on a CPU; then the time in wait for one */
	if (*p++ != ' ')
		return ~0ULL;
	return number(&p);
}

/* "PID (NAME) STATE PPID ...": the name is our own, without brackets. */
int64_t mmr_procfs_ppid(void)
{
	char buf[256];
	const char *p = buf;

	if (read_file("/proc/self/stat", buf, sizeof(buf)) <= 0)
		return 0;
	while (*p && *p != ')')
		p++;
	if (!*p || p[1] != ' ' || !p[2] || p[3] != ' ')
		return 0;
	p += 4;
	return (int64_t)number(&p);
}
