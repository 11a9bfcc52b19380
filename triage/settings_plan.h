/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What settings.c is to change for a case.  Reads the machine, changes nothing.
 */
#ifndef MMR_TRIAGE_SETTINGS_PLAN_H
#define MMR_TRIAGE_SETTINGS_PLAN_H

#include "../ops/case.h"
#include "../ops/setting.h"
#include "swap_area.h"

#define MMR_CHANGES_MAX 24 /* more than there are settings */

/*
 * A setting that the case changes, or whose statements may.  All values that
 * it can come to have through us lie in lo..hi, `before` too.
 */
struct mmr_change {
	int index; /* in mmr_setting_table */
	int64_t before, lo, hi;
	bool set; /* to value, before the case runs */
	int64_t value;
};

struct mmr_changes {
	struct mmr_change change[MMR_CHANGES_MAX];
	int n;
	struct mmr_swap_area swap; /* bytes 0: none */
};

static inline const char *mmr_change_name(const struct mmr_change *ch)
{
	return mmr_setting_table[ch->index].name;
}

/* Fills *p with what the case wants.  0, or -errno with a sentence. */
int mmr_settings_plan(struct mmr_changes *p, const struct mmr_case *c,
		      char *text, size_t n) __attribute__((warn_unused_result));
/* True when there is anything to journal and to put back. */
bool mmr_settings_planned(const struct mmr_changes *p);
/*
 * A pool that eats the machine's memory would take everything else down with
 * it before the kernel says no, so that is refused before it is tried: 0, or
 * -ENOMEM with a sentence.
 */
int mmr_settings_room(const struct mmr_changes *p, char *text, size_t n)
	__attribute__((warn_unused_result));

#endif
