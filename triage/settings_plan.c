// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which settings a case changes, and what they can come to be meanwhile: known
 * before the first is touched, as the journal has to say it.
 */
#include "settings_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../ops/setting.h"
#include "cap.h"
#include "settings.h"

/* The change of that setting, a new one when there is none yet.  NULL: an
 * error, text says it. */
static struct mmr_change *change_of(struct mmr_changes *p, int index,
				    char *text, size_t n, int *rc)
{
	struct mmr_change *ch;
	int i;

	for (i = 0; i < p->n; i++)
		if (p->change[i].index == index)
			return &p->change[i];
	ch = &p->change[p->n];
	*ch = (struct mmr_change){.index = index};
	*rc = mmr_setting_get(mmr_setting_table[index].name, &ch->before);
	if (*rc) {
		snprintf(text, n, "%s cannot be read (%s): %s",
			 mmr_change_name(ch), mmr_setting_table[index].path,
			 strerror(-*rc));
		return NULL;
	}
	ch->lo = ch->hi = ch->before;
	p->n++; /* there are fewer settings than MMR_CHANGES_MAX */
	return ch;
}

static void may_become(struct mmr_change *ch, int64_t v)
{
	if (v < ch->lo)
		ch->lo = v;
	if (v > ch->hi)
		ch->hi = v;
}

/* What the case wants, into *p; text on error. */
static int plan_one(struct mmr_changes *p, const char *name, int64_t value,
		    char *text, size_t n)
{
	int rc = -EINVAL, index = mmr_setting_index(name);
	struct mmr_change *ch;

	if (index < 0) {
		snprintf(text, n, "no setting is named %s", name);
		return rc;
	}
	ch = change_of(p, index, text, n, &rc);
	if (!ch)
		return rc;
	ch->set = true;
	ch->value = value;
	may_become(ch, value);
	return 0;
}

/* What statements write: the largest and smallest number, any mode. */
static int plan_block(struct mmr_changes *p, const struct mmr_block *b,
		      char *text, size_t n)
{
	int i, rc = 0;

	for (i = 0; i < b->n && !rc; i++) {
		const struct mmr_stmt *s = b->stmts[i];
		const struct mmr_setting_info *info;
		struct mmr_change *ch;

		if (s->kind == MMR_STMT_LOOP) {
			rc = plan_block(p, &s->body, text, n);
			continue;
		}
		if (s->op->id != MMR_OP_set_number &&
		    s->op->id != MMR_OP_set_mode)
			continue;
		info = &mmr_setting_table[s->args[0].lo];
		ch = change_of(p, (int)s->args[0].lo, text, n, &rc);
		if (!ch)
			continue;
		may_become(ch,
			   info->kind == MMR_SETTING_MODE ? 0 : s->args[1].lo);
		if (info->kind == MMR_SETTING_MODE)
			may_become(ch, 63);
	}
	return rc;
}

static int plan_statements(struct mmr_changes *p, const struct mmr_case *c,
			   char *text, size_t n)
{
	int i, j, rc = 0;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads && !rc; j++)
			rc = plan_block(p, &c->procs[i]->threads[j]->body, text,
					n);
	return rc;
}

static int plan_pool(struct mmr_changes *p, const struct mmr_need *need,
		     char *text, size_t n)
{
	int64_t rsvd = mmr_meminfo("HugePages_Rsvd"), now;
	int64_t avail = mmr_meminfo("HugePages_Free");
	int rc;

	/* More than there are: a kernel whose count went below zero. */
	if (rsvd > 0 && rsvd <= avail)
		avail -= rsvd;
	if (avail >= need->n)
		return 0;
	if (avail < 0)
		avail = 0;
	rc = mmr_setting_get("nr_hugepages", &now);
	if (rc) {
		snprintf(text, n, "this kernel has no huge page pool");
		return rc;
	}
	return plan_one(p, "nr_hugepages", now + need->n - avail, text, n);
}

int mmr_settings_plan(struct mmr_changes *p, const struct mmr_case *c,
		      char *text, size_t n)
{
	bool pool_given = false;
	int i, rc;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < c->nsettings; i++) {
		pool_given |= !strcmp(c->settings[i].name, "nr_hugepages");
		rc = plan_one(p, c->settings[i].name, c->settings[i].value,
			      text, n);
		if (rc)
			return rc;
	}
	for (i = 0; i < c->nneeds; i++) {
		rc = 0;
		/* A case that sets the pool itself means just that size. */
		if (c->needs[i].kind == MMR_NEED_HUGEPAGES && !pool_given)
			rc = plan_pool(p, &c->needs[i], text, n);
		if (c->needs[i].kind == MMR_NEED_SWAP)
			mmr_swap_plan(&p->swap, c->needs[i].n);
		if (rc)
			return rc;
	}
	return plan_statements(p, c, text, n);
}

bool mmr_settings_planned(const struct mmr_changes *p)
{
	int i;

	if (p->swap.bytes)
		return true;
	for (i = 0; i < p->n; i++)
		if (p->change[i].lo != p->change[i].hi)
			return true;
	return false;
}

int mmr_settings_room(const struct mmr_changes *p, char *text, size_t n)
{
	int64_t avail_kb = mmr_meminfo("MemAvailable");
	int64_t huge_kb = mmr_meminfo("Hugepagesize");
	int i;

	if (avail_kb < 0 || huge_kb <= 0)
		return 0;
	for (i = 0; i < p->n; i++) {
		const struct mmr_change *ch = &p->change[i];
		int64_t room = avail_kb / 10 * 9 / huge_kb;
		int64_t cap = (int64_t)(mmr_cap_bytes() >> 10) / huge_kb;

		if (cap && cap < room)
			room = cap;

		if (strcmp(mmr_change_name(ch), "nr_hugepages") ||
		    ch->hi - ch->before <= room)
			continue;
		snprintf(text, n,
			 "setting nr_hugepages to %" PRId64
			 ": available memory has room for %" PRId64
			 " more huge pages",
			 ch->hi, room);
		return -ENOMEM;
	}
	return 0;
}
