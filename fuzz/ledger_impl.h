/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of ledger.c (writes) and ledger_read.c (reads, joins). */
#ifndef MMR_FUZZ_LEDGER_IMPL_H
#define MMR_FUZZ_LEDGER_IMPL_H

#include "ledger.h"

#define MMR_LEDGER_NOW "ledger.now"
#define MMR_LEDGER_RANGES 96 /* of one batch; more than jobs can leave open */

/* Cases that are finished and not yet in the ledger. */
struct mmr_ledger_batch {
	char session[40]; /* empty: there is none */
	uint64_t number;
	int64_t ns; /* since the batch before */
	struct mmr_ledger_counts counts;
	uint64_t nranges;
	struct mmr_range ranges[MMR_LEDGER_RANGES];
};

/* The newer one of two slots with a right sum is the batch. */
struct mmr_ledger_slot {
	uint64_t sum;
	uint64_t generation; /* from 1 */
	struct mmr_ledger_batch batch;
};

struct mmr_ledger_now {
	char magic[16];
	uint64_t size; /* of this structure: another version's is left alone */
	struct mmr_ledger_slot slots[2];
};

#define MMR_LEDGER_MAGIC "mmrace ledger 1"

/* The sum that belongs into a slot. */
uint64_t mmr_ledger_slot_sum(const struct mmr_ledger_slot *s);
/* The batch of a mapped or read ledger.now, NULL when there is none. */
const struct mmr_ledger_slot *
mmr_ledger_slot_valid(const struct mmr_ledger_now *now);
/* Its line, without newline, for the caller to free; NULL: no memory. */
char *mmr_ledger_batch_line(const struct mmr_ledger_batch *b);

#endif
