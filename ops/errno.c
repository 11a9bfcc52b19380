// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of errno values.  A table of our own: libc's strerrorname_np() also
 * knows names that no memory-management call returns, and differs between
 * architectures in the higher numbers; these are the same on x86-64 and
 * arm64.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "case.h"

/* clang-format off */
#define NAME(e) { #e, e }
static const struct {
	const char *name;
	int value;
} names[] = {
	{ "0", 0 },
	NAME(EPERM), NAME(ENOENT), NAME(ESRCH), NAME(EINTR), NAME(EIO),
	NAME(ENXIO), NAME(E2BIG), NAME(ENOEXEC), NAME(EBADF), NAME(ECHILD),
	NAME(EAGAIN), NAME(ENOMEM), NAME(EACCES), NAME(EFAULT),
	NAME(ENOTBLK), NAME(EBUSY), NAME(EEXIST), NAME(EXDEV),
	NAME(ENODEV), NAME(ENOTDIR), NAME(EISDIR), NAME(EINVAL),
	NAME(ENFILE), NAME(EMFILE), NAME(ENOTTY), NAME(ETXTBSY),
	NAME(EFBIG), NAME(ENOSPC), NAME(ESPIPE), NAME(EROFS), NAME(EMLINK),
	NAME(EPIPE), NAME(EDOM), NAME(ERANGE), NAME(EDEADLK),
	NAME(ENAMETOOLONG), NAME(ENOLCK), NAME(ENOSYS), NAME(ENOTEMPTY),
	NAME(ELOOP), NAME(ENOMSG), NAME(ENODATA), NAME(ETIME),
	NAME(EPROTO), NAME(EBADMSG), NAME(EOVERFLOW), NAME(EILSEQ),
	NAME(EUSERS), NAME(EOPNOTSUPP), NAME(ETIMEDOUT), NAME(EALREADY),
	NAME(EINPROGRESS), NAME(ESTALE), NAME(EDQUOT), NAME(ECANCELED),
	NAME(EOWNERDEAD), NAME(ENOTRECOVERABLE), NAME(EHWPOISON),
};
/* clang-format on */

const char *mmr_errno_name(int err)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].value == err)
			return names[i].name;
	return NULL;
}

int mmr_errno_value(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].value;
	return -1;
}
