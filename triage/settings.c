// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel settings for the time of a case.
 *
 * Order is what makes it safe against a kill at any moment: lock, journal on
 * disk (temporary, fsync, rename), change; restore, journal away, unlock.
 * The lock is a flock, so the kernel opens it when its holder dies, and what
 * the journal says then is restored by whoever comes next.  A journal line is
 * NAME OLD NEW, by name and not by path, so that a forged journal can do no
 * more than a case could.
 */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "finding.h"
#include "run.h"
#include "setting_file.h"

#define MAX_CHANGES 16
#define LOCK_WAIT_MS 2000
#define SETTLE_MS 1000 /* freeing the pages of a killed process takes a bit */

struct change {
	const char *name;
	int64_t before, value;
};

/*
 * What is changed now, and by which thread.  `mutex` guards `busy`; the rest
 * belongs to the thread that set it.
 */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t freed;
	bool busy;
	pid_t owner;
	int lock_fd;
	struct change changes[MAX_CHANGES];
	int n;
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER,
	  .freed = PTHREAD_COND_INITIALIZER,
	  .lock_fd = -1};

static void sleep_ms(int ms)
{
	struct timespec ts = {ms / 1000, (ms % 1000) * 1000000L};

	nanosleep(&ts, NULL);
}

/* -- the lock ----------------------------------------------------------- */

/* Takes the lock across processes.  wait_ms 0: only a look. */
static int lock_take(int wait_ms)
{
	char path[512], pid[24];
	int fd, rc, n;

	mmr_setting_rooted(path, sizeof(path), "/run/mmrace");
	rc = mmr_mkdir_p(path);
	if (rc)
		return rc;
	mmr_setting_rooted(path, sizeof(path), "/run/mmrace/lock");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		rc = -errno;
		if (rc == -EINTR)
			continue;
		if (rc != -EWOULDBLOCK || wait_ms <= 0 ||
		    mmr_engine_interrupted()) {
			close(fd);
			return rc == -EWOULDBLOCK ? -EBUSY : rc;
		}
		sleep_ms(20);
		wait_ms -= 20;
	}
	/* Only for the sentence of others: who holds it.  May fail. */
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)n, 0) != n)
		rc = 0;
	held.lock_fd = fd;
	return 0;
}

static void lock_drop(void)
{
	if (held.lock_fd >= 0)
		close(held.lock_fd);
	held.lock_fd = -1;
}

static int lock_holder(void)
{
	char path[512], text[24] = "";
	ssize_t got;
	int fd;

	mmr_setting_rooted(path, sizeof(path), "/run/mmrace/lock");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	return got > 0 ? atoi(text) : 0;
}

/* One thread of this process at a time; waits, ends early when interrupted. */
static int enter(void)
{
	int rc = 0;

	pthread_mutex_lock(&held.mutex);
	while (held.busy && !rc) {
		struct timespec ts;

		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += 100000000;
		if (ts.tv_nsec >= 1000000000) {
			ts.tv_nsec -= 1000000000;
			ts.tv_sec++;
		}
		pthread_cond_timedwait(&held.freed, &held.mutex, &ts);
		if (held.busy && mmr_engine_interrupted())
			rc = -EINTR;
	}
	if (!rc) {
		held.busy = true;
		held.owner = gettid();
		held.n = 0;
	}
	pthread_mutex_unlock(&held.mutex);
	return rc;
}

static void leave(void)
{
	pthread_mutex_lock(&held.mutex);
	held.busy = false;
	held.owner = 0;
	pthread_cond_signal(&held.freed);
	pthread_mutex_unlock(&held.mutex);
}

/* -- the journal -------------------------------------------------------- */

static char *journal_path(char *buf, size_t n)
{
	return mmr_setting_rooted(buf, n, "/run/mmrace/settings");
}

static int journal_write(void)
{
	char path[512], text[MAX_CHANGES * 96];
	size_t len = 0;
	int i;

	for (i = 0; i < held.n; i++)
		len += (size_t)snprintf(
			text + len, sizeof(text) - len,
			"%s %" PRId64 " %" PRId64 "\n", held.changes[i].name,
			held.changes[i].before, held.changes[i].value);
	return mmr_write_file(journal_path(path, sizeof(path)), text, len);
}

static int journal_remove(void)
{
	char path[512];

	if (unlink(journal_path(path, sizeof(path))) && errno != ENOENT)
		return -errno;
	return 0;
}

/* Fills held.changes.  Lines that name no known setting are passed over. */
static int journal_read(void)
{
	char path[512], line[160], name[64];
	int64_t before, value;
	FILE *f;

	held.n = 0;
	f = fopen(journal_path(path, sizeof(path)), "re");
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (held.n < MAX_CHANGES && fgets(line, sizeof(line), f)) {
		const char *known;

		if (sscanf(line, "%63s %" SCNd64 " %" SCNd64, name, &before,
			   &value) != 3)
			continue;
		known = mmr_setting_find(name);
		if (known)
			held.changes[held.n++] =
				(struct change){known, before, value};
	}
	fclose(f);
	return 0;
}

/* -- change and restore ------------------------------------------------- */

/* Waits until the setting reads as wanted: huge pages that a dying process
 * still holds come back a little later. */
static int settle(const char *name, int64_t want)
{
	int64_t now;
	int ms, rc;

	for (ms = 0;; ms += 10) {
		rc = mmr_setting_get(name, &now);
		if (rc || now == want)
			return rc;
		if (ms >= SETTLE_MS)
			return -EAGAIN;
		sleep_ms(10);
		rc = mmr_setting_put(name, want);
		if (rc)
			return rc;
	}
}

/*
 * Last changed, first restored.  A value outside of what lies between before
 * and after is not ours: somebody has set it since, and it stays.  *restored
 * counts; the first error wins but all are tried.
 */
static int undo(int *restored)
{
	int i, rc, first = 0;

	*restored = 0;
	for (i = held.n - 1; i >= 0; i--) {
		const struct change *ch = &held.changes[i];
		int64_t now;

		rc = mmr_setting_get(ch->name, &now);
		if (!rc && now != ch->before) {
			bool ours =
				ch->before < ch->value
					? now > ch->before && now <= ch->value
					: now < ch->before && now >= ch->value;

			if (!ours)
				continue;
			rc = mmr_setting_put(ch->name, ch->before);
			if (!rc)
				rc = settle(ch->name, ch->before);
			if (!rc)
				(*restored)++;
		}
		if (rc && !first)
			first = rc;
	}
	if (!first)
		first = journal_remove();
	return first;
}

int mmr_settings_recover(void)
{
	char path[512];
	int rc, restored = 0;

	journal_path(path, sizeof(path));
	if (access(path, F_OK))
		return 0; /* nothing was left */
	rc = enter();
	if (rc)
		return rc;
	rc = lock_take(0);
	if (!rc) {
		rc = journal_read();
		if (!rc)
			rc = undo(&restored);
		lock_drop();
	}
	held.n = 0;
	leave();
	if (rc == -EPERM || rc == -EROFS)
		rc = -EACCES;
	return rc ? rc : restored;
}

/* What the case wants, into held.changes; text on error. */
static int plan_one(const char *name, int64_t value, char *text, size_t n)
{
	const char *known = mmr_setting_find(name);
	int64_t before;
	int i, rc;

	if (!known) {
		snprintf(text, n, "no setting is named %s", name);
		return -EINVAL;
	}
	rc = mmr_setting_get(name, &before);
	if (rc) {
		snprintf(text, n, "%s cannot be read (%s): %s", name,
			 mmr_setting_path(name), strerror(-rc));
		return rc;
	}
	for (i = 0; i < held.n; i++)
		if (held.changes[i].name == known) {
			held.changes[i].value = value;
			return 0;
		}
	if (before != value && held.n < MAX_CHANGES)
		held.changes[held.n++] = (struct change){known, before, value};
	return 0;
}

static int plan(const struct mmr_case *c, char *text, size_t n)
{
	bool pool_given = false;
	int i, rc;

	for (i = 0; i < c->nsettings; i++) {
		pool_given |= !strcmp(c->settings[i].name, "nr_hugepages");
		rc = plan_one(c->settings[i].name, c->settings[i].value, text,
			      n);
		if (rc)
			return rc;
	}
	/* A case that sets the pool itself means just that size. */
	for (i = 0; i < c->nneeds && !pool_given; i++) {
		int64_t avail, now, rsvd;

		if (c->needs[i].kind != MMR_NEED_HUGEPAGES)
			continue;
		rsvd = mmr_meminfo("HugePages_Rsvd");
		avail = mmr_meminfo("HugePages_Free") - (rsvd > 0 ? rsvd : 0);
		if (avail >= c->needs[i].n)
			continue;
		if (avail < 0)
			avail = 0;
		rc = mmr_setting_get("nr_hugepages", &now);
		if (!rc)
			rc = plan_one("nr_hugepages",
				      now + c->needs[i].n - avail, text, n);
		else
			snprintf(text, n, "this kernel has no huge page pool");
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * A pool that eats the machine's memory would take everything else down with
 * it before the kernel says no, so that is refused before it is tried.
 */
static int check_memory(char *text, size_t n)
{
	int64_t avail_kb = mmr_meminfo("MemAvailable");
	int64_t huge_kb = mmr_meminfo("Hugepagesize");
	int i;

	if (avail_kb < 0 || huge_kb <= 0)
		return 0;
	for (i = 0; i < held.n; i++) {
		const struct change *ch = &held.changes[i];
		int64_t room = avail_kb / 10 * 9 / huge_kb;

		if (strcmp(ch->name, "nr_hugepages") ||
		    ch->value - ch->before <= room)
			continue;
		snprintf(text, n,
			 "setting nr_hugepages to %" PRId64
			 ": available memory has room for %" PRId64
			 " more huge pages",
			 ch->value, room);
		return -ENOMEM;
	}
	return 0;
}

/* Some kernels give less than was asked and say nothing, so it is read back.
 * Memory that is free but in pieces may need a second try. */
static int change_all(char *text, size_t n)
{
	int i, rc, try;

	for (i = 0; i < held.n; i++) {
		const struct change *ch = &held.changes[i];
		int64_t now = ch->before;

		for (try = 0; try < 3 && now != ch->value; try++) {
			rc = mmr_setting_put(ch->name, ch->value);
			if (!rc)
				rc = mmr_setting_get(ch->name, &now);
			if (rc == -EACCES || rc == -EPERM || rc == -EROFS) {
				snprintf(text, n,
					 "setting %s to %" PRId64
					 " needs root and a writable %s",
					 ch->name, ch->value,
					 mmr_setting_path(ch->name));
				return -EPERM;
			}
			if (rc) {
				snprintf(text, n, "setting %s: %s", ch->name,
					 strerror(-rc));
				return rc;
			}
		}
		if (now != ch->value) {
			snprintf(text, n,
				 "setting %s: asked for %" PRId64
				 ", the kernel could give %" PRId64,
				 ch->name, ch->value, now);
			return -ENOMEM;
		}
	}
	return 0;
}

static int lock_failed(int rc, char *text, size_t n)
{
	int pid;

	if (rc == -EBUSY) {
		pid = lock_holder();
		snprintf(text, n,
			 "another mmrace (pid %d) holds the kernel settings",
			 pid);
		return rc;
	}
	if (rc == -EACCES || rc == -EPERM || rc == -EROFS) {
		snprintf(text, n,
			 "changing kernel settings needs root and a writable "
			 "/run/mmrace");
		return -EPERM;
	}
	snprintf(text, n, "/run/mmrace cannot be used: %s", strerror(-rc));
	return rc;
}

static bool wants_settings(const struct mmr_case *c)
{
	int i;

	for (i = 0; i < c->nneeds; i++)
		if (c->needs[i].kind == MMR_NEED_HUGEPAGES)
			return true;
	return c->nsettings > 0;
}

int mmr_settings_apply(const struct mmr_case *c, char *text, size_t n)
{
	int rc, dummy;

	if (n)
		text[0] = '\0';
	if (!wants_settings(c))
		return 0;
	rc = enter();
	if (rc) {
		snprintf(text, n,
			 "interrupted while another run holds the "
			 "kernel settings");
		return rc;
	}
	rc = plan(c, text, n);
	if (rc || (!held.n && !c->nsettings))
		goto out_leave; /* all is as it should be: touch nothing */
	rc = lock_take(LOCK_WAIT_MS);
	if (rc) {
		rc = rc == -EBUSY || held.n ? lock_failed(rc, text, n) : 0;
		goto out_leave;
	}
	/* What a dead one left is undone first, else it would be taken for
	 * the machine's own; then what to change is another question. */
	rc = journal_read();
	if (!rc && held.n)
		rc = undo(&dummy);
	held.n = 0;
	if (!rc)
		rc = plan(c, text, n);
	if (!rc)
		rc = check_memory(text, n);
	if (!rc && held.n)
		rc = journal_write();
	if (rc)
		goto out_unlock;
	rc = change_all(text, n);
	if (!rc)
		return 0; /* held until mmr_settings_restore() */
	if (undo(&dummy) && n > strlen(text) + 60)
		snprintf(text + strlen(text), n - strlen(text),
			 " (and what was changed could not be restored yet)");
out_unlock:
	if (rc && n && !text[0])
		snprintf(text, n, "the journal of settings failed: %s",
			 strerror(-rc));
	lock_drop();
out_leave:
	held.n = 0;
	leave();
	return rc;
}

int mmr_settings_restore(void)
{
	int rc, restored;

	pthread_mutex_lock(&held.mutex);
	rc = held.busy && held.owner == gettid();
	pthread_mutex_unlock(&held.mutex);
	if (!rc)
		return 0;
	rc = undo(&restored);
	/* On failure the journal stays: the next start tries again. */
	lock_drop();
	held.n = 0;
	leave();
	return rc;
}
