// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One case under watch.  The runner (whoever calls mmr_run) compiles, starts,
 * sleeps until the child ends, the monitor has something, the time is over or
 * somebody interrupts, takes the evidence, and ends whatever still runs.
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../ops/compile.h"
#include "../ops/needs.h"
#include "../ops/setting.h"
#include "calibrate.h"
#include "cap.h"
#include "core_dir.h"
#include "engine.h"
#include "guest.h"
#include "known.h"
#include "memcg.h"
#include "monitor.h"
#include "restored.h"
#include "run_stat.h"
#include "scale.h"
#include "settings.h"
#include "spawn.h"
#include "target.h"

#define MS 1000000LL
#define SECOND 1000000000LL

/* The first three times the scale factor: what takes CPU time takes that many
 * times longer on a slow machine. */
#define GRACE_NS (100 * MS)	/* past the budget: the child ends by itself */
#define SUSPECT_NS (4 * SECOND) /* past the budget, if something is suspect */
#define BOOT_NS (10 * SECOND)	/* the child has to begin within */
#define LAST_NS (700 * MS)	/* past the grace: killed */
#define KILL_NS (2 * SECOND)	/* to die within */
#define HOOK_NS (30 * SECOND)	/* --on-finding may take that long */
#define NO_PIDFD_MS 5

struct run {
	const struct mmr_case *c;
	const struct mmr_run_opts *opts;
	struct mmr_run_result *res;
	struct mmr_target *target;
	struct mmr_spawned child;
	struct mmr_restored restored;
	bool settings, listed, ended;
	struct mmr_outside outside;
	uint64_t start_ns, oom_kills;
	int64_t budget_ns, pause0_ns;
	struct mmr_event *event;
};

static void say(struct mmr_run_result *res, enum mmr_verdict v, const char *fmt,
		...) __attribute__((format(printf, 3, 4)));

static void say(struct mmr_run_result *res, enum mmr_verdict v, const char *fmt,
		...)
{
	va_list ap;

	res->verdict = v;
	va_start(ap, fmt);
	vsnprintf(res->text, sizeof(res->text), fmt, ap);
	va_end(ap);
}

/* Needs and settings.  False: skipped, the sentence is in res. */
static bool prepare(struct run *r)
{
	struct mmr_run_result *res = r->res;
	int err;

	if (mmr_needs_check(r->c, r->opts->allow_settings, res->text,
			    sizeof(res->text))) {
		res->verdict = MMR_SKIPPED;
		return false;
	}
	if (!r->opts->allow_settings)
		return true;
	err = mmr_settings_apply(r->c, res->text, sizeof(res->text));
	if (err) {
		res->verdict = MMR_SKIPPED;
		return false;
	}
	r->settings = true;
	snprintf(r->outside.swap, sizeof(r->outside.swap), "%s",
		 mmr_settings_swap());
	return true;
}

static bool prepare_outside(struct run *r)
{
	int i;

	for (i = 0; i < r->c->nneeds; i++) {
		if (r->c->needs[i].kind == MMR_NEED_CORE &&
		    mmr_core_make(r->outside.core, sizeof(r->outside.core),
				  r->res->text, sizeof(r->res->text))) {
			r->res->verdict = MMR_SKIPPED;
			return false;
		}
		if (r->c->needs[i].kind != MMR_NEED_MEMCG)
			continue;
		if (mmr_memcg_make(&r->outside, r->res->text,
				   sizeof(r->res->text))) {
			r->res->verdict = MMR_SKIPPED;
			return false;
		}
	}
	return true;
}

static bool start(struct run *r)
{
	const struct mmr_run_opts *o = r->opts;
	struct mmr_compile_opts co = {.seed = o->seed,
				      .first_round = o->first_round,
				      .rounds = o->rounds,
				      .budget_ns = o->budget_ns,
				      .ncpus = o->ncpus,
				      .no_offsets = o->no_offsets};
	struct mmr_diag diag = {.text = ""};
	struct mmr_area *area = NULL;
	int fd = -1, err;

	memcpy(co.cpus, o->cpus, sizeof(co.cpus));
	err = mmr_compile(r->c, &co, &area, &fd, &diag);
	if (err) {
		say(r->res, MMR_TOOL_FAILED, "the case does not compile: %s",
		    diag.text[0] ? diag.text : strerror(-err));
		return false;
	}
	r->target = mmr_target_new(area, fd);
	if (!r->target) {
		mmr_area_close(area, fd);
		say(r->res, MMR_TOOL_FAILED, "out of memory or descriptors");
		return false;
	}
	r->target->c = r->c;
	if (r->settings)
		area->program.may_write = mmr_setting_named(r->c);
	area->program.outside = r->outside;
	mmr_detect_limits_init(&r->target->limits, r->c, &o->limits,
			       mmr_scale_factor());
	mmr_detect_limits_tell(&r->target->limits, area);
	mmr_klog_get_mark(&r->target->klog_mark);
	r->oom_kills = mmr_cap_oom_kills();
	r->start_ns = mmr_engine_now_ns();
	if (!o->no_monitor) {
		mmr_target_add(r->target);
		r->listed = true;
	}
	err = mmr_spawn_child(mmr_engine_child(), fd, &r->child);
	if (err) {
		say(r->res, MMR_TOOL_FAILED, "%s cannot be started: %s",
		    mmr_engine_child(), strerror(-err));
		return false;
	}
	return true;
}

static int64_t scaled(const struct run *r, int64_t ns)
{
	return (int64_t)((double)ns * r->target->limits.scale);
}

static int64_t elapsed(const struct run *r)
{
	return (int64_t)(mmr_engine_now_ns() - r->start_ns);
}

/*
 * The time that the budget is for.  An emulated guest may stand still for most
 * of it, when its host has other things to do; elsewhere the wall clock counts,
 * as a run has to end when it is said to.
 */
static int64_t spent(const struct run *r)
{
	int64_t t = elapsed(r), pause, most = scaled(r, SECOND);

	if (r->target->limits.scale < MMR_SCALE_EMULATED)
		return t;
	pause = mmr_monitor_pause_ns() - r->pause0_ns;
	return t - (pause < most ? pause : most);
}

static bool suspecting(const struct run *r)
{
	return r->listed && atomic_load_explicit(&r->target->suspecting,
						 memory_order_relaxed);
}

/* ns until the next thing to do by the clock; < 0: kill it now. */
static int64_t next_deadline(struct run *r, bool *end_sent, int64_t *killed_ns,
			     int64_t *interrupted_ns)
{
	int64_t t = spent(r), end = r->budget_ns;
	int64_t grace = scaled(r, GRACE_NS);
	const struct mmr_area *area = r->target->area;

	if (atomic_load(&area->state) == MMR_STATE_BOOT &&
	    t > scaled(r, BOOT_NS))
		return -1;
	if (mmr_engine_interrupted()) {
		if (*interrupted_ns < 0)
			*interrupted_ns = t;
		end = *interrupted_ns - grace;
	} else if (!end) {
		return SECOND;
	}
	if (t < end + grace)
		return end + grace - t;
	/* END makes the child kill what does not end by itself, and a stall
	 * with it: not while the monitor is on to something.  What began just
	 * before and goes on in spite of END is waited for as well. */
	if (!mmr_engine_interrupted() && suspecting(r) &&
	    t < end + scaled(r, SUSPECT_NS) + r->target->limits.progress_ns) {
		if (!*end_sent)
			mmr_target_ctl(r->target, MMR_CTL_CALM);
		return 20 * MS;
	}
	if (!*end_sent) {
		mmr_target_ctl(r->target, MMR_CTL_END);
		*end_sent = true;
		*killed_ns = t + LAST_NS;
	}
	return *killed_ns - t;
}

/* Sleeps until the child has ended, there is an event, or it is time to
 * kill.  Sets r->ended or r->event or neither. */
static void watch(struct run *r)
{
	bool end_sent = false, woken = false;
	int64_t interrupted_ns = -1, killed_ns = 0, left;

	for (;;) {
		struct pollfd p[3] = {
			{.fd = r->child.pidfd, .events = POLLIN},
			{.fd = r->target->event_fd, .events = POLLIN},
			/* It stays readable: once is enough. */
			{.fd = woken ? -1 : mmr_engine_interrupt_fd(),
			 .events = POLLIN},
		};
		int ms;

		left = next_deadline(r, &end_sent, &killed_ns, &interrupted_ns);
		if (left < 0)
			return;
		ms = left > 3600 * SECOND ? 3600000 : (int)(left / MS) + 1;
		if (r->child.pidfd < 0 && ms > NO_PIDFD_MS)
			ms = NO_PIDFD_MS;
		if (poll(p, 3, ms) < 0 && errno != EINTR)
			return;
		woken |= p[2].revents != 0;
		r->event = mmr_target_receive(r->target);
		if (r->event)
			return;
		if ((p[0].revents || r->child.pidfd < 0) &&
		    mmr_spawn_reap(&r->child)) {
			r->ended = true;
			return;
		}
	}
}

/* --on-finding: bounded, its exit code is its own business. */
static void run_hook(const struct run *r)
{
	char verdict[64], pid[32], tid[32], **env;
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, NULL, NULL};
	struct mmr_spawned hook = {.pidfd = -1};
	struct timespec ms = {0, MS};
	size_t have = 0, n = 0, i;

	while (environ[have])
		have++;
	env = calloc(have + 4, sizeof(*env));
	argv[2] = strdup(r->opts->on_finding);
	if (!env || !argv[2])
		goto out;
	snprintf(verdict, sizeof(verdict), "MMRACE_VERDICT=%s",
		 mmr_verdict_name(r->event->suspect.verdict));
	snprintf(pid, sizeof(pid), "MMRACE_PID=%d", r->event->suspect.host_pid);
	snprintf(tid, sizeof(tid), "MMRACE_TID=%d", r->event->suspect.host_tid);
	env[n++] = verdict;
	env[n++] = pid;
	env[n++] = tid;
	for (i = 0; i < have; i++)
		env[n++] = environ[i];
	if (!posix_spawn(&hook.holder, "/bin/sh", NULL, NULL, argv, env)) {
		for (i = 0; i < HOOK_NS / MS; i++) {
			if (waitpid(hook.holder, NULL, WNOHANG))
				break;
			nanosleep(&ms, NULL);
		}
	}
out:
	free(argv[2]);
	free(env);
}

/* --hold: the stall stays as it is until somebody says so. */
static void hold(const struct run *r)
{
	const struct mmr_suspect *s = &r->event->suspect;
	struct pollfd p = {.fd = mmr_engine_interrupt_fd(), .events = POLLIN};

	fprintf(stderr,
		"mmrace: %s: held, process %d thread %d; Ctrl-C ends it\n",
		mmr_verdict_name(s->verdict), s->host_pid, s->host_tid);
	while (!mmr_engine_interrupted())
		poll(&p, 1, 1000);
}

/* An end by SIGKILL that the case did not send: the OOM killer, or somebody
 * outside.  No finding. */
static bool killed_from_outside(struct run *r)
{
	struct mmr_proc_slot *p =
		MMR_AREA_AT(r->target->area, r->target->area->procs_off,
			    struct mmr_proc_slot);
	int slot = r->event->suspect.proc_slot;

	if (r->event->suspect.verdict != MMR_CRASH || slot < 0 ||
	    (atomic_load(&p[slot].status) & 0x7f) != SIGKILL)
		return false;
	if (mmr_cap_oom_kills() != r->oom_kills)
		say(r->res, MMR_VOID,
		    "the OOM killer ended a process of the case: it needs "
		    "more memory than its cap");
	else
		say(r->res, MMR_VOID,
		    "a process of the case was killed from outside (SIGKILL "
		    "that the case did not send)");
	return true;
}

static void on_event(struct run *r)
{
	struct mmr_suspect *s = &r->event->suspect;
	struct mmr_run_result *res = r->res;
	uint64_t round = atomic_load(&r->target->area->round);

	if (s->verdict == MMR_VOID) {
		say(res, MMR_VOID,
		    "three rounds in a row came to nothing: all that was left "
		    "waited for each other");
		return;
	}
	if (killed_from_outside(r))
		return;
	s->c = r->c;
	s->klog_mark = r->target->klog_mark.seq;
	res->verdict = s->verdict;
	res->stmt = s->stmt;
	res->detect_ns = s->wall_ns;
	res->hit_round = r->opts->first_round + (round ? round - 1 : 0);
	mmr_calibrate_resolve(r->c, r->target->area, res);
	if (r->opts->on_finding) {
		s->before = "on-finding";
		run_hook(r);
	}
	if (r->opts->hold) {
		s->before = "hold";
		hold(r);
	}
	if (r->opts->no_evidence)
		mmr_evidence_brief(s, res);
	else
		mmr_evidence_take(s, res);
	if (!res->log)
		res->log = s->klog ? strdup(s->klog)
				   : mmr_klog_since(&r->target->klog_mark);
}

/* What the monitor may have had no tick for: a run can be over in less. */
static void last_look(struct run *r)
{
	struct mmr_area *area = r->target->area;
	struct mmr_suspect s = {.verdict = MMR_NOTHING,
				.area = area,
				.thread_slot = -1,
				.proc_slot = -1,
				.stmt = -1};
	uint32_t slot = atomic_load(&area->crash_slot);
	struct timespec tick = {0, 20 * MS};
	int i;

	/* What took too long is the monitor's to judge: a few of its ticks. */
	for (i = 0; i < 15 && r->listed && atomic_load(&area->nlate); i++) {
		r->event = mmr_target_receive(r->target);
		if (r->event)
			return;
		nanosleep(&tick, NULL);
	}
	r->event = mmr_target_receive(r->target);
	if (r->event)
		return;
	if (atomic_load(&area->crash_count)) {
		s.verdict = MMR_CRASH;
		if (slot && slot <= MMR_PROC_SLOTS)
			s.proc_slot = (int)slot - 1;
	} else if (mmr_judge_content(area, &s)) {
		/* It is filled in. */
	} else if (r->listed && mmr_klog_pending(&r->target->klog_mark)) {
		s.verdict = MMR_KERNEL_LOG;
		s.klog = mmr_klog_take(&r->target->klog_mark);
		if (!s.klog)
			return;
	} else {
		return;
	}
	r->event = calloc(1, sizeof(*r->event));
	if (r->event)
		r->event->suspect = s;
}

/* No event: did the child do what it should? */
static void judge_end(struct run *r)
{
	struct mmr_area *area = r->target->area;
	struct mmr_run_result *res = r->res;
	uint32_t state = atomic_load(&area->state);
	uint64_t done = atomic_load(&area->rounds_done);
	int status = r->child.status;

	/* Killed by us after its budget, the holder says failed too. */
	if (r->ended && state == MMR_STATE_FAILED) {
		say(res, MMR_TOOL_FAILED, "mmrace-child: %.150s",
		    area->fail_text);
		return;
	}
	if (r->ended && state != MMR_STATE_DONE) {
		if (mmr_cap_oom_kills() != r->oom_kills)
			say(res, MMR_VOID,
			    "the OOM killer ended the case: it needs more "
			    "memory than its cap");
		else if (WIFSIGNALED(status))
			say(res, MMR_TOOL_FAILED,
			    "mmrace-child was ended by signal %d",
			    WTERMSIG(status));
		else
			say(res, MMR_TOOL_FAILED,
			    "mmrace-child ended with code %d before its time",
			    WEXITSTATUS(status));
		return;
	}
	if (!r->ended && state == MMR_STATE_BOOT && !mmr_engine_interrupted()) {
		say(res, MMR_TOOL_FAILED, "mmrace-child did not begin");
		return;
	}
	res->verdict = MMR_NOTHING;
	if (mmr_engine_interrupted() || done > atomic_load(&area->rounds_void))
		return;
	if (mmr_cap_oom_kills() != r->oom_kills)
		say(res, MMR_VOID,
		    "no round counted: the OOM killer ended processes of the "
		    "case, it needs more memory than its cap");
	else
		say(res, MMR_VOID,
		    done ? "no round counted: what its threads waited for "
			   "never came"
			 : "no round came to its end within the budget");
}

static void check_restored(struct run *r)
{
	char text[sizeof(r->res->text)];
	const char *name;

	if (r->res->verdict != MMR_NOTHING || mmr_engine_interrupted())
		return;
	name = mmr_restored_check(&r->restored, r->c, &r->outside, r->listed,
				  text, sizeof(text));
	if (!name)
		return;
	say(r->res, MMR_LEAK, "%s", text);
	snprintf(r->res->signature, sizeof(r->res->signature), "leak %s", name);
	snprintf(r->res->id, sizeof(r->res->id), "leak-%s", name);
}

/* Ends what still runs. */
static void finish(struct run *r)
{
	struct mmr_area *area = r->target->area;

	if (r->ended)
		return;
	mmr_memcg_thaw(&r->outside);
	mmr_spawn_end(&r->child, atomic_load(&area->supervisor_host_pid),
		      KILL_NS);
	r->res->quarantined = mmr_spawn_quarantined();
}

static void run(struct run *r)
{
	r->pause0_ns = mmr_monitor_pause_ns();
	r->budget_ns =
		r->opts->budget_ns ? r->opts->budget_ns : r->c->budget_ns;
	mmr_restored_note(&r->restored, r->c, &r->outside);
	if (!start(r))
		return;
	watch(r);
	/* Evidence, --on-finding and --hold take time too, but not the run. */
	r->res->wall_ns = elapsed(r);
	if (!r->event)
		last_look(r);
	if (r->event)
		on_event(r);
	finish(r);
	if (!r->event)
		judge_end(r);
	if (mmr_run_collect(r->c, r->target->area, r->res))
		say(r->res, MMR_TOOL_FAILED, "out of memory");
	if (!r->event) /* nothing stood still in it */
		mmr_calibrate_add(r->c, r->target->area);
	r->res->pause_ns = mmr_monitor_pause_ns() - r->pause0_ns;
	check_restored(r);
}

/* A hit that --known sets aside keeps its signature and evidence, and is no
 * hit any more. */
static void set_aside(const struct mmr_run_opts *opts,
		      struct mmr_run_result *res)
{
	char text[sizeof(res->text)], until[16];
	const char *reason;

	if (!opts->known || !mmr_verdict_is_hit(res->verdict))
		return;
	reason =
		mmr_known_match(opts->known, res->signature, time(NULL), until);
	if (!reason)
		return;
	memcpy(text, res->text, sizeof(text));
	say(res, MMR_KNOWN, "set aside until %s (%.120s): %.240s", until,
	    reason, text);
}

int mmr_run(const struct mmr_case *c, const struct mmr_run_opts *opts,
	    struct mmr_run_result *res)
{
	struct mmr_run_opts own = *opts;
	struct run r = {.c = c, .opts = &own, .res = res};
	int err;

	if (opts->guest) {
		err = mmr_guest_run(opts->guest, c, opts, res);
		if (!err)
			set_aside(opts, res);
		return err;
	}
	memset(res, 0, sizeof(*res));
	res->stmt = -1;
	r.child.pidfd = -1;
	if (!mmr_engine_running()) {
		say(res, MMR_TOOL_FAILED, "the engine does not run");
		return 0;
	}
	own.budget_ns = own.budget_ns ? own.budget_ns : c->budget_ns;
	if (mmr_calibrate_first(c, opts, &own.budget_ns, res))
		return 0;
	if (prepare(&r) && prepare_outside(&r))
		run(&r);
	if (r.listed)
		mmr_target_retire(r.target);
	mmr_event_free(r.event);
	if (r.target)
		mmr_target_put(r.target);
	mmr_core_remove(r.outside.core);
	if (r.outside.memcg)
		mmr_memcg_remove(&r.outside);
	if (r.settings)
		mmr_settings_restore();
	set_aside(opts, res);
	return 0;
}
