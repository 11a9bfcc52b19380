/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU as a child process: its command line, its monitor (QMP, JSON lines),
 * saving by migration to a file and restoring from it.
 */
#include "guest_qemu.h"
#include "guest_wire.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ops/clock.h"

#define MAX_ARGV 96

struct argv {
	char *v[MAX_ARGV];
	int n;
};

__attribute__((format(printf, 2, 3))) static void add(struct argv *a,
						      const char *fmt, ...)
{
	va_list ap;

	if (a->n >= MAX_ARGV - 1)
		return;
	va_start(ap, fmt);
	if (vasprintf(&a->v[a->n], fmt, ap) >= 0)
		a->v[++a->n] = NULL;
	va_end(ap);
}

/* CPUs and memory, evenly over the nodes; a socket a node, or the kernel
 * warns that a cache spans nodes. */
static void add_machine(struct argv *a, const struct mmr_qemu_conf *c)
{
	int per = c->mem_mib / c->nodes, cper = c->cpus / c->nodes;

	add(a, "-smp");
	if (c->cpus % c->nodes == 0)
		add(a, "%d,sockets=%d,cores=%d,threads=1", c->cpus, c->nodes,
		    cper);
	else
		add(a, "%d", c->cpus);
	add(a, "-m");
	add(a, "%dM", per * c->nodes);
	for (int i = 0; i < c->nodes; i++) {
		int lo = i * cper, hi = lo + cper - 1;

		if (i == c->nodes - 1)
			hi = c->cpus - 1;
		add(a, "-object");
		add(a, "memory-backend-ram,id=m%d,size=%dM", i, per);
		add(a, "-numa");
		if (lo <= hi)
			add(a, "node,nodeid=%d,memdev=m%d,cpus=%d-%d", i, i, lo,
			    hi);
		else
			add(a, "node,nodeid=%d,memdev=m%d", i, i);
	}
}

static void build_argv(struct argv *a, const struct mmr_qemu_conf *c,
		       bool incoming, int serial)
{
	bool x86 = !strcmp(c->arch, "x86_64");

	add(a, "qemu-system-%s", c->arch);
	add(a, "-nodefaults");
	add(a, "-no-user-config");
	add(a, "-no-reboot");
	add(a, "-display");
	add(a, "none");
	add(a, "-M");
	add(a, x86 ? "q35" : "virt");
	add(a, "-cpu");
	add(a, c->kvm ? "host" : x86 ? "qemu64" : "cortex-a72");
	add(a, "-accel");
	add(a, c->kvm ? "kvm" : "tcg,thread=multi");
	add_machine(a, c);
	add(a, "-chardev");
	add(a, "file,id=con,path=%s/console.%d", c->dir, serial);
	add(a, "-serial");
	add(a, "chardev:con");
	add(a, "-chardev");
	add(a, "socket,id=line,path=%s/line,server=on,wait=off", c->dir);
	if (x86) {
		add(a, "-serial");
		add(a, "chardev:line");
	} else {
		add(a, "-device");
		add(a, "pci-serial,chardev=line");
	}
	add(a, "-qmp");
	add(a, "unix:%s/qmp,server=on,wait=off", c->dir);
	add(a, "-kernel");
	add(a, "%s", c->kernel);
	add(a, "-initrd");
	add(a, "%s", c->initrd);
	add(a, "-append");
	add(a, "console=%s panic=-1 loglevel=6 printk.time=1 %s",
	    x86 ? "ttyS0" : "ttyAMA0", c->args);
	if (incoming) {
		add(a, "-incoming");
		add(a, "exec:cat %s", c->state);
	}
}

static pid_t spawn(char *const argv[], const char *log)
{
	pid_t parent = getpid(), pid = fork();
	int fd;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	/* Ctrl-C is for the runner: it ends us when it has its results. */
	setpgid(0, 0);
	fd = open("/dev/null", O_RDONLY);
	dup2(fd, 0);
	fd = open(log, O_CREAT | O_WRONLY | O_APPEND, 0644);
	if (fd >= 0) {
		dup2(fd, 1);
		dup2(fd, 2);
	}
	execvp(argv[0], argv);
	dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/*
 * A child's parent-death signal comes when the *thread* that forked it ends.
 * One guest may be used by several threads in turn, and the first of them to
 * end must not take it along: all are forked by a thread that never ends.
 */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	char *const *argv; /* NULL: nothing asked for */
	const char *log;
	pid_t pid;
	int err;
	bool running, busy;
} forker = {.once = PTHREAD_ONCE_INIT,
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	    .asked = PTHREAD_COND_INITIALIZER,
	    .answered = PTHREAD_COND_INITIALIZER};

static void *forker_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&forker.lock);
	for (;;) {
		while (!forker.argv)
			pthread_cond_wait(&forker.asked, &forker.lock);
		forker.pid = spawn(forker.argv, forker.log);
		forker.err = errno;
		forker.argv = NULL;
		pthread_cond_broadcast(&forker.answered);
	}
	return NULL;
}

static void forker_start(void)
{
	pthread_t t;

	forker.running = !pthread_create(&t, NULL, forker_main, NULL);
	if (forker.running)
		pthread_detach(t);
}

/* spawn() by that thread: the pid, or -1 and errno. */
static pid_t spawn_for_good(char *const argv[], const char *log)
{
	pid_t pid;

	pthread_once(&forker.once, forker_start);
	if (!forker.running) {
		errno = EAGAIN;
		return -1;
	}
	pthread_mutex_lock(&forker.lock);
	while (forker.busy)
		pthread_cond_wait(&forker.answered, &forker.lock);
	forker.busy = true;
	forker.argv = argv;
	forker.log = log;
	pthread_cond_signal(&forker.asked);
	while (forker.argv)
		pthread_cond_wait(&forker.answered, &forker.lock);
	pid = forker.pid;
	errno = forker.err;
	forker.busy = false;
	pthread_cond_broadcast(&forker.answered);
	pthread_mutex_unlock(&forker.lock);
	return pid;
}

static int connect_unix(const char *dir, const char *name, struct mmr_qemu *q)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int64_t end = mmr_clock_monotonic() + 20000000000LL;
	int fd;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", dir, name);
	while (mmr_clock_monotonic() < end) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return -errno;
		if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
			return fd;
		close(fd);
		if (mmr_engine_interrupted())
			return -EINTR;
		if (!mmr_qemu_alive(q))
			return -EPIPE;
		usleep(5000);
	}
	return -ETIMEDOUT;
}

/* Reads one JSON line of the monitor within 20 s; NULL: gone or silent, or we
 * are interrupted. */
static json_t *qmp_line(int fd)
{
	char buf[16384];
	size_t n = 0;
	int64_t end = mmr_clock_monotonic() + 20000000000LL;

	while (n < sizeof(buf) - 1 && mmr_clock_monotonic() < end) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (mmr_engine_interrupted())
			return NULL;
		if (poll(&p, 1, 100) <= 0)
			continue;
		if (read(fd, buf + n, 1) != 1)
			return NULL;
		if (buf[n++] == '\n')
			return json_loadb(buf, n, 0, NULL);
	}
	return NULL;
}

/* Sends a command, skips events, returns the "return" value (new). */
static json_t *qmp(int fd, const char *cmd)
{
	json_t *j;

	if (send(fd, cmd, strlen(cmd), MSG_NOSIGNAL) != (ssize_t)strlen(cmd))
		return NULL;
	while ((j = qmp_line(fd))) {
		json_t *ret = json_object_get(j, "return");

		if (ret || json_object_get(j, "error")) {
			json_incref(ret);
			json_decref(j);
			return ret;
		}
		json_decref(j);
	}
	return NULL;
}

/* What is sent down the line before the state is loaded is lost. */
static bool wait_running(struct mmr_qemu *q)
{
	int64_t end = mmr_clock_monotonic() + 60000000000LL;

	while (mmr_clock_monotonic() < end) {
		json_t *j = qmp(q->qmp, "{\"execute\":\"query-status\"}\n");
		bool running = json_is_true(json_object_get(j, "running"));

		json_decref(j);
		if (running)
			return true;
		if (!j)
			return false;
		usleep(10000);
	}
	return false;
}

int mmr_qemu_start(const struct mmr_qemu_conf *c, bool incoming,
		   struct mmr_qemu *q, char *text, size_t n)
{
	char log[300], path[300];
	struct argv a = {.n = 0};
	json_t *j;

	q->serial++;
	q->line = q->qmp = -1;
	snprintf(path, sizeof(path), "%s/line", c->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/qmp", c->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/console.%d", c->dir, q->serial - 2);
	unlink(path);
	snprintf(log, sizeof(log), "%s/qemu.log", c->dir);
	build_argv(&a, c, incoming, q->serial);
	q->pid = spawn_for_good(a.v, log);
	for (int i = 0; i < a.n; i++)
		free(a.v[i]);
	if (q->pid < 0) {
		q->pid = 0;
		snprintf(text, n, "cannot start qemu: %s", strerror(errno));
		return -EAGAIN;
	}
	q->qmp = connect_unix(c->dir, "qmp", q);
	if (q->qmp >= 0)
		q->line = connect_unix(c->dir, "line", q);
	j = q->line >= 0 ? qmp_line(q->qmp) : NULL; /* its greeting */
	json_decref(j);
	if (j)
		j = qmp(q->qmp, "{\"execute\":\"qmp_capabilities\"}\n");
	json_decref(j);
	if (j && wait_running(q))
		return 0;
	mmr_qemu_end(q);
	if (mmr_engine_interrupted()) {
		snprintf(text, n, "interrupted");
		return -EINTR;
	}
	snprintf(text, n,
		 "qemu-system-%s did not start (is it installed?), see %s",
		 c->arch, log);
	return -EPIPE;
}

int mmr_qemu_save(const struct mmr_qemu_conf *c, struct mmr_qemu *q)
{
	int64_t end = mmr_clock_monotonic() + 120000000000LL;
	char cmd[512];
	json_t *j;

	j = qmp(q->qmp, "{\"execute\":\"migrate-set-parameters\",\"arguments\":"
			"{\"max-bandwidth\":100000000000}}\n");
	json_decref(j);
	snprintf(cmd, sizeof(cmd),
		 "{\"execute\":\"migrate\",\"arguments\":"
		 "{\"uri\":\"exec:cat > %s\"}}\n",
		 c->state);
	j = qmp(q->qmp, cmd);
	if (!j)
		return -EPIPE;
	json_decref(j);
	while (mmr_clock_monotonic() < end) {
		const char *s;
		bool done, failed;

		usleep(20000);
		j = qmp(q->qmp, "{\"execute\":\"query-migrate\"}\n");
		if (!j)
			return mmr_engine_interrupted() ? -EINTR : -EPIPE;
		s = json_string_value(json_object_get(j, "status"));
		done = s && !strcmp(s, "completed");
		failed = s && !strcmp(s, "failed");
		json_decref(j);
		if (done)
			return 0;
		if (failed)
			return -EIO;
	}
	return -ETIMEDOUT;
}

bool mmr_qemu_alive(struct mmr_qemu *q)
{
	if (!q->pid)
		return false;
	q->status = 0;
	if (waitpid(q->pid, &q->status, WNOHANG) == 0)
		return true;
	q->pid = 0;
	return false;
}

void mmr_qemu_end(struct mmr_qemu *q)
{
	if (q->pid) {
		kill(q->pid, SIGKILL);
		while (waitpid(q->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	q->pid = 0;
	if (q->line >= 0)
		close(q->line);
	if (q->qmp >= 0)
		close(q->qmp);
	q->line = q->qmp = -1;
}

char *mmr_qemu_console(const struct mmr_qemu_conf *c, const struct mmr_qemu *q,
		       long max)
{
	char path[300], *buf;
	FILE *f;
	long size;
	size_t n;

	snprintf(path, sizeof(path), "%s/console.%d", c->dir, q->serial);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	fseek(f, size > max ? size - max : 0, SEEK_SET);
	buf = malloc((size_t)max + 1);
	n = buf ? fread(buf, 1, (size_t)max, f) : 0;
	fclose(f);
	if (buf) {
		buf[n] = '\0';
		for (char *p = buf; p < buf + n; p++)
			if (*p == '\0' || *p == '\r')
				*p = ' ';
	}
	return buf;
}
