// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What has to come back after a case, see restored.h.
 */
#include "restored.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../ops/setting.h"
#include "cap.h"
#include "memcg.h"
#include "settings.h"
#include "target.h"

#define STEP_MS 20
#define TURNS 100 /* 2 s: a field may take that long to return */

#define CHARGE "memcg_charge"
#define RESERVED "HugePages_Rsvd"
#define POOL_SETTINGS 3 /* nr_hugepages, nr_overcommit_hugepages */

static void pause_step(void)
{
	struct timespec step = {0, STEP_MS * 1000000L};

	nanosleep(&step, NULL);
}

static bool uses_pool(const struct mmr_case *c)
{
	int i;

	for (i = 0; i < c->nneeds; i++)
		if (c->needs[i].kind == MMR_NEED_HUGEPAGES)
			return true;
	return (mmr_setting_named(c) | mmr_setting_written(c)) & POOL_SETTINGS;
}

/* What has to come back.  Where the case itself sets the size of the pool of
 * huge pages, its size need not, but what is in use of it. */
static int64_t field_now(const struct mmr_case *c,
			 const struct mmr_outside *outside, const char *name)
{
	int64_t charge;

	if (!strcmp(name, CHARGE)) {
		charge = mmr_memcg_charge(outside);
		return charge < 0 ? charge : charge >> 10;
	}
	charge = mmr_cap_use_kb(name);
	if (charge >= 0)
		return charge;
	if ((mmr_setting_written(c) & POOL_SETTINGS) &&
	    !strncmp(name, "HugePages_", 10) && strcmp(name, RESERVED))
		return mmr_meminfo("HugePages_Total") -
		       mmr_meminfo("HugePages_Free");
	return mmr_meminfo(name);
}

void mmr_restored_note(struct mmr_restored *f, const struct mmr_case *c,
		       const struct mmr_outside *outside)
{
	int i;

	f->nfields = 0;
	for (i = 0; i < c->nexpects; i++) {
		const struct mmr_expect *e = &c->expects[i];

		if (e->kind != MMR_EXPECT_RESTORED ||
		    f->nfields == MMR_RESTORED_MAX)
			continue;
		f->fields[f->nfields].name = e->name;
		f->fields[f->nfields++].before = field_now(c, outside, e->name);
	}
	f->watched = uses_pool(c);
	f->reserved = f->watched ? mmr_meminfo(RESERVED) : 0;
}

int64_t mmr_restored_slack(const char *name, bool *less)
{
	*less = strstr(name, "Free") || strstr(name, "Available");
	/* Counts of huge pages are exact; the rest is everybody's, and only
	 * less than before can be ours. */
	return strncmp(name, "HugePages_", 10) ? 65536 : 0;
}

static bool is_back(const struct mmr_restored_field *f, int64_t now)
{
	int64_t more = now - f->before, slack;
	bool less;

	/* Each CPU keeps up to 64 pages charged in advance. */
	if (!strcmp(f->name, CHARGE))
		return more < 2048 + 256 * sysconf(_SC_NPROCESSORS_ONLN);
	/* What only our own processes count in. */
	if (mmr_cap_use_kb(f->name) >= 0)
		return more < 4096;
	slack = mmr_restored_slack(f->name, &less);
	return slack ? (less ? -more : more) < slack : !more;
}

/* The kernel shows a count below zero as one near 2^64.  -1 of a kernel without
 * the field is before and after, and so never "lower than before". */
static const char *check_reserved(const struct mmr_restored *f, char *text,
				  size_t n)
{
	int64_t now = 0;
	int turns;

	for (turns = 0; turns < TURNS; turns++) {
		now = mmr_meminfo(RESERVED);
		if (!f->watched || now >= 0 || now >= f->reserved)
			return NULL;
		pause_step();
	}
	snprintf(
		text, n,
		"%s of /proc/meminfo was %lld before and is %lld 2 s after the "
		"case: the kernel lost count of the huge pages that it has "
		"promised",
		RESERVED, (long long)f->reserved, (long long)now);
	return RESERVED;
}

const char *mmr_restored_check(const struct mmr_restored *f,
			       const struct mmr_case *c,
			       const struct mmr_outside *outside, int targets,
			       char *text, size_t n)
{
	int64_t now = 0;
	int i, turns;

	for (i = 0; i < f->nfields && mmr_target_count() <= targets; i++) {
		const struct mmr_restored_field *field = &f->fields[i];

		for (turns = 0; turns < TURNS; turns++) {
			now = field_now(c, outside, field->name);
			if (is_back(field, now))
				break;
			pause_step();
		}
		if (turns < TURNS || mmr_target_count() > targets)
			continue;
		snprintf(text, n,
			 "%s%s was %lld before and is %lld 2 s after the case",
			 field->name,
			 strcmp(field->name, CHARGE)
				 ? " of /proc/meminfo"
				 : " (KiB) of the case's groups",
			 (long long)field->before, (long long)now);
		return field->name;
	}
	return check_reserved(f, text, n);
}
