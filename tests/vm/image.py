"""The virtual machine's disk: a boot partition with systemd-boot, kernel and initramfs, and a Debian root.

The root is built once and cached; the disk is made from it for each run, with strixd installed. No mounts are needed:
mkfs.ext4 takes a folder, and mtools write into the boot partition, also between two boots, as another system would.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab.cache import cached
from tests.lab.disk import put
from tests.lab.roots import HOST_SUITE, debootstrap
from tests.lab.shell import run

# Less than a lab host has, for emulation makes each service of a boot cost seconds: no firewall, no containers.
PACKAGES = (
    *("systemd", "systemd-sysv", "udev", "kmod", "dbus", "dbus-daemon", "network-manager", "iproute2", "procps"),
    *("python3", "python3-gi", "python3-pydbus", "python3-sdnotify", "python3-pyroute2", "python3-podman"),
    *("linux-image-cloud-amd64", "initramfs-tools", "zstd", "systemd-boot-efi"),
)
# The small kernel knows no USB, and no RDMA over Ethernet; the whole one has that in software (rdma_rxe, siw).
WHOLE_KERNEL = (
    *(name for name in PACKAGES if name != "linux-image-cloud-amd64"),
    *("linux-image-amd64", "rdma-core", "ibverbs-providers", "perftest"),
)
LOADER = "usr/lib/systemd/boot/efi/systemd-bootx64.efi"
ENTRIES = "loader/entries"
MIB = 1 << 20
ROOT_LABEL = "halo-root"
# Fedora's two partitions that matter here: the one with the boot files, and the root.
TABLE = "label: gpt\nstart=1MiB, size=255MiB, type=U, name=boot\nstart=256MiB, type=L, name=root\n"
BOOT_AT, BOOT_KIB = MIB, 255 << 10
ROOT_AT, ROOT_MIB = 256 * MIB, 1536
SPARE = MIB  # for the second copy of the partition table, at the end


@dataclass(frozen=True, slots=True)
class Pieces:
    """What the cache holds: a root with an empty /boot, and beside it what belongs into /boot."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def kernel(self) -> Path:
        return next(self.folder.glob("vmlinuz-*"))

    @property
    def version(self) -> str:
        return self.kernel.name.removeprefix("vmlinuz-")

    @property
    def initramfs(self) -> Path:
        return self.folder / f"initrd.img-{self.version}"


def pieces(packages: tuple[str, ...] = PACKAGES) -> Pieces:
    """From the cache, or made now (about a minute)."""
    recipe = "\n".join(("vm 2", HOST_SUITE, *packages))

    def build(folder: Path) -> None:
        root = folder / "root"
        debootstrap(HOST_SUITE, packages, root)
        for name in ("vmlinuz-*", "initrd.img-*"):
            shutil.move(next((root / "boot").glob(name)), folder)
        shutil.rmtree(root / "boot")
        (root / "boot").mkdir()

    return Pieces(cached("vm", recipe, build))


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk image. `entries()` and `write_entry()` are for when the machine is off."""

    file: Path

    @property
    def _boot(self) -> tuple[str, str]:
        return "-i", f"{self.file}@@{BOOT_AT}"

    def entry(self, name: str) -> str:
        return run(["mtype", *self._boot, f"::{ENTRIES}/{name}.conf"]).stdout

    def write_entry(self, name: str, text: str) -> None:
        scratch = self.file.with_name("entry")
        scratch.write_text(text)
        run(["mcopy", "-o", *self._boot, scratch, f"::{ENTRIES}/{name}.conf"])

    def make(self, root: Path, boot: Mapping[str, Path | str]) -> None:
        """`boot`: what lies on the boot partition, by its path there: a file to copy, or a text."""
        with self.file.open("wb") as fresh:
            fresh.truncate(ROOT_AT + ROOT_MIB * MIB + SPARE)
        run(["sfdisk", "--quiet", self.file], stdin=TABLE)
        fill = ["mkfs.ext4", "-q", "-L", ROOT_LABEL, "-d", str(root), "-E", f"offset={ROOT_AT}"]
        run([*fill, self.file, f"{ROOT_MIB}M"], timeout=300)
        # FAT32, which firmware expects, has 65525 clusters or more: so small ones.
        fat = ["mkfs.vfat", "-F", "32", "-s", "4", "-n", "BOOT", "--offset", str(BOOT_AT // 512)]
        run([*fat, self.file, str(BOOT_KIB)])
        for folder in sorted({str(above) for path in boot for above in Path(path).parents} - {"."}):
            run(["mmd", *self._boot, f"::{folder}"])
        for path, content in boot.items():
            self._put(path, content)

    def _put(self, path: str, content: Path | str) -> None:
        source = content if isinstance(content, Path) else self.file.with_name("text")
        if isinstance(content, str):
            source.write_text(content)
        run(["mcopy", *self._boot, source, f"::{path}"])


def options_of(entry: str) -> str:
    """The command line that a boot entry names."""
    found = re.search(r"^options (.*)$", entry, re.M)
    assert found, entry
    return found[1]


def seed(root: Path, files: Mapping[str, tuple[str, int]]) -> None:
    """Lay files, each a text and a mode, into a root."""
    for path, (text, mode) in files.items():
        put(root / path.lstrip("/"), text, mode)
