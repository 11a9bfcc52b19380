/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all runs of this process share (mmr_engine_start() in run.h), for the
 * files of triage/ and for doctor and soak.
 */
#ifndef MMR_TRIAGE_ENGINE_H
#define MMR_TRIAGE_ENGINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Appends one sentence for each thing that this machine lacks or does not
 * allow and that makes runs poorer.  0 or -ENOMEM.  Any thread. */
int mmr_engine_notes(json_t *array);
/* Now, in ns of the engine's clock (that of the areas).  Any thread. */
uint64_t mmr_engine_now_ns(void);
bool mmr_engine_running(void);
/* Path of mmrace-child. */
const char *mmr_engine_child(void);
/* Readable from the moment of mmr_engine_interrupt() on. */
int mmr_engine_interrupt_fd(void);

#endif
