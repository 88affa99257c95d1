#!/bin/bash
# boot.sh NAME CGROUP NSPAWN-ARGUMENT...: become systemd-nspawn for one boot of a host. Call it in a mount namespace of
# its own. The kernel may be hybrid (cgroup v1 beside v2): the host gets a pure v2 tree, which is what its systemd wants.
set -euo pipefail
name=$1 group=$2
shift 2
if mountpoint -q /sys/fs/cgroup; then umount -R /sys/fs/cgroup; fi
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo $$ >"/sys/fs/cgroup/$group/cgroup.procs"
mkdir -p /run/systemd/nspawn
mount -t tmpfs lab-nspawn /run/systemd/nspawn # nspawn tidies up after itself only where this is a tmpfs
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
exec systemd-nspawn --quiet --register=no --keep-unit --machine="$name" --boot \
  --capability=all --drop-capability=CAP_SYS_TIME \
  --system-call-filter='@mount @module @raw-io @keyring bpf perf_event_open' \
  --resolv-conf=off --timezone=off --link-journal=no --console=read-only --notify-ready=yes "$@"
