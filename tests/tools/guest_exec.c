// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * guest_exec KERNEL 'ARGS' PROGRAM SECONDS: runs a static program in a fresh
 * guest, prints what it printed, and exits with its code (124: its time was
 * over, 125: the guest failed).  ARGS are words of the kernel command line.
 * MMR_GUEST_CPUS is how many CPUs the guest has.  For tests/lab.
 */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../triage/guest.h"
#include "../../triage/run.h"

#define FAILED 125

/* The static programs lie beside mmrace, a folder up from this tool. */
static const char *tools(char *buf, size_t n)
{
	ssize_t len = readlink("/proc/self/exe", buf, n - 1);

	buf[len > 0 ? len : 0] = '\0';
	return dirname(dirname(buf));
}

int main(int argc, char **argv)
{
	const char *cpus = getenv("MMR_GUEST_CPUS");
	static char output[1 << 16];
	char dir[PATH_MAX], text[512] = "";
	struct mmr_guest_opts o = {0};
	struct mmr_guest *g;
	int rc;

	if (argc != 5 || atoi(argv[4]) <= 0) {
		fprintf(stderr, "usage: guest_exec KERNEL 'ARGS' PROGRAM "
				"SECONDS\n");
		return 2;
	}
	o.kernel = argv[1];
	o.args = argv[2];
	o.cpus = cpus ? atoi(cpus) : 0;
	o.tools = tools(dir, sizeof(dir));
	o.program = argv[3];
	if (mmr_guest_open(&o, &g, text, sizeof(text))) {
		fprintf(stderr, "guest_exec: %s\n", text);
		return FAILED;
	}
	rc = mmr_guest_exec(g, atoi(argv[4]) * 1000000000LL, output,
			    sizeof(output));
	mmr_guest_close(g);
	fputs(output, stdout);
	if (rc < 0)
		fprintf(stderr, "guest_exec: %s\n", strerror(-rc));
	return rc < 0 ? FAILED : rc;
}
