// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Findings on disk.  A folder appears under its final name complete or not at
 * all; what a full disk cut short lies beside it as .partial-ID.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../ops/clock.h"
#include "../ops/timing.h"
#include "calibrate.h"
#include "export.h"
#include "finding.h"
#include "replay.h"
#include "report.h"
#include "version.h"

#define SAMPLES_MAX 20
#define DUMP (JSON_INDENT(1) | JSON_REAL_PRECISION(10))

/* Runner threads of one soak save into the same folder. */
static pthread_mutex_t save_lock = PTHREAD_MUTEX_INITIALIZER;

struct save {
	const struct mmr_case *c, *first;
	const struct mmr_run_result *res;
	const struct mmr_rate *rate;
	char *folder; /* where the files go now */
	struct utsname uts;
	int cpus;
	char when[32];
	int err; /* the first one */
};

static json_t *rate_json(const struct mmr_rate *r)
{
	double lo = 0, hi = 1;

	if (!r || !r->runs)
		return json_null();
	mmr_stat_interval(r->hits, r->runs, 0.95, &lo, &hi);
	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "hits",
			 (json_int_t)r->hits, "runs", (json_int_t)r->runs,
			 "rounds", (json_int_t)r->rounds, "wall_s",
			 (double)r->wall_ns / 1e9, "confidence", 0.95, "lo", lo,
			 "hi", hi);
}

static json_t *verdict_json(const struct save *s)
{
	const struct mmr_run_result *r = s->res;
	const json_t *ended = json_object_get(r->evidence, "ended_by");
	json_t *j;

	j = json_pack(
		"{s:i, s:s, s:s, s:s, s:s, s:s?, s:i, s:s, s:s, s:o, s:s?, "
		"s:I, s:I, s:o, s:s, s:s, s:s, s:i, s:s, s:f, s:f, s:i, s:s?, "
		"s:s?}",
		"version", 1, "verdict", mmr_verdict_name(r->verdict), "id",
		r->id, "signature", r->signature, "text", r->text, "title",
		s->c->title, "count", 1, "first_seen", s->when, "last_seen",
		s->when, "seed",
		s->c->origin.has_seed
			? json_sprintf("0x%llx",
				       (unsigned long long)s->c->origin.seed)
			: json_null(),
		"profile", s->c->origin.profile, "rounds",
		(json_int_t)r->rounds, "hit_round", (json_int_t)r->hit_round,
		"rate", rate_json(s->rate), "tool", MMR_VERSION, "kernel",
		s->uts.release, "arch", s->uts.machine, "cpus", s->cpus,
		"ended_by", ended ? json_string_value(ended) : "unknown",
		"detect_ms", (double)r->detect_ns / 1e6, "wall_ms",
		(double)r->wall_ns / 1e6, "stmt", r->stmt, "class",
		json_string_value(json_object_get(r->evidence, "class")),
		"guest", r->guest.kernel[0] ? r->guest.text : NULL);
	return j;
}

static void put(struct save *s, const char *name, const char *text)
{
	char *path;
	int ret;

	if (asprintf(&path, "%s/%s", s->folder, name) < 0) {
		ret = -ENOMEM;
	} else {
		ret = text ? mmr_file_write_sync(path, text, strlen(text))
			   : -ENOMEM;
		free(path);
	}
	if (ret && !s->err)
		s->err = ret;
}

static void put_json(struct save *s, const char *name, const json_t *j)
{
	char *text = j ? json_dumps(j, DUMP) : strdup("{}\n");

	put(s, name, text);
	free(text);
}

/* The case with where it was seen and how often. */
static char *stamped_case(const struct save *s)
{
	struct mmr_case *c = mmr_case_clone(s->c);
	char *text = NULL;

	if (!c)
		return NULL;
	c->origin.tool = mmr_case_str(c, MMR_VERSION);
	c->origin.kernel = mmr_case_str(c, s->uts.release);
	c->origin.arch = mmr_case_str(c, s->uts.machine);
	c->origin.cpus = s->cpus;
	if (s->rate && s->rate->runs) {
		c->seen_hits = (int64_t)s->rate->hits;
		c->seen_runs = (int64_t)s->rate->runs;
	}
	text = mmr_case_print(c);
	mmr_case_free(c);
	return text;
}

static char *repro_text(const struct mmr_case *c)
{
	struct mmr_diag diag = {0};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int ret;

	if (!f)
		return NULL;
	ret = mmr_export(c, MMR_EXPORT_C, NULL, f, &diag);
	fclose(f);
	if (!ret)
		return text;
	free(text);
	if (asprintf(&text,
		     "/* No C program: %d:%d: %s.  Run the case itself:\n"
		     " * mmrace replay case.case */\n",
		     diag.line, diag.col,
		     diag.text[0] ? diag.text : strerror(-ret)) < 0)
		return NULL;
	return text;
}

static char *report_text(const struct mmr_report *r)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	mmr_report_write(f, r);
	fclose(f);
	return text;
}

/* All files of a new finding, the ones that matter most first. */
static void put_all(struct save *s)
{
	json_t *verdict = verdict_json(s);
	char *text = stamped_case(s), *repro = repro_text(s->c);
	char *first = mmr_case_print(s->first ? s->first : s->c);
	struct mmr_report r = {.verdict = verdict,
			       .evidence = s->res->evidence,
			       .timeline = s->res->timeline,
			       .stacks = s->res->stacks,
			       .case_text = text,
			       .repro = repro};
	char *report = report_text(&r);

	put_json(s, "verdict.json", verdict);
	put(s, "case.case", text);
	put(s, "first.case", first);
	if (s->res->exact)
		put(s, "exact.case", s->res->exact);
	put(s, "stacks.txt", s->res->stacks ? s->res->stacks : "");
	put(s, "report.md", report);
	put_json(s, "evidence.json", s->res->evidence);
	put(s, "repro.c", repro);
	put_json(s, "timeline.json", s->res->timeline);
	if (s->res->log && *s->res->log)
		put(s, "kernel.log", s->res->log);
	if (!s->err)
		s->err = mmr_file_sync_dir(s->folder);
	free(report);
	free(first);
	free(repro);
	free(text);
	json_decref(verdict);
}

/* Kernel and machine that it was found on: a guest's, or this one. */
static void where(struct save *s)
{
	const struct mmr_run_result *res = s->res;

	uname(&s->uts);
	s->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (!res->guest.kernel[0])
		return;
	snprintf(s->uts.release, sizeof(s->uts.release), "%.64s",
		 res->guest.kernel);
	snprintf(s->uts.machine, sizeof(s->uts.machine), "%s", res->guest.arch);
	s->cpus = res->guest.cpus;
}

int mmr_finding_print(FILE *out, const struct mmr_case *c,
		      const struct mmr_run_result *res,
		      const struct mmr_rate *rate)
{
	struct save s = {.c = c, .res = res, .rate = rate};
	struct mmr_report r = {.evidence = res->evidence,
			       .timeline = res->timeline,
			       .stacks = res->stacks};
	json_t *verdict;
	char *text, *repro;
	int ret;

	where(&s);
	mmr_clock_date(s.when, sizeof(s.when));
	text = stamped_case(&s);
	repro = repro_text(c);
	verdict = verdict_json(&s);
	r.verdict = verdict;
	r.case_text = text;
	r.repro = repro;
	ret = verdict ? mmr_report_write(out, &r) : -ENOMEM;
	free(text);
	free(repro);
	json_decref(verdict);
	return ret;
}

static char *read_text(const char *folder, const char *name)
{
	char *path, *text = NULL;
	struct stat st;
	FILE *f;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return NULL;
	f = fopen(path, "re");
	free(path);
	if (!f)
		return NULL;
	if (!fstat(fileno(f), &st) && st.st_size < 1 << 28) {
		text = malloc((size_t)st.st_size + 1);
		if (text)
			text[fread(text, 1, (size_t)st.st_size, f)] = '\0';
	}
	fclose(f);
	return text;
}

static json_t *read_json(const char *folder, const char *name)
{
	char *text = read_text(folder, name);
	json_t *j = text ? json_loads(text, 0, NULL) : NULL;

	free(text);
	return j;
}

static void replace(struct save *s, const char *name, const char *text)
{
	char *path;
	int ret = -ENOMEM;

	if (text && asprintf(&path, "%s/%s", s->folder, name) >= 0) {
		ret = mmr_write_file(path, text, strlen(text));
		free(path);
	}
	if (ret && !s->err)
		s->err = ret;
}

/* True when the stored case is c but for its origin and seen lines. */
static bool is_case(const struct mmr_case *c, const char *stored)
{
	struct mmr_case *old = NULL, *now = mmr_case_clone(c);
	struct mmr_diag diag;
	char *a = NULL, *b = NULL;
	bool same;

	if (now && stored &&
	    !mmr_case_parse(stored, strlen(stored), &old, &diag, NULL, NULL)) {
		memset(&old->origin, 0, sizeof(old->origin));
		memset(&now->origin, 0, sizeof(now->origin));
		old->seen_hits = now->seen_hits = 0;
		old->seen_runs = now->seen_runs = 0;
		a = mmr_case_print(old);
		b = mmr_case_print(now);
	}
	same = a && b && !strcmp(a, b);
	free(a);
	free(b);
	mmr_case_free(old);
	mmr_case_free(now);
	return same;
}

/* The stored case is this one, or this one with its offsets still drawn. */
static bool same_case(const struct save *s, const char *stored)
{
	struct mmr_case *bound;
	bool same = is_case(s->c, stored);

	if (same)
		return true;
	bound = mmr_calibrate_case(s->res, false);
	if (bound)
		same = is_case(bound, stored);
	mmr_case_free(bound);
	return same;
}

/* A rate is known now: into the case and the report. */
static void renew_rate(struct save *s, const json_t *verdict)
{
	json_t *evidence = read_json(s->folder, "evidence.json");
	json_t *timeline = read_json(s->folder, "timeline.json");
	char *stacks = read_text(s->folder, "stacks.txt");
	char *repro = repro_text(s->c);
	char *text = stamped_case(s), *report;
	struct mmr_report r = {.verdict = verdict,
			       .evidence = evidence,
			       .timeline = timeline,
			       .stacks = stacks,
			       .case_text = text,
			       .repro = repro};

	report = report_text(&r);
	replace(s, "case.case", text);
	replace(s, "repro.c", repro);
	replace(s, "report.md", report);
	free(report);
	free(text);
	free(repro);
	free(stacks);
	json_decref(timeline);
	json_decref(evidence);
}

/* What differs from hit to hit; what is large stays out. */
static void put_sample(struct save *s, int number)
{
	static const char *const keys[] = {
		"time",	 "text",    "signature", "ended_by", "culprit",
		"steps", "missing", "measured",	 "perf",     "tasks"};
	json_t *j = json_object();
	char name[32], *dir;
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_set(j, keys[i],
				json_object_get(s->res->evidence, keys[i]));
	json_object_set_new(j, "hit_round",
			    json_integer((json_int_t)s->res->hit_round));
	if (asprintf(&dir, "%s/samples", s->folder) >= 0) {
		mmr_mkdir_p(dir);
		free(dir);
	}
	snprintf(name, sizeof(name), "samples/%02d.json", number);
	put_json(s, name, j);
	json_decref(j);
}

/* sighting: seen again; else only its rate has been measured. */
static void update(struct save *s, bool sighting)
{
	json_t *v = read_json(s->folder, "verdict.json");
	json_int_t count;
	char *text, *stored;

	if (!v)
		v = verdict_json(s); /* unreadable: begin again */
	count = json_integer_value(json_object_get(v, "count"));
	if (sighting) {
		json_object_set_new(v, "count", json_integer(count + 1));
		json_object_set_new(v, "last_seen", json_string(s->when));
	}
	stored = s->rate ? read_text(s->folder, "case.case") : NULL;
	if (stored && same_case(s, stored)) {
		json_object_set_new(v, "rate", rate_json(s->rate));
		renew_rate(s, v);
	}
	free(stored);
	if (sighting && count >= 1 && count <= SAMPLES_MAX)
		put_sample(s, (int)count);
	text = json_dumps(v, DUMP);
	replace(s, "verdict.json", text);
	free(text);
	json_decref(v);
}

static void save_new(struct save *s, const char *findings, const char *final)
{
	char *partial = NULL;

	if (asprintf(&partial, "%s/.partial-%s", findings, s->res->id) < 0) {
		s->err = -ENOMEM;
		return;
	}
	mmr_remove_tree(s->folder, 1);
	s->err = mmr_mkdir_p(s->folder);
	if (s->err)
		goto out;
	put_all(s);
	mmr_remove_tree(partial, 1);
	if (!s->err && rename(s->folder, final))
		s->err = -errno;
	if (!s->err) {
		s->err = mmr_file_sync_dir(findings);
	} else if (!rename(s->folder, partial)) {
		free(s->folder);
		s->folder = partial;
		return;
	}
out:
	free(partial);
}

int mmr_finding_save(const char *dir, const struct mmr_case *c,
		     const struct mmr_case *first,
		     const struct mmr_run_result *res,
		     const struct mmr_rate *rate, char *path, size_t n)
{
	struct save s = {.c = c, .first = first, .res = res, .rate = rate};
	char *findings = NULL, *final = NULL, *verdict = NULL;
	struct mmr_case *bound;
	int ret;

	if (n)
		path[0] = '\0';
	if (!res->id[0] || strchr(res->id, '/'))
		return -EINVAL;
	bound = first ? NULL : mmr_calibrate_case(res, false);
	if (bound) {
		s.c = bound;
		s.first = c;
	}
	where(&s);
	mmr_clock_date(s.when, sizeof(s.when));
	ret = -ENOMEM;
	if (asprintf(&findings, "%s/findings", dir) < 0)
		goto out_bound;
	if (asprintf(&final, "%s/%s", findings, res->id) < 0)
		goto out_findings;
	if (asprintf(&verdict, "%s/verdict.json", final) < 0)
		goto out_final;
	pthread_mutex_lock(&save_lock);
	s.err = mmr_mkdir_p(findings);
	if (!s.err && !access(verdict, F_OK)) {
		s.folder = strdup(final);
		if (s.folder)
			update(&s, true);
	} else if (!s.err && asprintf(&s.folder, "%s/.tmp-%s-%d", findings,
				      res->id, getpid()) >= 0) {
		save_new(&s, findings, final);
		if (!s.err) {
			free(s.folder);
			s.folder = strdup(final);
		}
	}
	pthread_mutex_unlock(&save_lock);
	ret = s.err;
	if (s.folder && n)
		snprintf(path, n, "%s", s.folder);
	free(s.folder);
	free(verdict);
out_final:
	free(final);
out_findings:
	free(findings);
out_bound:
	mmr_case_free(bound);
	return ret;
}

int mmr_finding_rate(const char *dir, const struct mmr_case *c,
		     const struct mmr_run_result *res,
		     const struct mmr_rate *rate)
{
	struct save s = {.c = c, .res = res, .rate = rate};
	struct mmr_case *bound = NULL;

	if (!res->id[0] || strchr(res->id, '/'))
		return -EINVAL;
	where(&s);
	if (asprintf(&s.folder, "%s/findings/%s", dir, res->id) < 0)
		return -ENOMEM;
	if (mmr_timing_draws(c))
		bound = mmr_calibrate_case(res, false);
	if (bound)
		s.c = bound;
	pthread_mutex_lock(&save_lock);
	if (access(s.folder, F_OK))
		s.err = -errno;
	else
		update(&s, false);
	pthread_mutex_unlock(&save_lock);
	free(s.folder);
	mmr_case_free(bound);
	return s.err;
}

uint64_t mmr_finding_count(const char *folder)
{
	json_t *v = read_json(folder, "verdict.json");
	json_int_t n = json_integer_value(json_object_get(v, "count"));

	json_decref(v);
	return n > 0 ? (uint64_t)n : 0;
}
