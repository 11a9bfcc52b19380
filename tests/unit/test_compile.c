// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From case to program.  Red when a number lands in another place than the
 * child looks for it, when a draw's key depends on a statement's place, or
 * when parsing and compiling take so long that they count.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../ops/compile.h"

struct built {
	struct mmr_case *c;
	struct mmr_area *area;
	int fd;
	struct mmr_insn *insns;
	struct mmr_pthread *threads;
	struct mmr_pproc *procs;
	struct mmr_psync *syncs;
};

static struct mmr_case *parse(const char *text)
{
	struct mmr_diag d;
	struct mmr_case *c;

	if (mmr_case_parse(text, strlen(text), &c, &d, NULL, NULL))
		fail_msg("%d:%d: %s", d.line, d.col, d.text);
	return c;
}

static struct built build(const char *text, const struct mmr_compile_opts *o)
{
	static const struct mmr_compile_opts plain = {.seed = 1};
	struct built b = {.c = parse(text)};
	struct mmr_diag d = {0};
	struct mmr_program *p;

	if (mmr_compile(b.c, o ? o : &plain, &b.area, &b.fd, &d))
		fail_msg("does not compile: %s", d.text);
	p = &b.area->program;
	b.insns = MMR_AREA_AT(b.area, p->insns_off, struct mmr_insn);
	b.threads = MMR_AREA_AT(b.area, p->threads_off, struct mmr_pthread);
	b.procs = MMR_AREA_AT(b.area, p->procs_off, struct mmr_pproc);
	b.syncs = MMR_AREA_AT(b.area, p->syncs_off, struct mmr_psync);
	return b;
}

static void drop(struct built *b)
{
	mmr_area_close(b->area, b->fd);
	mmr_case_free(b->c);
}

static const char *const loops =
	"mmrace-case 1\n"
	"needs nocap=CAP_SYS_NICE nocap=CAP_BPF\n"
	"rounds 7 keep order=2 budget=3s\n"
	"process main\n"
	"thread A cpu=3\n"
	"  loop 500\n"
	"    m0 = mmap len=2p prot=rw flags=shared|anon\n"
	"    loop for=2ms\n"
	"      write m0 step=1p -> 0|EFAULT\n"
	"    end\n"
	"    munmap m0\n"
	"  end\n"
	"thread B cpu=other(A) segv=return\n"
	"  loop until=done(A)\n"
	"    t0 = thread_spawn body=idle\n"
	"    thread_join t0\n"
	"  end\n"
	"  loop until=exited(main)\n"
	"  end\n";

static void test_insns(void **state)
{
	struct built b = build(loops, NULL);
	const struct mmr_program *p = &b.area->program;
	const struct mmr_insn *in = b.insns;
	int64_t page = sysconf(_SC_PAGESIZE);

	(void)state;
	assert_int_equal(p->ninsns, 13);
	assert_int_equal(p->nstats, mmr_case_count(b.c));
	assert_int_equal(p->nstats, 9);
	assert_int_equal(p->nrefs, 2);
	assert_int_equal(p->rounds, 7);
	assert_int_equal(p->keep, 1);
	/* 500 x (mmap, munmap, 8 writes), 8 x (spawn, join). */
	assert_int_equal(p->order, 2);
	assert_int_equal(p->order_steps, 500 * 10 + 8 * 2);
	assert_int_equal(p->budget_ns, 3000000000);
	assert_int_equal(p->drop_caps_lo, 1 << 23);
	assert_int_equal(p->drop_caps_hi, 1 << (39 - 32));
	assert_int_equal(p->page_size, page);
	assert_true(p->ncpus >= 1);
	/* loop 500 ... end, with a loop inside. */
	assert_int_equal(in[0].op, MMR_INSN_LOOP);
	assert_int_equal(in[0].until, MMR_UNTIL_COUNT);
	assert_int_equal(in[0].count, 500);
	assert_int_equal(in[0].jump, 6);
	assert_int_equal(in[6].op, MMR_INSN_END);
	assert_int_equal(in[6].jump, 0);
	assert_int_equal(in[6].stat, 0);
	assert_int_equal(in[2].until, MMR_UNTIL_TIME);
	assert_int_equal(in[2].count, 2000000);
	assert_int_equal(in[2].jump, 4);
	assert_int_equal(in[4].stat, 2);
	/* m0 = mmap len=2p prot=rw flags=shared|anon */
	assert_int_equal(in[1].op, MMR_OP_mmap);
	assert_int_equal(in[1].dst, 0);
	assert_int_equal(in[1].stat, 1);
	assert_int_equal(in[1].set, 7);
	assert_int_equal(in[1].arg[0].lo, 2 * page);
	assert_int_equal(in[1].arg[1].lo, 3);
	assert_int_equal(in[1].arg[2].lo, 0x21);
	assert_int_equal(in[1].arg[4].lo, -1);
	/* write m0 step=1p: the default length, the accepted results. */
	assert_int_equal(in[3].dst, -1);
	assert_int_equal(in[3].arg[0].lo, 0);
	assert_int_equal(in[3].arg[2].lo, 0);
	assert_int_equal(in[3].arg[3].lo, page);
	assert_int_equal(in[3].set, 1 | 8);
	assert_int_equal(in[3].naccept, 2);
	assert_int_equal(in[3].accept[1], EFAULT);
	/* The second thread. */
	assert_int_equal(in[7].until, MMR_UNTIL_DONE);
	assert_int_equal(in[7].until_index, 0);
	assert_int_equal(in[7].jump, 10);
	assert_int_equal(in[8].arg[0].lo, MMR_THREAD_IDLE);
	assert_int_equal(in[8].dst, 1);
	assert_int_equal(in[11].until, MMR_UNTIL_EXITED);
	assert_int_equal(in[11].stat, 8);
	assert_int_equal(b.threads[1].first, 7);
	assert_int_equal(b.threads[1].ninsn, 6);
	assert_int_equal(b.threads[0].cpu_kind, MMR_CPU_NUMBER);
	assert_int_equal(b.threads[0].cpu_arg, 3);
	assert_int_equal(b.threads[1].cpu_kind, MMR_CPU_OTHER);
	assert_int_equal(b.threads[1].cpu_arg, 0);
	assert_int_equal(b.threads[1].segv, MMR_SEGV_RETURN);
	drop(&b);
}

static void test_slots(void **state)
{
	struct built b = build("mmrace-case 1\n"
			       "process v template copies=9\n"
			       "thread V\n"
			       "  pause\n"
			       "process a copies=3\n"
			       "thread A1\n"
			       "  sync s\n"
			       "  sync s\n"
			       "thread T template\n"
			       "  delay 1us\n"
			       "thread A2\n"
			       "  sync x skew=auto\n"
			       "process b\n"
			       "thread B\n"
			       "  loop 2\n"
			       "    sync s skew=-5us..1us\n"
			       "  end\n"
			       "  sync x\n"
			       "  p = process_spawn v fresh\n"
			       "  q = process_spawn idle\n"
			       "  signal l\n",
			       NULL);
	const struct mmr_program *p = &b.area->program;
	const struct mmr_insn *in;

	(void)state;
	assert_int_equal(p->nthreads, 5);
	assert_int_equal(p->nprocs, 3);
	/* V; A1 T A2, of which three copies; B behind all of them. */
	assert_int_equal(b.threads[0].slot, -1);
	assert_int_equal(b.threads[1].slot, 0);
	assert_int_equal(b.threads[2].slot, -1);
	assert_int_equal(b.threads[3].slot, 1);
	assert_int_equal(b.threads[4].slot, 6);
	assert_int_equal(b.threads[2].is_template, 1);
	assert_int_equal(b.threads[4].proc, 2);
	assert_int_equal(b.procs[0].is_template, 1);
	assert_int_equal(b.procs[0].copies, 9);
	assert_int_equal(b.procs[1].first, 1);
	assert_int_equal(b.procs[1].nthreads, 3);
	/* A thread that names it twice is one party, three copies are three. */
	assert_int_equal(p->nsyncs, 2);
	assert_int_equal(b.syncs[0].parties, 4);
	assert_int_equal(b.syncs[1].parties, 4);
	in = &b.insns[b.threads[3].first];
	/* Nothing is known here: nothing follows the sync on its own side,
	 * 20 us and a tenth on the others'. */
	assert_int_equal(in->arg[1].lo, -220);
	assert_true(in->arg[1].hi > 0);
	in = &b.insns[b.threads[4].first];
	assert_int_equal(in[1].arg[0].lo, 0);
	assert_int_equal(in[1].arg[1].lo, -5000);
	assert_int_equal(in[1].arg[1].hi, 1000);
	assert_int_equal(in[4].arg[0].lo, 0);
	assert_int_equal(in[4].arg[1].lo, 1);
	assert_int_equal(in[5].arg[0].lo, MMR_PROC_IDLE);
	assert_int_equal(in[5].arg[1].lo, 0);
	assert_int_equal(p->nlatches, 1);
	drop(&b);
}

/* The tag of the statement with that number. */
static uint64_t tag(const struct built *b, int stat)
{
	uint32_t i;

	for (i = 0; i < b->area->program.ninsns; i++)
		if (b->insns[i].stat == stat)
			return b->insns[i].tag;
	fail_msg("no statement %d", stat);
	return 0;
}

static void test_tags(void **state)
{
#define HEAD "mmrace-case 1\nprocess main\nthread A\n"
	static const struct mmr_compile_opts other = {.seed = 2};
	struct built b = build(HEAD "signal a\ndelay 0..2us\ndelay 0..2us\n"
				    "delay 0..3us\nthread B\ndelay 0..2us\n",
			       NULL);
	struct built less = build(HEAD "delay 0..2us -> 0\nloop 2\n"
				       "delay 0..2us\nend\n",
				  NULL);
	struct built seed = build(HEAD "delay 0..2us\n", &other);

	(void)state;
	/* Equal text in one thread: told apart by which of them it is. */
	assert_int_not_equal(tag(&b, 1), tag(&b, 2));
	assert_int_not_equal(tag(&b, 1), tag(&b, 3));
	assert_int_not_equal(tag(&b, 1), tag(&b, 4));
	/* Neither place nor accepted results nor a loop around change it. */
	assert_int_equal(tag(&b, 1), tag(&less, 0));
	assert_int_equal(tag(&b, 2), tag(&less, 2));
	assert_int_not_equal(tag(&b, 1), tag(&seed, 0));
	drop(&b);
	drop(&less);
	drop(&seed);
}

static void test_area(void **state)
{
	static const struct mmr_compile_opts opts = {
		.seed = 3,
		.first_round = 40,
		.rounds = 9,
		.budget_ns = 5,
		.cpus = {7, 3},
		.ncpus = 2,
	};
	struct built b = build(loops, &opts);
	const struct mmr_area *a = b.area;
	struct stat st;
	uint64_t units;

	(void)state;
	assert_int_equal(a->magic, MMR_AREA_MAGIC);
	assert_int_equal(a->version, MMR_AREA_VERSION);
	assert_int_equal(fstat(b.fd, &st), 0);
	assert_int_equal(st.st_size, a->size);
	assert_int_equal(a->threads_off % 64, 0);
	assert_int_equal(a->stats_off % 64, 0);
	assert_true(a->exits_off + 2 * sizeof(struct mmr_exit_stat) <= a->size);
	/* Nobody can cut it short under the watcher. */
	assert_int_equal(ftruncate(b.fd, 4096), -1);
	assert_int_equal(errno, EPERM);
	assert_true(fcntl(b.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(a->program.seed, 3);
	assert_int_equal(a->program.first_round, 40);
	assert_int_equal(a->program.rounds, 9);
	assert_int_equal(a->program.budget_ns, 5);
	assert_int_equal(a->program.ncpus, 2);
	assert_int_equal(a->program.cpus[0], 7);
	/* 100 s fit, the unit is at most 16 ns (or one tick). */
	units = a->clock.hz * 100 >> a->hist_shift;
	assert_true(mmr_hist_index(units) < MMR_HIST - 1);
	assert_true(a->hist_shift == 0 ||
		    (1ULL << a->hist_shift) <= a->clock.hz * 16 / 1000000000);
	drop(&b);
}

static void test_refused(void **state)
{
	static const struct mmr_compile_opts opts = {0};
	struct mmr_case *c = parse(loops);
	struct mmr_area *area;
	struct mmr_diag d = {0};
	int fd;

	(void)state;
	c->procs[0]->copies = 1000;
	assert_int_equal(mmr_compile(c, &opts, &area, &fd, &d), -EINVAL);
	assert_non_null(strstr(d.text, "threads start"));
	assert_null(area);
	assert_int_equal(fd, -1);
	mmr_case_free(c);
}

static void test_clock(void **state)
{
	struct mmr_clock c;
	struct timespec a, b;
	uint64_t t0, t1;
	int64_t ns, raw;

	(void)state;
	mmr_clock_init(&c);
	clock_gettime(CLOCK_MONOTONIC_RAW, &a);
	t0 = mmr_clock_now(&c);
	do {
		clock_gettime(CLOCK_MONOTONIC_RAW, &b);
		raw = (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec -
		      a.tv_nsec;
	} while (raw < 50000000);
	t1 = mmr_clock_now(&c);
	clock_gettime(CLOCK_MONOTONIC_RAW, &b);
	ns = (int64_t)mmr_clock_to_ns(&c, t1 - t0);
	/* Between the inner and the outer pair of reads, and 1e-4. */
	assert_true(ns > raw - raw / 10000 - 1000000);
	raw = (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec;
	assert_true(ns < raw + raw / 10000);
	assert_true(mmr_clock_from_ns(&c, 1000000000) > c.hz - 2 &&
		    mmr_clock_from_ns(&c, 1000000000) <= c.hz);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* 30 statements; CPU time, so that a loaded machine does not matter. */
static void test_speed(void **state)
{
	char text[4096] = "mmrace-case 1\nprocess main\nthread A\n";
	double best = 1, start, took;
	struct built b;
	int i, k;

	(void)state;
	for (i = 0; i < 15; i++)
		strcat(text, "m0 = mmap len=2p prot=rw flags=shared|anon\n"
			     "write m0 step=1p -> 0|EFAULT\n");
	for (k = 0; k < 20; k++) {
		start = now_s();
		for (i = 0; i < 10; i++) {
			b = build(text, NULL);
			drop(&b);
		}
		took = (now_s() - start) / 10;
		best = took < best ? took : best;
	}
	print_message("parse and compile: %.0f us\n", best * 1e6);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(best < 300e-6);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_insns),	cmocka_unit_test(test_slots),
		cmocka_unit_test(test_tags),	cmocka_unit_test(test_area),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_clock),
		cmocka_unit_test(test_speed),
	};

	return cmocka_run_group_tests_name("compile", tests, NULL, NULL);
}
