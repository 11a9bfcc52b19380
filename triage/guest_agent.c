/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mmrace as PID 1 of a throw-away guest: mounts what is needed, starts the
 * engine once (its clock and scale factor are measured before the state is
 * saved), and then answers requests on the second serial port for ever.
 *
 * PID 1 itself only reaps; the agent is its child, so that what a case
 * orphans has somebody to collect it.
 */
#include "cap.h"
#include "guest.h"
#include "guest_wire.h"
#include "result_json.h"
#include "scale.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "../ops/clock.h"

static void mounts(void)
{
	static const struct {
		const char *dir, *type, *opt;
	} table[] = {
		{"/proc", "proc", NULL},
		{"/sys", "sysfs", NULL},
		{"/dev", "devtmpfs", NULL},
		{"/tmp", "tmpfs", NULL},
		{"/run", "tmpfs", NULL},
		{"/dev/shm", "tmpfs", NULL},
		{"/sys/fs/cgroup", "cgroup2", NULL},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		mkdir(table[i].dir, 0755);
		/* Not every kernel has every file system: go on without. */
		(void)!mount("none", table[i].dir, table[i].type, 0,
			     table[i].opt);
	}
}

/* The first second serial port that opens, raw. */
static int open_line(void)
{
	static const char *const names[] = {"/dev/ttyS1", "/dev/ttyS0",
					    "/dev/ttyAMA1"};
	struct utsname u;
	int skip = 0;

	/* arm64's console is ttyAMA0, its PCI port is ttyS0. */
	if (!uname(&u) && strcmp(u.machine, "x86_64"))
		skip = 1;
	for (size_t i = (size_t)skip; i < sizeof(names) / sizeof(names[0]);
	     i++) {
		struct termios t;
		int fd = open(names[i], O_RDWR | O_NOCTTY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (!tcgetattr(fd, &t)) {
			cfmakeraw(&t);
			cfsetspeed(&t, B115200);
			t.c_cflag |= CLOCAL | CREAD;
			if (!tcsetattr(fd, TCSANOW, &t))
				return fd;
		}
		close(fd);
	}
	return -1;
}

/*
 * While a request is at work a sign of life goes out every second, which is
 * noise to whoever reads a frame: how long a run takes says nothing of whether
 * the guest still runs user space.
 */
static struct {
	pthread_mutex_t lock; /* of what is written, too */
	bool busy;
	int fd;
} life = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *life_main(void *arg)
{
	const char sign = MMR_WIRE_ALIVE;

	(void)arg;
	for (;;) {
		sleep(1);
		pthread_mutex_lock(&life.lock);
		if (life.busy)
			(void)!write(life.fd, &sign, 1);
		pthread_mutex_unlock(&life.lock);
	}
	return NULL;
}

static void set_busy(bool busy)
{
	pthread_mutex_lock(&life.lock);
	life.busy = busy;
	pthread_mutex_unlock(&life.lock);
}

/* Something always goes out: the runner takes silence for a hang. */
static void reply(int fd, json_t *j)
{
	static const char none[] = "{\"error\":\"the guest has no memory for "
				   "its answer, or it is no text\"}";
	char *s = j ? json_dumps(j, JSON_COMPACT) : NULL;
	const char *out = s ? s : none;

	(void)!mmr_wire_write(fd, 0, 0, out, strlen(out));
	free(s);
	json_decref(j);
}

static json_t *failure(const char *text)
{
	return json_pack("{s:s}", "error", text);
}

static int64_t get(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

static json_t *do_run(const json_t *req)
{
	const char *text = json_string_value(json_object_get(req, "case"));
	struct mmr_run_opts o = {
		.seed = (uint64_t)get(req, "seed"),
		.first_round = (uint64_t)get(req, "first_round"),
		.rounds = (uint64_t)get(req, "rounds"),
		.budget_ns = get(req, "budget"),
		.limits =
			{
				.progress_ns = get(req, "limit_progress"),
				.syscall_ns = get(req, "limit_syscall"),
				.exit_ns = get(req, "limit_exit"),
				.storm_ns = get(req, "limit_storm"),
			},
		.allow_settings = true,
		.no_evidence = json_is_true(json_object_get(req, "brief")),
	};
	struct mmr_run_result res;
	struct mmr_diag diag;
	struct mmr_case *c;
	json_t *j;

	if (json_is_true(json_object_get(req, "emulated")))
		mmr_scale_emulated();
	if (!text || mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL))
		return failure("the case does not parse in the guest");
	if (mmr_run(c, &o, &res)) {
		mmr_case_free(c);
		return failure("the run failed in the guest");
	}
	j = mmr_result_to_json(&res);
	mmr_run_result_free(&res);
	mmr_case_free(c);
	return j;
}

/* Takes what is there; beyond cap it goes nowhere, or the program would stop
 * at a full pipe.  False: nothing there. */
static bool take_output(int fd, char *out, size_t cap, size_t *used)
{
	char rest[4096];
	bool full = *used == cap;
	ssize_t got = read(fd, full ? rest : out + *used,
			   full ? sizeof(rest) : cap - *used);

	if (got > 0 && !full)
		*used += (size_t)got;
	return got > 0;
}

/* Waits for the program, at most limit ns; its status as waitpid() has it. */
static int watch_program(pid_t pid, int64_t limit, int fd, char *out,
			 size_t cap, size_t *used)
{
	int64_t end = mmr_clock_monotonic() + limit;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (mmr_clock_monotonic() > end) {
			kill(-pid, SIGKILL);
			status = 124 << 8;
			break;
		}
		if (poll(&p, 1, 50) > 0 && !take_output(fd, out, cap, used))
			usleep(10000);
	}
	/* To the cap and no further: what it left behind may go on. */
	while (*used < cap && take_output(fd, out, cap, used))
		;
	return status;
}

static json_t *do_exec(const json_t *req)
{
	size_t used = 0, cap = 1 << 16;
	int fds[2], status;
	char *out;
	json_t *j;
	pid_t pid;

	out = calloc(1, cap + 1);
	if (!out || pipe2(fds, O_CLOEXEC)) {
		free(out);
		return failure("no memory");
	}
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		execl("/program", "program", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	status = pid < 0 ? 127 << 8
			 : watch_program(pid, get(req, "limit"), fds[0], out,
					 cap, &used);
	close(fds[0]);
	j = json_pack("{s:i,s:s%}", "exit",
		      WIFEXITED(status) ? WEXITSTATUS(status)
					: 128 + WTERMSIG(status),
		      "output", out, used);
	free(out);
	return j ? j : failure("the program's output is no text");
}

static _Noreturn void serve(int fd)
{
	for (;;) {
		json_t *req, *ans;
		const char *cmd;
		char *data;
		size_t n;

		if (mmr_wire_read(fd, 1, 0, &data, &n)) {
			usleep(100000);
			continue;
		}
		req = json_loadb(data, n, 0, NULL);
		free(data);
		cmd = json_string_value(json_object_get(req, "cmd"));
		set_busy(true);
		if (cmd && !strcmp(cmd, "run"))
			ans = do_run(req);
		else if (cmd && !strcmp(cmd, "exec"))
			ans = do_exec(req);
		else if (cmd && !strcmp(cmd, "ping"))
			ans = json_pack("{s:s}", "pong", "yes");
		else
			ans = failure("unknown request");
		json_decref(req);
		set_busy(false);
		reply(fd, ans);
	}
}

/*
 * The first and the last counter of a kind make the kernel rewrite its own code
 * (static keys), which QEMU's emulation of several CPUs does not always
 * survive: a CPU runs into the int3 of the rewriting after it is over, an oops
 * in the page fault path.  With one of each open all the time nothing is
 * rewritten.
 */
static void hold_counters(void)
{
	static const uint64_t kinds[] = {
		PERF_COUNT_SW_PAGE_FAULTS,     PERF_COUNT_SW_PAGE_FAULTS_MIN,
		PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_CONTEXT_SWITCHES,
		PERF_COUNT_SW_CPU_MIGRATIONS,
	};
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr)};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		attr.config = kinds[i];
		/* Without perf there is nothing to hold. */
		(void)!syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8UL);
	}
}

static _Noreturn void agent(void)
{
	struct utsname u;
	char text[256] = "";
	int fd = open_line();
	pthread_t thread;

	if (fd < 0) {
		printf("mmrace-guest: no second serial port\n");
		pause();
	}
	life.fd = fd;
	if (pthread_create(&thread, NULL, life_main, NULL))
		printf("mmrace-guest: no thread\n");
	hold_counters();
	mmr_cap_share(85);
	if (mmr_engine_start("/mmrace-child", text, sizeof(text)))
		printf("mmrace-guest: %s\n", text);
	uname(&u);
	reply(fd, json_pack("{s:s,s:s,s:f}", "ready", u.release, "text", text,
			    "scale", mmr_scale_factor()));
	serve(fd);
}

_Noreturn void mmr_guest_agent(void)
{
	mounts();
	setvbuf(stdout, NULL, _IONBF, 0);
	if (fork() == 0)
		agent();
	for (;;) {
		/* Adopted orphans end here. */
		if (wait(NULL) < 0)
			usleep(100000);
	}
}
