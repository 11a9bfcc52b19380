/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands: one file a command (cmd_<name>.c), one line here.  main.c
 * dispatches by this list and prints it as `mmrace --help`.
 *
 * A command gets argv[0] = its own name, parses with mmr_opts_parse()
 * (opts.h), and returns an enum mmr_exit.
 */
#ifndef MMR_FUZZ_CMD_H
#define MMR_FUZZ_CMD_H

/* What the shell sees; the numbers are promised to scripts. */
enum mmr_exit {
	MMR_EXIT_NOTHING = 0, /* nothing found, did not reproduce, done */
	MMR_EXIT_FOUND = 1,   /* found, reproduced */
	MMR_EXIT_USAGE = 2,   /* usage or bad input; nothing was run */
	MMR_EXIT_FAILED = 3,  /* mmrace itself failed */
	MMR_EXIT_NEEDS = 4,   /* the case's needs are not met here */
};

/* X(name, one-line help), in the order of `mmrace --help`. */
#define MMR_COMMANDS(X)                                                        \
	X(soak, "run case after case until the time is over")                  \
	X(gen, "print the case that a seed means")                             \
	X(replay, "run one case again and again; its reproduction rate")       \
	X(min, "make a case that reproduces as small as it gets")              \
	X(export, "turn a case into one C file for somebody else")             \
	X(import, "turn a syzkaller program or a trace into a case")           \
	X(suite, "run cases as tests")                                         \
	X(show, "readable summary of a case or a finding")                     \
	X(report, "a soak's folder, or a finding, as one HTML page")           \
	X(ops, "every operation that a case can use")                          \
	X(status, "what a running or finished soak did")                       \
	X(merge, "join the ledgers and findings of several soaks")             \
	X(compare, "is one slower than the other, or failing more often?")     \
	X(doctor, "what this machine can and cannot do, and why")

#define MMR_COMMAND_DECLARE(name, help)                                        \
	int mmr_cmd_##name(int argc, char **argv);
MMR_COMMANDS(MMR_COMMAND_DECLARE)
#undef MMR_COMMAND_DECLARE

#endif
