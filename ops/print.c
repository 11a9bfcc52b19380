// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The canonical text of a case: one printing for one meaning, defaults left
 * out, so that a minimal case reads minimal and two cases can be compared by
 * comparing bytes.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "check.h"
#include "print.h"
#include "setting.h"

#define DEFAULT_BUDGET_NS 30000000000LL

static bool reserve(struct mmr_text *t, size_t more)
{
	size_t size;
	char *s;

	if (t->failed)
		return false;
	if (t->n + more + 1 <= t->size)
		return true;
	size = (t->n + more + 1) * 2;
	if (size < 512)
		size = 512;
	s = realloc(t->s, size);
	if (!s) {
		t->failed = true;
		return false;
	}
	t->s = s;
	t->size = size;
	return true;
}

void mmr_text_puts(struct mmr_text *t, const char *s)
{
	size_t n = strlen(s);

	if (!reserve(t, n))
		return;
	memcpy(t->s + t->n, s, n + 1);
	t->n += n;
}

void mmr_text_put(struct mmr_text *t, const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	int n;

	/* Everything of variable length is a name or a title: bounded. */
	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n > 0)
		mmr_text_puts(t, buf);
}

char *mmr_case_print_time(char *buf, size_t n, int64_t ns)
{
	if (ns == 0)
		snprintf(buf, n, "0");
	else if (ns % 1000000000 == 0)
		snprintf(buf, n, "%" PRId64 "s", ns / 1000000000);
	else if (ns % 1000000 == 0)
		snprintf(buf, n, "%" PRId64 "ms", ns / 1000000);
	else if (ns % 1000 == 0)
		snprintf(buf, n, "%" PRId64 "us", ns / 1000);
	else
		snprintf(buf, n, "%" PRId64 "ns", ns);
	return buf;
}

char *mmr_case_print_size(char *buf, size_t n, int64_t count,
			  enum mmr_unit unit)
{
	const char *suffix = "";

	if (count == 0) {
		/* Nothing is nothing in any unit. */
	} else if (unit == MMR_UNIT_PAGE) {
		suffix = "p";
	} else if (unit == MMR_UNIT_HUGE) {
		suffix = "h";
	} else if (count % (1LL << 30) == 0) {
		suffix = "G";
		count >>= 30;
	} else if (count % (1LL << 20) == 0) {
		suffix = "M";
		count >>= 20;
	} else if (count % (1LL << 10) == 0) {
		suffix = "K";
		count >>= 10;
	}
	snprintf(buf, n, "%" PRId64 "%s", count, suffix);
	return buf;
}

static const char *const need_words[] = {
	[MMR_NEED_CPUS] = "cpus",
	[MMR_NEED_NODES] = "nodes",
	[MMR_NEED_HUGEPAGES] = "hugepages",
	[MMR_NEED_CAP] = "cap",
	[MMR_NEED_NOCAP] = "nocap",
	[MMR_NEED_SYSCALL] = "syscall",
	[MMR_NEED_ARCH] = "arch",
	[MMR_NEED_MEMORY] = "memory",
	[MMR_NEED_THP] = "thp",
	[MMR_NEED_FEATURE] = "feature",
	[MMR_NEED_WRITES] = "writes",
	[MMR_NEED_SWAP] = "swap",
	[MMR_NEED_MEMCG] = "memcg",
	[MMR_NEED_CORE] = "core",
};

const char *mmr_need_word(enum mmr_need_kind kind)
{
	unsigned int i = kind;

	return i < sizeof(need_words) / sizeof(need_words[0]) ? need_words[i]
							      : NULL;
}

static void print_flags(struct mmr_text *t, const struct mmr_name *names,
			int64_t value)
{
	int64_t rest = value;
	const char *bar = "";
	const struct mmr_name *n;

	for (n = names; n->name; n++) {
		if (value == 0 ? n->value != 0
			       : n->value == 0 || (rest & n->value) != n->value)
			continue;
		mmr_text_puts(t, bar);
		mmr_text_puts(t, n->name);
		bar = "|";
		rest &= ~n->value;
		if (value == 0)
			return;
	}
	if (value == 0)
		mmr_text_puts(t, "0");
}

static void print_enum(struct mmr_text *t, const struct mmr_name *names,
		       int64_t value)
{
	const struct mmr_name *n;

	for (n = names; n->name; n++) {
		if (n->value == value) {
			mmr_text_puts(t, n->name);
			return;
		}
	}
}

static void print_value(struct mmr_text *t, const struct mmr_argspec *a,
			const struct mmr_value *v)
{
	char buf[48];

	switch (a->type) {
	case MMR_ARG_SIZE:
		mmr_text_puts(t, mmr_case_print_size(buf, sizeof(buf), v->lo,
						     v->unit));
		break;
	case MMR_ARG_INT:
		mmr_text_put(t, "%" PRId64, v->lo);
		break;
	case MMR_ARG_TIME:
		if (v->is_auto || v->is_log) {
			mmr_text_puts(t, v->is_auto ? "auto" : "log");
			break;
		}
		mmr_text_puts(t, mmr_case_print_time(buf, sizeof(buf), v->lo));
		if (v->hi == v->lo)
			break;
		mmr_text_puts(t, "..");
		mmr_text_puts(t, mmr_case_print_time(buf, sizeof(buf), v->hi));
		break;
	case MMR_ARG_ENUM:
		print_enum(t, a->names, v->lo);
		break;
	case MMR_ARG_FLAGS:
		print_flags(t, a->names, v->lo);
		break;
	case MMR_ARG_WORD:
		mmr_text_puts(t, a->name);
		break;
	default:
		mmr_text_puts(t, v->name ? v->name : "?");
	}
}

/* Positional arguments, then named ones, then words, each in the order of
 * the descriptor. */
static void print_op(struct mmr_text *t, const struct mmr_stmt *s)
{
	const struct mmr_argspec *a;
	int pass, i, is;

	if (s->ref) {
		mmr_text_puts(t, s->ref);
		mmr_text_puts(t, " = ");
	}
	mmr_text_puts(t, s->op->name);
	for (pass = 0; pass < 3; pass++) {
		for (i = 0; i < s->op->nargs; i++) {
			a = &s->op->args[i];
			is = a->type == MMR_ARG_WORD  ? 2
			     : a->flags & MMR_ARG_POS ? 0
						      : 1;
			if (is != pass ||
			    ((a->flags & MMR_ARG_OPT) &&
			     mmr_value_is_default(a, &s->args[i])))
				continue;
			mmr_text_puts(t, " ");
			if (is == 1) {
				mmr_text_puts(t, a->name);
				mmr_text_puts(t, "=");
			}
			print_value(t, a, &s->args[i]);
		}
	}
}

static void print_loop(struct mmr_text *t, const struct mmr_stmt *s)
{
	char buf[48];

	mmr_text_puts(t, "loop");
	switch (s->until) {
	case MMR_UNTIL_COUNT:
		mmr_text_put(t, " %" PRId64, s->count);
		break;
	case MMR_UNTIL_DONE:
		mmr_text_put(t, " until=done(%s)", s->until_name);
		break;
	case MMR_UNTIL_EXITED:
		mmr_text_put(t, " until=exited(%s)", s->until_name);
		break;
	case MMR_UNTIL_TIME:
		mmr_text_put(t, " for=%s",
			     mmr_case_print_time(buf, sizeof(buf), s->count));
		break;
	case MMR_UNTIL_STOP:
		break;
	}
}

void mmr_print_action(struct mmr_text *t, const struct mmr_stmt *s)
{
	if (s->kind == MMR_STMT_LOOP)
		print_loop(t, s);
	else
		print_op(t, s);
}

static void print_stmt(struct mmr_text *t, const struct mmr_stmt *s)
{
	const char *name;
	int i;

	mmr_print_action(t, s);
	if (s->kind == MMR_STMT_LOOP)
		return;
	for (i = 0; i < s->naccept; i++) {
		name = mmr_errno_name(s->accept[i]);
		mmr_text_puts(t, i ? "|" : " -> ");
		mmr_text_puts(t, name ? name : "?");
	}
}

static void print_block(struct mmr_text *t, const struct mmr_block *b,
			int indent)
{
	int i;

	for (i = 0; i < b->n; i++) {
		mmr_text_put(t, "%*s", indent, "");
		print_stmt(t, b->stmts[i]);
		mmr_text_puts(t, "\n");
		if (b->stmts[i]->kind != MMR_STMT_LOOP)
			continue;
		print_block(t, &b->stmts[i]->body, indent + 2);
		mmr_text_put(t, "%*send\n", indent, "");
	}
}

static void print_proc(struct mmr_text *t, const struct mmr_proc *p)
{
	const struct mmr_thread *th;
	int i;

	mmr_text_put(t, "\nprocess %s", p->name);
	if (p->is_template)
		mmr_text_puts(t, " template");
	if (p->copies != 1)
		mmr_text_put(t, " copies=%d", p->copies);
	mmr_text_puts(t, "\n");
	for (i = 0; i < p->nthreads; i++) {
		th = p->threads[i];
		mmr_text_put(t, "  thread %s", th->name);
		if (th->is_template)
			mmr_text_puts(t, " template");
		if (th->cpu == MMR_CPU_NUMBER)
			mmr_text_put(t, " cpu=%d", th->cpu_number);
		else if (th->cpu != MMR_CPU_ANY)
			mmr_text_put(t, " cpu=%s(%s)", mmr_cpu_word(th->cpu),
				     th->cpu_thread);
		if (th->segv == MMR_SEGV_RETURN)
			mmr_text_puts(t, " segv=return");
		mmr_text_puts(t, "\n");
		print_block(t, &th->body, 4);
	}
}

const char *mmr_cpu_word(enum mmr_cpu_kind kind)
{
	static const char *const words[] = {
		[MMR_CPU_SAME] = "same",
		[MMR_CPU_OTHER] = "other",
		[MMR_CPU_SIBLING] = "sibling",
		[MMR_CPU_FAR] = "far",
	};

	return words[kind];
}

static void print_origin(struct mmr_text *t, const struct mmr_origin *o)
{
	struct mmr_text line = {0};

	if (o->has_seed)
		mmr_text_put(&line, " seed=0x%" PRIx64, o->seed);
	if (o->gen)
		mmr_text_put(&line, " gen=%d", o->gen);
	if (o->tool)
		mmr_text_put(&line, " tool=%s", o->tool);
	if (o->kernel)
		mmr_text_put(&line, " kernel=%s", o->kernel);
	if (o->arch)
		mmr_text_put(&line, " arch=%s", o->arch);
	if (o->profile)
		mmr_text_put(&line, " profile=%s", o->profile);
	if (o->cpus)
		mmr_text_put(&line, " cpus=%d", o->cpus);
	if (line.n)
		mmr_text_put(t, "origin %s\n", line.s);
	if (line.failed)
		t->failed = true;
	free(line.s);
}

static void print_needs(struct mmr_text *t, const struct mmr_case *c)
{
	const struct mmr_need *n;
	char buf[48];
	int i;

	for (i = 0; i < c->nneeds; i++) {
		n = &c->needs[i];
		mmr_text_puts(t, i ? " " : "needs   ");
		mmr_text_puts(t, mmr_need_word(n->kind));
		switch (n->kind) {
		case MMR_NEED_CPUS:
		case MMR_NEED_NODES:
		case MMR_NEED_HUGEPAGES:
			mmr_text_put(t, ">=%" PRId64, n->n);
			break;
		case MMR_NEED_MEMORY:
		case MMR_NEED_SWAP:
			mmr_text_put(t, ">=%s",
				     mmr_case_print_size(buf, sizeof(buf), n->n,
							 MMR_UNIT_BYTE));
			break;
		case MMR_NEED_CAP:
		case MMR_NEED_NOCAP:
		case MMR_NEED_SYSCALL:
		case MMR_NEED_ARCH:
		case MMR_NEED_FEATURE:
		case MMR_NEED_WRITES:
			mmr_text_put(t, "=%s", n->name);
			break;
		case MMR_NEED_THP:
		case MMR_NEED_MEMCG:
		case MMR_NEED_CORE:
			break;
		}
	}
	if (c->nneeds)
		mmr_text_puts(t, "\n");
}

static void print_expect(struct mmr_text *t, const struct mmr_expect *e)
{
	char buf[48];

	mmr_case_print_time(buf, sizeof(buf), e->within_ns);
	switch (e->kind) {
	case MMR_EXPECT_PROGRESS:
		mmr_text_put(t, "expect  progress within=%s\n", buf);
		break;
	case MMR_EXPECT_CALL:
		mmr_text_put(t, "expect  call %s within=%s\n", e->name, buf);
		break;
	case MMR_EXPECT_EXIT:
		mmr_text_put(t, "expect  exit within=%s\n", buf);
		break;
	case MMR_EXPECT_RESTORED:
		mmr_text_put(t, "expect  restored %s\n", e->name);
		break;
	case MMR_EXPECT_CONTENT:
		mmr_text_puts(t, "expect  content\n");
		break;
	case MMR_EXPECT_QUIET:
		mmr_text_puts(t, "expect  quiet\n");
		break;
	}
}

static void print_rounds(struct mmr_text *t, const struct mmr_case *c)
{
	char buf[48];

	mmr_text_put(t, "rounds  %" PRId64 "%s", c->rounds,
		     c->keep ? " keep" : "");
	if (c->order)
		mmr_text_put(t, " order=%" PRId64, c->order);
	mmr_text_put(t, " budget=%s\n",
		     mmr_case_print_time(buf, sizeof(buf), c->budget_ns));
}

static void print_head(struct mmr_text *t, const struct mmr_case *c)
{
	char buf[48];
	int i;

	mmr_text_puts(t, "mmrace-case 1\n");
	if (c->title)
		mmr_text_put(t, "title   %s\n", c->title);
	print_origin(t, &c->origin);
	print_needs(t, c);
	for (i = 0; i < c->nsettings; i++)
		mmr_text_put(t, "%s%s=%s%s", i ? " " : "set     ",
			     c->settings[i].name,
			     mmr_setting_text(
				     mmr_setting_index(c->settings[i].name),
				     c->settings[i].value, buf, sizeof(buf)),
			     i + 1 == c->nsettings ? "\n" : "");
	if (c->rounds != 1 || c->keep || c->order ||
	    c->budget_ns != DEFAULT_BUDGET_NS)
		print_rounds(t, c);
	for (i = 0; i < c->nexpects; i++)
		print_expect(t, &c->expects[i]);
	if (c->seen_runs)
		mmr_text_put(t, "seen    %" PRId64 "/%" PRId64 "\n",
			     c->seen_hits, c->seen_runs);
	if (c->fixed_commit && c->fixed_subject)
		mmr_text_put(t, "fixed   %s \"%s\"\n", c->fixed_commit,
			     c->fixed_subject);
	else if (c->fixed_commit)
		mmr_text_put(t, "fixed   %s\n", c->fixed_commit);
}

char *mmr_case_print(const struct mmr_case *c)
{
	struct mmr_text t = {0};
	int i;

	print_head(&t, c);
	for (i = 0; i < c->nprocs; i++)
		print_proc(&t, c->procs[i]);
	if (t.failed) {
		free(t.s);
		return NULL;
	}
	return t.s;
}

char *mmr_case_print_stmt(const struct mmr_stmt *s)
{
	struct mmr_text t = {0};

	print_stmt(&t, s);
	if (t.failed) {
		free(t.s);
		return NULL;
	}
	return t.s;
}
