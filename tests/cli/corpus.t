#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The regressions: each is a public report, names its fix, and is silent on a
# kernel that has it, or skipped with the reason.  Once each; with MMR_LONG as
# long as `mmrace suite` thinks right.
#
# Red when: a case blames the running kernel (then it is one that lacks the
# fix, or an operation is called slow that is not), or cannot be run.

. "$(dirname "$0")/../lib.sh"
t_need_tool
runs='--runs 1'
[ -n "$LONG" ] && runs=

n=0
for case in corpus/cases/*.case; do
	n=$((n + 1))
	grep -Eq '^fixed   [0-9a-f]{12,40} ".+"$' "$case" || echo "$case"
done >"$WORK/nameless"
[ ! -s "$WORK/nameless" ]
t_result $? 'each names its fix, by commit and title'
t_note 'without:' "$WORK/nameless"
[ $n -ge 30 ]
t_result $? "at least 30 reports ($n)"
for case in corpus/open/*.case; do
	grep -Eq '^seen    [1-9]' "$case" && ! grep -q '^fixed' "$case" ||
		echo "$case"
done >"$WORK/nameless"
[ ! -s "$WORK/nameless" ]
t_result $? 'open ones say how often they were seen'
t_note 'without:' "$WORK/nameless"

# shellcheck disable=SC2086 # words
t_run "$MMRACE" suite --tap $runs --quiet --out "$WORK/out" corpus/cases
t_rc 'no case finds anything' 0
grep -E '^not ok' "$OUT" >"$WORK/bad"
t_note 'these do:' "$WORK/bad"
[ "$(grep -Ec '^(not )?ok ' "$OUT")" = $n ]
t_result $? 'all of them were run, or skipped'
! grep -Eq '^ok .* # SKIP *$' "$OUT"
t_result $? 'what is skipped has a reason'
grep -Ec '^ok [0-9]+ - [^#]*$' "$OUT" >"$WORK/ran"
[ "$(cat "$WORK/ran")" -ge 15 ]
t_result $? "$(cat "$WORK/ran") ran"
grep -h '# SKIP' "$OUT" | sed 's/^ok [0-9]* - //' |
	while read -r name _ _ reason; do
		echo "# $name: $reason"
	done
t_done
