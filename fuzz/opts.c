// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Option parsing and help of all commands.  The message of a bad option names
 * the option and what it wants; nothing is run then.
 */
#include "opts.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../triage/evidence.h"

#define MAX_JOBS 32
#define MAX_OPTS 40
#define SHORT_OUT 'o'
#define FIRST_OWN 1000

enum common_id {
	OPT_JSON = 256,
	OPT_HELP,
	OPT_QUIET,
	OPT_ALLOW_SETTINGS,
	OPT_ON_FINDING,
	OPT_HOLD,
	OPT_LIMIT,
	OPT_KNOWN,
	OPT_SYSRQ,
	OPT_CHILD,
	OPT_GUEST,
	OPT_GUEST_CPUS,
	OPT_GUEST_MEM,
	OPT_GUEST_NODES,
	OPT_GUEST_ARGS,
	OPT_GUEST_ARCH,
	OPT_SEED,
	OPT_PROFILE,
	OPT_RUNS,
	OPT_TIME,
	OPT_OUT_DIR,
	OPT_OUT_FILE,
};

static const struct common {
	enum common_id id;
	uint32_t group; /* 0: every command */
	const char *name, *arg, *help;
} commons[] = {
	{OPT_SEED, MMR_OPTS_SEED, "seed", "N",
	 "the seed, 64 bits, decimal or 0x"},
	{OPT_PROFILE, MMR_OPTS_SEED, "profile", "NAME",
	 "how seeds become cases (default mixed)"},
	{OPT_RUNS, MMR_OPTS_RUNS, "runs", "N", "at most N runs"},
	{OPT_TIME, MMR_OPTS_TIME, "time", "T",
	 "at most that long: 90s, 10m, a bare number is seconds"},
	{OPT_OUT_DIR, MMR_OPTS_OUT, "out", "DIR",
	 "folder for findings and state"},
	{OPT_OUT_FILE, MMR_OPTS_FILE, "output", "FILE",
	 "write there, not to standard output"},
	{OPT_LIMIT, MMR_OPTS_RUN, "limit", "KEY=TIME",
	 "fixed limit of progress, syscall, exit or storm"},
	{OPT_ALLOW_SETTINGS, MMR_OPTS_RUN, "allow-settings", NULL,
	 "cases may change kernel settings; restored afterwards"},
	{OPT_ON_FINDING, MMR_OPTS_RUN, "on-finding", "CMD",
	 "run CMD by the shell at the first finding"},
	{OPT_HOLD, MMR_OPTS_RUN, "hold", NULL,
	 "leave a stall alive, for drgn or crash, until Ctrl-C"},
	{OPT_KNOWN, MMR_OPTS_RUN, "known", "FILE",
	 "signatures to set aside, each with reason and expiry"},
	{OPT_SYSRQ, MMR_OPTS_RUN, "sysrq", NULL,
	 "evidence has sysrq w and l, too (into the kernel log)"},
	{OPT_CHILD, MMR_OPTS_RUN, "child", "PATH",
	 "mmrace-child to use (default: beside mmrace)"},
	{OPT_GUEST, MMR_OPTS_RUN, "guest", "KERNEL",
	 "run in a throw-away QEMU guest: a bzImage, or debian:6.1"},
	{OPT_GUEST_CPUS, MMR_OPTS_RUN, "guest-cpus", "N",
	 "its CPUs (default 4)"},
	{OPT_GUEST_MEM, MMR_OPTS_RUN, "guest-mem", "SIZE",
	 "its memory, such as 4G (default 2G)"},
	{OPT_GUEST_NODES, MMR_OPTS_RUN, "guest-nodes", "N",
	 "its NUMA nodes (default 2)"},
	{OPT_GUEST_ARGS, MMR_OPTS_RUN, "guest-args", "WORDS",
	 "more of its kernel command line"},
	{OPT_GUEST_ARCH, MMR_OPTS_RUN, "guest-arch", "ARCH",
	 "x86_64 or aarch64, for debian:VERSION"},
	{OPT_QUIET, MMR_OPTS_RUN, "quiet", NULL,
	 "no progress on standard error"},
	{OPT_JSON, 0, "json", NULL, "one JSON object on standard output"},
	{OPT_HELP, 0, "help", NULL, "this text"},
};
#define NCOMMONS (sizeof(commons) / sizeof(commons[0]))

/* For messages; set by mmr_opts_parse(), read by the same thread. */
static const char *command_name = "mmrace";

int mmr_opts_error(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "mmrace %s: ", command_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return MMR_EXIT_USAGE;
}

int mmr_opts_u64(const char *s, uint64_t *out)
{
	unsigned long long v;
	char *end;

	/* strtoull would take blanks and signs. */
	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		if (!s[2] ||
		    strspn(s + 2, "0123456789abcdefABCDEF") != strlen(s + 2))
			return -EINVAL;
		v = strtoull(s + 2, &end, 16);
	} else {
		v = strtoull(s, &end, 10);
	}
	if (errno || *end)
		return -EINVAL;
	*out = v;
	return 0;
}

int mmr_opts_jobs(const char *value, int *jobs)
{
	uint64_t n;

	if (!mmr_opts_u64(value, &n) && n && n <= MAX_JOBS) {
		*jobs = (int)n;
		return 0;
	}
	mmr_opts_error("--jobs %s: wants 1 to %d", value, MAX_JOBS);
	return -EINVAL;
}

int mmr_opts_time(const char *s, int64_t *ns)
{
	uint64_t v;
	size_t n = strlen(s);
	int64_t unit = 0;

	if (!mmr_opts_u64(s, &v)) {
		unit = 1000000000LL;
	} else if (n > 1 && (s[n - 1] == 'm' || s[n - 1] == 'h')) {
		char num[24];

		/* Minutes and hours: not in cases, but handy for a soak. */
		if (n - 1 >= sizeof(num))
			return -EINVAL;
		memcpy(num, s, n - 1);
		num[n - 1] = '\0';
		if (mmr_opts_u64(num, &v))
			return -EINVAL;
		unit = s[n - 1] == 'm' ? 60000000000LL : 3600000000000LL;
	}
	if (unit) {
		if (v > (uint64_t)(INT64_MAX / unit))
			return -EINVAL;
		*ns = (int64_t)v * unit;
		return 0;
	}
	if (mmr_case_parse_time(s, ns) || *ns < 0)
		return -EINVAL;
	return 0;
}

static int set_limit(struct mmr_limits *l, const char *value)
{
	static const char *const keys[] = {"progress", "syscall", "exit",
					   "storm"};
	int64_t *const fields[] = {&l->progress_ns, &l->syscall_ns, &l->exit_ns,
				   &l->storm_ns};
	const char *eq = strchr(value, '=');
	int64_t ns;

	if (eq)
		for (int i = 0; i < 4; i++) {
			if (strlen(keys[i]) != (size_t)(eq - value) ||
			    strncmp(keys[i], value, (size_t)(eq - value)))
				continue;
			if (mmr_opts_time(eq + 1, &ns) || ns <= 0)
				break;
			*fields[i] = ns;
			return 0;
		}
	mmr_opts_error("--limit %s: wants progress, syscall, exit or storm, "
		       "then =TIME, such as syscall=500ms",
		       value);
	return -EINVAL;
}

static int unknown_profile(const char *name)
{
	const char *p;

	mmr_opts_error("no profile is named %s; there are:", name);
	for (int i = 0; (p = mmr_profile_name(i, NULL)); i++)
		fprintf(stderr, "  %s\n", p);
	return -EINVAL;
}

static int set_guest(enum common_id id, const char *value,
		     struct mmr_guest_opts *g)
{
	enum mmr_unit unit;
	uint64_t n = 0;
	int64_t size;

	switch (id) {
	case OPT_GUEST:
		g->kernel = value;
		return 0;
	case OPT_GUEST_ARGS:
		g->args = value;
		return 0;
	case OPT_GUEST_ARCH:
		g->arch = value;
		if (!strcmp(value, "x86_64") || !strcmp(value, "aarch64"))
			return 0;
		mmr_opts_error("--guest-arch %s: wants x86_64 or aarch64",
			       value);
		return -EINVAL;
	case OPT_GUEST_MEM:
		if (!mmr_case_parse_size(value, &size, &unit) &&
		    unit == MMR_UNIT_BYTE && size >= 256 << 20 &&
		    size <= 1LL << 40) {
			g->mem_mib = (int)(size >> 20);
			return 0;
		}
		mmr_opts_error("--guest-mem %s: wants a size from 256M", value);
		return -EINVAL;
	default:
		if (mmr_opts_u64(value, &n) || n < 1 || n > 64) {
			mmr_opts_error("--guest-%s %s: wants 1 to 64",
				       id == OPT_GUEST_CPUS ? "cpus" : "nodes",
				       value);
			return -EINVAL;
		}
		if (id == OPT_GUEST_CPUS)
			g->cpus = (int)n;
		else
			g->nodes = (int)n;
		return 0;
	}
}

static int set_common(enum common_id id, const char *value,
		      struct mmr_cmd_opts *o)
{
	switch (id) {
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	case OPT_ALLOW_SETTINGS:
		o->run.allow_settings = true;
		return 0;
	case OPT_ON_FINDING:
		o->run.on_finding = value;
		return 0;
	case OPT_HOLD:
		o->run.hold = true;
		return 0;
	case OPT_LIMIT:
		return set_limit(&o->run.limits, value);
	case OPT_KNOWN:
		return mmr_opts_known(value, &o->run.known);
	case OPT_SYSRQ:
		mmr_evidence_sysrq(true);
		return 0;
	case OPT_CHILD:
		o->child = value;
		return 0;
	case OPT_GUEST:
	case OPT_GUEST_CPUS:
	case OPT_GUEST_MEM:
	case OPT_GUEST_NODES:
	case OPT_GUEST_ARGS:
	case OPT_GUEST_ARCH:
		return set_guest(id, value, &o->guest);
	case OPT_SEED:
		o->has_seed = true;
		if (!mmr_opts_u64(value, &o->seed))
			return 0;
		mmr_opts_error("--seed %s: wants 64 bits, decimal or 0x",
			       value);
		return -EINVAL;
	case OPT_PROFILE:
		o->profile_name = value;
		o->profile = mmr_profile_find(value);
		return o->profile ? 0 : unknown_profile(value);
	case OPT_RUNS:
		if (!mmr_opts_u64(value, &o->runs) && o->runs)
			return 0;
		mmr_opts_error("--runs %s: wants a number from 1", value);
		return -EINVAL;
	case OPT_TIME:
		if (!mmr_opts_time(value, &o->time_ns) && o->time_ns > 0)
			return 0;
		mmr_opts_error("--time %s: wants a time, such as 90s or 10m",
			       value);
		return -EINVAL;
	case OPT_OUT_DIR:
	case OPT_OUT_FILE:
		o->out = value;
		return 0;
	case OPT_HELP:
		break;
	}
	return -EINVAL;
}

static void help_line(const char *shrt, const char *name, const char *arg,
		      const char *help)
{
	char left[64];

	snprintf(left, sizeof(left), "%s--%s%s%s", shrt, name, arg ? " " : "",
		 arg ? arg : "");
	printf("  %-24s %s\n", left, help);
}

static void print_help(const struct mmr_command *cmd)
{
	const char *name, *help;

	printf("usage: mmrace %s %s\n\n%s\n", cmd->name, cmd->synopsis,
	       cmd->about);
	printf("\noptions:\n");
	for (const struct mmr_opt *p = cmd->opts; p && p->name; p++)
		help_line("", p->name, p->arg, p->help);
	for (size_t i = 0; i < NCOMMONS; i++) {
		if (commons[i].group && !(commons[i].group & cmd->groups))
			continue;
		help_line(commons[i].id == OPT_OUT_FILE ? "-o, " : "",
			  commons[i].name, commons[i].arg, commons[i].help);
	}
	if (cmd->groups & MMR_OPTS_SEED) {
		printf("\nprofiles:\n");
		for (int i = 0; (name = mmr_profile_name(i, &help)); i++)
			printf("  %-24s %s\n", name, help);
	}
	if (cmd->examples)
		printf("\nexamples:\n%s", cmd->examples);
	printf("\nexit: 0 nothing found, 1 found or reproduced, 2 bad usage or "
	       "input, 3 mmrace\nitself failed, 4 needs not met on this "
	       "machine\n");
}

/* Fills the table for getopt_long; common ids and FIRST_OWN + index. */
static void build_table(const struct mmr_command *cmd, struct option *t)
{
	int n = 0;

	for (size_t i = 0; i < NCOMMONS; i++) {
		if (commons[i].group && !(commons[i].group & cmd->groups))
			continue;
		t[n++] = (struct option){commons[i].name,
					 commons[i].arg ? required_argument
							: no_argument,
					 NULL, (int)commons[i].id};
	}
	for (int i = 0; cmd->opts && cmd->opts[i].name && n < MAX_OPTS; i++)
		t[n++] = (struct option){cmd->opts[i].name,
					 cmd->opts[i].arg ? required_argument
							  : no_argument,
					 NULL, FIRST_OWN + i};
	t[n] = (struct option){0};
}

static int bad_option(int c, char **argv)
{
	const char *word = optind > 0 ? argv[optind - 1] : "";

	if (c == ':')
		return mmr_opts_error("%s wants an argument (try --help)",
				      word);
	return mmr_opts_error("unknown option %s (try --help)", word);
}

/* getopt_long() takes any beginning of a name, so that --out would be the
 * --output of another command: names are whole here. */
static bool names_whole(int argc, char **argv, const struct option *table)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		size_t len = strcspn(argv[i], "=");
		const struct option *p = table;

		if (strncmp(argv[i], "--", 2))
			continue;
		while (p->name && (strlen(p->name) != len - 2 ||
				   strncmp(p->name, argv[i] + 2, len - 2)))
			p++;
		if (!p->name) {
			optind = i + 1;
			return false;
		}
		i += p->has_arg == required_argument && !argv[i][len];
	}
	return true;
}

int mmr_opts_parse(const struct mmr_command *cmd, int argc, char **argv,
		   struct mmr_cmd_opts *o, void *own)
{
	struct option table[MAX_OPTS + 1];
	const char *shorts = cmd->groups & MMR_OPTS_FILE ? ":ho:" : ":h";
	int c, rc;

	command_name = cmd->name;
	memset(o, 0, sizeof(*o));
	o->profile = mmr_profile_find("mixed");
	build_table(cmd, table);
	opterr = 0;
	if (!names_whole(argc, argv, table)) {
		optopt = 0;
		return bad_option('?', argv);
	}
	optind = 1;
	while ((c = getopt_long(argc, argv, shorts, table, NULL)) != -1) {
		if (c == '?' || c == ':')
			return bad_option(c, argv);
		if (c == 'h' || c == OPT_HELP) {
			print_help(cmd);
			return fflush(stdout) ? MMR_EXIT_FAILED
					      : MMR_EXIT_NOTHING;
		}
		if (c >= FIRST_OWN)
			rc = cmd->opts[c - FIRST_OWN].set(own, optarg);
		else
			rc = set_common(c == SHORT_OUT ? OPT_OUT_FILE
						       : (enum common_id)c,
					optarg, o);
		if (rc)
			return MMR_EXIT_USAGE;
	}
	o->args = argv + optind;
	o->nargs = argc - optind;
	if (o->nargs > cmd->max_args)
		return mmr_opts_error("%s is one argument too many; usage: "
				      "mmrace %s %s",
				      o->args[cmd->max_args], cmd->name,
				      cmd->synopsis);
	if (o->nargs < cmd->min_args)
		return mmr_opts_error("something is missing; usage: mmrace "
				      "%s %s",
				      cmd->name, cmd->synopsis);
	return -1;
}

static void print_warning(void *arg, const struct mmr_diag *d)
{
	fprintf(stderr, "%s:%d:%d: warning: %s\n", (const char *)arg, d->line,
		d->col, d->text);
}

int mmr_opts_case(struct mmr_cmd_opts *o, const char *path,
		  struct mmr_case **out)
{
	struct mmr_diag diag = {0};
	char name[4096];
	int rc;

	if (!path) {
		if (!o->has_seed)
			return mmr_opts_error("wants a case file or --seed N");
		*out = mmr_gen(o->seed, o->profile);
		if (!*out) {
			mmr_opts_error("out of memory");
			return MMR_EXIT_FAILED;
		}
		o->run.seed = o->seed;
		return 0;
	}
	snprintf(name, sizeof(name), "%s", strcmp(path, "-") ? path : "stdin");
	rc = mmr_case_load(path, out, &diag, print_warning, name);
	if (rc == -EINVAL && diag.text[0]) {
		fprintf(stderr, "%s:%d:%d: %s\n", name, diag.line, diag.col,
			diag.text);
		return MMR_EXIT_USAGE;
	}
	if (rc == -ENOMEM) {
		mmr_opts_error("%s: out of memory", name);
		return MMR_EXIT_FAILED;
	}
	if (rc)
		return mmr_opts_error("%s: %s", name, strerror(-rc));
	o->run.seed =
		o->has_seed
			? o->seed
			: ((*out)->origin.has_seed ? (*out)->origin.seed : 0);
	return 0;
}

static void on_signal(int sig)
{
	/* Results still count at the first one; the second one means it. */
	if (mmr_engine_interrupted())
		_exit(128 + sig);
	mmr_engine_interrupt();
}

/* The guests of this command; only one set at a time. */
static struct mmr_guest *guests;

static int guest_start(struct mmr_cmd_opts *o)
{
	struct mmr_guest_stats st;
	char text[500] = "";
	int rc;

	if (!o->quiet)
		fprintf(stderr, "booting the guest %s\n", o->guest.kernel);
	rc = mmr_guest_open(&o->guest, &guests, text, sizeof(text));
	if (rc == -EINTR) {
		mmr_opts_error("interrupted before the guest was up: no case "
			       "was run");
		return MMR_EXIT_FAILED;
	}
	if (rc) {
		mmr_opts_error("%s", text[0] ? text : strerror(-rc));
		return rc == -ENOENT || rc == -EINVAL ? MMR_EXIT_USAGE
						      : MMR_EXIT_FAILED;
	}
	o->run.guest = guests;
	mmr_guest_get_stats(guests, &st);
	if (!o->quiet)
		fprintf(stderr,
			"guest %s under %s: boot %.1f s, save %.1f s, state "
			"%.0f MB, scale factor %.1f\n",
			st.kernel, st.accel, (double)st.boot_ns / 1e9,
			(double)st.save_ns / 1e9, (double)st.state_bytes / 1e6,
			st.scale);
	if (!o->quiet && st.guests < o->guest.count)
		fprintf(stderr,
			"the memory that is free does for %d guest%s at a "
			"time, of %d\n",
			st.guests, st.guests > 1 ? "s" : "", o->guest.count);
	return 0;
}

int mmr_opts_engine_start(struct mmr_cmd_opts *o)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	char text[400] = "";
	int rc;

	rc = mmr_engine_start(o->child, text, sizeof(text));
	if (rc) {
		mmr_opts_error("%s", text[0] ? text : strerror(-rc));
		return MMR_EXIT_FAILED;
	}
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	if (!o->guest.kernel)
		return 0;
	rc = guest_start(o);
	if (rc)
		mmr_opts_engine_stop();
	return rc;
}

void mmr_opts_engine_stop(void)
{
	mmr_guest_close(guests);
	guests = NULL;
	mmr_engine_stop();
}

enum mmr_exit mmr_opts_verdict_exit(enum mmr_verdict v)
{
	if (v == MMR_TOOL_FAILED)
		return MMR_EXIT_FAILED;
	if (v == MMR_SKIPPED)
		return MMR_EXIT_NEEDS;
	return mmr_verdict_is_hit(v) ? MMR_EXIT_FOUND : MMR_EXIT_NOTHING;
}

void mmr_opts_print_json(json_t *j)
{
	json_dumpf(j, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}
