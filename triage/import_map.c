// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a process has: mappings by address, and the refs that name them and
 * its descriptors, threads and children.  Numbers are given out lowest first
 * and taken back, so that what a program does in a loop has the same names in
 * each turn.
 */
#include "import_impl.h"

#include <string.h>

#include "../ops/args.h"

static const char *const prefixes[MMR_IMP_KINDS] = {
	[MMR_IMP_MAP] = "m",   [MMR_IMP_THREAD] = "t", [MMR_IMP_PROCESS] = "p",
	[MMR_IMP_PIDFD] = "q", [MMR_IMP_FILE] = "f",   [MMR_IMP_UFFD] = "u",
};

#define PAGE 4096ULL

const char *mmr_imp_ref_name(struct mmr_imp *im, enum mmr_imp_kind k, int n)
{
	if (n < 0)
		return NULL;
	if (!im->ref_names[k][n])
		im->ref_names[k][n] = mmr_imp_str(im, "%s%d", prefixes[k], n);
	return im->ref_names[k][n];
}

int mmr_imp_ref_take(struct mmr_imp *im, struct mmr_imp_proc *p,
		     enum mmr_imp_kind k)
{
	int i, sum = 0;

	for (i = 0; i < im->high[k]; i++)
		if (!p->taken[k][i])
			break;
	if (i == im->high[k]) {
		/* A new name; a case has so many for all kinds together, of
		 * which mappings leave some to the others. */
		for (int j = 0; j < MMR_IMP_KINDS; j++)
			sum += im->high[j];
		if (sum >= MMR_IMP_REFS ||
		    (k == MMR_IMP_MAP && i >= MMR_IMP_REFS * 3 / 4))
			return -1;
		im->high[k]++;
	}
	p->taken[k][i] = true;
	return i;
}

static uint64_t page_up(uint64_t v)
{
	return v > UINT64_MAX - PAGE ? v & ~(PAGE - 1)
				     : (v + PAGE - 1) & ~(PAGE - 1);
}

void mmr_imp_map_add(struct mmr_imp *im, struct mmr_imp_thread *t, int ref,
		     uint64_t start, uint64_t len)
{
	struct mmr_imp_map *m = &t->proc->map[ref];

	*m = (struct mmr_imp_map){.used = true,
				  .live = true,
				  .start = start,
				  .len = page_up(len),
				  .seq = ++im->seq,
				  .maker = t,
				  .latch = -1};
}

void mmr_imp_map_gone(struct mmr_imp_proc *p, uint64_t start, uint64_t len)
{
	uint64_t end = start + page_up(len);
	int i;

	for (i = 0; i < MMR_IMP_REFS; i++) {
		struct mmr_imp_map *m = &p->map[i];
		uint64_t from = m->start > start ? m->start : start;
		uint64_t to = m->start + m->len < end ? m->start + m->len : end;

		if (!m->used || !m->live || from >= to)
			continue;
		m->gone += to - from;
		if (m->gone < m->len)
			continue;
		/* What is still said of it finds it, until the name is used
		 * again. */
		m->live = false;
		p->taken[MMR_IMP_MAP][i] = false;
	}
}

static bool contains(const struct mmr_imp_map *m, uint64_t a)
{
	return m->used && a >= m->start && a - m->start < m->len;
}

/* The newest mapping at a; with stale, also one that has gone. */
static int newest_at(const struct mmr_imp_proc *p, uint64_t a, bool stale)
{
	int best = -1, i;

	for (i = 0; i < MMR_IMP_REFS; i++)
		if (contains(&p->map[i], a) && (p->map[i].live || stale) &&
		    (best < 0 || p->map[i].seq > p->map[best].seq))
			best = i;
	return best;
}

/* Where the first mapping after a begins, at most end. */
static uint64_t next_start(const struct mmr_imp_proc *p, uint64_t a,
			   uint64_t end, uint64_t newer_than)
{
	int i;

	for (i = 0; i < MMR_IMP_REFS; i++) {
		const struct mmr_imp_map *m = &p->map[i];

		if (m->used && m->live && m->seq > newer_than && m->start > a &&
		    m->start < end)
			end = m->start;
	}
	return end;
}

int mmr_imp_map_find(struct mmr_imp *im, struct mmr_imp_thread *t,
		     uint64_t start, uint64_t len, struct mmr_imp_part *out,
		     int max)
{
	struct mmr_imp_proc *p = t->proc;
	uint64_t end = len ? start + page_up(len) : start + 1, a = start;
	int n = 0, i;

	if (end < start)
		end = UINT64_MAX;
	while (a < end && n < max) {
		struct mmr_imp_map *m;
		uint64_t to;

		i = newest_at(p, a, false);
		if (i < 0 && a == start)
			i = newest_at(p, a, im->o->from == MMR_IMPORT_SYZ);
		if (i < 0) {
			a = next_start(p, a, end, 0);
			continue;
		}
		m = &p->map[i];
		to = m->start + m->len < end ? m->start + m->len : end;
		to = next_start(p, a, to, m->seq);
		out[n++] = (struct mmr_imp_part){
			.ref = i,
			.off = a - m->start,
			.len = to - a,
			.to_end = to == m->start + m->len,
		};
		a = to;
	}
	return n;
}

#define LOW (64ULL << 30)
#define MIDDLE (160ULL << 30)

/*
 * mmap goes down from a place that is drawn for each program, so the first
 * mapping is put into the middle: the same program then has the same places.
 * What programs place low themselves is there in the arena, too.
 */
bool mmr_imp_map_at(struct mmr_imp_proc *p, uint64_t a, uint64_t len,
		    int64_t *at)
{
	*at = (int64_t)a;
	if (a < LOW)
		return len <= LOW - a;
	if (!p->has_arena) {
		p->has_arena = true;
		p->arena_base = a - MIDDLE;
	}
	*at = (int64_t)(a - p->arena_base);
	return *at >= (int64_t)LOW && *at <= MMR_AT_MAX &&
	       len <= (uint64_t)(MMR_AT_MAX - *at);
}

void mmr_imp_map_clear(struct mmr_imp_proc *p)
{
	int i;

	p->has_arena = false;
	for (i = 0; i < MMR_IMP_REFS; i++) {
		p->map[i].used = false;
		p->taken[MMR_IMP_MAP][i] = false;
	}
}

void mmr_imp_map_inherit(struct mmr_imp *im, struct mmr_imp_proc *child,
			 const struct mmr_imp_proc *parent)
{
	int i;

	(void)im;
	memcpy(child->map, parent->map, sizeof(child->map));
	memcpy(child->taken, parent->taken, sizeof(child->taken));
	memcpy(child->obj, parent->obj, sizeof(child->obj));
	child->nobjs = parent->nobjs;
	child->has_arena = parent->has_arena;
	child->arena_base = parent->arena_base;
	/* Its values are those of the fork: nobody to wait for. */
	for (i = 0; i < MMR_IMP_REFS; i++) {
		child->map[i].maker = NULL;
		child->map[i].latch = -1;
	}
}

bool mmr_imp_map_placed(const struct mmr_imp *im, uint64_t start, uint64_t len)
{
	int i;

	if (im->o->from == MMR_IMPORT_SYZ)
		return true;
	for (i = 0; i < im->nfixed; i++)
		if (im->fixed[i][0] < start + len &&
		    im->fixed[i][0] + im->fixed[i][1] > start)
			return true;
	return false;
}

/* -- objects ------------------------------------------------------------ */

struct mmr_span mmr_imp_key(struct mmr_imp *im, struct mmr_span arg, char type,
			    char buf[24])
{
	struct mmr_span s = mmr_span_trim(arg);
	int64_t v;
	int i;

	if (im->o->from == MMR_IMPORT_SYZ) {
		/* r0, r0+0x1, or what &(..)=<r0=>x hands over */
		for (i = 0; i < s.len && i < 20; i++)
			if (s.s[i] == '/' || s.s[i] == '+')
				break;
		s.len = i < 20 ? i : 0;
		return s;
	}
	/* 3</usr/lib/x.so>, or the comment of a pid with -Y */
	for (i = 0; i < s.len; i++)
		if (s.s[i] == '<')
			s.len = i;
	if (!mmr_imp_integer(im, s, &v))
		return (struct mmr_span){buf, 0};
	snprintf(buf, 24, "%c%lld", type, (long long)v);
	return (struct mmr_span){buf, (int)strlen(buf)};
}

struct mmr_imp_obj *mmr_imp_obj_find(struct mmr_imp_proc *p,
				     struct mmr_span key)
{
	int i;

	for (i = p->nobjs - 1; i >= 0 && key.len; i--)
		if (mmr_span_is(key, p->obj[i].key))
			return &p->obj[i];
	return NULL;
}

void mmr_imp_obj_drop(struct mmr_imp_proc *p, struct mmr_span key)
{
	struct mmr_imp_obj *o = mmr_imp_obj_find(p, key);

	if (!o)
		return;
	if (o->ref >= 0)
		p->taken[o->kind][o->ref] = false;
	memmove(o, o + 1, (size_t)(&p->obj[p->nobjs] - (o + 1)) * sizeof(*o));
	p->nobjs--;
}

struct mmr_imp_obj *mmr_imp_obj_add(struct mmr_imp *im, struct mmr_imp_proc *p,
				    struct mmr_span key, enum mmr_imp_kind k,
				    int ref)
{
	struct mmr_imp_obj *o;

	(void)im;
	if (!key.len || key.len >= (int)sizeof(o->key))
		return NULL;
	o = mmr_imp_obj_find(p, key);
	/* A number that is used again: whatever it was has gone unseen. */
	if (o && o->ref >= 0 && (o->kind != k || o->ref != ref))
		p->taken[o->kind][o->ref] = false;
	if (!o && p->nobjs < MMR_IMP_REFS)
		o = &p->obj[p->nobjs++];
	if (!o)
		return NULL;
	memset(o, 0, sizeof(*o));
	memcpy(o->key, key.s, (size_t)key.len);
	o->kind = k;
	o->ref = ref;
	return o;
}
