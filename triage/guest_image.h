/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a guest boots from: a kernel, and an initramfs of two programs. */
#ifndef MMR_TRIAGE_GUEST_IMAGE_H
#define MMR_TRIAGE_GUEST_IMAGE_H

#include <stddef.h>

/* Writes an initramfs (cpio, newc) with mmrace as /init, mmrace-child, and
 * a program (NULL: none) as /program.
 * 0 or -errno with a sentence. */
int mmr_guest_initramfs(const char *path, const char *mmrace, const char *child,
			const char *program, char *text, size_t n);
/*
 * Path of the kernel that spec names: a file, or debian:VERSION: an installed
 * /boot/vmlinuz-VERSION*, else the newest matching package by apt-get
 * download, unpacked below cache.  0 or -errno with a sentence; -EINTR soon
 * after mmr_engine_interrupt().
 */
int mmr_guest_kernel(const char *spec, const char *arch, const char *cache,
		     char *path, size_t pn, char *text, size_t n);
/* "x86_64" or "aarch64" by the file's header, NULL when it is neither. */
const char *mmr_guest_kernel_arch(const char *path);

#endif
