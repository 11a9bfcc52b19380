// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The calibration table.  Its file:
 *
 *   mmrace-calibration 1
 *   host KERNEL CPUS "CPU MODEL"
 *   OP SIZE BACKING COUNT RUNS MEDIAN_NS P90_NS
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "calib.h"
#include "op.h"

#define SIZES 40
#define SLOTS (MMR_OP_LIMIT * SIZES * MMR_BACKINGS)
#define MAGIC "mmrace-calibration 1"
#define WEIGHT 0.05 /* of a run, when there were many */
#define LONGEST_NS 100000000000.0

static const char *const backings[MMR_BACKINGS] = {
	"none", "private", "shared", "file", "copy", "huge",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mmr_calib_time *table; /* SLOTS of them, NULL: empty */
static bool *added;		     /* this process put something in */
static char file[512];
static bool dirty;

uint8_t mmr_calib_size(uint64_t n)
{
	if (n <= 1)
		return 0;
	n = 64 - (uint64_t)__builtin_clzll(n - 1);
	return (uint8_t)(n < SIZES ? n : SIZES - 1);
}

const char *mmr_backing_name(unsigned int backing)
{
	return backing < MMR_BACKINGS ? backings[backing] : NULL;
}

static size_t slot_of(struct mmr_calib_key k)
{
	return ((size_t)(k.op % MMR_OP_LIMIT) * SIZES + k.size % SIZES) *
		       MMR_BACKINGS +
	       k.backing % MMR_BACKINGS;
}

static struct mmr_calib_key key_of(size_t slot)
{
	return (struct mmr_calib_key){
		.op = (uint16_t)(slot / MMR_BACKINGS / SIZES),
		.size = (uint8_t)(slot / MMR_BACKINGS % SIZES),
		.backing = (uint8_t)(slot % MMR_BACKINGS),
	};
}

/* Pages of it are there once they are used. */
static bool have_table(void)
{
	if (!table)
		table = calloc(SLOTS, sizeof(*table));
	if (!added)
		added = calloc(SLOTS, sizeof(*added));
	return table && added;
}

/* What the durations hold for: another kernel or CPU has its own. */
static void host_line(char *buf, size_t n)
{
	char line[200], model[100] = "?";
	struct utsname u;
	FILE *f = fopen("/proc/cpuinfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "model name : %99[^\n]", model) == 1 ||
		    sscanf(line, "CPU part : %99[^\n]", model) == 1)
			break;
	if (f)
		fclose(f);
	uname(&u);
	snprintf(buf, n, "host %s %ld \"%s\"", u.release,
		 sysconf(_SC_NPROCESSORS_ONLN), model);
}

static int make_path(char *buf, size_t n)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct utsname u;
	int len;

	uname(&u);
	if (strchr(u.nodename, '/'))
		return -EINVAL;
	if (xdg && xdg[0] == '/')
		len = snprintf(buf, n, "%s/mmrace/calibration-%s", xdg,
			       u.nodename);
	else if (geteuid() == 0)
		len = snprintf(buf, n, "/var/cache/mmrace/calibration-%s",
			       u.nodename);
	else if (home && home[0] == '/')
		len = snprintf(buf, n, "%s/.cache/mmrace/calibration-%s", home,
			       u.nodename);
	else
		return -ENOENT;
	return len < (int)n ? 0 : -ENAMETOOLONG;
}

static bool parse_entry(const char *line, struct mmr_calib_key *key,
			struct mmr_calib_time *t)
{
	char op[32], backing[16];
	const struct mmr_op *o;
	unsigned int size, b = 0;

	if (sscanf(line,
		   "%31s %u %15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   op, &size, backing, &t->count, &t->runs, &t->median_ns,
		   &t->p90_ns) != 7)
		return false;
	o = mmr_op_by_name(op);
	while (b < MMR_BACKINGS && strcmp(backings[b], backing))
		b++;
	if (!o || b == MMR_BACKINGS || size >= SIZES || !t->count || !t->runs ||
	    !t->median_ns || t->median_ns > t->p90_ns ||
	    (double)t->p90_ns > LONGEST_NS)
		return false;
	*key = (struct mmr_calib_key){o->id, (uint8_t)size, (uint8_t)b};
	return true;
}

/* Entries of the file that are newer than ours; false: none holds here. */
static bool read_entries(FILE *f)
{
	char line[256], host[256];
	struct mmr_calib_time t;
	struct mmr_calib_key key;
	bool any = false;
	size_t slot;

	host_line(host, sizeof(host));
	if (!fgets(line, sizeof(line), f) || strcmp(line, MAGIC "\n") ||
	    !fgets(line, sizeof(line), f) ||
	    strncmp(line, host, strlen(host)) || line[strlen(host)] != '\n')
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (!parse_entry(line, &key, &t))
			continue;
		slot = slot_of(key);
		if (!added[slot] || t.runs > table[slot].runs) {
			table[slot] = t;
			added[slot] = false;
		}
		any = true;
	}
	return any;
}

static int load_locked(void)
{
	FILE *f;
	bool any;

	if (!have_table())
		return -ENOMEM;
	f = fopen(file, "re");
	if (!f)
		return -errno;
	any = read_entries(f);
	fclose(f);
	return any ? 0 : -ENOENT;
}

int mmr_calib_load(const char *path)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (path)
		snprintf(file, sizeof(file), "%s", path);
	else
		rc = make_path(file, sizeof(file));
	if (rc)
		file[0] = '\0';
	else
		rc = load_locked();
	pthread_mutex_unlock(&lock);
	return rc;
}

static int write_all(FILE *f)
{
	struct mmr_calib_key k;
	char host[256];
	size_t i;

	host_line(host, sizeof(host));
	fprintf(f, "%s\n%s\n", MAGIC, host);
	for (i = 0; i < SLOTS; i++) {
		k = key_of(i);
		if (table[i].runs && mmr_op_by_id(k.op))
			fprintf(f,
				"%s %u %s %" PRIu64 " %" PRIu64 " %" PRIu64
				" %" PRIu64 "\n",
				mmr_op_by_id(k.op)->name, k.size,
				backings[k.backing], table[i].count,
				table[i].runs, table[i].median_ns,
				table[i].p90_ns);
	}
	return fflush(f) || ferror(f) ? -EIO : 0;
}

/* The folders above the file, the last two of them. */
static void make_folders(void)
{
	char *slash = strrchr(file, '/'), *up;

	if (!slash)
		return;
	*slash = '\0';
	up = strrchr(file, '/');
	if (up && up > file) {
		*up = '\0';
		(void)mkdir(file, 0755);
		*up = '/';
	}
	(void)mkdir(file, 0755);
	*slash = '/';
}

/* Atomic: of two that write at once the later one wins. */
static int save_locked(void)
{
	char tmp[sizeof(file) + 16];
	int rc;
	FILE *f;

	snprintf(tmp, sizeof(tmp), "%s.%d", file, getpid());
	f = fopen(tmp, "we");
	if (!f && errno == ENOENT) {
		make_folders();
		f = fopen(tmp, "we");
	}
	if (!f)
		return -errno;
	(void)load_locked();
	rc = write_all(f);
	if (fclose(f) && !rc)
		rc = -errno;
	if (!rc && rename(tmp, file))
		rc = -errno;
	if (rc)
		unlink(tmp);
	return rc;
}

int mmr_calib_save(void)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (file[0] && dirty && table) {
		rc = save_locked();
		dirty = false;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void mmr_calib_path(char *buf, size_t n)
{
	pthread_mutex_lock(&lock);
	snprintf(buf, n, "%s", file);
	pthread_mutex_unlock(&lock);
}

void mmr_calib_reset(void)
{
	pthread_mutex_lock(&lock);
	free(table);
	free(added);
	table = NULL;
	added = NULL;
	file[0] = '\0';
	dirty = false;
	pthread_mutex_unlock(&lock);
}

bool mmr_calib_get(struct mmr_calib_key key, struct mmr_calib_time *t)
{
	bool known;

	pthread_mutex_lock(&lock);
	known = table && table[slot_of(key)].count;
	if (known)
		*t = table[slot_of(key)];
	pthread_mutex_unlock(&lock);
	if (!known)
		*t = (struct mmr_calib_time){0, 0, MMR_CALIB_PRIOR_NS,
					     MMR_CALIB_PRIOR_NS};
	return known;
}

void mmr_calib_assume(struct mmr_calib_key key)
{
	pthread_mutex_lock(&lock);
	if (have_table() && !table[slot_of(key)].count)
		table[slot_of(key)] = (struct mmr_calib_time){
			1, 0, MMR_CALIB_PRIOR_NS, MMR_CALIB_PRIOR_NS};
	pthread_mutex_unlock(&lock);
}

static uint64_t blend(uint64_t old, uint64_t ns, double weight)
{
	double v = log((double)ns);

	if (old && weight < 1)
		v = log((double)old) * (1 - weight) + v * weight;
	v = exp(v);
	return v < LONGEST_NS ? (uint64_t)(v + 0.5) : (uint64_t)LONGEST_NS;
}

void mmr_calib_add(struct mmr_calib_key key, uint64_t count, uint64_t median_ns,
		   uint64_t p90_ns)
{
	struct mmr_calib_time *t;
	double weight;

	if (!count)
		return;
	median_ns += !median_ns;
	if (p90_ns < median_ns)
		p90_ns = median_ns;
	pthread_mutex_lock(&lock);
	if (have_table()) {
		t = &table[slot_of(key)];
		weight = 1 / (double)(t->runs + 1);
		weight = weight > WEIGHT ? weight : WEIGHT;
		t->median_ns = blend(t->median_ns, median_ns, weight);
		t->p90_ns = blend(t->p90_ns, p90_ns, weight);
		if (t->p90_ns < t->median_ns)
			t->p90_ns = t->median_ns;
		t->count += count;
		t->runs++;
		added[slot_of(key)] = true;
		dirty = true;
	}
	pthread_mutex_unlock(&lock);
}

int mmr_calib_each(void (*fn)(void *arg, struct mmr_calib_key key,
			      const struct mmr_calib_time *t),
		   void *arg)
{
	struct mmr_calib_time t;
	int n = 0;
	size_t i;

	for (i = 0; i < SLOTS; i++) {
		/* fn may call back. */
		if (!mmr_calib_get(key_of(i), &t))
			continue;
		if (fn)
			fn(arg, key_of(i), &t);
		n++;
	}
	return n;
}
