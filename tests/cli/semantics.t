#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What once went wrong and nothing else here would show.  Each line says what
# it was.

. "$(dirname "$0")/../lib.sh"
t_need_tool

replay() { t_run "$MMRACE" replay --quiet --json --out "$WORK/out" "$@"; }

# A kill through a pidfd ref was skipped without a word.
cat >"$WORK/pidfd.case" <<'END'
mmrace-case 1
rounds 5 budget=5s

process main
  thread A
    p0 = process_spawn idle
    q0 = pidfd_open p0
    kill q0 KILL -> 0
    process_reap p0
END
replay "$WORK/pidfd.case"
t_rc 'kill by pidfd: exit 0' 0
t_match 'it is called in each round' "$OUT" '"kill q0 KILL -> 0"[^}]*"count":5'

# A traced process that stops at a signal was taken for one that exits.
cat >"$WORK/traced.case" <<'END'
mmrace-case 1
rounds 1 budget=5s

process x template
  thread X
    loop
      delay 1us
    end

process main
  thread A
    p0 = process_spawn x
    ptrace_seize p0
    kill p0 USR1
    kill p0 INT
    process_reap p0
END
replay "$WORK/traced.case"
if [ "$RC" = 4 ]; then
	t_skip 'a signal to a traced process is no exit' 'needs not met'
else
	t_rc 'a signal to a traced process is no exit' 0
fi

# A device was replaced by a file.
t_run "$MMRACE" gen --seed 7 -o /dev/full
t_rc 'gen -o /dev/full: an error' 2
t_ok '/dev/full is still a device' test -c /dev/full

# --out was taken for --output where there is no --out.
t_run "$MMRACE" min --out "$WORK/x" "$WORK/pidfd.case"
t_rc 'min --out: unknown option' 2
t_match 'and it says so' "$ERR" 'unknown option --out'

# What would answer a fault ends with the storm: nothing is handed to it after
# that.  Was void, or a hang.
cat >"$WORK/late.case" <<'END'
mmrace-case 1
needs syscall=userfaultfd
rounds 1 budget=100ms

process main
  thread A
    m0 = mmap len=1p prot=rw flags=private|anon
    delay 300ms
    u0 = userfaultfd flags=user_mode_only
    uffd_register u0 m0
    write m0
END
replay "$WORK/late.case"
if [ "$RC" = 4 ]; then
	t_skip 'a range registered after the storm is not' 'needs not met'
else
	[ "$(t_json_get "$OUT" verdict)" = nothing ]
	t_result $? 'a range registered after the storm is not'
fi

# Threads that make threads for ever: bounded, and no failure of the tool.
cat >"$WORK/bomb.case" <<'END'
mmrace-case 1
rounds 2 budget=2s

process main
  thread T template
    loop
      t0 = thread_spawn body=T
    end
  thread A
    loop
      t0 = thread_spawn body=T
    end
END
replay "$WORK/bomb.case"
t_rc 'a bomb of threads: exit 0' 0
t_done
