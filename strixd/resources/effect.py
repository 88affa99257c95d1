"""What the kernel arguments are for, held against what the running kernel reports. Pure.

An argument may run and do nothing: another parameter wins, the kernel knows it no longer, the firmware decides. What
the file says to leave alone is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from strixd.ports import Effects, Gpu

DRM = "/sys/class/drm"
GROUPS = "/sys/kernel/iommu_groups"
MIB, GIB = 1 << 20, 1 << 30
VRAM = 512 * MIB
"""What the firmware of these machines keeps for the GPU at least; all beyond it is lost to everything else."""


@dataclass(frozen=True, slots=True)
class Expected:
    """`gtt`: bytes of the host's memory that the GPU shall be able to use, 0 for as it is."""

    iommu: Literal["pt", "off", "leave"] = "leave"
    gtt: int = 0
    aspm: Literal["off", "leave"] = "leave"


NOTHING = Expected()


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An effect that is not there: what was asked, what was read and where, what a person can do."""

    asked: str
    read: str
    remedy: str

    def __str__(self) -> str:
        return f"asked for {self.asked}, read {self.read}"


def shortfalls(expected: Expected, effects: Effects) -> tuple[Shortfall, ...]:
    return (*_memory(expected, effects), *_iommu(expected, effects), *_aspm(expected, effects))


def facts(expected: Expected, effects: Effects) -> tuple[str, ...]:
    """What was read of all that is judged."""
    told = []
    if expected.gtt and (gpu := shared(effects)):
        told.append(f"the GPU ({gpu.name}) may use {size(gpu.gtt)}, of which {size(gpu.vram)} are kept for it alone")
    elif expected.gtt:
        told.append("no amdgpu card seen: GPU memory not checked")
    if expected.iommu != "leave":
        told.append(f"IOMMU {', '.join(effects.iommu) or 'off'}")
    if expected.aspm == "off":
        told.append("PCIe link power management is as the firmware left it" if not effects.aspm else "")
    return tuple(filter(None, told))


def shared(effects: Effects) -> Gpu | None:
    """The card that shares the host's memory: of several, the one with the least memory of its own."""
    return min(effects.gpus, key=lambda gpu: gpu.vram, default=None)


def size(count: int) -> str:
    """124 GiB, 62.3 GiB, 512 MiB."""
    unit, name = (GIB, "GiB") if count >= GIB else (MIB, "MiB")
    return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"


def _memory(expected: Expected, effects: Effects) -> Iterator[Shortfall]:
    """Less than asked for counts; amdgpu.gttsize is in MiB, so a MiB less is the same."""
    gpu = shared(effects)
    if not expected.gtt or gpu is None:
        return
    if gpu.gtt < expected.gtt - MIB:
        read = f"{size(gpu.gtt)} in {DRM}/{gpu.name}/device/mem_info_gtt_total"
        yield Shortfall(f"{size(expected.gtt)} of GPU memory", read, 'journalctl -k -b -g "amdgpu|ttm" says why')
    if gpu.vram > VRAM:
        read = f"{size(gpu.vram)} in {DRM}/{gpu.name}/device/mem_info_vram_total: the BIOS still reserves them"
        remedy = (
            "in the BIOS set-up, set the UMA frame buffer size (also called dedicated graphics memory) to 512 MB, "
            'or else to "auto" or its minimum'
        )
        yield Shortfall(f"{size(VRAM)} kept for the GPU alone", read, remedy)


def _iommu(expected: Expected, effects: Effects) -> Iterator[Shortfall]:
    """With iommu=pt a device that the kernel does not trust (Thunderbolt) is translated all the same."""
    kinds = ", ".join(effects.iommu)
    if expected.iommu == "pt" and not effects.iommu:
        read = f"no group in {GROUPS}: the IOMMU is off"
        yield Shortfall("iommu=pt", read, 'enable the IOMMU in the BIOS set-up, or write iommu = "off" in [kernel]')
    elif expected.iommu == "pt" and "identity" not in effects.iommu:
        yield Shortfall("iommu=pt", f"{kinds} in {GROUPS}/*/type, nowhere identity", "journalctl -k -b -g iommu")
    elif expected.iommu == "off" and effects.iommu:
        yield Shortfall("amd_iommu=off", f"{kinds} in {GROUPS}/*/type: it is on", "journalctl -k -b -g iommu")


def _aspm(expected: Expected, effects: Effects) -> Iterator[Shortfall]:
    """pcie_aspm=off turns nothing off: it keeps the kernel from changing what the firmware set
    (admin-guide/kernel-parameters.txt). Whether it does that is all that can be read."""
    if expected.aspm == "off" and effects.aspm:
        read = f"/sys/bus/pci/devices/{effects.aspm[0]}/link/*_aspm: the kernel manages {len(effects.aspm)} links"
        yield Shortfall("pcie_aspm=off", read, "journalctl -k -b -g ASPM")
