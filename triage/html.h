/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A soak's folder, or a finding's, as one HTML page that needs nothing else:
 * no script, no font, no picture from outside.  Everything in the folder may
 * come from a stranger: it is read with care (no links, no pipes, bounded) and
 * written as text only.
 */
#ifndef MMR_TRIAGE_HTML_H
#define MMR_TRIAGE_HTML_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MMR_HTML_FINDINGS 256

struct mmr_html_finding {
	char id[128];				 /* name of its folder */
	bool known;				 /* set aside by --known */
	json_t *verdict, *evidence, *timeline;	 /* the last two may be NULL */
	char *stacks, *case_text, *report, *log; /* NULL: not there */
	int samples; /* later sightings that are kept */
};

struct mmr_html_source {
	const char *dir;
	bool one;	 /* dir is a finding's folder */
	json_t *soak;	 /* soak.json, NULL none */
	json_t *history; /* the lines of ledger.jsonl, an array */
	struct mmr_html_finding *findings;
	int nfindings;
	uint64_t more; /* findings beyond MMR_HTML_FINDINGS */
	json_t *notes; /* sentences: what could not be read, leftovers */
};

/* Reads dir.  0, or -errno with a sentence in text: it is neither a soak's
 * folder nor a finding's.  mmr_html_free() either way. */
int mmr_html_load(const char *dir, struct mmr_html_source *src, char *text,
		  size_t n) __attribute__((warn_unused_result));
void mmr_html_free(struct mmr_html_source *src);

/* Writes the page.  0 or -EIO. */
int mmr_html_page(FILE *f, const struct mmr_html_source *src)
	__attribute__((warn_unused_result));
/* The same for a program: {dir, soak, findings: [..], notes}, a new object. */
json_t *mmr_html_json(const struct mmr_html_source *src);

/* -- for the files that write the page ---------------------------------- */

/* Bytes as text of a page: markup, controls and what turns the direction of
 * writing are no longer that; bytes that are not UTF-8 become U+FFFD. */
void mmr_html_text(FILE *f, const char *s);
/* printf for our own markup. */
void mmr_html_put(FILE *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* <dt>key</dt><dd>text</dd>; nothing when text is NULL or empty. */
void mmr_html_fact(FILE *f, const char *key, const char *text);
void mmr_html_factf(FILE *f, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A block of text behind a line that opens it; nothing when there is none. */
void mmr_html_block(FILE *f, const char *title, const char *text, bool open);
/* 1.2 ms */
const char *mmr_html_time(char *buf, size_t n, double ns);
/* 1,234,567 */
const char *mmr_html_count(char *buf, size_t n, double v);
const char *mmr_html_str(const json_t *j, const char *key);
double mmr_html_num(const json_t *j, const char *key);

void mmr_html_style(FILE *f);
/* What a soak ran, how fast, what was slow, its history. */
void mmr_html_soak(FILE *f, const struct mmr_html_source *src);
void mmr_html_finding(FILE *f, const struct mmr_html_finding *d, int number);
/* Pictures, as SVG in the page. */
void mmr_html_timeline(FILE *f, const json_t *timeline, int number);
void mmr_html_rate(FILE *f, const json_t *rate);
void mmr_html_latency(FILE *f, const json_t *ops);
void mmr_html_history(FILE *f, const json_t *history);

#endif
