// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From names to numbers: a case becomes the program in a fresh shared area.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile.h"
#include "content.h"
#include "names.h"
#include "need_probe.h"
#include "print.h"
#include "rng.h"
#include "sweep.h"
#include "timing.h"

/* Calls that last longer all count as the last step of a histogram. */
#define HIST_LONGEST_S 100

struct build {
	const struct mmr_case *c;
	bool no_offsets;
	struct mmr_area *area;
	struct mmr_insn *insns;
	struct mmr_pthread *threads;
	struct mmr_pproc *procs;
	struct mmr_psync *syncs;
	struct mmr_names proc_names, thread_names, refs, latches, sync_names,
		futexes;
	uint32_t ninsns, nstats;
	/* The thread at work. */
	uint64_t thread_key;
	uint64_t *keys; /* of its statements so far: equal text, equal key */
	int nkeys;
	struct mmr_text text;
};

static uint64_t huge_size;
static pthread_once_t huge_once = PTHREAD_ONCE_INIT;

static void huge_init(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long kib;
	char line[128];

	huge_size = 2 << 20;
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Hugepagesize: %lu kB", &kib) == 1)
			huge_size = (uint64_t)kib << 10;
	fclose(f);
}

uint64_t mmr_huge_page_size(void)
{
	pthread_once(&huge_once, huge_init);
	return huge_size;
}

static uint32_t count_insns(const struct mmr_block *b)
{
	uint32_t n = 0;
	int i;

	for (i = 0; i < b->n; i++)
		n += b->stmts[i]->kind == MMR_STMT_LOOP
			     ? 2 + count_insns(&b->stmts[i]->body)
			     : 1;
	return n;
}

/*
 * The key of a statement's draws: thread name, text of what it does, and how
 * many with the same text stand before it in the thread.  Deleting another
 * line, or changing what results are accepted, draws nothing anew.  Nor does
 * another range of an offset: skew=auto and the nanoseconds that it stands for
 * are drawn alike.
 */
static int make_tag(struct build *b, const struct mmr_stmt *s, uint64_t *tag)
{
	uint64_t key, ordinal = 0;
	struct mmr_stmt bare = *s;
	int i;

	for (i = 0; s->kind == MMR_STMT_OP && i < s->op->nargs; i++)
		if (s->op->args[i].flags & MMR_ARG_SIGNED)
			bare.args[i].set = false;
	b->text.n = 0;
	mmr_print_action(&b->text, &bare);
	if (b->text.failed)
		return -ENOMEM;
	key = mmr_rng_key_str(b->thread_key, b->text.s);
	for (i = 0; i < b->nkeys; i++)
		ordinal += b->keys[i] == key;
	b->keys[b->nkeys++] = key;
	*tag = mmr_rng_key(key, ordinal);
	return 0;
}

static int64_t unit_bytes(const struct build *b, enum mmr_unit unit)
{
	switch (unit) {
	case MMR_UNIT_PAGE:
		return (int64_t)b->area->program.page_size;
	case MMR_UNIT_HUGE:
		return (int64_t)b->area->program.huge_size;
	case MMR_UNIT_BYTE:
		break;
	}
	return 1;
}

static int64_t name_index(struct build *b, const struct mmr_argspec *a,
			  const char *name)
{
	switch (a->type) {
	case MMR_ARG_REF:
		return mmr_names_add(&b->refs, name);
	case MMR_ARG_LATCH:
		return mmr_names_add(&b->latches, name);
	case MMR_ARG_SYNC:
		return mmr_names_add(&b->sync_names, name);
	case MMR_ARG_FUTEX:
		return mmr_names_add(&b->futexes, name);
	case MMR_ARG_THREAD:
		return strcmp(name, "idle") == 0
			       ? MMR_THREAD_IDLE
			       : mmr_names_find(&b->thread_names, name);
	case MMR_ARG_PROCESS:
		return strcmp(name, "idle") == 0
			       ? MMR_PROC_IDLE
			       : mmr_names_find(&b->proc_names, name);
	default:
		return -1;
	}
}

static int compile_arg(struct build *b, const struct mmr_argspec *a,
		       const struct mmr_value *v, struct mmr_operand *o)
{
	const struct mmr_value left_out = {.lo = a->def, .hi = a->def};

	if (!v->set)
		v = &left_out;
	switch (a->type) {
	case MMR_ARG_SIZE:
		if (__builtin_mul_overflow(v->lo, unit_bytes(b, v->unit),
					   &o->lo))
			return -EINVAL;
		o->hi = o->lo;
		break;
	case MMR_ARG_TIME:
		o->lo = v->lo;
		o->hi = v->hi;
		break;
	case MMR_ARG_INT:
	case MMR_ARG_ENUM:
	case MMR_ARG_FLAGS:
		o->lo = o->hi = v->lo;
		break;
	case MMR_ARG_WORD:
		o->lo = o->hi = v->set;
		break;
	default:
		o->lo = o->hi = v->name ? name_index(b, a, v->name) : -1;
	}
	return 0;
}

/* Kernel arguments that two of the statement's make together. */
static void join_args(const struct mmr_op *op, struct mmr_insn *in)
{
	const struct mmr_from_spec *from = op->call.from;
	int i;

	for (i = 0; i < 6 && from[i].from != MMR_FROM_END; i++)
		if (from[i].from == MMR_FROM_VALUE && from[i].also)
			in->arg[from[i].arg].lo |= in->arg[from[i].also - 1].lo;
}

/* What only the statement as a whole tells of a time. */
static void compile_draw(struct build *b, const struct mmr_stmt *s, int i,
			 struct mmr_insn *in)
{
	const struct mmr_value *v = &s->args[i];
	struct mmr_timing_range r;
	int aim;

	if (s->op->args[i].type != MMR_ARG_TIME || !v->set)
		return;
	if (v->is_auto && !b->no_offsets) {
		mmr_timing_bounds(b->c, s, &r);
		in->arg[i] = (struct mmr_operand){r.lo, r.hi};
		aim = mmr_op_arg(s->op, "aim");
		if (aim >= 0)
			in->arg[aim] = (struct mmr_operand){r.aim_lo, r.aim_hi};
	}
	if (!v->is_log)
		return;
	in->log |= (uint8_t)(1u << i);
	in->arg[i].lo = s->op->args[i].flags & MMR_ARG_SIGNED
				? -MMR_SWEEP_LOG_HI
				: MMR_SWEEP_LOG_LO;
	in->arg[i].hi = MMR_SWEEP_LOG_HI;
}

static int compile_op(struct build *b, const struct mmr_stmt *s,
		      struct mmr_insn *in)
{
	int i, rc;

	in->op = s->op->id;
	in->dst = (int16_t)(s->ref ? mmr_names_add(&b->refs, s->ref) : -1);
	for (i = 0; i < s->op->nargs; i++) {
		if (s->args[i].set)
			in->set |= 1u << i;
		rc = compile_arg(b, &s->op->args[i], &s->args[i], &in->arg[i]);
		if (rc)
			return rc;
	}
	for (i = 0; i < s->op->nargs; i++)
		compile_draw(b, s, i, in);
	join_args(s->op, in);
	mmr_compile_quick(s->op, in);
	in->naccept = (uint8_t)s->naccept;
	for (i = 0; i < s->naccept; i++)
		in->accept[i] = s->accept[i];
	return 0;
}

static int compile_block(struct build *b, const struct mmr_block *block)
{
	const struct mmr_stmt *s;
	struct mmr_insn *in, *end;
	uint32_t at;
	int i, rc;

	for (i = 0; i < block->n; i++) {
		s = block->stmts[i];
		at = b->ninsns++;
		in = &b->insns[at];
		in->stat = (uint16_t)b->nstats++;
		/* The second thread, moved against the first, has the golden
		 * ratio. */
		in->dim = (uint8_t)((b->area->program.nthreads + 6) %
				    MMR_SWEEP_DIMS);
		rc = make_tag(b, s, &in->tag);
		if (!rc && s->kind != MMR_STMT_LOOP)
			rc = compile_op(b, s, in);
		if (rc)
			return rc;
		if (s->kind != MMR_STMT_LOOP)
			continue;
		in->op = MMR_INSN_LOOP;
		in->dst = -1;
		in->until = (uint8_t)s->until;
		in->count = s->count;
		if (s->until == MMR_UNTIL_DONE)
			in->until_index = (uint32_t)mmr_names_find(
				&b->thread_names, s->until_name);
		if (s->until == MMR_UNTIL_EXITED)
			in->until_index = (uint32_t)mmr_names_find(
				&b->proc_names, s->until_name);
		rc = compile_block(b, &s->body);
		if (rc)
			return rc;
		in->jump = b->ninsns++;
		end = &b->insns[in->jump];
		end->op = MMR_INSN_END;
		end->dst = -1;
		end->stat = in->stat;
		end->jump = at;
	}
	return 0;
}

static void name_all(struct build *b)
{
	const struct mmr_proc *p;
	int i, j;

	for (i = 0; i < b->c->nprocs; i++) {
		p = b->c->procs[i];
		mmr_names_add(&b->proc_names, p->name);
		for (j = 0; j < p->nthreads; j++)
			mmr_names_add(&b->thread_names, p->threads[j]->name);
	}
}

/* Threads that meet at each rendezvous: those of plain processes, each copy
 * for itself, each thread once. */
static void count_parties(struct build *b, const struct mmr_block *block,
			  uint32_t copies, uint64_t *seen)
{
	const struct mmr_stmt *s;
	int i, k, sync;

	for (i = 0; i < block->n; i++) {
		s = block->stmts[i];
		if (s->kind == MMR_STMT_LOOP) {
			count_parties(b, &s->body, copies, seen);
			continue;
		}
		for (k = 0; k < s->op->nargs; k++) {
			if (s->op->args[k].type != MMR_ARG_SYNC ||
			    !s->args[k].name)
				continue;
			sync = mmr_names_add(&b->sync_names, s->args[k].name);
			if (*seen >> sync & 1)
				continue;
			*seen |= 1ULL << sync;
			b->syncs[sync].parties += copies;
		}
	}
}

static int compile_thread(struct build *b, const struct mmr_thread *t,
			  struct mmr_pthread *out)
{
	int rc;

	out->first = b->ninsns;
	out->is_template = t->is_template;
	out->segv = (uint8_t)t->segv;
	out->cpu_kind = (uint8_t)t->cpu;
	if (t->cpu == MMR_CPU_NUMBER)
		out->cpu_arg = t->cpu_number;
	else if (t->cpu != MMR_CPU_ANY)
		out->cpu_arg = mmr_names_find(&b->thread_names, t->cpu_thread);
	b->thread_key = mmr_rng_key_str(b->area->program.seed, t->name);
	b->nkeys = 0;
	rc = compile_block(b, &t->body);
	out->ninsn = b->ninsns - out->first;
	return rc;
}

static int compile_procs(struct build *b)
{
	struct mmr_program *pr = &b->area->program;
	int32_t slot = 0, plain;
	const struct mmr_proc *p;
	struct mmr_pthread *t;
	uint64_t seen;
	int i, j, rc;

	for (i = 0; i < b->c->nprocs; i++) {
		p = b->c->procs[i];
		b->procs[i] = (struct mmr_pproc){
			.first = pr->nthreads,
			.nthreads = (uint32_t)p->nthreads,
			.copies = (uint32_t)p->copies,
			.is_template = p->is_template,
		};
		plain = 0;
		for (j = 0; j < p->nthreads; j++) {
			t = &b->threads[pr->nthreads++];
			t->proc = (uint16_t)i;
			t->slot = -1;
			rc = compile_thread(b, p->threads[j], t);
			if (rc)
				return rc;
			if (p->is_template || t->is_template)
				continue;
			t->slot = slot + plain++;
			seen = 0;
			count_parties(b, &p->threads[j]->body,
				      (uint32_t)p->copies, &seen);
		}
		slot += plain * p->copies;
	}
	pr->nprocs = (uint32_t)b->c->nprocs;
	pr->ninsns = b->ninsns;
	pr->nstats = b->nstats;
	pr->nrefs = (uint32_t)b->refs.n;
	pr->nlatches = (uint32_t)b->latches.n;
	pr->nsyncs = (uint32_t)b->sync_names.n;
	pr->nfutexes = (uint32_t)b->futexes.n;
	return 0;
}

static void set_up(struct mmr_area *area, const struct mmr_case *c,
		   const struct mmr_compile_opts *opts)
{
	struct mmr_program *pr = &area->program;
	int i, cap;

	area->magic = MMR_AREA_MAGIC;
	area->version = MMR_AREA_VERSION;
	mmr_clock_init(&area->clock);
	/* The finest unit whose 256 steps, 8 an octave, reach that far. */
	while (area->clock.hz * HIST_LONGEST_S >> area->hist_shift >=
	       1ULL << 34)
		area->hist_shift++;
	pr->rounds = opts->rounds ? opts->rounds : (uint64_t)c->rounds;
	pr->first_round = opts->first_round;
	pr->budget_ns = opts->budget_ns > 0 ? (uint64_t)opts->budget_ns
					    : (uint64_t)c->budget_ns;
	pr->seed = opts->seed;
	pr->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	pr->huge_size = mmr_huge_page_size();
	pr->keep = c->keep;
	for (i = 0; i < c->nexpects; i++)
		pr->content |= c->expects[i].kind == MMR_EXPECT_CONTENT;
	for (i = 0; i < c->nneeds; i++) {
		if (c->needs[i].kind != MMR_NEED_NOCAP)
			continue;
		cap = mmr_cap_number(c->needs[i].name);
		if (cap >= 0 && cap < 32)
			pr->drop_caps_lo |= 1u << cap;
		else if (cap >= 32)
			pr->drop_caps_hi |= 1u << (cap - 32);
	}
	mmr_compile_cpus(pr, c, opts);
	mmr_compile_order(pr, c);
}

static uint64_t place(uint64_t *size, uint64_t bytes)
{
	uint64_t at = (*size + 63) & ~63ULL;

	*size = at + bytes;
	return at;
}

/* Where everything lies in the area; its size in a->size. */
static void lay_out(struct mmr_area *a, const struct mmr_case *c)
{
	uint64_t size = sizeof(*a), page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint32_t ninsns = 0, nthreads = 0;
	int i, j;

	for (i = 0; i < c->nprocs; i++)
		for (j = 0; j < c->procs[i]->nthreads; j++) {
			nthreads++;
			ninsns += count_insns(&c->procs[i]->threads[j]->body);
		}
	a->program.insns_off = place(&size, ninsns * sizeof(struct mmr_insn));
	a->program.threads_off =
		place(&size, nthreads * sizeof(struct mmr_pthread));
	a->program.procs_off =
		place(&size, (uint64_t)c->nprocs * sizeof(struct mmr_pproc));
	a->program.syncs_off =
		place(&size, MMR_CASE_MAX_NAMES * sizeof(struct mmr_psync));
	/* Not beside what changes all the time. */
	size = (size + page - 1) & ~(page - 1);
	a->threads_off =
		place(&size, MMR_THREAD_SLOTS * sizeof(struct mmr_thread_slot));
	a->procs_off =
		place(&size, MMR_PROC_SLOTS * sizeof(struct mmr_proc_slot));
	a->stats_off = place(&size, (uint64_t)mmr_case_count(c) *
					    sizeof(struct mmr_stat));
	if (a->program.content)
		a->content_off = place(&size, sizeof(struct mmr_content));
	a->exits_off = place(&size, (uint64_t)(c->nprocs + 1) *
					    sizeof(struct mmr_exit_stat));
	a->size = (size + page - 1) & ~(page - 1);
}

/* A memfd of that layout, mapped.  0 or -errno. */
static int make_area(const struct mmr_area *layout, struct mmr_area **area,
		     int *fd)
{
	void *at;
	int rc;

	*fd = memfd_create("mmrace-area", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	/* The child cannot make the watcher's reads fault. */
	if (ftruncate(*fd, (off_t)layout->size) ||
	    fcntl(*fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		rc = -errno;
		close(*fd);
		return rc;
	}
	at = mmap(NULL, layout->size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd,
		  0);
	if (at == MAP_FAILED) {
		rc = -errno;
		close(*fd);
		return rc;
	}
	*area = at;
	memcpy(at, layout, sizeof(*layout));
	return 0;
}

static int fill(struct mmr_area *area, const struct mmr_case *c,
		const struct mmr_compile_opts *opts)
{
	struct build *b = calloc(1, sizeof(*b));
	int rc = -ENOMEM;

	if (!b)
		return -ENOMEM;
	b->c = c;
	b->no_offsets = opts->no_offsets;
	b->area = area;
	b->insns = MMR_AREA_AT(area, area->program.insns_off, struct mmr_insn);
	b->threads = MMR_AREA_AT(area, area->program.threads_off,
				 struct mmr_pthread);
	b->procs = MMR_AREA_AT(area, area->program.procs_off, struct mmr_pproc);
	b->syncs = MMR_AREA_AT(area, area->program.syncs_off, struct mmr_psync);
	b->keys = calloc((size_t)mmr_case_count(c) + 1, sizeof(*b->keys));
	if (b->keys) {
		name_all(b);
		rc = compile_procs(b);
	}
	free(b->text.s);
	free(b->keys);
	free(b);
	return rc;
}

int mmr_compile(const struct mmr_case *c, const struct mmr_compile_opts *opts,
		struct mmr_area **area, int *fd, struct mmr_diag *diag)
{
	struct mmr_area *layout;
	int rc;

	*area = NULL;
	*fd = -1;
	rc = mmr_case_check(c, diag);
	if (rc)
		return rc;
	layout = aligned_alloc(_Alignof(struct mmr_area), sizeof(*layout));
	if (!layout)
		return -ENOMEM;
	memset(layout, 0, sizeof(*layout));
	set_up(layout, c, opts);
	lay_out(layout, c);
	rc = make_area(layout, area, fd);
	free(layout);
	if (rc)
		return rc;
	rc = fill(*area, c, opts);
	if (rc == 0)
		return 0;
	if (rc == -EINVAL)
		*diag = (struct mmr_diag){
			.text = "a size overflows on this machine's pages"};
	mmr_area_close(*area, *fd);
	*area = NULL;
	*fd = -1;
	return rc;
}

void mmr_area_close(struct mmr_area *area, int fd)
{
	struct stat st;

	/* The size in the area is the child's to overwrite; this one not. */
	if (area && fstat(fd, &st) == 0)
		munmap(area, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
}
