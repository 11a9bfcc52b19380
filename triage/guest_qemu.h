/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One QEMU process: start it, talk to its monitor, save it, end it. */
#ifndef MMR_TRIAGE_GUEST_QEMU_H
#define MMR_TRIAGE_GUEST_QEMU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mmr_qemu_conf {
	char kernel[512], initrd[512];
	char arch[16];
	char dir[256];	 /* sockets and console live here */
	char state[300]; /* the saved state's file */
	char args[512];	 /* of the kernel command line */
	int cpus, mem_mib, nodes;
	bool kvm;
};

struct mmr_qemu {
	pid_t pid;  /* 0: none */
	int line;   /* second serial port, -1 */
	int qmp;    /* monitor, -1 */
	int serial; /* number of this process, names its console file */
	int status; /* of the one that ended by itself, as waitpid() has it */
};

/*
 * Starts it (incoming: from the saved state) and connects line and monitor.
 * It dies with this process.  0 or -errno with a sentence in text; as the
 * others here -EINTR soon after mmr_engine_interrupt().
 */
int mmr_qemu_start(const struct mmr_qemu_conf *conf, bool incoming,
		   struct mmr_qemu *q, char *text, size_t n);
/* Saves the running state into conf->state; it stops there.  0 or -errno. */
int mmr_qemu_save(const struct mmr_qemu_conf *conf, struct mmr_qemu *q);
/* True while the process lives. */
bool mmr_qemu_alive(struct mmr_qemu *q);
/* Ends it at once, and reaps it. */
void mmr_qemu_end(struct mmr_qemu *q);
/* The console so far, last max bytes, for the caller to free; NULL. */
char *mmr_qemu_console(const struct mmr_qemu_conf *conf,
		       const struct mmr_qemu *q, long max);

#endif
