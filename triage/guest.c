/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of a throw-away guest: boot, wait for the agent's word, save; then
 * for each run a fresh copy of that state (or the same one while it is
 * healthy), a request, an answer or what became of it.
 */
#include "guest_image.h"
#include "guest_member.h"
#include "guest_wire.h"
#include "scale.h"
#include "settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ops/clock.h"

#define SEC 1000000000LL
/* Wide: an emulated guest on a loaded machine. */
#define BOOT_LIMIT (120 * SEC)
/* A /dev/kvm that is there may not work: a kernel under it that prints nothing
 * for that long does not run. */
#define KVM_SILENCE (3 * SEC)
#define BOOT_TRIES 3 /* until a saved state can be restored */

static void tools_dir(const struct mmr_guest_opts *o, char *dir, size_t n)
{
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[len > 0 ? len : 0] = '\0';
	snprintf(dir, n, "%s", o->tools ? o->tools : dirname(exe));
}

/* An initramfs with the static programs of DIR/guest-ARCH/. */
static int find_tools(const struct mmr_guest_opts *o, const char *arch,
		      const char *initrd, char *text, size_t n)
{
	char dir[PATH_MAX], mmrace[PATH_MAX + 64], child[PATH_MAX + 64];
	static const char *const where[] = {"%s/guest-%s/%s",
					    "%s/../libexec/mmrace/guest-%s/%s"};

	tools_dir(o, dir, sizeof(dir));
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(mmrace, sizeof(mmrace), where[i], dir, arch, "mmrace");
		snprintf(child, sizeof(child), where[i], dir, arch,
			 "mmrace-child");
#pragma GCC diagnostic pop
		if (!access(mmrace, R_OK) && !access(child, R_OK))
			return mmr_guest_initramfs(initrd, mmrace, child,
						   o->program, text, n);
	}
	snprintf(text, n,
		 "no static mmrace for %s guests beside the executable (%s): "
		 "run `make guest%s`",
		 arch, dir, strcmp(arch, "aarch64") ? "" : "-arm64");
	return -ENOENT;
}

/* Waits for the agent's "ready" and keeps what it says. */
int mmr_guest_wait_ready(struct mmr_guest *g, struct mmr_guest_member *m,
			 int64_t limit, char *text, size_t n)
{
	json_t *j = NULL;
	const char *s;
	size_t len;
	char *data;
	int err = mmr_wire_read(m->qemu.line, 0, mmr_clock_monotonic() + limit,
				&data, &len);

	if (!err) {
		j = json_loadb(data, len, 0, NULL);
		free(data);
	}
	s = json_string_value(json_object_get(j, "ready"));
	if (!s) {
		char *con = mmr_qemu_console(&m->conf, &m->qemu, 300);

		if (err == -EINTR)
			snprintf(text, n, "interrupted");
		else
			snprintf(text, n, "the guest did not come up (%s): %s",
				 strerror(err ? -err : EPROTO), con ? con : "");
		free(con);
		json_decref(j);
		return err ? err : -EPROTO;
	}
	/* From boot() on it is read without a lock, and later guests, started
	 * by any job, say the same. */
	if (!g->stats.kernel[0]) {
		snprintf(g->stats.kernel, sizeof(g->stats.kernel), "%s", s);
		g->stats.scale = json_number_value(json_object_get(j, "scale"));
	}
	json_decref(j);
	return 0;
}

/* Whether the kernel says anything at all within the limit. */
static bool speaks(struct mmr_guest_member *m, int64_t limit)
{
	int64_t end = mmr_clock_monotonic() + limit;
	bool yes = false;

	while (!yes && mmr_clock_monotonic() < end &&
	       !mmr_engine_interrupted()) {
		char *con = mmr_qemu_console(&m->conf, &m->qemu, 100);

		yes = con && *con;
		free(con);
		usleep(20000);
	}
	return yes;
}

/* Boots the first member and saves its state. */
static int boot_and_save(struct mmr_guest *g, char *text, size_t n)
{
	struct mmr_guest_member *m = &g->m[0];
	int64_t t = mmr_clock_monotonic();
	struct stat st;
	int err;

	m->conf.kvm = !strcmp(m->conf.arch,
#if defined(__aarch64__)
			      "aarch64"
#else
			      "x86_64"
#endif
			      ) &&
		      !access("/dev/kvm", R_OK | W_OK);
	for (;;) {
		err = mmr_qemu_start(&m->conf, false, &m->qemu, text, n);
		if (!err && m->conf.kvm && !speaks(m, KVM_SILENCE))
			err = -ETIMEDOUT;
		if (!err)
			err = mmr_guest_wait_ready(g, m, BOOT_LIMIT, text, n);
		if (!err || !m->conf.kvm || mmr_engine_interrupted())
			break;
		/* The device is there and the guest does not run under it
		 * (nested virtualisation half set up): emulate. */
		mmr_qemu_end(&m->qemu);
		m->conf.kvm = false;
		t = mmr_clock_monotonic();
	}
	if (err)
		return err;
	g->stats.boot_ns = mmr_clock_monotonic() - t;
	snprintf(g->stats.accel, sizeof(g->stats.accel), "%s",
		 m->conf.kvm ? "kvm" : "tcg");
	if (!m->conf.kvm && g->stats.scale < MMR_SCALE_EMULATED)
		g->stats.scale = MMR_SCALE_EMULATED;
	t = mmr_clock_monotonic();
	err = mmr_qemu_save(&m->conf, &m->qemu);
	g->stats.save_ns = mmr_clock_monotonic() - t;
	if (!err && !stat(m->conf.state, &st)) {
		g->stats.state_bytes = st.st_size;
		g->has_state = true;
	}
	mmr_qemu_end(&m->qemu);
	return 0;
}

/*
 * The state for all.  It is tried out at once: a guest that was saved in an
 * unlucky moment may hang whenever it is restored.
 */
static int boot(struct mmr_guest *g, char *text, size_t n)
{
	struct mmr_guest_member *m = &g->m[0];
	int err = 0;

	for (int i = 0; i < BOOT_TRIES && !mmr_engine_interrupted(); i++) {
		err = boot_and_save(g, text, n);
		/* Without a saved state every run is a boot: slow, not wrong.
		 */
		if (err || !g->has_state)
			break;
		err = mmr_guest_restore(g, m, text, n);
		if (!err)
			break;
		g->has_state = false;
	}
	if (mmr_engine_interrupted()) {
		snprintf(text, n, "interrupted");
		return -EINTR;
	}
	for (int i = 1; i < g->n; i++)
		g->m[i].conf.kvm = m->conf.kvm;
	return err;
}

/* A folder with files, and folders of files, below parent.  By descriptor and
 * never along a symbolic link: it may lie in a folder that all can write. */
static void remove_all(int parent, const char *name, int depth)
{
	int fd = openat(parent, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (fd >= 0 && !d)
		close(fd);
	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(fd, e->d_name, 0) && depth)
			remove_all(fd, e->d_name, depth - 1);
	}
	if (d)
		closedir(d);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* What our own runners left that were killed; their QEMU died with them. */
static void sweep(const char *tmp)
{
	struct dirent *e;
	DIR *d = opendir(tmp);
	struct stat st;
	int pid;

	while (d && (e = readdir(d))) {
		if (sscanf(e->d_name, "mmrace-guest-%d-", &pid) != 1 ||
		    !kill(pid, 0) || errno != ESRCH)
			continue;
		if (!fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISDIR(st.st_mode) && st.st_uid == geteuid())
			remove_all(dirfd(d), e->d_name, 1);
	}
	if (d)
		closedir(d);
}

/* A folder for all, one for each member below it. */
static int make_dirs(struct mmr_guest *g, char *text, size_t n)
{
	const char *tmp = getenv("TMPDIR");

	tmp = tmp ? tmp : "/tmp";
	sweep(tmp);
	snprintf(g->dir, sizeof(g->dir), "%.200s/mmrace-guest-%d-XXXXXX", tmp,
		 (int)getpid());
	if (!mkdtemp(g->dir)) {
		int err = -errno;

		snprintf(text, n, "cannot make %s: %s", g->dir, strerror(-err));
		g->dir[0] = '\0';
		return err;
	}
	for (int i = 0; i < g->n; i++) {
		struct mmr_qemu_conf *c = &g->m[i].conf;

		snprintf(c->dir, sizeof(c->dir), "%.240s/%d", g->dir, i);
		snprintf(c->state, sizeof(c->state), "%s/state", g->dir);
		snprintf(c->initrd, sizeof(c->initrd), "%s/initrd", g->dir);
		if (mkdir(c->dir, 0700))
			return -errno;
	}
	return 0;
}

static int guest_mib(const struct mmr_guest_opts *o)
{
	return o->mem_mib ? o->mem_mib : 2048;
}

/* The kernel's file and what it is for. */
static int find_kernel(const struct mmr_guest_opts *o, struct mmr_guest *g,
		       char *text, size_t n)
{
	struct mmr_qemu_conf *first = &g->m[0].conf;
	const char *cache = getenv("XDG_CACHE_HOME"), *arch;
	char dir[300];
	int err;

	snprintf(dir, sizeof(dir), "%.280s/mmrace",
		 cache ? cache : "/var/cache");
	err = mmr_guest_kernel(o->kernel, o->arch, dir, first->kernel,
			       sizeof(first->kernel), text, n);
	if (err)
		return err;
	arch = mmr_guest_kernel_arch(first->kernel);
	if (!arch) {
		snprintf(text, n, "%s is no x86-64 bzImage and no arm64 Image",
			 first->kernel);
		return -EINVAL;
	}
	for (int i = 0; i < g->n; i++) {
		struct mmr_qemu_conf *c = &g->m[i].conf;

		snprintf(c->arch, sizeof(c->arch), "%s", arch);
		if (i)
			memcpy(c->kernel, first->kernel, sizeof(c->kernel));
		snprintf(c->args, sizeof(c->args), "%s",
			 o->args ? o->args : "");
		c->cpus = o->cpus ? o->cpus : 4;
		c->mem_mib = guest_mib(o);
		c->nodes = o->nodes ? o->nodes : 2;
	}
	return 0;
}

/* As many guests as are wanted, but no more than the memory that is there can
 * hold: each may come to use all of its own. */
static int room_for(const struct mmr_guest_opts *o)
{
	int64_t kb = mmr_meminfo("MemAvailable"), each = guest_mib(o) * 1024LL;
	int n = o->count > 0 ? o->count : 1;

	if (kb > 0 && kb / each < n)
		n = (int)(kb / each);
	return n > 0 ? n : 1;
}

int mmr_guest_open(const struct mmr_guest_opts *o, struct mmr_guest **out,
		   char *text, size_t n)
{
	struct mmr_guest *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	g->n = room_for(o);
	g->m = calloc((size_t)g->n, sizeof(*g->m));
	if (!g->m) {
		free(g);
		return -ENOMEM;
	}
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->freed, NULL);
	g->stats.guests = g->n;
	g->reuse = o->reuse;
	for (int i = 0; i < g->n; i++) {
		g->m[i].qemu.line = g->m[i].qemu.qmp = -1;
		g->m[i].dirty = true;
	}
	err = make_dirs(g, text, n);
	if (!err)
		err = find_kernel(o, g, text, n);
	if (!err)
		err = find_tools(o, g->m[0].conf.arch, g->m[0].conf.initrd,
				 text, n);
	if (!err)
		err = boot(g, text, n);
	if (err) {
		mmr_guest_close(g);
		return err;
	}
	*out = g;
	return 0;
}

void mmr_guest_close(struct mmr_guest *g)
{
	if (!g)
		return;
	for (int i = 0; i < g->n; i++)
		mmr_qemu_end(&g->m[i].qemu);
	if (g->dir[0])
		remove_all(AT_FDCWD, g->dir, 1);
	pthread_cond_destroy(&g->freed);
	pthread_mutex_destroy(&g->lock);
	free(g->m);
	free(g);
}

void mmr_guest_get_stats(struct mmr_guest *g, struct mmr_guest_stats *st)
{
	pthread_mutex_lock(&g->lock);
	*st = g->stats;
	pthread_mutex_unlock(&g->lock);
}
