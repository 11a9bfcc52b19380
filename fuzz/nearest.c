// SPDX-License-Identifier: GPL-2.0-or-later
/* Edit distance (insert, delete, replace) over short words. */
#include "nearest.h"

#include <stddef.h>
#include <string.h>

#define MAX_WORD 40

static int least(int a, int b, int c)
{
	int m = a < b ? a : b;

	return m < c ? m : c;
}

static int distance(const char *a, const char *b)
{
	int row[MAX_WORD + 1], n = (int)strlen(b);

	if (n > MAX_WORD || strlen(a) > MAX_WORD)
		return MAX_WORD;
	for (int j = 0; j <= n; j++)
		row[j] = j;
	for (int i = 0; a[i]; i++) {
		int corner = row[0];

		row[0] = i + 1;
		for (int j = 0; j < n; j++) {
			int up = row[j + 1];

			row[j + 1] = least(up + 1, row[j] + 1,
					   corner + (a[i] != b[j]));
			corner = up;
		}
	}
	return row[n];
}

const char *mmr_nearest(const char *word, mmr_nearest_next *next, void *arg)
{
	const char *best = NULL, *s;
	int best_d = MAX_WORD;

	for (int i = 0; (s = next(arg, i)); i++) {
		int d = distance(word, s);

		if (d < best_d) {
			best_d = d;
			best = s;
		}
	}
	/* A third of the word wrong is a typing error, more is another word. */
	return best && best_d <= 1 + (int)strlen(best) / 3 ? best : NULL;
}
