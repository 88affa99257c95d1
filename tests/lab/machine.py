"""Installs what the lab and `make rpm` need of this machine, by its own package tool. Fast when all of it is there.

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
    "nft": ("nftables", "nftables"),
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
    "zstd": ("zstd", "zstd"),
    "rpmbuild": ("rpm", "rpm-build"),
    # On Fedora the spec says what else packages are built with: _asked_by_the_spec().
    "checkmodule": ("checkpolicy", ""),
    "semodule_package": ("semodule-utils", ""),
    "bzip2": ("bzip2", ""),
}
# Of the system's own Python: what the packages are built with.
MODULES = {
    "pip": ("python3-pip", "python3-pip"),
    "setuptools": ("python3-setuptools", "python3-setuptools"),
    "wheel": ("python3-wheel", ""),
    "packaging": ("python3-packaging", "python3-packaging"),
}
FIND = "import sys, importlib.util as u; print(*(name for name in sys.argv[1:] if u.find_spec(name) is None))"
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
SPEC = Path(__file__).parents[2] / "packaging/strixd.spec"
DEBIAN = shutil.which("apt-get") is not None
APT = ["apt-get", "-o", "DPkg::Lock::Timeout=240"]


def main() -> int:
    needed = NEEDED | (NEEDED_BY_VM if "vm" in sys.argv[1:] else {})
    missing = [names for thing, names in needed.items() if not (shutil.which(thing) or Path(thing).is_file())]
    if importlib.util.find_spec("ensurepip") is None:
        missing.append(VENV)
    missing += [MODULES[name] for name in _missing_modules()]
    packages = [name for name in (names[0 if DEBIAN else 1] for names in missing) if name]
    if DEBIAN:
        return _be_there(packages)
    # Twice: the first lot brings macros, and those ask for more.
    return _be_there(packages) or _be_there(_asked_by_the_spec()) or _be_there(_asked_by_the_spec())


def _be_there(packages: list[str]) -> int:
    if not packages:
        return 0
    if os.geteuid() != 0:
        sys.stderr.write(f"lab: not installed here: {' '.join(packages)}\n")
        return 0
    return _install(packages)


def _asked_by_the_spec() -> list[str]:
    """Its BuildRequires that are not here, as far as the macros here tell. Not `dnf builddep`: a small Fedora has no
    such plugin, and it asks the network each time."""
    if not shutil.which("rpmspec"):
        return []
    asked = _query("rpmspec", "--query", "--buildrequires", str(SPEC)).stdout.splitlines()
    return [name for name in asked if _query("rpm", "--query", "--whatprovides", name.split()[0]).returncode != 0]


def _query(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, timeout=60)


def _missing_modules() -> list[str]:
    """The system's Python may be another one than this."""
    found = subprocess.run(["/usr/bin/python3", "-Ic", FIND, *MODULES], check=False, capture_output=True, text=True)
    return found.stdout.split()


def _install(packages: list[str]) -> int:
    if DEBIAN:
        install = [*APT, "install", "--yes", "--no-install-recommends", *packages]
        return _run([*APT, "update"]) or _run(install)
    return _run(["dnf", "install", "--assumeyes", "--setopt=install_weak_deps=False", *packages])


def _run(command: list[str]) -> int:
    sys.stderr.write(f"lab: {' '.join(command)}\n")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, check=False, env=quiet, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode


if __name__ == "__main__":
    sys.exit(main())
