// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Refs, draws, and the generic runner: a statement of a one-call op becomes
 * one system call by its descriptor alone.
 */
#include <linux/fcntl.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <asm-generic/errno-base.h>
#include <linux/userfaultfd.h>

#include "child_machine.h"
#include "sweep.h"

#define MAPPED_STEP (1 << 20)
#define MAPPED_OWN (1 << 17)

/* The value that this operation has read first. */
static void hold(struct mmr_child *c, int64_t index, struct mmr_ref_value *v)
{
	uint8_t i;

	for (i = 0; i < c->nheld; i++)
		if (c->held[i].index == index) {
			*v = c->held[i].v;
			return;
		}
	if (c->nheld < MMR_HELD_REFS) {
		c->held[c->nheld].index = index;
		c->held[c->nheld++].v = *v;
	}
}

MMR_HOT struct mmr_ref_value mmr_child_ref(struct mmr_child *c, int64_t index,
					   uint32_t kinds)
{
	struct mmr_ref_value v = {MMR_REF_NONE, 0, 0};
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
	if (MMR_RARELY(c->once))
		hold(c, index, &v);
	if (!(v.kind & kinds))
		v.kind = MMR_REF_NONE;
	return v;
}

MMR_HOT void mmr_child_set_ref(struct mmr_child *c, int index, uint32_t kind,
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
	} while (!atomic_compare_exchange_weak_explicit(&r->seq, &seq, seq + 1,
							memory_order_acquire,
							memory_order_relaxed));
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&r->kind, kind, memory_order_relaxed);
	atomic_store_explicit(&r->a, a, memory_order_relaxed);
	atomic_store_explicit(&r->b, b, memory_order_relaxed);
	atomic_store_explicit(&r->seq, seq + 2, memory_order_release);
}

int64_t mmr_child_draw(struct mmr_child *c, const struct mmr_insn *in, int arg)
{
	const struct mmr_operand *o = &in->arg[arg];
	int64_t ns = o->lo;
	uint64_t u;

	if (o->lo < o->hi) {
		u = mmr_rng_key(mmr_rng_key(in->tag, c->round), c->iteration);
		ns = in->log >> arg & 1 ? mmr_sweep_log(u, o->lo < 0)
					: mmr_rng_range(u, o->lo, o->hi);
	}
	atomic_store_explicit(&c->stats[in->stat].drawn, ns,
			      memory_order_relaxed);
	return ns;
}

int64_t mmr_child_offset(struct mmr_child *c, const struct mmr_insn *in,
			 int skew, int aim)
{
	const struct mmr_operand *o = &in->arg[skew], *a = &in->arg[aim];
	int64_t ns = o->lo;
	uint64_t u;

	if (o->lo < o->hi || a->lo || a->hi) {
		u = mmr_sweep(in->tag, in->dim, c->round, c->iteration);
		if (a->lo || a->hi)
			ns = mmr_sweep_aim(u, o->lo, o->hi, a->lo, a->hi);
		else if (in->log >> skew & 1)
			ns = mmr_sweep_log(u, o->lo < 0);
		else
			ns = mmr_rng_range(u, o->lo, o->hi);
	}
	atomic_store_explicit(&c->stats[in->stat].drawn, ns,
			      memory_order_relaxed);
	return ns;
}

MMR_HOT bool mmr_child_part(struct mmr_child *c, const struct mmr_insn *in,
			    int map, int off, int len, uint64_t *addr,
			    uint64_t *size)
{
	struct mmr_ref_value v;
	uint64_t start = 0, n;

	v = mmr_child_ref(c, in->arg[map].lo, MMR_REF_MAPPING);
	if (!v.kind)
		return false;
	if (off >= 0)
		start = (uint64_t)in->arg[off].lo;
	if (start >= (uint64_t)v.b)
		return false;
	n = (uint64_t)v.b - start;
	if (len >= 0 && in->arg[len].lo > 0 && (uint64_t)in->arg[len].lo < n)
		n = (uint64_t)in->arg[len].lo;
	*addr = (uint64_t)v.a + start;
	*size = n;
	return true;
}

/* The arguments of one call; member: which process of a set. */
struct call {
	int64_t a[6];
	uint64_t word[6]; /* what FROM_POINTER points to */
	int64_t members;  /* of the process set that it names, else 1 */
	int map; /* the mapping argument of addr and size, -1 none yet */
	uint64_t addr, size;
	struct mmr_iovec iov[6]; /* what FROM_IOV points to */
};

/* A process or pidfd argument.  0, -errno or MMR_SKIPPED. */
static int64_t process_arg(struct mmr_child *c, const struct mmr_insn *in,
			   const struct mmr_plan *plan, int i, int64_t member,
			   struct call *k, int64_t *out)
{
	struct mmr_ref_value v;

	v = mmr_child_ref(c, in->arg[plan->arg[i]].lo,
			  MMR_REF_PROCESS | MMR_REF_PIDFD);
	if (v.kind == MMR_REF_PIDFD && plan->from[i] == MMR_FROM_PIDFD) {
		*out = v.a;
		return 0;
	}
	if (v.kind != MMR_REF_PROCESS)
		return MMR_SKIPPED;
	k->members = v.b;
	if (plan->from[i] == MMR_FROM_PID) {
		/* 0, which would be the caller: reaped, in a former round. */
		*out = atomic_load(&c->procs[v.a + member].pid);
		return *out ? 0 : -ESRCH;
	}
	*out = mmr_child_pidfd(c, (uint32_t)(v.a + member));
	return *out < 0 ? *out : 0;
}

/* What is not a plain value: refs of all kinds. */
static int64_t ref_arg(struct mmr_child *c, const struct mmr_insn *in,
		       const struct mmr_plan *plan, int i, int64_t member,
		       struct call *k)
{
	const struct mmr_operand *o = &in->arg[plan->arg[i]];
	struct mmr_ref_value v;

	switch (plan->from[i]) {
	case MMR_PLAN_CONST:
		k->a[i] = mmr_table_op(in->op)->call.from[i].k;
		return 0;
	case MMR_FROM_POINTER:
		k->word[i] = (uint64_t)o->lo;
		k->a[i] = mmr_sys_ptr(&k->word[i]);
		return 0;
	case MMR_FROM_IOV:
		if (!mmr_child_part(c, in, plan->arg[i], plan->off, plan->len,
				    &k->iov[i].base, &k->iov[i].len))
			return MMR_SKIPPED;
		k->a[i] = mmr_sys_ptr(&k->iov[i]);
		return 0;
	case MMR_FROM_PID:
	case MMR_FROM_PIDFD:
		k->a[i] = 0;
		if (o->lo < 0) /* left out: the process itself */
			return 0;
		return process_arg(c, in, plan, i, member, k, &k->a[i]);
	case MMR_FROM_FD:
		v = mmr_child_ref(c, o->lo,
				  MMR_REF_FILE | MMR_REF_PIDFD | MMR_REF_UFFD |
					  MMR_REF_PROC);
		if (!v.kind)
			return MMR_SKIPPED;
		k->a[i] = v.a;
		return 0;
	default:
		return -EINVAL;
	}
}

/*
 * One kernel argument.  The common kinds by comparison, not by a jump table:
 * after each entry to the kernel the CPU mispredicts indirect jumps, and half a
 * dozen of them is what an mmap would pay.
 */
static inline int64_t one_arg(struct mmr_child *c, const struct mmr_insn *in,
			      const struct mmr_plan *plan, int i,
			      int64_t member, struct call *k)
{
	const int from = plan->from[i], arg = plan->arg[i];
	int64_t value;

	if (from == MMR_FROM_CONST) { /* a small one, see mmr_table_plan() */
		k->a[i] = arg;
		return 0;
	}
	value = in->arg[arg].lo;
	if (from == MMR_FROM_VALUE) {
		k->a[i] = value;
		return 0;
	}
	if (from == MMR_FROM_ADDR || from == MMR_FROM_LEN) {
		if (k->map != arg &&
		    !mmr_child_part(c, in, arg, plan->off, plan->len, &k->addr,
				    &k->size))
			return MMR_SKIPPED;
		k->map = arg;
		k->a[i] = (int64_t)(from == MMR_FROM_ADDR ? k->addr : k->size);
		return 0;
	}
	if (from == MMR_FROM_ARENA) {
		k->a[i] = in->set >> arg & 1 ? (int64_t)MMR_ARENA_BASE + value
					     : 0;
		return 0;
	}
	if (from == MMR_FROM_FD && value < 0) {
		k->a[i] = -1;
		return 0;
	}
	return ref_arg(c, in, plan, i, member, k);
}

/* The proc slot hears of whole megabytes: it is another page. */
void mmr_child_mapped_tell(struct mmr_child *c)
{
	struct mmr_process *p = c->process;
	int64_t n = c->mapped, mapped, shown;

	c->mapped = 0;
	mapped =
		atomic_fetch_add_explicit(&p->mapped, n, memory_order_relaxed) +
		n;
	shown = atomic_load_explicit(&p->shown, memory_order_relaxed);
	if (mapped - shown < MAPPED_STEP && shown - mapped < MAPPED_STEP)
		return;
	atomic_store_explicit(&p->shown, mapped, memory_order_relaxed);
	atomic_store_explicit(&c->proc->mapped,
			      mapped > 0 ? (uint64_t)mapped : 0,
			      memory_order_relaxed);
}

/* What a thread maps and unmaps in turn stays with it. */
void mmr_child_mapped(struct mmr_child *c, int64_t n)
{
	c->mapped += n;
	if (c->mapped >= MAPPED_OWN || -c->mapped >= MAPPED_OWN)
		mmr_child_mapped_tell(c);
}

static inline void made(struct mmr_child *c, const struct mmr_insn *in,
			const struct mmr_plan *plan, int64_t ret)
{
	int64_t len = 0;

	if (plan->makes == MMR_REF_MAPPING) {
		if (plan->len >= 0)
			len = in->arg[plan->len].lo;
		mmr_child_mapped(c, len);
	}
	mmr_child_set_ref(c, in->dst, plan->makes, ret, len);
}

MMR_HOT int64_t mmr_child_call(struct mmr_child *c, const struct mmr_insn *in,
			       const struct mmr_op *op)
{
	const struct mmr_plan *plan = mmr_child_plan(c->machine, in->op);
	int64_t ret, member = 0, first = 0;
	struct call k;
	int i;

	(void)op; /* the descriptor stays cold */
	k.members = 1;
	k.map = -1;
	do {
		for (i = 0; i < 6 && plan->from[i]; i++) {
			ret = one_arg(c, in, plan, i, member, &k);
			if (ret == MMR_SKIPPED)
				return ret;
			if (ret < 0)
				goto next;
		}
		for (; i < 6; i++)
			k.a[i] = 0;
		ret = mmr_sys6(plan->nr, k.a[0], k.a[1], k.a[2], k.a[3], k.a[4],
			       k.a[5]);
		if (ret >= 0 && plan->makes)
			made(c, in, plan, ret);
		if (ret >= 0 && in->op == MMR_OP_munmap)
			mmr_child_mapped(c, -(int64_t)k.size);
	next:
		if (!member || (ret < 0 && first >= 0))
			first = ret;
	} while (++member < k.members);
	return first;
}

int64_t mmr_child_close(struct mmr_child *c, const struct mmr_insn *in, int arg)
{
	struct mmr_ref_value v;

	v = mmr_child_ref(c, in->arg[arg].lo,
			  MMR_REF_FILE | MMR_REF_PIDFD | MMR_REF_UFFD |
				  MMR_REF_PROC);
	if (!v.kind)
		return MMR_SKIPPED;
	return mmr_sys1(__NR_close, v.a);
}

int64_t mmr_child_userfaultfd(struct mmr_child *c, const struct mmr_insn *in,
			      int64_t flags, uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	int64_t fd, ret;

	fd = mmr_sys1(__NR_userfaultfd, flags | O_CLOEXEC | O_NONBLOCK);
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
	struct uffdio_register reg = {.mode = mode};
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
