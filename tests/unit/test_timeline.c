// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The timeline: red when an event is not what the trace event format asks
 * for, when an entry that was never written becomes a slice, or when the text
 * does not show who is stuck.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../ops/compile.h"
#include "../../triage/timeline.h"

static const char text[] = "mmrace-case 1\n"
			   "\n"
			   "process main\n"
			   "  thread A\n"
			   "    m0 = mmap len=1p prot=rw flags=shared|anon\n"
			   "    write m0\n"
			   "  thread B\n"
			   "    signal go\n";

struct world {
	struct mmr_case *c;
	struct mmr_area *a;
};

static struct mmr_thread_slot *slot(struct mmr_area *a, int i)
{
	return MMR_AREA_AT(a, a->threads_off, struct mmr_thread_slot) + i;
}

static int make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	size_t head = (sizeof(*w->a) + 63) & ~(size_t)63;
	struct mmr_diag diag;
	int i;

	*state = w;
	if (mmr_case_parse(text, strlen(text), &w->c, &diag, NULL, NULL))
		return -1;
	w->a = aligned_alloc(64, head + 2 * sizeof(struct mmr_thread_slot) +
					 2 * sizeof(struct mmr_proc_slot));
	if (!w->a)
		return -1;
	memset(w->a, 0,
	       head + 2 * sizeof(struct mmr_thread_slot) +
		       2 * sizeof(struct mmr_proc_slot));
	w->a->threads_off = head;
	w->a->procs_off = head + 2 * sizeof(struct mmr_thread_slot);
	w->a->clock.hz = 1000000000;
	w->a->clock.ns_mult = w->a->clock.tick_mult = 1ULL << 32;
	w->a->thread_slots = 2;
	w->a->proc_slots = 1;
	for (i = 0; i < 2; i++) {
		slot(w->a, i)->state = MMR_THREAD_RUNNING;
		slot(w->a, i)->thread = (uint16_t)i;
		slot(w->a, i)->host_tid = 100 + i;
	}
	for (i = 0; i < 20; i++) { /* 1 us each, every 5 us */
		struct mmr_ring_entry *e = &slot(w->a, 0)->ring[i];

		e->seq = (uint32_t)i + 1;
		e->stat = i % 2;
		e->start = 1000000 + (uint64_t)i * 5000;
		e->end = e->start + 1000;
		e->ret = i == 7 ? -22 : 0;
	}
	slot(w->a, 0)->stmt = 2;
	slot(w->a, 0)->start = 1100000;
	return 0;
}

static int drop(void **state)
{
	struct world *w = *state;

	mmr_case_free(w->c);
	free(w->a);
	free(w);
	return 0;
}

static json_t *build(struct world *w)
{
	struct mmr_timeline_base base;
	json_t *t = mmr_timeline_build(w->c, w->a, 0, 2100000, &base);

	assert_non_null(t);
	assert_int_equal(base.ticks, 1000000);
	assert_true(base.flag_us > 1099 && base.flag_us < 1101);
	mmr_timeline_flag(t, base.flag_us, "fault-storm");
	mmr_timeline_faults(t, base.flag_us, 1, 700000);
	mmr_timeline_step(t, base.flag_us, 300, "perf", false);
	return t;
}

static void valid_events(void **state)
{
	json_t *t = build(*state), *e, *list;
	int slices = 0, counters = 0, instants = 0, unfinished = 0;
	const char *ph;
	size_t i;

	list = json_object_get(t, "traceEvents");
	assert_true(json_is_array(list));
	json_array_foreach (list, i, e) {
		ph = json_string_value(json_object_get(e, "ph"));
		assert_non_null(ph);
		assert_true(json_is_string(json_object_get(e, "name")));
		assert_true(json_is_integer(json_object_get(e, "pid")));
		if (*ph == 'M')
			continue;
		assert_true(json_is_number(json_object_get(e, "ts")));
		assert_true(json_number_value(json_object_get(e, "ts")) >= 0);
		counters += *ph == 'C';
		instants += *ph == 'i';
		if (*ph != 'X')
			continue;
		assert_true(json_is_number(json_object_get(e, "dur")));
		slices += !strcmp(json_string_value(json_object_get(e, "cat")),
				  "op");
		unfinished += json_is_true(json_object_get(
			json_object_get(e, "args"), "unfinished"));
	}
	assert_int_equal(slices, 21);
	assert_int_equal(unfinished, 1);
	assert_int_equal(counters, 1);
	assert_int_equal(instants, 1);
	json_decref(t);
}

static void torn_entries(void **state)
{
	struct world *w = *state;
	json_t *t, *e;
	int slices = 0;
	size_t i;

	slot(w->a, 0)->ring[3].end = 0;		 /* begun, not finished */
	slot(w->a, 0)->ring[4].seq = 0;		 /* never used */
	slot(w->a, 0)->ring[5].end = UINT64_MAX; /* after the flag */
	t = build(w);
	json_array_foreach (json_object_get(t, "traceEvents"), i, e)
		slices += json_is_string(json_object_get(e, "cat")) &&
			  !strcmp(json_string_value(json_object_get(e, "cat")),
				  "op");
	assert_int_equal(slices, 18);
	json_decref(t);
}

static void drawn(void **state)
{
	json_t *t = build(*state);
	char *out = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	assert_non_null(f);
	mmr_timeline_text(t, f);
	fclose(f);
	assert_non_null(strstr(out, "A (tid 100) |"));
	assert_non_null(strstr(out, "B (tid 101) |"));
	assert_non_null(strstr(out, "==>|"));
	assert_non_null(strstr(out, "write m0  -- not finished after 1000 us"));
	assert_non_null(strstr(out, "m mmap"));
	free(out);
	json_decref(t);
	/* What is not a timeline is no reason to stop. */
	out = NULL;
	f = open_memstream(&out, &len);
	assert_non_null(f);
	mmr_timeline_text(NULL, f);
	fclose(f);
	assert_non_null(strstr(out, "no operations"));
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(valid_events, make, drop),
		cmocka_unit_test_setup_teardown(torn_entries, make, drop),
		cmocka_unit_test_setup_teardown(drawn, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
