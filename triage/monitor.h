/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The monitor: one thread that looks at every live target each 15 ms.
 * start() and stop() once each; the rest from any thread.
 */
#ifndef MMR_TRIAGE_MONITOR_H
#define MMR_TRIAGE_MONITOR_H

#include <stdint.h>

int mmr_monitor_start(void) __attribute__((warn_unused_result));
void mmr_monitor_stop(void);
/* CPU time that it took so far, ns, and its ticks. */
uint64_t mmr_monitor_cost_ns(void);
uint64_t mmr_monitor_ticks(void);
/* Machine-wide pauses since the start, ns, up to its last tick. */
int64_t mmr_monitor_pause_ns(void);

#endif
