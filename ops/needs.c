// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a case asks of the machine: its needs lines, what its header names and
 * what the descriptors of its operations and their arguments say.
 */
#include "needs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "need_probe.h"
#include "print.h"
#include "setting.h"

/* What takes pages from the machine for good: only where the user allows a
 * case to change things, which in a guest he does. */
#define NEEDS_ALLOWED "allowed"

/* Who asks for something, and how badly. */
struct asker {
	const char *who;
	bool may_set;
	bool tolerant; /* a refusal is a result that it accepts */
};

/* The needs of a descriptor or of a name, words as in a needs line. */
static int check_words(const struct asker *a, const char *needs, char *text,
		       size_t n)
{
	char words[128], *save = NULL, *w, *value, why[200];
	struct mmr_need need;
	const char *word;
	int kind;

	snprintf(words, sizeof(words), "%s", needs);
	for (w = strtok_r(words, " ", &save); w;
	     w = strtok_r(NULL, " ", &save)) {
		if (strcmp(w, NEEDS_ALLOWED) == 0) {
			if (a->may_set)
				continue;
			return mmr_need_missing(
				text, n,
				"%s takes pages from the machine for "
				"good: run it in a guest (--guest), or "
				"give --allow-settings",
				a->who);
		}
		if (a->tolerant)
			continue;
		need = (struct mmr_need){0};
		value = w + strcspn(w, ">=");
		for (kind = MMR_NEED_CPUS; kind <= MMR_NEED_LAST; kind++) {
			word = mmr_need_word((enum mmr_need_kind)kind);
			if (strlen(word) == (size_t)(value - w) &&
			    strncmp(word, w, strlen(word)) == 0)
				break;
		}
		need.kind = (enum mmr_need_kind)kind;
		value += strspn(value, ">=");
		need.name = value;
		need.n = strtoll(value, NULL, 10);
		if (mmr_need_ask(&need, a->may_set, why, sizeof(why)))
			return mmr_need_missing(text, n, "%s %s", a->who, why);
	}
	return 0;
}

/* Statements that need a swap area or groups find none without the line. */
static int check_outside(const struct mmr_case *c, const bool *used, char *text,
			 size_t n)
{
	static const struct {
		int first, last;
		enum mmr_need_kind kind;
		const char *word;
	} wants[] = {
		{MMR_OP_swapoff, MMR_OP_swapon, MMR_NEED_SWAP, "swap>=64M"},
		{MMR_OP_cgroup_create, MMR_OP_cgroup_move, MMR_NEED_MEMCG,
		 "memcg"},
	};
	size_t i;
	int id, k;

	for (i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		for (id = wants[i].first; id <= wants[i].last; id++) {
			for (k = 0; k < c->nneeds; k++)
				if (c->needs[k].kind == wants[i].kind)
					break;
			if (used[id] && k == c->nneeds)
				return mmr_need_missing(
					text, n,
					"%s is about something that the "
					"header does not ask for: add "
					"`needs %s`",
					mmr_op_by_id((unsigned int)id)->name,
					wants[i].word);
		}
	return 0;
}

/* Statements write only what the header names, so that it is known before
 * what has to be put back. */
static int check_written(const struct mmr_case *c, char *text, size_t n)
{
	uint64_t rest = mmr_setting_written(c) & ~mmr_setting_named(c);
	const char *name;

	if (!rest)
		return 0;
	name = mmr_setting_table[__builtin_ctzll(rest)].name;
	return mmr_need_missing(
		text, n,
		"its statements write %s and its header does not say "
		"so: add `needs writes=%s`",
		name, name);
}

/* A statement that takes a refusal for a result needs nothing. */
static bool accepts_refusal(const struct mmr_stmt *s)
{
	int i;

	for (i = 0; i < s->naccept; i++)
		if (s->accept[i] == EINVAL || s->accept[i] == EOPNOTSUPP ||
		    s->accept[i] == EPERM)
			return true;
	return false;
}

/* What the names need that an argument is made of, or that it lacks. */
static int check_names(const struct mmr_stmt *s, int arg, bool may_set,
		       char *text, size_t n)
{
	const struct mmr_argspec *a = &s->op->args[arg];
	int64_t v = s->args[arg].set ? s->args[arg].lo : a->def;
	const struct mmr_name_need *need;
	char who[100];
	struct asker asker = {who, may_set, accepts_refusal(s)};
	int rc = 0;

	for (need = a->needs; need && need->needs && !rc; need++) {
		if (!s->args[arg].set ||
		    (a->type == MMR_ARG_FLAGS ? (v & need->value) != need->value
					      : v != need->value))
			continue;
		snprintf(who, sizeof(who), "%s %s", s->op->name,
			 mmr_name_of(a->names, need->value));
		rc = check_words(&asker, need->needs, text, n);
	}
	for (need = a->without; need && need->needs && !rc; need++) {
		if (v & need->value)
			continue;
		snprintf(who, sizeof(who), "%s without %s", s->op->name,
			 mmr_name_of(a->names, need->value));
		rc = check_words(&asker, need->needs, text, n);
	}
	return rc;
}

static void mark_used(const struct mmr_block *b, bool *used)
{
	int i;

	for (i = 0; i < b->n; i++)
		if (b->stmts[i]->kind == MMR_STMT_LOOP)
			mark_used(&b->stmts[i]->body, used);
		else
			used[b->stmts[i]->op->id] = true;
}

static int check_block(const struct mmr_block *b, bool may_set, char *text,
		       size_t n)
{
	const struct mmr_stmt *s;
	int i, j, rc = 0;

	for (i = 0; i < b->n && !rc; i++) {
		s = b->stmts[i];
		if (s->kind == MMR_STMT_LOOP) {
			rc = check_block(&s->body, may_set, text, n);
			continue;
		}
		for (j = 0; j < s->op->nargs && !rc; j++)
			rc = check_names(s, j, may_set, text, n);
	}
	return rc;
}

/* What the statements need: the operations first, as a sentence about a whole
 * call says more than one about a flag of it. */
static int check_statements(const struct mmr_case *c, bool may_set, char *text,
			    size_t n)
{
	bool used[MMR_OP_LIMIT] = {false};
	struct asker asker;
	const struct mmr_op *op;
	unsigned int id;
	int i, j, rc;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++)
			mark_used(&c->procs[i]->threads[j]->body, used);
	rc = check_outside(c, used, text, n);
	for (id = 0; id < MMR_OP_LIMIT && !rc; id++) {
		op = used[id] ? mmr_op_by_id(id) : NULL;
		if (!op || !op->needs)
			continue;
		asker = (struct asker){op->name, may_set, false};
		rc = check_words(&asker, op->needs, text, n);
	}
	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads && !rc; j++)
			rc = check_block(&c->procs[i]->threads[j]->body,
					 may_set, text, n);
	return rc;
}

int mmr_needs_check(const struct mmr_case *c, bool may_set, char *text,
		    size_t n)
{
	int i, rc;

	for (i = 0; i < c->nneeds; i++) {
		rc = mmr_need_ask(&c->needs[i], may_set, text, n);
		if (rc)
			return rc;
	}
	for (i = 0; i < c->nexpects; i++)
		if (c->expects[i].kind == MMR_EXPECT_RESTORED &&
		    strcmp(c->expects[i].name, "memcg_charge") != 0 &&
		    mmr_need_meminfo(c->expects[i].name) == INT64_MIN)
			return mmr_need_missing(
				text, n,
				"expects %s to be restored, and this "
				"kernel's /proc/meminfo has no such "
				"field",
				c->expects[i].name);
	for (i = 0; i < c->nsettings; i++) {
		rc = mmr_need_ask(
			&(struct mmr_need){.kind = MMR_NEED_WRITES,
					   .name = c->settings[i].name},
			may_set, text, n);
		if (rc)
			return rc;
	}
	rc = check_written(c, text, n);
	return rc ? rc : check_statements(c, may_set, text, n);
}
