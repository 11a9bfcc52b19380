// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace merge: the soaks of many machines, as one. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../triage/finding.h"
#include "ledger.h"
#include "opts.h"

static const struct mmr_command command = {
	.name = "merge",
	.synopsis = "DIR... -o DIR",
	.about =
		"Joins what several soaks left: their ledgers and their "
		"findings, into the folder -o,\nwhich may be one of them.  "
		"The order does not matter, and what is joined twice\ncounts "
		"once, so that results can be collected again and again.\n\n"
		"`mmrace status` and `mmrace report` read the result like that "
		"of one soak.",
	.examples = "  mmrace merge host-*/mmrace-out -o all     shards of one "
		    "soak, from --shard I/N\n"
		    "  mmrace merge all tonight -o all           one more into "
		    "what there is\n",
	.groups = MMR_OPTS_FILE,
	.min_args = 1,
	.max_args = 100000,
};

static uint64_t count_of(const struct mmr_ledger_view *v, const char *id)
{
	for (int i = 0; i < v->nfindings; i++)
		if (!strcmp(v->findings[i].id, id))
			return v->findings[i].count;
	return 0;
}

/* Every finding of one folder, unless it was joined before. */
static int join_of(const char *dir, char *const *dirs, int n, const char *out,
		   const struct mmr_ledger_view *v, json_t *joined)
{
	const struct dirent *e;
	char path[4200];
	DIR *d;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/findings", dir);
	d = opendir(path);
	while (d && !rc && (e = readdir(d))) {
		if (e->d_name[0] == '.' || json_object_get(joined, e->d_name))
			continue;
		rc = mmr_finding_join(dirs, n, out, e->d_name,
				      count_of(v, e->d_name));
		if (rc == -ENOENT) {
			rc = 0; /* somebody's own file or folder */
			continue;
		}
		if (rc) {
			mmr_opts_error("%s/%s: %s", path, e->d_name,
				       strerror(-rc));
			break;
		}
		json_object_set_new(
			joined, e->d_name,
			json_integer((json_int_t)count_of(v, e->d_name)));
	}
	if (d)
		closedir(d);
	return rc;
}

static void print_result(const struct mmr_cmd_opts *o,
			 const struct mmr_ledger_view *v, const json_t *joined)
{
	struct mmr_ledger_counts sum = {0};
	json_t *j;

	for (int i = 0; i < v->nsessions; i++)
		mmr_ledger_sum(&sum, &v->sessions[i].counts);
	if (o->json) {
		j = mmr_ledger_counts_json(&sum);
		json_object_set_new(j, "sessions", json_integer(v->nsessions));
		json_object_set_new(
			j, "cases",
			json_integer((json_int_t)mmr_ledger_samples(&sum)));
		json_object_set_new(j, "damaged_lines",
				    json_integer((json_int_t)v->damaged));
		json_object_set_new(j, "findings", json_deep_copy(joined));
		mmr_opts_print_json(j);
		return;
	}
	printf("%s: %d sessions, %" PRIu64 " cases, %" PRIu64
	       " rounds, %zu finding%s\n",
	       o->out, v->nsessions, mmr_ledger_samples(&sum), sum.rounds,
	       json_object_size(joined),
	       json_object_size(joined) == 1 ? "" : "s");
	if (v->damaged)
		printf("%" PRIu64 " damaged line%s left out\n", v->damaged,
		       v->damaged == 1 ? "" : "s");
}

/* The folders that are joined: those given, and what is there already. */
static char **all_dirs(const struct mmr_cmd_opts *o, int *n)
{
	char **dirs = calloc((size_t)o->nargs + 1, sizeof(*dirs)), path[4200];

	*n = 0;
	for (int i = 0; dirs && i < o->nargs; i++)
		dirs[(*n)++] = o->args[i];
	snprintf(path, sizeof(path), "%s/" MMR_LEDGER_FILE, o->out);
	if (dirs && !access(path, F_OK))
		dirs[(*n)++] = (char *)(uintptr_t)o->out;
	return dirs;
}

static int join_findings(const struct mmr_cmd_opts *o, char *const *dirs, int n)
{
	json_t *joined = json_object();
	struct mmr_ledger_view v;
	int rc = joined ? mmr_ledger_read(o->out, &v) : -ENOMEM;

	if (rc) {
		mmr_opts_error("%s: %s", o->out, strerror(-rc));
		json_decref(joined);
		return rc;
	}
	for (int i = 0; i < n && !rc; i++)
		rc = join_of(dirs[i], dirs, n, o->out, &v, joined);
	if (!rc)
		print_result(o, &v, joined);
	mmr_ledger_view_free(&v);
	json_decref(joined);
	return rc;
}

int mmr_cmd_merge(int argc, char **argv)
{
	char text[400] = "", path[4200], **dirs;
	struct mmr_ledger *lock;
	struct mmr_cmd_opts o;
	int rc = mmr_opts_parse(&command, argc, argv, &o, NULL), n;

	if (rc >= 0)
		return rc;
	if (!o.out)
		return mmr_opts_error("say with -o DIR where it goes");
	for (int i = 0; i < o.nargs; i++) {
		snprintf(path, sizeof(path), "%s/" MMR_LEDGER_FILE, o.args[i]);
		if (access(path, R_OK))
			return mmr_opts_error("%s: %s", path, strerror(errno));
	}
	dirs = all_dirs(&o, &n);
	rc = dirs ? mmr_mkdir_p(o.out) : -ENOMEM;
	if (rc) {
		mmr_opts_error("%s: %s", o.out, strerror(-rc));
		free(dirs);
		return MMR_EXIT_FAILED;
	}
	/* No soak may write there meanwhile. */
	rc = mmr_ledger_open(o.out, &lock, text, sizeof(text));
	if (!rc) {
		rc = mmr_ledger_merge(dirs, n, o.out, text, sizeof(text));
		mmr_ledger_close(lock, NULL);
	}
	if (rc)
		mmr_opts_error("%s", text);
	else
		rc = join_findings(&o, dirs, n);
	free(dirs);
	return rc == -EBUSY ? MMR_EXIT_USAGE
	       : rc	    ? MMR_EXIT_FAILED
			    : MMR_EXIT_NOTHING;
}
