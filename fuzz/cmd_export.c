// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace export: a case as a program that needs nothing of mmrace. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/export.h"
#include "../triage/finding.h"
#include "opts.h"

struct own {
	const char *to;
};

static int set_to(void *own, const char *value)
{
	struct own *o = own;

	o->to = value;
	if (!strcmp(value, "c"))
		return 0;
	if (!strcmp(value, "ltp") || !strcmp(value, "kselftest"))
		mmr_opts_error("--to %s is not available in this version; "
			       "--to c is",
			       value);
	else
		mmr_opts_error("--to %s: wants c", value);
	return -EINVAL;
}

static const struct mmr_opt own_opts[] = {
	{"to", "c", "one C file that needs only libc", set_to},
	{0},
};

static const struct mmr_command command = {
	.name = "export",
	.synopsis = "CASE --to c [-o FILE]",
	.about = "Turns a case into one C file that compiles with gcc -Wall "
		 "-pthread and shows the\nsame symptom: exit 0 healthy, 1 "
		 "symptom seen, 4 it cannot run here.",
	.examples = "  mmrace export x.case --to c -o repro.c\n"
		    "  gcc -Wall -pthread -o repro repro.c && ./repro\n",
	.groups = MMR_OPTS_FILE | MMR_OPTS_SEED,
	.opts = own_opts,
	.max_args = 1,
};

static int put_out(const struct mmr_cmd_opts *o, const char *text, size_t len)
{
	int rc;

	if (o->json) {
		mmr_opts_print_json(
			json_pack("{s:s, s:s}", "to", "c", "source", text));
		return 0;
	}
	if (!o->out) {
		fwrite(text, 1, len, stdout);
		return 0;
	}
	rc = mmr_write_file(o->out, text, len);
	return rc ? mmr_opts_error("%s: %s", o->out, strerror(-rc)) : 0;
}

int mmr_cmd_export(int argc, char **argv)
{
	struct mmr_diag diag = {0};
	struct own own = {0};
	struct mmr_cmd_opts o;
	struct mmr_case *c;
	char *text = NULL;
	size_t len = 0;
	FILE *f;
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return rc;
	if (!own.to)
		return mmr_opts_error("wants --to c");
	rc = mmr_opts_case(&o, o.nargs ? o.args[0] : NULL, &c);
	if (rc)
		return rc;
	/* Into memory first: an error leaves no half of a file behind. */
	f = open_memstream(&text, &len);
	rc = f ? mmr_export_c(c, f, &diag) : -ENOMEM;
	if (f && fclose(f) && !rc)
		rc = -ENOMEM;
	mmr_case_free(c);
	if (!rc) {
		rc = put_out(&o, text, len);
	} else if (diag.text[0]) {
		fprintf(stderr, "%s:%d:%d: %s\n", o.nargs ? o.args[0] : "seed",
			diag.line, diag.col, diag.text);
		rc = MMR_EXIT_USAGE;
	} else {
		mmr_opts_error("%s", strerror(-rc));
		rc = MMR_EXIT_FAILED;
	}
	free(text);
	return rc;
}
