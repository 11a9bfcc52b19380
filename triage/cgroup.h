/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control groups: where we are in them, their files, and what is left of
 * engines that are no more.  For cap.c and memcg.c.
 *
 * Groups are called mmrace-PID.  What had to be switched on in a group that is
 * not ours (cgroup.subtree_control of v2) stands in a journal before, and goes
 * with the last mmrace-* group below it: that of a killed engine is removed by
 * the next one.
 */
#ifndef MMR_TRIAGE_CGROUP_H
#define MMR_TRIAGE_CGROUP_H

#include <stddef.h>
#include <stdint.h>

#define MMR_CGROUP_PATH 320

/* Writes text into dir/file; 0 or -errno. */
int mmr_cgroup_put(const char *dir, const char *file, const char *text);
int mmr_cgroup_put_number(const char *dir, const char *file, uint64_t v);
/* The number after word in a small file ("" : the first one), ~0 when there
 * is none. */
uint64_t mmr_cgroup_get(const char *dir, const char *file, const char *word);
/*
 * Folder of our own group in a hierarchy.  controller NULL: the v2 one.
 * 0, -ENOENT.
 */
int mmr_cgroup_own(const char *controller, char *out, size_t n);
/* Makes parent/mmrace-PID, after removing those of dead engines there; 0 or
 * -errno, out has its path. */
int mmr_cgroup_make(const char *parent, char *out, size_t n);
/* Thaws and removes a group with all below it; waits up to wait_ms for its last
 * task to leave.  0, -EBUSY, -errno. */
int mmr_cgroup_remove(const char *dir, int wait_ms);

/* What follows is done with the lock held, which orders it among engines. */
int mmr_cgroup_lock(void); /* a descriptor, or -errno */
void mmr_cgroup_unlock(int lock);
/* Switches controllers ("memory pids") on for groups below dir.  0, -errno */
int mmr_cgroup_enable(const char *dir, const char *controllers);
/* Puts down that a group of ours will be below dir, so that the next engine
 * looks there, wherever it is itself.  0, -errno */
int mmr_cgroup_note(const char *dir);
/* Switches off again what we switched on, where no mmrace-* group is left:
 * below dir, or with NULL wherever the journal says, after a sweep. */
void mmr_cgroup_release(const char *dir);

#endif
