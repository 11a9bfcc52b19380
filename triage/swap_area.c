// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * zram first: it needs no disk, whose latency would be taken for the kernel's.
 * Reading hot_add makes a device and tells its number, so the journal says
 * first which ones were there: after a kill in between, the new one is known
 * by having no size.  The file has a fixed name, which the journal needs not
 * say.
 */
#include "swap_area.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define CONTROL "/sys/class/zram-control/"
#define FILE_PATH "/var/tmp/mmrace-swap"
#define ZRAM_MAX 64
#define PRIORITY 100 /* before the machine's own areas */

void mmr_swap_plan(struct mmr_swap_area *s, int64_t bytes)
{
	int64_t mib = (bytes + (1 << 20) - 1) >> 20;

	s->bytes = mib << 20;
	s->zram = -1;
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int64_t get(const char *path)
{
	char buf[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	return n > 0 ? strtoll(buf, NULL, 10) : -EIO;
}

static char *zram_file(char *buf, size_t n, int i, const char *file)
{
	snprintf(buf, n, "/sys/block/zram%d/%s", i, file);
	return buf;
}

static uint64_t zram_devices(void)
{
	uint64_t mask = 0;
	char path[64];
	int i;

	for (i = 0; i < ZRAM_MAX; i++)
		if (!access(zram_file(path, sizeof(path), i, ""), F_OK))
			mask |= 1ULL << i;
	return mask;
}

/* The head of a swap area: linux/swap.h, union swap_header. */
static int format_area(const char *path, int64_t bytes)
{
	long page = sysconf(_SC_PAGESIZE);
	uint32_t head[3] = {1, (uint32_t)(bytes / page - 1), 0};
	int fd, rc = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (pwrite(fd, head, sizeof(head), 1024) != sizeof(head) ||
	    pwrite(fd, "SWAPSPACE2", 10, page - 10) != 10 || fsync(fd))
		rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

static int use_area(const char *path, int64_t bytes)
{
	int rc = format_area(path, bytes);

	if (!rc &&
	    swapon(path, SWAP_FLAG_PREFER | (PRIORITY << SWAP_FLAG_PRIO_SHIFT)))
		rc = -errno;
	return rc;
}

/* The device's node: what udev made, else our own, which goes with it. */
static int zram_node(struct mmr_swap_area *s)
{
	unsigned int major_nr, minor_nr;
	char path[64], dev[32] = "";
	int fd, i;

	snprintf(s->path, sizeof(s->path), "/dev/zram%d", s->zram);
	for (i = 0; i < 20 && access(s->path, F_OK); i++) {
		struct timespec ms = {0, 1000000};

		nanosleep(&ms, NULL);
	}
	if (!access(s->path, F_OK))
		return 0;
	snprintf(s->path, sizeof(s->path), "/dev/mmrace-zram%d", s->zram);
	fd = open(zram_file(path, sizeof(path), s->zram, "dev"),
		  O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (read(fd, dev, sizeof(dev) - 1) <= 0)
		dev[0] = 0;
	close(fd);
	if (sscanf(dev, "%u:%u", &major_nr, &minor_nr) != 2)
		return -EIO;
	unlink(s->path);
	return mknod(s->path, S_IFBLK | 0600, makedev(major_nr, minor_nr))
		       ? -errno
		       : 0;
}

static int make_zram(struct mmr_swap_area *s, int (*journal)(void))
{
	char path[64], size[32];
	int64_t number;
	int rc;

	if (access(CONTROL "hot_add", R_OK))
		return -ENODEV;
	s->known = zram_devices();
	rc = journal();
	if (rc)
		return rc;
	number = get(CONTROL "hot_add");
	if (number < 0 || number >= ZRAM_MAX)
		return number < 0 ? (int)number : -EMFILE;
	s->zram = (int)number;
	rc = journal();
	snprintf(size, sizeof(size), "%" PRId64, s->bytes);
	if (!rc)
		rc = put(zram_file(path, sizeof(path), s->zram, "disksize"),
			 size);
	if (!rc)
		rc = zram_node(s);
	if (!rc)
		rc = use_area(s->path, s->bytes);
	return rc;
}

static int make_file(struct mmr_swap_area *s)
{
	int fd, rc;

	snprintf(s->path, sizeof(s->path), "%s", FILE_PATH);
	unlink(s->path);
	fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  0600);
	if (fd < 0)
		return -errno;
	/* Not sparse: a hole cannot be swapped to. */
	rc = fallocate(fd, 0, 0, s->bytes) ? -errno : 0;
	close(fd);
	return rc ? rc : use_area(s->path, s->bytes);
}

int mmr_swap_make(struct mmr_swap_area *s, int (*journal)(void), char *text,
		  size_t n)
{
	int64_t bytes = s->bytes;
	int zram, file, unused = 0;

	zram = make_zram(s, journal);
	if (!zram)
		return 0;
	if (mmr_swap_remove(s, &unused))
		unused = 0; /* the journal keeps it for the next start */
	mmr_swap_plan(s, bytes);
	/* The device's number may be somebody else's by the next start. */
	file = journal();
	if (!file)
		file = make_file(s);
	if (!file)
		return 0;
	snprintf(text, n,
		 "no swap area can be made: no zram device (%s), and no file "
		 "%s (%s)",
		 strerror(-zram), FILE_PATH, strerror(-file));
	return file;
}

static int try_remove_zram(int i)
{
	char path[64], number[16];
	int rc;

	snprintf(path, sizeof(path), "/dev/zram%d", i);
	if (swapoff(path) && errno != EINVAL && errno != ENOENT)
		return -errno;
	snprintf(path, sizeof(path), "/dev/mmrace-zram%d", i);
	if (swapoff(path) && errno != EINVAL && errno != ENOENT)
		return -errno;
	unlink(path);
	if (access(zram_file(path, sizeof(path), i, ""), F_OK))
		return 0;
	rc = put(zram_file(path, sizeof(path), i, "reset"), "1");
	if (rc)
		return rc;
	snprintf(number, sizeof(number), "%d", i);
	return put(CONTROL "hot_remove", number);
}

/* What a process that is just dying has in it keeps it busy for a moment, as
 * does whoever looks at a new device. */
static int remove_zram(int i, int *removed)
{
	struct timespec step = {0, 20000000};
	int rc = -EBUSY, tries;

	for (tries = 0; rc && tries < 100; tries++) {
		if (tries)
			nanosleep(&step, NULL);
		rc = try_remove_zram(i);
	}
	if (!rc)
		(*removed)++;
	return rc;
}

/* A regular file of root's under that name: not what somebody else put
 * there. */
static int remove_file(int *removed)
{
	struct stat st;

	if (lstat(FILE_PATH, &st) || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid())
		return 0;
	if (swapoff(FILE_PATH) && errno != EINVAL)
		return -errno;
	(*removed)++;
	return unlink(FILE_PATH) ? -errno : 0;
}

int mmr_swap_remove(struct mmr_swap_area *s, int *removed)
{
	uint64_t fresh;
	char path[64];
	int i, rc = 0, err;

	if (!s->bytes)
		return 0;
	if (s->zram >= 0) {
		rc = remove_zram(s->zram, removed);
	} else if (s->known) {
		/* Killed between hot_add and the journal of its number. */
		fresh = zram_devices() & ~s->known;
		for (i = 0; i < ZRAM_MAX; i++)
			if (fresh >> i & 1 &&
			    get(zram_file(path, sizeof(path), i, "disksize")) ==
				    0)
				rc = remove_zram(i, removed);
	}
	err = remove_file(removed);
	if (!rc && !err)
		memset(s, 0, sizeof(*s));
	return rc ? rc : err;
}

int mmr_swap_to_text(const struct mmr_swap_area *s, char *buf, size_t n)
{
	buf[0] = 0;
	return s->bytes ? snprintf(buf, n, "swap %" PRId64 " %d %" PRIx64 "\n",
				   s->bytes, s->zram, s->known)
			: 0;
}

bool mmr_swap_from_text(struct mmr_swap_area *s, const char *line)
{
	struct mmr_swap_area got = {0};

	if (sscanf(line, "swap %" SCNd64 " %d %" SCNx64, &got.bytes, &got.zram,
		   &got.known) != 3)
		return false;
	if (got.bytes > 0 && got.zram < ZRAM_MAX)
		*s = got;
	return true;
}
