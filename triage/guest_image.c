/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel and initramfs of a guest.  The initramfs holds no distribution:
 * mmrace is its own init.  Format: Documentation/driver-api/early-userspace/
 * buffer-format.rst of the kernel ("newc").
 */
#include "guest_image.h"
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void cpio_pad(FILE *f)
{
	while (ftell(f) & 3)
		fputc(0, f);
}

static void cpio_entry(FILE *f, const char *name, unsigned int mode,
		       unsigned long size, unsigned int major,
		       unsigned int minor)
{
	static unsigned int ino = 1;

	fprintf(f,
		"070701%08X%08X%08X%08X%08X%08X%08lX%08X%08X%08X%08X%08X%08X",
		ino++, mode, 0, 0, 1, 0, size, 0, 0, major, minor,
		(unsigned int)strlen(name) + 1, 0);
	fwrite(name, strlen(name) + 1, 1, f);
	cpio_pad(f);
}

static int cpio_file(FILE *f, const char *name, const char *path)
{
	char buf[65536];
	struct stat st;
	FILE *in = fopen(path, "re");
	size_t n;
	int err;

	if (!in)
		return -errno;
	if (fstat(fileno(in), &st)) {
		err = -errno;
		fclose(in);
		return err;
	}
	cpio_entry(f, name, S_IFREG | 0755, (unsigned long)st.st_size, 0, 0);
	while ((n = fread(buf, 1, sizeof(buf), in)) > 0)
		fwrite(buf, 1, n, f);
	err = ferror(in) ? -EIO : 0;
	fclose(in);
	cpio_pad(f);
	return err;
}

int mmr_guest_initramfs(const char *path, const char *mmrace, const char *child,
			const char *program, char *text, size_t n)
{
	static const char *const dirs[] = {"proc", "sys", "dev",
					   "tmp",  "run", "root"};
	FILE *f = fopen(path, "we");
	int err;

	if (!f) {
		err = -errno;
		snprintf(text, n, "cannot write %s: %s", path, strerror(-err));
		return err;
	}
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		cpio_entry(f, dirs[i], S_IFDIR | 0755, 0, 0, 0);
	cpio_entry(f, "dev/console", S_IFCHR | 0600, 0, 5, 1);
	err = cpio_file(f, "init", mmrace);
	if (!err)
		err = cpio_file(f, "mmrace-child", child);
	if (!err && program)
		err = cpio_file(f, "program", program);
	if (err)
		snprintf(text, n, "cannot read %s, %s%s%s: %s", mmrace, child,
			 program ? " or " : "", program ? program : "",
			 strerror(-err));
	cpio_entry(f, "TRAILER!!!", 0, 0, 0, 0);
	if (ferror(f) | fclose(f)) {
		snprintf(text, n, "cannot write %s", path);
		err = -EIO;
	}
	return err;
}

const char *mmr_guest_kernel_arch(const char *path)
{
	unsigned char b[0x210] = {0};
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(b, 1, sizeof(b), f) : 0;

	if (f)
		fclose(f);
	if (n >= 0x206 && !memcmp(b + 0x202, "HdrS", 4))
		return "x86_64";
	if (n >= 0x40 && !memcmp(b + 0x38, "ARM\x64", 4))
		return "aarch64";
	return NULL;
}

/* The newest match of a pattern (6.1.0-10 is newer than 6.1.0-9), "" when
 * there is none. */
static void last_match(const char *pattern, char *out, size_t n)
{
	const char *best = NULL;
	glob_t g;

	out[0] = '\0';
	if (glob(pattern, 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		if (!best || strverscmp(g.gl_pathv[i], best) > 0)
			best = g.gl_pathv[i];
	if (best)
		snprintf(out, n, "%s", best);
	globfree(&g);
}

/* Downloads the newest linux-image package of the series into cache.  The
 * plain image for amd64 and arm64 is signed and large; the cloud one is a
 * third of it and has all that a guest needs. */
static int download(const char *version, const char *arch, const char *cache)
{
	static const char script[] =
		"set -e; mkdir -p \"$2/dl\"; cd \"$2/dl\"; v=$1; a=$3; o=\n"
		"if [ \"$a\" != \"$(dpkg --print-architecture)\" ]; then\n"
		"  s=$2/apt-$a; mkdir -p \"$s/state/lists/partial\" "
		"\"$s/cache/archives/partial\"; : >\"$s/state/status\"\n"
		"  o=\"-o APT::Architecture=$a -o APT::Architectures=$a "
		"-o Dir::State=$s/state -o Dir::State::status=$s/state/status "
		"-o Dir::Cache=$s/cache -o APT::Sandbox::User=root\"\n"
		"  apt-get -qq $o update\n"
		"fi\n"
		"p=$(apt-cache $o pkgnames linux-image-$v | "
		"grep -E \"^linux-image-$(echo \"$v\" | sed 's/[.+]/[&]/g')"
		"([^0-9].*)?-cloud-$a$\" | "
		"sort -V | tail -1)\n"
		"[ -n \"$p\" ]\n"
		"apt-get -qq $o -o APT::Sandbox::User=root download \"$p\"\n"
		"dpkg -x \"$(ls -t \"$p\"_*.deb | head -1)\" \"$2/x-$p\"\n"
		"mv \"$2/x-$p\"/boot/vmlinuz-* \"$2/\"; rm -rf \"$2/x-$p\"\n";
	pid_t pid = fork();
	int status = 0, got = 0;

	if (pid == 0) {
		setpgid(0, 0);
		dup2(2, 1);
		execl("/bin/sh", "sh", "-c", script, "sh", version, cache,
		      !strcmp(arch, "aarch64") ? "arm64" : "amd64",
		      (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && !got && !mmr_engine_interrupted()) {
		usleep(20000);
		got = waitpid(pid, &status, WNOHANG);
	}
	if (pid > 0 && !got) {
		kill(-pid, SIGTERM); /* apt-get cleans up behind itself */
		return -EINTR;
	}
	return got == pid && !status ? 0 : -ENOENT;
}

int mmr_guest_kernel(const char *spec, const char *arch, const char *cache,
		     char *path, size_t pn, char *text, size_t n)
{
	const char *v = spec + strlen("debian:");
	const char *deb;
	char pattern[512];

	if (strncmp(spec, "debian:", 7)) {
		snprintf(path, pn, "%s", spec);
		if (access(path, R_OK)) {
			snprintf(text, n,
				 "cannot read the kernel %s: %s (a bzImage, "
				 "or debian:VERSION such as debian:6.1)",
				 spec, strerror(errno));
			return -ENOENT;
		}
		return 0;
	}
	for (const char *s = v; *s; s++) {
		if (!strchr("0123456789.+~-abcdefghijklmnopqrstuvwxyz", *s)) {
			snprintf(text, n, "%s is no Debian version", v);
			return -EINVAL;
		}
	}
	arch = arch ? arch : "x86_64";
	deb = !strcmp(arch, "aarch64") ? "arm64" : "amd64";
	for (int turn = 0; turn < 2; turn++) {
		snprintf(pattern, sizeof(pattern), "/boot/vmlinuz-%s[!0-9]*%s",
			 v, deb);
		last_match(pattern, path, pn);
		if (path[0])
			return 0;
		snprintf(pattern, sizeof(pattern), "%s/vmlinuz-%s[!0-9]*%s",
			 cache, v, deb);
		last_match(pattern, path, pn);
		if (path[0])
			return 0;
		if (turn || download(v, arch, cache))
			break;
	}
	if (mmr_engine_interrupted()) {
		snprintf(text, n, "interrupted");
		return -EINTR;
	}
	snprintf(text, n,
		 "no kernel debian:%s: neither installed in /boot nor to be "
		 "had by apt-get download (apt-get update first?)",
		 v);
	return -ENOENT;
}
