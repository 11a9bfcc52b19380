// SPDX-License-Identifier: GPL-2.0-or-later
/* Findings of several soaks, as one: the same stall on many machines. */
#include "finding.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUB_FOLDERS 1 /* samples/ */

static int copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, rc = 0;
	ssize_t n;

	if (in < 0)
		return -errno;
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (out < 0)
		rc = -errno;
	while (!rc && (n = sendfile(out, in, NULL, 1 << 20)))
		if (n < 0)
			rc = -errno;
	if (!rc && fsync(out))
		rc = -errno;
	close(in);
	if (out >= 0)
		close(out);
	return rc;
}

static int copy_tree(const char *from, const char *to, int depth)
{
	DIR *d = opendir(from);
	const struct dirent *e;
	char *a, *b;
	struct stat st;
	int rc = d ? mmr_mkdir_p(to) : -errno;

	while (!rc && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (asprintf(&a, "%s/%s", from, e->d_name) < 0) {
			rc = -ENOMEM;
			break;
		}
		if (asprintf(&b, "%s/%s", to, e->d_name) < 0) {
			free(a);
			rc = -ENOMEM;
			break;
		}
		/* Nothing in a finding is a link, and none is followed. */
		if (lstat(a, &st))
			rc = -errno;
		else if (S_ISREG(st.st_mode))
			rc = copy_file(a, b);
		else if (S_ISDIR(st.st_mode) && depth > 0)
			rc = copy_tree(a, b, depth - 1);
		free(a);
		free(b);
	}
	if (d)
		closedir(d);
	return rc;
}

static json_t *verdict_of(const char *dir, const char *id)
{
	json_t *j = NULL;
	char *path;

	if (asprintf(&path, "%s/findings/%s/verdict.json", dir, id) < 0)
		return NULL;
	j = json_load_file(path, 0, NULL);
	free(path);
	if (j && !json_is_object(j)) {
		json_decref(j);
		j = NULL;
	}
	return j;
}

static const char *word(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

/* Which of two folders stays: the earlier sighting, and of equal ones the
 * smaller text, so that the order of the soaks does not matter. */
static bool is_before(const json_t *a, const json_t *b)
{
	char *x, *y;
	bool before;
	int d = strcmp(word(a, "first_seen"), word(b, "first_seen"));

	if (d)
		return d < 0;
	x = json_dumps(a, JSON_SORT_KEYS);
	y = json_dumps(b, JSON_SORT_KEYS);
	before = x && y && strcmp(x, y) < 0;
	free(x);
	free(y);
	return before;
}

static int put(const char *from, const char *out, const char *id,
	       json_t *verdict)
{
	char *source = NULL, *tmp = NULL, *final = NULL, *text = NULL,
	     *file = NULL;
	int rc = -ENOMEM;

	if (asprintf(&source, "%s/findings/%s", from, id) < 0 ||
	    asprintf(&tmp, "%s/findings/.tmp-%s-%d", out, id, getpid()) < 0 ||
	    asprintf(&final, "%s/findings/%s", out, id) < 0 ||
	    asprintf(&file, "%s/verdict.json", tmp) < 0)
		goto out;
	mmr_remove_tree(tmp, SUB_FOLDERS);
	rc = copy_tree(source, tmp, SUB_FOLDERS);
	text = json_dumps(verdict, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	if (!rc)
		rc = text ? mmr_write_file(file, text, strlen(text)) : -ENOMEM;
	if (!rc) {
		/* The new one is whole before the old one goes. */
		mmr_remove_tree(final, SUB_FOLDERS);
		rc = rename(tmp, final) ? -errno : 0;
	}
	if (rc)
		mmr_remove_tree(tmp, SUB_FOLDERS);
out:
	free(file);
	free(text);
	free(final);
	free(tmp);
	free(source);
	return rc;
}

int mmr_finding_join(char *const *dirs, int n, const char *out, const char *id,
		     uint64_t count)
{
	json_t *best = NULL, *j;
	char last[40] = "", *findings;
	int from = -1, rc;

	for (int i = 0; i < n; i++) {
		j = verdict_of(dirs[i], id);
		if (!j)
			continue;
		if (strcmp(word(j, "last_seen"), last) > 0)
			snprintf(last, sizeof(last), "%s",
				 word(j, "last_seen"));
		if (from < 0 || is_before(j, best)) {
			json_decref(best);
			best = j;
			from = i;
		} else {
			json_decref(j);
		}
	}
	if (from < 0)
		return -ENOENT;
	if (count)
		json_object_set_new(best, "count",
				    json_integer((json_int_t)count));
	if (last[0])
		json_object_set_new(best, "last_seen", json_string(last));
	rc = -ENOMEM;
	if (asprintf(&findings, "%s/findings", out) >= 0) {
		rc = mmr_mkdir_p(findings);
		free(findings);
	}
	if (!rc)
		rc = put(dirs[from], out, id, best);
	json_decref(best);
	return rc;
}
