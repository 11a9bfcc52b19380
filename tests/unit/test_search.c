// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The minimiser's search on its own (triage/min_search.h), on a toy oracle.
 *
 * Red when: the sequential test errs more often than it says; results count in
 * another order than that of their start; an element goes and what depends on
 * it stays; a void run is taken for a miss; another failure for the wanted one;
 * false alarms go unnoticed; a rate that slides away is kept, or one that
 * changed by itself is held against the candidates, or goes on being reduced
 * when it has fallen below that of false alarms; an interrupt or the end of the
 * budget loses what was accepted; two signatures of one failure are taken for
 * two.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../../ops/rng.h"
#include "../../triage/min_search.h"
#include "../../triage/replay.h"

#define N 24

struct toy {
	double p, f, other, voids;
	uint8_t core[N], helper[N]; /* without a helper half the rate */
	int parent[N];		    /* what it depends on, -1 nothing */
	uint64_t runs, stop_at, change_at;
	double change;
	struct mmr_rng rng;
	struct mmr_search_run slot[MMR_SEARCH_JOBS];
	int began[MMR_SEARCH_JOBS], next, asked; /* order of starts, waits */
	bool disorder;
	uint8_t kept[N]; /* what was accepted last */
	int accepts;
};

static double draw(struct toy *t)
{
	return (double)(mmr_rng_next(&t->rng) >> 11) / 9007199254740992.0;
}

static void toy_close(void *arg, uint8_t *gone)
{
	const struct toy *t = arg;
	int i;

	for (i = 0; i < N; i++)
		if (t->parent[i] >= 0 && gone[t->parent[i]])
			gone[i] = 1;
}

static double rate(const struct toy *t, const uint8_t *gone)
{
	double p = t->p;
	int i;

	if (t->change_at && t->runs >= t->change_at)
		p *= t->change;
	for (i = 0; gone && i < N; i++) {
		if (gone[i] && t->core[i])
			return 0;
		p *= gone[i] && t->helper[i] ? 0.5 : 1;
	}
	return p;
}

static int toy_start(void *arg, const struct mmr_search_query *q, int slot)
{
	struct toy *t = arg;
	struct mmr_search_run *r = &t->slot[slot];
	double p = 0;
	int i;

	if (t->stop_at && t->runs >= t->stop_at)
		return -ETIME;
	if (q->what == MMR_SEARCH_ORIGINAL)
		p = rate(t, NULL);
	if (q->what == MMR_SEARCH_BEST) {
		p = rate(t, q->gone);
		for (i = 0; q->gone && i < N && q->gone[i]; i++)
			;
		if (q->gone && i == N)
			return -ENOENT;
		/* Nothing is run that depends on what is gone. */
		for (i = 0; q->gone && i < N; i++)
			assert_false(!q->gone[i] && t->parent[i] >= 0 &&
				     q->gone[t->parent[i]]);
	}
	memset(r, 0, sizeof(*r));
	r->cost = 1;
	if (draw(t) < t->voids) {
		r->kind = MMR_SEARCH_VOID;
	} else if (draw(t) < t->other) {
		r->kind = MMR_SEARCH_FAIL;
		r->id = 1;
	} else if (draw(t) < p || draw(t) < t->f) {
		r->kind = MMR_SEARCH_FAIL;
	}
	t->began[slot] = t->next++;
	t->runs++;
	return 0;
}

static int toy_wait(void *arg, int slot, struct mmr_search_run *r)
{
	struct toy *t = arg;

	t->disorder |= t->began[slot] < t->asked;
	t->asked = t->began[slot];
	*r = t->slot[slot];
	return 0;
}

static void toy_drop(void *arg, int slot)
{
	(void)arg;
	(void)slot;
}

static int toy_accept(void *arg, const uint8_t *gone)
{
	struct toy *t = arg;

	memcpy(t->kept, gone, N);
	t->accepts++;
	return 0;
}

static double toy_now(void *arg)
{
	return (double)((struct toy *)arg)->runs;
}

static const struct mmr_search_ops ops = {
	.start = toy_start,
	.wait = toy_wait,
	.drop = toy_drop,
	.close = toy_close,
	.accept = toy_accept,
	.back = toy_accept,
	.now = toy_now,
};

static void toy_init(struct toy *t, double p, uint64_t seed)
{
	int i;

	memset(t, 0, sizeof(*t));
	t->p = p;
	t->rng.key = seed;
	for (i = 0; i < N; i++)
		t->parent[i] = -1;
	t->core[3] = t->core[11] = t->core[17] = 1;
}

/* Reference, null rate, and one pass. */
static int search(struct mmr_search *m, struct toy *t, int jobs, uint8_t *gone)
{
	struct mmr_search_ref ref = {
		.max_runs = 5000, .wait = 1e9, .limit = 1e9};
	struct mmr_search_reduce o = {.n = N, .prior = 0.12, .twice = true};
	int rc = mmr_search_init(m, &ops, t, jobs);

	memset(gone, 0, N);
	m->want = 0;
	if (!rc)
		rc = mmr_search_reference(m, &ref);
	if (!rc)
		rc = mmr_search_null(m, 1e9);
	if (!rc && !m->refused)
		rc = mmr_search_reduce(m, &o, gone);
	mmr_search_free(m);
	return rc;
}

static int wrong(const struct toy *t, const uint8_t *gone, int *over)
{
	int i, n = 0;

	for (i = 0; i < N; i++) {
		bool keep = t->core[i] || t->helper[i];

		n += gone[i] == keep;
		*over += gone[i] && t->core[i];
	}
	return n;
}

/* Of 60 searches, how many end with exactly what is needed. */
static int exact(const struct toy *like, int jobs, int *over)
{
	uint8_t gone[N];
	struct mmr_search m;
	double runs = 0;
	int i, n = 0;

	*over = 0;
	for (i = 0; i < 60; i++) {
		struct toy t = *like;

		t.rng.key = like->rng.key + (uint64_t)i;
		assert_int_equal(search(&m, &t, jobs, gone), 0);
		assert_false(t.disorder);
		n += !wrong(&t, gone, over);
		runs += (double)t.runs;
	}
	print_message("exact %d of 60, mean runs %.0f\n", n, runs / 60);
	return n;
}

static void test_sprt(void **state)
{
	struct mmr_rng rng = {42, 0};
	int side, i, errors[2] = {0, 0};

	(void)state;
	/* 4000 tests at either rate: errors of 2 % and 5 %. */
	for (side = 0; side < 2; side++)
		for (i = 0; i < 4000; i++) {
			struct mmr_sprt t;

			mmr_sprt_init(&t, 0.3, 0.1, 0.02, 0.05);
			while (mmr_sprt_state(&t) < 0) {
				double u = (double)(mmr_rng_next(&rng) >> 11) /
					   9007199254740992.0;

				mmr_sprt_add(&t, u < (side ? 0.3 : 0.1), 1);
			}
			errors[side] += mmr_sprt_state(&t) != side;
		}
	assert_in_range(errors[0], 1, 4000 * 3 / 100);
	assert_in_range(errors[1], 1, 4000 * 6 / 100);
}

static void test_jobs(void **state)
{
	struct toy t;
	int over, jobs;

	(void)state;
	for (jobs = 1; jobs <= 8; jobs += 7) {
		toy_init(&t, 0.4, 1000);
		assert_true(exact(&t, jobs, &over) >= 56);
		assert_int_equal(over, 0);
	}
}

/* 3 is used by four, of which one is needed; 20 by three, of which none is. */
static void test_dependents(void **state)
{
	struct toy t;
	int over;

	(void)state;
	toy_init(&t, 0.5, 2000);
	t.parent[4] = t.parent[5] = t.parent[6] = t.parent[11] = 3;
	t.parent[21] = t.parent[22] = t.parent[23] = 20;
	assert_true(exact(&t, 1, &over) >= 56);
	assert_int_equal(over, 0);
}

static void test_void_and_others(void **state)
{
	struct toy t;
	int over;

	(void)state;
	toy_init(&t, 0.5, 3000);
	t.voids = 0.4;
	assert_true(exact(&t, 2, &over) >= 50);
	assert_int_equal(over, 0);
	toy_init(&t, 0.3, 4000);
	t.other = 0.1;
	t.f = 0.005;
	assert_true(exact(&t, 1, &over) >= 54);
	assert_int_equal(over, 0);
}

static void test_false_alarms(void **state)
{
	uint8_t gone[N];
	struct mmr_search m;
	int i, refused = 0;

	(void)state;
	for (i = 0; i < 40; i++) {
		struct toy t;

		toy_init(&t, 0.2, 5000 + (uint64_t)i);
		t.f = 0.1;
		(void)!search(&m, &t, 1, gone);
		refused += m.refused;
	}
	print_message("refused %d of 40\n", refused);
	assert_true(refused >= 36);
}

/* Each helper that goes takes half of the rate: mostly both stay, where it is
 * high; without the control they would hardly ever. */
static void test_slide(void **state)
{
	struct toy t;
	int over;

	(void)state;
	toy_init(&t, 1, 6000);
	t.helper[5] = t.helper[6] = 1;
	assert_true(exact(&t, 1, &over) >= 36);
	assert_int_equal(over, 0);
}

/* The rate falls to a third on the way, of everything: that is no reason to
 * keep anything, nor to give up what is needed. */
static void test_change(void **state)
{
	struct toy t;
	int over;

	(void)state;
	toy_init(&t, 0.6, 7000);
	t.change_at = 90;
	t.change = 1.0 / 3;
	assert_true(exact(&t, 1, &over) >= 42);
	assert_int_equal(over, 0);
}

/* It falls to three times that of false alarms: what is left stays, and what
 * was taken before stays so. */
static void test_fade(void **state)
{
	int i, rc, over = 0, faded = 0, refused = 0, took = 0;
	uint8_t gone[N];
	struct mmr_search m;

	(void)state;
	for (i = 0; i < 40; i++) {
		struct toy t;

		toy_init(&t, 0.5, 7500 + (uint64_t)i);
		t.f = 0.005;
		t.change_at = 90;
		t.change = 0.03;
		rc = search(&m, &t, 1, gone);
		/* Refused: its false alarms were seen before its rate. */
		assert_int_equal(rc, m.faded || m.refused ? -ECANCELED : 0);
		assert_false(m.faded && m.refused);
		faded += m.faded;
		refused += m.refused;
		took += m.faded && t.accepts > 0;
		(void)wrong(&t, gone, &over);
	}
	print_message("faded %d, refused %d of 40, over %d\n", faded, refused,
		      over);
	assert_true(faded >= 30 && took >= 20);
	assert_true(over <= 1);
}

static void test_cut_off(void **state)
{
	uint8_t gone[N];
	struct mmr_search m;
	uint64_t at;
	int over = 0, some = 0, rc;

	(void)state;
	for (at = 1; at < 120; at += 3) {
		struct toy t;

		toy_init(&t, 0.8, 8000 + at);
		t.stop_at = at;
		rc = search(&m, &t, 3, gone);
		assert_true(rc == -ETIME || !rc);
		/* What it says is gone is what was accepted last. */
		assert_memory_equal(gone, t.kept, N);
		(void)wrong(&t, gone, &over);
		some += t.accepts > 0;
	}
	assert_int_equal(over, 0);
	assert_true(some > 10);
}

static void test_same_failure(void **state)
{
	static const char storm[] = "long-exit exit a<b<c<d";

	(void)state;
	assert_true(mmr_replay_same(storm, storm));
	/* Its stack was not caught; or it was a little further on. */
	assert_true(mmr_replay_same(storm, "long-exit exit"));
	assert_true(mmr_replay_same(storm, "long-exit exit x<b<c<d"));
	assert_true(mmr_replay_same("fault-storm write", "fault-storm write"));
	assert_false(mmr_replay_same("fault-storm write",
				     "fault-storm write+SIGSEGV"));
	assert_false(mmr_replay_same(storm, "long-exit exit x<y<c<z<w<v"));
	assert_false(mmr_replay_same(storm, "long-exit mmap a<b<c<d"));
	assert_false(mmr_replay_same(storm, "hang exit a<b<c<d"));
	assert_false(mmr_replay_same("hang", "crash"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sprt),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_dependents),
		cmocka_unit_test(test_void_and_others),
		cmocka_unit_test(test_false_alarms),
		cmocka_unit_test(test_slide),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_same_failure),
		cmocka_unit_test(test_fade),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
