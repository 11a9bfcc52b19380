/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much slower than ordinary hardware this machine is. */
#ifndef MMR_TRIAGE_SCALE_H
#define MMR_TRIAGE_SCALE_H

/*
 * Limits on CPU time are multiplied by this: 1 on ordinary hardware, the
 * measured ratio under emulation.  Measured once a process (some ms, by a
 * spin loop and getpid; never by calls that cases test, or a slow kernel
 * would calibrate its fault away).  Any thread.
 */
double mmr_scale_factor(void);

#endif
