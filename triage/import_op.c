// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a system call to an operation by its descriptor: where the runner
 * computes kernel arguments from a statement (enum mmr_from), the importer
 * goes the other way.
 */
#include <stdarg.h>
#include <string.h>

#include "../ops/args.h"
#include "import_impl.h"

#define PARTS 16 /* mappings that one call can be about */
#define TOUCH_MAX (1 << 20)

struct mmr_imp_node *mmr_imp_node(struct mmr_imp *im, const struct mmr_op *op)
{
	struct mmr_imp_node *n = im->spare;
	int i;

	if (n) {
		im->spare = n->next_spare;
		memset(n, 0, sizeof(*n));
	} else {
		n = mmr_imp_alloc(im, sizeof(*n));
	}
	if (!n)
		return NULL;
	n->op = op;
	for (i = 0; op && i < op->nargs; i++)
		n->arg[i].lo = n->arg[i].hi = op->args[i].def;
	return n;
}

/* All bits that the names of an argument stand for. */
static int64_t mask_of(const struct mmr_argspec *spec)
{
	const struct mmr_name *p;
	int64_t mask = 0;

	for (p = spec->names; p && p->name; p++)
		mask |= p->value;
	return mask;
}

/* The value as the argument can hold it.  False: it cannot. */
static bool fits(const struct mmr_argspec *spec, int64_t *v)
{
	const struct mmr_name *p;
	int64_t left;

	switch (spec->type) {
	case MMR_ARG_ENUM:
		for (p = spec->names; p && p->name; p++)
			if (p->value == *v)
				return true;
		return false;
	case MMR_ARG_FLAGS:
		/* Bits without a name go: a case writes names. */
		left = *v & mask_of(spec);
		*v = 0;
		for (p = spec->names; p && p->name; p++)
			if (p->value && (left & p->value) == p->value)
				*v |= p->value;
		return *v >= spec->min && (!spec->max || *v <= spec->max);
	case MMR_ARG_SIZE:
	case MMR_ARG_INT:
		return *v >= spec->min && (!spec->max || *v <= spec->max);
	default:
		return false;
	}
}

static bool set_value(struct mmr_imp_node *n, int i, int64_t v)
{
	const struct mmr_argspec *spec = &n->op->args[i];

	if (!fits(spec, &v))
		return false;
	n->arg[i].lo = n->arg[i].hi = v;
	n->arg[i].set = !(spec->flags & MMR_ARG_OPT) || v != spec->def;
	n->arg[i].unit = MMR_UNIT_BYTE;
	return true;
}

bool mmr_imp_set(struct mmr_imp *im, struct mmr_imp_node *n, const char *name,
		 int64_t v)
{
	int i = mmr_op_arg(n->op, name);

	(void)im;
	return i >= 0 && set_value(n, i, v);
}

bool mmr_imp_set_name(struct mmr_imp_node *n, const char *name,
		      const char *value)
{
	int i = mmr_op_arg(n->op, name);

	if (i < 0 || !value)
		return false;
	n->arg[i].name = value;
	n->arg[i].set = true;
	return true;
}

void mmr_imp_set_part(struct mmr_imp *im, struct mmr_imp_node *n,
		      const struct mmr_imp_part *part)
{
	mmr_imp_set_name(n, "m", mmr_imp_ref_name(im, MMR_IMP_MAP, part->ref));
	if (part->off)
		mmr_imp_set(im, n, "off", (int64_t)part->off);
	if (!part->to_end)
		mmr_imp_set(im, n, "len", (int64_t)part->len);
}

/* Two digits of a time are what its order of magnitude is worth. */
static int64_t round_delay(int64_t ns)
{
	int64_t unit = 1000;

	while (ns / unit >= 100)
		unit *= 10;
	return ns / unit * unit;
}

#define LEAST_DELAY_NS 200000 /* below: strace's own cost for each call */
#define MOST_DELAY_NS 100000000

static void set_delay(struct mmr_imp *im, struct mmr_imp_thread *t,
		      struct mmr_imp_node *n, const struct mmr_imp_call *c)
{
	int64_t most =
		im->o->max_delay_ns ? im->o->max_delay_ns : MOST_DELAY_NS;
	int64_t gap;

	if (!c || c->start_ns < 0)
		return;
	gap = t->last_ns < 0 ? 0 : c->start_ns - t->last_ns;
	t->last_ns = c->end_ns >= c->start_ns ? c->end_ns : c->start_ns;
	if (gap < LEAST_DELAY_NS)
		return;
	if (gap > most) {
		gap = most;
		im->res->delays_cut++;
	}
	n->delay_lo = n->delay_hi = round_delay(gap);
}

void mmr_imp_emit(struct mmr_imp *im, struct mmr_imp_thread *t,
		  struct mmr_imp_node *n, const struct mmr_imp_call *c)
{
	if (!n)
		return;
	if (c)
		mmr_imp_follow(im, t);
	set_delay(im, t, n, c);
	if (c && c->returned && c->err) {
		n->accept[0] = 0;
		n->accept[1] = c->err;
		n->naccept = mmr_errno_name(c->err) ? 2 : 0;
	}
	n->comments = t->comments;
	t->comments = NULL;
	mmr_imp_append(im, &t->nodes, n);
}

/* -- one operation against one call ------------------------------------- */

struct match {
	struct mmr_imp *im;
	struct mmr_imp_thread *t;
	const struct mmr_imp_call *c;
	const struct mmr_op *op;
	struct mmr_imp_node *n;
	uint64_t addr, len; /* ADDR and LEN */
	uint64_t here;	    /* IOV: addr, while another one is looked at */
	bool has_part;
	bool fixed; /* mmap: the place is no hint */
	bool file;  /* mmap of a file that the case does not have */
	char *why;
	size_t why_n;
};

static bool no(struct match *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool no(struct match *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->why, m->why_n, fmt, ap);
	va_end(ap);
	return false;
}

/* A word of 64 bits behind a pointer. */
static bool pointed(struct match *m, struct mmr_span s, int64_t *v)
{
	struct mmr_span leaf[2];

	return mmr_span_leaves(s, leaf, 2) > 0 &&
	       mmr_imp_integer(m->im, leaf[0], v);
}

/* The descriptor or process that an argument names. */
static bool take_object(struct match *m, int arg, struct mmr_span s, char type)
{
	const struct mmr_argspec *spec = &m->op->args[arg];
	static const uint32_t kinds[MMR_IMP_KINDS] = {
		[MMR_IMP_PROCESS] = MMR_REF_PROCESS,
		[MMR_IMP_PIDFD] = MMR_REF_PIDFD,
		[MMR_IMP_FILE] = MMR_REF_FILE,
		[MMR_IMP_UFFD] = MMR_REF_UFFD,
	};
	struct mmr_imp_obj *o;
	char buf[24];
	int64_t v;

	o = mmr_imp_obj_find(m->t->proc, mmr_imp_key(m->im, s, type, buf));
	if (o && o->ref >= 0 && (kinds[o->kind] & spec->kinds)) {
		m->n->arg[arg].name = mmr_imp_ref_name(m->im, o->kind, o->ref);
		m->n->arg[arg].set = true;
		return m->n->arg[arg].name != NULL;
	}
	if (!(spec->flags & MMR_ARG_OPT))
		return no(m, "%.*s is nothing that the case has",
			  s.len > 24 ? 24 : s.len, s.s);
	/* -1, 0xffffffffffffffff, 0 of a pid: none */
	if (!o && mmr_imp_integer(m->im, s, &v) &&
	    (v == -1 || v == (int64_t)UINT32_MAX || (type == 'p' && !v)))
		return true;
	if (type == 'p') {
		if (v == m->t->proc->threads->key)
			return true;
		return no(m, "that process is not in the case");
	}
	/* The file is not in the case, what is mapped of it can be. */
	m->file = true;
	return true;
}

static bool take_value(struct match *m, const struct mmr_from_spec *f,
		       int64_t v)
{
	const struct mmr_argspec *spec = &m->op->args[f->arg];

	/* Two arguments that are ORed: the other one has its own bits. */
	if (f->also) {
		int64_t theirs =
			mask_of(&m->op->args[f->also - 1]) & ~mask_of(spec);

		/* A size of huge pages that has no name is the default. */
		if (v & theirs)
			(void)!set_value(m->n, f->also - 1, v & theirs);
		v &= ~theirs;
	}
	/* MAP_SHARED_VALIDATE is both bits. */
	if (m->op->makes == MMR_REF_MAPPING && !strcmp(spec->name, "flags") &&
	    (v & MAP_SHARED) && (v & MAP_PRIVATE))
		v &= ~(int64_t)MAP_PRIVATE;
	/* Of a new mapping the kernel makes whole pages. */
	if (m->op->makes == MMR_REF_MAPPING && !strcmp(spec->name, "len") &&
	    v > 0 && v < MMR_LEN_MAX)
		v = (v + 4095) & ~4095LL;
	if (!strcmp(spec->name, "prot"))
		v &= PROT_READ | PROT_WRITE | PROT_EXEC;
	if (!set_value(m->n, f->arg, v))
		return no(m, "%s has no value %#llx", spec->name,
			  (unsigned long long)v);
	return true;
}

/* A mapping of another process: what the caller had there when it was forked
 * off. */
static bool take_there(struct match *m, int arg)
{
	struct mmr_imp_part part;

	if (!mmr_imp_map_find(m->im, m->t, m->addr, 1, &part, 1))
		return no(m, "no mapping at this address is known");
	m->addr = m->here;
	m->n->arg[arg].name = mmr_imp_ref_name(m->im, MMR_IMP_MAP, part.ref);
	m->n->arg[arg].set = true;
	return m->n->arg[arg].name != NULL;
}

/* One argument of the kernel. */
static bool take(struct match *m, const struct mmr_from_spec *f,
		 struct mmr_span s)
{
	struct mmr_span leaf[4];
	int64_t v = 0;
	uint64_t a;

	switch (f->from) {
	case MMR_FROM_CONST:
		return true; /* what it was does not matter to the case */
	case MMR_FROM_VALUE:
		if (!mmr_imp_integer(m->im, s, &v))
			return no(m, "%.*s is no value known here",
				  s.len > 40 ? 40 : s.len, s.s);
		return take_value(m, f, v);
	case MMR_FROM_POINTER:
		/* No mask of nodes: a policy may do without. */
		if ((m->op->args[f->arg].flags & MMR_ARG_OPT) &&
		    mmr_imp_integer(m->im, s, &v) && !v)
			return true;
		if (!pointed(m, s, &v))
			return no(m, "nothing is known of what it points to");
		return take_value(m, f, v);
	case MMR_FROM_ADDR:
	case MMR_FROM_ARENA:
		if (!mmr_imp_address(m->im, s, &a))
			return no(m, "no address");
		m->addr = a;
		m->has_part |= f->from == MMR_FROM_ADDR;
		return true;
	case MMR_FROM_LEN:
		if (!mmr_imp_integer(m->im, s, &v) || v < 0)
			return no(m, "no length");
		m->len = (uint64_t)v;
		return true;
	case MMR_FROM_IOV:
		if (mmr_span_leaves(s, leaf, 2) < 2 ||
		    !mmr_imp_address(m->im, leaf[0], &m->addr) ||
		    !mmr_imp_integer(m->im, leaf[1], &v) || v < 0)
			return no(m, "nothing is known of its range");
		if (strcmp(m->op->args[f->arg].name, "m"))
			return take_there(m, f->arg);
		m->len = (uint64_t)v;
		m->has_part = true;
		m->here = m->addr;
		return true;
	case MMR_FROM_PID:
		return take_object(m, f->arg, s, 'p');
	case MMR_FROM_PIDFD:
	case MMR_FROM_FD:
		return take_object(m, f->arg, s, 'f');
	default:
		return no(m, "the importer cannot read this argument");
	}
}

/* The place of a new mapping: in the arena where it matters. */
static bool place(struct match *m, int at_arg, uint64_t len)
{
	struct mmr_imp *im = m->im;
	int flags = mmr_op_arg(m->op, "flags");
	uint64_t addr = m->addr;
	int64_t at, fixed = MAP_FIXED | MMR_K_MAP_FIXED_NOREPLACE;

	m->fixed = flags >= 0 && (m->n->arg[flags].lo & fixed);
	if (m->c->returned && !m->c->err)
		addr = (uint64_t)m->c->ret;
	if (!m->fixed && (!addr || !mmr_imp_map_placed(im, addr, len)))
		return true;
	if (mmr_imp_map_at(m->t->proc, addr, len, &at))
		return set_value(m->n, at_arg, at);
	return m->fixed ? no(m, "a fixed place that the arena does not reach")
			: true;
}

static bool match_args(struct match *m)
{
	const struct mmr_callspec *call = &m->op->call;
	int at_arg = -1, i;
	int64_t len = 0;

	for (i = 0; i < 6 && call->from[i].from != MMR_FROM_END; i++) {
		/* Arguments at the end that no one uses are often left out. */
		if (i >= m->c->nargs) {
			if (call->from[i].from == MMR_FROM_CONST)
				continue;
			return no(m, "it has too few arguments");
		}
		if (call->from[i].from == MMR_FROM_ARENA)
			at_arg = call->from[i].arg;
		if (!take(m, &call->from[i], m->c->arg[i]))
			return false;
	}
	i = mmr_op_arg(m->op, "len");
	if (at_arg >= 0 && i >= 0)
		len = m->n->arg[i].lo;
	return at_arg < 0 || place(m, at_arg, (uint64_t)len);
}

/* A mapping of a file that is not in the case becomes one without. */
static void without_file(struct match *m)
{
	int i = mmr_op_arg(m->op, "flags");

	if (i < 0 || !(m->op->makes & MMR_REF_MAPPING))
		return;
	m->im->res->files++;
	set_value(m->n, i, m->n->arg[i].lo | MAP_ANONYMOUS);
	i = mmr_op_arg(m->op, "foff");
	if (i >= 0)
		set_value(m->n, i, 0);
}

/* What the call made gets a name. */
static void name_result(struct match *m)
{
	static const struct {
		uint32_t makes;
		enum mmr_imp_kind kind;
	} kinds[] = {{MMR_REF_MAPPING, MMR_IMP_MAP},
		     {MMR_REF_PIDFD, MMR_IMP_PIDFD},
		     {MMR_REF_FILE, MMR_IMP_FILE},
		     {MMR_REF_UFFD, MMR_IMP_UFFD}};
	const struct mmr_imp_call *c = m->c;
	struct mmr_imp_proc *p = m->t->proc;
	struct mmr_span key = c->var;
	uint64_t addr = m->addr, len;
	char buf[24], ret[24];
	int i, ref, arg;

	if (c->returned && c->err)
		return;
	for (i = 0; i < 4 && kinds[i].makes != m->op->makes; i++)
		;
	if (i == 4)
		return;
	if (kinds[i].kind == MMR_IMP_MAP) {
		arg = mmr_op_arg(m->op, "len");
		len = arg < 0 ? 0 : (uint64_t)m->n->arg[arg].lo;
		if (c->returned)
			addr = (uint64_t)c->ret;
		/* What a fixed one replaces is gone. */
		if (m->fixed)
			mmr_imp_map_gone(p, addr, len);
		ref = mmr_imp_ref_take(m->im, p, MMR_IMP_MAP);
		/* syz: where the kernel puts it, no later call can know. */
		if (ref < 0)
			p->unnamed++;
		else if (addr)
			mmr_imp_map_add(m->im, m->t, ref, addr, len);
	} else {
		ref = mmr_imp_ref_take(m->im, p, kinds[i].kind);
		if (c->returned) {
			snprintf(ret, sizeof(ret), "%lld", (long long)c->ret);
			key = mmr_imp_key(
				m->im, (struct mmr_span){ret, (int)strlen(ret)},
				'f', buf);
		}
		mmr_imp_obj_add(m->im, p, key, kinds[i].kind, ref);
	}
	m->n->ref = mmr_imp_ref_name(m->im, kinds[i].kind, ref);
}

/* The call once for each mapping that its range is about. */
static bool emit_parts(struct match *m)
{
	struct mmr_imp_part part[PARTS];
	bool gone = !strcmp(m->op->name, "munmap") &&
		    !(m->c->returned && m->c->err);
	int i, k;

	k = mmr_imp_map_find(m->im, m->t, m->addr, m->len, part, PARTS);
	if (!k && mmr_imp_data(m->im, m->addr))
		k = mmr_imp_map_find(m->im, m->t, m->addr, m->len, part, PARTS);
	if (!k)
		return no(m, m->t->proc->unnamed
				     ? "the mapping at this address has no "
				       "name: there are too many at once"
				     : "no mapping at this address is known");
	for (i = 0; i < k; i++) {
		struct mmr_imp_node *n = mmr_imp_node(m->im, m->op);

		if (!n)
			return true;
		memcpy(n->arg, m->n->arg, sizeof(n->arg));
		mmr_imp_set_part(m->im, n, &part[i]);
		mmr_imp_order(m->im, m->t, part[i].ref);
		mmr_imp_emit(m->im, m->t, n, m->c);
	}
	if (gone)
		mmr_imp_map_gone(m->t->proc, m->addr, m->len);
	return true;
}

/* A new mapping gets pages, if it is asked for and it can. */
static void touch(struct match *m)
{
	const struct mmr_op *op = mmr_op_by_name("write");
	int prot = mmr_op_arg(m->op, "prot"), len = mmr_op_arg(m->op, "len");
	struct mmr_imp_node *n;
	int step;

	if (!m->im->o->touch || !m->n->ref || prot < 0 || len < 0 || !op ||
	    !(m->n->arg[prot].lo & PROT_WRITE))
		return;
	n = mmr_imp_node(m->im, op);
	step = mmr_op_arg(op, "step");
	if (!n || step < 0 || !mmr_imp_set_name(n, "m", m->n->ref))
		return;
	if (m->n->arg[len].lo > TOUCH_MAX)
		mmr_imp_set(m->im, n, "len", TOUCH_MAX);
	n->arg[step].set = true;
	n->arg[step].lo = n->arg[step].hi = 1;
	n->arg[step].unit = MMR_UNIT_PAGE;
	mmr_imp_emit(m->im, m->t, n, NULL);
}

/* True when the call is in the case now. */
static bool match(struct match *m)
{
	m->n = mmr_imp_node(m->im, m->op);
	if (!m->n || !match_args(m))
		return false;
	if (m->file)
		without_file(m);
	if (m->has_part)
		return emit_parts(m);
	name_result(m);
	mmr_imp_emit(m->im, m->t, m->n, m->c);
	touch(m);
	return true;
}

static bool is_call(const struct mmr_op *op, struct mmr_span name)
{
	const char *call = op->call.name;

	if (!call || !op->call.nr || op->call.nr == -1)
		return false;
	return mmr_span_is(name, strncmp(call, "SYS_", 4) ? call : call + 4);
}

/* PTRACE_SEIZE is one of many: the request has to be the one. */
static bool wanted_request(struct mmr_imp *im, const struct mmr_op *op,
			   const struct mmr_imp_call *c)
{
	int64_t v;

	return op->call.from[0].from != MMR_FROM_CONST || !c->nargs ||
	       (mmr_imp_integer(im, c->arg[0], &v) && v == op->call.from[0].k);
}

enum mmr_imp_did mmr_imp_by_descriptor(struct mmr_imp *im,
				       struct mmr_imp_thread *t,
				       const struct mmr_imp_call *c, char *why,
				       size_t n)
{
	bool known = false;
	unsigned int id;

	for (id = 0; id < MMR_OP_LIMIT; id++) {
		const struct mmr_op *op = mmr_op_by_id(id);
		struct match m = {.im = im,
				  .t = t,
				  .c = c,
				  .op = op,
				  .why = why,
				  .why_n = n};

		if (!op || !is_call(op, c->name) || !wanted_request(im, op, c))
			continue;
		known = true;
		if (match(&m))
			return MMR_IMP_MAPPED;
	}
	if (!known)
		snprintf(why, n, "no operation is this call");
	return MMR_IMP_UNMAPPED;
}
