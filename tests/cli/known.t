#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What is the same stall and what is not, and --known.  Red when two stalls of
# one statement are one finding, when the same one twice is two, when a start
# anew begins to count anew, or when a known one still counts as found.

. "$(dirname "$0")/../lib.sh"
t_need_tool
D=$WORK/out

uffd() { # FLAGS: a write that a fault handler in user space never serves
	cat <<-EOT
		mmrace-case 1
		title   one title for both
		needs   syscall=userfaultfd
		expect  progress within=1s

		process main
		  thread T
		    m0 = mmap len=4p prot=rw flags=$1|anon
		    u0 = userfaultfd flags=user_mode_only
		    uffd_register u0 m0
		    write m0 step=1p
	EOT
}
uffd private >"$WORK/private.case"
uffd shared >"$WORK/shared.case"
count() { t_json_get "$1/verdict.json" count; }

t_run "$MMRACE" replay --quiet --runs 1 --out "$D" "$WORK/private.case"
if [ "$RC" = 4 ]; then
	t_skip 'two stalls of one statement' "$(head -n 1 "$ERR")"
else
	t_rc 'a stall: found' 1
	first=$(echo "$D"/findings/*)
	t_run "$MMRACE" replay --quiet --runs 1 --out "$D" "$WORK/shared.case"
	t_rc 'another one, with the same title and statement: found' 1
	set -- "$D"/findings/*
	if is_root; then
		[ $# = 2 ]
		t_result $? 'they are two findings'
		for f in "$@"; do
			grep -h '^#0' "$f/stacks.txt" | sed 's/+.*//'
		done | sort -u >"$WORK/frames"
		[ "$(wc -l <"$WORK/frames")" = 1 ]
		t_result $? 'though their last user frame is the same'
		t_note "$(cat "$WORK/frames")"
	else
		t_skip 'they are two findings' 'kernel stacks need root'
	fi
	[ "$(count "$first")" = 1 ]
	t_result $? 'the first was seen once'
fi

for i in 1 2 3; do
	"$MMRACE" replay --quiet --runs 1 --out "$D/again" \
		tests/canary/futex.case >/dev/null
done
set -- "$D"/again/findings/*
[ $# = 1 ] && [ "$(count "$1")" = 3 ]
t_result $? "three starts: one finding, seen 3 times"
[ "$(find "$1/samples" -name '*.json' | wc -l)" = 2 ]
t_result $? 'with the evidence of the two later ones'

# A limit that nearly every call passes makes findings on any kernel: a soak
# that is started anew goes on counting where the last one ended.
for i in 1 2; do
	"$MMRACE" soak --quiet --cases 5 --seed 5 --limit syscall=5us \
		--revisit 0 --out "$D/soak" >/dev/null
done
seen=0
for f in "$D"/soak/findings/*/; do
	seen=$((seen + $(count "$f")))
done
lines=$(grep -c '"type":"finding"' "$D/soak/ledger.jsonl")
[ "$seen" = "$lines" ] && [ "$seen" -ge 4 ]
t_result $? "two soaks: $seen sightings in findings, $lines in the ledger"
grep -q '"ended_by": "itself"' "$D"/soak/findings/*/verdict.json
t_result $? 'a call that returned before anybody looked ended by itself'
more=0
for ((i = 0; i < 10; i++)); do
	f=$(t_json_get "$D/soak/soak.json" findings.$i.folder) || break
	[ "$(t_json_get "$D/soak/soak.json" findings.$i.count)" = "$(count "$f")" ] ||
		more=1
done
[ $i -gt 0 ] && [ $more = 0 ]
t_result $? 'two soaks: the second one tells the count of both'

# -- --known -----------------------------------------------------------------
sign=$(t_json_get "$1/verdict.json" signature)
day=$(date -u -d '+30 days' +%F)
printf '# ours\nknown   %s\nreason  a canary\nuntil   %s\n' "${sign% *}*" \
	"$day" >"$WORK/known"
t_run "$MMRACE" replay --quiet --runs 1 --out "$WORK/k" --json \
	--known "$WORK/known" tests/canary/futex.case
t_rc 'known: exit 0' 0
[ "$(t_json_get "$OUT" verdict)" = known ]
t_result $? 'known: it says so'
t_match 'known: with reason and day' "$OUT" \
	"set aside until $day \\(a canary\\): thread W"
[ "$(t_json_get "$OUT" hits)" = 0 ] && [ ! -e "$WORK/k/findings" ]
t_result $? 'known: no hit, no finding'
t_run "$MMRACE" replay --quiet --runs 1 --out "$WORK/k" \
	--known "$WORK/known" tests/canary/storm.case
t_rc 'known: another one is found' 1
sed -i "s/$day/2020-01-01/" "$WORK/known"
t_run "$MMRACE" replay --quiet --runs 1 --out "$WORK/k" \
	--known "$WORK/known" tests/canary/futex.case
t_rc 'expired: found again' 1
t_match 'expired: a warning' "$ERR" 'expired on 2020-01-01'
printf 'known long-syscall *a*e*\nreason any call with these\nuntil %s\n' "$day" \
	>"$WORK/blank"
t_run "$MMRACE" soak --quiet --cases 1 --known "$WORK/blank" --out "$WORK/k1"
t_rc 'stars around letters are a blanket too: exit 2' 2
printf 'known long-syscall m*map\nreason slow here\nuntil %s\nknown long-syscall madvise*\nreason slow too\nuntil %s\n' \
	"$day" "$day" >"$WORK/slow"
t_run "$MMRACE" soak --quiet --cases 8 --seed 5 --limit syscall=5us \
	--revisit 0 --known "$WORK/slow" --json --out "$WORK/k1"
n=$(($(t_json_get "$OUT" known.0.count) + $(t_json_get "$OUT" known.1.count)))
[ "$n" = "$(t_json_get "$OUT" verdicts.known)" ]
t_result $? "a soak counts what it sets aside ($n)"
[ "$n" = 0 ] || [ -n "$(ls "$WORK/k1/known/findings")" ]
t_result $? 'and keeps it'
printf 'known hang *\nreason x\nuntil %s\n' "$day" >"$WORK/known"
t_run "$MMRACE" soak --known "$WORK/known" --out "$WORK/k2" --cases 1
t_rc 'a blanket: exit 2' 2
t_match 'a blanket: its place' "$ERR" "^$WORK/known:1:11: a pattern names more"
[ ! -e "$WORK/k2" ]
t_result $? 'a blanket: nothing was run'
t_run "$MMRACE" soak --known "$WORK/nowhere" --out "$WORK/k2" --cases 1
t_rc 'no such file: exit 2' 2
none_running "$BUILD/mmrace-child"
t_result $? 'no child is left'
t_done
