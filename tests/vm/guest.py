"""What makes the virtual machine's root a host with strixd, and its boot partition one laid as on Fedora."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.cluster_file import cluster_file
from tests.lab.disk import SYSCTL
from tests.lab.install import lay
from tests.lab.layout import PROJECT
from tests.lab.shell import remove_tree, run
from tests.vm.image import ENTRIES, LOADER, ROOT_LABEL, Disk, Pieces, seed

FILES = Path(__file__).parent / "files"
MACHINE_ID = "4a5b6c7d8e9f40a1b2c3d4e5f6071829"
Files = Mapping[str, tuple[str, int]]
# Under emulation on a busy machine a disk may take longer to be seen than the 90 s that systemd gives it.
PATIENCE = "[Manager]\nDefaultDeviceTimeoutSec=600\nDefaultTimeoutStartSec=600\n"
OLDER = "6.11.4-301.fc41.x86_64"
RESCUE = "0-rescue-4a5b"
DEFAULT_GRUB = 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="rhgb quiet"\nGRUB_ENABLE_BLSCFG=true\n'
# The kernel's check of its timer panics where the emulated processor gets too little time.
PLAIN = f"root=LABEL={ROOT_LABEL} ro console=ttyS0 no_timer_check rhgb quiet"
ENTRY = """\
title Fedora Linux ({version}) 43 (Server Edition)
version {version}
linux /vmlinuz-{version}
initrd /initramfs-{version}.img
options {options}
grub_users $grub_users
grub_arg --unrestricted
grub_class fedora
"""
SECTIONS = """\
[fabric]
firewall = false

[kernel]
arguments = ["strixd.vm=1"]
reboot = "never"

[image]
pull = "never"

[model]
memory-reserve = "1GiB"
"""
# Two that share a cable: each finds itself in the file by its card, so one disk is good for both.
MAC = "52:54:00:64:00:0{number}"
PAIR = """\
[fabric]
firewall = false

[kernel]
reboot = "never"

[image]
pull = "never"
"""
HOST = {
    "/etc/hostname": ("halo1\n", 0o644),
    "/etc/machine-id": (f"{MACHINE_ID}\n", 0o444),
    "/etc/fstab": (f"LABEL={ROOT_LABEL} / ext4 defaults 0 1\nLABEL=BOOT /boot vfat umask=0077 0 0\n", 0o644),
    "/etc/kernel/cmdline": (f"{PLAIN}\n", 0o644),
    "/etc/default/grub": (DEFAULT_GRUB, 0o644),
    "/etc/strixd/cluster.toml": (cluster_file(SECTIONS), 0o644),
    "/etc/strixd/cluster.key": ("5" * 64 + "\n", 0o600),
    "/etc/sysctl.d/80-as-on-fedora.conf": (SYSCTL, 0o644),
    "/etc/systemd/system.conf.d/patience.conf": (PATIENCE, 0o644),
}
# What systemd does at a first boot for the sake of a new /usr is not of interest here; a package brings its bytecode.
SETTLE = """\
systemd-sysusers
touch /etc/.updated /var/.updated
python3 -m compileall -q /usr/lib/python3/dist-packages/strixd
systemctl enable strixd.socket strixd.service strixd-vm-task.service
"""


def entry_name(version: str) -> str:
    return f"{MACHINE_ID}-{version}"


def boot_files(made: Pieces) -> Mapping[str, Path | str]:
    """Entries of two kernels and a rescue one. The newer is real; the older is the same kernel under its own name."""
    versions = (made.version, OLDER, RESCUE)
    entries = {f"{ENTRIES}/{entry_name(name)}.conf": ENTRY.format(version=name, options=PLAIN) for name in versions}
    kernels = {f"vmlinuz-{version}": made.kernel for version in versions[:2]}
    return {
        "EFI/BOOT/BOOTX64.EFI": made.root / LOADER,
        "loader/loader.conf": f"default {entry_name(made.version)}.conf\ntimeout 0\n",
        f"initramfs-{made.version}.img": made.initramfs,
        **kernels,
        **entries,
    }


def make_disk(disk: Disk, made: Pieces, packages: Path, host: Files = HOST) -> None:
    """The cached root is copied, since everything here is written into it."""
    root = disk.file.with_name("root")
    run(["cp", "--archive", made.root, root], timeout=300)
    lay(root, packages)
    seed(root, {**host, **_programs()})
    shutil.copy(FILES / "strixd-vm-task.service", root / "etc/systemd/system")
    run(["chroot", root, "sh", "-ec", SETTLE])
    disk.make(root, boot_files(made))
    remove_tree(root)


def make_pair(first: Disk, second: Disk, made: Pieces, packages: Path) -> None:
    """Disks of two machines that share a cable."""
    text = cluster_file(PAIR, card=f'mac = "{MAC}"')
    own = {"/etc/hostname": ("box\n", 0o644), "/etc/strixd/cluster.toml": (text, 0o644)}
    make_disk(first, made, packages, {**HOST, **own})
    run(["cp", "--sparse=always", first.file, second.file], timeout=300)


def _programs() -> dict[str, tuple[str, int]]:
    return {
        "/usr/local/libexec/strixd-vm-task": ((FILES / "task").read_text(), 0o755),
        "/usr/local/libexec/hold.py": ((FILES / "hold.py").read_text(), 0o755),
        "/usr/local/libexec/link.py": ((FILES / "link.py").read_text(), 0o755),
        "/usr/local/libexec/tos.py": ((FILES / "tos.py").read_text(), 0o755),
        "/usr/local/sbin/grubby": ((PROJECT / "tests/standin/grubby").read_text(), 0o755),
    }
