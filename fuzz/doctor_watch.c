// SPDX-License-Identifier: GPL-2.0-or-later
/* doctor: what can be seen of a stall, and how the cases are fenced in. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../triage/cap.h"
#include "../triage/evidence.h"
#include "../triage/heartbeat.h"
#include "../triage/run.h"
#include "doctor.h"

static void check_perf(struct mmr_doctor *d)
{
	struct mmr_perf p;
	char buf[32];
	int rc = mmr_perf_open(gettid(), &p);

	mmr_doctor_read("/proc/sys/kernel/perf_event_paranoid", buf,
			sizeof(buf));
	if (rc) {
		mmr_doctor_add(d, false, "perf counters",
			       "refused (%s; perf_event_paranoid is %s): page "
			       "faults are counted by /proc only",
			       strerror(-rc), buf[0] ? buf : "unknown");
		return;
	}
	mmr_doctor_add(d, p.fault_fd >= 0, "perf counters",
		       "page faults %s, their addresses %s "
		       "(perf_event_paranoid is %s)",
		       p.fault_fd >= 0 ? "can be counted" : "cannot be counted",
		       p.sample_fd >= 0 ? "sampled" : "not sampled", buf);
	mmr_perf_close(&p);
}

/* Opens and reads a bit of a file; says which of it fails. */
static void check_file(struct mmr_doctor *d, const char *what, const char *path,
		       const char *with, const char *without)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), err = 0;
	char b[256];

	if (fd < 0 ||
	    (read(fd, b, sizeof(b)) < 0 && errno != EAGAIN && errno != EPIPE))
		err = errno;
	if (fd >= 0)
		close(fd);
	if (err)
		mmr_doctor_add(d, false, what, "%s (%s): %s", path,
			       strerror(err), without);
	else
		mmr_doctor_add(d, true, what, "%s", with);
}

static void check_ptrace(struct mmr_doctor *d)
{
	char buf[32];
	int scope = atoi(mmr_doctor_read("/proc/sys/kernel/yama/ptrace_scope",
					 buf, sizeof(buf)));

	/* 1 allows descendants, and cases are nothing else. */
	if (scope <= 1 || (scope == 2 && geteuid() == 0))
		mmr_doctor_add(d, true, "user stacks",
			       "of stalled threads by ptrace and libunwind");
	else
		mmr_doctor_add(d, false, "user stacks",
			       "ptrace_scope is %d: no user stacks", scope);
}

/* In a process of its own: unshare cannot be taken back. */
static int try_unshare(int flags)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(flags) ? errno & 0xff : 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return EIO;
	return WEXITSTATUS(status);
}

static void check_namespaces(struct mmr_doctor *d)
{
	bool root = geteuid() == 0;
	int user = try_unshare(CLONE_NEWUSER);
	int both =
		try_unshare(root ? CLONE_NEWPID : CLONE_NEWPID | CLONE_NEWUSER);

	if (user)
		mmr_doctor_add(d, root, "user namespaces", "%s%s",
			       strerror(user),
			       root ? ": not needed by root" : "");
	else
		mmr_doctor_add(d, true, "user namespaces", "allowed");
	if (both)
		mmr_doctor_add(d, false, "PID namespaces",
			       "%s: a case's processes are held by "
			       "PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG "
			       "instead",
			       strerror(both));
	else
		mmr_doctor_add(d, true, "PID namespaces",
			       "all that a case starts ends with mmrace, also "
			       "after kill -9");
}

static void check_cgroup(struct mmr_doctor *d)
{
	const char *version = "none";
	int ok = 0;
	const char *text = mmr_cap_text(&ok);

	if (!access("/sys/fs/cgroup/cgroup.controllers", F_OK))
		version = "v2";
	else if (!access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK))
		version = "v1 and v2 (hybrid)";
	else if (!access("/sys/fs/cgroup/memory", F_OK))
		version = "v1";
	mmr_doctor_add(d, strcmp(version, "none") != 0, "cgroup", "%s",
		       version);
	mmr_doctor_add(d, ok != 0, "caps", "%s",
		       text && text[0] ? text : "none hold");
}

static void check_heartbeats(struct mmr_doctor *d)
{
	int n = mmr_heartbeat_cpus();

	mmr_doctor_add(d, n > 0, "heartbeats",
		       "on %d CPUs, %s; they tell a machine's pause from a "
		       "stall",
		       n,
		       mmr_heartbeat_fifo()
			       ? "with real-time priority"
			       : "without real-time priority (a busy CPU looks "
				 "like a short pause)");
}

void mmr_doctor_watch(struct mmr_doctor *d)
{
	char text[400] = "";
	int rc;

	check_perf(d);
	check_file(d, "kernel stacks", "/proc/self/stack",
		   "of stalled threads in /proc/PID/stack",
		   "a stall's place in the kernel is told by wchan only");
	check_file(d, "kernel log", "/dev/kmsg",
		   "warnings and oopses are seen in /dev/kmsg",
		   "only the taint word tells of kernel warnings");
	check_file(d, "pressure", "/proc/pressure/memory",
		   "PSI goes into the evidence", "no PSI in the evidence");
	check_ptrace(d);
	check_namespaces(d);
	rc = mmr_engine_start(NULL, text, sizeof(text));
	if (rc) {
		mmr_doctor_add(d, false, "engine", "%s",
			       text[0] ? text : strerror(-rc));
		return;
	}
	mmr_doctor_add(d, true, "engine", "starts, with its mmrace-child");
	check_cgroup(d);
	check_heartbeats(d);
	mmr_engine_stop();
}
