// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a soak says of the cost of its watching.  Red when a dear monitor is
 * passed over in silence, or a cheap one blamed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../fuzz/measure.h"

static char *cost(uint64_t monitor_ns, uint64_t heartbeat_ns, double part)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	mmr_measure_cost(f, monitor_ns, heartbeat_ns, part);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void cheap(void **state)
{
	char *text = cost(20000000, 30000000, 0.0199);

	(void)state;
	assert_string_equal(text,
			    "watching    1.99 % of the CPUs' time: monitor "
			    "20.0 ms, heartbeats 30.0 ms\n");
	free(text);
}

static void dear(void **state)
{
	char *text = cost(1500000000, 0, 0.0201);

	(void)state;
	assert_non_null(strstr(text, "watching    2.01 % of the CPUs' time: "
				     "monitor 1.50 s, heartbeats 0 ns\n"));
	assert_non_null(strstr(text, "that is more than 2 %: rates of this "
				     "soak are too small\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cheap),
		cmocka_unit_test(dear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
