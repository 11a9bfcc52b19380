/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A folder for the core dumps of a case (needs core): the kernel's core_pattern
 * stays as it is, so dumps can be had only where it writes them into the folder
 * that a process is in.
 */
#ifndef MMR_TRIAGE_CORE_DIR_H
#define MMR_TRIAGE_CORE_DIR_H

#include <stddef.h>

/* Makes it, path into out.  0, or -errno with a sentence.  Any thread. */
int mmr_core_make(char *out, size_t n, char *text, size_t ntext)
	__attribute__((warn_unused_result));
/* Removes it with what is in it; "" is none. */
void mmr_core_remove(const char *dir);
/* Those of engines that are no more.  Once, at the start. */
void mmr_core_sweep(void);

#endif
