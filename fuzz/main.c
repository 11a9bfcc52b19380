// SPDX-License-Identifier: GPL-2.0-or-later
/* mmrace: finds the command and hands over. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../triage/evidence.h"
#include "../triage/guest.h"
#include "../triage/version.h"
#include "cmd.h"
#include "nearest.h"

static const struct command {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, help) {#name, help, mmr_cmd_##name},
	MMR_COMMANDS(COMMAND)
#undef COMMAND
		{0},
};

static const char *command_name(void *arg, int i)
{
	(void)arg;
	return commands[i].name;
}

static void print_usage(FILE *out)
{
	fputs("usage: mmrace COMMAND [options]\n\n"
	      "Explores races and stalls in Linux memory management from user "
	      "space.  It\nstresses the kernel by design: do not run it where "
	      "others depend on the machine.\n\n",
	      out);
	for (const struct command *c = commands; c->name; c++)
		fprintf(out, "  mmrace %-8s %s\n", c->name, c->help);
	fputs("\nmmrace COMMAND --help has options and examples.\n"
	      "exit: 0 nothing found, 1 found or reproduced, 2 bad usage or "
	      "input, 3 mmrace\nitself failed, 4 needs not met on this "
	      "machine\n",
	      out);
}

static int unknown(const char *word)
{
	const char *near = mmr_nearest(word, command_name, NULL);

	fprintf(stderr, "mmrace: no command is named %s", word);
	if (near)
		fprintf(stderr, "; did you mean %s?", near);
	fputs("\nmmrace --help lists the commands\n", stderr);
	return MMR_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	/* We are the init of a guest; words that the kernel does not know
	 * come as arguments. */
	if (getpid() == 1 && !strcmp(argv[0], "/init"))
		mmr_guest_agent();
	if (!word) {
		print_usage(stderr);
		return MMR_EXIT_USAGE;
	}
	/* mmrace starts itself so, to read what may be stuck. */
	if (!strcmp(word, "__evidence"))
		return mmr_evidence_helper(argc, argv);
	if (!strcmp(word, "--help") || !strcmp(word, "-h") ||
	    !strcmp(word, "help")) {
		print_usage(stdout);
		return MMR_EXIT_NOTHING;
	}
	if (!strcmp(word, "--version")) {
		printf("mmrace %s\n", MMR_VERSION);
		return MMR_EXIT_NOTHING;
	}
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(word, c->name))
			return c->run(argc - 1, argv + 1);
	return unknown(word);
}
