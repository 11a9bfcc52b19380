// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace report: a folder as one HTML page. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../triage/finding.h"
#include "../triage/html.h"
#include "opts.h"

static const struct mmr_command command = {
	.name = "report",
	.synopsis = "DIR [-o FILE]",
	.about = "Makes one HTML page of what lies in DIR: the folder of a "
		 "soak, or of one finding.\nThe page has what was run, each "
		 "finding with its sentence, rate, timeline, stacks,\ncase and "
		 "how to see it again, the latency of each operation, and the "
		 "soak's\nhistory.  It needs nothing else, no script and no "
		 "network: send it by mail.\nDIR may be a stranger's: what is "
		 "in it becomes text and nothing but text.",
	.examples =
		"  mmrace report mmrace-out -o report.html\n"
		"  mmrace report mmrace-out/findings/ID -o finding.html\n"
		"  mmrace report mmrace-out --json    the same for a program\n",
	.groups = MMR_OPTS_FILE,
	.min_args = 1,
	.max_args = 1,
};

static int write_page(const struct mmr_cmd_opts *o,
		      const struct mmr_html_source *src)
{
	char *page = NULL;
	size_t len = 0;
	FILE *f;
	int rc;

	if (!o->out) {
		if (!mmr_html_page(stdout, src))
			return MMR_EXIT_NOTHING;
		mmr_opts_error("standard output: %s", strerror(errno));
		return MMR_EXIT_FAILED;
	}
	f = open_memstream(&page, &len);
	rc = f ? mmr_html_page(f, src) : -ENOMEM;
	if (f)
		fclose(f);
	if (!rc)
		rc = mmr_write_file(o->out, page, len);
	free(page);
	if (!rc)
		return MMR_EXIT_NOTHING;
	mmr_opts_error("%s: %s", o->out, strerror(-rc));
	return MMR_EXIT_FAILED;
}

int mmr_cmd_report(int argc, char **argv)
{
	struct mmr_html_source src;
	struct mmr_cmd_opts o;
	char text[400] = "";
	int rc = mmr_opts_parse(&command, argc, argv, &o, NULL);

	if (rc >= 0)
		return rc;
	if (!o.out && !o.json && isatty(STDOUT_FILENO))
		return mmr_opts_error("a page is nothing for a terminal: give "
				      "-o FILE, such as -o report.html, or "
				      "read it with mmrace show and status");
	rc = mmr_html_load(o.args[0], &src, text, sizeof(text));
	if (rc) {
		mmr_html_free(&src);
		mmr_opts_error("%s", text[0] ? text : strerror(-rc));
		return rc == -ENOMEM ? MMR_EXIT_FAILED : MMR_EXIT_USAGE;
	}
	if (o.json) {
		mmr_opts_print_json(mmr_html_json(&src));
		rc = MMR_EXIT_NOTHING;
	} else {
		rc = write_page(&o, &src);
	}
	mmr_html_free(&src);
	return rc;
}
