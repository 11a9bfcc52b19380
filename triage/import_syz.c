// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * syzkaller's program text (its docs/program_syntax.md has the grammar): one
 * call a line, run one after the other, `async` ones beside the others.
 *
 * Calls act on addresses of a data area that its executor maps; here it is
 * mapped when a call first uses it.  What the options in the first comment say
 * of repeating becomes rounds, of processes copies, and of collisions a second
 * pass with every other call beside its neighbour.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/args.h"
#include "import_impl.h"

#define DATA 0x20000000ULL /* executor/common.h: SYZ_DATA_OFFSET */
#define DATA_LEN 0x1000000
#define ROUNDS 100   /* when nothing is said */
#define REPEATS 1000 /* rerun at most */
#define COPIES 8
#define LINES_MAX 20000

struct syz {
	struct mmr_imp *im;
	struct mmr_imp_thread *main;
	int nasync, line;
	bool collide; /* the second pass */
	int index;    /* of the call in the pass */
};

struct props {
	bool async;
	int64_t rerun;
	bool other; /* fail_nth and what is not known */
};

bool mmr_imp_data(struct mmr_imp *im, uint64_t a)
{
	struct mmr_imp_node *n;
	int ref;

	if (im->o->from != MMR_IMPORT_SYZ || im->data || a < DATA ||
	    a - DATA >= DATA_LEN)
		return false;
	n = mmr_imp_node(im, mmr_op_by_name("mmap"));
	ref = mmr_imp_ref_take(im, im->first->proc, MMR_IMP_MAP);
	if (!n || ref < 0)
		return false;
	mmr_imp_set(im, n, "len", DATA_LEN);
	mmr_imp_set(im, n, "prot", PROT_READ | PROT_WRITE | PROT_EXEC);
	mmr_imp_set(im, n, "flags", MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
	mmr_imp_set(im, n, "at", (int64_t)DATA);
	n->ref = mmr_imp_ref_name(im, MMR_IMP_MAP, ref);
	im->data = n;
	/* It was there before all that is mapped. */
	mmr_imp_map_add(im, im->first, ref, DATA, DATA_LEN);
	im->first->proc->map[ref].seq = 0;
	return true;
}

/* In front of what all begins with. */
static void put_data(struct mmr_imp *im)
{
	struct mmr_imp_nodes *v = &im->first->nodes, old = *v;
	int i;

	if (!im->data)
		return;
	*v = (struct mmr_imp_nodes){0};
	mmr_imp_append(im, v, im->data);
	for (i = 0; i < old.n; i++)
		mmr_imp_append(im, v, old.v[i]);
}

/* "Repeat:true", or "repeat":true of newer ones; the number behind it, 1 for
 * true, def when it is not there. */
static int64_t option(struct mmr_span head, const char *a, const char *b,
		      int64_t def)
{
	const char *names[2] = {a, b}, *at = NULL;
	int64_t v = 0;
	int i;

	for (i = 0; i < 2 && !at; i++) {
		at = memmem(head.s, (size_t)head.len, names[i],
			    strlen(names[i]));
		if (at)
			at += strlen(names[i]);
	}
	if (!at)
		return def;
	if (head.s + head.len - at >= 4 && !memcmp(at, "true", 4))
		return 1;
	for (i = 0; at + i < head.s + head.len && i < 9; i++) {
		if (at[i] < '0' || at[i] > '9')
			break;
		v = v * 10 + at[i] - '0';
	}
	return v;
}

static void read_options(struct syz *z, struct mmr_span head, bool *collide)
{
	struct mmr_imp *im = z->im;
	int64_t times, procs;

	if (!memchr(head.s, '{', (size_t)head.len))
		return;
	if (option(head, "Repeat:", "\"repeat\":", 0)) {
		times = option(head, "RepeatTimes:", "\"repeat_times\":", 0);
		im->rounds = times ? times : ROUNDS;
	} else {
		im->rounds = 1;
	}
	procs = option(head, "Procs:", "\"procs\":", 1);
	im->procs->copies = procs < 1	     ? 1
			    : procs > COPIES ? COPIES
					     : (int)procs;
	*collide = option(head, "Collide:", "\"collide\":", 0);
}

/* (async, rerun: 10) */
static void read_props(struct mmr_imp *im, struct mmr_span s, struct props *p)
{
	struct mmr_span part[8];
	int n, i;

	*p = (struct props){.rerun = 1};
	s = mmr_span_trim(s);
	if (s.len < 2 || s.s[0] != '(' || s.s[s.len - 1] != ')')
		return;
	n = mmr_span_split((struct mmr_span){s.s + 1, s.len - 2}, part, 8);
	for (i = 0; i < n; i++) {
		if (mmr_span_is(part[i], "async")) {
			p->async = true;
		} else if (mmr_span_begins(part[i], "rerun:")) {
			struct mmr_span v = {part[i].s + 6, part[i].len - 6};

			if (!mmr_imp_integer(im, v, &p->rerun) || p->rerun < 1)
				p->rerun = 1;
			if (p->rerun > REPEATS)
				p->rerun = REPEATS;
		} else {
			p->other = true;
		}
	}
}

static bool is_word(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
	       (ch >= '0' && ch <= '9') || ch == '_' || ch == '$';
}

/* [r0 = ]name[$variant](args)[ (props)].  False: not understood. */
static bool read_line(struct syz *z, struct mmr_span s, struct mmr_imp_call *c,
		      struct props *p)
{
	const char *dollar;
	int i = 0, end;

	*c = (struct mmr_imp_call){
		.line = z->line, .text = s, .start_ns = -1, .end_ns = -1};
	while (i < s.len && is_word(s.s[i]))
		i++;
	if (i && i + 1 < s.len && s.s[0] == 'r' &&
	    (s.s[i] == ' ' || s.s[i] == '=')) {
		c->var = (struct mmr_span){s.s, i};
		while (i < s.len && (s.s[i] == ' ' || s.s[i] == '='))
			i++;
		s = (struct mmr_span){s.s + i, s.len - i};
		for (i = 0; i < s.len && is_word(s.s[i]); i++)
			;
	}
	if (!i || i >= s.len || s.s[i] != '(')
		return false;
	c->name = (struct mmr_span){s.s, i};
	dollar = memchr(s.s, '$', (size_t)i);
	if (dollar) {
		c->name.len = (int)(dollar - s.s);
		c->variant = (struct mmr_span){dollar + 1, i - c->name.len - 1};
	}
	end = mmr_span_close(s, i + 1);
	if (end < 0 || s.s[end] != ')' || !c->name.len)
		return false;
	c->nargs = mmr_span_split((struct mmr_span){s.s + i + 1, end - i - 1},
				  c->arg, MMR_IMP_ARGS);
	read_props(z->im, (struct mmr_span){s.s + end + 1, s.len - end - 1}, p);
	return c->nargs >= 0;
}

/* Makes the call in t, as often as it is rerun. */
static enum mmr_imp_did make(struct syz *z, struct mmr_imp_thread *t,
			     const struct mmr_imp_call *c,
			     const struct props *p, char *why, size_t n)
{
	struct mmr_imp_nodes all = t->nodes;
	struct mmr_imp_node *loop;
	enum mmr_imp_did did;
	int i;

	if (p->rerun < 2)
		return mmr_imp_call(z->im, t, c, why, n);
	t->nodes = (struct mmr_imp_nodes){0};
	did = mmr_imp_call(z->im, t, c, why, n);
	loop = t->nodes.n ? mmr_imp_node(z->im, NULL) : NULL;
	if (loop) {
		loop->body = t->nodes;
		loop->count = p->rerun;
		for (i = 0; i < loop->body.n; i++)
			if (loop->depth <= loop->body.v[i]->depth)
				loop->depth = loop->body.v[i]->depth + 1;
		z->im->nstmts -= loop->body.n; /* they are counted again */
	}
	t->nodes = all;
	if (loop)
		mmr_imp_append(z->im, &t->nodes, loop);
	return did;
}

static void start_async(struct syz *z, const char *body)
{
	const struct mmr_op *op = mmr_op_by_name("thread_spawn");
	struct mmr_imp_node *n = mmr_imp_node(z->im, op);
	int ref = mmr_imp_ref_take(z->im, z->main->proc, MMR_IMP_THREAD);

	if (!n || !mmr_imp_set_name(n, "body", body))
		return;
	n->ref = mmr_imp_ref_name(z->im, MMR_IMP_THREAD, ref);
	mmr_imp_emit(z->im, z->main, n, NULL);
}

/* A call beside the others is the body of a thread of its own. */
static enum mmr_imp_did make_async(struct syz *z, const struct mmr_imp_call *c,
				   const struct props *p, char *why, size_t n)
{
	struct mmr_imp_proc *proc = z->main->proc;
	struct mmr_imp_thread *last = proc->last, *t;
	enum mmr_imp_did did;
	const char *name;

	if (z->im->nthreads >= MMR_IMP_THREADS) {
		mmr_imp_cut(z->im,
			    "line %d: more threads than a case can "
			    "have; the rest is not async",
			    z->line);
		return make(z, z->main, c, p, why, n);
	}
	name = mmr_imp_str(z->im, "X%d", z->nasync);
	t = mmr_imp_add_thread(z->im, proc, name);
	if (!t)
		return MMR_IMP_UNMAPPED;
	t->is_template = true;
	did = make(z, t, c, p, why, n);
	if (did == MMR_IMP_MAPPED && t->nodes.n) {
		z->nasync++;
		start_async(z, name);
		return did;
	}
	/* Nothing came of it. */
	last->next = NULL;
	proc->last = last;
	proc->nthreads--;
	z->im->nthreads--;
	return did;
}

static void on_line(struct syz *z, struct mmr_span s)
{
	struct mmr_imp *im = z->im;
	enum mmr_imp_did did;
	struct mmr_imp_call c;
	struct props p;
	char why[160];

	if (!read_line(z, s, &c, &p)) {
		if (z->collide)
			return;
		im->res->unread++;
		mmr_imp_comment(im, z->main, z->line, s, "not understood");
		mmr_imp_missed(im, z->line, s, "not understood");
		return;
	}
	p.async |= z->collide && z->index++ % 2 == 0;
	did = p.async ? make_async(z, &c, &p, why, sizeof(why))
		      : make(z, z->main, &c, &p, why, sizeof(why));
	if (z->collide)
		return;
	mmr_imp_count(im, z->main, &c, did, why);
	if (did == MMR_IMP_MAPPED && p.other)
		mmr_imp_comment(im, z->main, z->line, s,
				"only async and rerun are kept");
}

static void pass(struct syz *z, const char *text, size_t len, bool *collide)
{
	const char *end = text + len, *next;

	for (z->line = 1; text < end; text = next, z->line++) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((nl ? nl : end) - text);
		struct mmr_span s = {text, n > INT32_MAX ? INT32_MAX : (int)n};

		next = nl ? nl + 1 : end;
		s = mmr_span_trim(s);
		if (s.len && s.s[0] == '#') {
			if (!z->collide)
				read_options(z, s, collide);
			continue;
		}
		if (!s.len)
			continue;
		if (z->im->nstmts > MMR_IMP_STMTS || z->line > LINES_MAX ||
		    z->im->failed) {
			mmr_imp_cut(z->im,
				    "Cut at line %d: a case has at most %d "
				    "statements.",
				    z->line, MMR_CASE_MAX_STMTS);
			break;
		}
		on_line(z, s);
	}
	if (!z->collide)
		z->im->res->lines = z->line - 1;
}

/* The round is over when all have done what they were started for. */
static void join_all(struct syz *z)
{
	const struct mmr_op *op = mmr_op_by_name("thread_join");
	struct mmr_imp_thread *t = z->main;
	int n = t->nodes.n, i;

	for (i = 0; i < n && i < t->nodes.n; i++) {
		struct mmr_imp_node *spawn = t->nodes.v[i], *join;

		if (!spawn->op || !spawn->ref ||
		    strcmp(spawn->op->name, "thread_spawn") ||
		    !strcmp(spawn->arg[0].name, "idle"))
			continue;
		join = mmr_imp_node(z->im, op);
		if (join && mmr_imp_set_name(join, "t", spawn->ref))
			mmr_imp_emit(z->im, t, join, NULL);
	}
}

int mmr_imp_syz(struct mmr_imp *im, const char *text, size_t len)
{
	struct syz z = {.im = im};
	struct mmr_imp_proc *p;
	bool collide = false;

	im->rounds = ROUNDS;
	p = mmr_imp_add_proc(im, "main");
	z.main = p ? mmr_imp_add_thread(im, p, "A") : NULL;
	if (!z.main)
		return -ENOMEM;
	im->first = z.main;
	pass(&z, text, len, &collide);
	if (collide) {
		z.collide = true;
		pass(&z, text, len, &collide);
	}
	join_all(&z);
	put_data(im);
	return 0;
}
