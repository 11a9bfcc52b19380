/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel log taken apart: which of its lines belong to which report of
 * trouble.  Two CPUs in trouble write at the same time, and their lines come
 * mixed; where the kernel says who wrote each line (CONFIG_PRINTK_CALLER: the
 * task, or the CPU outside of tasks) they are put apart again.
 *
 * Takes any bytes: console text, `dmesg`, records of /dev/kmsg, with or
 * without "[time]" and "[caller]" in front, cut off anywhere, binary.
 */
#ifndef MMR_TRIAGE_KLOG_SPLIT_H
#define MMR_TRIAGE_KLOG_SPLIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct mmr_klog_report {
	const char *kind; /* "warning", "kasan" and so on; static */
	char title[240];  /* its first line that says what, no prefix */
	char caller[16];  /* "T123", "C1"; "": the kernel does not say */
	char comm[32];	  /* "" unknown */
	long cpu, pid;	  /* -1 unknown */
	bool complete;	  /* its end mark was seen */
	bool mixed;	  /* began while another one was open, and nothing tells
			   * their lines apart */
	size_t lines;
	char *text; /* its lines as they came, NUL-terminated */
	size_t len;
};

struct mmr_klog_split {
	struct mmr_klog_report *reports; /* in the order of their begin */
	int n;
	char *rest; /* all other lines, in their order */
	size_t rest_len, rest_lines;
};

/* Every line that is not blank lands in one report or in rest, once; a NUL
 * byte becomes '?'.  0 or -ENOMEM; mmr_klog_split_free() either way.  Any
 * thread. */
int mmr_klog_split(const char *raw, size_t len, struct mmr_klog_split *out)
	__attribute__((warn_unused_result));
void mmr_klog_split_free(struct mmr_klog_split *s);

/* The kind of trouble that a line (without prefix, NUL-terminated) begins;
 * NULL: none. */
const char *mmr_klog_kind(const char *text);

/* [{kind, title, caller, cpu, pid, comm, complete, mixed, text}] for
 * evidence.json; a new array. */
json_t *mmr_klog_reports_json(const struct mmr_klog_split *s);

#endif
