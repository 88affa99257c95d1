#!/bin/bash
# inside.sh ROOT SCRATCH [PATH[:PLACE]]... -- COMMAND...
# Run a command in a throw-away copy of a root file system, with the machine's network, /proc, /sys and /dev, and with
# each PATH shown at PLACE (else at the same path). Call it in mount and PID namespaces of its own: they end with it.
set -euo pipefail
lower=$1 scratch=$2 root=$2/root
shift 2
mkdir -p "$scratch"/{up,work,root}
mount -t overlay lab-inside -o "lowerdir=$lower,upperdir=$scratch/up,workdir=$scratch/work" "$root"
mount -t proc proc "$root/proc"
for tree in sys dev; do mount --rbind "/$tree" "$root/$tree"; done
while [ "$1" != -- ]; do
  from=${1%%:*} place=$root${1#*:}
  if [ -d "$from" ]; then mkdir -p "$place"; else mkdir -p "${place%/*}" && touch "$place"; fi
  mount --rbind "$from" "$place"
  shift
done
shift
exec chroot "$root" "$@"
