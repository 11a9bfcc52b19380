// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * User stacks of another process: the last step of the evidence ladder, as a
 * debugger's attach may well end the stall.  Runs only in the disposable
 * helper: when that one ends or is killed, the kernel detaches for us.
 *
 * Unwinders stand behind a table, so that one that cannot be had on a machine
 * is another entry and not an #ifdef; `none` is always there.
 */
#include <errno.h>
#include <libunwind-ptrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "evidence.h"
#include "ladder.h"

#define STOP_DEADLINE_MS 400
#define DEPTH_MAX 48

struct unwinder {
	const char *name;
	/* Writes the frames of a stopped task to f.  0 or -errno. */
	int (*frames)(pid_t tid, const char *maps, FILE *f);
};

/* Base name of the file that holds ip, by the text of /proc/PID/maps. */
static void object_of(const char *maps, unsigned long ip, char *out, size_t n)
{
	unsigned long lo, hi;
	const char *line, *name, *end;

	snprintf(out, n, "?");
	for (line = maps; line && *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		if (sscanf(line, "%lx-%lx", &lo, &hi) != 2 || ip < lo ||
		    ip >= hi)
			continue;
		for (name = end;
		     name > line && name[-1] != ' ' && name[-1] != '/';)
			name--;
		if (name < end)
			snprintf(out, n, "%.*s", (int)(end - name), name);
		else
			snprintf(out, n, "anonymous");
		return;
	}
}

static int unwind_frames(pid_t tid, const char *maps, FILE *f)
{
	unw_addr_space_t as;
	unw_cursor_t cur;
	unw_word_t ip, off;
	char sym[128], obj[80], line[256];
	void *upt;
	int i, ret = -ENOMEM;

	as = unw_create_addr_space(&_UPT_accessors, 0);
	if (!as)
		return ret;
	upt = _UPT_create(tid);
	if (!upt)
		goto out_as;
	ret = -EIO;
	if (unw_init_remote(&cur, as, upt) < 0)
		goto out_upt;
	ret = 0;
	line[0] = '\0';
	for (i = 0; i < DEPTH_MAX; i++) {
		if (unw_get_reg(&cur, UNW_REG_IP, &ip) < 0 || !ip)
			break;
		object_of(maps, ip, obj, sizeof(obj));
		/* This one was interrupted: what was before it is where the
		 * handler returns to, and has no name of its own. */
		if (i && unw_is_signal_frame(&cur) > 0)
			fprintf(f, "#%d <signal handler called>\n", i - 1);
		else
			fputs(line, f);
		if (!unw_get_proc_name(&cur, sym, sizeof(sym), &off))
			snprintf(line, sizeof(line), "#%d %s+0x%lx (%s)\n", i,
				 sym, (unsigned long)off, obj);
		else
			snprintf(line, sizeof(line), "#%d 0x%lx (%s)\n", i,
				 (unsigned long)ip, obj);
		if (unw_step(&cur) <= 0)
			break;
	}
	fputs(line, f);
out_upt:
	_UPT_destroy(upt);
out_as:
	unw_destroy_addr_space(as);
	return ret;
}

static int none_frames(pid_t tid, const char *maps, FILE *f)
{
	(void)tid;
	(void)maps;
	(void)f;
	return -ENOTSUP;
}

static const struct unwinder unwinders[] = {
	{"libunwind", unwind_frames},
	{"none", none_frames},
};

/* MMRACE_UNWINDER names another entry than the first. */
static const struct unwinder *chosen(void)
{
	const char *want = getenv("MMRACE_UNWINDER");
	size_t i;

	for (i = 0; want && i < sizeof(unwinders) / sizeof(unwinders[0]); i++)
		if (!strcmp(unwinders[i].name, want))
			return &unwinders[i];
	return &unwinders[0];
}

/* Waits for the stop that PTRACE_INTERRUPT asked for. */
static int wait_stop(pid_t tid)
{
	const struct timespec nap = {0, 1000000};
	int i, status;
	pid_t got;

	for (i = 0; i < STOP_DEADLINE_MS; i++) {
		got = waitpid(tid, &status, __WALL | WNOHANG);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == tid)
			return WIFSTOPPED(status) ? 0 : -ESRCH;
		nanosleep(&nap, NULL);
	}
	return -ETIME; /* in D state: it does not stop */
}

int mmr_unwind_task(pid_t pid, pid_t tid, char *out, size_t n)
{
	const struct unwinder *u = chosen();
	char path[48];
	char *maps;
	FILE *f;
	int ret;

	if (n < 2)
		return -EINVAL;
	out[0] = '\0';
	if (u->frames == none_frames)
		return -ENOTSUP; /* and the task is left alone */
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL)) {
		ret = -errno;
		goto out_detach;
	}
	ret = wait_stop(tid);
	if (ret)
		goto out_detach;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = mmr_ladder_read(path, 1u << 20);
	f = fmemopen(out, n, "w");
	ret = f ? u->frames(tid, maps ? maps : "", f) : -ENOMEM;
	if (f)
		fclose(f);
	out[n - 1] = '\0';
	free(maps);
out_detach:
	/* Refused while it has not stopped; then it is let go when this
	 * process ends. */
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	return ret;
}
