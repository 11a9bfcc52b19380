/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program or a trace from somewhere else becomes a case: syzkaller's program
 * text, or a log of strace.
 *
 * What an operation's descriptor says of its system call also says how to read
 * one, so an operation that is a single call imports without a line here.
 */
#ifndef MMR_TRIAGE_IMPORT_H
#define MMR_TRIAGE_IMPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../ops/case.h"

enum mmr_import_from { MMR_IMPORT_SYZ, MMR_IMPORT_STRACE };

struct mmr_import_opts {
	enum mmr_import_from from;
	const char *name;     /* of the file, for the title; NULL: none */
	int64_t max_delay_ns; /* longer ones are shortened; 0: 100 ms */
	/* Write to each page of what becomes writable, of large mappings to
	 * the first 1 MiB: neither format says what a program touched. */
	bool touch;
};

#define MMR_IMPORT_MISSED 200 /* calls that are named one by one */

struct mmr_import_missed {
	int line;
	char call[96], why[160];
};

struct mmr_import_result {
	/* The case with comments, which parses; NUL-terminated. */
	char *text;
	int lines, calls; /* read; whole system calls among them */
	int mapped;	  /* calls that the case has */
	int ignored;	  /* that say nothing of memory */
	int unmapped;	  /* of memory, and not in the case */
	int unread;	  /* lines that were not understood */
	int files;	  /* mappings of files that are anonymous now */
	int delays_cut;	  /* delays that were shortened */
	int statements, processes, threads, loops;
	char cut[200]; /* why the end is missing; "" when it is not */
	struct mmr_import_missed *missed; /* of unmapped and unread */
	int nmissed;
	json_t *ignored_calls; /* name: how often */
};

/*
 * Reads len bytes.  0 and *res, which mmr_import_release() frees; -EINVAL with
 * diag when nothing of it can be a case, -ENOMEM.  Any thread.
 */
int mmr_import(const char *text, size_t len, const struct mmr_import_opts *o,
	       struct mmr_import_result *res, struct mmr_diag *diag)
	__attribute__((warn_unused_result));
void mmr_import_release(struct mmr_import_result *res);

#endif
