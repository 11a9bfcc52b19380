// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From the rings of the shared area to Chrome trace events.  Rings are read
 * while their threads may write them: an entry that changed under the copy is
 * left out.
 */
#include <stdlib.h>
#include <string.h>

#include "../ops/compile.h"
#include "timeline.h"

#define ROWS_MAX 64
#define EVIDENCE_ROW 9999 /* pid and tid of the ladder's own row */

struct slice {
	int slot;
	bool unfinished;
	struct mmr_ring_entry e;
};

struct gather {
	struct slice *slices;
	int n, rows[ROWS_MAX], nrows;
};

static struct mmr_thread_slot *slot_at(struct mmr_area *a, int i)
{
	return MMR_AREA_AT(a, a->threads_off, struct mmr_thread_slot) + i;
}

static void gather_slot(struct gather *g, struct mmr_area *a, int i,
			uint64_t now)
{
	struct mmr_thread_slot *t = slot_at(a, i);
	volatile struct mmr_ring_entry *v;
	struct slice *s;
	uint32_t stmt;
	int k;

	g->rows[g->nrows++] = i;
	for (k = 0; k < MMR_RING; k++) {
		v = &t->ring[k];
		s = &g->slices[g->n];
		s->slot = i;
		s->unfinished = false;
		s->e.seq = v->seq;
		s->e.stat = v->stat;
		s->e.round = v->round;
		s->e.ret = v->ret;
		s->e.start = v->start;
		s->e.end = v->end;
		g->n += s->e.seq && s->e.seq == v->seq && s->e.start &&
			s->e.end >= s->e.start && s->e.end <= now;
	}
	stmt = atomic_load(&t->stmt);
	if (!stmt || !atomic_load(&t->start) || atomic_load(&t->start) > now)
		return;
	s = &g->slices[g->n++];
	memset(s, 0, sizeof(*s));
	s->slot = i;
	s->unfinished = true;
	s->e.stat = (uint16_t)(stmt - 1);
	s->e.start = atomic_load(&t->start);
	s->e.end = now;
}

static const char *proc_name(const struct mmr_case *c, unsigned int proc)
{
	return proc < (unsigned int)c->nprocs ? c->procs[proc]->name : "idle";
}

static const char *thread_name(const struct mmr_case *c, unsigned int index)
{
	int i;

	for (i = 0; i < c->nprocs; i++) {
		if (index < (unsigned int)c->procs[i]->nthreads)
			return c->procs[i]->threads[index]->name;
		index -= (unsigned int)c->procs[i]->nthreads;
	}
	return "idle";
}

static json_t *events(json_t *t)
{
	return json_object_get(t, "traceEvents");
}

static void add_name(json_t *t, const char *what, int pid, int tid,
		     json_t *name)
{
	json_array_append_new(events(t),
			      json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "name",
					what, "ph", "M", "pid", pid, "tid", tid,
					"args", "name", name));
}

static void add_rows(json_t *t, const struct mmr_case *c, struct mmr_area *a,
		     const struct gather *g)
{
	const struct mmr_proc_slot *p;
	const struct mmr_thread_slot *s;
	int i, k, pid;

	for (i = 0; i < g->nrows; i++) {
		s = slot_at(a, g->rows[i]);
		pid = s->proc_slot + 1;
		for (k = 0; k < i; k++)
			if (slot_at(a, g->rows[k])->proc_slot == s->proc_slot)
				break;
		p = MMR_AREA_AT(a, a->procs_off, struct mmr_proc_slot) +
		    s->proc_slot;
		if (k == i && s->proc_slot < MMR_PROC_SLOTS)
			add_name(t, "process_name", pid, 0,
				 json_sprintf("%s (pid %d)",
					      proc_name(c, p->proc),
					      atomic_load(&p->host_pid)));
		add_name(t, "thread_name", pid, g->rows[i] + 1,
			 json_sprintf("%s (tid %d)", thread_name(c, s->thread),
				      atomic_load(&s->host_tid)));
	}
	add_name(t, "process_name", EVIDENCE_ROW, 0,
		 json_string("mmrace: looking at it"));
	add_name(t, "thread_name", EVIDENCE_ROW, EVIDENCE_ROW,
		 json_string("evidence"));
}

static int by_start(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	return (x->e.start > y->e.start) - (x->e.start < y->e.start);
}

static void add_slices(json_t *t, const struct mmr_case *c, struct mmr_area *a,
		       const struct gather *g, int culprit, uint64_t base)
{
	const struct mmr_clock *clk = &a->clock;
	const struct mmr_stmt *st;
	const struct slice *s;
	char *text;
	json_t *args;
	int i;

	for (i = 0; i < g->n; i++) {
		s = &g->slices[i];
		st = mmr_case_stmt(c, s->e.stat);
		text = st ? mmr_case_print_stmt(st) : NULL;
		args = json_pack("{s:s?, s:i}", "statement", text, "stmt",
				 (int)s->e.stat);
		free(text);
		if (s->unfinished)
			json_object_set_new(args, "unfinished", json_true());
		else
			json_object_set_new(args, "result",
					    json_integer((json_int_t)s->e.ret));
		if (s->unfinished && s->slot == culprit)
			json_object_set_new(args, "culprit", json_true());
		json_array_append_new(
			events(t),
			json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:o}",
				  "name",
				  st && st->kind == MMR_STMT_OP ? st->op->name
								: "loop",
				  "cat", "op", "ph", "X", "ts",
				  (double)mmr_clock_to_ns(clk,
							  s->e.start - base) /
					  1e3,
				  "dur",
				  (double)mmr_clock_to_ns(
					  clk, s->e.end - s->e.start) /
					  1e3,
				  "pid", slot_at(a, s->slot)->proc_slot + 1,
				  "tid", s->slot + 1, "args", args));
	}
}

json_t *mmr_timeline_build(const struct mmr_case *c, struct mmr_area *a,
			   int culprit, uint64_t now,
			   struct mmr_timeline_base *base)
{
	json_t *t = json_pack("{s:s, s:[]}", "displayTimeUnit", "ns",
			      "traceEvents");
	struct gather g = {.n = 0};
	uint32_t i, n = atomic_load(&a->thread_slots);

	base->ticks = now;
	base->flag_us = 0;
	g.slices = calloc((size_t)ROWS_MAX * (MMR_RING + 1), sizeof(*g.slices));
	if (!t || !g.slices)
		goto out;
	if (culprit >= 0 && culprit < MMR_THREAD_SLOTS)
		gather_slot(&g, a, culprit, now);
	for (i = 0; i < n && i < MMR_THREAD_SLOTS && g.nrows < ROWS_MAX; i++)
		if ((int)i != culprit &&
		    atomic_load(&slot_at(a, (int)i)->state) != MMR_THREAD_FREE)
			gather_slot(&g, a, (int)i, now);
	qsort(g.slices, (size_t)g.n, sizeof(*g.slices), by_start);
	if (g.n)
		base->ticks = g.slices[0].e.start;
	base->flag_us =
		(double)mmr_clock_to_ns(&a->clock, now - base->ticks) / 1e3;
	add_rows(t, c, a, &g);
	add_slices(t, c, a, &g, culprit, base->ticks);
out:
	free(g.slices);
	return t;
}

void mmr_timeline_flag(json_t *t, double ts_us, const char *verdict)
{
	if (!t)
		return;
	json_array_append_new(
		events(t),
		json_pack("{s:o, s:s, s:s, s:s, s:f, s:i, s:i}", "name",
			  json_sprintf("flag: %s", verdict), "cat", "flag",
			  "ph", "i", "s", "g", "ts", ts_us, "pid", EVIDENCE_ROW,
			  "tid", EVIDENCE_ROW));
}

void mmr_timeline_faults(json_t *t, double ts_us, int pid, double per_s)
{
	if (!t)
		return;
	json_array_append_new(
		events(t),
		json_pack("{s:s, s:s, s:s, s:f, s:i, s:{s:f}}", "name",
			  "page faults/s", "cat", "faults", "ph", "C", "ts",
			  ts_us < 0 ? 0 : ts_us, "pid", pid > 0 ? pid : 1,
			  "args", "faults", per_s));
}

void mmr_timeline_step(json_t *t, double ts_us, double took_us,
		       const char *name, bool moved)
{
	if (!t)
		return;
	json_array_append_new(
		events(t),
		json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:{s:b}}",
			  "name", name, "cat", "evidence", "ph", "X", "ts",
			  ts_us, "dur", took_us, "pid", EVIDENCE_ROW, "tid",
			  EVIDENCE_ROW, "args", "moved", moved));
}
