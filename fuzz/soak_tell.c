// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who is told while a soak runs: systemd (its notification socket), whoever
 * sends SIGUSR1, and Prometheus, by a file for node_exporter's textfile
 * collector in its text format.  Verdicts have the names that they have
 * everywhere.
 */
#include "soak_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static _Atomic bool asked;

static void on_usr1(int sig)
{
	(void)sig;
	asked = true;
}

void mmr_soak_tell_start(void)
{
	struct sigaction sa = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
}

bool mmr_soak_tell_asked(void)
{
	return asked && atomic_exchange(&asked, false);
}

void mmr_soak_tell_systemd(const char *fmt, ...)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	char text[400];
	va_list ap;
	size_t n;
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(to.sun_path))
		return;
	n = strlen(path);
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* the abstract name space */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Nobody there is no trouble of ours. */
	(void)!sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
		      (struct sockaddr *)&to,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

static void family(FILE *f, const char *name, const char *type,
		   const char *help)
{
	fprintf(f, "# HELP mmrace_%s %s\n# TYPE mmrace_%s %s\n", name, help,
		name, type);
}

static void single(FILE *f, const char *name, const char *type,
		   const char *help, double value)
{
	family(f, name, type, help);
	fprintf(f, "mmrace_%s %.17g\n", name, value);
}

uint64_t mmr_soak_resident(void)
{
	uint64_t size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%" SCNu64 " %" SCNu64, &size, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void by_verdict(const struct mmr_soak_stat *st, FILE *f)
{
	family(f, "cases_total", "counter", "Cases by what came of them.");
	for (int v = 0; v < MMR_VERDICTS; v++)
		fprintf(f, "mmrace_cases_total{verdict=\"%s\"} %" PRIu64 "\n",
			mmr_verdict_name(v), st->verdicts[v]);
}

static void by_op(const struct mmr_soak_stat *st, FILE *f)
{
	static const struct {
		const char *name, *type, *help;
	} families[] = {
		{"op_calls_total", "counter", "Calls of an operation."},
		{"op_errors_total", "counter", "Of them failed."},
		{"op_seconds_total", "counter", "Time in them."},
		{"op_seconds_max", "gauge", "The longest of them."},
	};

	for (int k = 0; k < 4; k++) {
		family(f, families[k].name, families[k].type, families[k].help);
		for (unsigned int id = 0; id < MMR_OP_LIMIT; id++) {
			const struct mmr_soak_op *o = &st->op[id];
			const struct mmr_op *op = mmr_op_by_id(id);
			const double values[] = {(double)o->hist.n,
						 (double)o->errors,
						 (double)o->hist.sum_ns / 1e9,
						 (double)o->hist.max_ns / 1e9};

			if (op && o->hist.n)
				fprintf(f, "mmrace_%s{op=\"%s\"} %.17g\n",
					families[k].name, op->name, values[k]);
		}
	}
}

static void write_metrics(struct mmr_soak *s, bool running, FILE *f)
{
	const struct mmr_soak_stat *st = &s->stat;
	const struct mmr_ledger_session *l = &s->book.session;

	family(f, "info", "gauge", "What runs where.");
	fprintf(f,
		"mmrace_info{version=\"%s\",profile=\"%s\",generator=\"%d\","
		"seed=\"0x%" PRIx64 "\",session=\"%s\"} 1\n",
		l->tool, s->profile, l->gen, s->base, l->id);
	single(f, "running", "gauge", "1 while it runs.", running);
	single(f, "elapsed_seconds", "gauge", "Since its start.",
	       mmr_soak_seconds(s));
	by_verdict(st, f);
	single(f, "rounds_total", "counter", "Rounds of these cases.",
	       (double)st->rounds);
	single(f, "rounds_void_total", "counter",
	       "Of them without meaning: threads that did not meet.",
	       (double)st->rounds_void);
	single(f, "operations_total", "counter", "Operations finished.",
	       (double)st->ops);
	single(f, "calls_total", "counter", "Of them system calls.",
	       (double)st->calls);
	single(f, "findings", "gauge", "Different findings.",
	       (double)s->nfindings);
	single(f, "suspects_total", "counter",
	       "Cases with a call far slower than its kind.",
	       (double)s->suspects);
	single(f, "suspects_confirmed", "gauge",
	       "Of them slow again and again.", s->nconfirmed);
	single(f, "exit_seconds_max", "gauge", "The longest process exit.",
	       (double)st->exit_max_ns / 1e9);
	single(f, "pause_seconds_total", "counter",
	       "Time in which the whole machine stood still.",
	       (double)st->pause_ns / 1e9);
	single(f, "quarantined", "gauge", "Tasks that could not be killed.",
	       (double)st->quarantined);
	single(f, "resident_bytes", "gauge", "Memory of the engine.",
	       (double)mmr_soak_resident());
	by_op(st, f);
}

int mmr_soak_metrics(struct mmr_soak *s, bool running)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f;
	int rc;

	if (!s->opts->metrics)
		return 0;
	f = open_memstream(&text, &n);
	if (!f)
		return -ENOMEM;
	write_metrics(s, running, f);
	rc = fclose(f) ? -ENOMEM : mmr_write_file(s->opts->metrics, text, n);
	free(text);
	return rc;
}
