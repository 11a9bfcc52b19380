// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace suite: cases as tests. */
#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../triage/finding.h"
#include "../triage/suite.h"
#include "opts.h"

#define OUT_DIR "mmrace-out"
#define CASE_NS 10000000000LL
#define NAME_WIDTH 48 /* a longer name moves its line only */

enum format { FORMAT_TEXT, FORMAT_TAP, FORMAT_KTAP, FORMAT_JSON };

struct found { /* a file to run */
	char *path, *name;
	dev_t dev;
	ino_t ino;
};

struct own {
	struct mmr_suite_opts suite;
	enum format format;
	const char *junit;
	const char *filter[32], *skip[32];
	int nfilters, nskips;
	bool list, has_seed;
	uint64_t seed;
	/* What was found. */
	struct found *files;
	int nfiles;
	int width; /* of the longest name */
	struct mmr_progress progress;
	bool quiet;
};

/* -- options ------------------------------------------------------------ */

static int set_format(struct own *o, enum format f)
{
	if (o->format != FORMAT_TEXT && o->format != f) {
		mmr_opts_error("--tap, --ktap and --json: one of them");
		return -EINVAL;
	}
	o->format = f;
	return 0;
}

static int set_tap(void *own, const char *value)
{
	(void)value;
	return set_format(own, FORMAT_TAP);
}

static int set_ktap(void *own, const char *value)
{
	(void)value;
	return set_format(own, FORMAT_KTAP);
}

static int set_junit(void *own, const char *value)
{
	((struct own *)own)->junit = value;
	return 0;
}

static int add_glob(const char **list, int *n, const char *value,
		    const char *option)
{
	if (*n == 32) {
		mmr_opts_error("%s: at most 32 of them", option);
		return -EINVAL;
	}
	list[(*n)++] = value;
	return 0;
}

static int set_filter(void *own, const char *value)
{
	struct own *o = own;

	return add_glob(o->filter, &o->nfilters, value, "--filter");
}

static int set_skip(void *own, const char *value)
{
	struct own *o = own;

	return add_glob(o->skip, &o->nskips, value, "--skip");
}

static int set_jobs(void *own, const char *value)
{
	struct own *o = own;
	uint64_t n;

	if (!mmr_opts_u64(value, &n) && n && n <= MMR_SUITE_JOBS) {
		o->suite.jobs = (int)n;
		return 0;
	}
	mmr_opts_error("--jobs %s: wants 1 to %d", value, MMR_SUITE_JOBS);
	return -EINVAL;
}

static int set_case_time(void *own, const char *value)
{
	struct own *o = own;

	if (!mmr_opts_time(value, &o->suite.case_ns) && o->suite.case_ns > 0)
		return 0;
	mmr_opts_error("--case-time %s: wants a time, such as 30s", value);
	return -EINVAL;
}

MMR_OPT_FLAG(set_list, struct own, list);

static int set_seed(void *own, const char *value)
{
	struct own *o = own;

	o->has_seed = true;
	if (!mmr_opts_u64(value, &o->seed))
		return 0;
	mmr_opts_error("--seed %s: wants 64 bits, decimal or 0x", value);
	return -EINVAL;
}

static const struct mmr_opt own_opts[] = {
	{"tap", NULL, "results as TAP version 13", set_tap},
	{"ktap", NULL, "results as KTAP version 1, as kselftest does",
	 set_ktap},
	{"junit", "FILE", "write a JUnit file, too", set_junit},
	{"filter", "GLOB", "only cases of that name (may be given again)",
	 set_filter},
	{"skip", "GLOB", "no case of that name (may be given again)", set_skip},
	{"jobs", "N", "cases at the same time (default 1)", set_jobs},
	{"case-time", "T",
	 "for a case that was never seen to fail (default 10s)", set_case_time},
	{"list", NULL, "say what would be run, and run nothing", set_list},
	{"seed", "N", "key of all draws (default: each case's origin)",
	 set_seed},
	{0},
};

static const struct mmr_command command = {
	.name = "suite",
	.synopsis = "PATH... [--tap | --ktap | --json] [--junit FILE] ...",
	.about = "Runs cases as tests: files, and all *.case in folders.  A "
		 "case passes when\nnothing is found in as many runs as show "
		 "its failure in 95 of 100 times: its\n`seen` line tells how "
		 "many these are, or --runs does.  A case that was never seen"
		 "\nto fail runs once, and again until --case-time is over.  "
		 "With each result stands\nwhat it says of the rate.  A case "
		 "ends at its first hit, which is stored as a\nfinding below "
		 "--out (default " OUT_DIR ").\n\n"
		 "skip: the machine lacks what the case needs.  inconclusive: "
		 "no round counted,\nor --time was over before its runs were "
		 "done; no failure, and no pass.  --time\nis for all cases "
		 "together; each gets a fair part of what is left.  With "
		 "--jobs,\ncases that change settings or need huge pages, much "
		 "memory or counts of the\nwhole machine run alone, after the "
		 "others.  GLOB is matched with a case's name\n(its path "
		 "without .case) and with the name's last part.",
	.examples =
		"  mmrace suite corpus                       all that is "
		"known\n"
		"  mmrace suite corpus/cases --time 5m       within five "
		"minutes\n"
		"  mmrace suite . --filter 's1-*' --list     what would run, "
		"and how often\n"
		"  mmrace suite corpus --ktap --guest debian:6.1    on another "
		"kernel\n"
		"  mmrace suite corpus --junit results.xml --jobs 4 for a "
		"build "
		"server\n",
	.groups = MMR_OPTS_RUN | MMR_OPTS_RUNS | MMR_OPTS_TIME | MMR_OPTS_OUT,
	.opts = own_opts,
	.min_args = 1,
	.max_args = INT_MAX,
};

/* -- which cases -------------------------------------------------------- */

/* The path without ./ and .case; no character that a result line lacks. */
static char *make_name(const char *path)
{
	const char *from = strncmp(path, "./", 2) ? path : path + 2;
	char *name = strdup(strcmp(path, "-") ? from : "stdin");
	size_t len, i;

	if (!name)
		return NULL;
	len = strlen(name);
	if (len > 5 && !strcmp(name + len - 5, ".case") && name[len - 6] != '/')
		name[len - 5] = '\0';
	for (i = 0; name[i]; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == '#' ||
		    name[i] == 0x7f)
			name[i] = '_';
	return name;
}

static bool matches(const char *const *globs, int n, const char *name)
{
	const char *slash = strrchr(name, '/');
	int i;

	for (i = 0; i < n; i++)
		if (!fnmatch(globs[i], name, 0) ||
		    (slash && !fnmatch(globs[i], slash + 1, 0)))
			return true;
	return false;
}

static int add_file(struct own *o, const char *path, dev_t dev, ino_t ino)
{
	struct found *more;
	char *name;
	int i;

	for (i = 0; ino && i < o->nfiles; i++)
		if (o->files[i].dev == dev && o->files[i].ino == ino)
			return 0; /* by another path: once is enough */
	name = make_name(path);
	if (!name)
		return -ENOMEM;
	if ((o->nfilters && !matches(o->filter, o->nfilters, name)) ||
	    matches(o->skip, o->nskips, name)) {
		free(name);
		return 0;
	}
	more = realloc(o->files, ((size_t)o->nfiles + 1) * sizeof(*more));
	if (!more) {
		free(name);
		return -ENOMEM;
	}
	o->files = more;
	more[o->nfiles++] =
		(struct found){strdup(path), name, .dev = dev, .ino = ino};
	return more[o->nfiles - 1].path ? 0 : -ENOMEM;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_case(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && !strcmp(name + len - 5, ".case");
}

/* A file, or all *.case in a folder and those in it.  The exit code. */
static int add_path(struct own *o, char *path)
{
	char *roots[2] = {path, NULL};
	int before = o->nfiles, rc = 0;
	bool folder = false, any = false;
	FTSENT *e;
	FTS *f;

	if (!strcmp(path, "-"))
		return add_file(o, path, 0, 0) ? MMR_EXIT_FAILED : 0;
	f = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!f)
		return mmr_opts_error("%s: %s", path, strerror(errno));
	while (!rc && (e = fts_read(f))) {
		if (e->fts_info == FTS_NS || e->fts_info == FTS_DNR ||
		    e->fts_info == FTS_ERR) {
			rc = mmr_opts_error("%s: %s", e->fts_path,
					    strerror(e->fts_errno));
		} else if (e->fts_info == FTS_D) {
			folder = true;
		} else if (e->fts_level == 0 || ((e->fts_info == FTS_F ||
						  e->fts_info == FTS_SLNONE) &&
						 is_case(e->fts_name))) {
			any |= e->fts_info != FTS_DP;
			if (e->fts_info != FTS_DP &&
			    add_file(o, e->fts_path, e->fts_statp->st_dev,
				     e->fts_statp->st_ino))
				rc = MMR_EXIT_FAILED;
		}
	}
	fts_close(f);
	if (!rc && folder && !any && o->nfiles == before)
		rc = mmr_opts_error("%s: no *.case in it", path);
	return rc;
}

/* Loads all of them, so that each bad one is named before anything runs. */
static int load(struct own *o, struct mmr_cmd_opts *opts, struct mmr_suite *s)
{
	int rc = 0, i;

	s->cases = calloc((size_t)o->nfiles, sizeof(*s->cases));
	if (!s->cases)
		return MMR_EXIT_FAILED;
	s->n = o->nfiles;
	for (i = 0; i < o->nfiles; i++) {
		struct mmr_suite_case *t = &s->cases[i];
		struct mmr_case *c = NULL;
		int len = (int)strlen(o->files[i].name), bad;

		bad = mmr_opts_case(opts, o->files[i].path, &c);
		if (!rc)
			rc = bad;
		t->name = o->files[i].name;
		t->path = o->files[i].path;
		t->c = c;
		t->seed = o->has_seed ? o->seed : opts->run.seed;
		if (len > o->width)
			o->width = len < NAME_WIDTH ? len : NAME_WIDTH;
	}
	return rc;
}

static void unload(struct own *o, struct mmr_suite *s)
{
	int i;

	mmr_suite_release(s);
	for (i = 0; i < s->n; i++) {
		union {
			const struct mmr_case *kept;
			struct mmr_case *c;
		} u = {.kept = s->cases[i].c};

		mmr_case_free(u.c);
	}
	for (i = 0; i < o->nfiles; i++) {
		free(o->files[i].path);
		free(o->files[i].name);
	}
	free(o->files);
	free(s->cases);
}

/* -- results ------------------------------------------------------------ */

static void print_list(const struct own *o, const struct mmr_suite *s)
{
	int i;

	for (i = 0; i < s->n; i++) {
		const struct mmr_suite_case *t = &s->cases[i];

		printf("%-*s  ", o->width, t->name);
		if (t->want_runs)
			printf("%llu run%s", (unsigned long long)t->want_runs,
			       t->want_runs == 1 ? "" : "s");
		else
			printf("%lld s",
			       (long long)(o->suite.case_ns / 1000000000));
		if (t->alone)
			printf(", alone: %s", t->alone_why);
		putchar('\n');
	}
}

static void print_list_json(const struct mmr_suite *s)
{
	json_t *cases = json_array();
	int i;

	for (i = 0; i < s->n; i++) {
		const struct mmr_suite_case *t = &s->cases[i];
		json_t *j = json_object();

		json_object_set_new(j, "name", json_string(t->name));
		json_object_set_new(j, "path", json_string(t->path));
		json_object_set_new(
			j, "wanted_runs",
			t->want_runs ? json_integer((json_int_t)t->want_runs)
				     : json_null());
		json_object_set_new(j, "alone",
				    t->alone_why ? json_string(t->alone_why)
						 : json_null());
		json_array_append_new(cases, j);
	}
	mmr_opts_print_json(
		json_pack("{s:i, s:o}", "total", s->n, "cases", cases));
}

static void on_result(void *arg, const struct mmr_suite *s,
		      const struct mmr_suite_case *t)
{
	struct own *o = arg;

	mmr_progress_end(&o->progress);
	if (o->format == FORMAT_TEXT)
		mmr_suite_text_case(stdout, t, o->width);
	else if (o->format != FORMAT_JSON)
		mmr_suite_tap_case(stdout, t, (int)(t - s->cases) + 1,
				   o->format == FORMAT_KTAP);
	fflush(stdout);
}

static void on_progress(void *arg, const struct mmr_suite *s,
			const char *running)
{
	struct own *o = arg;
	int done = 0, i;

	if (!mmr_progress_due(&o->progress))
		return;
	for (i = 0; i < MMR_SUITE_OUTCOMES; i++)
		done += s->count[i];
	mmr_progress_show(&o->progress, "%d of %d cases, %d failed; now %s",
			  done, s->n, s->count[MMR_SUITE_FAIL], running);
}

static int write_junit(const char *path, const struct mmr_suite *s)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int rc;

	if (!f)
		return -ENOMEM;
	mmr_suite_junit(f, s);
	rc = fclose(f) ? -ENOMEM : mmr_write_file(path, text, len);
	free(text);
	return rc;
}

static int exit_code(const struct mmr_suite *s)
{
	if (s->count[MMR_SUITE_FAIL])
		return MMR_EXIT_FOUND;
	if (s->count[MMR_SUITE_ERROR])
		return MMR_EXIT_FAILED;
	return s->count[MMR_SUITE_PASS] ? MMR_EXIT_NOTHING : MMR_EXIT_NEEDS;
}

static int run(struct own *o, struct mmr_suite *s)
{
	bool tap = o->format == FORMAT_TAP || o->format == FORMAT_KTAP;
	int rc;

	if (tap)
		mmr_suite_tap_head(stdout, s, o->format == FORMAT_KTAP);
	mmr_progress_init(&o->progress, o->quiet);
	rc = mmr_suite_run(s, &o->suite);
	mmr_progress_end(&o->progress);
	if (rc) {
		mmr_opts_error("%s", strerror(-rc));
		return MMR_EXIT_FAILED;
	}
	if (tap)
		mmr_suite_tap_end(stdout, s, o->format == FORMAT_KTAP);
	else if (o->format == FORMAT_JSON)
		mmr_opts_print_json(mmr_suite_json(s));
	else
		mmr_suite_text_end(stdout, s);
	rc = o->junit ? write_junit(o->junit, s) : 0;
	if (rc)
		mmr_opts_error("%s: %s", o->junit, strerror(-rc));
	return rc ? MMR_EXIT_FAILED : exit_code(s);
}

/* An hour of results without a place for them would be a pity. */
static int check_junit(const char *path)
{
	char dir[PATH_MAX];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		snprintf(dir, sizeof(dir), ".");
	else
		slash[slash == dir] = '\0';
	return access(dir, W_OK | X_OK)
		       ? mmr_opts_error("--junit %s: %s", path, strerror(errno))
		       : 0;
}

static int find(struct own *own, const struct mmr_cmd_opts *o)
{
	int rc = 0, i;

	for (i = 0; !rc && i < o->nargs; i++)
		rc = add_path(own, o->args[i]);
	if (!rc && own->junit)
		rc = check_junit(own->junit);
	if (!rc && !own->nfiles)
		rc = mmr_opts_error("no case is left by --filter and --skip");
	return rc;
}

static int start(struct own *own, struct mmr_cmd_opts *o, struct mmr_suite *s)
{
	struct mmr_guest_stats st;
	int rc;

	/* A guest goes on while it is healthy, one for each job. */
	o->guest.reuse = true;
	o->guest.count = own->suite.jobs;
	rc = mmr_opts_engine_start(o);
	if (rc)
		return rc;
	own->suite.run = o->run;
	mmr_suite_plan(s, &own->suite);
	if (o->run.guest) {
		mmr_guest_get_stats(o->run.guest, &st);
		snprintf(s->guest, sizeof(s->guest), "%s", st.kernel);
	}
	rc = run(own, s);
	mmr_opts_engine_stop();
	return rc;
}

int mmr_cmd_suite(int argc, char **argv)
{
	struct own own = {.suite = {.jobs = 1,
				    .case_ns = CASE_NS,
				    .result = on_result,
				    .progress = on_progress}};
	struct mmr_suite s = {0};
	struct mmr_cmd_opts o;
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return rc;
	if (o.json && set_format(&own, FORMAT_JSON))
		return MMR_EXIT_USAGE;
	own.quiet = o.quiet;
	own.suite.arg = &own;
	own.suite.runs = o.runs;
	own.suite.time_ns = o.time_ns;
	own.suite.out = o.out ? o.out : OUT_DIR;
	rc = find(&own, &o);
	if (!rc)
		rc = load(&own, &o, &s);
	if (!rc && own.list) {
		mmr_suite_plan(&s, &own.suite);
		if (o.json)
			print_list_json(&s);
		else
			print_list(&own, &s);
	} else if (!rc) {
		rc = start(&own, &o, &s);
	}
	unload(&own, &s);
	return rc;
}
