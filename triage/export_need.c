/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an exported file needs of the machine, asked in front of the rounds:
 * what is missing is a sentence and a skip, in the words of each suite.  Also
 * what is noted before the rounds and has to be the same after them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../ops/feature.h"
#include "../ops/setting.h"
#include "export_c.h"
#include "restored.h"

#define PUT MMR_EXPORT_PUT
#define uses mmr_export_uses

const char *mmr_export_restored(const struct mmr_export *x)
{
	int i;

	for (i = 0; i < x->c->nexpects; i++)
		if (x->c->expects[i].kind == MMR_EXPECT_RESTORED)
			return x->c->expects[i].name;
	return NULL;
}

/* LTP's library looks at the taint of the kernel itself. */
bool mmr_export_is_quiet(const struct mmr_export *x)
{
	int i;

	for (i = 0; i < x->c->nexpects; i++)
		if (x->c->expects[i].kind == MMR_EXPECT_QUIET)
			return x->to != MMR_EXPORT_LTP;
	return false;
}

bool mmr_export_has_need(const struct mmr_export *x, enum mmr_need_kind kind)
{
	int i;

	for (i = 0; i < x->c->nneeds; i++)
		if (x->c->needs[i].kind == kind)
			return true;
	return false;
}

/* True when struct tst_test has a field for it. */
static bool is_ltps(const struct mmr_export *x, enum mmr_need_kind kind)
{
	return x->to == MMR_EXPORT_LTP &&
	       (kind == MMR_NEED_CPUS || kind == MMR_NEED_HUGEPAGES ||
		kind == MMR_NEED_NOCAP || kind == MMR_NEED_ARCH ||
		kind == MMR_NEED_MEMORY);
}

static bool wants(const struct mmr_export *x, enum mmr_need_kind kind)
{
	return mmr_export_has_need(x, kind) && !is_ltps(x, kind);
}

static bool is_mode(const struct mmr_setting *s)
{
	int index = mmr_setting_index(s->name);

	return index >= 0 && mmr_setting_table[index].kind == MMR_SETTING_MODE;
}

/* True when a setting of that kind, a mode or a number, is asked for. */
static bool has_setting(const struct mmr_export *x, bool mode)
{
	int i;

	for (i = 0; i < x->c->nsettings && x->to != MMR_EXPORT_LTP; i++)
		if (is_mode(&x->c->settings[i]) == mode)
			return true;
	return false;
}

/* A number of /proc/meminfo alone, or one of any file. */
static bool reads_files(const struct mmr_export *x)
{
	return wants(x, MMR_NEED_CAP) || mmr_export_is_quiet(x) ||
	       has_setting(x, false);
}

static bool reads_meminfo(const struct mmr_export *x)
{
	if (x->to == MMR_EXPORT_LTP)
		return false; /* its library does it */
	return uses(x, MMR_USED_HUGE) || mmr_export_restored(x) ||
	       wants(x, MMR_NEED_HUGEPAGES) || wants(x, MMR_NEED_MEMORY);
}

bool mmr_export_reads_fields(const struct mmr_export *x)
{
	return reads_files(x) || reads_meminfo(x);
}

/* True when the test of a feature has this in it. */
static bool lacks(const struct mmr_export *x, const char *part)
{
	const char *since;
	char test[300];
	int i;

	for (i = 0; i < x->c->nneeds; i++)
		if (x->c->needs[i].kind == MMR_NEED_FEATURE &&
		    !mmr_feature_lacks(x->c->needs[i].name, test, sizeof(test),
				       &since) &&
		    strstr(test, part))
			return true;
	return false;
}

void mmr_export_need_headers(struct mmr_export *x)
{
	int i;

	if (mmr_export_has_need(x, MMR_NEED_SWAP) ||
	    mmr_export_has_need(x, MMR_NEED_MEMCG) ||
	    mmr_export_is_lasting(x) || x->writes)
		mmr_emit_header(&x->e, "stdlib.h");
	if (lacks(x, "uffd_lacks")) {
		mmr_emit_header(&x->e, "fcntl.h");
		mmr_emit_header(&x->e, "linux/userfaultfd.h");
		mmr_emit_header(&x->e, "sys/ioctl.h");
		mmr_emit_header(&x->e, "sys/syscall.h");
	}
	if (lacks(x, "syscall("))
		mmr_emit_header(&x->e, "sys/syscall.h");
	if (lacks(x, "m"))
		mmr_emit_header(&x->e, "sys/mman.h");
	if (x->writes && x->to != MMR_EXPORT_LTP)
		mmr_emit_header(&x->e, "string.h");
	if (reads_files(x) || has_setting(x, true) || wants(x, MMR_NEED_THP) ||
	    wants(x, MMR_NEED_ARCH))
		mmr_emit_header(&x->e, "string.h");
	for (i = 0; i < x->c->nneeds; i++)
		if (x->c->needs[i].kind == MMR_NEED_SYSCALL &&
		    x->to != MMR_EXPORT_LTP) {
			char name[64];

			snprintf(name, sizeof(name), "SYS_%s",
				 x->c->needs[i].name);
			mmr_emit_constant(&x->e, name);
			mmr_emit_header(&x->e, "errno.h");
			mmr_emit_header(&x->e, "sys/syscall.h");
		}
	if (wants(x, MMR_NEED_CAP) || mmr_export_has_need(x, MMR_NEED_NOCAP))
		mmr_emit_header(&x->e, "linux/capability.h");
	if (wants(x, MMR_NEED_NOCAP))
		mmr_emit_header(&x->e, "sys/syscall.h");
	if (wants(x, MMR_NEED_ARCH))
		mmr_emit_header(&x->e, "sys/utsname.h");
}

static void put_unless(struct mmr_export *x, const char *missing,
		       const char *sentence)
{
	static const struct {
		const char *before, *after;
	} skip[] = {
		[MMR_EXPORT_C] = {"errx(4, \"", "\");"},
		[MMR_EXPORT_LTP] = {"tst_brk(TCONF, \"", "\");"},
		[MMR_EXPORT_KSELFTEST] = {"ksft_exit_skip(\"", "\\n\");"},
	};

	x->e.indent = 1;
	mmr_emit_line(&x->e, "if (%s)", missing);
	x->e.indent = 2;
	mmr_emit_line(&x->e, "%s%s%s", skip[x->to].before, sentence,
		      skip[x->to].after);
	x->e.indent = 1;
}

/* What the statements write is put back at the end; signals end it in order. */
static void put_saving(struct mmr_export *x)
{
	PUT(x, "static struct saved {\n\tconst char *path;\n"
	       "\tchar value[128];\n} saved[64];\n\n"
	       "static void restore(void)\n{\n"
	       "\tfor (struct saved *s = saved; s->path; s++) {\n"
	       "\t\tFILE *f = fopen(s->path, \"w\");\n"
	       "\t\tchar *word = strchr(s->value, '[');\n\n"
	       "\t\tif (!f)\n\t\t\tcontinue;\n"
	       "\t\tfputs(word ? strtok(word + 1, \"]\") : s->value, f);\n"
	       "\t\tfclose(f);\n\t}\n}\n\n"
	       "static void stop(int sig)\n{\n\texit(128 + sig);\n}\n\n"
	       "static int save(const char *path)\n{\n"
	       "\tstruct saved *s = saved;\n"
	       "\tFILE *f = fopen(path, \"r+\");\n\n"
	       "\tif (!f)\n\t\treturn -1;\n"
	       "\twhile (s->path)\n\t\ts++;\n"
	       "\tif (fgets(s->value, sizeof(s->value), f))\n"
	       "\t\ts->path = path;\n"
	       "\tfclose(f);\n"
	       "\tsignal(SIGINT, stop);\n\tsignal(SIGTERM, stop);\n"
	       "\treturn s == saved ? atexit(restore) : 0;\n}\n\n");
}

/* Settings that keep a value, of those that statements write. */
static void put_saves(struct mmr_export *x)
{
	char test[200], text[200];
	int i;

	for (i = 0; mmr_setting_table[i].name; i++) {
		if (!(x->writes >> i & 1))
			continue;
		snprintf(test, sizeof(test), "save(\"%s\")",
			 mmr_setting_table[i].path);
		snprintf(text, sizeof(text), "may not write %s",
			 mmr_setting_table[i].path);
		put_unless(x, test, text);
	}
}

static void put_thp(struct mmr_export *x)
{
	PUT(x, "static int thp_is_off(void)\n{\n"
	       "\tFILE *f = fopen(\"/sys/kernel/mm/transparent_hugepage/"
	       "enabled\", \"r\");\n"
	       "\tchar line[64];\n\n"
	       "\treturn !f || !fgets(line, sizeof(line), f) || fclose(f) ||\n"
	       "\t       strstr(line, \"[never]\");\n}\n\n");
}

static void put_drop(struct mmr_export *x)
{
	PUT(x, "static void drop(int cap)\n{\n"
	       "\tstruct __user_cap_header_struct head = {\n"
	       "\t\t_LINUX_CAPABILITY_VERSION_3, 0\n\t};\n"
	       "\tstruct __user_cap_data_struct data[2];\n"
	       "\tstruct __user_cap_data_struct *d = "
	       "&data[CAP_TO_INDEX(cap)];\n\n"
	       "\tsyscall(SYS_capget, &head, data);\n"
	       "\td->effective &= ~CAP_TO_MASK(cap);\n"
	       "\td->permitted &= ~CAP_TO_MASK(cap);\n"
	       "\td->inheritable &= ~CAP_TO_MASK(cap);\n"
	       "\tsyscall(SYS_capset, &head, data);\n}\n\n");
}

void mmr_export_need_helpers(struct mmr_export *x)
{
	if (reads_files(x))
		PUT(x,
		    "/* A number from a file: behind name, or the first. */\n"
		    "static unsigned long field(const char *file, "
		    "const char *name, int hex)\n{\n"
		    "\tFILE *f = fopen(file, \"r\");\n"
		    "\tunsigned long n = 0;\n\tchar line[256];\n\n"
		    "\twhile (f && fgets(line, sizeof(line), f))\n"
		    "\t\tif (!strncmp(line, name, strlen(name)) &&\n"
		    "\t\t    sscanf(line + strlen(name), hex ? \"%%lx\" : "
		    "\"%%lu\", &n))\n"
		    "\t\t\tbreak;\n"
		    "\tif (f)\n\t\tfclose(f);\n\treturn n;\n}\n\n");
	if (reads_meminfo(x))
		PUT(x, "static unsigned long meminfo(const char *format)\n{\n"
		       "\tFILE *f = fopen(\"/proc/meminfo\", \"r\");\n"
		       "\tunsigned long n = 0;\n\n"
		       "\twhile (f && !fscanf(f, format, &n) && "
		       "!fscanf(f, \"%%*[^\\n]\\n\"))\n\t\t;\n"
		       "\treturn f && !fclose(f) ? n : 0;\n}\n\n");
	if (lacks(x, "uffd_lacks"))
		PUT(x,
		    "static int uffd_lacks(unsigned long long features)\n{\n"
		    "\tstruct uffdio_api api = { .api = UFFD_API };\n"
		    "\tint fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);\n\n"
		    "\tif (fd < 0) /* only for faults of user mode */\n"
		    "\t\tfd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | "
		    "1);\n"
		    "\tif (fd < 0 || ioctl(fd, UFFDIO_API, &api))\n"
		    "\t\treturn 1;\n"
		    "\tclose(fd);\n"
		    "\treturn (api.features & features) != features;\n"
		    "}\n\n");
	if (x->writes && x->to != MMR_EXPORT_LTP)
		put_saving(x);
	if (has_setting(x, true))
		PUT(x,
		    "static int has_word(const char *file, const char *word)\n"
		    "{\n\tFILE *f = fopen(file, \"r\");\n"
		    "\tchar line[128] = \"\";\n\n"
		    "\tif (f && !fgets(line, sizeof(line), f))\n"
		    "\t\tline[0] = '\\0';\n"
		    "\tif (f)\n\t\tfclose(f);\n"
		    "\treturn !!strstr(line, word);\n}\n\n");
	if (mmr_export_has_need(x, MMR_NEED_THP))
		put_thp(x);
	if (wants(x, MMR_NEED_NOCAP))
		put_drop(x);
}

static void put_feature(struct mmr_export *x, const char *name)
{
	char test[300], text[200];
	const char *since;

	if (mmr_feature_lacks(name, test, sizeof(test), &since))
		return;
	snprintf(text, sizeof(text),
		 "this kernel has no %s (Linux has it "
		 "from %s on)",
		 name, since);
	put_unless(x, test, text);
}

#define TEST_SIZE 200

/* What main() has noted before by the name of its field. */
static bool is_noted(const struct mmr_export *x, const char *field)
{
	const char *name = mmr_export_restored(x);

	return name && !strcmp(name, field);
}

/* A need that is a number: the condition that it is not met, and what to say
 * then.  False for another kind. */
static bool number_need(const struct mmr_export *x, const struct mmr_need *n,
			char *test, char *text)
{
	switch (n->kind) {
	case MMR_NEED_CPUS:
		snprintf(test, TEST_SIZE,
			 "sysconf(_SC_NPROCESSORS_ONLN) < %" PRId64, n->n);
		snprintf(text, TEST_SIZE, "needs %" PRId64 " CPUs", n->n);
		return true;
	case MMR_NEED_NODES:
		snprintf(test, TEST_SIZE,
			 "access(\"/sys/devices/system/node/node%" PRId64
			 "\", F_OK)",
			 n->n - 1);
		snprintf(text, TEST_SIZE, "needs %" PRId64 " NUMA nodes", n->n);
		return true;
	case MMR_NEED_HUGEPAGES:
		snprintf(test, TEST_SIZE, "%s < %" PRId64,
			 is_noted(x, "HugePages_Free")
				 ? "before"
				 : "meminfo(\"HugePages_Free: %lu\")",
			 n->n);
		snprintf(text, TEST_SIZE,
			 "needs %" PRId64 " free huge pages (nr_hugepages)",
			 n->n);
		return true;
	case MMR_NEED_MEMORY:
		snprintf(test, TEST_SIZE,
			 "meminfo(\"MemAvailable: %%lu\") < %" PRId64,
			 n->n >> 10);
		snprintf(text, TEST_SIZE, "needs %" PRId64 " MiB of memory",
			 n->n >> 20);
		return true;
	case MMR_NEED_SWAP:
		snprintf(test, TEST_SIZE, "!getenv(\"SWAP_AREA\")");
		snprintf(text, TEST_SIZE,
			 "needs SWAP_AREA, %" PRId64
			 " MiB of swap with priority 100",
			 n->n >> 20);
		return true;
	default:
		return false;
	}
}

/* The same of a need that has a name, or nothing. */
static bool named_need(const struct mmr_need *n, char *test, char *text)
{
	switch (n->kind) {
	case MMR_NEED_CAP:
		snprintf(test, TEST_SIZE,
			 "!(field(\"/proc/self/status\", \"CapEff:\", 1) >> %s "
			 "& 1)",
			 n->name);
		snprintf(text, TEST_SIZE, "needs %s", n->name);
		return true;
	case MMR_NEED_SYSCALL:
		snprintf(test, TEST_SIZE,
			 "syscall(SYS_%s, -1, 0, 0, 0) == -1 && errno == "
			 "ENOSYS",
			 n->name);
		snprintf(text, TEST_SIZE, "this kernel has no %s", n->name);
		return true;
	case MMR_NEED_ARCH:
		snprintf(test, TEST_SIZE, "strcmp(uts.machine, \"%s\")",
			 n->name);
		snprintf(text, TEST_SIZE, "needs %s", n->name);
		return true;
	case MMR_NEED_THP:
		snprintf(test, TEST_SIZE, "thp_is_off()");
		snprintf(text, TEST_SIZE, "needs transparent huge pages");
		return true;
	case MMR_NEED_MEMCG:
		snprintf(test, TEST_SIZE, "!getenv(\"CGROUP\")");
		snprintf(
			text, TEST_SIZE,
			"needs CGROUP, a cgroup v2 that controls memory below");
		return true;
	default:
		return false;
	}
}

static void put_need(struct mmr_export *x, const struct mmr_need *n)
{
	char test[TEST_SIZE], text[TEST_SIZE];

	if (is_ltps(x, n->kind))
		return;
	if (n->kind == MMR_NEED_NOCAP) {
		PUT(x, "\tdrop(%s);\n", n->name);
		return;
	}
	if (n->kind == MMR_NEED_SYSCALL && x->to == MMR_EXPORT_LTP) {
		PUT(x, "\ttst_syscall(__NR_%s, -1, 0, 0, 0);\n", n->name);
		return;
	}
	if (n->kind == MMR_NEED_FEATURE) {
		put_feature(x, n->name);
		return;
	}
	if (n->kind == MMR_NEED_ARCH)
		PUT(x, "\tuname(&uts);\n");
	if (number_need(x, n, test, text) || named_need(n, test, text))
		put_unless(x, test, text);
}

/* Only asked: what a test of another suite changes, it changes with the means
 * of that suite. */
static void put_setting(struct mmr_export *x, const struct mmr_setting *s)
{
	int index = mmr_setting_index(s->name);
	char test[200], text[200], value[32];
	const char *path;

	if (index < 0)
		return;
	path = mmr_setting_table[index].path;
	mmr_setting_text(index, s->value, value, sizeof(value));
	if (is_mode(s))
		snprintf(test, sizeof(test), "!has_word(\"%s\", \"[%s]\")",
			 path, value);
	else
		snprintf(test, sizeof(test), "field(\"%s\", \"\", 0) != %s",
			 path, value);
	snprintf(text, sizeof(text), "needs %s at %s", path, value);
	put_unless(x, test, text);
}

static bool is_lasting(const char *needs)
{
	return needs && strstr(needs, "allowed");
}

/* A statement that takes something from the machine until it boots anew. */
static int lasts(void *arg, const struct mmr_stmt *s,
		 const struct mmr_thread *t)
{
	const struct mmr_name_need *n;
	int i;

	(void)arg;
	(void)t;
	if (is_lasting(s->op->needs))
		return 1;
	for (i = 0; i < s->op->nargs; i++)
		for (n = s->op->args[i].needs; n && n->needs; n++)
			if (s->args[i].set && is_lasting(n->needs) &&
			    n->value == s->args[i].lo)
				return 1;
	return 0;
}

bool mmr_export_is_lasting(const struct mmr_export *x)
{
	return mmr_emit_each_stmt(x->c, lasts, NULL);
}

void mmr_export_needs(struct mmr_export *x)
{
	int i;

	if (mmr_export_is_lasting(x))
		put_unless(x, "!getenv(\"MAY_LAST\")",
			   "takes pages until the next boot: set MAY_LAST");

	for (i = 0; i < x->c->nsettings && x->to != MMR_EXPORT_LTP; i++)
		put_setting(x, &x->c->settings[i]);
	for (i = 0; i < x->c->nneeds; i++)
		put_need(x, &x->c->needs[i]);
	if (x->to != MMR_EXPORT_LTP)
		put_saves(x);
}

/* --- before and after --- */

#define TAINT "field(\"/proc/sys/kernel/tainted\", \"\", 0)"

/* A number of /proc/meminfo in the words of each suite. */
static const char *meminfo(const struct mmr_export *x, const char *name,
			   char *buf, size_t n)
{
	snprintf(buf, n,
		 x->to == MMR_EXPORT_LTP ? "SAFE_READ_MEMINFO(\"%s:\")"
					 : "meminfo(\"%s: %%lu\")",
		 name);
	return buf;
}

void mmr_export_before(struct mmr_export *x)
{
	const char *name = mmr_export_restored(x);
	char now[100];

	if (name)
		PUT(x, "\t%slong before = %s;\n",
		    x->to == MMR_EXPORT_LTP ? "" : "unsigned ",
		    meminfo(x, name, now, sizeof(now)));
	if (mmr_export_is_quiet(x))
		PUT(x, "\tunsigned long taint = " TAINT ";\n");
}

static void put_wrong(struct mmr_export *x, int indent, const char *text)
{
	const char *tab = indent == 3 ? "\t\t\t" : "\t\t";

	switch (x->to) {
	case MMR_EXPORT_C:
		PUT(x, "%serrx(1, \"%s\");\n", tab, text);
		break;
	case MMR_EXPORT_LTP:
		PUT(x, "%stst_brk(TFAIL, \"%s\");\n", tab, text);
		break;
	case MMR_EXPORT_KSELFTEST:
		PUT(x,
		    "%sksft_test_result_fail(\"%s\\n\");\n"
		    "%sksft_finished();\n",
		    tab, text, tab);
		break;
	}
}

void mmr_export_after(struct mmr_export *x)
{
	const char *name = mmr_export_restored(x);
	const char *open = x->to == MMR_EXPORT_KSELFTEST ? " {" : "";
	char text[100], now[100], gone[160];
	int64_t slack;
	bool less;

	if (name) {
		meminfo(x, name, now, sizeof(now));
		slack = mmr_restored_slack(name, &less);
		if (slack)
			snprintf(gone, sizeof(gone),
				 less ? "%s + %" PRId64 " < before"
				      : "%s > before + %" PRId64,
				 now, slack);
		else
			snprintf(gone, sizeof(gone), "%s != before", now);
		x->e.indent = 1;
		mmr_emit_line(&x->e, "for (int n = 0; %s; usleep(10000))%s",
			      gone, open);
		PUT(x, "\t\tif (n++ == 200)%s\n", open);
		snprintf(text, sizeof(text), "%s did not come back", name);
		put_wrong(x, 3, text);
		PUT(x, "%s", *open ? "\t\t}\n\t}\n" : "");
	}
	if (mmr_export_is_quiet(x)) {
		PUT(x, "\tif (" TAINT " & ~taint)%s\n", open);
		put_wrong(x, 2, "the kernel warned, see its log");
		PUT(x, "%s", *open ? "\t}\n" : "");
	}
}
