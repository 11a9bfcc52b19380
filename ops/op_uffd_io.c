/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers to faults that a userfaultfd has: events are read by one statement,
 * which makes a mapping ref of where the page is wanted, and answered by
 * another, late or never.
 */
#include <asm/unistd.h>
#include <linux/userfaultfd.h>

#include "args.h"

#ifndef MMR_CHILD
#include "emit.h"
#else
#include <asm/errno.h>
#include <linux/ioctl.h>
#include <linux/types.h>

#include "child.h"
#endif

#define READ_MAX 10000000000LL /* ns */
#define READ_DEF 10000000LL
#define POLL_IN 1

/* The numbers of the requests; 5, 7 and 8 are newer than some headers. */
#define REQUEST(nr, words)                                                     \
	((int64_t)_IOC(_IOC_READ | _IOC_WRITE, UFFDIO, nr, (words)*8))
#define WAKE ((int64_t)_IOC(_IOC_READ, UFFDIO, 2, 16))

/* The ones without a mode end before it. */
enum { IO_UFFD, IO_MAP, IO_OFF, IO_LEN, IO_MODE, IO_ORWAKE, IO_FROM };
enum { READ_UFFD, READ_LEN, READ_WITHIN };

static const struct mmr_name copy_modes[] = {
	{"dontwake", "UFFDIO_COPY_MODE_DONTWAKE", UFFDIO_COPY_MODE_DONTWAKE},
	{"wp", "UFFDIO_COPY_MODE_WP", MMR_K_UFFDIO_COPY_MODE_WP},
	{NULL, NULL, 0},
};

static const struct mmr_name zeropage_modes[] = {
	{"dontwake", "UFFDIO_ZEROPAGE_MODE_DONTWAKE",
	 UFFDIO_ZEROPAGE_MODE_DONTWAKE},
	{NULL, NULL, 0},
};

static const struct mmr_name continue_modes[] = {
	{"dontwake", "UFFDIO_CONTINUE_MODE_DONTWAKE",
	 MMR_K_UFFDIO_CONTINUE_MODE_DONTWAKE},
	{"wp", "UFFDIO_CONTINUE_MODE_WP", MMR_K_UFFDIO_CONTINUE_MODE_WP},
	{NULL, NULL, 0},
};

static const struct mmr_name poison_modes[] = {
	{"dontwake", "UFFDIO_POISON_MODE_DONTWAKE",
	 MMR_K_UFFDIO_POISON_MODE_DONTWAKE},
	{NULL, NULL, 0},
};

static const struct mmr_name move_modes[] = {
	{"dontwake", "UFFDIO_MOVE_MODE_DONTWAKE",
	 MMR_K_UFFDIO_MOVE_MODE_DONTWAKE},
	{"allow_src_holes", "UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES",
	 MMR_K_UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES},
	{NULL, NULL, 0},
};

static const struct mmr_name wp_modes[] = {
	{"wp", "UFFDIO_WRITEPROTECT_MODE_WP", 1},
	{"dontwake", "UFFDIO_WRITEPROTECT_MODE_DONTWAKE", 2},
	{NULL, NULL, 0},
};

#ifdef MMR_CHILD
/*
 * All requests are rows of 64-bit words: two of a range, or (from >= 0)
 * destination, source and length; then the mode; then room for an answer.
 */
static int64_t request(struct mmr_child *c, const struct mmr_insn *in,
		       int64_t number, int from)
{
	uint64_t words[5] = {0}, wake[2], *w = words, size;
	struct mmr_ref_value u, src = {0, 0, 0};
	int64_t ret;

	u = mmr_child_ref(c, in->arg[IO_UFFD].lo, MMR_REF_UFFD);
	if (!u.kind ||
	    !mmr_child_part(c, in, IO_MAP, IO_OFF, IO_LEN, w++, &size))
		return MMR_SKIPPED;
	if (from >= 0) {
		src = mmr_child_ref(c, in->arg[from].lo, MMR_REF_MAPPING);
		if (!src.kind)
			return MMR_SKIPPED;
		*w++ = (uint64_t)src.a;
		if (size > (uint64_t)src.b)
			size = (uint64_t)src.b;
	}
	*w++ = size;
	*w = (uint64_t)in->arg[IO_MODE].lo;
	wake[0] = words[0];
	wake[1] = size;
	ret = mmr_sys3(__NR_ioctl, u.a, number, mmr_sys_ptr(words));
	if (ret < 0 && in->set >> IO_ORWAKE & 1)
		mmr_sys3(__NR_ioctl, u.a, WAKE, mmr_sys_ptr(wake));
	return ret;
}

#define RUN(name, nr, words, from)                                             \
	static int64_t run_##name(struct mmr_child *c,                         \
				  const struct mmr_insn *in)                   \
	{                                                                      \
		return request(c, in, REQUEST(nr, words), from);               \
	}
RUN(uffd_copy, 3, 5, IO_FROM)
RUN(uffd_zeropage, 4, 4, -1)
RUN(uffd_move, 5, 5, IO_FROM)
RUN(uffd_writeprotect, 6, 3, -1)
RUN(uffd_continue, 7, 4, -1)
RUN(uffd_poison, 8, 4, -1)

/* These two only read their range. */
static int64_t run_uffd_unregister(struct mmr_child *c,
				   const struct mmr_insn *in)
{
	return request(c, in, (int64_t)_IOC(_IOC_READ, UFFDIO, 1, 16), -1);
}

static int64_t run_uffd_wake(struct mmr_child *c, const struct mmr_insn *in)
{
	return request(c, in, WAKE, -1);
}

struct pollfd_k {
	int32_t fd;
	int16_t events, revents;
};

/* What an event is about, as the new value of the ref. */
static void take_event(struct mmr_child *c, const struct mmr_insn *in,
		       const struct uffd_msg *m)
{
	uint64_t len = c->program->page_size, at = 0;

	if (in->set >> READ_LEN & 1)
		len = (uint64_t)in->arg[READ_LEN].lo;

	switch (m->event) {
	case UFFD_EVENT_PAGEFAULT:
		at = m->arg.pagefault.address;
		at -= at % len;
		break;
	case UFFD_EVENT_REMAP:
		at = m->arg.remap.to;
		len = m->arg.remap.len;
		break;
	case UFFD_EVENT_REMOVE:
	case UFFD_EVENT_UNMAP:
		at = m->arg.remove.start;
		len = m->arg.remove.end - at;
		break;
	case UFFD_EVENT_FORK: /* the faults of the new process: nobody's */
		mmr_sys1(__NR_close, (int64_t)m->arg.fork.ufd);
		return;
	default:
		return;
	}
	mmr_child_set_ref(c, in->dst, MMR_REF_MAPPING, (int64_t)at,
			  (int64_t)len);
}

static int64_t run_uffd_read(struct mmr_child *c, const struct mmr_insn *in)
{
	int64_t left = mmr_child_draw(c, in, READ_WITHIN), ret;
	struct pollfd_k p = {.events = POLL_IN};
	struct mmr_timespec ts;
	struct mmr_ref_value u;
	struct uffd_msg msg;

	u = mmr_child_ref(c, in->arg[READ_UFFD].lo, MMR_REF_UFFD);
	if (!u.kind)
		return MMR_SKIPPED;
	p.fd = (int32_t)u.a;
	for (;;) {
		ts.sec = 0;
		ts.nsec = left < MMR_SLICE_NS ? left : MMR_SLICE_NS;
		ret = mmr_sys5(__NR_ppoll, mmr_sys_ptr(&p), 1, mmr_sys_ptr(&ts),
			       0, 0);
		if (ret)
			break;
		left -= MMR_SLICE_NS;
		if (left <= 0) {
			/* An answer now is not one to the event before. */
			mmr_child_set_ref(c, in->dst, 0, 0, 0);
			return -EAGAIN;
		}
		if (mmr_child_stopping(c))
			return -EINTR;
	}
	if (ret < 0)
		return ret;
	ret = mmr_sys3(__NR_read, u.a, mmr_sys_ptr(&msg), sizeof(msg));
	if (ret < 0)
		return ret;
	take_event(c, in, &msg);
	return msg.event;
}
#else
static const char range_c[] =
	"static int uffd_range(int fd, unsigned long request, struct map m,\n"
	"\t\t      unsigned long mode)\n"
	"{\n"
	"\tunsigned long long words[4] = {\n"
	"\t\t(unsigned long)m.at, m.len, mode, 0\n"
	"\t};\n"
	"\n"
	"\treturn ioctl(fd, request, words);\n"
	"}\n\n";

static const char fill_c[] =
	"static int uffd_fill(int fd, unsigned long request, struct map m,\n"
	"\t\t     struct map from, unsigned long mode)\n"
	"{\n"
	"\tunsigned long long words[5] = {\n"
	"\t\t(unsigned long)m.at, (unsigned long)from.at,\n"
	"\t\tm.len < from.len ? m.len : from.len, mode, 0\n"
	"\t};\n"
	"\n"
	"\treturn ioctl(fd, request, words);\n"
	"}\n\n";

static const char or_wake_c[] =
	"/* Who waits where that failed is woken, to fault again. */\n"
	"static int uffd_or_wake(int ret, int fd, struct map m)\n"
	"{\n"
	"\tint error = errno;\n"
	"\n"
	"\tif (ret < 0)\n"
	"\t\tuffd_range(fd, UFFDIO_WAKE, m, 0);\n"
	"\terrno = error;\n"
	"\treturn ret;\n"
	"}\n\n";

static const char requests_c[] = "#ifndef UFFDIO_MOVE\n"
				 "#define UFFDIO_MOVE 0xc028aa05ul\n#endif\n"
				 "#ifndef UFFDIO_CONTINUE\n"
				 "#define UFFDIO_CONTINUE 0xc020aa07ul\n"
				 "#endif\n"
				 "#ifndef UFFDIO_POISON\n"
				 "#define UFFDIO_POISON 0xc020aa08ul\n#endif\n"
				 "\n";

static const char read_c[] =
	"/* The next event, if any: the page that is wanted, what moved or "
	"went. */\n"
	"static int uffd_read(int fd, struct map *m, size_t len, long ns)\n"
	"{\n"
	"\tstruct timespec t = { ns / 1000000000, ns % 1000000000 };\n"
	"\tstruct pollfd p = { fd, POLLIN, 0 };\n"
	"\tstruct uffd_msg msg;\n"
	"\n"
	"\tm->len = 0;\n"
	"\tif (ppoll(&p, 1, &t, NULL) <= 0 ||\n"
	"\t    read(fd, &msg, sizeof(msg)) != sizeof(msg))\n"
	"\t\treturn -1;\n"
	"\tif (msg.event == UFFD_EVENT_FORK) {\n"
	"\t\tclose((int)msg.arg.fork.ufd);\n"
	"\t\treturn 0;\n"
	"\t}\n"
	"\tif (msg.event == UFFD_EVENT_PAGEFAULT) {\n"
	"\t\tm->at = (char *)(msg.arg.pagefault.address / len * len);\n"
	"\t\tm->len = len;\n"
	"\t} else if (msg.event == UFFD_EVENT_REMAP) {\n"
	"\t\tm->at = (char *)msg.arg.remap.to;\n"
	"\t\tm->len = msg.arg.remap.len;\n"
	"\t} else {\n"
	"\t\tm->at = (char *)msg.arg.remove.start;\n"
	"\t\tm->len = msg.arg.remove.end - msg.arg.remove.start;\n"
	"\t}\n"
	"\treturn 0;\n"
	"}\n\n";

static void uffd_headers(struct mmr_emit *e)
{
	mmr_emit_header(e, "linux/userfaultfd.h");
	mmr_emit_header(e, "sys/ioctl.h");
	e->used |= MMR_USED_MAP;
}

static void emit_request(struct mmr_emit *e, const struct mmr_stmt *s,
			 const char *name, int from)
{
	bool or_wake = s->op->nargs > IO_ORWAKE && s->args[IO_ORWAKE].set;
	char u[64], map[128], src[64], mode[96] = "0", call[512];

	uffd_headers(e);
	mmr_emit_helper(e, requests_c);
	mmr_emit_arg(e, s, IO_UFFD, u, sizeof(u));
	mmr_emit_part(e, s, IO_MAP, map, sizeof(map));
	if (s->op->nargs > IO_MODE)
		mmr_emit_arg(e, s, IO_MODE, mode, sizeof(mode));
	if (from < 0 || or_wake)
		mmr_emit_helper(e, range_c);
	if (from < 0) {
		snprintf(call, sizeof(call), "uffd_range(%s, %s, %s, %s)", u,
			 name, map, mode);
	} else {
		mmr_emit_helper(e, fill_c);
		mmr_emit_arg(e, s, from, src, sizeof(src));
		snprintf(call, sizeof(call), "uffd_fill(%s, %s, %s, %s, %s)", u,
			 name, map, src, mode);
	}
	if (or_wake) {
		mmr_emit_header(e, "errno.h");
		mmr_emit_helper(e, or_wake_c);
		mmr_emit_step(e, "uffd_or_wake(%s, %s, %s)", call, u, map);
	} else {
		mmr_emit_step(e, "%s", call);
	}
}

#define EMIT(name, request, from)                                              \
	static void emit_##name(struct mmr_emit *e, const struct mmr_stmt *s)  \
	{                                                                      \
		emit_request(e, s, "UFFDIO_" #request, from);                  \
	}
EMIT(uffd_copy, COPY, IO_FROM)
EMIT(uffd_zeropage, ZEROPAGE, -1)
EMIT(uffd_move, MOVE, IO_FROM)
EMIT(uffd_writeprotect, WRITEPROTECT, -1)
EMIT(uffd_continue, CONTINUE, -1)
EMIT(uffd_poison, POISON, -1)
EMIT(uffd_unregister, UNREGISTER, -1)
EMIT(uffd_wake, WAKE, -1)

/* No step: it is never the culprit. */
static void emit_uffd_read(struct mmr_emit *e, const struct mmr_stmt *s)
{
	char u[64], len[32], var[64];
	int64_t ns =
		s->args[READ_WITHIN].set ? s->args[READ_WITHIN].hi : READ_DEF;

	uffd_headers(e);
	mmr_emit_header(e, "poll.h");
	mmr_emit_header(e, "time.h");
	mmr_emit_header(e, "unistd.h");
	mmr_emit_helper(e, read_c);
	mmr_emit_arg(e, s, READ_UFFD, u, sizeof(u));
	if (s->args[READ_LEN].set) {
		mmr_emit_arg(e, s, READ_LEN, len, sizeof(len));
	} else {
		snprintf(len, sizeof(len), "page");
		e->used |= MMR_USED_PAGE;
	}
	if (s->ref)
		mmr_emit_line(e, "uffd_read(%s, &%s, %s, %lld);", u,
			      mmr_emit_var(e, s->ref, MMR_REF_MAPPING, var,
					   sizeof(var)),
			      len, (long long)ns);
	else
		mmr_emit_line(e, "uffd_read(%s, &(struct map){ 0 }, %s, %lld);",
			      u, len, (long long)ns);
}
#endif

#define ARG_IO_MODE(list)                                                      \
	{                                                                      \
		.name = "mode", .help = "how", .type = MMR_ARG_FLAGS,          \
		.flags = MMR_ARG_OPT, .max = 3, .names = (list)                \
	}
#define ARG_ORWAKE                                                             \
	{                                                                      \
		.name = "orwake",                                              \
		.help = "if it fails, wake who waits there, as servers do",    \
		.type = MMR_ARG_WORD, .flags = MMR_ARG_OPT                     \
	}
#define ARG_FROM                                                               \
	{                                                                      \
		.name = "from", .help = "where the pages come from",           \
		.type = MMR_ARG_REF, .kinds = MMR_REF_MAPPING                  \
	}

#define IO_OP(op, what, why, list, need)                                       \
	const struct mmr_op mmr_op_##op = {                                    \
		.id = MMR_OP_##op,                                             \
		.name = #op,                                                   \
		.help = (what),                                                \
		.race = (why),                                                 \
		.class = MMR_CLASS_CALL,                                       \
		.unit_ns = 2000,                                               \
		.nargs = 6,                                                    \
		.args = {MMR_ARG_UFFD, MMR_ARG_MAPPING, MMR_ARG_OFF,           \
			 MMR_ARG_LEN, ARG_IO_MODE(list), ARG_ORWAKE},          \
		.call = {.nr = -1},                                            \
		.calls = "ioctl",                                              \
		.needs = (need),                                               \
		.run = MMR_RUN(run_##op),                                      \
		.emit = MMR_EMIT(emit_##op),                                   \
	}
#define RANGE_OP(op, what, why)                                                \
	const struct mmr_op mmr_op_##op = {                                    \
		.id = MMR_OP_##op,                                             \
		.name = #op,                                                   \
		.help = (what),                                                \
		.race = (why),                                                 \
		.class = MMR_CLASS_CALL,                                       \
		.unit_ns = 2000,                                               \
		.nargs = 4,                                                    \
		.args = {MMR_ARG_UFFD, MMR_ARG_MAPPING, MMR_ARG_OFF,           \
			 MMR_ARG_LEN},                                         \
		.call = {.nr = -1},                                            \
		.calls = "ioctl",                                              \
		.needs = "syscall=userfaultfd",                                \
		.run = MMR_RUN(run_##op),                                      \
		.emit = MMR_EMIT(emit_##op),                                   \
	}
#define FILL_OP(op, what, why, list, need)                                     \
	const struct mmr_op mmr_op_##op = {                                    \
		.id = MMR_OP_##op,                                             \
		.name = #op,                                                   \
		.help = (what),                                                \
		.race = (why),                                                 \
		.class = MMR_CLASS_CALL,                                       \
		.unit_ns = 2000,                                               \
		.nargs = 7,                                                    \
		.args = {MMR_ARG_UFFD,	  MMR_ARG_MAPPING,   MMR_ARG_OFF,      \
			 MMR_ARG_LEN,	  ARG_IO_MODE(list), ARG_ORWAKE,       \
			 ARG_FROM},                                            \
		.call = {.nr = -1},                                            \
		.calls = "ioctl",                                              \
		.needs = (need),                                               \
		.run = MMR_RUN(run_##op),                                      \
		.emit = MMR_EMIT(emit_##op),                                   \
	}

FILL_OP(uffd_copy, "answer faults with a copy of pages",
	"A page appears under the lock for reading, while the range is "
	"unmapped, forked or answered by another.",
	copy_modes, "syscall=userfaultfd");
IO_OP(uffd_zeropage, "answer faults with pages of zeros",
      "A page appears, while the range is unmapped, forked or answered by "
      "another.",
      zeropage_modes, "syscall=userfaultfd");
IO_OP(uffd_continue, "answer minor faults with the page that the file has",
      "Maps a page of the file, while the file is truncated or punched.",
      continue_modes, "syscall=userfaultfd feature=uffd_minor_shmem");
FILL_OP(uffd_move, "answer faults with pages taken from another mapping",
	"Takes pages out of one mapping and puts them into another, while "
	"both are written, forked, swapped out or unmapped.",
	move_modes, "syscall=userfaultfd feature=uffd_move");
IO_OP(uffd_poison, "answer faults with SIGBUS, now and later",
      "Markers in page tables, beside faults, forks and unmapping.",
      poison_modes, "syscall=userfaultfd feature=uffd_poison");
RANGE_OP(uffd_wake, "wake who waits in a range, to fault again",
	 "A wake that goes lost leaves a fault waiting for ever.");
IO_OP(uffd_writeprotect, "write-protect pages of a range, or stop that",
      "Entries lose their write bit, and the TLB is told late, beside "
      "writers, forks and migration.",
      wp_modes, "syscall=userfaultfd feature=uffd_wp");
RANGE_OP(uffd_unregister, "take a range back from a userfaultfd",
	 "Splits and merges mappings and wakes who waits, beside new faults.");

/* WAIT, as it waits for the case's own faults, and not for long. */
const struct mmr_op mmr_op_uffd_read = {
	.id = MMR_OP_uffd_read,
	.name = "uffd_read",
	.help = "read the next event: the page that a fault wants, as a ref",
	.race = "The answer comes from another thread, at any time after the "
		"fault.",
	.class = MMR_CLASS_WAIT,
	.makes = MMR_REF_MAPPING,
	.nargs = 3,
	.args = {MMR_ARG_UFFD,
		 {.name = "len",
		  .help = "size of a page, the base one when left out",
		  .type = MMR_ARG_SIZE,
		  .flags = MMR_ARG_OPT,
		  .min = 4096,
		  .max = 1LL << 30,
		  .def = -1},
		 {.name = "within",
		  .help = "how long it waits for one",
		  .type = MMR_ARG_TIME,
		  .flags = MMR_ARG_OPT,
		  .max = READ_MAX,
		  .def = READ_DEF}},
	.call = {.nr = -1},
	.calls = "ppoll read",
	.needs = "syscall=userfaultfd",
	.run = MMR_RUN(run_uffd_read),
	.emit = MMR_EMIT(emit_uffd_read),
};
