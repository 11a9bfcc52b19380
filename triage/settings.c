// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel settings for the time of a case.
 *
 * Order is what makes it safe against a kill at any moment: lock, journal on
 * disk (temporary, fsync, rename), change; restore, journal away, unlock.
 * The lock is a flock, so the kernel opens it when its holder dies, and what
 * the journal says then is restored by whoever comes next.  A journal line is
 * NAME BEFORE LOWEST HIGHEST, by name and not by path, so that a forged journal
 * can do no more than a case could.
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

#include "../ops/setting.h"
#include "finding.h"
#include "run.h"
#include "setting_file.h"
#include "settings_plan.h"

#define LOCK_WAIT_MS 2000
#define SETTLE_MS 1000 /* freeing the pages of a killed process takes a bit */

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
	struct mmr_changes now;
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

static void forget(void)
{
	memset(&held.now, 0, sizeof(held.now));
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
		forget();
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
	char path[512], text[MMR_CHANGES_MAX * 112 + 96];
	size_t len = 0;
	int i;

	for (i = 0; i < held.now.n; i++)
		len += (size_t)snprintf(
			text + len, sizeof(text) - len,
			"%s %" PRId64 " %" PRId64 " %" PRId64 "\n",
			mmr_change_name(&held.now.change[i]),
			held.now.change[i].before, held.now.change[i].lo,
			held.now.change[i].hi);
	len += (size_t)mmr_swap_to_text(&held.now.swap, text + len,
					sizeof(text) - len);
	return mmr_write_file(journal_path(path, sizeof(path)), text, len);
}

static int journal_remove(void)
{
	char path[512];

	if (unlink(journal_path(path, sizeof(path))) && errno != ENOENT)
		return -errno;
	return 0;
}

/* Fills held.  Lines that name no known setting are passed over.  With three
 * words they are of an earlier version: NAME BEFORE AFTER. */
static int journal_read(void)
{
	char path[512], line[160], name[64];
	struct mmr_change ch = {0};
	int64_t other;
	FILE *f;
	int got;

	forget();
	f = fopen(journal_path(path, sizeof(path)), "re");
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (held.now.n < MMR_CHANGES_MAX && fgets(line, sizeof(line), f)) {
		if (mmr_swap_from_text(&held.now.swap, line))
			continue;
		got = sscanf(line, "%63s %" SCNd64 " %" SCNd64 " %" SCNd64,
			     name, &ch.before, &ch.lo, &ch.hi);
		if (got < 3)
			continue;
		if (got == 3) {
			other = ch.lo;
			ch.lo = ch.before < other ? ch.before : other;
			ch.hi = ch.before < other ? other : ch.before;
		}
		ch.index = mmr_setting_index(name);
		if (ch.index >= 0)
			held.now.change[held.now.n++] = ch;
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

static int undo_one(const struct mmr_change *ch, int *restored)
{
	const char *name = mmr_change_name(ch);
	int64_t now;
	int rc = mmr_setting_get(name, &now);

	if (rc || now == ch->before || now < ch->lo || now > ch->hi)
		return rc;
	rc = mmr_setting_put(name, ch->before);
	if (!rc)
		rc = settle(name, ch->before);
	if (!rc)
		(*restored)++;
	return rc;
}

/*
 * Last changed, first restored.  A value outside of what can be ours is not:
 * somebody has set it since, and it stays.  *restored counts; the first error
 * wins but all are tried.
 */
static int undo(int *restored)
{
	int i, rc, first;

	*restored = 0;
	first = mmr_swap_remove(&held.now.swap, restored);
	for (i = held.now.n - 1; i >= 0; i--) {
		rc = undo_one(&held.now.change[i], restored);
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
	forget();
	leave();
	if (rc == -EPERM || rc == -EROFS)
		rc = -EACCES;
	return rc ? rc : restored;
}

static int change_failed(const struct mmr_change *ch, int rc, char *text,
			 size_t n)
{
	char buf[32];

	if (rc == -EACCES || rc == -EPERM || rc == -EROFS) {
		snprintf(text, n,
			 "setting %s to %s needs root and a writable %s",
			 mmr_change_name(ch),
			 mmr_setting_text(ch->index, ch->value, buf,
					  sizeof(buf)),
			 mmr_setting_table[ch->index].path);
		return -EPERM;
	}
	snprintf(text, n, "setting %s: %s", mmr_change_name(ch), strerror(-rc));
	return rc;
}

/* Some kernels give less than was asked and say nothing, so it is read back.
 * Memory that is free but in pieces may need a second try. */
static int change_one(const struct mmr_change *ch, char *text, size_t n)
{
	int64_t now = ch->before;
	int rc, try;

	for (try = 0; try < 3 && now != ch->value; try++) {
		rc = mmr_setting_put(mmr_change_name(ch), ch->value);
		if (!rc)
			rc = mmr_setting_get(mmr_change_name(ch), &now);
		if (rc)
			return change_failed(ch, rc, text, n);
	}
	if (now == ch->value)
		return 0;
	snprintf(text, n,
		 "setting %s: asked for %" PRId64
		 ", the kernel could give %" PRId64,
		 mmr_change_name(ch), ch->value, now);
	return -ENOMEM;
}

/* The journal is there; a swap area may have to write its number into it. */
static int change_all(char *text, size_t n)
{
	int i, rc = 0;

	for (i = 0; i < held.now.n && !rc; i++)
		if (held.now.change[i].set)
			rc = change_one(&held.now.change[i], text, n);
	if (!rc && held.now.swap.bytes)
		rc = mmr_swap_make(&held.now.swap, journal_write, text, n);
	return rc;
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
		if (c->needs[i].kind == MMR_NEED_HUGEPAGES ||
		    c->needs[i].kind == MMR_NEED_SWAP ||
		    c->needs[i].kind == MMR_NEED_WRITES)
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
	rc = mmr_settings_plan(&held.now, c, text, n);
	/* All is as it should be, and nothing says that it may change: touch
	 * nothing. */
	if (rc || (!mmr_settings_planned(&held.now) && !mmr_setting_named(c)))
		goto out_leave;
	rc = lock_take(LOCK_WAIT_MS);
	if (rc) {
		rc = rc == -EBUSY || mmr_settings_planned(&held.now)
			     ? lock_failed(rc, text, n)
			     : 0;
		goto out_leave;
	}
	/* What a dead one left is undone first, else it would be taken for
	 * the machine's own; then what to change is another question. */
	rc = journal_read();
	if (!rc && (held.now.n || held.now.swap.bytes))
		rc = undo(&dummy);
	if (!rc)
		rc = mmr_settings_plan(&held.now, c, text, n);
	if (!rc)
		rc = mmr_settings_room(&held.now, text, n);
	if (!rc && mmr_settings_planned(&held.now))
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
	forget();
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
	forget();
	leave();
	return rc;
}

const char *mmr_settings_swap(void)
{
	return held.busy && held.owner == gettid() ? held.now.swap.path : "";
}
