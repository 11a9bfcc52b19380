// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints draws: places of the sweep, log-uniform times, ranges.  It needs
 * nothing but the headers, so that any compiler for any machine makes it, and
 * all have to print the same (tests/golden/draws.txt).
 */
#include <inttypes.h>
#include <stdio.h>

#include "../../ops/sweep.h"

int main(void)
{
	static const uint64_t rounds[] = {0,	1,	    2,	       4095,
					  4096, 1000000007, UINT64_MAX};
	static const uint64_t turns[] = {0, 1, 1000003};
	uint64_t tag, u;
	unsigned int d, r, t;

	for (tag = 0; tag < 3; tag++)
		for (d = 0; d < MMR_SWEEP_DIMS; d++)
			for (r = 0; r < sizeof(rounds) / sizeof(*rounds); r++)
				for (t = 0; t < 3; t++) {
					u = mmr_sweep(mmr_rng_key_str(tag, "s"),
						      d, rounds[r], turns[t]);
					printf("%" PRIu64 " %u %" PRIu64
					       " %" PRIu64 ": %016" PRIx64
					       " %" PRId64 " %" PRId64
					       " %" PRId64 " %" PRId64 "\n",
					       tag, d, rounds[r], turns[t], u,
					       mmr_sweep_log(u, 0),
					       mmr_sweep_log(u, 1),
					       mmr_rng_range(u, -22000, 4400),
					       mmr_sweep_aim(u, -22000, 4400,
							     -300, 900));
				}
	return 0;
}
