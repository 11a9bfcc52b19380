/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A finding on disk (DESIGN section 6): DIR/findings/<id>/ with case.case,
 * first.case, exact.case when offsets were drawn, verdict.json, evidence.json,
 * stacks.txt, timeline.json, report.md and repro.c; kernel.log when the kernel
 * wrote something meanwhile, samples/ when it was seen again.  Written into a
 * temporary folder, fsynced, renamed.
 */
#ifndef MMR_TRIAGE_FINDING_H
#define MMR_TRIAGE_FINDING_H

#include "run.h"

struct mmr_rate {
	uint64_t hits, runs, rounds;
	int64_t wall_ns;
};

/*
 * Stores a hit under dir (made when missing).  c: as it ran; first: as
 * generated, NULL: the same.  Without `first`, case.case has the bounds of
 * res->bound in place of skew=auto; exact.case has the offsets of the hit.
 * rate: NULL when only seen once.  The same id
 * again raises `count` in verdict.json, keeps the first evidence, and puts
 * that of the next 20 sightings into samples/.  0 or -errno; path (n bytes)
 * gets the folder.  One process at a time per dir.
 */
int mmr_finding_save(const char *dir, const struct mmr_case *c,
		     const struct mmr_case *first,
		     const struct mmr_run_result *res,
		     const struct mmr_rate *rate, char *path, size_t n)
	__attribute__((warn_unused_result));

/*
 * The finding `id` of several soaks as one: into out's findings goes the
 * folder that was seen first, whole, with the span of all sightings and this
 * count.  dirs may contain out.  The result does not depend on their order.  0
 * or -errno.
 */
int mmr_finding_join(char *const *dirs, int n, const char *out, const char *id,
		     uint64_t count) __attribute__((warn_unused_result));

/* Removes a folder of ours: files, and folders of files `depth` deep. */
void mmr_remove_tree(const char *path, int depth);

/*
 * The rate of what mmr_finding_save() stored last under res->id, measured
 * since: no sighting of its own.  c: what the rate is of, the case that ran or
 * the one with the offsets of the hit.  0 or -errno.
 */
int mmr_finding_rate(const char *dir, const struct mmr_case *c,
		     const struct mmr_run_result *res,
		     const struct mmr_rate *rate)
	__attribute__((warn_unused_result));

/* report.md of a hit that could not be stored, to read and keep by hand.  0,
 * -ENOMEM or -EIO. */
int mmr_finding_print(FILE *out, const struct mmr_case *c,
		      const struct mmr_run_result *res,
		      const struct mmr_rate *rate);

/* How often a stored finding (its folder) was seen, over all soaks; 0 when
 * it cannot be read. */
uint64_t mmr_finding_count(const char *folder);

/* Makes path and what is above it, like mkdir -p.  0 or -errno. */
int mmr_mkdir_p(const char *path);
/* Writes a file atomically: temporary, fsync, rename, fsync of the folder. */
int mmr_write_file(const char *path, const void *data, size_t n)
	__attribute__((warn_unused_result));

/* Writes and syncs; nothing is left of a file that did not get whole.  0 or
 * -errno. */
int mmr_file_write_sync(const char *path, const void *data, size_t n);
/* The line and its newline at the end of the file, in one write.  What a full
 * disk cuts short is taken back.  0 or -errno. */
int mmr_file_append_line(int fd, const char *line);
/* The names in a folder are on the disk.  0 or -errno. */
int mmr_file_sync_dir(const char *path);

#endif
