"""The boot loader: where kernel arguments are written, and what runs; what the running kernel made of them; reboots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

KERNEL_CMDLINE = "/etc/kernel/cmdline"
DEFAULT_GRUB = "/etc/default/grub"
"""What kernels that are installed later copy, and what grub2-mkconfig writes into every entry (GRUB_CMDLINE_LINUX)."""


@dataclass(frozen=True, slots=True)
class BootEntry:
    """A boot loader entry: `options` is its kernel command line, as written."""

    name: str
    options: str
    rescue: bool = False


@dataclass(frozen=True, slots=True)
class Boot:
    """Where kernel arguments are written, and what runs. `tool` is "" where nothing here can change them."""

    tool: str
    running: str
    entries: tuple[BootEntry, ...] = ()
    kernel_cmdline: str | None = None  # KERNEL_CMDLINE; None: no such file
    default_grub: str | None = None  # GRUB_CMDLINE_LINUX in DEFAULT_GRUB; None: no such file


class BootLoader(Protocol):
    """grubby and the files it edits."""

    async def read(self) -> Boot: ...
    async def change(self, options: Mapping[str, str]) -> None:
        """Make the command line at each of these places read exactly so, byte for byte, and leave all else as it is.
        A place is the name of a boot entry, KERNEL_CMDLINE or DEFAULT_GRUB; one that is gone meanwhile is passed over.
        Blanks around a line are no part of it. On disk when this returns."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """An amdgpu card. `gtt`: bytes of the host's memory that it may use; `vram`: bytes that the firmware keeps for it,
    or, of a card of its own, that it brings."""

    name: str
    gtt: int
    vram: int


@dataclass(frozen=True, slots=True)
class Effects:
    """What kernel arguments led to. `iommu`: the kinds of domain that its groups have, none when the IOMMU is off.
    `aspm`: PCI devices whose link power management the kernel keeps in its own hands."""

    gpus: tuple[Gpu, ...] = ()
    iommu: tuple[str, ...] = ()
    aspm: tuple[str, ...] = ()


class Kernel(Protocol):
    """The running kernel's own report, sysfs and procfs."""

    async def effects(self) -> Effects: ...
    async def memory(self) -> int:
        """Bytes of memory that it has to give: without what the firmware keeps, and its own code."""


class Power(Protocol):
    """login1."""

    async def reboot(self) -> None:
        """Orderly, with no question asked; returns when it is begun."""
