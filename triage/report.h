/* SPDX-License-Identifier: GPL-2.0-or-later */
/* report.md: a finding, ready to paste into a mail to linux-mm. */
#ifndef MMR_TRIAGE_REPORT_H
#define MMR_TRIAGE_REPORT_H

#include <jansson.h>
#include <stdio.h>

/* What a report is made of; all borrowed, all but verdict may be NULL. */
struct mmr_report {
	const json_t *verdict;	/* verdict.json */
	const json_t *evidence; /* evidence.json */
	const json_t *timeline; /* timeline.json */
	const char *stacks;	/* stacks.txt */
	const char *case_text;	/* case.case */
	const char *repro;	/* repro.c */
};

/* Writes the report; reads facts of the running kernel.  0 or -EIO. */
int mmr_report_write(FILE *out, const struct mmr_report *r);
/* The kernel's configuration and settings that matter to memory management,
 * one a line; also for doctor. */
void mmr_report_config(FILE *out);

#endif
