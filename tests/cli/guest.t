#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Throw-away guests, in about a minute: a canary is found in one, a kernel
# that does not exist is a sentence, and no QEMU outlives its runner, which
# ends within a second of Ctrl-C.  Needs
# QEMU, `make guest`, and a kernel: that of the lab, or an installed one.

. "$(dirname "$0")/../lib.sh"
t_need_tool
# A killed runner leaves its folder; here it goes with ours.
export TMPDIR=$WORK

find_guest

t_run "$MMRACE" replay --guest /nowhere/bzImage tests/canary/futex.case
t_rc 'a kernel that is not there: exit 2' 2
t_match 'and a sentence' "$ERR" 'cannot read the kernel'
t_run "$MMRACE" replay --guest x --guest-mem 7 tests/canary/futex.case
t_rc '--guest-mem 7: exit 2' 2

if [ -n "$why" ]; then
	t_skip 'a canary in a guest' "$why"
	t_done
	exit
fi

t_run "$MMRACE" replay --quiet --json --guest "$kernel" --out "$WORK/out" \
	tests/canary/futex.case
t_rc 'the futex canary in a guest: exit 1' 1
[ "$(t_json_get "$OUT" verdict)" = hang ]
t_result $? 'its verdict is hang'
set -- "$WORK"/out/findings/hang-*/
t_result $([ -s "$1/evidence.json" ] && echo 0 || echo 1) 'its evidence came out'

qemus() { pgrep -P "$1" -f qemu-system; }

# start WHAT...: mmrace with a guest in the background; runner, and once it is
# there, qemu, and its folder.
start() {
	"$MMRACE" "$@" --quiet --json --guest "$kernel" --out "$WORK/out" \
		>"$WORK/json" 2>"$WORK/err" </dev/null &
	runner=$!
	for _ in $(seq 600); do
		qemu=$(qemus $runner | head -1) && [ -n "$qemu" ] && break
		sleep 0.05
	done
}

# until_runs TIMES: its state is saved, and a fresh guest has been started from
# it so many times: the first is the trial of the state.
until_runs() {
	local n now
	for n in $(seq "$1"); do
		for _ in $(seq 600); do
			now=$(qemus $runner | head -1)
			[ -n "$now" ] && [ "$now" != "$qemu" ] && break
			sleep 0.05
		done
		qemu=$now
	done
	sleep 0.3
}

# ends SIGNAL: how many ms after the signal runner and QEMU are gone.
ends() {
	local from to
	from=$(date +%s%N)
	kill -"$1" $runner
	wait $runner 2>/dev/null
	RC=$?
	# Who adopts a killed runner's QEMU may take its time to reap it.
	while [ -e "/proc/$qemu/exe" ] && [ -n "$(readlink "/proc/$qemu/exe")" ]; do
		sleep 0.01
	done
	to=$(date +%s%N)
	ms=$(((to - from) / 1000000))
}

# On a loaded machine a second may be more.
limit=$((1000 + ${MMR_SLACK_MS:-0}))

printf '%s\n' 'mmrace-case 1' 'rounds 100000 budget=20s' 'process main' \
	'  thread A' '    m0 = mmap len=1p prot=rw flags=shared|anon' \
	'    delay 2ms' >"$WORK/long.case"
# And with runs that are over at once.
sed '/delay/d; s/100000/1/' "$WORK/long.case" >"$WORK/short.case"

start replay tests/canary/futex.case
[ -n "$qemu" ]
t_result $? 'a runner has its QEMU'
ends INT
[ $ms -lt $limit ] && [ "$RC" = 3 ] && grep -q interrupted "$WORK/err"
t_result $? "Ctrl-C while it boots: over in $ms ms, and it says so"

start soak --time 5m
until_runs 1
eventually 60 test -e "$WORK/out/soak.json"
ends INT
[ $ms -lt $limit ] && [ "$RC" -le 1 ] &&
	[ "$(t_json_get "$WORK/json" state)" = interrupted ]
t_result $? "Ctrl-C while it runs: over in $ms ms, with results"

start replay --runs 1000 "$WORK/short.case"
until_runs 3
ends INT
[ $ms -lt $limit ] && [ "$RC" -le 1 ] && [ -s "$WORK/json" ]
t_result $? "Ctrl-C between restores: over in $ms ms, with results"
t_note 'standard error of it:' "$WORK/err"

start replay --runs 1000 "$WORK/long.case"
ends 9
[ $ms -lt $limit ]
t_result $? "kill -9 while it boots: no QEMU is left after $ms ms"

start replay --runs 1000 "$WORK/long.case"
until_runs 1
ends 9
[ $ms -lt $limit ]
t_result $? "kill -9 while it runs: no QEMU is left after $ms ms"
t_done
