// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls that make descriptors of memory, act through them and close them. */
#include <string.h>

#include "import_call.h"

/* A call that returns a descriptor and takes flags. */
static enum mmr_imp_did make_fd(struct mmr_imp_special *k, const char *op,
				int flags_arg, enum mmr_imp_kind kind)
{
	struct mmr_imp_node *n = mmr_imp_new(k, op);
	struct mmr_span key = k->c->var;
	char buf[24], ret[24];
	int64_t flags = 0;
	int ref;

	if (!n)
		return mmr_imp_unmapped(k, "no operation is this call");
	mmr_imp_number(k, flags_arg, &flags);
	mmr_imp_set(k->im, n, "flags", flags);
	if (!mmr_imp_failed(k)) {
		ref = mmr_imp_ref_take(k->im, k->t->proc, kind);
		if (k->c->returned) {
			snprintf(ret, sizeof(ret), "%lld",
				 (long long)k->c->ret);
			key = mmr_imp_key(
				k->im, (struct mmr_span){ret, (int)strlen(ret)},
				'f', buf);
		}
		mmr_imp_obj_add(k->im, k->t->proc, key, kind, ref);
		n->ref = mmr_imp_ref_name(k->im, kind, ref);
	}
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

enum mmr_imp_did mmr_imp_memfd(struct mmr_imp_special *k)
{
	return make_fd(k, "memfd_create", 1, MMR_IMP_FILE);
}

enum mmr_imp_did mmr_imp_userfaultfd(struct mmr_imp_special *k)
{
	return make_fd(k, "userfaultfd", 0, MMR_IMP_UFFD);
}

struct mmr_imp_obj *mmr_imp_object(struct mmr_imp_special *k, int i, char type,
				   enum mmr_imp_kind kind)
{
	struct mmr_imp_obj *o;
	char buf[24];

	if (i >= k->c->nargs)
		return NULL;
	o = mmr_imp_obj_find(k->t->proc,
			     mmr_imp_key(k->im, k->c->arg[i], type, buf));
	return o && o->kind == kind && o->ref >= 0 ? o : NULL;
}

/* The first mapping of a range. */
static bool find_part(struct mmr_imp_special *k, struct mmr_span start,
		      int64_t len, struct mmr_imp_part *part)
{
	uint64_t addr;

	if (len <= 0 || !mmr_imp_address(k->im, start, &addr))
		return false;
	if (!mmr_imp_map_find(k->im, k->t, addr, (uint64_t)len, part, 1) &&
	    (!mmr_imp_data(k->im, addr) ||
	     !mmr_imp_map_find(k->im, k->t, addr, (uint64_t)len, part, 1)))
		return false;
	mmr_imp_order(k->im, k->t, part->ref);
	return true;
}

/* The range and numbers of a UFFDIO structure become the arguments of the
 * operation that has its name: start, length, mode; or, where pages come from
 * somewhere, start, source, length, mode. */
static enum mmr_imp_did uffd_op(struct mmr_imp_special *k,
				struct mmr_imp_obj *u, const char *op,
				const struct mmr_span *leaf, int nleaves)
{
	struct mmr_imp_node *n = mmr_imp_new(k, op);
	struct mmr_imp_part part, from;
	int64_t len = 0, v;
	int i = 1;

	if (!n)
		return mmr_imp_unmapped(k, "no operation does this ioctl");
	i += mmr_op_arg(n->op, "from") >= 0;
	if (nleaves <= i || !mmr_imp_integer(k->im, leaf[i], &len) || len <= 0)
		return mmr_imp_unmapped(k, "nothing is known of its range");
	if (!find_part(k, leaf[0], len, &part) ||
	    (i > 1 && !find_part(k, leaf[1], len, &from)))
		return mmr_imp_unmapped(k, "no mapping at this address is "
					   "known");
	if (!mmr_imp_set_name(n, "u",
			      mmr_imp_ref_name(k->im, MMR_IMP_UFFD, u->ref)))
		return mmr_imp_unmapped(k, "its operation has other arguments");
	mmr_imp_set_part(k->im, n, &part);
	if (i > 1)
		mmr_imp_set_name(
			n, "from",
			mmr_imp_ref_name(k->im, MMR_IMP_MAP, from.ref));
	if (nleaves > i + 1 && mmr_imp_integer(k->im, leaf[i + 1], &v))
		mmr_imp_set(k->im, n, "mode", v);
	mmr_imp_emit(k->im, k->t, n, k->c);
	return MMR_IMP_MAPPED;
}

/* ioctl$UFFDIO_COPY of syzkaller, or the second argument of strace. */
static struct mmr_span ioctl_name(const struct mmr_imp_call *c)
{
	return c->variant.len ? c->variant
	       : c->nargs > 1 ? c->arg[1]
			      : (struct mmr_span){"", 0};
}

enum mmr_imp_did mmr_imp_ioctl(struct mmr_imp_special *k)
{
	struct mmr_span name = ioctl_name(k->c), leaf[8];
	struct mmr_imp_obj *u;
	char op[40] = "uffd_";
	int n, i;

	if (!mmr_span_begins(name, "UFFDIO_"))
		return k->im->o->from == MMR_IMPORT_SYZ
			       ? mmr_imp_unmapped(
					 k, "no operation does this ioctl")
			       : MMR_IMP_IGNORED;
	u = mmr_imp_object(k, 0, 'f', MMR_IMP_UFFD);
	if (!u)
		return mmr_imp_unmapped(k,
					"its userfaultfd is not in the case");
	if (mmr_span_is(name, "UFFDIO_API"))
		return MMR_IMP_MAPPED; /* the operation agrees on it, too */
	for (i = 0; i < name.len - 7 && i < 30; i++)
		op[5 + i] = name.s[7 + i] >= 'A' && name.s[7 + i] <= 'Z'
				    ? (char)(name.s[7 + i] - 'A' + 'a')
				    : name.s[7 + i];
	op[5 + i] = '\0';
	n = k->c->nargs > 2 ? mmr_span_leaves(k->c->arg[2], leaf, 8) : 0;
	return uffd_op(k, u, op, leaf, n);
}

enum mmr_imp_did mmr_imp_close(struct mmr_imp_special *k)
{
	enum mmr_imp_did did;
	char buf[24];

	did = mmr_imp_by_descriptor(k->im, k->t, k->c, k->why, k->n);
	if (k->c->nargs && did == MMR_IMP_MAPPED && !mmr_imp_failed(k))
		mmr_imp_obj_drop(k->t->proc,
				 mmr_imp_key(k->im, k->c->arg[0], 'f', buf));
	return did;
}
