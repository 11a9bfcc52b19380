// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a soak says: on standard error, a line each, and with --log in a file
 * of its own, which is rotated, so that a week of trouble fills no disk.
 *
 * To the journal of systemd a line has its priority in front (sd-daemon(3)).
 * More than a few dozen lines a minute are left out and counted: a full disk or
 * a finding in every case would say the same thing all the time.
 */
#include "soak_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ops/clock.h"

#define ROTATE_BYTES (4L << 20)
#define KEEP 3 /* FILE.1 to FILE.3, besides FILE */
#define MINUTE_NS 60000000000LL
#define LINES 40 /* a minute */

/* Is standard error the journal itself?  Then it says which file that is. */
static bool is_journal(void)
{
	const char *is = getenv("JOURNAL_STREAM");
	uint64_t dev, ino;
	struct stat st;

	return is && sscanf(is, "%" SCNu64 ":%" SCNu64, &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev &&
	       st.st_ino == ino;
}

int mmr_soak_log_open(struct mmr_soak *s)
{
	struct mmr_soak_log *l = &s->log;

	pthread_mutex_init(&l->lock, NULL);
	l->journal = is_journal();
	if (!s->opts->log)
		return 0;
	l->f = fopen(s->opts->log, "ae");
	return l->f ? 0 : -errno;
}

void mmr_soak_log_close(struct mmr_soak *s)
{
	if (s->log.f)
		fclose(s->log.f);
	s->log.f = NULL;
}

/* FILE becomes FILE.1, that FILE.2, and the last one goes. */
static void rotate(struct mmr_soak *s)
{
	const char *path = s->opts->log;
	char from[4200], to[4200];

	if (ftell(s->log.f) < ROTATE_BYTES)
		return;
	for (int i = KEEP; i; i--) {
		snprintf(to, sizeof(to), "%s.%d", path, i);
		if (i > 1)
			snprintf(from, sizeof(from), "%s.%d", path, i - 1);
		else
			snprintf(from, sizeof(from), "%s", path);
		if (rename(from, to) && i == 1)
			return; /* it goes on growing rather than lose lines */
	}
	fclose(s->log.f);
	s->log.f = fopen(path, "ae");
}

static void put(struct mmr_soak *s, const char *line, bool screen)
{
	struct mmr_soak_log *l = &s->log;
	char date[40];

	if (screen)
		fprintf(stderr, "%smmrace soak: %s\n", l->journal ? "<4>" : "",
			line);
	if (!l->f)
		return;
	mmr_clock_date(date, sizeof(date));
	/* What a full disk does not take is lost; the rest goes on. */
	if (fprintf(l->f, "%s %s\n", date, line) < 0 || fflush(l->f))
		clearerr(l->f);
	rotate(s);
}

/* May one more be said this minute? */
static bool may_speak(struct mmr_soak *s, bool screen)
{
	struct mmr_soak_log *l = &s->log;
	int64_t now = mmr_clock_monotonic();
	char line[80];

	if (!l->since_ns || now - l->since_ns >= MINUTE_NS) {
		if (l->lines > LINES) {
			snprintf(line, sizeof(line),
				 "%d more lines of a minute are left out",
				 l->lines - LINES);
			put(s, line, screen);
		}
		l->since_ns = now;
		l->lines = 0;
	}
	return l->lines++ < LINES;
}

__attribute__((format(printf, 3, 0))) static void
say(struct mmr_soak *s, bool screen, const char *fmt, va_list ap)
{
	char line[1024];

	vsnprintf(line, sizeof(line), fmt, ap);
	for (char *p = line; *p; p++)
		if (*p == '\n')
			*p = ' ';
	pthread_mutex_lock(&s->log.lock);
	if (may_speak(s, screen))
		put(s, line, screen);
	pthread_mutex_unlock(&s->log.lock);
}

void mmr_soak_say(struct mmr_soak *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(s, true, fmt, ap);
	va_end(ap);
}

void mmr_soak_note(struct mmr_soak *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->log.f && s->opts->quiet)
		return;
	va_start(ap, fmt);
	say(s, !s->opts->quiet, fmt, ap);
	va_end(ap);
}

void mmr_soak_log_status(struct mmr_soak *s, const char *line)
{
	pthread_mutex_lock(&s->log.lock);
	if (s->log.f)
		put(s, line, false);
	pthread_mutex_unlock(&s->log.lock);
}
