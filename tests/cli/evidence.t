#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Evidence of the canaries: every file, the sentence, the order of the steps
# by their time stamps, and what ended the stall.  Red when a step comes out of
# order, before the disk has what it may destroy, or when a stall that a look
# ends is not told from one that goes on.

. "$(dirname "$0")/../lib.sh"
t_need_tool
TOOLS=$BUILD/tools
CANARIES=$TOP/tests/canary

# look CANARY ENDED_BY CLASS SENTENCE [VAR=VALUE...]: one hit; FOUND is its
# folder.  The sentence is an extended regular expression.
look() {
	local name=$1 ended=$2 class=$3 sentence=$4 f out=$WORK/$1-$2
	shift 4
	FOUND=
	t_run env "$@" "$MMRACE" replay --quiet --runs 1 --out "$out" \
		${HOOK:+--on-finding "$HOOK"} "$CANARIES/$name.case"
	if [ "$RC" = 4 ]; then
		t_skip "$name" "$(head -n 1 "$ERR" | cut -c 1-120)"
		return 1
	fi
	t_rc "$name, $ended: found" 1
	set -- "$out"/findings/*/
	FOUND=$1
	for f in case.case first.case verdict.json evidence.json stacks.txt \
		timeline.json report.md repro.c; do
		[ -s "$FOUND/$f" ] || echo "$f"
	done >"$WORK/missing"
	[ ! -s "$WORK/missing" ]
	t_result $? "$name, $ended: all files"
	t_note 'missing or empty:' "$WORK/missing"
	[ "$(t_json_get "$FOUND/evidence.json" ended_by)" = "$ended" ] &&
		[ "$(t_json_get "$FOUND/verdict.json" ended_by)" = "$ended" ]
	t_result $? "$name: ended by $ended"
	[ "$(t_json_get "$FOUND/evidence.json" class)" = "$class" ]
	t_result $? "$name, $ended: it is $class"
	t_json_get "$FOUND/evidence.json" text >"$WORK/text"
	t_match "$name, $ended: the sentence" "$WORK/text" "$sentence"
	t_note "$(cat "$WORK/text")"
	t_ok "$name, $ended: the steps are in order" "$TOOLS/ladder" \
		"$FOUND/evidence.json"
	t_ok "$name, $ended: the timeline is a trace" "$TOOLS/trace" \
		"$FOUND/timeline.json"
	[ -z "$(find "$out" -name 'spool-*')" ]
	t_result $? "$name, $ended: no spool is left"
}

NUMBER='[0-9]+(\.[0-9]+)?'
SINCE="for $NUMBER s \\(limit 2 s\\)"
STACK=
if is_root; then STACK='futex_'; fi

look futex none blocked \
	"thread W of process main \\(tid [0-9]+\\) is stuck in .futex_wait lost.: no progress in the calm phase $SINCE, asleep.* in $STACK.*: blocked.*no step of looking at it ended it"
t_match 'futex: its kernel stack' "$FOUND/stacks.txt" 'futex_|no kernel stack'
t_match 'futex: its user stack names the statement' "$FOUND/stacks.txt" \
	'^#[0-9]+ [a-z_]+[+]0x.*\(mmrace-child\)  <- statement 1: .futex_wait lost'
! grep -q '(mmrace-child)$' "$FOUND/stacks.txt"
t_result $? 'futex: so does every frame of mmrace-child'
t_match 'futex: what the kernel counted meanwhile' "$FOUND/report.md" \
	'^From step 1 to step 4, on the whole machine\. Softirqs: [A-Z]'
look uffd none blocked \
	"thread T .* is stuck in .write m0 step=1p.: .*$SINCE, asleep.*: blocked"
look exit none held \
	'process victim \(pid [0-9]+\) has not finished its exit after .* stopped.*held by its tracer thread T of process main \(tid [0-9]+\)'

# Who holds what, where the lock itself says it.
cat >"$WORK/owned.case" <<'EOT'
mmrace-case 1
title   a lock that somebody keeps
expect  progress within=2s

process main
  thread A
    futex_lock_pi p
    signal ready
    pause
  thread B
    wait ready
    futex_lock_pi p
EOT
t_run "$MMRACE" replay --quiet --json --runs 1 --out "$WORK/owned" \
	"$WORK/owned.case"
if [ "$RC" = 4 ]; then
	t_skip 'owned' "$(head -n 1 "$ERR" | cut -c 1-120)"
else
	t_rc 'owned: found' 1
	t_json_get "$OUT" text >"$WORK/text"
	t_match 'owned: its owner by name' "$WORK/text" \
		'thread B .* in .futex_lock_pi p.: .*, for a lock that thread A of process main \(tid [1-9][0-9]*\) holds: blocked'
	t_note "$(cat "$WORK/text")"
fi

# sysrq is asked for, or it is not a step.
[ -z "$(t_json_get "$FOUND/evidence.json" steps.6)" ]
t_result $? 'six steps, as long as nobody asks for sysrq'
t_run "$MMRACE" replay --quiet --runs 1 --sysrq --out "$WORK/sysrq" \
	"$CANARIES/futex.case"
t_rc '--sysrq: found' 1
e=$(echo "$WORK"/sysrq/findings/*/evidence.json)
t_ok '--sysrq: the steps are in order' "$TOOLS/ladder" "$e"
[ "$(t_json_get "$e" steps.4.name)" = maps ] &&
	[ "$(t_json_get "$e" steps.5.name)" = sysrq ] &&
	[ "$(t_json_get "$e" steps.6.name)" = ptrace ]
t_result $? '--sysrq: after maps, ahead of ptrace'
if is_root && [ -w /proc/sysrq-trigger ]; then
	t_json_get "$e" sysrq_log >"$WORK/sysrq.log"
	t_match '--sysrq: what it wrote' "$WORK/sysrq.log" '[Ss]ysrq|NMI|State'
else
	t_json_get "$e" missing >"$WORK/sysrq.log"
	t_match '--sysrq: it says that it was refused' "$WORK/sysrq.log" \
		'"sysrq: [A-Z]'
fi

# What a debugger's attach ends: asleep, and a storm on a CPU.
look ptrace ptrace blocked \
	"thread W .* is stuck in .rt_sigtimedwait.: .*asleep.*: blocked.*it went on after step ptrace"
look ptrace-storm ptrace storm \
	'thread A .* faults again and again in .write m0., .*[1-9][0-9]* page faults/s( all)? at 0x[0-9a-f]+, .*it went on after step ptrace'

# A signal and a flush of the TLB are what no step does to a task by itself:
# here the helper that a step runs does it, and then it is that step which ended
# the stall.  The sleep minds the signal, as a stop ends it.  The storm minds
# the flush alone: while its CPU has the first page of the access in the TLB, it
# is the second one that faults.
cat >"$WORK/cure" <<'EOT'
#!/bin/sh
[ -z "$SPOOL" ] || cp "$SPOOL"/spool-*.json "$SPOOL/seen-$2" 2>/dev/null
if [ "$2" = "$CURE" ]; then
	case $WITH in
	signal) kill -STOP "$3" && kill -CONT "$3" ;;
	flush) "$TOOLS/flush" "$3" ;;
	esac
fi
exec "$REAL" "$@"
EOT
chmod +x "$WORK/cure"
export TOOLS REAL="$MMRACE"
for step in proc maps; do
	look ptrace $step blocked "it went on after step $step" CURE=$step \
		WITH=signal MMRACE_HELPER="$WORK/cure" \
		SPOOL="$WORK/ptrace-$step"
done
t_match 'maps: what would disturb it is left out' "$FOUND/report.md" \
	'ptrace.*skipped: it moves again'
# What the helper of step 5 found on the disk, and that of step 3 did not.
s=$WORK/ptrace-maps/seen-maps
[ "$(t_json_get "$s" steps.3.name)" = kernel ] &&
	[ -z "$(t_json_get "$s" steps.4)" ] &&
	[ -n "$(t_json_get "$s" tasks.0.samples)" ] &&
	[ -n "$(t_json_get "$s" area.threads.0.ring)" ] &&
	[ -n "$(t_json_get "$s" kernel.vmstat_delta)" ]
t_result $? 'maps: steps 1 to 4 are on the disk when it begins'
[ ! -e "$WORK/ptrace-maps/seen-proc" ]
t_result $? 'maps: and not before'
STORM='thread A .* faults again and again in .write m0 off=4092 step=8 width=8., .*page faults/s( all)? at 0x[0-9a-f]+'
for step in proc maps; do
	look flush-storm $step storm "$STORM.*it went on after step $step" \
		CURE=$step WITH=flush MMRACE_HELPER="$WORK/cure"
done
if is_root && [ -n "$(t_json_get "$FOUND/evidence.json" perf)" ]; then
	t_json_get "$FOUND/evidence.json" perf.chains >"$WORK/chains"
	t_match 'flush-storm: names, though its process has gone' \
		"$WORK/chains" '"mmr_touch_write8[+]0x'
	! grep -Eq '^  0x4[0-9a-f]{5}$' "$FOUND/stacks.txt"
	t_result $? 'flush-storm: every frame has one'
fi
look flush-storm none storm "$STORM.*no step of looking at it ended it" \
	CURE=maps WITH=signal MMRACE_HELPER="$WORK/cure"
# shellcheck disable=SC2016 # for the hook's shell
HOOK='kill -STOP $MMRACE_PID; kill -CONT $MMRACE_PID' \
	look ptrace on-finding blocked 'it went on after on-finding'

# The storm's numbers against another program's count of the same time: perf's
# in its window, and those of the sentence, which are the monitor's.
"$TOOLS/faultcount" "$BUILD/mmrace-child" 20000 "$WORK/count" &
counter=$!
look storm none storm \
	'thread T .* faults again and again in .write m0., no new page for .* page faults/s( all)? at 0x[0-9a-f]+, no voluntary'
kill $counter
wait $counter 2>/dev/null
e=$FOUND/evidence.json
if [ -z "$(t_json_get "$e" perf)" ]; then
	t_skip 'storm: faults a second' 'no perf here'
else
	# same WHAT END_MS LENGTH_MS FAULTS: the other's counts at the ends of
	# that time, each between two of its lines.
	same() {
		awk -v tid="$(t_json_get "$e" culprit.host_tid)" \
			-v t0="$(t_json_get "$e" t0_monotonic_ns)" \
			-v at="$2" -v w="$3" -v faults="$4" '
		function at_time(t,  i) {
			i = 2
			while (i < n && time[i] < t)
				i++
			part = (t - time[i - 1]) / (time[i] - time[i - 1])
			return count[i - 1] + (count[i] - count[i - 1]) * part
		}
		$1 == tid { n++; time[n] = $2; count[n] = $3 }
		END {
			end = t0 + at * 1e6
			other = at_time(end) - at_time(end - w * 1e6)
			printf "in %.0f ms: %.0f faults, ", w, faults
			printf "the other counts %.0f\n", other
			off = faults / other - 1
			exit !(off < 0.1 && off > -0.1 && n > 50)
		}' "$WORK/count" >"$WORK/rates"
		t_result $? "storm: faults $1 within 10 % of another count"
		t_note "$(cat "$WORK/rates")"
	}
	end=$(awk -v at="$(t_json_get "$e" steps.1.at_ms)" \
		-v took="$(t_json_get "$e" steps.1.took_ms)" \
		'BEGIN { print at + took }')
	window=$(t_json_get "$e" perf.window_ms)
	same "in perf's window" "$end" "$window" \
		"$(t_json_get "$e" perf.page_faults)"
	window=$(t_json_get "$e" measured.page_faults_in_ms)
	rate=$(grep -Eo '[0-9]+ page faults/s' "$WORK/text")
	same 'of the sentence' "$(t_json_get "$e" measured.flagged_at_ms)" \
		"$window" "$(awk -v r="${rate%% *}" -v w="$window" \
			'BEGIN { print r * w / 1e3 }')"
fi
# The address is where the case mapped its page: what the ring says.
mapped=$(printf '0x%x' "$(t_json_get "$FOUND/timeline.json" \
	traceEvents | grep -o '"result":[0-9]*' | head -n 1 | cut -d : -f 2)")
grep -q "at $mapped," "$WORK/text"
t_result $? "storm: at the address of its page ($mapped)"
t_match 'storm: user stack by symbol, offset and file' "$FOUND/stacks.txt" \
	'^#[0-9]+ mmr_touch_[a-z]+[+]0x[0-9a-f]+ \(mmrace-child\)'
if is_root && [ -n "$(t_json_get "$e" perf)" ]; then
	t_match 'storm: the CPU profile is in stacks.txt' \
		"$FOUND/stacks.txt" '^while on a CPU \(perf, [0-9]+ samples\)'
	t_match 'storm: with kernel functions by name' "$FOUND/stacks.txt" \
		'^  (asm_)?exc_page_fault[+]0x|^  do_(page_fault|mem_abort)[+]0x'
fi

# What is in the way of the disk does not hide the stall.
t_run env TMPDIR="$WORK/nowhere" "$MMRACE" replay --quiet --runs 1 \
	--out /dev/null/no "$CANARIES/storm.case"
t_rc 'no disk: found all the same' 1
t_match 'no disk: it says so' "$ERR" 'cannot be stored in /dev/null/no'

none_running "$BUILD/mmrace-child"
t_result $? 'no mmrace-child is left'
t_done
