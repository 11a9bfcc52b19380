/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What makes a case right: one set of rules for cases that were parsed and
 * for cases that a program made.
 */
#ifndef MMR_OPS_CHECK_H
#define MMR_OPS_CHECK_H

#include "case.h"

#define MMR_CHECK_NEEDS 32
#define MMR_CHECK_SETTINGS 16
#define MMR_CHECK_EXPECTS 32
#define MMR_CHECK_CPU 1023 /* highest cpu=N */
#define MMR_CHECK_LOOP_NS (3600 * 1000000000LL)

/* Where a rule was broken, for whoever has the text. */
struct mmr_check_place {
	const char *word; /* the offending name, NULL: the whole statement */
	bool in_args;	  /* it stands behind the op's name */
};

/* mmr_case_check() with the place, and with warnings. */
int mmr_check_case(const struct mmr_case *c, struct mmr_diag *diag,
		   struct mmr_check_place *place,
		   void (*warn)(void *arg, const struct mmr_diag *,
				const struct mmr_check_place *),
		   void *arg);

/* Of that, the header. */
int mmr_check_head(const struct mmr_case *c, struct mmr_diag *diag);
/* One value against its argspec.  0, or -EINVAL with a sentence in text. */
int mmr_check_value(const struct mmr_argspec *a, const struct mmr_value *v,
		    char *text, size_t n);
/* True when an optional argument reads as if it were left out. */
bool mmr_value_is_default(const struct mmr_argspec *a,
			  const struct mmr_value *v);
/* True for a kernel setting that a case may change. */
bool mmr_setting_known(const char *name);
/* "a mapping", for sentences. */
const char *mmr_ref_kind_text(uint32_t kinds);

#endif
