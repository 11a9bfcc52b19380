// SPDX-License-Identifier: GPL-2.0-or-later
/* The names of verdicts: the same words everywhere. */
#include "run.h"

static const char *const names[MMR_VERDICTS] = {
	[MMR_NOTHING] = "nothing",
	[MMR_VOID] = "void",
	[MMR_SKIPPED] = "skipped",
	[MMR_FAULT_STORM] = "fault-storm",
	[MMR_LONG_SYSCALL] = "long-syscall",
	[MMR_LONG_EXIT] = "long-exit",
	[MMR_LOCK_STARVATION] = "lock-starvation",
	[MMR_HANG] = "hang",
	[MMR_KERNEL_LOG] = "kernel-log",
	[MMR_CORRUPTION] = "corruption",
	[MMR_LEAK] = "leak",
	[MMR_CRASH] = "crash",
	[MMR_TOOL_FAILED] = "tool-failed",
	[MMR_KNOWN] = "known",
};

const char *mmr_verdict_name(enum mmr_verdict v)
{
	if ((unsigned int)v >= MMR_VERDICTS || !names[v])
		return "unknown";
	return names[v];
}

bool mmr_verdict_is_hit(enum mmr_verdict v)
{
	return v >= MMR_FAULT_STORM && v <= MMR_CRASH;
}
