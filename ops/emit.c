/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statements as C: arguments, names, and the call that a descriptor stands
 * for.  What the file around them looks like is triage/export_c.c's.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "kernel.h"

#define COLUMNS 80
#define TAB 8
#define MAX_DEPTH 16

static const char tabs[] = "\t\t\t\t\t\t\t\t\t\t\t\t";

/* Where a line may be cut, the best place of each kind; 0: none. */
struct cuts {
	size_t semicolon, sign;
	size_t comma[MAX_DEPTH]; /* by how many brackets are open */
};

/* The comma outside of most brackets that does not leave half of the line. */
static size_t best_comma(const struct cuts *c, size_t room)
{
	size_t last = 0;
	int i;

	for (i = 0; i < MAX_DEPTH; i++) {
		if (c->comma[i] >= room / 2)
			return c->comma[i];
		if (c->comma[i] > last)
			last = c->comma[i];
	}
	return last;
}

/* How much of s fits into `room` columns: cut behind "; " or ", ", else behind
 * an operator, never inside a string; all of it when there is no such place. */
static size_t fitting(const char *s, size_t room)
{
	bool in_string = false, found = false;
	struct cuts cuts = {0};
	int depth = 0;
	size_t i;

	if (strlen(s) <= room)
		return strlen(s);
	for (i = 0; s[i] && (i <= room || !found); i++) {
		if (s[i] == '"')
			in_string = !in_string;
		if (in_string)
			continue;
		if (s[i] == '(' && depth < MAX_DEPTH - 1)
			depth++;
		else if (s[i] == ')' && depth)
			depth--;
		if (s[i] != ' ' || !i || !strchr(";,|=&", s[i - 1]))
			continue;
		found = true;
		if (s[i - 1] == ';')
			cuts.semicolon = i + 1;
		else if (s[i - 1] == ',')
			cuts.comma[depth] = i + 1;
		else
			cuts.sign = i + 1;
	}
	if (cuts.semicolon)
		return cuts.semicolon;
	i = best_comma(&cuts, room);
	if (i)
		return i;
	return found ? cuts.sign : strlen(s);
}

/* Where the line after this one begins: behind the bracket that is open, `open`
 * the columns of those before. */
static int next_column(const char *s, size_t n, int column, int *open,
		       int depth)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (s[i] == '(' && depth < MAX_DEPTH)
			open[depth++] = column + (int)i + 1;
		else if (s[i] == ')' && depth)
			depth--;
	}
	return depth;
}

static void put_line(struct mmr_emit *e, const char *s)
{
	int open[MAX_DEPTH], depth = 0, column = e->indent * TAB;
	size_t n;

	while (*s) {
		n = fitting(s, (size_t)(COLUMNS - column));
		fprintf(e->out, "%.*s%*s", column / TAB, tabs, column % TAB,
			"");
		fwrite(s, 1, s[n] ? n - 1 : n, e->out);
		fputc('\n', e->out);
		depth = next_column(s, n, column, open, depth);
		s += n;
		column = (e->indent + 1) * TAB;
		if (depth && open[depth - 1] <= COLUMNS / 2)
			column = open[depth - 1];
	}
}

void mmr_emit_line(struct mmr_emit *e, const char *fmt, ...)
{
	char buf[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	put_line(e, buf);
}

/* Calls whose results a compiler wants to be used; an export has no use for
 * any. */
static bool is_warned_about(const char *expression)
{
	static const char *const calls[] = {"ftruncate(", "read(", "write("};
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strncmp(expression, calls[i], strlen(calls[i])))
			return true;
	return false;
}

void mmr_emit_step(struct mmr_emit *e, const char *fmt, ...)
{
	char buf[1024], line[1100];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (e->steps)
		snprintf(line, sizeof(line), "STEP(%s);", buf);
	else
		snprintf(line, sizeof(line), "%s%s;",
			 is_warned_about(buf) ? "(void)!" : "", buf);
	put_line(e, line);
}

void mmr_emit_header(struct mmr_emit *e, const char *header)
{
	int i;

	for (i = 0; i < e->nheaders; i++)
		if (!strcmp(e->headers[i], header))
			return;
	if (e->nheaders < MMR_EMIT_HEADERS)
		e->headers[e->nheaders++] = header;
}

void mmr_emit_helper(struct mmr_emit *e, const char *text)
{
	int i;

	for (i = 0; i < e->nhelpers; i++)
		if (e->helpers[i] == text)
			return;
	if (e->nhelpers < MMR_EMIT_HELPERS)
		e->helpers[e->nhelpers++] = text;
}

void mmr_emit_constant(struct mmr_emit *e, const char *name)
{
#define NAME(constant, value) #constant,
	static const char *const names[] = {MMR_KERNEL_CONSTANTS(NAME)};
#undef NAME
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			e->constants |= 1ULL << i;
}

char *mmr_emit_draw(struct mmr_emit *e, long long lo, long long hi, char *buf,
		    size_t n)
{
	if (!e->seeds) {
		e->used |= MMR_USED_DRAW;
		snprintf(buf, n, "draw(%lld, %lld)", lo, hi);
	} else {
		snprintf(buf, n, "%s %% %lld",
			 e->lone_draw ? "now()" : "rand_r(&seed)", hi - lo + 1);
		if (lo)
			snprintf(buf + strlen(buf), n - strlen(buf), " %c %lld",
				 lo < 0 ? '-' : '+', lo < 0 ? -lo : lo);
	}
	return buf;
}

char *mmr_emit_var(struct mmr_emit *e, const char *ref, uint32_t kind,
		   char *buf, size_t n)
{
	static const struct {
		uint32_t kind;
		const char *suffix;
	} suffixes[] = {
		{MMR_REF_MAPPING, "map"},   {MMR_REF_THREAD, "thread"},
		{MMR_REF_PROCESS, "proc"},  {MMR_REF_PIDFD, "pidfd"},
		{MMR_REF_FILE, "file"},	    {MMR_REF_UFFD, "uffd"},
		{MMR_REF_PROC, "procfile"},
	};
	uint32_t made = mmr_emit_kinds_made(e, ref);
	const char *suffix = "ref";
	size_t i;

	/* A letter and digits are nobody's (but Bessel's: j0, y1). */
	if (ref[0] >= 'a' && ref[0] <= 'z' && ref[0] != 'j' && ref[0] != 'y' &&
	    ref[1] && strspn(ref + 1, "0123456789") == strlen(ref + 1) &&
	    !(made & (made - 1))) {
		snprintf(buf, n, "%s", ref);
		return buf;
	}
	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (suffixes[i].kind == kind)
			suffix = suffixes[i].suffix;
	snprintf(buf, n, "%s_%s", ref, suffix);
	return buf;
}

static char *arg_size(struct mmr_emit *e, int64_t count, enum mmr_unit unit,
		      char *buf, size_t n)
{
	const char *var = unit == MMR_UNIT_HUGE ? "huge"
			  : e->calls_page	? "getpagesize()"
						: "page";

	if (unit == MMR_UNIT_BYTE || !count) {
		if (count >= 1 << 30 && !(count & ((1 << 30) - 1)))
			snprintf(buf, n, "%" PRId64 "ul << 30", count >> 30);
		else if (count >= 1 << 20 && !(count & ((1 << 20) - 1)))
			snprintf(buf, n, "%" PRId64 "ul << 20", count >> 20);
		else
			snprintf(buf, n, "%" PRId64, count);
		return buf;
	}
	if (unit == MMR_UNIT_HUGE)
		e->used |= MMR_USED_HUGE;
	else if (!e->calls_page)
		e->used |= MMR_USED_PAGE;
	if (count == 1)
		snprintf(buf, n, "%s", var);
	else
		snprintf(buf, n, "%" PRId64 " * %s", count, var);
	return buf;
}

static char *arg_names(struct mmr_emit *e, const struct mmr_argspec *spec,
		       int64_t value, char *buf, size_t n)
{
	const struct mmr_name *name;
	size_t len = 0;

	buf[0] = '\0';
	for (name = spec->names; name->name; name++) {
		if (spec->type == MMR_ARG_ENUM
			    ? name->value != value
			    : (value & name->value) != name->value)
			continue;
		mmr_emit_constant(e, name->c);
		len += (size_t)snprintf(buf + len, n - len, "%s%s",
					len ? " | " : "", name->c);
		if (len >= n)
			len = n - 1;
		if (spec->type == MMR_ARG_ENUM)
			return buf;
		value &= ~name->value;
	}
	if (value || !len)
		snprintf(buf + len, n - len, "%s%" PRId64, len ? " | " : "",
			 value);
	return buf;
}

char *mmr_emit_arg(struct mmr_emit *e, const struct mmr_stmt *s, int i,
		   char *buf, size_t n)
{
	const struct mmr_argspec *spec = &s->op->args[i];
	const struct mmr_value *v = &s->args[i];
	uint32_t kind;

	switch (spec->type) {
	case MMR_ARG_REF:
		kind = mmr_emit_ref_kind(e, s, i);
		if (!kind) {
			snprintf(buf, n, "-1");
			return buf;
		}
		if (kind == MMR_REF_MAPPING)
			e->used |= MMR_USED_MAP;
		return mmr_emit_var(e, v->name, kind, buf, n);
	case MMR_ARG_SIZE:
		if (!v->set)
			return arg_size(e, spec->def, MMR_UNIT_BYTE, buf, n);
		return arg_size(e, v->lo, v->unit, buf, n);
	case MMR_ARG_ENUM:
	case MMR_ARG_FLAGS:
		return arg_names(e, spec, v->set ? v->lo : spec->def, buf, n);
	case MMR_ARG_INT:
	case MMR_ARG_TIME:
		snprintf(buf, n, "%" PRId64, v->set ? v->lo : spec->def);
		return buf;
	default:
		snprintf(buf, n, "%s", v->name ? v->name : "");
		return buf;
	}
}

char *mmr_emit_part(struct mmr_emit *e, const struct mmr_stmt *s, int map,
		    char *buf, size_t n)
{
	int off = mmr_op_arg(s->op, "off"), len = mmr_op_arg(s->op, "len");
	char m[64], o[32], l[32];

	mmr_emit_arg(e, s, map, m, sizeof(m));
	if ((off < 0 || !s->args[off].set) && (len < 0 || !s->args[len].set)) {
		snprintf(buf, n, "%s", m);
		return buf;
	}
	e->used |= MMR_USED_PART;
	snprintf(buf, n, "part(%s, %s, %s)", m,
		 mmr_emit_arg(e, s, off, o, sizeof(o)),
		 mmr_emit_arg(e, s, len, l, sizeof(l)));
	return buf;
}

const char *mmr_emit_pid(const struct mmr_emit *e)
{
	return e->plain_procs ? "" : ".pid";
}

const char *mmr_emit_fd(const struct mmr_emit *e)
{
	return e->plain_procs ? "_fd" : ".fd";
}

char *mmr_emit_each(struct mmr_emit *e, const struct mmr_stmt *s, int i,
		    char *buf, size_t n)
{
	char var[64];

	mmr_emit_arg(e, s, i, var, sizeof(var));
	e->used |= MMR_USED_SPAWN;
	if (!e->sets) {
		snprintf(buf, n, "%s", var);
		return buf;
	}
	mmr_emit_line(e, "for (int i = 0; i < %s.n; i++)", var);
	e->indent++;
	snprintf(buf, n, "%s.p[i]", var);
	return buf;
}

void mmr_emit_each_end(struct mmr_emit *e)
{
	if (e->sets)
		e->indent--;
}

char *mmr_emit_at(struct mmr_emit *e, const struct mmr_stmt *s, int map,
		  char *buf, size_t n)
{
	char part[200];

	mmr_emit_part(e, s, map, part, sizeof(part));
	snprintf(buf, n, e->plain_maps ? "%s" : "%s.at", part);
	return buf;
}

char *mmr_emit_len(struct mmr_emit *e, const struct mmr_stmt *s, int map,
		   char *buf, size_t n)
{
	const struct mmr_stmt *made;
	char part[200];

	made = e->plain_maps ? mmr_emit_maker(e, s->args[map].name) : NULL;
	if (made)
		return mmr_emit_arg(e, made, mmr_op_arg(made->op, "len"), buf,
				    n);
	mmr_emit_part(e, s, map, part, sizeof(part));
	snprintf(buf, n, "%s.len", part);
	return buf;
}

/* Kernel argument i of a call, appended to buf.  process: how a process
 * argument is written; length: the mapping's length as it was assigned. */
static void call_arg(struct mmr_emit *e, const struct mmr_stmt *s, int i,
		     const char *process, const char *length, char *buf,
		     size_t n)
{
	const struct mmr_from_spec *from = &s->op->call.from[i];
	const char *name = s->args[from->arg].name;
	char arg[200];

	switch (from->from) {
	case MMR_FROM_CONST:
		snprintf(buf, n, "%" PRId64, from->k);
		return;
	case MMR_FROM_VALUE:
		mmr_emit_arg(e, s, from->arg, arg, sizeof(arg));
		if (length && from->arg == mmr_op_arg(s->op, "len"))
			snprintf(buf, n, "%s", length);
		else
			snprintf(buf, n, "%s", arg);
		if (from->also && s->args[from->also - 1].set) {
			mmr_emit_arg(e, s, from->also - 1, arg, sizeof(arg));
			snprintf(buf + strlen(buf), n - strlen(buf), " | %s",
				 arg);
		}
		return;
	case MMR_FROM_IOV:
		mmr_emit_part(e, s, from->arg, arg, sizeof(arg));
		mmr_emit_header(e, "sys/uio.h");
		snprintf(buf, n, "&(struct iovec){ %s.at, %s.len }", arg, arg);
		return;
	case MMR_FROM_POINTER:
		mmr_emit_arg(e, s, from->arg, arg, sizeof(arg));
		snprintf(buf, n, "&(unsigned long){ %s }", arg);
		return;
	case MMR_FROM_ADDR:
		mmr_emit_at(e, s, from->arg, buf, n);
		return;
	case MMR_FROM_LEN:
		mmr_emit_len(e, s, from->arg, buf, n);
		return;
	case MMR_FROM_ARENA:
		mmr_emit_arg(e, s, from->arg, arg, sizeof(arg));
		if (!s->args[from->arg].set) {
			snprintf(buf, n, "NULL");
			return;
		}
		e->used |= MMR_USED_ARENA;
		snprintf(buf, n, "ARENA + (%s)", arg);
		return;
	case MMR_FROM_PID:
		if (name)
			snprintf(buf, n, "%s%s", process, mmr_emit_pid(e));
		else
			snprintf(buf, n, "0");
		return;
	case MMR_FROM_PIDFD:
		if (mmr_emit_ref_kind(e, s, from->arg) == MMR_REF_PIDFD) {
			mmr_emit_arg(e, s, from->arg, buf, n);
			return;
		}
		e->used |= MMR_USED_PIDFD;
		mmr_emit_constant(e, "SYS_pidfd_open");
		mmr_emit_header(e, "sys/syscall.h");
		snprintf(buf, n, "%s%s", process, mmr_emit_fd(e));
		return;
	default:
		mmr_emit_arg(e, s, from->arg, buf, n);
		return;
	}
}

/* The index of the argument that holds a process, -1: none does. */
static int process_arg(const struct mmr_emit *e, const struct mmr_stmt *s)
{
	int i;

	for (i = 0; i < s->op->nargs; i++)
		if (mmr_emit_ref_kind(e, s, i) == MMR_REF_PROCESS)
			return i;
	return -1;
}

/* The call alone: "munmap(m0.at, m0.len)". */
static void call_text(struct mmr_emit *e, const struct mmr_stmt *s,
		      const char *process, const char *length, char *buf,
		      size_t n)
{
	const struct mmr_callspec *call = &s->op->call;
	size_t len;
	int i;

	len = (size_t)snprintf(
		buf, n, call->has_wrapper ? "%s(" : "syscall(%s, ", call->name);
	for (i = 0; i < 6 && call->from[i].from != MMR_FROM_END; i++) {
		char arg[480];

		call_arg(e, s, i, process, length, arg, sizeof(arg));
		len += (size_t)snprintf(buf + len, n - len, "%s%s",
					i ? ", " : "", arg);
	}
	snprintf(buf + len, n - len, ")");
}

/* A new mapping.  Where a failed call could matter to another user of the
 * name, keep() leaves the old one in it. */
static void emit_mapping(struct mmr_emit *e, const struct mmr_stmt *s)
{
	int len = mmr_op_arg(s->op, "len");
	char call[1024], var[64], length[64], assign[160];

	mmr_emit_var(e, s->ref, MMR_REF_MAPPING, var, sizeof(var));
	if (e->plain_maps) {
		call_text(e, s, "", NULL, call, sizeof(call));
		mmr_emit_step(e, "%s = %s", var, call);
		return;
	}
	e->used |= MMR_USED_MAP;
	mmr_emit_arg(e, s, len, length, sizeof(length));
	if (mmr_emit_is_private(e, s->ref)) {
		snprintf(assign, sizeof(assign), "%s.len = %s", var, length);
		call_text(e, s, "", assign, call, sizeof(call));
		mmr_emit_step(e, "%s.at = %s", var, call);
		return;
	}
	e->used |= MMR_USED_KEEP;
	call_text(e, s, "", NULL, call, sizeof(call));
	mmr_emit_step(e, "keep(&%s, %s, %s)", var, call, length);
}

void mmr_emit_call(struct mmr_emit *e, const struct mmr_stmt *s)
{
	const struct mmr_callspec *call = &s->op->call;
	char text[1024], var[64], process[80] = "";
	int p = process_arg(e, s);

	if (call->header)
		mmr_emit_header(e, call->header);
	if (!call->has_wrapper)
		mmr_emit_header(e, "sys/syscall.h");
	mmr_emit_constant(e, call->name);
	if (s->ref && s->op->makes == MMR_REF_MAPPING) {
		emit_mapping(e, s);
		return;
	}
	if (p >= 0)
		mmr_emit_each(e, s, p, process, sizeof(process));
	call_text(e, s, process, NULL, text, sizeof(text));
	if (s->ref)
		mmr_emit_step(
			e, "%s = %s",
			mmr_emit_var(e, s->ref, s->op->makes, var, sizeof(var)),
			text);
	else
		mmr_emit_step(e, "%s", text);
	if (p >= 0)
		mmr_emit_each_end(e);
}
