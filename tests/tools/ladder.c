// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ladder evidence.json: exit 0 when its steps came in the order that they
 * promise: numbers rise (2 and 3, which disturb nobody, may change places), no
 * step begins before the one ahead of it is over,
 * and 1 to 4 were on the disk before the first of 5 to 7 began.  Else says
 * what is wrong.
 */
#include <jansson.h>
#include <stdio.h>

static double num(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

int main(int argc, char **argv)
{
	json_t *steps, *s;
	const json_t *spool;
	double end = 0, last = 0, safe;
	json_t *root;
	int bad = 0;
	size_t i;

	root = argc == 2 ? json_load_file(argv[1], 0, NULL) : NULL;
	steps = json_object_get(root, "steps");
	spool = json_object_get(root, "spool");
	if (!json_array_size(steps) || !json_is_object(spool)) {
		puts("no steps, or nothing of the spool");
		return 1;
	}
	safe = num(spool, "at_ms") + num(spool, "took_ms");
	json_array_foreach (steps, i, s) {
		const char *name =
			json_string_value(json_object_get(s, "name"));

		/* A sleeper's stack may come before perf. */
		if (num(s, "step") <= last &&
		    !(num(s, "step") == 2 && last == 3)) {
			printf("step %s comes after step %.0f\n", name, last);
			bad = 1;
		}
		/* Times are rounded when they are printed. */
		if (num(s, "at_ms") + 0.001 < end) {
			printf("step %s begins at %.3f, the one before ends "
			       "at %.3f\n",
			       name, num(s, "at_ms"), end);
			bad = 1;
		}
		end = num(s, "at_ms") + num(s, "took_ms");
		last = num(s, "step");
		if (last <= 4 && num(spool, "at_ms") + 0.001 < end) {
			printf("step %s is not in what went to the disk\n",
			       name);
			bad = 1;
		}
		if (last >= 5 && num(s, "at_ms") + 0.001 < safe) {
			printf("step %s begins before the disk has the rest\n",
			       name);
			bad = 1;
		}
	}
	json_decref(root);
	return bad;
}
