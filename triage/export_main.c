/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of an exported C file: needs, the watchdog, and main().
 *
 * The watchdog is main() itself, which only forks: it shares no address space
 * with what it watches, touches none of its memory, and never waits for a
 * process that will not die.  It counts its own looks, not time, so a machine
 * that stood still is no stall.
 */
#include <inttypes.h>
#include <string.h>

#include "../ops/setting.h"
#include "export_c.h"

#define PUT(x, ...) fprintf((x)->out, __VA_ARGS__)

static bool uses(const struct mmr_export *x, uint32_t used)
{
	return (x->e.used & used) != 0;
}

bool mmr_export_may_rest(const struct mmr_export *x)
{
	return x->waits || uses(x, MMR_USED_PAUSE);
}

bool mmr_export_may_leave(const struct mmr_export *x)
{
	return mmr_export_may_rest(x) || !x->simple;
}

static const char *restored(const struct mmr_export *x)
{
	int i;

	for (i = 0; i < x->c->nexpects; i++)
		if (x->c->expects[i].kind == MMR_EXPECT_RESTORED)
			return x->c->expects[i].name;
	return NULL;
}

static bool has_need(const struct mmr_export *x, enum mmr_need_kind kind)
{
	int i;

	for (i = 0; i < x->c->nneeds; i++)
		if (x->c->needs[i].kind == kind)
			return true;
	return false;
}

/* Whether it needs a setting that is a mode, or one that is a number. */
static bool sets(const struct mmr_export *x, bool mode)
{
	int i, index;

	for (i = 0; i < x->c->nsettings; i++) {
		index = mmr_setting_index(x->c->settings[i].name);
		if ((mmr_setting_table[index].kind == MMR_SETTING_MODE) == mode)
			return true;
	}
	return false;
}

static bool reads_fields(const struct mmr_export *x)
{
	return uses(x, MMR_USED_HUGE) || restored(x) ||
	       has_need(x, MMR_NEED_HUGEPAGES) ||
	       has_need(x, MMR_NEED_MEMORY) || has_need(x, MMR_NEED_CAP) ||
	       sets(x, false);
}

void mmr_export_main_headers(struct mmr_export *x)
{
	static const char *const always[] = {
		"signal.h",   "stdio.h", "sys/mman.h",
		"sys/wait.h", "time.h",	 "unistd.h",
	};
	size_t i;

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		mmr_emit_header(&x->e, always[i]);
	if (mmr_export_may_leave(x))
		mmr_emit_header(&x->e, "sys/prctl.h");
	if (has_need(x, MMR_NEED_SWAP))
		mmr_emit_header(&x->e, "stdlib.h");
	if (reads_fields(x) || has_need(x, MMR_NEED_THP) ||
	    has_need(x, MMR_NEED_ARCH))
		mmr_emit_header(&x->e, "string.h");
	for (i = 0; i < (size_t)x->c->nneeds; i++)
		if (x->c->needs[i].kind == MMR_NEED_SYSCALL) {
			char name[64];

			snprintf(name, sizeof(name), "SYS_%s",
				 x->c->needs[i].name);
			mmr_emit_constant(&x->e, name);
			mmr_emit_header(&x->e, "errno.h");
			mmr_emit_header(&x->e, "sys/syscall.h");
		}
	if (has_need(x, MMR_NEED_CAP) || has_need(x, MMR_NEED_NOCAP))
		mmr_emit_header(&x->e, "linux/capability.h");
	if (has_need(x, MMR_NEED_NOCAP))
		mmr_emit_header(&x->e, "sys/syscall.h");
	if (has_need(x, MMR_NEED_ARCH))
		mmr_emit_header(&x->e, "sys/utsname.h");
	if (mmr_export_may_leave(x))
		mmr_emit_header(&x->e, "errno.h");
}

/* --- needs --- */

static void put_need_helpers(struct mmr_export *x)
{
	if (reads_fields(x))
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
	if (sets(x, true))
		PUT(x,
		    "static int has_word(const char *file, const char *word)\n"
		    "{\n\tFILE *f = fopen(file, \"r\");\n"
		    "\tchar line[128] = \"\";\n\n"
		    "\tif (f && !fgets(line, sizeof(line), f))\n"
		    "\t\tline[0] = '\\0';\n"
		    "\tif (f)\n\t\tfclose(f);\n"
		    "\treturn strstr(line, word) != NULL;\n}\n\n");
	if (has_need(x, MMR_NEED_THP))
		PUT(x, "static int thp_is_off(void)\n{\n"
		       "\tFILE *f = fopen(\"/sys/kernel/mm/"
		       "transparent_hugepage/enabled\", \"r\");\n"
		       "\tchar line[64] = \"[never]\";\n\n"
		       "\tif (f && !fgets(line, sizeof(line), f))\n"
		       "\t\tline[0] = '\\0';\n"
		       "\tif (f)\n\t\tfclose(f);\n"
		       "\treturn strstr(line, \"[never]\") != NULL;\n}\n\n");
	if (has_need(x, MMR_NEED_NOCAP))
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

static void put_unless(struct mmr_export *x, const char *missing,
		       const char *sentence)
{
	x->e.indent = 1;
	mmr_emit_line(&x->e, "if (%s)", missing);
	x->e.indent = 2;
	mmr_emit_line(&x->e, "return puts(\"%s\"), 4;", sentence);
	x->e.indent = 1;
}

static void put_need(struct mmr_export *x, const struct mmr_need *n)
{
	char test[200], text[200];

	switch (n->kind) {
	case MMR_NEED_CPUS:
		snprintf(test, sizeof(test),
			 "sysconf(_SC_NPROCESSORS_ONLN) < %" PRId64, n->n);
		snprintf(text, sizeof(text), "needs %" PRId64 " CPUs", n->n);
		break;
	case MMR_NEED_NODES:
		snprintf(test, sizeof(test),
			 "access(\"/sys/devices/system/node/node%" PRId64
			 "\", F_OK)",
			 n->n - 1);
		snprintf(text, sizeof(text), "needs %" PRId64 " NUMA nodes",
			 n->n);
		break;
	case MMR_NEED_HUGEPAGES:
		snprintf(test, sizeof(test),
			 "field(\"/proc/meminfo\", \"HugePages_Free:\", 0) < "
			 "%" PRId64,
			 n->n);
		snprintf(text, sizeof(text),
			 "needs %" PRId64 " free huge pages, see "
			 "/proc/sys/vm/nr_hugepages",
			 n->n);
		break;
	case MMR_NEED_CAP:
		snprintf(test, sizeof(test),
			 "!(field(\"/proc/self/status\", \"CapEff:\", 1) >> %s "
			 "& 1)",
			 n->name);
		snprintf(text, sizeof(text), "needs %s", n->name);
		break;
	case MMR_NEED_NOCAP:
		PUT(x, "\tdrop(%s);\n", n->name);
		return;
	case MMR_NEED_SYSCALL:
		snprintf(test, sizeof(test),
			 "syscall(SYS_%s, -1, 0, 0, 0) == -1 && errno == "
			 "ENOSYS",
			 n->name);
		snprintf(text, sizeof(text), "this kernel has no %s", n->name);
		break;
	case MMR_NEED_ARCH:
		PUT(x, "\tuname(&uts);\n");
		snprintf(test, sizeof(test), "strcmp(uts.machine, \"%s\")",
			 n->name);
		snprintf(text, sizeof(text), "needs %s", n->name);
		break;
	case MMR_NEED_MEMORY:
		snprintf(test, sizeof(test),
			 "field(\"/proc/meminfo\", \"MemAvailable:\", 0) < "
			 "%" PRId64,
			 n->n >> 10);
		snprintf(text, sizeof(text), "needs %" PRId64 " MiB of memory",
			 n->n >> 20);
		break;
	case MMR_NEED_THP:
		snprintf(test, sizeof(test), "thp_is_off()");
		snprintf(text, sizeof(text), "needs transparent huge pages");
		break;
	case MMR_NEED_SWAP:
		snprintf(test, sizeof(test), "!getenv(\"SWAP_AREA\")");
		snprintf(text, sizeof(text),
			 "needs SWAP_AREA, a swap area of %" PRId64
			 " MiB that is on, with priority 100",
			 n->n >> 20);
		break;
	default:
		return;
	}
	put_unless(x, test, text);
}

static void put_needs(struct mmr_export *x)
{
	char test[200], text[200];
	int i;

	for (i = 0; i < x->c->nsettings; i++) {
		const struct mmr_setting *s = &x->c->settings[i];

		int index = mmr_setting_index(s->name);
		const char *path = mmr_setting_table[index].path;
		char value[32];

		mmr_setting_text(index, s->value, value, sizeof(value));
		if (mmr_setting_table[index].kind == MMR_SETTING_MODE)
			snprintf(test, sizeof(test),
				 "!has_word(\"%s\", \"[%s]\")", path, value);
		else
			snprintf(test, sizeof(test),
				 "field(\"%s\", \"\", 0) != %s", path, value);
		snprintf(text, sizeof(text), "needs %s at %s", path, value);
		put_unless(x, test, text);
	}
	for (i = 0; i < x->c->nneeds; i++)
		put_need(x, &x->c->needs[i]);
}

/* --- the watchdog --- */

/* What it looks at each time: who stays where it is, and whether anybody has
 * anything left to do. */
static void put_look(struct mmr_export *x)
{
	PUT(x, "\t\tusleep(500);\n\t\tshared->stop = time(NULL) >= end;\n");
	if (uses(x, MMR_USED_FRESH))
		PUT(x, "\t\tif (shared->fresh_body) {\n"
		       "\t\t\tvoid *(*body)(void *) = shared->fresh_body;\n\n"
		       "\t\t\tshared->fresh_body = NULL;\n"
		       "\t\t\tshared->fresh_pid = start(body, plain[0]);\n"
		       "\t\t}\n");
	if (mmr_export_may_rest(x))
		PUT(x, "\t\trest++;\n");
	PUT(x,
	    "\t\tfor (struct thread *t = shared->thread; t < shared->thread + "
	    "%s; t++) {\n",
	    x->simple ? "THREADS" : "THREADS && t->pid");
	if (mmr_export_may_rest(x))
		PUT(x, "\t\t\tif (t->in || t->moved != t->last)\n"
		       "\t\t\t\trest = 0;\n");
	PUT(x, "\t\t\tt->still = t->in && t->moved == t->last ? t->still + 1 : "
	       "0;\n"
	       "\t\t\tt->last = t->moved;\n");
	if (x->unmended)
		PUT(x, "\t\t\tif (t->still > LIMIT * 2 && t->faults)\n"
		       "\t\t\t\tprintf(\"%%lu faults came back unmended\\n\", "
		       "t->faults);\n");
	if (!x->simple)
		PUT(x, "\t\t\tif (t->still > LIMIT * 2 && gone(t->pid))\n"
		       "\t\t\t\tt->in = NULL;\n");
	PUT(x,
	    "\t\t\t%sif (t->still > LIMIT * 2)\n"
	    "\t\t\t\treturn printf(\"%%s does not return from %%s\\n\", "
	    "t->who, t->in);\n\t\t}\n",
	    x->simple ? "" : "else ");
	if (mmr_export_may_rest(x))
		PUT(x, "\t\tif (rest > LIMIT * 2)\n"
		       "\t\t\treturn 0; /* all wait for each other */\n");
}

static void put_watch(struct mmr_export *x)
{
	PUT(x,
	    "/* Watches a round to its end; not 0 when a thread stays where it "
	    "is. */\n"
	    "static int watch(%s, time_t end)\n{\n",
	    x->simple ? "pid_t pid" : "const pid_t *plain");
	PUT(x, x->simple ? "\tint status" : "\tint left = PLAIN, status");
	PUT(x, "%s;\n\n", mmr_export_may_rest(x) ? ", rest = 0" : "");
	if (x->simple) {
		PUT(x, "\twhile (waitpid(pid, &status, WNOHANG) != pid) {\n");
		put_look(x);
		PUT(x,
		    "\t}\n"
		    "\treturn WIFSIGNALED(status) ? printf(\"killed by signal "
		    "%%d\\n\", WTERMSIG(status)) : 0;\n}\n\n");
		return;
	}
	PUT(x, "\twhile (left) {\n"
	       "\t\tpid_t pid = waitpid(-1, &status, WNOHANG);\n\n"
	       "\t\tfor (int i = 0; pid > 0 && i < PLAIN; i++) {\n"
	       "\t\t\tif (pid != plain[i])\n\t\t\t\tcontinue;\n"
	       "\t\t\tleft--;\n"
	       "\t\t\tif (WIFSIGNALED(status))\n"
	       "\t\t\t\treturn printf(\"killed by signal %%d\\n\",\n"
	       "\t\t\t\t\t      WTERMSIG(status));\n\t\t}\n"
	       "\t\tif (pid > 0)\n\t\t\tcontinue;\n");
	put_look(x);
	PUT(x, "\t}\n\treturn 0;\n}\n\n");
}

/* Where a round may leave processes behind. */
static void put_end_round(struct mmr_export *x)
{
	PUT(x, "/* Ends what the round has left; not 0 when it will not go. "
	       "*/\n"
	       "static int end_round(pid_t group)\n{\n"
	       "\tfor (int i = 0; i < LIMIT * 2; i++) {\n"
	       "\t\tpid_t pid;\n\n"
	       "\t\tkill(-group, SIGKILL);\n"
	       "\t\twhile ((pid = waitpid(-1, NULL, WNOHANG)) > 0)\n"
	       "\t\t\t;\n"
	       "\t\tif (pid < 0)\n\t\t\treturn 0; /* nobody is left */\n"
	       "\t\tusleep(500);\n\t}\n"
	       "\treturn puts(\"a killed process does not go\");\n}\n\n");
}

static void put_start(struct mmr_export *x)
{
	int i, k, n = 0;

	if (x->simple)
		return;
	PUT(x, "static void *(*const bodies[PLAIN])(void *) = {");
	for (i = 0; i < x->c->nprocs; i++)
		for (k = 0;
		     !x->c->procs[i]->is_template && k < x->c->procs[i]->copies;
		     k++, n++)
			PUT(x, "%s%sproc_%s", n ? "," : "",
			    n % 4 ? " " : "\n\t", x->c->procs[i]->name);
	PUT(x, "\n};\n\n"
	       "static pid_t start(void *(*body)(void *), pid_t group)\n{\n"
	       "\tpid_t pid = fork();\n\n"
	       "\tif (pid)\n\t\treturn pid;\n"
	       "\tsetpgid(0, group);\n"
	       "\tprctl(PR_SET_PDEATHSIG, SIGKILL);\n"
	       "\tbody(NULL);\n\t_exit(0);\n}\n\n");
}

/* --- main() --- */

static void put_parties(struct mmr_export *x, const char *sync)
{
	PUT(x, "\t\tshared->sync_%s.parties = %d;\n", sync,
	    mmr_export_parties(x->c, sync));
}

/* What has to be there before a round's first statement. */
static void put_round_state(struct mmr_export *x)
{
	int i, j;

	PUT(x, "\t\t*shared = (struct shared){ 0 };\n");
	mmr_export_names(x, MMR_ARG_SYNC, put_parties);
	for (i = 0; i < x->c->nprocs && !x->simple; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (j = 0; j < p->nthreads; j++)
			if (mmr_export_is_plain(p, p->threads[j]) &&
			    mmr_export_is_awaited(x->c, MMR_UNTIL_DONE,
						  p->threads[j]->name))
				PUT(x, "\t\tshared->spawned_%s = %d;\n",
				    p->threads[j]->name, p->copies);
	}
}

static void put_simple_round(struct mmr_export *x)
{
	PUT(x, "\t\tpid_t pid = fork();\n\t\tif (!pid) {\n");
	if (mmr_export_may_leave(x))
		PUT(x, "\t\t\tsetpgid(0, 0);\n"
		       "\t\t\tprctl(PR_SET_PDEATHSIG, SIGKILL);\n");
	x->e.indent = 3;
	mmr_export_proc_body(x, mmr_export_first_plain(x->c));
	PUT(x, "\t\t\t_exit(0);\n\t\t}\n");
}

static void put_plain_round(struct mmr_export *x)
{
	int i, k, n = 0;

	PUT(x, "\t\tfor (int k = 0; k < PLAIN; k++)\n"
	       "\t\t\tplain[k] = start(bodies[k], plain[0]);\n");
	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		for (k = 0; !p->is_template && k < p->copies; k++, n++)
			if (mmr_export_is_awaited(x->c, MMR_UNTIL_EXITED,
						  p->name))
				PUT(x, "\t\tshared->pids_%s[%d] = plain[%d];\n",
				    p->name, k, n);
	}
}

static void put_round(struct mmr_export *x)
{
	bool leave = mmr_export_may_leave(x);

	PUT(x, "\tfor (int i = 0; i < %s && time(NULL) < end; i++) {\n",
	    x->c->keep ? "1" : "ROUNDS");
	if (!x->simple)
		PUT(x, "\t\tpid_t plain[PLAIN] = { 0 };\n\n");
	put_round_state(x);
	if (x->simple)
		put_simple_round(x);
	else
		put_plain_round(x);
	PUT(x, "\t\tif (watch(%s, end)", x->simple ? "pid" : "plain");
	if (leave)
		PUT(x, " || end_round(%s)", x->simple ? "pid" : "plain[0]");
	PUT(x, ")\n\t\t\treturn kill(%s, SIGKILL), 1; /* not waited for */\n",
	    !x->simple ? "-plain[0]"
	    : leave    ? "-pid"
		       : "pid");
	if (uses(x, MMR_USED_UFFD))
		PUT(x, "\t\tif (shared->missing)\n"
		       "\t\t\treturn printf(\"no %%s here\\n\", "
		       "shared->missing), 4;\n");
	PUT(x, "\t}\n");
}

static void put_restored(struct mmr_export *x)
{
	PUT(x,
	    "\tfor (int i = 0; i < 200 && field(\"/proc/meminfo\", \"%s:\", 0) "
	    "!= before; i++)\n"
	    "\t\tusleep(10000);\n"
	    "\tif (field(\"/proc/meminfo\", \"%s:\", 0) != before)\n"
	    "\t\treturn puts(\"%s did not come back\"), 1;\n",
	    restored(x), restored(x), restored(x));
}

static int plain_threads(const struct mmr_export *x)
{
	const struct mmr_proc *p = mmr_export_first_plain(x->c);
	int j, n = 0;

	for (j = 0; j < p->nthreads; j++)
		n += !p->threads[j]->is_template;
	return n;
}

void mmr_export_main(struct mmr_export *x)
{
	put_need_helpers(x);
	put_start(x);
	put_watch(x);
	if (mmr_export_may_leave(x))
		put_end_round(x);
	PUT(x, "int main(void)\n{\n"
	       "\ttime_t end = time(NULL) + BUDGET;\n");
	if (restored(x))
		PUT(x,
		    "\tunsigned long before = field(\"/proc/meminfo\", "
		    "\"%s:\", 0);\n",
		    restored(x));
	if (has_need(x, MMR_NEED_ARCH))
		PUT(x, "\tstruct utsname uts;\n");
	if (x->simple && plain_threads(x) > 1)
		PUT(x, "\tpthread_t other[%d];\n", plain_threads(x) - 1);
	PUT(x, "\n");
	put_needs(x);
	if (uses(x, MMR_USED_PAGE))
		PUT(x, "\tpage = (size_t)sysconf(_SC_PAGESIZE);\n");
	if (uses(x, MMR_USED_HUGE))
		PUT(x, "\thuge = field(\"/proc/meminfo\", \"Hugepagesize:\", 0)"
		       " << 10;\n");
	if (x->pins)
		PUT(x, "\tsched_getaffinity(0, sizeof(allowed), &allowed);\n");
	PUT(x, "\tshared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, "
	       "MAP_SHARED | MAP_ANONYMOUS, -1, 0);\n");
	if (uses(x, MMR_USED_RECOVER))
		PUT(x,
		    "\tfor (int i = 0; i < 2; i++)\n"
		    "\t\tsigaction(i ? SIGBUS : SIGSEGV,\n"
		    "\t\t\t  &(struct sigaction){ .%s = on_fault,\n"
		    "\t\t\t\t\t       .sa_flags = SA_NODEFER%s },\n"
		    "\t\t\t  NULL);\n",
		    uses(x, MMR_USED_KILL) ? "sa_sigaction" : "sa_handler",
		    uses(x, MMR_USED_KILL) ? " | SA_SIGINFO" : "");
	if (!x->simple)
		PUT(x, "\tprctl(PR_SET_CHILD_SUBREAPER, 1);\n");
	put_round(x);
	if (restored(x))
		put_restored(x);
	PUT(x, "\treturn 0;\n}\n");
}
