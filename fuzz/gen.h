/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Seeds to cases.  Same seed, profile and version: same text everywhere. */
#ifndef MMR_FUZZ_GEN_H
#define MMR_FUZZ_GEN_H

#include "../ops/case.h"

#define MMR_GEN_VERSION 6

/* Profiles are data: fuzz/profiles, built in. */
struct mmr_profile;
const struct mmr_profile *mmr_profile_find(const char *name);
/* i-th profile's name and one-line help; NULL past the end. */
const char *mmr_profile_name(int i, const char **help);

/* The case that seed means under a profile.  NULL: no memory. */
struct mmr_case *mmr_gen(uint64_t seed, const struct mmr_profile *profile);

/* Changes c in place by one random edit drawn from seed (custom mutator of
 * text_fuzzer and race_fuzzer).  The result passes mmr_case_check(). */
int mmr_mutate(struct mmr_case *c, uint64_t seed);

#endif
