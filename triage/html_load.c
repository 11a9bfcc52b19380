// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads a folder for the page.  It may be anybody's: nothing but plain files
 * of that folder is opened, no link followed, and no more read than a page can
 * show.
 */
#include "html.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON_MAX (32u << 20)
#define TEXT_MAX (1u << 20)
#define LINES_MAX 20000 /* of ledger.jsonl */
#define NOTES_MAX 64

__attribute__((format(printf, 2, 3))) static void
note(struct mmr_html_source *src, const char *fmt, ...)
{
	char text[700];
	va_list ap;
	json_t *j;

	if (json_array_size(src->notes) >= NOTES_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	j = json_string(text);
	if (j)
		json_array_append_new(src->notes, j);
}

/* At most max bytes of a plain file, NUL-terminated; NULL with errno. */
static char *slurp(int dir, const char *name, size_t max, bool *cut)
{
	int fd = openat(dir, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	size_t used = 0;
	char *buf = NULL;
	ssize_t n = 0;

	if (fd < 0)
		return NULL;
	errno = EINVAL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		goto out;
	*cut = (uint64_t)st.st_size > max;
	buf = malloc((*cut ? max : (size_t)st.st_size) + 1);
	if (!buf)
		goto out;
	while (used < (*cut ? max : (size_t)st.st_size) &&
	       (n = read(fd, buf + used,
			 (*cut ? max : (size_t)st.st_size) - used)) > 0)
		used += (size_t)n;
	buf[used] = '\0';
	if (n < 0) {
		free(buf);
		buf = NULL;
	}
out:
	close(fd);
	return buf;
}

static char *text_of(struct mmr_html_source *src, int dir, const char *where,
		     const char *name)
{
	bool cut = false;
	char *text = slurp(dir, name, TEXT_MAX, &cut);

	if (cut)
		note(src, "%s%s is longer than a page can hold: it is cut here",
		     where, name);
	return text;
}

static json_t *json_of(struct mmr_html_source *src, int dir, const char *where,
		       const char *name)
{
	bool cut = false;
	char *text = slurp(dir, name, JSON_MAX, &cut);
	json_error_t error;
	json_t *j = NULL;

	if (text && !cut)
		j = json_loads(text, 0, &error);
	if (text && (!j || !json_is_object(j)))
		note(src, "%s%s cannot be read: %s", where, name,
		     cut ? "it is too large"
			 : (j ? "it is no object" : error.text));
	else if (!text && errno != ENOENT)
		note(src, "%s%s cannot be read: %s", where, name,
		     strerror(errno));
	free(text);
	if (j && !json_is_object(j)) {
		json_decref(j);
		j = NULL;
	}
	return j;
}

static int count_samples(int dir)
{
	int fd = openat(dir, "samples",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	int n = 0;

	if (!d && fd >= 0)
		close(fd);
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

/* False: it has no verdict, so it is no finding. */
static bool load_finding(struct mmr_html_source *src, int dir, const char *id,
			 bool known)
{
	struct mmr_html_finding *d = &src->findings[src->nfindings];
	char where[160] = "";

	if (!src->one)
		snprintf(where, sizeof(where), "%.140s/", id);
	memset(d, 0, sizeof(*d));
	d->verdict = json_of(src, dir, where, "verdict.json");
	if (!d->verdict)
		return false;
	snprintf(d->id, sizeof(d->id), "%s", id);
	d->known = known;
	d->evidence = json_of(src, dir, where, "evidence.json");
	d->timeline = json_of(src, dir, where, "timeline.json");
	d->stacks = text_of(src, dir, where, "stacks.txt");
	d->case_text = text_of(src, dir, where, "case.case");
	d->report = text_of(src, dir, where, "report.md");
	d->log = text_of(src, dir, where, "kernel.log");
	d->samples = count_samples(dir);
	src->nfindings++;
	return true;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int any(const struct dirent *e)
{
	return strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
}

static void load_entry(struct mmr_html_source *src, int dir, const char *name,
		       bool known)
{
	int fd;

	if (!strncmp(name, ".partial-", 9)) {
		note(src,
		     "%.200s was cut short, as the disk was full or the "
		     "machine "
		     "went down: what is there of it is in %s/%.200s",
		     name + 9, known ? "known/findings" : "findings", name);
		return;
	}
	if (name[0] == '.')
		return;
	if (src->nfindings == MMR_HTML_FINDINGS) {
		src->more++;
		return;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!load_finding(src, fd, name, known))
		note(src, "%.200s has no verdict.json that can be read", name);
	close(fd);
}

static void load_findings(struct mmr_html_source *src, int top,
			  const char *path, bool known)
{
	int dir = openat(top, path,
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent **list = NULL;
	int i, n;

	if (dir < 0)
		return;
	n = scandirat(dir, ".", &list, any, by_name);
	for (i = 0; i < n; i++) {
		load_entry(src, dir, list[i]->d_name, known);
		free(list[i]);
	}
	free(list);
	close(dir);
}

static void load_history(struct mmr_html_source *src, int dir)
{
	bool cut = false;
	char *text = slurp(dir, "ledger.jsonl", JSON_MAX, &cut);
	char *line, *save = NULL;
	json_t *j;

	for (line = text ? strtok_r(text, "\n", &save) : NULL;
	     line && json_array_size(src->history) < LINES_MAX;
	     line = strtok_r(NULL, "\n", &save)) {
		j = json_loads(line, 0, NULL); /* cut short by a kill: none */
		if (j)
			json_array_append_new(src->history, j);
	}
	free(text);
}

/* What a soak that was killed has left beside its ledger. */
static void load_leftovers(struct mmr_html_source *src, int dir)
{
	struct dirent **list = NULL;
	int n = scandirat(dir, ".", &list, any, by_name), i;

	for (i = 0; i < n; i++) {
		const char *name = list[i]->d_name;

		if (!strncmp(name, "spool-", 6))
			note(src,
			     "%.200s: evidence of steps 1 to 4 of a hit whose "
			     "later steps did not come to their end",
			     name);
		if (!strncmp(name, "running-", 8))
			note(src,
			     "%.200s: the case that runs now, or ran when "
			     "the soak was ended",
			     name);
		free(list[i]);
	}
	free(list);
}

/* What is worth reading first comes first: open ones, then often seen ones. */
static int by_weight(const void *a, const void *b)
{
	const struct mmr_html_finding *x = a, *y = b;
	double n = mmr_html_num(x->verdict, "count");
	double m = mmr_html_num(y->verdict, "count");

	if (x->known != y->known)
		return x->known - y->known;
	if (n != m)
		return n < m ? 1 : -1;
	return strcmp(x->id, y->id);
}

int mmr_html_load(const char *dir, struct mmr_html_source *src, char *text,
		  size_t n)
{
	const char *name, *end = dir + strlen(dir);
	char base[128];
	int fd, err;

	memset(src, 0, sizeof(*src));
	src->dir = dir;
	src->notes = json_array();
	src->history = json_array();
	src->findings = calloc(MMR_HTML_FINDINGS, sizeof(*src->findings));
	if (!src->notes || !src->history || !src->findings)
		return -ENOMEM;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		snprintf(text, n, "%s: %s", dir, strerror(-err));
		return err;
	}
	while (end > dir + 1 && end[-1] == '/')
		end--;
	for (name = end; name > dir && name[-1] != '/';)
		name--;
	snprintf(base, sizeof(base), "%.*s", (int)(end - name), name);
	src->one = !faccessat(fd, "verdict.json", F_OK, 0);
	if (src->one) {
		load_finding(src, fd, base, false);
	} else {
		src->soak = json_of(src, fd, "", "soak.json");
		load_history(src, fd);
		load_findings(src, fd, "findings", false);
		load_findings(src, fd, "known/findings", true);
		load_leftovers(src, fd);
		qsort(src->findings, (size_t)src->nfindings,
		      sizeof(*src->findings), by_weight);
	}
	close(fd);
	if (src->nfindings || src->soak || json_array_size(src->history))
		return 0;
	snprintf(text, n,
		 "%s has neither a soak.json nor findings nor a verdict.json: "
		 "it is no folder of a soak or finding%s%s",
		 dir, json_array_size(src->notes) ? "; " : "",
		 json_array_size(src->notes)
			 ? json_string_value(json_array_get(src->notes, 0))
			 : "");
	return -ENOENT;
}

void mmr_html_free(struct mmr_html_source *src)
{
	int i;

	for (i = 0; i < src->nfindings; i++) {
		struct mmr_html_finding *d = &src->findings[i];

		json_decref(d->verdict);
		json_decref(d->evidence);
		json_decref(d->timeline);
		free(d->stacks);
		free(d->case_text);
		free(d->report);
		free(d->log);
	}
	free(src->findings);
	json_decref(src->soak);
	json_decref(src->history);
	json_decref(src->notes);
	memset(src, 0, sizeof(*src));
}

static json_t *text_json(const char *s)
{
	json_t *j = s ? json_string(s) : NULL;

	return j ? j : json_null();
}

json_t *mmr_html_json(const struct mmr_html_source *src)
{
	json_t *all = json_array(), *j;
	int i;

	for (i = 0; i < src->nfindings; i++) {
		const struct mmr_html_finding *d = &src->findings[i];

		j = json_object();
		json_object_set_new(j, "id", text_json(d->id));
		json_object_set_new(j, "set_aside", json_boolean(d->known));
		json_object_set(j, "verdict", d->verdict);
		json_object_set(j, "steps",
				json_object_get(d->evidence, "steps"));
		json_object_set(j, "missing",
				json_object_get(d->evidence, "missing"));
		json_object_set_new(j, "samples", json_integer(d->samples));
		json_object_set_new(j, "case", text_json(d->case_text));
		json_object_set_new(j, "stacks", text_json(d->stacks));
		json_array_append_new(all, j);
	}
	j = json_object();
	json_object_set_new(j, "dir", text_json(src->dir));
	json_object_set(j, "soak", src->soak);
	if (!src->soak)
		json_object_set_new(j, "soak", json_null());
	json_object_set_new(j, "findings", all);
	json_object_set_new(j, "more_findings",
			    json_integer((json_int_t)src->more));
	json_object_set(j, "notes", src->notes);
	return j;
}
