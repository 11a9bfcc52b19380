/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disposable helper: a short-lived process of ours that asks the kernel
 * what may never come back, because the lock that it needs is the stuck one.
 */
#ifndef MMR_TRIAGE_HELPER_H
#define MMR_TRIAGE_HELPER_H

#include <stddef.h>

#define MMR_HELPER_CAP (512u << 10) /* bytes taken from one helper */

/*
 * Starts `mmrace __evidence ARGS...` and collects what it prints until it
 * ends, the cap or the deadline.  A helper that does not end is killed and
 * abandoned: never waited for, reaped by a later call.  0: it ended by itself
 * with success; -ETIME: abandoned; -EPROTO: it failed; -errno: not started.
 * *out (NUL-terminated, for the caller to free) has what came in any case,
 * NULL only when memory is out.  Any thread.
 */
int mmr_helper_run(const char *const args[], int deadline_ms, char **out,
		   size_t *len);

#endif
