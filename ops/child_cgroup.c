// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control groups of the case, by the paths that the engine gives.  v1 keeps
 * what can be frozen in a hierarchy of its own: a group is a folder there too.
 */
#include <linux/errno.h>

#include "child_machine.h"

#define AT_CWD (-100)
#define REMOVEDIR 0x200
#define PATH 400
#define TRIES 20

static char *add(char *out, const char *end, const char *s)
{
	while (*s && out < end)
		*out++ = *s++;
	*out = 0;
	return out;
}

/* folder/X or folder/X/file, group MMR_GROUPS: base or base/file.  False: the
 * case has no groups. */
static bool path_of(char *buf, const char *folder, const char *base,
		    uint32_t group, const char *file)
{
	const char *end = buf + PATH - 1;
	char name[3] = {'/', (char)('a' + group), 0};
	char *out;

	if (!*folder || !MMR_AREA_PTR->program.outside.memcg)
		return false;
	out = add(buf, end, group < MMR_GROUPS ? folder : base);
	if (group < MMR_GROUPS)
		out = add(out, end, name);
	if (file) {
		out = add(out, end, "/");
		add(out, end, file);
	}
	return true;
}

static const struct mmr_outside *outside(void)
{
	return &MMR_AREA_PTR->program.outside;
}

static int64_t put(uint32_t group, const char *file, const char *text)
{
	char path[PATH];

	if (!path_of(path, outside()->group, outside()->base, group, file))
		return -EPERM;
	return mmr_child_put_file(path, text);
}

static int64_t put_twin(uint32_t group, const char *file, const char *text)
{
	char path[PATH];

	if (!path_of(path, outside()->freezer, outside()->freezer_base, group,
		     file))
		return -EOPNOTSUPP;
	return mmr_child_put_file(path, text);
}

int64_t mmr_child_cgroup_put(struct mmr_child *c, uint32_t group,
			     const char *file, const char *text)
{
	(void)c;
	return put(group, file, text);
}

int64_t mmr_child_cgroup_create(struct mmr_child *c, uint32_t group)
{
	char path[PATH];

	(void)c;
	if (!path_of(path, outside()->group, "", group, NULL))
		return -EPERM;
	/* The twin first: who moves into the one finds the other. */
	if (*outside()->freezer) {
		char twin[PATH];

		path_of(twin, outside()->freezer, "", group, NULL);
		mmr_sys3(__NR_mkdirat, AT_CWD, mmr_sys_ptr(twin), 0755);
	}
	return mmr_sys3(__NR_mkdirat, AT_CWD, mmr_sys_ptr(path), 0755);
}

static int64_t remove_group(uint32_t group)
{
	char path[PATH];
	int64_t ret;

	if (!path_of(path, outside()->group, "", group, NULL))
		return -EPERM;
	ret = mmr_sys3(__NR_unlinkat, AT_CWD, mmr_sys_ptr(path), REMOVEDIR);
	if (ret == 0 && *outside()->freezer) {
		path_of(path, outside()->freezer, "", group, NULL);
		mmr_sys3(__NR_unlinkat, AT_CWD, mmr_sys_ptr(path), REMOVEDIR);
	}
	return ret;
}

int64_t mmr_child_cgroup_remove(struct mmr_child *c, uint32_t group)
{
	(void)c;
	return remove_group(group);
}

static int64_t freeze(uint32_t group, bool on)
{
	if (outside()->memcg == 2)
		return put(group, "cgroup.freeze", on ? "1" : "0");
	return put_twin(group, "freezer.state", on ? "FROZEN" : "THAWED");
}

/* The watcher reads `frozen`: who is frozen is not stuck.  Calm thaws, so no
 * freeze begins then. */
int64_t mmr_child_cgroup_freeze(struct mmr_child *c, uint32_t group, bool on)
{
	int64_t ret;

	if (!outside()->memcg)
		return -EPERM;
	if (!on) {
		ret = freeze(group, false);
		atomic_fetch_and(&c->area->frozen, ~(1u << group));
		return ret;
	}
	if (mmr_child_stopping(c))
		return MMR_SKIPPED;
	atomic_fetch_or(&c->area->frozen, 1u << group);
	atomic_fetch_add(&c->area->holds, 1);
	ret = freeze(group, true);
	if (ret < 0)
		atomic_fetch_and(&c->area->frozen, ~(1u << group));
	return ret;
}

int64_t mmr_child_cgroup_move(struct mmr_child *c, const struct mmr_insn *in,
			      int arg, uint32_t group)
{
	struct mmr_ref_value v = {0, 0, 1};
	int64_t i, ret, first = 0;
	const char *text;
	char buf[24];

	if (in->arg[arg].lo >= 0) {
		v = mmr_child_ref(c, in->arg[arg].lo, MMR_REF_PROCESS);
		if (!v.kind)
			return MMR_SKIPPED;
	}
	for (i = 0; i < v.b; i++) {
		int64_t pid = 0;

		if (v.kind) {
			pid = atomic_load(&c->procs[v.a + i].pid);
			if (pid <= 1) /* reaped: 0 would be the caller */
				continue;
		}
		text = mmr_child_decimal(buf, pid);
		ret = put(group, "cgroup.procs", text);
		if (ret == 0 && *outside()->freezer)
			put_twin(group, "cgroup.procs", text);
		if (ret < 0 && first == 0)
			first = ret;
	}
	return first;
}

void mmr_cgroup_thaw_all(void)
{
	uint32_t i;

	for (i = 0; outside()->memcg && i < MMR_GROUPS; i++)
		if (atomic_load(&MMR_AREA_PTR->frozen) >> i & 1)
			freeze(i, false);
	atomic_store(&MMR_AREA_PTR->frozen, 0);
}

/* The last task of a process leaves its group a little after it was reaped. */
void mmr_cgroup_remove_all(void)
{
	uint32_t i, tries;

	for (i = 0; outside()->memcg && i < MMR_GROUPS; i++)
		for (tries = 0; tries < TRIES; tries++) {
			if (remove_group(i) != -EBUSY)
				break;
			mmr_sys_nanosleep(500000);
		}
}
