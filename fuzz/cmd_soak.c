// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace soak: seed after seed until the time is over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/cap.h"
#include "../triage/evidence.h"
#include "opts.h"
#include "soak.h"
#include "soak_impl.h"

#define OUT_DIR "mmrace-out"
#define QUOTA_MIN (256LL << 10)

static int set_cases(void *own, const char *value)
{
	struct mmr_soak_opts *o = own;

	if (!mmr_opts_u64(value, &o->cases) && o->cases)
		return 0;
	mmr_opts_error("--cases %s: wants a number from 1", value);
	return -EINVAL;
}

static int set_jobs(void *own, const char *value)
{
	struct mmr_soak_opts *o = own;
	uint64_t n;

	if (!mmr_opts_u64(value, &n) && n && n <= MMR_SOAK_JOBS) {
		o->jobs = (int)n;
		return 0;
	}
	mmr_opts_error("--jobs %s: wants 1 to %d", value, MMR_SOAK_JOBS);
	return -EINVAL;
}

static int set_shard(void *own, const char *value)
{
	struct mmr_soak_opts *o = own;
	const char *slash = strchr(value, '/');
	uint64_t i, n;
	char left[24];

	if (slash && (size_t)(slash - value) < sizeof(left)) {
		memcpy(left, value, (size_t)(slash - value));
		left[slash - value] = '\0';
		if (!mmr_opts_u64(left, &i) && !mmr_opts_u64(slash + 1, &n) &&
		    n && n <= 1000000 && i < n) {
			o->shard = (int)i;
			o->shards = (int)n;
			return 0;
		}
	}
	mmr_opts_error("--shard %s: wants I/N with I from 0 to N-1", value);
	return -EINVAL;
}

MMR_OPT_FLAG(set_kmsg, struct mmr_soak_opts, kmsg);
MMR_OPT_FLAG(set_sync, struct mmr_soak_opts, sync);

static int set_revisit(void *own, const char *value)
{
	struct mmr_soak_opts *o = own;
	uint64_t n;

	if (!mmr_opts_u64(value, &n) && n <= 90) {
		o->revisit = (int)n;
		return 0;
	}
	mmr_opts_error("--revisit %s: wants 0 to 90 (percent)", value);
	return -EINVAL;
}

static int set_quarantine(void *own, const char *value)
{
	struct mmr_soak_opts *o = own;
	uint64_t n;

	if (!mmr_opts_u64(value, &n) && n && n <= 100000) {
		o->quarantine = (int)n;
		return 0;
	}
	mmr_opts_error("--quarantine %s: wants a number from 1", value);
	return -EINVAL;
}

MMR_OPT_FLAG(set_gentle, struct mmr_soak_opts, gentle);
MMR_OPT_FLAG(set_resume, struct mmr_soak_opts, resume);

static int set_shrink_guest(void *own, const char *value)
{
	((struct mmr_soak_opts *)own)->shrink.kernel = value;
	return 0;
}

static int set_metrics(void *own, const char *value)
{
	((struct mmr_soak_opts *)own)->metrics = value;
	return 0;
}

static int set_log(void *own, const char *value)
{
	((struct mmr_soak_opts *)own)->log = value;
	return 0;
}

static int set_quota(void *own, const char *value)
{
	struct mmr_soak_opts *o = own;
	enum mmr_unit unit;
	int64_t size;

	if (!mmr_case_parse_size(value, &size, &unit) &&
	    unit == MMR_UNIT_BYTE && size >= QUOTA_MIN) {
		o->quota = (uint64_t)size;
		return 0;
	}
	mmr_opts_error("--quota %s: wants a size from 256K, such as 4G", value);
	return -EINVAL;
}

MMR_OPT_FLAG(set_until_found, struct mmr_soak_opts, until_found);

static const struct mmr_opt own_opts[] = {
	{"cases", "N", "at most the first N cases (of all shards together)",
	 set_cases},
	{"jobs", "N", "cases at the same time (default 1)", set_jobs},
	{"until-found", NULL, "end with the first finding", set_until_found},
	{"shard", "I/N", "the I-th of N parts of the seeds (0 to N-1)",
	 set_shard},
	{"resume", NULL,
	 "go on where the soak that wrote --out ended: same seeds, each once",
	 set_resume},
	{"revisit", "PERCENT",
	 "of the time goes to suspects and findings: again, smaller (10)",
	 set_revisit},
	{"shrink-guest", "KERNEL",
	 "findings are made smaller in a guest of this kernel, not here",
	 set_shrink_guest},
	{"quarantine", "N",
	 "stop when N tasks could not be killed (default 32)", set_quarantine},
	{"gentle", NULL,
	 "for a machine that others use: lowest priority, a tenth of its "
	 "memory",
	 set_gentle},
	{"metrics", "FILE",
	 "keep numbers for Prometheus in FILE (node_exporter's textfile)",
	 set_metrics},
	{"log", "FILE",
	 "a status line a minute and all messages, rotated at 4 MiB, 3 kept",
	 set_log},
	{"quota", "SIZE",
	 "what --out may hold (default 2G, or a tenth of the free space)",
	 set_quota},
	{"kmsg", NULL, "name each case in the kernel log before it runs",
	 set_kmsg},
	{"sync", NULL, "each case is on the disk before it runs (slow)",
	 set_sync},
	{0},
};

static const struct mmr_command command = {
	.name = "soak",
	.synopsis = "[--time T] [--cases N] [--seed N] [--jobs N] [--out DIR] "
		    "...",
	.about =
		"Makes a case from each seed, runs it under watch, and goes on "
		"to the next, until\nthe time is over, the cases are done, or "
		"Ctrl-C; results come in any case.  What\nlooks wrong is "
		"stored below DIR/findings with all evidence, and run again "
		"for a\nrate.  Without --seed the first seed is drawn and "
		"printed, so that any soak can\nbe repeated.\n\n"
		"It stresses the kernel by design: not for a machine that "
		"others depend on.",
	.examples =
		"  mmrace soak --time 60                     a minute of "
		"everything\n"
		"  mmrace soak --time 8h --jobs 2 --sync     a night; also a "
		"panic leaves its case\n"
		"  mmrace soak --resume --time 8h            the next night, "
		"from where it ended\n"
		"  mmrace soak --profile mrelease --seed 7   only exits, from "
		"seed 7 on\n"
		"  mmrace soak --profile hugetlb --allow-settings   raises the "
		"pool, puts it back\n"
		"  mmrace replay --seed 0x2a --runs 100      one of its cases "
		"again\n",
	.groups = MMR_OPTS_RUN | MMR_OPTS_SEED | MMR_OPTS_TIME | MMR_OPTS_OUT,
	.opts = own_opts,
	.max_args = 0,
};

int mmr_cmd_soak(int argc, char **argv)
{
	struct mmr_soak_opts own = {
		.jobs = 1, .shards = 1, .revisit = 10, .quarantine = 32};
	struct mmr_cmd_opts o;
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return rc;
	own.profile = o.profile;
	own.profile_given = o.profile_name != NULL;
	own.seed = o.seed;
	own.seed_given = o.has_seed;
	own.time_ns = o.time_ns;
	own.out = o.out ? o.out : OUT_DIR;
	own.quiet = o.quiet;
	own.json = o.json;
	mmr_cap_yield();
	if (own.gentle && mmr_cap_gentle())
		fprintf(stderr, "mmrace soak: --gentle: the priority cannot be "
				"lowered\n");
	/* The same guests go on while they are healthy, one for each job. */
	o.guest.reuse = true;
	o.guest.count = own.jobs;
	if (own.shrink.kernel) {
		const char *kernel = own.shrink.kernel;

		own.shrink = o.guest; /* its size is that of --guest-mem .. */
		own.shrink.kernel = kernel;
		own.shrink.reuse = false;
		own.shrink.count = 1;
	}
	mmr_evidence_spool(own.out);
	rc = mmr_opts_engine_start(&o);
	if (rc)
		return rc;
	own.run = o.run;
	rc = mmr_soak(&own);
	mmr_opts_engine_stop();
	return rc;
}
