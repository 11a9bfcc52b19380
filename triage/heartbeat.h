/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Heartbeats: a thread on each CPU that ought to wake every 10 ms and notes
 * how late it does.  When all are late at once, the machine stood still (a
 * hypervisor's pause, as a rule, which /proc/stat steal does not show); when
 * one is, whoever it keeps from running may hold a lock.
 *
 * Times are ns of the engine's clock (mmr_clock_now through mmr_clock_to_ns).
 *
 * Who may run at the same time as whom: every beating thread writes its own
 * ring only; pause() and late() read all rings from any thread, any number
 * at once, without locks.  start() and stop(): once each, nobody else.
 */
#ifndef MMR_TRIAGE_HEARTBEAT_H
#define MMR_TRIAGE_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

/* One thread for each CPU of this process's affinity mask.  0 or -errno;
 * what could be started beats. */
int mmr_heartbeat_start(void);
void mmr_heartbeat_stop(void);

/* How long within from..to all CPUs were late at once, ns. */
int64_t mmr_heartbeat_pause(uint64_t from_ns, uint64_t to_ns);
/* How long within from..to the latest single CPU was late, ns; latenesses
 * below 5 ms do not count. */
int64_t mmr_heartbeat_late(uint64_t from_ns, uint64_t to_ns);
/* Short turns for the calling thread: since Linux 6.12 who asks for them gets
 * its CPU sooner, without privilege.  Elsewhere it changes nothing. */
void mmr_heartbeat_short_turns(void);
/* How long a thread has waited for a CPU so far, ns, by its schedstat file; 0
 * unknown. */
uint64_t mmr_heartbeat_run_delay(int fd);
/* A nap of whoever asks pause() and late(): it was to end at due and did at
 * came, without the time that it then waited for a CPU.  That one thread
 * only. */
void mmr_heartbeat_nap(uint64_t due_ns, uint64_t came_ns);
/* CPU time that all heartbeats took so far, ns. */
uint64_t mmr_heartbeat_cost_ns(void);
/* True when they run with SCHED_FIFO (else what they waited for a CPU is
 * subtracted, as far as the kernel tells it). */
bool mmr_heartbeat_fifo(void);
int mmr_heartbeat_cpus(void);

/* For tests: a beat of CPU i that was due at due_ns and came at came_ns, on
 * rings without threads (n of them, made by the call with i < 0). */
void mmr_heartbeat_fake(int i, int n, uint64_t due_ns, uint64_t came_ns);

#endif
