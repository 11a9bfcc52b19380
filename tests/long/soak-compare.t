#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# mmrace compare on what was measured for real.  A soak's runs, dealt out to two
# halves MMR_DEALS=100 times: a kernel against itself.  And exits that take a
# fifth longer: runs of two cases in turns, of which 20 a side are drawn
# MMR_DRAWS=50 times.  MMR_RECORD: the soak's record, else one of
# MMR_SOAK_TIME=240 seconds is made; MMR_RUNS=120: of each case.
#
# Red when: more than a tenth of the halves differ, or fewer than four fifths of
# the draws tell the slower exit.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../exit-case.sh"
t_need_tool
DEALS=${MMR_DEALS:-100} DRAWS=${MMR_DRAWS:-50} RUNS=${MMR_RUNS:-120}
cat >"$WORK/deal.pl" <<'PERL'
# deal.pl SEED N FILE OUT [FILE OUT]: N runs of each file, drawn without
# replacement; of one file alone two halves, OUT and OUT.rest.
my ($seed, $n, @files) = @ARGV;
srand $seed;
while (my ($file, $out) = splice @files, 0, 2) {
	open my $f, '<', $file or die "$file: $!";
	my $head = <$f>;
	my @runs = <$f>;
	for (my $i = @runs; --$i > 0;) {
		my $j = int rand($i + 1);
		@runs[$i, $j] = @runs[$j, $i];
	}
	my $take = $n || int(@runs / 2);
	open my $o, '>', $out or die;
	print $o $head, splice @runs, 0, $take;
	next if $n;
	open $o, '>', "$out.rest" or die;
	print $o $head, splice @runs, 0, $take;
}
PERL

record=${MMR_RECORD:-}
if [ -z "$record" ]; then
	"$MMRACE" soak --time "${MMR_SOAK_TIME:-240}" --jobs 2 --seed 31 \
		--quiet --out "$WORK/soak" >/dev/null 2>&1
	record=$WORK/soak/runs.jsonl
fi
runs=$(($(wc -l <"$record") - 1))
[ $runs -ge 400 ]
t_result $? "a soak's record has runs to deal out ($runs)"
alarms=0 trouble=0
for i in $(seq "$DEALS"); do
	perl "$WORK/deal.pl" "$i" 0 "$record" "$WORK/half"
	t_run "$MMRACE" compare "$WORK/half" "$WORK/half.rest"
	case $RC in
	0) ;;
	1)
		alarms=$((alarms + 1))
		grep -E ' (slower|faster|more often|less often) ' "$OUT" \
			>"$WORK/alarm"
		t_note "deal $i:" "$WORK/alarm"
		;;
	*) trouble=$((trouble + 1)) ;;
	esac
done
[ $trouble = 0 ] && [ $alarms -le $((DEALS / 10)) ]
t_result $? "halves of a soak differ in $alarms of $DEALS deals"

# A delay that is known: page tables full of the zero page, of which an exit
# clears each entry, a fifth more of them.  Pages of their own would do as well,
# but what freeing those takes depends on the caches, and with them on what else
# the machine does.
zero() {
	exit_case "$1" "8 budget=20s" "madvise m0 nohugepage" \
		"madvise m0 populate_read"
}
zero 500M >"$WORK/short.case"
zero 600M >"$WORK/long.case"
: >"$WORK/short"
: >"$WORK/long"
# Beside other work a CPU has to be had at once, or the waits for one are most of
# what is measured.
first=()
is_root && first=(nice -n -15)
for i in $(seq $((RUNS / 10))); do
	for c in short long; do
		"${first[@]}" "$MMRACE" replay "$WORK/$c.case" --runs 10 --quiet \
			--record "$WORK/part" >/dev/null 2>&1
		# One head is enough.
		if [ -s "$WORK/$c" ]; then
			tail -n +2 "$WORK/part" >>"$WORK/$c"
		else
			cp "$WORK/part" "$WORK/$c"
		fi
	done
done
t_run "$MMRACE" compare "$WORK/short" "$WORK/long"
grep -E -A 6 '^exit kid' "$OUT" >"$WORK/all"
t_note 'all of them:' "$WORK/all"
told=0 wall=0
for i in $(seq "$DRAWS"); do
	perl "$WORK/deal.pl" "$i" 20 "$WORK/short" "$WORK/a" "$WORK/long" \
		"$WORK/b"
	t_run "$MMRACE" compare "$WORK/a" "$WORK/b"
	grep -Eq '^exit kid +slower' "$OUT" && wall=$((wall + 1))
	grep -Eq '^exit kid( on CPU)? +slower' "$OUT" && told=$((told + 1))
done
echo "by the clock in $wall of them" >"$WORK/wall"
t_note 'told' "$WORK/wall"
[ $((told * 5)) -ge $((DRAWS * 4)) ]
t_result $? "exits that take a fifth longer are told in $told of $DRAWS draws"
wrong=0
for i in $(seq "$DEALS"); do
	perl "$WORK/deal.pl" "$i" 0 "$WORK/short" "$WORK/half"
	t_run "$MMRACE" compare "$WORK/half" "$WORK/half.rest"
	[ "$RC" = 0 ] || wrong=$((wrong + 1))
done
[ $((wrong * 10)) -le "$DEALS" ]
t_result $? "halves of the same case differ in $wrong of $DEALS"
t_done
