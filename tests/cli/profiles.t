#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The short form of tests/long/profiles.t and tests/long/kill.t: two seconds of
# those profiles that change most, two kills.

MMR_TIME=2 MMR_PROFILES='hugetlb memcg uffd' bash tests/long/profiles.t || exit
MMR_KILLS=2 MMR_PROFILES='hugetlb memcg' bash tests/long/kill.t
