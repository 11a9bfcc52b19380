// SPDX-License-Identifier: GPL-2.0-or-later
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "finding.h"

#define PREFIX "mmrace-"
#define DEPTH 4 /* of groups below one of ours */
#define LINES 48
#define NOTHING "-" /* to switch off */

int mmr_cgroup_put(const char *dir, const char *file, const char *text)
{
	char path[MMR_CGROUP_PATH + 64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int mmr_cgroup_put_number(const char *dir, const char *file, uint64_t v)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	return mmr_cgroup_put(dir, file, buf);
}

static bool read_file(const char *dir, const char *file, char *buf, size_t n)
{
	char path[MMR_CGROUP_PATH + 64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, buf, n - 1);
	close(fd);
	buf[got > 0 ? got : 0] = 0;
	return got > 0;
}

uint64_t mmr_cgroup_get(const char *dir, const char *file, const char *word)
{
	char buf[4096], *p;

	if (!read_file(dir, file, buf, sizeof(buf)))
		return ~0ULL;
	p = strstr(buf, word);
	if (!p)
		return ~0ULL;
	p += strlen(word);
	p += strspn(p, " \t");
	return *p >= '0' && *p <= '9' ? strtoull(p, NULL, 10) : ~0ULL;
}

/* Where the hierarchy is mounted, "" when it is not. */
static void find_mount(const char *controller, char *mount, size_t n)
{
	char line[1024], where[256], type[32], opts[512], *p;
	FILE *f = fopen("/proc/self/mounts", "re");

	*mount = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %255s %31s %511s", where, type, opts) !=
		    3)
			continue;
		if (!controller && !strcmp(type, "cgroup2"))
			snprintf(mount, n, "%s", where);
		if (!controller || strcmp(type, "cgroup"))
			continue;
		for (p = strtok(opts, ","); p; p = strtok(NULL, ","))
			if (!strcmp(p, controller))
				snprintf(mount, n, "%s", where);
	}
	if (f)
		fclose(f);
}

/* Our place in it. */
static void find_group(const char *controller, char *group, size_t n)
{
	char line[1024];
	FILE *f = fopen("/proc/self/cgroup", "re");

	*group = 0;
	while (f && fgets(line, sizeof(line), f)) {
		char *names = strchr(line, ':'), *path, *p;

		path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		names++;
		if (!controller && !*names)
			snprintf(group, n, "%s", path);
		for (p = strtok(names, ","); controller && p;
		     p = strtok(NULL, ","))
			if (!strcmp(p, controller))
				snprintf(group, n, "%s", path);
	}
	if (f)
		fclose(f);
}

int mmr_cgroup_own(const char *controller, char *out, size_t n)
{
	char mount[256], group[256];

	find_mount(controller, mount, sizeof(mount));
	find_group(controller, group, sizeof(group));
	if (!*mount || !*group)
		return -ENOENT;
	snprintf(out, n, "%s%s", mount, strcmp(group, "/") ? group : "");
	/* In a container the path may be one of the host: then the mount is
	 * ours. */
	if (access(out, F_OK))
		snprintf(out, n, "%s", mount);
	return 0;
}

/* The folder and those below it: thawed, then removed from the leaves on. */
static int remove_tree(const char *dir, int depth)
{
	char path[MMR_CGROUP_PATH * 2];
	struct dirent *e;
	DIR *d = opendir(dir);

	mmr_cgroup_put(dir, "freezer.state", "THAWED");
	mmr_cgroup_put(dir, "cgroup.freeze", "0");
	while (d && depth < DEPTH && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (strlen(path) < MMR_CGROUP_PATH)
			remove_tree(path, depth + 1);
	}
	if (d)
		closedir(d);
	return rmdir(dir) && errno != ENOENT ? -errno : 0;
}

int mmr_cgroup_remove(const char *dir, int wait_ms)
{
	struct timespec ms = {0, 1000000};
	int i, rc;

	for (i = 0;; i++) {
		rc = remove_tree(dir, 0);
		if (rc != -EBUSY || i >= wait_ms)
			return rc;
		nanosleep(&ms, NULL);
	}
}

/* Removes groups of engines that are no more; are there others? */
static bool sweep(const char *parent)
{
	char path[MMR_CGROUP_PATH * 2];
	DIR *dir = opendir(parent);
	struct dirent *e;
	bool lives = false;
	pid_t pid;

	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1))
			continue;
		pid = (pid_t)strtol(e->d_name + sizeof(PREFIX) - 1, NULL, 10);
		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, e->d_name);
		if (!kill(pid, 0) || errno != ESRCH ||
		    mmr_cgroup_remove(path, 500))
			lives = true;
	}
	if (dir)
		closedir(dir);
	return lives;
}

int mmr_cgroup_make(const char *parent, char *out, size_t n)
{
	sweep(parent);
	if (snprintf(out, n, "%s/" PREFIX "%d", parent, getpid()) >= (int)n)
		return -ENAMETOOLONG;
	if (mkdir(out, 0755) && errno != EEXIST)
		return -errno;
	return 0;
}

/* -- the journal of subtree_control: "PATH CONTROLLERS" a line ----------- */

/* Root's is for all; who may not write there has one of his own. */
static char *state_file(char *buf, size_t n, const char *name)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	snprintf(buf, n, "/run/mmrace");
	if (geteuid() && run && *run == '/')
		snprintf(buf, n, "%s/mmrace", run);
	mmr_mkdir_p(buf);
	snprintf(buf + strlen(buf), n - strlen(buf), "/%s", name);
	return buf;
}

int mmr_cgroup_lock(void)
{
	char path[512];
	int fd = open(state_file(path, sizeof(path), "cgroup.lock"),
		      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX))
		if (errno != EINTR) {
			close(fd);
			return -errno;
		}
	return fd;
}

void mmr_cgroup_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

struct line {
	char dir[MMR_CGROUP_PATH];
	char words[64];
};

static int journal_read(struct line *lines)
{
	char path[512], buf[MMR_CGROUP_PATH + 80], *words;
	int n = 0;
	FILE *f = fopen(state_file(path, sizeof(path), "cgroup"), "re");

	while (f && n < LINES && fgets(buf, sizeof(buf), f)) {
		buf[strcspn(buf, "\n")] = 0;
		words = strchr(buf, ' ');
		if (!words)
			continue;
		*words++ = 0;
		snprintf(lines[n].dir, sizeof(lines[n].dir), "%.319s", buf);
		snprintf(lines[n].words, sizeof(lines[n].words), "%.63s",
			 words);
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

static int journal_write(const struct line *lines, int n)
{
	char path[512], text[LINES * (MMR_CGROUP_PATH + 80)] = "";
	size_t len = 0;
	int i;

	state_file(path, sizeof(path), "cgroup");
	for (i = 0; i < n; i++)
		if (*lines[i].dir)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s %s\n", lines[i].dir,
						lines[i].words);
	if (!len)
		return unlink(path) && errno != ENOENT ? -errno : 0;
	return mmr_write_file(path, text, len);
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	const char *p;

	for (p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ' ') &&
		    (!p[n] || p[n] == ' ' || p[n] == '\n'))
			return true;
	return false;
}

/* Each word with a sign in front, or those that `have` lacks. */
static void sign_words(const char *words, const char *sign, const char *have,
		       char *out, size_t n)
{
	char copy[64], *save = NULL, *w;
	size_t len = 0;

	*out = 0;
	snprintf(copy, sizeof(copy), "%s", words);
	for (w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		if (!have || !has_word(have, w))
			len += (size_t)snprintf(out + len, n - len, "%s%s%s",
						len ? " " : "", sign, w);
}

int mmr_cgroup_enable(const char *dir, const char *controllers)
{
	char have[256] = "", words[64], text[80];
	struct line lines[LINES];
	int n, rc;

	if (!read_file(dir, "cgroup.subtree_control", have, sizeof(have)))
		have[0] = 0; /* none */
	sign_words(controllers, "", have, words, sizeof(words));
	if (!*words)
		return 0;
	n = journal_read(lines);
	if (n == LINES)
		return -ENOSPC;
	snprintf(lines[n].dir, sizeof(lines[n].dir), "%s", dir);
	snprintf(lines[n].words, sizeof(lines[n].words), "%s", words);
	rc = journal_write(lines, n + 1);
	if (rc)
		return rc;
	sign_words(words, "+", NULL, text, sizeof(text));
	rc = mmr_cgroup_put(dir, "cgroup.subtree_control", text);
	/* It was not switched on; a line too many does no harm. */
	if (rc && journal_write(lines, n))
		return rc;
	return rc;
}

int mmr_cgroup_note(const char *dir)
{
	struct line lines[LINES];
	int i, n = journal_read(lines);

	for (i = 0; i < n; i++)
		if (!strcmp(lines[i].dir, dir))
			return 0;
	if (n == LINES)
		return -ENOSPC;
	snprintf(lines[n].dir, sizeof(lines[n].dir), "%s", dir);
	snprintf(lines[n].words, sizeof(lines[n].words), NOTHING);
	return journal_write(lines, n + 1);
}

/* A journal may only name groups: below the mount of a hierarchy. */
static bool is_group(const char *dir)
{
	char line[1024], where[256], type[32];
	FILE *f = fopen("/proc/self/mounts", "re");
	bool found = false;
	size_t len;

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %255s %31s", where, type) != 2 ||
		    strncmp(type, "cgroup", 6))
			continue;
		len = strlen(where);
		found = !strncmp(dir, where, len) &&
			(!dir[len] || dir[len] == '/');
	}
	if (f)
		fclose(f);
	return found && !strstr(dir, "/..");
}

void mmr_cgroup_release(const char *dir)
{
	struct line lines[LINES];
	int i, n = journal_read(lines);
	bool changed = false;
	char text[80];

	for (i = 0; i < n; i++) {
		if (dir && strcmp(lines[i].dir, dir))
			continue;
		if (is_group(lines[i].dir)) {
			if (sweep(lines[i].dir))
				continue;
			sign_words(lines[i].words, "-", NULL, text,
				   sizeof(text));
			/* Somebody else's group may use it now: then it has to
			 * stay. */
			if (strcmp(lines[i].words, NOTHING))
				mmr_cgroup_put(lines[i].dir,
					       "cgroup.subtree_control", text);
		}
		lines[i].dir[0] = 0;
		changed = true;
	}
	if (changed && journal_write(lines, n))
		return; /* the next one tries again */
}
