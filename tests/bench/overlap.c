// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * overlap [CHILD [REPETITIONS [MS]]]: how many calls really overlapped in the
 * kernel, by its tracepoints: of two threads of one address space, or of
 * process_mrelease and the exit of a process.
 *
 * All scenarios take turns: the seed reports as they were reported, with
 * rendezvous and offsets, a soak of each profile, and a pair of threads written
 * by hand that loop map, write, unmap.  Numbers are medians over repetitions, a
 * CPU second is one of all of the scenario's own processes, their start
 * included.  Needs root, and tracepoints of system calls.
 *
 * "timed" is the case as it runs by default: skew=auto, of which three quarters
 * of the rounds are aimed and the others sweep the whole range.  "aligned" are
 * the aimed ones alone: the same bounds, worked out by the same function from
 * the same table, without the rest.  Nothing is set by hand.
 *
 * BENCH_ONLY: the scenarios whose names contain it.
 *
 * Without arguments, and where there are two nodes: what needs these (in a
 * guest; see timing.sh).
 */
#include "trace.h"

#include <pthread.h>

#include "../../fuzz/profile.h"
#include "../../ops/timing.h"
#include "../../triage/calibrate.h"

#define REPS_MAX 100
#define FEW 20 /* calls of a kind are not worth a line */
#define SOAK_MS 500
#define GUEST_REPS 20
#define GUEST_MS 2000
#define ANY (-1)    /* of the calls; a fault, too, where it is the partner */
#define BEGINS (-2) /* a fault, where it begins within the call */

struct span {
	uint64_t begin, end;
	uint32_t pid, tid;
};

struct spans {
	struct span *v;
	size_t n, size;
	uint64_t longest;
};

static const struct pair {
	const char *name;
	int call, partner;
} pairs[] = {
	{"munmap with fault", TRACE_MUNMAP, TRACE_FAULT},
	{"fault begins in munmap", TRACE_MUNMAP, BEGINS},
	{"munmap with clone", TRACE_MUNMAP, TRACE_CLONE},
	{"munmap with munmap", TRACE_MUNMAP, TRACE_MUNMAP},
	{"mmap with fault", TRACE_MMAP, TRACE_FAULT},
	{"mmap with munmap", TRACE_MMAP, TRACE_MUNMAP},
	{"clone with fault", TRACE_CLONE, TRACE_FAULT},
	{"mprotect with fault", TRACE_MPROTECT, TRACE_FAULT},
	{"madvise with fault", TRACE_MADVISE, TRACE_FAULT},
	{"mrelease with exit", TRACE_MRELEASE, TRACE_EXIT},
	{"migrate with munmap", TRACE_MIGRATE, TRACE_MUNMAP},
	{"munmap with migrate", TRACE_MUNMAP, TRACE_MIGRATE},
	{"migrate with fault", TRACE_MIGRATE, TRACE_FAULT},
	{"any of these", ANY, ANY},
};
#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

#define HEAD "mmrace-case 1\nrounds 1000000 budget=10s\n\n"
#define VICTIM                                                                 \
	"process victim template\n  thread V\n"                                \
	"    m0 = mmap len=1M prot=rw flags=private|anon\n"                    \
	"    write m0 step=1p\n    signal ready\n    pause\n\n"

/* clang-format off */
/* S1: threads that map, write, unmap; one that makes threads. */
#define S1_A(sync) \
	"  thread A cpu=0\n" \
	"    loop\n" \
	"      m0 = mmap len=3p prot=rw flags=shared|anon\n" \
	"      write m0 step=1p\n" sync \
	"      munmap m0\n" \
	"    end\n"

/* Two threads that map, write, unmap: when one writes the other one unmaps. */
#define S1_FAULTS \
	"  thread A cpu=0\n" \
	"    m0 = mmap len=3p prot=rw flags=shared|anon\n" \
	"    loop\n" \
	"      sync a\n" \
	"      write m0 step=1p\n" \
	"      m1 = mmap len=3p prot=rw flags=shared|anon\n" \
	"      sync b\n" \
	"      munmap m0\n" \
	"      sync c\n" \
	"      write m1 step=1p\n" \
	"      m0 = mmap len=3p prot=rw flags=shared|anon\n" \
	"      sync d\n" \
	"      munmap m1\n" \
	"    end\n" \
	"  thread B cpu=1\n" \
	"    m2 = mmap len=3p prot=rw flags=shared|anon\n" \
	"    write m2 step=1p\n" \
	"    m3 = mmap len=3p prot=rw flags=shared|anon\n" \
	"    loop\n" \
	"      sync a skew=auto\n" \
	"      munmap m2\n" \
	"      sync b skew=auto\n" \
	"      write m3 step=1p\n" \
	"      m2 = mmap len=3p prot=rw flags=shared|anon\n" \
	"      sync c skew=auto\n" \
	"      munmap m3\n" \
	"      sync d skew=auto\n" \
	"      write m2 step=1p\n" \
	"      m3 = mmap len=3p prot=rw flags=shared|anon\n" \
	"    end\n"
/* Sixteen of them for each rendezvous: one unmaps a mapping piece by piece
 * while the other one fills its own. */
#define PIECE(call, off) "      " call " off=" #off "p len=3p\n"
#define PIECES(call) \
	PIECE(call, 0) PIECE(call, 3) PIECE(call, 6) PIECE(call, 9) \
	PIECE(call, 12) PIECE(call, 15) PIECE(call, 18) PIECE(call, 21) \
	PIECE(call, 24) PIECE(call, 27) PIECE(call, 30) PIECE(call, 33) \
	PIECE(call, 36) PIECE(call, 39) PIECE(call, 42) PIECE(call, 45)
#define S1_BURSTS(a, b, a_auto, b_auto) \
	"  thread A cpu=0\n" \
	"    m0 = mmap len=48p prot=rw flags=shared|anon\n" \
	"    write m0 step=1p\n" \
	"    loop\n" a PIECES("munmap m0") \
	"      m0 = mmap len=48p prot=rw flags=shared|anon\n" \
	b PIECES("write m0 step=1p") \
	"    end\n" \
	"  thread B cpu=1\n" \
	"    m1 = mmap len=48p prot=rw flags=shared|anon\n" \
	"    loop\n" a_auto PIECES("write m1 step=1p") b_auto \
	PIECES("munmap m1") \
	"      m1 = mmap len=48p prot=rw flags=shared|anon\n" \
	"    end\n"
/* clang-format on */

#define S2_K                                                                   \
	HEAD VICTIM "process main\n  thread K\n"                               \
		    "    p0 = process_spawn victim\n    wait ready\n"

/* One unmaps what the other one moves to the second node: several mappings, as
 * a munmap is short beside a migrate_pages.  One way, what has come since the
 * last call, and without the capability, pages of its own alone: so a call
 * takes parts of a millisecond, not seconds. */
#define MOVES_HEAD                                                             \
	"mmrace-case 1\nneeds nodes>=2 nocap=CAP_SYS_NICE\n"                   \
	"rounds 1000000 budget=10s\n\n"
#define MOVED(m)                                                               \
	"      " m " = mmap len=2p prot=rw flags=private|anon|populate\n"
#define MOVES(sync, skew)                                                      \
	MOVES_HEAD "process main\n  thread A cpu=0\n    loop\n" MOVED("m0")    \
		MOVED("m1") MOVED("m2") MOVED("m3") sync                       \
		"      munmap m0\n      munmap m1\n      munmap m2\n"          \
		"      munmap m3\n    end\n  thread B cpu=1\n    loop\n" skew  \
		"      migrate_pages from=n0 to=n1\n    end\n"

static const struct scenario {
	const char *name, *text, *profile; /* neither: by hand */
	bool aligned, nodes;
} scenarios[] = {
	{"pair written by hand", NULL, NULL, false, false},
	{"S1 as reported",
	 HEAD "process main\n" S1_A("") "  thread B cpu=1\n    loop\n"
					"      t0 = thread_spawn body=idle\n"
					"      thread_join t0\n    end\n",
	 NULL, false, false},
#define S1_CLONE                                                               \
	HEAD "process main\n" S1_A(                                            \
		"      sync s\n") "  thread B cpu=1\n    loop\n      sync s "  \
				  "skew=auto\n"                                \
				  "      t0 = thread_spawn body=idle\n"        \
				  "      thread_join t0\n    end\n"
	{"S1 timed, clone", S1_CLONE, NULL, false, false},
	{"S1 aligned, clone", S1_CLONE, NULL, true, false},
	{"S1 timed, faults", HEAD "process main\n" S1_FAULTS, NULL, false,
	 false},
	{"S1 aligned, faults", HEAD "process main\n" S1_FAULTS, NULL, true,
	 false},
	{"bursts, free-running",
	 HEAD "process main\n" S1_BURSTS("", "", "", ""), NULL, false, false},
#define S1_TIMED_BURSTS                                                        \
	HEAD "process main\n" S1_BURSTS("      sync a\n", "      sync b\n",    \
					"      sync a skew=auto\n",            \
					"      sync b skew=auto\n")
	{"S1 timed, bursts", S1_TIMED_BURSTS, NULL, false, false},
	{"S1 aligned, bursts", S1_TIMED_BURSTS, NULL, true, false},
	{"S2 as reported",
	 S2_K "    signal go\n    kill p0 KILL\n    process_reap p0\n"
	      "  thread R\n    wait go\n"
	      "    process_mrelease p0 -> 0|EINVAL|EAGAIN|ESRCH\n",
	 NULL, false, false},
#define S2_TIMED                                                               \
	S2_K "    sync s\n    kill p0 KILL\n    process_reap p0\n"             \
	     "  thread R\n    wait ready\n    sync s skew=auto\n"              \
	     "    process_mrelease p0 -> 0|EINVAL|EAGAIN|ESRCH\n"
	{"S2 timed", S2_TIMED, NULL, false, false},
	{"S2 aligned", S2_TIMED, NULL, true, false},
	{"profile storm", NULL, "storm", false, false},
	{"profile migrate", NULL, "migrate", false, false},
	{"profile mrelease", NULL, "mrelease", false, false},
	{"profile hugetlb", NULL, "hugetlb", false, false},
	{"profile thp", NULL, "thp", false, false},
	{"profile fork", NULL, "fork", false, false},
	{"profile uffd", NULL, "uffd", false, false},
	{"profile memcg", NULL, "memcg", false, false},
	{"profile swap", NULL, "swap", false, false},
	{"profile remap", NULL, "remap", false, false},
	{"profile mixed", NULL, "mixed", false, false},
	{"moves, free-running", MOVES("", ""), NULL, false, true},
	{"moves, timed", MOVES("      sync s\n", "      sync s skew=auto\n"),
	 NULL, false, true},
	{"moves, aligned", MOVES("      sync s\n", "      sync s skew=auto\n"),
	 NULL, true, true},
};
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

static struct trace trace;
static struct spans spans[TRACE_KINDS];
static const char *child;
static bool nodes; /* the scenarios that need two of them, no others */

static void add_span(int kind, const struct span *s)
{
	struct spans *v = &spans[kind];

	if (v->n == v->size) {
		v->size = v->size ? 2 * v->size : 1 << 16;
		v->v = realloc(v->v, v->size * sizeof(*v->v));
		if (!v->v)
			bench_fail("no memory");
	}
	if (s->end - s->begin > v->longest)
		v->longest = s->end - s->begin;
	v->v[v->n++] = *s;
}

static int by_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* From events to calls: each thread is in one call of a kind at most. */
static void make_spans(void)
{
	static struct span open[TRACE_KINDS][TRACE_PIDS];
	size_t i;
	int k;

	memset(open, 0, sizeof(open));
	for (k = 0; k < TRACE_KINDS; k++)
		spans[k].n = spans[k].longest = 0;
	for (i = 0; i < trace.n; i++) {
		const struct trace_item *it = &trace.items[i];
		/* The last thread that exits takes the memory along. */
		uint32_t who = trace_points[it->point].kind == TRACE_EXIT
				       ? it->pid
				       : it->tid;
		struct span *o;

		k = trace_points[it->point].kind;
		o = &open[k][who % TRACE_PIDS];
		if (!trace_points[it->point].ends) {
			*o = (struct span){it->time, 0, it->pid, it->tid};
		} else if (o->begin) {
			o->end = it->time;
			add_span(k, o);
			o->begin = 0;
		}
	}
	for (k = 0; k < TRACE_KINDS; k++)
		qsort(spans[k].v, spans[k].n, sizeof(struct span), by_begin);
}

static bool meets(const struct span *s, int kind)
{
	const struct spans *with = &spans[kind == BEGINS ? TRACE_FAULT : kind];
	bool exit = kind == TRACE_EXIT, begins = kind == BEGINS;
	size_t lo = 0, hi = with->n, mid;

	/* The first that begins after s has ended. */
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (with->v[mid].begin <= s->end)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo-- > 0 && with->v[lo].begin + with->longest >= s->begin) {
		const struct span *o = &with->v[lo];

		if ((begins ? o->begin : o->end) >= s->begin &&
		    (exit ? o->pid != s->pid
			  : o->pid == s->pid && o->tid != s->tid))
			return true;
	}
	return false;
}

static void *by_hand_thread(void *arg)
{
	double end = *(double *)arg;
	static _Atomic int number;
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	CPU_SET(trace.cpus[number++ % trace.ncpus], &set);
	sched_setaffinity(0, sizeof(set), &set);
	while (bench_now_s() < end)
		for (i = 0; i < 16; i++) {
			volatile char *m =
				mmap(NULL, 12288, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

			m[0] = m[4096] = m[8192] = 1;
			munmap((void *)(uintptr_t)m, 12288);
		}
	return NULL;
}

static pid_t by_hand(double end)
{
	pthread_t a, b;
	pid_t pid = fork();

	if (pid)
		return pid;
	pthread_create(&a, NULL, by_hand_thread, &end);
	pthread_create(&b, NULL, by_hand_thread, &end);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	_exit(0);
}

/* Waits while events are taken; CPU seconds of all of it.  A case that does
 * not end with its time is cut short, as the watcher would. */
static double wait_reading(pid_t pid, struct mmr_area *area, double end)
{
	struct timespec ms = {0, 1000000};
	struct rusage u;
	int status;

	while (wait4(pid, &status, WNOHANG, &u) != pid) {
		trace_read(&trace);
		nanosleep(&ms, NULL);
		if (area && bench_now_s() > end)
			atomic_store(&area->ctl, MMR_CTL_END);
	}
	trace_read(&trace);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* A call, with what it can meet in its own address space. */
static bool meets_any(const struct span *s, int call)
{
	int k;

	if (call == TRACE_MRELEASE)
		return meets(s, TRACE_EXIT);
	for (k = 0; k <= TRACE_FAULT; k++)
		if (k != TRACE_MRELEASE && meets(s, k))
			return true;
	return false;
}

static void count(pid_t root, double *calls, double *met)
{
	size_t p, i;
	int k;

	trace_family(&trace, root);
	make_spans();
	for (p = 0; p < PAIRS; p++)
		for (k = 0; k < TRACE_CALLS; k++) {
			const struct spans *c = &spans[k];

			if (pairs[p].call != ANY && pairs[p].call != k)
				continue;
			calls[p] += (double)c->n;
			for (i = 0; i < c->n; i++)
				met[p] += pairs[p].partner == ANY
						  ? meets_any(&c->v[i], k)
						  : meets(&c->v[i],
							  pairs[p].partner);
		}
	trace.n = 0;
}

static double run_case(struct mmr_case *c, uint64_t seed, int64_t ns,
		       double *calls, double *met)
{
	struct mmr_compile_opts opts = {.seed = seed, .budget_ns = ns};
	struct bench_child b = {.c = c};
	struct mmr_diag d;
	double cpu;
	pid_t pid;

	if (mmr_compile(c, &opts, &b.area, &b.fd, &d))
		bench_fail(d.text);
	trace_read(&trace);
	trace.n = 0;
	pid = bench_start(child, b.fd);
	cpu = wait_reading(pid, b.area, bench_now_s() + (double)ns / 1e9 + .1);
	count(pid, calls, met);
	mmr_calibrate_add(c, b.area);
	mmr_area_close(b.area, b.fd);
	return cpu;
}

/* The aim of each auto in place of its range. */
static struct mmr_case *only_aimed(const struct mmr_case *c)
{
	struct mmr_case *copy = mmr_timing_bound(c);
	struct mmr_stmt *s;
	int i;

	if (!copy)
		bench_fail("no memory");
	for (i = 0; (s = mmr_case_stmt(copy, i)); i++)
		if (s->kind == MMR_STMT_OP && s->op->id == MMR_OP_sync &&
		    s->args[2].set) {
			s->args[1] = s->args[2];
			s->args[2].set = false;
			s->args[2].lo = s->args[2].hi = 0;
		}
	return copy;
}

/* A soak of it, as anybody has it, each repetition with seeds of its own. */
static double run_profile(const char *name, int rep, double *calls, double *met)
{
	char dir[] = "/tmp/mmr-overlap-XXXXXX", exe[512], seed[16], time[8];
	const char *argv[] = {
		exe,	 "soak",   "--quiet",	"--json", "--jobs",
		"1",	 "--time", time,	"--seed", seed,
		"--out", dir,	   "--profile", name,	  "--allow-settings",
		NULL};
	posix_spawn_file_actions_t fa;
	char *slash, cmd[64];
	double cpu;
	pid_t pid;

	snprintf(exe, sizeof(exe), "%s", child);
	slash = strrchr(exe, '/');
	snprintf(slash ? slash + 1 : exe, 8, "mmrace");
	snprintf(seed, sizeof(seed), "%d", rep * 100000 + 1);
	snprintf(time, sizeof(time), "%dms", SOAK_MS);
	if (!mmr_profile_find(name) || !mkdtemp(dir))
		bench_fail("no such profile, or no folder for it");
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	trace_read(&trace);
	trace.n = 0;
	if (posix_spawn(&pid, exe, &fa, NULL, (char *const *)(uintptr_t)argv,
			environ))
		bench_fail("cannot start mmrace");
	posix_spawn_file_actions_destroy(&fa);
	cpu = wait_reading(pid, NULL, 0);
	count(pid, calls, met);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		bench_fail("cannot remove the soak's folder");
	return cpu;
}

static double run_scenario(const struct scenario *s, int rep, int64_t ns,
			   double *calls, double *met)
{
	struct mmr_case *c, *aimed;
	struct mmr_diag d;
	double cpu;
	pid_t pid;

	if (s->profile)
		return run_profile(s->profile, rep, calls, met);
	if (!s->text) {
		trace_read(&trace);
		trace.n = 0;
		pid = by_hand(bench_now_s() + (double)ns / 1e9);
		cpu = wait_reading(pid, NULL, 0);
		count(pid, calls, met);
		return cpu;
	}
	if (mmr_case_parse(s->text, strlen(s->text), &c, &d, NULL, NULL))
		bench_fail(d.text);
	if (s->aligned) {
		aimed = only_aimed(c);
		mmr_case_free(c);
		c = aimed;
	}
	cpu = run_case(c, (uint64_t)rep, ns, calls, met);
	mmr_case_free(c);
	return cpu;
}

static double rate[SCENARIOS][PAIRS][REPS_MAX];
static double share[SCENARIOS][PAIRS][REPS_MAX];
static double called[SCENARIOS][PAIRS];

static void report(int reps)
{
	size_t s, p;

	for (s = 0; s < SCENARIOS; s++)
		for (p = 0; p < PAIRS; p++) {
			double r = bench_quantile(rate[s][p], (size_t)reps, .5);
			double q =
				bench_quantile(share[s][p], (size_t)reps, .5);

			if (called[s][p] < FEW * reps ||
			    (scenarios[s].profile && r <= 0))
				continue;
			printf("%-22s %-22s %9.0f overlaps a CPU s, %5.1f %% "
			       "of the calls\n",
			       scenarios[s].name, pairs[p].name, r,
			       q < 0 ? 0 : q);
		}
}

/* One turn more, first, for the calibration. */
static void run_all(int reps, int64_t ns, const char *only)
{
	size_t s, p;
	int i;

	for (i = -1; i < reps; i++)
		for (s = 0; s < SCENARIOS; s++) {
			double calls[PAIRS] = {0}, met[PAIRS] = {0}, cpu;

			if (scenarios[s].nodes != nodes ||
			    !strstr(scenarios[s].name, only) ||
			    (scenarios[s].profile && i < 0))
				continue;
			cpu = run_scenario(&scenarios[s], i < 0 ? 0 : i, ns,
					   calls, met);
			for (p = 0; i >= 0 && p < PAIRS; p++) {
				called[s][p] += calls[p];
				rate[s][p][i] = cpu > 0 ? met[p] / cpu : 0;
				share[s][p][i] =
					calls[p] > 0 ? met[p] * 100 / calls[p]
						     : -1;
			}
		}
}

int main(int argc, char **argv)
{
	const char *only = getenv("BENCH_ONLY");
	int reps = argc > 2 ? atoi(argv[2]) : GUEST_REPS;
	int64_t ns = (argc > 3 ? atoi(argv[3]) : GUEST_MS) * 1000000LL;

	if (reps < 1 || reps > REPS_MAX || ns < 1) {
		fprintf(stderr, "usage: overlap [CHILD [REPETITIONS [MS]]]\n");
		return 2;
	}
	setbuf(stdout, NULL);
	child = argc > 1 ? argv[1] : "/mmrace-child";
	nodes = argc < 2;
	if (nodes && access("/sys/devices/system/node/node1", F_OK)) {
		printf("overlap: skipped, needs two nodes\n");
		return 0;
	}
	if (!trace_begin(&trace)) {
		printf("overlap: skipped, needs root and tracepoints\n");
		return 0;
	}
	printf("overlap: %d repetitions of %lld ms, of soaks %d ms, load %s\n",
	       reps, (long long)ns / 1000000, SOAK_MS, bench_load());
	printf("overlap: %d of %d kinds of events are there\n",
	       trace_kinds(&trace), (int)TRACE_POINTS);
	run_all(reps, ns, only ? only : "");
	report(reps);
	printf("overlap: %llu events lost, load %s\n",
	       (unsigned long long)trace.lost, bench_load());
	return 0;
}
