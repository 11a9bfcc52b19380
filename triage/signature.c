// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What makes two stalls the same one: the verdict, the operation and the
 * kernel frames under it, without anything that differs from one kernel
 * build, boot or attempt to the next.
 *
 * A task on a CPU has no stack that could be repeated, so its signature is
 * verdict and operation alone, and for a storm whether a handler gets the
 * faults.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "klog_split.h"
#include "ladder.h"

/* Frames that every system call, fault or switch has: they say nothing. */
static bool is_entry(const char *s, size_t n)
{
	static const char *const whole[] = {
		"do_syscall_64",
		"x64_sys_call",
		"do_fast_syscall_32",
		"invoke_syscall",
		"do_el0_svc",
		"schedule",
		"__schedule",
		"ret_from_fork",
		"kthread",
		"do_int80_syscall_32",
		"ret_fast_syscall",
		"ret_from_fork_asm",
		"preempt_schedule_irq",
	};
	static const char *const begin[] = {
		"entry_",      "__x64_sys_", "__ia32_sys_",  "__arm64_sys_",
		"__se_sys_",   "__do_sys_",  "el0t_",	     "el0_",
		"el0_svc",     "asm_",	     "ret_to_user",  "exc_page_fault",
		"__switch_to", "sysret_",    "__riscv_sys_", "syscall_exit_",
		"0x",
	};
	size_t i;

	for (i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (strlen(whole[i]) == n && !strncmp(whole[i], s, n))
			return true;
	for (i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		if (n >= strlen(begin[i]) &&
		    !strncmp(begin[i], s, strlen(begin[i])))
			return true;
	return false;
}

/* The symbol of a stack line: "[<0>] futex_wait+0x4/0x80 [mod]" has
 * futex_wait.  Length 0: none, or one that the unwinder is not sure of. */
static const char *symbol(const char *line, const char *end, size_t *n)
{
	static const char *const tails[] = {".isra", ".constprop", ".part",
					    ".cold", ".llvm",	   ".lto_priv"};
	const char *p = line, *q, *t;
	size_t i;

	*n = 0;
	while (p < end && isspace((unsigned char)*p))
		p++;
	if (p < end && *p == '[') {
		while (p < end && *p != ']')
			p++;
		if (p < end)
			p++;
	}
	while (p < end && isspace((unsigned char)*p))
		p++;
	if (p >= end || *p == '?')
		return p;
	for (q = p; q < end && *q != '+' && !isspace((unsigned char)*q);)
		q++;
	for (i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		t = memmem(p, (size_t)(q - p), tails[i], strlen(tails[i]));
		if (t && t > p)
			q = t;
	}
	*n = (size_t)(q - p);
	return p;
}

void mmr_signature_frames(const char *stack, int max, char *out, size_t n)
{
	const char *line, *end, *sym;
	size_t len, used = 0;
	int got = 0;

	if (n)
		out[0] = '\0';
	for (line = stack; *line && got < max; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		sym = symbol(line, end, &len);
		if (!len || is_entry(sym, len))
			continue;
		/* Whole frames only: a cut one would not be stable. */
		if (used + len + 2 > n)
			break;
		if (used)
			out[used++] = '<';
		memcpy(out + used, sym, len);
		used += len;
		out[used] = '\0';
		got++;
	}
}

void mmr_signature_id(enum mmr_verdict v, const char *sig, char *id, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ULL; /* FNV-1a */

	for (; *sig; sig++)
		h = (h ^ (uint8_t)*sig) * 0x100000001b3ULL;
	h ^= h >> 32; /* its low bits alone mix badly upwards */
	snprintf(id, n, "%s-%010" PRIx64, mmr_verdict_name(v),
		 (uint64_t)(h & 0xffffffffffULL));
}

/* True for a line that names a trouble rather than describes it. */
static bool is_title(const char *line, size_t n)
{
	static const char *const words[] = {
		"BUG:",
		"WARNING:",
		"KASAN",
		"KCSAN",
		"UBSAN",
		"kernel BUG",
		"INFO: task",
		"Oops",
		"INFO: rcu",
		"rcu: INFO",
		"soft lockup",
		"hard LOCKUP",
		"Bad page",
		"BUG ",
		"possible circular locking",
		"general protection fault",
		"unable to handle",
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(line, n, words[i], strlen(words[i])))
			return true;
	return false;
}

/* True when all of it is a number, hexadecimal too, or signs. */
static bool is_number(const char *w, size_t n)
{
	size_t i, digits = 0;

	if (n > 2 && w[0] == '0' && w[1] == 'x')
		return true;
	for (i = 0; i < n; i++) {
		if (isalnum((unsigned char)w[i]) &&
		    !isxdigit((unsigned char)w[i]))
			return false;
		digits += !!isdigit((unsigned char)w[i]);
	}
	/* "ffff" is one as well, a short word like "a" or "be" is not. */
	return digits || n > 3 || (n && !isalnum((unsigned char)w[0]));
}

/* How much of a word of a title stays the same next time: not the offset in
 * a symbol, not what follows in pfn:12345, but the line of a source file. */
static size_t title_word(const char *w, size_t n)
{
	size_t i;

	if (is_number(w, n))
		return 0;
	if (memmem(w, n, ".c:", 3) || memmem(w, n, ".h:", 3) ||
	    memmem(w, n, ".S:", 3))
		return n;
	for (i = 1; i < n; i++) {
		if (w[i] == '+' && i + 1 < n && w[i + 1] == '0')
			return i;
		if (strchr(":=/-#", w[i - 1]) && is_number(w + i, n - i))
			return i;
	}
	return n;
}

static void title_of(const char *log, char *out, size_t n)
{
	const char *line, *end, *w, *first = NULL, *fend = NULL;
	size_t len, used = 0;

	if (n)
		out[0] = '\0';
	for (line = log; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		if (!first || is_title(line, (size_t)(end - line))) {
			first = line;
			fend = end;
			if (is_title(line, (size_t)(end - line)))
				break;
		}
	}
	for (w = first; w && w < fend; w += len) {
		while (w < fend && isspace((unsigned char)*w))
			w++;
		for (len = 0;
		     w + len < fend && !isspace((unsigned char)w[len]);)
			len++;
		if (title_word(w, len) && used + len + 2 < n) {
			if (used)
				out[used++] = ' ';
			memcpy(out + used, w, title_word(w, len));
			used += title_word(w, len);
			out[used] = '\0';
		}
	}
}

void mmr_signature_klog(const char *log, char *out, size_t n)
{
	struct mmr_klog_split split;
	int i = 0;

	/* The first report of several; "cut here" alone is no title. */
	if (!mmr_klog_split(log, strlen(log), &split)) {
		while (i < split.n && split.reports[i].title[0] == '-')
			i++;
		if (i < split.n)
			log = split.reports[i].title;
	}
	title_of(log, out, n);
	mmr_klog_split_free(&split);
}

void mmr_signature_panic(const char *console, char *out, size_t n,
			 json_t **reports)
{
	struct mmr_klog_split split;
	int i, at = -1;

	if (n)
		out[0] = '\0';
	*reports = NULL;
	if (!mmr_klog_split(console, strlen(console), &split)) {
		for (i = 0; i < split.n; i++)
			if (strstr(split.reports[i].text, "Kernel panic"))
				at = i;
		/* The trouble before it, when the panic stands alone. */
		if (at > 0 &&
		    !strncmp(split.reports[at].title, "Kernel panic", 12))
			at--;
		if (at >= 0)
			title_of(split.reports[at].title, out, n);
		*reports = mmr_klog_reports_json(&split);
	}
	mmr_klog_split_free(&split);
}
