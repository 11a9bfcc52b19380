// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The line to a guest and what crosses it.  Red when a frame is cut or mixed
 * with its acknowledgements, when a deadline is not kept, when a guest that is
 * gone takes the runner along, or when a field of a result is lost on the way.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../ops/clock.h"
#include "../../triage/guest_image.h"
#include "../../triage/guest_wire.h"
#include "../../triage/histogram.h"
#include "../../triage/result_json.h"

#define SEC 1000000000LL

struct side {
	int fd, ack, err;
	size_t n;
	char *data;
};

static void *reader(void *arg)
{
	struct side *s = arg;

	s->err = mmr_wire_read(s->fd, s->ack, mmr_clock_monotonic() + 10 * SEC,
			       &s->data, &s->n);
	return NULL;
}

static void send_one(size_t n, int ack, const char *noise)
{
	char *data = malloc(n + 1);
	struct side s = {.ack = ack};
	pthread_t t;
	int fd[2];

	assert_non_null(data);
	for (size_t i = 0; i < n; i++)
		data[i] = (char)(i * 7 + i / 251);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	s.fd = fd[1];
	assert_int_equal(write(fd[0], noise, strlen(noise)),
			 (ssize_t)strlen(noise));
	assert_int_equal(pthread_create(&t, NULL, reader, &s), 0);
	assert_int_equal(mmr_wire_write(fd[0], ack,
					mmr_clock_monotonic() + 10 * SEC, data,
					n),
			 0);
	pthread_join(t, NULL);
	assert_int_equal(s.err, 0);
	assert_int_equal(s.n, n);
	assert_memory_equal(s.data, data, n);
	assert_int_equal(s.data[n], 0);
	free(s.data);
	free(data);
	close(fd[0]);
	close(fd[1]);
}

static void test_frames(void **state)
{
	static const size_t sizes[] = {0,
				       1,
				       MMR_WIRE_CHUNK - 1,
				       MMR_WIRE_CHUNK,
				       MMR_WIRE_CHUNK + 1,
				       3 * MMR_WIRE_CHUNK,
				       1 << 20};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_one(sizes[i], 0, "");
		send_one(sizes[i], 1, "boot noise\n");
	}
}

static void test_gone(void **state)
{
	int fd[2], err;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	close(fd[1]);
	err = mmr_wire_write(fd[0], 1, mmr_clock_monotonic() + 5 * SEC, "x", 1);
	assert_int_equal(err, -EPIPE);
	close(fd[0]);
}

/* The guest's end is a tty, a pipe here: no socket. */
static void test_no_socket(void **state)
{
	char *data = NULL;
	size_t n = 0;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(mmr_wire_write(fd[1], 0,
					mmr_clock_monotonic() + 5 * SEC, "abc",
					3),
			 0);
	assert_int_equal(mmr_wire_read(fd[0], 0,
				       mmr_clock_monotonic() + 5 * SEC, &data,
				       &n),
			 0);
	assert_int_equal(n, 3);
	assert_memory_equal(data, "abc", 3);
	free(data);
	close(fd[0]);
	close(fd[1]);
}

static int read_bytes(const char *bytes, int hang_up, int64_t limit)
{
	char *data = NULL;
	size_t n;
	int fd[2], err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(write(fd[0], bytes, strlen(bytes)),
			 (ssize_t)strlen(bytes));
	if (hang_up)
		close(fd[0]);
	err = mmr_wire_read(fd[1], 0, mmr_clock_monotonic() + limit, &data, &n);
	if (!err)
		free(data);
	if (!hang_up)
		close(fd[0]);
	close(fd[1]);
	return err;
}

static void test_broken(void **state)
{
	(void)state;
	assert_int_equal(read_bytes("@mmr 5\nabc", 1, 5 * SEC), -EPIPE);
	assert_int_equal(read_bytes("@mmr 5\nabc", 0, SEC / 20), -ETIMEDOUT);
	assert_int_equal(read_bytes("", 0, SEC / 20), -ETIMEDOUT);
	assert_int_equal(
		read_bytes("@mmr 5 and much too long for a header line\n", 1,
			   5 * SEC),
		-EPROTO);
	/* A length beyond the limit is no header; what follows is. */
	assert_int_equal(read_bytes("@mmr 99999999999\n@mmr 2\nok", 1, SEC), 0);
}

static const char text[] = "mmrace-case 1\n\nprocess main\n  thread A\n"
			   "    m0 = mmap len=1p prot=rw flags=shared|anon\n"
			   "    exit_group\n";

static void fill(struct mmr_run_result *r)
{
	memset(r, 0, sizeof(*r));
	r->verdict = MMR_LONG_EXIT;
	strcpy(r->text, "stuck \xff here"); /* a byte that is no UTF-8 */
	strcpy(r->signature, "long-exit exit a<b");
	strcpy(r->id, "long-exit-0123");
	r->stmt = 1;
	r->rounds = 12;
	r->rounds_void = 3;
	r->hit_round = UINT64_MAX - 5;
	r->ops = 77;
	r->calls = 55;
	r->wall_ns = 5 * SEC;
	r->detect_ns = 4;
	r->pause_ns = 3;
	r->quarantined = 2;
	r->nstmts = 2;
	r->stmts = calloc(2, sizeof(*r->stmts));
	r->stmts[1].count = 9;
	r->stmts[1].errs[0].err = ENOMEM;
	r->stmts[1].errs[0].n = 4;
	r->stmts[1].max_ns = 123456789;
	r->nexits = 1;
	r->exits = calloc(1, sizeof(*r->exits));
	r->exits[0].proc = "main";
	r->exits[0].count = 6;
	r->exits[0].asleep_ns = 99;
	r->exits[0].cpu_hist = calloc(1, sizeof(*r->exits[0].cpu_hist));
	mmr_histogram_add(r->exits[0].cpu_hist, 5000, 6);
	r->evidence = json_pack("{s:i}", "a", 1);
	r->stacks = strdup("stack\n");
}

static void test_result(void **state)
{
	struct mmr_run_result a, b;
	struct mmr_diag diag;
	struct mmr_case *c;
	json_t *j;

	(void)state;
	assert_int_equal(
		mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL), 0);
	fill(&a);
	j = mmr_result_to_json(&a);
	assert_non_null(j);
	assert_int_equal(mmr_result_from_json(j, c, &b), 0);
	assert_int_equal(b.verdict, a.verdict);
	assert_string_equal(b.text, "stuck ? here");
	assert_string_equal(b.signature, a.signature);
	assert_string_equal(b.id, a.id);
	assert_int_equal(b.stmt, 1);
	assert_int_equal(b.rounds, 12);
	assert_int_equal(b.rounds_void, 3);
	assert_true(b.hit_round == UINT64_MAX - 5);
	assert_int_equal(b.ops, 77);
	assert_int_equal(b.calls, 55);
	assert_int_equal(b.wall_ns, 5 * SEC);
	assert_int_equal(b.detect_ns, 4);
	assert_int_equal(b.pause_ns, 3);
	assert_int_equal(b.quarantined, 2);
	assert_int_equal(b.nstmts, 2);
	assert_memory_equal(b.stmts, a.stmts, 2 * sizeof(*a.stmts));
	assert_int_equal(b.nexits, 1);
	/* The name is the case's own, not a copy of the wire's. */
	assert_ptr_equal(b.exits[0].proc, c->procs[0]->name);
	assert_int_equal(b.exits[0].count, 6);
	assert_int_equal(b.exits[0].asleep_ns, 99);
	assert_null(b.exits[0].hist);
	assert_memory_equal(b.exits[0].cpu_hist, a.exits[0].cpu_hist,
			    sizeof(*a.exits[0].cpu_hist));
	assert_true(json_equal(a.evidence, b.evidence));
	assert_string_equal(b.stacks, "stack\n");
	assert_null(b.log);
	mmr_run_result_free(&b);
	json_object_set_new(j, "verdict", json_integer(MMR_VERDICTS));
	assert_int_equal(mmr_result_from_json(j, c, &b), -EINVAL);
	json_decref(j);
	mmr_run_result_free(&a);
	mmr_case_free(c);
}

static void test_kernel(void **state)
{
	char path[600], why[300] = "";

	(void)state;
	assert_int_equal(mmr_guest_kernel("/nowhere/bzImage", NULL, "/nowhere",
					  path, sizeof(path), why, sizeof(why)),
			 -ENOENT);
	assert_non_null(strstr(why, "/nowhere/bzImage"));
	/* Words that a shell would take for more than a version. */
	assert_int_equal(mmr_guest_kernel("debian:6.1;true", NULL, "/nowhere",
					  path, sizeof(path), why, sizeof(why)),
			 -EINVAL);
	assert_null(mmr_guest_kernel_arch("/proc/self/exe"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),	  cmocka_unit_test(test_gone),
		cmocka_unit_test(test_no_socket), cmocka_unit_test(test_broken),
		cmocka_unit_test(test_result),	  cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
