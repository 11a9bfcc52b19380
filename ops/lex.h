/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines, words and numbers of a case text.  Knows characters and units, not
 * what the words mean.
 */
#ifndef MMR_OPS_LEX_H
#define MMR_OPS_LEX_H

#include "case.h"

#define MMR_LEX_WORDS 64  /* a line */
#define MMR_LEX_TITLE 200 /* bytes of free text */

struct mmr_word {
	const char *s; /* in the text, no NUL behind it */
	int len;
	int col; /* 1-based, in bytes */
};

/* Where the reader of a text is; the current line's words. */
struct mmr_lex {
	const char *text;
	size_t len, pos;
	int line;     /* of words; 1-based */
	bool in_head; /* title and fixed end in free text: one word */
	struct mmr_word word[MMR_LEX_WORDS];
	int n;
	struct mmr_diag *diag;
};

/* Goes to the next line that has words.  1, 0 at the end, -EINVAL. */
int mmr_lex_next(struct mmr_lex *l);

bool mmr_lex_is(const struct mmr_word *w, const char *s);
/* True for a name: a letter or _, then letters, digits, _; not too long,
 * none of the words that begin a line, not idle. */
bool mmr_lex_is_name(const char *s, size_t len);
/* True for text that a title or comment may hold (UTF-8, no controls). */
bool mmr_lex_is_text(const char *s, size_t len);

/* These take all of s; -EINVAL when it is none, -ERANGE when too large. */
int mmr_lex_int(const char *s, size_t len, int64_t *v);
int mmr_lex_seed(const char *s, size_t len, uint64_t *v); /* also 0x.. */
int mmr_lex_time(const char *s, size_t len, int64_t *ns); /* also -20us */
int mmr_lex_size(const char *s, size_t len, int64_t *count,
		 enum mmr_unit *unit);

#endif
