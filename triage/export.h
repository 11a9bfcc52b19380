/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A case as a program for somebody else's test suite. */
#ifndef MMR_TRIAGE_EXPORT_H
#define MMR_TRIAGE_EXPORT_H

#include <stdio.h>

#include "../ops/case.h"

/* Writes one C file: only libc, exit 0 healthy, 1 symptom seen, 4 cannot run
 * here.  0, -ENOTSUP (diag: statement that has no C), -EIO. */
int mmr_export_c(const struct mmr_case *c, FILE *out, struct mmr_diag *diag)
	__attribute__((warn_unused_result));

#endif
