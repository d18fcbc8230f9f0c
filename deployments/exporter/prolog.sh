#!/bin/bash
# Slurm's Prolog on each node of a job (slurm.conf: Prolog=/etc/slurm/prolog.d/suanpan.sh, with
# PrologFlags=Alloc so that it runs before the job does): begins the lease of the job's GPUs.
# A job whose lease cannot be recorded does not run, because nobody would be billed for it, unless
# SUANPAN_STRICT=0 is set in the environment of slurmd. Not for nodes with MIG: Slurm numbers MIG
# devices in a way of its own there, and the numbers below would be taken for those of GPUs.
set -u
suanpan=${SUANPAN:-/usr/local/bin/suanpan}
gpus=${SLURM_JOB_GPUS:-}
[ -n "$gpus" ] || exit 0          # a job without GPUs

args=(--tenant "${SLURM_JOB_ACCOUNT:-unknown}" --project "${SLURM_JOB_PARTITION:-default}"
  --device "$gpus" --label "user=${SLURM_JOB_USER:-unknown}" --timeout 10s)
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || args+=(--resumed)
if ! said=$("$suanpan" lease start "slurm/${SLURM_CLUSTER_NAME:-slurm}/$SLURM_JOB_ID" "${args[@]}" 2>&1)
then
  logger -t suanpan-prolog -p daemon.err "job $SLURM_JOB_ID: $said" || true
  echo "job $SLURM_JOB_ID: $said" >&2
  [ "${SUANPAN_STRICT:-1}" = 0 ] || exit 1
fi
exit 0
