// SPDX-License-Identifier: GPL-2.0-or-later
/* Starts and ends what all runs share. */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../ops/calib.h"
#include "cap.h"
#include "core_dir.h"
#include "heartbeat.h"
#include "klog.h"
#include "monitor.h"
#include "run.h"
#include "sample.h"
#include "scale.h"
#include "settings.h"
#include "spawn.h"
#include "target.h"

static struct {
	_Atomic bool running;
	_Atomic bool interrupted;
	_Atomic int interrupt_fd;
	struct mmr_clock clock;
	char child[4096];
	int recovered; /* settings brought back, or why not */
} engine = {.interrupt_fd = -1};

static int find_child(const char *child, char *text, size_t n)
{
	char self[4000];
	ssize_t len;
	char *slash;

	if (child) {
		snprintf(engine.child, sizeof(engine.child), "%s", child);
	} else {
		/* Beside mmrace as built, in libexec as installed. */
		len = readlink("/proc/self/exe", self, sizeof(self) - 1);
		self[len > 0 ? len : 0] = 0;
		slash = strrchr(self, '/');
		if (slash)
			*slash = 0;
		snprintf(engine.child, sizeof(engine.child), "%s/mmrace-child",
			 self);
		if (access(engine.child, X_OK))
			snprintf(engine.child, sizeof(engine.child),
				 "%s/../libexec/mmrace/mmrace-child", self);
	}
	if (!access(engine.child, X_OK))
		return 0;
	snprintf(text, n,
		 "%s: %s; mmrace-child is built beside mmrace and installed "
		 "in libexec/mmrace (or give --child PATH)",
		 engine.child, strerror(errno));
	return -errno;
}

int mmr_engine_start(const char *child, char *text, size_t n)
{
	int err;

	if (atomic_load(&engine.running)) {
		snprintf(text, n, "the engine runs already");
		return -EBUSY;
	}
	err = find_child(child, text, n);
	if (err)
		return err;
	mmr_clock_init(&engine.clock);
	mmr_scale_factor();
	/* None yet: every operation is new here. */
	(void)mmr_calib_load(NULL);
	atomic_store(&engine.interrupted, false);
	atomic_store(&engine.interrupt_fd,
		     eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (atomic_load(&engine.interrupt_fd) < 0) {
		err = -errno;
		snprintf(text, n, "eventfd: %s", strerror(-err));
		return err;
	}
	engine.recovered = mmr_settings_recover();
	mmr_core_sweep();
	/* These three may be missing: mmr_engine_notes() says so. */
	mmr_klog_start();
	mmr_cap_start();
	mmr_heartbeat_start();
	err = mmr_spawn_start();
	if (err) {
		snprintf(text, n, "spawner thread: %s", strerror(-err));
		goto out_heartbeat;
	}
	err = mmr_monitor_start();
	if (err) {
		snprintf(text, n, "monitor thread: %s", strerror(-err));
		goto out_spawn;
	}
	atomic_store(&engine.running, true);
	return 0;

out_spawn:
	mmr_spawn_stop();
out_heartbeat:
	mmr_heartbeat_stop();
	mmr_cap_stop();
	mmr_klog_stop();
	close(atomic_exchange(&engine.interrupt_fd, -1));
	return err;
}

void mmr_engine_stop(void)
{
	struct timespec ms = {0, 1000000};
	int i, fd;

	if (!atomic_load(&engine.running))
		return;
	/* Runs of other threads, if any: they end soon. */
	mmr_engine_interrupt();
	for (i = 0; i < 5000 && mmr_target_count(); i++)
		nanosleep(&ms, NULL);
	mmr_monitor_stop();
	mmr_target_barrier();
	mmr_spawn_stop();
	mmr_heartbeat_stop();
	mmr_cap_stop();
	mmr_klog_stop();
	(void)mmr_calib_save();
	atomic_store(&engine.running, false);
	fd = atomic_exchange(&engine.interrupt_fd, -1);
	if (fd >= 0)
		close(fd);
}

/* Only what a signal handler may do. */
void mmr_engine_interrupt(void)
{
	uint64_t one = 1;
	int saved = errno, fd = atomic_load(&engine.interrupt_fd);

	atomic_store(&engine.interrupted, true);
	/* Should it fail, the flag is set all the same. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) != sizeof(one))
		atomic_store(&engine.interrupted, true);
	errno = saved;
}

bool mmr_engine_interrupted(void)
{
	return atomic_load(&engine.interrupted);
}

bool mmr_engine_running(void)
{
	return atomic_load(&engine.running);
}

int mmr_engine_interrupt_fd(void)
{
	return atomic_load(&engine.interrupt_fd);
}

const char *mmr_engine_child(void)
{
	return engine.child;
}

uint64_t mmr_engine_now_ns(void)
{
	return mmr_clock_to_ns(&engine.clock, mmr_clock_now(&engine.clock));
}

static int add(json_t *a, const char *sentence)
{
	return json_array_append_new(a, json_string(sentence)) ? -ENOMEM : 0;
}

static bool have_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.exclude_kernel = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8UL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int notes_of_watch(json_t *a)
{
	struct mmr_task_sample s;
	int err = 0;

	if (mmr_sample_task(getpid(), getpid(), &s))
		err |= add(a, "/proc cannot be read: stalls are told by wall "
			      "time alone");
	else if (!s.delay_known)
		err |= add(a, "the kernel has no schedstat: time that threads "
			      "wait for a CPU is known only by their state");
	if (!have_perf())
		err |= add(a, "perf events are not allowed: page faults are "
			      "counted by /proc, without sampled addresses");
	if (!mmr_klog_readable())
		err |= add(a, "the kernel log cannot be read: only the taint "
			      "word tells of kernel warnings");
	return err;
}

int mmr_engine_notes(json_t *a)
{
	char text[200];
	const char *cap;
	int err, ok = 0;

	err = notes_of_watch(a);
	if (!mmr_heartbeat_cpus())
		err |= add(a, "no heartbeat thread could be started: pauses "
			      "of the machine are not subtracted");
	else if (!mmr_heartbeat_fifo())
		err |= add(a, "heartbeats run without real-time priority: a "
			      "busy CPU looks like a short pause");
	if (mmr_heartbeat_cpus() == 1)
		err |= add(a, "there is one CPU only: races between threads "
			      "happen at preemptions alone");
	cap = mmr_cap_text(&ok);
	if (!ok && cap && *cap)
		err |= add(a, cap);
	if (mmr_scale_factor() > 1) {
		snprintf(text, sizeof(text),
			 "this machine is %.1f times slower than ordinary "
			 "ones: limits on CPU time are multiplied by that",
			 mmr_scale_factor());
		err |= add(a, text);
	}
	if (engine.recovered == -EBUSY)
		err |= add(a, "another mmrace holds kernel settings: cases "
			      "that change settings are skipped");
	else if (engine.recovered == -EACCES)
		err |= add(a, "an earlier mmrace left kernel settings changed, "
			      "which only root may bring back");
	return err ? -ENOMEM : 0;
}
