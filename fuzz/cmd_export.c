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
	int form;
	bool line;
};

static int set_to(void *own, const char *value)
{
	struct own *o = own;

	o->to = value;
	o->form = mmr_export_form(value);
	if (o->form >= 0)
		return 0;
	mmr_opts_error("--to %s: wants c, ltp or kselftest", value);
	return -EINVAL;
}

static int set_line(void *own, const char *value)
{
	struct own *o = own;

	(void)value;
	o->line = true;
	return 0;
}

static const struct mmr_opt own_opts[] = {
	{"to", "FORM", "c, ltp or kselftest: see above", set_to},
	{"runtest", NULL, "print only the lines that enter it into its suite",
	 set_line},
	{0},
};

static const struct mmr_command command = {
	.name = "export",
	.synopsis = "CASE --to c|ltp|kselftest [-o FILE]",
	.about =
		"Turns a case into one C file that shows the same symptom, "
		"statement for\nstatement, and needs nothing of mmrace:\n"
		"  --to c          only libc; exit 0 healthy, 1 symptom seen, "
		"4 cannot run here\n"
		"  --to ltp        a test for LTP's new library; with -o also "
		"FILE.runtest, its\n                  line for runtest/mm\n"
		"  --to kselftest  a test for tools/testing/selftests/mm; with "
		"-o also\n                  FILE.vmtests, its line for "
		"run_vmtests.sh\n"
		"How long it runs follows from the case's rounds and, once "
		"`mmrace replay` or\n`min` have measured it, from its rate "
		"(the seen line).",
	.examples =
		"  mmrace export x.case --to c -o repro.c\n"
		"  gcc -Wall -pthread -o repro repro.c && ./repro\n"
		"  mmrace export x.case --to ltp -o ltp/testcases/kernel/mem/"
		"race/x01.c\n"
		"  mmrace export x.case --to kselftest --runtest\n",
	.groups = MMR_OPTS_FILE | MMR_OPTS_SEED,
	.opts = own_opts,
	.max_args = 1,
};

/* What the text of `write` is, into memory: an error leaves no half of a file
 * behind. */
struct text {
	char *s;
	size_t len;
};

static int write_both(const struct mmr_case *c, const struct own *own,
		      const char *name, struct text *file, struct text *line,
		      struct mmr_diag *diag)
{
	FILE *f = open_memstream(&file->s, &file->len);
	int rc;

	if (!f)
		return -ENOMEM;
	rc = mmr_export(c, (enum mmr_export_to)own->form, name, f, diag);
	if (fclose(f) && !rc)
		rc = -ENOMEM;
	if (rc)
		return rc;
	f = open_memstream(&line->s, &line->len);
	if (!f)
		return -ENOMEM;
	mmr_export_line(c, (enum mmr_export_to)own->form, name, f);
	return fclose(f) ? -ENOMEM : 0;
}

/* FILE.c -> FILE.runtest, FILE.vmtests. */
static int write_beside(const char *path, enum mmr_export_to to,
			const struct text *line)
{
	const char *end = strrchr(path, '.'), *slash = strrchr(path, '/');
	size_t n = end && (!slash || end > slash) ? (size_t)(end - path)
						  : strlen(path);
	char *beside;
	int rc;

	if (asprintf(&beside, "%.*s.%s", (int)n, path,
		     to == MMR_EXPORT_LTP ? "runtest" : "vmtests") < 0)
		return mmr_opts_error("%s", strerror(ENOMEM));
	rc = mmr_write_file(beside, line->s, line->len);
	if (rc)
		rc = mmr_opts_error("%s: %s", beside, strerror(-rc));
	free(beside);
	return rc;
}

static int put_out(const struct mmr_cmd_opts *o, const struct own *own,
		   const char *name, const struct text *file,
		   const struct text *line)
{
	const struct text *main_text = own->line ? line : file;
	int rc;

	if (o->json) {
		mmr_opts_print_json(json_pack("{s:s, s:s, s:s, s:s}", "to",
					      own->to, "name", name, "source",
					      file->s, "line", line->s));
		return 0;
	}
	if (!o->out) {
		fwrite(main_text->s, 1, main_text->len, stdout);
		return 0;
	}
	rc = mmr_write_file(o->out, main_text->s, main_text->len);
	if (rc)
		return mmr_opts_error("%s: %s", o->out, strerror(-rc));
	if (own->line || own->form == MMR_EXPORT_C)
		return 0;
	return write_beside(o->out, (enum mmr_export_to)own->form, line);
}

/* What the test is called: as its file, else as the case. */
static char *find_name(const struct mmr_cmd_opts *o, const struct mmr_case *c,
		       char *buf, size_t n)
{
	const char *from = o->out ? o->out : o->nargs ? o->args[0] : NULL;

	if (!from || !strcmp(from, "-"))
		from = c->title ? c->title : "";
	return mmr_export_name(from, buf, n);
}

int mmr_cmd_export(int argc, char **argv)
{
	struct text file = {0}, line = {0};
	struct mmr_diag diag = {0};
	struct own own = {0};
	struct mmr_cmd_opts o;
	struct mmr_case *c;
	char name[64];
	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);

	if (rc >= 0)
		return rc;
	if (!own.to)
		return mmr_opts_error("wants --to c, ltp or kselftest");
	rc = mmr_opts_case(&o, o.nargs ? o.args[0] : NULL, &c);
	if (rc)
		return rc;
	find_name(&o, c, name, sizeof(name));
	rc = write_both(c, &own, name, &file, &line, &diag);
	mmr_case_free(c);
	if (!rc) {
		rc = put_out(&o, &own, name, &file, &line);
	} else if (diag.text[0]) {
		fprintf(stderr, "%s:%d:%d: %s\n", o.nargs ? o.args[0] : "seed",
			diag.line, diag.col, diag.text);
		rc = MMR_EXIT_USAGE;
	} else {
		mmr_opts_error("%s", strerror(-rc));
		rc = MMR_EXIT_FAILED;
	}
	free(file.s);
	free(line.s);
	return rc;
}
