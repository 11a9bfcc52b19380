/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel settings that a case may change (nr_hugepages, ...): journalled
 * before, restored after, by the next start if need be.
 *
 * The journal lies in /run/mmrace (it and the settings live as long as the
 * kernel does) and is held by a lock: a second mmrace waits or skips.
 */
#ifndef MMR_TRIAGE_SETTINGS_H
#define MMR_TRIAGE_SETTINGS_H

#include "../ops/case.h"

/* Restores what a dead mmrace left changed.  Number of settings restored, or
 * -errno (-EBUSY: another one lives and holds them, -EACCES: something is
 * left and only root may restore it).  Any thread. */
int mmr_settings_recover(void);
/*
 * Journals and applies the case's set lines, raises the pool of huge pages for
 * needs hugepages>=N, makes the swap area of needs swap>=N, and journals what
 * statements may change.  0; -EBUSY another mmrace holds them,
 * -EPERM, -errno: nothing is changed then, text has the sentence.  Any
 * thread; when another thread of this process holds the settings it waits
 * for that run's end.  The same thread has to call mmr_settings_restore().
 */
int mmr_settings_apply(const struct mmr_case *c, char *text, size_t n)
	__attribute__((warn_unused_result));
/* Restores what this thread's mmr_settings_apply() changed; safe when it
 * changed nothing. */
int mmr_settings_restore(void);
/* Path of the swap area that this thread's mmr_settings_apply() made, "" when
 * there is none; valid until restored. */
const char *mmr_settings_swap(void);
/* "nr_hugepages" -> its path under /proc or /sys, NULL when unknown. */
const char *mmr_setting_path(const char *name);
/* Its value now: 0 and *value, -errno. */
int mmr_setting_get(const char *name, int64_t *value);
/* A number of /proc/meminfo ("HugePages_Free") as it stands there, -1 when
 * there is no such field. */
int64_t mmr_meminfo(const char *field);

/* Tests only: a folder in front of /run, /proc and /sys; NULL none. */
void mmr_settings_root(const char *prefix);

#endif
