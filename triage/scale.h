/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much slower than ordinary hardware this machine is. */
#ifndef MMR_TRIAGE_SCALE_H
#define MMR_TRIAGE_SCALE_H

/*
 * At least that much where each instruction is emulated.  What is dear there
 * (page tables, TLB flushes, traps) is what the kernel does and user mode does
 * not, so no calibration in user mode can see it.  Where it comes from:
 * docs/decisions.md.
 */
#define MMR_SCALE_EMULATED 10.0

/*
 * Limits on CPU time are multiplied by this: 1 on ordinary hardware, the
 * measured ratio on a slow one, at least MMR_SCALE_EMULATED under emulation.
 * Measured once a process (some ms, by a
 * spin loop and getpid; never by calls that cases test, or a slow kernel
 * would calibrate its fault away).  Any thread.
 */
double mmr_scale_factor(void);
/* This machine is emulated: who started it knows.  Any thread. */
void mmr_scale_emulated(void);

#endif
