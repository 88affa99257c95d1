"""Installs what the lab needs of this machine, by the machine's own package tool. Fast when all of it is there.

Run by path with the system's Python, before the virtual environment exists: it imports nothing of the project.
With the word "vm": what the virtual machine of tests/vm needs, which is much and which the lab does not.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

# Command: its package in Debian, in Fedora. "" is not to be had there, or not needed.
NEEDED = {
    "mmdebstrap": ("mmdebstrap", "mmdebstrap"),
    "systemd-nspawn": ("systemd-container", "systemd-container"),
    "ip": ("iproute2", "iproute"),
    "nsenter": ("util-linux", "util-linux"),
    "tar": ("tar", "tar"),
    "dbus-daemon": ("dbus-daemon", "dbus-daemon"),
    "sysctl": ("procps", "procps-ng"),
    # What strixd-media runs and its tests make; pykickstart comes from PyPI, Debian has none.
    "xorriso": ("xorriso", "xorriso"),
    "mcopy": ("mtools", "mtools"),
    "mkfs.vfat": ("dosfstools", "dosfstools"),
    "createrepo_c": ("createrepo-c", "createrepo_c"),
    "implantisomd5": ("isomd5sum", "isomd5sum"),
    "rpmbuild": ("rpm", "rpm-build"),
}
# The same for tests/vm; a path stands for a file that no command of its own comes with.
NEEDED_BY_VM = {
    "qemu-system-x86_64": ("qemu-system-x86", "qemu-system-x86-core"),
    "/usr/share/OVMF/OVMF_CODE_4M.fd": ("ovmf", "edk2-ovmf"),
    "mkfs.ext4": ("e2fsprogs", "e2fsprogs"),
    "sfdisk": ("fdisk", "util-linux"),
    "setpriv": ("util-linux", "util-linux"),
    # An installation image that boots: Debian's names of these files; on Fedora that test is left out.
    "grub-mkimage": ("grub-common", ""),
    "/usr/lib/grub/i386-pc/boot_hybrid.img": ("grub-pc-bin", ""),
    "/usr/lib/grub/x86_64-efi/normal.mod": ("grub-efi-amd64-bin", ""),
    "/bin/busybox": ("busybox-static", "busybox"),
}
VENV = ("python3-venv", "")
APT = ["apt-get", "-o", "DPkg::Lock::Timeout=240"]


def main() -> int:
    needed = NEEDED | (NEEDED_BY_VM if "vm" in sys.argv[1:] else {})
    missing = [names for thing, names in needed.items() if not (shutil.which(thing) or Path(thing).is_file())]
    if importlib.util.find_spec("ensurepip") is None:
        missing.append(VENV)
    if not missing:
        return 0
    if os.geteuid() != 0:
        sys.stderr.write(f"lab: not installed here: {' '.join(debian or fedora for debian, fedora in missing)}\n")
        return 0
    return _install(missing)


def _install(missing: list[tuple[str, str]]) -> int:
    debian, fedora = ([names[place] for names in missing if names[place]] for place in (0, 1))
    if shutil.which("apt-get"):
        install = [*APT, "install", "--yes", "--no-install-recommends", *debian]
        return _run([*APT, "update"]) or _run(install)
    return _run(["dnf", "install", "--assumeyes", "--setopt=install_weak_deps=False", *fedora])


def _run(command: list[str]) -> int:
    sys.stderr.write(f"lab: {' '.join(command)}\n")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, check=False, env=quiet, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode


if __name__ == "__main__":
    sys.exit(main())
