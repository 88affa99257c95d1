#!/bin/bash
# %pre: which node is this machine, and which of its disks is to be erased? Writes /tmp/strixd-node.ks, or stops
# before anything was touched. The installer has few programs: those that lorax leaves in it.
# The argument is a root to look below: "" in the installer, a laid-out tree in tests.
set -Eeuo pipefail
root=${1-}
node_ks=$root/tmp/strixd-node.ks
# shellcheck disable=SC2016 # Anaconda fills in $releasever and $basearch
repository=@@REPOSITORY@@
# shellcheck disable=SC2016
metalink='https://mirrors.fedoraproject.org/metalink?repo=fedora-$releasever&arch=$basearch'
# shellcheck disable=SC2016
updates='https://mirrors.fedoraproject.org/metalink?repo=updates-released-f$releasever&arch=$basearch'

# NAME|MAC|SERIAL|DISK|CARD|ADDRESS|NETMASK; the card by interface, mac or driver. DISK is a name in /dev/disk/by-id.
nodes() {
    cat <<'NODES'
@@NODES@@
NODES
}

stop() {
    local console=$root/dev/console words
    [ -w "$console" ] || console=/dev/null
    words=$(printf 'strixd: %s\n' "the installation stops here; no disk was touched." "$@")
    echo "$words" | tee "$console" >&2
    [ ! -d "$root/run/anaconda" ] || show "$words"
    exit 1
}

# In the installer nothing shows these words: it has no interface yet, draws over the console, and a %pre that failed
# ends in a traceback and a restart (pyanaconda/kickstart.py, AnacondaKSScript.run), which would be the next try. So
# they get a screen of their own, and stay. logind puts a shell onto each of the first six screens.
show() {
    printf '\033[2J\033[H%s\n%s\n' "$1" "strixd: switch the machine off when you have read this; Ctrl-Alt-F2 is a shell." \
        2> /dev/null > "$root/dev/tty9" || :
    chvt 9 || :
    sleep infinity || :
}
trap 'stop "line $LINENO of %pre failed: $BASH_COMMAND"' ERR

# What a file says in its first line; nothing where there is none.
says() {
    [ ! -r "$1" ] || head -n 1 "$1"
}

# --- the machine -----------------------------------------------------------------------------------------------

# Interfaces with a device behind them, as NAME MAC.
cards() {
    local link
    for link in "$root"/sys/class/net/*; do
        [ -e "$link/device" ] && [ -s "$link/address" ] || continue
        echo "${link##*/} $(tr '[:upper:]' '[:lower:]' < "$link/address")"
    done
}

serial_number() {
    says "$root/sys/class/dmi/id/product_serial" | sed 's/^ *//; s/ *$//' | tr '[:upper:]' '[:lower:]'
}

# The rows of nodes() that are this machine: by the MAC of a card, else by the serial number. A single row without
# either is for whatever machine it is given to.
matching() {
    local row name mac serial
    while IFS= read -r row; do
        IFS='|' read -r name mac serial _ <<< "$row"
        if [ -n "$mac" ] && grep -q " $mac\$" <<< "$macs"; then
            echo "$row"
        elif [ -n "$serial" ] && [ "${serial,,}" = "$number" ]; then
            echo "$row"
        elif [ -z "$mac$serial" ]; then
            echo "$row"
        fi
    done < <(nodes)
}

find_node() {
    local found known
    macs=$(cards) number=$(serial_number)
    known="its MACs are $(cut -d' ' -f2 <<< "${macs:-"? none"}" | paste -sd' '), its serial number is \"${number:-unknown}\""
    found=$(matching)
    case $(grep -c . <<< "$found" || :) in
        0) stop "this machine is not in cluster.toml: $known" "write its mac or serial into its [[node]], and make the medium anew" ;;
        1) IFS='|' read -r name mac serial disk_id card address netmask <<< "$found" ;;
        *) stop "this machine is more than one node of cluster.toml: $(cut -d'|' -f1 <<< "$found" | paste -sd' ')" "$known" ;;
    esac
}

# --- the disk --------------------------------------------------------------------------------------------------

# The whole disk behind a device node: sdb1 -> sdb.
whole() {
    local place
    place=$(readlink -f "$root/sys/class/block/$1") || place=""
    [ -e "$place/partition" ] && place=${place%/*}
    echo "${place##*/}"
}

# Where the medium is, and whatever else the installer has mounted.
in_use() {
    local device
    if [ -e "$root/dev/disk/by-label/OEMDRV" ] || [ -L "$root/dev/disk/by-label/OEMDRV" ]; then
        whole "$(basename "$(readlink "$root/dev/disk/by-label/OEMDRV")")"
    fi
    while read -r device _; do
        case $device in /dev/*) whole "$(basename "$device")" ;; esac
    done < "$root/proc/mounts"
}

# A USB stick, a card in a reader, a disk in a Thunderbolt case: the kernel says of some device above that it can be
# taken away, or the way there is USB.
external() {
    local place
    place=$(readlink -f "$root/sys/class/block/$1")
    case $place in */usb[0-9]*) return 0 ;; esac
    [ "$(says "$place/device/type")" != SD ] || return 0
    while [ -n "$place" ] && [ "$place" != "$root/sys" ]; do
        case $(says "$place/removable") in 1 | removable) return 0 ;; esac
        place=${place%/*}
    done
    return 1
}

# Disks that an installation could go to, as SECTORS NAME, the largest first.
internal() {
    local place disk sectors used
    used=$(in_use)
    for place in "$root"/sys/block/*; do
        disk=${place##*/}
        case $disk in nvme*n* | sd* | vd* | hd* | mmcblk*) ;; *) continue ;; esac
        case $disk in *boot[0-9] | *rpmb) continue ;; esac
        sectors=$(says "$place/size")
        [ "${sectors:-0}" -gt 0 ] && [ "$(says "$place/ro")" != 1 ] && [ "$(says "$place/hidden")" != 1 ] || continue
        grep -qx "$disk" <<< "$used" && continue
        external "$disk" && continue
        echo "$sectors $disk"
    done | sort -rn
}

# "nvme0n1 (nvme-WD_BLACK_SN850X_4TB_24123A800001, 3726 GiB)"
described() {
    local link id=""
    for link in "$root"/dev/disk/by-id/*; do
        [ "$(basename "$(readlink "$link" || :)")" = "$1" ] || continue
        case ${link##*/} in wwn-* | nvme-eui.* | nvme-nvme.*) ;; *) id="${link##*/}, " && break ;; esac
    done
    echo "$1 ($id$(($(cat "$root/sys/block/$1/size") / 2097152)) GiB)"
}

all_described() {
    local disk
    while read -r _ disk; do [ -z "$disk" ] || described "$disk"; done <<< "$candidates" | paste -sd';'
}

# The disk that the file names, or the largest. One that is nearly as large makes that a matter of chance.
find_disk() {
    local first second link
    candidates=$(internal)
    if [ -n "$disk_id" ]; then
        link=$root/dev/disk/by-id/$disk_id
        [ -L "$link" ] || stop "$name: there is no disk $disk_id here; there is $(all_described)" "correct disk in its [[node]], and make the medium anew"
        disk=$(whole "$(basename "$(readlink "$link")")")
        ! grep -qx "$disk" <<< "$(in_use)" || stop "$name: $disk_id is in use as the installation's medium"
        return
    fi
    read -r first disk <<< "$(sed -n 1p <<< "$candidates")"
    read -r second _ <<< "$(sed -n 2p <<< "$candidates")"
    [ -n "$disk" ] || stop "$name: there is no internal disk to install to"
    [ $((${second:-0} * 10)) -lt $((first * 9)) ] ||
        stop "$name: two disks could be meant: $(all_described)" "write disk = \"…\" into its [[node]] (the name in parentheses), and make the medium anew"
}

# --- the medium ------------------------------------------------------------------------------------------------

# Anaconda has read ks.cfg and unmounted an OEMDRV volume. The repository goes to memory, the volume stays free.
bring_repository() {
    local medium=$root/run/install/repo mounted=$root/run/strixd-medium/mounted
    if [ ! -d "$medium/strixd" ] && [ -L "$root/dev/disk/by-label/OEMDRV" ]; then
        mkdir -p "$mounted"
        mount -o ro "$root/dev/disk/by-label/OEMDRV" "$mounted"
        medium=$mounted
    fi
    if [ -d "$medium/strixd/repo" ]; then
        mkdir -p "$root/run/strixd-medium"
        cp -rL "$medium/strixd/repo" "$root/run/strixd-medium/"
    fi
    [ "$medium" != "$mounted" ] || umount "$mounted"
}

# --- what comes of it ------------------------------------------------------------------------------------------

# The MACs that the fabric's card may have: one, or none while it is not there, or several ports of one driver.
fabric_macs() {
    local interface mac driver
    while read -r interface mac; do
        driver=$(basename "$(readlink "$root/sys/class/net/$interface/device/driver" || :)")
        case $card in "interface:$interface" | "mac:$mac" | "driver:$driver") echo "$mac" ;; esac
    done <<< "$macs"
}

# The fabric's card gets its address when it is known which one it is; otherwise strixd gives it, which also proves the
# MTU. Every other wired card asks for an address.
network() {
    local fabric interface mac
    fabric=$(fabric_macs)
    echo "network --hostname=$name"
    while read -r interface mac; do
        [ -n "$mac" ] && [ ! -e "$root/sys/class/net/$interface/wireless" ] || continue
        grep -qx "$mac" <<< "$fabric" || echo "network --device=$mac --bootproto=dhcp --onboot=yes --activate"
    done <<< "$macs"
    if [ "$(grep -c . <<< "$fabric" || :)" = 1 ]; then
        echo "network --device=$fabric --bootproto=static --ip=$address --netmask=$netmask --nodefroute --noipv6 --onboot=yes --no-activate"
    fi
}

# Fedora's packages: from where the file says, else from the medium when it is a DVD, and from Fedora's mirrors unless
# strixd-media found that nothing is missing. Anaconda turns on neither Fedora's own repository nor its updates beside a
# url (pyanaconda/modules/payloads/payload/dnf/initialization.py): without these lines strixd lacks its Python modules
# on a DVD, and a node gets the kernel of the day of the release. The names are none that the installer has already.
sources() {
    local dvd=$root/run/install/repo
    if [ -n "$repository" ]; then
        echo "url --url=\"$repository\""
    elif [ -d "$dvd/repodata" ] && [ -e "$dvd/strixd/complete" ]; then
        echo "url --url=file:///run/install/repo"
    elif [ -d "$dvd/repodata" ]; then
        echo "url --url=file:///run/install/repo"
        echo "repo --name=mirrors-release --metalink=\"$metalink\""
        echo "repo --name=mirrors-updates --metalink=\"$updates\""
    else
        echo "url --metalink=\"$metalink\""
        echo "repo --name=mirrors-updates --metalink=\"$updates\""
    fi
    [ ! -d "$root/run/strixd-medium/repo" ] || echo "repo --name=strixd --baseurl=file:///run/strixd-medium/repo"
}

find_node
find_disk
bring_repository
{
    network
    sources
    echo "ignoredisk --only-use=$disk"
    echo "clearpart --all --drives=$disk --initlabel --disklabel=gpt"
} > "$node_ks"
echo "strixd: this machine is $name; $(described "$disk") will be erased"
