#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The calibration table: doctor --calibrate fills it, runs add to it, a bad
# file does no harm.  Red when it is not kept between runs, when a skew=auto
# does not come from it, or when a late start is not told.
. "$(dirname "$0")/../lib.sh"

export XDG_CACHE_HOME=$WORK/cache
table=$XDG_CACHE_HOME/mmrace/calibration-$(uname -n)

cat >"$WORK/auto.case" <<'C'
mmrace-case 1
rounds  3

process main
  thread A
    m0 = mmap len=1p prot=rw flags=private|anon
    loop 20
      sync s
      mprotect m0 prot=none
      mprotect m0 prot=rw
    end
  thread B
    loop 20
      sync s skew=auto
      read m0 len=1 -> 0|EFAULT
    end
C

t_run "$MMRACE" replay "$WORK/auto.case" --json --out "$WORK/out"
t_rc 'a case with skew=auto runs where nothing is known' 0
t_json 'its result is JSON' "$OUT"
[ "$(t_json_get "$OUT" rounds)" = 3 ]
t_result $? 'rounds that calibrate are not counted'
[ "$(t_json_get "$OUT" late_rounds)" -ge 0 ]
t_result $? 'late rounds are told'
grep -q '^mprotect 0 private ' "$table"
t_result $? 'what it measured is kept'

t_run "$MMRACE" doctor --calibrate --json
t_rc 'doctor --calibrate' 0
t_json 'its table is JSON' "$OUT"
grep -q '^munmap 2 shared ' "$table" && grep -q '^process_reap 0 none ' "$table"
t_result $? 'it has the usual operations'

t_run "$MMRACE" doctor
grep -q '^ok  calibration: ' "$OUT"
t_result $? 'doctor says that there is a table'

# A hit: its offsets in nanoseconds, the bounds of the draw, what was given.
cat >"$WORK/storm.case" <<'C'
mmrace-case 1
expect  progress within=2s

process main
  thread T segv=return
    m0 = mmap len=1p prot=none flags=private|anon
    sync s skew=auto
    write m0
  thread B
    sync s
    madvise m0 dontneed
C
t_run "$MMRACE" replay "$WORK/storm.case" --out "$WORK/out"
t_rc 'a storm after a rendezvous is found' 1
f=$(echo "$WORK"/out/findings/*)
t_match 'exact.case has the offset of the hit' "$f/exact.case" \
	'^    sync s( skew=-?[0-9]+(ns|us))?$'
t_match 'case.case has the bounds of the draw and its aim' "$f/case.case" \
	'^    sync s skew=-[0-9]+(ns|us)\.\.[0-9]+(ns|us) aim=-[0-9]+(ns|us)\.\.[0-9]+(ns|us)$'
t_match 'first.case is as it was given' "$f/first.case" \
	'^    sync s skew=auto$'

head -c 300 /dev/urandom >"$table"
t_run "$MMRACE" replay "$WORK/auto.case" --out "$WORK/out"
t_rc 'a table that makes no sense is no table' 0
grep -q '^mprotect 0 private ' "$table"
t_result $? 'and it is made anew'
t_done
