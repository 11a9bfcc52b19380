/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the statements of an exported C file call: only what it uses, in as
 * few lines as a person would need.
 */
#include <string.h>

#include "export_c.h"

#define PUT(x, ...) fprintf((x)->out, __VA_ARGS__)

static bool uses(const struct mmr_export *x, uint32_t used)
{
	return (x->e.used & used) != 0;
}

/* --- what all processes share --- */

static void put_latch(struct mmr_export *x, const char *name)
{
	PUT(x, "\tatomic_int latch_%s;\n", name);
}

static void put_futex(struct mmr_export *x, const char *name)
{
	PUT(x, "\tvolatile int futex_%s;\n", name);
}

static void put_sync(struct mmr_export *x, const char *name)
{
	PUT(x, "\tstruct meet sync_%s;\n", name);
}

/* Counters that `until` loops read; plain integers where one process alone
 * writes them. */
static void put_counters(struct mmr_export *x)
{
	int i, j;

	PUT(x, "\tvolatile int stop");
	for (i = 0; i < x->c->nprocs && x->simple; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++) {
			const char *t = x->c->procs[i]->threads[j]->name;

			if (mmr_export_is_awaited(x->c, MMR_UNTIL_DONE, t))
				PUT(x, ", done_%s", t);
		}
	PUT(x, ";\n");
	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		if (mmr_export_is_awaited(x->c, MMR_UNTIL_EXITED, p->name))
			PUT(x, "\tvolatile pid_t pids_%s[%d];\n", p->name,
			    p->copies);
		for (j = 0; j < p->nthreads && !x->simple; j++) {
			const char *t = p->threads[j]->name;

			if (mmr_export_is_awaited(x->c, MMR_UNTIL_DONE, t))
				PUT(x, "\tatomic_int spawned_%s, done_%s;\n", t,
				    t);
		}
	}
}

static void put_limits(struct mmr_export *x)
{
	int i, j, n = 0;

	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++)
			n += mmr_export_is_plain(x->c->procs[i],
						 x->c->procs[i]->threads[j]);
	PUT(x,
	    "enum { ROUNDS = %lld, BUDGET = %lld /* s */, LIMIT = %lld /* ms "
	    "*/,",
	    (long long)x->c->rounds,
	    x->c->budget_ns ? (long long)x->budget_s : 1000000000LL,
	    (long long)x->limit_ms);
	if (x->simple)
		PUT(x, " THREADS = %d };\n\n", n ? n : 1);
	else
		PUT(x,
		    "\n       THREADS = 1024 /* watched */, PLAIN = %d };\n\n",
		    x->nplain);
}

static void put_shared(struct mmr_export *x)
{
	PUT(x, "/* What the watchdog sees of the threads. */\n"
	       "static struct shared {\n\tstruct thread {\n");
	if (!x->simple)
		PUT(x, "\t\tpid_t pid; /* 0: unused */\n");
	PUT(x, "\t\tconst char *volatile who, *volatile in; /* a statement, or "
	       "NULL */\n"
	       "\t\tvolatile unsigned long moved;\n"
	       "\t\tunsigned long last, still; /* the watchdog's */\n");
	if (x->unmended)
		PUT(x, "\t\tvolatile unsigned long faults;\n");
	PUT(x, "\t} thread[THREADS];\n");
	put_counters(x);
	if (!x->simple)
		PUT(x, "\tatomic_int threads;\n");
	if (uses(x, MMR_USED_UFFD))
		PUT(x, "\tconst char *volatile missing;\n");
	if (uses(x, MMR_USED_FRESH))
		PUT(x, "\tatomic_int fresh_busy;\n\tvolatile pid_t fresh_pid;\n"
		       "\tvoid *(*volatile fresh_body)(void *);\n");
	mmr_export_names(x, MMR_ARG_LATCH, put_latch);
	mmr_export_names(x, MMR_ARG_FUTEX, put_futex);
	mmr_export_names(x, MMR_ARG_SYNC, put_sync);
	PUT(x, "} *shared;\nstatic __thread struct thread *me;\n");
}

static void put_types(struct mmr_export *x)
{
	int i, n = 1;

	if (uses(x, MMR_USED_THREAD))
		PUT(x, "struct handle {\n\tpthread_t id;\n"
		       "\tpid_t live; /* in which process */\n};\n\n");
	if (!uses(x, MMR_USED_SPAWN))
		return;
	PUT(x, "struct proc {\n\tpid_t pid;\n%s};\n\n",
	    uses(x, MMR_USED_PIDFD) ? "\tint fd; /* a pidfd */\n" : "");
	if (!x->e.sets)
		return;
	for (i = 0; i < x->c->nprocs; i++)
		if (x->c->procs[i]->copies > n)
			n = x->c->procs[i]->copies;
	PUT(x, "struct procs {\n\tint n;\n\tstruct proc p[%d];\n};\n\n", n);
}

void mmr_export_shared(struct mmr_export *x)
{
	put_limits(x);
	if (uses(x, MMR_USED_SYNC))
		PUT(x, "struct meet {\n\tatomic_int arrived, left, turn;\n"
		       "\tint parties;\n\tvolatile long when;\n};\n\n");
	put_shared(x);
	if (uses(x, MMR_USED_PAGE))
		PUT(x, "static size_t page;\n");
	if (uses(x, MMR_USED_HUGE))
		PUT(x, "static size_t huge;\n");
	PUT(x, "\n/* Tells the watchdog; results do not matter here. */\n"
	       "#define STEP(...)                                           "
	       "          \\\n"
	       "\t(me->who = __func__, me->in = #__VA_ARGS__, "
	       "(void)!(__VA_ARGS__), \\\n"
	       "\t me->moved++, me->in = NULL)\n");
	if (uses(x, MMR_USED_ARENA))
		PUT(x, "#define ARENA ((char *)0x1000000000ul)\n");
	PUT(x, "\n");
	put_types(x);
}

/* --- helpers --- */

static void put_time(struct mmr_export *x)
{
	if (uses(x, MMR_USED_DELAY | MMR_USED_SYNC))
		PUT(x, "static long now(void)\n{\n\tstruct timespec t;\n\n"
		       "\tclock_gettime(CLOCK_MONOTONIC, &t);\n"
		       "\treturn t.tv_sec * 1000000000L + t.tv_nsec;\n}\n\n");
	if (uses(x, MMR_USED_DRAW))
		PUT(x,
		    "static long draw(long lo, long hi)\n{\n"
		    "\tstatic __thread unsigned long x;\n\n"
		    "\tif (!x)\n"
		    "\t\tx = (unsigned long)getpid() << 20 ^ "
		    "(unsigned long)(me - shared->thread + 1);\n"
		    "\tx ^= x << 13;\n\tx ^= x >> 7;\n\tx ^= x << 17;\n"
		    "\treturn lo + (long)(x %% (unsigned long)(hi - lo + 1));"
		    "\n}\n\n");
	if (uses(x, MMR_USED_DELAY))
		PUT(x, "static void delay_ns(long ns)\n{\n"
		       "\tlong end = now() + ns;\n\n"
		       "\tfor (; now() < end && !shared->stop; me->moved++)\n"
		       "\t\tif (end - now() > 300000)\n"
		       "\t\t\tusleep(100);\n}\n\n");
}

static void put_sync_helpers(struct mmr_export *x)
{
	if (!uses(x, MMR_USED_SYNC))
		return;
	PUT(x,
	    "static void release(struct meet *m)\n{\n"
	    "\tif (m->arrived + m->left < m->parties)\n\t\treturn;\n"
	    "\tm->arrived = 0;\n\tm->when = now() + %lld;\n"
	    "\tm->turn++;\n}\n\n"
	    "/* All who name it go on at one instant, each skew ns after it. "
	    "*/\n"
	    "static void meet(struct meet *m, long skew)\n{\n"
	    "\tlong end = now() + 1000000000; /* somebody does not come */\n"
	    "\tint turn = m->turn, n = 0;\n\n"
	    "\tm->arrived++;\n\trelease(m);\n"
	    "\twhile (m->turn == turn && now() < end)\n"
	    "\t\tif (++n > 2000)\n\t\t\tsched_yield();\n"
	    "\twhile (now() < m->when + skew)\n\t\t;\n}\n\n"
	    "/* A thread at its end is not waited for. */\n"
	    "static void leave(struct meet *m)\n{\n"
	    "\tm->left++;\n\tif (m->arrived)\n\t\trelease(m);\n}\n\n",
	    (long long)x->sync_lead_ns + 2000);
}

static void put_latch_helpers(struct mmr_export *x)
{
	if (uses(x, MMR_USED_LATCH))
		PUT(x, "static void latch_signal(atomic_int *latch)\n{\n"
		       "\t*latch = 1;\n"
		       "\tsyscall(SYS_futex, latch, FUTEX_WAKE, INT_MAX, NULL, "
		       "NULL, 0);\n}\n\n");
	if (uses(x, MMR_USED_WAIT))
		PUT(x, "static void latch_wait(atomic_int *latch)\n{\n"
		       "\twhile (!*latch)\n"
		       "\t\tsyscall(SYS_futex, latch, FUTEX_WAIT, 0, NULL, "
		       "NULL, 0);\n}\n\n");
}

static void put_map_helpers(struct mmr_export *x)
{
	if (uses(x, MMR_USED_KEEP))
		PUT(x,
		    "/* A call that failed leaves the old mapping in its name. "
		    "*/\n"
		    "static int keep(struct map *m, void *at, size_t len)\n{\n"
		    "\tif (at != MAP_FAILED)\n"
		    "\t\t*m = (struct map){ at, len };\n"
		    "\treturn 0;\n}\n\n");
	if (uses(x, MMR_USED_PART))
		PUT(x, "/* From off on, len bytes or (0) to the end. */\n"
		       "static struct map part(struct map m, size_t off, "
		       "size_t len)\n{\n"
		       "\toff = off < m.len ? off : m.len;\n"
		       "\tif (!len || len > m.len - off)\n"
		       "\t\tlen = m.len - off;\n"
		       "\treturn (struct map){ m.at + off, len };\n}\n\n");
}

static void put_fault_handler(struct mmr_export *x)
{
	bool kill = uses(x, MMR_USED_KILL);

	if (!uses(x, MMR_USED_RECOVER))
		return;
	PUT(x, "static __thread sigjmp_buf back;\n");
	if (x->unmended)
		PUT(x, "static __thread int unmended;\n");
	PUT(x, "\n/* An access to memory that has gone%s. */\n",
	    x->unmended ? "; unmended, it comes back for ever"
			: " ends its touch");
	if (kill)
		PUT(x, "static void on_fault(int sig, siginfo_t *info, "
		       "void *context)\n{\n\t(void)context;\n"
		       "\tif (info->si_code <= 0) { /* sent by somebody */\n"
		       "\t\tsignal(sig, SIG_DFL);\n\t\traise(sig);\n"
		       "\t\treturn;\n\t}\n");
	else
		PUT(x, "static void on_fault(int sig)\n{\n");
	if (x->unmended)
		PUT(x, "\tif (unmended) {\n\t\tme->faults++;\n\t\treturn;\n"
		       "\t}\n");
	PUT(x, "\tsiglongjmp(back, sig);\n}\n\n");
}

static void put_touch(struct mmr_export *x)
{
	const char *set =
		uses(x, MMR_USED_RECOVER)
			? "\tif (sigsetjmp(back, 0))\n\t\treturn -1;\n"
			: "";

	put_fault_handler(x);
	if (uses(x, MMR_USED_WRITE))
		PUT(x,
		    "static int touch_write(struct map m, size_t step)\n{\n%s"
		    "\tfor (size_t i = 0; i < m.len; i += step, me->moved++)\n"
		    "\t\t((volatile char *)m.at)[i] = 1;\n"
		    "\treturn 0;\n}\n\n",
		    set);
	if (uses(x, MMR_USED_READ))
		PUT(x,
		    "static int touch_read(struct map m, size_t step)\n{\n%s"
		    "\tfor (size_t i = 0; i < m.len; i += step, me->moved++)\n"
		    "\t\t(void)((volatile char *)m.at)[i];\n"
		    "\treturn 0;\n}\n\n",
		    set);
	if (uses(x, MMR_USED_RANDOM))
		PUT(x,
		    "static int touch_random(struct map m, size_t step, "
		    "int write)\n{\n"
		    "\tlong all = (long)(m.len / step);\n\n%s"
		    "\tfor (long i = 0; i < all; i++, me->moved++) {\n"
		    "\t\tvolatile char *p = m.at + draw(0, all - 1) * "
		    "(long)step;\n\n"
		    "\t\tif (write)\n\t\t\t*p = 1;\n"
		    "\t\telse\n\t\t\t(void)*p;\n\t}\n"
		    "\treturn 0;\n}\n\n",
		    set);
}

/* Whoever unmaps an address twice could hit a stack that came in between. */
static void put_stacks(struct mmr_export *x)
{
	bool threads = uses(x, MMR_USED_THREAD | MMR_USED_IDLE_THREAD);
	int i;

	for (i = 0; i < x->c->nprocs; i++)
		threads |= x->proc_used[i] && x->c->procs[i]->nthreads > 1;
	if (!x->e.own_stacks || !threads)
		return;
	PUT(x,
	    "/* Stacks that no call with an old address can hit. */\n"
	    "static char stacks[256][1 << 16] __attribute__((aligned(1 << "
	    "16)));"
	    "\nstatic atomic_int busy[256];\n\n"
	    "static void *on_stack(void *body)\n{\n"
	    "\t((void *(*)(void *))body)(NULL);\n"
	    "\tbusy[((char *)&body - stacks[0]) >> 16] = 0;\n"
	    "\treturn NULL;\n}\n\n"
	    "static int thread_create(pthread_t *id, void *(*body)(void *))\n"
	    "{\n\tstatic atomic_uint next;\n"
	    "\tunsigned int i = next++ %% 256, n = 0;\n"
	    "\tpthread_attr_t attr;\n\tint err;\n\n"
	    "\tfor (; atomic_exchange(&busy[i], 1); i = next++ %% 256)\n"
	    "\t\tif (++n == 256)\n\t\t\treturn -1;\n"
	    "\tpthread_attr_init(&attr);\n"
	    "\tpthread_attr_setstack(&attr, stacks[i], sizeof(stacks[i]));\n"
	    "\terr = pthread_create(id, &attr, on_stack, (void *)body);\n"
	    "\tpthread_attr_destroy(&attr);\n"
	    "\tif (err)\n\t\tbusy[i] = 0;\n\treturn err;\n}\n\n");
}

static void put_threads(struct mmr_export *x)
{
	if (!x->simple)
		PUT(x,
		    "/* A thread, or what else the watchdog should watch. */\n"
		    "static struct thread *slot(pid_t pid)\n"
		    "{\n"
		    "\tstruct thread *t = &shared->thread[shared->threads++ "
		    "%% THREADS];\n\n"
		    "\tt->in = NULL;\n\tt->pid = pid;\n"
		    "\treturn t;\n}\n\n");
	if (x->pins)
		PUT(x,
		    "static cpu_set_t allowed;\n\n"
		    "static void pin(int n)\n{\n\tcpu_set_t one;\n\tint "
		    "cpu;\n\n"
		    "\tn %%= CPU_COUNT(&allowed);\n"
		    "\tfor (cpu = 0; !CPU_ISSET(cpu, &allowed) || n--; cpu++)\n"
		    "\t\t;\n"
		    "\tCPU_ZERO(&one);\n\tCPU_SET(cpu, &one);\n"
		    "\tsched_setaffinity(0, sizeof(one), &one);\n}\n\n");
	put_stacks(x);
	if (!uses(x, MMR_USED_THREAD))
		return;
	PUT(x,
	    "static int thread_start(struct handle *h, "
	    "void *(*body)(void *))\n{\n"
	    "\tpthread_t id;\n\n"
	    "\tif (%s)\n"
	    "\t\treturn -1;\n"
	    "\tif (!h)\n\t\treturn pthread_detach(id);\n"
	    "\tif (h->live == getpid())\n\t\tpthread_detach(h->id);\n"
	    "\t*h = (struct handle){ id, getpid() };\n"
	    "\treturn 0;\n}\n\n"
	    "__attribute__((unused)) static void thread_end(struct handle "
	    "*h)\n{\n"
	    "\tif (h->live == getpid())\n"
	    "\t\tpthread_join(h->id, NULL);\n"
	    "\th->live = 0;\n}\n\n",
	    x->e.own_stacks ? "thread_create(&id, body)"
			    : "pthread_create(&id, NULL, body, NULL)");
}

static void put_spawn(struct mmr_export *x)
{
	const char *fd = uses(x, MMR_USED_PIDFD)
				 ? ", (int)syscall(SYS_pidfd_open, pid, 0)"
				 : "";

	PUT(x,
	    "static int %s(struct proc *p, void *(*body)(void *))\n{\n"
	    "\tpid_t pid = fork();\n\n"
	    "\tif (!pid) {\n\t\tbody(NULL);\n\t\t_exit(0);\n\t}\n"
	    "\tif (pid < 0)\n\t\treturn -1;\n%s"
	    "\t*p = (struct proc){ pid%s };\n\treturn 0;\n}\n\n",
	    x->e.sets ? "spawn_one" : "spawn",
	    uses(x, MMR_USED_PIDFD) ? "\tif (p->fd > 0)\n\t\tclose(p->fd);\n"
				    : "",
	    fd);
	if (uses(x, MMR_USED_FRESH))
		PUT(x,
		    "/* The watchdog forks it: it inherits no memory. */\n"
		    "static int %s(struct proc *p, void *(*body)(void *))\n"
		    "{\n\tpid_t pid;\n\n"
		    "\twhile (atomic_exchange(&shared->fresh_busy, 1))\n"
		    "\t\tusleep(100);\n"
		    "\tshared->fresh_pid = 0;\n\tshared->fresh_body = body;\n"
		    "\twhile (!(pid = shared->fresh_pid))\n\t\tusleep(100);\n"
		    "\tshared->fresh_busy = 0;\n"
		    "\t*p = (struct proc){ pid%s };\n\treturn 0;\n}\n\n",
		    x->e.sets ? "spawn_fresh_one" : "spawn_fresh", fd);
	if (!x->e.sets)
		return;
	PUT(x, "__attribute__((unused)) static int spawn(struct procs *set, "
	       "void *(*body)(void *), int copies)\n{\n"
	       "\tfor (set->n = 0; set->n < copies; set->n++)\n"
	       "\t\tif (spawn_one(&set->p[set->n], body))\n"
	       "\t\t\treturn -1;\n\treturn 0;\n}\n\n");
	if (uses(x, MMR_USED_FRESH))
		PUT(x, "static int spawn_fresh(struct procs *set, "
		       "void *(*body)(void *), int copies)\n{\n"
		       "\tfor (set->n = 0; set->n < copies; set->n++)\n"
		       "\t\tspawn_fresh_one(&set->p[set->n], body);\n"
		       "\treturn 0;\n}\n\n");
}

/* Whether a process has ended: the watchdog asks as well. */
static void put_gone(struct mmr_export *x)
{
	bool awaited = false;
	int i;

	for (i = 0; i < x->c->nprocs; i++)
		awaited |= mmr_export_is_awaited(x->c, MMR_UNTIL_EXITED,
						 x->c->procs[i]->name);
	if (x->simple && !awaited)
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
	    "\tsscanf(text,\n"
	    "\t       \"%%*d (%%*[^)]) %%c %%*s %%*s %%*s %%*s %%*s %%*s %%*s "
	    "%%*s \"\n"
	    "\t       \"%%*s %%*s %%*s %%*s %%*s %%*s %%*s %%*s %%d\",\n"
	    "\t       &state, &threads);\n"
	    "\treturn state == 'X' || (state == 'Z' && threads <= 1);\n"
	    "}\n\n");
	if (awaited)
		PUT(x, "#define running(pids) "
		       "any_running(pids, sizeof(pids) / sizeof(pids[0]))\n"
		       "static int any_running(volatile pid_t *pid, size_t n)\n"
		       "{\n\twhile (n--)\n"
		       "\t\tif (pid[n] && !gone(pid[n]))\n"
		       "\t\t\treturn 1;\n\treturn 0;\n}\n\n");
}

static void put_process_helpers(struct mmr_export *x)
{
	if (uses(x, MMR_USED_KILL))
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
		       "\t\twaitid(P_PID, (id_t)p.pid, &info, WEXITED | "
		       "WNOWAIT);\n}\n\n");
	else if (uses(x, MMR_USED_REAP))
		PUT(x, "static void wait_gone(struct proc p)\n{\n"
		       "\twhile (p.pid > 0 && !gone(p.pid))\n"
		       "\t\tusleep(1000);\n}\n\n");
}

static void put_uffd(struct mmr_export *x)
{
	if (uses(x, MMR_USED_UFFD))
		PUT(x, "static int uffd_open(int flags, "
		       "unsigned long features)\n{\n"
		       "\tstruct uffdio_api api = { UFFD_API, features, 0 };\n"
		       "\tint fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | "
		       "O_NONBLOCK | flags);\n\n"
		       "\tif (fd < 0 || ioctl(fd, UFFDIO_API, &api))\n"
		       "\t\tshared->missing = \"userfaultfd\";\n"
		       "\treturn fd;\n}\n\n");
	if (uses(x, MMR_USED_UFFD_REGISTER))
		PUT(x, "static int uffd_register(int fd, struct map m, "
		       "unsigned long mode)\n{\n"
		       "\tstruct uffdio_register r = {\n"
		       "\t\t{ (unsigned long)m.at, m.len }, mode, 0\n\t};\n\n"
		       "\treturn ioctl(fd, UFFDIO_REGISTER, &r);\n}\n\n");
}

void mmr_export_helpers(struct mmr_export *x)
{
	put_time(x);
	put_sync_helpers(x);
	put_latch_helpers(x);
	put_map_helpers(x);
	put_touch(x);
	put_threads(x);
	put_gone(x);
	if (uses(x, MMR_USED_SPAWN))
		put_spawn(x);
	put_process_helpers(x);
	put_uffd(x);
	for (int i = 0; i < x->e.nhelpers; i++)
		PUT(x, "%s", x->e.helpers[i]);
}
