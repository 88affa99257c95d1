"""Boot files as on Fedora, which a lab host is not, with a stand-in for grubby that has its faults."""

from __future__ import annotations

from tests.lab.host import Host
from tests.lab.layout import PROJECT

ROOT = "root=UUID=2f0c ro rhgb quiet"
ENTRY = "title Fedora Linux ({0}) 43\nversion {0}\nlinux /vmlinuz-{0}\ninitrd /initramfs-{0}.img\noptions {1}\n"
VERSIONS = ("6.18.5-200.fc43.x86_64", "6.17.9-300.fc43.x86_64", "0-rescue-4a5b")


def lay_boot_files(host: Host) -> None:
    for version in VERSIONS:
        host.write(f"/boot/loader/entries/4a5b-{version}.conf", ENTRY.format(version, ROOT))
    host.write("/etc/kernel/cmdline", f"{ROOT}\n")
    host.write("/etc/default/grub", 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="rhgb quiet"\n')
    host.write("/usr/local/sbin/grubby", (PROJECT / "tests/standin/grubby").read_text(), 0o755)
