// SPDX-License-Identifier: GPL-2.0-or-later
/* --known FILE: loads the file, and says what in it has expired. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../triage/known.h"
#include "opts.h"

int mmr_opts_known(const char *path, struct mmr_known **out)
{
	struct mmr_diag diag;
	json_t *list, *e;
	size_t i;
	int rc;

	mmr_known_free(*out);
	*out = NULL;
	rc = mmr_known_load(path, out, &diag);
	if (rc && diag.text[0]) {
		fprintf(stderr, "%s:%d:%d: %s\n", path, diag.line, diag.col,
			diag.text);
		return -EINVAL;
	}
	if (rc) {
		mmr_opts_error("--known %s: %s", path, strerror(-rc));
		return -EINVAL;
	}
	list = mmr_known_json(*out);
	json_array_foreach (list, i, e)
		if (json_is_true(json_object_get(e, "expired")))
			fprintf(stderr,
				"%s: warning: '%s' expired on %s: it is not "
				"set aside any more\n",
				path,
				json_string_value(
					json_object_get(e, "pattern")),
				json_string_value(json_object_get(e, "until")));
	json_decref(list);
	return 0;
}
