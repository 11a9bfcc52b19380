/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Known signatures: a file of patterns for what is known already and is not to
 * be reported again for now.  Each names a verdict and more than that, says
 * why, and until when: nobody can switch a verdict off with it, nor for ever.
 *
 *	known   hang write handle_userfault<*
 *	reason  nobody serves userfaultfd in this setup, see BUG-123
 *	until   2027-03-31
 *
 * `*` stands for any text; the whole signature has to match.  Comments (#) and
 * blank lines are skipped.  The day is one of UTC, and the last that counts;
 * at most a year ahead.
 */
#ifndef MMR_TRIAGE_KNOWN_H
#define MMR_TRIAGE_KNOWN_H

#include <jansson.h>
#include <stdint.h>
#include <time.h>

#include "../ops/case.h"

struct mmr_known;

/* Parses text; today: now, in seconds since 1970.  0 and *out, for
 * mmr_known_free(); -EINVAL with diag; -ENOMEM. */
int mmr_known_parse(const char *text, size_t len, time_t today,
		    struct mmr_known **out, struct mmr_diag *diag)
	__attribute__((warn_unused_result));
/* The same of a file; also -errno of the read, with diag->text empty. */
int mmr_known_load(const char *path, struct mmr_known **out,
		   struct mmr_diag *diag) __attribute__((warn_unused_result));
void mmr_known_free(struct mmr_known *k);

/* The reason of the first entry that matches and has not expired, and counts
 * it; NULL: none does.  Any thread, several at once.  until (16 bytes) gets
 * the entry's day. */
const char *mmr_known_match(struct mmr_known *k, const char *signature,
			    time_t now, char *until);
/* [{pattern, reason, until, expired, count}] as of now, a new array. */
json_t *mmr_known_json(const struct mmr_known *k);

#endif
