// SPDX-License-Identifier: GPL-2.0-or-later
/* doctor: system calls with an age, and every op by what it needs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../ops/need_probe.h"
#include "../ops/needs.h"
#include "doctor.h"

/* Calls that not every kernel from 4.14 on has or allows, and since when. */
static const struct {
	const char *name, *since, *without;
} calls[] = {
	{"pidfd_open", "5.3", "signals go by pid"},
	{"pidfd_send_signal", "5.1", "signals go by pid"},
	{"clone3", "5.3", "clone is used"},
	{"process_mrelease", "5.15", "its cases are skipped"},
	{"process_madvise", "5.10", "its cases are skipped"},
	{"migrate_pages", "2.6.16, with CONFIG_MIGRATION",
	 "its cases are skipped"},
	{"move_pages", "2.6.18, with CONFIG_MIGRATION",
	 "its cases are skipped"},
	{"mbind", "2.6.7, with CONFIG_NUMA", "its cases are skipped"},
	{"userfaultfd", "4.3, with CONFIG_USERFAULTFD",
	 "its cases are skipped"},
	{"memfd_create", "3.17", "nothing runs without it"},
	{"membarrier", "4.3", "its cases are skipped"},
	{"mseal", "6.10", "its cases are skipped"},
};

static void check_calls(struct mmr_doctor *d)
{
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int rc = mmr_syscall_probe(calls[i].name);
		char what[64];

		/* EINVAL: no op of this version asks for it. */
		if (rc == -EINVAL)
			continue;
		snprintf(what, sizeof(what), "syscall %s", calls[i].name);
		if (!rc)
			mmr_doctor_add(d, true, what, "there");
		else if (rc == -ENOSYS)
			mmr_doctor_add(d, false, what,
				       "not in this kernel (since %s): %s",
				       calls[i].since, calls[i].without);
		else
			mmr_doctor_add(d, false, what, "refused (%s): %s",
				       strerror(-rc), calls[i].without);
	}
}

/* An op alone in a case: what the run would say of it. */
static int check_op(struct mmr_doctor *d, const struct mmr_op *op)
{
	struct mmr_case *c = mmr_case_new();
	struct mmr_proc *p = c ? mmr_case_add_proc(c, "main") : NULL;
	struct mmr_thread *t = p ? mmr_case_add_thread(c, p, "A") : NULL;
	char what[64], text[300] = "";
	int rc = -ENOMEM;

	if (t && mmr_case_add_op(c, &t->body, op, NULL)) {
		snprintf(what, sizeof(what), "op %s", op->name);
		rc = mmr_needs_check(c, false, text, sizeof(text));
		mmr_doctor_add(d, !rc, what, "%s", rc ? text : op->help);
		rc = 0;
	}
	mmr_case_free(c);
	return rc;
}

void mmr_doctor_calls(struct mmr_doctor *d)
{
	unsigned int id;

	check_calls(d);
	for (id = 0; id < MMR_OP_LIMIT; id++) {
		const struct mmr_op *op = mmr_op_by_id(id);

		if (op && check_op(d, op))
			return;
	}
}
