// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer target for the kernel log: whatever the bytes are, every line of
 * them lands in one report or in the rest, once and as it came, and all that
 * is made of it (titles, JSON, a signature, what the reader of /dev/kmsg
 * keeps) is made without a step outside.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../triage/klog.h"
#include "../triage/klog_split.h"
#include "../triage/ladder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void broken(const char *what)
{
	fprintf(stderr, "klog_fuzzer: %s\n", what);
	abort();
}

/* The lines that are not blank, as a sum that does not know their order. */
static uint64_t sum_of(const char *text, size_t len)
{
	uint64_t sum = 0, h = 0xcbf29ce484222325ULL;
	bool blank = true;
	size_t i;

	for (i = 0; i <= len; i++) {
		char c = '\n';

		if (i < len)
			c = text[i] ? text[i] : '?';
		if (c == '\n') {
			sum += blank ? 0 : h * (h | 1);
			h = 0xcbf29ce484222325ULL;
			blank = true;
			continue;
		}
		blank = blank && (c == ' ' || c == '\t' || c == '\r');
		h = (h ^ (uint8_t)c) * 0x100000001b3ULL;
	}
	return sum;
}

static void check_split(const struct mmr_klog_split *s, const char *text,
			size_t size)
{
	uint64_t sum = sum_of(s->rest, s->rest_len);
	json_t *j = mmr_klog_reports_json(s);
	int i;

	for (i = 0; i < s->n; i++) {
		const struct mmr_klog_report *r = &s->reports[i];

		if (!r->kind || !r->lines || strlen(r->text) != r->len)
			broken("a report without a kind or lines");
		sum += sum_of(r->text, r->len);
	}
	if (sum != sum_of(text, size))
		broken("a line is lost, doubled or changed");
	if (json_array_size(j) != (size_t)s->n)
		broken("a report is no JSON");
	json_decref(j);
}

/* Each line as a record, too. */
static void feed_lines(const char *text, size_t size)
{
	struct mmr_klog_mark none = {0};
	const char *end = text + size, *nl;
	char *taken;

	mmr_klog_reset();
	for (; text < end; text = nl + 1) {
		nl = memchr(text, '\n', (size_t)(end - text));
		if (!nl)
			nl = end;
		/* It wants a NUL behind a record, as the reader puts one. */
		if (nl < end)
			mmr_klog_feed(text, (size_t)(nl - text));
	}
	taken = mmr_klog_take(&none);
	free(taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), title[160], id[48];
	struct mmr_klog_split s;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (mmr_klog_split(text, size, &s))
		broken("no memory");
	check_split(&s, text, size);
	mmr_klog_split_free(&s);
	mmr_signature_klog(text, title, sizeof(title));
	mmr_signature_id(MMR_KERNEL_LOG, title, id, sizeof(id));
	mmr_signature_frames(text, MMR_FRAMES, title, sizeof(title));
	feed_lines(text, size);
	free(text);
	return 0;
}
