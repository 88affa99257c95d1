"""Configured and running is not effective: what sysfs says, how it is read, and what is said about it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from strixd.errors import Rejected
from strixd.host.effects import Sysfs
from strixd.kernelpolicy import Policy
from strixd.ports import Effects, Gpu, Host
from strixd.resources.cmdline import Cmdline, desired_arguments
from strixd.resources.effect import GIB, MIB, Expected, facts, shortfalls, size
from strixd.sim import World, simulated_host

WANTED = Expected("pt", 124 * GIB, "off")
THERE = Effects((Gpu("card1", 124 * GIB, 512 * MIB),), ("identity",))


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read(root: Path) -> Effects:
    return asyncio.run(Sysfs(root).effects())


def test_sysfs_is_read(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "class/drm/card1/device/mem_info_gtt_total": "133143986176\n",
            "class/drm/card1/device/mem_info_vram_total": "536870912\n",
            "class/drm/card1-DP-1/device/mem_info_gtt_total": "1\n",
            "class/drm/card0/device/vendor": "0x1234\n",
            "kernel/iommu_groups/0/type": "identity\n",
            "kernel/iommu_groups/7/type": "DMA-FQ\n",
            "kernel/iommu_groups/9/devices/x": "",
            "bus/pci/devices/0000:c1:00.0/link/l1_aspm": "1\n",
            "bus/pci/devices/0000:c2:00.0/link/clkpm": "1\n",
        },
    )
    assert read(tmp_path) == Effects((Gpu("card1", 124 * GIB, 512 * MIB),), ("DMA-FQ", "identity"), ("0000:c1:00.0",))


def test_a_host_without_any_of_it(tmp_path: Path) -> None:
    assert read(tmp_path) == Effects()


def test_what_is_no_number_is_a_named_failure(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {"class/drm/card1/device/mem_info_gtt_total": "?", "class/drm/card1/device/mem_info_vram_total": "1"},
    )
    with pytest.raises(Rejected, match="Cannot read what the kernel made of its arguments"):
        read(tmp_path)


def test_all_there() -> None:
    assert shortfalls(WANTED, THERE) == ()
    assert facts(WANTED, THERE) == (
        "the GPU (card1) may use 124 GiB, of which 512 MiB are kept for it alone",
        "IOMMU identity",
        "PCIe link power management is as the firmware left it",
    )


@pytest.mark.parametrize(
    ("effects", "asked", "read", "remedy"),
    [
        (
            replace(THERE, gpus=(Gpu("card1", 62 * GIB, 512 * MIB),)),
            "124 GiB of GPU memory",
            "62 GiB in /sys/class/drm/card1/device/mem_info_gtt_total",
            'journalctl -k -b -g "amdgpu|ttm"',
        ),
        (
            replace(THERE, gpus=(Gpu("card1", 124 * GIB, 64 * GIB),)),
            "512 MiB kept for the GPU alone",
            "64 GiB in /sys/class/drm/card1/device/mem_info_vram_total: the BIOS still reserves them",
            "UMA frame buffer size (also called dedicated graphics memory) to 512 MB",
        ),
        (replace(THERE, iommu=()), "iommu=pt", "no group in /sys/kernel/iommu_groups: the IOMMU is off", "BIOS"),
        (replace(THERE, iommu=("DMA",)), "iommu=pt", "DMA in /sys/kernel/iommu_groups/*/type", "iommu"),
        (replace(THERE, aspm=("0000:c1:00.0",)), "pcie_aspm=off", "0000:c1:00.0/link/*_aspm", "ASPM"),
    ],
)
def test_what_is_not_there(effects: Effects, asked: str, read: str, remedy: str) -> None:
    (short,) = shortfalls(WANTED, effects)
    assert short.asked == asked
    assert read in short.read
    assert remedy in short.remedy


def test_an_iommu_that_should_be_off() -> None:
    (short,) = shortfalls(replace(WANTED, iommu="off"), THERE)
    assert str(short) == "asked for amd_iommu=off, read identity in /sys/kernel/iommu_groups/*/type: it is on"


def test_what_is_left_alone_is_not_judged() -> None:
    effects = Effects((), ("DMA",), ("0000:c1:00.0",))
    assert shortfalls(Expected(), effects) == ()
    assert facts(Expected(), effects) == ()


def test_a_device_that_is_not_trusted_is_translated_all_the_same() -> None:
    assert shortfalls(WANTED, replace(THERE, iommu=("DMA", "identity"))) == ()


def test_no_card_is_a_fact_and_no_failure() -> None:
    assert shortfalls(WANTED, replace(THERE, gpus=())) == ()
    assert "no amdgpu card seen: GPU memory not checked" in facts(WANTED, replace(THERE, gpus=()))


def test_a_card_with_memory_of_its_own_is_no_sign_of_the_bios() -> None:
    assert shortfalls(WANTED, replace(THERE, gpus=(Gpu("card0", 124 * GIB, 24 * GIB), *THERE.gpus))) == ()


def test_sizes_in_words() -> None:
    assert [size(124 * GIB), size(512 * MIB), size(int(62.34 * GIB))] == ["124 GiB", "512 MiB", "62.3 GiB"]


GUIDE = desired_arguments(Policy(gtt_pages=32505856, gttsize_mib=126976))


@pytest.fixture
def world() -> World:
    """All is written, and runs."""
    world = World()
    words = f"root=UUID=5e3f ro {' '.join(GUIDE.add)}"
    boot = world.boot_files.content
    entries = tuple(entry if entry.rescue else replace(entry, options=words) for entry in boot.entries)
    world.boot_files.content = replace(boot, entries=entries, running=words, kernel_cmdline=words, default_grub=words)
    return world


def plan(host: Host) -> tuple[str, str, str]:
    resource = Cmdline()
    made = resource.plan(GUIDE, asyncio.run(resource.observe(host, GUIDE)))
    assert not made.steps
    return made.condition, made.why, made.hint


def test_a_condition_of_its_own(world: World) -> None:
    host = simulated_host(world)
    assert plan(host) == ("ok", "", "")
    world.boot_files.deaf = frozenset({"ttm.pages_limit"})
    world.boot_files.vram = 64 * GIB
    condition, why, hint = plan(host)
    assert condition == "ineffective"
    assert why.startswith(
        "configured and running, not effective: asked for 124 GiB of GPU memory, read 64 GiB in /sys/"
    )
    assert "read 64 GiB in /sys/class/drm/card1/device/mem_info_vram_total: the BIOS still reserves them" in why
    assert "UMA frame buffer" in hint


def test_what_does_not_run_yet_is_not_judged(world: World) -> None:
    world.boot_files.content = replace(world.boot_files.content, running="quiet")
    assert plan(simulated_host(world))[0] == "reboot"
