#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Where little is allowed: an ordinary user in what a container leaves (no
# /sys/fs/cgroup to write, no perf_event_open), a machine with cgroup v1 only,
# and 512 MiB of memory for all of it.  MMR_SANDBOX_TIME: seconds of each soak
# (6; an hour's worth in the long form).
#
# Red when: a soak does not start there, does not say what it lacks, finds
# something, takes more memory than it was given, or when the OOM killer takes
# anything but a process of a case.

. "$(dirname "$0")/../lib.sh"
t_need_tool
T=${MMR_SANDBOX_TIME:-6}
chmod 711 "$WORK"
mkdir -m 1777 "$WORK/tmp"
cp "$BUILD/mmrace" "$BUILD/mmrace-child" "$BUILD/tools/noperf" "$WORK/"
export TMPDIR=$WORK/tmp XDG_CACHE_HOME=$WORK/tmp HOME=/nonexistent

# soak NAME COMMAND...: a soak by it; the case counts of $OUT, its words of
# what is missing in $WORK/missing.
soak() {
	local name=$1
	shift
	t_run "$@" "$WORK/mmrace" soak --time "$T" --seed 21 --jobs 2 --quiet \
		--json --out "$WORK/tmp/$name"
	t_rc "$name: a soak, and nothing found" 0
	cases=$(t_json_get "$OUT" cases)
	[ "${cases:-0}" -gt 5 ]
	t_result $? "$name: cases ran (${cases:-none})"
	sed 's/.*"missing"://' "$OUT" | tr ',' '\n' >"$WORK/missing"
	none_running "$WORK/mmrace-child"
	t_result $? "$name: no child is left"
}

user=()
if is_root; then
	user=(setpriv --reuid=65534 --regid=65534 --clear-groups
		--inh-caps=-all --bounding-set=-all --no-new-privs)
fi
# A name space of mounts in which /sys/fs/cgroup is as a container has it.
cat >"$WORK/contained" <<'SH'
#!/bin/sh
mount --make-rprivate / && mount -t tmpfs -o ro none /sys/fs/cgroup || exit 99
exec "$@"
SH
cat >"$WORK/v1only" <<'SH'
#!/bin/sh
mount --make-rprivate / || exit 99
if mountpoint -q /sys/fs/cgroup/unified; then
	umount /sys/fs/cgroup/unified || exit 99
fi
exec "$@"
SH
chmod 755 "$WORK/contained" "$WORK/v1only"
if is_root && unshare -m "$WORK/contained" true 2>/dev/null; then
	in=(unshare -m "$WORK/contained" "${user[@]}" "$WORK/noperf")
else
	in=("$WORK/noperf")
fi
soak contained "${in[@]}"
t_match 'contained: it says that there is no perf' "$WORK/missing" 'perf'
if is_root; then
	t_match 'contained: and no cgroup' "$WORK/missing" \
		'no cgroup can be made here'
fi
t_run "${in[@]}" "$WORK/mmrace" doctor
t_rc 'contained: doctor' 0
grep -i perf "$OUT" >"$WORK/perf"
t_match 'contained: doctor says so, too' "$WORK/perf" 'perf_event_open|EPERM|not'

if is_root && [ -d /sys/fs/cgroup/memory ] &&
	unshare -m "$WORK/v1only" true 2>/dev/null; then
	soak 'v1 only' unshare -m "$WORK/v1only"
	t_run unshare -m "$WORK/v1only" "$WORK/mmrace" doctor
	t_match 'v1 only: the caps hold' "$OUT" 'caps.*by cgroup v1'
else
	t_skip 'v1 only' 'wants root, and cgroup v1'
fi

# 512 MiB for all of it, engine and all, and a bystander who must live.
group=
if is_root; then
	own=$(sed -n 's/^[0-9]*:\([a-z_,]*,\)\?memory\(,[a-z_,]*\)\?://p' \
		/proc/self/cgroup)
	group=/sys/fs/cgroup/memory${own%/}/mmr-test-$$
	[ -n "$own" ] && mkdir "$group" 2>/dev/null || group=
fi
if [ -n "$group" ]; then
	# finish: the bystander ends and its group goes.
	finish() {
		[ -n "$bystander" ] && kill -9 "$bystander" 2>/dev/null
		eventually 10 rmdir "$group" 2>/dev/null
		rm -rf "$WORK"
	}
	trap finish EXIT
	echo 512M >"$group/memory.limit_in_bytes"
	echo 512M >"$group/memory.memsw.limit_in_bytes" 2>/dev/null
	into() {
		echo $BASHPID >"$group/cgroup.procs"
		exec "$@"
	}
	(into perl -e '$x = "x" x (8 << 20); sleep 1000000') &
	bystander=$!
	dmesg 2>/dev/null | tail -n 1 >"$WORK/last"
	inside() { (into "$@"); }
	soak '512 MiB' inside
	t_run inside "$WORK/mmrace" doctor
	t_match '512 MiB: the cap is below that' "$OUT" \
		'caps: memory 0\.[12][0-9]* GiB'
	# A case that wants four times what there is.
	cat >"$WORK/tmp/hungry.case" <<'CASE'
mmrace-case 1
rounds  2 budget=20s

process main
  thread A
    m0 = mmap len=2G prot=rw flags=private|anon|noreserve
    write m0 step=1p
CASE
	t_run inside "$WORK/mmrace" replay --quiet --json --runs 1 \
		--out "$WORK/tmp/hungry" "$WORK/tmp/hungry.case"
	[ "$(t_json_get "$OUT" verdict)" = void ]
	t_result $? '512 MiB: a case that wants 2 GiB is void'
	grep -q 'OOM killer' "$OUT"
	t_result $? '512 MiB: and why is said'
	kill -0 $bystander
	t_result $? '512 MiB: the bystander lives'
	peak=$(cat "$group/memory.max_usage_in_bytes")
	t_note "at most $((peak >> 20)) MiB, OOM kills in all:\
 $(sed -n 's/^oom_kill //p' "$group/memory.oom_control")"
	[ "$peak" -le $((512 << 20)) ]
	t_result $? '512 MiB: never more'
	# The kernel's own word on whom it took, from the groups of this one.
	dmesg 2>/dev/null | grep -F 'oom-kill:' | grep -F "${group##*/}" \
		>"$WORK/oom"
	! grep -v 'task=mmrace-child' "$WORK/oom" >"$WORK/other"
	t_result $? "512 MiB: only processes of cases were taken\
 ($(wc -l <"$WORK/oom"))"
	t_note 'taken:' "$WORK/other"
else
	t_skip '512 MiB' 'wants root, and cgroup v1 for memory'
fi
t_done
