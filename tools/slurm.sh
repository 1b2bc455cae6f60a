#!/usr/bin/env bash
# A SLURM cluster for tests with one node of two processors on this machine's loopback. It uses the daemons of Debian's packages
# slurm-wlm and munge, which write everything to one folder.
#
#   tools/slurm.sh start DIR    creates DIR, starts the daemons, waits until the node is idle, prints the SLURM_CONF to use
#   tools/slurm.sh stop DIR     stops the daemons
#
# munged runs as the user munge if this script runs as root. Jobs are requeued at once and credentials expire after five seconds, so
# that a requeued job does not wait for two minutes. Exit status 3 means that SLURM is not installed.
set -euo pipefail

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# = 2 ] || usage
dir=$2

need() {
  for tool in munged slurmctld slurmd sbatch squeue scontrol scancel; do
    PATH=$PATH:/usr/sbin command -v $tool >/dev/null || { echo "$tool is not installed (Debian: slurm-wlm, munge)" >&2; exit 3; }
  done
}

# port N prints one of three ports derived from DIR, below the ephemeral range.
port() { echo $((20000 + ($(printf %s "$dir" | cksum | cut -d ' ' -f 1) % 3000) * 3 + $1)); }

munge_user() { [ "$(id -u)" = 0 ] && id munge >/dev/null 2>&1; }

start_munge() {
  mkdir -m 755 "$dir/munge"
  (umask 077; head -c 1024 /dev/urandom >"$dir/munge/key")
  local as=()
  if munge_user; then chown -R munge "$dir/munge"; as=(runuser -u munge --); fi
  "${as[@]}" munged --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
    --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
}

configure() {
  local host
  host=$(hostname -s)
  mkdir -p "$dir/state" "$dir/spool"
  cat >"$dir/slurm.conf" <<CONF
ClusterName=slotscope
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(port 0)
SlurmdPort=$(port 1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobRequeue=1
KillWait=5
MinJobAge=300
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
}

start() {
  need
  mkdir "$dir"
  chmod 755 "$dir"
  dir=$(cd "$dir" && pwd)
  start_munge
  configure
  export SLURM_CONF=$dir/slurm.conf
  slurmctld
  slurmd
  for _ in $(seq 150); do
    if sinfo -h -o %T 2>/dev/null | grep -qx idle; then echo "$SLURM_CONF"; return; fi
    sleep 0.2
  done
  tail -n 20 "$dir"/slurmctld.log "$dir"/slurmd.log "$dir"/munge/log >&2
  echo "the node did not become idle within 30 seconds" >&2
  exit 1
}

stop() {
  dir=$(cd "$dir" && pwd)
  export SLURM_CONF=$dir/slurm.conf
  scancel --me >/dev/null 2>&1 || true
  local pid
  for pid in slurmd.pid slurmctld.pid munge/pid; do
    [ ! -f "$dir/$pid" ] || kill "$(cat "$dir/$pid")" 2>/dev/null || true
  done
}

PATH=$PATH:/usr/sbin
case $1 in
start) start ;;
stop) stop ;;
*) usage ;;
esac
