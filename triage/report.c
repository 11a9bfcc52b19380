// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * report.md: what a kernel developer wants to know of a finding without
 * having to ask, in the order in which it is read: what happens, how often,
 * where, with which kernel and machine, what was looked at, how to see it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ladder.h"
#include "report.h"
#include "version.h"

#define COLUMNS 74
#define STACK_LINES 100
#define LOG_LINES 80
#define REPORTS 8 /* of the kernel log, shown */

static const char *str(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

static double num(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

/* Text in lines of a mail. */
static void wrap(FILE *out, const char *text)
{
	size_t col = 0, n;

	while (*text) {
		n = strcspn(text, " \n");
		if (col && col + 1 + n > COLUMNS) {
			fputc('\n', out);
			col = 0;
		}
		fprintf(out, "%s%.*s", col ? " " : "", (int)n, text);
		col += n + (col ? 1 : 0);
		text += n;
		text += strspn(text, " \n");
	}
	fputc('\n', out);
}

static void heading(FILE *out, const char *text)
{
	fprintf(out, "\n## %s\n\n", text);
}

/* Text as an indented block, at most that many lines. */
static void block(FILE *out, const char *text, int lines)
{
	const char *end;

	for (; *text && lines > 0; text = *end ? end + 1 : end, lines--) {
		end = strchrnul(text, '\n');
		fprintf(out, "%s%.*s\n", end > text ? "    " : "",
			(int)(end - text), text);
	}
	if (*text)
		fprintf(out, "    ...\n");
}

static void one_line(FILE *out, const char *label, const char *path)
{
	char *text = mmr_ladder_read(path, 4096);

	if (!text)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (*text)
		fprintf(out, "    %-34s %s\n", label, text);
	free(text);
}

/* True for a line of a kernel's configuration that matters here. */
static bool wanted(const char *line)
{
	static const char *const begin[] = {
		"PREEMPT",
		"SMP=",
		"NR_CPUS=",
		"NUMA=",
		"NUMA_BALANCING=",
		"PER_VMA_LOCK=",
		"TRANSPARENT_HUGEPAGE",
		"HUGETLB",
		"USERFAULTFD=",
		"KSM=",
		"MEMCG=",
		"SWAP=",
		"ZSWAP=",
		"LRU_GEN",
		"COMPACTION=",
		"MIGRATION=",
		"CMA=",
		"DEBUG_VM",
		"KASAN",
		"KCSAN",
		"PROVE_LOCKING=",
		"LOCKDEP=",
		"RCU_NOCB_CPU=",
		"TREE_RCU=",
		"ARM64_4K_PAGES=",
		"ARM64_16K_PAGES=",
		"ARM64_64K_PAGES=",
		"MMU_GATHER_",
		"X86_5LEVEL=",
		"HZ=",
		"PARAVIRT=",
		"MEMORY_HOTPLUG=",
	};
	size_t i;

	if (strncmp(line, "CONFIG_", 7))
		return false;
	for (i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		if (!strncmp(line + 7, begin[i], strlen(begin[i])))
			return true;
	return false;
}

static FILE *open_config(int *piped)
{
	struct utsname u;
	char path[160];
	FILE *f;

	uname(&u);
	*piped = 0;
	snprintf(path, sizeof(path), "/boot/config-%s", u.release);
	f = fopen(path, "re");
	if (!f) {
		snprintf(path, sizeof(path), "/lib/modules/%s/config",
			 u.release);
		f = fopen(path, "re");
	}
	if (!f && !access("/proc/config.gz", R_OK)) {
		*piped = 1;
		f = popen("gzip -dc </proc/config.gz 2>/dev/null", "re");
	}
	return f;
}

static void config_lines(FILE *out)
{
	char line[512];
	int piped, any = 0;
	FILE *f = open_config(&piped);

	while (f && fgets(line, sizeof(line), f)) {
		if (!wanted(line))
			continue;
		fprintf(out, "    %s", line);
		any = 1;
	}
	if (!any)
		fprintf(out, "    (this kernel's configuration is not to be "
			     "had: neither in /boot nor in /proc/config.gz)\n");
	if (f && piped)
		pclose(f);
	else if (f)
		fclose(f);
}

void mmr_report_config(FILE *out)
{
	static const char *const files[][2] = {
		{"transparent_hugepage/enabled",
		 "/sys/kernel/mm/transparent_hugepage/enabled"},
		{"transparent_hugepage/defrag",
		 "/sys/kernel/mm/transparent_hugepage/defrag"},
		{"transparent_hugepage/shmem_enabled",
		 "/sys/kernel/mm/transparent_hugepage/shmem_enabled"},
		{"lru_gen/enabled", "/sys/kernel/mm/lru_gen/enabled"},
		{"ksm/run", "/sys/kernel/mm/ksm/run"},
		{"vm.nr_hugepages", "/proc/sys/vm/nr_hugepages"},
		{"vm.nr_overcommit_hugepages",
		 "/proc/sys/vm/nr_overcommit_hugepages"},
		{"vm.hugetlb_optimize_vmemmap",
		 "/proc/sys/vm/hugetlb_optimize_vmemmap"},
		{"vm.overcommit_memory", "/proc/sys/vm/overcommit_memory"},
		{"vm.swappiness", "/proc/sys/vm/swappiness"},
		{"kernel.numa_balancing", "/proc/sys/kernel/numa_balancing"},
		{"kernel.tainted", "/proc/sys/kernel/tainted"},
		{"clock source", "/sys/devices/system/clocksource/clocksource0/"
				 "current_clocksource"},
	};
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		one_line(out, files[i][0], files[i][1]);
	config_lines(out);
}

static void cpu_model(FILE *out)
{
	char line[256], *colon;
	FILE *f = fopen("/proc/cpuinfo", "re");
	int virt = 0, said = 0;

	while (f && fgets(line, sizeof(line), f)) {
		colon = strchr(line, ':');
		if (!colon)
			continue;
		if (!said && (!strncmp(line, "model name", 10) ||
			      !strncmp(line, "CPU part", 8))) {
			fprintf(out, "    CPU           %s", colon + 2);
			said = 1;
		}
		if (!strncmp(line, "flags", 5) && strstr(line, "hypervisor"))
			virt = 1;
	}
	if (f)
		fclose(f);
	if (virt)
		fprintf(out, "    virtual       yes (hypervisor flag)\n");
}

static void machine(FILE *out)
{
	char *mem = mmr_ladder_read("/proc/meminfo", 4096);
	struct utsname u;
	char path[64];
	int nodes = 0;

	uname(&u);
	fprintf(out, "    kernel        %s %s\n", u.release, u.version);
	fprintf(out, "    architecture  %s\n", u.machine);
	cpu_model(out);
	do {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d",
			 nodes);
	} while (!access(path, F_OK) && ++nodes < 1024);
	fprintf(out, "    CPUs online   %ld, NUMA nodes %d\n",
		sysconf(_SC_NPROCESSORS_ONLN), nodes ? nodes : 1);
	fprintf(out, "    page size     %ld\n", sysconf(_SC_PAGESIZE));
	if (mem) {
		mem[strcspn(mem, "\n")] = '\0';
		fprintf(out, "    %s\n", mem);
	}
	free(mem);
}

static void rate(FILE *out, const json_t *v)
{
	const json_t *r = json_object_get(v, "rate");
	double hits = num(r, "hits");

	heading(out, "How often");
	if (!json_is_object(r)) {
		fprintf(out, "Seen %.0f time(s); the rate was not measured.\n",
			num(v, "count"));
		return;
	}
	fprintf(out,
		"%.0f of %.0f runs (95 %% interval %.1f to %.1f %%), %.0f "
		"rounds, %.1f s.\n",
		hits, num(r, "runs"), num(r, "lo") * 100, num(r, "hi") * 100,
		num(r, "rounds"), num(r, "wall_s"));
	if (hits > 0)
		fprintf(out, "Expected time to see it: %.2f s.\n",
			num(r, "wall_s") / hits);
}

static void symptom(FILE *out, const struct mmr_report *r)
{
	const json_t *m = json_object_get(r->evidence, "measured");
	const json_t *p = json_object_get(r->evidence, "perf");
	const json_t *a = json_object_get(p, "addresses");

	heading(out, "Numbers");
	if (num(m, "wall_ms") > 0)
		fprintf(out,
			"    stalled for        %.1f ms (rule: %.0f ms)\n"
			"    of it on CPU       %.1f ms\n"
			"    asleep             %.1f ms\n"
			"    waiting for a CPU  %.1f ms\n",
			num(m, "wall_ms"), num(m, "limit_ms"), num(m, "cpu_ms"),
			num(m, "asleep_ms"), num(m, "run_delay_ms"));
	if (num(m, "page_faults_in_ms") > 0)
		fprintf(out,
			"    page faults        %.0f in %.1f ms\n"
			"    context switches   %.0f voluntary, %.0f forced, "
			"meanwhile\n",
			num(m, "page_faults"), num(m, "page_faults_in_ms"),
			num(m, "voluntary_switches"),
			num(m, "involuntary_switches"));
	if (p)
		fprintf(out,
			"    perf, %.0f ms       %.0f page faults (%.0f/s), "
			"%.0f context switches,\n"
			"                       %.0f migrations, %.1f ms on "
			"CPU\n",
			num(p, "window_ms"), num(p, "page_faults"),
			num(p, "faults_per_s"), num(p, "context_switches"),
			num(p, "migrations"), num(p, "task_clock_ms"));
	if (json_array_size(a))
		fprintf(out,
			"    faulting address   %s (%.0f of %.0f "
			"samples)\n",
			str(json_array_get(a, 0), "address"),
			num(json_array_get(a, 0), "samples"),
			num(p, "samples"));
	if (str(r->verdict, "class"))
		fprintf(out, "    kind               %s\n",
			str(r->verdict, "class"));
	fprintf(out, "    signature          %s\n",
		str(r->verdict, "signature"));
	fprintf(out,
		"    round of the hit   %.0f (%.0f done before the stop)\n",
		num(r->verdict, "hit_round"), num(r->verdict, "rounds"));
}

/* "some avg10=1.25" out of a file of pressures. */
static void pressure(FILE *f, const json_t *psi, const char *what)
{
	const char *text = str(psi, what),
		   *p = text ? strstr(text, "avg10=") : NULL;

	if (p)
		fprintf(f, " %s %.*s %%,", what, (int)strcspn(p + 6, " "),
			p + 6);
}

/* What the kernel counted while the stall was looked at: its softirqs (a
 * grace period that does not come shows in RCU's), events of the memory
 * management, and how much others had to wait for.  Gauges ("nr_") say nothing
 * of what was done. */
static void meanwhile(FILE *out, const json_t *e)
{
	const json_t *k = json_object_get(e, "kernel"), *v;
	const json_t *psi = json_object_get(k, "pressure");
	json_t *soft = json_object_get(k, "softirq_delta");
	json_t *vm = json_object_get(k, "vmstat_delta");
	char *text = NULL;
	const char *key;
	size_t len = 0;
	FILE *f;

	if (!json_object_size(soft) && !json_object_size(vm))
		return;
	f = open_memstream(&text, &len);
	if (!f)
		return;
	fprintf(f, "From step 1 to step 4, on the whole machine. Softirqs:");
	json_object_foreach (soft, key, v)
		if (json_integer_value(v))
			fprintf(f, " %s %lld,", key,
				(long long)json_integer_value(v));
	fprintf(f, " pressure over 10 s:");
	pressure(f, psi, "cpu");
	pressure(f, psi, "memory");
	pressure(f, psi, "io");
	fprintf(f, " vmstat:");
	json_object_foreach (vm, key, v)
		if (strncmp(key, "nr_", 3) && strncmp(key, "numa_hit", 8) &&
		    strncmp(key, "numa_local", 10))
			fprintf(f, " %s %+lld,", key,
				(long long)json_integer_value(v));
	if (!fclose(f) && len) {
		text[len - 1] = '.'; /* for the comma */
		heading(out, "What the kernel counted meanwhile");
		wrap(out, text);
	}
	free(text);
}

static void tried(FILE *out, const json_t *e)
{
	const json_t *steps = json_object_get(e, "steps");
	const json_t *missing = json_object_get(e, "missing"), *s;
	const char *ended = str(e, "ended_by"), *class = str(e, "class");
	bool step = false;
	size_t i;

	heading(out, "What was looked at, and what it changed");
	for (i = 0; i < json_array_size(steps); i++) {
		s = json_array_get(steps, i);
		fprintf(out,
			"    %.0f %-14s at %7.1f ms, took %6.1f ms%s%s%s\n",
			num(s, "step"), str(s, "name"), num(s, "at_ms"),
			num(s, "took_ms"),
			json_is_true(json_object_get(s, "moved"))
				? "  <- it moved again"
				: "",
			str(s, "note") && *str(s, "note") ? "  " : "",
			str(s, "note") ? str(s, "note") : "");
	}
	for (i = 0; ended && i < json_array_size(steps); i++)
		step |= !strcmp(ended, str(json_array_get(steps, i), "name"));
	if (ended && !strcmp(ended, "itself"))
		fprintf(out, "\nThe stall ended by itself before the first "
			     "step.\n");
	else if (ended && strcmp(ended, "none"))
		fprintf(out, "\nThe stall ended after %s%s.\n",
			step ? "step " : "--", ended);
	else if (json_array_size(steps) && class && strcmp(class, "none"))
		fprintf(out, "\nNone of this ended it.\n");
	if (json_array_size(missing)) {
		fprintf(out, "\nCould not be had:\n");
		for (i = 0; i < json_array_size(missing); i++)
			fprintf(out, "    %s\n",
				json_string_value(json_array_get(missing, i)));
	}
}

/* Each report of the log by itself; the whole log where there is none. */
static void kernel_log(FILE *out, const json_t *e)
{
	const json_t *k = json_object_get(e, "kernel"), *r;
	const json_t *reports = json_object_get(k, "reports");
	const char *log = str(e, "log");
	size_t i;

	if (!log)
		log = str(k, "log");
	if (!log || !*log)
		return;
	heading(out, "Kernel log since the case began");
	for (i = 0; i < json_array_size(reports) && i < REPORTS; i++) {
		r = json_array_get(reports, i);
		fprintf(out, "%s%s", i ? "\n" : "", str(r, "kind"));
		if (num(r, "cpu") >= 0)
			fprintf(out, ", CPU %.0f", num(r, "cpu"));
		if (num(r, "pid") >= 0)
			fprintf(out, ", task %s (%.0f)", str(r, "comm"),
				num(r, "pid"));
		fprintf(out, "%s%s:\n\n",
			json_is_true(json_object_get(r, "complete"))
				? ""
				: ", its end is missing",
			json_is_true(json_object_get(r, "mixed"))
				? ", lines of another report may be in it"
				: "");
		block(out, str(r, "text"), LOG_LINES);
	}
	if (json_array_size(reports) > REPORTS)
		fprintf(out, "\nand %zu more; kernel.log has all.\n",
			json_array_size(reports) - REPORTS);
	if (!json_array_size(reports))
		block(out, log, LOG_LINES);
}

int mmr_report_write(FILE *out, const struct mmr_report *r)
{
	const json_t *v = r->verdict;
	const char *op = str(json_object_get(r->evidence, "culprit"), "op");
	const char *guest = str(v, "guest");

	if (!guest)
		guest = str(r->evidence, "guest");
	fprintf(out, "Subject: [BUG] mm: %s%s%s, %s %s\n\n", str(v, "verdict"),
		op ? " in " : "", op ? op : "", str(v, "kernel"),
		str(v, "arch"));
	wrap(out, str(v, "text") ? str(v, "text") : "");
	if (str(v, "title"))
		fprintf(out, "\nThe case: %s.\n", str(v, "title"));
	rate(out, v);
	symptom(out, r);
	if (r->stacks && *r->stacks) {
		heading(out, "Stacks");
		block(out, r->stacks, STACK_LINES);
	}
	kernel_log(out, r->evidence);
	meanwhile(out, r->evidence);
	tried(out, r->evidence);
	if (r->timeline) {
		heading(out, "The last moments");
		fprintf(out, "```\n");
		mmr_timeline_text(r->timeline, out);
		fprintf(out, "```\n");
	}
	heading(out, "Kernel and machine");
	if (guest) {
		fprintf(out,
			"    kernel        %s\n    architecture  %s\n"
			"    %s\n",
			str(v, "kernel"), str(v, "arch"), guest);
	} else {
		machine(out);
		fprintf(out, "\n");
		mmr_report_config(out);
	}
	heading(out, "Reproducer");
	fprintf(out, "As a case for mmrace %s (`mmrace replay case.case`):\n\n",
		MMR_VERSION);
	if (r->case_text)
		block(out, r->case_text, 400);
	if (r->repro) {
		fprintf(out, "\nAs C (`gcc -O2 -pthread repro.c`), attached "
			     "as repro.c");
		if (strlen(r->repro) < 12000)
			fprintf(out, ":\n\n```c\n%s```\n", r->repro);
		else
			fprintf(out, ".\n");
	}
	return ferror(out) ? -EIO : 0;
}
