/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs in a guest: a fresh copy of the saved state (or the same guest while
 * it is healthy), a request, an answer or what became of it.
 */
#include "guest_member.h"
#include "evidence.h"
#include "guest_wire.h"
#include "result_json.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ops/clock.h"

#define SEC 1000000000LL
/* Wide: an emulated, loaded machine. */
#define BOOT_LIMIT (120 * SEC)
#define RESTORE_LIMIT (20 * SEC)
#define RESTORE_TRIES 2
#define SILENCE (60 * SEC)    /* a sign of life is due every second */
#define RUN_LIMIT (600 * SEC) /* and then a run that never ends is a hang */
#define CONSOLE_KEEP 65536

/* Takes signs of life from the line; false: an answer begins, or its end. */
static bool lives(int line)
{
	char c;

	if (recv(line, &c, 1, MSG_PEEK) != 1 || c != MMR_WIRE_ALIVE)
		return false;
	return recv(line, &c, 1, 0) == 1;
}

/*
 * Until the first byte of an answer; an interrupt ends it within 0.1 s.  A
 * guest that gives no sign of life for long does not run user space any more.
 */
static int wait_answer(struct mmr_guest_member *m, int64_t end)
{
	int64_t silence = mmr_clock_monotonic() + SILENCE;

	while (mmr_clock_monotonic() < (end < silence ? end : silence)) {
		struct pollfd p = {.fd = m->qemu.line, .events = POLLIN};

		if (poll(&p, 1, 100) > 0) {
			if (!lives(m->qemu.line))
				return 0;
			silence = mmr_clock_monotonic() + SILENCE;
		}
		if (mmr_engine_interrupted())
			return -EINTR;
		if (!mmr_qemu_alive(&m->qemu))
			return -EPIPE;
	}
	return -ETIMEDOUT;
}

/* Sends a request; *ans is the answer.  0 or what the wire says. */
static int ask(struct mmr_guest_member *m, json_t *req, int64_t limit,
	       json_t **ans)
{
	int64_t end = mmr_clock_monotonic() + limit;
	char *s = req ? json_dumps(req, JSON_COMPACT) : NULL, *data;
	size_t n;
	int err;

	json_decref(req);
	if (!s)
		return -ENOMEM;
	err = mmr_wire_write(m->qemu.line, 1, end, s, strlen(s));
	free(s);
	if (!err)
		err = wait_answer(m, end);
	if (!err)
		err = mmr_wire_read(m->qemu.line, 0, end + 60 * SEC, &data, &n);
	if (err)
		return err;
	*ans = json_loadb(data, n, 0, NULL);
	free(data);
	return *ans ? 0 : -EPROTO;
}

static int ping(struct mmr_guest_member *m, int64_t limit)
{
	json_t *ans = NULL;
	int err = ask(m, json_pack("{s:s}", "cmd", "ping"), limit, &ans);

	json_decref(ans);
	return err;
}

/* One attempt: the saved state, or a boot. */
static int start_one(struct mmr_guest *g, struct mmr_guest_member *m,
		     bool restore, char *text, size_t n)
{
	int err;

	mmr_qemu_end(&m->qemu);
	err = mmr_qemu_start(&m->conf, restore, &m->qemu, text, n);
	if (err)
		return err;
	if (!restore)
		err = mmr_guest_wait_ready(g, m, BOOT_LIMIT, text, n);
	else
		err = ping(m, RESTORE_LIMIT);
	if (err && restore)
		snprintf(text, n, "the restored guest does not answer: %s",
			 strerror(-err));
	if (err)
		mmr_qemu_end(&m->qemu);
	return err;
}

int mmr_guest_restore(struct mmr_guest *g, struct mmr_guest_member *m,
		      char *text, size_t n)
{
	int64_t t = mmr_clock_monotonic(), took;
	int err = -ENOENT;

	for (int i = 0; i < RESTORE_TRIES; i++) {
		err = start_one(g, m, true, text, n);
		if (!err || mmr_engine_interrupted())
			break;
	}
	if (err)
		return err;
	took = mmr_clock_monotonic() - t;
	pthread_mutex_lock(&g->lock);
	g->stats.restores++;
	g->stats.restore_ns = took;
	if (took > g->stats.restore_max_ns)
		g->stats.restore_max_ns = took;
	pthread_mutex_unlock(&g->lock);
	m->dirty = false;
	return 0;
}

/*
 * A fresh guest in place of what runs.  One that does not come up says nothing
 * of any case: in the end it is booted, which is slow and not wrong.
 */
static int fresh(struct mmr_guest *g, struct mmr_guest_member *m, char *text,
		 size_t n)
{
	int err = -ENOENT;

	if (g->has_state)
		err = mmr_guest_restore(g, m, text, n);
	if (err && !mmr_engine_interrupted()) {
		err = start_one(g, m, false, text, n);
		m->dirty = err != 0;
	}
	if (!err || !mmr_engine_interrupted())
		return err;
	snprintf(text, n, "interrupted");
	return -EINTR;
}

static void count_wedged(struct mmr_guest *g)
{
	pthread_mutex_lock(&g->lock);
	g->stats.wedged++;
	pthread_mutex_unlock(&g->lock);
}

/* A member that nobody uses; waits for one when all are busy.  One that is up
 * and clean goes before others. */
static struct mmr_guest_member *take(struct mmr_guest *g)
{
	struct mmr_guest_member *m = NULL;

	pthread_mutex_lock(&g->lock);
	for (;;) {
		for (int i = 0; i < g->n; i++)
			if (!g->m[i].busy && (!m || !g->m[i].dirty))
				m = &g->m[i];
		if (m)
			break;
		pthread_cond_wait(&g->freed, &g->lock);
	}
	m->busy = true;
	pthread_mutex_unlock(&g->lock);
	return m;
}

static void give_back(struct mmr_guest *g, struct mmr_guest_member *m)
{
	pthread_mutex_lock(&g->lock);
	m->busy = false;
	pthread_cond_signal(&g->freed);
	pthread_mutex_unlock(&g->lock);
}

/* A line that broke is QEMU on its way out, which may take a moment. */
static bool still_there(struct mmr_guest_member *m, int err)
{
	for (int i = 0; i < 100 && err == -EPIPE; i++) {
		if (!mmr_qemu_alive(&m->qemu))
			return false;
		usleep(20000);
	}
	return mmr_qemu_alive(&m->qemu);
}

/* The answer never came: what became of the guest is the verdict. */
static void judge_loss(struct mmr_guest *g, struct mmr_guest_member *m,
		       const struct mmr_case *c, int err,
		       struct mmr_run_result *res)
{
	bool alive = still_there(m, err);
	const char *what = "hang";
	char *con, title[120] = "";
	json_t *reports = NULL;

	memset(res, 0, sizeof(*res));
	res->stmt = -1;
	res->nstmts = mmr_case_count(c);
	res->stmts = calloc((size_t)res->nstmts + 1, sizeof(*res->stmts));
	if (!res->stmts)
		res->nstmts = 0;
	con = mmr_qemu_console(&m->conf, &m->qemu, CONSOLE_KEEP);
	if (mmr_engine_interrupted()) {
		res->verdict = MMR_NOTHING;
		snprintf(res->text, sizeof(res->text), "interrupted");
	} else if (con && strstr(con, "Kernel panic")) {
		what = "panic";
		res->verdict = MMR_KERNEL_LOG;
		snprintf(res->text, sizeof(res->text),
			 "the guest's kernel panicked: %.300s",
			 strstr(con, "Kernel panic"));
		res->text[strcspn(res->text, "\n")] = '\0';
		/* Two panics of different causes are two findings. */
		mmr_signature_panic(con, title, sizeof(title), &reports);
	} else if (!alive && WIFSIGNALED(m->qemu.status)) {
		/* No doing of the guest's kernel: that ends QEMU with a code.
		 */
		res->verdict = WTERMSIG(m->qemu.status) == SIGKILL
				       ? MMR_VOID
				       : MMR_TOOL_FAILED;
		snprintf(res->text, sizeof(res->text),
			 "QEMU was ended by signal %d%s",
			 WTERMSIG(m->qemu.status),
			 res->verdict == MMR_VOID
				 ? ", from outside or for want of memory"
				 : "");
	} else if (!alive) {
		what = "triple-fault";
		res->verdict = MMR_CRASH;
		snprintf(res->text, sizeof(res->text),
			 "the guest ended without a word (triple fault, or "
			 "qemu died)");
	} else {
		res->verdict = MMR_HANG;
		snprintf(res->text, sizeof(res->text),
			 "the whole guest stopped answering (%s): no CPU of "
			 "it runs user space, or its serial line is lost",
			 strerror(-err));
	}
	if (mmr_verdict_is_hit(res->verdict)) {
		uint32_t h = 2166136261u;

		count_wedged(g);
		snprintf(res->signature, sizeof(res->signature),
			 "%s guest-%s%s%s", mmr_verdict_name(res->verdict),
			 what, title[0] ? " " : "", title);
		for (const char *s = res->signature; *s; s++)
			h = (h ^ (unsigned char)*s) * 16777619u;
		snprintf(res->id, sizeof(res->id), "%s-%08x",
			 mmr_verdict_name(res->verdict), h);
		res->evidence = json_pack("{s:s,s:s}", "loss", what, "ended_by",
					  "none");
		if (reports)
			json_object_set_new(
				res->evidence, "kernel",
				json_pack("{s:O}", "reports", reports));
	}
	json_decref(reports);
	res->log = con;
}

/* So that a finding says where it was found. */
static void name_guest(struct mmr_guest *g, const struct mmr_guest_member *m,
		       struct mmr_run_result *res)
{
	const struct mmr_qemu_conf *c = &m->conf;

	snprintf(res->guest.kernel, sizeof(res->guest.kernel), "%s",
		 g->stats.kernel);
	snprintf(res->guest.arch, sizeof(res->guest.arch), "%s", c->arch);
	snprintf(res->guest.text, sizeof(res->guest.text),
		 "QEMU guest (%s), %d CPUs, %d NUMA nodes, %d MiB%s%.80s",
		 c->kvm ? "kvm" : "tcg", c->cpus, c->nodes, c->mem_mib,
		 c->args[0] ? ", kernel arguments " : "", c->args);
	res->guest.cpus = c->cpus;
	if (res->evidence)
		json_object_set_new(res->evidence, "guest",
				    json_string(res->guest.text));
}

static json_t *request(const struct mmr_guest_member *m,
		       const struct mmr_case *c, const struct mmr_run_opts *o)
{
	char *text = mmr_case_print(c);
	json_t *j = json_object();

	if (!text) {
		json_decref(j);
		return NULL;
	}
	json_object_set_new(j, "cmd", json_string("run"));
	json_object_set_new(j, "case", json_string(text));
	json_object_set_new(j, "seed", json_integer((json_int_t)o->seed));
	json_object_set_new(j, "first_round",
			    json_integer((json_int_t)o->first_round));
	json_object_set_new(j, "rounds", json_integer((json_int_t)o->rounds));
	json_object_set_new(j, "budget", json_integer(o->budget_ns));
	json_object_set_new(j, "limit_progress",
			    json_integer(o->limits.progress_ns));
	json_object_set_new(j, "limit_syscall",
			    json_integer(o->limits.syscall_ns));
	json_object_set_new(j, "limit_exit", json_integer(o->limits.exit_ns));
	json_object_set_new(j, "limit_storm", json_integer(o->limits.storm_ns));
	json_object_set_new(j, "brief", json_boolean(o->no_evidence));
	json_object_set_new(j, "emulated", json_boolean(!m->conf.kvm));
	free(text);
	return j;
}

int mmr_guest_run(struct mmr_guest *g, const struct mmr_case *c,
		  const struct mmr_run_opts *o, struct mmr_run_result *res)
{
	int64_t budget = o->budget_ns > 0 ? o->budget_ns : c->budget_ns;
	struct mmr_guest_member *m;
	json_t *ans = NULL;
	char text[300];
	int err;

	memset(res, 0, sizeof(*res));
	m = take(g);
	if (!g->reuse || m->dirty || !mmr_qemu_alive(&m->qemu)) {
		err = fresh(g, m, text, sizeof(text));
		if (err) {
			/* Cut short by the user it says nothing at all. */
			res->verdict =
				err == -EINTR ? MMR_NOTHING : MMR_TOOL_FAILED;
			snprintf(res->text, sizeof(res->text), "%s", text);
			give_back(g, m);
			return 0;
		}
	}
	err = ask(m, request(m, c, o),
		  (budget > 0 ? budget : 30 * SEC) + RUN_LIMIT, &ans);
	if (err == -ENOMEM) { /* ours: it says nothing of the guest */
		res->verdict = MMR_TOOL_FAILED;
		snprintf(res->text, sizeof(res->text), "out of memory");
		m->dirty = true;
		err = 0;
	} else if (!err) {
		const char *why =
			json_string_value(json_object_get(ans, "error"));

		if (why) {
			res->verdict = MMR_TOOL_FAILED;
			snprintf(res->text, sizeof(res->text), "%s", why);
		} else {
			err = mmr_result_from_json(ans, c, res);
		}
		if (mmr_verdict_is_hit(res->verdict) || res->quarantined)
			m->dirty = true;
		if (res->quarantined)
			count_wedged(g);
	} else {
		judge_loss(g, m, c, err, res);
		m->dirty = true;
		err = 0;
	}
	json_decref(ans);
	name_guest(g, m, res);
	if (!g->reuse || m->dirty) {
		m->dirty = true;
		mmr_qemu_end(&m->qemu);
	}
	give_back(g, m);
	return err;
}

int mmr_guest_exec(struct mmr_guest *g, int64_t limit, char *output, size_t n)
{
	struct mmr_guest_member *m = take(g);
	json_t *ans = NULL;
	char text[300];
	const char *s;
	int err = 0;

	output[0] = '\0';
	if (!g->reuse || m->dirty || !mmr_qemu_alive(&m->qemu))
		err = fresh(g, m, text, sizeof(text));
	if (!err)
		err = ask(m,
			  json_pack("{s:s,s:I}", "cmd", "exec", "limit",
				    (json_int_t)limit),
			  limit + 60 * SEC, &ans);
	if (!err) {
		s = json_string_value(json_object_get(ans, "output"));
		snprintf(output, n, "%s", s ? s : "");
		/* Else the agent could not run it, and output is empty. */
		err = json_object_get(ans, "exit")
			      ? (int)json_integer_value(
					json_object_get(ans, "exit"))
			      : -EIO;
	}
	json_decref(ans);
	m->dirty = true;
	mmr_qemu_end(&m->qemu);
	give_back(g, m);
	return err;
}
