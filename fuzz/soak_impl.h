/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of the soak: what it counts (soak_stat.c), how that reads
 * (soak_report.c), what lies on disk meanwhile (soak_disk.c),
 * which cases are done (soak_ledger.c), who is told (soak_tell.c), and when
 * (soak_time.c).
 *
 *   stat, book  any job, under `lock`
 *   findings    any job, under `finding_lock` (held while files are written)
 *   next, stop  any job, without a lock; so is a look at nfindings
 *   the rest    read-only after the start
 */
#ifndef MMR_FUZZ_SOAK_IMPL_H
#define MMR_FUZZ_SOAK_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../triage/finding.h"
#include "../triage/record.h"
#include "ledger.h"
#include "soak.h"

#define MMR_SOAK_JOBS 64
#define MMR_SOAK_REASONS 32
#define MMR_SOAK_FINDINGS 256
#define MMR_SOAK_SUSPECTS 64
#define MMR_SOAK_CONFIRM 10 /* re-runs of a case that hit */

struct mmr_soak_op {
	struct mmr_histogram hist; /* of all its calls */
	uint64_t errors, unexpected, max_seed;
	uint64_t failed; /* errors that no `->` of the statement lists */
};

struct mmr_soak_reason {
	char text[200]; /* the first one of its kind */
	bool various;	/* others differ in numbers */
	uint64_t count;
};

struct mmr_soak_stat {
	uint64_t cases, skipped, voids, failed, hits;
	uint64_t rounds, rounds_void, ops, calls;
	uint64_t verdicts[MMR_VERDICTS]; /* cases by verdict */
	uint64_t exits, exit_max_ns, exit_max_seed, exit_asleep_ns;
	int64_t pause_ns;
	int quarantined;
	struct mmr_soak_op op[MMR_OP_LIMIT];
	/* Bit b of pairs[a], a <= b: two threads of a case ran a and b. */
	uint8_t pairs[MMR_OP_LIMIT][MMR_OP_LIMIT / 8];
	struct mmr_soak_reason reasons[MMR_SOAK_REASONS];
	int nreasons;
	uint64_t other_reasons;
	char failure[400]; /* the first thing that mmrace itself could not do */
};

struct mmr_soak_finding {
	char id[48], path[300], text[400];
	uint64_t seed, count;
	struct mmr_rate rate;
	bool to_shrink; /* it is confirmed, and as large as it was found */
};

/* A case that was slow again and again, soak_revisit.c. */
struct mmr_soak_suspect {
	uint64_t seed, runs, hits; /* re-runs, and those as slow */
	const struct mmr_op *op;
	uint64_t worst_ns, limit_ns;
};

/* soak_ledger.c: what is done already, and where it is kept. */
struct mmr_soak_book {
	struct mmr_ledger *ledger;
	struct mmr_ledger_session session;
	struct mmr_ranges done;	 /* before this session, local numbers */
	struct mmr_ranges avoid; /* cases that ended a soak twice */
	uint64_t before;	 /* cases in done */
	int error;		 /* the first that the ledger had */
};

/* soak_quota.c */
enum mmr_soak_room {
	MMR_SOAK_ROOM,
	MMR_SOAK_BRIEF, /* the quota is reached: no evidence any more */
	MMR_SOAK_FULL,	/* nor anything else */
};

struct mmr_soak_quota {
	uint64_t bytes, used;
	int64_t looked_ns; /* when used was counted; 0: never */
	enum mmr_soak_room room;
};

/* soak_log.c */
struct mmr_soak_log {
	pthread_mutex_t lock; /* of all of it */
	FILE *f;	      /* of --log; NULL: none */
	bool journal;	      /* standard error is systemd's journal */
	int64_t since_ns;     /* the minute that is counted */
	int lines;	      /* said in it, or left out */
};

struct mmr_soak {
	const struct mmr_soak_opts *opts;
	struct mmr_soak_log log;
	struct mmr_soak_quota quota;   /* under finding_lock */
	int json_error, metrics_error; /* the last one of each, said once */
	char profile[48];	       /* name */
	const struct mmr_profile *gen;
	uint64_t base; /* seed of case 0 */
	int shard, shards;
	int64_t start_ns, deadline_ns, end_ns; /* CLOCK_MONOTONIC; 0: none */
	_Atomic uint64_t next; /* number of the next case of this shard */
	int failures;	       /* of mmrace itself, in a row; under lock */
	_Atomic bool stop;
	pthread_mutex_t lock, finding_lock;
	struct mmr_soak_stat stat;
	struct mmr_soak_book book;
	struct mmr_record *record; /* what runs measured, under lock */
	struct mmr_soak_finding findings[MMR_SOAK_FINDINGS];
	uint64_t suspects; /* cases; this and the next under lock */
	struct mmr_soak_suspect confirmed[MMR_SOAK_SUSPECTS];
	int nconfirmed; /* also those that have no place there */
	int64_t pause_max_ns, pause_before_ns, pause_since_ns;
	/* Of --shrink-guest: opened when it is needed, under shrink_lock, which
	 * who uses it holds. */
	struct mmr_guest *shrink_guest;
	_Atomic int to_shrink; /* findings that are */
	bool shrink_failed;
	pthread_mutex_t shrink_lock;
	_Atomic int64_t revisit_ns; /* time spent on what was seen before */
	_Atomic int nfindings;	    /* jobs look at it without the lock */
};

struct mmr_soak_job {
	struct mmr_soak *soak;
	int number;
	pthread_t thread;
	struct mmr_run_opts run;
	/* running-N.case */
	int fd;
	size_t written;
	int64_t synced_ns;
};

/* soak_stat.c: adds one run. */
void mmr_soak_stat_add(struct mmr_soak_stat *st, const struct mmr_case *c,
		       uint64_t seed, const struct mmr_run_result *res);
/* The value below which a share of an op's calls lies, ns. */
/* Of the kernel calls and touches that were not meant to fail: how many did
 * not, 0..1; 1 when there was none. */
double mmr_soak_valid(const struct mmr_soak_stat *st);
/* Pairs of operations that two threads of a case ran. */
unsigned int mmr_soak_pairs(const struct mmr_soak_stat *st);
uint64_t mmr_soak_quantile(const struct mmr_soak_op *op, uint64_t per_mille);

/* soak_disk.c: what a kill or a panic leaves behind. */
/* The cases in which an earlier soak ended: kept, and noted in the ledger,
 * unless they are done.  Once, before the jobs. */
void mmr_soak_disk_start(struct mmr_soak *s);
/* The job's own file.  0 or -errno. */
int mmr_soak_disk_open(struct mmr_soak_job *job);
/* Puts the case on disk before it runs.  0 or -errno. */
int mmr_soak_disk_case(struct mmr_soak_job *job, const char *text,
		       uint64_t seed, uint64_t number);
/* Removes it: the job has ended by itself. */
void mmr_soak_disk_close(struct mmr_soak_job *job);

/* soak_quota.c */
/* Sets the quota: what was given, or by the free space. */
void mmr_soak_quota_start(struct mmr_soak *s);
/* What there is room for; tells when that changes.  Under finding_lock. */
enum mmr_soak_room mmr_soak_quota_room(struct mmr_soak *s);
/* Bytes on disk of the finding `id` below dir; what a store adds to that counts
 * as used at once, all else when the folder is read again. */
uint64_t mmr_soak_quota_held(const char *dir, const char *id);

/* soak_log.c: any thread, no lock needed */
/* Opens --log.  Before all else.  0 or -errno. */
int mmr_soak_log_open(struct mmr_soak *s);
void mmr_soak_log_close(struct mmr_soak *s);
/* A line of trouble: on standard error and in the log. */
void mmr_soak_say(struct mmr_soak *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A line of news: in the log, and on standard error unless --quiet. */
void mmr_soak_note(struct mmr_soak *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The status line, in the log only. */
void mmr_soak_log_status(struct mmr_soak *s, const char *line);

/* soak_ledger.c */
/* Opens the ledger and begins a session; with --resume takes seed, profile and
 * shard from the last one.  0, or the exit code after a message. */
int mmr_soak_book_open(struct mmr_soak *s);
/* Is this case (the shard's own number) to be run? */
bool mmr_soak_book_wants(const struct mmr_soak *s, uint64_t number);
/* It is over.  Under lock. */
void mmr_soak_book_add(struct mmr_soak *s, uint64_t number,
		       const struct mmr_run_result *res);
void mmr_soak_book_finding(struct mmr_soak *s, uint64_t number, uint64_t seed,
			   const struct mmr_run_result *res);
/* A case that was running when a soak was ended: false when it was done by
 * then.  Before the session begins. */
bool mmr_soak_book_lost(struct mmr_soak *s, const char *session,
			uint64_t number, uint64_t seed);
/* Once a second, under lock. */
void mmr_soak_book_tick(struct mmr_soak *s);
void mmr_soak_book_close(struct mmr_soak *s, const char *state);

/* soak.c: is there no time left, or no reason to go on?  Any thread. */
bool mmr_soak_over(struct mmr_soak *s);

/* One run: the case's own budget, or what is left of the soak if that is
 * less.  brief: the verdict only. */
int mmr_soak_run(struct mmr_soak_job *job, const struct mmr_case *c, bool brief,
		 struct mmr_run_result *res);

/* soak_revisit.c, by the job that has the case */
/* How often the same case shows the same again: up to ten more runs.  First
 * of a case with the very offsets of the hit: when that shows it, the rate is
 * that case's, which is returned for the caller to free.  NULL: c's. */
struct mmr_case *mmr_soak_confirm(struct mmr_soak_job *job,
				  const struct mmr_case *c,
				  const struct mmr_run_result *first,
				  struct mmr_rate *rate);
/* Makes the case of a finding smaller, folder/min.case, if one waits for that
 * and its share of the time allows it.  Between two cases. */
void mmr_soak_shrink(struct mmr_soak_job *job);
/* The guest of --shrink-guest goes, when there is one.  After the jobs. */
void mmr_soak_shrink_end(struct mmr_soak *s);
/* A run in which nothing was found: was it slow, and is it again? */
void mmr_soak_suspect(struct mmr_soak_job *job, const struct mmr_case *c,
		      uint64_t seed, const struct mmr_run_result *res);

/* soak_time.c */
/* Waits until the jobs are over. */
void mmr_soak_time_keep(struct mmr_soak *s, struct mmr_soak_job *jobs,
			int njobs);
/* soak.json and the metrics, now. */
void mmr_soak_time_save(struct mmr_soak *s, const char *state);

/* soak_tell.c: to whom it may concern, while it runs. */
/* Watches for SIGUSR1; before the jobs.  */
void mmr_soak_tell_start(void);
/* READY=1, STATUS=.. and the like to systemd (sd_notify(3)), when it is
 * there. */
void mmr_soak_tell_systemd(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
/* True once for each SIGUSR1. */
bool mmr_soak_tell_asked(void);
/* Resident memory of this process, bytes. */
uint64_t mmr_soak_resident(void);
/* The --metrics file.  Under both locks.  0 or -errno. */
int mmr_soak_metrics(struct mmr_soak *s, bool running);

/* soak_report.c: under both locks, or when the jobs are over. */
/* Since the start, or all of it when it is over. */
double mmr_soak_seconds(const struct mmr_soak *s);
/* A new object, which the caller frees. */
json_t *mmr_soak_json(struct mmr_soak *s, const char *state);
/* The report for reading. */
void mmr_soak_text(struct mmr_soak *s, FILE *f);

#endif
