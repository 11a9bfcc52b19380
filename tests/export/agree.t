#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The corpus and generated cases as C, for LTP and as kselftests: all compile
# without a warning, run, and agree with replay.  MMR_LONG=1: 200 seeds of all
# profiles and both compilers; else ten and the compiler of the build.
#
# Red when: an op prints what is no C, or what one of the suites cannot take;
# a form calls a healthy kernel broken, or skips where the case runs.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/suites.sh"
t_need_tool
suites_prepare "$WORK"
export TOP MMRACE CC
export CLANG=${LONG:+$CLANG}

mkdir -p "$WORK/cases" "$WORK/out"
cp corpus/seeds/*.case "$WORK/cases/"
for case in corpus/cases/*.case; do
	[ -e "$case" ] && cp "$case" "$WORK/cases/"
done
mapfile -t profiles < <(awk '$1 == "profile" && $2 != "base" { print $2 }' \
	fuzz/profiles)
n=${LONG:+200}
for i in $(seq "${n:-10}"); do
	profile=${profiles[$((i % ${#profiles[@]}))]}
	"$MMRACE" gen --seed "$i" --profile "$profile" \
		>"$WORK/cases/$profile-$i.case"
done

# Those that take from the machine's pools, or compare its counts, one by one.
agree() {
	xargs -r -n 1 -P "$1" tests/export/agree.sh "$WORK/out" >>"$WORK/lines"
}
shared='^expect +restored|^needs.*hugepages|hugetlb|^set |mlock'
grep -EL "$shared" "$WORK"/cases/*.case | agree "$(nproc)"
grep -El "$shared" "$WORK"/cases/*.case | agree 1
while read -r line; do
	case $line in
	ok*) t_result 0 "${line#ok }: three forms agree with replay" ;;
	*) t_result 1 "${line#not ok }" ;;
	esac
done < <(sort "$WORK/lines")
[ "$(wc -l <"$WORK/lines")" = "$(ls "$WORK/cases" | wc -l)" ]
t_result $? "every case has been tried ($(ls "$WORK/cases" | wc -l))"
t_done
