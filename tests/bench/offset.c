// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * offset CHILD [REPETITIONS]: how often mmrace-child hits a window again when
 * it replays the offset of a hit, against sweeping.
 *
 * The window is a page that is PROT_NONE for the time of one call, somewhere
 * within 20 us; a hit is a load that gets a SIGSEGV.  Each repetition puts it
 * elsewhere, sweeps until the first hit, takes that turn's offset from the
 * draws, and runs the same number of turns with it and without.  The 20 us are
 * a loop of one turn: that counts as one call, so nothing is aimed at the place
 * of the window, as nothing could be were it inside the kernel.
 */
#include <errno.h>

#include "../../ops/calib.h"
#include "../../ops/sweep.h"
#include "../../triage/calibrate.h"
#include "../../triage/stat.h"
#include "timing.h"

#define TURNS 400
#define LENGTH_NS 20000
#define TRIES 200

static const char *text_of(int64_t place, const char *skew)
{
	static char text[1024];

	snprintf(text, sizeof(text),
		 "mmrace-case 1\n\nprocess main\n  thread A cpu=0\n"
		 "    m0 = mmap len=1p prot=rw flags=private|anon|populate\n"
		 "    loop %d\n      sync s\n      loop 1\n"
		 "        delay %lldns\n        mprotect m0 prot=none\n"
		 "        mprotect m0 prot=rw\n        delay %lldns\n"
		 "      end\n    end\n"
		 "  thread B cpu=1\n    loop %d\n      sync s skew=%s\n"
		 "      read m0 len=1\n    end\n",
		 TURNS, (long long)place, (long long)(LENGTH_NS - place), TURNS,
		 skew);
	return text;
}

/* Statements: A mmap loop sync loop delay mprotect mprotect delay, B loop sync
 * read. */
enum { SYNC = 9, READ = 10 };

static uint64_t hits_of(struct bench_child *b)
{
	struct mmr_stat *st =
		MMR_AREA_AT(b->area, b->area->stats_off, struct mmr_stat);

	return atomic_load(&st[READ].errors);
}

/* The offset of a turn that hit, of those still in the ring of B. */
static bool find_offset(struct bench_child *b, uint64_t round, int64_t *ns)
{
	struct mmr_thread_slot *t = MMR_AREA_AT(b->area, b->area->threads_off,
						struct mmr_thread_slot);
	struct mmr_insn *in = MMR_AREA_AT(b->area, b->area->program.insns_off,
					  struct mmr_insn);
	uint32_t i, k;

	for (k = 0; k < b->area->program.ninsns; k++)
		if (in[k].stat == SYNC && in[k].op == MMR_OP_sync)
			break;
	for (i = 0; i < MMR_RING; i++) {
		const struct mmr_ring_entry *e = &t[1].ring[i];

		if (!e->seq || e->stat != READ || e->ret != -EFAULT)
			continue;
		/* Two operations a turn, numbered from 1. */
		*ns = mmr_sweep_aim(mmr_sweep(in[k].tag, in[k].dim, round,
					      (e->seq - 1) / 2),
				    in[k].arg[1].lo, in[k].arg[1].hi,
				    in[k].arg[2].lo, in[k].arg[2].hi);
		return true;
	}
	return false;
}

struct sum {
	uint64_t hits, turns;
};

static void run(const char *child, int64_t place, const char *skew,
		struct mmr_compile_opts *opts, struct sum *sum, bool *found,
		int64_t *ns)
{
	struct bench_child b;

	bench_run(&b, child, text_of(place, skew), opts);
	mmr_calibrate_add(b.c, b.area);
	sum->hits += hits_of(&b);
	sum->turns += TURNS;
	if (found)
		*found = find_offset(&b, opts->first_round, ns);
	bench_end(&b);
}

static void print(const char *name, const struct sum *s)
{
	double lo, hi;

	mmr_stat_interval(s->hits, s->turns, .95, &lo, &hi);
	printf("offset %-22s %6llu hits in %7llu turns: %.3f %% "
	       "(95 %%: %.3f to %.3f)\n",
	       name, (unsigned long long)s->hits, (unsigned long long)s->turns,
	       100 * (double)s->hits / (double)s->turns, 100 * lo, 100 * hi);
}

int main(int argc, char **argv)
{
	int reps = argc > 2 ? atoi(argv[2]) : 20, i, k, none = 0;
	struct mmr_compile_opts opts = {0};
	struct sum sweep = {0}, again = {0};
	double gain[1000];
	char skew[32];

	if (argc < 2 || reps < 1 || reps > 1000) {
		fprintf(stderr, "usage: offset CHILD [REPETITIONS]\n");
		return 2;
	}
	printf("offset: %d repetitions, load %s\n", reps, bench_load());
	opts.no_offsets = true;
	run(argv[1], 0, "auto", &opts, &(struct sum){0}, NULL, NULL);
	opts.no_offsets = false;
	for (i = 0; i < reps; i++) {
		struct sum s = {0}, a = {0};
		bool found = false;
		int64_t ns = 0, place;

		opts.seed = (uint64_t)i;
		place = (int64_t)mmr_rng_below(mmr_rng_key(opts.seed, 5),
					       LENGTH_NS);
		for (k = 0; k < TRIES && !found; k++) {
			opts.first_round = (uint64_t)k;
			run(argv[1], place, "auto", &opts, &s, &found, &ns);
		}
		if (!found) {
			none++;
			continue;
		}
		snprintf(skew, sizeof(skew), "%lldns", (long long)ns);
		for (; k > 0; k--)
			run(argv[1], place, skew, &opts, &a, NULL, NULL);
		gain[i - none] = (double)a.hits / (double)s.hits;
		sweep.hits += s.hits;
		sweep.turns += s.turns;
		again.hits += a.hits;
		again.turns += a.turns;
	}
	if (sweep.turns) {
		print("sweeping", &sweep);
		print("replaying the offset", &again);
		printf("offset: replay hits %.1f times as often (median of %d "
		       "places; %d had no hit to replay), load %s\n",
		       bench_quantile(gain, (size_t)(reps - none), .5),
		       reps - none, none, bench_load());
	}
	return 0;
}
