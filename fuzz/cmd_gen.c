// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace gen: the case that a seed means, on standard output. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/finding.h"
#include "opts.h"

static const struct mmr_command command = {
	.name = "gen",
	.synopsis = "--seed N [--profile NAME] [-o FILE]",
	.about = "Prints the case that a seed means under a profile.  The same "
		 "seed, profile and\ngenerator version give the same text on "
		 "every machine.",
	.examples =
		"  mmrace gen --seed 7                      the case of seed "
		"7\n"
		"  mmrace gen --seed 0x5eed --profile storm -o x.case\n"
		"  mmrace gen --seed 7 | mmrace replay -    print and run it\n",
	.groups = MMR_OPTS_SEED | MMR_OPTS_FILE,
	.max_args = 0,
};

int mmr_cmd_gen(int argc, char **argv)
{
	struct mmr_case *c;
	struct mmr_cmd_opts o;
	char *text;
	int rc = mmr_opts_parse(&command, argc, argv, &o, NULL);

	if (rc >= 0)
		return rc;
	if (!o.has_seed)
		return mmr_opts_error("wants --seed N");
	rc = mmr_opts_case(&o, NULL, &c);
	if (rc)
		return rc;
	text = mmr_case_print(c);
	mmr_case_free(c);
	if (!text) {
		mmr_opts_error("out of memory");
		return MMR_EXIT_FAILED;
	}
	if (o.json) {
		mmr_opts_print_json(json_pack(
			"{s:s, s:I, s:s}", "profile",
			o.profile_name ? o.profile_name : "mixed", "gen",
			(json_int_t)MMR_GEN_VERSION, "case", text));
	} else if (o.out) {
		rc = mmr_write_file(o.out, text, strlen(text));
		if (rc)
			rc = mmr_opts_error("%s: %s", o.out, strerror(-rc));
	} else {
		fputs(text, stdout);
	}
	free(text);
	return rc;
}
