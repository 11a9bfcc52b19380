/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The soak: seed after seed until the time is over. */
#ifndef MMR_FUZZ_SOAK_H
#define MMR_FUZZ_SOAK_H

#include "../triage/guest.h"
#include "../triage/run.h"
#include "gen.h"

struct mmr_soak_opts {
	struct mmr_run_opts run;
	const struct mmr_profile *profile;
	bool profile_given;
	uint64_t seed; /* the first one */
	bool seed_given;
	uint64_t cases;	 /* 0: no bound */
	int64_t time_ns; /* 0: no bound */
	int jobs;
	const char *out;     /* folder of findings and of the running seed */
	int shard, shards;   /* 0/1: all */
	bool kmsg;	     /* name each case in the kernel log first */
	bool until_found;    /* the first finding, confirmed, ends it */
	bool sync;	     /* each case is on the disk before it runs */
	bool resume;	     /* go on where the ledger in out ends */
	const char *metrics; /* Prometheus text file, NULL: none */
	const char *log;     /* file of messages, rotated; NULL: none */
	uint64_t quota;	     /* bytes that out may hold; 0: by free space */
	/* Findings are made smaller in this guest, kernel NULL: where they were
	 * found. */
	struct mmr_guest_opts shrink;
	int revisit;	/* share of the time, percent; 0: none */
	int quarantine; /* tasks that cannot be killed: then it stops */
	bool gentle;	/* others use this machine */
	bool quiet, json;
};

/* Runs it; prints the report.  Exit code of the command. */
int mmr_soak(const struct mmr_soak_opts *opts);

#endif
