// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * doctor --calibrate: fills the calibration table with what cases use most,
 * so that no case has to begin with rounds that measure.  Each kind of memory
 * in each usual size, threads, processes and their end, one thread at a time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../ops/calib.h"
#include "../triage/run.h"
#include "doctor.h"

#define TEXT 2048
#define BUDGET_NS 2000000000

static const struct {
	const char *flags;
	bool file;
} kinds[] = {
	{"private|anon", false},
	{"shared|anon", false},
	{"shared", true},
	{"private", true},
};

static const int pages[] = {1, 2, 4, 16, 128, 512};

static const char *const tasks =
	"mmrace-case 1\nrounds  20 budget=2s\n\n"
	"process victim template\n  thread V\n"
	"    m0 = mmap len=1M prot=rw flags=private|anon\n"
	"    write m0 step=1p\n    signal ready\n    pause\n\n"
	"process main\n  thread A\n    loop 20\n"
	"      t0 = thread_spawn body=idle\n      thread_join t0\n    end\n"
	"    p0 = process_spawn victim\n    wait ready\n    kill p0 KILL\n"
	"    process_mrelease p0 -> 0|EINVAL|EAGAIN|ESRCH\n"
	"    process_reap p0\n"
	"    p1 = process_spawn idle\n    kill p1 KILL\n"
	"    process_reap p1\n";

/* Runs a case; its measurements go to the table by themselves. */
static int run(const char *text, char *why, size_t n)
{
	struct mmr_run_opts opts = {.seed = 1, .budget_ns = BUDGET_NS};
	struct mmr_run_result res = {0};
	struct mmr_case *c = NULL;
	struct mmr_diag diag;
	int rc;

	rc = mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL);
	if (rc) {
		snprintf(why, n, "%s", diag.text);
		return rc;
	}
	rc = mmr_run(c, &opts, &res);
	if (!rc && res.verdict != MMR_NOTHING && res.verdict != MMR_SKIPPED) {
		snprintf(why, n, "%s", res.text);
		rc = -EIO;
	}
	mmr_run_result_free(&res);
	mmr_case_free(c);
	return rc;
}

static int run_kind(size_t kind, int n, char *why, size_t size)
{
	char text[TEXT];

	snprintf(text, sizeof(text),
		 "mmrace-case 1\nrounds  2 budget=2s\n\nprocess main\n"
		 "  thread A\n%s%s"
		 "    loop %d\n"
		 "      m0 = mmap len=%dp prot=rw flags=%s%s\n"
		 "      write m0 step=1p\n"
		 "      read m0 step=1p\n"
		 "%s"
		 "      mprotect m0 prot=r\n"
		 "      mprotect m0 prot=rw\n"
		 "      madvise m0 dontneed\n"
		 "      read m0 step=1p\n"
		 "      munmap m0\n"
		 "    end\n",
		 kinds[kind].file ? "    f0 = memfd_create\n" : "",
		 kinds[kind].file ? "    ftruncate f0 len=2M\n" : "",
		 n > 16 ? 20 : 50, n, kinds[kind].flags,
		 kinds[kind].file ? " fd=f0" : "",
		 n > 4 ? "" : "      write m0\n      read m0\n");
	return run(text, why, size);
}

int mmr_doctor_calibrate(char *why, size_t n)
{
	size_t k, i;
	int rc = run(tasks, why, n);

	for (k = 0; !rc && k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (i = 0; !rc && i < sizeof(pages) / sizeof(pages[0]); i++)
			rc = run_kind(k, pages[i], why, n);
	if (rc)
		return rc;
	rc = mmr_calib_save();
	if (rc)
		snprintf(why, n, "the table cannot be stored: %s",
			 strerror(-rc));
	return rc;
}

static void row(void *arg, struct mmr_calib_key key,
		const struct mmr_calib_time *t)
{
	const struct mmr_op *op = mmr_op_by_id(key.op);
	char size[16];

	if (!op)
		return;
	if (arg) {
		json_array_append_new(
			arg, json_pack("{s:s, s:i, s:s, s:I, s:I, s:I}", "op",
				       op->name, "size", key.size, "backing",
				       mmr_backing_name(key.backing), "count",
				       (json_int_t)t->count, "median_ns",
				       (json_int_t)t->median_ns, "p90_ns",
				       (json_int_t)t->p90_ns));
		return;
	}
	snprintf(size, sizeof(size), "2^%u", key.size);
	printf("%-18s %6s %-8s %10llu %10llu ns %10llu ns\n", op->name,
	       key.size ? size : "1", mmr_backing_name(key.backing),
	       (unsigned long long)t->count, (unsigned long long)t->median_ns,
	       (unsigned long long)t->p90_ns);
}

void mmr_doctor_table(json_t *array)
{
	if (!array)
		printf("%-18s %6s %-8s %10s %13s %13s\n", "operation", "size",
		       "backing", "count", "median", "p90");
	mmr_calib_each(row, array);
}

void mmr_doctor_calibration(struct mmr_doctor *d)
{
	int n = mmr_calib_load(NULL) ? 0 : mmr_calib_each(NULL, NULL);
	char path[512];

	mmr_calib_path(path, sizeof(path));
	if (!path[0])
		mmr_doctor_add(d, false, "calibration",
			       "no place for the table (neither XDG_CACHE_HOME "
			       "nor HOME is set): each start begins anew");
	else if (n)
		mmr_doctor_add(d, true, "calibration",
			       "%d entries of this host and kernel in %s", n,
			       path);
	else
		mmr_doctor_add(d, false, "calibration",
			       "nothing of this host and kernel in %s yet: the "
			       "first cases measure, or doctor --calibrate",
			       path);
}
