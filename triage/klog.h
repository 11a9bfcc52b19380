/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel log by sequence number, and what in it says that the kernel is
 * in trouble.  Read through /dev/kmsg; where that is not allowed, the taint
 * word alone is watched and mmr_klog_readable() is false.
 *
 * Any thread; a mutex inside, held for reads of the log only (they do not
 * block).  Nothing of it is used by mmrace-child.
 */
#ifndef MMR_TRIAGE_KLOG_H
#define MMR_TRIAGE_KLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in the log and the taint as it was there. */
struct mmr_klog_mark {
	uint64_t seq; /* of the next line */
	uint64_t taint;
};

/* Opens the log at its end.  0, or -errno when it cannot be read (the taint
 * is watched all the same). */
int mmr_klog_start(void);
void mmr_klog_stop(void);
bool mmr_klog_readable(void);

/* Takes in what has come since; microseconds when nothing has. */
void mmr_klog_poll(void);
/* Here: after a poll. */
void mmr_klog_get_mark(struct mmr_klog_mark *m);
/* True when trouble that nobody has taken yet came after the mark. */
bool mmr_klog_pending(const struct mmr_klog_mark *m);
/*
 * Takes that trouble: nobody else gets it.  The lines from the first one of
 * trouble on (those around it too), for the caller to free; NULL: nothing.
 * A new taint without lines gives one line that says so.
 */
char *mmr_klog_take(const struct mmr_klog_mark *m);
/* All lines since the mark that are still kept, NULL when there are none. */
char *mmr_klog_since(const struct mmr_klog_mark *m);

/* One record as /dev/kmsg gives it: "level,seq,time,flags;text\n...".
 * Stores it as poll() does.  For tests too. */
void mmr_klog_feed(const char *record, size_t len);
/* True for a line of the kernel that tells of trouble: warning, oops, BUG,
 * sanitizer report, hung task, stall, lockup.  Not: a program's segfault,
 * the OOM killer, failed allocations. */
bool mmr_klog_is_trouble(const char *text);
/* Empties the store; tests only. */
void mmr_klog_reset(void);

#endif
