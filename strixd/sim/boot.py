"""The boot loader's entries and the files that later kernels copy; what the running kernel made of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from strixd.errors import Rejected
from strixd.kernelargs import key, parts, value
from strixd.ports import DEFAULT_GRUB, KERNEL_CMDLINE, Boot, BootEntry, Effects, Gpu
from strixd.sim.gate import Gate

ROOT = "root=UUID=5e3f ro quiet"
FEDORA = Boot(
    tool="grubby",
    running=f"BOOT_IMAGE=(hd0,gpt2)/vmlinuz-6.18.5 {ROOT}",
    entries=(
        BootEntry("6.18.5", ROOT),
        BootEntry("6.17.9", ROOT),
        BootEntry("0-rescue", ROOT, rescue=True),
    ),
    kernel_cmdline=ROOT,
    default_grub="quiet",
)


@dataclass(slots=True)
class BootFiles:
    """What is written now, and what the next boot makes of the firmware; replaced whole. `vram`: bytes that the
    firmware keeps for the GPU; `deaf`: arguments (by key) that this kernel does not obey."""

    content: Boot = FEDORA
    vram: int = 512 << 20
    deaf: frozenset[str] = frozenset()


class SimBoot:
    """ports.BootLoader."""

    def __init__(self, files: BootFiles, gate: Gate) -> None:
        self._files = files
        self._gate = gate

    async def read(self) -> Boot:
        async with self._gate.read("boot", "read"):
            return self._files.content

    async def change(self, options: Mapping[str, str]) -> None:
        async with self._gate.write("boot", "change", options):
            boot = self._files.content
            if not boot.tool:
                raise Rejected("Cannot change kernel arguments: no grubby on this host")
            self._files.content = changed(boot, options)


def changed(boot: Boot, options: Mapping[str, str]) -> Boot:
    entries = tuple(replace(entry, options=options.get(entry.name, entry.options)) for entry in boot.entries)
    copied, default = boot.kernel_cmdline, boot.default_grub
    return replace(
        boot,
        entries=entries,
        kernel_cmdline=None if copied is None else options.get(KERNEL_CMDLINE, copied),
        default_grub=None if default is None else options.get(DEFAULT_GRUB, default),
    )


def booted(boot: Boot) -> Boot:
    """After a reboot the first entry's options run."""
    if not boot.entries:
        return boot
    first = boot.entries[0]
    return replace(boot, running=f"BOOT_IMAGE=(hd0,gpt2)/vmlinuz-{first.name} {first.options}")


def effects(files: BootFiles) -> Effects:
    """As on a Strix Halo with 128 GiB, half of which the GPU may use when nothing is said."""
    words = [word for word in parts(files.content.running)[0] if key(word) not in files.deaf]
    said = {key(word): value(word) for word in words}
    pages = int(said.get("ttm.pages_limit", HALF // PAGE))
    iommu = () if said.get("amd_iommu") == "off" else ("identity",) if said.get("iommu") == "pt" else ("DMA-FQ",)
    aspm = () if said.get("pcie_aspm") == "off" else ("0000:c1:00.0",)
    return Effects((Gpu("card1", pages * PAGE, files.vram),), iommu, aspm)


PAGE, HALF = 4096, 64 << 30


class SimKernel:
    """ports.Kernel."""

    def __init__(self, files: BootFiles, gate: Gate) -> None:
        self._files = files
        self._gate = gate

    async def effects(self) -> Effects:
        async with self._gate.read("kernel", "effects"):
            return effects(self._files)

    async def memory(self) -> int:
        async with self._gate.read("kernel", "memory"):
            return 2 * HALF - self._files.vram


class SimPower:
    """ports.Power. `begin` is called when a reboot is asked for; the process that asked does not see its end."""

    def __init__(self, begin: Callable[[], None], gate: Gate) -> None:
        self._begin = begin
        self._gate = gate

    async def reboot(self) -> None:
        async with self._gate.write("power", "reboot"):
            self._begin()
