/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The watchdog of an exported file.  Its limits are clock time; but when its
 * own clock jumps between two looks, the machine stood still, and that is
 * nobody's stall.
 */
#include "export_c.h"

#define PUT MMR_EXPORT_PUT
#define uses mmr_export_uses

static bool has_group(const struct mmr_export *x)
{
	return x->e.groups || x->nplain > 1;
}

static const char *the_rest(const struct mmr_export *x)
{
	if (x->nplain > 1)
		return "-plain[0]";
	return x->e.groups ? "-pid" : "pid";
}

static void put_clock(struct mmr_export *x)
{
	PUT(x, "\t\tusleep(500);\n"
	       "\t\tgap = now() - last;\n"
	       "\t\tlast += gap;\n");
}

#define COUNTED "(gap < MAX_GAP ? gap : MAX_GAP)"

/* --- a whole round --- */

/* The program ends when a round is wrong, and takes the round with it. */
static bool dies_with_us(const struct mmr_export *x)
{
	return x->to != MMR_EXPORT_LTP && !has_group(x);
}

static void put_expired(struct mmr_export *x, const char *why)
{
	if (x->counts)
		PUT(x, "\t\tif (moved != shared->moved)\n"
		       "\t\t\tleft = LIMIT * 1000000LL;\n"
		       "\t\tmoved = shared->moved;\n");
	PUT(x,
	    "\t\tleft -= gap < MAX_GAP ? gap : MAX_GAP;\n"
	    "\t\tif (left < 0)%s\n",
	    dies_with_us(x) ? "" : " {");
	if (!dies_with_us(x))
		PUT(x,
		    "\t\t\tkill(%s, SIGKILL); /* not waited for: it may "
		    "never go */\n",
		    the_rest(x));
	PUT(x, "\t\t\treturn %s;\n%s", why, dies_with_us(x) ? "" : "\t\t}\n");
}

static void put_one(struct mmr_export *x)
{
	PUT(x, "\twhile (!waitpid(pid, &status, WNOHANG)) {\n");
	put_clock(x);
	put_expired(x, "\"does not end\"");
	PUT(x,
	    "\t}\n\treturn WIFSIGNALED(status) ? \"crashes\" : NULL;\n}\n\n");
}

/* Until nobody is left: the last ones are killed when the round is over. */
static void put_all(struct mmr_export *x)
{
	bool many = x->nplain > 1;

	PUT(x, "\twhile ((gone = waitpid(-1, &status, WNOHANG)) >= 0) {\n");
	if (many)
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
	PUT(x, "\t\tif (gone)\n\t\t\tcontinue;\n");
	put_clock(x);
	put_expired(x, "running ? \"does not end\" : "
		       "\"leaves a process that does not go\"");
	PUT(x, "\t}\n\treturn crashed ? \"crashes\" : NULL;\n}\n\n");
}

static void put_whole(struct mmr_export *x)
{
	PUT(x,
	    "/* What is wrong with a round; NULL when it ends in time. */\n"
	    "static const char *watch(%s)\n{\n"
	    "\tlong long last = now(), left = LIMIT * 1000000LL, gap;\n",
	    x->nplain > 1 ? "const pid_t *plain" : "pid_t pid");
	if (x->counts)
		PUT(x, "\tunsigned long moved = 0;\n");
	if (!x->leaves) {
		PUT(x, "\tint status = 0;\n\n");
		put_one(x);
		return;
	}
	PUT(x,
	    "\tint running = %s, crashed = 0, status;\n"
	    "\tpid_t gone;\n\n",
	    x->nplain > 1 ? "PLAIN" : "1");
	put_all(x);
}

/* --- each thread --- */

/* What it looks at each time: who stays where it is, and whether anybody has
 * anything left to do. */
static void put_threads(struct mmr_export *x)
{
	bool rests = mmr_export_may_rest(x);

	if (uses(x, MMR_USED_FRESH))
		PUT(x, "\t\tif (shared->fresh_body) {\n"
		       "\t\t\tvoid *(*body)(void *) = shared->fresh_body;\n\n"
		       "\t\t\tshared->fresh_body = NULL;\n"
		       "\t\t\tshared->fresh_pid = start(body, plain[0]);\n"
		       "\t\t}\n");
	if (rests)
		PUT(x, "\t\trest += gap < MAX_GAP ? gap : MAX_GAP;\n");
	PUT(x,
	    "\t\tfor (struct thread *t = shared->thread; t < shared->thread + "
	    "%s; t++) {\n",
	    x->simple ? "THREADS" : "THREADS && t->pid");
	if (rests)
		PUT(x, "\t\t\tif (t->in || t->moved != t->last)\n"
		       "\t\t\t\trest = 0;\n");
	PUT(x, "\t\t\tt->still = t->in && t->moved == t->last ? "
	       "t->still + " COUNTED " : 0;\n"
	       "\t\t\tt->last = t->moved;\n");
	PUT(x, "\t\t\tif (t->still <= %s * 1000000LL)\n\t\t\t\tcontinue;\n",
	    x->has_within ? "(t->within ? t->within : LIMIT)" : "LIMIT");
	if (!x->simple)
		PUT(x, "\t\t\tif (gone(t->pid)) {\n"
		       "\t\t\t\tt->in = NULL;\n"
		       "\t\t\t\tcontinue;\n\t\t\t}\n");
	PUT(x, "\t\t\tsnprintf(why, sizeof(why), \"%%s does not return from "
	       "%%s\", t->who, t->in);\n");
	if (x->unmended)
		PUT(x, "\t\t\tif (t->faults)\n"
		       "\t\t\t\tsnprintf(why, sizeof(why), \"%%lu faults of "
		       "%%s came back unmended\", t->faults, t->who);\n");
	PUT(x,
	    "\t\t\tkill(%s, SIGKILL); /* not waited for: it may never go */\n"
	    "\t\t\treturn why;\n\t\t}\n",
	    x->simple ? the_rest(x) : "-plain[0]");
	if (rests)
		PUT(x,
		    "\t\tif (rest > LIMIT * 1000000LL)\n"
		    "\t\t\treturn end_round(%s); /* all wait for each other "
		    "*/\n",
		    x->simple ? "pid" : "plain[0]");
}

static void put_steps(struct mmr_export *x)
{
	bool leave = mmr_export_may_leave(x);

	PUT(x,
	    "/* What is wrong with a round, such as a thread that stays where "
	    "it is; or NULL. */\n"
	    "static const char *watch(%s, long long end)\n{\n"
	    "\tstatic char why[256];\n"
	    "\tlong long last = now(), gap;\n",
	    x->simple ? "pid_t pid" : "const pid_t *plain");
	if (mmr_export_may_rest(x))
		PUT(x, "\tlong long rest = 0;\n");
	PUT(x, x->simple ? "\tint status;\n\n"
			 : "\tint left = PLAIN, status;\n\n");
	if (x->simple) {
		PUT(x, "\twhile (!waitpid(pid, &status, WNOHANG)) {\n");
	} else {
		PUT(x, "\twhile (left) {\n"
		       "\t\tpid_t pid = waitpid(-1, &status, WNOHANG);\n\n"
		       "\t\tfor (int i = 0; pid > 0 && i < PLAIN; i++) {\n"
		       "\t\t\tif (pid != plain[i])\n\t\t\t\tcontinue;\n"
		       "\t\t\tleft--;\n"
		       "\t\t\tif (WIFSIGNALED(status)) {\n"
		       "\t\t\t\tkill(-plain[0], SIGKILL);\n"
		       "\t\t\t\treturn \"crashes\";\n\t\t\t}\n\t\t}\n"
		       "\t\tif (pid > 0)\n\t\t\tcontinue;\n");
	}
	put_clock(x);
	PUT(x, "\t\tshared->stop = last >= end;\n");
	put_threads(x);
	PUT(x, "\t}\n");
	if (x->simple)
		PUT(x, "\tif (WIFSIGNALED(status))\n\t\treturn \"crashes\";\n");
	if (leave)
		PUT(x, "\treturn end_round(%s);\n}\n\n",
		    x->simple ? "pid" : "plain[0]");
	else
		PUT(x, "\treturn NULL;\n}\n\n");
}

/* Where a round may leave processes behind. */
static void put_end_round(struct mmr_export *x)
{
	PUT(x, "/* Ends what the round has left. */\n"
	       "static const char *end_round(pid_t group)\n{\n"
	       "\tlong long last = now(), left = LIMIT * 1000000LL, gap;\n"
	       "\tpid_t pid;\n\n"
	       "\twhile (left > 0) {\n"
	       "\t\tkill(-group, SIGKILL);\n"
	       "\t\twhile ((pid = waitpid(-1, NULL, WNOHANG)) > 0)\n"
	       "\t\t\t;\n"
	       "\t\tif (pid < 0)\n\t\t\treturn NULL; /* nobody is left */\n");
	put_clock(x);
	PUT(x, "\t\tleft -= gap < MAX_GAP ? gap : MAX_GAP;\n\t}\n"
	       "\treturn \"leaves a process that does not go\";\n}\n\n");
}

void mmr_export_watch(struct mmr_export *x)
{
	if (x->whole) {
		put_whole(x);
		return;
	}
	if (mmr_export_may_leave(x))
		put_end_round(x);
	put_steps(x);
}
