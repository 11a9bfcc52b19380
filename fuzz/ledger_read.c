// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ledger, read and joined.  Everything in it may be cut short, doubled or
 * somebody else's: a line that is none of ours is counted and passed over, a
 * batch or session that was seen before counts once.
 */
#include "ledger_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../triage/finding.h"
#include "../triage/grow.h"

/* What is known while lines come in: v for sums, done for case numbers. */
struct reading {
	struct mmr_ledger_view *v;
	const struct mmr_ledger_session *same; /* whose numbers are wanted */
	struct mmr_ranges *done;
	json_t *seen; /* keys of lines that count once */
	/* Every line once, for a merge: [session, line], NULL else. */
	json_t *lines;
};

static const char *str(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static uint64_t num(const json_t *j, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(j, key));

	return n > 0 ? (uint64_t)n : 0;
}

static uint64_t hex(const json_t *j, const char *key)
{
	return strtoull(str(j, key), NULL, 16);
}

#define COPY(to, from)                                                         \
	snprintf(to, sizeof(to), "%.*s", (int)sizeof(to) - 1, from)

int mmr_ledger_same_cases(const struct mmr_ledger_session *a,
			  const struct mmr_ledger_session *b)
{
	return a->seed == b->seed && a->gen == b->gen && a->shard == b->shard &&
	       a->shards == b->shards && !strcmp(a->profile, b->profile);
}

static struct mmr_ledger_session *session_of(const struct mmr_ledger_view *v,
					     const char *id)
{
	for (int i = v->nsessions; i--;)
		if (!strcmp(v->sessions[i].id, id))
			return &v->sessions[i];
	return NULL;
}

static int add_session(struct reading *r, const json_t *j)
{
	struct mmr_ledger_view *v = r->v;
	struct mmr_ledger_session *s;

	if (!str(j, "session")[0] || session_of(v, str(j, "session")))
		return 0;
	s = mmr_grow(v->sessions, v->nsessions, sizeof(*s));
	if (!s)
		return -ENOMEM;
	v->sessions = s;
	s += v->nsessions++;
	memset(s, 0, sizeof(*s));
	COPY(s->id, str(j, "session"));
	COPY(s->start, str(j, "start"));
	COPY(s->tool, str(j, "tool"));
	COPY(s->kernel, str(j, "kernel"));
	COPY(s->build, str(j, "build"));
	COPY(s->arch, str(j, "arch"));
	COPY(s->profile, str(j, "profile"));
	s->cpus = (int)num(j, "cpus");
	s->gen = (int)num(j, "gen");
	s->shard = (int)num(j, "shard");
	s->shards = (int)num(j, "shards");
	s->seed = hex(j, "seed");
	return 0;
}

static int add_done(struct reading *r, const json_t *j)
{
	const json_t *range;
	size_t i;

	json_array_foreach (json_object_get(j, "done"), i, range) {
		json_int_t from = json_integer_value(json_array_get(range, 0));
		json_int_t to = json_integer_value(json_array_get(range, 1));
		struct mmr_ranges *d = r->done;

		if (from < 0 || to < from)
			continue;
		if (d->n == d->max) {
			int max = d->max ? 2 * d->max : 64;
			void *p = realloc(d->r, (size_t)max * sizeof(*d->r));

			if (!p)
				return -ENOMEM;
			d->r = p;
			d->max = max;
		}
		if (mmr_ranges_add(d, (uint64_t)from, (uint64_t)to))
			return -ENOMEM;
	}
	return 0;
}

static int add_batch(struct reading *r, const json_t *j)
{
	struct mmr_ledger_session *s = session_of(r->v, str(j, "session"));
	const json_t *c = json_object_get(j, "counts"), *verdicts;
	struct mmr_ledger_counts n = {
		.rounds = num(c, "rounds"),
		.rounds_void = num(c, "rounds_void"),
		.ops = num(c, "operations"),
		.calls = num(c, "calls"),
	};

	if (!s) {
		r->v->damaged++; /* its session's line is lost */
		return 0;
	}
	verdicts = json_object_get(c, "verdicts");
	for (int v = 0; v < MMR_VERDICTS; v++)
		n.verdicts[v] = num(verdicts, mmr_verdict_name(v));
	mmr_ledger_sum(&s->counts, &n);
	s->seconds += json_number_value(json_object_get(j, "seconds"));
	s->batches++;
	if (r->same && mmr_ledger_same_cases(r->same, s))
		return add_done(r, j);
	return 0;
}

static int add_lost(struct reading *r, const json_t *j)
{
	struct mmr_ledger_view *v = r->v;
	struct mmr_ledger_lost *l = mmr_grow(v->lost, v->nlost, sizeof(*l));

	if (!l)
		return -ENOMEM;
	v->lost = l;
	l += v->nlost++;
	memset(l, 0, sizeof(*l));
	COPY(l->session, str(j, "session"));
	l->index = num(j, "case");
	l->seed = hex(j, "seed");
	return 0;
}

static int add_finding(struct reading *r, const json_t *j)
{
	struct mmr_ledger_session *s = session_of(r->v, str(j, "session"));
	struct mmr_ledger_view *v = r->v;
	struct mmr_ledger_finding *f;

	if (s)
		s->findings++;
	for (int i = 0; i < v->nfindings; i++) {
		f = &v->findings[i];
		if (!strcmp(f->id, str(j, "finding"))) {
			f->count++;
			return 0;
		}
	}
	f = mmr_grow(v->findings, v->nfindings, sizeof(*f));
	if (!f)
		return -ENOMEM;
	v->findings = f;
	f += v->nfindings++;
	COPY(f->id, str(j, "finding"));
	f->count = 1;
	return 0;
}

/* Was a line with this meaning here before?  1, 0, -ENOMEM. */
static int seen_before(struct reading *r, const json_t *j)
{
	char key[160];

	snprintf(key, sizeof(key), "%.10s %.40s %" PRIu64 " %" PRIu64 " %.50s",
		 str(j, "type"), str(j, "session"), num(j, "batch"),
		 num(j, "case"), str(j, "finding"));
	if (json_object_get(r->seen, key))
		return 1;
	return json_object_set_new(r->seen, key, json_true()) ? -ENOMEM : 0;
}

static int keep_line(struct reading *r, const json_t *j, const char *text)
{
	if (!r->lines)
		return 0;
	return json_array_append_new(
		       r->lines, json_pack("[s,s]", str(j, "session"), text))
		       ? -ENOMEM
		       : 0;
}

static int add_line(struct reading *r, const char *text)
{
	json_t *j = json_loads(text, 0, NULL);
	const char *type = str(j, "type");
	struct mmr_ledger_session *s;
	int rc;

	if (!json_is_object(j) || !type[0] || !str(j, "session")[0]) {
		r->v->damaged++;
		json_decref(j);
		return 0;
	}
	rc = seen_before(r, j);
	if (!rc) {
		s = session_of(r->v, str(j, "session"));
		if (!strcmp(type, "session"))
			rc = add_session(r, j);
		else if (!strcmp(type, "batch"))
			rc = add_batch(r, j);
		else if (!strcmp(type, "lost"))
			rc = add_lost(r, j);
		else if (!strcmp(type, "finding"))
			rc = add_finding(r, j);
		else if (!strcmp(type, "end") && s)
			COPY(s->state, str(j, "state"));
		/* Types of a later mmrace are kept, not counted. */
		if (!rc)
			rc = keep_line(r, j, text);
	}
	json_decref(j);
	return rc < 0 ? rc : 0;
}

/* The batch that is not yet appended. */
static int add_now(struct reading *r, const char *dir)
{
	const struct mmr_ledger_slot *slot;
	struct mmr_ledger_now *now;
	char path[4200], *line;
	int fd, rc = 0;

	snprintf(path, sizeof(path), "%s/" MMR_LEDGER_NOW, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	now = calloc(1, sizeof(*now));
	if (!now)
		rc = -ENOMEM;
	else if (pread(fd, now, sizeof(*now), 0) == sizeof(*now)) {
		slot = mmr_ledger_slot_valid(now);
		line = slot ? mmr_ledger_batch_line(&slot->batch) : NULL;
		rc = line ? add_line(r, line) : slot ? -ENOMEM : 0;
		free(line);
	}
	free(now);
	close(fd);
	return rc;
}

static int read_dir(struct reading *r, const char *dir)
{
	char path[4200], *line = NULL;
	size_t size = 0;
	ssize_t n;
	FILE *f;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/" MMR_LEDGER_FILE, dir);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!rc && (n = getline(&line, &size, f)) > 0) {
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = '\0';
		if (n)
			rc = add_line(r, line);
	}
	if (!rc && ferror(f))
		rc = -EIO;
	free(line);
	fclose(f);
	return rc ? rc : add_now(r, dir);
}

static int read_dirs(struct reading *r, char *const *dirs, int n,
		     const char **bad)
{
	int rc = 0;

	r->seen = json_object();
	if (!r->seen)
		return -ENOMEM;
	for (int i = 0; i < n && !rc; i++) {
		*bad = dirs[i];
		rc = read_dir(r, dirs[i]);
	}
	json_decref(r->seen);
	return rc;
}

int mmr_ledger_read(const char *dir, struct mmr_ledger_view *v)
{
	struct reading r = {.v = v};
	char *dirs[] = {(char *)(uintptr_t)dir};
	const char *bad;
	int rc;

	memset(v, 0, sizeof(*v));
	rc = read_dirs(&r, dirs, 1, &bad);
	if (rc)
		mmr_ledger_view_free(v);
	return rc;
}

void mmr_ledger_view_free(struct mmr_ledger_view *v)
{
	free(v->sessions);
	free(v->lost);
	free(v->findings);
	memset(v, 0, sizeof(*v));
}

int mmr_ledger_done(const char *dir, const struct mmr_ledger_session *s,
		    struct mmr_ranges *done)
{
	struct mmr_ledger_view v = {0};
	struct reading r = {.v = &v, .same = s, .done = done};
	char *dirs[] = {(char *)(uintptr_t)dir};
	const char *bad;
	int rc;

	memset(done, 0, sizeof(*done));
	rc = read_dirs(&r, dirs, 1, &bad);
	mmr_ledger_view_free(&v);
	if (rc) {
		free(done->r);
		memset(done, 0, sizeof(*done));
	}
	return rc;
}

/* By session, then by text, the session's own line first: equal sets of lines
 * give equal files, in whatever order they came. */
static int by_session(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	const char *tx = json_string_value(json_array_get(x, 1));
	const char *ty = json_string_value(json_array_get(y, 1));
	int d = strcmp(json_string_value(json_array_get(x, 0)),
		       json_string_value(json_array_get(y, 0)));
	int sx, sy;

	if (d)
		return d;
	sx = strstr(tx, "\"type\":\"session\"") ? 0 : 1;
	sy = strstr(ty, "\"type\":\"session\"") ? 0 : 1;
	return sx != sy ? sx - sy : strcmp(tx, ty);
}

static int write_lines(const json_t *lines, const char *out)
{
	size_t n = json_array_size(lines), size = 0;
	json_t **sorted = calloc(n ? n : 1, sizeof(*sorted));
	char path[4200], *text = NULL;
	FILE *f = sorted ? open_memstream(&text, &size) : NULL;
	int rc = f ? 0 : -ENOMEM;

	for (size_t i = 0; f && i < n; i++)
		sorted[i] = json_array_get(lines, i);
	if (f) {
		qsort(sorted, n, sizeof(*sorted), by_session);
		for (size_t i = 0; i < n; i++)
			fprintf(f, "%s\n",
				json_string_value(
					json_array_get(sorted[i], 1)));
		rc = fclose(f) ? -ENOMEM : 0;
	}
	snprintf(path, sizeof(path), "%s/" MMR_LEDGER_FILE, out);
	if (!rc)
		rc = mmr_write_file(path, text, size);
	free(text);
	free(sorted);
	return rc;
}

int mmr_ledger_merge(char *const *dirs, int n, const char *out, char *text,
		     size_t len)
{
	struct mmr_ledger_view v = {0};
	struct reading r = {.v = &v, .lines = json_array()};
	const char *bad = out;
	int rc = r.lines ? read_dirs(&r, dirs, n, &bad) : -ENOMEM;

	if (!rc) {
		bad = out;
		rc = mmr_mkdir_p(out);
		if (!rc)
			rc = write_lines(r.lines, out);
	}
	if (rc == -ENOENT)
		snprintf(text, len,
			 "%s: has no " MMR_LEDGER_FILE
			 ", so no soak wrote there",
			 bad);
	else if (rc)
		snprintf(text, len, "%s: %s", bad, strerror(-rc));
	json_decref(r.lines);
	mmr_ledger_view_free(&v);
	return rc;
}
