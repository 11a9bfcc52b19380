// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How the files of the settings that a case may name (ops/setting.h) are read
 * and written.
 */
#include "setting_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ops/setting.h"
#include "settings.h"

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

static const struct mmr_setting_info *find_known(const char *name)
{
	int i = mmr_setting_index(name);

	return i < 0 ? NULL : &mmr_setting_table[i];
}

const char *mmr_setting_path(const char *name)
{
	const struct mmr_setting_info *k = find_known(name);

	return k ? k->path : NULL;
}

/* "always [madvise] never": the number of the word in brackets, or of the only
 * word that there is. */
static int chosen_mode(int index, const char *text, int64_t *value)
{
	const char *from = strchr(text, '['),
		   *to = from ? strchr(from, ']') : NULL;

	if (!to)
		return mmr_setting_value(index, text, strcspn(text, " \n"),
					 value);
	return mmr_setting_value(index, from + 1, (size_t)(to - from) - 1,
				 value);
}

int mmr_setting_get(const char *name, int64_t *value)
{
	const struct mmr_setting_info *k = find_known(name);
	char path[512], text[128];
	ssize_t got;
	int fd;

	if (!k || k->kind == MMR_SETTING_TRIGGER)
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
	if (k->kind == MMR_SETTING_MODE)
		return chosen_mode((int)(k - mmr_setting_table), text, value);
	/* Booleans of modules read Y and N, and take numbers. */
	*value = text[0] == 'Y' ? 1 : strtoll(text, NULL, 10);
	return 0;
}

int mmr_setting_put(const char *name, int64_t value)
{
	const struct mmr_setting_info *k = find_known(name);
	char path[512], text[32];
	ssize_t put;
	int fd, rc = 0;
	size_t n;

	if (!k)
		return -EINVAL;
	fd = open(mmr_setting_rooted(path, sizeof(path), k->path),
		  O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	mmr_setting_text((int)(k - mmr_setting_table), value, text,
			 sizeof(text));
	n = strlen(text);
	put = write(fd, text, n);
	if (put != (ssize_t)n)
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
			/* A count that fell below 0 is shown as a huge one. */
			value = (int64_t)strtoull(line + len + 1, NULL, 10);
			break;
		}
	fclose(f);
	return value;
}
