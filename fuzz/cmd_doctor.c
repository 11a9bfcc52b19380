// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace doctor: what this machine can and cannot do, and why. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "opts.h"

struct own {
	bool calibrate;
};

MMR_OPT_FLAG(set_calibrate, struct own, calibrate);

static const struct mmr_opt own_opts[] = {
	{"calibrate", NULL,
	 "measure the usual operations, store and show the table",
	 set_calibrate},
	{0},
};

static const struct mmr_command command = {
	.name = "doctor",
	.synopsis = "[--calibrate] [--json]",
	.about =
		"Asks this machine for everything that cases and evidence can "
		"use.  Each line is\n\"ok\" or \"no\", what it is about, and a "
		"sentence; a \"no\" never keeps the rest from\nworking.  "
		"With --calibrate it measures what operations take here: the "
		"bounds of\nskew=auto follow from that.",
	.examples = "  mmrace doctor | grep ^no     what is missing here\n"
		    "  mmrace doctor --calibrate    what operations take "
		    "here\n",
	.opts = own_opts,
	.groups = 0,
	.min_args = 0,
	.max_args = 0,
};

void mmr_doctor_add(struct mmr_doctor *d, bool ok, const char *what,
		    const char *fmt, ...)
{
	json_t *j = json_object(), *value;
	char text[500];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	value = json_string(text);
	json_object_set_new(j, "what", json_string(what));
	json_object_set_new(j, "ok", json_boolean(ok));
	/* NULL: bytes that are no UTF-8. */
	json_object_set_new(j, "text", value ? value : json_string("?"));
	json_array_append_new(d->checks, j);
}

static void print_text(const struct mmr_doctor *d)
{
	json_t *j;
	size_t i;

	json_array_foreach (d->checks, i, j)
		printf("%s  %s: %s\n",
		       json_is_true(json_object_get(j, "ok")) ? "ok" : "no",
		       json_string_value(json_object_get(j, "what")),
		       json_string_value(json_object_get(j, "text")));
}

static int calibrate(struct mmr_cmd_opts *o)
{
	char why[400] = "";
	json_t *table;
	int rc = mmr_opts_engine_start(o);

	if (rc)
		return rc;
	rc = mmr_doctor_calibrate(why, sizeof(why));
	if (rc && !mmr_engine_interrupted())
		mmr_opts_error("%s", why);
	if (o->json) {
		table = json_array();
		mmr_doctor_table(table);
		mmr_opts_print_json(json_pack("{s:o}", "calibration", table));
	} else {
		mmr_doctor_table(NULL);
	}
	mmr_opts_engine_stop();
	return rc ? MMR_EXIT_FAILED : MMR_EXIT_NOTHING;
}

int mmr_cmd_doctor(int argc, char **argv)
{
	struct mmr_doctor d = {0};
	struct mmr_cmd_opts o;
	struct own own = {0};
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return rc;
	if (own.calibrate)
		return calibrate(&o);
	d.checks = json_array();
	mmr_doctor_machine(&d);
	mmr_doctor_watch(&d);
	mmr_doctor_calls(&d);
	mmr_doctor_calibration(&d);
	if (o.json) {
		mmr_opts_print_json(json_pack("{s:O}", "checks", d.checks));
	} else {
		print_text(&d);
	}
	json_decref(d.checks);
	return MMR_EXIT_NOTHING;
}
