// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What each pass has for elements.  Everything comes from the descriptors: an
 * op that is new tomorrow is minimised as well.
 */
#include <errno.h>
#include <string.h>

#include "min.h"

#define MS 1000000LL

static const struct mmr_min_edit none = {.stmt = -1};

/* Is there another element that is the same? */
static bool has_epoch(const struct mmr_min_set *set, const char *name)
{
	int i;

	for (i = 0; i < set->n; i++)
		if (set->e[i].kind == MMR_MIN_EPOCH &&
		    !strcmp(set->e[i].name, name))
			return true;
	return false;
}

int mmr_min_list_parts(struct mmr_min_set *set)
{
	struct mmr_min_edit e = none;
	int i, rc = 0;

	e.kind = MMR_MIN_PROC;
	for (i = 0; i < set->base->nprocs && !rc && set->base->nprocs > 1;
	     i++) {
		e.proc = i;
		rc = mmr_min_set_add(set, &e);
	}
	e.kind = MMR_MIN_THREAD;
	for (i = 0; i < set->nthreads && !rc && set->nthreads > 1; i++) {
		e.thread = i;
		rc = mmr_min_set_add(set, &e);
	}
	e.kind = MMR_MIN_EPOCH;
	for (i = 0; i < set->nstmts && !rc; i++) {
		const struct mmr_stmt *s = set->stmts[i];

		if (s->kind != MMR_STMT_OP || s->op->id != MMR_OP_sync ||
		    has_epoch(set, s->args[0].name))
			continue;
		e.name = s->args[0].name;
		rc = mmr_min_set_add(set, &e);
	}
	return rc;
}

int mmr_min_list_stmts(struct mmr_min_set *set)
{
	struct mmr_min_edit e = none;
	int i, rc = 0;

	e.kind = MMR_MIN_STMT;
	for (i = 0; i < set->nstmts && !rc; i++) {
		e.stmt = i;
		rc = mmr_min_set_add(set, &e);
	}
	return rc;
}

/* The least that a size can be: a page, a huge page, 4 KiB. */
static int64_t least_size(const struct mmr_value *v)
{
	return v->unit == MMR_UNIT_BYTE ? 4096 : 1;
}

static int64_t least_loop(const struct mmr_stmt *s)
{
	/* One turn is what unwrapping means. */
	return s->until == MMR_UNTIL_COUNT ? 2 : MS;
}

static bool is_number(const struct mmr_stmt *s, int arg)
{
	return s->kind == MMR_STMT_OP && s->args[arg].set &&
	       s->op->args[arg].type == MMR_ARG_SIZE;
}

static bool counts(const struct mmr_stmt *s)
{
	return s->kind == MMR_STMT_LOOP &&
	       (s->until == MMR_UNTIL_COUNT || s->until == MMR_UNTIL_TIME);
}

static int list_flags(struct mmr_min_set *set, struct mmr_min_edit *e)
{
	const struct mmr_stmt *s = set->stmts[e->stmt];
	const struct mmr_name *f;
	int rc = 0;

	e->kind = MMR_MIN_FLAG;
	for (f = s->op->args[e->arg].names; f && f->name && !rc; f++) {
		if (!f->value || (s->args[e->arg].lo & f->value) != f->value)
			continue;
		e->value = f->value;
		e->name = f->name;
		rc = mmr_min_set_add(set, e);
	}
	return rc;
}

static int list_args(struct mmr_min_set *set, struct mmr_min_edit *e)
{
	const struct mmr_stmt *s = set->stmts[e->stmt];
	int rc = 0;

	for (e->arg = 0; e->arg < s->op->nargs && !rc; e->arg++) {
		const struct mmr_argspec *spec = &s->op->args[e->arg];
		const struct mmr_value *v = &s->args[e->arg];

		if (!v->set)
			continue;
		if (spec->flags & MMR_ARG_OPT) {
			e->kind = MMR_MIN_DEFAULT;
			rc = mmr_min_set_add(set, e);
		} else if (spec->type == MMR_ARG_FLAGS) {
			rc = list_flags(set, e);
		} else if (is_number(s, e->arg) && v->lo > least_size(v)) {
			e->kind = MMR_MIN_NUMBER;
			e->value = least_size(v);
			rc = mmr_min_set_add(set, e);
		}
	}
	return rc;
}

static int list_threads(struct mmr_min_set *set)
{
	struct mmr_min_edit e = none;
	int i, rc = 0;

	for (i = 0; i < set->nthreads && !rc; i++) {
		e.thread = i;
		e.kind = MMR_MIN_CPU;
		if (set->threads[i]->cpu != MMR_CPU_ANY)
			rc = mmr_min_set_add(set, &e);
		e.kind = MMR_MIN_SEGV;
		if (!rc && set->threads[i]->segv != MMR_SEGV_SKIP)
			rc = mmr_min_set_add(set, &e);
	}
	e.kind = MMR_MIN_COPIES;
	e.value = 1;
	for (i = 0; i < set->base->nprocs && !rc; i++) {
		e.proc = i;
		if (set->base->procs[i]->copies > 1)
			rc = mmr_min_set_add(set, &e);
	}
	return rc;
}

int mmr_min_list_plain(struct mmr_min_set *set)
{
	struct mmr_min_edit e = none;
	int i, rc = list_threads(set);

	e.kind = MMR_MIN_KEEP;
	if (!rc && set->base->keep)
		rc = mmr_min_set_add(set, &e);
	e.kind = MMR_MIN_ORDER;
	if (!rc && set->base->order)
		rc = mmr_min_set_add(set, &e);
	for (i = 0; i < set->nstmts && !rc; i++) {
		const struct mmr_stmt *s = set->stmts[i];

		e = none;
		e.stmt = i;
		if (s->kind == MMR_STMT_OP) {
			rc = list_args(set, &e);
			continue;
		}
		e.kind = MMR_MIN_UNWRAP;
		rc = mmr_min_set_add(set, &e);
	}
	return rc;
}

int mmr_min_list_halves(struct mmr_min_set *set)
{
	struct mmr_min_edit e = none;
	int i, rc = 0;

	e.kind = MMR_MIN_COPIES;
	for (i = 0; i < set->base->nprocs && !rc; i++) {
		e.proc = i;
		e.value = set->base->procs[i]->copies / 2;
		if (e.value >= 1)
			rc = mmr_min_set_add(set, &e);
	}
	for (i = 0; i < set->nstmts && !rc; i++) {
		const struct mmr_stmt *s = set->stmts[i];

		e = none;
		e.stmt = i;
		if (counts(s) && s->count / 2 >= least_loop(s)) {
			e.kind = MMR_MIN_LOOP;
			e.value = s->count / 2;
			rc = mmr_min_set_add(set, &e);
		}
		e.kind = MMR_MIN_NUMBER;
		for (e.arg = 0; s->kind == MMR_STMT_OP && e.arg < s->op->nargs;
		     e.arg++) {
			e.value = s->args[e.arg].lo / 2;
			if (!rc && is_number(s, e.arg) &&
			    e.value >= least_size(&s->args[e.arg]))
				rc = mmr_min_set_add(set, &e);
		}
	}
	return rc;
}

static int64_t one_digit(int64_t v)
{
	int64_t unit = 1, size = v < 0 ? -v : v;

	while (size / unit >= 10)
		unit *= 10;
	return (v + (v < 0 ? -unit / 2 : unit / 2)) / unit * unit;
}

int mmr_min_list_rounding(struct mmr_min_set *set)
{
	struct mmr_min_edit e = none;
	int i, rc = 0;

	e.kind = MMR_MIN_NUMBER;
	for (i = 0; i < set->nstmts && !rc; i++) {
		const struct mmr_stmt *s = set->stmts[i];

		if (s->kind != MMR_STMT_OP)
			continue;
		e.stmt = i;
		for (e.arg = 0; e.arg < s->op->nargs && !rc; e.arg++) {
			const struct mmr_value *v = &s->args[e.arg];

			if (s->op->args[e.arg].type != MMR_ARG_TIME ||
			    !v->set || v->is_auto)
				continue;
			/* A range to its middle, a time to one digit. */
			e.value = one_digit(v->lo + (v->hi - v->lo) / 2);
			if (e.value != v->lo || v->lo != v->hi)
				rc = mmr_min_set_add(set, &e);
		}
	}
	return rc;
}

int mmr_min_list_merges(struct mmr_min_set *set)
{
	struct mmr_min_edit e = none;
	int i, j, rc = 0;

	e.kind = MMR_MIN_MERGE;
	/* Each thread into the one before it: in the end into the first. */
	for (i = 0; i < set->nthreads && !rc; i++)
		for (j = i + 1; j < set->nthreads && !rc; j++) {
			if (set->proc_of[i] != set->proc_of[j] ||
			    set->threads[i]->is_template ||
			    set->threads[j]->is_template)
				continue;
			e.thread = i;
			e.arg = j;
			rc = mmr_min_set_add(set, &e);
			break;
		}
	return rc;
}
