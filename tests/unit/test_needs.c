// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Needs.  Red when something that this machine has is called missing, when
 * what no machine has is called there, or when the sentence does not say what
 * is missing.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../ops/need_probe.h"
#include "../../ops/needs.h"

#define BODY "process main\nthread A\npause\n"

static int check(const char *needs, bool may_set, char *text, size_t n)
{
	char whole[512];
	struct mmr_diag d;
	struct mmr_case *c;
	int rc;

	snprintf(whole, sizeof(whole), "mmrace-case 1\n%s", needs);
	if (mmr_case_parse(whole, strlen(whole), &c, &d, NULL, NULL))
		fail_msg("%d:%d: %s", d.line, d.col, d.text);
	text[0] = 0;
	rc = mmr_needs_check(c, may_set, text, n);
	mmr_case_free(c);
	return rc;
}

static void test_met(void **state)
{
	static const char *const met[] = {
		BODY,
		"needs cpus>=1 nodes>=1 memory>=1M\n" BODY,
		"needs nocap=CAP_SYS_NICE\n" BODY,
		"needs syscall=memfd_create\n" BODY,
		"expect restored MemFree\n" BODY,
	};
	char text[256], line[128];
	struct utsname u;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(met) / sizeof(met[0]); i++)
		if (check(met[i], false, text, sizeof(text)))
			fail_msg("%s: %s", met[i], text);
	assert_int_equal(uname(&u), 0);
	snprintf(line, sizeof(line), "needs arch=%.32s\n" BODY, u.machine);
	assert_int_equal(check(line, false, text, sizeof(text)), 0);
}

static void test_missing(void **state)
{
	static const struct {
		const char *text, *says;
	} missing[] = {
		{"needs cpus>=100000\n" BODY,
		 "needs 100000 CPUs, this process"},
		{"needs nodes>=1000\n" BODY, "needs 1000 NUMA nodes"},
		{"expect restored HugePages_Fre\n" BODY, "no such field"},
		{"needs hugepages>=1000000\n" BODY, "huge pages"},
		{"needs memory>=1000000G\n" BODY, "needs 1000000G of"},
		{"needs arch=s390x\n" BODY, "architecture s390x"},
		{"set nr_hugepages=0\n" BODY, "give --allow-settings"},
		{"needs writes=drop_caches\n" BODY, "needs to change drop_"},
		{"needs swap>=64M\n" BODY, "a swap area of its own"},
		{BODY "compact_memory\n", "add `needs writes=compact_memory`"},
		{"needs writes=nr_hugepages\n" BODY
		 "set_number nr_overcommit_hugepages 1\n",
		 "to change nr_hugepages"},
	};
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		assert_int_equal(
			check(missing[i].text, false, text, sizeof(text)),
			-ENOTSUP);
		if (!strstr(text, missing[i].says))
			fail_msg("%s: %s", missing[i].text, text);
	}
	/* May set, but there is not that much memory. */
	assert_int_equal(check("needs hugepages>=100000000\n" BODY, true, text,
			       sizeof(text)),
			 -ENOTSUP);
	assert_int_equal(
		check("set nr_hugepages=0\n" BODY, true, text, sizeof(text)),
		0);
}

/* One CPU is left to this process: what counts is what it may use. */
static void test_affinity(void **state)
{
	cpu_set_t before, one;
	char text[256];
	int cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(
		check("needs cpus>=2\n" BODY, false, text, sizeof(text)),
		-ENOTSUP);
	assert_non_null(strstr(text, "needs 2 CPUs, this process may use 1"));
	sched_setaffinity(0, sizeof(before), &before);
}

static void test_syscalls(void **state)
{
	static const char *const ops[] = {"migrate_pages", "process_mrelease",
					  "pidfd_open", "userfaultfd"};
	struct mmr_need need = {.kind = MMR_NEED_SYSCALL};
	size_t i;
	int rc;

	(void)state;
	assert_int_equal(mmr_syscall_probe("memfd_create"), 0);
	assert_int_equal(mmr_syscall_probe("nonsense"), -EINVAL);
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		need.name = ops[i];
		assert_true(mmr_need_known(&need));
		rc = mmr_syscall_probe(ops[i]);
		assert_true(rc == 0 || rc == -ENOSYS || rc == -EPERM);
	}
}

static void test_caps(void **state)
{
	struct mmr_need need = {.kind = MMR_NEED_CAP, .name = "CAP_SYS_NICE"};
	char text[256] = "";
	int rc;

	(void)state;
	assert_int_equal(mmr_cap_number("CAP_CHOWN"), 0);
	assert_int_equal(mmr_cap_number("CAP_SYS_NICE"), 23);
	assert_int_equal(mmr_cap_number("CAP_CHECKPOINT_RESTORE"), 40);
	assert_int_equal(mmr_cap_number("SYS_NICE"), -1);
	rc = mmr_need_probe(&need, text, sizeof(text));
	assert_true(rc == 0 || rc == -ENOTSUP);
	if (geteuid() != 0)
		assert_int_equal(rc, -ENOTSUP);
	if (rc)
		assert_non_null(strstr(text, "CAP_SYS_NICE"));
}

/* Words of a descriptor's needs: each is one that has a probe. */
static void check_words(const char *who, const char *needs)
{
	char words[200], *save = NULL, *w;
	struct mmr_need need;

	snprintf(words, sizeof(words), "%s", needs);
	for (w = strtok_r(words, " ", &save); w;
	     w = strtok_r(NULL, " ", &save)) {
		if (strcmp(w, "allowed") == 0 || strncmp(w, "cap=", 4) == 0)
			continue;
		need = (struct mmr_need){.kind = MMR_NEED_SYSCALL};
		if (strncmp(w, "feature=", 8) == 0)
			need.kind = MMR_NEED_FEATURE;
		else if (strncmp(w, "syscall=", 8) != 0)
			continue;
		need.name = w + 8;
		if (!mmr_need_known(&need))
			fail_msg("%s needs %s, which has no probe", who, w);
	}
}

static void check_names(const struct mmr_op *op, const struct mmr_argspec *a,
			const struct mmr_name_need *need)
{
	for (; need && need->needs; need++) {
		check_words(op->name, need->needs);
		if (strcmp(mmr_name_of(a->names, need->value), "?") == 0)
			fail_msg("%s: %s is of no name", op->name, need->needs);
	}
}

/* What an op or the name of an argument needs counts as if the case had said
 * so; a need that belongs to no name would never be asked for. */
static void test_ops(void **state)
{
	const struct mmr_op *op;
	unsigned int id;
	int i;

	(void)state;
	for (id = 0; id < MMR_OP_LIMIT; id++) {
		op = mmr_op_by_id(id);
		if (!op)
			continue;
		if (op->needs)
			check_words(op->name, op->needs);
		for (i = 0; i < op->nargs; i++) {
			check_names(op, &op->args[i], op->args[i].needs);
			check_names(op, &op->args[i], op->args[i].without);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_met),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_affinity),
		cmocka_unit_test(test_syscalls),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_ops),
	};

	return cmocka_run_group_tests_name("needs", tests, NULL, NULL);
}
