#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a case expects: each expectation speaks where it must, and is silent
# about what the case permits.
#
# Red when: a limit below what the monitor sees is not held, waits for a CPU are
# held against a call, what was written is not what is read and nobody says so,
# or a race that the case permits is blamed.

. "$(dirname "$0")/../lib.sh"
t_need_tool

# speaks NAME CASE VERDICT, silent NAME CASE
run_case() {
	t_run "$MMRACE" replay --json --quiet --runs "${3:-1}" \
		--out "$WORK/out" "$2"
	if [ $RC = 4 ]; then
		t_skip "$1" "$(cat "$OUT" "$ERR" | tail -n 1)"
		return 1
	fi
}
speaks() {
	run_case "$1" "$2" || return
	t_rc "$1" 1
	t_match "... as $3" "$OUT" "\"verdict\": *\"$3\""
}
silent() {
	run_case "$1" "$2" "${3:-1}" || return
	t_rc "$1" 0
}

cat >"$WORK/late.case" <<'CASE'
mmrace-case 1
needs   memory>=1G
rounds  3 budget=20s
expect  call madvise within=5ms

process main
  thread A
    m0 = mmap len=128M prot=rw flags=private|anon
    madvise m0 nohugepage
    madvise m0 populate_write
CASE
speaks 'a call over a limit of 5 ms' "$WORK/late.case" long-syscall
sed 's/within=5ms/within=5s/' "$WORK/late.case" >"$WORK/intime.case"
silent 'the same call with time enough' "$WORK/intime.case"

# No call that takes the lock of the address space for itself: who looks at its
# /proc/PID/cmdline holds that lock, and sleeps with it where CPUs are short.
cat >"$WORK/delay.case" <<'CASE'
mmrace-case 1
rounds  1 budget=5s
expect  call madvise within=3ms

process main
  thread A cpu=0
    m0 = mmap len=4p prot=rw flags=private|anon
    write m0
    loop for=1s
      madvise m0 dontneed
      write m0 step=1p
    end

process hog copies=6
  thread H cpu=0
    h0 = mmap len=4p prot=rw flags=private|anon
    loop for=1s
      write h0
    end
CASE
silent 'calls that only wait for a CPU' "$WORK/delay.case"

cat >"$WORK/exit.case" <<'CASE'
mmrace-case 1
needs   memory>=1G
rounds  3 budget=20s
expect  exit within=3ms

process main
  thread A
    m0 = mmap len=256M prot=rw flags=private|anon
    madvise m0 nohugepage
    write m0 step=1p
    exit_group
CASE
speaks 'an exit over a limit of 3 ms' "$WORK/exit.case" long-exit
sed 's/within=3ms/within=5s/' "$WORK/exit.case" >"$WORK/exit2.case"
silent 'the same exit with time enough' "$WORK/exit2.case"

# content: what must be so on every kernel, and races of all kinds, which it must
# not blame; both compare pages, or silence would mean nothing.
cat >"$WORK/content.case" <<'CASE'
mmrace-case 1
title   content: what must be right
rounds  30 budget=10s
expect  content

process kid template
  thread K
    read m0 step=1p
    read m2 step=1p
    write m0 step=1p
    read m0 step=1p
    write m3
    madvise m0 dontneed
    read m0

process main
  thread A
    m0 = mmap len=8p prot=rw flags=private|anon
    read m0 step=1p
    write m0
    read m0
    madvise m0 pageout
    read m0 step=1p
    m3 = mmap len=8p prot=rw flags=shared|anon
    p0 = process_spawn kid
    process_reap p0
    read m0
    read m3
    madvise m0 dontneed off=2p len=3p
    read m0
    f0 = memfd_create
    ftruncate f0 len=16p
    m1 = mmap len=16p prot=rw flags=shared fd=f0
    m2 = mmap len=16p prot=rw flags=private fd=f0
    write m1 step=1p
    read m2 step=1p
    write m2 off=4p len=2p
    read m1 step=1p
    read m2 step=1p
    fallocate f0 mode=keep_size|punch_hole off=2p len=3p
    read m1 step=1p
    read m2 step=1p
    m0 = mremap m0 flags=maymove
    read m0
    ftruncate f0 len=4p
    ftruncate f0 len=16p
    read m1 step=1p
    munmap m1
    x0 = mmap len=4p prot=rw flags=private|anon|fixed at=0
    write x0
    x0 = mmap len=4p prot=rw flags=private|anon|fixed at=0
    read x0
    process_mrelease p0
CASE
cat >"$WORK/races.case" <<'CASE'
mmrace-case 1
title   content: races that are permitted
rounds  20 budget=3s
expect  content

process kid template copies=2
  thread K
    loop 20
      write m0 step=1p
      read m1
      write m1
      madvise m0 dontneed
      read m0
    end

process main
  thread A
    f0 = memfd_create
    ftruncate f0 len=4p
    m0 = mmap len=4p prot=rw flags=private|anon|fixed at=0
    m1 = mmap len=4p prot=rw flags=shared fd=f0
    signal go
    loop 15
      write m0
      write m1
      read m0
      read m1
      p0 = process_spawn kid
      m0 = mmap len=4p prot=rw flags=private|anon|fixed at=0
      read m0
      process_reap p0
    end
  thread B cpu=other(A)
    wait go
    loop until=done(A)
      write m0
      read m1
      madvise m0 dontneed
      ftruncate f0 len=2p
      ftruncate f0 len=4p
      m0 = mmap len=4p prot=rw flags=private|anon|fixed at=0
      m0 = mmap len=4p prot=rw flags=shared|anon|fixed at=0
      read m0
    end
  thread C
    wait go
    loop until=done(A)
      write m1 step=1p
      read m0
      m2 = mmap len=4p prot=rw flags=private fd=f0
      write m2 step=1p
      read m2
      munmap m2
      madvise m1 remove
    end
CASE
cat >"$WORK/nodes.case" <<'CASE'
mmrace-case 1
title   content: pages that go from node to node
needs   nodes>=2
rounds  5 budget=20s
expect  content

process kid template
  thread K
    read m0 step=1p
    write m0 off=1p len=2p
    migrate_pages from=n1 to=n0
    read m0

process main
  thread A
    m0 = mmap len=8p prot=rw flags=private|anon
    write m0
    migrate_pages from=n0 to=n1
    read m0
    p0 = process_spawn kid
    move_pages m0 to=0
    read m0 step=1p
    mbind m0 mode=bind nodes=n1 flags=move
    read m0
    process_reap p0
    read m0 step=1p
CASE
for name in content races nodes; do
	silent "content: silent about $name" "$WORK/$name.case"
	[ "$RC" = 4 ] && continue
	compared=$(t_json_get "$OUT" pages_compared)
	[ "${compared:-0}" -gt 100 ]
	t_result $? "... with pages compared (${compared:-none})"
done

# Pages of a private file mapping that come for writing are copies from then on,
# though nobody wrote them.
for how in 'mlock m2' 'mlockall flags=current' 'madvise m2 populate_write' \
	'm2 = mmap len=8p prot=rw flags=private|populate fd=f0'; do
	cat >"$WORK/copies.case" <<CASE
mmrace-case 1
title   content: copies that nobody wrote
rounds  3 budget=5s
expect  content

process main
  thread A
    f0 = memfd_create
    ftruncate f0 len=8p
    m1 = mmap len=8p prot=rw flags=shared fd=f0
    write m1 step=1p
    m2 = mmap len=8p prot=rw flags=private fd=f0
    read m2 step=1p
    $how -> 0|ENOMEM|EPERM|EINVAL
    write m1 step=1p
    read m1 step=1p
    read m2 step=1p
CASE
	silent "content: silent about copies by ${how%% *}" "$WORK/copies.case"
done

# A ref that changes between the mark of its pages and the write: one run in
# ten, when it was looked up for each.
cat >"$WORK/renewed.case" <<'CASE'
mmrace-case 1
rounds  14 budget=1s
expect  content

process main
  thread A
    m1 = mmap len=32p prot=rw flags=private|anon
    write m1 step=1p
    signal go
    loop 4
      mlock m1 -> 0|ENOMEM|EAGAIN|EPERM
      munmap m1
      m1 = mmap len=32p prot=rw flags=private|anon
      munlock m1
      sync s1
      write m1 step=1p
    end
  thread B cpu=other(A)
    wait go
    loop 4
      write m1 step=1p
      madvise m1 pageout off=14p len=11p
      read m1 step=1p
      sync s1 skew=-8698ns..25831ns aim=-77ns..2516ns
      read m1 step=1p
    end
  thread C cpu=other(A)
    wait go
    loop until=done(A)
      mlock m1 off=8p len=19p -> 0|ENOMEM|EAGAIN|EPERM
      madvise m1 willneed off=11p len=15p
      write m1 off=26p len=3p step=1p order=rand
    end
CASE
silent 'content: silent about a ref that changes' "$WORK/renewed.case" 40

# And a byte that changes behind its back, in each kind of place.
pokes() { # NAME STATEMENTS
	{
		printf 'mmrace-case 1\nexpect  content\n\n'
		printf 'process kid template\n  thread K\n    read m0\n\n'
		printf 'process main\n  thread A\n'
		printf '%s\n' "$2"
	} >"$WORK/poke.case"
	speaks "content: $1" "$WORK/poke.case" corruption
}
ANON='m0 = mmap len=8p prot=rw flags=private|anon'
pokes 'a fresh page' "$ANON
	poke m0 off=5000
	read m0 step=1p"
pokes 'a page that was written' "$ANON
	write m0
	poke m0 off=64
	read m0 step=1p"
pokes 'a page that was dropped' "$ANON
	write m0
	madvise m0 dontneed
	poke m0
	read m0 step=1p"
pokes 'after mremap' "$ANON
	write m0
	m1 = mremap m0 flags=maymove
	poke m1 off=4096
	read m1 step=1p"
pokes 'in a child, after fork' "$ANON
	write m0
	poke m0
	p0 = process_spawn kid
	process_reap p0"
FILE='f0 = memfd_create
	ftruncate f0 len=8p
	m1 = mmap len=8p prot=rw flags=shared fd=f0
	m0 = mmap len=8p prot=rw flags=private fd=f0'
pokes 'of a file, seen by another mapping' "$FILE
	write m1
	poke m1 off=8192
	read m0 step=1p"
pokes 'of a private copy' "$FILE
	write m1
	write m0
	poke m0
	read m0 step=1p"
pokes 'where a hole was punched' "$FILE
	write m1
	fallocate f0 mode=keep_size|punch_hole len=8p
	poke m1 off=4096
	read m1 step=1p"

# What came back and what did not.
cat >"$WORK/back.case" <<'CASE'
mmrace-case 1
rounds  3 budget=10s
expect  restored AnonPages

process main
  thread A
    m0 = mmap len=64M prot=rw flags=private|anon
    write m0 step=1p
CASE
silent 'restored: memory that comes back' "$WORK/back.case"
# Somebody takes memory and keeps it, in the group of the case: a leak, as far as
# one can see.  Outside of it, it is none.
sed -e 's/^rounds.*/rounds  1 budget=20s/' "$WORK/back.case" >"$WORK/leak.case"
echo '    delay 3s' >>"$WORK/leak.case"
group_of() {
	find /sys/fs/cgroup -type d \( -path "*/memory/*/mmrace-$1" -o \
		-path "*/memory/mmrace-$1" -o -path "*/mmrace-$1/run" \) \
		2>/dev/null | head -n 1
}
has_group() { [ -n "$(group_of "$1")" ]; }
leak() { # GROUP?: exit code of a run beside which 300 MiB are taken
	local pid hog
	"$MMRACE" replay --json --quiet --runs 1 --out "$WORK/out" \
		"$WORK/leak.case" >"$OUT" 2>"$ERR" &
	pid=$!
	eventually 5 has_group $pid
	(
		[ "$1" = in ] && echo "$BASHPID" >"$(group_of $pid)/cgroup.procs"
		head -c 300M /dev/zero | tail -c 300M | sleep 8
	) &
	hog=$!
	wait $pid
	RC=$?
	RAN="replay beside a process that takes memory"
	wait $hog
}
if is_root && [ -w /sys/fs/cgroup ]; then
	leak in
	t_rc 'restored: memory that does not come back' 1
	t_match '... as leak' "$OUT" '"verdict": *"leak"'
	leak out
	t_rc 'restored: what others take is not ours' 0
else
	t_skip 'restored: memory that does not come back' 'needs root'
fi
t_done
