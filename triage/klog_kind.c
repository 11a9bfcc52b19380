// SPDX-License-Identifier: GPL-2.0-or-later
/* Which line of a kernel log tells of trouble, and of which kind. */
#include <string.h>

#include "klog.h"
#include "klog_split.h"

struct word {
	const char *text, *kind;
};

/* Anywhere in a line.  These go first: "WARNING: possible circular locking"
 * is one of lockdep. */
static const struct word anywhere[] = {
	{"BUG: KASAN", "kasan"},
	{"BUG: KCSAN", "kcsan"},
	{"BUG: KFENCE", "kfence"},
	{"BUG: KMSAN", "kmsan"},
	{"UBSAN: ", "ubsan"},
	{"possible circular locking", "lockdep"},
	{"possible recursive locking", "lockdep"},
	{"possible irq lock inversion", "lockdep"},
	{"lock order inversion", "lockdep"},
	{"inconsistent lock state", "lockdep"},
	{"suspicious RCU usage", "lockdep"},
	{"bad unlock balance", "lockdep"},
	{"held lock freed", "lockdep"},
	{"BUG: sleeping function called", "atomic-sleep"},
	{"BUG: scheduling while atomic", "atomic-sleep"},
	{"soft lockup", "soft-lockup"},
	{"hard LOCKUP", "hard-lockup"},
	{"Hard LOCKUP", "hard-lockup"},
	{"workqueue lockup", "workqueue-lockup"},
	{"self-detected stall", "rcu-stall"},
	{"detected stalls on", "rcu-stall"},
	{"detected expedited stalls", "rcu-stall"},
	{"blocked for more than", "hung-task"},
	{"Unable to handle kernel", "oops"},
	{"BUG: unable to handle", "oops"},
	{"list_add corruption", "corruption"},
	{"list_del corruption", "corruption"},
	{"corrupted stack end detected", "corruption"},
	{"Bad rss-counter", "bad-page"},
	{"Bad page state", "bad-page"},
	{"Bad page map", "bad-page"},
	{"page dumped because", "bad-page"},
	{"kernel BUG at", "bug"},
};

/* At the start of a line only: what comes later may quote it. */
static const struct word starts[] = {
	{"WARNING: ", "warning"},
	{"BUG: ", "bug"},
	{"BUG ", "corruption"}, /* of SLUB: a cache's name follows */
	{"Oops: ", "oops"},
	{"Oops ", "oops"},
	{"general protection fault", "oops"},
	{"Internal error: ", "oops"},
	{"divide error: ", "oops"},
	{"invalid opcode: ", "oops"},
	{"INFO: task ", "hung-task"},
	{"INFO: rcu", "rcu-stall"},
	{"rcu: INFO: ", "rcu-stall"},
	{"KASAN: ", "kasan"},
	{"Kernel panic", "panic"},
	{"Bad page", "bad-page"},
	{"------------[ cut here", "warning"},
};

const char *mmr_klog_kind(const char *text)
{
	size_t i;

	for (i = 0; i < sizeof(anywhere) / sizeof(*anywhere); i++)
		if (strstr(text, anywhere[i].text))
			return anywhere[i].kind;
	for (i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (!strncmp(text, starts[i].text, strlen(starts[i].text)))
			return starts[i].kind;
	return NULL;
}

bool mmr_klog_is_trouble(const char *text)
{
	return mmr_klog_kind(text) != NULL;
}
