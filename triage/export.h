/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A case as a program for somebody else's test suite. */
#ifndef MMR_TRIAGE_EXPORT_H
#define MMR_TRIAGE_EXPORT_H

#include <stdio.h>

#include "../ops/case.h"

enum mmr_export_to {
	MMR_EXPORT_C,	      /* only libc; exit 0 healthy, 1 symptom seen,
			       * 4 cannot run here */
	MMR_EXPORT_LTP,	      /* LTP's new library: TPASS, TFAIL, TCONF */
	MMR_EXPORT_KSELFTEST, /* an mm selftest of the kernel: KTAP, skip 4 */
};

/*
 * Writes one C file.  name is what the test will be called (a C identifier;
 * NULL: made from the title), for the line beside it.  0, -ENOTSUP (diag: the
 * statement that has no C and why), -ENOMEM, -EIO.  Any thread.
 */
int mmr_export(const struct mmr_case *c, enum mmr_export_to to,
	       const char *name, FILE *out, struct mmr_diag *diag)
	__attribute__((warn_unused_result));

/* The lines that enter the test into its suite: for LTP's runtest/mm, for the
 * kernel's run_vmtests.sh; nothing for C. */
void mmr_export_line(const struct mmr_case *c, enum mmr_export_to to,
		     const char *name, FILE *out);

/* A test's name from a file name or a title: lower case, digits and '_', at
 * most n bytes with the closing NUL.  Returns buf. */
char *mmr_export_name(const char *from, char *buf, size_t n);

/* "c", "ltp", "kselftest"; -1 for another word. */
int mmr_export_form(const char *word);

#endif
