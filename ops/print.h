/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A growing text, and the canonical text of a statement into one: for those
 * who print many (compile makes the draw tags from it).
 */
#ifndef MMR_OPS_PRINT_H
#define MMR_OPS_PRINT_H

#include "case.h"

struct mmr_text {
	char *s; /* NUL-terminated once anything was put; free() it */
	size_t n, size;
	bool failed; /* no memory: the rest is lost */
};

void mmr_text_put(struct mmr_text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void mmr_text_puts(struct mmr_text *t, const char *s);

/* The statement (a loop: its header) without indentation and newline, and
 * without `->` and what follows: what it does, not what may come of it. */
void mmr_print_action(struct mmr_text *t, const struct mmr_stmt *s);

/* "same" and its like: placements relative to another thread. */
const char *mmr_cpu_word(enum mmr_cpu_kind kind);

/* Name of a need as in the case file: "cpus", "cap". */
const char *mmr_need_word(enum mmr_need_kind kind);

#endif
