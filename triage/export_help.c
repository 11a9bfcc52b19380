/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the statements of an exported C file call: only what it uses, in as
 * few lines as a person would need.
 */
#include <stdlib.h>
#include <string.h>

#include "export_c.h"

#define PUT MMR_EXPORT_PUT
#define uses mmr_export_uses

/* Until somebody is back from usleep(20), which the timer slack makes 70 us.
 * Not sched_yield(): it gives away a time slice for each call (Linux 6.18), so
 * that who waits so may get no CPU for seconds where others want it. */
#define WAKE_NS 100000
/* Who spins needs less: a look at the clock. */
#define SPIN_NS 1000

/* Columns of "\tatomic_int a, b", and of a line of any fields, that fit into
 * one with all around. */
#define MOST_NUMBERS 38
#define MOST_FIELDS 47

/* --- what all processes share --- */

static void put_latch(struct mmr_export *x, const char *name)
{
	PUT(x, "%s latch_%s", x->listed++ ? "," : "\tatomic_int", name);
}

static void put_futex(struct mmr_export *x, const char *name)
{
	PUT(x, "\tvolatile int futex_%s;\n", name);
}

static void put_sync(struct mmr_export *x, const char *name)
{
	PUT(x, "\tstruct meet sync_%s;\n", name);
}

/* Counters that `until` loops read; plain integers where one thread alone
 * writes them. */
static void put_counters(struct mmr_export *x)
{
	bool lone = *mmr_export_where(x) == '\0';
	const char *tab = lone ? "static " : "\t";
	int i, j;

	for (i = 0; i < x->c->nprocs; i++) {
		const struct mmr_proc *p = x->c->procs[i];

		if (!lone &&
		    mmr_export_is_awaited(x->c, MMR_UNTIL_EXITED, p->name))
			PUT(x, "\tvolatile pid_t pids_%s[%d];\n", p->name,
			    p->copies);
		for (j = 0; j < p->nthreads; j++) {
			const char *t = p->threads[j]->name;

			if (!mmr_export_is_awaited(x->c, MMR_UNTIL_DONE, t))
				continue;
			if (x->simple)
				PUT(x, "%svolatile int done_%s;\n", tab, t);
			else
				PUT(x, "%satomic_int spawned_%s, done_%s;\n",
				    tab, t, t);
		}
	}
}

static void put_limits(struct mmr_export *x)
{
	int64_t rounds = mmr_export_rounds(x);
	int i, j, n = 0;

	for (i = 0; i < x->c->nprocs; i++)
		for (j = 0; j < x->c->procs[i]->nthreads; j++)
			n += mmr_export_is_plain(x->c->procs[i],
						 x->c->procs[i]->threads[j]);
	PUT(x, "enum { ROUNDS = %lld, ", (long long)rounds);
	if (mmr_export_has_budget(x))
		PUT(x, "BUDGET = %lld /* s */, ",
		    (long long)mmr_export_runtime(x));
	PUT(x, "LIMIT = %lld /* ms */ };\n", (long long)x->limit_ms);
	if (mmr_export_has_array(x))
		PUT(x, "enum { PLAIN = %d /* processes */ };\n", x->nplain);
	if (!x->whole)
		PUT(x, "enum { THREADS = %d /* watched */ };\n",
		    !x->simple ? 1024
		    : n	       ? n
			       : 1);
}

static void put_thread_slot(struct mmr_export *x)
{
	PUT(x, "\n/* What the watchdog sees of the threads. */\n"
	       "static struct shared {\n\tstruct thread {\n");
	if (!x->simple)
		PUT(x, "\t\tpid_t pid; /* 0: unused */\n");
	PUT(x, "\t\tconst char *volatile who, *volatile in; /* what, or NULL "
	       "*/\n"
	       "\t\tvolatile unsigned long moved;\n"
	       "\t\tunsigned long last; /* the watchdog's */\n"
	       "\t\tint still; /* ms */\n");
	if (x->has_within)
		PUT(x, "\t\tvolatile int within; /* ms, 0: LIMIT */\n");
	if (x->unmended)
		PUT(x, "\t\tvolatile unsigned long faults;\n");
	PUT(x, "\t} thread[THREADS];\n\tvolatile int stop;\n");
	if (!x->simple)
		PUT(x, "\tatomic_int threads;\n");
}

static void put_fields(struct mmr_export *x)
{
	if (x->counts)
		PUT(x, "\tvolatile int idle_ms;\n");
	if (x->content)
		PUT(x, "\tvolatile int foreign; /* read, and written by nobody "
		       "*/\n");
	if (*mmr_export_where(x))
		put_counters(x);
	if (uses(x, MMR_USED_UFFD))
		PUT(x, "\tconst char *volatile missing;\n");
	if (uses(x, MMR_USED_FRESH))
		PUT(x, "\tatomic_int fresh_busy;\n\tvolatile pid_t fresh_pid;\n"
		       "\tvoid (*volatile fresh_body)(void);\n");
	x->listed = 0;
	mmr_export_names(x, MMR_ARG_LATCH, put_latch);
	if (x->e.one_meet && uses(x, MMR_USED_SYNC))
		PUT(x, "%s met;\n\tatomic_llong when;\n",
		    x->listed ? "," : "\tatomic_int");
	else if (x->listed)
		PUT(x, ";\n");
	mmr_export_names(x, MMR_ARG_FUTEX, put_futex);
	if (!x->e.one_meet)
		mmr_export_names(x, MMR_ARG_SYNC, put_sync);
}

/* A few numbers are declared in one line: true when it is done. */
static bool put_short(struct mmr_export *x, const char *fields)
{
	static const char when[] = ";\n\tatomic_llong when;\n";
	static const char first[] = "\tatomic_int ";
	const char *second = strchr(fields, '\n');
	const char *numbers = x->counts && second ? second + 1 : fields;
	const char *idle = numbers == fields ? "" : " idle_ms,";
	size_t n = strcspn(numbers, ";");

	/* Nobody sleeps on one of them. */
	if (x->e.polls && !strcmp(numbers + n, when) &&
	    !strncmp(numbers, first, strlen(first)) &&
	    n + strlen(idle) <= MOST_NUMBERS) {
		PUT(x,
		    "static struct shared { atomic_llong%s%.*s, when; } "
		    "*shared;\n",
		    idle, (int)n - 11, numbers + 11);
		return true;
	}
	if (!second || second[1] != '\0' || strlen(fields) > MOST_FIELDS)
		return false;
	n = strcspn(fields, ";");
	PUT(x, "static struct shared { %.*s; } *shared;%s", (int)n - 1,
	    fields + 1, fields + n + 1);
	return true;
}

static void put_shared(struct mmr_export *x)
{
	FILE *out = x->out;
	char *fields = NULL;
	size_t n;

	if (!x->shares)
		return;
	if (!x->whole)
		put_thread_slot(x);
	x->out = open_memstream(&fields, &n);
	if (x->out) {
		put_fields(x);
		fclose(x->out);
	}
	x->out = out;
	if (fields && x->whole && put_short(x, fields))
		goto out;
	if (x->whole)
		PUT(x, "\nstatic struct shared {\n");
	PUT(x, "%s} *shared;\n", fields ? fields : "");
out:
	free(fields);
}

void mmr_export_shared(struct mmr_export *x)
{
	put_limits(x);
	if (uses(x, MMR_USED_ARENA))
		PUT(x, "\n#define ARENA ((char *)0x1000000000ul)\n\n");
	if (uses(x, MMR_USED_SYNC) && !x->e.one_meet)
		PUT(x, "\nstruct meet {\n\tatomic_int arrived, left, turn;\n"
		       "\tint parties;\n\tvolatile long long when;\n};\n\n");
	put_shared(x);
	if (!*mmr_export_where(x))
		put_counters(x);
	if (!x->whole)
		PUT(x, "static __thread struct thread *me;\n");
	if (uses(x, MMR_USED_PAGE))
		PUT(x, "static size_t page;\n");
	if (uses(x, MMR_USED_HUGE))
		PUT(x, "static size_t huge;\n");
	if (!x->whole)
		PUT(x,
		    "\n/* Tells the watchdog; results do not matter here. */\n"
		    "#define STEP(...) \\\n"
		    "\t(me->who = __func__, me->in = #__VA_ARGS__, "
		    "(void)!(__VA_ARGS__), \\\n"
		    "\t me->moved++, me->in = NULL)\n\n");
	if (uses(x, MMR_USED_THREAD))
		PUT(x, "\nstruct handle {\n\tpthread_t id;\n"
		       "\tpid_t live; /* in which process */\n};\n\n");
	mmr_export_proc_types(x);
}

/* --- helpers --- */

static void put_time(struct mmr_export *x)
{
	if (!x->clock)
		return;
	PUT(x, "static long long now(void)\n{\n\tstruct timespec t;\n\n"
	       "\tclock_gettime(CLOCK_MONOTONIC, &t);\n"
	       "\treturn t.tv_sec * 1000000000LL + t.tv_nsec;\n}\n\n");
	if (uses(x, MMR_USED_DRAW))
		PUT(x,
		    "static long draw(long lo, long hi)\n{\n"
		    "\tunsigned int seed = (unsigned int)now();\n\n"
		    "\treturn lo + %s;\n}\n\n",
		    x->long_draws ? "(long)((long long)rand_r(&seed) * (hi - "
				    "lo + 1) / (RAND_MAX + 1LL))"
				  : "rand_r(&seed) % (hi - lo + 1)");
	if (uses(x, MMR_USED_DELAY))
		PUT(x,
		    "static void delay_ns(long long ns)\n{\n"
		    "\tlong long end = now() + ns;\n\n"
		    "%s"
		    "\twhile (now() < end)\n\t\t;\n}\n\n",
		    x->whole ? "\tif (ns > 200000) /* a sleep is off by less "
			       "*/\n"
			       "\t\tusleep((ns - 100000) / 1000);\n"
			     : "\t/* A sleep is off by less. */\n"
			       "\tfor (; end - now() > 200000 && "
			       "!shared->stop; me->moved++)\n"
			       "\t\tusleep(end - now() > 50000000 ? 50000\n"
			       "\t\t       : (end - now() - 100000) / 1000);"
			       "\n");
}

/* The one rendezvous of a round that comes by it once. */
static void put_one_meet(struct mmr_export *x)
{
	int parties = mmr_export_parties(x->c, x->sync);

	PUT(x,
	    "/* %s go on at one instant, each skew ns after it%s. */\n"
	    "static void meet(long skew)\n{\n",
	    parties == 2 ? "Both" : "All",
	    x->e.meet_waits ? ", once the latch is open" : "");
	if (x->e.meet_waits)
		PUT(x, "\twhile (!shared->latch_%s)\n\t\tusleep(100);\n",
		    x->meet_latch);
	PUT(x,
	    "\tif (++shared->met == %d)\n"
	    "\t\tshared->when = now() + %lld;\n",
	    parties,
	    (long long)x->sync_lead_ns + (x->e.meet_waits ? SPIN_NS : WAKE_NS));
	/* All wake for the latch at about the same time. */
	if (x->e.meet_waits)
		PUT(x, "\twhile (!shared->when || now() < shared->when + skew)"
		       "\n\t\t;\n}\n\n");
	else
		PUT(x, "\twhile (!shared->when)\n\t\tusleep(20);\n"
		       "\twhile (now() < shared->when + skew)\n\t\t;\n}\n\n");
}

static void put_sync_helpers(struct mmr_export *x)
{
	if (!uses(x, MMR_USED_SYNC))
		return;
	if (x->e.one_meet) {
		put_one_meet(x);
		return;
	}
	PUT(x,
	    "static void release(struct meet *m)\n{\n"
	    "\tif (m->arrived + m->left < m->parties)\n\t\treturn;\n"
	    "\tm->arrived = 0;\n\tm->when = now() + %lld;\n"
	    "\tm->turn++;\n}\n\n"
	    "/* All who name it go on at one instant, each skew ns after it. "
	    "*/\n"
	    "static void meet(struct meet *m, long skew)\n{\n"
	    "\tlong long end = now() + 1000000000; /* somebody does not come "
	    "*/\n"
	    "\tint turn = m->turn, n = 0;\n\n"
	    "\tm->arrived++;\n\trelease(m);\n"
	    "\twhile (m->turn == turn && now() < end)\n"
	    "\t\tif (++n > 20000)\n\t\t\tusleep(20);\n"
	    "\twhile (now() < m->when + skew)\n\t\t;\n}\n\n"
	    "/* A thread at its end is not waited for. */\n"
	    "static void leave(struct meet *m)\n{\n"
	    "\tm->left++;\n\tif (m->arrived)\n\t\trelease(m);\n}\n\n",
	    (long long)x->sync_lead_ns + 1000);
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
	PUT(x,
	    "static const struct sigaction to_on_fault = {\n"
	    "\t.%s = on_fault,\n\t.sa_flags = SA_NODEFER%s,\n};\n\n",
	    kill ? "sa_sigaction" : "sa_handler", kill ? " | SA_SIGINFO" : "");
}

static void put_touch(struct mmr_export *x)
{
	const char *set =
		uses(x, MMR_USED_RECOVER)
			? "\tif (sigsetjmp(back, 0))\n\t\treturn -1;\n"
			: "";
	const char *count = !x->whole	? ", " MMR_EXPORT_MOVED
			    : x->counts ? ", " MMR_EXPORT_STILL
					: "";

	put_fault_handler(x);
	if (uses(x, MMR_USED_WRITE))
		PUT(x,
		    "static int touch_write(struct map m, size_t step)\n{\n%s"
		    "\tfor (size_t i = 0; i < m.len; i += step%s)\n"
		    "\t\t((volatile char *)m.at)[i] = 1;\n"
		    "\treturn 0;\n}\n\n",
		    set, count);
	if (uses(x, MMR_USED_READ))
		PUT(x,
		    "static int touch_read(struct map m, size_t step)\n{\n%s"
		    "\tfor (size_t i = 0; i < m.len; i += step%s)\n"
		    "%s"
		    "\treturn 0;\n}\n\n",
		    set, count,
		    x->content ? "\t\tif (((volatile char *)m.at)[i] & ~1)\n"
				 "\t\t\tshared->foreign = 1;\n"
			       : "\t\t(void)((volatile char *)m.at)[i];\n");
	if (uses(x, MMR_USED_RANDOM))
		PUT(x,
		    "static int touch_random(struct map m, size_t step, "
		    "int write)\n{\n"
		    "\tlong all = (long)(m.len / step);\n\n%s"
		    "\tfor (long i = 0; i < all; i++%s) {\n"
		    "\t\tvolatile char *p = m.at + draw(0, all - 1) * "
		    "(long)step;\n\n"
		    "\t\tif (write)\n\t\t\t*p = 1;\n"
		    "\t\telse%s;\n\t}\n"
		    "\treturn 0;\n}\n\n",
		    set, count,
		    x->content ? " if (*p & ~1)\n\t\t\tshared->foreign = 1"
			       : "\n\t\t\t(void)*p");
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
	if (!x->simple && !x->whole)
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

static void put_uffd(struct mmr_export *x)
{
	if (uses(x, MMR_USED_UFFD))
		PUT(x, "static int uffd_open(int flags, "
		       "unsigned long features)\n{\n"
		       "\tstruct uffdio_api api = { UFFD_API, features, 0 };\n"
		       "\tint fd = syscall(SYS_userfaultfd,\n"
		       "\t\t\t O_CLOEXEC | O_NONBLOCK | flags);\n\n"
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

/* The text of an op; where no thread is watched, it counts for the round or
 * not at all. */
static void put_helper(struct mmr_export *x, const char *text)
{
	size_t skip = strlen(", " MMR_EXPORT_MOVED);
	const char *at;

	while (x->whole && (at = strstr(text, ", " MMR_EXPORT_MOVED))) {
		PUT(x, "%.*s%s", (int)(at - text), text,
		    x->counts ? ", " MMR_EXPORT_STILL : "");
		text = at + skip;
	}
	PUT(x, "%s", text);
}

void mmr_export_helpers(struct mmr_export *x)
{
	int i;

	put_time(x);
	put_sync_helpers(x);
	put_latch_helpers(x);
	put_map_helpers(x);
	put_touch(x);
	put_threads(x);
	mmr_export_proc_helpers(x);
	put_uffd(x);
	for (i = 0; i < x->e.nhelpers; i++)
		put_helper(x, x->e.helpers[i]);
}
