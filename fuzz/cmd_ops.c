// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mmrace ops: every operation, from its descriptor.  docs/mmrace-ops.7 is made
 * from the same data.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "opts.h"

static const struct mmr_command command = {
	.name = "ops",
	.synopsis = "[NAME]",
	.about = "Lists the operations that a case can use, or explains one: "
		 "its arguments, what it\nmakes, what it needs, and which race "
		 "is wanted.",
	.examples = "  mmrace ops               one line each\n"
		    "  mmrace ops madvise       all about one\n"
		    "  mmrace ops --json        all about all\n",
	.max_args = 1,
};

static const char *const type_words[] = {
	[MMR_ARG_REF] = "ref",	       [MMR_ARG_SIZE] = "size",
	[MMR_ARG_INT] = "number",      [MMR_ARG_TIME] = "time",
	[MMR_ARG_ENUM] = "one of",     [MMR_ARG_FLAGS] = "flags",
	[MMR_ARG_LATCH] = "latch",     [MMR_ARG_SYNC] = "rendezvous",
	[MMR_ARG_FUTEX] = "futex",     [MMR_ARG_THREAD] = "thread",
	[MMR_ARG_PROCESS] = "process", [MMR_ARG_WORD] = "word",
};

static const struct {
	uint32_t kind;
	const char *name;
} kinds[] = {
	{MMR_REF_MAPPING, "mapping"}, {MMR_REF_THREAD, "thread"},
	{MMR_REF_PROCESS, "process"}, {MMR_REF_PIDFD, "pidfd"},
	{MMR_REF_FILE, "file"},	      {MMR_REF_UFFD, "userfaultfd"},
	{MMR_REF_PROC, "proc file"},
};

static const char *kind_words(uint32_t mask, char *buf, size_t n)
{
	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (mask & kinds[i].kind) {
			size_t at = strlen(buf);

			snprintf(buf + at, n - at, "%s%s", at ? "|" : "",
				 kinds[i].name);
		}
	return buf;
}

static const struct mmr_op *next_op(unsigned int *id)
{
	while (*id < MMR_OP_LIMIT) {
		const struct mmr_op *op = mmr_op_by_id((*id)++);

		if (op)
			return op;
	}
	return NULL;
}

static const char *op_name(void *arg, int i)
{
	const struct mmr_op *op = NULL;
	unsigned int id = 0;

	(void)arg;
	for (int k = 0; k <= i; k++) {
		op = next_op(&id);
		if (!op)
			return NULL;
	}
	return op ? op->name : NULL;
}

/* One argument as the case file has it: off=SIZE, [order=seq|rand]. */
static void print_form(const struct mmr_argspec *a)
{
	bool optional = a->flags & MMR_ARG_OPT;

	printf(optional ? " [" : " ");
	if (a->type == MMR_ARG_WORD)
		printf("%s", a->name);
	else if (a->flags & MMR_ARG_POS)
		printf("%s", a->name);
	else
		printf("%s=..", a->name);
	if (optional)
		putchar(']');
}

static void print_names(const struct mmr_name *n)
{
	int col = 0;

	for (; n && n->name; n++) {
		if (!col || col + (int)strlen(n->name) + 1 > 60) {
			printf("%s%18s", col ? "\n" : "", "");
			col = 0;
		}
		col += printf(" %s", n->name);
	}
	if (col)
		putchar('\n');
}

static void print_bounds(const struct mmr_argspec *a)
{
	char lo[32], hi[32];

	switch (a->type) {
	case MMR_ARG_TIME:
		if (a->max)
			printf(", %s to %s",
			       mmr_case_print_time(lo, sizeof(lo), a->min),
			       mmr_case_print_time(hi, sizeof(hi), a->max));
		if (a->flags & MMR_ARG_AUTO)
			printf(", or auto");
		if (a->flags & MMR_ARG_LOG)
			printf(", or log");
		break;
	case MMR_ARG_SIZE:
		if (a->max)
			printf(", %s to %s",
			       mmr_case_print_size(lo, sizeof(lo), a->min,
						   MMR_UNIT_BYTE),
			       mmr_case_print_size(hi, sizeof(hi), a->max,
						   MMR_UNIT_BYTE));
		break;
	case MMR_ARG_INT:
		printf(", %" PRId64 " to %" PRId64, a->min, a->max);
		break;
	default:
		break;
	}
}

static void print_name_needs(const struct mmr_argspec *a)
{
	for (const struct mmr_name_need *n = a->needs; n && n->needs; n++)
		printf("%19s%s needs %s\n", "", mmr_name_of(a->names, n->value),
		       n->needs);
	for (const struct mmr_name_need *n = a->without; n && n->needs; n++)
		printf("%19swithout %s it needs %s\n", "",
		       mmr_name_of(a->names, n->value), n->needs);
}

static void print_arg(const struct mmr_argspec *a)
{
	char words[96];

	printf("    %-12s  %s (%s", a->name, a->help, type_words[a->type]);
	if (a->type == MMR_ARG_REF)
		printf(" to %s", kind_words(a->kinds, words, sizeof(words)));
	print_bounds(a);
	printf(")\n");
	print_names(a->names);
	print_name_needs(a);
}

static void print_op(const struct mmr_op *op)
{
	char words[96];

	printf("%s: %s\n\n    %s%s", op->name, op->help,
	       op->makes ? "REF = " : "", op->name);
	for (int i = 0; i < op->nargs; i++)
		print_form(&op->args[i]);
	printf("\n\n");
	for (int i = 0; i < op->nargs; i++)
		print_arg(&op->args[i]);
	if (op->makes)
		printf("    makes         %s\n",
		       kind_words(op->makes, words, sizeof(words)));
	printf("    calls         %s\n", mmr_op_calls(op));
	if (op->needs)
		printf("    needs         %s\n", op->needs);
	if (op->race)
		printf("    race          %s\n", op->race);
}

static json_t *needs_json(const struct mmr_argspec *a,
			  const struct mmr_name_need *n)
{
	json_t *j = json_object();

	for (; n->needs; n++)
		json_object_set_new(j, mmr_name_of(a->names, n->value),
				    json_string(n->needs));
	return j;
}

static json_t *arg_json(const struct mmr_argspec *a)
{
	json_t *j = json_object(), *names;
	char words[96];

	json_object_set_new(j, "name", json_string(a->name));
	json_object_set_new(j, "help", json_string(a->help));
	json_object_set_new(j, "type", json_string(type_words[a->type]));
	json_object_set_new(j, "positional",
			    json_boolean(a->flags & MMR_ARG_POS));
	json_object_set_new(j, "optional",
			    json_boolean(a->flags & MMR_ARG_OPT));
	if (a->type == MMR_ARG_REF)
		json_object_set_new(j, "kinds",
				    json_string(kind_words(a->kinds, words,
							   sizeof(words))));
	if (a->type == MMR_ARG_SIZE || a->type == MMR_ARG_INT ||
	    a->type == MMR_ARG_TIME) {
		json_object_set_new(j, "min", json_integer(a->min));
		json_object_set_new(j, "max", json_integer(a->max));
		json_object_set_new(j, "default", json_integer(a->def));
	}
	if (a->names) {
		names = json_array();
		for (const struct mmr_name *n = a->names; n->name; n++)
			json_array_append_new(names, json_string(n->name));
		json_object_set_new(j, "names", names);
	}
	if (a->needs)
		json_object_set_new(j, "needs", needs_json(a, a->needs));
	if (a->without)
		json_object_set_new(j, "needs_without",
				    needs_json(a, a->without));
	return j;
}

static json_t *op_json(const struct mmr_op *op)
{
	json_t *j = json_object(), *args = json_array();
	char words[96];

	json_object_set_new(j, "id", json_integer(op->id));
	json_object_set_new(j, "name", json_string(op->name));
	json_object_set_new(j, "help", json_string(op->help));
	if (op->race)
		json_object_set_new(j, "race", json_string(op->race));
	json_object_set_new(j, "calls", json_string(mmr_op_calls(op)));
	json_object_set_new(j, "needs",
			    op->needs ? json_string(op->needs) : json_null());
	if (op->makes)
		json_object_set_new(j, "makes",
				    json_string(kind_words(op->makes, words,
							   sizeof(words))));
	for (int i = 0; i < op->nargs; i++)
		json_array_append_new(args, arg_json(&op->args[i]));
	json_object_set_new(j, "args", args);
	return j;
}

static int one_op(const struct mmr_cmd_opts *o, const char *name)
{
	const struct mmr_op *op = mmr_op_by_name(name);
	const char *near;

	if (!op) {
		near = mmr_nearest(name, op_name, NULL);
		return mmr_opts_error("no operation is named %s%s%s%s", name,
				      near ? "; did you mean " : "",
				      near ? near : "", near ? "?" : "");
	}
	if (o->json)
		mmr_opts_print_json(op_json(op));
	else
		print_op(op);
	return MMR_EXIT_NOTHING;
}

int mmr_cmd_ops(int argc, char **argv)
{
	const struct mmr_op *op;
	struct mmr_cmd_opts o;
	json_t *all, *j;
	unsigned int id = 0;
	int rc = mmr_opts_parse(&command, argc, argv, &o, NULL);

	if (rc >= 0)
		return rc;
	if (o.nargs)
		return one_op(&o, o.args[0]);
	if (!o.json) {
		while ((op = next_op(&id)))
			printf("%-18s %s\n", op->name, op->help);
		return MMR_EXIT_NOTHING;
	}
	all = json_array();
	while ((op = next_op(&id)))
		json_array_append_new(all, op_json(op));
	j = json_object();
	json_object_set_new(j, "ops", all);
	mmr_opts_print_json(j);
	return MMR_EXIT_NOTHING;
}
