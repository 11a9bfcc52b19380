// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every run adds to the calibration table, so that it costs nothing of its
 * own once it knows an operation; and a hit turns draws into nanoseconds, so
 * that what is stored does not depend on the table.
 */
#include "calibrate.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/clock.h"
#include "../ops/compile.h"
#include "../ops/timing.h"
#include "run_stat.h"

#define SAVE_NS 10000000000LL
#define FIRST_NS 500000000LL /* the first rounds take at most that */

static _Atomic int64_t saved_ns;

/* Now and then, by one thread: a soak may be killed. */
static void save_sometimes(void)
{
	int64_t now = mmr_clock_monotonic(), last = atomic_load(&saved_ns);

	if (now - last > SAVE_NS &&
	    atomic_compare_exchange_strong(&saved_ns, &last, now))
		(void)mmr_calib_save();
}

static void add_stmt(const struct mmr_area *area, struct mmr_stat *st,
		     struct mmr_calib_key key)
{
	uint64_t median, p90, n;

	n = mmr_run_quantiles(area, st, &median, &p90);
	if (n)
		mmr_calib_add(key, n, median, p90);
}

void mmr_calibrate_add(const struct mmr_case *c, struct mmr_area *area)
{
	struct mmr_stat *st =
		MMR_AREA_AT(area, area->stats_off, struct mmr_stat);
	struct mmr_calib_key key;
	struct mmr_proc *p;
	int i;

	for (i = 0; i < (int)area->program.nstats; i++) {
		if (!atomic_load_explicit(&st[i].count, memory_order_relaxed) ||
		    !mmr_case_stmt_thread(c, i, &p) ||
		    !mmr_timing_key(p, mmr_case_stmt(c, i), &key))
			continue;
		add_stmt(area, &st[i], key);
	}
	save_sometimes();
}

bool mmr_calibrate_first(const struct mmr_case *c,
			 const struct mmr_run_opts *opts, int64_t *budget_ns,
			 struct mmr_run_result *res)
{
	struct mmr_run_opts o = *opts;
	int64_t start = mmr_clock_monotonic(), spent;

	if (opts->no_offsets || !mmr_timing_unknown(c))
		return false;
	o.no_offsets = true;
	o.rounds = MMR_CALIB_FIRST;
	if (opts->rounds && opts->rounds < o.rounds)
		o.rounds = opts->rounds;
	o.budget_ns = FIRST_NS;
	if (*budget_ns && *budget_ns / 4 < o.budget_ns)
		o.budget_ns = *budget_ns / 4 + 1;
	if (mmr_run(c, &o, res))
		return false;
	/* Void: too little time for a round; the run itself will tell. */
	if (res->verdict != MMR_NOTHING && res->verdict != MMR_VOID)
		return true;
	mmr_run_result_free(res);
	res->stmt = -1;
	mmr_timing_assume(c);
	spent = mmr_clock_monotonic() - start;
	if (*budget_ns)
		*budget_ns = *budget_ns > spent ? *budget_ns - spent : 1;
	return false;
}

/* The instruction that statement number i was compiled to. */
static const struct mmr_insn *insn_of(struct mmr_area *area, int i)
{
	const struct mmr_insn *in =
		MMR_AREA_AT(area, area->program.insns_off, struct mmr_insn);
	uint32_t k;

	for (k = 0; k < area->program.ninsns; k++)
		if (in[k].stat == i && in[k].op < MMR_OP_LIMIT)
			return &in[k];
	return NULL;
}

/* Nanoseconds in place of what statement i draws. */
static void resolve_stmt(struct mmr_area *area, struct mmr_stmt *s, int i,
			 bool exact)
{
	struct mmr_stat *st =
		MMR_AREA_AT(area, area->stats_off, struct mmr_stat);
	const struct mmr_insn *in = insn_of(area, i);
	int64_t drawn = atomic_load(&st[i].drawn);
	bool ran = drawn || atomic_load(&st[i].count);
	int k, aim = mmr_op_arg(s->op, "aim");
	struct mmr_timing_range r = {0};
	struct mmr_value *v;

	for (k = 0; in && k < s->op->nargs; k++) {
		v = &s->args[k];
		if (s->op->args[k].type != MMR_ARG_TIME || !v->set)
			continue;
		if (v->is_auto) {
			r.lo = in->arg[k].lo;
			r.hi = in->arg[k].hi;
			if (aim >= 0) {
				r.aim_lo = in->arg[aim].lo;
				r.aim_hi = in->arg[aim].hi;
			}
			mmr_timing_put(s, v, &r);
		}
		if (exact && ran && k == aim) {
			v->set = false;
			v = &s->args[mmr_op_arg(s->op, "skew")];
			v->set = true;
			v->lo = v->hi = drawn;
		} else if (exact && ran && (v->is_log || v->lo != v->hi)) {
			v->is_log = false;
			v->lo = v->hi = drawn;
		}
	}
}

static char *resolved(const struct mmr_case *c, struct mmr_area *area,
		      bool exact)
{
	struct mmr_case *copy = mmr_case_clone(c);
	struct mmr_stmt *s;
	char *text = NULL;
	int i;

	if (!copy)
		return NULL;
	for (i = 0; (s = mmr_case_stmt(copy, i)); i++)
		if (s->kind == MMR_STMT_OP)
			resolve_stmt(area, s, i, exact);
	text = mmr_case_print(copy);
	mmr_case_free(copy);
	return text;
}

void mmr_calibrate_resolve(const struct mmr_case *c, struct mmr_area *area,
			   struct mmr_run_result *res)
{
	if (!mmr_timing_draws(c))
		return;
	free(res->exact);
	free(res->bound);
	res->exact = resolved(c, area, true);
	res->bound = resolved(c, area, false);
}

struct mmr_case *mmr_calibrate_case(const struct mmr_run_result *res,
				    bool exact)
{
	const char *text = exact ? res->exact : res->bound;
	struct mmr_case *c = NULL;
	struct mmr_diag diag;

	if (!text || mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL))
		return NULL;
	return c;
}
