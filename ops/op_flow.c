/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The case's own order and timing: latches, waits, delays and rendezvous.
 * None of them is ever the culprit of a stall.
 */
#include "op.h"

#ifndef MMR_CHILD
#include <stdio.h>

#include "emit.h"
#else
#include "child.h"
#endif

#define DELAY_MAX 60000000000LL
#define AUTO_SKEW 20000	     /* ns, in exported C */
#define SKEW_MAX 100000000LL /* a rendezvous gives up after a second */

#ifdef MMR_CHILD
static int64_t run_signal(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_signal(c, in->arg[0].lo);
}

static int64_t run_wait(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_wait(c, in->arg[0].lo);
}

static int64_t run_pause(struct mmr_child *c, const struct mmr_insn *in)
{
	(void)in;
	return mmr_child_pause(c);
}

static int64_t run_delay(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_delay(c, in, 0);
}

static int64_t run_nanosleep(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_sleep(c, in, 0);
}

static int64_t run_sync(struct mmr_child *c, const struct mmr_insn *in)
{
	return mmr_child_sync(c, in, 0, 1, 2);
}
#else
static void emit_signal(struct mmr_emit *e, const struct mmr_stmt *s)
{
	if (e->polls) {
		mmr_emit_line(e, "shared->latch_%s = 1;", s->args[0].name);
		return;
	}
	e->used |= MMR_USED_LATCH;
	mmr_emit_line(e, "latch_signal(&shared->latch_%s);", s->args[0].name);
}

static void emit_wait(struct mmr_emit *e, const struct mmr_stmt *s)
{
	if (e->meet_waits)
		return; /* in meet() */
	if (e->polls) {
		mmr_emit_line(e, "while (!shared->latch_%s)", s->args[0].name);
		e->indent++;
		mmr_emit_line(e, "usleep(100);");
		e->indent--;
		return;
	}
	e->used |= MMR_USED_WAIT;
	mmr_emit_line(e, "latch_wait(&shared->latch_%s);", s->args[0].name);
}

static void emit_pause(struct mmr_emit *e, const struct mmr_stmt *s)
{
	(void)s;
	e->used |= MMR_USED_PAUSE;
	mmr_emit_line(e, "pause();");
}

static void emit_delay(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char time[80];

	e->used |= MMR_USED_DELAY;
	if (s->args[0].is_log) {
		mmr_emit_line(e, "delay_ns(20L << (%s));",
			      mmr_emit_draw(e, 0, 15, time, sizeof(time)));
		return;
	}
	if (s->args[0].lo == s->args[0].hi) {
		mmr_emit_line(e, "delay_ns(%lld);", (long long)s->args[0].lo);
		return;
	}
	mmr_emit_line(e, "delay_ns(%s);",
		      mmr_emit_draw(e, s->args[0].lo, s->args[0].hi, time,
				    sizeof(time)));
}

static void emit_nanosleep(struct mmr_emit *e, const struct mmr_stmt *s)
{
	const struct mmr_value *v = &s->args[0];
	char time[80], draw[80];

	mmr_emit_header(e, "time.h");
	if (v->is_log)
		snprintf(time, sizeof(time), "20L << (%s)",
			 mmr_emit_draw(e, 0, 15, draw, sizeof(draw)));
	else if (v->lo != v->hi)
		mmr_emit_draw(e, v->lo, v->hi, time, sizeof(time));
	else
		snprintf(time, sizeof(time), "%lld", (long long)v->lo);
	/* Seconds apart where they can be, as nanoseconds end below one. */
	if (!v->is_log && v->lo == v->hi)
		mmr_emit_line(e,
			      "nanosleep(&(struct timespec){ %lld, %lld }, "
			      "NULL);",
			      (long long)v->lo / 1000000000,
			      (long long)v->lo % 1000000000);
	else if (!v->is_log && v->hi >= 1000000000)
		mmr_emit_line(e, "usleep((useconds_t)((%s) / 1000));", time);
	else
		mmr_emit_line(e,
			      "nanosleep(&(struct timespec){ 0, %s }, NULL);",
			      time);
}

/* An offset between two times, as an expression. */
static const char *emit_offset(struct mmr_emit *e, int64_t lo, int64_t hi,
			       char *buf, size_t n)
{
	if (lo != hi)
		return mmr_emit_draw(e, lo, hi, buf, n);
	snprintf(buf, n, "%lld", (long long)lo);
	return buf;
}

static void emit_sync(struct mmr_emit *e, const struct mmr_stmt *s)
{
	const struct mmr_value *skew = &s->args[1], *aim = &s->args[2];
	char which[64] = "", time[80], sign[80], aimed[80];
	int64_t lo = 0, hi = 0;

	/* The bounds of `auto` come from the host; a C file has none. */
	if (skew->set && skew->is_auto) {
		lo = -AUTO_SKEW;
		hi = AUTO_SKEW;
	} else if (skew->set) {
		lo = skew->lo;
		hi = skew->hi;
	}
	e->used |= MMR_USED_SYNC;
	if (!e->one_meet)
		snprintf(which, sizeof(which), "&shared->sync_%s, ",
			 s->args[0].name);
	if (skew->set && skew->is_log) {
		mmr_emit_line(e, "meet(%s(%s ? 20L : -20L) << (%s));", which,
			      mmr_emit_draw(e, 0, 1, sign, sizeof(sign)),
			      mmr_emit_draw(e, 0, 15, time, sizeof(time)));
		return;
	}
	emit_offset(e, lo, hi, time, sizeof(time));
	if (!aim->set || (!aim->lo && !aim->hi)) {
		mmr_emit_line(e, "meet(%s%s);", which, time);
		return;
	}
	emit_offset(e, aim->lo, aim->hi, aimed, sizeof(aimed));
	if (lo == hi && aim->lo == aim->hi)
		mmr_emit_line(e, "meet(%s%s);", which, aimed);
	else
		mmr_emit_line(e, "meet(%s%s ? %s : %s);", which,
			      mmr_emit_draw(e, 0, 3, sign, sizeof(sign)), aimed,
			      time);
}
#endif

#define ARG_LATCH                                                              \
	{                                                                      \
		.name = "latch", .help = "its name", .type = MMR_ARG_LATCH,    \
		.flags = MMR_ARG_POS                                           \
	}

const struct mmr_op mmr_op_signal = {
	.id = MMR_OP_signal,
	.name = "signal",
	.help = "open a latch for all processes, until the round ends",
	.race = "Order between threads where the case needs one.",
	.class = MMR_CLASS_PURE,
	.nargs = 1,
	.args = {ARG_LATCH},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_signal),
	.emit = MMR_EMIT(emit_signal),
};

const struct mmr_op mmr_op_wait = {
	.id = MMR_OP_wait,
	.name = "wait",
	.help = "wait until a latch is open",
	.race = "Order between threads where the case needs one.",
	.class = MMR_CLASS_WAIT,
	.nargs = 1,
	.args = {ARG_LATCH},
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_wait),
	.emit = MMR_EMIT(emit_wait),
};

const struct mmr_op mmr_op_pause = {
	.id = MMR_OP_pause,
	.name = "pause",
	.help = "sleep until killed or the storm ends",
	.race = "A thread that sleeps while others act on its memory.",
	.class = MMR_CLASS_WAIT,
	.call = {.nr = -1},
	.calls = "futex",
	.run = MMR_RUN(run_pause),
	.emit = MMR_EMIT(emit_pause),
};

const struct mmr_op mmr_op_delay = {
	.id = MMR_OP_delay,
	.name = "delay",
	.help = "wait for a time, drawn anew each round when a range",
	.race = "Moves one side of a race against the other.",
	.class = MMR_CLASS_PURE,
	.nargs = 1,
	.args = {{.name = "time",
		  .help = "how long",
		  .type = MMR_ARG_TIME,
		  .flags = MMR_ARG_POS | MMR_ARG_LOG,
		  .max = DELAY_MAX}},
	.call = {.nr = -1},
	.calls = "nanosleep",
	.run = MMR_RUN(run_delay),
	.emit = MMR_EMIT(emit_delay),
};

const struct mmr_op mmr_op_nanosleep = {
	.id = MMR_OP_nanosleep,
	.name = "nanosleep",
	.help = "sleep for a time, however short, drawn anew when a range",
	.race = "In a loop of a thread on the CPU of another one it is a storm "
		"of timer interrupts and preemptions there: what is short gets "
		"long.",
	.class = MMR_CLASS_PURE,
	.nargs = 1,
	.args = {{.name = "time",
		  .help = "how long",
		  .type = MMR_ARG_TIME,
		  .flags = MMR_ARG_POS | MMR_ARG_LOG,
		  .max = DELAY_MAX}},
	.call = {.nr = -1},
	.calls = "nanosleep",
	.run = MMR_RUN(run_nanosleep),
	.emit = MMR_EMIT(emit_nanosleep),
};

const struct mmr_op mmr_op_sync = {
	.id = MMR_OP_sync,
	.name = "sync",
	.help = "meet all threads that name it, then go at one instant",
	.race = "Starts both sides of a race within nanoseconds, each moved "
		"by its skew.",
	.class = MMR_CLASS_WAIT,
	.nargs = 3,
	.args = {{.name = "sync",
		  .help = "its name",
		  .type = MMR_ARG_SYNC,
		  .flags = MMR_ARG_POS},
		 {.name = "skew",
		  .help = "later or earlier by, drawn each round",
		  .type = MMR_ARG_TIME,
		  .flags = MMR_ARG_OPT | MMR_ARG_SIGNED | MMR_ARG_AUTO |
			   MMR_ARG_LOG,
		  .min = -SKEW_MAX,
		  .max = SKEW_MAX},
		 {.name = "aim",
		  .help = "three of four times by one of these instead",
		  .type = MMR_ARG_TIME,
		  .flags = MMR_ARG_OPT | MMR_ARG_SIGNED,
		  .min = -SKEW_MAX,
		  .max = SKEW_MAX}},
	.call = {.nr = -1},
	.calls = "futex sched_yield",
	.run = MMR_RUN(run_sync),
	.emit = MMR_EMIT(emit_sync),
};
