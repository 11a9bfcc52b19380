// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trace FILE: exit 0 when FILE is a trace in the JSON object format of Chrome
 * ("Trace Event Format", Google, 2016), as strict as the importer of Perfetto:
 * each phase has the fields that it needs in the types that it needs, times
 * are finite and not negative, slices of one thread lie in each other or apart
 * but never across, and every row that has events has a name.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slice {
	json_int_t pid, tid;
	double from, to;
};

static int bad;

static void wrong(size_t i, const char *what)
{
	printf("event %zu: %s\n", i, what);
	bad = 1;
}

static int is_time(const json_t *e, const char *key)
{
	const json_t *v = json_object_get(e, key);

	return json_is_number(v) && isfinite(json_number_value(v)) &&
	       json_number_value(v) >= 0;
}

static const char *str(const json_t *e, const char *key)
{
	const char *s = json_string_value(json_object_get(e, key));

	return s ? s : "";
}

static json_int_t num(const json_t *e, const char *key)
{
	return json_integer_value(json_object_get(e, key));
}

static void check_counter(size_t i, const json_t *e)
{
	json_t *args = json_object_get(e, "args");
	const char *key;
	json_t *v;

	if (!json_object_size(args))
		wrong(i, "a counter without a series");
	json_object_foreach (args, key, v)
		if (!json_is_number(v))
			wrong(i, "a counter's series is no number");
}

static void check_meta(size_t i, const json_t *e)
{
	if (strcmp(str(e, "name"), "process_name") &&
	    strcmp(str(e, "name"), "thread_name"))
		wrong(i, "metadata of an unknown name");
	if (!*str(json_object_get(e, "args"), "name"))
		wrong(i, "metadata without args.name");
}

static void check_event(size_t i, const json_t *e)
{
	const char *ph = str(e, "ph");

	if (!json_is_object(e) || !*str(e, "name"))
		wrong(i, "no object, or no name");
	if (!json_is_integer(json_object_get(e, "pid")))
		wrong(i, "pid is no integer");
	if (strcmp(ph, "C") && !json_is_integer(json_object_get(e, "tid")))
		wrong(i, "tid is no integer");
	if (strcmp(ph, "M") && !is_time(e, "ts"))
		wrong(i, "ts is no time");
	if (!strcmp(ph, "X")) {
		if (!is_time(e, "dur"))
			wrong(i, "a slice without a duration");
	} else if (!strcmp(ph, "i")) {
		if (strlen(str(e, "s")) != 1 || !strchr("gpt", *str(e, "s")))
			wrong(i, "an instant's scope is not g, p or t");
	} else if (!strcmp(ph, "C")) {
		check_counter(i, e);
	} else if (!strcmp(ph, "M")) {
		check_meta(i, e);
	} else {
		wrong(i, "an unknown phase");
	}
}

static int by_row_and_start(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to < y->to) - (x->to > y->to);
}

static int named(json_t *events, const struct slice *s)
{
	json_t *e;
	size_t i;

	json_array_foreach (events, i, e)
		if (!strcmp(str(e, "name"), "thread_name") &&
		    num(e, "pid") == s->pid && num(e, "tid") == s->tid)
			return 1;
	return 0;
}

/* Sorted by start, a slice that begins inside of another one has to end
 * there.  A nanosecond is what rounding makes. */
static void check_nesting(json_t *events)
{
	size_t i, n = 0, size = json_array_size(events), depth = 0;
	struct slice *s = calloc(size + 1, sizeof(*s));
	double *open = calloc(size + 1, sizeof(*open));
	json_t *e;

	if (!s || !open)
		exit(2);
	json_array_foreach (events, i, e) {
		if (strcmp(str(e, "ph"), "X"))
			continue;
		s[n].pid = num(e, "pid");
		s[n].tid = num(e, "tid");
		s[n].from = json_number_value(json_object_get(e, "ts"));
		s[n].to = s[n].from +
			  json_number_value(json_object_get(e, "dur"));
		n++;
	}
	qsort(s, n, sizeof(*s), by_row_and_start);
	for (i = 0; i < n; i++) {
		if (!i || s[i].pid != s[i - 1].pid ||
		    s[i].tid != s[i - 1].tid) {
			depth = 0;
			if (!named(events, &s[i]))
				wrong(i, "a row without a name");
		}
		while (depth && open[depth - 1] <= s[i].from + 0.001)
			depth--;
		if (depth && s[i].to > open[depth - 1] + 0.001)
			wrong(i, "two slices of a thread lie across");
		open[depth++] = s[i].to;
	}
	free(open);
	free(s);
}

int main(int argc, char **argv)
{
	json_error_t error;
	json_t *events, *e;
	const char *unit;
	json_t *root;
	size_t i;

	if (argc != 2)
		return 2;
	root = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
	events = json_object_get(root, "traceEvents");
	if (!json_is_array(events)) {
		printf("%s: %s\n", argv[1],
		       root ? "no traceEvents" : error.text);
		return 1;
	}
	unit = str(root, "displayTimeUnit");
	if (strcmp(unit, "ms") && strcmp(unit, "ns"))
		wrong(0, "displayTimeUnit is neither ms nor ns");
	json_array_foreach (events, i, e)
		check_event(i, e);
	check_nesting(events);
	json_decref(root);
	return bad;
}
