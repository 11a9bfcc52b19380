/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The top of an exported file: what it is about, and its headers. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/kernel.h"
#include "export_c.h"

#define PUT MMR_EXPORT_PUT
#define COLUMNS 78

/* Calls whose names all headers of Linux 5.15 or later have: who can build a
 * kernel of today has those, and no person would write them down again. */
static bool is_given(const char *name)
{
	static const char *const given[] = {
		"SYS_io_uring_register", "SYS_io_uring_setup",
		"SYS_pidfd_open",	 "SYS_pidfd_send_signal",
		"SYS_process_madvise",	 "SYS_process_mrelease",
	};
	size_t i;

	for (i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		if (!strcmp(given[i], name))
			return true;
	return false;
}

static void put_constants(struct mmr_export *x)
{
#define CONSTANT(name, value) {#name, #value},
	static const struct {
		const char *name, *value;
	} constants[] = {MMR_KERNEL_CONSTANTS(CONSTANT)};
#undef CONSTANT
	size_t i;
	int n = 0;

	for (i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		const char *value = constants[i].value;
		bool is_one = !strchr(value, ' ');

		if (x->e.constants >> i & 1 && !is_given(constants[i].name))
			fprintf(x->out,
				"%s#ifndef %s\n#define %s %s%s%s\n#endif\n",
				n++ ? "" : "\n", constants[i].name,
				constants[i].name, is_one ? "" : "(", value,
				is_one ? "" : ")");
	}
}

/* A paragraph of the comment, broken into lines; nothing in it ends it. */
static void put_text(struct mmr_export *x, const char *s)
{
	bool begun = false;
	size_t col = COLUMNS, n;

	while (*s) {
		n = strcspn(s, " \n");
		if (!n) {
			s++;
			continue;
		}
		if (col + 1 + n > COLUMNS) {
			PUT(x, "%s *", begun ? "\n" : "");
			begun = true;
			col = 2;
		}
		fputc(' ', x->out);
		for (col += 1 + n; n; n--, s++) {
			fputc(*s, x->out);
			if (s[0] == '*' && s[1] == '/')
				fputc(' ', x->out);
		}
	}
	if (begun)
		fputc('\n', x->out);
}

static void put_expects(struct mmr_export *x)
{
	static const char *const what[] = {
		[MMR_EXPECT_PROGRESS] = "every thread moves on",
		[MMR_EXPECT_CALL] = " returns",
		[MMR_EXPECT_EXIT] = "every exit ends",
		[MMR_EXPECT_RESTORED] = " comes back",
		[MMR_EXPECT_CONTENT] = "what is read is what was written",
		[MMR_EXPECT_QUIET] = "the kernel log stays quiet",
	};
	char time[32], text[1024] = "Healthy:";
	size_t n = strlen(text);
	int i;

	for (i = 0; i < x->c->nexpects && n < sizeof(text); i++) {
		const struct mmr_expect *e = &x->c->expects[i];
		const char *w = what[e->kind];

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s%s",
				      i ? "," : "", *w == ' ' ? e->name : "",
				      w);
		if (e->within_ns && n < sizeof(text))
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, " within %s",
				mmr_case_print_time(time, sizeof(time),
						    e->within_ns));
	}
	if (!i)
		snprintf(text + n, sizeof(text) - n,
			 " every thread moves on, every exit ends");
	if (n < sizeof(text) - 1)
		strcat(text, ".");
	put_text(x, text);
}

int64_t mmr_export_runs(const struct mmr_case *c)
{
	double p;

	if (c->seen_runs < 1 || c->seen_hits < 1)
		return 0;
	p = (double)c->seen_hits / (double)c->seen_runs;
	return p >= 0.95 ? 1 : (int64_t)ceil(log(0.05) / log1p(-p));
}

int64_t mmr_export_rounds(const struct mmr_export *x)
{
	int64_t runs = x->to == MMR_EXPORT_LTP ? mmr_export_runs(x->c) : 1;

	if (runs < 1)
		runs = 1;
	return x->c->rounds > MMR_CASE_MAX_ROUNDS / runs ? MMR_CASE_MAX_ROUNDS
							 : x->c->rounds * runs;
}

/* How long to run it, from the rate that was measured. */
static void put_length(struct mmr_export *x)
{
	long long runs = mmr_export_runs(x->c);
	char text[512], rounds[96], most[64] = "";

	snprintf(rounds, sizeof(rounds), "%lld round%s",
		 (long long)x->c->rounds, x->c->rounds == 1 ? "" : "s");
	if (x->c->budget_ns)
		snprintf(most, sizeof(most), ", at most %lld s",
			 (long long)x->budget_s);
	if (!runs)
		snprintf(text, sizeof(text), "A run is %s%s.", rounds, most);
	else if (x->to == MMR_EXPORT_LTP)
		snprintf(text, sizeof(text),
			 "Seen in %lld of %lld runs of %s%s; the runtime is "
			 "that of %lld such run%s, which show it with 95 %%.",
			 (long long)x->c->seen_hits, (long long)x->c->seen_runs,
			 rounds, most, runs, runs == 1 ? "" : "s");
	else
		snprintf(text, sizeof(text),
			 "A run is %s%s.  Seen in %lld of %lld runs; run it "
			 "%lld time%s to see it with 95 %%.",
			 rounds, most, (long long)x->c->seen_hits,
			 (long long)x->c->seen_runs, runs,
			 runs == 1 ? "" : "s");
	put_text(x, text);
}

static void put_origin(struct mmr_export *x)
{
	const struct mmr_origin *o = &x->c->origin;
	char text[512], cpus[32] = "";

	if (o->cpus)
		snprintf(cpus, sizeof(cpus), ", %d CPUs", o->cpus);
	if (o->kernel || o->arch) {
		snprintf(text, sizeof(text), "Found on kernel %s%s%s%s.",
			 o->kernel ? o->kernel : "", o->arch ? " " : "",
			 o->arch ? o->arch : "", cpus);
		put_text(x, text);
	}
	if (x->c->fixed_commit) {
		snprintf(text, sizeof(text), "Fixed by %s%s%s%s.",
			 x->c->fixed_commit, x->c->fixed_subject ? " (\"" : "",
			 x->c->fixed_subject ? x->c->fixed_subject : "",
			 x->c->fixed_subject ? "\")" : "");
		put_text(x, text);
	}
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static void add_used(struct mmr_export *x)
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
		{MMR_USED_DRAW, {"stdlib.h"}},
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
}

static void add_headers(struct mmr_export *x)
{
	static const char *const always[] = {
		"signal.h", "sys/prctl.h", "time.h", "sys/wait.h", "unistd.h",
	};
	size_t i;

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		mmr_emit_header(&x->e, always[i]);
	add_used(x);
	if (x->prints)
		mmr_emit_header(&x->e, "stdio.h");
	if (x->shares)
		mmr_emit_header(&x->e, "sys/mman.h");
	if (!x->simple || x->shares || x->e.own_stacks)
		mmr_emit_header(&x->e, "stdatomic.h");
	if (x->pins)
		mmr_emit_header(&x->e, "sched.h");
	if (x->to != MMR_EXPORT_LTP)
		mmr_emit_header(&x->e, "err.h");
	if ((!x->simple && !x->whole) || mmr_export_awaits_exit(x->c) ||
	    (x->e.used & MMR_USED_REAP && x->e.used & MMR_USED_FRESH))
		mmr_emit_header(&x->e, "fcntl.h"); /* gone() */
	for (i = 0; i < (size_t)x->c->nprocs; i++)
		if (x->proc_used[i] && x->c->procs[i]->nthreads > 1)
			mmr_emit_header(&x->e, "pthread.h");
	mmr_export_need_headers(x);
	qsort(x->e.headers, (size_t)x->e.nheaders, sizeof(x->e.headers[0]),
	      by_name);
}

/* What another header brings along.  POSIX says so of pthread.h and allows it
 * of sys/wait.h, where the C libraries of Linux do it. */
static bool is_brought(const struct mmr_export *x, const char *header)
{
	static const struct {
		const char *header, *by;
	} brought[] = {
		{"sched.h", "pthread.h"},
		{"signal.h", "sys/wait.h"},
		{"time.h", "pthread.h"},
	};
	size_t k;
	int i;

	for (k = 0; k < sizeof(brought) / sizeof(brought[0]); k++)
		for (i = 0; i < x->e.nheaders; i++)
			if (!strcmp(brought[k].header, header) &&
			    !strcmp(brought[k].by, x->e.headers[i]))
				return true;
	return false;
}

void mmr_export_head(struct mmr_export *x)
{
	int i;

	add_headers(x);
	PUT(x, x->to == MMR_EXPORT_C
		       ? "/* SPDX-License-Identifier: GPL-2.0-or-later */\n"
		       : "// SPDX-License-Identifier: GPL-2.0-or-later\n");
	PUT(x, x->to == MMR_EXPORT_LTP ? "/*\\\n" : "/*\n");
	put_text(x, x->c->title ? x->c->title : "a race or a stall");
	if (x->to != MMR_EXPORT_C)
		PUT(x, " *\n");
	put_expects(x);
	put_length(x);
	put_origin(x);
	if (x->to == MMR_EXPORT_C)
		PUT(x, " * gcc -O2 -pthread FILE; exit: 0 healthy, 1 "
		       "symptom seen, 4 cannot run here.\n");
	PUT(x, " */\n");
	/* LTP's tests may be compiled with -D_GNU_SOURCE, or without. */
	PUT(x, x->to == MMR_EXPORT_LTP ? "\n#define _GNU_SOURCE 1\n\n"
				       : "#define _GNU_SOURCE\n");
	for (i = 0; i < x->e.nheaders; i++)
		if (!is_brought(x, x->e.headers[i]))
			PUT(x, "#include <%s>\n", x->e.headers[i]);
	if (x->to == MMR_EXPORT_LTP)
		PUT(x, "\n#include \"tst_test.h\"\n%s",
		    mmr_export_has_need(x, MMR_NEED_SYSCALL)
			    ? "#include \"lapi/syscalls.h\"\n"
			    : "");
	else if (x->to == MMR_EXPORT_KSELFTEST)
		PUT(x, "\n#include \"../kselftest.h\"\n");
	put_constants(x);
	fputc('\n', x->out);
}
