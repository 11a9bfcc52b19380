/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long operations take on this host: what the bounds of skew=auto come
 * from.  One table a process, kept between runs in a plain text file of this
 * host and kernel; each run adds to it.  There is no gate that waits until
 * durations are stable: on a machine with other load they never are.
 *
 * All functions: any thread; a lock inside.  The table works without a file.
 */
#ifndef MMR_OPS_CALIB_H
#define MMR_OPS_CALIB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MMR_CALIB_PRIOR_NS 20000 /* of an operation never seen here */
/*
 * Rounds without offsets when that is so.  Their second longest is the 90th
 * percentile of each operation and so one outlier does no harm; more of them
 * cost more than they make the bounds better (docs/timing.md).
 */
#define MMR_CALIB_FIRST 8

enum mmr_backing {
	MMR_BACK_NONE, /* the operation has no mapping */
	MMR_BACK_PRIVATE,
	MMR_BACK_SHARED,
	MMR_BACK_FILE, /* a shared mapping of a file */
	MMR_BACK_COPY, /* a private one */
	MMR_BACK_HUGE, /* huge pages of the pool */
	MMR_BACKINGS
};

struct mmr_calib_key {
	uint16_t op;	 /* enum mmr_op_id */
	uint8_t size;	 /* mmr_calib_size() of pages, or of accesses */
	uint8_t backing; /* enum mmr_backing */
};

struct mmr_calib_time {
	uint64_t count; /* operations */
	uint64_t runs;	/* that they were measured in */
	uint64_t median_ns, p90_ns;
};

/* The size class of n: 0 for at most one, then one a doubling. */
uint8_t mmr_calib_size(uint64_t n);
/* "private" and so on, as the file has it; NULL: no such one. */
const char *mmr_backing_name(unsigned int backing);

/*
 * Reads the file: path, or when NULL $XDG_CACHE_HOME/mmrace/calibration-HOST,
 * for root else /var/cache/mmrace/..., for others ~/.cache/mmrace/...  Entries
 * of another kernel or CPU, and lines that make no sense, are left out.  0;
 * -ENOENT: no file yet, or nothing that holds here; -errno.
 */
int mmr_calib_load(const char *path);
/* Writes it back when something is new, together with what others wrote
 * there meanwhile.  0 or -errno. */
int mmr_calib_save(void);
/* The file; "" before mmr_calib_load(), or where none can be. */
void mmr_calib_path(char *buf, size_t n);
/* Forgets everything, the file's name too (tests). */
void mmr_calib_reset(void);

/* False: never seen; *t is the prior then. */
bool mmr_calib_get(struct mmr_calib_key key, struct mmr_calib_time *t);
/* Makes an entry with the prior, which the first run replaces. */
void mmr_calib_assume(struct mmr_calib_key key);
/* One run's operations of a kind.  The logarithms are averaged: the first
 * runs count alike, later ones by 1/20. */
void mmr_calib_add(struct mmr_calib_key key, uint64_t count, uint64_t median_ns,
		   uint64_t p90_ns);
/* Calls fn for each entry, in the order of op, size, backing; the number of
 * entries. */
int mmr_calib_each(void (*fn)(void *arg, struct mmr_calib_key key,
			      const struct mmr_calib_time *t),
		   void *arg);

#endif
