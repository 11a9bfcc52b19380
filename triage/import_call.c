// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls that a descriptor alone does not explain: what makes threads and
 * processes, what ends them, what comes through ioctl, and what moves.
 */
#include <linux/futex.h>
#include <linux/sched.h>
#include <string.h>

#include "../ops/args.h"
#include "import_call.h"

/* A latch that `from` opens as soon as it has done what it did so far. */
static int open_latch(struct mmr_imp *im, struct mmr_imp_thread *from)
{
	const struct mmr_op *op = mmr_op_by_name("signal");
	struct mmr_imp_node *n;

	if (im->nlatches == MMR_IMP_LATCHES || !op)
		return -1;
	n = mmr_imp_node(im, op);
	if (!n ||
	    !mmr_imp_set_name(n, "latch", mmr_imp_str(im, "l%d", im->nlatches)))
		return -1;
	mmr_imp_insert(im, &from->nodes, n);
	return im->nlatches++;
}

static void wait_latch(struct mmr_imp *im, struct mmr_imp_thread *t, int latch)
{
	const struct mmr_op *op = mmr_op_by_name("wait");
	struct mmr_imp_node *n = op ? mmr_imp_node(im, op) : NULL;

	if (n && mmr_imp_set_name(n, "latch", mmr_imp_str(im, "l%d", latch)))
		mmr_imp_append(im, &t->nodes, n);
}

/* The thread, if it has not been merged into another one since. */
static struct mmr_imp_thread *still_there(struct mmr_imp_proc *p,
					  const struct mmr_imp_thread *t)
{
	struct mmr_imp_thread *i;

	for (i = p->threads; i && i != t; i = i->next)
		;
	return i;
}

void mmr_imp_order(struct mmr_imp *im, struct mmr_imp_thread *t, int ref)
{
	struct mmr_imp_map *m = &t->proc->map[ref];
	struct mmr_imp_thread *maker = still_there(t->proc, m->maker);

	/* syzkaller's calls do not wait for each other; without times, each
	 * call waits for the one before. */
	if (im->o->from == MMR_IMPORT_SYZ || im->untimed)
		return;
	/* Who was started after it was there cannot come too early. */
	if (!maker || maker == t || m->seq <= t->born ||
	    (m->seen_by[t->no / 32 % 8] >> t->no % 32 & 1))
		return;
	if (m->latch < 0)
		m->latch = open_latch(im, maker);
	if (m->latch < 0)
		return;
	m->seen_by[t->no / 32 % 8] |= 1u << t->no % 32;
	wait_latch(im, t, m->latch);
}

void mmr_imp_follow(struct mmr_imp *im, struct mmr_imp_thread *t)
{
	struct mmr_imp_thread *last = t->proc->last_caller;
	int latch;

	t->proc->last_caller = t;
	if (!im->untimed || !last || last == t || last->ended ||
	    (!t->nodes.n && t->is_template)) /* just started */
		return;
	latch = open_latch(im, last);
	if (latch >= 0)
		wait_latch(im, t, latch);
}

/* -- threads and processes ---------------------------------------------- */

/* flags of clone, or in the structure of clone3; by name or the first. */
static int64_t clone_flags(struct mmr_imp_special *k)
{
	const char *at, *end = k->c->text.s + k->c->text.len;
	struct mmr_span leaf[2];
	int64_t v = 0;

	at = k->c->text.len > 6
		     ? memmem(k->c->text.s, (size_t)k->c->text.len, "flags=", 6)
		     : NULL;
	if (at) {
		struct mmr_span s = {at + 6, 0};

		while (s.s + s.len < end && !strchr(",}) ", s.s[s.len]))
			s.len++;
		mmr_imp_integer(k->im, s, &v);
	} else if (k->c->nargs && mmr_span_leaves(k->c->arg[0], leaf, 2) > 0) {
		mmr_imp_integer(k->im, leaf[0], &v);
	}
	return v;
}

static enum mmr_imp_did spawn_thread(struct mmr_imp_special *k,
				     const char *body, int64_t pid,
				     struct mmr_imp_thread *task)
{
	struct mmr_imp_node *n = mmr_imp_new(k, "thread_spawn");
	struct mmr_span key = k->c->var;
	char buf[24];
	int ref;

	if (!n || !mmr_imp_set_name(n, "body", body))
		return MMR_IMP_MAPPED;
	if (task) {
		task->spawn = n;
		task->spawner = &k->t->nodes;
	}
	ref = mmr_imp_ref_take(k->im, k->t->proc, MMR_IMP_THREAD);
	if (k->c->returned) {
		snprintf(buf, sizeof(buf), "t%lld", (long long)pid);
		key = (struct mmr_span){buf, (int)strlen(buf)};
	}
	/* Without a name to find it by, nobody joins it. */
	if (!mmr_imp_obj_add(k->im, k->t->proc, key, MMR_IMP_THREAD, ref) &&
	    ref >= 0) {
		k->t->proc->taken[MMR_IMP_THREAD][ref] = false;
		ref = -1;
	}
	n->ref = mmr_imp_ref_name(k->im, MMR_IMP_THREAD, ref);
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

static enum mmr_imp_did spawn_process(struct mmr_imp_special *k,
				      const char *name, int64_t pid,
				      struct mmr_imp_proc *child)
{
	struct mmr_imp_node *n = mmr_imp_new(k, "process_spawn");
	struct mmr_span key = k->c->var;
	char buf[24];
	int ref;

	if (!n || !mmr_imp_set_name(n, "process", name))
		return MMR_IMP_MAPPED;
	if (child) {
		child->spawn = n;
		child->spawner = &k->t->nodes;
	}
	ref = mmr_imp_ref_take(k->im, k->t->proc, MMR_IMP_PROCESS);
	if (k->c->returned) {
		snprintf(buf, sizeof(buf), "p%lld", (long long)pid);
		key = (struct mmr_span){buf, (int)strlen(buf)};
	}
	if (!mmr_imp_obj_add(k->im, k->t->proc, key, MMR_IMP_PROCESS, ref) &&
	    ref >= 0) {
		k->t->proc->taken[MMR_IMP_PROCESS][ref] = false;
		ref = -1;
	}
	n->ref = mmr_imp_ref_name(k->im, MMR_IMP_PROCESS, ref);
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

static enum mmr_imp_did on_clone(struct mmr_imp_special *k)
{
	bool plain = mmr_span_is(k->c->name, "fork") ||
		     mmr_span_is(k->c->name, "vfork");
	int64_t flags = plain ? 0 : clone_flags(k);
	bool is_thread = flags & CLONE_THREAD;
	struct mmr_imp_thread *task;

	if (mmr_imp_failed(k))
		return MMR_IMP_IGNORED;
	/* A child of syzkaller's does nothing of its own. */
	if (k->im->o->from == MMR_IMPORT_SYZ)
		return is_thread ? spawn_thread(k, "idle", 0, NULL)
				 : spawn_process(k, "idle", 0, NULL);
	if (!k->c->returned)
		return mmr_imp_unmapped(k, "its child is not known");
	task = mmr_imp_new_task(k->im, k->t, k->c->ret, is_thread);
	if (!task)
		return mmr_imp_unmapped(
			k, is_thread ? "too many threads for a case"
				     : "too many processes for a case");
	task->last_ns = k->c->start_ns;
	return is_thread ? spawn_thread(k, task->name, k->c->ret, task)
			 : spawn_process(k, task->proc->name, k->c->ret,
					 task->proc);
}

static enum mmr_imp_did reap(struct mmr_imp_special *k, int64_t pid)
{
	struct mmr_imp_node *n = mmr_imp_new(k, "process_reap");
	struct mmr_imp_obj *o;
	struct mmr_span key;
	char buf[24];

	snprintf(buf, sizeof(buf), "p%lld", (long long)pid);
	key = (struct mmr_span){buf, (int)strlen(buf)};
	o = mmr_imp_obj_find(k->t->proc, key);
	if (!o || o->ref < 0 || o->kind != MMR_IMP_PROCESS || !n)
		return MMR_IMP_IGNORED;
	mmr_imp_set_name(n, "p",
			 mmr_imp_ref_name(k->im, MMR_IMP_PROCESS, o->ref));
	mmr_imp_emit(k->im, k->t, n, k->c);
	/* The name is free; the number too, as it is reaped. */
	mmr_imp_obj_drop(k->t->proc, key);
	return MMR_IMP_MAPPED;
}

static enum mmr_imp_did on_wait4(struct mmr_imp_special *k)
{
	if (k->im->o->from == MMR_IMPORT_SYZ)
		return mmr_imp_unmapped(k, "it may wait for what never ends");
	if (!k->c->returned || k->c->err || k->c->ret <= 0)
		return MMR_IMP_IGNORED;
	return reap(k, k->c->ret);
}

static enum mmr_imp_did on_waitid(struct mmr_imp_special *k)
{
	int64_t pid;

	if (k->im->o->from == MMR_IMPORT_SYZ)
		return mmr_imp_unmapped(k, "it may wait for what never ends");
	if (mmr_imp_failed(k) || !mmr_imp_number(k, 1, &pid))
		return MMR_IMP_IGNORED;
	return reap(k, pid);
}

/* glibc waits on the word that the kernel clears at a thread's end, for as
 * long as it holds the thread's number. */
static enum mmr_imp_did on_futex(struct mmr_imp_special *k)
{
	struct mmr_imp_node *n = mmr_imp_new(k, "thread_join");
	struct mmr_imp_obj *o;
	struct mmr_span key;
	int64_t op, val;
	char buf[24];

	if (k->im->o->from == MMR_IMPORT_SYZ)
		return mmr_imp_unmapped(k, "it may wait for what never comes");
	if (!mmr_imp_number(k, 1, &op) || !mmr_imp_number(k, 2, &val))
		return MMR_IMP_IGNORED;
	op &= ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
	if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
		return MMR_IMP_IGNORED;
	snprintf(buf, sizeof(buf), "t%lld", (long long)val);
	key = (struct mmr_span){buf, (int)strlen(buf)};
	o = mmr_imp_obj_find(k->t->proc, key);
	if (!o || o->ref < 0 || o->kind != MMR_IMP_THREAD || !n)
		return MMR_IMP_IGNORED;
	mmr_imp_set_name(n, "t",
			 mmr_imp_ref_name(k->im, MMR_IMP_THREAD, o->ref));
	mmr_imp_emit(k->im, k->t, n, k->c);
	mmr_imp_obj_drop(k->t->proc, key);
	return MMR_IMP_MAPPED;
}

static enum mmr_imp_did on_kill(struct mmr_imp_special *k)
{
	bool by_fd = mmr_span_is(k->c->name, "pidfd_send_signal");
	enum mmr_imp_kind kind = by_fd ? MMR_IMP_PIDFD : MMR_IMP_PROCESS;
	struct mmr_imp_obj *o = mmr_imp_object(k, 0, by_fd ? 'f' : 'p', kind);
	struct mmr_imp_node *n = mmr_imp_new(k, "kill");
	int64_t sig;

	if (!o || !n)
		return mmr_imp_unmapped(k,
					"whom it signals is not in the case");
	if (!mmr_imp_number(k, 1, &sig) ||
	    !mmr_imp_set(k->im, n, "signal", sig))
		return mmr_imp_unmapped(k, "a signal that no operation sends");
	mmr_imp_set_name(n, "p", mmr_imp_ref_name(k->im, kind, o->ref));
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

static enum mmr_imp_did on_exit_group(struct mmr_imp_special *k)
{
	struct mmr_imp_node *n = mmr_imp_new(k, "exit_group");
	struct mmr_imp_thread *i;
	bool others = false;
	int64_t status = 0;

	for (i = k->t->proc->threads; i; i = i->next) {
		others |= i != k->t && !i->ended;
		i->ended = true;
	}
	/* Alone, or at the end of syzkaller's, its end says the same. */
	if (!n || !others || k->im->o->from == MMR_IMPORT_SYZ)
		return MMR_IMP_IGNORED;
	mmr_imp_number(k, 0, &status);
	mmr_imp_set(k->im, n, "status", status & 255);
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

static enum mmr_imp_did on_execve(struct mmr_imp_special *k)
{
	if (k->im->o->from == MMR_IMPORT_STRACE && !mmr_imp_failed(k))
		mmr_imp_map_clear(k->t->proc);
	return MMR_IMP_IGNORED;
}

/* -- addresses ---------------------------------------------------------- */

/* address, length, and nothing else that counts */
static enum mmr_imp_did on_mincore(struct mmr_imp_special *k)
{
	struct mmr_imp_node *n = mmr_imp_new(k, "mincore");
	struct mmr_imp_part part;
	int64_t len = 0;
	uint64_t addr;

	if (!n)
		return mmr_imp_unmapped(k, "no operation is this call");
	if (k->c->nargs < 2 || !mmr_imp_address(k->im, k->c->arg[0], &addr) ||
	    !mmr_imp_number(k, 1, &len) || len <= 0 ||
	    !mmr_imp_map_find(k->im, k->t, addr, (uint64_t)len, &part, 1))
		return mmr_imp_unmapped(k,
					"no mapping at this address is known");
	mmr_imp_set_part(k->im, n, &part);
	mmr_imp_order(k->im, k->t, part.ref);
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

static bool mremap_place(struct mmr_imp_special *k, struct mmr_imp_node *n,
			 int64_t flags, uint64_t to, uint64_t len)
{
	int64_t at;

	if (!(flags & MREMAP_FIXED))
		return true;
	return mmr_imp_map_at(k->t->proc, to, len, &at) &&
	       mmr_imp_set(k->im, n, "at", at);
}

static enum mmr_imp_did on_mremap(struct mmr_imp_special *k)
{
	struct mmr_imp_node *n = mmr_imp_new(k, "mremap");
	struct mmr_imp_proc *p = k->t->proc;
	int64_t old = 0, len = 0, flags = 0;
	struct mmr_imp_part part;
	uint64_t addr, to = 0;
	int ref;

	if (!n)
		return mmr_imp_unmapped(k, "no operation is this call");
	if (k->c->nargs < 4 || !mmr_imp_address(k->im, k->c->arg[0], &addr) ||
	    !mmr_imp_number(k, 1, &old) || !mmr_imp_number(k, 2, &len) ||
	    !mmr_imp_number(k, 3, &flags) || old < 0 || len <= 0)
		return mmr_imp_unmapped(k, "it has too few arguments");
	if (!mmr_imp_map_find(k->im, k->t, addr, (uint64_t)old, &part, 1))
		return mmr_imp_unmapped(k,
					"no mapping at this address is known");
	if (k->c->nargs > 4)
		mmr_imp_address(k->im, k->c->arg[4], &to);
	mmr_imp_set_part(k->im, n, &part);
	if (len != old && !mmr_imp_set(k->im, n, "new", len))
		return mmr_imp_unmapped(k,
					"a length beyond what a case can say");
	mmr_imp_set(k->im, n, "flags", flags);
	if (!mremap_place(k, n, flags, to, (uint64_t)len))
		return mmr_imp_unmapped(k,
					"a fixed place that the arena does not "
					"reach");
	mmr_imp_order(k->im, k->t, part.ref);
	if (!mmr_imp_failed(k)) {
		if (k->c->returned)
			to = (uint64_t)k->c->ret;
		else if (!(flags & MREMAP_FIXED))
			to = addr; /* where it goes is not known */
		else
			mmr_imp_map_gone(p, to, (uint64_t)len);
		if (!(flags & 4)) /* MREMAP_DONTUNMAP */
			mmr_imp_map_gone(p, addr, (uint64_t)old);
		ref = mmr_imp_ref_take(k->im, p, MMR_IMP_MAP);
		if (ref >= 0)
			mmr_imp_map_add(k->im, k->t, ref, to, (uint64_t)len);
		n->ref = mmr_imp_ref_name(k->im, MMR_IMP_MAP, ref);
	}
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

/* pid, count, pages, nodes, status, flags: the pages are a run of a mapping,
 * as far as the first one and their number say. */
static enum mmr_imp_did on_move_pages(struct mmr_imp_special *k)
{
	struct mmr_imp_obj *p = mmr_imp_object(k, 0, 'p', MMR_IMP_PROCESS);
	struct mmr_imp_node *n = mmr_imp_new(k, "move_pages");
	struct mmr_imp_part part;
	int64_t count = 0, flags, node, pid = 0;
	struct mmr_span leaf[2];
	uint64_t addr;

	if (!n)
		return mmr_imp_unmapped(k, "no operation is this call");
	mmr_imp_number(k, 0, &pid);
	if (!p && pid && pid != k->t->proc->threads->key)
		return mmr_imp_unmapped(k, "that process is not in the case");
	if (k->c->nargs < 6 || !mmr_imp_number(k, 1, &count) || count <= 0 ||
	    count > 1 << 20 || mmr_span_leaves(k->c->arg[2], leaf, 1) < 1 ||
	    !mmr_imp_address(k->im, leaf[0], &addr))
		return mmr_imp_unmapped(k, "nothing is known of its pages");
	if (!mmr_imp_map_find(k->im, k->t, addr, (uint64_t)count * 4096, &part,
			      1) &&
	    (!mmr_imp_data(k->im, addr) ||
	     !mmr_imp_map_find(k->im, k->t, addr, (uint64_t)count * 4096, &part,
			       1)))
		return mmr_imp_unmapped(k, "no mapping at this address is "
					   "known");
	if (p)
		mmr_imp_set_name(
			n, "p",
			mmr_imp_ref_name(k->im, MMR_IMP_PROCESS, p->ref));
	mmr_imp_set_part(k->im, n, &part);
	if (mmr_span_leaves(k->c->arg[3], leaf, 1) > 0 &&
	    mmr_imp_integer(k->im, leaf[0], &node) && node >= 0 && node < 64 &&
	    !mmr_span_is(mmr_span_trim(k->c->arg[3]), "NULL") &&
	    !mmr_span_is(mmr_span_trim(k->c->arg[3]), "0x0"))
		mmr_imp_set(k->im, n, "to", node);
	if (mmr_imp_number(k, 5, &flags) && flags)
		mmr_imp_set(k->im, n, "flags", flags);
	mmr_imp_order(k->im, k->t, part.ref);
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

static enum mmr_imp_did on_nothing(struct mmr_imp_special *k)
{
	(void)k;
	return MMR_IMP_IGNORED;
}

static const struct {
	const char *name;
	enum mmr_imp_did (*fn)(struct mmr_imp_special *);
} special[] = {
	{"memfd_create", mmr_imp_memfd},
	{"userfaultfd", mmr_imp_userfaultfd},
	{"ioctl", mmr_imp_ioctl},
	{"close", mmr_imp_close},
	{"clone", on_clone},
	{"clone3", on_clone},
	{"fork", on_clone},
	{"vfork", on_clone},
	{"syz_clone", on_clone},
	{"syz_clone3", on_clone},
	{"wait4", on_wait4},
	{"waitid", on_waitid},
	{"futex", on_futex},
	{"kill", on_kill},
	{"pidfd_send_signal", on_kill},
	{"exit_group", on_exit_group},
	{"exit", on_nothing},
	{"execve", on_execve},
	{"brk", on_nothing},
	{"move_pages", on_move_pages},
	{"mincore", on_mincore},
	{"mremap", on_mremap},
};

/* Another name of a call that a descriptor knows. */
static const struct {
	const char *name, *as;
} aliases[] = {
	{"pkey_mprotect", "mprotect"},
	{"mmap2", "mmap"},
	{"ftruncate64", "ftruncate"},
};

/* Calls about memory: when they cannot be mapped, a log says so one by one.
 * Everything else in a log is a program's own business. */
static bool is_memory(struct mmr_span name)
{
	static const char *const names[] = {
		"mmap",
		"munmap",
		"mremap",
		"mprotect",
		"madvise",
		"mlock",
		"mlock2",
		"munlock",
		"mlockall",
		"munlockall",
		"msync",
		"mincore",
		"mbind",
		"set_mempolicy",
		"get_mempolicy",
		"move_pages",
		"migrate_pages",
		"process_madvise",
		"shmat",
		"shmdt",
		"userfaultfd",
		"memfd_create",
		"mseal",
		"process_mrelease",
		"clone",
		"clone3",
		"remap_file_pages",
		"fork",
		"vfork",
		"pkey_mprotect",
		"memfd_secret",
		"process_vm_readv",
		"process_vm_writev",
		"set_mempolicy_home_node",
		"map_shadow_stack",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (mmr_span_is(name, names[i]))
			return true;
	return false;
}

enum mmr_imp_did mmr_imp_call(struct mmr_imp *im, struct mmr_imp_thread *t,
			      const struct mmr_imp_call *c, char *why, size_t n)
{
	struct mmr_imp_special k = {im, t, c, why, n};
	struct mmr_imp_call other;
	enum mmr_imp_did did;
	size_t i;

	why[0] = '\0';
	for (i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (mmr_span_is(c->name, special[i].name)) {
			did = special[i].fn(&k);
			break;
		}
	if (i == sizeof(special) / sizeof(special[0])) {
		other = *c;
		for (i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
			if (mmr_span_is(c->name, aliases[i].name))
				other.name = (struct mmr_span){
					aliases[i].as,
					(int)strlen(aliases[i].as)};
		did = mmr_imp_by_descriptor(im, t, &other, why, n);
	}
	if (did == MMR_IMP_UNMAPPED && im->o->from == MMR_IMPORT_STRACE &&
	    !is_memory(c->name) && !mmr_span_is(c->name, "ioctl"))
		return MMR_IMP_IGNORED;
	return did;
}
