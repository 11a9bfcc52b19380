#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Red when docs/soak.slurm does not spread a soak, when tasks that are killed
# lose or double cases, or when their joined result is not the whole.  A Slurm
# of its own, on this machine, from Debian's slurm-wlm: 16 array tasks, 4 of
# them killed and submitted again.
. "$(dirname "$0")/../lib.sh"

for tool in slurmctld slurmd sbatch munged mungekey; do
	command -v $tool >/dev/null || {
		echo "1..0 # SKIP no $tool: apt-get install slurm-wlm"
		exit 0
	}
done
is_root || {
	echo '1..0 # SKIP wants root, to run slurmd'
	exit 0
}
export SLURM_CONF=$WORK/slurm.conf
host=$(hostname -s) port=$((20000 + $$ % 20000))
mkdir -p "$WORK/spool" "$WORK/state" "$WORK/munge"
chmod 711 "$WORK"
chmod 700 "$WORK/munge"
cat >"$SLURM_CONF" <<CONF
ClusterName=mmrace
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$WORK/munge/socket
CryptoType=crypto/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$WORK/state
SlurmdSpoolDir=$WORK/spool
SlurmctldPidFile=$WORK/ctld.pid
SlurmdPidFile=$WORK/d.pid
SlurmctldLogFile=$WORK/ctld.log
SlurmdLogFile=$WORK/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:16
CONF
mungekey --create --keyfile="$WORK/munge/key" 2>/dev/null
munged --foreground --force --key-file="$WORK/munge/key" \
	--socket="$WORK/munge/socket" --pid-file="$WORK/munge/pid" \
	--log-file="$WORK/munge/log" --seed-file="$WORK/munge/seed" \
	>/dev/null 2>&1 &
munge=$!
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
ctld=$!
slurmd -D -f "$SLURM_CONF" >/dev/null 2>&1 &
slurmd=$!
stop() {
	scancel --me >/dev/null 2>&1
	kill $slurmd $ctld $munge 2>/dev/null
	wait $slurmd $ctld $munge 2>/dev/null
	rm -rf "$WORK"
}
trap stop EXIT
up() { sinfo -h -o %t 2>/dev/null | grep -q idle; }
eventually 60 up
t_result $? 'a Slurm of one node is up'

export MMRACE MMRACE_OUT=$WORK/farm
N=16 CASES=320
submit() {
	sbatch --parsable --array="$1" --output="$WORK/task-%a.log" \
		--cpus-per-task=1 "$TOP/docs/soak.slurm" --profile storm \
		--seed 11 --cases $CASES --quiet
}
job=$(submit 0-$((N - 1)))
[ -n "$job" ]
t_result $? "an array of $N tasks is submitted ($job)"
# Four of them die in the middle, as the engine and as the whole task.
killed=0
for shard in 1 2 5 9; do
	begun() { [ -s "$MMRACE_OUT/shard-$shard/running-0.case" ]; }
	eventually 120 begun || continue
	pid=$(t_json_get "$MMRACE_OUT/shard-$shard/soak.json" pid)
	kill -9 "$pid" 2>/dev/null && killed=$((killed + 1))
done
[ $killed = 4 ]
t_result $? "four tasks are killed ($killed)"
over() { [ -z "$(squeue -h 2>/dev/null)" ]; }
eventually 600 over
t_result $? 'the others end'
# Submitted again, they go on.
again=$(SHARDS=$N sbatch --parsable --array=1,2,5,9 --output="$WORK/again-%a.log" \
	--cpus-per-task=1 "$TOP/docs/soak.slurm" \
	--cases $CASES --quiet)
[ -n "$again" ]
t_result $? 'the killed ones are submitted again'
eventually 600 over
t_result $? 'and end'
t_run "$MMRACE" merge "$MMRACE_OUT"/shard-* -o "$WORK/all" --json
t_rc 'the results are joined' 0
n=$("$MMRACE" status "$WORK/all" --json | sed 's/.*"ledger"//' |
	grep -o '"verdicts": *{[^}]*}' | grep -o ': *[0-9]*' | tr -d ': ' |
	awk '{ n += $1 } END { print n + 0 }')
[ "$n" = $CASES ]
t_result $? "all $CASES cases, each once ($n)"
lost=$(grep -c '"type":"lost"' "$WORK/all/ledger.jsonl")
[ "$lost" -ge 1 ] && [ "$lost" -le 4 ]
t_result $? "what ran when a task was killed is named ($lost)"
for f in "$WORK"/task-1.log "$WORK"/again-1.log; do t_note "$f" "$f"; done
t_done
