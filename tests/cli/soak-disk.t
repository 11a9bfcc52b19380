#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Red when findings outgrow their quota or are lost without a word, when a log
# grows without end, when a full disk ends a soak, doubles a case or damages
# the ledger, or when what lies on a read-only disk cannot be read.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../ledger.sh"
t_need_tool

# Findings in plenty: calls may take no time at all.
plenty() { "$MMRACE" soak --profile storm --seed 5 --revisit 0 --quiet \
	--limit syscall=50us "$@" >"$OUT" 2>"$ERR"; }
t_run "$MMRACE" soak --quota 5K --time 1 --out "$WORK/none"
t_rc '--quota 5K' 2
head -c $((4 << 20)) /dev/zero | tr '\0' 'x' >"$WORK/log"
echo old >"$WORK/log.1"
echo older >"$WORK/log.2"
echo oldest >"$WORK/log.3"
plenty --time 8 --quota 256K --log "$WORK/log" --out "$WORK/q"
rc=$?
[ $rc = 1 ]
t_result $? "a soak that finds a lot ($rc)"
t_match 'says that its quota is reached' "$ERR" 'the quota is reached'
# The ledger, the record and soak.json go on: they are bounded by what they are.
kb=$(du -sk --exclude=ledger.jsonl --exclude=runs.jsonl --exclude=soak.json \
	"$WORK/q" | cut -f 1)
[ "$kb" -gt 0 ] && [ "$kb" -lt 512 ]
t_result $? "and keeps to it (256 kB; $kb kB)"
# Every case with a hit has its line, with its seed, whatever is on disk.
hits=$(t_json_get "$WORK/q/soak.json" verdicts.long-syscall)
lines=$(grep -c '"type":"finding"' "$WORK/q/ledger.jsonl")
[ "${hits:-0}" -gt 3 ] && [ "$hits" = "$lines" ]
t_result $? "all hits are in the ledger ($lines of ${hits:-none})"
bare=0 whole=0
for v in "$WORK"/q/findings/*/verdict.json; do
	[ -s "${v%/*}/case.case" ] || continue
	[ "$(stat -c %s "${v%/*}/evidence.json")" -gt 100 ] &&
		whole=$((whole + 1)) || bare=$((bare + 1))
done
[ $whole -gt 0 ]
t_result $? "findings have cases, $whole of them evidence, $bare none"
t_match 'the log has the findings' "$WORK/log" \
	'^20..-..-..T[0-9:]*Z found long-syscall-.* with seed 0x'
t_match 'and how it went' "$WORK/log" 'Z 8 s: [0-9]* cases'
[ "$(stat -c %s "$WORK/log")" -lt 100000 ] &&
	[ "$(stat -c %s "$WORK/log.1")" -ge $((4 << 20)) ] &&
	grep -q '^old$' "$WORK/log.2" && grep -q '^older$' "$WORK/log.3" &&
	[ ! -e "$WORK/log.4" ]
t_result $? 'a log of 4 MiB is set aside, and the oldest goes'

is_root && mkdir "$WORK/disk" &&
	mount -t tmpfs -o size=1M mmrace-test "$WORK/disk" 2>/dev/null || {
	t_skip 'a full disk' 'cannot mount a small one'
	t_done
}
trap 'umount "$WORK/disk" 2>/dev/null; rm -rf "$WORK"' EXIT
d=$WORK/disk/o
begun() { [ "$(counted "$d")" -ge 3 ]; }
"$MMRACE" soak --profile storm --seed 7 --cases 40 --jobs 2 --quiet \
	--out "$d" >"$OUT" 2>"$ERR" &
pid=$!
eventually 20 begun
dd if=/dev/zero of="$WORK/disk/fill" bs=4k 2>/dev/null
wait $pid
rc=$?
[ $rc = 0 ] && [ "$(counted "$d")" = 40 ]
t_result $? "a disk that is full goes on being used ($rc, $(counted "$d"))"
[ "$(grep -c 'No space' "$ERR")" -le 3 ]
t_result $? 'that is not said all the time'
t_note 'it said:' "$ERR"
readable "$d"
t_result $? 'its ledger is whole'
t_run "$MMRACE" soak --resume --cases 44 --quiet --out "$d"
t_note "resumed on the full disk: exit $RC" "$ERR"
rm "$WORK/disk/fill"
t_run "$MMRACE" soak --resume --cases 48 --quiet --out "$d"
t_rc 'there is room again: it goes on' 0
numbers "$d" >"$WORK/got"
seq 0 47 >"$WORK/want"
t_same 'each case is done once' "$WORK/want" "$WORK/got"

mount -o remount,ro "$WORK/disk"
t_run "$MMRACE" soak --resume --cases 60 --quiet --out "$d"
t_rc 'a read-only folder: it does not start' 3
t_match 'and says why' "$ERR" 'Read-only file system'
[ "$(counted "$d")" = 48 ]
t_result $? 'its ledger is read'
t_run "$MMRACE" merge "$d" -o "$WORK/merged"
t_rc 'and merged' 0
t_run "$MMRACE" compare "$d" "$d"
t_rc 'and compared' 0
t_done
