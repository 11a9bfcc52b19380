// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two passes over a kernel log: the first gives each line to a report or to
 * nobody, by the stream that it came in (its writer) and what it says; the
 * second copies.
 */
#include "klog_split.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ladder.h"

#define REPORTS_MAX 512
#define STREAMS_MAX 64 /* writers at the same time; the oldest goes */
#define HEAD 512       /* bytes of a line that are looked at */
#define GAP_US 2000000 /* a report does not pause that long */
#define NOBODY (-1)

struct line {
	const char *at;
	size_t len; /* without the newline */
	int owner;  /* index of a report, NOBODY */
};

struct stream {
	char caller[16];
	int open;    /* report that its lines go to, NOBODY */
	size_t edge; /* line + 1 of a rule ("====") that may begin one */
	int rules;   /* rules seen in the open report */
	bool titled; /* more than "cut here" */
	int64_t us;  /* of its last line, < 0 unknown */
	uint64_t used;
};

struct splitter {
	struct line *lines;
	size_t n;
	struct mmr_klog_report *reports;
	int nreports;
	struct stream streams[STREAMS_MAX];
	int nstreams;
	uint64_t clock;
};

/* A line without its prefix, and what the prefix says. */
struct head {
	char text[HEAD];
	char caller[16];
	int64_t us; /* -1 unknown */
};

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* "[   12.345678]": the time.  NULL: it is none. */
static const char *take_time(const char *p, int64_t *us)
{
	unsigned long long s, frac;
	int n = 0;

	if (sscanf(p, "[%llu.%llu]%n", &s, &frac, &n) != 2 || !n ||
	    s > 1000000000)
		return NULL;
	*us = (int64_t)(s * 1000000 + frac % 1000000);
	return p + n;
}

/* "[ T123]" or "[    C1]": who wrote it. */
static const char *take_caller(const char *p, char *caller, size_t size)
{
	const char *q = skip_blanks(p + 1);
	size_t digits;

	if (*p != '[' || (*q != 'T' && *q != 'C'))
		return NULL;
	digits = strspn(q + 1, "0123456789");
	if (!digits || digits > 10 || q[1 + digits] != ']')
		return NULL;
	snprintf(caller, size, "%.*s", (int)digits + 1, q);
	return q + digits + 2;
}

/* "6,339,5140900,-,caller=T1;text", a record of /dev/kmsg. */
static const char *take_record(const char *p, struct head *h)
{
	unsigned long prio;
	unsigned long long seq, us;
	const char *semi, *who;
	int n = 0;

	if (sscanf(p, "%lu,%llu,%llu,%n", &prio, &seq, &us, &n) != 3 || !n)
		return NULL;
	semi = strchr(p, ';');
	if (!semi)
		return NULL;
	h->us = (int64_t)(us % 1000000000000000ULL);
	who = strstr(p, "caller=");
	if (who && who < semi) {
		who += strlen("caller=");
		snprintf(h->caller, sizeof(h->caller), "%.*s",
			 (int)strspn(who, "TC0123456789"), who);
	}
	return semi + 1;
}

static void read_head(const struct line *l, struct head *h)
{
	size_t n = l->len < HEAD - 1 ? l->len : HEAD - 1, i;
	char buf[HEAD];
	const char *p = buf, *q;

	for (i = 0; i < n; i++)
		buf[i] = l->at[i] ? l->at[i] : '?';
	while (n && buf[n - 1] == '\r')
		n--;
	buf[n] = '\0';
	h->us = -1;
	h->caller[0] = '\0';
	if (*p == '<' && p[1 + strspn(p + 1, "0123456789")] == '>')
		p = strchr(p, '>') + 1; /* the level, on some consoles */
	q = take_record(p, h);
	if (!q) {
		q = take_time(p, &h->us);
		p = q ? q : p;
		q = take_caller(p, h->caller, sizeof(h->caller));
	}
	p = q ? q : p;
	/* One blank parts it from the prefix; more of them are its own. */
	p += p != buf && *p == ' ';
	memmove(h->text, p, strlen(p) + 1);
}

static struct stream *stream_of(struct splitter *s, const char *caller)
{
	struct stream *t = NULL, *oldest = &s->streams[0];
	int i;

	for (i = 0; i < s->nstreams; i++) {
		if (!strcmp(s->streams[i].caller, caller))
			t = &s->streams[i];
		if (s->streams[i].used < oldest->used)
			oldest = &s->streams[i];
	}
	if (!t) {
		t = s->nstreams < STREAMS_MAX ? &s->streams[s->nstreams++]
					      : oldest;
		memset(t, 0, sizeof(*t));
		snprintf(t->caller, sizeof(t->caller), "%s", caller);
		t->open = NOBODY;
		t->us = -1;
	}
	t->used = ++s->clock;
	return t;
}

static bool is_rule(const char *text)
{
	return strspn(text, "=") >= 20;
}

static bool is_cut_here(const char *text)
{
	return !strncmp(text, "------------[ cut here", 22);
}

static bool is_end(const char *text)
{
	return strstr(text, "---[ end trace") ||
	       strstr(text, "---[ end Kernel");
}

/* What the CPU says of a trouble that a line above has named already. */
static bool is_second_title(const char *text)
{
	static const char *const words[] = {"Oops", "invalid opcode",
					    "Internal error", "Kernel panic",
					    "general protection fault"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(text, words[i], strlen(words[i])))
			return true;
	return false;
}

/* "CPU: 1 PID: 77 Comm: x", with "UID: 0" in between since 6.12; the first
 * one of a report counts. */
static void take_facts(struct mmr_klog_report *r, const char *text)
{
	const char *p;
	long n, m;
	char comm[32];

	p = strstr(text, "CPU: ");
	if (p && r->cpu < 0 && sscanf(p, "CPU: %ld", &n) == 1)
		r->cpu = n;
	p = strstr(text, "PID: ");
	if (p && r->pid < 0 && sscanf(p, "PID: %ld", &n) == 1)
		r->pid = n;
	p = strstr(text, "Comm: ");
	if (p && !r->comm[0])
		sscanf(p, "Comm: %31s", r->comm);
	p = strstr(text, "INFO: task ");
	if (p && r->pid < 0 &&
	    sscanf(p, "INFO: task %31[^:]:%ld", comm, &n) == 2) {
		r->pid = n;
		memcpy(r->comm, comm, sizeof(comm));
	}
	p = strstr(text, "CPU#");
	if (p && r->cpu < 0 && sscanf(p, "CPU#%ld", &n) == 1)
		r->cpu = n;
	p = strstr(text, "s! [");
	if (p && r->pid < 0 && sscanf(p, "s! [%31[^]:]:%ld]", comm, &m) == 2) {
		r->pid = m;
		memcpy(r->comm, comm, sizeof(comm));
	}
}

static void set_title(struct stream *t, struct mmr_klog_report *r,
		      const char *kind, const struct head *h)
{
	r->kind = kind;
	snprintf(r->title, sizeof(r->title), "%s", h->text);
	t->titled = !is_cut_here(h->text);
}

static void begin(struct splitter *s, struct stream *t, const char *kind,
		  const struct head *h)
{
	struct mmr_klog_report *r;

	if (s->nreports == REPORTS_MAX) {
		t->open = NOBODY;
		return;
	}
	r = &s->reports[s->nreports];
	memset(r, 0, sizeof(*r));
	r->cpu = r->pid = -1;
	r->mixed = t->open != NOBODY && !h->caller[0];
	memcpy(r->caller, h->caller, sizeof(r->caller));
	t->open = s->nreports++;
	t->rules = 0;
	set_title(t, r, kind, h);
	if (t->edge) { /* the line ahead of it in its stream */
		s->lines[t->edge - 1].owner = t->open;
		t->rules = 1;
	}
}

/* A title while a report is open: of the same trouble, or of another one? */
static bool continues(const struct stream *t, const struct mmr_klog_report *r,
		      const char *text)
{
	if (!t->titled)
		return true; /* after "cut here" */
	if (is_cut_here(text))
		return false;
	if (is_second_title(text))
		return true;
	/* Notes of lockdep, a page that is dumped after it was called bad. */
	return strstr(text, "page dumped because") && r->lines < 64;
}

static bool blank(const struct line *l)
{
	size_t i;

	for (i = 0; i < l->len; i++)
		if (!strchr(" \t\r", l->at[i]) || !l->at[i])
			return false;
	return true;
}

static void one_line(struct splitter *s, size_t i)
{
	struct line *l = &s->lines[i];
	struct mmr_klog_report *r;
	const char *kind;
	struct stream *t;
	struct head h;

	if (blank(l))
		return; /* nobody's */
	read_head(l, &h);
	t = stream_of(s, h.caller);
	if (t->us >= 0 && h.us > t->us + GAP_US)
		t->open = NOBODY;
	if (h.us >= 0)
		t->us = h.us;
	kind = mmr_klog_kind(h.text);
	r = t->open == NOBODY ? NULL : &s->reports[t->open];
	if (kind && r && continues(t, r, h.text)) {
		if (!t->titled)
			set_title(t, r, kind, &h);
	} else if (kind) {
		begin(s, t, kind, &h);
	}
	if (t->open == NOBODY) {
		t->edge = is_rule(h.text) ? i + 1 : 0;
		return;
	}
	r = &s->reports[t->open];
	l->owner = t->open;
	r->lines++;
	take_facts(r, h.text);
	t->rules += is_rule(h.text);
	if (is_end(h.text) || t->rules == 2) {
		r->complete = true;
		t->open = NOBODY;
		t->edge = 0;
	}
}

static size_t cut_lines(const char *raw, size_t len, struct line *out)
{
	const char *end = raw + len, *nl;
	size_t n = 0;

	for (; raw < end; raw = nl + 1, n++) {
		nl = memchr(raw, '\n', (size_t)(end - raw));
		if (!nl)
			nl = end;
		if (out)
			out[n] = (struct line){raw, (size_t)(nl - raw), NOBODY};
	}
	return n;
}

static void append(char *to, size_t *used, const struct line *l)
{
	size_t i;

	for (i = 0; i < l->len; i++)
		to[(*used)++] = l->at[i] ? l->at[i] : '?';
	to[(*used)++] = '\n';
}

static int copy_lines(struct splitter *s, struct mmr_klog_split *out)
{
	struct mmr_klog_report *r;
	struct line *l;
	int k;

	for (k = 0; k < s->nreports; k++)
		s->reports[k].len = s->reports[k].lines = 0;
	for (l = s->lines; l < s->lines + s->n; l++) {
		if (l->owner == NOBODY)
			out->rest_len += blank(l) ? 0 : l->len + 1;
		else
			s->reports[l->owner].len += l->len + 1;
	}
	out->rest = calloc(1, out->rest_len + 1);
	if (!out->rest)
		return -ENOMEM;
	out->rest_len = 0;
	for (k = 0; k < s->nreports; k++) {
		s->reports[k].text = calloc(1, s->reports[k].len + 1);
		if (!s->reports[k].text)
			return -ENOMEM;
		s->reports[k].len = 0;
	}
	for (l = s->lines; l < s->lines + s->n; l++) {
		r = l->owner == NOBODY ? NULL : &s->reports[l->owner];
		if (r) {
			append(r->text, &r->len, l);
			r->lines++;
		} else if (!blank(l)) {
			append(out->rest, &out->rest_len, l);
			out->rest_lines++;
		}
	}
	return 0;
}

int mmr_klog_split(const char *raw, size_t len, struct mmr_klog_split *out)
{
	struct splitter *s = calloc(1, sizeof(*s));
	size_t i;
	int err = -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (!s)
		return err;
	s->n = cut_lines(raw, len, NULL);
	s->lines = calloc(s->n + 1, sizeof(*s->lines));
	s->reports = calloc(REPORTS_MAX, sizeof(*s->reports));
	if (s->lines && s->reports) {
		cut_lines(raw, len, s->lines);
		for (i = 0; i < s->n; i++)
			one_line(s, i);
		err = copy_lines(s, out);
	}
	out->reports = s->reports;
	out->n = s->nreports;
	free(s->lines);
	free(s);
	return err;
}

void mmr_klog_split_free(struct mmr_klog_split *s)
{
	int i;

	for (i = 0; i < s->n && s->reports; i++)
		free(s->reports[i].text);
	free(s->reports);
	free(s->rest);
	memset(s, 0, sizeof(*s));
}

json_t *mmr_klog_reports_json(const struct mmr_klog_split *s)
{
	json_t *all = json_array(), *j;
	int i;

	for (i = 0; i < s->n; i++) {
		const struct mmr_klog_report *r = &s->reports[i];

		j = json_pack(
			"{s:s, s:o, s:o, s:I, s:I, s:o, s:b, s:b, s:o}", "kind",
			r->kind, "title",
			mmr_ladder_text(r->title, strlen(r->title)), "caller",
			mmr_ladder_text(r->caller, strlen(r->caller)), "cpu",
			(json_int_t)r->cpu, "pid", (json_int_t)r->pid, "comm",
			mmr_ladder_text(r->comm, strlen(r->comm)), "complete",
			r->complete, "mixed", r->mixed, "text",
			mmr_ladder_text(r->text, r->len));
		if (j)
			json_array_append_new(all, j);
	}
	return all;
}
