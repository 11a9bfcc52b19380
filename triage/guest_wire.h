/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The line between runner and guest: frames "@mmr LENGTH\n" + that many
 * bytes over a raw serial port.  The guest's tty drops what arrives faster
 * than it is read, so whoever sends to the guest waits for one '+' after each
 * MMR_WIRE_CHUNK bytes.
 */
#ifndef MMR_TRIAGE_GUEST_WIRE_H
#define MMR_TRIAGE_GUEST_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define MMR_WIRE_CHUNK 2048u
#define MMR_WIRE_MAX (64u << 20)
/* Between frames: the agent is at work. */
#define MMR_WIRE_ALIVE '.'

/* Reads a frame; the caller frees *data, which ends in a NUL beyond n.
 * ack: answer each chunk with '+'.  deadline_ns: CLOCK_MONOTONIC, 0 none.
 * 0, -ETIMEDOUT, -EPIPE (the other side is gone), -EPROTO, -ENOMEM, -EINTR
 * (mmr_engine_interrupt(), within 0.1 s). */
int mmr_wire_read(int fd, int ack, int64_t deadline_ns, char **data, size_t *n);
/* Writes a frame; ack: wait for '+' after each chunk. */
int mmr_wire_write(int fd, int ack, int64_t deadline_ns, const char *data,
		   size_t n);

#endif
