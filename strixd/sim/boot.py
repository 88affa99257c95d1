"""The boot loader's entries and the files that later kernels copy; edits are by key, as the port has it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from strixd.errors import Rejected
from strixd.ports import Boot, BootEntry
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


def edited(options: str, *, add: tuple[str, ...], remove: tuple[str, ...]) -> str:
    """`options` without `remove` and the earlier values of the keys of `add`, then `add`."""
    keys = {argument.partition("=")[0] for argument in add}
    kept = [word for word in options.split() if word not in remove and word.partition("=")[0] not in keys]
    return " ".join((*kept, *add))


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

    async def change(self, *, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        async with self._gate.write("boot", "change", add, remove):
            boot = self._files.content
            if not boot.tool:
                raise Rejected("Cannot change kernel arguments: nothing here can (no grubby)")
            self._files.content = change(boot, add=add, remove=remove)


def change(boot: Boot, *, add: tuple[str, ...], remove: tuple[str, ...]) -> Boot:
    def edit(text: str) -> str:
        return edited(text, add=add, remove=remove)

    return replace(
        boot,
        entries=tuple(e if e.rescue else replace(e, options=edit(e.options)) for e in boot.entries),
        kernel_cmdline=None if boot.kernel_cmdline is None else edit(boot.kernel_cmdline),
        default_grub=None if boot.default_grub is None else edit(boot.default_grub),
    )


def booted(boot: Boot) -> Boot:
    """After a reboot the first entry's options run."""
    if not boot.entries:
        return boot
    first = boot.entries[0]
    return replace(boot, running=f"BOOT_IMAGE=(hd0,gpt2)/vmlinuz-{first.name} {first.options}")
