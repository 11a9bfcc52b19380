// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Steps of the evidence ladder that ask the kernel and not the task: its log,
 * vmstat, softirqs, RCU, PSI, cgroup (4), sysrq (6).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "helper.h"
#include "klog_split.h"
#include "ladder.h"

#define HELPER_MS 1000
#define LOG_MAX (64u << 10)

/*
 * The kernel log from record `mark` on; mark 0: nothing was read yet when the
 * run began, so what is not older than the stall by more than 10 s.  One read
 * gives one record, "prio,sequence,us,flags;text".
 */
static char *klog_since(const struct mmr_suspect *s, int *err)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char rec[8192], *text, *who, *out = NULL;
	unsigned int prio;
	uint64_t seq, us, from_us = 0;
	struct timespec now;
	size_t len = 0;
	ssize_t n;
	FILE *f;

	*err = 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	us = (uint64_t)now.tv_sec * 1000000;
	if (!s->klog_mark && us > (uint64_t)s->wall_ns / 1000 + 10000000)
		from_us = us - (uint64_t)s->wall_ns / 1000 - 10000000;
	if (fd < 0) {
		*err = errno;
		return NULL;
	}
	f = open_memstream(&out, &len);
	while (f) {
		n = read(fd, rec, sizeof(rec) - 1);
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue; /* overwritten meanwhile: read on */
		if (n <= 0)
			break;
		rec[n] = '\0';
		text = strchr(rec, ';');
		if (!text ||
		    sscanf(rec, "%u,%" SCNu64 ",%" SCNu64, &prio, &seq, &us) !=
			    3 ||
		    seq < s->klog_mark || us < from_us)
			continue;
		text[1 + strcspn(text + 1, "\n")] = '\0';
		*text = '\0';
		who = strstr(rec, ",caller=");
		fprintf(f, "[%5" PRIu64 ".%06" PRIu64 "]", us / 1000000,
			us % 1000000);
		if (who)
			fprintf(f, "[%6.*s]", (int)strcspn(who + 8, ","),
				who + 8);
		fprintf(f, " %s\n", text + 1);
	}
	if (f)
		fclose(f);
	close(fd);
	return out;
}

static json_t *log_tail(const char *log)
{
	size_t n = strlen(log);

	if (n > LOG_MAX) {
		log += n - LOG_MAX;
		n = LOG_MAX;
	}
	return mmr_ladder_text(log, n);
}

/* What in it tells of trouble, each report by itself. */
static json_t *reports(const char *log)
{
	struct mmr_klog_split split;
	json_t *j;

	j = mmr_klog_split(log, strlen(log), &split)
		    ? json_array()
		    : mmr_klog_reports_json(&split);
	mmr_klog_split_free(&split);
	return j;
}

static json_t *vmstat_delta(const char *before, const char *after)
{
	json_t *j = json_object();
	char key[64], find[72];
	const char *line, *old;
	long long now, then;

	for (line = after; *line; line = strchrnul(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%63s %lld", key, &now) != 2)
			continue;
		snprintf(find, sizeof(find), "%s ", key);
		old = line == after ? before : NULL;
		if (!old) {
			snprintf(find, sizeof(find), "\n%s ", key);
			old = strstr(before, find);
		}
		if (old && sscanf(old, " %*s %lld", &then) == 1 && now != then)
			json_object_set_new(j, key, json_integer(now - then));
	}
	return j;
}

static void add_file(json_t *to, const char *key, const char *path)
{
	char *text = mmr_ladder_read(path, 16384);

	if (text)
		json_object_set_new(to, key,
				    mmr_ladder_text(text, strlen(text)));
	free(text);
}

/* Memory numbers of the culprit's cgroup, v2 or v1. */
static json_t *cgroup_json(pid_t pid)
{
	static const char *const files[] = {
		"memory.current",	 "memory.max",
		"memory.events",	 "memory.usage_in_bytes",
		"memory.limit_in_bytes", "memory.failcnt",
		"pids.current",		 "memory.pressure"};
	static const char *const roots[] = {"/sys/fs/cgroup",
					    "/sys/fs/cgroup/unified"};
	char path[64], file[512], *text, *line, *save = NULL, *dir;
	json_t *j = json_object();
	bool v2;
	size_t i, r;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	text = mmr_ladder_read(path, 4096);
	if (!text)
		return j;
	json_object_set_new(j, "path", mmr_ladder_text(text, strlen(text)));
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		v2 = !strncmp(line, "0::", 3);
		dir = v2 ? line + 3 : strstr(line, ":memory:");
		if (!dir)
			continue;
		dir += v2 ? 0 : strlen(":memory:");
		for (r = 0; r < 2; r++)
			for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
				snprintf(file, sizeof(file), "%s%s%s/%s",
					 v2 ? roots[r] : "/sys/fs/cgroup",
					 v2 ? "" : "/memory", dir, files[i]);
				add_file(j, files[i], file);
			}
	}
	free(text);
	return j;
}

/* {"RCU": 12, ...}: softirqs of all CPUs since step 1.  RCU ones that stand
 * still while a task waits for a grace period say where to look. */
static json_t *softirq_delta(const char *before, const char *after)
{
	const char *texts[] = {before, after}, *line, *p;
	json_t *j = json_object();
	char name[32];
	json_int_t sum;
	char *end;
	int t, n;

	for (t = 0; t < 2; t++)
		for (line = texts[t]; *line; line = strchrnul(line, '\n')) {
			line += *line == '\n';
			n = 0;
			if (sscanf(line, " %31[A-Z_]:%n", name, &n) != 1 || !n)
				continue;
			sum = json_integer_value(json_object_get(j, name));
			for (p = line + n; *p && *p != '\n'; p = end) {
				json_int_t v = strtoll(p, &end, 10);

				if (end == p)
					break;
				sum += t ? v : -v;
				end += strspn(end, " ");
			}
			json_object_set_new(j, name, json_integer(sum));
		}
	return j;
}

static json_t *psi_json(void)
{
	json_t *psi = json_object();

	add_file(psi, "cpu", "/proc/pressure/cpu");
	add_file(psi, "memory", "/proc/pressure/memory");
	add_file(psi, "io", "/proc/pressure/io");
	return psi;
}

void mmr_ladder_before(struct mmr_ladder *l)
{
	l->vmstat0 = mmr_ladder_read("/proc/vmstat", 32768);
	l->softirqs0 = mmr_ladder_read("/proc/softirqs", 65536);
	l->before = json_object();
	json_object_set_new(l->before, "pressure", psi_json());
	if (l->pid && !l->post_mortem)
		json_object_set_new(l->before, "cgroup", cgroup_json(l->pid));
}

/* What the kernel shows of RCU and of its lockup detectors. */
static json_t *rcu_json(void)
{
	static const char *const files[][2] = {
		{"rcu_expedited", "/sys/kernel/rcu_expedited"},
		{"rcu_normal", "/sys/kernel/rcu_normal"},
		{"cpu_stall_timeout",
		 "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout"},
		{"cpu_stall_suppress",
		 "/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress"},
		{"hung_task_timeout_secs",
		 "/proc/sys/kernel/hung_task_timeout_secs"},
		{"watchdog_thresh", "/proc/sys/kernel/watchdog_thresh"},
	};
	json_t *j = json_object();
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		add_file(j, files[i][0], files[i][1]);
	return j;
}

const char *mmr_ladder_kernel(struct mmr_ladder *l)
{
	json_t *k = json_object(), *psi;
	char *log, *vmstat, *softirqs;
	int err;

	log = klog_since(l->s, &err);
	if (log) {
		json_object_set_new(k, "log", log_tail(log));
		json_object_set_new(k, "reports", reports(log));
	} else {
		mmr_ladder_missing(l, "kernel log: %s", strerror(err));
	}
	free(l->log);
	l->log = log;
	vmstat = mmr_ladder_read("/proc/vmstat", 32768);
	if (vmstat && l->vmstat0)
		json_object_set_new(k, "vmstat_delta",
				    vmstat_delta(l->vmstat0, vmstat));
	free(vmstat);
	softirqs = mmr_ladder_read("/proc/softirqs", 65536);
	if (softirqs && l->softirqs0)
		json_object_set_new(k, "softirq_delta",
				    softirq_delta(l->softirqs0, softirqs));
	free(softirqs);
	json_object_set_new(k, "rcu", rcu_json());
	psi = psi_json();
	if (!json_object_size(psi))
		mmr_ladder_missing(l, "pressure (PSI): not in this kernel");
	json_object_set_new(k, "pressure", psi);
	add_file(k, "loadavg", "/proc/loadavg");
	add_file(k, "meminfo", "/proc/meminfo");
	add_file(k, "buddyinfo", "/proc/buddyinfo");
	add_file(k, "tainted", "/proc/sys/kernel/tainted");
	if (l->pid && !l->post_mortem)
		json_object_set_new(k, "cgroup", cgroup_json(l->pid));
	/* As it was at step 1: the totals in it make the difference. */
	json_object_set(k, "before", l->before);
	json_object_set_new(l->root, "kernel", k);
	return "";
}

const char *mmr_ladder_sysrq(struct mmr_ladder *l)
{
	const char *args[] = {"sysrq", NULL}, *refused;
	char *out = NULL, *log;
	json_t *answer;
	size_t len;
	int err;

	err = mmr_helper_run(args, HELPER_MS, &out, &len);
	answer = out ? json_loads(out, 0, NULL) : NULL;
	refused = json_string_value(json_object_get(answer, "error"));
	if (err || refused)
		mmr_ladder_missing(l, "sysrq: %s",
				   refused ? refused : strerror(-err));
	json_decref(answer);
	free(out);
	log = klog_since(l->s, &err);
	if (log)
		json_object_set_new(l->root, "sysrq_log", log_tail(log));
	free(log);
	return "";
}
