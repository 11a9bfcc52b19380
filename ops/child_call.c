// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Refs, draws, and the generic runner: a statement of a one-call op becomes
 * one system call by its descriptor alone.
 */
#include <linux/ioctl.h>
#include <linux/types.h>
#include <asm-generic/errno-base.h>
#include <linux/userfaultfd.h>

#include "child_machine.h"
#include "rng.h"

struct mmr_ref_value mmr_child_ref(struct mmr_child *c, int64_t index,
				   uint32_t kinds)
{
	struct mmr_ref_value v = { MMR_REF_NONE, 0, 0 };
	struct mmr_ref *r;
	uint32_t seq;

	if (index < 0)
		return v;
	r = &c->process->refs[index];
	do {
		seq = atomic_load_explicit(&r->seq, memory_order_acquire);
		v.kind = atomic_load_explicit(&r->kind, memory_order_relaxed);
		v.a = atomic_load_explicit(&r->a, memory_order_relaxed);
		v.b = atomic_load_explicit(&r->b, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
	} while ((seq & 1) ||
		 seq != atomic_load_explicit(&r->seq, memory_order_relaxed));
	if (!(v.kind & kinds))
		v.kind = MMR_REF_NONE;
	return v;
}

void mmr_child_set_ref(struct mmr_child *c, int index, uint32_t kind,
		       int64_t a, int64_t b)
{
	struct mmr_ref *r;
	uint32_t seq;

	if (index < 0)
		return;
	r = &c->process->refs[index];
	seq = atomic_load_explicit(&r->seq, memory_order_relaxed);
	do {
		seq &= ~1u; /* another writer: wait until it is even */
	} while (!atomic_compare_exchange_weak_explicit(
		&r->seq, &seq, seq + 1, memory_order_acquire,
		memory_order_relaxed));
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&r->kind, kind, memory_order_relaxed);
	atomic_store_explicit(&r->a, a, memory_order_relaxed);
	atomic_store_explicit(&r->b, b, memory_order_relaxed);
	atomic_store_explicit(&r->seq, seq + 2, memory_order_release);
}

int64_t mmr_child_draw(struct mmr_child *c, const struct mmr_insn *in,
		       const struct mmr_operand *o)
{
	if (o->lo >= o->hi)
		return o->lo;
	return mmr_rng_range(
		mmr_rng_key(mmr_rng_key(in->tag, c->round), c->iteration),
		o->lo, o->hi);
}

static bool part_of(const struct mmr_ref_value *v, const struct mmr_insn *in,
		    int off, int len, uint64_t *addr, uint64_t *size)
{
	uint64_t start = 0, n;

	if (off >= 0)
		start = (uint64_t)in->arg[off].lo;
	if (start >= (uint64_t)v->b)
		return false;
	n = (uint64_t)v->b - start;
	if (len >= 0 && in->arg[len].lo > 0 && (uint64_t)in->arg[len].lo < n)
		n = (uint64_t)in->arg[len].lo;
	*addr = (uint64_t)v->a + start;
	*size = n;
	return true;
}

bool mmr_child_part(struct mmr_child *c, const struct mmr_insn *in, int map,
		    int off, int len, uint64_t *addr, uint64_t *size)
{
	struct mmr_ref_value v;

	v = mmr_child_ref(c, in->arg[map].lo, MMR_REF_MAPPING);
	return v.kind && part_of(&v, in, off, len, addr, size);
}

/* The arguments of one call; member: which process of a set. */
struct call {
	int64_t a[6];
	uint64_t word[6]; /* what FROM_POINTER points to */
	int64_t members; /* of the process set that it names, else 1 */
	uint64_t size; /* of the mapping's part, for `mapped` */
};

/* A process or pidfd argument.  0, -errno or MMR_SKIPPED. */
static int64_t process_arg(struct mmr_child *c, const struct mmr_insn *in,
			   const struct mmr_from_spec *f, int64_t member,
			   struct call *k, int64_t *out)
{
	struct mmr_ref_value v;

	v = mmr_child_ref(c, in->arg[f->arg].lo,
			  MMR_REF_PROCESS | MMR_REF_PIDFD);
	if (v.kind == MMR_REF_PIDFD && f->from == MMR_FROM_PIDFD) {
		*out = v.a;
		return 0;
	}
	if (v.kind != MMR_REF_PROCESS)
		return MMR_SKIPPED;
	k->members = v.b;
	if (f->from == MMR_FROM_PID) {
		*out = atomic_load(&c->procs[v.a + member].pid);
		return 0;
	}
	*out = mmr_child_pidfd(c, (uint32_t)(v.a + member));
	return *out < 0 ? *out : 0;
}

static int64_t one_arg(struct mmr_child *c, const struct mmr_insn *in,
		       const struct mmr_op *op, int i, int64_t member,
		       struct call *k)
{
	const struct mmr_from_spec *f = &op->call.from[i];
	const struct mmr_plan *plan = &c->machine->plan[op->id];
	const struct mmr_operand *o = &in->arg[f->arg];
	struct mmr_ref_value v;
	uint64_t addr, size;

	switch (f->from) {
	case MMR_FROM_CONST:
		k->a[i] = f->k;
		return 0;
	case MMR_FROM_VALUE:
		k->a[i] = o->lo;
		return 0;
	case MMR_FROM_POINTER:
		k->word[i] = (uint64_t)o->lo;
		k->a[i] = mmr_sys_ptr(&k->word[i]);
		return 0;
	case MMR_FROM_ADDR:
	case MMR_FROM_LEN:
		v = mmr_child_ref(c, o->lo, MMR_REF_MAPPING);
		if (!v.kind ||
		    !part_of(&v, in, plan->off, plan->len, &addr, &size))
			return MMR_SKIPPED;
		k->size = size;
		k->a[i] = (int64_t)(f->from == MMR_FROM_ADDR ? addr : size);
		return 0;
	case MMR_FROM_ARENA:
		k->a[i] = in->set >> f->arg & 1 ?
				  (int64_t)MMR_ARENA_BASE + o->lo :
				  0;
		return 0;
	case MMR_FROM_PID:
	case MMR_FROM_PIDFD:
		if (o->lo < 0) { /* left out: the process itself */
			k->a[i] = 0;
			return 0;
		}
		return process_arg(c, in, f, member, k, &k->a[i]);
	case MMR_FROM_FD:
		k->a[i] = -1;
		if (o->lo < 0)
			return 0;
		v = mmr_child_ref(c, o->lo,
				  MMR_REF_FILE | MMR_REF_PIDFD | MMR_REF_UFFD);
		if (!v.kind)
			return MMR_SKIPPED;
		k->a[i] = v.a;
		return 0;
	default:
		return -EINVAL;
	}
}

static void count_mapped(struct mmr_child *c, int64_t n)
{
	atomic_fetch_add_explicit(&c->proc->mapped, (uint64_t)n,
				  memory_order_relaxed);
}

static void made(struct mmr_child *c, const struct mmr_insn *in,
		 const struct mmr_op *op, int64_t ret)
{
	const struct mmr_plan *plan = &c->machine->plan[op->id];
	int64_t len = 0;

	if (op->makes == MMR_REF_MAPPING) {
		if (plan->len >= 0)
			len = in->arg[plan->len].lo;
		count_mapped(c, len);
	}
	mmr_child_set_ref(c, in->dst, op->makes, ret, len);
}

int64_t mmr_child_call(struct mmr_child *c, const struct mmr_insn *in,
		       const struct mmr_op *op)
{
	int64_t ret, member = 0, first = 0;
	struct call k;
	int i;

	k.members = 1;
	k.size = 0;
	do {
		for (i = 0; i < 6 && op->call.from[i].from; i++) {
			ret = one_arg(c, in, op, i, member, &k);
			if (ret == MMR_SKIPPED)
				return ret;
			if (ret < 0)
				goto next;
		}
		for (; i < 6; i++)
			k.a[i] = 0;
		ret = mmr_sys6(op->call.nr, k.a[0], k.a[1], k.a[2], k.a[3],
			       k.a[4], k.a[5]);
		if (ret >= 0 && op->makes)
			made(c, in, op, ret);
		if (ret >= 0 && op->id == MMR_OP_munmap)
			count_mapped(c, -(int64_t)k.size);
next:
		if (!member || (ret < 0 && first >= 0))
			first = ret;
	} while (++member < k.members);
	return first;
}

int64_t mmr_child_close(struct mmr_child *c, const struct mmr_insn *in,
			int arg)
{
	struct mmr_ref_value v;

	v = mmr_child_ref(c, in->arg[arg].lo,
			  MMR_REF_FILE | MMR_REF_PIDFD | MMR_REF_UFFD);
	if (!v.kind)
		return MMR_SKIPPED;
	return mmr_sys1(__NR_close, v.a);
}

int64_t mmr_child_userfaultfd(struct mmr_child *c, const struct mmr_insn *in,
			      int64_t flags)
{
	struct uffdio_api api = { .api = UFFD_API };
	int64_t fd, ret;

	fd = mmr_sys1(__NR_userfaultfd, flags);
	if (fd < 0)
		return fd;
	ret = mmr_sys3(__NR_ioctl, fd, (int64_t)UFFDIO_API, mmr_sys_ptr(&api));
	if (ret < 0) {
		mmr_sys1(__NR_close, fd);
		return ret;
	}
	mmr_child_set_ref(c, in->dst, MMR_REF_UFFD, fd, 0);
	return fd;
}

int64_t mmr_child_uffd_register(struct mmr_child *c, const struct mmr_insn *in,
				int uffd, int map, int off, int len,
				uint64_t mode)
{
	struct uffdio_register reg = { .mode = mode };
	struct mmr_ref_value v;
	uint64_t addr, size;

	v = mmr_child_ref(c, in->arg[uffd].lo, MMR_REF_UFFD);
	if (!v.kind || !mmr_child_part(c, in, map, off, len, &addr, &size))
		return MMR_SKIPPED;
	reg.range.start = addr;
	reg.range.len = size;
	return mmr_sys3(__NR_ioctl, v.a, (int64_t)UFFDIO_REGISTER,
			mmr_sys_ptr(&reg));
}
