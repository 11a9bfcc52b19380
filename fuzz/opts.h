/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands share: options, help, loading a case, starting the
 * engine, and progress on standard error.
 *
 * A command describes itself in a `struct mmr_command`; parsing, --help and
 * the messages follow from it.  Typical use:
 *
 *	struct mmr_cmd_opts o;
 *	struct mmr_case *c;
 *	int rc = mmr_opts_parse(&command, argc, argv, &o, &own);
 *
 *	if (rc >= 0)
 *		return rc;
 *	rc = mmr_opts_case(&o, o.nargs ? o.args[0] : NULL, &c);
 *	if (rc)
 *		return rc;
 *	rc = mmr_opts_engine_start(&o);
 *	...
 *	mmr_opts_engine_stop();
 */
#ifndef MMR_FUZZ_OPTS_H
#define MMR_FUZZ_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "../triage/guest.h"
#include "../triage/run.h"
#include "cmd.h"
#include "gen.h"

/* Groups of common options that a command takes.  --json and --help always.
 * In brackets: the field of struct mmr_cmd_opts. */
enum mmr_opt_group {
	/* --allow-settings --on-finding CMD --hold --limit KEY=TIME
	 * --known FILE --sysrq --child PATH --quiet --guest KERNEL and what
	 * belongs to it [run, child, quiet, guest] */
	MMR_OPTS_RUN = 1 << 0,
	/* --seed N --profile NAME [seed, profile] */
	MMR_OPTS_SEED = 1 << 1,
	MMR_OPTS_RUNS = 1 << 2, /* --runs N [runs] */
	MMR_OPTS_TIME = 1 << 3, /* --time T [time_ns] */
	MMR_OPTS_OUT = 1 << 4,	/* --out DIR [out] */
	MMR_OPTS_FILE = 1 << 5, /* -o FILE, --output FILE [out] */
};

struct mmr_cmd_opts {
	struct mmr_run_opts run; /* seed: set by mmr_opts_case() */
	bool json, quiet;
	struct mmr_guest_opts guest; /* kernel NULL: run here */
	const char *child; /* path of mmrace-child, NULL: beside mmrace */
	const char *out;   /* --out DIR or -o FILE, NULL when not given */
	bool has_seed;
	uint64_t seed;
	const char *profile_name;	   /* NULL when not given */
	const struct mmr_profile *profile; /* never NULL after parsing */
	uint64_t runs;			   /* 0: not given */
	int64_t time_ns;		   /* 0: not given */
	char **args;			   /* what is no option, in order */
	int nargs;
};

/* An option of one command only. */
struct mmr_opt {
	const char *name; /* without the dashes; NULL ends the table */
	const char *arg;  /* its argument's name in help, NULL: takes none */
	const char *help; /* one line */
	/* Called with the command's own structure and the argument (NULL when
	 * it takes none).  0, or -EINVAL after mmr_opts_error(). */
	int (*set)(void *own, const char *value);
};

/* The set function of an option without argument that turns a field on:
 * MMR_OPT_FLAG(set_all, struct own, all); */
#define MMR_OPT_FLAG(fn, type, field)                                          \
	static int fn(void *own, const char *value)                            \
	{                                                                      \
		(void)value;                                                   \
		((type *)own)->field = true;                                   \
		return 0;                                                      \
	}                                                                      \
	_Static_assert(sizeof(((type *)0)->field) == sizeof(bool), "no flag")

struct mmr_command {
	const char *name;
	const char *synopsis; /* what follows the name: "CASE | --seed N" */
	const char *about;    /* a paragraph that teaches */
	const char *examples; /* lines, each a command and what it does */
	uint32_t groups;      /* enum mmr_opt_group */
	const struct mmr_opt *opts; /* NULL: no own ones */
	int min_args, max_args;	    /* arguments that are no options */
};

/*
 * Parses argv (argv[0] is the command's name) into o and, by the set
 * functions, own.  -1: go on.  Else the exit code to return at once: help was
 * printed to standard output, or a message to standard error.
 */
int mmr_opts_parse(const struct mmr_command *cmd, int argc, char **argv,
		   struct mmr_cmd_opts *o, void *own)
	__attribute__((warn_unused_result));

/* "mmrace NAME: message" on standard error.  Returns MMR_EXIT_USAGE. */
int mmr_opts_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Strict values: decimal or 0x, nothing behind; times as in a case, and a
 * bare number is seconds.  0 or -EINVAL, silent. */
int mmr_opts_u64(const char *s, uint64_t *out);
int mmr_opts_time(const char *s, int64_t *ns);
/* --jobs of min and replay: 0, or -EINVAL after mmr_opts_error(). */
int mmr_opts_jobs(const char *value, int *jobs);

/* The file of --known, which lives as long as the command (in place of an
 * earlier one in *out).  0, or -EINVAL after a message. */
int mmr_opts_known(const char *path, struct mmr_known **out);

/*
 * The case that path names ("-": standard input) or, when path is NULL, that
 * o->seed means under o->profile.  Sets o->run.seed, the key of its draws:
 * --seed when given, else the case's origin, else 0.  Errors go to standard
 * error as file:line:col: message.  0 and *out (mmr_case_free() it), else
 * the exit code.
 */
int mmr_opts_case(struct mmr_cmd_opts *o, const char *path,
		  struct mmr_case **out) __attribute__((warn_unused_result));

/*
 * Starts the engine and lets SIGINT, SIGTERM and SIGHUP end runs with their
 * results (the second one ends mmrace at once).  0, else the exit code after
 * a message.
 */
int mmr_opts_engine_start(struct mmr_cmd_opts *o)
	__attribute__((warn_unused_result));
void mmr_opts_engine_stop(void);

/* The exit code that a verdict means. */
enum mmr_exit mmr_opts_verdict_exit(enum mmr_verdict v);

/* Prints an object as one line on standard output and frees it. */
void mmr_opts_print_json(json_t *j);

/*
 * Progress, on standard error: one line, rewritten, on a terminal; else a
 * plain line now and then.  One thread at a time.
 */
struct mmr_progress {
	bool quiet, tty, shown;
	int64_t next_ns; /* CLOCK_MONOTONIC */
};

void mmr_progress_init(struct mmr_progress *p, bool quiet);
/* True when it is time for an update: 8 a second on a terminal, else one in
 * 10 s; lets a caller skip the making of its text. */
bool mmr_progress_due(struct mmr_progress *p);
/* Shows the line (no newline in it) now. */
void mmr_progress_show(struct mmr_progress *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Takes the progress line away. */
void mmr_progress_end(struct mmr_progress *p);

#endif
