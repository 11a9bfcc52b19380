// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Climbs the evidence ladder (DESIGN section 5).  The order of the steps is
 * the whole point: a stall that ends when somebody looks at it has to be
 * described before that look, and what describes it has to be on disk before
 * a step that may bring the machine down with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../ops/clock.h"
#include "../ops/compile.h"
#include "finding.h"
#include "ladder.h"
#include "sample.h"

#define PATIENCE_MAX 20
#define SETTLE_MAX_MS 200

static char spool_dir[4096];
static bool want_sysrq;
static _Atomic unsigned int spool_count;

void mmr_evidence_spool(const char *dir)
{
	snprintf(spool_dir, sizeof(spool_dir), "%s", dir ? dir : "");
}

void mmr_evidence_sysrq(bool on)
{
	want_sysrq = on;
}

struct step {
	const char *name;
	const char *(*run)(struct mmr_ladder *);
	int settle_ms;	/* a cure shows within this time */
	bool of_task;	/* needs a live culprit whose task is known */
	bool intrusive; /* not before the spool is on disk */
};

static const struct step steps[] = {
	{"shared-memory", mmr_ladder_memory, 0, false, false},
	{"perf", mmr_ladder_perf, 5, true, false},
	{"proc", mmr_ladder_proc, 5, true, false},
	{"kernel", mmr_ladder_kernel, 0, false, false},
	{"maps", mmr_ladder_maps, 10, true, true},
	{"sysrq", mmr_ladder_sysrq, 10, false, true},
	{"ptrace", mmr_ladder_ptrace, 30, true, true},
};

static void look_at_slot(struct mmr_ladder *l)
{
	const struct mmr_suspect *s = l->s;
	struct mmr_thread_slot *t;
	struct mmr_proc_slot *p;

	if (!s->area)
		return;
	if (s->proc_slot >= 0) {
		p = MMR_AREA_AT(s->area, s->area->procs_off,
				struct mmr_proc_slot) +
		    s->proc_slot;
		if (!l->pid)
			l->pid = atomic_load(&p->host_pid);
		l->seq0 = s->based ? s->seq0 : atomic_load(&p->seq);
		l->state0 =
			s->based ? MMR_PROC_RUNNING : atomic_load(&p->state);
	}
	if (s->verdict == MMR_LONG_EXIT || s->thread_slot < 0)
		return;
	t = MMR_AREA_AT(s->area, s->area->threads_off, struct mmr_thread_slot) +
	    s->thread_slot;
	if (!l->tid)
		l->tid = atomic_load(&t->host_tid);
	l->tid0 = atomic_load(&t->tid);
	l->state0 = atomic_load(&t->state);
	l->seq0 = s->based ? s->seq0 : atomic_load(&t->seq);
	l->progress0 = s->based ? s->progress0 : atomic_load(&t->progress);
	l->segv0 = atomic_load(&t->faults);
}

/*
 * Who holds up an exit: the leader, or, when it is a zombie already, a thread
 * that is not; one in D state before others.  The leader when nothing can be
 * told.
 */
static pid_t living_task(pid_t pid)
{
	struct mmr_task_sample st;
	pid_t tid, best = pid;
	struct dirent *e;
	char path[64];
	DIR *d;

	if (!pid || mmr_sample_task(pid, pid, &st) || st.state != 'Z')
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		tid = (pid_t)atoi(e->d_name);
		if (tid <= 0 || mmr_sample_task(pid, tid, &st) ||
		    st.state == 'Z' || st.state == 'X')
			continue;
		if (best == pid || st.state == 'D')
			best = tid;
	}
	if (d)
		closedir(d);
	return best;
}

static int ladder_init(struct mmr_ladder *l, const struct mmr_suspect *s)
{
	memset(l, 0, sizeof(*l));
	l->s = s;
	l->t0_ns = mmr_clock_monotonic();
	l->patience = 1;
	l->pid = s->host_pid;
	l->tid = s->host_tid;
	l->faults_per_s = -1;
	l->cpu_share = -1;
	l->voluntary = -1;
	l->involuntary = -1;
	l->post_mortem = s->over || s->verdict == MMR_CRASH ||
			 s->verdict == MMR_KERNEL_LOG ||
			 s->verdict == MMR_CORRUPTION || s->verdict == MMR_LEAK;
	l->root = json_object();
	l->missing = json_array();
	look_at_slot(l);
	l->holder = l->owner = -1;
	l->ops0 = mmr_ladder_other_ops(l);
	if (!l->tid)
		l->tid = l->pid;
	if (!l->pid)
		l->pid = l->tid;
	if (s->verdict == MMR_LONG_EXIT)
		l->tid = living_task(l->pid);
	return l->root && l->missing ? 0 : -ENOMEM;
}

/*
 * Who was let run a twentieth of the time takes twenty times as long to show
 * that it can go on, and the next step would be taken for what ended it.  By
 * what the monitor saw of it, and, as a sleeper waits for no CPU, by how much
 * all others have to wait.
 */
static double patience(const struct mmr_suspect *s)
{
	char *psi = mmr_ladder_read("/proc/pressure/cpu", 256);
	const char *at = psi ? strstr(psi, "avg10=") : NULL;
	double waits = at ? strtod(at + 6, NULL) / 100 : 0, own = 0;

	if (s->delay_ns > 0)
		own = (double)s->delay_ns / (double)(s->delay_ns + s->cpu_ns);
	if (own > waits)
		waits = own;
	free(psi);
	return waits > 1 - 1.0 / PATIENCE_MAX ? PATIENCE_MAX : 1 / (1 - waits);
}

/* Gives a cure up to that time to show, on a busy machine more. */
static bool settle(struct mmr_ladder *l, int ms)
{
	const struct timespec nap = {0, 1000000};
	int i;

	if (ms < SETTLE_MAX_MS) {
		ms = (int)(ms * l->patience);
		ms = ms > SETTLE_MAX_MS ? SETTLE_MAX_MS : ms;
	}
	for (i = 0; i < ms && !mmr_ladder_moved(l); i++)
		nanosleep(&nap, NULL);
	return mmr_ladder_moved(l);
}

static json_t *hex(uint64_t v)
{
	return v ? json_sprintf("0x%llx", (unsigned long long)v) : json_null();
}

static json_t *culprit_json(const struct mmr_ladder *l)
{
	const struct mmr_suspect *s = l->s;
	const struct mmr_stmt *st = mmr_case_stmt(s->c, s->stmt);
	const char *thread, *proc;
	char *text = s->stmt >= 0 && st ? mmr_case_print_stmt(st) : NULL;
	json_t *j;

	mmr_ladder_names(s, s->thread_slot, &thread, &proc);
	if (s->thread_slot < 0)
		proc = mmr_ladder_proc_name(s, s->proc_slot);
	j = json_pack(
		"{s:s, s:s, s:i, s:s?, s:s?, s:i, s:i, s:i, s:i}", "thread",
		thread, "process", proc, "stmt", s->stmt, "statement", text,
		"op",
		s->stmt >= 0 && st && st->kind == MMR_STMT_OP ? st->op->name
							      : NULL,
		"thread_slot", s->thread_slot, "process_slot", s->proc_slot,
		"host_pid", (int)l->pid, "host_tid", (int)l->tid);
	free(text);
	return j;
}

/* When it was flagged, in ms of the steps' time: before 0. */
static double flagged_ms(const struct mmr_ladder *l)
{
	return l->s->flagged_ns ? (double)(l->s->flagged_ns - l->t0_ns) / 1e6
				: 0;
}

static json_t *measured_json(const struct mmr_ladder *l)
{
	const struct mmr_suspect *s = l->s;
	json_t *j;

	j = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:o, s:I, "
		      "s:I}",
		      "flagged_at_ms", flagged_ms(l), "wall_ms",
		      (double)s->wall_ns / 1e6, "cpu_ms",
		      (double)s->cpu_ns / 1e6, "run_delay_ms",
		      (double)s->delay_ns / 1e6, "asleep_ms",
		      (double)s->asleep_ns / 1e6, "machine_pause_ms",
		      (double)s->pause_ns / 1e6, "limit_ms",
		      (double)s->limit_ns / 1e6, "page_faults",
		      (json_int_t)s->faults, "page_faults_in_ms",
		      (double)s->fault_ns / 1e6, "address", hex(s->fault_addr),
		      "voluntary_switches", (json_int_t)s->voluntary,
		      "involuntary_switches", (json_int_t)s->involuntary);
	return j;
}

/* The file, and its name in the folder, are on the disk; or -errno. */
static int spool_to(const char *dir, const char *path, const char *text,
		    size_t len)
{
	int err = mmr_mkdir_p(dir), fd;
	size_t done = 0;
	ssize_t n;

	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		  0600);
	if (fd < 0)
		return -errno;
	while (!err && done < len) {
		n = write(fd, text + done, len - done);
		if (n < 0 && errno != EINTR)
			err = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (!err && fsync(fd))
		err = -errno;
	close(fd);
	if (err) {
		unlink(path);
		return err;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd); /* not every file system has it: no reason to stop */
		close(fd);
	}
	return 0;
}

/* Writes what is known by now to disk, and waits until it is there. */
static void spool(struct mmr_ladder *l, char *path, size_t n)
{
	const char *tmp = getenv("TMPDIR");
	const char *dirs[] = {spool_dir, tmp ? tmp : "/tmp"};
	unsigned int k = atomic_fetch_add(&spool_count, 1);
	char *text =
		json_dumps(l->root, JSON_INDENT(1) | JSON_REAL_PRECISION(10));
	int64_t begin = mmr_clock_monotonic();
	size_t i, len = text ? strlen(text) : 0;
	int err = -ENOMEM;

	for (i = 0; text && err && i < 2; i++) {
		if (!*dirs[i])
			continue;
		snprintf(path, n, "%s/spool-%d-%u.json", dirs[i], getpid(), k);
		err = spool_to(dirs[i], path, text, len);
	}
	if (err) {
		path[0] = '\0';
		mmr_ladder_missing(l, "evidence on disk before step 5: %s",
				   strerror(-err));
	}
	json_object_set_new(
		l->root, "spool",
		json_pack("{s:b, s:f, s:f, s:I}", "on_disk", !err, "at_ms",
			  (double)(begin - l->t0_ns) / 1e6, "took_ms",
			  (double)(mmr_clock_monotonic() - begin) / 1e6,
			  "bytes", (json_int_t)len));
	free(text);
}

static void climb_one(struct mmr_ladder *l, const struct step *st, int number)
{
	int64_t begin = mmr_clock_monotonic();
	const char *note = "";
	bool moved = false;
	double at, took;

	if (st->of_task && (l->post_mortem || !l->tid))
		note = l->post_mortem ? "skipped: the culprit is over"
				      : "skipped: the task is not known";
	else if (st->intrusive && l->ended_by)
		note = "skipped: it moves again";
	else
		note = st->run(l);
	at = (double)(begin - l->t0_ns) / 1e6;
	took = (double)(mmr_clock_monotonic() - begin) / 1e6;
	if (!l->ended_by && settle(l, *note == 's' ? 0 : st->settle_ms)) {
		moved = true;
		l->ended_by = st->name;
	}
	/* Looks at a task that has gone on say nothing of the stall: what
	 * the monitor saw has to do. */
	if (l->ended_by && st->run == mmr_ladder_proc) {
		l->state = '\0';
		l->cpu_share = -1;
	}
	json_array_append_new(l->steps,
			      json_pack("{s:i, s:s, s:f, s:f, s:b, s:s}",
					"step", number, "name", st->name,
					"at_ms", at, "took_ms", took, "moved",
					moved, "note", note));
	mmr_timeline_step(l->timeline, l->base.flag_us + at * 1e3, took * 1e3,
			  st->name, moved);
}

/*
 * A sleeper's stack goes before perf: it may wake meanwhile, as an exit that is
 * only just too long, and then there is nothing to tell it by, while perf takes
 * 0.3 s to see nothing of it.
 */
static size_t step_at(const struct mmr_ladder *l, size_t i)
{
	bool asleep = l->s->asleep_ns > l->s->cpu_ns;

	return asleep && (i == 1 || i == 2) ? 3 - i : i;
}

static void climb(struct mmr_ladder *l)
{
	char path[4200] = "";
	bool spooled = false;
	size_t n, i;

	for (n = 0; n < sizeof(steps) / sizeof(steps[0]); n++) {
		i = step_at(l, n);
		if (steps[i].run == mmr_ladder_sysrq && !want_sysrq)
			continue;
		if (steps[i].intrusive && !spooled) {
			spool(l, path, sizeof(path));
			spooled = true;
		}
		climb_one(l, &steps[i], (int)i + 1);
	}
	/* From here on the caller has it all. */
	if (path[0])
		unlink(path);
}

static void head(struct mmr_ladder *l)
{
	char when[32];

	l->steps = json_array();
	json_object_set_new(l->root, "version", json_integer(1));
	json_object_set_new(l->root, "time",
			    json_string(mmr_clock_date(when, sizeof(when))));
	/* Steps count from here. */
	json_object_set_new(l->root, "t0_monotonic_ns",
			    json_integer((json_int_t)l->t0_ns));
	json_object_set_new(l->root, "verdict",
			    json_string(mmr_verdict_name(l->s->verdict)));
	json_object_set_new(l->root, "culprit", culprit_json(l));
	json_object_set_new(l->root, "measured", measured_json(l));
	json_object_set(l->root, "steps", l->steps);
	json_object_set(l->root, "missing", l->missing);
}

static void conclude(struct mmr_ladder *l, struct mmr_run_result *res)
{
	bool said = res->text[0] && (l->s->verdict == MMR_CORRUPTION ||
				     l->s->verdict == MMR_LEAK);

	mmr_ladder_classify(l);
	res->verdict = l->s->verdict;
	res->stmt = l->s->stmt;
	if (!said) /* else the oracle knows better what is wrong */
		mmr_ladder_sentence(l, res->text, sizeof(res->text));
	mmr_ladder_signature(l, res->signature, sizeof(res->signature), res->id,
			     sizeof(res->id));
}

/* What it all amounts to. */
static void tail(struct mmr_ladder *l, const struct mmr_run_result *res)
{
	json_object_set_new(l->root, "ended_by",
			    json_string(l->ended_by ? l->ended_by : "none"));
	json_object_set_new(l->root, "verdict",
			    json_string(mmr_verdict_name(res->verdict)));
	json_object_set_new(l->root, "class",
			    json_string(mmr_stall_name(l->stall)));
	json_object_set_new(l->root, "kernel_frames",
			    mmr_ladder_text(l->frames, strlen(l->frames)));
	json_object_set_new(l->root, "text",
			    mmr_ladder_text(res->text, strlen(res->text)));
	json_object_set_new(
		l->root, "signature",
		mmr_ladder_text(res->signature, strlen(res->signature)));
}

int mmr_evidence_take(const struct mmr_suspect *s, struct mmr_run_result *res)
{
	struct mmr_ladder *l = malloc(sizeof(*l));
	char *stacks = NULL;
	size_t len = 0;
	int slot = s->thread_slot;
	double flag_us;

	res->verdict = s->verdict;
	if (!l)
		return 0;
	if (ladder_init(l, s))
		goto out;
	l->stacks = open_memstream(&stacks, &len);
	if (!l->stacks)
		goto out;
	l->patience = patience(s);
	if (slot < 0 && !l->post_mortem) /* who exits has a slot as well */
		slot = mmr_ladder_slot_of(l, l->tid);
	if (s->area)
		l->timeline = mmr_timeline_build(s->c, s->area, slot,
						 mmr_clock_now(&s->area->clock),
						 &l->base);
	flag_us = l->base.flag_us + flagged_ms(l) * 1e3;
	mmr_timeline_flag(l->timeline, flag_us > 0 ? flag_us : 0,
			  mmr_verdict_name(s->verdict));
	if (s->fault_ns > 0)
		mmr_timeline_faults(
			l->timeline, flag_us - (double)s->fault_ns / 1e3,
			s->proc_slot + 1,
			(double)s->faults * 1e9 / (double)s->fault_ns);
	/* What a command has done to it may take a moment to show. */
	if (s->over)
		l->ended_by = "itself";
	else if (settle(l, s->before ? 200 : 0))
		l->ended_by = s->before ? s->before : "itself";
	head(l);
	if (s->klog)
		json_object_set_new(l->root, "log",
				    mmr_ladder_text(s->klog, strlen(s->klog)));
	climb(l);
	mmr_ladder_symbols(l);
	mmr_ladder_profile(l);
	conclude(l, res);
	tail(l, res);
	fclose(l->stacks);
	json_decref(res->evidence);
	json_decref(res->timeline);
	free(res->stacks);
	res->evidence = json_incref(l->root);
	res->timeline = json_incref(l->timeline);
	res->stacks = stacks;
	if (l->log && *l->log) {
		free(res->log);
		res->log = l->log;
		l->log = NULL;
	}
out:
	json_decref(l->timeline);
	json_decref(l->steps);
	json_decref(l->missing);
	json_decref(l->root);
	free(l->vmstat0);
	free(l->softirqs0);
	json_decref(l->before);
	free(l->log);
	free(l);
	return 0;
}

int mmr_evidence_brief(const struct mmr_suspect *s, struct mmr_run_result *res)
{
	struct mmr_ladder *l = malloc(sizeof(*l));

	res->verdict = s->verdict;
	if (!l)
		return 0;
	if (!ladder_init(l, s)) {
		l->stacks = fopen("/dev/null", "we");
		/* A storm and a post mortem have no stack to sign with. */
		if (l->stacks && l->tid && !l->post_mortem &&
		    s->verdict != MMR_FAULT_STORM)
			mmr_ladder_proc_brief(l);
		conclude(l, res);
		if (l->stacks)
			fclose(l->stacks);
	}
	json_decref(l->missing);
	json_decref(l->root);
	free(l);
	return 0;
}
