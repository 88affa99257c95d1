#!/bin/sh
# Stand-ins, from early boot on: a file /etc/lab/proc/X is seen as /proc/X, a folder /etc/lab/class/X as /sys/class/X, a
# folder /etc/lab/kernel/X as /sys/kernel/X, where the kernel has one of that name.
# They answer readers (cmdline, meminfo, infiniband, drm, dmi); they are no devices.
set -u
for file in /etc/lab/proc/*; do
  if [ -f "$file" ]; then mount --bind -o ro "$file" "/proc/${file##*/}"; fi
done
for folder in /etc/lab/kernel/*; do
  if [ -d "$folder" ]; then mount --bind -o ro "$folder" "/sys/kernel/${folder##*/}"; fi
done
[ -d /etc/lab/class ] || exit 0
mkdir -p /run/lab-class
mount -t tmpfs -o mode=755 lab-class /run/lab-class
for folder in /sys/class/* /etc/lab/class/*; do
  [ -d "$folder" ] || continue
  mkdir -p "/run/lab-class/${folder##*/}"
  mount --bind "$folder" "/run/lab-class/${folder##*/}"
done
mount --rbind /run/lab-class /sys/class
