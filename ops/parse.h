/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the two halves of the parser share: parse.c (structure, statements)
 * and parse_head.c (header lines).
 */
#ifndef MMR_OPS_PARSE_H
#define MMR_OPS_PARSE_H

#include "case.h"
#include "lex.h"

/* For "%.*s": a stranger's word may be long. */
#define ELLIPSIS(w) ((w)->len > 32 ? 32 : (w)->len), (w)->s

struct mmr_parse {
	struct mmr_lex l;
	struct mmr_case *c;
	struct mmr_proc *p; /* open process, thread and blocks */
	struct mmr_thread *t;
	struct mmr_block *block[MMR_CASE_MAX_DEPTH + 1];
	const struct mmr_stmt *loop[MMR_CASE_MAX_DEPTH];
	int depth;
	int nstmts, nthreads;
	uint32_t seen; /* header lines that may stand once */
	void (*warn)(void *arg, const struct mmr_diag *);
	void *arg;
};

/* An error at a word of the current line; returns -EINVAL. */
int mmr_parse_fail(struct mmr_parse *p, const struct mmr_word *w,
		   const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Splits KEY=VALUE; false when there is no KEY=. */
bool mmr_parse_split(const struct mmr_word *w, struct mmr_word *key,
		     struct mmr_word *value);
/* An integer of lo..hi, or an error that names what it is. */
int mmr_parse_int(struct mmr_parse *p, const struct mmr_word *w, int64_t lo,
		  int64_t hi, const char *what, int64_t *v);
int mmr_parse_time(struct mmr_parse *p, const struct mmr_word *w, int64_t *ns);
int mmr_parse_signed_time(struct mmr_parse *p, const struct mmr_word *w,
			  int64_t *ns);
/* A copy of the word in the case's memory: 0 or -ENOMEM. */
int mmr_parse_copy(struct mmr_parse *p, const struct mmr_word *w,
		   const char **s);

/* The same of a name, with the error "no name for <what>". */
int mmr_parse_name(struct mmr_parse *p, const struct mmr_word *w,
		   const char *what, const char **name);

/* The current line as a statement other than a loop. */
int mmr_parse_op(struct mmr_parse *p);
/* The current line as a header line.  0, -EINVAL, -ENOMEM. */
int mmr_parse_head_line(struct mmr_parse *p);
/* True for a word that begins a header line. */
bool mmr_parse_is_head(const struct mmr_word *w);

#endif
