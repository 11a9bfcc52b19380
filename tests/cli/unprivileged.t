#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An ordinary user: the same with what is left.  Run as root, it becomes
# nobody, with a copy of the program in a folder that nobody can read.

. "$(dirname "$0")/../lib.sh"
t_need_tool

if is_root; then
	command -v setpriv >/dev/null || { t_skip 'all' 'no setpriv'; t_done; }
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all
		--bounding-set=-all env HOME=/nonexistent)
else
	as=()
fi
chmod 755 "$WORK"
mkdir -m 1777 "$WORK/tmp"
cp "$BUILD/mmrace" "$BUILD/mmrace-child" "$WORK/"
cp tests/canary/*.case "$WORK/"
chmod 644 "$WORK"/*.case
cd "$WORK/tmp" || exit 99
BUILD=$TOP/${MMR_BUILD:-build/release}

run() { t_run "${as[@]}" "$WORK/mmrace" "$@"; }

run gen --seed 7
t_rc 'gen' 0
"$MMRACE" gen --seed 7 >"$WORK/gen"
t_same 'gen: the same as for root' "$WORK/gen" "$OUT"
run doctor
t_rc 'doctor' 0
run replay --quiet --runs 1 --out "$WORK/tmp/futex" "$WORK/futex.case"
t_rc 'futex canary: found' 1
set -- "$WORK"/tmp/futex/findings/*/
[ -s "$1/report.md" ] && [ -s "$1/evidence.json" ]
t_result $? 'futex canary: evidence'
run replay --quiet --runs 1 --out "$WORK/tmp/storm" "$WORK/storm.case"
t_rc 'storm canary: found' 1
run replay --quiet --runs 1 --out "$WORK/tmp/slow" "$WORK/slow.case"
t_rc 'slow canary: not flagged' 0
run replay --quiet --runs 1 --out "$WORK/tmp/uffd" "$WORK/uffd.case"
[ "$RC" = 1 ] || [ "$RC" = 4 ]
t_result $? "userfaultfd canary: found, or needs not met (exit $RC)"
printf 'mmrace-case 1\n\nprocess main\n  thread A\n    %s\n' \
	'u0 = userfaultfd' >"$WORK/kernel.case"
run replay --quiet --runs 1 --out "$WORK/tmp/kernel" "$WORK/kernel.case"
if [ "$(cat /proc/sys/vm/unprivileged_userfaultfd 2>/dev/null)" = 0 ]; then
	t_rc 'userfaultfd for faults of the kernel: skipped' 4
	cat "$OUT" "$ERR" >"$WORK/said"
	t_match '... with a sentence' "$WORK/said" \
		'userfaultfd without user_mode_only needs .*as root'
else
	t_rc 'userfaultfd for faults of the kernel is allowed here' 0
fi
run soak --time 5 --seed 1 --quiet --json --out "$WORK/tmp/soak"
t_rc 'soak of 5 s: nothing found' 0
t_json 'soak: JSON' "$OUT"
cases=$(t_json_get "$OUT" cases)
[ "${cases:-0}" -gt 20 ]
t_result $? "soak: many cases (${cases:-none})"
none_running "$WORK/mmrace-child"
t_result $? 'no child is left'
t_done
