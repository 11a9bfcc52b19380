/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an exported C file needs to start processes, to signal them, and to
 * know that they have gone. */
#include "export_c.h"

#define PUT MMR_EXPORT_PUT
#define uses mmr_export_uses

void mmr_export_proc_types(struct mmr_export *x)
{
	int i, n = 1;

	if (!uses(x, MMR_USED_SPAWN) || x->folds || x->e.plain_procs)
		return;
	PUT(x, "\nstruct proc {\n\tpid_t pid;\n%s};\n\n",
	    uses(x, MMR_USED_PIDFD) ? "\tint fd; /* a pidfd */\n" : "");
	if (!x->e.sets)
		return;
	for (i = 0; i < x->c->nprocs; i++)
		if (x->c->procs[i]->copies > n)
			n = x->c->procs[i]->copies;
	PUT(x, "struct procs {\n\tint n;\n\tstruct proc p[%d];\n};\n\n", n);
}

/* How a fork is written, and what its failure means. */
static void put_fork(struct mmr_export *x)
{
	if (x->to == MMR_EXPORT_LTP)
		PUT(x, "\tpid_t pid = SAFE_FORK();\n\n");
	else
		PUT(x,
		    "\tpid_t pid = fork();\n\n"
		    "\tif (pid < 0)\n\t\terr(%s, \"fork\");\n",
		    x->to == MMR_EXPORT_C ? "4" : "KSFT_SKIP");
}

/* One fork alone is written in its place. */
bool mmr_export_has_start(const struct mmr_export *x)
{
	return (x->spawns && !x->in_place) || x->e.groups ||
	       x->to == MMR_EXPORT_LTP;
}

static void put_start(struct mmr_export *x)
{
	if (!x->e.groups) {
		PUT(x, "/* Runs body in a process that goes with the one that "
		       "starts it. */\n"
		       "static pid_t start(void (*body)(void))\n{\n");
		put_fork(x);
		PUT(x, "\tif (pid)\n\t\treturn pid;\n"
		       "\tprctl(PR_SET_PDEATHSIG, SIGKILL);\n"
		       "\tbody();\n\t_exit(0);\n}\n\n");
		return;
	}
	PUT(x, "/* The watchdog has died. */\n"
	       "static void end_group(int sig)\n{\n"
	       "\t(void)sig;\n\tkill(0, SIGKILL);\n}\n\n"
	       "/* Runs body in a process of this group, 0: its own. */\n"
	       "static pid_t start(void (*body)(void), pid_t group)\n{\n");
	put_fork(x);
	PUT(x, "\tif (pid) {\n\t\tsetpgid(pid, group);\n"
	       "\t\treturn pid;\n\t}\n"
	       "\tsetpgid(0, group);\n"
	       "\tsignal(SIGPWR, end_group);\n"
	       "\tprctl(PR_SET_PDEATHSIG, SIGPWR);\n"
	       "\tbody();\n\t_exit(0);\n}\n\n");
}

static void put_spawn_one(struct mmr_export *x, const char *fd)
{
	PUT(x, "static int %s(struct proc *p, void (*body)(void))\n{\n",
	    x->e.sets ? "spawn_one" : "spawn");
	if (x->e.groups || !x->whole)
		PUT(x, "\tpid_t pid = fork();\n\n"
		       "\tif (!pid) {\n\t\tbody();\n\t\t_exit(0);\n\t}\n"
		       "\tif (pid < 0)\n\t\treturn -1;\n");
	else
		PUT(x, "\tpid_t pid = start(body);\n\n");
	PUT(x, "%s\t*p = (struct proc){ pid%s };\n\treturn 0;\n}\n\n",
	    uses(x, MMR_USED_PIDFD) ? "\tif (p->fd > 0)\n\t\tclose(p->fd);\n"
				    : "",
	    fd);
}

static void put_spawn(struct mmr_export *x)
{
	const char *fd = uses(x, MMR_USED_PIDFD)
				 ? ", syscall(SYS_pidfd_open, pid, 0)"
				 : "";

	if (uses(x, MMR_USED_SPAWN_ANY))
		put_spawn_one(x, fd);
	if (uses(x, MMR_USED_FRESH))
		PUT(x,
		    "/* The watchdog forks it: it inherits no memory. */\n"
		    "static int %s(struct proc *p, void (*body)(void))\n"
		    "{\n\tpid_t pid;\n\n"
		    "\twhile (atomic_exchange(&shared->fresh_busy, 1))\n"
		    "\t\tusleep(100);\n"
		    "\tshared->fresh_pid = 0;\n\tshared->fresh_body = body;\n"
		    "\tdo {\n\t\tusleep(100);\n\t\tpid = shared->fresh_pid;\n"
		    "\t} while (!pid);\n"
		    "\tshared->fresh_busy = 0;\n"
		    "\t*p = (struct proc){ pid%s };\n\treturn 0;\n}\n\n",
		    x->e.sets ? "spawn_fresh_one" : "spawn_fresh", fd);
	if (!x->e.sets)
		return;
	if (uses(x, MMR_USED_SPAWN_ANY))
		PUT(x, "static int spawn(struct procs *set, "
		       "void (*body)(void), int copies)\n{\n"
		       "\tfor (set->n = 0; set->n < copies; set->n++)\n"
		       "\t\tif (spawn_one(&set->p[set->n], body))\n"
		       "\t\t\treturn -1;\n\treturn 0;\n}\n\n");
	if (uses(x, MMR_USED_FRESH))
		PUT(x, "static int spawn_fresh(struct procs *set, "
		       "void (*body)(void), int copies)\n{\n"
		       "\tfor (set->n = 0; set->n < copies; set->n++)\n"
		       "\t\tspawn_fresh_one(&set->p[set->n], body);\n"
		       "\treturn 0;\n}\n\n");
}

/* Whether a process has ended: the watchdog asks as well. */
static void put_gone(struct mmr_export *x)
{
	bool awaited = mmr_export_awaits_exit(x->c);
	bool reaps = uses(x, MMR_USED_REAP) && uses(x, MMR_USED_FRESH);

	if (!awaited && !reaps && (x->simple || x->whole))
		return;
	PUT(x,
	    "/* True when a process has ended with all its threads, reaped "
	    "or not. */\n"
	    "static int gone(pid_t pid)\n{\n"
	    "\tchar text[512] = \"\", state = 'Z';\n\tint fd, threads = 1;"
	    "\n\n"
	    "\tsnprintf(text, sizeof(text), \"/proc/%%d/stat\", pid);\n"
	    "\tfd = open(text, O_RDONLY);\n"
	    "\tif (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)\n"
	    "\t\ttext[0] = '\\0';\n"
	    "\tif (fd >= 0)\n\t\tclose(fd);\n"
	    "\t/* pid (comm) state and, 16 fields later, the threads. */\n"
	    "\tif (sscanf(text, \"%%*d (%%*[^)]) %%c %%*s %%*s %%*s %%*s %%*s "
	    "%%*s \"\n\t\t   \"%%*s %%*s %%*s %%*s %%*s %%*s %%*s %%*s "
	    "%%*s %%*s %%d\",\n\t\t   &state, &threads) < 1)\n"
	    "\t\treturn 1;\n"
	    "\treturn state == 'X' || (state == 'Z' && threads <= 1);\n"
	    "}\n\n");
	if (awaited)
		PUT(x, "static int any_running(volatile pid_t *pid, int n)\n"
		       "{\n\twhile (n--)\n"
		       "\t\tif (pid[n] && !gone(pid[n]))\n"
		       "\t\t\treturn 1;\n\treturn 0;\n}\n\n");
}

static void put_signal(struct mmr_export *x)
{
	if (uses(x, MMR_USED_KILL) && x->whole)
		PUT(x, "static int send_signal(struct proc p, int sig)\n{\n"
		       "\treturn p.pid > 0 ? kill(p.pid, sig) : -1;\n}\n\n");
	else if (uses(x, MMR_USED_KILL))
		PUT(x, "/* Who gets a fatal signal has to be gone soon. */\n"
		       "static int send_signal(struct proc p, int sig)\n{\n"
		       "\tif (p.pid > 0 && sig != SIGSTOP && sig != SIGCONT) "
		       "{\n"
		       "\t\tstruct thread *t = slot(p.pid);\n\n"
		       "\t\tt->who = \"a killed process\";\n"
		       "\t\tt->in = \"its exit\";\n\t}\n"
		       "\treturn p.pid > 0 ? kill(p.pid, sig) : -1;\n}\n\n");
	if (uses(x, MMR_USED_REAP) && !uses(x, MMR_USED_FRESH))
		PUT(x, "static void wait_gone(struct proc p)\n{\n"
		       "\tsiginfo_t info;\n\n"
		       "\tif (p.pid > 0)\n"
		       "\t\twaitid(P_PID, p.pid, &info, WEXITED | "
		       "WNOWAIT);\n}\n\n");
	else if (uses(x, MMR_USED_REAP))
		PUT(x, "static void wait_gone(struct proc p)\n{\n"
		       "\twhile (p.pid > 0 && !gone(p.pid))\n"
		       "\t\tusleep(1000);\n}\n\n");
}

void mmr_export_proc_helpers(struct mmr_export *x)
{
	put_gone(x);
	if (mmr_export_has_start(x))
		put_start(x);
	if (uses(x, MMR_USED_SPAWN))
		put_spawn(x);
	put_signal(x);
}
