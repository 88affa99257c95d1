#!/bin/bash
# %post --nochroot: what the medium holds for this node, brought to the new system and compared by hash. The arguments
# are for tests: a root to look below, and where the new system is. The installer has few programs: no install, no stat.
set -euo pipefail
root=${1-}
target=${2-/mnt/sysroot}
models=@@MODELS@@
medium=$root/run/install/repo
mounted=$root/run/strixd-medium/mounted

if [ ! -d "$medium/strixd" ] && [ -L "$root/dev/disk/by-label/OEMDRV" ]; then
    mkdir -p "$mounted"
    mount -o ro "$root/dev/disk/by-label/OEMDRV" "$mounted"
    trap 'umount "$mounted"' EXIT
    medium=$mounted
fi

# Compare what lies in folder $2 with the sums of what came from strixd/$1 on the medium.
compare() {
    (cd "$2" && sed -n "s|^\([0-9a-f]*  \)strixd/$1|\1|p" "$medium/strixd/SHA256SUMS" | sha256sum --check --quiet)
}

if [ -d "$medium/strixd/models" ]; then
    mkdir -p "$target$models"
    cp -rL "$medium/strixd/models/." "$target$models/"
    chown -R 0:0 "$target$models"
    compare models/ "$target$models"
fi
if [ -e "$medium/strixd/image/image.tar" ]; then
    mkdir -p "$target/var/lib/strixd/install"
    chmod 700 "$target/var/lib/strixd/install"
    cp "$medium/strixd/image/image.tar" "$target/var/lib/strixd/install/"
    compare image/ "$target/var/lib/strixd/install"
fi
# The key is copied from file to file and never enters a log.
if [ -e "$medium/strixd/key/cluster.key" ]; then
    mkdir -p "$target/etc/strixd"
    (umask 077 && cat "$medium/strixd/key/cluster.key" > "$target/etc/strixd/cluster.key")
    compare key/ "$target/etc/strixd"
fi
