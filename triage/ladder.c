// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Steps of the evidence ladder that do not look at the culprit's task: shared
 * memory (1), kernel log, vmstat, PSI, cgroup (4), maps (5), sysrq (6).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../ops/compile.h"
#include "helper.h"
#include "ladder.h"

#define HELPER_MS 1000
#define RINGS_MAX 64  /* threads whose ring is written out */
#define RING_SHORT 32 /* entries of one that is not the culprit's */
#define THREADS_MAX 128
#define LOG_MAX (64u << 10)

json_t *mmr_ladder_text(const char *s, size_t n)
{
	json_t *j = json_stringn(s, n);
	char *copy;
	size_t i;

	if (j)
		return j;
	copy = malloc(n + 1);
	if (!copy)
		return json_null();
	for (i = 0; i < n; i++)
		copy[i] = (s[i] >= ' ' && s[i] < 127) || s[i] == '\n' ||
					  s[i] == '\t'
				  ? s[i]
				  : '?';
	j = json_stringn(copy, n);
	free(copy);
	return j;
}

char *mmr_ladder_read(const char *path, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	char *buf, *fit;
	ssize_t n;
	int err;

	if (fd < 0)
		return NULL;
	buf = malloc(max + 1);
	if (!buf) {
		close(fd);
		errno = ENOMEM;
		return NULL;
	}
	while (used < max && (n = read(fd, buf + used, max - used)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = errno;
			close(fd);
			free(buf);
			errno = err;
			return NULL;
		}
		used += (size_t)n;
	}
	close(fd);
	buf[used] = '\0';
	fit = realloc(buf, used + 1);
	return fit ? fit : buf;
}

void mmr_ladder_missing(struct mmr_ladder *l, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(l->missing, mmr_ladder_text(text, strlen(text)));
}

const char *mmr_ladder_proc_name(const struct mmr_suspect *s, int proc_slot)
{
	const struct mmr_proc_slot *p;

	if (proc_slot < 0 || proc_slot >= MMR_PROC_SLOTS || !s->area)
		return "?";
	p = MMR_AREA_AT(s->area, s->area->procs_off, struct mmr_proc_slot) +
	    proc_slot;
	if (p->proc == MMR_PROC_IDLE)
		return "idle";
	return p->proc < s->c->nprocs ? s->c->procs[p->proc]->name : "?";
}

void mmr_ladder_names(const struct mmr_suspect *s, int slot,
		      const char **thread, const char **proc)
{
	const struct mmr_thread_slot *t;
	int i, index;

	*thread = "?";
	*proc = "?";
	if (slot < 0 || slot >= MMR_THREAD_SLOTS || !s->area)
		return;
	t = MMR_AREA_AT(s->area, s->area->threads_off, struct mmr_thread_slot) +
	    slot;
	*proc = mmr_ladder_proc_name(s, t->proc_slot);
	if (t->thread == MMR_THREAD_IDLE) {
		*thread = "idle";
		return;
	}
	index = t->thread; /* counted over all processes */
	for (i = 0; i < s->c->nprocs; i++) {
		if (index < s->c->procs[i]->nthreads) {
			*thread = s->c->procs[i]->threads[index]->name;
			return;
		}
		index -= s->c->procs[i]->nthreads;
	}
}

bool mmr_ladder_moved(const struct mmr_ladder *l)
{
	const struct mmr_suspect *s = l->s;
	struct mmr_thread_slot *t;
	struct mmr_proc_slot *p;

	if (l->post_mortem || !s->area)
		return false;
	if (s->verdict == MMR_LONG_EXIT) {
		if (s->proc_slot < 0)
			return false;
		p = MMR_AREA_AT(s->area, s->area->procs_off,
				struct mmr_proc_slot) +
		    s->proc_slot;
		return atomic_load(&p->seq) != l->seq0 ||
		       atomic_load(&p->state) != l->state0;
	}
	if (s->thread_slot < 0)
		return false;
	t = MMR_AREA_AT(s->area, s->area->threads_off, struct mmr_thread_slot) +
	    s->thread_slot;
	return atomic_load(&t->seq) != l->seq0 ||
	       atomic_load(&t->state) != l->state0 ||
	       atomic_load(&t->progress) != l->progress0;
}

static int by_seq(const void *a, const void *b)
{
	const struct mmr_ring_entry *x = a, *y = b;

	return (x->seq > y->seq) - (x->seq < y->seq);
}

static const char *op_name(const struct mmr_case *c, uint32_t stmt)
{
	const struct mmr_stmt *st = mmr_case_stmt(c, (int)stmt);

	if (!st)
		return "?";
	return st->kind == MMR_STMT_OP ? st->op->name : "loop";
}

static double ms_before(const struct mmr_ladder *l, uint64_t ticks)
{
	uint64_t flag = l->base.ticks +
			mmr_clock_from_ns(&l->s->area->clock,
					  (uint64_t)(l->base.flag_us * 1e3));

	if (ticks > flag)
		return (double)mmr_clock_to_ns(&l->s->area->clock,
					       ticks - flag) /
		       1e6;
	return -(double)mmr_clock_to_ns(&l->s->area->clock, flag - ticks) / 1e6;
}

static json_t *ring_json(struct mmr_ladder *l, const struct mmr_thread_slot *t,
			 int max)
{
	const struct mmr_clock *clk = &l->s->area->clock;
	struct mmr_ring_entry e[MMR_RING];
	json_t *ring = json_array();
	int i, n = 0;

	for (i = 0; i < MMR_RING; i++) {
		e[n] = t->ring[i];
		n += e[n].seq && e[n].end >= e[n].start;
	}
	qsort(e, (size_t)n, sizeof(e[0]), by_seq);
	for (i = n > max ? n - max : 0; i < n; i++)
		json_array_append_new(
			ring, json_pack("{s:I, s:i, s:s, s:I, s:f, s:f}", "seq",
					(json_int_t)e[i].seq, "stmt", e[i].stat,
					"op", op_name(l->s->c, e[i].stat),
					"ret", (json_int_t)e[i].ret, "at_ms",
					ms_before(l, e[i].start), "took_us",
					(double)mmr_clock_to_ns(
						clk, e[i].end - e[i].start) /
						1e3));
	return ring;
}

static json_t *thread_json(struct mmr_ladder *l, int i,
			   struct mmr_thread_slot *t, int ring)
{
	static const char *const states[] = {"free", "starting", "running",
					     "done"};
	uint32_t st = atomic_load(&t->state), stmt = atomic_load(&t->stmt);
	const char *name, *proc;
	char *text = NULL;
	json_t *j;

	mmr_ladder_names(l->s, i, &name, &proc);
	if (stmt && mmr_case_stmt(l->s->c, (int)stmt - 1))
		text = mmr_case_print_stmt(
			mmr_case_stmt(l->s->c, (int)stmt - 1));
	j = json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:s?, s:I, s:I}",
		      "slot", i, "thread", name, "process", proc, "state",
		      st < 4 ? states[st] : "?", "host_pid",
		      (int)atomic_load(&t->host_pid), "host_tid",
		      (int)atomic_load(&t->host_tid), "stmt", (int)stmt - 1,
		      "statement", text, "progress",
		      (json_int_t)atomic_load(&t->progress), "finished_ops",
		      (json_int_t)atomic_load(&t->ops));
	free(text);
	if (!j)
		return json_null();
	if (stmt)
		json_object_set_new(
			j, "entered_ms",
			json_real(ms_before(l, atomic_load(&t->start))));
	if (atomic_load(&t->address))
		json_object_set_new(
			j, "address",
			json_sprintf("0x%" PRIx64, atomic_load(&t->address)));
	if (atomic_load(&t->faults)) {
		json_object_set_new(
			j, "sigsegv",
			json_integer((json_int_t)atomic_load(&t->faults)));
		json_object_set_new(j, "sigsegv_address",
				    json_sprintf("0x%" PRIx64,
						 atomic_load(&t->fault_addr)));
	}
	json_object_set_new(j, "cpu", json_integer(atomic_load(&t->cpu)));
	if (atomic_load(&t->join_slot))
		json_object_set_new(
			j, "joins",
			json_integer((int)atomic_load(&t->join_slot) - 1));
	if (atomic_load(&t->reap_slot))
		json_object_set_new(
			j, "reaps",
			json_integer((int)atomic_load(&t->reap_slot) - 1));
	if (ring)
		json_object_set_new(j, "ring", ring_json(l, t, ring));
	return j;
}

static json_t *procs_json(struct mmr_ladder *l)
{
	static const char *const states[] = {"free", "running", "reapable",
					     "reaped"};
	struct mmr_area *a = l->s->area;
	struct mmr_proc_slot *p;
	json_t *list = json_array(), *j;
	uint32_t i, n = atomic_load(&a->proc_slots), st;

	for (i = 0; i < n && i < MMR_PROC_SLOTS; i++) {
		p = MMR_AREA_AT(a, a->procs_off, struct mmr_proc_slot) + i;
		st = atomic_load(&p->state);
		if (st == MMR_PROC_FREE)
			continue;
		if (json_array_size(list) >= THREADS_MAX)
			break;
		j = json_pack("{s:i, s:s, s:s, s:i, s:i, s:I}", "slot", (int)i,
			      "process", mmr_ladder_proc_name(l->s, (int)i),
			      "state", st < 4 ? states[st] : "?", "pid",
			      (int)atomic_load(&p->pid), "host_pid",
			      (int)atomic_load(&p->host_pid), "mapped",
			      (json_int_t)atomic_load(&p->mapped));
		if (atomic_load(&p->exit_start))
			json_object_set_new(
				j, "exit_began_ms",
				json_real(ms_before(
					l, atomic_load(&p->exit_start))));
		json_array_append_new(list, j);
	}
	return list;
}

const char *mmr_ladder_memory(struct mmr_ladder *l)
{
	struct mmr_area *a = l->s->area;
	json_t *threads = json_array(), *j;
	struct mmr_thread_slot *t;
	uint32_t i, n;
	int rings = 0, ring, listed = 0;
	bool culprit;

	l->vmstat0 = mmr_ladder_read("/proc/vmstat", 32768);
	if (!a) {
		json_decref(threads);
		return "no area";
	}
	n = atomic_load(&a->thread_slots);
	for (i = 0; i < n && i < MMR_THREAD_SLOTS; i++) {
		t = MMR_AREA_AT(a, a->threads_off, struct mmr_thread_slot) + i;
		culprit = (int)i == l->s->thread_slot;
		if (!culprit && (listed >= THREADS_MAX ||
				 atomic_load(&t->state) == MMR_THREAD_FREE))
			continue;
		ring = culprit		     ? MMR_RING
		       : rings++ < RINGS_MAX ? RING_SHORT
					     : 0;
		json_array_append_new(threads, thread_json(l, (int)i, t, ring));
		listed++;
	}
	j = json_pack("{s:I, s:I, s:i, s:o, s:o}", "round",
		      (json_int_t)atomic_load(&a->round), "rounds_done",
		      (json_int_t)atomic_load(&a->rounds_done), "ctl",
		      (int)atomic_load(&a->ctl), "threads", threads,
		      "processes", procs_json(l));
	json_object_set_new(l->root, "area", j);
	return "";
}

/*
 * The kernel log from record `mark` on; mark 0: nothing was read yet when the
 * run began, so what is not older than the stall by more than 10 s.  One read
 * gives one record, "prio,sequence,us,flags;text".
 */
static char *klog_since(const struct mmr_suspect *s, int *err)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char rec[8192], *text, *out = NULL;
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
		fprintf(f, "[%5" PRIu64 ".%06" PRIu64 "] %s\n", us / 1000000,
			us % 1000000, text + 1);
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

const char *mmr_ladder_kernel(struct mmr_ladder *l)
{
	json_t *k = json_object(), *psi = json_object();
	char *log, *vmstat;
	int err;

	log = klog_since(l->s, &err);
	if (log)
		json_object_set_new(k, "log", log_tail(log));
	else
		mmr_ladder_missing(l, "kernel log: %s", strerror(err));
	free(log);
	vmstat = mmr_ladder_read("/proc/vmstat", 32768);
	if (vmstat && l->vmstat0)
		json_object_set_new(k, "vmstat_delta",
				    vmstat_delta(l->vmstat0, vmstat));
	free(vmstat);
	add_file(psi, "cpu", "/proc/pressure/cpu");
	add_file(psi, "memory", "/proc/pressure/memory");
	add_file(psi, "io", "/proc/pressure/io");
	if (!json_object_size(psi))
		mmr_ladder_missing(l, "pressure (PSI): not in this kernel");
	json_object_set_new(k, "pressure", psi);
	add_file(k, "loadavg", "/proc/loadavg");
	add_file(k, "meminfo", "/proc/meminfo");
	add_file(k, "buddyinfo", "/proc/buddyinfo");
	add_file(k, "tainted", "/proc/sys/kernel/tainted");
	if (l->pid && !l->post_mortem)
		json_object_set_new(k, "cgroup", cgroup_json(l->pid));
	json_object_set_new(l->root, "kernel", k);
	return "";
}

const char *mmr_ladder_maps(struct mmr_ladder *l)
{
	const char *args[] = {"maps", NULL, NULL};
	char pid[16], *out = NULL, *line, *save = NULL;
	json_t *mem = json_object(), *j;
	size_t len;
	int ret;

	snprintf(pid, sizeof(pid), "%d", l->pid);
	args[1] = pid;
	ret = mmr_helper_run(args, HELPER_MS, &out, &len);
	for (line = out ? strtok_r(out, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		j = json_loads(line, 0, NULL);
		if (j)
			json_object_update(mem, j);
		json_decref(j);
	}
	free(out);
	if (ret == -ETIME)
		json_object_set_new(
			mem, "stuck",
			json_string("the reader of maps did not come back: "
				    "the address-space lock is held"));
	json_object_set_new(l->root, "memory", mem);
	if (ret)
		mmr_ladder_missing(l, "maps: %s",
				   ret == -ETIME ? "did not come back in 1 s"
						 : strerror(-ret));
	return ret == -ETIME ? "the reader got stuck" : "";
}

const char *mmr_ladder_sysrq(struct mmr_ladder *l)
{
	const char *args[] = {"sysrq", NULL};
	char *out = NULL, *log;
	size_t len;
	int err;

	err = mmr_helper_run(args, HELPER_MS, &out, &len);
	free(out);
	if (err)
		mmr_ladder_missing(l, "sysrq: %s", strerror(-err));
	log = klog_since(l->s, &err);
	if (log)
		json_object_set_new(l->root, "sysrq_log", log_tail(log));
	free(log);
	return "";
}
