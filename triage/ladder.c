// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Steps of the evidence ladder: shared memory (1), maps (5), and what all of
 * them share.
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
	       atomic_load(&t->tid) != l->tid0 ||
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

	mmr_ladder_before(l);
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
