/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The watchdog of an exported file.  Its limits are in looks, a millisecond or
 * more apart, and not in clock time: when the machine stands still between two
 * looks, or leaves no CPU to anybody, that is one look and nobody's stall.
 */
#include "export_c.h"

#define PUT MMR_EXPORT_PUT
#define uses mmr_export_uses

static bool has_group(const struct mmr_export *x)
{
	return x->e.groups || mmr_export_has_array(x);
}

static const char *the_rest(const struct mmr_export *x)
{
	if (mmr_export_has_array(x))
		return "-plain[0]";
	return x->e.groups ? "-pid" : "pid";
}

/* --- a whole round --- */

bool mmr_export_has_watch(const struct mmr_export *x)
{
	return !x->whole || x->leaves;
}

/* The test ends when a round is wrong, and takes the round with it.  Of a
 * round that counts, the limit is taken back to 0 all the time. */
void mmr_export_wait(struct mmr_export *x)
{
	const char *open = x->to == MMR_EXPORT_KSELFTEST ? " {" : "";

	PUT(x,
	    "\t\tfor (%s; !waitpid(-1, &status, WNOHANG); usleep(1000))%s\n"
	    "\t\t\tif (%s++ == LIMIT)%s\n",
	    x->counts ? "" : "ms = 0", open,
	    x->counts ? "shared->idle_ms" : "ms", open);
	mmr_export_fail(x, 4, "does not end");
	PUT(x, "%s", *open ? "\t\t\t}\n\t\t}\n" : "");
	mmr_export_fail_if(x, "WIFSIGNALED(status)", "crashes");
}

/* Until nobody is left: the last ones are killed when the round is over. */
static void put_all(struct mmr_export *x)
{
	PUT(x, "\twhile ((gone = waitpid(-1, &status, WNOHANG)) >= 0) {\n");
	if (mmr_export_has_array(x))
		PUT(x, "\t\tfor (int i = 0; i < PLAIN; i++)\n"
		       "\t\t\tif (gone == plain[i]) {\n"
		       "\t\t\t\trunning--;\n"
		       "\t\t\t\tcrashed |= WIFSIGNALED(status);\n"
		       "\t\t\t}\n");
	else
		PUT(x, "\t\tif (gone == pid) {\n"
		       "\t\t\trunning = 0;\n"
		       "\t\t\tcrashed = WIFSIGNALED(status);\n\t\t}\n");
	if (has_group(x))
		PUT(x,
		    "\t\tif (!running)\n"
		    "\t\t\tkill(%s, SIGKILL); /* what the round has left */\n",
		    the_rest(x));
	PUT(x,
	    "\t\tif (gone)\n\t\t\tcontinue;\n"
	    "\t\tif (%s > LIMIT) { /* it may never go */\n"
	    "\t\t\tkill(%s, SIGKILL);\n"
	    "\t\t\treturn running ? \"does not end\"\n"
	    "\t\t\t\t       : \"leaves a process that does not go\";\n"
	    "\t\t}\n\t\tusleep(1000);\n\t}\n"
	    "\treturn crashed ? \"crashes\" : NULL;\n}\n\n",
	    x->counts ? "shared->idle_ms++" : "ms++", the_rest(x));
}

static void put_whole(struct mmr_export *x)
{
	PUT(x,
	    "/* What is wrong with a round; NULL when it ends in time. */\n"
	    "static const char *watch(%s)\n{\n"
	    "\tint running = %s, crashed = 0, status%s;\n"
	    "\tpid_t gone;\n\n",
	    mmr_export_has_array(x) ? "const pid_t *plain" : "pid_t pid",
	    mmr_export_has_array(x) ? "PLAIN" : "1",
	    x->counts ? "" : ", ms = 0");
	put_all(x);
}

/* --- each thread --- */

/* What it looks at each time: who stays where it is, and whether anybody has
 * anything left to do. */
static void put_threads(struct mmr_export *x)
{
	const char *group = mmr_export_has_array(x) ? "plain[0]" : "pid";
	const char *tab = x->unmended ? "\t\t\t\t" : "\t\t\t";
	bool rests = mmr_export_may_rest(x);

	if (uses(x, MMR_USED_FRESH))
		PUT(x,
		    "\t\tif (shared->fresh_body) {\n"
		    "\t\t\tvoid (*body)(void) = shared->fresh_body;\n\n"
		    "\t\t\tshared->fresh_body = NULL;\n"
		    "\t\t\tshared->fresh_pid = start(body, %s);\n"
		    "\t\t}\n",
		    group);
	if (rests)
		PUT(x, "\t\trest++;\n");
	PUT(x,
	    "\t\tfor (int i = 0; i < THREADS%s; i++) {\n"
	    "\t\t\tstruct thread *t = &shared->thread[i];\n\n",
	    x->simple ? "" : " && shared->thread[i].pid");
	if (rests)
		PUT(x, "\t\t\tif (t->in || t->moved != t->last)\n"
		       "\t\t\t\trest = 0;\n");
	PUT(x, "\t\t\tif (t->in && t->moved == t->last)\n"
	       "\t\t\t\tt->still++;\n"
	       "\t\t\telse\n"
	       "\t\t\t\tt->still = 0;\n"
	       "\t\t\tt->last = t->moved;\n");
	PUT(x, "\t\t\tif (t->still <= %s)\n\t\t\t\tcontinue;\n",
	    x->has_within ? "(t->within ? t->within : LIMIT)" : "LIMIT");
	if (!x->simple)
		PUT(x, "\t\t\tif (gone(t->pid)) {\n"
		       "\t\t\t\tt->in = NULL;\n"
		       "\t\t\t\tcontinue;\n\t\t\t}\n");
	if (x->unmended)
		PUT(x, "\t\t\tif (t->faults)\n"
		       "\t\t\t\tsnprintf(why, sizeof(why),\n"
		       "\t\t\t\t\t \"%%lu faults of %%s came back unmended\",\n"
		       "\t\t\t\t\t t->faults, t->who);\n\t\t\telse\n");
	PUT(x,
	    "%ssnprintf(why, sizeof(why),\n"
	    "%s\t \"%%s does not return from %%s\",\n"
	    "%s\t t->who, t->in);\n",
	    tab, tab, tab);
	PUT(x,
	    "\t\t\tkill(%s, SIGKILL); /* it may never go */\n"
	    "\t\t\treturn why;\n\t\t}\n",
	    the_rest(x));
	if (rests)
		PUT(x,
		    "\t\tif (rest > LIMIT) /* all wait for each other */\n"
		    "\t\t\treturn end_round(%s);\n",
		    group);
}

/* Until a round's processes have ended. */
static void put_steps_loop(struct mmr_export *x)
{
	if (mmr_export_has_array(x))
		PUT(x, "\twhile (left) {\n"
		       "\t\tpid_t pid = waitpid(-1, &status, WNOHANG);\n\n"
		       "\t\tfor (int i = 0; pid > 0 && i < PLAIN; i++) {\n"
		       "\t\t\tif (pid != plain[i])\n\t\t\t\tcontinue;\n"
		       "\t\t\tleft--;\n"
		       "\t\t\tif (WIFSIGNALED(status)) {\n"
		       "\t\t\t\tkill(-plain[0], SIGKILL);\n"
		       "\t\t\t\treturn \"crashes\";\n\t\t\t}\n\t\t}\n"
		       "\t\tif (pid > 0)\n\t\t\tcontinue;\n");
	else if (!x->simple)
		PUT(x, "\twhile ((dead = waitpid(-1, &status, WNOHANG)) != "
		       "pid) {\n"
		       "\t\tif (dead > 0)\n\t\t\tcontinue;\n");
	else
		PUT(x, "\twhile (!waitpid(pid, &status, WNOHANG)) {\n");
	PUT(x, "\t\tusleep(1000);\n");
	if (mmr_export_has_budget(x))
		PUT(x, "\t\tshared->stop = time(NULL) >= end;\n");
	else if (x->to == MMR_EXPORT_LTP)
		PUT(x, "\t\tshared->stop = !tst_remaining_runtime();\n");
	put_threads(x);
	PUT(x, "\t}\n");
}

static void put_steps(struct mmr_export *x)
{
	bool many = mmr_export_has_array(x), leaves = mmr_export_may_leave(x);

	PUT(x,
	    "/* What is wrong with a round, or NULL: a thread that stays where "
	    "it is. */\n"
	    "static const char *watch(%s%s)\n{\n"
	    "\tstatic char why[256];\n",
	    many ? "const pid_t *plain" : "pid_t pid",
	    mmr_export_has_budget(x) ? ", time_t end" : "");
	PUT(x, "\tint %s%sstatus;\n%s\n",
	    mmr_export_may_rest(x) ? "rest = 0, " : "",
	    many ? "left = PLAIN, " : "",
	    many || x->simple ? "" : "\tpid_t dead;\n");
	put_steps_loop(x);
	if (!many && x->e.groups)
		PUT(x, "\tif (WIFSIGNALED(status)) {\n"
		       "\t\tkill(-pid, SIGKILL);\n"
		       "\t\treturn \"crashes\";\n\t}\n");
	else if (!many)
		PUT(x, "\tif (WIFSIGNALED(status))\n\t\treturn \"crashes\";\n");
	if (leaves)
		PUT(x, "\treturn end_round(%s);\n}\n\n",
		    many ? "plain[0]" : "pid");
	else
		PUT(x, "\treturn NULL;\n}\n\n");
}

/* Where a round may leave processes behind. */
static void put_end_round(struct mmr_export *x)
{
	PUT(x, "/* Ends what the round has left. */\n"
	       "static const char *end_round(pid_t group)\n{\n"
	       "\tpid_t pid;\n\n"
	       "\tfor (int ms = 0; ms < LIMIT; ms++) {\n"
	       "\t\tkill(-group, SIGKILL);\n"
	       "\t\twhile ((pid = waitpid(-1, NULL, WNOHANG)) > 0)\n"
	       "\t\t\t;\n"
	       "\t\tif (pid < 0)\n\t\t\treturn NULL; /* nobody is left */\n"
	       "\t\tusleep(1000);\n\t}\n"
	       "\treturn \"leaves a process that does not go\";\n}\n\n");
}

void mmr_export_watch(struct mmr_export *x)
{
	if (!mmr_export_has_watch(x))
		return;
	if (x->whole) {
		put_whole(x);
		return;
	}
	if (mmr_export_may_leave(x))
		put_end_round(x);
	put_steps(x);
}
