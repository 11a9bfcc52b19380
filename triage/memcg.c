// SPDX-License-Identifier: GPL-2.0-or-later
#include "memcg.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cap.h"
#include "cgroup.h"

#define REMOVE_MS 1000

static _Atomic unsigned int number; /* of the run, for the folder's name */

static int make_folder(const char *below, unsigned int i, char *out, size_t n)
{
	if (snprintf(out, n, "%s/case-%u", below, i) >= (int)n)
		return -ENAMETOOLONG;
	return mkdir(out, 0755) && errno != EEXIST ? -errno : 0;
}

int mmr_memcg_make(struct mmr_outside *o, char *text, size_t n)
{
	unsigned int i = atomic_fetch_add(&number, 1);
	struct mmr_cap_groups g;
	int rc = mmr_cap_groups(&g);

	if (rc) {
		snprintf(text, n,
			 "needs memory cgroups, and none can be made here: run "
			 "as root, or delegate one (see mmrace doctor)");
		return rc;
	}
	rc = make_folder(g.memory, i, o->group, sizeof(o->group));
	if (!rc && g.version == 2)
		rc = mmr_cgroup_put(o->group, "cgroup.subtree_control",
				    "+memory");
	if (!rc && *g.freezer)
		rc = make_folder(g.freezer, i, o->freezer, sizeof(o->freezer));
	if (rc) {
		snprintf(text, n, "needs memory cgroups: %s: %s", o->group,
			 strerror(-rc));
		mmr_memcg_remove(o);
		return rc;
	}
	snprintf(o->base, sizeof(o->base), "%s", g.tasks);
	snprintf(o->freezer_base, sizeof(o->freezer_base), "%s",
		 g.freezer_base);
	o->memcg = (uint32_t)g.version;
	return 0;
}

void mmr_memcg_thaw(const struct mmr_outside *o)
{
	char path[sizeof(o->group) + 8];
	int i;

	for (i = 0; o->memcg && i < MMR_GROUPS; i++) {
		snprintf(path, sizeof(path), "%s/%c",
			 o->memcg == 1 ? o->freezer : o->group, 'a' + i);
		mmr_cgroup_put(
			path, o->memcg == 1 ? "freezer.state" : "cgroup.freeze",
			o->memcg == 1 ? "THAWED" : "0");
	}
}

int64_t mmr_memcg_charge(const struct mmr_outside *o)
{
	uint64_t v;

	if (!o->memcg)
		return -1;
	v = mmr_cgroup_get(
		o->group,
		o->memcg == 1 ? "memory.usage_in_bytes" : "memory.current", "");
	return v == ~0ULL ? -1 : (int64_t)v;
}

void mmr_memcg_remove(struct mmr_outside *o)
{
	if (*o->group)
		mmr_cgroup_remove(o->group, REMOVE_MS);
	if (*o->freezer)
		mmr_cgroup_remove(o->freezer, REMOVE_MS);
	o->memcg = 0;
	o->group[0] = o->freezer[0] = 0;
}
