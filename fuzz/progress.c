// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Progress on standard error.  A terminal gets one line that is rewritten, a
 * log gets a plain line now and then, and neither ever mixes with results.
 */
#include "opts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../ops/clock.h"

#define TTY_EVERY_NS 125000000LL
#define PLAIN_EVERY_NS 10000000000LL

void mmr_progress_init(struct mmr_progress *p, bool quiet)
{
	memset(p, 0, sizeof(*p));
	p->quiet = quiet;
	p->tty = isatty(STDERR_FILENO);
	p->next_ns = mmr_clock_monotonic() +
		     (p->tty ? TTY_EVERY_NS : PLAIN_EVERY_NS);
}

bool mmr_progress_due(struct mmr_progress *p)
{
	return !p->quiet && mmr_clock_monotonic() >= p->next_ns;
}

void mmr_progress_show(struct mmr_progress *p, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (p->quiet)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* 79: a longer line would wrap and could not be taken back. */
	if (p->tty)
		fprintf(stderr, "\r\033[K%.79s", line);
	else
		fprintf(stderr, "%s\n", line);
	fflush(stderr);
	p->shown = p->tty;
	p->next_ns = mmr_clock_monotonic() +
		     (p->tty ? TTY_EVERY_NS : PLAIN_EVERY_NS);
}

void mmr_progress_end(struct mmr_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
