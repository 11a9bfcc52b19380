/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a kernel can do inside of a system call that it has: an advice, a
 * flag, a request of userfaultfd.  The names that `needs feature=NAME` and
 * the descriptors use.
 */
#ifndef MMR_OPS_FEATURE_H
#define MMR_OPS_FEATURE_H

#include <stdbool.h>
#include <stddef.h>

/* True when mmrace knows how to ask for it.  Asks nothing of the kernel. */
bool mmr_feature_known(const char *name);
/* Asks the running kernel.  0; -ENOTSUP with a sentence in text that says
 * what is missing and since when Linux has it.  Any thread. */
int mmr_feature_probe(const char *name, char *text, size_t n);
/*
 * For exported C: an expression that is true where the feature is missing, into
 * buf; it may call uffd_lacks(features).  *since: since when Linux has it.
 * 0, -ENOENT: an unknown feature.  Any thread.
 */
int mmr_feature_lacks(const char *name, char *buf, size_t n,
		      const char **since);
/* The name of feature i from 0 on, NULL behind the last one. */
const char *mmr_feature_name(int i);

#endif
