// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The libFuzzer target that runs cases.  The input is case text, or any bytes,
 * which are then the seed of a generated case; the mutator edits cases.
 *
 * Nothing is instrumented: it is guided by what can be seen from outside
 * (DESIGN section 8), which it puts into __libfuzzer_extra_counters.  What
 * that takes, with libFuzzer of LLVM 14 (each found by trial):
 *  - a counter has to be set by the very first inputs (the empty one and a
 *    newline), or libFuzzer gives up: ctr[0] always is;
 *  - an array that is only written is dropped by the compiler, and the
 *    section with it: volatile and used;
 *  - its handlers of SIGSEGV and SIGBUS, its alarm and its memory limit are
 *    for instrumented code; they would end or disturb runs: all off.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/rng.h"
#include "../triage/evidence.h"
#include "../triage/finding.h"
#include "gen.h"

#define COUNTERS 16384
#define BUDGET_NS 100000000LL
#define BLOCKED_NS 100000 /* a call that usually takes longer has slept */
#define OUT_DIR "mmrace-fuzz"

/* Where each kind of counter begins. */
enum {
	AT_ERRNO = 64, /* op, errno, blocked: 32 * 2 * 64 */
	AT_PRODUCER = AT_ERRNO + 32 * 2 * 64, /* op, who made its ref */
	AT_LATENCY = AT_PRODUCER + 32 * 32,   /* op, log2 of its median */
	AT_VMSTAT = AT_LATENCY + 32 * 32,     /* counter, log2 of its change */
	AT_VERDICT = AT_VMSTAT + 32 * 32,
	AT_END = AT_VERDICT + MMR_VERDICTS,
};
_Static_assert((int)AT_END <= COUNTERS, "counters");

__attribute__((section("__libfuzzer_extra_counters"),
	       used)) static volatile uint8_t ctr[COUNTERS];

static const char *const vmstat_names[] = {
	"pgmajfault",
	"pgmigrate_success",
	"pgmigrate_fail",
	"thp_migration_success",
	"thp_fault_alloc",
	"thp_fault_fallback",
	"thp_collapse_alloc",
	"thp_split_page",
	"thp_split_pmd",
	"thp_deferred_split_page",
	"compact_stall",
	"allocstall_normal",
	"allocstall_movable",
	"pgsteal_direct",
	"htlb_buddy_alloc_success",
	"pgreuse",
	"cow_ksm",
	"oom_kill",
	"unevictable_pgs_mlocked",
};
#define NVMSTAT (sizeof(vmstat_names) / sizeof(vmstat_names[0]))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed);

static void set(unsigned int i)
{
	ctr[i] = 1;
}

static unsigned int log2_of(uint64_t v)
{
	return v ? 64 - (unsigned int)__builtin_clzll(v) : 0;
}

static void read_vmstat(uint64_t *out)
{
	char line[128], name[96];
	uint64_t value;
	FILE *f = fopen("/proc/vmstat", "re");

	memset(out, 0, NVMSTAT * sizeof(*out));
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%95s %" SCNu64, name, &value) != 2)
			continue;
		for (size_t i = 0; i < NVMSTAT; i++)
			if (!strcmp(name, vmstat_names[i]))
				out[i] = value;
	}
	if (f)
		fclose(f);
}

/* The op that made the ref which s uses first; -1: none. */
static int producer(const struct mmr_case *c, const struct mmr_stmt *s)
{
	int n = mmr_case_count(c);

	if (!s->op->nargs || s->op->args[0].type != MMR_ARG_REF ||
	    !s->args[0].name)
		return -1;
	for (int i = 0; i < n; i++) {
		const struct mmr_stmt *p = mmr_case_stmt(c, i);

		if (p->kind == MMR_STMT_OP && p->ref &&
		    !strcmp(p->ref, s->args[0].name))
			return p->op->id;
	}
	return -1;
}

static void see_stmt(const struct mmr_case *c, const struct mmr_stmt *s,
		     const struct mmr_measure *m)
{
	unsigned int op = s->op->id & 31, blocked = m->p50_ns > BLOCKED_NS;
	int from = producer(c, s);

	if (m->count > m->errors)
		set(AT_ERRNO + (op * 2 + blocked) * 64);
	for (int i = 0; i < MMR_ERRS; i++)
		if (m->errs[i].n)
			set(AT_ERRNO + (op * 2 + blocked) * 64 +
			    ((unsigned int)m->errs[i].err & 63));
	if (from >= 0)
		set(AT_PRODUCER + op * 32 + ((unsigned int)from & 31));
	set(AT_LATENCY + op * 32 + (log2_of(m->p50_ns) & 31));
}

static void see(const struct mmr_case *c, const struct mmr_run_result *res,
		const uint64_t *before)
{
	uint64_t after[NVMSTAT];

	for (int i = 0; i < res->nstmts; i++) {
		const struct mmr_stmt *s = mmr_case_stmt(c, i);

		if (s && s->kind == MMR_STMT_OP && res->stmts[i].count)
			see_stmt(c, s, &res->stmts[i]);
	}
	read_vmstat(after);
	for (size_t i = 0; i < NVMSTAT; i++)
		if (after[i] > before[i])
			set(AT_VMSTAT + (unsigned int)i * 32 +
			    (log2_of(after[i] - before[i]) & 31));
	set(AT_VERDICT + (unsigned int)res->verdict);
}

static struct mmr_case *decode(const uint8_t *data, size_t size)
{
	uint64_t key = size;
	struct mmr_diag diag;
	struct mmr_case *c;

	if (size &&
	    !mmr_case_parse((const char *)data, size, &c, &diag, NULL, NULL))
		return c;
	for (size_t i = 0; i < size; i++)
		key = mmr_rng_key(key, data[i]);
	return mmr_gen(key, mmr_profile_find("mixed"));
}

/* A finding on disk first, then libFuzzer's own: the input as a file. */
static void __attribute__((noreturn))
found(const struct mmr_case *c, const struct mmr_run_result *res)
{
	char path[300] = "";

	if (mmr_finding_save(OUT_DIR, c, NULL, res, NULL, path, sizeof(path)))
		snprintf(path, sizeof(path), "(not stored)");
	fprintf(stderr, "race_fuzzer: %s: %s\nstored as %s\n",
		mmr_verdict_name(res->verdict), res->text, path);
	mmr_engine_stop();
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mmr_run_opts opts = {.budget_ns = BUDGET_NS};
	struct mmr_run_result res = {0};
	struct mmr_case *c = decode(data, size);
	uint64_t before[NVMSTAT];

	set(0);
	if (!c)
		return 0;
	opts.seed = c->origin.seed;
	read_vmstat(before);
	if (!mmr_run(c, &opts, &res)) {
		see(c, &res, before);
		if (mmr_verdict_is_hit(res.verdict))
			found(c, &res);
	}
	mmr_run_result_free(&res);
	mmr_case_free(c);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed)
{
	struct mmr_diag diag;
	struct mmr_case *c = NULL;
	size_t n;
	char *text;

	if (!size ||
	    mmr_case_parse((const char *)data, size, &c, &diag, NULL, NULL))
		c = mmr_gen(seed, mmr_profile_find("mixed"));
	for (unsigned int i = 0; c && i <= (seed >> 8) % 3; i++)
		if (mmr_mutate(c, mmr_rng_key(seed, i)))
			break;
	text = c ? mmr_case_print(c) : NULL;
	mmr_case_free(c);
	n = text ? strlen(text) : 0;
	if (!n || n > max) {
		free(text);
		return size <= max ? size : max;
	}
	memcpy(data, text, n);
	free(text);
	return n;
}

static bool given(int argc, char **argv, const char *option)
{
	size_t n = strcspn(option, "=") + 1;

	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], option, n))
			return true;
	return false;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const options[] = {
		"-handle_segv=0",  "-handle_bus=0",  "-timeout=0",
		"-rss_limit_mb=0", "-len_control=0", "-max_len=16384"};
	enum { NOPTIONS = sizeof(options) / sizeof(options[0]) };
	static char *args[256];
	char text[400] = "";
	int n = 1;

	/* The engine starts this executable so, to read what may be stuck. */
	if (*argc > 1 && !strcmp((*argv)[1], "__evidence"))
		exit(mmr_evidence_helper(*argc, *argv));
	if (mmr_engine_start(getenv("MMR_CHILD"), text, sizeof(text))) {
		fprintf(stderr, "race_fuzzer: %s\n", text);
		exit(3);
	}
	atexit(mmr_engine_stop);
	if (*argc + NOPTIONS >= 256)
		return 0;
	args[0] = (*argv)[0];
	for (int i = 0; i < NOPTIONS; i++)
		if (!given(*argc, *argv, options[i]))
			args[n++] = strdup(options[i]);
	memcpy(args + n, *argv + 1, (size_t)*argc * sizeof(args[0]));
	*argc += n - 1;
	*argv = args;
	return 0;
}
