// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What each operation does to the shadow of its process.  An operation that
 * is not here changes nothing and is taken for valid.
 */
#include "shadow.h"

#include <string.h>
#include <sys/mman.h>

int64_t mmr_shadow_bytes(int64_t count, enum mmr_unit unit)
{
	static const int64_t size[] = {[MMR_UNIT_BYTE] = 1,
				       [MMR_UNIT_PAGE] = 4096,
				       [MMR_UNIT_HUGE] = 2 << 20};

	return count * size[unit];
}

struct mmr_shadow_map *mmr_shadow_map(struct mmr_shadow *sh, const char *name)
{
	for (int i = 0; name && i < sh->nmaps; i++)
		if (!strcmp(sh->maps[i].name, name))
			return &sh->maps[i];
	return NULL;
}

struct mmr_shadow_ref *mmr_shadow_ref(struct mmr_shadow *sh, const char *name)
{
	for (int i = 0; name && i < sh->nrefs; i++)
		if (!strcmp(sh->refs[i].name, name))
			return &sh->refs[i];
	return NULL;
}

struct mmr_shadow_ref *mmr_shadow_last(struct mmr_shadow *sh, uint32_t kind)
{
	for (int i = sh->nrefs - 1; i >= 0; i--)
		if ((sh->refs[i].kind & kind) &&
		    sh->refs[i].life != MMR_SHADOW_CLOSED)
			return &sh->refs[i];
	return NULL;
}

static const struct mmr_value *arg(const struct mmr_stmt *s, const char *name)
{
	static const struct mmr_value none;
	int i = mmr_op_arg(s->op, name);

	return i >= 0 ? &s->args[i] : &none;
}

/* The ref that the first argument names. */
static const char *first_ref(const struct mmr_stmt *s)
{
	if (!s->op->nargs || s->op->args[0].type != MMR_ARG_REF)
		return NULL;
	return s->args[0].name;
}

static struct mmr_shadow_ref *new_ref(struct mmr_shadow *sh,
				      const struct mmr_stmt *s)
{
	struct mmr_shadow_ref *r = mmr_shadow_ref(sh, s->ref);

	if (!r) {
		if (sh->nrefs == MMR_SHADOW_REFS)
			return NULL;
		r = &sh->refs[sh->nrefs++];
	}
	memset(r, 0, sizeof(*r));
	r->name = s->ref;
	r->kind = s->op->makes;
	r->thread = sh->thread;
	return r;
}

static bool step_mmap(struct mmr_shadow *sh, const struct mmr_stmt *s)
{
	const struct mmr_value *len = arg(s, "len");
	int64_t flags = arg(s, "flags")->lo, prot = arg(s, "prot")->lo;
	struct mmr_shadow_ref *file = mmr_shadow_ref(sh, arg(s, "fd")->name);
	struct mmr_shadow_map *m = mmr_shadow_map(sh, s->ref);

	if (len->lo <= 0 || !(flags & (MAP_SHARED | MAP_PRIVATE)) ||
	    (flags & MAP_SHARED && flags & MAP_PRIVATE))
		return false;
	if (!(flags & MAP_ANONYMOUS) &&
	    (!file || file->life == MMR_SHADOW_CLOSED))
		return false;
	if (!s->ref)
		return true;
	if (!m) {
		if (sh->nmaps == MMR_SHADOW_MAPS)
			return true;
		m = &sh->maps[sh->nmaps++];
	}
	*m = (struct mmr_shadow_map){
		.name = s->ref,
		.made = s,
		.file = arg(s, "fd")->name,
		.shared = flags & MAP_SHARED,
		.hugetlb = flags & MAP_HUGETLB || (file && file->hugetlb),
		.unit = len->unit,
		.len = len->lo,
		.state = MMR_SHADOW_WHOLE,
		.readable = prot & PROT_READ,
		.writable = prot & PROT_WRITE,
		.untouched = true,
	};
	return true;
}

/* Is the statement's part of m all of it?  *ok: the call takes it. */
static bool whole(const struct mmr_shadow_map *m, const struct mmr_stmt *s,
		  bool *ok)
{
	const struct mmr_value *off = arg(s, "off"), *len = arg(s, "len");
	int64_t size = mmr_shadow_bytes(m->len, m->unit), align = 4096;
	int64_t o = mmr_shadow_bytes(off->lo, off->unit);
	int64_t l = mmr_shadow_bytes(len->lo, len->unit);

	if (m->hugetlb)
		align = 2 << 20;
	*ok = o % align == 0 && o < size && o + l <= size &&
	      (!m->hugetlb || l % align == 0);
	return o == 0 && (l == 0 || l >= size);
}

static bool step_munmap(struct mmr_shadow_map *m, const struct mmr_stmt *s)
{
	bool ok, all = whole(m, s, &ok);

	if (!ok || m->state == MMR_SHADOW_GONE)
		return false;
	m->state = all ? MMR_SHADOW_GONE : MMR_SHADOW_HOLED;
	return true;
}

static bool step_mprotect(struct mmr_shadow_map *m, const struct mmr_stmt *s)
{
	int64_t prot = arg(s, "prot")->lo;
	bool ok, all = whole(m, s, &ok);

	if (!ok || m->state != MMR_SHADOW_WHOLE)
		return false;
	m->readable = prot & PROT_READ && (all || m->readable);
	m->writable = prot & PROT_WRITE && (all || m->writable);
	m->untouched = all && prot == arg(m->made, "prot")->lo;
	return true;
}

static const char *advice_name(const struct mmr_stmt *s)
{
	int i = mmr_op_arg(s->op, "advice");

	for (const struct mmr_name *n = i < 0 ? NULL : s->op->args[i].names;
	     n && n->name; n++)
		if (n->value == s->args[i].lo)
			return n->name;
	return "";
}

/* Which advice is for which memory: from madvise(2) and mm/madvise.c. */
static bool advice_fits(const struct mmr_shadow_map *m, const char *a)
{
	bool anon = !m->file && !m->shared;

	if (!strcmp(a, "remove"))
		return m->shared && m->writable;
	if (!strcmp(a, "free"))
		return anon && !m->hugetlb;
	if (!strcmp(a, "populate_write"))
		return m->writable;
	if (!strcmp(a, "populate_read"))
		return m->readable;
	if (!strcmp(a, "willneed") || !strcmp(a, "mergeable") ||
	    !strcmp(a, "unmergeable"))
		return !m->hugetlb;
	if (!strcmp(a, "cold") || !strcmp(a, "pageout") ||
	    !strcmp(a, "hugepage") || !strcmp(a, "nohugepage"))
		return !m->hugetlb;
	/* Of less than a huge page there is nothing to collapse. */
	if (!strcmp(a, "collapse"))
		return anon && !m->hugetlb &&
		       mmr_shadow_bytes(m->len, m->unit) >= 4 << 20;
	return true;
}

static bool step_madvise(struct mmr_shadow_map *m, const struct mmr_stmt *s)
{
	bool ok;

	whole(m, s, &ok);
	return ok && m->state == MMR_SHADOW_WHOLE &&
	       advice_fits(m, advice_name(s));
}

static bool step_map(struct mmr_shadow *sh, const struct mmr_stmt *s)
{
	struct mmr_shadow_map *m = mmr_shadow_map(sh, first_ref(s));

	if (!m)
		return false;
	switch (s->op->id) {
	case MMR_OP_munmap:
		return step_munmap(m, s);
	case MMR_OP_mprotect:
		return step_mprotect(m, s);
	case MMR_OP_madvise:
		return step_madvise(m, s);
	case MMR_OP_write:
		return m->state == MMR_SHADOW_WHOLE && m->writable;
	default:
		return m->state == MMR_SHADOW_WHOLE && m->readable;
	}
}

static bool step_process(struct mmr_shadow *sh, const struct mmr_stmt *s)
{
	struct mmr_shadow_ref *r = mmr_shadow_ref(sh, first_ref(s));
	enum mmr_shadow_life was;

	if (!r)
		return false;
	/* Of another thread's process nothing is known: that is the race. */
	if (r->thread != sh->thread)
		return true;
	was = r->life;
	switch (s->op->id) {
	case MMR_OP_kill:
		/* SIGSTOP and SIGCONT kill nobody, but leave it doubtful. */
		r->life = MMR_SHADOW_KILLED;
		return was != MMR_SHADOW_CLOSED;
	case MMR_OP_process_mrelease:
		return was == MMR_SHADOW_KILLED;
	case MMR_OP_process_reap:
		r->life = MMR_SHADOW_REAPED;
		return was != MMR_SHADOW_REAPED;
	default:
		return true;
	}
}

static bool step_file(struct mmr_shadow *sh, const struct mmr_stmt *s)
{
	struct mmr_shadow_ref *r = mmr_shadow_ref(sh, first_ref(s));
	const struct mmr_value *len;

	if (!r || r->life == MMR_SHADOW_CLOSED)
		return false;
	if (s->op->id == MMR_OP_close) {
		r->life = MMR_SHADOW_CLOSED;
		return true;
	}
	len = arg(s, "len");
	r->len = mmr_shadow_bytes(len->lo, len->unit);
	return !r->hugetlb || r->len % (2 << 20) == 0;
}

static bool step_migrate(const struct mmr_stmt *s)
{
	/* Nodes 2 and up are on few machines. */
	return arg(s, "from")->lo && arg(s, "to")->lo &&
	       !((arg(s, "from")->lo | arg(s, "to")->lo) & ~3);
}

bool mmr_shadow_step(struct mmr_shadow *sh, const struct mmr_stmt *s)
{
	struct mmr_shadow_ref *r;

	if (s->kind != MMR_STMT_OP)
		return true;
	switch (s->op->id) {
	case MMR_OP_mmap:
		return step_mmap(sh, s);
	case MMR_OP_munmap:
	case MMR_OP_mprotect:
	case MMR_OP_madvise:
	case MMR_OP_write:
	case MMR_OP_read:
		return step_map(sh, s);
	case MMR_OP_kill:
	case MMR_OP_process_mrelease:
	case MMR_OP_process_reap:
	case MMR_OP_pidfd_open:
		if (s->ref)
			new_ref(sh, s);
		return step_process(sh, s);
	case MMR_OP_ftruncate:
	case MMR_OP_close:
		return step_file(sh, s);
	case MMR_OP_migrate_pages:
		return step_migrate(s);
	case MMR_OP_thread_join:
		return mmr_shadow_ref(sh, first_ref(s)) != NULL;
	default:
		if (!s->ref)
			return true;
		r = new_ref(sh, s);
		if (r && s->op->id == MMR_OP_memfd_create)
			r->hugetlb = arg(s, "flags")->lo & MFD_HUGETLB;
		return true;
	}
}
