// SPDX-License-Identifier: GPL-2.0-or-later
/* What a soak counts, in memory that does not grow with its length. */
#include "soak_impl.h"

#include <stdio.h>
#include <string.h>

#define PAIRED 256 /* statements looked at for pairs */

/* Two sentences that differ in numbers only are one reason. */
static bool same_reason(const char *a, const char *b)
{
	for (;;) {
		size_t na = strspn(a, "0123456789");
		size_t nb = strspn(b, "0123456789");

		if (!na != !nb)
			return false;
		a += na;
		b += nb;
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

static void add_reason(struct mmr_soak_stat *st, const char *text)
{
	struct mmr_soak_reason *r;
	char line[sizeof(r->text)];

	snprintf(line, sizeof(line), "%.199s", text);
	for (int i = 0; i < st->nreasons; i++) {
		r = &st->reasons[i];
		if (!same_reason(r->text, line))
			continue;
		r->various |= strcmp(r->text, line) != 0;
		r->count++;
		return;
	}
	if (st->nreasons == MMR_SOAK_REASONS) {
		st->other_reasons++;
		return;
	}
	r = &st->reasons[st->nreasons++];
	memcpy(r->text, line, sizeof(line));
	r->count = 1;
}

static void add_measure(struct mmr_soak_op *op, const struct mmr_measure *m,
			bool lists, uint64_t seed)
{
	op->failed += lists ? m->unexpected : m->errors;
	op->errors += m->errors;
	op->unexpected += m->unexpected;
	if (m->max_ns > op->hist.max_ns)
		op->max_seed = seed;
	if (m->hist)
		mmr_histogram_merge(&op->hist, m->hist);
}

static void add_exits(struct mmr_soak_stat *st, uint64_t seed,
		      const struct mmr_run_result *res)
{
	for (int i = 0; i < res->nexits; i++) {
		const struct mmr_exit_measure *e = &res->exits[i];

		st->exits += e->count;
		st->exit_asleep_ns += e->asleep_ns;
		if (e->max_ns > st->exit_max_ns) {
			st->exit_max_ns = e->max_ns;
			st->exit_max_seed = seed;
		}
	}
}

/* Which operations the threads of the case ran, two by two. */
static void add_pairs(struct mmr_soak_stat *st, const struct mmr_case *c,
		      const struct mmr_run_result *res)
{
	struct {
		const struct mmr_thread *thread;
		unsigned int op;
	} ran[PAIRED];
	int n = 0;

	for (int i = 0; i < res->nstmts && n < PAIRED; i++) {
		const struct mmr_stmt *s = mmr_case_stmt(c, i);

		if (!res->stmts[i].count || s->kind != MMR_STMT_OP)
			continue;
		ran[n].thread = mmr_case_stmt_thread(c, i, NULL);
		ran[n++].op = s->op->id;
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++) {
			unsigned int a = ran[i].op, b = ran[k].op;

			if (ran[i].thread == ran[k].thread)
				continue;
			if (a < b)
				st->pairs[a][b / 8] |= (uint8_t)(1 << b % 8);
			else
				st->pairs[b][a / 8] |= (uint8_t)(1 << a % 8);
		}
}

void mmr_soak_stat_add(struct mmr_soak_stat *st, const struct mmr_case *c,
		       uint64_t seed, const struct mmr_run_result *res)
{
	st->verdicts[res->verdict]++;
	if (res->verdict == MMR_SKIPPED) {
		st->skipped++;
		add_reason(st, res->text);
		return;
	}
	if (res->verdict == MMR_TOOL_FAILED) {
		if (!st->failed++)
			snprintf(st->failure, sizeof(st->failure), "%s",
				 res->text);
		return;
	}
	st->cases++;
	st->voids += res->verdict == MMR_VOID;
	st->hits += mmr_verdict_is_hit(res->verdict);
	st->rounds += res->rounds;
	st->rounds_void += res->rounds_void;
	st->ops += res->ops;
	st->calls += res->calls;
	st->pause_ns += res->pause_ns;
	for (int i = 0; i < res->nstmts; i++) {
		const struct mmr_stmt *s;

		if (!res->stmts[i].count)
			continue;
		s = mmr_case_stmt(c, i);
		if (s && s->kind == MMR_STMT_OP)
			add_measure(&st->op[s->op->id], &res->stmts[i],
				    s->naccept > 0, seed);
	}
	add_exits(st, seed, res);
	add_pairs(st, c, res);
}

double mmr_soak_valid(const struct mmr_soak_stat *st)
{
	uint64_t meant = 0, failed = 0;

	for (unsigned int id = 0; id < MMR_OP_LIMIT; id++) {
		const struct mmr_soak_op *o = &st->op[id];
		const struct mmr_op *op = mmr_op_by_id(id);

		if (!op || op->class == MMR_CLASS_PURE ||
		    op->class == MMR_CLASS_WAIT)
			continue;
		/* Errors that a statement lists are neither. */
		meant += o->hist.n - (o->errors - o->failed);
		failed += o->failed;
	}
	return meant ? 1 - (double)failed / (double)meant : 1;
}

unsigned int mmr_soak_pairs(const struct mmr_soak_stat *st)
{
	unsigned int n = 0;

	for (unsigned int a = 0; a < MMR_OP_LIMIT; a++)
		for (unsigned int b = 0; b < MMR_OP_LIMIT / 8; b++)
			n += (unsigned int)__builtin_popcount(st->pairs[a][b]);
	return n;
}
