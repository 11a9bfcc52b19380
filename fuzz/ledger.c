// SPDX-License-Identifier: GPL-2.0-or-later
/* The ledger, written: see ledger.h for what lies where and why. */
#include "ledger_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ops/clock.h"
#include "../ops/rng.h"
#include "../triage/finding.h"

#define BATCH_NS 60000000000LL

struct mmr_ledger {
	int fd;	    /* ledger.jsonl, appended to */
	int now_fd; /* ledger.now, locked */
	char now_path[4200];
	struct mmr_ledger_now *now;
	uint64_t generation;
	struct mmr_ledger_batch batch; /* as it is, without ranges' memory */
	int64_t batch_ns;	       /* CLOCK_MONOTONIC, where it began */
	char session[33];
};

uint64_t mmr_ledger_samples(const struct mmr_ledger_counts *c)
{
	uint64_t n = 0;

	for (int v = 0; v < MMR_VERDICTS; v++)
		if (v == MMR_NOTHING || mmr_verdict_is_hit(v))
			n += c->verdicts[v];
	return n;
}

void mmr_ledger_sum(struct mmr_ledger_counts *to,
		    const struct mmr_ledger_counts *from)
{
	to->rounds += from->rounds;
	to->rounds_void += from->rounds_void;
	to->ops += from->ops;
	to->calls += from->calls;
	for (int v = 0; v < MMR_VERDICTS; v++)
		to->verdicts[v] += from->verdicts[v];
}

json_t *mmr_ledger_counts_json(const struct mmr_ledger_counts *c)
{
	json_t *verdicts = json_object();

	for (int v = 0; verdicts && v < MMR_VERDICTS; v++)
		if (c->verdicts[v])
			json_object_set_new(
				verdicts, mmr_verdict_name(v),
				json_integer((json_int_t)c->verdicts[v]));
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "rounds",
			 (json_int_t)c->rounds, "rounds_void",
			 (json_int_t)c->rounds_void, "operations",
			 (json_int_t)c->ops, "calls", (json_int_t)c->calls,
			 "verdicts", verdicts);
}

uint64_t mmr_ledger_slot_sum(const struct mmr_ledger_slot *s)
{
	size_t n = offsetof(struct mmr_ledger_batch, ranges) +
		   s->batch.nranges * sizeof(struct mmr_range);
	uint64_t h = mmr_rng_key(s->generation, n), word;

	for (size_t i = 0; i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(&word, (const char *)&s->batch + i, sizeof(word));
		h = mmr_rng_key(h, word);
	}
	return h;
}

const struct mmr_ledger_slot *
mmr_ledger_slot_valid(const struct mmr_ledger_now *now)
{
	const struct mmr_ledger_slot *best = NULL;

	if (memcmp(now->magic, MMR_LEDGER_MAGIC, sizeof(now->magic)) ||
	    now->size != sizeof(*now))
		return NULL;
	for (int i = 0; i < 2; i++) {
		const struct mmr_ledger_slot *s = &now->slots[i];

		if (!s->generation || s->batch.nranges > MMR_LEDGER_RANGES ||
		    s->sum != mmr_ledger_slot_sum(s))
			continue;
		if (!best || s->generation > best->generation)
			best = s;
	}
	return best && best->batch.session[0] && best->batch.nranges ? best
								     : NULL;
}

char *mmr_ledger_batch_line(const struct mmr_ledger_batch *b)
{
	json_t *j = mmr_ledger_counts_json(&b->counts), *line, *done;
	char *text;

	done = json_array();
	for (uint64_t i = 0; done && i < b->nranges; i++)
		json_array_append_new(
			done, json_pack("[I,I]", (json_int_t)b->ranges[i].from,
					(json_int_t)b->ranges[i].to));
	line = json_pack("{s:s, s:s, s:I, s:f, s:o, s:o}", "type", "batch",
			 "session", b->session, "batch", (json_int_t)b->number,
			 "seconds", (double)b->ns / 1e9, "done", done, "counts",
			 j);
	text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	json_decref(line);
	return text;
}

/* A line, then the disk.  Takes the text; NULL: there was no memory for it. */
static int append(struct mmr_ledger *l, char *text)
{
	int rc = text ? mmr_file_append_line(l->fd, text) : -ENOMEM;

	free(text);
	return !rc && fdatasync(l->fd) ? -errno : rc;
}

static int append_json(struct mmr_ledger *l, json_t *j)
{
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	return append(l, text);
}

/* The batch as it is goes into the older slot. */
static void publish(struct mmr_ledger *l)
{
	struct mmr_ledger_slot *s = &l->now->slots[++l->generation % 2];

	/* Not even half a copy may pass for the newer one. */
	s->generation = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy(&s->batch, &l->batch,
	       offsetof(struct mmr_ledger_batch, ranges) +
		       l->batch.nranges * sizeof(struct mmr_range));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	s->generation = l->generation;
	s->sum = mmr_ledger_slot_sum(s);
}

static void next_batch(struct mmr_ledger *l)
{
	uint64_t number = l->batch.number;

	memset(&l->batch, 0, sizeof(l->batch));
	memcpy(l->batch.session, l->session, sizeof(l->session));
	l->batch.number = number + 1;
	l->batch_ns = mmr_clock_monotonic();
	publish(l);
}

/* Appends the batch.  It stays in ledger.now until it is on disk: appended
 * twice after a kill in between, it has the same number. */
static int flush(struct mmr_ledger *l)
{
	int rc;

	if (!l->batch.nranges)
		return 0;
	l->batch.ns = mmr_clock_monotonic() - l->batch_ns;
	rc = append(l, mmr_ledger_batch_line(&l->batch));
	if (!rc)
		next_batch(l);
	return rc;
}

/* Takes the lock of the file that the path names also afterwards. */
static int lock_now(struct mmr_ledger *l)
{
	struct stat a, b;

	for (;;) {
		l->now_fd =
			open(l->now_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (l->now_fd < 0)
			return -errno;
		if (flock(l->now_fd, LOCK_EX | LOCK_NB))
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
		if (!fstat(l->now_fd, &a) && !stat(l->now_path, &b) &&
		    a.st_ino == b.st_ino && a.st_dev == b.st_dev)
			return 0;
		close(l->now_fd); /* removed meanwhile by the one before */
	}
}

static int map_now(struct mmr_ledger *l)
{
	/* Its blocks now: a full disk must not turn a store into SIGBUS. */
	int rc = posix_fallocate(l->now_fd, 0, sizeof(*l->now));

	if (rc)
		return -rc;
	l->now = mmap(NULL, sizeof(*l->now), PROT_READ | PROT_WRITE, MAP_SHARED,
		      l->now_fd, 0);
	if (l->now == MAP_FAILED) {
		l->now = NULL;
		return -errno;
	}
	return 0;
}

/* A line that a crash cut short is ended, so that the next one is whole. */
static int end_last_line(struct mmr_ledger *l)
{
	off_t end = lseek(l->fd, 0, SEEK_END);
	char c;

	if (end <= 0)
		return end < 0 ? -errno : 0;
	if (pread(l->fd, &c, 1, end - 1) != 1)
		return -EIO;
	return c == '\n' || write(l->fd, "\n", 1) == 1 ? 0 : -errno;
}

static int take_over(struct mmr_ledger *l)
{
	const struct mmr_ledger_slot *left = mmr_ledger_slot_valid(l->now);
	int rc = end_last_line(l);

	if (!rc && left)
		rc = append(l, mmr_ledger_batch_line(&left->batch));
	if (rc)
		return rc;
	memset(l->now, 0, sizeof(*l->now));
	l->now->size = sizeof(*l->now);
	memcpy(l->now->magic, MMR_LEDGER_MAGIC, sizeof(l->now->magic));
	return 0;
}

int mmr_ledger_open(const char *dir, struct mmr_ledger **out, char *text,
		    size_t n)
{
	struct mmr_ledger *l = calloc(1, sizeof(*l));
	char path[4200];
	int rc;

	if (!l)
		return -ENOMEM;
	l->fd = l->now_fd = -1;
	snprintf(path, sizeof(path), "%s/" MMR_LEDGER_FILE, dir);
	snprintf(l->now_path, sizeof(l->now_path), "%s/" MMR_LEDGER_NOW, dir);
	rc = lock_now(l);
	if (rc == -EBUSY)
		snprintf(text, n,
			 "%s: another soak writes there; give this one a "
			 "folder of its own with --out",
			 dir);
	else if (rc)
		snprintf(text, n, "%s: %s", l->now_path, strerror(-rc));
	if (rc)
		goto fail;
	rc = map_now(l);
	if (!rc) {
		l->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC,
			     0644);
		rc = l->fd < 0 ? -errno : take_over(l);
	}
	if (rc) {
		snprintf(text, n, "%s: %s", path, strerror(-rc));
		goto fail;
	}
	*out = l;
	return 0;
fail:
	if (l->now)
		munmap(l->now, sizeof(*l->now));
	if (l->fd >= 0)
		close(l->fd);
	if (l->now_fd >= 0)
		close(l->now_fd);
	free(l);
	return rc;
}

static int new_id(char id[33])
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return -EIO;
	for (size_t i = 0; i < sizeof(b); i++)
		snprintf(id + 2 * i, 3, "%02x", b[i]);
	return 0;
}

int mmr_ledger_begin(struct mmr_ledger *l, struct mmr_ledger_session *s)
{
	char seed[24];
	int rc = s->id[0] ? 0 : new_id(s->id);

	if (rc)
		return rc;
	if (!s->start[0])
		mmr_clock_date(s->start, sizeof(s->start));
	/* A seed has 64 bits, more than JSON's numbers hold. */
	snprintf(seed, sizeof(seed), "0x%" PRIx64, s->seed);
	rc = append_json(
		l,
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s, "
			  "s:i, s:s, s:i, s:i}",
			  "type", "session", "session", s->id, "start",
			  s->start, "tool", s->tool, "kernel", s->kernel,
			  "build", s->build, "arch", s->arch, "cpus", s->cpus,
			  "profile", s->profile, "gen", s->gen, "seed", seed,
			  "shard", s->shard, "shards", s->shards));
	if (rc)
		return rc;
	memcpy(l->session, s->id, sizeof(l->session));
	next_batch(l);
	return 0;
}

int mmr_ledger_add(struct mmr_ledger *l, uint64_t index,
		   const struct mmr_ledger_counts *c)
{
	struct mmr_ranges set = {l->batch.ranges, (int)l->batch.nranges,
				 MMR_LEDGER_RANGES};
	int rc = mmr_ranges_add(&set, index, index);

	if (rc) {
		rc = flush(l);
		if (rc)
			return rc;
		set.n = 0;
		rc = mmr_ranges_add(&set, index, index);
		if (rc)
			return rc;
	}
	l->batch.nranges = (uint64_t)set.n;
	mmr_ledger_sum(&l->batch.counts, c);
	l->batch.ns = mmr_clock_monotonic() - l->batch_ns;
	publish(l);
	return 0;
}

int mmr_ledger_finding(struct mmr_ledger *l, uint64_t index, uint64_t seed,
		       enum mmr_verdict verdict, const char *id)
{
	char hex[24];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, seed);
	return append_json(l,
			   json_pack("{s:s, s:s, s:I, s:s, s:s, s:s}", "type",
				     "finding", "session", l->session, "case",
				     (json_int_t)index, "seed", hex, "verdict",
				     mmr_verdict_name(verdict), "finding", id));
}

int mmr_ledger_lost(struct mmr_ledger *l, const char *session, uint64_t index,
		    uint64_t seed)
{
	char hex[24];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, seed);
	return append_json(l, json_pack("{s:s, s:s, s:I, s:s}", "type", "lost",
					"session", session, "case",
					(json_int_t)index, "seed", hex));
}

int mmr_ledger_tick(struct mmr_ledger *l)
{
	if (mmr_clock_monotonic() - l->batch_ns >= BATCH_NS)
		return flush(l);
	return msync(l->now, sizeof(*l->now), MS_ASYNC) ? -errno : 0;
}

int mmr_ledger_close(struct mmr_ledger *l, const char *state)
{
	int rc = flush(l), rc2;

	if (state) {
		rc2 = append_json(l, json_pack("{s:s, s:s, s:s}", "type", "end",
					       "session", l->session, "state",
					       state));
		rc = rc ? rc : rc2;
	}
	/* What could not be appended stays there for the next one. */
	if (!rc)
		unlink(l->now_path);
	munmap(l->now, sizeof(*l->now));
	close(l->fd);
	close(l->now_fd);
	free(l);
	return rc;
}
