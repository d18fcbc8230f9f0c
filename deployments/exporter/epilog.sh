#!/bin/bash
# Slurm's Epilog on each node of a job (slurm.conf: Epilog=/etc/slurm/epilog.d/suanpan.sh): ends the
# lease of the job's GPUs. If that fails the node is drained, as the lease would go on.
set -u
suanpan=${SUANPAN:-/usr/local/bin/suanpan}
[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0
if ! said=$("$suanpan" lease end "slurm/${SLURM_CLUSTER_NAME:-slurm}/$SLURM_JOB_ID" \
  --tenant "${SLURM_JOB_ACCOUNT:-unknown}" --timeout 60s 2>&1)
then
  logger -t suanpan-epilog -p daemon.err "job $SLURM_JOB_ID: $said" || true
  echo "job $SLURM_JOB_ID: $said" >&2
  [ "${SUANPAN_STRICT:-1}" = 0 ] || exit 1
fi
exit 0
