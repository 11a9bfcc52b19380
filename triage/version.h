/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one place of the version. */
#ifndef MMR_TRIAGE_VERSION_H
#define MMR_TRIAGE_VERSION_H

#define MMR_VERSION "0.1.0"

#endif
