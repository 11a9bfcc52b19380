// SPDX-License-Identifier: GPL-2.0-or-later
/* The detector: its life, its limits, and the order of a tick. */
#include "detect.h"

#include <stdlib.h>
#include <string.h>

#include "../ops/compile.h"
#include "watch.h"

void mmr_detect_limits_init(struct mmr_detect_limits *l,
			    const struct mmr_case *c,
			    const struct mmr_limits *opts, double scale)
{
	const struct mmr_op *op;
	int i;

	memset(l, 0, sizeof(*l));
	l->progress_ns = opts->progress_ns;
	l->storm_ns = opts->storm_ns ? opts->storm_ns : MMR_S;
	l->syscall_ns = opts->syscall_ns;
	l->exit_ns = opts->exit_ns;
	l->scale = scale > 1 ? scale : 1;
	for (i = 0; c && i < c->nexpects; i++) {
		const struct mmr_expect *e = &c->expects[i];

		if (e->kind == MMR_EXPECT_PROGRESS && !l->progress_ns)
			l->progress_ns = e->within_ns;
		if (e->kind == MMR_EXPECT_EXIT && !l->exit_ns)
			l->exit_ns = e->within_ns;
		if (e->kind != MMR_EXPECT_CALL || opts->syscall_ns ||
		    l->ncalls == MMR_DETECT_CALLS)
			continue;
		op = mmr_op_by_name(e->name);
		if (op) {
			l->calls[l->ncalls].op = op->id;
			l->calls[l->ncalls++].ns = e->within_ns;
		}
	}
	if (!l->progress_ns)
		l->progress_ns = MMR_S;
}

void mmr_detect_limits_tell(const struct mmr_detect_limits *l,
			    struct mmr_area *area)
{
	struct mmr_program *prog = &area->program;
	struct mmr_insn *in =
		MMR_AREA_AT(area, prog->insns_off, struct mmr_insn);
	const struct mmr_op *op;
	uint32_t i;
	int64_t ns;
	int k;

	prog->exit_within_ns = l->exit_ns > 0 ? (uint64_t)l->exit_ns : 0;
	for (i = 0; i < prog->ninsns; i++) {
		op = in[i].op < MMR_OP_LIMIT ? mmr_op_by_id(in[i].op) : NULL;
		if (!op || op->class > MMR_CLASS_TOUCH)
			continue;
		ns = op->class == MMR_CLASS_CALL ? l->syscall_ns : 0;
		for (k = 0; k < l->ncalls; k++)
			if (l->calls[k].op == op->id)
				ns = l->calls[k].ns;
		if (ns > 0)
			in[i].within =
				mmr_clock_from_ns(&area->clock, (uint64_t)ns);
	}
}

/* A limit below half a second has to be looked at sooner. */
static int64_t watch_after(const struct mmr_detect_limits *l)
{
	int64_t min = 4 * MMR_WATCH_NS;
	int i;

	if (l->syscall_ns && l->syscall_ns < min)
		min = l->syscall_ns;
	if (l->exit_ns && l->exit_ns < min)
		min = l->exit_ns;
	if (l->progress_ns < min)
		min = l->progress_ns;
	for (i = 0; i < l->ncalls; i++)
		if (l->calls[i].ns < min)
			min = l->calls[i].ns;
	return min / 4;
}

struct mmr_detect *mmr_detect_new(struct mmr_area *area,
				  const struct mmr_detect_limits *limits,
				  const struct mmr_probe *probe)
{
	const struct mmr_program *prog = &area->program;
	const struct mmr_insn *insns =
		MMR_AREA_AT(area, prog->insns_off, struct mmr_insn);
	struct mmr_detect *d = calloc(1, sizeof(*d));
	uint32_t i;

	if (!d)
		return NULL;
	d->insns = calloc(prog->nstats ? prog->nstats : 1, sizeof(*d->insns));
	if (!d->insns) {
		free(d);
		return NULL;
	}
	for (i = 0; i < prog->ninsns; i++)
		if (insns[i].op < MMR_OP_LIMIT && insns[i].stat < prog->nstats)
			d->insns[insns[i].stat] = &insns[i];
	d->area = area;
	d->program = prog;
	d->threads =
		MMR_AREA_AT(area, area->threads_off, struct mmr_thread_slot);
	d->procs = MMR_AREA_AT(area, area->procs_off, struct mmr_proc_slot);
	d->limits = *limits;
	d->probe = probe;
	d->watch_ns = watch_after(limits);
	return d;
}

void mmr_detect_free(struct mmr_detect *d)
{
	int i;

	if (!d)
		return;
	for (i = 0; i < MMR_THREAD_SLOTS && d->nperf; i++)
		mmr_watch_drop(d, &d->w[i]);
	free(d->insns);
	free(d);
}

/* Rounds that came to their end since the last tick. */
static void note_rounds(struct mmr_detect *d, struct mmr_detect_out *out)
{
	const struct mmr_area *a = d->area;
	uint64_t done =
		atomic_load_explicit(&a->rounds_done, memory_order_relaxed);
	uint64_t voids =
		atomic_load_explicit(&a->rounds_void, memory_order_relaxed);
	uint64_t round = atomic_load_explicit(&a->round, memory_order_relaxed);
	uint32_t state = atomic_load_explicit(&a->state, memory_order_relaxed);

	if (done != d->rounds_done) {
		if (voids - d->rounds_void >= done - d->rounds_done)
			d->voids += done - d->rounds_done;
		else
			d->voids = 0;
		d->rounds_done = done;
		d->rounds_void = voids;
	}
	out->voids = d->voids >= 3 && voids >= done;
	if (round != d->round || state != d->state)
		d->moved_ns = d->now_ns;
	d->round = round;
	d->state = state;
}

static void note_phase(struct mmr_detect *d)
{
	uint32_t i;

	if (atomic_load_explicit(&d->area->ctl, memory_order_relaxed) ==
	    MMR_CTL_STORM) {
		d->calm_ns = 0;
		return;
	}
	if (d->calm_ns)
		return;
	d->calm_ns = d->now_ns;
	for (i = 0; i < MMR_THREAD_SLOTS; i++)
		d->w[i].calm_base = mmr_watch_stuck(d, (int)i);
}

void mmr_detect_tick(struct mmr_detect *d, uint64_t now_ns,
		     struct mmr_detect_out *out)
{
	memset(out, 0, sizeof(*out));
	if (!d->moved_ns)
		d->moved_ns = now_ns;
	d->now_ns = now_ns;
	note_rounds(d, out);
	note_phase(d);
	mmr_watch_procs(d);
	mmr_watch_threads(d);
	if (d->nkernel || d->nexits)
		mmr_watch_sample(d);
	mmr_judge(d, out);
}

bool mmr_detect_suspecting(const struct mmr_detect *d)
{
	return d->suspecting;
}
