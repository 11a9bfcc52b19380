/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel settings that a case may name, in its `set` and `needs writes=`
 * lines and in the operations that write them.  Constant data in op_setting.c;
 * the place of a setting in the table is its number, in area and program.
 */
#ifndef MMR_OPS_SETTING_H
#define MMR_OPS_SETTING_H

#include <stdbool.h>
#include <stdint.h>

#include "op.h"

enum mmr_setting_kind {
	MMR_SETTING_NUMBER,
	MMR_SETTING_MODE,    /* one of several words, `[word]` is the one */
	MMR_SETTING_TRIGGER, /* written only: it keeps no value */
};

struct mmr_setting_info {
	const char *name, *path;
	enum mmr_setting_kind kind;
	/* Written under a lock that a thread of the kernel holds while it
	 * waits for a CPU, which nobody can tell from outside. */
	bool behind_daemon;
	int64_t max; /* NUMBER, TRIGGER: largest value; MODE: bit i: mode i */
};

/* name NULL ends; at most 64. */
extern const struct mmr_setting_info mmr_setting_table[];
/* The words of all MODE settings; value: their number. */
extern const struct mmr_name mmr_setting_modes[];

#ifndef MMR_CHILD
/* C text: put_file(path, text), for mmr_emit_helper(). */
extern const char mmr_emit_put_file_c[];
/* Number of the setting, -1 when there is none of that name. */
int mmr_setting_index(const char *name);
/* The word of mode number v, NULL when there is none. */
const char *mmr_setting_mode(int64_t v);
/* "8" or "madvise": the value as the case and the kernel's file have it,
 * into buf; returns buf. */
char *mmr_setting_text(int index, int64_t v, char *buf, size_t n);
/* The other way round: 0 and *v, -EINVAL when it is no value of it. */
int mmr_setting_value(int index, const char *text, size_t len, int64_t *v);
/* Bit i: a statement of the case writes setting i. */
struct mmr_case;
uint64_t mmr_setting_written(const struct mmr_case *c);
/* Bit i: a set line or a `needs writes=` names setting i. */
uint64_t mmr_setting_named(const struct mmr_case *c);
#endif

#endif
