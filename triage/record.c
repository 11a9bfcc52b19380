// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs on record, written and read: see record.h. */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../ops/timing.h"
#include "finding.h"
#include "grow.h"

/* Runs are kept as text: a tenth of what the same takes as objects. */
struct line {
	uint64_t number;
	char *text;
};

struct mmr_record {
	json_t *head;
	struct line lines[MMR_RECORD_MAX]; /* text NULL: in the file */
	int n;
	uint64_t stride; /* runs whose number it divides are kept */
	char *path;	 /* of the file that lines go to, NULL: memory */
	int fd;		 /* the same, open to append; -1: has no line yet */
};

struct mmr_record *mmr_record_new(const char *what)
{
	struct mmr_record *r = calloc(1, sizeof(*r));
	struct utsname u;

	if (!r)
		return NULL;
	uname(&u);
	r->stride = 1;
	r->fd = -1;
	r->head = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:I}", "type",
			    "record", "version", 1, "what", what ? what : "",
			    "kernel", u.release, "build", u.version, "arch",
			    u.machine, "cpus",
			    (json_int_t)sysconf(_SC_NPROCESSORS_ONLN));
	if (!r->head) {
		mmr_record_free(r);
		return NULL;
	}
	return r;
}

void mmr_record_free(struct mmr_record *r)
{
	if (!r)
		return;
	json_decref(r->head);
	while (r->n)
		free(r->lines[--r->n].text);
	if (r->fd >= 0)
		close(r->fd);
	free(r->path);
	free(r);
}

/* The file of its own, empty but for the head. */
static int begin_file(struct mmr_record *r)
{
	char *head = json_dumps(r->head, JSON_COMPACT);
	int rc = head ? 0 : -ENOMEM;

	r->fd = open(r->path,
		     O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (!rc)
		rc = r->fd < 0 ? -errno : mmr_file_append_line(r->fd, head);
	free(head);
	if (rc && r->fd >= 0) {
		close(r->fd);
		r->fd = -1;
	}
	return rc;
}

/* The number of a run by its line; false: it is no run. */
static bool number_of(const char *line, uint64_t *number)
{
	return sscanf(line, "{\"type\":\"run\",\"run\":%" SCNu64 ",", number) ==
	       1;
}

/* Goes on in the file of an earlier soak, if that ran where this one runs. */
static int resume_file(struct mmr_record *r)
{
	FILE *f = fopen(r->path, "r+e");
	char *line = NULL;
	size_t size = 0;
	uint64_t number, all = 0;
	json_t *head = NULL;
	off_t whole = 0;
	ssize_t n;

	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while ((n = getline(&line, &size, f)) > 0 && line[n - 1] == '\n') {
		whole += n;
		if (!head) {
			head = json_loads(line, 0, NULL);
			if (!json_equal(head, r->head))
				break;
		} else if (number_of(line, &number) && r->n < MMR_RECORD_MAX) {
			r->lines[r->n++] = (struct line){number, NULL};
			all |= number;
		}
	}
	free(line);
	if (json_equal(head, r->head)) {
		while (r->n && !(all & 1) && all) {
			all >>= 1;
			r->stride *= 2;
		}
		/* What a kill cut short goes. */
		if (!ftruncate(fileno(f), whole))
			r->fd = open(r->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	}
	json_decref(head);
	fclose(f);
	if (r->fd < 0)
		r->n = 0;
	return 0;
}

int mmr_record_keep(struct mmr_record *r, const char *path, bool resume)
{
	r->path = strdup(path);
	if (!r->path)
		return -ENOMEM;
	if (resume)
		return resume_file(r);
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

int mmr_record_end(struct mmr_record *r)
{
	return r->fd < 0 ? begin_file(r) : fdatasync(r->fd) ? -errno : 0;
}

/* "munmap 4p private"; what waits for the case itself has none. */
static bool kind_of(const struct mmr_case *c, int i, char *buf, size_t n)
{
	const struct mmr_stmt *s = mmr_case_stmt(c, i);
	struct mmr_calib_key key;
	struct mmr_proc *p;

	if (!s || !mmr_case_stmt_thread(c, i, &p) ||
	    !mmr_timing_key(p, s, &key))
		return false;
	if (key.backing == MMR_BACK_NONE)
		snprintf(buf, n, "%s", s->op->name);
	else
		snprintf(buf, n, "%s %" PRIu64 "p %s", s->op->name,
			 (uint64_t)1 << key.size,
			 mmr_backing_name(key.backing));
	return true;
}

static int add_kind(json_t *kinds, const char *name,
		    const struct mmr_histogram *h)
{
	const json_t *there = json_object_get(kinds, name);
	struct mmr_histogram sum;

	if (!h || !h->n)
		return 0;
	if (there && !mmr_histogram_from_json(there, &sum)) {
		mmr_histogram_merge(&sum, h);
		h = &sum;
	}
	return json_object_set_new(kinds, name, mmr_histogram_json(h)) ? -ENOMEM
								       : 0;
}

static json_t *kinds_of(const struct mmr_case *c,
			const struct mmr_run_result *res)
{
	json_t *kinds = json_object();
	char name[100];
	int rc = kinds ? 0 : -ENOMEM;

	for (int i = 0; i < res->nstmts && !rc; i++)
		if (kind_of(c, i, name, sizeof(name)))
			rc = add_kind(kinds, name, res->stmts[i].hist);
	for (int i = 0; i < res->nexits && !rc; i++) {
		snprintf(name, sizeof(name), "exit %s", res->exits[i].proc);
		rc = add_kind(kinds, name, res->exits[i].hist);
		snprintf(name, sizeof(name), "exit %s on CPU",
			 res->exits[i].proc);
		rc = rc ? rc : add_kind(kinds, name, res->exits[i].cpu_hist);
	}
	if (rc) {
		json_decref(kinds);
		return NULL;
	}
	return kinds;
}

/* Copies the lines that stay; the file is whole at any time. */
static int thin_file(const struct mmr_record *r)
{
	FILE *from = fopen(r->path, "re"), *to;
	char *line = NULL, *path;
	size_t size = 0;
	uint64_t number;
	int rc = from ? 0 : -errno;

	if (rc || asprintf(&path, "%s.tmp-%d", r->path, getpid()) < 0) {
		if (from)
			fclose(from);
		return rc ? rc : -ENOMEM;
	}
	to = fopen(path, "we");
	while (to && getline(&line, &size, from) > 0)
		if (!number_of(line, &number) || !(number % r->stride))
			fputs(line, to);
	rc = !to || ferror(from) || ferror(to) ? -EIO : 0;
	if (to && fclose(to))
		rc = -errno;
	if (!rc && rename(path, r->path))
		rc = -errno;
	if (rc)
		unlink(path);
	fclose(from);
	free(line);
	free(path);
	return rc;
}

/* Every second one goes. */
static int thin_out(struct mmr_record *r)
{
	int kept = 0, fd, rc;

	r->stride *= 2;
	if (r->path) {
		rc = thin_file(r);
		fd = rc ? -1 : open(r->path, O_WRONLY | O_APPEND | O_CLOEXEC);
		if (fd < 0) {
			r->stride /= 2;
			return rc ? rc : -errno;
		}
		close(r->fd);
		r->fd = fd;
	}
	for (int i = 0; i < r->n; i++) {
		if (r->lines[i].number % r->stride)
			free(r->lines[i].text);
		else
			r->lines[kept++] = r->lines[i];
	}
	r->n = kept;
	return 0;
}

/* Where it ran is known from the first run on. */
static void add_guest(struct mmr_record *r, const struct mmr_run_result *res)
{
	if (!res->guest.kernel[0])
		return;
	json_object_set_new(r->head, "kernel", json_string(res->guest.kernel));
	json_object_set_new(r->head, "build", json_string("guest"));
	json_object_set_new(r->head, "arch", json_string(res->guest.arch));
	json_object_set_new(r->head, "cpus", json_integer(res->guest.cpus));
}

/* Takes the text. */
static int add_text(struct mmr_record *r, uint64_t number, char *text)
{
	int rc = 0;

	while (!rc && r->n == MMR_RECORD_MAX)
		rc = thin_out(r);
	if (!rc && number % r->stride) {
		free(text);
		return 0;
	}
	if (!rc && r->path) {
		rc = r->fd < 0 ? begin_file(r) : 0;
		if (!rc)
			rc = mmr_file_append_line(r->fd, text);
	}
	if (rc || r->path) {
		free(text);
		text = NULL;
	}
	if (!rc)
		r->lines[r->n++] = (struct line){number, text};
	return rc;
}

int mmr_record_add(struct mmr_record *r, uint64_t number,
		   const struct mmr_case *c, const struct mmr_run_result *res)
{
	json_t *j, *kinds;
	char *text;

	if (number % r->stride || res->verdict == MMR_SKIPPED ||
	    res->verdict == MMR_TOOL_FAILED)
		return 0;
	kinds = kinds_of(c, res);
	j = json_pack("{s:s, s:I, s:s, s:I, s:f, s:o}", "type", "run", "run",
		      (json_int_t)number, "verdict",
		      mmr_verdict_name(res->verdict), "rounds",
		      (json_int_t)res->rounds, "seconds",
		      (double)res->wall_ns / 1e9, "kinds", kinds);
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	if (!text)
		return -ENOMEM;
	add_guest(r, res);
	return add_text(r, number, text);
}

int mmr_record_save(const struct mmr_record *r, const char *path)
{
	char *text = NULL, *head = json_dumps(r->head, JSON_COMPACT);
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int rc = head && f ? 0 : -ENOMEM;

	if (!rc) {
		fprintf(f, "%s\n", head);
		for (int i = 0; i < r->n; i++)
			fprintf(f, "%s\n", r->lines[i].text);
	}
	if (f && fclose(f))
		rc = -ENOMEM;
	if (!rc)
		rc = mmr_write_file(path, text, n);
	free(text);
	free(head);
	return rc;
}

static void word(const json_t *j, const char *key, char *buf, size_t n)
{
	const char *s = json_string_value(json_object_get(j, key));

	snprintf(buf, n, "%s", s ? s : "");
}

static int take_head(struct mmr_record_side *side, const json_t *j)
{
	word(j, "what", side->what, sizeof(side->what));
	word(j, "kernel", side->kernel, sizeof(side->kernel));
	word(j, "build", side->build, sizeof(side->build));
	word(j, "arch", side->arch, sizeof(side->arch));
	side->cpus = (int)json_integer_value(json_object_get(j, "cpus"));
	side->has_head = true;
	return 0;
}

const char *mmr_figure_name(enum mmr_figure f)
{
	static const char *const names[MMR_FIGURES] = {
		"p50", "p95", "p99", "p99.9", "mean", "stdev"};

	return (unsigned int)f < MMR_FIGURES ? names[f] : "?";
}

double mmr_figure_of(const struct mmr_histogram *h, enum mmr_figure f)
{
	static const double shares[] = {0.5, 0.95, 0.99, 0.999};

	if (f == MMR_FIGURE_MEAN)
		return mmr_histogram_mean(h);
	if (f == MMR_FIGURE_STDEV)
		return mmr_histogram_stdev(h);
	return mmr_histogram_quantile(h, shares[f]);
}

/* The side's kind of that name, made when it is new; -ENOMEM. */
static int kind_index(struct mmr_record_side *side, const char *name)
{
	struct mmr_record_kind *k;

	for (int i = 0; i < side->nkinds; i++)
		if (!strcmp(side->kinds[i].name, name))
			return i;
	k = mmr_grow(side->kinds, side->nkinds, sizeof(*k));
	if (!k)
		return -ENOMEM;
	side->kinds = k;
	k += side->nkinds;
	memset(k, 0, sizeof(*k));
	snprintf(k->name, sizeof(k->name), "%s", name);
	return side->nkinds++;
}

static int take_part(struct mmr_record_side *side, struct mmr_record_run *run,
		     const char *name, const json_t *j)
{
	struct mmr_record_part *part = &run->parts[run->nparts];
	struct mmr_histogram h;
	int kind;

	if (mmr_histogram_from_json(j, &h) || !h.n)
		return 0;
	kind = kind_index(side, name);
	if (kind < 0)
		return kind;
	part->kind = kind;
	for (int f = 0; f < MMR_FIGURES; f++)
		part->figure[f] = mmr_figure_of(&h, f);
	run->nparts++;
	mmr_histogram_merge(&side->kinds[kind].hist, &h);
	side->kinds[kind].runs++;
	return 0;
}

static int take_run(struct mmr_record_side *side, json_t *j)
{
	json_t *kinds = json_object_get(j, "kinds"), *h;
	struct mmr_record_run *run;
	const char *name;
	int rc = 0;

	run = mmr_grow(side->runs, side->nruns, sizeof(*run));
	if (!run)
		return -ENOMEM;
	side->runs = run;
	run += side->nruns++;
	memset(run, 0, sizeof(*run));
	run->number = (uint64_t)json_integer_value(json_object_get(j, "run"));
	run->rounds =
		(uint64_t)json_integer_value(json_object_get(j, "rounds"));
	run->wall_s = json_number_value(json_object_get(j, "seconds"));
	word(j, "verdict", run->verdict, sizeof(run->verdict));
	run->parts = calloc(json_object_size(kinds) + 1, sizeof(*run->parts));
	if (!run->parts)
		return -ENOMEM;
	json_object_foreach (kinds, name, h)
		rc = rc ? rc : take_part(side, run, name, h);
	return rc;
}

static int take_line(struct mmr_record_side *side, json_t *j)
{
	const char *type = json_string_value(json_object_get(j, "type"));

	if (!type)
		return -EINVAL;
	if (!strcmp(type, "record"))
		return side->has_head ? -EINVAL : take_head(side, j);
	if (!side->has_head)
		return -EINVAL;
	return strcmp(type, "run") ? 0 : take_run(side, j);
}

static int load_file(const char *path, struct mmr_record_side *side, char *text,
		     size_t n)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int number = 0, rc = 0;
	ssize_t got;
	json_t *j;

	if (!f) {
		snprintf(text, n, "%s: %s", path, strerror(errno));
		return -errno;
	}
	while (!rc && (got = getline(&line, &size, f)) > 0) {
		/* Who wrote it was killed in the middle of this line. */
		if (line[got - 1] != '\n' && side->nruns)
			break;
		j = json_loads(line, 0, NULL);
		number++;
		rc = j ? take_line(side, j) : -EINVAL;
		json_decref(j);
	}
	if (!rc && !side->has_head)
		rc = -EINVAL;
	if (rc == -EINVAL)
		snprintf(text, n,
			 "%s:%d: is no record of runs (mmrace soak and mmrace "
			 "replay --record write them)",
			 path, number);
	else if (rc)
		snprintf(text, n, "%s: %s", path, strerror(-rc));
	free(line);
	fclose(f);
	return rc;
}

int mmr_record_load(const char *path, struct mmr_record_side *side, char *text,
		    size_t n)
{
	char in[4200];
	struct stat st;
	int rc;

	memset(side, 0, sizeof(*side));
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		snprintf(in, sizeof(in), "%s/" MMR_RECORD_FILE, path);
	else
		snprintf(in, sizeof(in), "%s", path);
	rc = load_file(in, side, text, n);
	if (rc)
		mmr_record_side_free(side);
	return rc;
}

int mmr_record_side(const struct mmr_record *r, struct mmr_record_side *side)
{
	int rc;

	memset(side, 0, sizeof(*side));
	rc = take_head(side, r->head);
	for (int i = 0; i < r->n && !rc; i++) {
		json_t *j = json_loads(r->lines[i].text, 0, NULL);

		rc = j ? take_run(side, j) : -ENOMEM;
		json_decref(j);
	}
	if (rc)
		mmr_record_side_free(side);
	return rc;
}

void mmr_record_side_free(struct mmr_record_side *side)
{
	for (int i = 0; i < side->nruns; i++)
		free(side->runs[i].parts);
	free(side->runs);
	free(side->kinds);
	memset(side, 0, sizeof(*side));
}
