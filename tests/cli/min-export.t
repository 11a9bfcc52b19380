#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# min brings a padded canary back to its core; export makes a C file that
# needs nothing but libc and shows the same symptom.

. "$(dirname "$0")/../lib.sh"
t_need_tool
CANARIES=$TOP/tests/canary

statements() { # of a case: its lines but for ends
	grep -E '^ {4,}' "$1" | grep -Evc '^ +end$'
}

# pad FILE: 40 statements in 4 threads that have nothing to do with it, as
# threads of the last process.
pad() {
	cat "$1"
	local t i
	for t in 1 2 3 4; do
		echo "  thread pad$t"
		echo "    x$t = mmap len=4p prot=rw flags=private|anon"
		for i in 1 2 3 4; do
			echo "    write x$t step=1p"
			echo "    madvise x$t dontneed"
		done
		echo "    munmap x$t"
	done
}

# With a short limit of its own: dozens of runs, each of them a hang.
pad "$CANARIES/futex.case" | grep -Ev '^(title|expect)' >"$WORK/padded.case"
core=$(statements "$CANARIES/futex.case")
t_run "$MMRACE" min --quiet --json --budget 120s \
	--limit progress=300ms -o "$WORK/min.case" \
	"$WORK/padded.case"
[ "$RC" = 0 ] || [ "$RC" = 1 ]
t_result $? 'min of a padded canary'
[ "$RC" = 1 ] || [ "$RC" = 0 ] || t_note 'standard error:' "$ERR"
t_json 'min --json: JSON' "$OUT"
before=$(statements "$WORK/padded.case")
after=$(statements "$WORK/min.case")
[ "$before" = $((core + 40)) ]
t_result $? 'the padded case has 40 statements more'
[ "$after" -le "$core" ] && [ "$after" -gt 0 ]
t_result $? "from $before statements to its core ($after, core $core)"
t_note 'the result:' "$WORK/min.case"
! grep -Eq 'mmap|madvise|pad[0-9]' "$WORK/min.case"
t_result $? 'nothing of the padding is left'
t_run "$MMRACE" replay --quiet --runs 1 --out "$WORK/out" "$WORK/min.case"
t_rc 'the result still shows it' 1

# A case that does not reproduce is said to, and is not made smaller.
printf 'mmrace-case 1\n\nprocess main\n  thread A\n    delay 1us\n' \
	>"$WORK/healthy.case"
t_run "$MMRACE" min --quiet --budget 10s -o "$WORK/no.case" \
	"$WORK/healthy.case"
t_rc 'min of a healthy case: exit 0' 0
cat "$OUT" "$ERR" >"$WORK/both"
t_match 'min of a healthy case: says so' "$WORK/both" \
	'not reproduce|no reproduction|never'

# Seconds for the exported program to show its symptom, then it exits 1.
exported() {
	local name=$1
	t_run "$MMRACE" export --to c -o "$WORK/$name.c" "$CANARIES/$name.case"
	t_rc "$name: export" 0
	t_ok "$name: compiles" gcc -Wall -Werror -O2 -pthread \
		-o "$WORK/$name" "$WORK/$name.c"
	t_run timeout 60 "$WORK/$name"
	[ "$RC" = 4 ] && { t_skip "$name: shows it" "$(tail -n 1 "$ERR")"
		return; }
	t_rc "$name: shows the symptom" 1
	t_note 'it says:' "$ERR"
}

for name in futex uffd storm exit; do
	exported $name
done
t_run "$MMRACE" export --to c "$CANARIES/slow.case"
t_rc 'slow: export to standard output' 0
cp "$OUT" "$WORK/slow.c"
t_ok 'slow: compiles' gcc -Wall -Werror -pthread -o "$WORK/slow" \
	"$WORK/slow.c"
t_run timeout 60 "$WORK/slow"
t_rc 'slow: healthy' 0
t_run "$MMRACE" export --to cobol "$CANARIES/slow.case"
t_rc 'unknown format: exit 2' 2
t_match 'unknown format: says which there are' "$ERR" 'c, ltp or kselftest'

# What the generator makes can be exported too.
bad=0 n=0
for seed in $(seq 1 20); do
	"$MMRACE" gen --seed "$seed" >"$WORK/g.case"
	"$MMRACE" export --to c "$WORK/g.case" >"$WORK/g.c" 2>"$WORK/g.err" || {
		t_note "seed $seed:" "$WORK/g.err"
		bad=$((bad + 1))
		continue
	}
	gcc -Wall -Werror -O2 -pthread -fsyntax-only "$WORK/g.c" \
		2>"$WORK/g.err" || {
		t_note "seed $seed:" "$WORK/g.err"
		bad=$((bad + 1))
	}
	n=$((n + 1))
done
[ $bad = 0 ]
t_result $? 'exports of 20 seeds compile'
for f in corpus/seeds/*.case; do
	"$MMRACE" export --to c "$f" >"$WORK/g.c" 2>"$WORK/g.err" &&
		gcc -Wall -Werror -O2 -pthread -fsyntax-only "$WORK/g.c" \
			2>"$WORK/g.err"
	rc=$?
	t_result $rc "export of $(basename "$f") compiles"
	[ $rc = 0 ] || t_note 'errors:' "$WORK/g.err"
done
t_done
