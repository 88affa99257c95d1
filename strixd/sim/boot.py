"""The boot loader's entries and the files that later kernels copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from strixd.errors import Rejected
from strixd.ports import DEFAULT_GRUB, KERNEL_CMDLINE, Boot, BootEntry
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
    """What is written now; replaced whole."""

    content: Boot = FEDORA


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
