// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The soak and its ledger: what is done, what is to be done, and what is
 * better not done again.
 *
 * Cases are numbered within their shard.  A case that was running when a soak
 * was ended is the first to be run again by --resume; one that ended two of
 * them is set aside, or a machine that resumes after each panic would never
 * do anything else.
 */
#include "soak_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../triage/version.h"
#include "opts.h"

#define AVOID_AFTER 2 /* times that a case ended a soak */

#define COPY(to, from)                                                         \
	snprintf(to, sizeof(to), "%.*s", (int)sizeof(to) - 1, from)

static void describe(const struct mmr_soak *s, struct mmr_ledger_session *l)
{
	struct utsname u;

	uname(&u);
	l->id[0] = l->start[0] = '\0';
	COPY(l->tool, MMR_VERSION);
	COPY(l->kernel, u.release);
	COPY(l->build, u.version);
	COPY(l->arch, u.machine);
	/* In a guest it is the guest's, as far as it is known by now. */
	if (s->opts->run.guest) {
		struct mmr_guest_stats st;

		mmr_guest_get_stats(s->opts->run.guest, &st);
		COPY(l->kernel, st.kernel);
		COPY(l->build, "guest");
	}
	COPY(l->profile, s->profile);
	l->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	l->gen = MMR_GEN_VERSION;
	l->seed = s->base;
	l->shard = s->shard;
	l->shards = s->shards;
}

/* How often a case ended one of the soaks that last describes. */
static int times_lost(const struct mmr_ledger_view *v,
		      const struct mmr_ledger_session *last, uint64_t number)
{
	int n = 0;

	for (int i = 0; i < v->nlost; i++) {
		const struct mmr_ledger_lost *l = &v->lost[i];

		if (l->index != number)
			continue;
		for (int j = 0; j < v->nsessions; j++)
			if (!strcmp(v->sessions[j].id, l->session) &&
			    mmr_ledger_same_cases(&v->sessions[j], last))
				n++;
	}
	return n;
}

static void find_avoided(struct mmr_soak *s, const struct mmr_ledger_view *v,
			 const struct mmr_ledger_session *last)
{
	struct mmr_ranges *a = &s->book.avoid;

	a->r = calloc((size_t)v->nlost + 1, sizeof(*a->r));
	a->max = a->r ? v->nlost + 1 : 0;
	for (int i = 0; i < v->nlost; i++) {
		uint64_t number = v->lost[i].index;

		if (times_lost(v, last, number) < AVOID_AFTER ||
		    mmr_ranges_has(a, number) ||
		    mmr_ranges_has(&s->book.done, number))
			continue;
		if (mmr_ranges_add(a, number, number))
			return;
		mmr_soak_say(
			s,
			"seed 0x%" PRIx64 " ended this soak %d times and is "
			"set aside; try it in a guest: mmrace replay --seed "
			"0x%" PRIx64 " --profile %s --guest KERNEL",
			v->lost[i].seed, times_lost(v, last, number),
			v->lost[i].seed, last->profile);
	}
}

/* What was given on the command line has to be what the ledger says. */
static int adopt(struct mmr_soak *s, const struct mmr_ledger_session *last)
{
	const struct mmr_soak_opts *o = s->opts;
	const char *out = o->out;

	if (last->gen != MMR_GEN_VERSION)
		return mmr_opts_error(
			"%s: was made by generator %d and this is %d, so its "
			"seeds mean other cases now; start a new soak, or "
			"resume with the mmrace that began it",
			out, last->gen, MMR_GEN_VERSION);
	if (o->seed_given && o->seed != last->seed)
		return mmr_opts_error("%s: its seed is 0x%" PRIx64
				      "; --resume needs no --seed",
				      out, last->seed);
	if (o->profile_given && strcmp(s->profile, last->profile))
		return mmr_opts_error("%s: its profile is %s; --resume needs "
				      "no --profile",
				      out, last->profile);
	if (o->shards > 1 &&
	    (o->shards != last->shards || o->shard != last->shard))
		return mmr_opts_error("%s: is shard %d/%d; --resume needs no "
				      "--shard",
				      out, last->shard, last->shards);
	s->gen = mmr_profile_find(last->profile);
	if (!s->gen)
		return mmr_opts_error("%s: has the profile '%s', which this "
				      "mmrace does not know",
				      out, last->profile);
	COPY(s->profile, last->profile);
	s->base = last->seed;
	s->shard = last->shard;
	s->shards = last->shards > 0 ? last->shards : 1;
	return 0;
}

static int resume(struct mmr_soak *s)
{
	struct mmr_ledger_view v;
	const struct mmr_ledger_session *last;
	int rc = mmr_ledger_read(s->opts->out, &v);

	if (rc || !v.nsessions) {
		mmr_opts_error("%s: there is nothing to resume: %s",
			       s->opts->out,
			       rc && rc != -ENOENT ? strerror(-rc)
						   : "no soak wrote there");
		if (!rc)
			mmr_ledger_view_free(&v);
		return MMR_EXIT_USAGE;
	}
	last = &v.sessions[v.nsessions - 1];
	rc = adopt(s, last);
	if (!rc && mmr_ledger_done(s->opts->out, last, &s->book.done)) {
		mmr_opts_error("%s: the ledger cannot be read", s->opts->out);
		rc = MMR_EXIT_FAILED;
	}
	if (!rc) {
		s->book.before = mmr_ranges_count(&s->book.done);
		find_avoided(s, &v, last);
	}
	mmr_ledger_view_free(&v);
	return rc;
}

int mmr_soak_book_open(struct mmr_soak *s)
{
	char text[400] = "";
	int rc = mmr_ledger_open(s->opts->out, &s->book.ledger, text,
				 sizeof(text));

	if (rc) {
		mmr_opts_error("%s", text[0] ? text : strerror(-rc));
		return rc == -EBUSY ? MMR_EXIT_USAGE : MMR_EXIT_FAILED;
	}
	mmr_soak_disk_start(s);
	rc = s->opts->resume ? resume(s) : 0;
	if (rc)
		return rc;
	describe(s, &s->book.session);
	rc = mmr_ledger_begin(s->book.ledger, &s->book.session);
	if (!rc)
		return 0;
	mmr_opts_error("%s: %s", s->opts->out, strerror(-rc));
	return MMR_EXIT_FAILED;
}

bool mmr_soak_book_wants(const struct mmr_soak *s, uint64_t number)
{
	return !mmr_ranges_has(&s->book.done, number) &&
	       !mmr_ranges_has(&s->book.avoid, number);
}

/* A full disk is no reason to stop: what could not be appended stays in
 * ledger.now as long as that has room.  It is said once. */
static void check(struct mmr_soak *s, int rc)
{
	if (!rc || s->book.error)
		return;
	s->book.error = rc;
	mmr_soak_say(s, "%s/" MMR_LEDGER_FILE ": %s", s->opts->out,
		     strerror(-rc));
}

void mmr_soak_book_add(struct mmr_soak *s, uint64_t number,
		       const struct mmr_run_result *res)
{
	struct mmr_ledger_counts c = {
		.rounds = res->rounds,
		.rounds_void = res->rounds_void,
		.ops = res->ops,
		.calls = res->calls,
	};

	c.verdicts[res->verdict] = 1;
	check(s, mmr_ledger_add(s->book.ledger, number, &c));
}

void mmr_soak_book_finding(struct mmr_soak *s, uint64_t number, uint64_t seed,
			   const struct mmr_run_result *res)
{
	check(s, mmr_ledger_finding(s->book.ledger, number, seed, res->verdict,
				    res->id));
}

bool mmr_soak_book_lost(struct mmr_soak *s, const char *session,
			uint64_t number, uint64_t seed)
{
	struct mmr_ranges done = {0};
	struct mmr_ledger_view v;
	bool was_done = false;

	if (mmr_ledger_read(s->opts->out, &v))
		return true;
	for (int i = 0; i < v.nsessions; i++)
		if (!strcmp(v.sessions[i].id, session) &&
		    !mmr_ledger_done(s->opts->out, &v.sessions[i], &done))
			was_done = mmr_ranges_has(&done, number);
	free(done.r);
	mmr_ledger_view_free(&v);
	if (!was_done)
		check(s,
		      mmr_ledger_lost(s->book.ledger, session, number, seed));
	return !was_done;
}

void mmr_soak_book_tick(struct mmr_soak *s)
{
	check(s, mmr_ledger_tick(s->book.ledger));
}

void mmr_soak_book_close(struct mmr_soak *s, const char *state)
{
	if (s->book.ledger)
		check(s, mmr_ledger_close(s->book.ledger, state));
	s->book.ledger = NULL;
	free(s->book.done.r);
	free(s->book.avoid.r);
	memset(&s->book.done, 0, sizeof(s->book.done));
	memset(&s->book.avoid, 0, sizeof(s->book.avoid));
}
