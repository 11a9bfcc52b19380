// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The disposable helper's side: `mmrace __evidence KIND ...`.  Each answer is
 * one line of JSON, written at once, so that what was learnt before it got
 * stuck is not lost.
 *
 *   proc PID TID [PID:TID ...]  task files; TID three times over 60 ms, the
 *                               other threads of PID and the extra tasks once
 *   maps PID                    smaps_rollup, maps
 *   unwind PID TID [TID ...]    user stacks
 *   sysrq                       w and l
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "evidence.h"
#include "helper.h"
#include "ladder.h"

#define OTHERS_MAX 96
#define SAMPLES 3
#define SAMPLE_GAP_MS 30
#define MAPS_MAX (96u << 10)

static int put_line(json_t *j)
{
	char *s = json_dumps(j, JSON_COMPACT);
	size_t len, done = 0;
	ssize_t n;

	json_decref(j);
	if (!s)
		return -ENOMEM;
	len = strlen(s);
	s[len] = '\n'; /* in place of the NUL: one write a line */
	while (done < len + 1) {
		n = write(1, s + done, len + 1 - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	free(s);
	return done == len + 1 ? 0 : -EIO;
}

static int64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* One /proc file into j, its error into j's "errors". */
static void take(json_t *j, pid_t pid, pid_t tid, const char *name)
{
	json_t *errors;
	char path[64];
	char *text;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	text = mmr_ladder_read(path, 8192);
	if (text) {
		json_object_set_new(j, name,
				    mmr_ladder_text(text, strlen(text)));
		free(text);
		return;
	}
	errors = json_object_get(j, "errors");
	if (!errors) {
		errors = json_object();
		json_object_set_new(j, "errors", errors);
	}
	json_object_set_new(errors, name, json_string(strerror(errno)));
}

static int task_line(pid_t pid, pid_t tid, int sample)
{
	static const char *const files[] = {"stat",  "status",	"schedstat",
					    "stack", "syscall", "wchan"};
	json_t *j = json_object();
	size_t i;

	json_object_set_new(j, "pid", json_integer(pid));
	json_object_set_new(j, "tid", json_integer(tid));
	json_object_set_new(j, "sample", json_integer(sample));
	json_object_set_new(j, "us", json_integer(clock_us()));
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		take(j, pid, tid, files[i]);
	return put_line(j);
}

static void other_threads(pid_t pid, pid_t tid)
{
	const struct dirent *e;
	char path[32];
	pid_t other;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		return;
	while (n < OTHERS_MAX && (e = readdir(d))) {
		other = (pid_t)strtol(e->d_name, NULL, 10);
		if (other <= 0 || other == tid)
			continue;
		if (task_line(pid, other, 0))
			break;
		n++;
	}
	closedir(d);
}

static int do_proc(int argc, char **argv)
{
	const struct timespec gap = {0, SAMPLE_GAP_MS * 1000000L};
	pid_t pid, tid;
	char *end;
	int i;

	if (argc < 2)
		return 2;
	pid = (pid_t)strtol(argv[0], NULL, 10);
	tid = (pid_t)strtol(argv[1], NULL, 10);
	for (i = 0; i < SAMPLES; i++) {
		if (i)
			nanosleep(&gap, NULL);
		if (task_line(pid, tid, i))
			return 1;
	}
	if (argc > 2 && !strcmp(argv[2], "alone"))
		return 0;
	other_threads(pid, tid);
	for (i = 2; i < argc; i++) {
		pid = (pid_t)strtol(argv[i], &end, 10);
		if (*end != ':')
			return 2;
		tid = (pid_t)strtol(end + 1, NULL, 10);
		if (task_line(pid, tid, 0))
			return 1;
	}
	return 0;
}

static int do_maps(int argc, char **argv)
{
	static const char *const files[] = {"smaps_rollup", "maps"};
	char path[48];
	char *text;
	json_t *j;
	size_t i;

	if (argc < 1)
		return 2;
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%ld/%s",
			 strtol(argv[0], NULL, 10), files[i]);
		text = mmr_ladder_read(path, MAPS_MAX);
		j = json_object();
		json_object_set_new(
			j, files[i],
			text ? mmr_ladder_text(text, strlen(text))
			     : json_sprintf("(%s)", strerror(errno)));
		free(text);
		if (put_line(j))
			return 1;
	}
	return 0;
}

static int do_unwind(int argc, char **argv)
{
	char *text = malloc(16384);
	pid_t pid, tid;
	json_t *j;
	int i, ret;

	if (argc < 2 || !text) {
		free(text);
		return 2;
	}
	pid = (pid_t)strtol(argv[0], NULL, 10);
	for (i = 1; i < argc; i++) {
		tid = (pid_t)strtol(argv[i], NULL, 10);
		text[0] = '\0';
		ret = mmr_unwind_task(pid, tid, text, 16384);
		j = json_object();
		json_object_set_new(j, "tid", json_integer(tid));
		json_object_set_new(j, "stack",
				    mmr_ladder_text(text, strlen(text)));
		if (ret)
			json_object_set_new(j, "error",
					    json_string(strerror(-ret)));
		if (put_line(j))
			break;
	}
	free(text);
	return 0;
}

static int do_sysrq(void)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
	json_t *j = json_object();
	bool ok;

	ok = fd >= 0 && write(fd, "w", 1) == 1 && write(fd, "l", 1) == 1;
	json_object_set_new(j, ok ? "sysrq" : "error",
			    json_string(ok ? "w l" : strerror(errno)));
	if (fd >= 0)
		close(fd);
	put_line(j);
	return 0;
}

int mmr_evidence_helper(int argc, char **argv)
{
	/* It ends with the thread that wants its answer.  When that one has
	 * gone already, the pipe is closed and the first write ends it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 3 || strcmp(argv[1], "__evidence"))
		return 2;
	if (!strcmp(argv[2], "proc"))
		return do_proc(argc - 3, argv + 3);
	if (!strcmp(argv[2], "maps"))
		return do_maps(argc - 3, argv + 3);
	if (!strcmp(argv[2], "unwind"))
		return do_unwind(argc - 3, argv + 3);
	if (!strcmp(argv[2], "sysrq"))
		return do_sysrq();
	return 2;
}
