// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The generator: same seed, same text; always a case that parses, ends, fits
 * into memory, and mostly asks for what the kernel will do.
 *
 * Red when: a draw depends on anything but the seed (golden, repeat), two
 * draws stand in one expression (golden, by the other compiler), an argument
 * is set that the printer leaves out (identity), a profile names what no
 * descriptor knows (words), a wait loses its signal (ends), a profile or a
 * verb no longer makes what a founding report needs (reach).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../fuzz/profile.h"
#include "../../fuzz/recipe.h"
#include "../../fuzz/shadow.h"

#define SEEDS 300

static char *text_of(uint64_t seed, const char *profile)
{
	struct mmr_case *c = mmr_gen(seed, mmr_profile_find(profile));
	char *text;

	assert_non_null(c);
	text = mmr_case_print(c);
	assert_non_null(text);
	mmr_case_free(c);
	return text;
}

static struct mmr_case *parse(const char *text)
{
	struct mmr_diag d = {0};
	struct mmr_case *c;
	int rc = mmr_case_parse(text, strlen(text), &c, &d, NULL, NULL);

	if (rc)
		fail_msg("%d:%d: %s in\n%s", d.line, d.col, d.text, text);
	return c;
}

static void each_seed(void (*fn)(uint64_t seed, const char *profile))
{
	const char *p;

	for (int i = 0; (p = mmr_profile_name(i, NULL)); i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			fn(seed, p);
}

static void identity(uint64_t seed, const char *profile)
{
	struct mmr_case *g = mmr_gen(seed, mmr_profile_find(profile)), *c;
	char *text = text_of(seed, profile), *again;
	struct mmr_diag d = {0};

	assert_non_null(g);
	if (mmr_case_check(g, &d))
		fail_msg("seed %llu of %s: %s\n%s", (unsigned long long)seed,
			 profile, d.text, text);
	c = parse(text);
	again = mmr_case_print(c);
	assert_string_equal(text, again);
	free(again);
	mmr_case_free(c);
	mmr_case_free(g);
	free(text);
}

static void test_identity(void **state)
{
	(void)state;
	each_seed(identity);
}

static void deletion(uint64_t seed, const char *profile)
{
	char *text = text_of(seed, profile), *cut;
	struct mmr_case *c = parse(text), *d;
	int n = mmr_case_count(c);

	for (int i = 0; i < n; i++) {
		d = mmr_case_clone(c);
		assert_non_null(d);
		assert_int_equal(mmr_case_remove(d, i), 0);
		cut = mmr_case_print(d);
		mmr_case_free(d);
		mmr_case_free(parse(cut));
		free(cut);
	}
	mmr_case_free(c);
	free(text);
}

static void test_deletion(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		deletion(seed, "mixed");
		deletion(seed, "mrelease");
		deletion(seed, "hugetlb");
	}
}

/* The text without its origin line, which differs anyway. */
static char *body_of(uint64_t seed)
{
	char *text = text_of(seed, "mixed"), *line = strstr(text, "origin");

	assert_non_null(line);
	memset(line, ' ', strcspn(line, "\n"));
	return text;
}

static void test_different(void **state)
{
	char *texts[200];
	int same = 0;

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		texts[i] = body_of(i + 1000);
	for (int i = 0; i < 200; i++)
		for (int k = 0; k < i; k++)
			if (!strcmp(texts[i], texts[k])) {
				same++;
				break;
			}
	assert_true(same <= 2);
	for (int i = 0; i < 200; i++)
		free(texts[i]);
}

/* What one statement asks for, as far as the test looks. */
static int valid, wrong;

static void follow(struct mmr_shadow *sh, const struct mmr_block *b)
{
	for (int i = 0; i < b->n; i++) {
		const struct mmr_stmt *s = b->stmts[i];

		if (s->kind == MMR_STMT_LOOP)
			follow(sh, &s->body);
		else if (mmr_shadow_step(sh, s))
			valid++;
		else
			wrong++;
	}
}

static void validity(uint64_t seed, const char *profile)
{
	struct mmr_case *c = mmr_gen(seed, mmr_profile_find(profile));
	struct mmr_shadow sh = {0};

	assert_non_null(c);
	for (int p = 0; p < c->nprocs; p++)
		for (int t = 0; t < c->procs[p]->nthreads; t++) {
			sh.thread++;
			follow(&sh, &c->procs[p]->threads[t]->body);
		}
	mmr_case_free(c);
}

static void test_validity(void **state)
{
	(void)state;
	each_seed(validity);
	print_message("%d valid, %d wrong\n", valid, wrong);
	assert_true(wrong * 10 <= valid + wrong);
	/* The deliberate ones are there. */
	assert_true(wrong * 100 >= valid + wrong);
}

static bool signalled(const struct mmr_case *c, const char *latch)
{
	int n = mmr_case_count(c);

	for (int i = 0; i < n; i++) {
		const struct mmr_stmt *s = mmr_case_stmt(c, i);

		if (s->kind == MMR_STMT_OP && s->op->id == MMR_OP_signal &&
		    !strcmp(s->args[0].name, latch))
			return true;
	}
	return false;
}

/* Of a mapping that only reserves: no more than half of what the case asks
 * the machine for. */
static bool roomy(const struct mmr_case *c, int64_t bytes)
{
	for (int i = 0; i < c->nneeds; i++)
		if (c->needs[i].kind == MMR_NEED_MEMORY)
			return bytes <= 512 << 20 && bytes * 2 <= c->needs[i].n;
	return false;
}

static bool closed(const struct mmr_case *c, const char *ref)
{
	int n = mmr_case_count(c);

	for (int i = 0; i < n; i++) {
		const struct mmr_stmt *s = mmr_case_stmt(c, i);

		if (s->kind == MMR_STMT_OP && s->op->id == MMR_OP_close &&
		    !strcmp(s->args[0].name, ref) &&
		    !strcmp(mmr_case_stmt_thread(c, i, NULL)->name, "U"))
			return true;
	}
	return false;
}

static void ends(uint64_t seed, const char *profile)
{
	struct mmr_case *c = mmr_gen(seed, mmr_profile_find(profile));
	int64_t bytes = 0, len;
	int n;

	assert_non_null(c);
	n = mmr_case_count(c);
	assert_true(n >= 2 && n <= 200);
	assert_true(c->rounds >= 1 && c->rounds <= 16);
	for (int i = 0; i < n; i++) {
		const struct mmr_stmt *s = mmr_case_stmt(c, i);

		if (s->kind == MMR_STMT_LOOP) {
			assert_true(s->until == MMR_UNTIL_COUNT ||
				    s->until == MMR_UNTIL_DONE);
			assert_true(s->count <= 64);
			continue;
		}
		assert_int_not_equal(s->op->id, MMR_OP_futex_wait);
		/* Who answers faults lets all go at its end. */
		if (s->op->id == MMR_OP_userfaultfd)
			assert_true(closed(c, s->ref));
		assert_int_not_equal(s->op->id, MMR_OP_ptrace_seize);
		if (s->op->id == MMR_OP_wait)
			assert_true(signalled(c, s->args[0].name));
		if (s->op->id != MMR_OP_mmap)
			continue;
		len = mmr_shadow_bytes(s->args[0].lo, s->args[0].unit);
		if (s->ref && !strcmp(s->ref, "big"))
			assert_true(roomy(c, len));
		else
			bytes += len;
	}
	/* All that it maps at once, were nothing ever unmapped. */
	assert_true(bytes <= 256 << 20);
	mmr_case_free(c);
}

static void test_ends(void **state)
{
	(void)state;
	each_seed(ends);
}

/* What the founding reports are made of comes up within a short soak. */
static void test_reach(void **state)
{
	static const struct {
		const char *profile, *text;
		int least; /* of 400 seeds */
	} all[] = {
		{"hugetlb", "set     nr_hugepages=0 nr_overcommit", 60},
		{"hugetlb", "big = mmap len=", 15},
		{"hugetlb", "needs   hugepages>=", 200},
		{"migrate", "prot=rx flags=private", 150},
		{"migrate", "from=n0 to=n1", 100},
		{"migrate", "from=n1 to=n0", 100},
		{"migrate", "needs   nodes>=2", 100},
		{"mixed", "set     nr_hugepages=0", 2},
		{"mixed", "prot=rx flags=private", 8},
		{"mixed", "from=n0 to=n1", 4},
		{"mixed", "process_mrelease", 20},
		{"mixed", " skew=auto", 180},
		{"mixed", " skew=log", 70},
		{"mixed", " order=2 ", 6},
		{"storm", "membarrier private_expedited", 8},
		{"storm", "mprotect x0", 8},
		{"storm", "move_threads", 8},
		{"storm", "nanosleep 20us..100us", 8},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int n = 0;

		for (uint64_t seed = 0; seed < 400; seed++) {
			char *text = text_of(seed, all[i].profile);

			n += strstr(text, all[i].text) != NULL;
			free(text);
		}
		if (n < all[i].least)
			fail_msg("%s: %d of 400 seeds have '%s'",
				 all[i].profile, n, all[i].text);
	}
}

static bool knows(const struct mmr_op *op, int arg, const char *word)
{
	for (const struct mmr_name *n = op->args[arg].names; n && n->name; n++)
		if (!strcmp(n->name, word))
			return true;
	return false;
}

static void test_words(void **state)
{
	const struct mmr_op *madvise = mmr_op_by_name("madvise");
	const struct mmr_op *send = mmr_op_by_name("kill");
	const char *name;

	(void)state;
	for (int i = 0; (name = mmr_profile_name(i, NULL)); i++) {
		const struct mmr_profile *p = mmr_profile_find(name);

		for (int k = 0; k < p->ops.n; k++)
			assert_true(mmr_op_by_name(p->ops.w[k].word) ||
				    mmr_recipe_find(p->ops.w[k].word));
		for (int k = 0; k < p->must.n; k++)
			assert_true(mmr_weights_find(&p->ops,
						     p->must.w[k].word) >= 0);
		for (int k = 0; k < p->advice.n; k++)
			assert_true(knows(madvise,
					  mmr_op_arg(madvise, "advice"),
					  p->advice.w[k].word));
		for (int k = 0; k < p->signal.n; k++)
			assert_true(knows(send, mmr_op_arg(send, "signal"),
					  p->signal.w[k].word));
		for (int k = 0; k < p->mix.n; k++)
			assert_true(!strcmp(p->mix.w[k].word, "self") ||
				    mmr_profile_find(p->mix.w[k].word));
	}
	assert_null(mmr_profile_find("base"));
}

static void test_mutate(void **state)
{
	struct mmr_diag d = {0};
	int changed = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct mmr_case *c = mmr_gen(seed, mmr_profile_find("mixed"));

		assert_non_null(c);
		for (uint64_t i = 0; i < 20; i++) {
			char *before = mmr_case_print(c), *after;

			if (mmr_mutate(c, mmr_rng_key(seed, i))) {
				free(before);
				continue;
			}
			if (mmr_case_check(c, &d))
				fail_msg("mutated: %s", d.text);
			after = mmr_case_print(c);
			changed += strcmp(before, after) != 0;
			mmr_case_free(parse(after));
			free(before);
			free(after);
		}
		mmr_case_free(c);
	}
	assert_true(changed >= 600);
}

static void golden(const char *profile, uint64_t seed)
{
	char path[256], *text = text_of(seed, profile), *want;
	const char *dir = getenv("MMR_GOLDEN");
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/gen-%s-%llu.case",
		 dir ? dir : "tests/golden", profile, (unsigned long long)seed);
	/* After a change that is meant (and MMR_GEN_VERSION + 1). */
	if (getenv("MMR_GOLDEN_WRITE")) {
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(text, f);
		fclose(f);
	}
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be read", path);
	want = calloc(1, 1 << 16);
	assert_non_null(want);
	n = fread(want, 1, (1 << 16) - 1, f);
	assert_true(n > 0);
	fclose(f);
	assert_string_equal(want, text);
	free(want);
	free(text);
}

static void test_golden(void **state)
{
	(void)state;
	golden("mixed", 7);
	golden("mixed", 1);
	golden("mixed", 0xffffffffffffffffULL);
	golden("storm", 7);
	golden("migrate", 7);
	golden("mrelease", 7);
	golden("hugetlb", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_deletion),
		cmocka_unit_test(test_different),
		cmocka_unit_test(test_validity),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_reach),
		cmocka_unit_test(test_mutate),
		cmocka_unit_test(test_golden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
