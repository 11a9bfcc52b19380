// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace show: a case or a finding, for reading. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../ops/need_probe.h"
#include "../ops/needs.h"
#include "../ops/setting.h"
#include "../triage/timeline.h"
#include "measure.h"
#include "opts.h"

static const struct mmr_command command = {
	.name = "show",
	.synopsis = "CASE | FINDING",
	.about =
		"Tells what a case consists of and whether this machine can "
		"run it, or, for the\nfolder of a finding, what went wrong and "
		"what every thread did around that time.",
	.examples = "  mmrace show corpus/seeds/s2-64m.case\n"
		    "  mmrace show mmrace-out/findings/ID\n",
	.groups = 0,
	.min_args = 1,
	.max_args = 1,
};

/* -- a case ------------------------------------------------------------- */

static const char *need_name(const struct mmr_need *n, char *buf, size_t len)
{
	char size[24];

	switch (n->kind) {
	case MMR_NEED_CPUS:
		snprintf(buf, len, "cpus>=%lld", (long long)n->n);
		break;
	case MMR_NEED_NODES:
		snprintf(buf, len, "nodes>=%lld", (long long)n->n);
		break;
	case MMR_NEED_HUGEPAGES:
		snprintf(buf, len, "hugepages>=%lld", (long long)n->n);
		break;
	case MMR_NEED_CAP:
		snprintf(buf, len, "cap=%s", n->name);
		break;
	case MMR_NEED_NOCAP:
		snprintf(buf, len, "nocap=%s", n->name);
		break;
	case MMR_NEED_SYSCALL:
		snprintf(buf, len, "syscall=%s", n->name);
		break;
	case MMR_NEED_ARCH:
		snprintf(buf, len, "arch=%s", n->name);
		break;
	case MMR_NEED_MEMORY:
		snprintf(buf, len, "memory>=%s",
			 mmr_case_print_size(size, sizeof(size), n->n,
					     MMR_UNIT_BYTE));
		break;
	case MMR_NEED_FEATURE:
		snprintf(buf, len, "feature=%s", n->name);
		break;
	case MMR_NEED_THP:
		snprintf(buf, len, "thp");
		break;
	case MMR_NEED_WRITES:
		snprintf(buf, len, "writes=%s", n->name);
		break;
	case MMR_NEED_SWAP:
		snprintf(buf, len, "swap>=%s",
			 mmr_case_print_size(size, sizeof(size), n->n,
					     MMR_UNIT_BYTE));
		break;
	case MMR_NEED_MEMCG:
		snprintf(buf, len, "memcg");
		break;
	case MMR_NEED_CORE:
		snprintf(buf, len, "core");
		break;
	}
	return buf;
}

static json_t *needs_json(const struct mmr_case *c)
{
	json_t *all = json_array();
	int i;

	for (i = 0; i < c->nneeds; i++) {
		char name[80], text[300] = "";
		bool met = !mmr_need_probe(&c->needs[i], text, sizeof(text));
		json_t *j = json_object();

		json_object_set_new(j, "need",
				    json_string(need_name(&c->needs[i], name,
							  sizeof(name))));
		json_object_set_new(j, "met", json_boolean(met));
		json_object_set_new(j, "text", json_string(met ? "" : text));
		json_array_append_new(all, j);
	}
	return all;
}

static int thread_stmts(const struct mmr_block *b)
{
	int i, n = b->n;

	for (i = 0; i < b->n; i++)
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			n += thread_stmts(&b->stmts[i]->body);
	return n;
}

static json_t *procs_json(const struct mmr_case *c)
{
	json_t *all = json_array();
	int i, k;

	for (i = 0; i < c->nprocs; i++) {
		const struct mmr_proc *p = c->procs[i];
		json_t *j = json_object(), *threads = json_array();

		for (k = 0; k < p->nthreads; k++) {
			const struct mmr_thread *t = p->threads[k];
			json_t *x = json_object();

			json_object_set_new(x, "thread", json_string(t->name));
			json_object_set_new(x, "template",
					    json_boolean(t->is_template));
			json_object_set_new(
				x, "statements",
				json_integer(thread_stmts(&t->body)));
			json_array_append_new(threads, x);
		}
		json_object_set_new(j, "process", json_string(p->name));
		json_object_set_new(j, "template",
				    json_boolean(p->is_template));
		json_object_set_new(j, "copies", json_integer(p->copies));
		json_object_set_new(j, "threads", threads);
		json_array_append_new(all, j);
	}
	return all;
}

static json_t *case_json(const struct mmr_case *c)
{
	char *text = mmr_case_print(c), reason[400] = "";
	bool runs = !mmr_needs_check(c, false, reason, sizeof(reason));
	json_t *j = json_object();

	json_object_set_new(j, "title",
			    c->title ? json_string(c->title) : json_null());
	json_object_set_new(j, "statements", json_integer(mmr_case_count(c)));
	json_object_set_new(j, "rounds", json_integer(c->rounds));
	json_object_set_new(j, "keep", json_boolean(c->keep));
	json_object_set_new(j, "budget_ns", json_integer(c->budget_ns));
	json_object_set_new(j, "processes", procs_json(c));
	json_object_set_new(j, "needs", needs_json(c));
	json_object_set_new(j, "can_run", json_boolean(runs));
	json_object_set_new(j, "reason", json_string(runs ? "" : reason));
	json_object_set_new(j, "case", json_string(text ? text : ""));
	free(text);
	return j;
}

static void print_procs(const struct mmr_case *c)
{
	int i, k;

	for (i = 0; i < c->nprocs; i++) {
		const struct mmr_proc *p = c->procs[i];

		printf("process  %s%s", p->name,
		       p->is_template ? " (when spawned)" : "");
		if (p->copies > 1)
			printf(" x %d", p->copies);
		for (k = 0; k < p->nthreads; k++) {
			int n = thread_stmts(&p->threads[k]->body);

			printf("%s %s%s: %d statement%s", k ? "," : ":",
			       p->threads[k]->name,
			       p->threads[k]->is_template ? " (when spawned)"
							  : "",
			       n, n == 1 ? "" : "s");
		}
		putchar('\n');
	}
}

static void print_case(const struct mmr_case *c)
{
	char reason[400] = "", buf[32], *text = mmr_case_print(c);
	int i;

	printf("title    %s\n", c->title ? c->title : "(none)");
	printf("rounds   %lld%s, at most %s\n", (long long)c->rounds,
	       c->keep ? ", processes live on" : "",
	       c->budget_ns
		       ? mmr_case_print_time(buf, sizeof(buf), c->budget_ns)
		       : "for ever");
	if (c->seen_runs)
		printf("seen     failed in %lld of %lld runs\n",
		       (long long)c->seen_hits, (long long)c->seen_runs);
	if (c->fixed_commit)
		printf("fixed    by %s \"%s\"\n", c->fixed_commit,
		       c->fixed_subject ? c->fixed_subject : "");
	print_procs(c);
	for (i = 0; i < c->nneeds; i++) {
		char name[80], why[300] = "";

		if (mmr_need_probe(&c->needs[i], why, sizeof(why)))
			printf("needs    %s: no, %s\n",
			       need_name(&c->needs[i], name, sizeof(name)),
			       why);
		else
			printf("needs    %s: yes\n",
			       need_name(&c->needs[i], name, sizeof(name)));
	}
	for (i = 0; i < c->nsettings; i++)
		printf("sets     %s to %s (with --allow-settings)\n",
		       c->settings[i].name,
		       mmr_setting_text(mmr_setting_index(c->settings[i].name),
					c->settings[i].value, buf,
					sizeof(buf)));
	if (mmr_needs_check(c, false, reason, sizeof(reason)))
		printf("here     cannot run: %s\n", reason);
	else
		printf("here     can run\n");
	printf("\n%s", text ? text : "");
	free(text);
}

static int show_case(struct mmr_cmd_opts *o)
{
	struct mmr_case *c = NULL;
	int rc = mmr_opts_case(o, o->args[0], &c);

	if (rc)
		return rc;
	if (o->json)
		mmr_opts_print_json(case_json(c));
	else
		print_case(c);
	mmr_case_free(c);
	return MMR_EXIT_NOTHING;
}

/* -- a finding ---------------------------------------------------------- */

static json_t *load(const char *dir, const char *file)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return json_load_file(path, 0, NULL);
}

/* A plain value of verdict.json: key, then value. */
static void print_value(const char *key, const json_t *v)
{
	char *text;

	if (json_is_string(v)) {
		printf("%-12s %s\n", key, json_string_value(v));
		return;
	}
	if (json_is_null(v))
		return;
	text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT |
				     JSON_REAL_PRECISION(6));
	printf("%-12s %s\n", key, text ? text : "?");
	free(text);
}

static void copy_file(const char *title, const char *dir, const char *file)
{
	char path[4096], buf[4096];
	size_t got;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	if (!f)
		return;
	printf("\n%s\n", title);
	while ((got = fread(buf, 1, sizeof(buf), f)) > 0)
		fwrite(buf, 1, got, stdout);
	fclose(f);
}

static int show_finding(const struct mmr_cmd_opts *o)
{
	const char *dir = o->args[0], *key;
	json_t *verdict = load(dir, "verdict.json"), *timeline, *v;

	if (!verdict)
		return mmr_opts_error("%s has no readable verdict.json: this "
				      "is no finding's folder",
				      dir);
	if (o->json) {
		json_t *all = json_object();
		json_t *evidence = load(dir, "evidence.json");

		json_object_set_new(all, "finding", json_string(dir));
		json_object_set_new(all, "verdict", verdict);
		json_object_set_new(all, "evidence",
				    evidence ? evidence : json_null());
		mmr_opts_print_json(all);
		return MMR_EXIT_NOTHING;
	}
	timeline = load(dir, "timeline.json");
	/* The sentence first: it is what one came for. */
	print_value("verdict", json_object_get(verdict, "verdict"));
	print_value("text", json_object_get(verdict, "text"));
	json_object_foreach (verdict, key, v)
		if (strcmp(key, "verdict") && strcmp(key, "text"))
			print_value(key, v);
	copy_file("The case:", dir, "case.case");
	copy_file("Stacks:", dir, "stacks.txt");
	if (timeline) {
		printf("\nTimeline:\n");
		mmr_timeline_text(timeline, stdout);
	}
	json_decref(verdict);
	json_decref(timeline);
	return MMR_EXIT_NOTHING;
}

int mmr_cmd_show(int argc, char **argv)
{
	struct mmr_cmd_opts o;
	struct stat st;
	int rc = mmr_opts_parse(&command, argc, argv, &o, NULL);

	if (rc >= 0)
		return rc;
	if (strcmp(o.args[0], "-") && !stat(o.args[0], &st) &&
	    S_ISDIR(st.st_mode))
		return show_finding(&o);
	return show_case(&o);
}
