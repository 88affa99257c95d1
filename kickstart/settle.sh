#!/bin/bash
# %post, in the new system: strixd's file, and its start at boot. The installer's logs come after this: at the first
# boot strixd-firstboot.service removes those with a secret in them.
# The argument is for tests: a root to work below.
set -euo pipefail
root=${1-}
models=@@MODELS@@

install -d -m 755 "$root/etc/strixd"
# Calls for strixd-firstboot, which says what the node waits for until it is ready for the first time.
install -d -m 700 "$root/var/lib/strixd/install"
cat > "$root/etc/strixd/cluster.toml" <<'CLUSTER_TOML'
@@CLUSTER_TOML@@
CLUSTER_TOML
chmod 644 "$root/etc/strixd/cluster.toml"
# What was written from outside has the labels of the installer.
for place in "$root/etc/strixd" "$root/var/lib/strixd" "$root$models"; do
    [ ! -e "$place" ] || ! command -v restorecon > /dev/null || restorecon -RF "$place"
done

# As the preset of a package would not: a machine that was installed by this file is meant to be a node.
systemctl ${root:+"--root=$root"} enable strixd.socket strixd.service strixd-load.service strixd-firstboot.service
