#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fifty times something is taken away from a soak at a random moment: the
# engine, a child, the guest or who runs it (kill -9), the room on its disk, the
# right to write there.  (MMR_ENGINE, MMR_CHILD, MMR_GUEST, MMR_FULL,
# MMR_READONLY: how often each; MMR_KERNEL: of the guest.)
#
# Red when: the ledger cannot be read or has a damaged line, more than the cases
# that were running are lost or one is not named, --resume does not go on, a case
# counts twice or not at all, something is found on a healthy kernel, or a
# process or a QEMU is left.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../ledger.sh"
t_need_tool
ENGINE=${MMR_ENGINE:-18} CHILD=${MMR_CHILD:-12} GUEST=${MMR_GUEST:-6}
FULL=${MMR_FULL:-7} READONLY=${MMR_READONLY:-7}
export TMPDIR=$WORK # a killed runner's folder goes with ours
child=$BUILD/mmrace-child

# random MIN MAX: milliseconds, as seconds for sleep.
random() {
	local ms=$((RANDOM * 32768 + RANDOM))
	ms=$(($1 + ms % ($2 - $1)))
	printf '%d.%03d' $((ms / 1000)) $((ms % 1000))
}
tree() {
	local p
	echo "$1"
	for p in $(cat "/proc/$1/task"/*/children 2>/dev/null); do
		tree "$p"
	done
}
bad=0
# complain TEXT: what follows of one kind of runs counts as failed.
complain() {
	bad=$((bad + 1))
	t_note "$1"
}
# check DIR WHAT: its ledger is whole, nothing was found in a healthy kernel.
check() {
	readable "$1" || complain "$2: the ledger of $1 is damaged"
	[ -z "$(ls "$1/findings" 2>/dev/null)" ] ||
		complain "$2: found $(ls "$1/findings")"
}
# whole DIR N WHAT: cases 0 to N-1 are done, each once, and count; but for those
# that were running at two kills, which --resume sets aside.
aside=0
whole() {
	local n
	numbers "$1" >"$WORK/got"
	seq 0 $(($2 - 1)) >"$WORK/want"
	for n in $(sort "$WORK/got" | comm -13 - <(sort "$WORK/want")); do
		[ "$(grep '"type":"lost"' "$1/ledger.jsonl" |
			grep -c "\"case\":$n,")" -ge 2 ] ||
			complain "$3: case $n is neither done nor lost twice"
		sed -i "/^$n\$/d" "$WORK/want"
	done
	cmp -s "$WORK/got" "$WORK/want" ||
		complain "$3: $(diff "$WORK/want" "$WORK/got" | tr '\n' ' ')"
	aside=$(($2 - $(wc -l <"$WORK/want")))
	[ "$(counted "$1")" = "$(wc -l <"$WORK/want")" ] ||
		complain "$3: counts $(counted "$1") of $2 cases"
}
# finish DIR WHAT [COMMAND...]: runs what is missing up to the last case; sets
# last to their number.
finish() {
	local d=$1 what=$2
	shift 2
	[ $# -gt 0 ] || set -- "$MMRACE"
	# Takes over what a kill left in ledger.now, and does nothing.
	"$@" soak --resume --cases 1 --quiet --out "$d" >/dev/null 2>&1
	last=$(numbers "$d" | tail -n 1)
	last=$((${last:-0} + 1))
	"$@" soak --resume --cases $last --quiet --out "$d" >/dev/null 2>&1
	whole "$d" $last "$what"
}
none_of() { ! grep -lsx "PPid:	$1" /proc/[0-9]*/status >/dev/null; }

# The engine: killed, resumed, killed, ... and at last left alone.
engines() {
	bad=0 kills=0 named=0 jobs=2
	"$MMRACE" soak --seed 11 --jobs $jobs --cases 1000000 --quiet \
		--out "$WORK/e" >/dev/null 2>&1 &
	pid=$!
	while [ $kills -lt "$ENGINE" ]; do
		sleep "$(random 20 3000)"
		kill -9 $pid || complain 'the engine ended by itself'
		wait $pid 2>/dev/null
		kills=$((kills + 1))
		eventually 5 none_of $pid || complain "kill $kills: processes are left"
		before=$(counted "$WORK/e") was=$(lost "$WORK/e")
		check "$WORK/e" "kill $kills"
		"$MMRACE" soak --resume --jobs $jobs --quiet --out "$WORK/e" \
			--cases 1000000 >/dev/null 2>&1 &
		pid=$!
		# What the ledger says of the last one it says before it goes on.
		on() { [ "$(counted "$WORK/e")" -gt "$before" ]; }
		eventually 60 on || complain "kill $kills: --resume does not go on"
		now=$(lost "$WORK/e")
		[ $((now - was)) -le $jobs ] || complain "kill $kills: $((now - was)) lost"
		[ "$now" = "$(kept "$WORK/e")" ] ||
			complain "kill $kills: $now cases lost, $(kept "$WORK/e") kept"
		named=$now
	done
	kill -INT $pid
	wait $pid
	finish "$WORK/e" engine
	[ $bad = 0 ]
	t_result $? "engine killed $kills times: $last cases, each once; $named named,\
 $aside of them set aside"
}

# A child: a process of a case, its supervisor, whatever; the soak goes on.
children() {
	bad=0 kills=0
	"$MMRACE" soak --seed 12 --jobs 2 --quiet --out "$WORK/c" >/dev/null \
		2>"$WORK/c.err" &
	pid=$!
	for _ in $(seq $((CHILD * 20))); do
		[ $kills -lt "$CHILD" ] || break
		sleep "$(random 20 1000)"
		one=$(for p in $(tree $pid); do
			[ "$(readlink "/proc/$p/exe")" = "$child" ] && echo "$p"
		done | shuf -n 1)
		[ -n "$one" ] && kill -9 "$one" 2>/dev/null && kills=$((kills + 1))
		kill -0 $pid || complain "it ended with the child that was killed"
	done
	[ $kills = "$CHILD" ] || complain "only $kills of $CHILD children"
	sleep 1
	kill -INT $pid
	wait $pid
	rc=$?
	[ $rc = 0 ] || complain "exit $rc: $(tail -n 1 "$WORK/c.err")"
	check "$WORK/c" child
	finish "$WORK/c" child
	none_running "$child" || complain 'a child is left'
	[ $bad = 0 ]
	t_result $? "children killed $kills times: $last cases, each once, none found"
}

# A guest: itself, or the engine that runs it.
guest_runs() {
	kernel=${MMR_KERNEL:-debian:6.12}
	guests() {
		for p in $(tree $pid); do
			case $(readlink "/proc/$p/exe") in
			*/qemu-system-*) echo "$p" ;;
			esac
		done
	}
	any_guest() { [ -n "$(guests)" ]; }
	if command -v qemu-system-x86_64 >/dev/null &&
		[ -x "$(dirname "$MMRACE")/guest-x86_64/mmrace" ]; then
		bad=0 kills=0 resume='--seed 13'
		while [ $kills -lt "$GUEST" ]; do
			before=0
			[ -e "$WORK/g/ledger.jsonl" ] && before=$(counted "$WORK/g")
			on() { [ "$(counted "$WORK/g")" -gt "$before" ] ||
				! kill -0 $pid; }
			# On a machine that is busy enough a guest does not boot.
			for _ in 1 2 3 4 5; do
				# shellcheck disable=SC2086 # two words
				"$MMRACE" soak $resume --cases 1000000 --quiet \
					--guest "$kernel" --guest-mem 1G \
					--guest-cpus 2 --guest-nodes 1 --out "$WORK/g" \
					>"$OUT" 2>"$ERR" &
				pid=$!
				eventually 400 on 2>/dev/null
				kill -0 $pid 2>/dev/null && break
				t_note "guest $kills:" "$ERR"
			done
			kill -0 $pid 2>/dev/null ||
				complain "guest $kills: it does not boot"
			resume=--resume
			sleep "$(random 20 4000)"
			kills=$((kills + 1))
			if [ $((kills % 2)) = 1 ]; then
				kill -9 $pid
				wait $pid 2>/dev/null
			else
				eventually 30 any_guest
				one=$(guests | shuf -n 1)
				before=$(counted "$WORK/g")
				kill -9 "${one:-none}" || complain 'no QEMU to kill'
				eventually 240 on ||
					complain "guest $kills: no case after its QEMU"
				kill -INT $pid
				wait $pid
				rc=$?
				[ $rc = 0 ] || complain "guest $kills: exit $rc"
			fi
			eventually 10 none_of $pid || complain "guest $kills: left"
			check "$WORK/g" "guest $kills"
		done
		finish "$WORK/g" guest
		[ $bad = 0 ]
		t_result $? "guests or their engines killed $kills times: $last cases"
	else
		t_skip 'guests killed' 'no QEMU, or no programs for guests: make guest'
	fi
}

# end_soak WHAT MS: every other one ($i) is killed within that time, too; the
# others end by themselves.
end_soak() {
	local rc
	if [ $((i % 2)) = 1 ]; then
		sleep "$(random 20 "$2")"
		kill -9 $pid
		wait $pid 2>/dev/null
	else
		wait $pid
		rc=$?
		[ $rc = 0 ] || complain "$1 $i: exit $rc $(cat "$ERR")"
	fi
}

# The disk: full at a random moment, and empty again.
disks() {
	if is_root && mkdir "$WORK/disk" && truncate -s 6M "$WORK/image" &&
		mkfs.ext4 -q -m 0 "$WORK/image" 2>/dev/null &&
		mount -o loop "$WORK/image" "$WORK/disk" 2>/dev/null; then
		trap 'umount "$WORK/disk" 2>/dev/null; rm -rf "$WORK"' EXIT
		bad=0 d=$WORK/disk/o resume='--seed 14'
		for i in $(seq "$FULL"); do
			# shellcheck disable=SC2086 # two words
			"$MMRACE" soak $resume --jobs 2 --cases 1000000 --time 6 \
				--quiet --out "$d" >/dev/null 2>"$ERR" &
			pid=$!
			resume=--resume
			sleep "$(random 20 4000)"
			dd if=/dev/zero of="$WORK/disk/fill" bs=1k 2>/dev/null
			end_soak 'full disk' 2000
			[ ! -e "$d/ledger.jsonl" ] || check "$d" "full disk $i"
			rm "$WORK/disk/fill"
			[ -s "$d/ledger.jsonl" ] || resume='--seed 14'
		done
		finish "$d" 'full disk'
		[ $bad = 0 ]
		t_result $? "a disk that filled up $FULL times: $last cases, each once"
		umount "$WORK/disk"
	else
		t_skip 'a full disk' 'cannot mount a small one'
	fi
}

# The right to write: an ordinary user's folder is taken from it.
folders() {
	bad=0 as=() d=$WORK/user/o resume='--seed 15'
	chmod 711 "$WORK"
	mkdir -p "$d"
	cp "$BUILD/mmrace" "$BUILD/mmrace-child" "$WORK/"
	if is_root; then
		as=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all
			--bounding-set=-all env HOME=/nonexistent)
		chown 65534:65534 "$WORK/user" "$d"
	fi
	for i in $(seq "$READONLY"); do
		# shellcheck disable=SC2086 # two words
		"${as[@]}" "$WORK/mmrace" soak $resume --jobs 2 --time 5 --quiet \
			--out "$d" >/dev/null 2>"$ERR" &
		pid=$!
		resume=--resume
		begun() { [ -s "$d/ledger.jsonl" ]; }
		eventually 20 begun
		sleep "$(random 20 3000)"
		chmod 555 "$d"
		end_soak read-only 1000
		check "$d" "read-only $i"
		before=$(counted "$d")
		"${as[@]}" "$WORK/mmrace" status "$d" >/dev/null ||
			complain "read-only $i: no status"
		chmod 755 "$d"
	done
	finish "$d" read-only "${as[@]}" "$WORK/mmrace"
	[ $bad = 0 ]
	t_result $? "a folder that became read-only $READONLY times: $last cases"
}

[ "$ENGINE" = 0 ] || engines
[ "$CHILD" = 0 ] || children
[ "$GUEST" = 0 ] || guest_runs
[ "$FULL" = 0 ] || disks
[ "$READONLY" = 0 ] || folders
t_done
