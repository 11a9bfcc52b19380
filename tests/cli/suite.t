#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# mmrace suite: each outcome is reported as what it is, in each format, and
# does not disturb the others; nothing is left; the corpus in short form.  Red
# when a format breaks its rules, an outcome or an exit code is wrong, a
# finding is not stored, or a bound is claimed that the rounds do not give.

. "$(dirname "$0")/../lib.sh"
t_need_tool
CASES=$WORK/cases
mkdir -p "$CASES/more"

suite() { t_run "$MMRACE" suite --quiet --out "$WORK/out" "$@"; }

# -- the KTAP checker itself: samples that it has to refuse ------------------

ktap() { awk -f tests/suite/ktap.awk "$1"; }
refuses() { # NAME LINE...
	printf '%s\n' "${@:2}" >"$WORK/sample"
	t_not "the KTAP checker refuses $1" ktap "$WORK/sample"
}
V='KTAP version 1'
refuses 'no version' '1..1' 'ok 1 a'
refuses 'no plan' "$V" 'ok 1 a'
refuses 'too few results' "$V" '1..2' 'ok 1 a'
refuses 'a sequence with a hole' "$V" '1..2' 'ok 1 a' 'ok 3 b'
refuses 'an unknown directive' "$V" '1..1' 'ok 1 a # MAYBE'
refuses 'text between results' "$V" '1..1' 'hello' 'ok 1 a'
refuses 'wrong totals' "$V" '1..1' 'ok 1 a' \
	'# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0'
printf '%s\n' "$V" '1..2' '# note' 'ok 1 a' 'ok 2 b # SKIP why' \
	'# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:1 error:0' \
	>"$WORK/sample"
t_ok 'and takes what is right' ktap "$WORK/sample"

# -- five cases, one outcome each, a name that no format likes ---------------

cat >"$CASES/1 & <good> #1.case" <<'END'
mmrace-case 1
rounds  2000 budget=10s

process main
  thread A
    m0 = mmap len=1p prot=rw flags=private|anon
    write m0
    munmap m0
END
cp tests/canary/futex.case "$CASES/2-hangs.case"
# The shell below allows files of 1 GiB: then SIGXFSZ, which no statement sent.
cat >"$CASES/3-crashes.case" <<'END'
mmrace-case 1
seen    1/1

process main
  thread A
    f0 = memfd_create
    ftruncate f0 len=2G
END
cat >"$CASES/4-skips.case" <<'END'
mmrace-case 1
needs   cpus>=4000

process main
  thread A
    m0 = mmap len=1p prot=rw flags=private|anon
END
cp tests/canary/unsignalled.case "$CASES/more/5-unsure.case"

limited() { # suite with files of at most 1 GiB
	RAN="suite $*"
	(ulimit -S -f 1048576 && exec "$MMRACE" suite --quiet --case-time 1s \
		--out "$WORK/out" "$@") >"$OUT" 2>"$ERR" </dev/null
	RC=$?
}
fields() { # outcomes in order
	for i in 0 1 2 3 4; do t_json_get "$1" "cases.$i.outcome"; done |
		tr '\n' ' '
}

limited --json --jobs 2 "$CASES"
t_rc 'some failed: exit 1' 1
cp "$OUT" "$WORK/result.json"
t_json 'JSON' "$WORK/result.json"
is() { # NAME WANT GOT
	[ "$2" = "$3" ]
	t_result $? "$1"
	[ "$2" = "$3" ] || t_note "it is $3, not $2"
}
is 'each outcome' 'pass fail fail skip inconclusive ' \
	"$(fields "$WORK/result.json")"
verdict() { t_json_get "$WORK/result.json" "cases.$1.$2"; }
is 'the hanging one hangs' hang "$(verdict 1 verdict)"
is 'the crashing one crashes' crash "$(verdict 2 verdict)"
verdict 2 reason >"$WORK/reason"
t_match 'by the signal that it was sent' "$WORK/reason" \
	'SIGXFSZ|signal 25|[Ff]ile size'
verdict 3 reason >"$WORK/reason"
t_match 'the skip has its reason' "$WORK/reason" '4000'
verdict 4 reason >"$WORK/reason"
t_match 'so has the inconclusive one' "$WORK/reason" 'never came'
is 'seen 1/1 wants one run' 1 "$(verdict 2 wanted_runs)"
verdict 0 rate >"$WORK/rate"
t_match 'a bound from its rounds' "$WORK/rate" \
	'^0 of [0-9,]*,000 rounds: rate < 0[.][0-9]+ % at 95 %'
# 1 - 0.05^(1/n), from the rounds that it says it ran.
awk -v n="$(verdict 0 rounds)" -v b="$(verdict 0 round_rate_bound95)" 'BEGIN {
	want = 1 - exp(log(0.05) / n)
	exit !(n >= 2000 && b > want * 0.999 && b < want * 1.001)
}'
t_result $? 'which is the right one'
[ -s "$(verdict 1 finding)/report.md" ] &&
	[ -s "$(verdict 2 finding)/case.case" ]
t_result $? 'hits are stored as findings'

limited --ktap --junit "$WORK/junit.xml" --jobs 2 "$CASES"
t_rc 'with --ktap: exit 1' 1
cp "$OUT" "$WORK/ktap"
t_ok 'KTAP, by the checker' ktap "$WORK/ktap"
t_match 'the skip as SKIP' "$WORK/ktap" '^ok 4 .*/4-skips # SKIP '
t_match 'the hang as not ok' "$WORK/ktap" '^not ok 2 .*/2-hangs$'
t_match 'the next one ran all the same' "$WORK/ktap" '^not ok 3 .*/3-crashes$'
is 'the others are not disturbed' 5 "$(grep -cE '^(not )?ok ' "$WORK/ktap")"
if command -v xmllint >/dev/null 2>&1; then
	xsd() { xmllint --noout --schema tests/suite/junit.xsd "$1"; }
	t_ok 'JUnit, by the schema' xsd "$WORK/junit.xml"
	sed 's/tests="5"/tests="five"/' "$WORK/junit.xml" >"$WORK/bad.xml"
	t_not 'which can refuse' xsd "$WORK/bad.xml"
else
	t_skip 'JUnit, by the schema' 'no xmllint (libxml2-utils)'
fi
t_match 'JUnit: a failure with its verdict' "$WORK/junit.xml" \
	'<failure type="hang"'

limited --tap --jobs 2 "$CASES"
t_rc 'with --tap: exit 1' 1
cp "$OUT" "$WORK/tap"
if command -v prove >/dev/null 2>&1; then
	proven() { (cd "$WORK" && prove -v -e cat "$1"); }
	proven tap >"$WORK/prove" 2>&1
	t_match 'prove: the two failures, no parse error' "$WORK/prove" \
		'Failed 2/5 subtests'
	grep -q 'Parse errors' "$WORK/prove"
	is 'prove: no parse error' 1 $?
	limited --tap --skip '2-*' --skip '3-*' "$CASES"
	t_rc 'without the failing ones: exit 0' 0
	cp "$OUT" "$WORK/good.tap"
	t_ok 'prove takes it' proven good.tap
else
	t_skip 'TAP, by prove' 'no prove (perl)'
fi

# -- exit codes, filters, bad input -----------------------------------------

suite --filter '4-*' "$CASES"
t_rc 'all skipped: exit 4' 4
t_match 'as a line' "$OUT" '^skip .*/4-skips .*4000'
suite --filter '*good*' --runs 3 "$CASES"
t_rc 'all passed: exit 0' 0
t_match 'runs as asked' "$OUT" '0 of 6,000 rounds: .*0 of 3 runs'
suite --list "$CASES"
t_rc '--list: exit 0' 0
t_match 'how often' "$OUT" '/3-crashes +1 run'
suite --list --json "$CASES"
is '--list as JSON' 1 "$(t_json_get "$OUT" cases.2.wanted_runs)"
ln -s "$CASES/4-skips.case" "$CASES/more/link.case"
suite --list "$CASES/more" "$CASES/more/5-unsure.case"
is 'a link is a case, one named twice is run once' 2 "$(wc -l <"$OUT")"
rm "$CASES/more/link.case"
suite --filter nothing "$CASES"
t_rc 'no case left: exit 2' 2
suite "$CASES/nowhere"
t_rc 'no such path: exit 2' 2
mkdir "$WORK/empty"
suite "$WORK/empty"
t_rc 'a folder without cases: exit 2' 2
suite --tap --ktap "$CASES"
t_rc 'two formats: exit 2' 2
printf 'mmrace-case 1\nnonsense\n' >"$WORK/bad.case"
suite "$CASES" "$WORK/bad.case"
t_rc 'a bad case: exit 2' 2
t_match 'with its place' "$ERR" 'bad.case:2:1: '
[ ! -s "$OUT" ]
t_result $? 'and nothing ran'
suite --child /bin/false --runs 1 --filter '1*' "$CASES"
t_rc 'mmrace itself fails: exit 3' 3
t_match 'and says so' "$OUT" '^ERROR '

# -- time, Ctrl-C, what is left ---------------------------------------------

# What is known is no failure, and no pass.
{
	echo 'known   hang futex_wait *'
	echo 'reason  the canary is meant to hang'
	echo "until   $(date -u -d '+30 days' +%F)"
} >"$WORK/known"
suite --ktap --known "$WORK/known" --filter '2-*' --filter '4-*' "$CASES"
t_rc 'a known hit alone: exit 4' 4
cp "$OUT" "$WORK/known.ktap"
t_ok 'KTAP, by the checker' ktap "$WORK/known.ktap"
t_match 'as an expected failure' "$WORK/known.ktap" \
	'^ok 1 .*/2-hangs # XFAIL .*meant to hang'

start=$SECONDS
suite --time 4 --runs 100000 --filter '1*' "$CASES"
t_rc 'no time for all runs: exit 4' 4
t_match 'is inconclusive, with what was seen' "$OUT" \
	'^unsure .*of the 100000 runs .*rounds: rate <'
[ $((SECONDS - start)) -le 8 ]
t_result $? '--time holds'

"$MMRACE" suite --ktap --runs 100000 --out "$WORK/out" --quiet \
	--filter '1*' --filter '4*' "$CASES" >"$WORK/stopped" 2>"$ERR" &
pid=$!
child_runs() { ! none_running "$BUILD/mmrace-child"; }
t_ok 'it runs' eventually 20 child_runs
kill -INT $pid
wait $pid
is 'Ctrl-C: ends with what it has' 4 $?
t_ok 'KTAP, with all results' ktap "$WORK/stopped"
t_match 'the one that ran' "$WORK/stopped" \
	'^ok 1 .*# SKIP inconclusive: interrupted'
t_ok 'no child is left' eventually 5 none_running "$BUILD/mmrace-child"

# -- in a guest -------------------------------------------------------------

find_guest
if [ -z "$LONG" ]; then
	t_skip 'in a guest' 'make check-long does it'
elif [ -n "$why" ]; then
	t_skip 'in a guest' "$why"
else
	suite --json --guest "$kernel" --jobs 2 --case-time 1s \
		--filter '[124]-*' --filter '1*' "$CASES"
	t_rc 'in a guest: exit 1' 1
	cp "$OUT" "$WORK/result.json"
	is 'the same outcomes' 'pass fail skip ' \
		"$(fields "$WORK/result.json" | sed 's/ *$/ /')"
fi

# -- the corpus, in short form ----------------------------------------------

# corpus/open is what kernels still do wrong: it would fail here, and may leave
# a task that nothing ends.  It has to be runnable, and is not run.
is_root && settings=--allow-settings || settings=
if [ -d corpus/open ]; then
	suite --list corpus/open
	t_rc 'the open ones: listed' 0
fi
folders=(corpus/seeds)
[ -d corpus/cases ] && folders+=(corpus/cases)
skips=()
if pool_is_broken; then
	t_skip 'the others that want huge pages' "$POOL_BROKEN"
	while read -r f; do
		skips+=(--skip "$(basename "$f" .case)")
	done < <(grep -lE '^(needs|set) .*hugepages' corpus/*/*.case)
fi
# shellcheck disable=SC2086 # an option or none
suite "${folders[@]}" "${skips[@]}" --jobs 2 --case-time 1s --time "${LONG:+6}40" $settings
t_rc 'the others: nothing fails' 0
t_note "$(tail -n 1 "$OUT")"
grep -E '^(FAIL|ERROR)' "$OUT" >"$WORK/failed"
t_note 'failed:' "$WORK/failed"
t_done
