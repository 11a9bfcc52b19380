// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace import: a program or a trace from somewhere else becomes a case. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/finding.h"
#include "../triage/import.h"
#include "opts.h"

#define FILE_MAX (1u << 30)
#define NAMED 10 /* calls that are named on standard error */

struct own {
	bool has_from;
	enum mmr_import_from from;
	int64_t max_delay_ns;
	bool touch;
};

static int set_from(void *own, const char *value)
{
	struct own *o = own;

	o->has_from = true;
	if (!strcmp(value, "syz"))
		o->from = MMR_IMPORT_SYZ;
	else if (!strcmp(value, "strace"))
		o->from = MMR_IMPORT_STRACE;
	else
		return mmr_opts_error("--from %s: wants syz or strace", value),
		       -EINVAL;
	return 0;
}

static int set_max_delay(void *own, const char *value)
{
	struct own *o = own;

	if (!mmr_opts_time(value, &o->max_delay_ns) && o->max_delay_ns > 0 &&
	    o->max_delay_ns <= 60000000000LL)
		return 0;
	mmr_opts_error("--max-delay %s: wants a time up to 60s", value);
	return -EINVAL;
}

MMR_OPT_FLAG(set_touch, struct own, touch);

static const struct mmr_opt own_opts[] = {
	{"from", "syz|strace", "what FILE is", set_from},
	{"max-delay", "T", "shorten longer pauses of a log (default 100ms)",
	 set_max_delay},
	{"touch", NULL, "write to new mappings: neither format says who did",
	 set_touch},
	{0},
};

static const struct mmr_command command = {
	.name = "import",
	.synopsis = "FILE --from syz|strace [-o FILE]",
	.about =
		"Turns a syzkaller program or a log of strace into a case.  "
		"What is about memory is\nkept: mappings, advice, protection, "
		"userfaultfd, memory files, threads, processes\nand their end, "
		"with order and pauses; what cannot be mapped stays as a "
		"comment and\nis counted.  What repeats becomes a loop.  FILE "
		"- is standard input.\n\n"
		"syz: async and rerun, and Repeat, Procs and Collide of the "
		"options in the first\ncomment, are kept.  strace: any of -f, "
		"-t, -tt, -ttt, -r, -T; best is -f -ttt -T.\nWithout --touch, "
		"what is mapped has no pages, as no call made them.",
	.examples =
		"  mmrace import repro.syz --from syz -o repro.case\n"
		"  strace -f -ttt -T -o app.log app && mmrace import app.log "
		"--from strace -o app.case\n"
		"  mmrace import app.log --from strace --touch -o app.case\n"
		"  mmrace import app.log --from strace | mmrace replay -\n",
	.groups = MMR_OPTS_FILE,
	.opts = own_opts,
	.min_args = 1,
	.max_args = 1,
};

/* The whole file, NUL-terminated for the caller to free.  0 or -errno. */
static int read_all(const char *path, char **text, size_t *len)
{
	bool in = !strcmp(path, "-");
	FILE *f = in ? stdin : fopen(path, "re");
	size_t cap = 1 << 16, n = 0;
	char *buf = NULL, *more;
	int rc = 0;

	if (!f)
		return -errno;
	do {
		cap *= 2;
		more = cap > FILE_MAX ? NULL : realloc(buf, cap);
		if (!more) {
			rc = cap > FILE_MAX ? -EFBIG : -ENOMEM;
			break;
		}
		buf = more;
		n += fread(buf + n, 1, cap - n - 1, f);
	} while (n == cap - 1);
	if (!rc && ferror(f))
		rc = errno == EISDIR ? -EISDIR : -EIO;
	if (!in)
		fclose(f);
	if (rc) {
		free(buf);
		return rc;
	}
	buf[n] = '\0';
	*text = buf;
	*len = n;
	return 0;
}

static void summary(const struct mmr_import_result *r)
{
	int i;

	fprintf(stderr,
		"%d of %d calls are in the case (%d statements, %d processes, "
		"%d threads, %d loops)",
		r->mapped, r->calls, r->statements, r->processes, r->threads,
		r->loops);
	if (r->ignored)
		fprintf(stderr, "; %d are not about memory", r->ignored);
	fputc('\n', stderr);
	if (r->unmapped)
		fprintf(stderr, "%d could not be mapped\n", r->unmapped);
	if (r->unread)
		fprintf(stderr, "%d lines were not understood\n", r->unread);
	for (i = 0; i < r->nmissed && i < NAMED; i++)
		fprintf(stderr, "  line %d: %.60s: %s\n", r->missed[i].line,
			r->missed[i].call, r->missed[i].why);
	if (r->nmissed > NAMED)
		fputs("  and more: they are comments in the case\n", stderr);
	if (r->files)
		fprintf(stderr, "%d mappings of files are anonymous in it\n",
			r->files);
	if (r->cut[0])
		fprintf(stderr, "%s\n", r->cut);
}

static json_t *to_json(const struct mmr_import_result *r,
		       enum mmr_import_from from)
{
	const struct {
		const char *key;
		int v;
	} numbers[] = {
		{"lines", r->lines},
		{"calls", r->calls},
		{"mapped", r->mapped},
		{"ignored", r->ignored},
		{"unmapped", r->unmapped},
		{"not_understood", r->unread},
		{"files_anonymous", r->files},
		{"delays_shortened", r->delays_cut},
		{"statements", r->statements},
		{"processes", r->processes},
		{"threads", r->threads},
		{"loops", r->loops},
	};
	json_t *j = json_object(), *missed = json_array();
	size_t i;

	json_object_set_new(
		j, "from",
		json_string(from == MMR_IMPORT_SYZ ? "syz" : "strace"));
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(j, numbers[i].key,
				    json_integer(numbers[i].v));
	for (i = 0; i < (size_t)r->nmissed; i++)
		json_array_append_new(missed,
				      json_pack("{s:i, s:s, s:s}", "line",
						r->missed[i].line, "call",
						r->missed[i].call, "reason",
						r->missed[i].why));
	json_object_set_new(j, "not_mapped", missed);
	json_object_set(j, "ignored_calls", r->ignored_calls);
	json_object_set_new(j, "cut",
			    r->cut[0] ? json_string(r->cut) : json_null());
	json_object_set_new(j, "case", json_string(r->text));
	return j;
}

static int put_out(const struct mmr_cmd_opts *o,
		   const struct mmr_import_result *r, enum mmr_import_from from)
{
	int rc = 0;

	if (o->out) {
		rc = mmr_write_file(o->out, r->text, strlen(r->text));
		if (rc)
			return mmr_opts_error("%s: %s", o->out, strerror(-rc));
	}
	if (o->json)
		mmr_opts_print_json(to_json(r, from));
	else if (!o->out)
		fputs(r->text, stdout);
	return fflush(stdout) ? MMR_EXIT_FAILED : MMR_EXIT_NOTHING;
}

int mmr_cmd_import(int argc, char **argv)
{
	struct mmr_import_opts io = {0};
	struct mmr_import_result r;
	struct mmr_diag diag = {0};
	struct own own = {0};
	struct mmr_cmd_opts o;
	const char *slash;
	char *text = NULL;
	size_t len = 0;
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return rc;
	if (!own.has_from)
		return mmr_opts_error("wants --from syz or --from strace");
	rc = read_all(o.args[0], &text, &len);
	if (rc)
		return mmr_opts_error("%s: %s", o.args[0], strerror(-rc));
	slash = strrchr(o.args[0], '/');
	io.from = own.from;
	io.max_delay_ns = own.max_delay_ns;
	io.touch = own.touch;
	io.name = !strcmp(o.args[0], "-") ? NULL
		  : slash		  ? slash + 1
					  : o.args[0];
	rc = mmr_import(text, len, &io, &r, &diag);
	free(text);
	if (rc == -EINVAL && diag.text[0]) {
		fprintf(stderr, "%s:%d:%d: %s\n", o.args[0], diag.line,
			diag.col ? diag.col : 1, diag.text);
		return MMR_EXIT_USAGE;
	}
	if (rc) {
		mmr_opts_error("%s: %s", o.args[0], strerror(-rc));
		return MMR_EXIT_FAILED;
	}
	rc = put_out(&o, &r, own.from);
	if (!o.json)
		summary(&r);
	mmr_import_release(&r);
	return rc;
}
