// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What lies on disk while a soak runs, so that a kill or a panic leaves its
 * cause behind: DIR/running-N.case is the case that job N runs.
 *
 * One pwrite a case: the page cache outlives kill -9 of the engine.  A panic
 * takes it along, and fdatasync costs more than a case; so the disk follows
 * at most 100 ms later, or, with --sync, before each case.  --kmsg names each
 * case in the kernel log, which a crash kernel or a serial line keeps.
 *
 * The last line of the file is a comment that says which case of which
 * session it is; the ledger knows whether that one came to its end.
 */
#include "soak_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ops/clock.h"

#define SYNC_EVERY_NS 100000000LL
#define ROOM (64 << 10) /* for the text of a case; few are larger */

static void running_path(const struct mmr_soak *s, int number, char *path,
			 size_t n)
{
	snprintf(path, n, "%s/running-%d.case", s->opts->out, number);
}

/* "# case 12, seed 0x2a, session 0123..."; false when it is none. */
static bool read_mark(const char *path, uint64_t *number, uint64_t *seed,
		      char session[33])
{
	FILE *f = fopen(path, "re");
	char line[4096];
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line,
			   "# case %" SCNu64 ", seed 0x%" SCNx64
			   ", session %32[0-9a-f]",
			   number, seed, session) == 3)
			found = true;
	if (f)
		fclose(f);
	return found;
}

/* A file that an earlier soak left names the case in which it ended. */
static void keep_interrupted(struct mmr_soak *s, const char *path)
{
	const char *dir = s->opts->out;
	uint64_t number, seed;
	char to[4200], session[33];

	if (access(path, F_OK))
		return;
	if (read_mark(path, &number, &seed, session) &&
	    !mmr_soak_book_lost(s, session, number, seed)) {
		unlink(path); /* killed between two cases */
		return;
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(to, sizeof(to), "%s/interrupted-%d.case", dir, i);
		if (!access(to, F_OK))
			continue;
		if (!rename(path, to))
			mmr_soak_say(s,
				     "an earlier soak ended in the middle of a "
				     "case, now %s%s",
				     to,
				     s->opts->resume ? ", which is run again"
						     : "");
		return;
	}
}

void mmr_soak_disk_start(struct mmr_soak *s)
{
	char path[4200];

	for (int i = 0; i < MMR_SOAK_JOBS; i++) {
		running_path(s, i, path, sizeof(path));
		keep_interrupted(s, path);
	}
}

int mmr_soak_disk_open(struct mmr_soak_job *job)
{
	char path[4200];

	running_path(job->soak, job->number, path, sizeof(path));
	job->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (job->fd < 0)
		return -errno;
	/* Its blocks now, so that it can be written when the disk is full.
	 * Where that cannot be, nothing is worse than it was. */
	(void)!fallocate(job->fd, FALLOC_FL_KEEP_SIZE, 0, ROOM);
	return 0;
}

static void name_in_kernel_log(const struct mmr_soak *s, uint64_t seed)
{
	char line[128];
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC), n;

	if (fd < 0)
		return;
	n = snprintf(line, sizeof(line),
		     "mmrace: seed=0x%" PRIx64 " profile=%s gen=%d\n", seed,
		     s->profile, MMR_GEN_VERSION);
	if (write(fd, line, (size_t)n) < 0) {
		/* Rate-limited or not allowed: the file still says it. */
	}
	close(fd);
}

/* On a full disk: which seed it is, without the case's text. */
static int write_name(struct mmr_soak_job *job, const char *tail, uint64_t seed)
{
	char name[400];
	int n;

	n = snprintf(name, sizeof(name),
		     "# no room for the text: mmrace gen --seed 0x%" PRIx64
		     " --profile %s\n%s",
		     seed, job->soak->profile, tail);
	/* In this order: the first block stays the file's own. */
	if (pwrite(job->fd, name, (size_t)n, 0) != n)
		return -ENOSPC;
	job->written = (size_t)n;
	return ftruncate(job->fd, n) ? -errno : 0;
}

int mmr_soak_disk_case(struct mmr_soak_job *job, const char *text,
		       uint64_t seed, uint64_t number)
{
	const struct mmr_soak *s = job->soak;
	size_t len = strlen(text), n;
	char tail[200], *buf;
	int64_t now;
	ssize_t done;
	int rc = 0, tail_len;

	if (s->opts->kmsg)
		name_in_kernel_log(s, seed);
	tail_len = snprintf(tail, sizeof(tail),
			    "# profile %s, job %d\n# case %" PRIu64
			    ", seed 0x%" PRIx64 ", session %s\n",
			    s->profile, job->number, number, seed,
			    s->book.session.id);
	n = len + (size_t)tail_len;
	/* Blank lines cover what the last case leaves, in the same write, so
	 * the file is a whole case at any time. */
	buf = malloc(n > job->written ? n : job->written);
	if (!buf)
		return -ENOMEM;
	memcpy(buf, text, len);
	memcpy(buf + len, tail, (size_t)tail_len);
	if (n < job->written)
		memset(buf + n, '\n', job->written - n);
	else
		job->written = n;
	done = pwrite(job->fd, buf, job->written, 0);
	if (done != (ssize_t)job->written)
		rc = done < 0 ? -errno : -ENOSPC;
	free(buf);
	/* The name of the case always fits, and says the same. */
	if (rc == -ENOSPC || rc == -EDQUOT)
		rc = write_name(job, tail, seed);
	if (rc)
		return rc;
	now = mmr_clock_monotonic();
	if (s->opts->sync || now - job->synced_ns >= SYNC_EVERY_NS) {
		if (fdatasync(job->fd))
			return -errno;
		job->synced_ns = mmr_clock_monotonic();
	}
	return 0;
}

void mmr_soak_disk_close(struct mmr_soak_job *job)
{
	char path[4200];

	running_path(job->soak, job->number, path, sizeof(path));
	close(job->fd);
	/* It ran to its end: nothing to keep. */
	unlink(path);
}
