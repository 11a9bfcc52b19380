// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The perf step of the evidence ladder (2): how many page faults, at which
 * addresses, and where the culprit is while it is on a CPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../ops/clock.h"
#include "engine.h"
#include "ladder.h"

#define SLICES 6
#define FAULT_SLICES 2 /* of them with faults sampled */
#define SLICE_MS 50
#define SYMS_MAX 1024
#define SYM_LEN 96
#define SHOWN 4 /* chains of the profile in stacks.txt */

/* Different kernel call chains among the samples, and how many of them there
 * are in all. */
static int kernel_paths(const struct mmr_perf_sum *sum, uint64_t *samples)
{
	int i, n = 0;

	*samples = 0;
	for (i = 0; i < sum->nchains; i++) {
		if (!sum->chains[i].nkernel)
			continue;
		n++;
		*samples += sum->chains[i].n;
	}
	return n;
}

static json_t *chains_json(const struct mmr_perf_sum *sum)
{
	json_t *list = json_array(), *ips;
	int i, k;

	for (i = 0; i < sum->nchains; i++) {
		ips = json_array();
		for (k = 0; k < sum->chains[i].nips; k++)
			json_array_append_new(
				ips, json_sprintf("0x%" PRIx64,
						  sum->chains[i].ips[k]));
		json_array_append_new(
			list, json_pack("{s:i, s:i, s:o}", "samples",
					(int)sum->chains[i].n, "kernel_frames",
					sum->chains[i].nkernel, "frames", ips));
	}
	return list;
}

static json_t *addrs_json(struct mmr_ladder *l, const struct mmr_perf_sum *sum)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < sum->naddrs; i++) {
		if (sum->addrs[i].n > l->addr_of) {
			l->addr_of = sum->addrs[i].n;
			l->addr = sum->addrs[i].addr;
		}
		json_array_append_new(
			list,
			json_pack(
				"{s:o, s:I}", "address",
				json_sprintf("0x%" PRIx64, sum->addrs[i].addr),
				"samples", (json_int_t)sum->addrs[i].n));
	}
	l->addr_all = sum->samples;
	return list;
}

/*
 * Watches for 300 ms; stops when the culprit moves.  Its time in ms.  Faults
 * are counted all the time; where they are is sampled first, and where the CPU
 * is only then, or the profile would be one of the sampling.
 */
static double perf_watch(struct mmr_ladder *l, struct mmr_perf *p,
			 struct mmr_perf *profile, struct mmr_perf_sum *sums)
{
	const struct timespec nap = {0, SLICE_MS * 1000000L};
	int64_t begin = mmr_clock_monotonic(), last = begin, t;
	uint64_t faults = 0, f;
	bool profiled = false;
	int i;

	for (i = 0; i < SLICES && !mmr_ladder_moved(l); i++) {
		/* On a busy machine it may not have run yet. */
		if (!profiled && i >= FAULT_SLICES &&
		    (sums[0].samples || i >= SLICES - 2)) {
			profiled = true;
			mmr_perf_stop_samples(p);
			if (mmr_perf_profile_open(l->tid, profile))
				mmr_ladder_missing(
					l, "perf: no profile of CPU time");
		}
		nanosleep(&nap, NULL);
		f = mmr_perf_faults(p);
		t = mmr_clock_monotonic();
		mmr_perf_drain(p, &sums[0]);
		mmr_perf_drain(profile, &sums[1]);
		mmr_timeline_faults(
			l->timeline,
			l->base.flag_us + (double)(t - l->t0_ns) / 1e3,
			l->s->proc_slot + 1,
			(double)(f - faults) * 1e9 / (double)(t - last));
		faults = f;
		last = t;
	}
	l->faults = faults;
	return (double)(last - begin) / 1e6;
}

static void perf_refused(struct mmr_ladder *l, int err)
{
	char *paranoid =
		mmr_ladder_read("/proc/sys/kernel/perf_event_paranoid", 16);

	if (paranoid)
		paranoid[strcspn(paranoid, "\n")] = '\0';
	mmr_ladder_missing(l, "perf: %s (perf_event_paranoid is %s)",
			   strerror(err), paranoid ? paranoid : "unknown");
	free(paranoid);
}

const char *mmr_ladder_perf(struct mmr_ladder *l)
{
	struct mmr_perf_sum *sums = calloc(2, sizeof(*sums));
	struct mmr_perf p, profile;
	int64_t switches;
	double ms;
	json_t *j;
	int err;

	if (!sums)
		return "no memory";
	err = mmr_perf_open(l->tid, &p);
	if (err) {
		perf_refused(l, -err);
		free(sums);
		return "refused";
	}
	mmr_perf_none(&profile);
	if (p.user_only)
		mmr_ladder_missing(l, "perf: user mode only, by "
				      "perf_event_paranoid");
	ms = perf_watch(l, &p, &profile, sums);
	if (ms > 0) {
		l->faults_per_s = (double)l->faults * 1e3 / ms;
		l->paths = kernel_paths(&sums[1], &l->path_samples);
		switches = mmr_perf_switches(&p);
		j = json_pack(
			"{s:f, s:I, s:f, s:I, s:I, s:f, s:b, s:I, s:I, s:o, "
			"s:o, s:o}",
			"window_ms", ms, "page_faults", (json_int_t)l->faults,
			"faults_per_s", l->faults_per_s, "context_switches",
			(json_int_t)switches, "migrations",
			(json_int_t)mmr_perf_migrations(&p), "task_clock_ms",
			(double)mmr_perf_clock_ns(&p) / 1e6, "user_only",
			p.user_only, "samples", (json_int_t)sums[0].samples,
			"lost", (json_int_t)sums[0].lost, "addresses",
			addrs_json(l, &sums[0]), "chains",
			chains_json(&sums[0]), "cpu_profile",
			chains_json(&sums[1]));
		json_object_set_new(l->root, "perf", j);
	}
	mmr_perf_close(&profile);
	mmr_perf_close(&p);
	free(sums);
	return "";
}

/* Puts names in place of addresses in one list of chains. */
static void name_chains(struct mmr_ladder *l, json_t *chains, char *names)
{
	uint64_t ips[SYMS_MAX];
	char exe[32];
	json_t *chain, *ip;
	size_t i, k;
	int n = 0;

	memset(names, 0, (size_t)SYMS_MAX * SYM_LEN);
	json_array_foreach (chains, i, chain)
		json_array_foreach (json_object_get(chain, "frames"), k, ip)
			if (n < SYMS_MAX)
				ips[n++] = strtoull(json_string_value(ip), NULL,
						    16);
	if (!n)
		return;
	/* When the last step ended the stall the process may have gone; what
	 * it ran is still there. */
	snprintf(exe, sizeof(exe), "/proc/%d/exe", l->pid);
	mmr_perf_user_names(access(exe, R_OK) ? mmr_engine_child() : exe, ips,
			    n, names, SYM_LEN);
	mmr_perf_kernel_names(ips, n, names, SYM_LEN);
	n = 0;
	json_array_foreach (chains, i, chain)
		json_array_foreach (json_object_get(chain, "frames"), k, ip) {
			if (n < SYMS_MAX && names[(size_t)n * SYM_LEN])
				json_string_set(ip,
						names + (size_t)n * SYM_LEN);
			n++;
		}
}

void mmr_ladder_symbols(struct mmr_ladder *l)
{
	json_t *perf = json_object_get(l->root, "perf");
	char *names = malloc((size_t)SYMS_MAX * SYM_LEN);

	if (perf && names) {
		name_chains(l, json_object_get(perf, "chains"), names);
		name_chains(l, json_object_get(perf, "cpu_profile"), names);
	}
	free(names);
}

static double samples_of(const json_t *chain)
{
	return json_number_value(json_object_get(chain, "samples"));
}

void mmr_ladder_profile(struct mmr_ladder *l)
{
	const json_t *p = json_object_get(json_object_get(l->root, "perf"),
					  "cpu_profile");
	const json_t *c, *best, *frame;
	double all = 0, below = 1e18;
	size_t i, k, shown;

	json_array_foreach ((json_t *)(uintptr_t)p, i, c)
		all += samples_of(c);
	if (all <= 0)
		return;
	fprintf(l->stacks, "while on a CPU (perf, %.0f samples):\n", all);
	/* The most frequent ones first; equals in the order they came in. */
	for (shown = 0; shown < SHOWN; shown++) {
		best = NULL;
		json_array_foreach ((json_t *)(uintptr_t)p, i, c)
			if (samples_of(c) < below &&
			    (!best || samples_of(c) > samples_of(best)))
				best = c;
		if (!best)
			break;
		below = samples_of(best);
		fprintf(l->stacks, "%.0f %%:\n", below * 100 / all);
		json_array_foreach (json_object_get(best, "frames"), k, frame)
			fprintf(l->stacks, "  %s\n", json_string_value(frame));
	}
	fputc('\n', l->stacks);
}
