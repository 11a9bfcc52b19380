// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Steps of the evidence ladder that look at the culprit's task: its files
 * below /proc (3), ptrace (7).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../ops/clock.h"
#include "../ops/compile.h"
#include "helper.h"
#include "ladder.h"

#define HELPER_MS 1000
#define EXTRA_MAX 24 /* tasks of other processes in step 3 */
#define UNWIND_MAX 8 /* tasks in step 7 */

/* One look at a task, out of its files. */
struct look {
	char state;
	uint64_t minflt, majflt, utime, stime;
	uint64_t run_ns, delay_ns;
	int64_t voluntary, involuntary; /* -1 unknown */
	int64_t us, tracer;
	const char *stack, *wchan;
};

static int64_t status_number(const char *status, const char *key)
{
	const char *p = strstr(status, key);

	return p ? strtoll(p + strlen(key), NULL, 10) : -1;
}

static void look_parse(const json_t *line, struct look *k)
{
	const char *stat = json_string_value(json_object_get(line, "stat"));
	const char *st = json_string_value(json_object_get(line, "status"));
	const char *sched =
		json_string_value(json_object_get(line, "schedstat"));
	const char *p = stat ? strrchr(stat, ')') : NULL;

	memset(k, 0, sizeof(*k));
	k->us = json_integer_value(json_object_get(line, "us"));
	k->stack = json_string_value(json_object_get(line, "stack"));
	k->wchan = json_string_value(json_object_get(line, "wchan"));
	if (p)
		sscanf(p + 1,
		       " %c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64
		       " %*u %" SCNu64 " %" SCNu64,
		       &k->state, &k->minflt, &k->majflt, &k->utime, &k->stime);
	if (sched)
		sscanf(sched, "%" SCNu64 " %" SCNu64, &k->run_ns, &k->delay_ns);
	k->tracer = st ? status_number(st, "\nTracerPid:") : 0;
	k->voluntary =
		st ? status_number(st, "\nvoluntary_ctxt_switches:") : -1;
	k->involuntary =
		st ? status_number(st, "nonvoluntary_ctxt_switches:") : -1;
}

int mmr_ladder_slot_of(const struct mmr_ladder *l, pid_t tid)
{
	struct mmr_area *a = l->s->area;
	struct mmr_thread_slot *t;
	uint32_t i, n;

	if (!a || !tid)
		return -1;
	n = atomic_load(&a->thread_slots);
	for (i = 0; i < n && i < MMR_THREAD_SLOTS; i++) {
		t = MMR_AREA_AT(a, a->threads_off, struct mmr_thread_slot) + i;
		if (atomic_load(&t->host_tid) == tid &&
		    atomic_load(&t->state) != MMR_THREAD_FREE)
			return (int)i;
	}
	return -1;
}

/* "thread A of main (tid 17), in `write m0`" to stacks.txt. */
static void stack_title(struct mmr_ladder *l, pid_t tid, char state)
{
	int slot = mmr_ladder_slot_of(l, tid);
	const char *thread, *proc;
	struct mmr_thread_slot *t;
	uint32_t stmt;
	char *text;

	fprintf(l->stacks, "tid %d", tid);
	if (slot >= 0) {
		mmr_ladder_names(l->s, slot, &thread, &proc);
		fprintf(l->stacks, ", thread %s of process %s", thread, proc);
		t = MMR_AREA_AT(l->s->area, l->s->area->threads_off,
				struct mmr_thread_slot) +
		    slot;
		stmt = atomic_load(&t->stmt);
		text = stmt && mmr_case_stmt(l->s->c, (int)stmt - 1)
			       ? mmr_case_print_stmt(
					 mmr_case_stmt(l->s->c, (int)stmt - 1))
			       : NULL;
		if (text)
			fprintf(l->stacks, ", in `%s`", text);
		free(text);
	}
	if (state)
		fprintf(l->stacks, ", state %c", state);
	fprintf(l->stacks, "%s\n", tid == l->tid ? " (the culprit)" : "");
}

/* What the looks at the culprit say together. */
static void culprit_facts(struct mmr_ladder *l, const struct look *k, int n)
{
	const struct look *a = &k[0], *b = &k[n - 1];
	double us = (double)(b->us - a->us);
	bool same = true, asleep = true;
	struct mmr_thread_slot *t;
	uint64_t faults;
	int i;

	l->state = b->state;
	l->tracer = b->tracer > 0 ? (pid_t)b->tracer : 0;
	l->tracer_slot = mmr_ladder_slot_of(l, l->tracer);
	for (i = 0; i < n; i++) {
		asleep = asleep && strchr("SDtTI", k[i].state) && k[i].state;
		same = same && !strcmp(k[i].stack ? k[i].stack : "",
				       a->stack ? a->stack : "");
		same = same && !strcmp(k[i].wchan ? k[i].wchan : "",
				       a->wchan ? a->wchan : "");
	}
	l->steady = asleep && same;
	if (b->wchan && strcmp(b->wchan, "0"))
		snprintf(l->wchan, sizeof(l->wchan), "%s", b->wchan);
	if (l->steady && b->stack && *b->stack)
		mmr_signature_frames(b->stack, MMR_FRAMES, l->frames,
				     sizeof(l->frames));
	else if (l->steady)
		snprintf(l->frames, sizeof(l->frames), "%s", l->wchan);
	if (us <= 0)
		return;
	if (b->run_ns >= a->run_ns)
		l->cpu_share = (double)(b->run_ns - a->run_ns) / (us * 1e3);
	l->switch_ms = us / 1e3;
	if (a->voluntary >= 0 && b->voluntary >= 0)
		l->voluntary = b->voluntary - a->voluntary;
	if (a->involuntary >= 0 && b->involuntary >= 0)
		l->involuntary = b->involuntary - a->involuntary;
	if (l->faults_per_s >= 0 || l->s->thread_slot < 0)
		return;
	/* Without perf: what was mended is in minflt, what was not has come
	 * to the handler. */
	t = MMR_AREA_AT(l->s->area, l->s->area->threads_off,
			struct mmr_thread_slot) +
	    l->s->thread_slot;
	faults = atomic_load(&t->faults) - l->segv0;
	if (b->minflt >= a->minflt) /* else it has gone meanwhile */
		l->faults_per_s = (double)(b->minflt - a->minflt) * 1e6 / us;
	if (faults)
		l->faults_per_s = (double)faults * 1e9 /
				  (double)(mmr_clock_monotonic() - l->t0_ns);
}

static json_t *look_json(const struct look *k)
{
	return json_pack("{s:I, s:s%, s:I, s:I, s:I, s:I, s:I, s:I, s:s?, "
			 "s:s?}",
			 "us", (json_int_t)k->us, "state", &k->state,
			 k->state ? (size_t)1 : (size_t)0, "minflt",
			 (json_int_t)k->minflt, "majflt", (json_int_t)k->majflt,
			 "run_ns", (json_int_t)k->run_ns, "delay_ns",
			 (json_int_t)k->delay_ns, "voluntary",
			 (json_int_t)k->voluntary, "involuntary",
			 (json_int_t)k->involuntary, "wchan", k->wchan, "stack",
			 k->stack);
}

/* One task's lines, gathered while they follow one another. */
struct gather {
	json_t *lines[4];
	int n;
	pid_t tid;
};

/* Why there is no kernel stack. */
static const char *no_stack(const struct look *k)
{
	if (k->state == 'R')
		return "(on a CPU: no kernel stack)\n";
	return "(no kernel stack)\n";
}

/* Keeps another task for the classification.  The tid of one before it that
 * is at the same statement in the same place, else 0: of many stuck threads
 * one stack is shown.
 */
static pid_t keep_other(struct mmr_ladder *l, const struct gather *g,
			const struct look *k)
{
	struct mmr_other *o = &l->others[l->nothers];
	int i;

	if (l->nothers == MMR_OTHERS)
		return 0;
	o->pid = (pid_t)json_integer_value(json_object_get(g->lines[0], "pid"));
	o->tid = g->tid;
	o->slot = mmr_ladder_slot_of(l, g->tid);
	o->state = k->state;
	mmr_signature_frames(k->stack ? k->stack : "", MMR_FRAMES, o->frames,
			     sizeof(o->frames));
	if (!o->frames[0] && k->wchan && strcmp(k->wchan, "0"))
		snprintf(o->frames, sizeof(o->frames), "%s", k->wchan);
	if (o->slot >= 0)
		o->stmt = atomic_load(
			&(MMR_AREA_AT(l->s->area, l->s->area->threads_off,
				      struct mmr_thread_slot) +
			  o->slot)
				 ->stmt);
	o->like = 0;
	l->nothers++;
	for (i = 0; o->frames[0] && i < l->nothers - 1 && !o->like; i++)
		if (!l->others[i].like && o->stmt == l->others[i].stmt &&
		    o->pid == l->others[i].pid &&
		    !strcmp(o->frames, l->others[i].frames))
			o->like = l->others[i].tid;
	return o->like;
}

/* Those of which no stack was shown, after the one of which it was. */
static void list_alike(struct mmr_ladder *l)
{
	int i, k, n;

	for (i = 0; i < l->nothers; i++) {
		for (k = i + 1, n = 0; k < l->nothers; k++)
			n += l->others[k].like == l->others[i].tid;
		if (!n || l->others[i].like)
			continue;
		fprintf(l->stacks, "%d more in the same place as tid %d:", n,
			l->others[i].tid);
		for (k = i + 1, n = 0; k < l->nothers; k++)
			if (l->others[k].like == l->others[i].tid)
				fprintf(l->stacks, "%s %d",
					n++ % 12 ? "" : "\n ",
					l->others[k].tid);
		fputs("\n\n", l->stacks);
	}
}

static void show_stack(struct mmr_ladder *l, const struct gather *g,
		       const struct look *k)
{
	const char *prev = NULL;
	int i;

	stack_title(l, g->tid, k[g->n - 1].state);
	for (i = 0; i < g->n; i++) {
		if (!k[i].stack || !strchr(k[i].stack, '<') ||
		    (prev && !strcmp(prev, k[i].stack)))
			continue;
		fprintf(l->stacks, "%s%s", prev ? "later:\n" : "kernel:\n",
			k[i].stack);
		prev = k[i].stack;
	}
	i = g->n - 1;
	if (!prev && k[i].state != 'R' && k[i].wchan && strcmp(k[i].wchan, "0"))
		fprintf(l->stacks,
			"kernel: in %s (its stack cannot be read)\n\n",
			k[i].wchan);
	else
		fprintf(l->stacks, "%s\n", prev ? "" : no_stack(&k[i]));
}

static void gather_end(struct mmr_ladder *l, struct gather *g, json_t *tasks)
{
	json_t *task, *samples = json_array();
	struct look k[4];
	pid_t like = 0;
	int i;

	for (i = 0; i < g->n; i++) {
		look_parse(g->lines[i], &k[i]);
		json_array_append_new(samples, look_json(&k[i]));
	}
	if (g->n) {
		task = json_copy(g->lines[0]);
		json_object_del(task, "stack");
		json_object_del(task, "sample");
		json_object_del(task, "us");
		json_object_set(task, "samples", samples);
		json_object_set_new(
			task, "slot",
			json_integer(mmr_ladder_slot_of(l, g->tid)));
		json_array_append_new(tasks, task);
		if (g->tid == l->tid)
			culprit_facts(l, k, g->n);
		else
			like = keep_other(l, g, &k[g->n - 1]);
		if (!like)
			show_stack(l, g, k);
	}
	json_decref(samples);
	for (i = 0; i < g->n; i++)
		json_decref(g->lines[i]);
	g->n = 0;
}

/* "PID:TID" of live tasks of the case's other processes. */
static int extra_tasks(const struct mmr_ladder *l, char (*names)[24], int max)
{
	struct mmr_area *a = l->s->area;
	struct mmr_thread_slot *t;
	uint32_t i, n = a ? atomic_load(&a->thread_slots) : 0;
	int got = 0, pid, tid;

	for (i = 0; i < n && i < MMR_THREAD_SLOTS && got < max; i++) {
		t = MMR_AREA_AT(a, a->threads_off, struct mmr_thread_slot) + i;
		pid = atomic_load(&t->host_pid);
		tid = atomic_load(&t->host_tid);
		if (atomic_load(&t->state) != MMR_THREAD_RUNNING || !pid ||
		    pid == l->pid)
			continue;
		snprintf(names[got++], sizeof(names[0]), "%d:%d", pid, tid);
	}
	return got;
}

/* Error texts of the culprit's files: what was not possible. */
static void report_errors(struct mmr_ladder *l, const json_t *line)
{
	const json_t *errors = json_object_get(line, "errors");
	const char *name;
	json_t *text;

	if (json_integer_value(json_object_get(line, "tid")) != l->tid ||
	    json_integer_value(json_object_get(line, "sample")))
		return;
	json_object_foreach ((json_t *)(uintptr_t)errors, name, text)
		mmr_ladder_missing(l, "/proc/%d/task/%d/%s: %s", l->pid, l->tid,
				   name, json_string_value(text));
}

/* brief: only the culprit. */
static const char *proc_step(struct mmr_ladder *l, bool brief)
{
	const char *args[4 + EXTRA_MAX + 1] = {"proc"};
	char ids[2][16], extra[EXTRA_MAX][24];
	char *out = NULL, *line, *save = NULL;
	json_t *tasks = json_array(), *j;
	struct gather g = {.n = 0};
	int i, n = 0, ret;
	size_t len;

	snprintf(ids[0], sizeof(ids[0]), "%d", l->pid);
	snprintf(ids[1], sizeof(ids[1]), "%d", l->tid);
	args[1] = ids[0];
	args[2] = ids[1];
	if (brief)
		args[3] = "alone";
	else
		n = extra_tasks(l, extra, EXTRA_MAX);
	for (i = 0; i < n; i++)
		args[3 + i] = extra[i];
	ret = mmr_helper_run(args, HELPER_MS, &out, &len);
	for (line = out ? strtok_r(out, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		j = json_loads(line, 0, NULL);
		if (!j)
			continue; /* cut off by the deadline or the cap */
		report_errors(l, j);
		i = (int)json_integer_value(json_object_get(j, "tid"));
		if (g.n && (i != g.tid || g.n == 4))
			gather_end(l, &g, tasks);
		g.tid = i;
		g.lines[g.n++] = j;
	}
	gather_end(l, &g, tasks);
	list_alike(l);
	free(out);
	json_object_set_new(l->root, "tasks", tasks);
	if (ret)
		mmr_ladder_missing(l, "task files: %s",
				   ret == -ETIME ? "did not come back in 1 s"
						 : strerror(-ret));
	return ret == -ETIME ? "the reader got stuck" : "";
}

const char *mmr_ladder_proc(struct mmr_ladder *l)
{
	return proc_step(l, false);
}

const char *mmr_ladder_proc_brief(struct mmr_ladder *l)
{
	return proc_step(l, true);
}

/* The frames; at each one of mmrace-child the statement of the case that it
 * runs for, by its number, and at the innermost with its text. */
static void user_stack(struct mmr_ladder *l, pid_t tid, const char *text)
{
	int slot = mmr_ladder_slot_of(l, tid);
	const char *line, *end, *in;
	uint32_t stmt = 0;
	char *what = NULL;
	bool first = true;

	if (slot >= 0)
		stmt = atomic_load(
			&(MMR_AREA_AT(l->s->area, l->s->area->threads_off,
				      struct mmr_thread_slot) +
			  slot)
				 ->stmt);
	if (stmt && mmr_case_stmt(l->s->c, (int)stmt - 1))
		what = mmr_case_print_stmt(
			mmr_case_stmt(l->s->c, (int)stmt - 1));
	for (line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		in = memmem(line, (size_t)(end - line), "(mmrace-child)", 14);
		fprintf(l->stacks, "%.*s", (int)(end - line), line);
		if (in && what && first)
			fprintf(l->stacks, "  <- statement %u: `%s`", stmt,
				what);
		else if (in && what)
			fprintf(l->stacks, "  <- statement %u", stmt);
		first &= !in;
		fputc('\n', l->stacks);
	}
	free(what);
}

const char *mmr_ladder_ptrace(struct mmr_ladder *l)
{
	const char *args[2 + UNWIND_MAX + 1] = {"unwind"}, *text, *error;
	char ids[1 + UNWIND_MAX][16];
	char *out = NULL, *line, *save = NULL;
	json_t *stacks = json_array(), *task, *j;
	int n = 2, ret, tid;
	const char *note = "";
	size_t len, i;

	snprintf(ids[0], sizeof(ids[0]), "%d", l->pid);
	snprintf(ids[1], sizeof(ids[1]), "%d", l->tid);
	args[1] = ids[0];
	args[2] = ids[1];
	json_array_foreach (json_object_get(l->root, "tasks"), i, task) {
		tid = (int)json_integer_value(json_object_get(task, "tid"));
		if (n > UNWIND_MAX || tid == l->tid ||
		    json_integer_value(json_object_get(task, "pid")) != l->pid)
			continue;
		snprintf(ids[n], sizeof(ids[n]), "%d", tid);
		args[n + 1] = ids[n];
		n++;
	}
	fprintf(l->stacks, "user stacks (ptrace and libunwind, the last "
			   "step):\n");
	ret = mmr_helper_run(args, HELPER_MS, &out, &len);
	for (line = out ? strtok_r(out, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		j = json_loads(line, 0, NULL);
		if (!j)
			continue;
		tid = (int)json_integer_value(json_object_get(j, "tid"));
		text = json_string_value(json_object_get(j, "stack"));
		error = json_string_value(json_object_get(j, "error"));
		if (error && !strcmp(error, strerror(ETIME)))
			error = "it did not stop: still in the kernel";
		if (error && l->tracer && tid == l->tid)
			error = "another process traces it already";
		stack_title(l, tid, 0);
		user_stack(l, tid, text ? text : "");
		fprintf(l->stacks, "%s%s%s\n", error ? "(" : "",
			error ? error : "", error ? ")\n" : "");
		if (error && tid == l->tid) {
			mmr_ladder_missing(l, "user stack: %s", error);
			note = "no user stack";
		}
		json_array_append_new(stacks, j);
	}
	free(out);
	json_object_set_new(l->root, "user_stacks", stacks);
	if (ret)
		mmr_ladder_missing(l, "user stacks: %s",
				   ret == -ETIME ? "did not come back in 1 s"
						 : strerror(-ret));
	return ret == -ETIME ? "the helper got stuck" : note;
}
