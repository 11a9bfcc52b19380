// SPDX-License-Identifier: GPL-2.0-or-later
/* Follows /dev/kmsg and the taint word. */
#include "klog.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES 512
#define WIDTH 232
#define RECORD 8192 /* the kernel refuses a smaller buffer than a record */
#define FACILITY 8  /* level and above that: who wrote it, 0 the kernel */

/* Taint bits that are set by trouble: B bad page, D died, W warned,
 * L soft lockup.  Those set by loading modules are none. */
#define TAINT_TROUBLE ((1UL << 5) | (1UL << 7) | (1UL << 9) | (1UL << 14))

struct line {
	uint64_t seq;
	bool trouble;
	char text[WIDTH];
};

static struct {
	pthread_mutex_t lock;
	int fd, taint_fd;
	uint64_t next;	/* sequence number of the next line */
	uint64_t taken; /* trouble below this belongs to somebody */
	uint64_t taint, taint_taken;
	uint64_t trouble; /* of the newest line of trouble, + 1 */
	uint64_t head;	  /* lines ever stored */
	struct line *lines;
} klog = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .taint_fd = -1};

static void store(const char *record, size_t len)
{
	unsigned long prio = 0;
	unsigned long long seq = 0;
	const char *text = memchr(record, ';', len), *end;
	const char *who;
	struct line *l;
	size_t at = 0;

	if (!text || sscanf(record, "%lu,%llu,", &prio, &seq) != 2)
		return;
	/* Who wrote it, when the kernel says so: lines of two reports that
	 * come mixed are put apart by that (klog_split.h). */
	who = memmem(record, (size_t)(text - record), ",caller=", 8);
	text++;
	len -= (size_t)(text - record);
	end = memchr(text, '\n', len);
	if (end)
		len = (size_t)(end - text);
	if (seq >= klog.next)
		klog.next = seq + 1;
	if (!klog.lines) {
		klog.lines = calloc(LINES, sizeof(*klog.lines));
		if (!klog.lines)
			return;
	}
	l = &klog.lines[klog.head++ % LINES];
	l->seq = seq;
	if (who)
		at = (size_t)snprintf(l->text, sizeof(l->text), "[%.*s] ",
				      (int)strcspn(who + 8, ",;"), who + 8);
	if (at > 16)
		at = 0; /* no caller that the kernel writes */
	if (at + len >= WIDTH)
		len = WIDTH - 1 - at;
	memcpy(l->text + at, text, len);
	l->text[at + len] = 0;
	/* A user-space writer's words are its own. */
	l->trouble = prio < FACILITY && mmr_klog_is_trouble(l->text + at);
	if (l->trouble)
		klog.trouble = seq + 1;
}

static void poll_locked(void)
{
	char buf[RECORD], word[32];
	ssize_t n;

	while (klog.fd >= 0) {
		n = read(klog.fd, buf, sizeof(buf) - 1);
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue; /* overwritten before we came */
		if (n <= 0)
			break;
		buf[n] = 0;
		store(buf, (size_t)n);
	}
	if (klog.taint_fd < 0)
		return;
	n = pread(klog.taint_fd, word, sizeof(word) - 1, 0);
	if (n > 0) {
		word[n] = 0;
		klog.taint = strtoull(word, NULL, 10);
	}
}

int mmr_klog_start(void)
{
	char buf[RECORD];
	int err = 0;
	ssize_t n;

	pthread_mutex_lock(&klog.lock);
	klog.taint_fd = open("/proc/sys/kernel/tainted", O_RDONLY | O_CLOEXEC);
	klog.fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (klog.fd >= 0) {
		/* Opening may be allowed where reading is not. */
		n = read(klog.fd, buf, sizeof(buf));
		if (n < 0 && errno != EAGAIN && errno != EPIPE) {
			err = -errno;
			close(klog.fd);
			klog.fd = -1;
		} else {
			lseek(klog.fd, 0, SEEK_END);
		}
	} else {
		err = -errno;
	}
	poll_locked();
	klog.taint_taken = klog.taint;
	pthread_mutex_unlock(&klog.lock);
	return err;
}

void mmr_klog_stop(void)
{
	pthread_mutex_lock(&klog.lock);
	if (klog.fd >= 0)
		close(klog.fd);
	if (klog.taint_fd >= 0)
		close(klog.taint_fd);
	klog.fd = klog.taint_fd = -1;
	free(klog.lines);
	klog.lines = NULL;
	klog.head = 0;
	pthread_mutex_unlock(&klog.lock);
}

bool mmr_klog_readable(void)
{
	return klog.fd >= 0;
}

void mmr_klog_poll(void)
{
	pthread_mutex_lock(&klog.lock);
	poll_locked();
	pthread_mutex_unlock(&klog.lock);
}

void mmr_klog_get_mark(struct mmr_klog_mark *m)
{
	pthread_mutex_lock(&klog.lock);
	poll_locked();
	m->seq = klog.next;
	m->taint = klog.taint;
	pthread_mutex_unlock(&klog.lock);
}

static uint64_t new_taint(const struct mmr_klog_mark *m)
{
	return klog.taint & ~m->taint & ~klog.taint_taken & TAINT_TROUBLE;
}

static uint64_t first_untaken(const struct mmr_klog_mark *m)
{
	return m->seq > klog.taken ? m->seq : klog.taken;
}

bool mmr_klog_pending(const struct mmr_klog_mark *m)
{
	bool yes;

	pthread_mutex_lock(&klog.lock);
	yes = klog.trouble > first_untaken(m) || new_taint(m);
	pthread_mutex_unlock(&klog.lock);
	return yes;
}

/* The kept lines from number seq on; with trouble_only from the first line
 * of trouble among them. */
static char *lines_from(uint64_t seq, bool trouble_only)
{
	uint64_t i = klog.head > LINES ? klog.head - LINES : 0;
	char *text = NULL;
	size_t len = 0;
	FILE *f = NULL;

	for (; i < klog.head; i++) {
		const struct line *l = &klog.lines[i % LINES];

		if (l->seq < seq || (trouble_only && !f && !l->trouble))
			continue;
		if (!f)
			f = open_memstream(&text, &len);
		if (!f)
			return NULL;
		fprintf(f, "%s\n", l->text);
	}
	if (f)
		fclose(f);
	return text;
}

char *mmr_klog_take(const struct mmr_klog_mark *m)
{
	char *text = NULL;

	pthread_mutex_lock(&klog.lock);
	poll_locked();
	if (klog.trouble > first_untaken(m))
		text = lines_from(first_untaken(m), true);
	if (!text && new_taint(m) &&
	    asprintf(&text,
		     "the kernel's taint went from %llu to %llu, its log has "
		     "no line of it\n",
		     (unsigned long long)m->taint,
		     (unsigned long long)klog.taint) < 0)
		text = NULL;
	klog.taken = klog.next;
	klog.taint_taken = klog.taint;
	pthread_mutex_unlock(&klog.lock);
	return text;
}

char *mmr_klog_since(const struct mmr_klog_mark *m)
{
	char *text;

	pthread_mutex_lock(&klog.lock);
	poll_locked();
	text = lines_from(m->seq, false);
	pthread_mutex_unlock(&klog.lock);
	return text;
}

void mmr_klog_feed(const char *record, size_t len)
{
	pthread_mutex_lock(&klog.lock);
	store(record, len);
	pthread_mutex_unlock(&klog.lock);
}

void mmr_klog_reset(void)
{
	pthread_mutex_lock(&klog.lock);
	klog.head = klog.next = klog.taken = klog.trouble = 0;
	klog.taint = klog.taint_taken = 0;
	pthread_mutex_unlock(&klog.lock);
}
