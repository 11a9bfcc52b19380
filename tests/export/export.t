#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every seed and canary as a C file: it compiles without a warning, needs
# nothing but libc, and says of the running kernel what the case says.
#
# Red when: an op prints C that does not compile or calls what is not in the
# file; the watchdog misses a stall (a canary exits 0), takes long work for one
# (slow, healthy-1g), or waits for what cannot be killed (a time-out); threads
# lie where a stale munmap hits them (stale); a file for S1 or S2 grows past
# what a person reads at once.

. "$(dirname "$0")/../lib.sh"
t_need_tool
mkdir -p "$WORK/g"
WARN='-Wall -Wextra -Werror -O2 -pthread'

# export_c CASE: $WORK/NAME.c and the program $WORK/NAME.
export_c() {
	local name
	name=$(basename "$1" .case)
	t_run "$MMRACE" export --to c -o "$WORK/$name.c" "$1"
	if [ "$RC" != 0 ]; then
		t_rc "$name: export" 0
		return
	fi
	# shellcheck disable=SC2086 # a list of words
	t_ok "$name: compiles" gcc $WARN -o "$WORK/$name" "$WORK/$name.c"
}

# runs NAME EXIT WHAT: the program ends by itself with this code.
runs() {
	t_run timeout 60 "$WORK/$1"
	if [ "$RC" = 4 ] && [ "$2" != 4 ]; then
		t_skip "$1: $3" "$(tail -n 1 "$ERR")"
		return
	fi
	t_rc "$1: $3" "$2"
}

for case in corpus/seeds/*.case tests/canary/*.case tests/export/*.case; do
	export_c "$case"
done

# clang warns of other things.
if command -v "$CLANG" >/dev/null; then
	for name in s1-base s2-1m s3-10-cap s4-pool forms keep stale storm; do
		# shellcheck disable=SC2086
		t_ok "$name: compiles with clang" "$CLANG" $WARN \
			-o "$WORK/clang" "$WORK/$name.c"
	done
else
	t_skip 'compiles with clang' 'no clang'
fi

# What a reader gets: tests/golden/export has S1 and S2 in each form.
# MMR_UPDATE_GOLDEN=1 writes them anew.
GOLD=$TOP/tests/golden/export
for name in s1-base s2-1m s2-hugetlb; do
	for form in c ltp kselftest; do
		"$MMRACE" export --to $form -o "$WORK/g/$name.c" \
			"corpus/seeds/$name.case" 2>"$ERR"
		t_result $? "$name: $form"
		[ -n "${MMR_UPDATE_GOLDEN:-}" ] &&
			cp "$WORK/g/$name.c" "$GOLD/$name.$form.txt"
		t_same "$name: $form is as in $GOLD" "$WORK/g/$name.c" \
			"$GOLD/$name.$form.txt"
	done
done
[ "$(cat "$WORK/g/s1-base.runtest")" = "# $(sed -n \
	's/^title   //p' corpus/seeds/s1-base.case)
s1_base s1_base" ]
t_result $? 'ltp: its lines for runtest/mm'
t_match 'kselftest: its line for run_vmtests.sh' "$WORK/g/s1-base.vmtests" \
	'^CATEGORY="race" run_test ./s1_base$'
t_run "$MMRACE" export --to ltp --runtest corpus/seeds/s1-base.case
t_same 'ltp: --runtest prints the same' "$OUT" "$WORK/g/s1-base.runtest"
t_run "$MMRACE" export --to ltp --json corpus/seeds/s1-base.case
t_json '--json: JSON' "$OUT"
[ "$(t_json_get "$OUT" name)" = '"s1_base"' ] ||
	[ "$(t_json_get "$OUT" name)" = s1_base ]
t_result $? '--json: the name'

# What struct tst_test says, and how long a test has to run.
cat >"$WORK/all.case" <<'EOF'
mmrace-case 1
title   what a test can ask of LTP's library
needs   cpus>=2 hugepages>=2 nocap=CAP_SYS_NICE syscall=userfaultfd memory>=1G arch=x86_64
set     nr_overcommit_hugepages=2
rounds  10 budget=3s
seen    7/100
fixed   0123abcd0123abcd "mm: a fix"

process main
  thread A
    m0 = mmap len=2h prot=rw flags=private|anon|hugetlb
    write m0 step=1h
EOF
t_run "$MMRACE" export --to ltp "$WORK/all.case"
t_rc 'ltp: exports' 0
while read -r field; do
	grep -qF -e "$field" "$OUT"
	t_result $? "ltp: $field"
done <<'EOF'
.needs_root = 1,
.min_cpus = 2,
.min_mem_avail = 1024,
.hugepages = {2, TST_NEEDS},
TST_CAP(TST_CAP_DROP, CAP_SYS_NICE),
"CONFIG_USERFAULTFD=y",
{"/proc/sys/vm/nr_overcommit_hugepages", "2", TST_SR_TCONF},
.taint_check = TST_TAINT_W | TST_TAINT_D,
{"linux-git", "0123abcd0123abcd"},
.runtime = 126,
enum { ROUNDS = 420, LIMIT
EOF

# Errors say what to do.
sed 's/^rounds .*/rounds  3 keep/; s/^process main/process main copies=2/' \
	corpus/seeds/s1-nohint.case >"$WORK/keep2.case"
t_run "$MMRACE" export --to c "$WORK/keep2.case"
t_rc 'what has no form in C: exit 2' 2
t_match 'and says what to do' "$ERR" "keep2.case:1:1: .*write 'rounds' without"

for case in corpus/seeds/s[12]-*.case; do
	name=$(basename "$case" .case)
	lines=$(wc -l <"$WORK/$name.c")
	[ "$lines" -le 120 ]
	t_result $? "$name: at most 120 lines ($lines)"
done

# No line is longer than 80 columns, but for a text, which stays in one piece.
for file in "$WORK"/*.c "$WORK"/g/*.c; do
	expand "$file" | grep -vE '"' | awk -v f="${file##*/}" \
		'length > 80 { print f ": " $0 }'
done >"$WORK/long"
! [ -s "$WORK/long" ]
t_result $? 'no line is longer than 80 columns'
t_note 'longer:' "$WORK/long"

ldd "$WORK/exit" | grep -Ev 'libc[.]so|linux-vdso|ld-linux' >"$WORK/libs"
! [ -s "$WORK/libs" ]
t_result $? 'needs nothing but libc'
t_note 'it also needs:' "$WORK/libs"

runs futex 1 'a lost wake is seen'
t_match 'futex: says what' "$ERR" '^futex: round 0 does not end'
runs uffd 1 'an unserved fault is seen'
runs storm 1 'a fault storm is seen'
t_match 'storm: says how many faults' "$ERR" '^storm: round 0 [0-9]{4,} faults'
runs exit 1 'a held exit is seen'
t_match 'exit: says what' "$ERR" '_exit'
eventually 5 none_running "$WORK/exit"
t_result $? 'exit: nothing is left behind'
runs slow 0 'long work is no stall'
runs healthy-1g 0 'many faults are no storm'
runs unsignalled 0 'a wait for nobody is no stall'
runs forms 0 'every form runs'
runs keep 0 'rounds in one process'
runs stale 0 'a stale address hits no stack'
runs s1-nohint 0 'healthy'
runs s2-1m 0 'healthy'
for name in forms s2-1m unsignalled; do
	none_running "$WORK/$name"
	t_result $? "$name: nothing is left behind"
done

# Everybody counts in such a field: another program gives back 96 MiB.
cat >"$WORK/restored.case" <<'CASE'
mmrace-case 1
title   what others have is not missed
rounds  1 budget=5s
expect  restored AnonPages

process main
  thread A
    delay 1s
CASE
export_c "$WORK/restored.case"
perl -e '$x = "x" x (96 << 20); select undef, undef, undef, .7' &
other=$!
sleep 0.3
runs restored 0 'what another program had is not missed'
wait $other

# Needs that no machine meets: exit 4 with the sentence.
sed 's/^needs .*/needs   cpus>=4096/' corpus/seeds/s1-base.case \
	>"$WORK/cpus.case"
export_c "$WORK/cpus.case"
runs cpus 4 'needs not met: exit 4'
t_match 'cpus: says what is missing' "$ERR" '4096 CPUs'

t_done
