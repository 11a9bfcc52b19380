/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames over a serial line, both sides; see guest_wire.h. */
#include "guest_wire.h"
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../ops/clock.h"

#define SLICE_MS 100 /* an interrupt is seen within */

/* Waits until fd is ready for events, or the deadline. */
static int ready(int fd, short events, int64_t deadline_ns)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = events};
		int64_t left = deadline_ns ? deadline_ns - mmr_clock_monotonic()
					   : 1000000000LL;
		int n;

		if (left <= 0)
			return -ETIMEDOUT;
		if (mmr_engine_interrupted())
			return -EINTR;
		n = poll(&p, 1,
			 left < SLICE_MS * 1000000LL ? (int)(left / 1000000) + 1
						     : SLICE_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			return 0;
	}
}

static int read_some(int fd, int64_t deadline_ns, char *buf, size_t n)
{
	for (;;) {
		int err = ready(fd, POLLIN, deadline_ns);
		ssize_t got;

		if (err)
			return err;
		got = read(fd, buf, n);
		if (got > 0)
			return (int)got;
		if (got == 0)
			return -EPIPE;
		if (errno != EINTR && errno != EAGAIN)
			return -EPIPE;
	}
}

/* A socket here, a tty in the guest.  A QEMU that has died must not take its
 * runner along by SIGPIPE. */
static ssize_t put_some(int fd, const char *buf, size_t n)
{
	ssize_t put = send(fd, buf, n, MSG_NOSIGNAL);

	return put < 0 && errno == ENOTSOCK ? write(fd, buf, n) : put;
}

static int write_all(int fd, int64_t deadline_ns, const char *buf, size_t n)
{
	while (n) {
		int err = ready(fd, POLLOUT, deadline_ns);
		ssize_t put;

		if (err)
			return err;
		put = put_some(fd, buf, n);
		if (put < 0 && errno != EINTR && errno != EAGAIN)
			return -EPIPE;
		if (put > 0) {
			buf += put;
			n -= (size_t)put;
		}
	}
	return 0;
}

/* "@mmr LENGTH\n": what comes before the @ is noise of a fresh line. */
static int read_header(int fd, int64_t deadline_ns, size_t *len)
{
	char line[32];
	size_t n = 0;

	for (;;) {
		int got = read_some(fd, deadline_ns, line + n, 1);

		if (got < 0)
			return got;
		if (n == 0 && line[0] != '@')
			continue;
		if (line[n] == '\n') {
			line[n] = '\0';
			if (sscanf(line, "@mmr %zu", len) == 1 &&
			    *len <= MMR_WIRE_MAX)
				return 0;
			n = 0;
			continue;
		}
		if (++n == sizeof(line))
			return -EPROTO;
	}
}

int mmr_wire_read(int fd, int ack, int64_t deadline_ns, char **data, size_t *n)
{
	size_t len, have = 0, acked = 0;
	char *buf;
	int err = read_header(fd, deadline_ns, &len);

	if (err)
		return err;
	buf = malloc(len + 1);
	if (!buf)
		return -ENOMEM;
	if (ack && (err = write_all(fd, deadline_ns, "+", 1)))
		goto fail;
	while (have < len) {
		int got = read_some(fd, deadline_ns, buf + have, len - have);

		if (got < 0) {
			err = got;
			goto fail;
		}
		have += (size_t)got;
		while (ack && have - acked >= MMR_WIRE_CHUNK) {
			err = write_all(fd, deadline_ns, "+", 1);
			if (err)
				goto fail;
			acked += MMR_WIRE_CHUNK;
		}
	}
	buf[len] = '\0';
	*data = buf;
	*n = len;
	return 0;
fail:
	free(buf);
	return err;
}

static int wait_ack(int fd, int64_t deadline_ns)
{
	char c = 0;

	while (c != '+') {
		int got = read_some(fd, deadline_ns, &c, 1);

		if (got < 0)
			return got;
	}
	return 0;
}

int mmr_wire_write(int fd, int ack, int64_t deadline_ns, const char *data,
		   size_t n)
{
	char line[32];
	int err, len = snprintf(line, sizeof(line), "@mmr %zu\n", n);

	err = write_all(fd, deadline_ns, line, (size_t)len);
	if (!err && ack)
		err = wait_ack(fd, deadline_ns);
	for (size_t done = 0; !err && done < n;) {
		size_t part = n - done;

		if (ack && part > MMR_WIRE_CHUNK)
			part = MMR_WIRE_CHUNK;
		err = write_all(fd, deadline_ns, data + done, part);
		done += part;
		if (!err && ack && part == MMR_WIRE_CHUNK)
			err = wait_ack(fd, deadline_ns);
	}
	return err;
}
