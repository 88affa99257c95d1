"""Boot files as on Fedora, which a lab host is not, with a stand-in for grubby; and stand-ins for what the kernel says.

Stand-ins below /etc/lab are seen from the next boot on.
"""

from __future__ import annotations

from tests.lab.host import Host
from tests.lab.layout import PROJECT

ENTRIES = "/boot/loader/entries"
MACHINE = "4a5b"
ROOT = "root=UUID=2f0c ro rhgb quiet"
ENTRY = """title Fedora Linux ({0}) 43
version {0}
linux /vmlinuz-{0}
initrd /initramfs-{0}.img
options {1}
grub_users $grub_users
grub_arg --unrestricted
grub_class fedora
"""
VERSIONS = ("6.18.5-200.fc43.x86_64", "6.17.9-300.fc43.x86_64", "0-rescue-4a5b")
GIB = 1 << 30


def lay_boot_files(host: Host) -> None:
    for version in VERSIONS:
        host.write(entry(version), ENTRY.format(version, ROOT))
    host.write("/etc/kernel/cmdline", f"{ROOT}\n")
    host.write("/etc/default/grub", 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="rhgb quiet"\nGRUB_ENABLE_BLSCFG=true\n')
    host.write("/usr/local/sbin/grubby", (PROJECT / "tests/standin/grubby").read_text(), 0o755)


def entry(version: str) -> str:
    """The path of a kernel's entry."""
    return f"{ENTRIES}/{MACHINE}-{version}.conf"


def lay_running(host: Host, arguments: str) -> None:
    host.write("/etc/lab/proc/cmdline", f"BOOT_IMAGE=(hd0,gpt2)/vmlinuz-{VERSIONS[0]} {arguments}\n")


def lay_effects(host: Host, *, gtt: int = 124 * GIB, vram: int = GIB // 2, iommu: str = "identity") -> None:
    """An amdgpu card and an IOMMU. Written into the files in place, so that a running host sees another value too."""
    card = "/etc/lab/class/drm/card1/device"
    files = {f"{card}/mem_info_gtt_total": gtt, f"{card}/mem_info_vram_total": vram}
    for path, text in {**files, "/etc/lab/kernel/iommu_groups/0/type": iommu}.items():
        host.sh(f"mkdir -p {path.rpartition('/')[0]} && echo {text} >{path}")
