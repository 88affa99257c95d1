"""Kernel arguments on a machine that really boots: configured, running and effective are three facts.

No GPU is there, so of the effects it is the IOMMU's that is judged. One story, since each boot
needs the one before it, and takes a minute or two under emulation.
"""

from __future__ import annotations

from typing import Any

from tests.lab.cache import say
from tests.vm.guest import ENTRY, FILES, OLDER, PLAIN, RESCUE, entry_name
from tests.vm.image import options_of, pieces
from tests.vm.machine import Machine

LOOK = FILES / "look.py"
WANTED = {
    *("iommu=pt", "pci=realloc", "pcie_aspm=off", "amdgpu.gttsize=126976", "ttm.pages_limit=32505856"),
    "strixd.vm=1",
}
Seen = dict[str, Any]


def test_arguments_are_configured_then_running_then_effective_or_not(vm: Machine) -> None:
    newest = entry_name(pieces().version)

    first = boot(vm, "the plain entry", newest)
    assert running(first) == PLAIN.split()
    assert first["status"]["condition"] == "reboot"
    assert not effective(first)
    assert_configured(first)

    second = boot(vm, "the entry as strixd wrote it", newest)
    assert running(second) == options_of(first["entries"][newest]).split()
    assert set(running(second)) >= WANTED
    assert second["status"]["condition"] == "ok"
    assert effective(second)
    assert second["entries"] == first["entries"], "what holds is not written again"

    edit(vm, newest, " iommu=pt", "")
    third = boot(vm, "the entry without iommu=pt, taken out by hand", newest)
    assert set(running(third)) & WANTED == WANTED - {"iommu=pt"}
    assert third["status"]["condition"] == "reboot"
    assert "iommu=pt" in third["status"]["why"]
    assert not effective(third)
    assert_configured(third)

    edit(vm, newest, " rhgb", " intel_iommu=off rhgb")
    fourth = boot(vm, "the entry as strixd mended it, with a stranger's intel_iommu=off beside it", newest)
    assert set(running(fourth)) >= {*WANTED, "intel_iommu=off"}
    assert fourth["iommu"] == []
    assert fourth["status"]["condition"] == "ineffective"
    assert "the IOMMU is off" in fourth["status"]["why"]


def edit(vm: Machine, entry: str, old: str, new: str) -> None:
    """By hand, while the machine is off."""
    text = vm.disk.entry(entry)
    assert text.count(old) == 1, text
    vm.disk.write_entry(entry, text.replace(old, new))


def boot(vm: Machine, which: str, entry: str) -> Seen:
    """Power on, look, power off, and what holds at every boot."""
    say(f"vm: boots {which}")
    seen = vm.boot(LOOK)
    say(f"vm: running: {seen['running']}")
    say(f"vm: IOMMU groups: {', '.join(seen['iommu']) or 'none'}; status: cmdline {seen['status'].get('condition')}")
    for line in seen["said"].splitlines():
        say(f"vm: journal: {line}")
    assert seen["selected"] == f"{entry}.conf"
    assert (seen["failed"], seen["errors"]) == ("", "")
    return seen


def running(seen: Seen) -> list[str]:
    """The words of the kernel that runs, but for the one by which systemd-boot hands over the initramfs."""
    return [word for word in str(seen["running"]).split() if not word.startswith("initrd=")]


def effective(seen: Seen) -> bool:
    """Whether the kernel lets devices pass through the IOMMU; it is all of them or none."""
    modes = set(seen["iommu"])
    assert modes in ({"identity"}, {"DMA-FQ"}), modes
    return modes == {"identity"}


def assert_configured(seen: Seen) -> None:
    """Both entries and both files of /etc have all, once and behind what was there; the rescue entry is as laid."""
    for version in (pieces().version, OLDER):
        words = options_of(seen["entries"][entry_name(version)]).split()
        assert words[: len(PLAIN.split())] == PLAIN.split()
        assert sorted(words[len(PLAIN.split()) :]) == sorted(WANTED)
    assert sorted(seen["kernel_cmdline"].split()) == sorted([*PLAIN.split(), *WANTED])
    line = next(line for line in seen["default_grub"].splitlines() if line.startswith("GRUB_CMDLINE_LINUX="))
    assert sorted(line.partition("=")[2].strip('"').split()) == sorted(["rhgb", "quiet", *WANTED])
    assert seen["entries"][entry_name(RESCUE)] == ENTRY.format(version=RESCUE, options=PLAIN)
