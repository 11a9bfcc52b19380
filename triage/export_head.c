/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The top of an exported C file: what it is about, and its headers. */
#include <stdlib.h>
#include <string.h>

#include "../ops/kernel.h"
#include "export_c.h"

static void put_constants(struct mmr_export *x)
{
#define CONSTANT(name, value) {#name, #value},
	static const struct {
		const char *name, *value;
	} constants[] = {MMR_KERNEL_CONSTANTS(CONSTANT)};
#undef CONSTANT
	size_t i;

	for (i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		if (x->e.constants >> i & 1)
			fprintf(x->out, "#ifndef %s\n#define %s %s\n#endif\n",
				constants[i].name, constants[i].name,
				constants[i].value);
}

/* Text inside a comment: must not end it. */
static void put_comment(struct mmr_export *x, const char *s)
{
	for (; *s; s++) {
		fputc(*s, x->out);
		if (s[0] == '*' && s[1] == '/')
			fputc(' ', x->out);
	}
}

static void put_expects(struct mmr_export *x)
{
	static const char *const what[] = {
		[MMR_EXPECT_PROGRESS] = "every thread moves on",
		[MMR_EXPECT_CALL] = "%s returns",
		[MMR_EXPECT_EXIT] = "every exit ends",
		[MMR_EXPECT_RESTORED] = "%s comes back",
		[MMR_EXPECT_CONTENT] = "what is read is what was written",
		[MMR_EXPECT_QUIET] = "the kernel log stays quiet",
	};
	char time[32], text[100];
	int i;

	fputs(" * Healthy:", x->out);
	for (i = 0; i < x->c->nexpects; i++) {
		const struct mmr_expect *e = &x->c->expects[i];
		const char *w = what[e->kind];

		snprintf(text, sizeof(text), "%s%.*s%s",
			 w[0] == '%' ? e->name : "", (int)sizeof(text) - 50,
			 w[0] == '%' ? w + 2 : w, "");
		fprintf(x->out, "%s %s", i ? "," : "", text);
		if (e->within_ns)
			fprintf(x->out, " within %s",
				mmr_case_print_time(time, sizeof(time),
						    e->within_ns));
	}
	if (!i)
		fputs(" every thread moves on, every exit ends", x->out);
	fputc('.', x->out);
}

static void put_origin(struct mmr_export *x)
{
	const struct mmr_origin *o = &x->c->origin;

	if (x->c->seen_runs)
		fprintf(x->out, " * Seen in %lld of %lld runs",
			(long long)x->c->seen_hits, (long long)x->c->seen_runs);
	if (o->kernel || o->arch) {
		fprintf(x->out, "%s kernel %s %s",
			x->c->seen_runs ? ":" : " * Seen on",
			o->kernel ? o->kernel : "", o->arch ? o->arch : "");
		if (o->cpus)
			fprintf(x->out, ", %d CPUs", o->cpus);
	}
	if (x->c->seen_runs || o->kernel || o->arch)
		fputs(".\n", x->out);
	if (x->c->fixed_commit) {
		fprintf(x->out, " * Fixed by %s", x->c->fixed_commit);
		if (x->c->fixed_subject)
			put_comment(x, x->c->fixed_subject);
		fputs(".\n", x->out);
	}
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static void add_headers(struct mmr_export *x)
{
	static const struct {
		uint32_t used;
		const char *header[3];
	} wants[] = {
		{MMR_USED_THREAD | MMR_USED_IDLE_THREAD, {"pthread.h"}},
		{MMR_USED_RECOVER, {"setjmp.h"}},
		{MMR_USED_MAP, {"sys/mman.h"}},
		{MMR_USED_LATCH,
		 {"linux/futex.h", "sys/syscall.h", "limits.h"}},
		{MMR_USED_WAIT, {"linux/futex.h", "sys/syscall.h"}},
		{MMR_USED_SYNC, {"sched.h"}},
		{MMR_USED_PIDFD, {"sys/syscall.h"}},
		{MMR_USED_UFFD,
		 {"linux/userfaultfd.h", "sys/ioctl.h", "sys/syscall.h"}},
		{MMR_USED_UFFD_REGISTER,
		 {"linux/userfaultfd.h", "sys/ioctl.h"}},
		{MMR_USED_UFFD, {"fcntl.h"}},
	};
	size_t i, j;

	for (i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		for (j = 0; j < 3 && x->e.used & wants[i].used; j++)
			if (wants[i].header[j])
				mmr_emit_header(&x->e, wants[i].header[j]);
	if (x->e.used & (MMR_USED_SYNC | MMR_USED_LATCH | MMR_USED_WAIT) ||
	    !x->simple)
		mmr_emit_header(&x->e, "stdatomic.h");
	if (x->pins)
		mmr_emit_header(&x->e, "sched.h");
	if (!x->simple)
		mmr_emit_header(&x->e, "fcntl.h"); /* gone() */
	if (x->e.own_stacks)
		mmr_emit_header(&x->e, "stdatomic.h");
	for (i = 0; i < (size_t)x->c->nprocs; i++)
		if (x->proc_used[i] && x->c->procs[i]->nthreads > 1)
			mmr_emit_header(&x->e, "pthread.h");
	mmr_export_main_headers(x);
	qsort(x->e.headers, (size_t)x->e.nheaders, sizeof(x->e.headers[0]),
	      by_name);
}

void mmr_export_head(struct mmr_export *x)
{
	int i;

	add_headers(x);
	fputs("/* SPDX-License-Identifier: GPL-2.0-or-later */\n/*\n * ",
	      x->out);
	put_comment(x, x->c->title ? x->c->title : "a race or a stall");
	fputs("\n *\n", x->out);
	put_expects(x);
	fprintf(x->out, "  Runs %lld round%s", (long long)x->c->rounds,
		x->c->rounds == 1 ? "" : "s");
	if (x->c->budget_ns)
		fprintf(x->out, ", at most %lld s", (long long)x->budget_s);
	fputs(".\n", x->out);
	put_origin(x);
	fputs(" * gcc -O2 -pthread FILE; exit: 0 healthy, 1 symptom seen, "
	      "4 cannot run here.\n */\n#define _GNU_SOURCE\n",
	      x->out);
	for (i = 0; i < x->e.nheaders; i++)
		fprintf(x->out, "#include <%s>\n", x->e.headers[i]);
	put_constants(x);
	fputc('\n', x->out);
}
