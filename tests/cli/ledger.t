#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Red when a killed soak loses or doubles a case, when --resume runs other
# seeds or stops short, when shards joined are not the one soak that they are
# parts of, when two soaks share a folder, or when systemd, Prometheus or
# SIGUSR1 hear nothing or something else than soak.json says.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../ledger.sh"

soak() { "$MMRACE" soak --profile storm "$@"; }

# Killed again and again, and resumed: all cases, each once.
"$MMRACE" soak --profile storm --seed 7 --cases 60 --quiet --out "$WORK/k" \
	>/dev/null 2>&1 &
pid=$!
kills=0
for ((i = 1; i <= 8; i++)); do
	want=$((i * 4))
	done_now() { [ "$(counted "$WORK/k" 2>/dev/null)" -ge $want ] ||
		! kill -0 $pid; }
	eventually 20 done_now 2>/dev/null
	kill -9 $pid 2>/dev/null && kills=$((kills + 1))
	wait $pid 2>/dev/null
	before=$(counted "$WORK/k")
	"$MMRACE" soak --resume --cases 60 --quiet --out "$WORK/k" \
		>/dev/null 2>&1 &
	pid=$!
done
wait $pid
rc=$?
[ $rc = 0 ] && [ $kills -ge 5 ]
t_result $? "killed $kills times and resumed: the last one ends by itself ($rc)"
[ "$before" -ge 28 ]
t_result $? "what was done before a kill stays done ($before)"
numbers "$WORK/k" >"$WORK/got"
seq 0 59 >"$WORK/want"
cmp -s "$WORK/got" "$WORK/want"
t_result $? 'each case is done once'
n=$(counted "$WORK/k")
[ "$n" = 60 ]
t_result $? "the counts add up ($n)"
lost=$(lost "$WORK/k") kept=$(kept "$WORK/k")
[ "$lost" -ge 1 ] && [ "$lost" = "$kept" ]
t_result $? "the cases that ran at a kill are named ($lost) and kept ($kept)"

# Nothing is left to do.
t_run "$MMRACE" soak --resume --cases 60 --quiet --out "$WORK/k"
t_rc 'resume of a finished soak: nothing to do' 0
[ "$(counted "$WORK/k")" = 60 ]
t_result $? 'and nothing done'

# Shards joined, in any order, twice: the whole.
for ((i = 0; i < 8; i++)); do
	soak --seed 7 --cases 40 --shard $i/8 --revisit 0 --quiet \
		--out "$WORK/s$i" >/dev/null 2>&1
	# Numbers within the shard, as those of the whole.
	numbers "$WORK/s$i" | awk -v i=$i '{ print $1 * 8 + i }'
done | sort -n >"$WORK/parts"
soak --seed 7 --cases 40 --revisit 0 --quiet --out "$WORK/whole" \
	>/dev/null 2>&1
numbers "$WORK/whole" >"$WORK/got"
cmp -s "$WORK/parts" "$WORK/got" && [ "$(wc -l <"$WORK/got")" = 40 ]
t_result $? 'eight shards run the cases of the one, each once'
t_run "$MMRACE" merge "$WORK"/s[2750] "$WORK"/s[1346] -o "$WORK/all"
t_rc 'merge of eight shards' 0
n=$(counted "$WORK/all")
[ "$n" = 40 ] && [ "$(counted "$WORK/whole")" = 40 ]
t_result $? "eight shards are one soak ($n cases)"
cp "$WORK/all/ledger.jsonl" "$WORK/once"
t_run "$MMRACE" merge "$WORK/s1" "$WORK/all" -o "$WORK/all" --json
t_rc 'merge once more' 0
cmp -s "$WORK/once" "$WORK/all/ledger.jsonl"
t_result $? 'changes nothing'
t_json 'merge --json' "$OUT"
t_run "$MMRACE" merge "$WORK" -o "$WORK/none"
t_rc 'merge of what no soak wrote' 2
[ ! -e "$WORK/none" ]
t_result $? 'leaves nothing behind'

# Findings are joined with their counts.
for d in f1 f2; do
	mkdir -p "$WORK/$d/findings/hang-1/samples"
	s=$([ $d = f1 ] && echo 0123456789abcdef || echo fedcba9876543210)
	cat >"$WORK/$d/ledger.jsonl" <<JSON
{"type":"session","session":"$s","profile":"mixed","gen":1,"seed":"0x1","shard":0,"shards":1,"kernel":"k"}
{"type":"finding","session":"$s","case":3,"seed":"0x4","verdict":"hang","finding":"hang-1"}
{"type":"finding","session":"$s","case":9,"seed":"0xa","verdict":"hang","finding":"hang-1"}
JSON
	echo "of $d" >"$WORK/$d/findings/hang-1/report.md"
	echo '{"verdict":"hang","count":2,"first_seen":"2026-01-0'${d#f}'T00:00:00Z","last_seen":"2026-01-0'${d#f}'T00:00:00Z"}' \
		>"$WORK/$d/findings/hang-1/verdict.json"
done
t_run "$MMRACE" merge "$WORK/f2" "$WORK/f1" "$WORK/f2" -o "$WORK/f"
t_rc 'merge with findings' 0
v=$WORK/f/findings/hang-1/verdict.json
[ "$(t_json_get "$v" count)" = 4 ] &&
	[ "$(t_json_get "$v" first_seen)" = 2026-01-01T00:00:00Z ] &&
	[ "$(t_json_get "$v" last_seen)" = 2026-01-02T00:00:00Z ] &&
	grep -q 'of f1' "$WORK/f/findings/hang-1/report.md"
t_result $? 'one finding, four sightings, the first evidence'

# With --kmsg a panic would name its cause.
if is_root && dmesg >/dev/null 2>&1; then
	soak --seed 0x5eed$$ --cases 3 --kmsg --quiet --out "$WORK/log" \
		>/dev/null 2>&1
	dmesg | grep -ic "mmrace: seed=0x5eed$$ profile=storm gen=" >"$WORK/n"
	t_match '--kmsg: the case is named in the kernel log' "$WORK/n" '^1$'
else
	t_skip '--kmsg' 'wants root, and a kernel log'
fi

# What cannot be resumed.
t_run "$MMRACE" soak --resume --cases 1 --quiet --out "$WORK/new"
t_rc '--resume where nothing is' 2
t_run "$MMRACE" soak --resume --seed 8 --cases 1 --quiet --out "$WORK/k"
t_rc '--resume with another seed' 2
t_run "$MMRACE" soak --resume --profile mixed --cases 1 --quiet --out "$WORK/k"
t_rc '--resume with another profile' 2

# Two soaks, one folder; systemd, SIGUSR1, metrics of a running one.
cat >"$WORK/listen.pl" <<'PERL'
use IO::Socket::UNIX;
my $s = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $ARGV[0]) or die;
$| = 1;
while (defined $s->recv(my $m, 4096)) { $m =~ tr/\n/ /; print "$m\n"; }
PERL
perl "$WORK/listen.pl" "$WORK/notify" >"$WORK/notified" &
listener=$!
bound() { [ -S "$WORK/notify" ]; }
eventually 5 bound
NOTIFY_SOCKET=$WORK/notify "$MMRACE" soak --profile storm --seed 3 --time 60 --metrics "$WORK/m.prom" \
	--quiet --out "$WORK/r" >"$WORK/r.out" 2>"$WORK/r.err" &
pid=$!
beats() { [ "$(grep -c WATCHDOG=1 "$WORK/notified")" -ge 2 ]; }
eventually 20 beats
t_result $? 'systemd: a watchdog ping a second'
grep -q READY=1 "$WORK/notified" && grep -q 'STATUS=.* cases' "$WORK/notified"
t_result $? 'systemd: ready, and a status line'
t_run "$MMRACE" soak --time 1 --quiet --out "$WORK/r"
t_rc 'a second soak with the same --out' 2
kill -USR1 $pid
told() { grep -q '^findings: 0' "$WORK/r.err"; }
eventually 10 told
t_result $? 'SIGUSR1: the full state on standard error'
kill -INT $pid
wait $pid
rc=$?
[ $rc = 0 ] && grep -q '^findings: 0' "$WORK/r.out"
t_result $? "and it went on to its end ($rc)"
grep -q STOPPING=1 "$WORK/notified"
t_result $? 'systemd: stopping'
kill $listener
wait $listener 2>/dev/null
! grep -Ev '^(# (HELP|TYPE) mmrace_[a-z_]+ .+|mmrace_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+0-9.e]+)$' \
	"$WORK/m.prom" >"$WORK/odd" && [ -s "$WORK/m.prom" ]
t_result $? 'metrics: the text format'
t_note 'odd lines:' "$WORK/odd"
# Every verdict there is has its name everywhere: metrics and soak.json have all
# of them, and what status counts by them is the same.
verdicts_of() {
	sed -n '/"verdicts"/,/}/s/^ *"\([a-z-]*\)": \([0-9][0-9]*\),*$/\1 \2/p' \
		"$1/soak.json" | sort
}
verdicts_of "$WORK/r" >"$WORK/of_json"
sed -n 's/^mmrace_cases_total{verdict="\(.*\)"} /\1 /p' "$WORK/m.prom" |
	sort >"$WORK/of_metrics"
t_same 'metrics: the verdicts of soak.json, by name and number' \
	"$WORK/of_json" "$WORK/of_metrics"
for v in nothing void skipped fault-storm long-syscall long-exit \
	lock-starvation hang kernel-log corruption leak crash tool-failed known; do
	grep -q "^$v " "$WORK/of_json" || echo "$v"
done >"$WORK/none"
[ ! -s "$WORK/none" ]
t_result $? 'all of the documented ones'
verdicts_of "$WORK/whole" | grep -v ' 0$' >"$WORK/some"
"$MMRACE" status "$WORK/whole" --json | sed 's/.*"ledger"//' |
	grep -o '"verdicts": *{[^}]*}' | grep -o '"[a-z-]*": *[0-9][0-9]*' |
	tr -d '"' | tr -s ': ' ' ' | sort >"$WORK/of_status"
t_same 'status --json: the same' "$WORK/some" "$WORK/of_status"
t_run "$MMRACE" status "$WORK/whole"
while read -r v n; do
	grep -Eq "^    (.* )?$v $n( |\$)" "$OUT" || echo "$v $n"
done <"$WORK/some" >"$WORK/none"
[ ! -s "$WORK/none" ]
t_result $? 'status: likewise'
t_done
