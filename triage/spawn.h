/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts and ends mmrace-child.  One permanent thread does all starting:
 * PR_SET_PDEATHSIG of the child fires when the *thread* that started it
 * ends, so it has to be one that ends with the engine.
 *
 * Who may run at the same time as whom: mmr_spawn_child() from any thread,
 * served one after the other; mmr_spawn_end() by whoever started that child.
 * start() and stop(): once, with no other call going on.
 */
#ifndef MMR_TRIAGE_SPAWN_H
#define MMR_TRIAGE_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

struct mmr_spawned {
	pid_t holder; /* our child; 0: none, or reaped */
	int pidfd;    /* of the holder, -1: this kernel has none */
	int status;   /* of the holder once it is reaped, as waitpid() gives */
};

int mmr_spawn_start(void) __attribute__((warn_unused_result));
/* Ends the thread, and with it every child that still lives. */
void mmr_spawn_stop(void);

/* Starts path with the area at descriptor MMR_AREA_FD.  0 or -errno. */
int mmr_spawn_child(const char *path, int area_fd, struct mmr_spawned *out)
	__attribute__((warn_unused_result));
/* Reaps the holder if it has ended: 1, else 0. */
int mmr_spawn_reap(struct mmr_spawned *s);
/*
 * Kills all of it and waits at most limit_ns.  supervisor: its pid in /proc,
 * 0 unknown.  0, or -ETIMEDOUT: something cannot be killed; it is set aside,
 * counted, reaped when it ends after all, and never waited for.
 */
int mmr_spawn_end(struct mmr_spawned *s, pid_t supervisor, int64_t limit_ns);
/* How many are set aside now. */
int mmr_spawn_quarantined(void);

#endif
