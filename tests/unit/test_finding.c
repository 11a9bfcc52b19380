// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Findings on disk: red when a file is missing, when a repeat makes a second
 * folder or overwrites the first evidence, when the count is lost, or when
 * half a folder appears under the final name.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../triage/finding.h"

static const char text[] = "mmrace-case 1\n"
			   "title   a test\n"
			   "origin  seed=0x7 gen=1\n"
			   "\n"
			   "process main\n"
			   "  thread W\n"
			   "    futex_wait lost\n";

struct world {
	char dir[64];
	struct mmr_case *c;
	struct mmr_run_result res;
};

static int make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct mmr_diag diag;

	*state = w;
	snprintf(w->dir, sizeof(w->dir), "/tmp/mmr-finding-XXXXXX");
	if (!mkdtemp(w->dir) ||
	    mmr_case_parse(text, strlen(text), &w->c, &diag, NULL, NULL))
		return -1;
	w->res.verdict = MMR_HANG;
	w->res.hit_round = 3;
	w->res.rounds = 3;
	snprintf(w->res.id, sizeof(w->res.id), "hang-0123456789");
	snprintf(w->res.signature, sizeof(w->res.signature),
		 "hang futex_wait futex_do_wait");
	snprintf(w->res.text, sizeof(w->res.text), "thread W is stuck");
	w->res.evidence = json_pack("{s:s, s:[], s:s}", "ended_by", "none",
				    "steps", "text", "first");
	w->res.timeline = json_pack("{s:[]}", "traceEvents");
	w->res.stacks = strdup("[<0>] futex_do_wait+0x1/0x2\n");
	return 0;
}

static void remove_all(const char *path)
{
	const struct dirent *e;
	DIR *d = opendir(path);
	char sub[512];

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
		if (unlink(sub))
			remove_all(sub);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

static int drop(void **state)
{
	struct world *w = *state;

	remove_all(w->dir);
	json_decref(w->res.evidence);
	json_decref(w->res.timeline);
	free(w->res.stacks);
	mmr_case_free(w->c);
	free(w);
	return 0;
}

static char *slurp(const char *folder, const char *name)
{
	static char buf[65536];
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	if (!f)
		return NULL;
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = '\0';
	fclose(f);
	return buf;
}

static int entries(const char *folder)
{
	const struct dirent *e;
	DIR *d = opendir(folder);
	int n = 0;

	while (d && (e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return d ? n : -1;
}

static json_t *verdict(const char *folder)
{
	json_t *v = json_loads(slurp(folder, "verdict.json"), 0, NULL);

	assert_non_null(v);
	return v;
}

static void all_files(void **state)
{
	static const char *const files[] = {
		"case.case",	 "first.case", "verdict.json", "evidence.json",
		"timeline.json", "stacks.txt", "report.md",    "repro.c"};
	struct world *w = *state;
	struct mmr_rate rate = {7, 100, 1000, 50000000000};
	char path[512], findings[128];
	json_t *v;
	size_t i;

	assert_int_equal(mmr_finding_save(w->dir, w->c, NULL, &w->res, &rate,
					  path, sizeof(path)),
			 0);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_non_null(slurp(path, files[i]));
		assert_true(strlen(slurp(path, files[i])) > 0);
	}
	assert_int_equal(entries(path), 8);
	snprintf(findings, sizeof(findings), "%s/findings", w->dir);
	assert_int_equal(entries(findings), 1);
	assert_string_equal(slurp(path, "first.case"), text);
	assert_non_null(strstr(slurp(path, "case.case"), "seen    7/100\n"));
	assert_non_null(strstr(slurp(path, "case.case"),
			       "origin  seed=0x7 gen=1 tool="));
	assert_non_null(strstr(slurp(path, "report.md"), "7 of 100 runs"));
	v = verdict(path);
	assert_string_equal(json_string_value(json_object_get(v, "seed")),
			    "0x7");
	assert_int_equal(json_integer_value(json_object_get(v, "hit_round")),
			 3);
	json_decref(v);
}

static void repeats(void **state)
{
	struct world *w = *state;
	char path[512], samples[560], findings[128];
	json_t *v;
	int i;

	for (i = 0; i < 500; i++) {
		if (i == 1)
			json_object_set_new(w->res.evidence, "text",
					    json_string("later"));
		assert_int_equal(mmr_finding_save(w->dir, w->c, NULL, &w->res,
						  NULL, path, sizeof(path)),
				 0);
	}
	v = verdict(path);
	assert_int_equal(json_integer_value(json_object_get(v, "count")), 500);
	json_decref(v);
	assert_int_equal(mmr_finding_count(path), 500);
	assert_non_null(strstr(slurp(path, "evidence.json"), "\"first\""));
	snprintf(samples, sizeof(samples), "%s/samples", path);
	assert_int_equal(entries(samples), 20);
	assert_non_null(strstr(slurp(samples, "01.json"), "\"later\""));
	snprintf(findings, sizeof(findings), "%s/findings", w->dir);
	assert_int_equal(entries(findings), 1);
}

static void rate_later(void **state)
{
	struct world *w = *state;
	struct mmr_rate rate = {3, 9, 27, 1000000000};
	char path[512];

	assert_int_equal(mmr_finding_save(w->dir, w->c, NULL, &w->res, NULL,
					  path, sizeof(path)),
			 0);
	assert_null(strstr(slurp(path, "case.case"), "seen"));
	assert_int_equal(mmr_finding_save(w->dir, w->c, NULL, &w->res, &rate,
					  path, sizeof(path)),
			 0);
	assert_non_null(strstr(slurp(path, "case.case"), "seen    3/9\n"));
	assert_non_null(strstr(slurp(path, "report.md"), "3 of 9 runs"));
	/* A rate alone is no sighting, and has no sample. */
	rate.hits = 4;
	assert_int_equal(mmr_finding_rate(w->dir, w->c, &w->res, &rate), 0);
	assert_int_equal(mmr_finding_count(path), 2);
	assert_non_null(strstr(slurp(path, "report.md"), "4 of 9 runs"));
	snprintf(w->res.id, sizeof(w->res.id), "hang-0000000000");
	assert_int_equal(mmr_finding_rate(w->dir, w->c, &w->res, &rate),
			 -ENOENT);
}

/* Found in a guest: its kernel, its CPUs and its own words, not ours. */
static void in_a_guest(void **state)
{
	struct world *w = *state;
	char path[512];
	json_t *v;

	strcpy(w->res.guest.kernel, "4.14.0-guest");
	strcpy(w->res.guest.arch, "aarch64");
	strcpy(w->res.guest.text, "QEMU guest (tcg), 3 CPUs");
	w->res.guest.cpus = 3;
	w->res.log = strdup("a line of its kernel\n");
	assert_int_equal(mmr_finding_save(w->dir, w->c, NULL, &w->res, NULL,
					  path, sizeof(path)),
			 0);
	v = verdict(path);
	assert_string_equal(json_string_value(json_object_get(v, "kernel")),
			    "4.14.0-guest");
	assert_string_equal(json_string_value(json_object_get(v, "guest")),
			    "QEMU guest (tcg), 3 CPUs");
	json_decref(v);
	assert_non_null(strstr(slurp(path, "case.case"),
			       "kernel=4.14.0-guest arch=aarch64 cpus=3"));
	assert_non_null(strstr(slurp(path, "report.md"), "QEMU guest (tcg)"));
	assert_null(strstr(slurp(path, "report.md"), "MemTotal"));
	assert_string_equal(slurp(path, "kernel.log"),
			    "a line of its kernel\n");
	free(w->res.log);
	w->res.log = NULL;
}

/* A file that may not grow stands in for a full disk. */
static void disk_full(void **state)
{
	struct world *w = *state;
	struct rlimit old, small;
	char path[512], final[160];
	struct stat st;
	int ret;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 900;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	ret = mmr_finding_save(w->dir, w->c, NULL, &w->res, NULL, path,
			       sizeof(path));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(ret, -EFBIG);
	snprintf(final, sizeof(final), "%s/findings/%s", w->dir, w->res.id);
	assert_int_not_equal(stat(final, &st), 0);
	assert_non_null(slurp(path, "case.case"));
	assert_null(slurp(path, "report.md"));
	/* With room again the whole takes the place of the part. */
	assert_int_equal(mmr_finding_save(w->dir, w->c, NULL, &w->res, NULL,
					  path, sizeof(path)),
			 0);
	assert_string_equal(path, final);
	snprintf(final, sizeof(final), "%s/findings", w->dir);
	assert_int_equal(entries(final), 1);
}

static void write_file(void **state)
{
	struct world *w = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/a/b/c", w->dir);
	assert_int_equal(mmr_mkdir_p(path), 0);
	assert_int_equal(mmr_mkdir_p(path), 0);
	snprintf(path, sizeof(path), "%s/a/b/c/f", w->dir);
	assert_int_equal(mmr_write_file(path, "one", 3), 0);
	assert_int_equal(mmr_write_file(path, "two", 3), 0);
	assert_string_equal(slurp(w->dir, "a/b/c/f"), "two");
	assert_int_equal(mmr_write_file("/proc/nowhere/f", "x", 1), -ENOENT);
	snprintf(path, sizeof(path), "%s/a/b/c/f/under", w->dir);
	assert_int_equal(mmr_mkdir_p(path), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_files, make, drop),
		cmocka_unit_test_setup_teardown(repeats, make, drop),
		cmocka_unit_test_setup_teardown(rate_later, make, drop),
		cmocka_unit_test_setup_teardown(in_a_guest, make, drop),
		cmocka_unit_test_setup_teardown(disk_full, make, drop),
		cmocka_unit_test_setup_teardown(write_file, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
