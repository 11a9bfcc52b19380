// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * json FILE [KEY[.KEY...]]: exit 0 when FILE is JSON; with a path, prints the
 * value there (strings without quotes) and exits 1 when there is none.  Keys
 * of arrays are numbers.  So that the command-line tests need no jq.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *find(json_t *at, char *path)
{
	char *key, *save = NULL;

	for (key = strtok_r(path, ".", &save); at && key;
	     key = strtok_r(NULL, ".", &save)) {
		if (json_is_array(at))
			at = json_array_get(at, strtoul(key, NULL, 10));
		else
			at = json_object_get(at, key);
	}
	return at;
}

static int print(json_t *value)
{
	char *text;

	if (!value)
		return 1;
	if (json_is_string(value)) {
		puts(json_string_value(value));
		return 0;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	if (!text)
		return 1;
	puts(text);
	free(text);
	return 0;
}

int main(int argc, char **argv)
{
	json_error_t error;
	json_t *root;
	int rc = 0;

	if (argc < 2 || argc > 3)
		return 2;
	root = json_load_file(argv[1], JSON_DECODE_ANY, &error);
	if (!root) {
		fprintf(stderr, "%s:%d:%d: %s\n", argv[1], error.line,
			error.column, error.text);
		return 1;
	}
	if (argc == 3)
		rc = print(find(root, argv[2]));
	json_decref(root);
	return rc;
}
