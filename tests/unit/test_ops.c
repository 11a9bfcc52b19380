// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What operations do, seen from outside: each row is a few statements that a
 * process of mmrace-child runs before it goes to sleep, and what /proc shows
 * of its memory then.  Results that a statement must have stand behind its
 * arrow.
 *
 * Red when: an operation makes another call than it says, or with other
 * arguments (a part that is not the part, a flag that is another).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../ops/compile.h"
#include "../../ops/needs.h"
#include "../../triage/spawn.h"

#define ARENA 0x1000000000UL /* MMR_ARENA_BASE of child.h */
#define G (1UL << 30)
#define P 4096UL
#define LIMIT_MS 20000

enum what {
	END,
	SET,	  /* the byte there is not 0 */
	ZERO,	  /* it is 0 */
	GONE,	  /* nothing is mapped there */
	MAPPED,	  /* something is, and its line of maps has the text */
	SMAPS,	  /* its smaps have the text in a line */
	NO_SMAPS, /* they have not */
	KB,	  /* its smaps have a line text with that many kB */
	NUMA,	  /* its line of numa_maps has the text */
	BIT,	  /* pagemap has bit number value set */
	NO_BIT,	  /* it has not */
};

struct look {
	enum what what;
	uint64_t at; /* in the arena */
	const char *text;
	int64_t value;
	int process; /* of the proc slots: 0 main, 1 what it spawned first */
};

#define LOOKS 6
struct row {
	const char *name;
	const char *body; /* of thread A of process main */
	struct look look[LOOKS];
	const char *extra; /* other threads and processes, in front */
};

#define MAP1                                                                   \
	"m0 = mmap len=8p prot=rw flags=private|anon at=1G -> 0\n"             \
	"write m0 step=1p -> 0\n"
#define MAP2 "m1 = mmap len=8p prot=rw flags=private|anon at=2G -> 0\n"
#define FILE1                                                                  \
	"f0 = memfd_create -> 0\n"                                             \
	"ftruncate f0 len=8p -> 0\n"                                           \
	"m0 = mmap len=8p prot=rw flags=shared at=1G fd=f0 -> 0\n"
#define UFFD1(features)                                                        \
	"m0 = mmap len=8p prot=rw flags=private|anon at=1G -> 0\n" MAP2        \
	"write m1 step=1p -> 0\n"                                              \
	"u0 = userfaultfd" features " -> 0\n"                                  \
	"uffd_register u0 m0 mode=missing|wp -> 0\n"
/* T waits for its page, and whoever reads the event has it as e0. */
#define UFFD_FAULT                                                             \
	UFFD1("") "t0 = thread_spawn body=T\ne0 = uffd_read u0 within=5s -> 0\n"
#define READS(r) "  thread T template\n    read m0 off=5p len=1p -> " r "\n"
#define KID                                                                    \
	"process kid template\n  thread K\n    write m0 off=4p len=1p step=1p" \
	" -> 0\n    signal born\n    pause\n\n"
#define SPAWN "p0 = process_spawn kid -> 0\nwait born\n"

/* What is left out of a row is 0 or NULL. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct row rows[] = {
	{"mmap of a part of a file",
	 FILE1 "write m0 off=2p len=1 -> 0\n"
	       "m1 = mmap len=1p prot=r flags=shared at=2G fd=f0 foff=2p -> 0\n"
	       "m2 = mmap len=8p prot=rw flags=private at=3G fd=f0 -> 0\n"
	       "write m2 off=3p len=1 -> 0\n",
	 {{SET, 2 * G}, {SET, 3 * G + 3 * P}, {ZERO, G + 3 * P}}},
	{"mmap fixed_noreplace keeps what is there",
	 MAP1 "mmap len=1p prot=rw flags=private|anon|fixed_noreplace at=1G -> "
	      "EEXIST\n"
	      "mmap len=1p prot=r flags=private|anon|fixed at=262145p -> 0\n",
	 {{SET, G}, {MAPPED, G + P, "r--p"}}},
	{"munmap of a part",
	 MAP1 "munmap m0 off=1p len=2p -> 0\n",
	 {{SET, G}, {GONE, G + P}, {GONE, G + 2 * P}, {SET, G + 3 * P}}},
	{"mprotect of a part",
	 MAP1 "mprotect m0 prot=r off=1p len=1p -> 0\n",
	 {{MAPPED, G, "rw-p"}, {MAPPED, G + P, "r--p"}}},
	{"madvise dontneed",
	 MAP1 "madvise m0 dontneed off=1p len=1p -> 0\n",
	 {{SET, G}, {ZERO, G + P}, {SET, G + 2 * P}}},
	{"madvise remove",
	 FILE1 "write m0 step=1p\nmadvise m0 remove off=1p "
	       "len=1p -> 0\n",
	 {{SET, G}, {ZERO, G + P}, {SET, G + 2 * P}}},
	{"madvise guards",
	 MAP1 "madvise m0 guard_install off=1p len=2p -> 0\n"
	      "read m0 off=1p len=1p -> EFAULT\n"
	      "madvise m0 guard_remove off=2p len=1p -> 0\n"
	      "read m0 off=2p len=1p -> 0\n",
	 {{SET, G}}},
	{"madvise populate_write",
	 MAP2 "madvise m1 populate_write off=1p len=1p -> 0\n",
	 {{NO_BIT, 2 * G, "", 63}, {BIT, 2 * G + P, "", 63}}},
	{"madvise leaves marks",
	 MAP1 "madvise m0 dontfork len=1p -> 0\n"
	      "madvise m0 dontdump off=1p len=1p -> 0\n"
	      "madvise m0 wipeonfork off=2p len=1p -> 0\n"
	      "madvise m0 mergeable off=3p len=1p -> 0\n"
	      "madvise m0 nohugepage off=4p len=1p -> 0\n",
	 {{SMAPS, G, " dc"},
	  {SMAPS, G + P, " dd"},
	  {SMAPS, G + 2 * P, " wf"},
	  {SMAPS, G + 3 * P, " mg"},
	  {SMAPS, G + 4 * P, " nh"}}},
	{"a word over a page border",
	 "m0 = mmap len=8p prot=rw flags=private|anon at=1G\n"
	 "write m0 off=4093 len=8 step=8 width=8 -> 0\n",
	 {{SET, G + 4093}, {BIT, G + P, "", 63}, {NO_BIT, G + 2 * P, "", 63}}},
	{"a touch below a mapping that grows",
	 "g0 = mmap len=1p prot=rw flags=private|anon|growsdown at=1G -> 0\n"
	 "write g0 step=1p below=16p -> 0\n",
	 {{SET, G - 16 * P}, {SET, G - P}, {GONE, G - 18 * P}}},
	{"mremap moves content",
	 MAP1 "m0 = mremap m0 new=16p flags=maymove|fixed at=3G -> 0\n"
	      "write m0 off=15p len=1 -> 0\n",
	 {{GONE, G}, {SET, 3 * G + 7 * P}, {SET, 3 * G + 15 * P}}},
	{"mremap of a part, the rest stays",
	 MAP1 "m1 = mremap m0 off=2p len=2p flags=maymove|fixed at=3G -> 0\n",
	 {{SET, G}, {GONE, G + 2 * P}, {SET, G + 4 * P}, {SET, 3 * G + P}}},
	{"mremap dontunmap",
	 MAP1 "m1 = mremap m0 flags=maymove|fixed|dontunmap at=3G -> 0\n",
	 {{MAPPED, G, "rw-p"}, {ZERO, G}, {SET, 3 * G}}},
	{"mlock",
	 MAP2 "mlock m1 off=1p len=2p -> 0\n",
	 {{NO_BIT, 2 * G, "", 63},
	  {BIT, 2 * G + P, "", 63},
	  {KB, 2 * G + P, "Locked:", 8},
	  {SMAPS, 2 * G + P, " lo"},
	  {NO_SMAPS, 2 * G, " lo"}}},
	{"mlock2 onfault",
	 MAP2 "mlock2 m1 flags=onfault -> 0\n",
	 {{NO_BIT, 2 * G, "", 63}, {SMAPS, 2 * G, " lo"}}},
	{"munlock",
	 MAP2 "mlock m1 -> 0\nmunlock m1 off=1p len=2p -> 0\n",
	 {{SMAPS, 2 * G, " lo"}, {NO_SMAPS, 2 * G + P, " lo"}}},
	{"mlockall",
	 "mlockall flags=future -> 0\n" MAP2,
	 {{BIT, 2 * G, "", 63}, {SMAPS, 2 * G, " lo"}}},
	{"munlockall",
	 MAP1 "mlock m0 -> 0\nmunlockall -> 0\n",
	 {{NO_SMAPS, G, " lo"}}},
	{"msync looks at locked pages, and at all of its part",
	 FILE1 "mlock m0 len=1p -> 0\n"
	       "msync m0 flags=invalidate len=1p -> EBUSY\n"
	       "munmap m0 off=2p len=1p\n"
	       "msync m0 off=3p -> 0\n"
	       "msync m0 off=1p -> ENOMEM\n",
	 {{GONE, G + 2 * P}}},
	{"mincore looks at all of its part",
	 MAP1 "mincore m0 -> 0\nmunmap m0 off=2p len=1p\n"
	      "mincore m0 len=2p -> 0\nmincore m0 -> ENOMEM\n",
	 {{GONE, G + 2 * P}}},
	{"fallocate punches a hole",
	 FILE1 "write m0 step=1p\n"
	       "fallocate f0 mode=keep_size|punch_hole off=1p len=2p -> 0\n",
	 {{SET, G}, {ZERO, G + P}, {ZERO, G + 2 * P}, {SET, G + 3 * P}}},
	{"fallocate makes a file longer",
	 "f0 = memfd_create\nm0 = mmap len=8p prot=rw flags=shared at=1G "
	 "fd=f0\n"
	 "write m0 len=1 -> EIO\nfallocate f0 len=8p -> 0\nwrite m0 step=1p -> "
	 "0\n",
	 {{SET, G + 7 * P}}},
	{"remap_file_pages",
	 FILE1 "write m0 off=3p len=1\n"
	       "remap_file_pages m0 pgoff=3 len=1p -> 0\n",
	 {{SET, G}, {ZERO, G + P}}},
	{"mseal",
	 MAP1 "mseal m0 off=1p len=1p -> 0\nmunmap m0 -> EPERM\n"
	      "mprotect m0 prot=r off=1p len=1p -> EPERM\n",
	 {{SET, G}, {MAPPED, G + P, "rw-p"}}},
	{"process_madvise",
	 /* Fresh pages wait on the list of their CPU, where advice passes them
	  * over: moving any (also to where they are) empties all lists. */
	 MAP1 SPAWN "mbind m0 mode=bind nodes=n0 flags=move -> 0\n"
		    "process_madvise p0 m0 cold -> 0\n",
	 {{KB, G, "Referenced:", 0, 1}},
	 /* Pages that its parent maps too are left as they are: it has to have
	  * all of them for itself. */
	 "process kid template\n  thread K\n    write m0 step=1p -> 0\n"
	 "    signal born\n    pause\n\n"},
	{"process_vm_readv",
	 "m0 = mmap len=8p prot=rw flags=private|anon at=1G\n" MAP2 SPAWN
	 "process_vm_readv p0 m1 m0 off=4p len=1p -> 0\n",
	 {{ZERO, G + 4 * P}, {SET, 2 * G + 4 * P}},
	 KID},
	{"process_vm_writev",
	 "m0 = mmap len=8p prot=rw flags=private|anon at=1G\n" MAP2 SPAWN
	 "write m1 step=1p\n"
	 "process_vm_writev p0 m1 m0 off=1p len=1p -> 0\n",
	 {{ZERO, G + P}, {SET, G + P, "", 0, 1}, {ZERO, G + 2 * P, "", 0, 1}},
	 KID},
	{"membarrier wants to be asked first",
	 "membarrier private_expedited -> EPERM\n"
	 "membarrier register_private_expedited -> 0\n"
	 "membarrier private_expedited -> 0\n",
	 {{END}}},
	{"mbind",
	 MAP1 "mbind m0 mode=bind nodes=n0 flags=move off=1p len=1p "
	      "-> 0\n",
	 {{NUMA, G + P, "bind:0"}, {NUMA, G, "default"}}},
	{"set_mempolicy",
	 "set_mempolicy mode=bind nodes=n0 how=static_nodes -> 0\n" MAP1,
	 {{NUMA, G, "bind=static:0"}}},
	{"set_mempolicy_home_node wants a policy that has one",
	 MAP1 "mbind m0 mode=interleave nodes=n0 len=1p -> 0\n"
	      "mbind m0 mode=bind nodes=n0 off=1p len=1p -> 0\n"
	      "set_mempolicy_home_node m0 node=0 len=1p -> EOPNOTSUPP\n"
	      "set_mempolicy_home_node m0 node=0 off=1p len=1p -> 0\n",
	 {{NUMA, G + P, "bind:0"}}},
	{"move_pages",
	 MAP1 "move_pages m0 -> 0\nmove_pages m0 to=0 -> 0\n"
	      "move_pages m0 to=1000 -> ENODEV\n",
	 {{SET, G}}},
	{"uffd_register", UFFD1(""), {{SMAPS, G, " um"}, {SMAPS, G, " uw"}}},
	{"uffd_unregister",
	 UFFD1("") "uffd_unregister u0 m0 len=4p -> 0\n",
	 {{NO_SMAPS, G, " um"}, {SMAPS, G + 4 * P, " um"}}},
	{"uffd_copy",
	 UFFD1("") "uffd_copy u0 m0 off=1p len=2p from=m1 -> 0\n",
	 {{NO_BIT, G, "", 63}, {SET, G + P}, {SET, G + 2 * P}}},
	{"uffd_zeropage",
	 UFFD1("") "uffd_zeropage u0 m0 len=1p -> 0\n"
		   "read m0 len=1p -> 0\n",
	 {{BIT, G, "", 63}, {ZERO, G}, {NO_BIT, G + P, "", 63}}},
	{"uffd_move",
	 UFFD1(" features=move") "uffd_move u0 m0 off=3p len=1p from=m1 -> 0\n",
	 {{SET, G + 3 * P}, {NO_BIT, 2 * G, "", 63}, {SET, 2 * G + P}}},
	{"uffd_poison",
	 UFFD1(" features=poison") "uffd_poison u0 m0 len=1p -> 0\nread m0 "
				   "len=1p -> EIO\n",
	 {{END}}},
	{"uffd_writeprotect",
	 UFFD1("") "uffd_copy u0 m0 from=m1 -> 0\n"
		   "uffd_writeprotect u0 m0 off=1p len=2p mode=wp -> 0\n"
		   "uffd_writeprotect u0 m0 off=2p len=1p -> 0\n",
	 {{NO_BIT, G, "", 57},
	  {BIT, G + P, "", 57},
	  {NO_BIT, G + 2 * P, "", 57}}},
	{"uffd_continue",
	 "f0 = memfd_create\nftruncate f0 len=8p\n"
	 "m1 = mmap len=8p prot=rw flags=shared at=2G fd=f0\n"
	 "write m1 step=1p\n"
	 "m0 = mmap len=8p prot=rw flags=shared at=1G fd=f0\n"
	 "u0 = userfaultfd features=minor_shmem -> 0\n"
	 "uffd_register u0 m0 mode=minor -> 0\n"
	 "uffd_continue u0 m0 off=1p len=1p -> 0\n",
	 {{NO_BIT, G, "", 63}, {BIT, G + P, "", 63}, {SET, G + P}}},
	{"uffd_read, and an answer by copy",
	 UFFD_FAULT "uffd_copy u0 e0 from=m1 -> 0\nthread_join t0\n",
	 {{SET, G + 5 * P}, {NO_BIT, G + 4 * P, "", 63}}, READS("0")},
	{"uffd_wake lets a fault try again",
	 UFFD_FAULT "uffd_copy u0 m0 off=5p len=1p mode=dontwake from=m1 -> 0\n"
		    "uffd_wake u0 e0 -> 0\nthread_join t0\n",
	 {{SET, G + 5 * P}}, READS("0")},
	{"an answer that fails wakes, when it shall",
	 UFFD_FAULT "munmap m0 -> 0\nuffd_copy u0 e0 from=m1 orwake -> ENOENT\n"
		    "thread_join t0\n",
	 {{GONE, G + 5 * P}, {MAPPED, 2 * G, "rw-p"}}, READS("EFAULT")},
	{"uffd_read that finds no event leaves no ref",
	 UFFD_FAULT "uffd_copy u0 e0 from=m1 -> 0\nthread_join t0\n"
		    "e0 = uffd_read u0 within=0 -> EAGAIN\nmunmap e0\n",
	 {{SET, G + 5 * P}}, READS("0")},
	{"close of a userfaultfd lets faults go",
	 UFFD1("") "close u0 -> 0\nwrite m0 len=1p step=1p -> 0\n",
	 {{SET, G}, {NO_SMAPS, G, " um"}}},
	{"events of unmapped memory are read",
	 UFFD1(" features=event_remove") "t0 = thread_spawn body=T\n"
					 "e0 = uffd_read u0 within=5s -> 0\n"
					 "thread_join t0\nmunmap e0 -> 0\n",
	 {{GONE, G + 2 * P}, {MAPPED, G, "rw-p"}, {MAPPED, G + 4 * P, "rw-p"}},
	 "  thread T template\n    madvise m0 dontneed off=2p len=2p -> 0\n"},
	{"mem_write onto a read-only mapping, mem_read",
	 "m0 = mmap len=2p prot=r flags=private|anon at=1G\n"
	 "c0 = proc_open mem -> 0\nwrite m0 len=1p step=1p -> EFAULT\n"
	 "mem_write c0 m0 len=16 -> 0\nmem_read c0 m0 -> 0\n"
	 "munmap m0\nmem_read c0 m0 -> EIO\n"
	 "m0 = mmap len=2p prot=r flags=private|anon at=1G\n"
	 "mem_write c0 m0 off=1p len=16 -> 0\n",
	 {{ZERO, G}, {SET, G + P}, {SET, G + P + 15}, {ZERO, G + P + 16}}},
	{"clear_refs",
	 MAP1 "c0 = proc_open clear_refs -> 0\n"
	      "clear_refs c0 all -> 0\n",
	 {{KB, G, "Referenced:", 0}}},
	{"/proc files are read, each by its op",
	 MAP1 SPAWN "c0 = proc_open smaps -> 0\nproc_read c0 -> 0\n"
		    "c1 = proc_open pagemap -> 0\npagemap_read c1 m0 -> 0\n"
		    "proc_read c1 -> EINVAL\npagemap_read c0 m0 -> EINVAL\n"
		    "c2 = proc_open maps p=p0 -> 0\nproc_read c2 -> 0\n"
		    "c3 = proc_open mem p=p0 -> EPERM\n",
	 {{SET, G}},
	 KID},
	{"a ring has one set of buffers",
	 MAP1 "r0 = io_uring_setup -> 0\nio_uring_register r0 m0 -> 0\n"
	      "io_uring_register r0 m0 -> EBUSY\n"
	      "io_uring_unregister r0 -> 0\nio_uring_unregister r0 -> ENXIO\n"
	      "io_uring_register r0 m0 -> 0\nclose r0 -> 0\n"
	      "munmap m0\nr0 = io_uring_setup -> 0\n"
	      "io_uring_register r0 m0 -> EFAULT\n",
	 {{GONE, G}}},
	{"a PI futex has one owner",
	 "futex_unlock_pi w -> EPERM\nfutex_lock_pi w -> 0\n"
	 "futex_lock_pi w -> EDEADLK\nfutex_unlock_pi w -> 0\n",
	 {{END}}},
	{"an owner's death wakes who waits for it",
	 "m0 = mmap len=1p prot=rw flags=private|anon at=1G\n"
	 "t0 = thread_spawn body=T\nwait owned\nrobust_await w -> 0\n"
	 "t1 = thread_spawn body=T\nthread_join t1\n",
	 {{SET, G}},
	 "  thread T template\n    robust_own m0 w -> 0|EBUSY\n"
	 "    signal owned\n    delay 5ms\n"},
	{"a requeued waiter wakes by the other futex",
	 "t0 = thread_spawn body=T\nloop 400\nfutex_requeue v w -> 0\n"
	 "delay 100us\nend\nfutex_wake w count=9 -> 0\nfutex_wake v count=9\n"
	 "thread_join t0\n",
	 {{END}},
	 "  thread T template\n    futex_wait v -> 0|EAGAIN\n"},
};

#pragma GCC diagnostic pop

static char child[4096];

/* Statements of a row, indented for a thread. */
static char *case_text(const struct row *r)
{
	bool process = r->extra && !strncmp(r->extra, "process", 7);
	char *text = NULL, *line, *body, *save = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	body = strdup(r->body);
	assert_non_null(f);
	assert_non_null(body);
	fprintf(f, "mmrace-case 1\n\n%sprocess main\n%s  thread A\n",
		process ? r->extra : "", r->extra && !process ? r->extra : "");
	for (line = strtok_r(body, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		fprintf(f, "    %s\n", line);
	/* Somebody has to hold the round open. */
	fprintf(f, "    pause\n  thread Z\n    wait never\n");
	fclose(f);
	free(body);
	return text;
}

static FILE *proc_file(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

/* The lines of the mapping at that address in maps, smaps or numa_maps; empty
 * when there is none. */
static void lines_of(pid_t pid, const char *name, uint64_t at, char *to,
		     size_t n)
{
	FILE *f = proc_file(pid, name);
	uint64_t lo = 0, hi = 0, next;
	char line[512];
	bool in = false;

	to[0] = '\0';
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &lo, &hi) == 2)
			in = at >= lo && at < hi;
		else if (!strcmp(name, "numa_maps") &&
			 sscanf(line, "%" SCNx64 " ", &next) == 1)
			in = next == at; /* a mapping of its own */
		if (in && strlen(to) + strlen(line) < n)
			strcat(to, line);
	}
	fclose(f);
}

static uint64_t pagemap_of(pid_t pid, uint64_t at)
{
	FILE *f = proc_file(pid, "pagemap");
	uint64_t entry = 0;

	assert_non_null(f);
	if (fseeko(f, (off_t)(at / P * 8), SEEK_SET) ||
	    fread(&entry, sizeof(entry), 1, f) != 1)
		entry = 0;
	fclose(f);
	return entry;
}

static int byte_of(pid_t pid, uint64_t at)
{
	char path[64];
	unsigned char b;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = pread(fd, &b, 1, (off_t)at);
	close(fd);
	return n == 1 ? b : -1;
}

/* NULL when it is as the row says, else what there is. */
static const char *look_at(pid_t pid, const struct look *l)
{
	static char text[8192];
	uint64_t at = ARENA + l->at;
	int byte, set;
	char *line;

	switch (l->what) {
	case SET:
	case ZERO:
		byte = byte_of(pid, at);
		snprintf(text, sizeof(text), "byte %d", byte);
		return byte >= 0 && (byte > 0) == (l->what == SET) ? NULL
								   : text;
	case GONE:
	case MAPPED:
		lines_of(pid, "maps", at, text, sizeof(text));
		if (l->what == GONE)
			return text[0] ? text : NULL;
		return strstr(text, l->text) ? NULL : text;
	case SMAPS:
	case NO_SMAPS:
		lines_of(pid, "smaps", at, text, sizeof(text));
		return text[0] && !strstr(text, l->text) ==
					       (l->what == NO_SMAPS)
			       ? NULL
			       : text;
	case KB:
		lines_of(pid, "smaps", at, text, sizeof(text));
		line = strstr(text, l->text);
		return line && strtoll(line + strlen(l->text), NULL, 10) ==
					       l->value
			       ? NULL
			       : text;
	case NUMA:
		lines_of(pid, "numa_maps", at, text, sizeof(text));
		return strstr(text, l->text) ? NULL : text;
	case BIT:
	case NO_BIT:
		set = (int)(pagemap_of(pid, at) >> l->value & 1);
		snprintf(text, sizeof(text), "bit %d is %d", (int)l->value,
			 set);
		return set == (l->what == BIT) ? NULL : text;
	case END:
		break;
	}
	return NULL;
}

static void nap(void)
{
	nanosleep(&(struct timespec){0, 2000000}, NULL);
}

/* Waits until thread A sleeps in its pause; false: it does not. */
static bool at_rest(struct mmr_area *a)
{
	struct mmr_thread_slot *t =
		MMR_AREA_AT(a, a->threads_off, struct mmr_thread_slot);
	int ms;

	for (ms = 0; ms < LIMIT_MS; ms += 2) {
		if (atomic_load(&t[0].paused))
			return true;
		if (atomic_load(&a->state) >= MMR_STATE_DONE)
			return false;
		nap();
	}
	return false;
}

/* Statements that ended as they should not. */
static void check_results(const struct mmr_case *c, struct mmr_area *a,
			  const char *name)
{
	struct mmr_stat *s = MMR_AREA_AT(a, a->stats_off, struct mmr_stat);
	char *text;
	int i;

	for (i = 0; i < mmr_case_count(c); i++) {
		if (!atomic_load(&s[i].unexpected))
			continue;
		text = mmr_case_print_stmt(mmr_case_stmt(c, i));
		fail_msg("%s: %s: errno %d", name, text,
			 atomic_load(&s[i].errs[0].err));
	}
}

static void check_looks(const struct row *r, struct mmr_area *a)
{
	struct mmr_proc_slot *p =
		MMR_AREA_AT(a, a->procs_off, struct mmr_proc_slot);
	const char *found;
	int i;

	for (i = 0; i < LOOKS && r->look[i].what != END; i++) {
		found = look_at(atomic_load(&p[r->look[i].process].host_pid),
				&r->look[i]);
		if (found)
			fail_msg("%s: look %d: %s", r->name, i, found);
	}
}

static void run_row(void **state)
{
	const struct row *r = *state;
	struct mmr_compile_opts opts = {.seed = 7};
	char *text = case_text(r), why[300];
	struct mmr_diag diag = {0};
	struct mmr_spawned s = {0};
	struct mmr_case *c = NULL;
	struct mmr_area *area;
	int fd, rc;

	rc = mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL);
	if (rc)
		fail_msg("%s: %d:%d: %s\n%s", r->name, diag.line, diag.col,
			 diag.text, text);
	free(text);
	if (mmr_needs_check(c, false, why, sizeof(why))) {
		print_message("%s: %s\n", r->name, why);
		mmr_case_free(c);
		skip();
	}
	assert_int_equal(mmr_compile(c, &opts, &area, &fd, &diag), 0);
	assert_int_equal(mmr_spawn_child(child, fd, &s), 0);
	rc = at_rest(area);
	if (rc) {
		check_results(c, area, r->name);
		check_looks(r, area);
	}
	atomic_store(&area->ctl, MMR_CTL_END);
	mmr_spawn_end(&s, atomic_load(&area->supervisor_host_pid), 5000000000);
	if (!rc)
		fail_msg("%s: it does not come to rest: %s", r->name,
			 area->fail_text);
	mmr_area_close(area, fd);
	mmr_case_free(c);
}

#define NROWS (sizeof(rows) / sizeof(rows[0]))

int main(void)
{
	static struct CMUnitTest tests[NROWS];
	ssize_t n = readlink("/proc/self/exe", child, sizeof(child) - 32);
	size_t i;
	int rc;

	if (n <= 0)
		return 1;
	child[n] = '\0';
	strcpy(strrchr(child, '/'), "/../mmrace-child");
	for (i = 0; i < NROWS; i++)
		tests[i] = (struct CMUnitTest){
			.name = rows[i].name,
			.test_func = run_row,
			.initial_state = (void *)(uintptr_t)&rows[i]};
	if (mmr_spawn_start())
		return 1;
	rc = cmocka_run_group_tests_name("ops", tests, NULL, NULL);
	mmr_spawn_stop();
	return rc;
}
