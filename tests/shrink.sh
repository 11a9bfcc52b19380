# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For tests of a soak that makes its findings smaller: source it after
# tests/lib.sh.

# shrinking_soak OPTION...: one in the background that finds much, its process
# `pid`: calls that may take no time, many of which show again at once.
shrinking_soak() {
	"$MMRACE" soak --profile storm --seed 5 --limit syscall=100us --quiet \
		--revisit 90 "$@" >"$OUT" 2>"$ERR" &
	pid=$!
}

lines() { grep -c '^ *[a-z]' "$1"; }

# smaller DIR: the soak that writes there has made a finding smaller.
smaller() {
	local f
	for f in "$1"/findings/*/min.case; do
		[ -s "$f" ] || continue
		[ "$(lines "$f")" -lt "$(lines "${f%min.case}case.case")" ] &&
			return 0
	done
	return 1
}

# t_min_cases DIR: what it made are cases.
t_min_cases() {
	local f
	for f in "$1"/findings/*/min.case; do
		"$BUILD/tools/cases" print "$f" >/dev/null 2>&1 || echo "$f"
	done >"$WORK/bad"
	[ ! -s "$WORK/bad" ]
	t_result $? 'what it left are cases'
}
