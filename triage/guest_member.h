/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of guest.c and guest_run.c: several QEMUs of one saved state. */
#ifndef MMR_TRIAGE_GUEST_MEMBER_H
#define MMR_TRIAGE_GUEST_MEMBER_H

#include <pthread.h>

#include "guest.h"
#include "guest_qemu.h"

/* One QEMU; of the thread that took it (guest_run.c) for a whole run. */
struct mmr_guest_member {
	bool busy; /* by the guest's lock */
	struct mmr_qemu_conf conf;
	struct mmr_qemu qemu;
	bool dirty; /* ran something, or is not up: restore before use */
};

struct mmr_guest {
	struct mmr_guest_member *m;
	int n;
	bool reuse, has_state;
	char dir[256];	      /* state, initrd; a folder for each member */
	pthread_mutex_t lock; /* of stats and who is busy */
	pthread_cond_t freed; /* one is not busy any more */
	struct mmr_guest_stats stats;
};

/* Waits for the agent's "ready" and keeps what it says in stats. */
int mmr_guest_wait_ready(struct mmr_guest *g, struct mmr_guest_member *m,
			 int64_t limit, char *text, size_t n);
/* Puts a fresh copy of the saved state in place of what m runs, tries it again
 * when it does not answer.  0 or -errno with a sentence. */
int mmr_guest_restore(struct mmr_guest *g, struct mmr_guest_member *m,
		      char *text, size_t n);

#endif
