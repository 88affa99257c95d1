"""What the kernel arguments led to, read from sysfs, and how much memory there is.

mem_info_gtt_total and mem_info_vram_total are amdgpu's, in bytes (its sysfs documentation). A group's type is
"identity" (no translation), "DMA" or "DMA-FQ" (ABI/testing/sysfs-kernel-iommu_groups); an IOMMU that is off has no
groups. The files link/*_aspm of a PCI device are there only where the kernel manages the link: with pcie_aspm=off it
leaves every link as the firmware set it, and has none (drivers/pci/pcie/aspm.c, ABI/testing/sysfs-bus-pci).
"""

from __future__ import annotations

import re
from pathlib import Path

from strixd.errors import Rejected
from strixd.ports import Effects, Gpu

_CARD = re.compile(r"card\d+")


class Sysfs:
    """Implements ports.Kernel. `root`: the host's root folder."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._sys = root / "sys"
        self._meminfo = root / "proc/meminfo"

    async def effects(self) -> Effects:
        """Raises Rejected."""
        try:
            return Effects(_gpus(self._sys / "class/drm"), _iommu(self._sys), _managed(self._sys / "bus/pci/devices"))
        except (OSError, ValueError) as error:
            raise Rejected(f"Cannot read what the kernel made of its arguments: {error}") from None

    async def memory(self) -> int:
        """Raises Rejected. The unit of the file is KiB (proc_meminfo(5))."""
        try:
            found = re.search(r"^MemTotal: +(\d+) kB$", self._meminfo.read_text(), re.M)
        except OSError as error:
            raise Rejected(f"Cannot read how much memory there is: {error}") from None
        if not found:
            raise Rejected(f"Cannot read how much memory there is: no MemTotal in {self._meminfo}")
        return int(found[1]) << 10


def _gpus(folder: Path) -> tuple[Gpu, ...]:
    """Connectors ("card1-DP-1") are no cards, and other drivers' cards have no such files."""
    cards = sorted(path for path in _listed(folder) if _CARD.fullmatch(path.name))
    files = [(card.name, card / "device/mem_info_gtt_total", card / "device/mem_info_vram_total") for card in cards]
    return tuple(Gpu(name, int(gtt.read_text()), int(vram.read_text())) for name, gtt, vram in files if gtt.exists())


def _iommu(sys: Path) -> tuple[str, ...]:
    groups = _listed(sys / "kernel/iommu_groups")
    return tuple(sorted({(group / "type").read_text().strip() for group in groups if (group / "type").exists()}))


def _managed(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(device.name for device in _listed(folder) if any(device.glob("link/*_aspm"))))


def _listed(folder: Path) -> list[Path]:
    """A kernel without the driver or the bus has no such folder."""
    return list(folder.iterdir()) if folder.is_dir() else []
