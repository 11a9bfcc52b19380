/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Throw-away kernels to run cases in: QEMU guests, booted once, saved after
 * boot and restored from there, so that a run after a wedge costs seconds.
 *
 * Inside runs this same mmrace (static) as PID 1 (guest_agent.c) and answers
 * requests on a second serial port, which every kernel has.  A guest never
 * outlives the process that opened it (PR_SET_PDEATHSIG).
 */
#ifndef MMR_TRIAGE_GUEST_H
#define MMR_TRIAGE_GUEST_H

#include "run.h"

struct mmr_guest_opts {
	const char *kernel;  /* bzImage, Image, or debian:VERSION */
	const char *arch;    /* x86_64 or aarch64; NULL: as the kernel's file */
	int cpus;	     /* 0: 4 */
	int mem_mib;	     /* 0: 2048 */
	int count;	     /* guests side by side, 0: 1; fewer when the memory
			      * does not do */
	int nodes;	     /* 0: 2 */
	const char *args;    /* more words of the kernel command line */
	const char *tools;   /* folder of static mmrace, mmrace-child; NULL:
			      * beside the executable */
	const char *program; /* put into the guest for mmr_guest_exec(), NULL:
			      * none */
	bool reuse; /* go on in the same guest while it is healthy (soak);
		     * false: every run in a fresh state */
};

struct mmr_guest;

/* Sizes of it for reports, all 0 while unknown. */
struct mmr_guest_stats {
	int64_t boot_ns, save_ns, restore_ns, restore_max_ns;
	int restores, wedged;
	int guests; /* side by side: what the memory of the machine allows */
	int64_t state_bytes;
	char kernel[80]; /* uname -r inside */
	char accel[8];	 /* kvm or tcg */
	double scale;	 /* what limits on CPU time are multiplied by inside */
};

/*
 * Finds kernel and tools, boots, saves the state.  0, or -errno with a
 * sentence.
 */
int mmr_guest_open(const struct mmr_guest_opts *opts, struct mmr_guest **out,
		   char *text, size_t n) __attribute__((warn_unused_result));
void mmr_guest_close(struct mmr_guest *g);

/*
 * mmr_run() inside, in whichever of the guests is free; waits for one when
 * none is.  Interrupted it returns within a second, verdict NOTHING.  Panic,
 * triple fault, a guest that hangs as a whole and a lost channel are verdicts
 * with the console as their log.  Any thread that lives as long as the guest.
 */
int mmr_guest_run(struct mmr_guest *g, const struct mmr_case *c,
		  const struct mmr_run_opts *opts, struct mmr_run_result *res)
	__attribute__((warn_unused_result));

/*
 * Runs the static program that the guest was opened with, in a fresh state
 * unless reuse: its exit code or -errno; output (n bytes) gets what it printed.
 */
int mmr_guest_exec(struct mmr_guest *g, int64_t limit_ns, char *output,
		   size_t n);

void mmr_guest_get_stats(struct mmr_guest *g, struct mmr_guest_stats *st);

/* PID 1 inside a guest: main() calls it for argv[1] "__guest" or when it
 * runs as PID 1.  Does not return. */
_Noreturn void mmr_guest_agent(void);

#endif
