#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# min of a race of two user threads that fails in 5 % of rounds, padded with
# 40 statements, MIN_TIMES (20) times: red when the core, in the right order,
# or a rate whose interval has the true one comes out less than 17 times in 20.

. "$(dirname "$0")/../lib.sh"
t_need_tool
. tests/min/race.sh
race_repeat 5 "${MIN_TIMES:-20}"
t_done
