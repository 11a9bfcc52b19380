/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of kernel settings: for settings.c only. */
#ifndef MMR_TRIAGE_SETTING_FILE_H
#define MMR_TRIAGE_SETTING_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Writes it; 0 or -errno.  The kernel may take less: read it back. */
int mmr_setting_put(const char *name, int64_t value)
	__attribute__((warn_unused_result));
/* path below the test's folder, into buf; returns buf. */
char *mmr_setting_rooted(char *buf, size_t n, const char *path);

#endif
