// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * monitor CASE CHILD PAIRS: what watching costs.  Runs the case with and
 * without the monitor in turn (on off off on ..., so that a drift of the
 * machine hits both), and compares operations a second.  Prints the median
 * ratio off/on of the pairs and how far they spread: with a spread of 5 % a
 * cost of 1 % cannot be told, and that is to be seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../triage/run.h"

#define MAX_PAIRS 100
#define RUN_NS 1500000000LL

static int rate(const struct mmr_case *c, bool watched, double *per_s)
{
	struct mmr_run_opts opts = {.seed = 1,
				    .rounds = 1000000000,
				    .budget_ns = RUN_NS,
				    .no_monitor = !watched};
	struct mmr_run_result res = {0};
	int err = mmr_run(c, &opts, &res);

	if (!err && res.verdict != MMR_NOTHING) {
		fprintf(stderr, "monitor: %s: %s\n",
			mmr_verdict_name(res.verdict), res.text);
		err = -1;
	}
	*per_s = res.wall_ns > 0 ? (double)res.ops * 1e9 / (double)res.wall_ns
				 : 0;
	mmr_run_result_free(&res);
	return err;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	double ratio[MAX_PAIRS], on, off;
	struct mmr_diag diag = {0};
	struct mmr_case *c = NULL;
	char text[400] = "";
	int i, n, err = 0;

	if (argc != 4)
		return 2;
	n = atoi(argv[3]);
	if (n < 1 || n > MAX_PAIRS)
		return 2;
	if (mmr_case_load(argv[1], &c, &diag, NULL, NULL)) {
		fprintf(stderr, "%s:%d:%d: %s\n", argv[1], diag.line, diag.col,
			diag.text);
		return 2;
	}
	if (mmr_engine_start(argv[2], text, sizeof(text))) {
		fprintf(stderr, "monitor: %s\n", text);
		return 3;
	}
	for (i = 0; i < n && !err; i++) {
		err = rate(c, i % 2 == 0, i % 2 == 0 ? &on : &off);
		if (!err)
			err = rate(c, i % 2 != 0, i % 2 != 0 ? &on : &off);
		ratio[i] = off > 0 ? on / off : 0;
		fprintf(stderr, "monitor: on %.0f, off %.0f operations/s\n", on,
			off);
	}
	mmr_engine_stop();
	mmr_case_free(c);
	if (err)
		return 3;
	qsort(ratio, (size_t)n, sizeof(*ratio), compare);
	printf("monitor: on/off %.4f (median of %d pairs, %.4f to %.4f; "
	       "target >= 0.99)\n",
	       ratio[n / 2], n, ratio[n / 10], ratio[n - 1 - n / 10]);
	return 0;
}
