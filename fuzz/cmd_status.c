// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace status: reads the ledger of a soak, running or over. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "opts.h"

static const struct mmr_command command = {
	.name = "status",
	.synopsis = "DIR",
	.about = "Says what the soak that writes into DIR has done so far: "
		 "from DIR/soak.json, which\nis at most some seconds old.",
	.examples = "  mmrace status mmrace-out\n"
		    "  mmrace status mmrace-out --json    the whole ledger\n",
	.min_args = 1,
	.max_args = 1,
};

static const char *word(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "?";
}

static long long number(const json_t *j, const char *key)
{
	return (long long)json_integer_value(json_object_get(j, key));
}

static const char *state(const json_t *j)
{
	pid_t pid = (pid_t)number(j, "pid");

	if (strcmp(word(j, "state"), "running"))
		return word(j, "state");
	/* The ledger of a killed soak still says running. */
	if (pid > 0 && kill(pid, 0) && errno == ESRCH)
		return "ended without a word";
	return "running";
}

static void print_status(const json_t *j, const char *dir)
{
	const json_t *found = json_object_get(j, "findings");
	const json_t *f;
	size_t i;

	printf("%s: %s, %.0f s, kernel %s, profile %s, seeds from %s\n", dir,
	       state(j), json_number_value(json_object_get(j, "seconds")),
	       word(j, "kernel"), word(j, "profile"), word(j, "seed"));
	printf("cases       %lld run, %lld skipped, %lld void\n",
	       number(j, "cases"), number(j, "skipped"), number(j, "void"));
	printf("rounds      %lld\n", number(j, "rounds"));
	printf("operations  %lld; operations per second %.0f\n",
	       number(j, "operations"),
	       json_number_value(json_object_get(j, "operations_per_second")));
	printf("findings    %zu\n", json_array_size(found));
	json_array_foreach (found, i, f)
		printf("  %s, seen %lld times: %s\n", word(f, "folder"),
		       number(f, "count"), word(f, "text"));
}

int mmr_cmd_status(int argc, char **argv)
{
	struct mmr_cmd_opts o;
	json_error_t err;
	char path[4200];
	json_t *j;
	int rc = mmr_opts_parse(&command, argc, argv, &o, NULL);

	if (rc >= 0)
		return rc;
	snprintf(path, sizeof(path), "%s/soak.json", o.args[0]);
	j = json_load_file(path, 0, &err);
	if (!j)
		return mmr_opts_error("%s: %s", path, err.text);
	if (!json_is_object(j)) {
		json_decref(j);
		return mmr_opts_error("%s: is no ledger of a soak", path);
	}
	if (o.json) {
		mmr_opts_print_json(j);
		return MMR_EXIT_NOTHING;
	}
	print_status(j, o.args[0]);
	json_decref(j);
	return MMR_EXIT_NOTHING;
}
