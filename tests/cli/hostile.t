#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A fault storm where all is against us at once: no root, no perf (refused by
# seccomp), /proc that shows nobody else's processes, a disk that is full, and
# 64 threads that are stuck beside it.  Red when it is not flagged, when what
# can be known of it is not told, or when what cannot is passed over.

. "$(dirname "$0")/../lib.sh"
t_need_tool
if ! is_root || ! command -v setpriv >/dev/null; then
	t_skip 'a storm against all odds' 'needs root to take it away, and setpriv'
	t_done
fi
unshare -m true 2>/dev/null || {
	t_skip 'a storm against all odds' 'no mount namespace here'
	t_done
}

cp "$BUILD/mmrace" "$BUILD/mmrace-child" "$BUILD/tools/noperf" "$WORK/"
cat >"$WORK/storm.case" <<'EOT'
mmrace-case 1
title   a storm among 64 that are stuck
expect  progress within=4s

process main
  thread M
    loop 64
      t0 = thread_spawn body=W
    end
    t1 = thread_spawn body=S
    thread_join t1
  thread W template
    futex_wait lost
  thread S template segv=return
    m0 = mmap len=1p prot=none flags=private|anon
    write m0
EOT
chmod 755 "$WORK"
chmod 644 "$WORK/storm.case"
mkdir "$WORK/disk" "$WORK/proc"

# In a mount namespace of its own, which takes all of it along when it ends.
cat >"$WORK/inside" <<'EOT'
set -e
cd "$1"
mount -t tmpfs -o size=128k,mode=1777 none disk
mount -t proc -o hidepid=2 proc /proc
: >err
head -c 1000000 /dev/zero >disk/fill 2>/dev/null || true
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
	--bounding-set=-all env HOME=/nonexistent TMPDIR="$1/disk" \
	./noperf ./mmrace replay --quiet --json --runs 1 --out disk/out \
	storm.case
EOT
start=$(date +%s%N)
t_run unshare -m --propagation private bash "$WORK/inside" "$WORK"
t_note "$((($(date +%s%N) - start) / 1000000)) ms in all"
t_rc 'all at once: found' 1
[ "$(t_json_get "$OUT" verdict)" = fault-storm ]
t_result $? 'it is a fault storm'
t_json_get "$OUT" text >"$WORK/text"
t_note "$(cat "$WORK/text")"
t_match 'the sentence has statement, rate and address' "$WORK/text" \
	'thread S .* in .write m0., .* [1-9][0-9]* page faults/s at 0x[0-9a-f]+'
t_match 'no disk: it says so' "$ERR" 'cannot be stored in disk/out: No space'
# The report goes where one can read it instead.
t_match 'the report is on standard error' "$ERR" '^Subject: .BUG. mm: fault-storm'
t_match 'with the user stack' "$ERR" '#[0-9]+ mmr_touch_write[+]0x'
t_match 'with the case' "$ERR" 'mmrace-case 1'
t_match 'with one of the stuck ones' "$ERR" \
	'thread W of process main, in .futex_wait lost., state S'
t_match 'and the others' "$ERR" '^ +63 more in the same place as tid [0-9]+:'
for what in 'perf: Operation not permitted' 'stack: Permission denied' \
	'kernel log: ' 'evidence on disk before step 5: No space'; do
	t_match "it says what was not: $what" "$ERR" "^ +.*$what"
done

# The same where it is well: what was missing was the world's doing.
t_run "$MMRACE" replay --quiet --json --runs 1 --out "$WORK/well" \
	"$WORK/storm.case"
t_rc 'with everything: found' 1
set -- "$WORK"/well/findings/fault-storm-*/
[ -s "$1/evidence.json" ]
t_result $? 'the same verdict'
"$BUILD/tools/json" "$1/evidence.json" missing >"$WORK/missing"
t_match 'with everything: nothing of that is missing' "$WORK/missing" '^\[\]$'
none_running "$WORK/mmrace-child" && none_running "$BUILD/mmrace-child"
t_result $? 'no child is left'
t_done
