/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of strace, for import_strace.c. */
#ifndef MMR_TRIAGE_IMPORT_STRACE_H
#define MMR_TRIAGE_IMPORT_STRACE_H

#include "import_impl.h"

enum mmr_strace_kind {
	MMR_STRACE_OTHER, /* not understood */
	MMR_STRACE_NOTE,  /* of strace itself, a signal */
	MMR_STRACE_CALL,
	MMR_STRACE_BEGUN,   /* <unfinished ...> */
	MMR_STRACE_RESUMED, /* <... name resumed> */
	MMR_STRACE_EXITED,  /* +++ exited with 0 +++ */
};

struct mmr_strace_line {
	enum mmr_strace_kind kind;
	int64_t pid;	 /* -1: no pid in it */
	int64_t time_ns; /* as it stands there, -1: none */
	bool relative;	 /* since the line before */
	/* The call from its name on, or what a resumed line adds. */
	struct mmr_span body;
	struct mmr_span name;
};

/* What a line is.  Never fails: what it is not is OTHER. */
void mmr_strace_read(struct mmr_span s, struct mmr_strace_line *l);

/* name(args) = result <time> into c (name, args, ret, err) and the time that
 * it took, -1 unknown.  False: no whole call. */
bool mmr_strace_call(struct mmr_span body, struct mmr_imp_call *c,
		     int64_t *took_ns);

#endif
