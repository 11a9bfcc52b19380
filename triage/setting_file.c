// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The settings that a case may name, and how their files are read and
 * written.  A new one is a line in `known`.
 */
#include "setting_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings.h"

static const struct known {
	const char *name, *path;
} known[] = {
	{"nr_hugepages", "/proc/sys/vm/nr_hugepages"},
	{"nr_overcommit_hugepages", "/proc/sys/vm/nr_overcommit_hugepages"},
};

/* Set once, before any thread is started. */
static char prefix_path[256];

void mmr_settings_root(const char *prefix)
{
	snprintf(prefix_path, sizeof(prefix_path), "%s", prefix ? prefix : "");
}

char *mmr_setting_rooted(char *buf, size_t n, const char *path)
{
	snprintf(buf, n, "%s%s", prefix_path, path);
	return buf;
}

static const struct known *find_known(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return &known[i];
	return NULL;
}

const char *mmr_setting_find(const char *name)
{
	const struct known *k = find_known(name);

	return k ? k->name : NULL;
}

const char *mmr_setting_path(const char *name)
{
	const struct known *k = find_known(name);

	return k ? k->path : NULL;
}

int mmr_setting_get(const char *name, int64_t *value)
{
	const struct known *k = find_known(name);
	char path[512], text[64];
	ssize_t got;
	int fd;

	if (!k)
		return -EINVAL;
	fd = open(mmr_setting_rooted(path, sizeof(path), k->path),
		  O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return -EIO;
	text[got] = '\0';
	*value = strtoll(text, NULL, 10);
	return 0;
}

int mmr_setting_put(const char *name, int64_t value)
{
	const struct known *k = find_known(name);
	char path[512], text[32];
	ssize_t put;
	int fd, n, rc = 0;

	if (!k)
		return -EINVAL;
	fd = open(mmr_setting_rooted(path, sizeof(path), k->path),
		  O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "%" PRId64 "\n", value);
	put = write(fd, text, (size_t)n);
	if (put != n)
		rc = put < 0 ? -errno : -EIO;
	close(fd);
	return rc;
}

int64_t mmr_meminfo(const char *field)
{
	char path[512], line[256];
	size_t len = strlen(field);
	int64_t value = -1;
	FILE *f;

	f = fopen(mmr_setting_rooted(path, sizeof(path), "/proc/meminfo"),
		  "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, field, len) && line[len] == ':') {
			value = strtoll(line + len + 1, NULL, 10);
			break;
		}
	fclose(f);
	return value;
}
