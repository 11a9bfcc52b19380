/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What import_call.c and import_fd.c share: a call that is being mapped. */
#ifndef MMR_TRIAGE_IMPORT_CALL_H
#define MMR_TRIAGE_IMPORT_CALL_H

#include <stdio.h>

#include "import_impl.h"

struct mmr_imp_special {
	struct mmr_imp *im;
	struct mmr_imp_thread *t;
	const struct mmr_imp_call *c;
	char *why;
	size_t n;
};

static inline enum mmr_imp_did mmr_imp_unmapped(struct mmr_imp_special *k,
						const char *why)
{
	snprintf(k->why, k->n, "%s", why);
	return MMR_IMP_UNMAPPED;
}

/* Argument i as a number. */
static inline bool mmr_imp_number(struct mmr_imp_special *k, int i, int64_t *v)
{
	return i < k->c->nargs && mmr_imp_integer(k->im, k->c->arg[i], v);
}

/* A statement of an operation, NULL when there is no such one. */
static inline struct mmr_imp_node *mmr_imp_new(struct mmr_imp_special *k,
					       const char *op)
{
	const struct mmr_op *o = mmr_op_by_name(op);

	return o ? mmr_imp_node(k->im, o) : NULL;
}

static inline bool mmr_imp_failed(const struct mmr_imp_special *k)
{
	return k->c->returned && k->c->err;
}

/* What argument i names, if it is of that kind. */
struct mmr_imp_obj *mmr_imp_object(struct mmr_imp_special *k, int i, char type,
				   enum mmr_imp_kind kind);

/* import_fd.c */
enum mmr_imp_did mmr_imp_memfd(struct mmr_imp_special *k);
enum mmr_imp_did mmr_imp_userfaultfd(struct mmr_imp_special *k);
enum mmr_imp_did mmr_imp_ioctl(struct mmr_imp_special *k);
enum mmr_imp_did mmr_imp_close(struct mmr_imp_special *k);

#endif
