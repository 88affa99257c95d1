"""What the [kernel] section asks for, and the arguments that follow from it: for a host that runs, and for one that is
being installed. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PAGE: Final = 4096
"""Bytes; GTT pages are 4 KiB, also where the kernel's own are larger."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The [kernel] section. `gtt_pages`: pages of 4 KiB that the GPU may use; `gttsize_mib`: the same for an older
    kernel, in MiB, 0 for not to be set."""

    iommu: Literal["pt", "off", "leave"] = "pt"
    gtt_pages: int = 0
    gttsize_mib: int = 0
    pci_realloc: bool = True
    pcie_aspm: Literal["off", "leave"] = "off"
    arguments: tuple[str, ...] = ()
    reboot: Literal["never", "auto"] = "never"


def arguments(policy: Policy) -> tuple[str, ...]:
    """What is to be on the command line, in this order."""
    iommu = {"pt": ("iommu=pt",), "off": ("amd_iommu=off",), "leave": ()}[policy.iommu]
    realloc = ("pci=realloc",) if policy.pci_realloc else ()
    aspm = ("pcie_aspm=off",) if policy.pcie_aspm == "off" else ()
    gttsize = (f"amdgpu.gttsize={policy.gttsize_mib}",) if policy.gttsize_mib else ()
    limit = (f"ttm.pages_limit={policy.gtt_pages}",) if policy.gtt_pages else ()
    return (*iommu, *realloc, *aspm, *gttsize, *limit, *policy.arguments)
