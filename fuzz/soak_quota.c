// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much of the disk a soak may take: what findings, known ones, suspects
 * and interrupted cases hold together.  Beyond the quota a new finding is kept
 * without its evidence (a hundredth of the size), and one that is there gets
 * no more samples; beyond a tenth more it is a line of the ledger only, which
 * has its seed.  The ledger, runs.jsonl and soak.json are bounded by what they
 * are.
 */
#include "soak_impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "../ops/clock.h"

#define DEPTH 4		     /* findings/ID/samples/NN.json */
#define LARGE (2ULL << 30)   /* enough for thousands of findings */
#define LOOK_NS 5000000000LL /* a tree of files is not read more often */

static uint64_t tree_bytes(const char *dir, int depth)
{
	const struct dirent *e;
	DIR *d = opendir(dir);
	char path[4400];
	struct stat st;
	uint64_t sum = 0;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >=
			    (int)sizeof(path) ||
		    lstat(path, &st))
			continue;
		sum += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth > 0)
			sum += tree_bytes(path, depth - 1);
	}
	if (d)
		closedir(d);
	return sum;
}

void mmr_soak_quota_start(struct mmr_soak *s)
{
	struct statvfs fs;

	s->quota.bytes = s->opts->quota;
	if (s->quota.bytes)
		return;
	/* A tenth of what is free: others write there, too. */
	s->quota.bytes = LARGE;
	if (!statvfs(s->opts->out, &fs) &&
	    fs.f_bavail * (uint64_t)fs.f_frsize / 10 < LARGE)
		s->quota.bytes = fs.f_bavail * (uint64_t)fs.f_frsize / 10;
}

uint64_t mmr_soak_quota_held(const char *dir, const char *id)
{
	char path[4400];

	if (snprintf(path, sizeof(path), "%s/findings/%s", dir, id) >=
	    (int)sizeof(path))
		return 0;
	return tree_bytes(path, DEPTH);
}

enum mmr_soak_room mmr_soak_quota_room(struct mmr_soak *s)
{
	struct mmr_soak_quota *q = &s->quota;
	int64_t now = mmr_clock_monotonic();
	enum mmr_soak_room room = MMR_SOAK_ROOM;

	if (!q->looked_ns || now - q->looked_ns >= LOOK_NS) {
		q->used = tree_bytes(s->opts->out, DEPTH);
		q->looked_ns = now;
	}
	if (q->used >= q->bytes)
		room = MMR_SOAK_BRIEF;
	if (q->used >= q->bytes + q->bytes / 10)
		room = MMR_SOAK_FULL;
	if (room == q->room)
		return room;
	q->room = room;
	if (room == MMR_SOAK_ROOM)
		mmr_soak_say(s, "%s: there is room for evidence again",
			     s->opts->out);
	else
		mmr_soak_say(s,
			     "%s: holds %.0f MiB, the quota is reached: "
			     "findings are kept %s from now on (--quota, or "
			     "make room)",
			     s->opts->out, (double)q->used / (1 << 20),
			     room == MMR_SOAK_BRIEF ? "without evidence"
						    : "in the ledger only");
	return room;
}
