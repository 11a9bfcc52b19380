// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rules for one argument's value, from its argspec.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "check.h"
#include "lex.h"
#include "setting.h"

const char *mmr_ref_kind_text(uint32_t kinds)
{
	switch (kinds) {
	case MMR_REF_MAPPING:
		return "a mapping";
	case MMR_REF_THREAD:
		return "a thread";
	case MMR_REF_PROCESS:
		return "a process";
	case MMR_REF_PIDFD:
		return "a pidfd";
	case MMR_REF_FILE:
		return "a file";
	case MMR_REF_UFFD:
		return "a userfaultfd";
	case MMR_REF_PROCESS | MMR_REF_PIDFD:
		return "a process or pidfd";
	case MMR_REF_PROC:
		return "a proc file";
	default:
		return "something else";
	}
}

bool mmr_setting_known(const char *name)
{
	return mmr_setting_index(name) >= 0;
}

bool mmr_value_is_default(const struct mmr_argspec *a,
			  const struct mmr_value *v)
{
	if (!v->set)
		return true;
	switch (a->type) {
	case MMR_ARG_SIZE:
		return v->lo == a->def &&
		       (v->unit == MMR_UNIT_BYTE || v->lo == 0);
	case MMR_ARG_INT:
	case MMR_ARG_ENUM:
	case MMR_ARG_FLAGS:
		return v->lo == a->def;
	case MMR_ARG_TIME:
		return !v->is_auto && !v->is_log && v->lo == a->def &&
		       v->hi == a->def;
	case MMR_ARG_WORD:
		return false;
	default:
		return !v->name;
	}
}

/* Bytes of a size on a machine of 4 KiB and 2 MiB pages: limits must not
 * depend on where a case is read. */
static int64_t size_bytes(const struct mmr_value *v)
{
	int64_t bytes, unit = v->unit == MMR_UNIT_PAGE	 ? 4096
			      : v->unit == MMR_UNIT_HUGE ? 2 << 20
							 : 1;

	return __builtin_mul_overflow(v->lo, unit, &bytes) ? INT64_MAX : bytes;
}

static int check_size(const struct mmr_argspec *a, const struct mmr_value *v,
		      char *text, size_t n)
{
	int64_t bytes = size_bytes(v);
	char buf[48];

	if (bytes > a->max) {
		snprintf(text, n, "%s is beyond the limit of %s", a->name,
			 mmr_case_print_size(buf, sizeof(buf), a->max,
					     MMR_UNIT_BYTE));
		return -EINVAL;
	}
	if (bytes < a->min || bytes < 0) {
		snprintf(text, n, "%s must be at least %s", a->name,
			 mmr_case_print_size(buf, sizeof(buf), a->min,
					     MMR_UNIT_BYTE));
		return -EINVAL;
	}
	return 0;
}

static int check_time(const struct mmr_argspec *a, const struct mmr_value *v,
		      char *text, size_t n)
{
	char buf[48];

	if (v->is_auto) {
		if (a->flags & MMR_ARG_AUTO)
			return 0;
		snprintf(text, n, "%s does not take auto", a->name);
	} else if (v->is_log) {
		if (a->flags & MMR_ARG_LOG)
			return 0;
		snprintf(text, n, "%s does not take log", a->name);
	} else if (v->lo > v->hi) {
		snprintf(text, n, "the range ends before it begins");
	} else if (v->lo < 0 && !(a->flags & MMR_ARG_SIGNED)) {
		snprintf(text, n, "%s cannot be negative", a->name);
	} else if (v->hi > a->max) {
		snprintf(text, n, "%s is beyond the limit of %s", a->name,
			 mmr_case_print_time(buf, sizeof(buf), a->max));
	} else if (v->lo < a->min) {
		snprintf(text, n, "%s must be at least %s", a->name,
			 mmr_case_print_time(buf, sizeof(buf), a->min));
	} else {
		return 0;
	}
	return -EINVAL;
}

static int check_listed(const struct mmr_argspec *a, const struct mmr_value *v,
			char *text, size_t n)
{
	const struct mmr_name *name;
	int64_t known = 0;

	for (name = a->names; name->name; name++) {
		if (a->type == MMR_ARG_ENUM && name->value == v->lo)
			return 0;
		known |= name->value;
	}
	if (a->type == MMR_ARG_ENUM || (v->lo & ~known) || v->lo > a->max) {
		snprintf(text, n, "%s has no such value", a->name);
		return -EINVAL;
	}
	if (v->lo < a->min) {
		snprintf(text, n, "%s cannot be empty", a->name);
		return -EINVAL;
	}
	return 0;
}

int mmr_check_value(const struct mmr_argspec *a, const struct mmr_value *v,
		    char *text, size_t n)
{
	switch (a->type) {
	case MMR_ARG_SIZE:
		return check_size(a, v, text, n);
	case MMR_ARG_TIME:
		return check_time(a, v, text, n);
	case MMR_ARG_ENUM:
	case MMR_ARG_FLAGS:
		return check_listed(a, v, text, n);
	case MMR_ARG_INT:
		if (v->lo >= a->min && v->lo <= a->max)
			return 0;
		snprintf(text, n, "%s must be from %" PRId64 " to %" PRId64,
			 a->name, a->min, a->max);
		return -EINVAL;
	case MMR_ARG_WORD:
		return 0;
	case MMR_ARG_THREAD:
	case MMR_ARG_PROCESS:
		if (v->name && strcmp(v->name, "idle") == 0)
			return 0;
		break;
	default:
		break;
	}
	if (v->name &&
	    mmr_lex_is_name(v->name, strnlen(v->name, MMR_CASE_NAME_LEN)))
		return 0;
	snprintf(text, n, "%s needs a name", a->name);
	return -EINVAL;
}
