// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The timekeeper of a soak: its own thread waits for the jobs and, meanwhile,
 * keeps the status line, soak.json, the ledger and the metrics up to date.
 */
#include "soak_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../ops/clock.h"
#include "measure.h"
#include "opts.h"

#define TICK_NS 50000000L
#define SAVE_NS 5000000000LL
#define BOOK_NS 1000000000LL
#define LOG_NS 60000000000LL

/* Every five seconds a week long: a trouble is said once, and its end. */
static void complain(struct mmr_soak *s, const char *path, int rc, int *last)
{
	if (rc == *last)
		return;
	mmr_soak_say(s, "%s: %s", path, rc ? strerror(-rc) : "written again");
	*last = rc;
}

void mmr_soak_time_save(struct mmr_soak *s, const char *state)
{
	char path[4200], *text;
	json_t *j;
	int rc, metrics_rc;

	pthread_mutex_lock(&s->finding_lock);
	pthread_mutex_lock(&s->lock);
	j = mmr_soak_json(s, state);
	rc = strcmp(state, "running") ? mmr_record_end(s->record) : 0;
	metrics_rc = mmr_soak_metrics(s, !strcmp(state, "running"));
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&s->finding_lock);
	if (rc)
		mmr_soak_say(s, "%s/" MMR_RECORD_FILE ": %s", s->opts->out,
			     strerror(-rc));
	text = j ? json_dumps(j, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
	snprintf(path, sizeof(path), "%s/soak.json", s->opts->out);
	rc = text ? mmr_write_file(path, text, strlen(text)) : -ENOMEM;
	complain(s, path, rc, &s->json_error);
	complain(s, s->opts->metrics, metrics_rc, &s->metrics_error);
	free(text);
	json_decref(j);
}

/* The statement that took longest so far. */
static uint64_t worst_ns(const struct mmr_soak_stat *st, const char **name)
{
	uint64_t worst = st->exit_max_ns;

	*name = "exit";
	for (unsigned int id = 0; id < MMR_OP_LIMIT; id++) {
		const struct mmr_op *op = mmr_op_by_id(id);

		/* What waits for the case itself says nothing. */
		if (!op || op->class == MMR_CLASS_WAIT ||
		    op->class == MMR_CLASS_BLOCK ||
		    op->class == MMR_CLASS_PURE ||
		    st->op[id].hist.max_ns <= worst)
			continue;
		worst = st->op[id].hist.max_ns;
		*name = op->name;
	}
	return worst;
}

/* The status line, for the terminal and for systemd. */
static char *status_line(struct mmr_soak *s, char *buf, size_t n)
{
	double spent = mmr_soak_seconds(s), load = 0;
	const struct mmr_soak_stat *st = &s->stat;
	const char *worst;
	char t[24];
	uint64_t ns;

	if (getloadavg(&load, 1) != 1)
		load = 0;
	pthread_mutex_lock(&s->lock);
	ns = worst_ns(st, &worst);
	snprintf(buf, n,
		 "%.0f s: %" PRIu64 " cases (%" PRIu64
		 " skipped), %.0f cases/s, %.0f calls/s, %" PRIu64
		 " rounds, %" PRIu64
		 " suspects, %d finding%s, worst %s %s, load %.1f, %.0f MiB",
		 spent, st->cases, st->skipped,
		 (double)(st->cases + st->skipped) / spent,
		 (double)st->calls / spent, st->rounds, s->suspects,
		 s->nfindings, s->nfindings == 1 ? "" : "s", worst,
		 mmr_measure_time(t, sizeof(t), (double)ns), load,
		 (double)mmr_soak_resident() / (1 << 20));
	pthread_mutex_unlock(&s->lock);
	return buf;
}

static void full_state(struct mmr_soak *s)
{
	mmr_soak_time_save(s, "running");
	pthread_mutex_lock(&s->finding_lock);
	pthread_mutex_lock(&s->lock);
	mmr_soak_text(s, stderr);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&s->finding_lock);
}

static void keep_books(struct mmr_soak *s)
{
	char line[300];

	pthread_mutex_lock(&s->lock);
	mmr_soak_book_tick(s);
	pthread_mutex_unlock(&s->lock);
	/* Only while the jobs can move is the watchdog kept quiet: the lock
	 * above is theirs too. */
	mmr_soak_tell_systemd("WATCHDOG=1\nSTATUS=%s",
			      status_line(s, line, sizeof(line)));
}

void mmr_soak_time_keep(struct mmr_soak *s, struct mmr_soak_job *jobs,
			int njobs)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	int64_t save_ns = s->start_ns + SAVE_NS / 5;
	int64_t book_ns = s->start_ns + BOOK_NS;
	int64_t log_ns = s->start_ns + LOG_NS;
	struct mmr_progress p;
	char line[300];
	int done = 0;

	mmr_progress_init(&p, s->opts->quiet);
	mmr_soak_tell_systemd("READY=1");
	while (done < njobs) {
		nanosleep(&tick, NULL);
		while (done < njobs &&
		       !pthread_tryjoin_np(jobs[done].thread, NULL))
			done++;
		if (mmr_progress_due(&p))
			mmr_progress_show(&p, "%s",
					  status_line(s, line, sizeof(line)));
		if (mmr_soak_tell_asked())
			full_state(s);
		if (mmr_clock_monotonic() >= book_ns) {
			keep_books(s);
			book_ns = mmr_clock_monotonic() + BOOK_NS;
		}
		if (mmr_clock_monotonic() >= log_ns) {
			mmr_soak_log_status(s,
					    status_line(s, line, sizeof(line)));
			log_ns = mmr_clock_monotonic() + LOG_NS;
		}
		if (mmr_clock_monotonic() >= save_ns && !mmr_soak_over(s)) {
			mmr_soak_time_save(s, "running");
			save_ns = mmr_clock_monotonic() + SAVE_NS;
		}
	}
	mmr_progress_end(&p);
	mmr_soak_log_status(s, status_line(s, line, sizeof(line)));
	mmr_soak_tell_systemd("STOPPING=1");
}
