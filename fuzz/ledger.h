/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger of a soak: which cases ran on which kernel and what came of
 * them, so that "nothing found" is a bound and a soak can go on where it
 * ended.
 *
 * DIR/ledger.jsonl is only ever appended to, a JSON object a line: `session`
 * (a start of a soak), `batch` (cases finished since the last one: numbers
 * and counts), `finding`, `lost` (the case that ran when the soak was ended),
 * `end`.  A session has an id of its own and its batches are numbered, so
 * that ledgers can be joined in any order, also twice.
 *
 * The batch that is being filled lies in DIR/ledger.now, a shared mapping of
 * two slots that are written in turn, each with a checksum: a kill at any
 * time loses at most the cases in flight.  The next one that opens the folder
 * appends it.  A panic or power cut loses the last second.
 *
 * One process at a time has a folder's ledger open (flock on ledger.now);
 * reading needs no lock.  Calls on one ledger are serialised by the caller.
 */
#ifndef MMR_FUZZ_LEDGER_H
#define MMR_FUZZ_LEDGER_H

#include <jansson.h>

#include "../triage/run.h"
#include "ranges.h"

#define MMR_LEDGER_FILE "ledger.jsonl"

/* What cases come to; all of them are sums. */
struct mmr_ledger_counts {
	uint64_t rounds, rounds_void, ops, calls;
	uint64_t verdicts[MMR_VERDICTS]; /* cases by verdict */
};

/* One start of a soak.  Cases of sessions with equal seed, profile, gen,
 * shard and shards are the same cases under the same number. */
struct mmr_ledger_session {
	char id[33];	/* hex; filled by mmr_ledger_begin() when empty */
	char start[32]; /* UTC, ISO 8601; likewise */
	char tool[32], kernel[80], build[160], arch[16], profile[48];
	int cpus, gen, shard, shards;
	uint64_t seed;
	/* Read back: */
	char state[16]; /* of its end line; empty when there is none */
	double seconds; /* of its batches */
	struct mmr_ledger_counts counts;
	uint64_t findings; /* sightings */
	uint64_t batches;
};

/* Cases that ran when a soak was ended, by their seed. */
struct mmr_ledger_lost {
	char session[33];
	uint64_t index, seed;
};

/* A finding and how many cases showed it. */
struct mmr_ledger_finding {
	char id[64];
	uint64_t count;
};

/* A ledger as read. */
struct mmr_ledger_view {
	struct mmr_ledger_finding *findings;
	int nfindings;
	struct mmr_ledger_session *sessions;
	int nsessions;
	struct mmr_ledger_lost *lost;
	int nlost;
	uint64_t damaged; /* lines that are none of ours or cut short */
};

struct mmr_ledger;

/* Runs that are a sample: neither skipped nor failed nor void. */
uint64_t mmr_ledger_samples(const struct mmr_ledger_counts *c);
void mmr_ledger_sum(struct mmr_ledger_counts *to,
		    const struct mmr_ledger_counts *from);
/* {"cases":..,"rounds":..,"verdicts":{..}}, NULL: no memory. */
json_t *mmr_ledger_counts_json(const struct mmr_ledger_counts *c);
int mmr_ledger_same_cases(const struct mmr_ledger_session *a,
			  const struct mmr_ledger_session *b);

/*
 * Opens dir's ledger for a soak, and appends what a killed one left in
 * ledger.now.  0, or -errno with a sentence: -EBUSY when another process has
 * it.
 */
int mmr_ledger_open(const char *dir, struct mmr_ledger **out, char *text,
		    size_t n) __attribute__((warn_unused_result));
/* Appends the session.  Fills s->id and s->start. */
int mmr_ledger_begin(struct mmr_ledger *l, struct mmr_ledger_session *s)
	__attribute__((warn_unused_result));
/* Case number index is over.  -ENOSPC and others: it could not be kept. */
int mmr_ledger_add(struct mmr_ledger *l, uint64_t index,
		   const struct mmr_ledger_counts *c)
	__attribute__((warn_unused_result));
int mmr_ledger_finding(struct mmr_ledger *l, uint64_t index, uint64_t seed,
		       enum mmr_verdict verdict, const char *id)
	__attribute__((warn_unused_result));
/* session: the id of the one in which it was running. */
int mmr_ledger_lost(struct mmr_ledger *l, const char *session, uint64_t index,
		    uint64_t seed) __attribute__((warn_unused_result));
/* About once a second: disk follows; once a minute a batch is appended. */
int mmr_ledger_tick(struct mmr_ledger *l) __attribute__((warn_unused_result));
/* The last batch and the end line with this state (NULL: none, as after a
 * kill), and closes.  The first error; l is gone in any case. */
int mmr_ledger_close(struct mmr_ledger *l, const char *state);

/* Reads dir's ledger, the batch in ledger.now included; a missing one is
 * -ENOENT.  The caller calls mmr_ledger_view_free(). */
int mmr_ledger_read(const char *dir, struct mmr_ledger_view *v)
	__attribute__((warn_unused_result));
void mmr_ledger_view_free(struct mmr_ledger_view *v);
/* The numbers of all cases that are done of those that s means.  The caller
 * frees done->r. */
int mmr_ledger_done(const char *dir, const struct mmr_ledger_session *s,
		    struct mmr_ranges *done)
	__attribute__((warn_unused_result));

/*
 * Each line of the ledgers of n folders once, those of one session together,
 * into out's ledger (which may be one of them).  0 or -errno with a sentence.
 */
int mmr_ledger_merge(char *const *dirs, int n, const char *out, char *text,
		     size_t len) __attribute__((warn_unused_result));

#endif
