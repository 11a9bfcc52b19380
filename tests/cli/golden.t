#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The one canonical text: every case of the tree prints as itself, a NAME.in
# beside NAME.case prints as NAME.case.  Red when the printer changes: then
# the goldens change in the same commit, on purpose.

. "$(dirname "$0")/../lib.sh"

for f in tests/golden/*.case tests/canary/*.case corpus/*/*.case; do
	[ -e "$f" ] || continue
	"$BUILD/tools/cases" print "$f" >"$WORK/printed" 2>&1
	t_same "$f prints as itself" "$f" "$WORK/printed"
	in=${f%.case}.in
	if [ -e "$in" ]; then
		"$BUILD/tools/cases" print "$in" >"$WORK/printed" 2>&1
		t_same "$in prints as its golden" "$f" "$WORK/printed"
	fi
done
[ $tests -gt 10 ]
t_result $? 'there are cases'
t_done
